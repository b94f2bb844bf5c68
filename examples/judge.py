"""Choose the best of ten prompts by a cheap automatic judge and dear human ratings, and stop when it is sure.

The judge costs a cent and likes long answers, so its scores are biased, by an amount that nobody knows. A person
costs a euro. The policy learns from both how far the judge is to be trusted, and asks people about what matters.
Ratings are simulated. How much the judge saves differs from run to run: with seeds 0 to 3 it is sure after 117, 40,
235 and 24 euros, and with people alone after 22, 218, 172 and 230.

It writes judge.png: python examples/judge.py
"""

import matplotlib.pyplot as plt
import numpy as np

import mfbandit as mfb

CENTS = [1, 100]  # a score of the judge, a rating by a person
CAPITAL = 50_000  # cents
TOLERANCE = 0.4  # of a rating between 1 and 5
PROMPTS = [f"prompt {letter}" for letter in "ABCDEFGHIJ"]
PEOPLE = np.array([2.6, 2.9, 3.1, 3.2, 3.3, 3.4, 3.5, 3.6, 3.7, 4.3])  # mean ratings: the truth
LIKED = np.array([1.0, 0.5, 0.8, -0.1, 0.4, 0.2, 0.9, 0.0, 0.3, 0.1])  # what the judge adds for length


def rate(play: mfb.Play, rng: np.random.Generator) -> float:
    """A rating between 1 and 5: whole numbers by people, finer ones by the judge."""
    if play.fidelity == 0:
        return float(np.clip(rng.normal(PEOPLE[play.arm] + LIKED[play.arm], 0.4), 1, 5))
    return float(np.clip(round(rng.normal(PEOPLE[play.arm], 0.7)), 1, 5))


def main() -> None:
    rng = np.random.default_rng(1)
    exp = mfb.Experiment(
        mfb.MFBayes(),
        arms=PROMPTS,
        fidelities=mfb.Fidelities(CENTS, names=["judge", "people"]),  # neither biases nor noise are known
        stop=mfb.Sure(0.95, tolerance=TOLERANCE, estimates=True),
        capital=CAPITAL,
    )
    for play in exp.plays():
        exp.tell(play, rate(play, rng))
    judged, asked = exp.results_at
    best = exp.best()
    means = exp.stats.means
    print(exp.confidence().sentence)
    print(f"{exp.state}: {exp.arms[best]}, after {judged:,} scores of the judge and {asked:,} ratings by people")
    print(f"{exp.spent / 100:,.2f} euros; the judge alone would choose {exp.arms[int(np.nanargmax(means[0]))]}")
    print(f"in truth people rate {exp.arms[best]} {PEOPLE[best]}, and the best {PEOPLE.max()}")
    draw(exp)


def draw(exp: mfb.Experiment) -> None:
    """Draw what the judge says beside what people say, and how often each was asked."""
    stats, (low, high) = exp.stats, exp.policy.intervals(exp.stats, exp.fidelities)  # type: ignore[attr-defined]
    places = np.arange(len(PROMPTS))
    figure, (ratings, asked) = plt.subplots(
        1, 2, figsize=(9, 3.8), layout="constrained", width_ratios=[3, 2], sharey=True
    )
    ratings.hlines(places, low.clip(1, 5), high.clip(1, 5), color="#0072B2", lw=6, alpha=0.3, label="believed, 95 %")
    ratings.plot(stats.means[0], places, "D", color="#D55E00", ms=5, label="the judge's mean")
    ratings.plot(PEOPLE, places, "|", color="black", ms=14, mew=2, label="people, in truth")
    ratings.set(title="What prompts are worth", xlabel="rating", xlim=(1.8, 5.2), yticks=places, yticklabels=PROMPTS)
    ratings.legend(frameon=False, loc="lower right", fontsize=8)
    asked.barh(places, stats.counts[0] * CENTS[0] / 100, color="#D55E00", label="the judge")
    asked.barh(
        places, stats.counts[1] * CENTS[1] / 100, left=stats.counts[0] * CENTS[0] / 100, color="#0072B2", label="people"
    )
    asked.set(title="What was paid for", xlabel="euros")
    asked.legend(frameon=False, fontsize=8)
    for ax in (ratings, asked):
        ax.spines[["top", "right"]].set_visible(False)
    figure.savefig("judge.png", dpi=150)


if __name__ == "__main__":
    main()
