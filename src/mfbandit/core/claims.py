r"""Claims that one arm is the best, valid at any time: the evidence of all fidelities, pooled and compared.

The mean μ_k of an arm at the highest fidelity lies within ζ_m of its mean at fidelity m. Evidence of all fidelities is
pooled, each below the highest hedged, as it may carry nothing:

    G↑_k(μ) = Σ_m h_m(log E_mk(mean below μ − ζ_m)),   evidence that μ_k < μ,
    G↓_k(μ) = Σ_m h_m(log E_mk(mean above μ + ζ_m)),   evidence that μ_k > μ,

with h_M(x) = x and h_m(x) = log((1 + eˣ)/2) for m < M. Both are convex. The cheapest explanation of "arm a is better
than arm i by more than ε" costs

    Λ_ia(ε) = min_μ G↓_i(μ) + G↑_a(μ + ε).

"No arm is better than i by more than ε", said once min_a Λ_ia(ε) ≥ log(1/(δ·w_i)), is false at some time with a
probability of at most δ, if the weights w of all arms but the best sum to at most 1.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from mfbandit._internal.roots import increasing_root
from mfbandit._internal.typing import BoolArray, FloatArray, IntArray
from mfbandit.core.concentration import Bounded
from mfbandit.core.evidence import PRIOR, Cells, GaussianCells, cells, stacked
from mfbandit.core.fidelities import Fidelities
from mfbandit.core.pair_cost import PairCost
from mfbandit.core.stats import Stats
from mfbandit.core.tangents import ACCURACY

CENTRE_PRIOR = 1.0  # ρ of the estimates that pick the leader
LOG_2 = math.log(2)
SIDES = np.array([False, True])[:, None, None]  # evidence above a mean of the leader, and below one of a rival
MEETING_STEPS = 2


@dataclass(frozen=True, eq=False)
class Pool:
    """The results of some arms at all fidelities, pooled as evidence about their means at the highest.

    Args:
        cells: of each fidelity; None where it does not count.
        biases: ζ_m of each fidelity.
        counts: the number of results, shape (M, A).
        means: their means, shape (M, A); NaN without a result.
        span: the smallest and the largest mean that are possible at all, if rewards have a range.
    """

    cells: tuple[Cells | None, ...]
    biases: tuple[float, ...]
    counts: IntArray
    means: FloatArray
    span: tuple[float, float]

    @classmethod
    def of(cls, stats: Stats, fidelities: Fidelities, arms: IntArray, counted: BoolArray) -> "Pool":
        """Pool the results of these arms.

        Args:
            stats: counts and sums, shape (M, K).
            fidelities: the M fidelities.
            arms: which arms, in this order; the same one may be named often.
            counted: which fidelities count, shape (M,).
        """
        counts, sums = stats.counts[:, arms], stats.sums[:, arms]
        found = tuple(
            cells(tail, counts[m], sums[m]) if counted[m] else None for m, tail in enumerate(fidelities.tails)
        )
        return cls(found, _biases(fidelities), counts, _means(counts, sums), span(fidelities, counted))

    def among(self, chosen: IntArray) -> "Pool":
        """The pool of some of its arms, by their places."""
        kept = tuple(None if cell is None else cell.among(chosen) for cell in self.cells)
        return replace(self, cells=kept, counts=self.counts[:, chosen], means=self.means[:, chosen])

    def at(self, mu: FloatArray, *, below: bool) -> tuple[FloatArray, FloatArray]:
        """Return G↑(μ) (else: G↓(μ)) of each arm, and its slope in μ."""
        found = [
            (m, cell.at(mu - self.biases[m] if below else mu + self.biases[m], below=below))
            for m, cell in enumerate(self.cells)
            if cell is not None
        ]
        return self.pooled(dict(found), mu)

    def pooled(
        self, found: Mapping[int, tuple[FloatArray, FloatArray]], mu: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Add up the evidence of the fidelities that count, each below the highest hedged, and their slopes."""
        total, slope = np.zeros(mu.shape), np.zeros(mu.shape)
        top = len(self.cells) - 1
        for m in range(len(self.cells)):
            if m not in found:  # as with an infinite bias, where the hedge is all that is left
                total -= LOG_2 * (self.counts[m] > 0) * (m < top)
                continue
            value, rise = found[m]
            if m < top:
                rise = rise / (1 + np.exp(-value))
                value = np.logaddexp(0.0, value) - LOG_2
            total += value
            slope += rise
        return total, slope

    @property
    def known(self) -> BoolArray:
        """Whether each arm has a result that counts."""
        return np.asarray((self._usable & (self.counts > 0)).any(axis=0))

    @property
    def _usable(self) -> BoolArray:
        return np.array([cell is not None for cell in self.cells])[:, None]

    @property
    def weights(self) -> FloatArray:
        """How much is known of each arm by each fidelity, about: the results of it, in units of 1/σ²; shape (M, A)."""
        known = [0.0 if cell is None else float(getattr(cell, "weight", 1.0)) for cell in self.cells]
        counts = self.counts.astype(np.float64)
        weights: FloatArray = np.array(known)[:, None] * counts * (counts / (counts + PRIOR))
        return weights

    def reach(self) -> tuple[FloatArray, FloatArray]:
        """The smallest and largest value that any fidelity suggests for each arm's mean; 0 where none has a result."""
        usable = self._usable & (self.counts > 0)
        bias = np.array(self.biases)[:, None]
        low = np.where(usable, self.means - bias, np.inf).min(axis=0)
        high = np.where(usable, self.means + bias, -np.inf).max(axis=0)
        return np.where(np.isfinite(low), low, 0.0), np.where(np.isfinite(high), high, 0.0)


