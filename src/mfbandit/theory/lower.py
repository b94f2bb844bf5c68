"""Lower bounds on the regret of any strategy: Theorem 4, Lemma 11, and a sharper form with divergences."""

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from mfbandit._internal.typing import FloatArray, IntArray
from mfbandit.core import rates
from mfbandit.errors import InvalidArgument
from mfbandit.problems import Bernoulli, Gaussian, Problem
from mfbandit.theory.conditions import as_capitals, check_conditions, unmet_bernoulli, unmet_model, unmet_quadratic
from mfbandit.theory.partition import OPTIMAL, Partition, gaps, partition

LowerForm = Literal["theorem", "lemma", "divergence"]


@dataclass(frozen=True, eq=False)
class LowerBound:
    """A lower bound on regret per log n_Λ as the capital grows, in units of capital times reward.

    Args:
        per_arm: each arm's term without its constant, 0 for optimal arms; shape (K,).
        constants: each arm's constant c; shape (K,). It is 1 in the divergence form, NaN where it does not exist.
        partition: the classes of the arms, with K_1 and K_2.
        cost: λ_M.
        form: which result.
        caveats: conditions that do not hold.
    """

    per_arm: FloatArray
    constants: FloatArray
    partition: Partition
    cost: float
    form: LowerForm
    caveats: tuple[str, ...] = ()

    @property
    def first(self) -> float:
        """The sum over arms of K_1, on which MF-UCB is optimal up to constants; without constants."""
        return float(self.per_arm[self.partition.first].sum())

    @property
    def second(self) -> float:
        """The sum over arms of K_2, on which MF-UCB may be suboptimal; without constants."""
        return float(self.per_arm[~self.partition.first].sum())

    @property
    def total(self) -> float:
        """The sum over all arms, without constants."""
        return float(self.per_arm.sum())

    @property
    def proven(self) -> float:
        """The sum over all arms with their constants: the bound on the regret per log n_Λ."""
        return float((self.constants * self.per_arm)[self.partition.classes != OPTIMAL].sum())

    def at(self, capital: ArrayLike) -> FloatArray:
        """Compute ``proven``·log n_Λ, n_Λ = ⌊Λ/λ_M⌋, in the shape of ``capital``; a bound only in the limit.

        Args:
            capital: Λ, above 0.

        >>> from mfbandit.problems.builtin import paper_problem
        >>> lower_bound(paper_problem(3)).at([2000, 20_000]).round(2).tolist()
        [1325.8, 1901.97]
        """
        plays = np.maximum(np.floor(as_capitals(capital) / self.cost), 1.0)
        curve: FloatArray = self.proven * np.log(plays)
        return curve


def lower_bound(problem: Problem, *, form: LowerForm = "theorem", unproven: bool = False) -> LowerBound:
    r"""Compute a lower bound on regret per log n_Λ, as the capital grows, for every consistent strategy.

    A consistent strategy never plays a suboptimal arm a polynomial number of times, on any problem with these
    fidelities (Assumption 3).

    Args:
        problem: the problem.
        form: which result. Each arm adds Δ^(M)_k times

            - ``"theorem"``: Theorem 4, λ_[k]/(Δ^([k])_k)² on K_1 and min over ℓ ≤ [k] with Δ^(ℓ)_k > 0 of
              λ_ℓ/(Δ^(ℓ)_k)² on K_2, times c = c'_p/4; Bernoulli rewards, μ* in (1/2, 1), ζ_1 < 1/2.
            - ``"lemma"``: Lemma 11, min over all ℓ with Δ^(ℓ)_k > 0 of λ_ℓ/(Δ^(ℓ)_k)², times
              c'_p = min over ℓ ≥ p of (μ* − ζ_ℓ)(1 − μ* + ζ_ℓ) / (M − p + 1); the same conditions.
            - ``"divergence"``: min over ℓ with Δ^(ℓ)_k > 0 of λ_ℓ / kl(μ^(ℓ)_k, μ* − ζ_ℓ), the cheapest evidence that
              the arm is not the best; for Bernoulli and Gaussian rewards, with constant 1.

            p is the first fidelity with Δ^(p)_k > 0.
        unproven: compute it also if a condition does not hold; for replayed rewards ψ then stands for kl.

    The divergence form follows from the change of measure of Lemma 11. Raise arm k's mean to just above μ* − ζ_ℓ
    wherever it is lower. The log-likelihood ratio Σ_ℓ T^(ℓ)_k kl(μ^(ℓ)_k, μ* − ζ_ℓ) must then reach log n_Λ.
    The cheapest way is to play one fidelity.

    >>> from mfbandit.problems.builtin import paper_problem
    >>> bound = lower_bound(paper_problem(3), form="divergence")
    >>> round(bound.total), round(bound.first), round(bound.second)
    (2750, 2320, 430)
    """
    if form not in get_args(LowerForm):
        raise InvalidArgument(f"form must be one of {list(get_args(LowerForm))}, got {form!r}")
    broken = [*_conditions(problem, form), *unmet_model(problem)]
    caveats = check_conditions(_NAMES[form], broken, unproven)
    parts = partition(problem)
    evidence = _evidence(problem, form, parts)
    cheapest = np.where(parts.classes == OPTIMAL, 0.0, evidence.min(axis=0))
    cost = problem.fidelities.costs[-1]
    return LowerBound(problem.gaps * cheapest, _constants(problem, form), parts, cost, form, caveats)


