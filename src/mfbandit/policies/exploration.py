r"""How much exploration an arm has earned: log(1 + S/H_k), with capital in place of plays (after Ada-UCB).

S is all capital spent, c_k what was spent on arm k, and H_k = Σ_j min(c_k, sqrt(c_k c_j)). An arm that took little has
a small H_k and a high level; one on which much was spent needs no more than log 2.

Square roots are rounded to multiples of 2⁻³⁰·sqrt(λ_1), so that their sums are sums of whole numbers: the same in any
order, kept up play by play or made anew.

Reference:
    Lattimore, Refining the Confidence Level for Optimistic Bandit Strategies, JMLR 2018.
"""

import math
from collections.abc import Sequence

import numpy as np

from mfbandit._internal.typing import FloatArray, IntArray
from mfbandit.core import Fidelities
from mfbandit.errors import InvalidArgument

GRAIN = 2.0**-30
LARGEST = 2.0**32  # of a sum of roots, so that in grains it fits 63 bits


def roots(plays: IntArray, fidelities: Fidelities) -> IntArray:
    r"""sqrt(c_k/λ_1) in grains, c_k = Σ_m λ_m T^(m)_k; shape (K,).

    >>> (roots(np.array([[4, 1], [0, 0]]), Fidelities(costs=[1, 10])) * GRAIN).tolist()
    [2.0, 1.0]
    """
    spent = np.zeros(plays.shape[1])
    for cost, row in zip(fidelities.costs, plays, strict=True):
        spent += cost * row
    exact = np.sqrt(spent / fidelities.costs[0])
    if not exact.sum() < LARGEST:
        raise InvalidArgument(too_far_apart(fidelities.costs))
    rounded: IntArray = np.floor(exact / GRAIN + 0.5).astype(np.int64)
    return rounded


def too_far_apart(costs: Sequence[float]) -> str:
    """The sentence for sums that whole numbers cannot hold.

    >>> too_far_apart([1, 1e20])
    'costs must not be so far apart for so many arms and so much capital, got [1, 1e+20]'
    """
    return f"costs must not be so far apart for so many arms and so much capital, got {list(costs)}"


def fits(arms: int, capital: float, costs: Sequence[float]) -> bool:
    """Whether the sums stay within bounds until so much is spent, however it is spread.

    >>> fits(500, 2e7, [1, 10, 1000]), fits(500, 1e25, [1, 10, 1000])
    (True, False)
    """
    return math.sqrt(arms * (capital / costs[0])) < LARGEST


def overlaps(root: IntArray) -> IntArray:
    r"""Σ_j min(root_k, root_j), in grains; shape (K,). H_k is λ_1·root_k times this.

    >>> overlaps(np.array([3, 1, 2])).tolist()
    [6, 3, 5]
    """
    order = np.argsort(root, kind="stable")
    ordered = root[order]
    below = np.cumsum(ordered)
    result = np.empty_like(root)
    result[order] = below + ordered * np.arange(len(root) - 1, -1, -1)
    return result


def efforts(plays: IntArray, fidelities: Fidelities) -> FloatArray:
    r"""f_k = log(1 + S/H_k), infinite for arms that were never played; shape (K,).

    >>> efforts(np.array([[4, 1, 0]]), Fidelities(costs=[1])).round(4).tolist()  # H: 6, 2, -
    [0.6061, 1.2528, inf]
    """
    root = roots(plays, fidelities)
    overlap = overlaps(root)
    spent = 0.0
    for cost, row in zip(fidelities.costs, plays, strict=True):
        spent += cost * int(row.sum())
    shares = [
        spent / fidelities.costs[0] / ((a * GRAIN) * (b * GRAIN)) if a else math.inf
        for a, b in zip(root.tolist(), overlap.tolist(), strict=True)
    ]
    return np.array([math.log(1.0 + share) if share < math.inf else math.inf for share in shares])
