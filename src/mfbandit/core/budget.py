"""Sums of costs, and whether they fit into a capital; every part of the package uses these, to the last bit."""

from typing import TypeVar

import numpy as np

from mfbandit._internal.typing import FloatArray, IntArray

ROUNDING = 1e-12  # allowed for, as a share of the capital
Amount = TypeVar("Amount", float, FloatArray)


def limit(capital: Amount) -> Amount:
    """Return the largest sum of costs that fits into a capital, with a tolerance for rounding.

    >>> 0.1 * 3 <= 0.3, 0.1 * 3 <= limit(0.3)
    (False, True)
    """
    return capital * (1 + ROUNDING)


def spending(fidelities: IntArray, costs: FloatArray) -> FloatArray:
    """Compute the capital spent after each play, shape (N,), as Σ_m λ_m·(plays at m): rounding does not accumulate.

    >>> spending(np.array([0, 0, 1]), np.array([0.1, 1.0])).round(12).tolist()
    [0.1, 0.2, 1.2]
    """
    spent = np.zeros(len(fidelities))
    for m, cost in enumerate(costs):
        spent += cost * np.cumsum(fidelities == m)
    return spent
