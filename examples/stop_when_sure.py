"""Find the best of eight ads, and stop when it is sure: at 95 %, or when at most 0.02 could be lost.

Somebody looks after every result, which is allowed. It writes stop_when_sure.png:
python examples/stop_when_sure.py
"""

import math

import matplotlib.pyplot as plt
import numpy as np

import mfbandit as mfb

VISITORS = 20  # who see an ad in one play
TOLERANCE = 0.02
EVERY = 5  # results from one point of the picture to the next


def main() -> None:
    rng = np.random.default_rng(1)
    hour = rng.permutation(np.linspace(0.15, 0.64, 8))  # share of visitors who click: the truth, which nobody knows
    clicks = np.array([hour + rng.uniform(-0.1, 0.1, 8), hour + rng.uniform(-0.04, 0.04, 8), hour])
    fidelities = mfb.Fidelities(
        costs=[1, 10, 60],  # minutes that an ad is shown
        biases=[0.1, 0.04, 0],  # how far off its share of clicks may be
        concentration=mfb.SubGaussian(0.5 / math.sqrt(VISITORS)),  # of a mean of so many yes or no
    )
    exp = mfb.Experiment(
        mfb.MFSure(tolerance=TOLERANCE),
        arms=[f"ad {k + 1}" for k in range(8)],
        fidelities=fidelities,
        stop=mfb.Sure(0.95, tolerance=TOLERANCE),
    )
    trend = []
    for play in exp.plays():
        exp.tell(play, rng.binomial(VISITORS, clicks[play.fidelity, play.arm]) / VISITORS)
        if len(exp.history.rewards) % EVERY == 0 or exp.decided:
            found = exp.confidence()
            trend.append((exp.spent, found.level, found.could_lose))
    print(found.sentence)
    print(f"{exp.state} after {len(exp.history.rewards)} plays and {exp.spent:,.0f} minutes: {exp.arms[exp.best()]}")
    print(f"the best in truth: {exp.arms[hour.argmax()]}")
    draw(trend)


def draw(trend: list[tuple[float, float, float]]) -> None:
    """Draw confidence and possible loss over what was spent."""
    spent, level, loss = np.array(trend).T
    figure, (sure, lose) = plt.subplots(1, 2, figsize=(8, 3.2), layout="constrained")
    sure.plot(spent, 100 * level, color="#0072B2")
    sure.plot(spent[-1], 100 * level[-1], "o", color="#0072B2")
    sure.set(title="Confidence, %", ylim=(0, 100))
    lose.plot(spent, loss, color="#D55E00")
    lose.plot(spent[-1], loss[-1], "o", color="#D55E00")
    lose.axhline(TOLERANCE, color="0.5", lw=1, ls="--")
    lose.annotate("tolerance", (0, TOLERANCE), (4, 4), textcoords="offset points", color="0.4")
    lose.set(title="Possible loss at 95 %, share of clicks", yscale="log")
    lose.set_yticks([0.02, 0.05, 0.1, 0.2, 0.5, 1], ["0.02", "0.05", "0.1", "0.2", "0.5", "1"], minor=False)
    lose.minorticks_off()
    for ax in (sure, lose):
        ax.set_xlim(0, 1.05 * spent[-1])
        ax.set_xlabel("minutes of display spent")
        ax.spines[["top", "right"]].set_visible(False)
    figure.savefig("stop_when_sure.png", dpi=150)


if __name__ == "__main__":
    main()
