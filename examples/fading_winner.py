"""Follow a winner that fades: the best of six ads loses most of its clicks half-way, with and without a half-life.

A play shows an ad 500 times and is told as clicks of impressions. With ``HalfLife`` old results count less and less, so
that the policy notices. It also finds out by a test that a mean has changed. It writes fading_winner.png:
python examples/fading_winner.py
"""

import matplotlib.pyplot as plt
import numpy as np

import mfbandit as mfb

IMPRESSIONS, PLAYS, FADES, LOOK = 500, 1600, 800, 8
RATES = np.array([0.020, 0.025, 0.030, 0.035, 0.040, 0.060])
FADED = 0.015  # of the best, from play 800 on
MEMORIES = {"for ever": None, "with a half-life of 150 plays": mfb.HalfLife(plays=150)}


def clicks(play: mfb.Play, number: int, rng: np.random.Generator) -> mfb.Counts:
    """Clicks of an ad that is shown now."""
    rate = FADED if play.arm == RATES.argmax() and number >= FADES else RATES[play.arm]
    return mfb.Counts(int(rng.binomial(IMPRESSIONS, rate)), IMPRESSIONS)


def followed(memory: mfb.HalfLife | None) -> tuple[mfb.Experiment, np.ndarray]:
    """An experiment with such a memory, and which arm was recommended after each play."""
    rng, best = np.random.default_rng(0), []
    exp = mfb.Experiment(
        mfb.UCB(rho=0.5),
        arms=[f"ad {k + 1}" for k in range(len(RATES))],
        fidelities=mfb.Fidelities([1], concentration=mfb.Rate()),
        memory=memory,
    )
    for number in range(PLAYS):
        play = exp.ask()
        exp.tell(play, clicks(play, number, rng))
        if number % LOOK == LOOK - 1:
            best += [exp.best()] * LOOK
    return exp, np.array(best)


def main() -> None:
    figure, axes = plt.subplots(2, 1, figsize=(8, 4.6), layout="constrained", sharex=True)
    for ax, (name, memory) in zip(axes, MEMORIES.items(), strict=True):
        exp, best = followed(memory)
        wrong = int((best[FADES:] == RATES.argmax()).sum())
        print(f"results count {name}: the faded ad is recommended for {wrong} more plays")
        for drift in exp.drift():
            print(f"  found: the mean of {drift.label} has changed")
        ax.plot(exp.history.arms + 1, ".", ms=3, color="0.6", label="played")
        ax.plot(best + 1, color="#0072B2", lw=2, label="recommended")
        ax.axvline(FADES, color="#D55E00", lw=1, ls="--")
        ax.set(title=f"Results count {name}", ylabel="ad", yticks=range(1, len(RATES) + 1))
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].annotate("ad 6 fades", (FADES, 1), (6, 0), textcoords="offset points", color="#D55E00")
    axes[0].legend(frameon=False, loc="lower left", ncols=2)
    axes[1].set_xlabel("plays")
    figure.savefig("fading_winner.png", dpi=150)


if __name__ == "__main__":
    main()
