"""The gaps Δ, the classes K^(m) of arms, and Assumption 1."""

from dataclasses import dataclass

import numpy as np

from mfbandit._internal.formatting import columns, readable
from mfbandit._internal.typing import BoolArray, FloatArray, IntArray
from mfbandit.core import Fidelities
from mfbandit.problems import Problem

OPTIMAL = -1  # in place of a class, for optimal arms


def gaps(problem: Problem) -> FloatArray:
    r"""Compute the gaps Δ^(m)_k = μ* − μ^(m)_k − ζ_m.

    The arm's mean at the highest fidelity is at most μ^(m)_k + ζ_m. So where Δ^(m)_k > 0, plays at fidelity m alone can
    show that the arm is not the best.

    Returns:
        Shape (M, K), in units of reward; the last row is μ* − μ^(M)_k.

    >>> from mfbandit.problems.builtin import misleading_problem
    >>> gaps(misleading_problem(arms=3)).round(2).tolist()
    [[-0.2, -0.1, 0.0], [-0.04, -0.02, 0.0], [0.2, 0.1, 0.0]]
    """
    known = np.array(problem.fidelities.known_biases)[:, None]
    shortfall: FloatArray = problem.best_mean - problem.means - known
    return shortfall


@dataclass(frozen=True, eq=False)
class Partition:
    r"""The classes of the arms. Printed, it is a table.

    Args:
        classes: [k], the fidelity from 0 that settles each arm; −1 for the optimal arms; shape (K,).
        first: whether the arm is in K_1, that is, Δ^(ℓ)_k ≤ 0 at every fidelity below its class; shape (K,).
        fidelities: M.
    """

    classes: IntArray
    first: BoolArray
    fidelities: int

    @property
    def optimal(self) -> IntArray:
        """The optimal arms, which have no class; shape (number of them,)."""
        return np.flatnonzero(self.classes == OPTIMAL)

    @property
    def sizes(self) -> IntArray:
        """The number of arms in each class; shape (M,)."""
        sizes: IntArray = np.bincount(self.classes[self.classes != OPTIMAL], minlength=self.fidelities)
        return sizes

    def members(self, m: int) -> IntArray:
        """Return the arms of K^(m); shape (number of them,).

        >>> from mfbandit.problems.builtin import paper_problem
        >>> len(partition(paper_problem(1)).members(2))
        61
        """
        return np.flatnonzero(self.classes == m)

    def __str__(self) -> str:
        rows = [("class", "arms", "K_1", "K_2")]
        for m, size in enumerate(self.sizes.tolist()):
            first = int(self.first[self.classes == m].sum())
            rows.append((f"fidelity {m}", f"{size:,}", f"{first:,}", f"{size - first:,}"))
        return "\n".join(columns([*rows, ("optimal", f"{len(self.optimal):,}", "", "")]))


def partition(problem: Problem) -> Partition:
    r"""Compute the classes of Section 4: which fidelity settles which arm under MF-UCB.

        K^(m) = {k : Δ^(m)_k > 2γ_m and Δ^(ℓ)_k ≤ 2γ_ℓ for all ℓ < m}  for m < M,
        K^(M) = the other arms that are not optimal.

    K^(m)_1 holds those of K^(m) with Δ^(ℓ)_k ≤ 0 for all ℓ < m, and K^(m)_2 the others. On K^(m)_1, MF-UCB is optimal
    up to constants (Theorem 4).

    >>> from mfbandit.problems.builtin import misleading_problem
    >>> partition(misleading_problem(arms=3)).classes.tolist()  # no low fidelity settles an arm
    [2, 2, -1]
    """
    shortfall = gaps(problem)
    settles = np.empty(shortfall.shape, dtype=np.bool_)
    settles[:-1] = shortfall[:-1] > 2 * np.array(problem.fidelities.gammas)[:, None]
    settles[-1] = True
    classes = settles.argmax(axis=0)
    positive_below = (shortfall > 0).argmax(axis=0) < classes  # the gap is positive at the class itself
    classes[problem.optimal] = OPTIMAL
    first = ~positive_below & (classes != OPTIMAL)
    return Partition(classes, first, len(problem.fidelities))


@dataclass(frozen=True, eq=False)
class Decay:
    """The two sides of Assumption 1 for each m < M; arrays of shape (M − 1,). Printed, it is a table."""

    left: FloatArray
    right: FloatArray

    @property
    def holds(self) -> BoolArray:
        """Where the left side is at most the right one; shape (M − 1,)."""
        holds: BoolArray = self.left <= self.right
        return holds

    def __str__(self) -> str:
        rows = [
            (f"0 to {m}", readable(left), readable(right), "yes" if holds else "no")
            for m, (left, right, holds) in enumerate(zip(self.left, self.right, self.holds, strict=True))
        ]
        return "\n".join(columns([("fidelities", "sum 1/psi", "1/psi of next", "holds"), *rows]))


def decay_condition(fidelities: Fidelities) -> Decay:
    r"""Compute both sides of Assumption 1: Σ_{i≤m} 1/ψ(ζ_i) ≤ 1/ψ(ζ_{m+1}) for all m < M.

    It says that biases decay fast enough. MF-UCB works without it. Theorem 2 needs it to leave the plays below an arm's
    class out of its sum. The last right side is infinite, as ζ_M = 0.

    >>> from mfbandit.core.concentration import SubGaussian
    >>> fid = Fidelities([1, 4, 16, 64], [0.5, 0.25, 0.2, 0], SubGaussian(1.0))
    >>> print(decay_condition(fid))
    fidelities  sum 1/psi  1/psi of next  holds
    0 to 0              8             32    yes
    0 to 1             40             50    yes
    0 to 2             90            inf    yes
    """
    left, right = fidelities.decay_sides
    return Decay(np.array(left), np.array(right))
