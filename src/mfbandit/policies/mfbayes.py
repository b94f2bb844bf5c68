"""MFBayes: learns from the arms themselves how fidelities relate, and needs neither biases nor a noise scale."""

import math
from dataclasses import dataclass, replace

import numpy as np

from mfbandit._internal.typing import FloatArray, IntArray
from mfbandit._internal.validation import number, positive
from mfbandit.core import Fidelities, Stats, most_promising, safest
from mfbandit.errors import InvalidArgument
from mfbandit.policies.exploration import GRAIN, overlaps, roots
from mfbandit.policies.gaussian_chain import (
    LEAST_SPREAD,
    Model,
    Posterior,
    em_step,
    least_variance,
    pooled_noise,
    total,
)

SECOND_LOOKS = 5  # arms that are looked at twice before anything is fitted
GROWTH = 1.01  # the chain is fitted anew when the capital spent has grown by this factor
FIRST_STEPS = 5  # of EM for the first fit; one for each later
MOST = 600.0  # exp of more is no number


@dataclass(frozen=True, eq=False)
class Chain(Model):
    """The fitted chain, and what is kept beside it.

    Args:
        spent: the capital spent when it was fitted.
        seen: the capital spent at the last result.
        tops: results at the highest fidelity so far.
        due: plays that the safeguard is owed.
    """

    spent: float
    seen: float
    tops: int
    due: int


