"""Bounds on the number of plays of an arm at a fidelity under MF-UCB: Lemmas 7, 8 (Table 1) and 9."""

import math
from dataclasses import dataclass

import numpy as np

from mfbandit._internal.formatting import columns, readable
from mfbandit._internal.typing import FloatArray
from mfbandit._internal.validation import positive, whole
from mfbandit.core import Fidelities, rates
from mfbandit.errors import InvalidArgument
from mfbandit.problems import Problem
from mfbandit.theory.conditions import check_conditions, unmet_model, unmet_rho
from mfbandit.theory.partition import OPTIMAL, Partition, gaps, partition

LARGEST_COUNT = 10**300  # a float cannot hold much larger ones
MAX_EXPONENT = 700  # exp overflows above 709
MIN_RHO = 2  # Lemmas 7, 8 and 9 need more


def kappa(fidelities: Fidelities, rho: float) -> float:
    r"""Compute κ_ρ = 1 + ν·max(1/2, 1/(ρ − 2)) + Mν/(ρ − 2), the number of plays that does not grow with n (Lemma 8).

    It is infinite if ρ ≤ 2. If ν differs between fidelities, the largest is used.

    >>> from mfbandit.core.concentration import Bounded
    >>> kappa(Fidelities([1, 10], [0.1, 0], Bounded()), rho=5)  # 1 + 1/2 + 2/3
    2.1666666666666665
    """
    nu = largest_nu(fidelities)
    beyond = 1 / (rho - 2) if rho > MIN_RHO else math.inf
    return 1 + nu * max(1 / 2, beyond) + len(fidelities) * nu * beyond


def largest_nu(fidelities: Fidelities) -> float:
    """Return the largest ν (eq. 2) over fidelities.

    >>> from mfbandit.core.concentration import Bounded
    >>> largest_nu(Fidelities([1, 10], [0.1, 0], Bounded()))
    1.0
    """
    return max(tail.nu for tail in fidelities.tails)


def settling_rates(problem: Problem, parts: Partition) -> FloatArray:
    r"""Compute ψ(Δ^([k])_k / 2) of each arm, per reward; infinite for optimal arms; shape (K,).

    >>> from mfbandit.problems.builtin import misleading_problem
    >>> problem = misleading_problem(arms=3)
    >>> settling_rates(problem, partition(problem)).round(5).tolist()
    [0.125, 0.03125, inf]
    """
    shortfall = gaps(problem)
    rate = np.full(problem.arms, np.inf)
    for m, tail in enumerate(problem.fidelities.tails):
        members = parts.members(m)
        rate[members] = rates(tail, shortfall[m, members] / 2)
    return rate


def switching_rates(fidelities: Fidelities) -> FloatArray:
    """Compute ψ_m(γ_m) for m < M, per reward; shape (M − 1,).

    >>> from mfbandit.core.concentration import Bounded
    >>> switching_rates(Fidelities([1, 10], [0.1, 0], Bounded())).round(5).tolist()  # a tenth of psi(0.1)
    [0.002]
    """
    return np.array([tail.psi(gamma) for tail, gamma in zip(fidelities.tails[:-1], fidelities.gammas, strict=True)])


@dataclass(frozen=True, eq=False)
class PlayBounds:
    """Bounds on expected plays after n plays. Printed, it is the paper's Table 1 with numbers.

    Args:
        n: the number of plays so far, at any fidelity.
        rho: exploration parameter.
        plays: a bound on E T^(m)_k for each fidelity and arm; shape (M, K).
        above: a bound on E T^(>[k])_k, the plays at all fidelities above the arm's class; shape (K,).
        kappa: κ_ρ.
        partition: the classes of the arms.
        caveats: conditions that do not hold.
    """

    n: int
    rho: float
    plays: FloatArray
    above: FloatArray
    kappa: float
    partition: Partition
    caveats: tuple[str, ...] = ()

    @property
    def table(self) -> FloatArray:
        """Mean bound over the arms of each class, optimal arms last; shape (M, M + 1), NaN for an empty class."""
        columns = [*range(self.partition.fidelities), OPTIMAL]
        return np.column_stack([self._column(self.partition.classes == column) for column in columns])

    def _column(self, members: np.ndarray) -> FloatArray:
        column: FloatArray = self.plays[:, members].mean(axis=1) if members.any() else np.full(len(self.plays), np.nan)
        return column

    def __str__(self) -> str:
        title = f"bounds on plays of an arm after {self.n:,} plays in all, rho = {self.rho:g} (Lemma 8)"
        head = ["", *(f"class {m}" for m in range(self.partition.fidelities)), "optimal"]
        rows = [[f"fidelity {m}", *(readable(value) for value in row)] for m, row in enumerate(self.table.tolist())]
        sizes = ["arms", *(f"{size:,}" for size in [*self.partition.sizes.tolist(), len(self.partition.optimal)])]
        return "\n".join([title, *columns([head, *rows, sizes]), *self.caveats])


