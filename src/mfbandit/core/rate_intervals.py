r"""Intervals for rates that hold at any time, by the Beta mixture of :class:`~mfbandit.core.evidence.BoundedCells`.

All θ belong to the interval for which the evidence, that the mean is below θ or above it, is less than a level. With a
level of log(2/α) it misses the mean at some time in at most α of all runs.
"""

import numpy as np

from mfbandit._internal.typing import BoolArray, FloatArray, IntArray
from mfbandit.core.concentration import Rate
from mfbandit.core.evidence import BoundedCells

HALVINGS = 50  # of an interval no longer than 1


def rate_intervals(counts: IntArray, sums: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
    """Compute the ends of the intervals, with at most 1e-15 added.

    Args:
        counts: n, the number of observations of each arm, at least 1.
        sums: of these observations.
        level: log E at which a rate is ruled out.

    >>> low, high = rate_intervals(np.array([1000]), np.array([40.0]), level=6.0)
    >>> low.round(4).tolist(), high.round(4).tolist()
    ([0.0184], [0.0733])
    """
    found = BoundedCells(counts, sums, Rate())
    means = np.clip(sums / counts, 0.0, 1.0)
    return _end(found, means, np.zeros(means.shape), level, below=False), _end(
        found, means, np.ones(means.shape), level, below=True
    )


def _end(found: BoundedCells, inside: FloatArray, outside: FloatArray, level: float, *, below: bool) -> FloatArray:
    """Halve the way from the mean to the end of the range; log E rises along it."""
    for _ in range(HALVINGS):
        middle = 0.5 * (inside + outside)
        out: BoolArray = found.at(middle, below=below)[0] >= level
        inside, outside = np.where(out, inside, middle), np.where(out, middle, outside)
    return outside  # on the safe side
