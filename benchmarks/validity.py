"""How often a claim about the best arm is wrong, if one looks after every play: at most δ, whatever chose the plays.

The hardest case is measured: all arms have the same mean, but the last one counts as the best, so that every claim
about another one is wrong. Where arms come and go, of any two the later one counts as better. Below the highest
fidelity the better arm looks worse, and the others better, by as much as the biases allow. A run counts as wrong at δ
if at any look the claim about any wrong arm reached 1 − δ.

Two numbers are given for each δ. "claims" are claims as they are made, against every other arm. "pairs" leaves out all
other arms but the best one: a claim can only be wrong if this one is, and the proof bounds this one.

Takes about twenty minutes on one core; ``--runs 200`` gives an idea in two. ``--plays`` makes runs longer.
"""

import argparse
import json
import math
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

import mfbandit as mfb
from mfbandit._internal.progress import print_line
from mfbandit._internal.typing import BoolArray, FloatArray, IntArray
from mfbandit.core import Concentration, Stats
from mfbandit.core.claims import Pool, explanation
from mfbandit.core.confidence import Roster, confidence
from mfbandit.simulation.engines import mfsure
from mfbandit.simulation.engines.interface import begin_run

DELTAS = (0.1, 0.05, 0.01)
CHANGE_EVERY = 80  # plays, where arms come and go
SHRINK = {1: (0.0,), 2: (1.0, 0.0), 5: (1.0, 0.75, 0.5, 0.25, 0.0)}  # biases, as parts of the widest


@dataclass(frozen=True)
class Noise:
    """Rewards around a mean, and what the experiment is told of them.

    Args:
        name: for the table.
        told: the concentration of the experiment.
        mean: of all arms at the highest fidelity.
        widest: the bias of the lowest fidelity.
        unit: draws numbers from which ``reward`` makes rewards; one for each run.
        reward: a reward from such a number and the mean.
    """

    name: str
    told: Concentration
    mean: float
    widest: float
    unit: Callable[[np.random.Generator, int], FloatArray]
    reward: Callable[[FloatArray, FloatArray], FloatArray]


def _normal(rng: np.random.Generator, size: int) -> FloatArray:
    return rng.standard_normal(size)


def _uniform(rng: np.random.Generator, size: int) -> FloatArray:
    return rng.random(size)


def _around(unit: FloatArray, mean: FloatArray) -> FloatArray:
    return mean + unit


def _hit(unit: FloatArray, mean: FloatArray) -> FloatArray:
    return (unit < mean).astype(np.float64)


def _mixed(unit: FloatArray, mean: FloatArray) -> FloatArray:
    """Rewards in [0, 1] that are not 0/1: 0, or else uniform."""
    share = np.minimum(1.0, 2 * mean)  # of those that are uniform, on [0, 2·mean/share]
    return np.where(unit < share, unit / share * 2 * mean / share, 0.0)


GAUSSIAN = Noise("normal", mfb.SubGaussian(1.0), 0.0, 0.3, _normal, _around)
RARE = Noise("0/1, 5 %", mfb.Bounded(0, 1), 0.05, 0.04, _uniform, _hit)
EVEN = Noise("0/1, 50 %", mfb.Bounded(0, 1), 0.5, 0.2, _uniform, _hit)
RANGE = Noise("in [0, 1], mean 0.3", mfb.Bounded(0, 1), 0.3, 0.2, _uniform, _mixed)
TOO_SMALL = replace(GAUSSIAN, name="normal, told half the scale", told=mfb.SubGaussian(0.5))