@dataclass(frozen=True)
class MFBayes:
    r"""A policy for fidelities of which nothing but the costs is known; found by simulation and not proved.

    Arms are taken to be alike: all come from one chain of Gaussian steps from fidelity to fidelity, whose parameters
    are estimated from all arms together (:class:`Chain`). That says what a cheap look is worth. Fidelities that cost
    more than 1/κ of the highest are left out.

    1. Look at each arm once at the lowest fidelity, then at the five best ones once more.
    2. Play the arm with the largest U_k = E μ^(M)_k + sd·sqrt(ν_k((1 + S/H_k)^(2/ν_k) − 1)), ν_k = ν(1 + T^(M)_k): a
       quantile of Student's for the level of :mod:`~mfbandit.policies.level`.
    3. At the highest fidelity if no arm has a higher E μ^(M), else where a look narrows μ^(M)_k most for its cost.

    There is no worst case: on adversarial problems it can lose many times more than UCB. ``safeguard`` gives a share of
    the capital to plain UCB at the highest fidelity.

    Args:
        r0: prior guess of a step's deviation, as a share of the arms' spread.
        nu0: how many arms that guess counts for.
        nu: degrees of freedom of an arm that was never played at the highest fidelity.
        kappa: κ ≥ 1, the least advantage in cost of a fidelity that is used.
        safeguard: share of the capital for UCB at the highest fidelity, in [0, 1).

    >>> MFBayes().choose(Stats.empty(fidelities=2, arms=3), Fidelities(costs=[1, 10]))
    (0, 0)
    """

    r0: float = 0.5
    nu0: float = 2.0
    nu: float = 8.0
    kappa: float = 2.0
    safeguard: float = 0.0

    def __post_init__(self) -> None:
        for name in ("r0", "nu0", "nu"):
            object.__setattr__(self, name, positive(name, getattr(self, name)))
        for name, low, high in (("kappa", 1.0, math.inf), ("safeguard", 0.0, 1.0)):
            value = number(name, getattr(self, name))
            if not low <= value < high:
                raise InvalidArgument(f"{name} must be at least {low:g} and below {high:g}, got {value:g}")
            object.__setattr__(self, name, value)

    def used(self, fidelities: Fidelities) -> list[int]:
        """The fidelities that are at least κ times cheaper than the highest, and that one.

        >>> MFBayes().used(Fidelities(costs=[1, 6, 10]))
        [0, 2]
        """
        top = len(fidelities) - 1
        return [m for m in range(top) if self.kappa * fidelities.costs[m] <= fidelities.costs[top]] + [top]

    def remember(self, stats: Stats, fidelities: Fidelities) -> Chain | None:
        """The chain after the newest result: fitted anew if the capital spent has grown enough, else as it was.

        It is called with the result already counted and with ``stats.memory`` from before it.
        """
        chain = stats.memory if isinstance(stats.memory, Chain) else None
        told = stats.told
        spent = _spent(told.counts, fidelities)
        if chain is None:
            return self._first(told, fidelities, spent) if self._ready(told, fidelities) else None
        tops = int(told.counts[-1].sum())
        chain = replace(chain, due=self._due(chain, fidelities, spent, tops), seen=spent, tops=tops)
        if spent < GROWTH * chain.spent:
            return chain
        return _refit(self, replace(chain, spent=spent), told, fidelities, steps=1)

    def choose(self, stats: Stats, fidelities: Fidelities) -> tuple[int, int]:
        """The arm with the largest index, where a look narrows its value most for its cost."""
        rows = self.used(fidelities)
        chain = self._memory(stats, fidelities)
        open_arm = self._opening(stats, rows[0], fitted=chain is not None)
        if open_arm is not None or chain is None:
            return _fewest(stats, rows[0]) if open_arm is None else open_arm, rows[0]
        if chain.due > int(stats.pending[-1].sum()):
            return _ucb(stats, float(chain.noise[-1])), rows[-1]
        belief = Posterior(chain, stats, rows)
        index = self._index(belief, stats, fidelities)
        arm = most_promising(index, stats)
        leader = int(np.where(stats.active & stats.counts.any(axis=0), belief.values, -np.inf).argmax())
        if arm == leader:
            return arm, rows[-1]
        return arm, rows[belief.most_telling(arm, [fidelities.costs[m] for m in rows])]

    def index(self, stats: Stats, fidelities: Fidelities) -> FloatArray:
        """U_k, in units of reward; infinite for arms without a result; shape (K,)."""
        chain = self._memory(stats, fidelities)
        if chain is None:
            return np.where(
                stats.counts.any(axis=0), stats.means.max(axis=0, initial=-np.inf, where=stats.counts > 0), np.inf
            )
        return self._index(Posterior(chain, stats, self.used(fidelities)), stats, fidelities)

    def recommend(self, stats: Stats, fidelities: Fidelities) -> int:
        """The active arm with the highest E μ^(M)_k."""
        chain = self._memory(stats, fidelities)
        seen = stats.counts.any(axis=0)
        if chain is None:
            return safest(np.where(seen, self.index(stats, fidelities), -np.inf), stats)
        values = Posterior(chain, stats.told, self.used(fidelities)).values
        return safest(np.where(seen, values, -np.inf), stats)

    def _memory(self, stats: Stats, fidelities: Fidelities) -> Chain | None:
        # Without a memory, as when somebody asks out of the blue, it is made from the results at hand.
        return stats.memory if isinstance(stats.memory, Chain) else self.remember(stats, fidelities)

    def _ready(self, told: Stats, fidelities: Fidelities) -> bool:
        lowest = told.counts[self.used(fidelities)[0]]
        enough = min(SECOND_LOOKS, max(1, int(told.active.sum())))
        seen = (told.counts > 0).any(axis=0)
        return bool((seen | ~told.active).all() and (lowest >= 2).sum() >= enough)  # noqa: PLR2004

    def _opening(self, stats: Stats, lowest: int, *, fitted: bool) -> int | None:
        """The arm for a first or second look, None when all have had theirs."""
        untouched = stats.active & ~(stats.plays > 0).any(axis=0)
        if untouched.any():
            return int(untouched.argmax())
        if fitted:
            return None
        plays, counts = stats.plays[lowest], stats.counts[lowest]
        again = stats.active & (plays == 1) & (counts == 1)
        if (plays >= 2).sum() >= min(SECOND_LOOKS, int(stats.active.sum())) or not again.any():  # noqa: PLR2004
            return None
        return int(np.where(again, stats.sums[lowest], -np.inf).argmax())

    def _first(self, told: Stats, fidelities: Fidelities, spent: float) -> Chain:
        """Starting values from the means at the lowest fidelity, and five steps of EM."""
        rows = self.used(fidelities)
        seen = np.flatnonzero(told.counts[rows[0]] > 0)
        means = told.sums[rows[0], seen] / told.counts[rows[0], seen]
        start = total(means) / len(means)
        floor = least_variance(told)
        variance = total((means - start) * (means - start)) / len(means)
        noise = pooled_noise(told, rows, floor)
        spread = max(variance - float(noise[0]), 0.1 * variance, LEAST_SPREAD * float(noise[0]), floor)
        nothing = np.zeros(len(rows) - 1)
        steps = np.full(len(rows) - 1, self.r0 * self.r0 * spread)
        tops = int(told.counts[-1].sum())
        chain = Chain(start, spread, nothing, steps, steps, noise, spent, spent, tops, 0)
        return _refit(self, chain, told, fidelities, steps=FIRST_STEPS)

    def _due(self, chain: Chain, fidelities: Fidelities, spent: float, tops: int) -> int:
        """Safeguard plays owed: one more for each λ_M/share of capital, one less for each result at the top."""
        if self.safeguard == 0:
            return 0
        price = fidelities.costs[-1] / self.safeguard
        return max(0, chain.due - (tops - chain.tops)) + int(spent / price) - int(chain.seen / price)

    def _index(self, belief: Posterior, stats: Stats, fidelities: Fidelities) -> FloatArray:
        root = roots(stats.plays, fidelities)
        overlap = overlaps(root)
        spent = _spent(stats.plays, fidelities) / fidelities.costs[0]
        quantiles = [
            quantile(1.0 + spent / ((a * GRAIN) * (b * GRAIN)), self.nu * (1.0 + top)) if a else math.inf
            for a, b, top in zip(root.tolist(), overlap.tolist(), stats.plays[-1].tolist(), strict=True)
        ]
        index: FloatArray = belief.values + belief.deviations * np.array(quantiles)
        index[~stats.counts.any(axis=0)] = np.inf
        return index


