"""LUCB over fidelities, with Explore-A or Explore-B: a baseline from the literature."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mfbandit._internal.typing import FloatArray
from mfbandit._internal.validation import number
from mfbandit.core import Fidelities, Stats, safest
from mfbandit.errors import InvalidArgument
from mfbandit.policies.identification import checked_delta, known_scales

NOT_YET = -1


@dataclass(frozen=True, eq=False)
class LUCBMemory:
    """What LUCB remembers.

    Args:
        round: the plays of this round, as (arm, fidelity).
        begun: how many plays there were before it, pending ones included.
        told: how many results there were before it.
        answer: the arm that was surely the best then, or −1.
        fixed: the fidelity that Explore-B has fixed for each arm, or −1; K of them.
    """

    round: tuple[tuple[int, int], ...]
    begun: int
    told: int
    answer: int
    fixed: tuple[int, ...]


@dataclass(frozen=True)
class LUCB:
    r"""Leader against runner-up: a policy that answers when their bounds are apart.

    With the radius r_mk = sqrt(2σ_m² log(4KM t⁴/δ)/n_mk), t one more than the number of plays so far, the bounds of an
    arm are U_k = min over m of X̄_mk + ζ_m + r_mk and L_k = max over m of X̄_mk − ζ_m − r_mk. In each round

    1. the leader l has the largest U and the runner-up u the second largest; answer l if L_l > U_u,
    2. play l and then u, where Explore says.

    How much an arm k may tell at m is by its gap: X̄_mk − ζ_m − μ̃₂ for the leader, μ̃₁ − X̄_mk − ζ_m for others.

    - Explore-A plays every fidelity once, and then the one with the largest gap/√λ_m + sqrt(2 log(n_k)/(λ_m n_mk)),
      where n_k = Σ_m n_mk.
    - Explore-B plays all M fidelities, until the largest gap/√λ_m is at least 3 sqrt(σ_m² log(4KM/δ)/(λ_1 n_mk)). Then
      it fixes this fidelity for the arm, for good.

    Reference: Wang, Wu, Chen and Lui, *Multi-Fidelity Multi-Armed Bandits Revisited*, NeurIPS 2023. Constants are those
    of the code of riccardopoiani/adv-mf-bai; no code of the authors was found. On the same rewards, that code and this
    rule without guard end with the same cost; the order of the very first plays differs.

    Known faults:

    - As published it may never end: each arm may settle at a fidelity where the two cannot be told apart. So a share of
      what is spent on an arm goes to the highest fidelity here. ``guard=0`` leaves the rule as published.
    - It must be told the means of the two best arms, which nobody knows. With the true ones its costs are flattered.
    - Explore-B fixes an arm's fidelity by its role at that moment, and keeps it if the role changes.
    - The bounds are valid but wide.

    The error δ is for a fixed set of arms. While plays are pending, those of the round are made again in turn.

    Args:
        best_mean: μ̃₁, an upper bound on the best arm's mean at the highest fidelity, in units of reward.
        second_mean: μ̃₂, a lower bound on the mean of the second best.
        delta: δ, how often the answer may be wrong, in (0, 1).
        explore: "A" or "B".
        guard: the least share of what is spent on an arm that goes to the highest fidelity, in [0, 1); in Explore-A
            once it was played at every fidelity, in Explore-B once its fidelity is fixed.

    >>> from mfbandit.core import SubGaussian
    >>> fid = Fidelities([1, 10], [0.1, 0], SubGaussian(0.1))
    >>> LUCB(best_mean=0.6, second_mean=0.5).choose(Stats.empty(fidelities=2, arms=3), fid)
    (0, 0)
    """

    best_mean: float
    second_mean: float
    delta: float = 0.05
    explore: str = "A"
    guard: float = 0.1

    def __post_init__(self) -> None:
        for name in ("best_mean", "second_mean", "guard"):
            object.__setattr__(self, name, float(number(name, getattr(self, name))))
        object.__setattr__(self, "delta", checked_delta(self.delta))
        if self.second_mean > self.best_mean:
            rule = f"at most best_mean, {self.best_mean:g}"
            raise InvalidArgument(f"second_mean must be {rule}, got {self.second_mean:g}")
        if self.explore not in ("A", "B"):
            raise InvalidArgument(f"explore must be 'A' or 'B', got {self.explore!r}")
        if not 0 <= self.guard < 1:
            raise InvalidArgument(f"guard must be at least 0 and below 1, got {self.guard:g}")

    def remember(self, stats: Stats, fidelities: Fidelities) -> LUCBMemory:
        """Begin the next round if all results of this one are in."""
        known, results = stats.memory, int(stats.results.sum())
        if not isinstance(known, LUCBMemory):
            if results > 1:
                return self._begin(stats, fidelities, ())
            known = self._begin(Stats.empty(*stats.counts.shape), fidelities, ())
        if results - known.told < len(known.round) and _all_active(known, stats):
            return known
        return self._begin(stats, fidelities, known.fixed)

    def choose(self, stats: Stats, fidelities: Fidelities) -> tuple[int, int]:
        """Choose the next play of the round."""
        now = self._now(stats, fidelities)
        return now.round[max(stats.time - 1 - now.begun, 0) % len(now.round)]

    def decision(self, stats: Stats, fidelities: Fidelities) -> int | None:
        """Return the leader if its lower bound was above all other upper bounds when the round began, or None."""
        answer = self._now(stats, fidelities).answer
        return None if answer == NOT_YET else answer

    def index(self, stats: Stats, fidelities: Fidelities) -> FloatArray:
        """Compute the upper bounds U_k, in units of reward; infinite for arms without a result; shape (K,)."""
        return self._bounds(stats, fidelities)[1]

    def recommend(self, stats: Stats, fidelities: Fidelities) -> int:
        """Return the active arm with the largest lower bound L_k."""
        return safest(self._bounds(stats, fidelities)[0], stats)

    def _now(self, stats: Stats, fidelities: Fidelities) -> LUCBMemory:
        if isinstance(stats.memory, LUCBMemory) and _all_active(stats.memory, stats):
            return stats.memory
        return self._begin(stats.told, fidelities, ())

    def _begin(self, stats: Stats, fidelities: Fidelities, fixed: tuple[int, ...]) -> LUCBMemory:
        """Begin a round: find leader and runner-up, and their fidelities."""
        lower, upper = self._bounds(stats, fidelities)
        ranked = np.where(stats.active, upper, -np.inf)
        leader = int(ranked.argmax())
        pair = [leader]
        if stats.active.sum() > 1:
            ranked[leader] = -np.inf
            pair.append(int(ranked.argmax()))
            apart = bool(lower[leader] > upper[pair[1]])
        else:
            apart = bool(stats.counts[:, leader].any())
        fixed = fixed + (NOT_YET,) * (len(ranked) - len(fixed))
        if self.explore == "B":
            fixed = self._fix(stats, fidelities, leader, fixed)
        plays = tuple((arm, m) for arm in pair for m in self._where(stats, fidelities, arm, leader, fixed[arm]))
        return LUCBMemory(plays, stats.time - 1, int(stats.results.sum()), leader if apart else NOT_YET, fixed)

    def _where(self, stats: Stats, fidelities: Fidelities, arm: int, leader: int, fixed: int) -> list[int]:
        """The fidelities at which to play an arm in this round."""
        counts, sums = stats.counts[:, arm].tolist(), stats.sums[:, arm].tolist()
        biases, costs = fidelities.known_biases, fidelities.costs
        if self.explore == "B":
            if fixed == NOT_YET:
                return list(range(len(costs)))
            chosen = fixed
        else:
            known, side = (self.second_mean, 1.0) if arm == leader else (self.best_mean, -1.0)
            chosen = explore_a(counts, sums, biases, costs, known, side)
            if counts[chosen] == 0:
                return [chosen]
        return [guarded(stats.results[:, arm].tolist(), costs, chosen, self.guard)]

    def _fix(self, stats: Stats, fidelities: Fidelities, leader: int, fixed: tuple[int, ...]) -> tuple[int, ...]:
        """Fix the fidelities of the arms that have shown a large enough gap."""
        scales, biases, costs = known_scales(fidelities, "LUCB"), fidelities.known_biases, fidelities.costs
        level = math.log(4.0 * stats.counts.size / self.delta)
        found = list(fixed)
        for arm in np.flatnonzero((np.array(fixed) == NOT_YET) & (stats.counts > 0).all(axis=0)).tolist():
            counts, sums = stats.counts[:, arm].tolist(), stats.sums[:, arm].tolist()
            known, side = (self.second_mean, 1.0) if arm == leader else (self.best_mean, -1.0)
            found[arm] = explore_b(counts, sums, scales, biases, costs, known, side, level)
        return tuple(found)

    def _bounds(self, stats: Stats, fidelities: Fidelities) -> tuple[FloatArray, FloatArray]:
        """L and U of each arm, by results alone; infinite without any."""
        scales = np.array(known_scales(fidelities, "LUCB"))[:, None]
        biases, counts = np.array(fidelities.known_biases)[:, None], stats.counts
        # 2 log(4KM t⁴/δ)
        level = 2.0 * (math.log(4.0 * counts.size / self.delta) + 4.0 * math.log(1.0 + int(stats.results.sum())))
        with np.errstate(divide="ignore", invalid="ignore"):
            means, radii = stats.sums / counts, scales * np.sqrt(level / counts)
        seen = counts > 0
        lower: FloatArray = np.where(seen, (means - biases) - radii, -np.inf).max(axis=0)
        upper: FloatArray = np.where(seen, (means + biases) + radii, np.inf).min(axis=0)
        return lower, upper


def _all_active(known: LUCBMemory, stats: Stats) -> bool:
    return all(stats.active[arm] for arm, _ in known.round)


# The functions of single numbers are compiled by the engine as they stand.


def explore_a(
    counts: Sequence[float],
    sums: Sequence[float],
    biases: Sequence[float],
    costs: Sequence[float],
    known: float,
    side: float,
) -> int:
    r"""Find the first fidelity without a result, else the one with the largest gap/√λ_m + sqrt(2 log(n_k)/(λ_m n_mk)).

    Args:
        counts: results of the arm at each fidelity.
        sums: the sums of their rewards.
        biases: ζ_m.
        costs: λ_m.
        known: μ̃₂ for the leader, μ̃₁ for others.
        side: +1 for the leader, −1 for others.

    >>> explore_a([5, 5], [2.0, 3.0], [0.1, 0.0], [0.5, 5.0], 0.6, -1.0)
    0
    """
    total = 0.0
    for m in range(len(counts)):
        if counts[m] == 0:
            return m
        total += counts[m]
    best, chosen = -math.inf, 0
    for m in range(len(counts)):
        gap = side * (sums[m] / counts[m] - known) - biases[m]
        value = gap / math.sqrt(costs[m]) + math.sqrt(2.0 * math.log(total) / (costs[m] * counts[m]))
        if value > best:
            best, chosen = value, m
    return chosen


def explore_b(
    counts: Sequence[float],
    sums: Sequence[float],
    scales: Sequence[float],
    biases: Sequence[float],
    costs: Sequence[float],
    known: float,
    side: float,
    level: float,
) -> int:
    r"""Find the fidelity with the largest gap/√λ_m, or −1 if this is below 3 sqrt(σ_m² log(4KM/δ)/(λ_1 n_mk)).

    Args:
        counts: results of the arm at each fidelity, at least one each.
        sums: the sums of their rewards.
        scales: σ_m.
        biases: ζ_m.
        costs: λ_m.
        known: μ̃₂ for the leader, μ̃₁ for others.
        side: +1 for the leader, −1 for others.
        level: log(4KM/δ).

    >>> explore_b([500, 500], [200.0, 250.0], [0.1, 0.1], [0.1, 0.0], [0.5, 5.0], 0.6, -1.0, 6.0)
    0
    """
    best, chosen = -math.inf, 0
    for m in range(len(counts)):
        value = (side * (sums[m] / counts[m] - known) - biases[m]) / math.sqrt(costs[m])
        if value > best:
            best, chosen = value, m
    needed = 3.0 * scales[chosen] * math.sqrt(level / (costs[0] * counts[chosen]))
    return chosen if best >= needed else -1


def guarded(counts: Sequence[float], costs: Sequence[float], chosen: int, share: float) -> int:
    """Return the chosen fidelity, or the highest if less than a share of the arm's cost went there.

    Args:
        counts: results of the arm at each fidelity.
        costs: λ_m.
        chosen: the fidelity that the rule as published would play.
        share: of what is spent on the arm.

    >>> guarded([100, 1], [1.0, 10.0], 0, 0.05), guarded([100, 1], [1.0, 10.0], 0, 0.1)
    (0, 1)
    """
    total = 0.0
    for m in range(len(counts)):
        total += costs[m] * counts[m]
    top = len(counts) - 1
    return top if costs[top] * counts[top] < share * total else chosen
