"""MFTopTwo: best-arm identification with a known capital; needs neither biases nor a noise scale."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from mfbandit._internal.typing import BoolArray, FloatArray
from mfbandit._internal.validation import number, positive
from mfbandit.core import Fidelities, Stats, limit, safest
from mfbandit.errors import InvalidArgument
from mfbandit.policies.exploration import total_spent
from mfbandit.policies.gaussian_chain import (
    SPREAD_FLOOR,
    GaussianChain,
    Posterior,
    em_step,
    least_variance,
    pooled_noise,
    total,
)

FIRST_EM_STEPS = 5  # for a first fit; a later fit makes one
NOISE_GUESS_RESULTS = 1.0  # the weight of the prior guess of the noise, in results
SMALLEST_VARIANCE = 1e-200  # the product of two does not underflow


@dataclass(frozen=True, eq=False)
class MFTopTwoMemory(GaussianChain):
    """What MFTopTwo remembers: the fitted chain and its R fidelities."""

    rows: tuple[int, ...]


@dataclass(frozen=True)
class MFTopTwo:
    r"""A policy for recommending one arm after spending a known capital; it has no proof.

    Only the recommended arm counts, not the rewards of the plays. As in :class:`~mfbandit.MFBayes`, all arms share a
    Gaussian chain (:mod:`~mfbandit.policies.gaussian_chain`), here refitted after each result.

    1. From the highest fidelity down, keep each one that is at least κ times cheaper than the one kept before it.
    2. Sweep: play n arms once at one kept fidelity m below the highest. With n = min(K, ⌊¾C/λ_m⌋) and j kept
       fidelities between m and the highest, m is the one with the largest n/(1 + j). So all arms are played if that is
       cheap, and fewer if only expensive plays are informative.
    3. Among arms with a result, the leader is ℓ = argmax E μ^(M)_k. The challenger is
       c = argmin_k (E_ℓ − E_k)/sqrt(V_ℓ + V_k).
    4. Of these two arms and the kept fidelities from the sweep's upwards, play the pair with the largest
       Cov(μ^(M), μ^(m))²/((Var μ^(m) + s_m²)·λ_m). Only fidelities at which the remaining capital pays for both arms
       are considered.

    When no play fits into C any more, ``choose`` goes on as if all did. An :class:`~mfbandit.Experiment` with the
    capital C ends there; one with more capital goes on. Costs are those of the fidelities, as a policy does not see the
    costs that were told.

    Args:
        capital: C, the capital that plays may cost, in the units of the fidelities' costs.
        share: the share of C that the sweep may cost, in (0, 1].
        kappa: κ ≥ 1; how much cheaper a fidelity must be than the next one kept.
        r0: prior guess of a step's standard deviation, as a share of the arms' spread.
        nu0: the weight of that guess, in arms.
        fade: prior guess of the ratio of the noise variance to that of the fidelity below.
        noise: prior guess of the noise variance at the lowest fidelity, as a share of the variance between arms.

    >>> policy = MFTopTwo(capital=100)
    >>> policy.sweep(Fidelities(costs=[1, 4, 16]), arms=10)  # all ten at a cost of 4
    (1, 10)
    >>> policy.choose(Stats.empty(fidelities=3, arms=10), Fidelities(costs=[1, 4, 16]))
    (0, 1)
    """

    uses_biases: ClassVar[bool] = False

    capital: float
    share: float = 0.75
    kappa: float = 1.5
    r0: float = 0.5
    nu0: float = 5.0
    fade: float = 0.7
    noise: float = 0.05

    def __post_init__(self) -> None:
        for name in ("share", "r0", "nu0", "fade", "noise"):
            object.__setattr__(self, name, positive(name, getattr(self, name)))
        object.__setattr__(self, "capital", positive("capital", number("capital", self.capital)))
        object.__setattr__(self, "kappa", number("kappa", self.kappa))
        if self.kappa < 1:
            raise InvalidArgument(f"kappa must be at least 1, got {self.kappa:g}")
        if self.share > 1:
            raise InvalidArgument(f"share must be at most 1, got {self.share:g}")

    def kept(self, fidelities: Fidelities) -> list[int]:
        """Return the highest fidelity, and each below it that is κ times cheaper than the next one kept.

        >>> MFTopTwo(capital=100).kept(Fidelities(costs=[1, 4, 8, 10]))
        [0, 1, 3]
        """
        rows = [len(fidelities) - 1]
        for m in range(rows[0] - 1, -1, -1):
            if self.kappa * fidelities.costs[m] <= fidelities.costs[rows[0]]:
                rows.insert(0, m)
        return rows

    def sweep(self, fidelities: Fidelities, arms: int) -> tuple[int, int]:
        """Return the sweep's fidelity and number of arms (step 2), the highest fidelity among ties.

        >>> MFTopTwo(capital=6).sweep(Fidelities(costs=[1, 2.5]), arms=20)  # four at a cost of 1
        (0, 4)
        """
        rows, most = self.kept(fidelities), limit(self.share * self.capital)
        best, chosen = 0.0, (rows[0], 1)
        for j, m in enumerate(reversed(rows[:-1] or rows)):
            cost = fidelities.costs[m]
            n = arms if arms * cost <= most else int(most / cost)
            if n / (1 + j) > best:
                best, chosen = n / (1 + j), (m, n)
        return chosen

    def remember(self, stats: Stats, fidelities: Fidelities) -> MFTopTwoMemory:
        """Refit the chain after a result; start a new one if the fidelities in use have changed."""
        told, rows, known = stats.told, self._rows(stats, fidelities), stats.memory
        floor = max(least_variance(told), SMALLEST_VARIANCE)
        start, variance = _first_means(told, rows)
        guess = self.noise * variance
        noise = pooled_noise(told, list(rows), floor, first=guess, weight=NOISE_GUESS_RESULTS, fade=self.fade)
        # Before any second play the spread of the arms is unknown, and EM is slow to leave one that is far too small.
        again = int(told.counts.sum()) > int(told.counts.any(axis=0).sum())
        if isinstance(known, MFTopTwoMemory) and known.rows == rows and again:
            chain, steps = replace(known, noise=noise), 1
        else:
            chain, steps = self._begin(start, variance, noise, rows, floor), FIRST_EM_STEPS
        for _ in range(steps):
            chain = em_step(chain, told, list(rows), floor, r0=self.r0, nu0=self.nu0)
        return chain

    def choose(self, stats: Stats, fidelities: Fidelities) -> tuple[int, int]:
        """Choose an arm of the sweep; after the sweep, the leader or the challenger by step 4."""
        lowest, swept = self.sweep(fidelities, len(stats.active))
        played = stats.plays.any(axis=0)
        untouched, seen = stats.active & ~played, stats.active & stats.counts.any(axis=0)
        left = limit(self.capital) - total_spent(stats.plays, fidelities)
        if untouched.any() and int(played.sum()) < swept and (fidelities.costs[lowest] <= left or not seen.any()):
            return int(untouched.argmax()), lowest
        if not seen.any():
            return _fewest(stats), lowest
        chain = self._memory(stats, fidelities)
        belief = Posterior(chain, stats, list(chain.rows))
        pair = finalists(belief, seen)
        options = [m for m in self.kept(fidelities) if m >= lowest]
        return _most_informative(belief, chain, pair, _payable(options, pair, stats, fidelities, left), fidelities)

    def index(self, stats: Stats, fidelities: Fidelities) -> FloatArray:
        """Compute E μ^(M)_k, in units of reward; infinite for arms without a result; shape (K,)."""
        seen = stats.counts.any(axis=0)
        if not seen.any():
            return np.full(len(stats.active), np.inf)
        chain = self._memory(stats, fidelities)
        return np.where(seen, Posterior(chain, stats.told, list(chain.rows)).values, np.inf)

    def recommend(self, stats: Stats, fidelities: Fidelities) -> int:
        """Return the active arm with the highest E μ^(M)_k."""
        seen = stats.counts.any(axis=0)
        return safest(np.where(seen, self.index(stats, fidelities), -np.inf), stats)

    def intervals(self, stats: Stats, fidelities: Fidelities) -> tuple[FloatArray, FloatArray]:
        """Compute the ends of 95 % posterior intervals for μ^(M)_k; −∞ and ∞ for arms without a result.

        >>> stats = Stats.empty(fidelities=1, arms=2)
        >>> MFTopTwo(capital=9).intervals(stats, Fidelities(costs=[1]))[1].tolist()
        [inf, inf]
        """
        seen: BoolArray = stats.counts.sum(axis=0) > 0
        if not seen.any():
            return np.full(len(seen), -np.inf), np.full(len(seen), np.inf)
        chain = self._memory(stats, fidelities)
        return Posterior(chain, stats.told, list(chain.rows)).intervals(seen)

    def _memory(self, stats: Stats, fidelities: Fidelities) -> MFTopTwoMemory:
        # Without a memory, or after costs have changed, it is computed from the results.
        known = stats.memory
        if isinstance(known, MFTopTwoMemory) and known.rows == self._rows(stats, fidelities):
            return known
        return self.remember(replace(stats, memory=None), fidelities)

    def _rows(self, stats: Stats, fidelities: Fidelities) -> tuple[int, ...]:
        """Return the kept fidelities from the sweep's upwards, and all others with a result."""
        lowest, _ = self.sweep(fidelities, len(stats.active))
        used = {m for m in self.kept(fidelities) if m >= lowest}
        return tuple(sorted(used.union(np.flatnonzero(stats.counts.any(axis=1)).tolist())))

    def _begin(
        self, start: float, variance: float, noise: FloatArray, rows: tuple[int, ...], floor: float
    ) -> MFTopTwoMemory:
        first = float(noise[0])
        spread = max(variance - first, 0.1 * variance, SPREAD_FLOOR * first, floor)
        steps = np.full(len(rows) - 1, self.r0 * self.r0 * spread)
        return MFTopTwoMemory(start, spread, np.zeros(len(rows) - 1), steps, steps, noise, rows)


