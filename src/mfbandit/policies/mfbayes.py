"""MFBayes: estimates from the results how the fidelities relate; needs neither biases nor a noise scale."""

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from mfbandit._internal.typing import BoolArray, FloatArray
from mfbandit._internal.validation import number, positive
from mfbandit.core import Fidelities, Stats, most_promising, safest
from mfbandit.errors import InvalidArgument
from mfbandit.policies.exploration import RESOLUTION, overlaps, roots, total_spent
from mfbandit.policies.gaussian_chain import (
    SPREAD_FLOOR,
    GaussianChain,
    Posterior,
    em_step,
    least_variance,
    pooled_noise,
    total,
)
from mfbandit.policies.opening import fewest_plays, opening_arm, ready_to_fit

ARMS_PLAYED_TWICE = 5  # before the first fit
REFIT_GROWTH = 1.01  # the chain is refitted when the capital spent has grown by this factor
FIRST_EM_STEPS = 5  # for the first fit; a later fit makes one
MAX_EXPONENT = 600.0  # exp overflows above 709


@dataclass(frozen=True, eq=False)
class MFBayesMemory(GaussianChain):
    """What MFBayes remembers: the fitted chain and a few counts.

    Args:
        spent: the capital spent when the chain was fitted.
        seen: the capital spent at the last result.
        tops: the number of results at the highest fidelity.
        due: the number of safeguard plays to make next.
    """

    spent: float
    seen: float
    tops: int
    due: int


@dataclass(frozen=True)
class MFBayes:
    r"""A policy that needs to know only the costs of the fidelities; it has no proof.

    It models all arms by one Gaussian chain (:mod:`~mfbandit.policies.gaussian_chain`), whose parameters it estimates
    from all results. The chain predicts how much a play at a low fidelity says about the highest. Fidelities that cost
    more than 1/κ of the highest are not used.

    1. Play each arm once at the lowest fidelity, then the five best ones once more.
    2. Play the arm with the largest U_k = E μ^(M)_k + sd·sqrt(ν_k((1 + S/H_k)^(2/ν_k) − 1)), ν_k = ν(1 + T^(M)_k). The
       factor of sd is a quantile of Student's t for the level of :mod:`~mfbandit.policies.exploration`.
    3. If that arm has the highest E μ^(M), play it at the highest fidelity. Else play it where a play reduces
       Var μ^(M)_k most per cost.

    There is no worst-case bound: on adversarial problems the regret can be many times UCB's. ``safeguard`` gives a
    share of the capital to UCB at the highest fidelity.

    Args:
        r0: prior guess of a step's standard deviation, as a share of the arms' spread.
        nu0: the weight of that guess, in arms.
        nu: degrees of freedom of an arm that was never played at the highest fidelity.
        kappa: κ ≥ 1; a fidelity is used if it is at least κ times cheaper than the highest.
        safeguard: share of the capital for UCB at the highest fidelity, in [0, 1).

    >>> MFBayes().choose(Stats.empty(fidelities=2, arms=3), Fidelities(costs=[1, 10]))
    (0, 0)
    """

    uses_biases: ClassVar[bool] = False

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
        """Return the fidelities that are at least κ times cheaper than the highest, and the highest.

        >>> MFBayes().used(Fidelities(costs=[1, 6, 10]))
        [0, 2]
        """
        top = len(fidelities) - 1
        return [m for m in range(top) if self.kappa * fidelities.costs[m] <= fidelities.costs[top]] + [top]

    def remember(self, stats: Stats, fidelities: Fidelities) -> MFBayesMemory | None:
        """Update the memory after a result; refit the chain if the capital spent has grown enough.

        ``stats`` already counts the result; ``stats.memory`` is from before it.
        """
        chain = stats.memory if isinstance(stats.memory, MFBayesMemory) else None
        told = stats.told
        spent = total_spent(told.results, fidelities)
        if chain is None:
            return (
                self._first(told, fidelities, spent)
                if ready_to_fit(told, self.used(fidelities)[0], ARMS_PLAYED_TWICE)
                else None
            )
        tops = int(told.results[-1].sum())
        chain = replace(chain, due=self._due(chain, fidelities, spent, tops), seen=spent, tops=tops)
        if spent < REFIT_GROWTH * chain.spent:
            return chain
        return _refit(self, replace(chain, spent=spent), told, fidelities, steps=1)

    def choose(self, stats: Stats, fidelities: Fidelities) -> tuple[int, int]:
        """Choose the arm with the largest index, and its fidelity by step 3."""
        rows = self.used(fidelities)
        chain = self._memory(stats, fidelities)
        open_arm = opening_arm(stats, rows[0], ARMS_PLAYED_TWICE, fitted=chain is not None)
        if open_arm is not None or chain is None:
            return fewest_plays(stats, rows[0]) if open_arm is None else open_arm, rows[0]
        if chain.due > int(stats.pending[-1].sum()):
            return _ucb(stats, float(chain.noise[-1])), rows[-1]
        belief = Posterior(chain, stats, rows)
        index = self._index(belief, stats, fidelities)
        arm = most_promising(index, stats)
        leader = int(np.where(stats.active & stats.counts.any(axis=0), belief.values, -np.inf).argmax())
        if arm == leader:
            return arm, rows[-1]
        return arm, rows[belief.most_informative(arm, [fidelities.costs[m] for m in rows])]

    def index(self, stats: Stats, fidelities: Fidelities) -> FloatArray:
        """Compute U_k, in units of reward; infinite for arms without a result; shape (K,)."""
        chain = self._memory(stats, fidelities)
        if chain is None:
            return np.where(
                stats.counts.any(axis=0), stats.means.max(axis=0, initial=-np.inf, where=stats.counts > 0), np.inf
            )
        return self._index(Posterior(chain, stats, self.used(fidelities)), stats, fidelities)

    def recommend(self, stats: Stats, fidelities: Fidelities) -> int:
        """Return the active arm with the highest E μ^(M)_k."""
        chain = self._memory(stats, fidelities)
        seen = stats.counts.any(axis=0)
        if chain is None:
            return safest(np.where(seen, self.index(stats, fidelities), -np.inf), stats)
        values = Posterior(chain, stats.told, self.used(fidelities)).values
        return safest(np.where(seen, values, -np.inf), stats)

    def intervals(self, stats: Stats, fidelities: Fidelities) -> tuple[FloatArray, FloatArray]:
        """Compute the ends of 95 % posterior intervals for μ^(M)_k; nothing is known before the first fit.

        >>> stats = Stats.empty(fidelities=1, arms=2)
        >>> MFBayes().intervals(stats, Fidelities(costs=[1]))[0].tolist()
        [-inf, -inf]
        """
        chain = self._memory(stats, fidelities)
        if chain is None:
            return np.full(len(stats.active), -np.inf), np.full(len(stats.active), np.inf)
        seen: BoolArray = stats.counts.sum(axis=0) > 0
        return Posterior(chain, stats.told, self.used(fidelities)).intervals(seen)

    def _memory(self, stats: Stats, fidelities: Fidelities) -> MFBayesMemory | None:
        # A caller may pass stats without a memory: then it is computed from the results.
        return stats.memory if isinstance(stats.memory, MFBayesMemory) else self.remember(stats, fidelities)

    def _first(self, told: Stats, fidelities: Fidelities, spent: float) -> MFBayesMemory:
        """Make the first fit: starting values from the means at the lowest fidelity, then five steps of EM."""
        rows = self.used(fidelities)
        seen = np.flatnonzero(told.counts[rows[0]] > 0)
        means = told.sums[rows[0], seen] / told.counts[rows[0], seen]
        start = total(means) / len(means)
        floor = least_variance(told)
        variance = total((means - start) * (means - start)) / len(means)
        noise = pooled_noise(told, rows, floor)
        spread = max(variance - float(noise[0]), 0.1 * variance, SPREAD_FLOOR * float(noise[0]), floor)
        nothing = np.zeros(len(rows) - 1)
        steps = np.full(len(rows) - 1, self.r0 * self.r0 * spread)
        tops = int(told.results[-1].sum())
        chain = MFBayesMemory(start, spread, nothing, steps, steps, noise, spent, spent, tops, 0)
        return _refit(self, chain, told, fidelities, steps=FIRST_EM_STEPS)

    def _due(self, chain: MFBayesMemory, fidelities: Fidelities, spent: float, tops: int) -> int:
        """Count the safeguard plays to make: one for each λ_M/share of capital, minus results at the top."""
        if self.safeguard == 0:
            return 0
        price = fidelities.costs[-1] / self.safeguard
        return max(0, chain.due - (tops - chain.tops)) + int(spent / price) - int(chain.seen / price)

    def _index(self, belief: Posterior, stats: Stats, fidelities: Fidelities) -> FloatArray:
        root = roots(stats.plays, fidelities)
        overlap = overlaps(root)
        spent = total_spent(stats.plays, fidelities) / fidelities.costs[0]
        quantiles = [
            quantile(1.0 + spent / ((a * RESOLUTION) * (b * RESOLUTION)), self.nu * (1.0 + top)) if a else math.inf
            for a, b, top in zip(root.tolist(), overlap.tolist(), stats.observations[-1].tolist(), strict=True)
        ]
        index: FloatArray = belief.values + belief.deviations * np.array(quantiles)
        index[~stats.counts.any(axis=0)] = np.inf
        return index


