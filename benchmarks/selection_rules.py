"""Rules that recommend an arm within a budget, all of them at the same desk: it pays for looks and remembers them."""

import math
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

import mfbandit as mfb
from mfbandit._internal.typing import FloatArray, IntArray
from mfbandit.core.budget import limit
from mfbandit.policies.policy import Remembers

ETAS = (2, 3, 4, 6)  # what is tried
DRAWS = 10_000  # of the bootstrap over data sets

Rule = Callable[["Desk", float], int]


class Desk:
    """One problem as a rule meets it: it pays for looks, and never more than the budget.

    Args:
        fidelities: their costs.
        means: what looks at each arm show on average; shape (M, K).
        budget: what all looks together may cost.
    """

    def __init__(self, fidelities: mfb.Fidelities, means: FloatArray, budget: float) -> None:
        self.fidelities, self.means, self._budget = fidelities, means[-1], budget
        empty = mfb.Stats.empty(*means.shape)
        self.stats = empty.with_states() if fidelities.resume else empty
        self._tally = [0] * len(fidelities)  # looks, less those that others went on from

    def reward(self, arm: int, fidelity: int, earlier: int) -> float:
        """What a look shows after so many earlier ones."""
        raise NotImplementedError

    @property
    def spent(self) -> float:
        """The cost of all looks so far."""
        return sum(map(math.prod, zip(self.fidelities.costs, self._tally, strict=True)))

    def price(self, arm: int, fidelity: int) -> float:
        """What the next look costs: where looks resume, what it takes beyond an earlier one."""
        start = self.stats.start(arm, fidelity)
        return self.fidelities.costs[fidelity] - (0.0 if start is None else self.fidelities.costs[start])

    def affords(self, arm: int, fidelity: int) -> bool:
        """Whether another look fits into the budget."""
        return self.spent + self.price(arm, fidelity) <= limit(self._budget)

    def look(self, arm: int, fidelity: int) -> float:
        """Take one look and pay for it."""
        if not self.affords(arm, fidelity):
            raise RuntimeError(f"no rule may spend more than its budget {self._budget:g}, and one did")
        self._tally[fidelity] += 1
        reward = self.reward(arm, fidelity, int(self.stats.counts[fidelity, arm]))
        start = self.stats.start(arm, fidelity)
        self.stats = replace(self.stats)  # what was added up of the old numbers is no longer true
        if self.stats.states is not None and self.stats.resumed is not None:
            self.stats.states[fidelity, arm] += 1
            if start is not None:
                self._tally[start] -= 1
                self.stats.states[start, arm] -= 1
                self.stats.resumed[start, arm] += 1
        self.stats.counts[fidelity, arm] += 1
        self.stats.sums[fidelity, arm] += reward
        self.stats.squares[fidelity, arm] += reward * reward
        return reward

    def loss(self, arm: int) -> float:
        """By how much an arm is worse than the best one."""
        return float(self.means.max() - self.means[arm])


def played(make: Callable[[float], mfb.Policy], desk: Desk, budget: float) -> int:
    """The arm that a policy recommends once its next play does not fit."""
    policy = make(budget)
    remember = policy.remember if isinstance(policy, Remembers) else None
    while True:
        arm, fidelity = policy.choose(desk.stats, desk.fidelities)
        if not desk.affords(arm, fidelity):
            return policy.recommend(desk.stats, desk.fidelities)
        desk.look(arm, fidelity)
        if remember is not None:
            desk.stats = replace(desk.stats, memory=remember(desk.stats, desk.fidelities))


def halving(eta: float, desk: Desk, budget: float) -> int:
    """Successive halving: rounds of equal budgets, each keeping the best 1/eta of the arms.

    A round looks at all arms that are left, at the highest fidelity at which its budget pays for that, and as often as
    it pays for; what it leaves goes to later rounds. Where not even one look at each fits, only the first arms take
    part. Arms are ranked by their mean at the round's fidelity, earlier looks there included.
    """
    sizes = [len(desk.means)]
    while sizes[-1] > 1:
        sizes.append(math.ceil(sizes[-1] / eta))
    alive = np.arange(sizes[0])
    if desk.fidelities.resume:
        return _halving_further(desk, budget, alive, sizes[1:])
    for i, size in enumerate(sizes[1:]):
        share = (limit(budget) - desk.spent) / (len(sizes) - 1 - i)
        fitting = [m for m, cost in enumerate(desk.fidelities.costs) if len(alive) * cost <= share]
        fidelity = fitting[-1] if fitting else 0
        cost = desk.fidelities.costs[fidelity]
        alive = alive if fitting else alive[: max(1, int(share / cost))]
        for arm in np.tile(alive, max(1, int(share / (len(alive) * cost)))).tolist():
            if desk.affords(arm, fidelity):
                desk.look(arm, fidelity)
        alive = _best(desk, alive, fidelity)[:size]
    return int(alive[0])


def _halving_further(desk: Desk, budget: float, alive: IntArray, sizes: list[int]) -> int:
    """Halving where looks resume: a round trains all that are left as far as its budget pays for, and looks once."""
    costs, reached = [0.0, *desk.fidelities.costs], 0
    for i, size in enumerate(sizes):
        share = (limit(budget) - desk.spent) / (len(sizes) - i)
        price = [cost - costs[reached] for cost in costs]
        fitting = [m for m in range(reached + 1, len(costs)) if len(alive) * price[m] <= share]
        if reached == 0 and not fitting:
            alive, fitting = alive[: max(1, int(share / price[1]))], [1]
        reached = fitting[-1] if fitting else reached
        for arm in alive.tolist() if fitting else ():
            if desk.affords(arm, reached - 1):
                desk.look(arm, reached - 1)
        alive = _best(desk, alive, reached - 1)[:size]
    return int(alive[0])


