"""Results by block, such as days: what a block does to all arms alike is estimated, and taken out of the statistics."""

from array import array
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from mfbandit._internal.typing import FloatArray, IntArray
from mfbandit.core import Fidelities, Observed, Stats, block_effects, block_spread, has_range

MAX_BLOCKS_COMPARED = 400  # beyond them it takes too long to say how sure one is
MAX_CELLS_COMPARED = 4_000_000
ROUNDING = 1e-12  # relative: what is lost by it makes no observation less


@dataclass(frozen=True, eq=False)
class BlockCells:
    """Results by fidelity, arm and block, of one moment; arrays of shape (N,).

    Args:
        fidelities: indices of fidelities.
        arms: indices of arms.
        blocks: numbers of blocks, in the order in which they came.
        numbers: of observations, above 0; no whole numbers where results fade.
        sums: of observations.
    """

    fidelities: IntArray
    arms: IntArray
    blocks: IntArray
    numbers: FloatArray
    sums: FloatArray

    def rows(self, arms: int) -> IntArray:
        """Return one number for each arm at each fidelity: to the fit they are arms of their own, of the same blocks.

        Args:
            arms: K.
        """
        return self.fidelities * arms + self.arms

    @property
    def too_many(self) -> str:
        """Why it cannot be said how sure one is; empty where it can."""
        blocks = int(self.blocks.max(initial=0)) + 1
        rows = len(np.unique(self.rows(int(self.arms.max(initial=0)) + 1)))
        if blocks <= MAX_BLOCKS_COMPARED and blocks * rows <= MAX_CELLS_COMPARED:
            return ""
        return f"{blocks:,} blocks of {rows:,} arms are too many to be compared"

    def compared_with(self, stats: Stats, arm: int) -> Stats:
        """Return statistics with fewer observations of all other arms: as many as tell as much about the difference.

        n observations of an arm that was seen on other days than the one it is compared with have the variance
        σ²(1/n + δ), where δ is what is not known about those days. That is the variance of 1/(1/n + δ) observations.

        Args:
            stats: adjusted for blocks.
            arm: that the others are compared with, at the highest fidelity that it has results at.
        """
        there = np.flatnonzero(stats.counts[:, arm])
        if not len(there):
            return stats
        arms = stats.counts.shape[1]
        return self._compared(stats, lambda rows: np.full(len(rows), int(there[-1]) * arms + arm))

    def fidelities_compared(self, stats: Stats) -> Stats:
        """Return statistics with as many observations as tell how an arm differs from itself at the highest fidelity.

        Args:
            stats: adjusted for blocks.
        """
        fidelities, arms = stats.counts.shape
        seen = stats.counts[-1] > 0

        def itself(rows: IntArray) -> IntArray:
            return np.where(seen[rows % arms], (fidelities - 1) * arms + rows % arms, rows)

        return with_counts(stats, np.zeros_like(stats.counts)) if self.too_many else self._compared(stats, itself)

    def _compared(self, stats: Stats, with_row: Callable[[IntArray], IntArray]) -> Stats:
        fidelities, arms = stats.counts.shape
        rows, places = np.unique(self.rows(arms), return_inverse=True)
        like = np.searchsorted(rows, with_row(rows))
        added = np.zeros(fidelities * arms)
        added[rows] = block_spread(places, self.blocks, self.numbers, like)
        known = np.maximum(stats.counts, 1)
        worth = 1.0 / (1.0 / known + added.reshape(fidelities, arms))
        return with_counts(stats, np.minimum(np.floor(worth * (1 + ROUNDING)).astype(np.int64), stats.counts))


def with_counts(stats: Stats, counts: IntArray) -> Stats:
    """Return statistics of the same means with fewer observations.

    Args:
        stats: what there is.
        counts: observations, at most those that there are; shape (M, K).

    >>> stats = replace(Stats.empty(1, 1), counts=np.array([[4]]), sums=np.array([[2.0]]))
    >>> with_counts(stats, np.array([[2]])).sums.tolist()
    [[1.0]]
    """
    kept = counts / np.maximum(stats.counts, 1)
    extra = None if stats.extra is None else counts - np.minimum(stats.results, counts)
    unseen = None if stats.unseen is None or extra is None else np.minimum(stats.unseen, extra)
    sums, squares = stats.sums * kept, stats.squares * kept
    return replace(stats, counts=counts, sums=sums, squares=squares, extra=extra, unseen=unseen)


