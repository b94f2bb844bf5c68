"""Upper bounds on the regret of MF-UCB: Theorem 2's rate, and Lemma 10 with its constants."""

import math
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from mfbandit._internal.typing import FloatArray
from mfbandit._internal.validation import positive
from mfbandit.core import rates
from mfbandit.errors import InvalidArgument
from mfbandit.problems import Bernoulli, Gaussian, Problem, Replay, Rewards
from mfbandit.theory.conditions import as_capitals, check_conditions, unmet_decay, unmet_model, unmet_rho
from mfbandit.theory.partition import Partition, gaps, partition
from mfbandit.theory.plays import MIN_RHO as MIN_RHO_PLAYS
from mfbandit.theory.plays import growing_terms, kappa, largest_nu

UpperForm = Literal["every", "large", "printed"]
MIN_RHO = 4  # Theorem 2 and Lemma 10 need more
LARGE_CAVEAT = "this form of Lemma 10 holds beyond a capital that the paper does not give, and which is enormous"
PRINTED_CAVEAT = "Lemma 10 as printed is not a bound: it lacks additive terms and has a stray factor"


@dataclass(frozen=True, eq=False)
class RegretRate:
    """The terms of Theorem 2's sum: what each arm adds to regret per log n_Λ, up to a constant; shape (K,)."""

    per_arm: FloatArray
    caveats: tuple[str, ...] = ()

    @property
    def total(self) -> float:
        """The sum over arms."""
        return float(self.per_arm.sum())


def regret_rate(problem: Problem, *, unproven: bool = False) -> RegretRate:
    r"""Compute the terms of Theorem 2, E R(Λ)/log n_Λ ≲ Σ_k Δ^(M)_k λ_[k] / ψ(Δ^([k])_k), without a constant.

    For UCB, with which the paper compares it, pass the highest fidelity alone (:func:`top_only`).

    Args:
        problem: the problem.
        unproven: compute it also if a condition, such as Assumption 1, does not hold.

    >>> from mfbandit.problems.builtin import paper_problem
    >>> problem = paper_problem(1)
    >>> round(regret_rate(problem).total / regret_rate(top_only(problem)).total, 2)
    0.69
    """
    caveats = check_conditions("Theorem 2", [*unmet_decay(problem.fidelities), *unmet_model(problem)], unproven)
    parts, shortfall = partition(problem), gaps(problem)
    rate = np.zeros(problem.arms)
    for m, tail in enumerate(problem.fidelities.tails):
        k = parts.members(m)
        rate[k] = problem.gaps[k] * problem.fidelities.costs[m] / rates(tail, shortfall[m, k])
    return RegretRate(rate, caveats)


def top_only(problem: Problem) -> Problem:
    """Return the problem with its highest fidelity alone, M = 1, which is all that UCB plays.

    >>> from mfbandit.problems.builtin import paper_problem
    >>> top_only(paper_problem(1)).means.shape
    (1, 500)
    """
    match problem.rewards:
        case Gaussian() as rewards:
            alone: Rewards = Gaussian(rewards.sigmas(len(problem.fidelities))[-1:].tolist())
        case Replay() as rewards:
            alone = Replay(rewards.samples[-1:], rewards.replace)
        case Bernoulli():
            alone = Bernoulli()
    return Problem(problem.means[-1:], problem.fidelities.top, alone)


@dataclass(frozen=True, eq=False)
class UpperBound:
    """A bound on expected regret, in units of capital times reward.

    Args:
        capital: Λ, of any shape.
        log_plays: L, which bounds E log N; in the shape of ``capital``.
        slope: what each arm adds per unit of L; shape (K,).
        constant: what each arm adds at any L; shape (K,).
        residual: the bound on the regret of capital that is left over.
        form: which form of Lemma 10.
        caveats: conditions that do not hold, and capitals for which the bound does not hold.
    """

    capital: FloatArray
    log_plays: FloatArray
    slope: FloatArray
    constant: FloatArray
    residual: float
    form: UpperForm
    caveats: tuple[str, ...] = ()

    @property
    def per_arm(self) -> FloatArray:
        """What each arm adds at each capital: L·slope + constant; the shape of ``capital``, then (K,)."""
        per_arm: FloatArray = _product(self.log_plays[..., None], self.slope) + self.constant
        return per_arm

    @property
    def total(self) -> FloatArray:
        """The bound on E R(Λ), in the shape of ``capital``."""
        total: FloatArray = self.residual + _product(self.log_plays, self.slope.sum()) + self.constant.sum()
        return total


def _product(log_plays: FloatArray, slope: ArrayLike) -> FloatArray:
    """Compute L·slope; 0 where L is 0, also if the slope is infinite."""
    return np.where(log_plays > 0, np.multiply(np.where(log_plays > 0, log_plays, 1.0), slope), 0.0)