def finalists(belief: Posterior, seen: BoolArray) -> tuple[int, ...]:
    """Return the leader and the challenger, lowest index among ties; the leader alone if no other arm is ``seen``."""
    values = np.where(seen, belief.values, -np.inf)
    leader = int(values.argmax())
    variances = belief.deviations * belief.deviations
    behind = (values[leader] - values) / np.sqrt(variances[leader] + variances)
    behind[leader] = np.inf
    challenger = int(behind.argmin())
    return (leader, challenger) if behind[challenger] < np.inf else (leader,)


def _payable(options: list[int], pair: tuple[int, ...], stats: Stats, fidelities: Fidelities, left: float) -> list[int]:
    """Return the fidelities at which ``left`` pays for both arms that have no play there; if none, the cheapest."""
    new = [max(1, sum(stats.plays[m, k] == 0 for k in pair)) for m in options]
    both = [m for m, plays in zip(options, new, strict=True) if plays * fidelities.costs[m] <= left]
    one = options[:1] if fidelities.costs[options[0]] <= left else options
    return both or one


def _most_informative(
    belief: Posterior, chain: MFTopTwoMemory, pair: tuple[int, ...], options: list[int], fidelities: Fidelities
) -> tuple[int, int]:
    """Return the arm and fidelity with the most information per cost; among ties the leader's, then the cheapest."""
    best, chosen = -1.0, (pair[0], options[0])
    for arm in pair:
        for m in options:
            gain = belief.information_per_cost(chain.rows.index(m), arm, fidelities.costs[m])
            if gain > best:
                best, chosen = gain, (arm, m)
    return chosen


def _first_means(told: Stats, rows: tuple[int, ...]) -> tuple[float, float]:
    """Return mean and variance of the arms' means at the fidelity with results of most arms, lowest among ties."""
    m = max(rows, key=lambda m: int((told.counts[m] > 0).sum()))
    seen = np.flatnonzero(told.counts[m] > 0)
    means = told.sums[m, seen] / told.counts[m, seen]
    start = total(means) / len(means)
    return start, total((means - start) * (means - start)) / len(means)


def _fewest(stats: Stats) -> int:
    """Return the active arm with the fewest plays, for asks while first results are pending."""
    return int(np.where(stats.active, stats.plays.sum(axis=0), np.iinfo(np.int64).max).argmin())