def meeting(leader: Pool, rivals: Pool) -> tuple[FloatArray, FloatArray]:
    r"""Guess the mean at which the results of an arm and of each rival meet, and how far off that may be.

    It is where Σ_m w_mi(X̄_mi − ζ_m − μ)₊² + Σ_m w_ma(μ − X̄_ma − ζ_m)₊² is smallest, nearly.

    Args:
        leader: arm i, once.
        rivals: the arms a.
    """
    bias, first, second = np.array(leader.biases)[:, None], leader.weights, rivals.weights
    low, high = np.where(first > 0, leader.means - bias, -np.inf), np.where(second > 0, rivals.means + bias, np.inf)
    most, least, sums = low.max(axis=0), high.min(axis=0), (first.sum(axis=0), second.sum(axis=0))
    mean = (sums[0] * most + sums[1] * least) / (sums[0] + sums[1])
    for _ in range(MEETING_STEPS):
        above, below = np.where(low > mean, first, 0.0), np.where(high < mean, second, 0.0)
        weight = above.sum(axis=0) + below.sum(axis=0)
        slope = (above * np.minimum(mean - low, 0.0) + below * np.maximum(mean - high, 0.0)).sum(axis=0)
        mean = mean - np.where(weight > 0, slope / np.where(weight > 0, weight, 1.0), 0.0)
    return mean, 1 / np.sqrt(np.minimum(*sums))


def pair_cost(leader: Pool, rivals: Pool) -> PairCost | None:
    """The cost of pairs of means, if all results that count are of one kind with known curvature; else None.

    Args:
        leader: arm i, once.
        rivals: the arms a.
    """
    counted = [m for m, cell in enumerate(leader.cells) if cell is not None]
    both = [stacked([[cell for cell in pool.cells if cell is not None]]) for pool in (leader, rivals)]
    if both[0] is None or both[1] is None:
        return None
    top = len(leader.cells) - 1
    dropped = [m for m in range(top) if m not in counted]
    fixed = np.zeros((2, rivals.counts.shape[1]))
    for m in dropped:
        fixed[0] -= LOG_2 * (leader.counts[m] > 0)
        fixed[1] -= LOG_2 * (rivals.counts[m] > 0)
    biases = np.array([leader.biases[m] for m in counted])[:, None]
    return PairCost.of(both[0], both[1], biases, sum(m < top for m in counted), fixed)