@dataclass(frozen=True, eq=False)
class Case:
    """What is measured.

    Args:
        noise: the rewards.
        arms: K.
        number: M, of fidelities.
        sampling: "uniform", "adversary" or "MFSure".
        tolerance: ε of the claims; the best arm is ahead by this much.
        plays: of a run, with a look after each.
        changing: whether arms come and go; K is then how many there are in the end.
        off: how many times as wide as told the biases are; 1 if they hold.
    """

    noise: Noise
    arms: int
    number: int
    sampling: str
    tolerance: float = 0.0
    plays: int = 500
    changing: bool = False
    off: float = 1.0

    @property
    def first(self) -> int:
        """How many arms there are at the beginning."""
        return 3 if self.changing else self.arms

    @property
    def name(self) -> str:
        """For the table."""
        ahead = f", tolerance {self.tolerance:g}" if self.tolerance else ""
        arms = f"3 arms, then up to {self.arms}" if self.changing else f"K = {self.arms}"
        off = f", told 1/{self.off:g} of the biases" if self.off != 1 else ""
        return f"{self.noise.name}, {arms}, M = {self.number}, {self.sampling}{ahead}{off}"

    @property
    def fidelities(self) -> mfb.Fidelities:
        """What the experiment is told."""
        biases = [self.noise.widest * part for part in SHRINK[self.number]]
        return mfb.Fidelities([4.0**m for m in range(self.number)], biases, self.noise.told)

    @property
    def means(self) -> FloatArray:
        """Of each arm at each fidelity, shape (M, K): as misleading as the biases allow."""
        top = np.full(self.arms, self.noise.mean)
        top[-1] += self.tolerance
        side = np.ones(self.arms)
        side[-1] = -1.0
        if self.changing:  # whichever two arms are compared, the better one looks worse
            side = np.linspace(1, -1, self.arms)
        means: FloatArray = top + side * self.off * self.fidelities.bias_column
        return means


class Looks:
    """Many runs at once, and what would be claimed in them: arm k of run r is column r·K + k of the statistics.

    Args:
        case: what is measured.
        runs: how many runs.
    """

    def __init__(self, case: Case, runs: int) -> None:
        self.case, self.runs, self.fidelities = case, runs, case.fidelities
        self.stats = Stats.empty(case.number, runs * case.arms)
        self.counted: BoolArray = np.ones(case.number, dtype=np.bool_)
        self.pairs, self.claims = np.zeros((runs, len(DELTAS))), np.zeros((runs, len(DELTAS)))
        self.active: BoolArray = np.zeros((runs, case.arms), dtype=np.bool_)
        self.active[:, : case.first] = True
        self.existing, self.changed = case.first, False
        self.watch()

    def watch(self) -> None:
        """Find the pairs (wrong arm, better arm) that are watched now, and what a claim about each has to cost."""
        roster = self.roster = Roster(self.case.first, self.changed)
        better = range(1, self.existing) if self.changed else [self.existing - 1]
        pairs = [(i, a) for a in better for i in range(a)]
        self.wrong, self.better = (np.array(side) for side in zip(*pairs, strict=True))  # (P,)
        self.prices = np.array([roster.log_prices(i, np.array([a]))[0] for i, a in pairs])
        first = self.case.arms * np.arange(self.runs)[:, None]
        self.leaders, self.rivals = (first + self.wrong).ravel(), (first + self.better).ravel()  # columns
        self.live = self.active[:, self.wrong] & self.active[:, self.better]  # (runs, P)
        self.near = np.full(self.live.size, self.case.noise.mean)  # μ of each pair's last explanation

    def pool(self, columns: IntArray) -> Pool:
        """The evidence of some arms."""
        return Pool.of(self.stats, self.fidelities, columns, self.counted)

    def add(self, arms: IntArray, fidelities: IntArray, rewards: FloatArray) -> None:
        """Take in one reward of each run."""
        columns = np.arange(self.runs) * self.case.arms + arms
        self.stats.counts[fidelities, columns] += 1
        self.stats.sums[fidelities, columns] += rewards

    def look(self) -> tuple[FloatArray, FloatArray]:
        """Note what would be claimed now.

        Any μ bounds the cost of an explanation from above. Only where the last one no longer bounds it below the
        smallest threshold is it computed anew, which is rare.

        Returns:
            What the wrong arm and what the better arm contribute to each pair claim; shape (runs, P).
        """
        leaders, rivals, ahead = self.pool(self.leaders), self.pool(self.rivals), self.case.tolerance
        shape = self.live.shape
        first = leaders.at(self.near, below=False)[0].reshape(shape)
        second = rivals.at(self.near + ahead, below=True)[0].reshape(shape)
        doubtful = np.flatnonzero(self.live & (first + second >= self.prices - math.log(max(DELTAS))))
        if len(doubtful):
            found = explanation(leaders.among(doubtful), rivals.among(doubtful), np.full(len(doubtful), ahead))
            self.near[doubtful] = found.mean
            self._note(doubtful, found.cost)
        return first, second

    def _note(self, doubtful: IntArray, costs: FloatArray) -> None:
        for place, cost in zip(doubtful.tolist(), costs.tolist(), strict=True):
            run, pair = divmod(place, len(self.wrong))
            for d, delta in enumerate(DELTAS):
                if cost >= self.prices[pair] - math.log(delta):
                    self.pairs[run, d] = 1
                    self.claims[run, d] = self.claims[run, d] or self._claimed(run, int(self.wrong[pair]), delta)

    def _claimed(self, run: int, arm: int, delta: float) -> bool:
        """Whether the whole claim is made, against all other arms."""
        mine = slice(run * self.case.arms, run * self.case.arms + self.existing)
        stats = Stats.empty(self.case.number, self.existing)
        stats.counts[:], stats.sums[:] = self.stats.counts[:, mine], self.stats.sums[:, mine]
        stats.active[:] = self.active[run, : self.existing]
        said = confidence(stats, self.fidelities, arm, self.roster, self.counted, 1 - delta)
        return said.could_lose <= self.case.tolerance

    def change(self, t: int) -> None:
        """Let arms come and go: now and then a new one, and in between the one with the best mean is retired."""
        if t % CHANGE_EVERY or not t or self.existing == self.case.arms:
            return
        self.changed = True
        if t // CHANGE_EVERY % 2:
            self.active[:, self.existing] = True
            self.existing += 1
        else:
            with np.errstate(invalid="ignore"):
                means = (self.stats.sums[-1] / self.stats.counts[-1]).reshape(self.active.shape)
            means = np.where(self.active & ~np.isnan(means), means, -np.inf)
            several = np.flatnonzero(self.active.sum(axis=1) > 2)
            self.active[several, means.argmax(axis=1)[several]] = False
        self.watch()