def upper_bound(
    problem: Problem, capital: ArrayLike, rho: float, *, form: UpperForm = "every", unproven: bool = False
) -> UpperBound:
    r"""Compute Lemma 10 with its constants, an upper bound on the expected regret of MF-UCB.

        max(μ*, 0)·λ_M + Σ_k Δ^(M)_k [ Σ_{ℓ<[k]} λ_ℓ(ρL/ψ(γ_ℓ) + 1)
                                       + λ_[k](ρL/ψ(Δ^([k])_k/2) + κ_ρ) + 1{[k]<M}·λ_M κ_ρ ]

    Args:
        problem: the problem.
        capital: Λ, above 0; of any shape.
        rho: exploration parameter ρ > 4 of MF-UCB.
        form: what stands for L, the bound on E log N.

            - ``"every"``: log(Λ/λ_1), as no run makes more than Λ/λ_1 plays; valid at every capital, and for ρ > 2.
            - ``"large"``: log n_Λ + 1 + log 2, beyond a capital Λ_0 that is enormous and not computed. If M = 1 it is
              log n_Λ at any capital.
            - ``"printed"``: the same L, and the lemma as the paper prints it, without its additive terms and with a
              stray μ*. It is not a bound.
        unproven: compute it also if a condition does not hold.

    At capitals that can be simulated, the bound is often above the trivial one, Λ times the largest Δ^(M)_k.

    >>> from mfbandit.problems.builtin import paper_problem
    >>> bound = upper_bound(paper_problem(1), capital=[2e6, 2e7], rho=5)
    >>> bound.total.round(-3).tolist(), bound.per_arm.shape
    ([57555000.0, 66591000.0], (2, 500))
    """
    if form not in get_args(UpperForm):
        raise InvalidArgument(f"form must be one of {list(get_args(UpperForm))}, got {form!r}")
    money, rho = as_capitals(capital), positive("rho", rho)
    caveats = check_conditions("Lemma 10", [*unmet_rho(rho, above=MIN_RHO), *unmet_model(problem)], unproven)
    parts = partition(problem)
    costs = np.array(problem.fidelities.costs)
    if form == "printed":
        additive = np.full(
            problem.arms, problem.best_mean * costs[-1] * _printed_kappa(problem, rho) if problem.best_mean else 0.0
        )
        residual = problem.best_mean * costs[-1]
    else:
        additive = _additive(problem, parts, kappa(problem.fidelities, rho))
        residual = max(problem.best_mean, 0.0) * costs[-1]
    slope, constant = (_weighed(problem.gaps, spent) for spent in (_growing(problem, parts, rho), additive))
    all_caveats = (*caveats, *_limits(form, len(costs)))
    return UpperBound(money, _log_plays(money, costs, form), slope, constant, float(residual), form, all_caveats)


def _limits(form: UpperForm, fidelities: int) -> tuple[str, ...]:
    if form == "printed":
        return (PRINTED_CAVEAT,)
    return (LARGE_CAVEAT,) if form == "large" and fidelities > 1 else ()


def _weighed(gap: FloatArray, spent: FloatArray) -> FloatArray:
    """Compute gap·spent; 0 for optimal arms, also if a constant is infinite (ρ ≤ 2)."""
    return np.multiply(gap, spent, out=np.zeros(len(gap)), where=gap > 0)


def ucb_upper_bound(
    problem: Problem, capital: ArrayLike, rho: float, *, form: UpperForm = "every", unproven: bool = False
) -> UpperBound:
    """Compute Lemma 10 for the highest fidelity alone, where MF-UCB is UCB.

    The arguments are those of :func:`upper_bound`.

    >>> from mfbandit.problems.builtin import paper_problem
    >>> problem = paper_problem(1)
    >>> ours, ucb = (bound(problem, 1e12, rho=5, form="large").total for bound in (upper_bound, ucb_upper_bound))
    >>> round(float(ours / ucb), 2)
    0.78
    """
    return upper_bound(top_only(problem), capital, rho, form=form, unproven=unproven)


def _log_plays(capital: FloatArray, costs: FloatArray, form: UpperForm) -> FloatArray:
    # A capital below the cost of one play allows none: then L is log 1.
    if form == "every":
        every: FloatArray = np.log(np.maximum(capital / costs[0], 1.0))
        return every
    top: FloatArray = np.log(np.maximum(np.floor(capital / costs[-1]), 1.0))  # n_Λ
    return top + 1 + math.log(2) if len(costs) > 1 else top


def _growing(problem: Problem, parts: Partition, rho: float) -> FloatArray:
    r"""Compute Σ_{ℓ<[k]} λ_ℓ ρ/ψ(γ_ℓ) + λ_[k] ρ/ψ(Δ^([k])_k/2); shape (K,)."""
    costs = np.array(problem.fidelities.costs)
    below, own = growing_terms(problem, parts, rho)
    up_to = np.concatenate([[0.0], np.cumsum(costs[:-1] * below[:-1, 0])])
    growing: FloatArray = up_to[parts.classes] + costs[parts.classes] * own
    return growing


def _additive(problem: Problem, parts: Partition, constant: float) -> FloatArray:
    r"""Compute Σ_{ℓ<[k]} λ_ℓ + λ_[k] κ_ρ + 1{[k]<M}·λ_M κ_ρ; shape (K,)."""
    costs = np.array(problem.fidelities.costs)
    up_to = np.concatenate([[0.0], np.cumsum(costs[:-1])])
    beyond = np.where(parts.classes < len(costs) - 1, costs[-1] * constant, 0.0)
    additive: FloatArray = up_to[parts.classes] + costs[parts.classes] * constant + beyond
    return additive


def _printed_kappa(problem: Problem, rho: float) -> float:
    if rho <= MIN_RHO_PLAYS:
        return math.inf
    return 1 + largest_nu(problem.fidelities) * (1 + len(problem.fidelities)) / (rho - 2)
