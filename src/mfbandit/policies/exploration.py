r"""The exploration level of an arm, log(1 + S/H_k), with capital in place of plays (after Ada-UCB).

S is all capital spent, c_k is the capital spent on arm k, and H_k = Σ_j min(c_k, sqrt(c_k c_j)). An arm on which little
was spent has a small H_k and a high level. An arm on which much was spent has a level near log 2.

Square roots are rounded to multiples of 2⁻³⁰·sqrt(λ_1), so that their sums are sums of integers. Such sums are the same
in any order, whether they are updated play by play or computed at once.

Reference:
    Lattimore, Refining the Confidence Level for Optimistic Bandit Strategies, JMLR 2018.
"""

import math
from collections.abc import Sequence

import numpy as np

from mfbandit._internal.typing import FloatArray, IntArray
from mfbandit.core import Fidelities
from mfbandit.errors import InvalidArgument

RESOLUTION = 2.0**-30  # of square roots, in units of sqrt(λ_1)
MAX_SUM_OF_ROOTS = 2.0**32  # so that the sum, in units of RESOLUTION, fits into 63 bits


def roots(plays: IntArray, fidelities: Fidelities) -> IntArray:
    r"""Compute sqrt(c_k/λ_1) in units of ``RESOLUTION``, with c_k = Σ_m λ_m T^(m)_k; shape (K,).

    >>> (roots(np.array([[4, 1], [0, 0]]), Fidelities(costs=[1, 10])) * RESOLUTION).tolist()
    [2.0, 1.0]
    """
    spent = np.zeros(plays.shape[1])
    for cost, row in zip(fidelities.costs, plays, strict=True):
        spent += cost * row
    exact = np.sqrt(spent / fidelities.costs[0])
    if not exact.sum() < MAX_SUM_OF_ROOTS:
        raise InvalidArgument(costs_too_far_apart(fidelities.costs))
    rounded: IntArray = np.floor(exact / RESOLUTION + 0.5).astype(np.int64)
    return rounded


def costs_too_far_apart(costs: Sequence[float]) -> str:
    """Return the message for sums that 63-bit integers cannot hold.

    >>> costs_too_far_apart([1, 1e20])
    'costs must not be so far apart for so many arms and so much capital, got [1, 1e+20]'
    """
    return f"costs must not be so far apart for so many arms and so much capital, got {list(costs)}"


def fits_in_integers(arms: int, capital: float, costs: Sequence[float]) -> bool:
    """Check that the sums of roots fit into 63-bit integers until the capital is spent, on whichever arms.

    >>> fits_in_integers(500, 2e7, [1, 10, 1000]), fits_in_integers(500, 1e25, [1, 10, 1000])
    (True, False)
    """
    return math.sqrt(arms * (capital / costs[0])) < MAX_SUM_OF_ROOTS


def overlaps(root: IntArray) -> IntArray:
    r"""Compute Σ_j min(root_k, root_j), in units of ``RESOLUTION``; shape (K,). H_k is λ_1·root_k times this.

    >>> overlaps(np.array([3, 1, 2])).tolist()
    [6, 3, 5]
    """
    order = np.argsort(root, kind="stable")
    ordered = root[order]
    below = np.cumsum(ordered)
    result = np.empty_like(root)
    result[order] = below + ordered * np.arange(len(root) - 1, -1, -1)
    return result


def exploration_levels(plays: IntArray, fidelities: Fidelities) -> FloatArray:
    r"""Compute f_k = log(1 + S/H_k), infinite for arms that were never played; shape (K,).

    >>> exploration_levels(np.array([[4, 1, 0]]), Fidelities(costs=[1])).round(4).tolist()  # H: 6, 2, -
    [0.6061, 1.2528, inf]
    """
    root = roots(plays, fidelities)
    overlap = overlaps(root)
    spent = total_spent(plays, fidelities)
    shares = [
        spent / fidelities.costs[0] / ((a * RESOLUTION) * (b * RESOLUTION)) if a else math.inf
        for a, b in zip(root.tolist(), overlap.tolist(), strict=True)
    ]
    return np.array([math.log(1.0 + share) if share < math.inf else math.inf for share in shares])


def total_spent(plays: IntArray, fidelities: Fidelities) -> float:
    r"""Compute S = Σ_m λ_m Σ_k T^(m)_k, the cost of all plays.

    >>> total_spent(np.array([[4, 1], [0, 2]]), Fidelities(costs=[1, 10]))
    25.0
    """
    spent = 0.0
    for cost, row in zip(fidelities.costs, plays, strict=True):
        spent += cost * int(row.sum())
    return spent