Plays = Iterator[tuple[IntArray, IntArray]]


def uniform(looks: Looks, rng: np.random.Generator) -> Plays:
    """Any arm at any fidelity."""
    while True:
        chance = np.where(looks.active, rng.random(looks.active.shape), -1.0)
        looks.look()
        yield chance.argmax(axis=1), rng.integers(0, looks.case.number, looks.runs)


def adversary(looks: Looks, rng: np.random.Generator) -> Plays:
    """Keep the wrong claim alive that is nearest to being made: leave alone what supports it, and try the rest again.

    Of the pair with the strongest claim, play the arm whose results do not support it: the wrong one if they are not
    above its means, the better one if they are not below. If both are like that, or neither is, play the one with fewer
    results. It knows the true means.
    """
    row, truth = np.arange(looks.runs), np.tile(looks.case.means, looks.runs)
    while True:
        first, second = looks.look()
        chosen = np.where(looks.live, first + second - looks.prices, -np.inf).argmax(axis=1)
        one, other = looks.wrong[chosen], looks.better[chosen]
        counts = looks.stats.counts.sum(axis=0).reshape(looks.active.shape)
        above = (looks.stats.sums - looks.stats.counts * truth).sum(axis=0).reshape(looks.active.shape)
        wrong_fails, better_fails = above[row, one] <= 0, above[row, other] >= 0
        fewer = counts[row, one] < counts[row, other]
        is_wrong = np.where(wrong_fails == better_fails, fewer, wrong_fails)
        yield np.where(is_wrong, one, other), rng.integers(0, looks.case.number, looks.runs)


def problem_of(case: Case) -> mfb.Problem:
    """The same as a problem to simulate on."""
    rewards = mfb.Gaussian(1.0) if isinstance(case.noise.told, mfb.SubGaussian) else mfb.Bernoulli()
    return mfb.Problem(case.means, case.fidelities, rewards, misspecified=case.off > 1)


def our_own(case: Case, runs: int, seed: int) -> tuple[IntArray, FloatArray]:
    """The plays of MFSure, shape (runs, plays, 2), and the numbers that its rewards were made from.

    Its engine draws one number a play, as ``Noise.unit`` does; both streams are the same.
    """
    problem = problem_of(case)
    capital = np.array([case.plays * case.fidelities.costs[-1] * 2])
    rule = mfb.MFSure(delta=1e-300, tolerance=case.tolerance)  # it goes on
    plays, units = [], []
    for child in np.random.SeedSequence(seed).spawn(runs):
        started = begin_run(mfsure, problem, rule, capital, traced=case.plays)
        started.advance(np.random.default_rng(child), case.plays)
        plays.append(started.plays())
        units.append(case.noise.unit(np.random.default_rng(child), case.plays))
    return np.array(plays), np.array(units)


