"""MFTopTwo: which arm is best, within a known budget; needs neither biases nor a noise scale."""

from dataclasses import dataclass, replace

import numpy as np

from mfbandit._internal.typing import BoolArray, FloatArray
from mfbandit._internal.validation import number, positive
from mfbandit.core import Fidelities, Stats, limit, safest
from mfbandit.errors import InvalidArgument
from mfbandit.policies.gaussian_chain import (
    LEAST_SPREAD,
    Model,
    Posterior,
    em_step,
    least_variance,
    pooled_noise,
    total,
)

FIRST_STEPS = 5  # of EM for a first fit; one for each later
GUESS_WEIGHT = 1.0  # results that the first guess of the noise counts for
SMALLEST = 1e-200  # of a variance: the product of two still is a number


@dataclass(frozen=True, eq=False)
class Chain(Model):
    """The fitted chain, and the fidelities that it links; R of them."""

    rows: tuple[int, ...]


@dataclass(frozen=True)
class MFTopTwo:
    r"""A policy for choosing an arm with a budget that is known beforehand; found by replay and not proved.

    Rewards on the way do not count, only the arm that is recommended in the end. What the fidelities have to do with
    one another is learned as in :class:`~mfbandit.MFBayes`, by a chain of Gaussian steps that all arms share
    (:mod:`~mfbandit.policies.chain`), fitted anew after each result.

    1. From the highest fidelity down, keep those that are at least κ times cheaper than the next one kept.
    2. Sweep: look once at n arms at the kept fidelity m below the highest with the largest n/(1 + j),
       n = min(K, ⌊¾C/λ_m⌋), j being the kept fidelities between m and the highest: at all arms where that is cheap, at
       fewer where only dear looks tell anything.
    3. Leader ℓ = argmax E μ^(M)_k, challenger c = argmin_k (E_ℓ − E_k)/sqrt(V_ℓ + V_k), of the arms with a result.
    4. Of these two, and of the kept fidelities from the sweep's upwards at which what is left of C pays for both, play
       the one with the largest Cov(μ^(M), μ^(m))²/((Var μ^(m) + s_m²)·λ_m).

    When no play fits into C any more it goes on as if all did: an :class:`~mfbandit.Experiment` with that capital
    ends, one with more goes on. Costs are those of the fidelities; what plays really cost a policy does not see.

    Args:
        capital: C, all that plays may cost, in the units of the fidelities' costs.
        share: of C that the sweep may cost, in (0, 1].
        kappa: κ ≥ 1, the least advantage in cost of a fidelity that is used.
        r0: prior guess of a step's deviation, as a share of the arms' spread.
        nu0: how many arms that guess counts for.
        fade: prior guess of the variance of noise, as a share of that at the fidelity below.
        noise: the same at the lowest, as a share of the variance between arms.

    >>> policy = MFTopTwo(capital=100)
    >>> policy.sweep(Fidelities(costs=[1, 4, 16]), arms=10)  # all ten at a cost of 4
    (1, 10)
    >>> policy.choose(Stats.empty(fidelities=3, arms=10), Fidelities(costs=[1, 4, 16]))
    (0, 1)
    """

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
        """The highest fidelity, and those below it that are κ times cheaper than the next one kept.

        >>> MFTopTwo(capital=100).kept(Fidelities(costs=[1, 4, 8, 10]))
        [0, 1, 3]
        """
        rows = [len(fidelities) - 1]
        for m in range(rows[0] - 1, -1, -1):
            if self.kappa * fidelities.costs[m] <= fidelities.costs[rows[0]]:
                rows.insert(0, m)
        return rows

    def sweep(self, fidelities: Fidelities, arms: int) -> tuple[int, int]:
        """Where to look first, and at how many arms: the largest n/(1 + j), the highest fidelity among ties.

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

    def remember(self, stats: Stats, fidelities: Fidelities) -> Chain:
        """The chain after the newest result; begun anew where other fidelities are linked than before."""
        told, rows, known = stats.told, self._rows(stats, fidelities), stats.memory
        floor = max(least_variance(told), SMALLEST)
        start, variance = _first_means(told, rows)
        guess = self.noise * variance
        noise = pooled_noise(told, list(rows), floor, first=guess, weight=GUESS_WEIGHT, fade=self.fade)
        # Before any second look the arms' spread is not yet known, and EM leaves one that is far too small only slowly.
        again = int(told.counts.sum()) > int(told.counts.any(axis=0).sum())
        if isinstance(known, Chain) and known.rows == rows and again:
            chain, steps = replace(known, noise=noise), 1
        else:
            chain, steps = self._begin(start, variance, noise, rows, floor), FIRST_STEPS
        for _ in range(steps):
            chain = em_step(chain, told, list(rows), floor, r0=self.r0, nu0=self.nu0)
        return chain

    def choose(self, stats: Stats, fidelities: Fidelities) -> tuple[int, int]:
        """An arm of the sweep, then the leader or its challenger, where a look tells most for its cost."""
        lowest, swept = self.sweep(fidelities, len(stats.active))
        played = stats.plays.any(axis=0)
        untouched, seen = stats.active & ~played, stats.active & stats.counts.any(axis=0)
        left = limit(self.capital) - _spent(stats, fidelities)
        if untouched.any() and int(played.sum()) < swept and (fidelities.costs[lowest] <= left or not seen.any()):
            return int(untouched.argmax()), lowest
        if not seen.any():
            return _fewest(stats), lowest
        chain = self._memory(stats, fidelities)
        belief = Posterior(chain, stats, list(chain.rows))
        pair = finalists(belief, seen)
        options = [m for m in self.kept(fidelities) if m >= lowest]
        return _most_telling(belief, chain, pair, _payable(options, pair, stats, fidelities, left), fidelities)

    def index(self, stats: Stats, fidelities: Fidelities) -> FloatArray:
        """E μ^(M)_k, in units of reward; infinite for arms without a result; shape (K,)."""
        seen = stats.counts.any(axis=0)
        if not seen.any():
            return np.full(len(stats.active), np.inf)
        chain = self._memory(stats, fidelities)
        return np.where(seen, Posterior(chain, stats.told, list(chain.rows)).values, np.inf)

    def recommend(self, stats: Stats, fidelities: Fidelities) -> int:
        """The active arm with the highest E μ^(M)_k."""
        seen = stats.counts.any(axis=0)
        return safest(np.where(seen, self.index(stats, fidelities), -np.inf), stats)

    def _memory(self, stats: Stats, fidelities: Fidelities) -> Chain:
        # Costs may have changed since, or somebody asks out of the blue: then it is made from the results at hand.
        known = stats.memory
        if isinstance(known, Chain) and known.rows == self._rows(stats, fidelities):
            return known
        return self.remember(replace(stats, memory=None), fidelities)

    def _rows(self, stats: Stats, fidelities: Fidelities) -> tuple[int, ...]:
        """The kept fidelities from the sweep's upwards, and all others with a result."""
        lowest, _ = self.sweep(fidelities, len(stats.active))
        used = {m for m in self.kept(fidelities) if m >= lowest}
        return tuple(sorted(used.union(np.flatnonzero(stats.counts.any(axis=1)).tolist())))

    def _begin(self, start: float, variance: float, noise: FloatArray, rows: tuple[int, ...], floor: float) -> Chain:
        first = float(noise[0])
        spread = max(variance - first, 0.1 * variance, LEAST_SPREAD * first, floor)
        steps = np.full(len(rows) - 1, self.r0 * self.r0 * spread)
        return Chain(start, spread, np.zeros(len(rows) - 1), steps, steps, noise, rows)


