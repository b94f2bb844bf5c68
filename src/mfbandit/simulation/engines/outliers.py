"""Hopeless results raised, as ``policies/outliers.py`` does it; the first n arms have results."""

import numpy as np

from mfbandit._internal.typing import FloatArray, IntArray
from mfbandit.policies.outliers import FEWEST_ARMS, ROUNDING, WIDTHS
from mfbandit.simulation.engines.chain_fit import ArmResults
from mfbandit.simulation.engines.kernels import compiled


@compiled
def fullest_row(counts: IntArray, n: int) -> int:
    """The row with results of most arms, the lowest among ties."""
    most, chosen = -1, 0
    for r in range(counts.shape[1]):
        seen = 0
        for arm in range(n):
            if counts[arm, r] > 0:
                seen += 1
        if seen > most:
            most, chosen = seen, r
    return chosen


@compiled
def ranked(values: FloatArray, n: int, rank: int) -> float:
    """The value of this rank among the first n, from 0; they are put in another order (quickselect)."""
    start, end = 0, n - 1
    while start < end:
        pivot, low, high = values[(start + end) // 2], start, end
        while low <= high:
            while values[low] < pivot:
                low += 1
            while values[high] > pivot:
                high -= 1
            if low <= high:
                values[low], values[high] = values[high], values[low]
                low, high = low + 1, high - 1
        if rank <= high:
            end = high
        elif rank >= low:
            start = low
        else:
            break
    return values[rank]


@compiled
def least_hopeful(counts: IntArray, means: FloatArray, row: int, n: int, room: FloatArray) -> float:
    """The lowest mean that is not hopeless; −∞ where too few arms have a result in the row."""
    seen, best = 0, -np.inf
    for arm in range(n):
        if counts[arm, row] > 0:
            room[seen] = means[arm, row]
            best = max(best, means[arm, row])
            seen += 1
    if seen < FEWEST_ARMS:
        return -np.inf
    median = ranked(room, seen, seen // 2)
    width = max(best - median, median - ranked(room, seen // 2, seen // 4))
    return median - WIDTHS * width if width > ROUNDING * abs(median) else -np.inf


@compiled
def raise_hopeless(told: ArmResults, means: FloatArray, raised: ArmResults, row: int, n: int, room: FloatArray) -> None:
    """Write into ``raised`` what was told of the first n arms, with hopeless means raised.

    Args:
        told: what was told.
        means: its means, infinite where there are none; shape (K, R).
        raised: to write to; its counts are those of ``told``.
        row: where most arms have results.
        n: how many arms have results.
        room: to work in; shape (K,).
    """
    least = least_hopeful(told.counts, means, row, n, room)
    for arm in range(n):
        for r in range(means.shape[1]):
            if means[arm, r] < least:
                plays = told.counts[arm, r]
                raised.sums[arm, r], raised.squares[arm, r] = least * plays, least * least * plays
            else:
                raised.sums[arm, r], raised.squares[arm, r] = told.sums[arm, r], told.squares[arm, r]