def bracket(eta: float, desk: Desk, budget: float) -> int:
    """Successive halving as in grid searches: one look an arm at each rung, from the highest start that fits.

    Rungs are the fidelities from the start upwards, with K, K/eta, K/eta², ... arms; where no start fits all arms, as
    many as the lowest one does.
    """
    costs, arms = desk.fidelities.costs, len(desk.means)
    plans = [(m, _rungs(arms, eta, len(costs) - m)) for m in range(len(costs) - 1, -1, -1)]
    plans += [(0, _rungs(n, eta, len(costs))) for n in range(arms - 1, 0, -1)]
    plans += [(0, [max(1, int(limit(budget) / costs[0]))])]
    start, sizes = next(plan for plan in plans if _price(desk.fidelities, *plan) <= limit(budget))
    return _climb(desk, np.arange(arms), start, sizes)


def hyperband(eta: float, desk: Desk, budget: float) -> int:
    """Hyperband: a bracket from each fidelity upwards, with equal shares of the budget and arms of its own.

    A bracket has as many arms as its share pays for. The arm is the best of those at the highest fidelity reached.
    Where no bracket fits into its share, the budget is one bracket's.
    """
    costs, arms = desk.fidelities.costs, len(desk.means)
    share, taken, best = limit(budget) / len(costs), 0, (-1, -math.inf, 0)
    for start in range(len(costs)):
        plans = [_rungs(n, eta, len(costs) - start) for n in range(arms, 0, -1)]
        sizes = next((sizes for sizes in plans if _price(desk.fidelities, start, sizes) <= share), None)
        if sizes is None:
            continue
        arm = _climb(desk, (taken + np.arange(sizes[0])) % arms, start, sizes)
        taken += sizes[0]
        best = max(best, (len(costs) - 1, float(desk.stats.means[-1, arm]), arm))
    return best[2] if best[0] >= 0 else bracket(eta, desk, budget)


def asha(eta: int, desk: Desk, _budget: float) -> int:
    """ASHA with one worker: promote the best of a rung's best 1/eta, from the highest rung down, else a new arm.

    It ends when the look it wants does not fit. The arm is the best at the highest fidelity reached.
    """
    rungs: list[dict[int, float]] = [{} for _ in desk.fidelities.costs]
    new = 0
    while True:
        m, arm = _promotion(rungs, eta)
        if m == 0:
            arm, new = new, new + 1
        if arm >= len(desk.means) or not desk.affords(arm, m):
            break
        rungs[m][arm] = desk.look(arm, m)
    top = max(m for m, rung in enumerate(rungs) if rung)
    return max(rungs[top], key=lambda arm: rungs[top][arm])


def _promotion(rungs: list[dict[int, float]], eta: int) -> tuple[int, int]:
    for m in range(len(rungs) - 2, -1, -1):
        ranked = sorted(rungs[m], key=lambda arm: -rungs[m][arm])[: len(rungs[m]) // eta]
        ready = [arm for arm in ranked if arm not in rungs[m + 1]]
        if ready:
            return m + 1, ready[0]
    return 0, 0


def random_search(desk: Desk, _budget: float) -> int:
    """One look at the highest fidelity at as many arms as the budget pays for."""
    top, arms = len(desk.fidelities) - 1, 0
    while arms < len(desk.means) and desk.affords(arms, top):
        desk.look(arms, top)
        arms += 1
    return int(_best(desk, np.arange(max(1, arms)), top)[0])


def _rungs(arms: int, eta: float, number: int) -> list[int]:
    return [math.ceil(arms / eta**i) for i in range(number)]


def _price(fidelities: mfb.Fidelities, start: int, sizes: list[int]) -> float:
    costs = fidelities.costs[start:]
    before = (0.0, *costs) if fidelities.resume else (0.0,) * len(costs)
    return sum(n * (costs[i] - before[i]) for i, n in enumerate(sizes))


def _climb(desk: Desk, alive: IntArray, start: int, sizes: list[int]) -> int:
    """The best arm after one look at each of so many arms at every fidelity from the start upwards."""
    for i, size in enumerate(sizes):
        alive = alive[:size]
        for arm in alive.tolist():
            desk.look(arm, start + i)
        alive = _best(desk, alive, start + i)
    return int(alive[0])


def _best(desk: Desk, arms: IntArray, fidelity: int) -> IntArray:
    """The arms, those with the highest means first."""
    return arms[np.argsort(-desk.stats.means[fidelity, arms], kind="stable")]


@dataclass(frozen=True)
class Progress:
    """Says on stderr what was measured, and how long it took."""

    began: float

    def __call__(self, what: str, mean: np.ndarray) -> None:
        """One line, with mean losses in units of 1e-4."""
        numbers = " ".join(f"{1e4 * value:6.1f}" for value in mean)
        print(f"{time.perf_counter() - self.began:6.0f} s  {what:45}{numbers}", file=sys.stderr, flush=True)


def interval(values: np.ndarray) -> list[float]:
    """The mean over data sets with a 95 % interval, by the bootstrap."""
    means = np.random.default_rng(0).choice(values, (DRAWS, len(values))).mean(axis=1)
    return [float(values.mean()), *np.quantile(means, [0.025, 0.975]).tolist()]


def compared(ours: dict[str, list[float]], base: dict[str, list[float]]) -> list[list[float]]:
    """For each budget our share of the mean loss, and the mean difference with its interval."""
    mine, theirs = np.array(list(ours.values())), np.array(list(base.values()))
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = mine.mean(axis=0) / theirs.mean(axis=0)
    return [[float(share), *interval(gap)] for share, gap in zip(shares, (mine - theirs).T, strict=True)]