def quantile(ratio: float, nu: float) -> float:
    """Compute sqrt(ν(ratio^(2/ν) − 1)), the factor of the standard deviation in U_k; sqrt(2 log ratio) for large ν.

    >>> round(quantile(100.0, 8.0), 3), round(quantile(100.0, 1e9), 3)
    (4.159, 3.035)
    """
    return math.sqrt(nu * math.expm1(min(2.0 * math.log(ratio) / nu, MAX_EXPONENT)))


def _refit(policy: MFBayes, chain: MFBayesMemory, told: Stats, fidelities: Fidelities, *, steps: int) -> MFBayesMemory:
    """Estimate the noise within arms, then make EM steps for the other parameters."""
    rows, floor = policy.used(fidelities), least_variance(told)
    chain = replace(chain, noise=pooled_noise(told, rows, floor))
    for _ in range(steps):
        chain = em_step(chain, told, rows, floor, r0=policy.r0, nu0=policy.nu0)
    return chain


def _ucb(stats: Stats, noise: float) -> int:
    """Return UCB's choice at the highest fidelity, with ρ = 1 and the estimated noise."""
    top, plays = stats.counts[-1], stats.observations[-1]
    effort = 2.0 * noise * math.log(stats.time)
    with np.errstate(divide="ignore", invalid="ignore"):
        index = np.where(top > 0, stats.sums[-1] / top + np.sqrt(effort / plays), np.inf)
    free = stats.active & ((top > 0) | (plays == 0))  # arms with only pending plays come last
    if not free.any():
        return int(np.where(stats.active, plays, np.iinfo(np.int64).max).argmin())
    return int(np.where(free, index, -np.inf).argmax())