def expected_plays(problem: Problem, n: int, rho: float, *, unproven: bool = False) -> PlayBounds:
    r"""Compute Lemma 8: a bound on the expected plays of every arm at every fidelity after n plays of MF-UCB.

        T^(ℓ)_k ≤ ρ log n / ψ(γ_ℓ) + 1  for ℓ < [k] (in every run, not only on average),
        E T^([k])_k ≤ ρ log n / ψ(Δ^([k])_k / 2) + κ_ρ,
        E T^(>[k])_k ≤ κ_ρ.

    An optimal arm's plays below M obey the first line; at M there is no bound but n. The lemma does not use that no arm
    is played more than n times: a bound above n is trivial.

    Args:
        problem: the problem.
        n: the number of plays so far, at least 1.
        rho: exploration parameter ρ > 2 of MF-UCB.
        unproven: compute the bound also if a condition does not hold.

    >>> from mfbandit.problems.builtin import paper_problem
    >>> print(expected_plays(paper_problem(3), n=100_000, rho=5))
    bounds on plays of an arm after 100,000 plays in all, rho = 5 (Lemma 8)
                class 0  class 1  optimal
    fidelity 0    1,509    7,197    7,197
    fidelity 1    2.167  133,539  100,000
    arms            112       87        1
    """
    rho = positive("rho", rho)
    _at_least_one("n", n)
    caveats = check_conditions("Lemma 8", [*unmet_rho(rho, above=MIN_RHO), *unmet_model(problem)], unproven)
    parts = partition(problem)
    constant = kappa(problem.fidelities, rho)
    below, own = growing_terms(problem, parts, rho * math.log(n))
    row = np.arange(len(problem.fidelities))[:, None]
    plays = np.where(row < parts.classes, below + 1, np.where(row == parts.classes, own + constant, constant))
    best = parts.classes == OPTIMAL
    plays[:-1, best], plays[-1, best] = below[:-1] + 1, n
    beyond = np.where(best | (parts.classes == len(problem.fidelities) - 1), 0.0, constant)
    return PlayBounds(n, rho, plays, beyond, constant, parts, caveats)


def _at_least_one(what: str, value: int) -> None:
    if not 1 <= whole(what, value) <= LARGEST_COUNT:
        raise InvalidArgument(f"{what} must be at least 1 and at most {LARGEST_COUNT:g}, got {value}")