def finalists(belief: Posterior, seen: BoolArray) -> tuple[int, ...]:
    """The leader and its challenger, the lowest number among ties; the leader alone if no other arm is ``seen``."""
    values = np.where(seen, belief.values, -np.inf)
    leader = int(values.argmax())
    variances = belief.deviations * belief.deviations
    behind = (values[leader] - values) / np.sqrt(variances[leader] + variances)
    behind[leader] = np.inf
    challenger = int(behind.argmin())
    return (leader, challenger) if behind[challenger] < np.inf else (leader,)


def _payable(options: list[int], pair: tuple[int, ...], stats: Stats, fidelities: Fidelities, left: float) -> list[int]:
    """The fidelities at which those of the pair without a play there can all have one; if none, the cheapest."""
    new = [max(1, sum(stats.plays[m, k] == 0 for k in pair)) for m in options]
    both = [m for m, plays in zip(options, new, strict=True) if plays * fidelities.costs[m] <= left]
    one = options[:1] if fidelities.costs[options[0]] <= left else options
    return both or one


def _most_telling(
    belief: Posterior, chain: Chain, pair: tuple[int, ...], options: list[int], fidelities: Fidelities
) -> tuple[int, int]:
    """The play that narrows its arm's μ^(M) most for its cost, the leader's and the cheapest among ties."""
    best, chosen = -1.0, (pair[0], options[0])
    for arm in pair:
        for m in options:
            worth = belief.worth(chain.rows.index(m), arm, fidelities.costs[m])
            if worth > best:
                best, chosen = worth, (arm, m)
    return chosen


def _first_means(told: Stats, rows: tuple[int, ...]) -> tuple[float, float]:
    """Mean and variance of the arms' means at the fidelity at which most arms were seen, the lowest among ties."""
    m = max(rows, key=lambda m: int((told.counts[m] > 0).sum()))
    seen = np.flatnonzero(told.counts[m] > 0)
    means = told.sums[m, seen] / told.counts[m, seen]
    start = total(means) / len(means)
    return start, total((means - start) * (means - start)) / len(means)


def _spent(stats: Stats, fidelities: Fidelities) -> float:
    spent = 0.0
    for cost, plays in zip(fidelities.costs, stats.plays.sum(axis=1).tolist(), strict=True):
        spent += cost * plays
    return spent


def _fewest(stats: Stats) -> int:
    """While first results are awaited: the active arm with the fewest plays."""
    return int(np.where(stats.active, stats.plays.sum(axis=0), np.iinfo(np.int64).max).argmin())