def measured(case: Case, runs: int, seed: int = 0) -> dict[str, Any]:
    """The share of runs with a wrong claim, at each δ."""
    rng, looks, means = np.random.default_rng(seed), Looks(case, runs), case.means
    if case.sampling == "MFSure":
        made, units = our_own(case, runs, seed)
        for t in range(case.plays):
            arms, fidelities = made[:, t, 0], made[:, t, 1]
            looks.add(arms, fidelities, case.noise.reward(units[:, t], means[fidelities, arms]))
            looks.look()
    else:
        choices = {"uniform": uniform, "adversary": adversary}[case.sampling](looks, rng)
        for t in range(case.plays):
            if case.changing:
                looks.change(t)
            arms, fidelities = next(choices)
            looks.add(arms, fidelities, case.noise.reward(case.noise.unit(rng, runs), means[fidelities, arms]))
        looks.look()
    return {
        "runs": runs,
        "plays": case.plays,
        "pairs": looks.pairs.mean(axis=0).tolist(),
        "claims": looks.claims.mean(axis=0).tolist(),
    }


def cases(noises: tuple[Noise, ...] = (GAUSSIAN, RARE, EVEN)) -> list[Case]:
    """All that must hold."""
    grid = product((2, 10), (1, 2, 5), ("uniform", "adversary", "MFSure"), noises)
    found = [Case(noise, arms, number, sampling) for arms, number, sampling, noise in grid]
    found += [Case(RANGE, 2, number, sampling) for number in (1, 2) for sampling in ("uniform", "adversary")]
    found += [Case(GAUSSIAN, 2, 2, sampling, 0.2) for sampling in ("uniform", "adversary", "MFSure")]
    found += [Case(EVEN, 2, 1, sampling, 0.2) for sampling in ("uniform", "adversary")]
    coming = product((GAUSSIAN, RARE, EVEN), (1, 2), ("uniform", "adversary"))
    return found + [Case(noise, 8, number, sampling, plays=900, changing=True) for noise, number, sampling in coming]


# What is told does not hold, and the measurement has to see it.
CONTROLS = [Case(TOO_SMALL, 2, 1, "uniform"), Case(GAUSSIAN, 2, 2, "MFSure", off=3.0)]


def limit(delta: float, runs: int) -> float:
    """The largest share of wrong runs that chance explains if δ holds: two standard deviations above it."""
    return delta + 2 * math.sqrt(delta * (1 - delta) / runs)


def verdicts(results: dict[str, dict[str, Any]]) -> list[str]:
    """What does not hold."""
    wrong, controls = [], {case.name for case in CONTROLS}
    for name, result in results.items():
        for delta, share in zip(DELTAS, result["pairs"], strict=True):
            too_many = share > limit(delta, result["runs"])
            if too_many and name not in controls:
                wrong.append(f"{name}: {share:.3f} of runs with a wrong claim at {delta:g}")
            if not too_many and name in controls:
                wrong.append(f"{name}: wrong claims at {delta:g} were not seen, in {share:.3f} of runs")
    return wrong


def markdown(results: dict[str, dict[str, Any]]) -> str:
    """The table of the docs."""
    heads = ["case", *(f"claims at {delta:g}" for delta in DELTAS), *(f"pairs at {delta:g}" for delta in DELTAS)]
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    for name, result in results.items():
        shares = [f"{share:.3f}" for share in (*result["claims"], *result["pairs"])]
        lines.append("| " + " | ".join([name, *shares]) + " |")
    return "\n".join(lines)


def main() -> int:
    """Measure, write, and say what does not hold."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--plays", type=int, help="of a run, with a look after each")
    parser.add_argument("--only", default="", help="the cases whose name has this in it")
    parser.add_argument("--out", type=Path, default=Path("results/validity.json"))
    options = parser.parse_args()
    results: dict[str, dict[str, Any]] = {}
    for case in [*cases(), *CONTROLS]:
        if options.only in case.name:
            start = time.perf_counter()
            results[case.name] = measured(replace(case, plays=options.plays or case.plays), options.runs)
            print_line(f"{case.name}: {time.perf_counter() - start:.0f} s", on_terminal=False)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(results, indent=1))
    print(f"Share of {options.runs} runs with a wrong claim at any of the looks, one after each play.\n")
    print(markdown(results))
    wrong = verdicts(results)
    for line in wrong:
        print_line(line)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