class Pair:
    """A leader and its rivals, looked at together: one call for all their results, where they are of one kind.

    Args:
        leader: arm i, once for each rival.
        rivals: the arms a.
    """

    def __init__(self, leader: Pool, rivals: Pool) -> None:
        self._leader, self._rivals = leader, rivals
        self._counted = [m for m, cell in enumerate(leader.cells) if cell is not None]
        rows = [[cell for cell in pool.cells if cell is not None] for pool in (leader, rivals)]
        self._cells = stacked(rows)
        self._biases = np.array([leader.biases[m] for m in self._counted])[:, None]

    def at(self, mu: FloatArray, above: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return G↓_i(μ) and its slope, and G↑_a of means ``above`` and its slope."""
        if self._cells is None:
            return *self._leader.at(mu, below=False), *self._rivals.at(above, below=True)
        theta = np.array([mu + self._biases, above - self._biases])
        values, slopes = self._cells.at(theta, below=SIDES)
        sides = [{m: (values[side, r], slopes[side, r]) for r, m in enumerate(self._counted)} for side in (0, 1)]
        return *self._leader.pooled(sides[0], mu), *self._rivals.pooled(sides[1], above)


def span(fidelities: Fidelities, counted: BoolArray) -> tuple[float, float]:
    """Find the smallest and the largest mean at the highest fidelity that ranges and biases leave possible.

    >>> span(Fidelities([1, 10], [0.1, 0], [Bounded(0, 0.5), Bounded(0, 1)]), np.array([True, True]))
    (0.0, 0.6)
    """
    low, high = -math.inf, math.inf
    for tail, bias, counts in zip(fidelities.tails, _biases(fidelities), counted.tolist(), strict=True):
        if counts and isinstance(tail, Bounded):
            low, high = max(low, tail.low - bias), min(high, tail.high + bias)
    return low, high


def _biases(fidelities: Fidelities) -> tuple[float, ...]:
    if fidelities.biases is None:
        return (0.0,) * len(fidelities)
    return tuple(float(bias) for bias in fidelities.biases)


def _means(counts: IntArray, sums: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore", invalid="ignore"):
        means: FloatArray = sums / counts
    return means


@dataclass(frozen=True, eq=False)
class Explanation:
    """The cheapest explanation of "rival a is better than the leader by more than ε", for each rival.

    Args:
        ahead: ε.
        cost: Λ_ia(ε); −∞ where one of the two arms has no result that counts, ∞ where ε is impossible.
        slope: of Λ in ε.
        mean: μ, the mean of the leader in that explanation.
    """

    ahead: FloatArray
    cost: FloatArray
    slope: FloatArray
    mean: FloatArray

    def among(self, chosen: IntArray) -> "Explanation":
        """The explanations for some of the rivals, by their places."""
        return Explanation(self.ahead[chosen], self.cost[chosen], self.slope[chosen], self.mean[chosen])


def explanation(leader: Pool, rivals: Pool, ahead: FloatArray, near: Explanation | None = None) -> Explanation:
    """Compute Λ_ia(ε) for each rival a.

    Args:
        leader: arm i, once for each rival.
        rivals: the arms a.
        ahead: ε for each rival.
        near: the same for other ε, which saves time: where ε grows by d, the leader's mean falls by 0 to d.
    """
    known, pair = leader.known & rivals.known, Pair(leader, rivals)

    def slope_at(mu: FloatArray) -> FloatArray:
        _, fall, _, rise = pair.at(mu, mu + ahead)
        return np.where(known, fall + rise, 0.0)

    if near is None:
        low_leader, high_leader = leader.reach()
        low_rival, high_rival = rivals.reach()
        low, high = np.minimum(low_leader, low_rival - ahead), np.maximum(high_leader, high_rival - ahead)
    else:
        moved = near.mean - (ahead - near.ahead)
        low, high = np.minimum(near.mean, moved), np.maximum(near.mean, moved)
    least, most = leader.span[0], np.maximum(leader.span[0], leader.span[1] - ahead)
    low, high = np.clip(low, least, most), np.clip(high, least, most)
    mean = increasing_root(slope_at, low, high, tolerance=0.0, area=ACCURACY, least=least, most=most)
    down, _, up, rise = pair.at(mean, mean + ahead)
    cost = np.where(known & ~np.isnan(down + up), down + up, -np.inf)
    cost = np.where(ahead > leader.span[1] - leader.span[0], np.inf, cost)  # which no two means are apart
    return Explanation(ahead, cost, np.where(known, rise, 0.0), mean)


def centres(stats: Stats, fidelities: Fidelities, counted: BoolArray) -> FloatArray:
    r"""Estimate the mean of each arm at the highest fidelity: the μ for which as much speaks above as below it.

    That is Σ_m log E_mk(mean below μ − ζ_m) = Σ_m log E_mk(mean above μ + ζ_m), with mixtures of prior ρ = 1.

    Returns:
        Shape (K,), in units of reward; −∞ for arms without a result that counts.
    """
    arms = np.arange(stats.counts.shape[1])
    pool = Pool.of(stats, fidelities, arms, counted)
    found = [_sharp(cell, m, stats, fidelities) for m, cell in enumerate(pool.cells)]

    def balance(mu: FloatArray) -> FloatArray:
        total = np.zeros(mu.shape)
        for cell, bias in zip(found, pool.biases, strict=True):
            if cell is not None:
                total += cell.at(mu - bias, below=True)[0] - cell.at(mu + bias, below=False)[0]
        return total

    known = (stats.counts[counted] > 0).any(axis=0)
    return np.where(known, increasing_root(balance, *pool.reach()), -np.inf)


def _sharp(cell: Cells | None, m: int, stats: Stats, fidelities: Fidelities) -> Cells | None:
    scale = getattr(fidelities.tails[m], "scale", None)
    if cell is None or not isinstance(scale, float):
        return cell
    return GaussianCells(stats.counts[m], stats.sums[m], scale, CENTRE_PRIOR)