class BlockSums:
    """Numbers and sums of observations by fidelity, arm and block.

    Results that were told without a block, if there are any, are one more block.

    Args:
        numbers: of earlier observations, without a block; shape (M, K).
        sums: of these; shape (M, K).

    >>> known = BlockSums(np.zeros((1, 2)), np.zeros((1, 2)))
    >>> for block, lift in (("monday", 0.0), ("sunday", 0.3)):
    ...     known.add(block, (0, 0), Observed(100, 40.0 + 100 * lift, 40.0, 0))
    ...     known.add(block, (0, 1), Observed(100, 50.0 + 100 * lift, 50.0, 0))
    >>> known.effects().round(3).tolist()
    [-0.15, 0.15]
    """

    def __init__(self, numbers: FloatArray, sums: FloatArray) -> None:
        self.names: dict[str | None, int] = {}
        self._places: dict[tuple[int, int, int], int] = {}
        self._fidelities, self._arms, self._blocks = array("q"), array("q"), array("q")
        self._numbers, self._sums = array("d"), array("d")
        self._taken_out: tuple[float, FloatArray, FloatArray] | None = None
        for m, arm in zip(*(part.tolist() for part in np.nonzero(numbers)), strict=True):
            self._add(None, (m, arm), float(numbers[m, arm]), float(sums[m, arm]))

    @property
    def adjusts(self) -> bool:
        """Whether there is anything to be taken out: not with one block."""
        return len(self.names) > 1

    def add(self, block: str | None, cell: tuple[int, int], found: Observed, weight: float = 1.0) -> None:
        """Add a result.

        Args:
            block: its name; None where it was told without one.
            cell: its fidelity and arm.
            found: what was observed.
            weight: of an observation.
        """
        self._add(block, cell, weight * found.number, weight * found.total)

    def _add(self, block: str | None, cell: tuple[int, int], number: float, total: float) -> None:
        at = self.names.setdefault(block, len(self.names))
        place = self._places.setdefault((*cell, at), len(self._numbers))
        if place == len(self._numbers):
            for column, value in zip((self._fidelities, self._arms, self._blocks), (*cell, at), strict=True):
                column.append(value)
            self._numbers.append(0.0)
            self._sums.append(0.0)
        self._numbers[place] += number
        self._sums[place] += total
        self._taken_out = None

    def scale(self, factor: float) -> None:
        """Multiply all weights by a power of two, as old results fade."""
        for column in (self._numbers, self._sums):
            np.frombuffer(column)[:] *= factor
        self._taken_out = None

    def forget(self, arm: int) -> None:
        """Begin an arm anew."""
        mine = np.frombuffer(self._arms, np.int64) == arm
        for column in (self._numbers, self._sums):
            np.frombuffer(column)[mine] = 0.0
        self._taken_out = None

    def cells(self, unit: float = 1.0) -> BlockCells:
        """Return a copy of what there is.

        Args:
            unit: what a new result weighs.
        """
        numbers = np.frombuffer(self._numbers) / unit
        there = numbers > 0
        columns = (self._fidelities, self._arms, self._blocks)
        fidelities, arms, blocks = (np.frombuffer(column, np.int64)[there] for column in columns)
        return BlockCells(fidelities, arms, blocks, numbers[there], np.frombuffer(self._sums)[there] / unit)

    def effects(self, unit: float = 1.0) -> FloatArray:
        """Return by how much results in each block are above those elsewhere, in the order of ``names``.

        Args:
            unit: what a new observation weighs.
        """
        cells = self.cells(unit)
        found = block_effects(cells.rows(self._arm_limit), cells.blocks, cells.numbers, cells.sums)
        return np.append(found, np.zeros(len(self.names) - len(found)))

    def adjusted(self, stats: Stats, fidelities: Fidelities, unit: float = 1.0) -> Stats:
        """Return the same counts, with sums of results without the effects of blocks; the same where there is one.

        Means stay within the range of rewards, if there is one.

        Args:
            stats: all results, faded or not.
            fidelities: which say what range rewards have.
            unit: what a new observation weighs.
        """
        if not self.adjusts:
            return stats
        if self._taken_out is None or self._taken_out[0] != unit or self._taken_out[1].shape != stats.counts.shape:
            self._taken_out = (unit, *self._found(stats.counts.shape, unit))
        _, shift, change = self._taken_out
        counts = np.maximum(stats.counts, 1)
        sums = _within_range(stats.sums - stats.counts * shift, stats.counts, fidelities)
        squares = np.maximum(stats.squares + stats.counts * change, sums * sums / counts)
        adjusted = replace(stats, sums=sums, squares=squares)
        adjusted.__dict__["time"] = stats.time
        return adjusted

    def _found(self, shape: tuple[int, ...], unit: float) -> tuple[FloatArray, FloatArray]:
        """What blocks add to an observation of each arm on average, and to its square once that is taken out."""
        cells = self.cells(unit)
        effects = self.effects(unit)[cells.blocks]
        at = (cells.fidelities, cells.arms)
        numbers, shift, change = np.zeros(shape), np.zeros(shape), np.zeros(shape)
        np.add.at(numbers, at, cells.numbers)
        np.add.at(shift, at, cells.numbers * effects)
        np.add.at(change, at, effects * (effects * cells.numbers - 2.0 * cells.sums))
        known = np.maximum(numbers, np.finfo(np.float64).tiny)
        return shift / known, change / known

    @property
    def _arm_limit(self) -> int:
        return 1 + max(self._arms, default=0)


def _within_range(sums: FloatArray, counts: IntArray, fidelities: Fidelities) -> FloatArray:
    if fidelities.concentration is None:
        return sums
    inside = sums.copy()
    for m, tail in enumerate(fidelities.tails):
        if has_range(tail):
            inside[m] = np.clip(sums[m], tail.low * counts[m], tail.high * counts[m])
    return inside