def growing_terms(problem: Problem, parts: Partition, factor: float) -> tuple[FloatArray, FloatArray]:
    r"""Compute the growing terms of Lemma 8: factor/ψ(γ_ℓ), (M, 1), and factor/ψ(Δ^([k])_k/2), (K,).

    ``factor`` is ρ log n. The first term is 0 at the highest fidelity, which MF-UCB never leaves. The second is 0 for
    optimal arms.

    >>> from mfbandit.problems.builtin import misleading_problem
    >>> problem = misleading_problem(arms=3)
    >>> below, own = growing_terms(problem, partition(problem), factor=1.0)
    >>> below.round(1).tolist(), own.round(1).tolist()
    ([[8.0], [22.2], [0.0]], [8.0, 32.0, 0.0])
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        below = factor / np.append(switching_rates(problem.fidelities), np.inf)
        own = factor / settling_rates(problem, parts)
    if factor == 0:  # also where a rate is 0
        return np.zeros((len(below), 1)), np.zeros(len(own))
    return below[:, None], own


@dataclass(frozen=True, eq=False)
class PlayTails:
    """Bounds on the probability that an arm is played many times; arrays of shape (K,).

    Args:
        threshold: x(1 + ρ log n/ψ(Δ^([k])_k/2)), in plays; infinite for optimal arms, which the lemma leaves out.
        own: a bound on P(T^([k])_k > threshold).
        above: a bound on P(T^(>[k])_k > x); 0 where there is no fidelity above the class.
        caveats: conditions that do not hold.
    """

    threshold: FloatArray
    own: FloatArray
    above: FloatArray
    caveats: tuple[str, ...] = ()


def plays_tail(problem: Problem, n: int, x: int, rho: float, *, unproven: bool = False) -> PlayTails:
    r"""Compute Lemma 9: bounds on the probability that an arm is played x times as often as expected.

        P(T^([k])_k > x(1 + ρ log n/ψ(Δ/2))) ≤ ν κ_k/(x log n)^(ρ−1) + ν/n^(xρ−1),
        P(T^(>[k])_k > x) ≤ Mν/((ρ−1) x^(ρ−1)) + ν/((ρ−2) x^(ρ−2)),

    with Δ = Δ^([k])_k and κ_k = M/(ρ−1)·(ψ(Δ/2)/ρ)^(ρ−1). Values above 1 are given as 1.

    Args:
        problem: the problem.
        n: the number of plays so far, at least 1.
        x: a whole number, at least 1.
        rho: exploration parameter ρ > 2 of MF-UCB.
        unproven: compute the bound also if a condition does not hold.

    >>> from mfbandit.problems.builtin import paper_problem
    >>> tails = plays_tail(paper_problem(3), n=100_000, x=2, rho=5)
    >>> float(tails.own.max().round(9)), float(tails.above.max().round(4))
    (0.0, 0.0729)
    """
    rho = positive("rho", rho)
    _at_least_one("n", n)
    _at_least_one("x", x)
    caveats = check_conditions("Lemma 9", [*unmet_rho(rho, above=MIN_RHO), *unmet_model(problem)], unproven)
    parts = partition(problem)
    suboptimal = parts.classes != OPTIMAL
    own = np.where(suboptimal, _own_tail(problem, parts, n, x, rho), 0.0)
    above = np.where(suboptimal & (parts.classes < len(problem.fidelities) - 1), _above_tail(problem, x, rho), 0.0)
    growth = growing_terms(problem, parts, rho * math.log(n))[1]
    threshold = np.where(suboptimal, x * (1 + growth), np.inf)
    return PlayTails(threshold, own.clip(max=1), above.clip(max=1), caveats)


def _own_tail(problem: Problem, parts: Partition, n: int, x: int, rho: float) -> FloatArray:
    if rho <= 1 or n == 1:  # trivial
        return np.ones(problem.arms)
    nu, fidelities = largest_nu(problem.fidelities), len(problem.fidelities)
    with np.errstate(divide="ignore", over="ignore"):
        # κ_k/(x log n)^(ρ−1) is computed as one power: its factors alone could overflow.
        power = (settling_rates(problem, parts) / (rho * x * math.log(n))) ** (rho - 1)
    result: FloatArray = nu * fidelities / (rho - 1) * power + nu * math.exp(-(x * rho - 1) * math.log(n))
    return result


def _above_tail(problem: Problem, x: int, rho: float) -> float:
    if rho <= MIN_RHO:
        return 1.0
    nu, fidelities = largest_nu(problem.fidelities), len(problem.fidelities)
    return fidelities * nu / (rho - 1) * _power(x, 1 - rho) + nu / (rho - 2) * _power(x, 2 - rho)


def _power(base: float, exponent: float) -> float:
    """Compute base^exponent; 0 or infinite if it is too small or too large for a float."""
    logarithm = exponent * math.log(base)
    return math.exp(logarithm) if logarithm < MAX_EXPONENT else math.inf


def best_arm_doubted(fidelities: Fidelities, u: float, rho: float, *, unproven: bool = False) -> float:
    r"""Compute Lemma 7: Σ_{t>u} P(B_{k*}(t) < μ*) ≤ Mν / ((ρ − 2) u^(ρ−2)).

    It bounds the expected number of times after u at which the best arm's upper bound lies below its mean.

    Args:
        fidelities: the fidelities, assumed to be true.
        u: a number of plays, above 0.
        rho: exploration parameter ρ > 2 of MF-UCB.
        unproven: compute it also if ρ ≤ 2, when the bound is infinite.

    >>> from mfbandit.core.concentration import Bounded
    >>> round(best_arm_doubted(Fidelities([1, 10], [0.1, 0], Bounded()), u=10, rho=4), 9)
    0.01
    """
    rho, u = positive("rho", rho), positive("u", u)
    check_conditions("Lemma 7", unmet_rho(rho, above=MIN_RHO), unproven)
    if rho <= MIN_RHO:
        return math.inf
    return len(fidelities) * largest_nu(fidelities) / (rho - 2) * _power(u, 2 - rho)