def quantile(ratio: float, nu: float) -> float:
    """sqrt(ν(ratio^(2/ν) − 1)): how many deviations an arm may be better than it looks; sqrt(2 log ratio) for large ν.

    >>> round(quantile(100.0, 8.0), 3), round(quantile(100.0, 1e9), 3)
    (4.159, 3.035)
    """
    return math.sqrt(nu * math.expm1(min(2.0 * math.log(ratio) / nu, MOST)))


def _refit(policy: MFBayes, chain: Chain, told: Stats, fidelities: Fidelities, *, steps: int) -> Chain:
    """Noise from the spread within arms, and steps of EM for the rest."""
    rows, floor = policy.used(fidelities), least_variance(told)
    chain = replace(chain, noise=pooled_noise(told, rows, floor))
    for _ in range(steps):
        chain = em_step(chain, told, rows, floor, r0=policy.r0, nu0=policy.nu0)
    return chain


def _spent(plays: IntArray, fidelities: Fidelities) -> float:
    spent = 0.0
    for cost, row in zip(fidelities.costs, plays, strict=True):
        spent += cost * int(row.sum())
    return spent


def _fewest(stats: Stats, lowest: int) -> int:
    """While first results are awaited: the active arm with the fewest plays."""
    return int(np.where(stats.active, stats.plays[lowest], np.iinfo(np.int64).max).argmin())


def _ucb(stats: Stats, noise: float) -> int:
    """UCB's choice at the highest fidelity, with ρ = 1 and the noise that was fitted."""
    top, plays = stats.counts[-1], stats.plays[-1]
    effort = 2.0 * noise * math.log(stats.time)
    with np.errstate(divide="ignore", invalid="ignore"):
        index = np.where(top > 0, stats.sums[-1] / top + np.sqrt(effort / plays), np.inf)
    free = stats.active & ((top > 0) | (plays == 0))  # those with only pending plays come last
    if not free.any():
        return int(np.where(stats.active, plays, np.iinfo(np.int64).max).argmin())
    return int(np.where(free, index, -np.inf).argmax())
