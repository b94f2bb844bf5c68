"""Find the best of twelve ads by counts of clicks, against the ad that runs now, until 95 % sure.

A play shows an ad 250 times and is told as clicks of impressions. Whatever the policy wants, a tenth of the plays go
to the ad that runs now, so that by how much another one is better is known at any time. It writes click_rates.png:
python examples/click_rates.py
"""

import matplotlib.pyplot as plt
import numpy as np

import mfbandit as mfb

IMPRESSIONS = 250
TOLERANCE = 0.003
NOW, SHARE = "ad that runs now", 0.1
RATES = np.array([0.030, 0.012, 0.018, 0.021, 0.026, 0.028, 0.031, 0.033, 0.036, 0.039, 0.052, 0.024])  # the truth


def main() -> None:
    rng = np.random.default_rng(3)
    exp = mfb.Experiment(
        mfb.MFSure(tolerance=TOLERANCE),
        arms=[NOW, *(f"ad {k}" for k in range(1, len(RATES)))],
        fidelities=mfb.Fidelities(
            costs=[IMPRESSIONS], biases=[0], concentration=mfb.Rate()
        ),  # a cost of 1 is an impression
        control=NOW,
        control_share=SHARE,
        stop=mfb.Sure(0.95, tolerance=TOLERANCE),
    )
    looks = []
    for play in exp.plays():
        exp.tell(play, successes=int(rng.binomial(IMPRESSIONS, RATES[play.arm])), trials=IMPRESSIONS)
        lift = exp.lift() if len(exp.history.arms) % 5 == 0 or exp.decided else None
        if lift is not None:
            looks.append((exp.spent, lift.low, lift.high, lift.estimate, RATES[lift.arm] - RATES[0]))
    print(f"{exp.state}: {exp.arms[exp.best()]}. {exp.confidence().sentence}")
    print(exp.lift())
    plays = exp.history.arms
    print(f"{exp.spent:,.0f} impressions; {np.mean(plays == 0):.0%} of the plays went to the {NOW}")
    draw(exp, np.array(looks).T)


def draw(exp: mfb.Experiment, looks: np.ndarray) -> None:
    """Draw the lift over impressions, and where these went."""
    spent, low, high, seen, truth = looks
    figure, (lift, shown) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained", width_ratios=[3, 2])
    lift.fill_between(spent / 1e3, 100 * low, 100 * high, color="#0072B2", alpha=0.2, lw=0, label="95 %, at any time")
    lift.plot(spent / 1e3, 100 * seen, color="#0072B2", label="observed")
    lift.plot(spent / 1e3, 100 * truth, color="0.3", lw=1, ls="--", label="truth")
    lift.axhline(0, color="0.5", lw=1)
    lift.set(title="The best so far minus the ad that runs now", xlabel="thousand impressions", ylim=(-4, 8))
    lift.set_ylabel("percentage points")
    lift.legend(frameon=False, loc="lower right")
    order = RATES.argsort()
    plays = np.bincount(exp.history.arms, minlength=len(RATES))
    colors = ["#D55E00" if k == 0 else "#0072B2" for k in order]
    shown.barh([f"{exp.arms[k]}, {RATES[k]:.1%}" for k in order], plays[order] * IMPRESSIONS / 1e3, color=colors)
    shown.axvline(SHARE * exp.spent / 1e3, color="#D55E00", lw=1, ls="--")
    shown.set(title="Where impressions went", xlabel="thousand impressions")
    for ax in (lift, shown):
        ax.spines[["top", "right"]].set_visible(False)
    figure.savefig("click_rates.png", dpi=150)


if __name__ == "__main__":
    main()
