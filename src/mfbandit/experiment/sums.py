"""Adding results to the statistics, one by one or many at once."""

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mfbandit._internal.typing import FloatArray, IntArray
from mfbandit.core import Observed, Stats

Places: TypeAlias = tuple[NDArray[np.short], NDArray[np.intc]]


class Batches(NamedTuple):
    """Those of some results that are many observations, and what they add to the statistics; each of shape (B,).

    Args:
        places: among the results.
        numbers: of observations.
        totals: sums of observations.
        squares: sums of their squares.
        unseen: observations that say nothing about the spread.
    """

    places: IntArray
    numbers: IntArray
    totals: FloatArray
    squares: FloatArray
    unseen: IntArray

    @classmethod
    def of(cls, places: Sequence[int], observed: Sequence[Observed]) -> "Batches":
        """Put what single results add side by side.

        >>> Batches.of([2], [Observed(4, 2.0, 1.0, 3)]).numbers.tolist()
        [4]
        """
        numbers, totals, squares, unseen = zip(*observed, strict=True) if observed else ((), (), (), ())
        return cls(
            np.array(places, dtype=np.int64),
            np.array(numbers, dtype=np.int64),
            np.array(totals, dtype=np.float64),
            np.array(squares, dtype=np.float64),
            np.array(unseen, dtype=np.int64),
        )


def add(stats: Stats, at: tuple[int, int], found: Observed) -> Stats:
    """Add a result to the statistics, and return them: others where there was no room for many observations.

    >>> add(Stats.empty(1, 2), (0, 1), Observed(4, 2.0, 1.0, 3)).extra.tolist()
    [[0, 3]]
    """
    stats = stats.with_batches() if found.number > 1 else stats
    stats.counts[at] += found.number
    stats.sums[at] += found.total
    stats.squares[at] += found.squares
    if stats.extra is not None and stats.unseen is not None:
        stats.extra[at] += found.number - 1
        stats.unseen[at] += found.unseen
    return stats


def each(rewards: FloatArray, many: Batches) -> tuple[IntArray, FloatArray, FloatArray]:
    """Return the observations of each result, their sums and sums of squares; shape (N,) each.

    >>> [part.tolist() for part in each(np.array([0.5, 0.25]), Batches.of([1], [Observed(4, 1.0, 0.5, 3)]))]
    [[1, 4], [0.5, 1.0], [0.25, 0.5]]
    """
    numbers, sums, squares = np.ones(len(rewards), dtype=np.int64), rewards.copy(), rewards * rewards
    if len(many.places):
        numbers[many.places], sums[many.places], squares[many.places] = many.numbers, many.totals, many.squares
    return numbers, sums, squares


def add_all(stats: Stats, at: Places, rewards: FloatArray, many: Batches) -> Stats:
    """Add results to the statistics in their order: what one by one gives, to the last bit.

    Args:
        stats: to be added to.
        at: fidelities and arms of the results, shape (N,) each.
        rewards: shape (N,).
        many: those of them that are many observations.
    """
    numbers, sums, squares = each(rewards, many)
    stats = stats.with_batches() if (many.numbers > 1).any() else stats
    np.add.at(stats.counts, at, numbers)
    np.add.at(stats.sums, at, sums)
    np.add.at(stats.squares, at, squares)
    if stats.extra is not None and stats.unseen is not None:
        np.add.at(stats.extra, at, numbers - 1)
        np.add.at(stats.unseen, (at[0][many.places], at[1][many.places]), many.unseen)
    return stats
