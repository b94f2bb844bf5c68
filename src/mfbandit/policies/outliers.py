"""Hopeless results, such as an R² of −1000: raised, so that they do not make all other arms look the same."""

from dataclasses import replace

import numpy as np

from mfbandit._internal.typing import FloatArray
from mfbandit.core import Stats

WIDTHS = 3.0  # below the median, where a result becomes hopeless
FEWEST_ARMS = 5  # that tell what is usual
ROUNDING = 1e-9  # of the median: a narrower width is none


def raised(stats: Stats) -> Stats:
    """Return the statistics with hopeless means raised to the lowest one that is not, at all fidelities.

    That is three widths below the median of the arms' means at the fidelity with results of most arms. A width is the
    distance from the median to the best or to the lower quartile, whichever is larger. Where most arms have the same
    mean, as with rewards of 0 and 1, there is no width, and nothing is hopeless.

    >>> stats = Stats.empty(fidelities=1, arms=5)
    >>> stats.counts[:], stats.sums[:] = 1, [[-1000.0, 0.2, 0.25, 0.4, 0.5]]
    >>> raised(stats).sums.round(2).tolist()
    [[-0.5, 0.2, 0.25, 0.4, 0.5]]
    """
    least = _least(stats)
    with np.errstate(invalid="ignore"):
        low = stats.sums / stats.counts < least
    if not low.any():
        return stats
    sums = np.where(low, least * stats.counts, stats.sums)
    return replace(stats, sums=sums, squares=np.where(low, least * least * stats.counts, stats.squares))


def _least(stats: Stats) -> float:
    """Return the lowest mean that is not hopeless; −∞ where too few arms have a result."""
    m = int((stats.counts > 0).sum(axis=1).argmax())
    seen = stats.counts[m] > 0
    means: FloatArray = stats.sums[m, seen] / stats.counts[m, seen]
    n = len(means)
    if n < FEWEST_ARMS:
        return -np.inf
    quartile, median, best = np.partition(means, [n // 4, n // 2, n - 1])[[n // 4, n // 2, n - 1]].tolist()
    width = max(best - median, median - quartile)
    return float(median - WIDTHS * width) if width > ROUNDING * abs(median) else -np.inf
