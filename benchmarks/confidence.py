"""How long a claim about the best of 1,000 arms takes: from scratch, and after one more result of any arm.

Targets, in process time: 60 ms from scratch; 5 ms (median) after one more result, also through an experiment. A result
of the best arm changes every pair, so that it takes as long as from scratch. Experiments have about 1, 3, 30 and 300
results for each arm and fidelity, Gaussian or in [0, 1]. "Two kinds", Gaussian below the highest fidelity and in [0, 1]
there, is measured beside that: it has no quick way, and no target.

Run: python benchmarks/confidence.py [--arms 1000] [--repeats 31] [--out results/confidence.json]
"""

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import mfbandit as mfb
from mfbandit._internal.typing import FloatArray
from mfbandit.core import Concentration, KeptClaims, Roster, Stats, confidence

COSTS, BIASES = [1, 10, 100], [0.3, 0.03, 0]
GAUSSIAN, BOUNDED, TWO_KINDS = "Gaussian", "in [0, 1]", "two kinds"
NOISES: dict[str, Concentration | list[Concentration]] = {
    GAUSSIAN: mfb.SubGaussian(0.2),
    BOUNDED: mfb.Bounded(0, 1),
    TWO_KINDS: [mfb.SubGaussian(0.2), mfb.SubGaussian(0.2), mfb.Bounded(0, 1)],
}
RESULTS = (1, 3, 30, 300)
SCALE = 0.2
LEADER = 7
LEVEL = 0.95
SCRATCH_MS, MORE_MS = 60.0, 5.0
SCRATCH = "from scratch"


class Bed:
    """One experiment: its results, and more of them.

    Args:
        noise: one of NOISES.
        results: how many there are of each arm at each fidelity; every third arm has 0 to twice as many.
        arms: how many.
    """

    def __init__(self, noise: str, results: int, arms: int) -> None:
        self.rng = np.random.default_rng([results, len(noise)])
        self.bounded = noise != GAUSSIAN
        self.fidelities = mfb.Fidelities(COSTS, BIASES, NOISES[noise])
        self.means = self.rng.uniform(0, 0.9, arms)
        self.means[LEADER] = 0.97
        self.counts = np.full((len(COSTS), arms), results)
        self.counts[:, ::3] = self.rng.integers(0, 2 * results + 1, self.counts[:, ::3].shape)
        self.counts[:, LEADER] = results

    def draw(self, arm: int, number: int) -> FloatArray:
        """Draw rewards of an arm."""
        rewards = self.rng.normal(self.means[arm], SCALE, number)
        return np.clip(rewards, 0, 1) if self.bounded else rewards

    def stats(self) -> Stats:
        """All results so far."""
        stats = Stats.empty(*self.counts.shape)
        stats.counts[:] = self.counts
        for m, arm in np.ndindex(*self.counts.shape):
            stats.sums[m, arm] = self.draw(arm, int(self.counts[m, arm])).sum()
        return stats

    def experiment(self) -> mfb.Experiment:
        """The same in an experiment in memory."""
        exp = mfb.Experiment(mfb.MFUCB(), arms=len(self.means), fidelities=self.fidelities)
        for m, arm in np.ndindex(*self.counts.shape):
            exp.add_results([(arm, m, float(x), None) for x in self.draw(arm, int(self.counts[m, arm]))])
        return exp

    def other_than(self, arm: int) -> int:
        """Pick another arm."""
        return int((arm + self.rng.integers(1, len(self.means))) % len(self.means))

    def fidelity(self) -> int:
        """Pick a fidelity."""
        return int(self.rng.integers(len(COSTS)))


def main() -> int:
    """Measure, print, and return 0 if all targets are met."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--arms", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=31)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    figures = {}
    for noise in NOISES:
        for results in RESULTS:
            for what, taken in measured(noise, results, options.arms, options.repeats).items():
                target = SCRATCH_MS if what == SCRATCH else MORE_MS
                figures[f"{noise}, {results} results, {what}"] = {"ms": taken, "of target": taken / target}
                verdict = "yes" if taken <= target else "(no)" if noise == TWO_KINDS else "NO"
                print(
                    f"{verdict:5}{noise:10}{results:4} results  {what:40}{taken:7.2f} ms{taken / target:7.2f} of target"
                )
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(figures, indent=2) + "\n")
    return int(any(figure["of target"] > 1 for name, figure in figures.items() if TWO_KINDS not in name))


def measured(noise: str, results: int, arms: int, repeats: int) -> dict[str, float]:
    """Medians in milliseconds, by what was done."""
    bed = Bed(noise, results, arms)
    stats, roster, counted = bed.stats(), Roster(arms), np.ones(len(COSTS), dtype=bool)
    asked = stats, bed.fidelities, LEADER, roster, counted, LEVEL
    found, kept = {SCRATCH: median(lambda: confidence(*asked), repeats)}, KeptClaims()
    kept.confidence(*asked)

    def more(arm: int) -> None:
        m = bed.fidelity()
        stats.counts[m, arm] += 1
        stats.sums[m, arm] += bed.draw(arm, 1)[0]

    found["a rival's result"] = median(lambda: kept.confidence(*asked), repeats, lambda: more(bed.other_than(LEADER)))
    found["the leader's result"] = median(lambda: kept.confidence(*asked), repeats, lambda: more(LEADER))
    if kept.confidence(*asked) != confidence(*asked):
        raise AssertionError("what was kept must give the same to the last bit")
    exp = bed.experiment()
    exp.confidence()

    def told(arm: int) -> None:
        exp.add_results([(arm, bed.fidelity(), float(bed.draw(arm, 1)[0]), None)])

    found["a rival's result in an experiment"] = median(
        exp.confidence, repeats, lambda: told(bed.other_than(exp.best()))
    )
    found["the leader's result in an experiment"] = median(exp.confidence, repeats, lambda: told(exp.best()))
    return found


def median(timed: Callable[[], object], repeats: int, before: Callable[[], None] = lambda: None) -> float:
    """The median time of a call, in milliseconds of this process; ``before`` each call, something is done."""
    taken = []
    for _ in range(repeats):
        before()
        start = time.process_time()
        timed()
        taken.append(time.process_time() - start)
    return float(1e3 * np.median(taken))


if __name__ == "__main__":
    sys.exit(main())