_NAMES = {"theorem": "Theorem 4", "lemma": "Lemma 11", "divergence": "the divergence form of the lower bound"}


def optimal_fidelity(problem: Problem, *, unproven: bool = False) -> IntArray:
    r"""Return the fidelity at which evidence that an arm is not the best is cheapest; shape (K,), −1 for optimal arms.

    It is the ℓ that attains the minimum in the divergence form of :func:`lower_bound`. On K_2 it can be cheaper than
    the fidelity at which MF-UCB settles the arm, its class in :func:`partition`.

    Args:
        problem: the problem, with Bernoulli or Gaussian rewards.
        unproven: compute it also if a condition does not hold; for replayed rewards ψ then stands for kl.

    >>> from mfbandit.problems.builtin import paper_problem
    >>> problem = paper_problem(3)
    >>> cheaper = optimal_fidelity(problem) < partition(problem).classes
    >>> int(cheaper.sum()), int((cheaper & partition(problem).first).sum())
    (2, 0)
    """
    check_conditions(_NAMES["divergence"], [*_conditions(problem, "divergence"), *unmet_model(problem)], unproven)
    parts = partition(problem)
    cheapest: IntArray = _evidence(problem, "divergence", parts).argmin(axis=0)
    return np.where(parts.classes == OPTIMAL, OPTIMAL, cheapest)


def _conditions(problem: Problem, form: LowerForm) -> list[str]:
    if form != "divergence":
        return [*unmet_bernoulli(problem), *(unmet_quadratic(problem.fidelities) if form == "theorem" else [])]
    known = isinstance(problem.rewards, Bernoulli | Gaussian)
    return [] if known else [f"Bernoulli or Gaussian rewards, got {type(problem.rewards).__name__}"]


def _evidence(problem: Problem, form: LowerForm, parts: Partition) -> FloatArray:
    r"""Compute λ_ℓ over the information of one play, infinite where Δ^(ℓ)_k ≤ 0; in units of capital; (M, K)."""
    shortfall = gaps(problem)
    usable = shortfall > 0
    if form == "theorem":
        usable &= np.arange(len(shortfall))[:, None] <= parts.classes
    information = _divergences(problem, shortfall) if form == "divergence" else shortfall**2
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(usable, np.array(problem.fidelities.costs)[:, None] / information, np.inf)


def _divergences(problem: Problem, shortfall: FloatArray) -> FloatArray:
    r"""Compute kl(μ^(ℓ)_k, μ* − ζ_ℓ), meaningful where Δ^(ℓ)_k > 0; shape (M, K)."""
    match problem.rewards:
        case Gaussian() as rewards:
            with np.errstate(divide="ignore", invalid="ignore"):
                return shortfall**2 / (2 * rewards.sigmas(len(shortfall))[:, None] ** 2)
        case Bernoulli():
            return bernoulli_divergence(problem.means, problem.means + np.maximum(shortfall, 0.0))
        case _:
            rows = zip(problem.fidelities.tails, shortfall, strict=True)
            return np.stack([rates(tail, row) for tail, row in rows])


def bernoulli_divergence(p: FloatArray, q: FloatArray) -> FloatArray:
    r"""Compute kl(p, q) = p log(p/q) + (1 − p) log((1 − p)/(1 − q)), with 0·log 0 = 0; the arrays' common shape.

    >>> bernoulli_divergence(np.array([0.0, 0.5, 0.5]), np.array([0.5, 0.5, 1.0])).round(4).tolist()
    [0.6931, 0.0, inf]
    """
    step = q - p  # where q is near p, kl is of the order of step² and far below its two parts
    with np.errstate(divide="ignore", invalid="ignore"):
        win = np.where(p > 0, -p * np.log1p(step / p), 0.0)
        lose = np.where(p < 1, -(1 - p) * np.log1p(-step / (1 - p)), 0.0)
    divergence: FloatArray = np.maximum(win + lose, 2 * step * step)  # Pinsker's bound, against rounding errors
    return divergence


def _constants(problem: Problem, form: LowerForm) -> FloatArray:
    if form == "divergence":
        return np.ones(problem.arms)
    if not isinstance(problem.rewards, Bernoulli):
        return np.full(problem.arms, np.nan)
    lifted = problem.best_mean - np.array(problem.fidelities.known_biases)
    spread = np.minimum.accumulate((lifted * (1 - lifted))[::-1])[::-1]  # min over ℓ ≥ p
    fidelities = len(lifted)
    per_p = spread / (fidelities - np.arange(fidelities)) / (4 if form == "theorem" else 1)
    constants: FloatArray = per_p[(gaps(problem) > 0).argmax(axis=0)]
    return constants
