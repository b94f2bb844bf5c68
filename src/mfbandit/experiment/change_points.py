"""Where changes of means may have been: a few marks for each arm and fidelity, however many results there are."""

from collections.abc import Sequence

import numpy as np

from mfbandit._internal.typing import FloatArray, IntArray
from mfbandit.core import ChangeMark, Concentration, Stats, change, is_checked
from mfbandit.core.drift import FIRST_MARK, SUSPICION, Change, grid, needed, next_check, place
from mfbandit.experiment.sums import Places

Cell = tuple[int, int]  # fidelity and arm


class ChangePoints:
    """Marks of cells, set as their results come: at most some three hundred in each, some hundred in practice.

    >>> points = ChangePoints()
    >>> for n in range(1, 12):
    ...     points.see((0, 1), n - 1, n, 0.5 * n, results=2 * n)
    >>> points.marks((0, 1))
    [ChangeMark(number=8, total=4.0, results=16, place=0), ChangeMark(number=10, total=5.0, results=20, place=1)]
    """

    def __init__(self) -> None:
        self._marks: dict[Cell, list[ChangeMark]] = {}
        self.next: Cell | None = None  # that is to be looked at, as its count has grown enough; nearly always None
        self.due: dict[Cell, int] = {}  # the observations below which nothing has to be done; not known of all cells

    def marks(self, cell: Cell) -> list[ChangeMark]:
        """Those of a cell, the earliest first."""
        return self._marks.get(cell, [])

    def see(self, cell: Cell, before: int, number: int, total: float, results: int) -> None:
        """Set a mark if one is due, and look at the cell next if it has grown enough.

        Args:
            cell: whose result came.
            before: how many observations it had before.
            number: how many it has now.
            total: their sum.
            results: how many results of all arms there are now.
        """
        if number < FIRST_MARK:
            return
        self.due[cell] = min(next_check(number), _GRID[place(number) + 1])
        self.next = cell if cell in self._marks and is_checked(before, number) else None
        at = place(number)
        if _GRID[at] > before:
            self._marks.setdefault(cell, []).append(ChangeMark(number, total, results, at))

    def forget(self, arm: int) -> None:
        """Begin an arm anew."""
        self.due.clear()
        for cell in [cell for cell in self._marks if cell[1] == arm]:
            del self._marks[cell]

    def found(self, cell: Cell, tail: Concentration, stats: Stats, share: float) -> Change | None:
        """The change that the results of a cell make certain, if they do.

        Args:
            cell: whose results they are.
            tail: the noise of its fidelity.
            stats: all results.
            share: of the error that all cells have together.
        """
        least = needed(share)
        found = self._change(cell, tail, stats, least)
        return found if found is not None and found.evidence >= least else None

    def suspected(self, cell: Cell, tail: Concentration, stats: Stats) -> bool:
        """Whether a change may be why the results of a cell do not fit together with others."""
        found = self._change(cell, tail, stats, SUSPICION)
        return found is not None and found.evidence >= SUSPICION

    def _change(self, cell: Cell, tail: Concentration, stats: Stats, least: float) -> Change | None:
        return change(tail, self.marks(cell), int(stats.counts[cell]), float(stats.sums[cell]), least)

    # Many at once

    def see_all(self, stats: Stats, at: Places, numbers: IntArray, totals: FloatArray, results: int) -> None:
        """Set the marks that are due after many results, as :meth:`see` would one by one.

        Args:
            stats: before these results.
            at: fidelities and arms of the results, in their order; shape (N,) each.
            numbers: of their observations; shape (N,).
            totals: their sums; shape (N,).
            results: how many results of all arms there were before.
        """
        cells = at[0].astype(np.int64) * stats.counts.shape[1] + at[1]
        order = np.argsort(cells, kind="stable")
        starts = np.flatnonzero(np.diff(cells[order], prepend=-1))
        ends = np.append(starts[1:], len(order))
        known = stats.counts.ravel()[cells[order[starts]]] if len(order) else starts
        new = np.add.reduceat(numbers[order], starts) if len(order) else starts
        for group in np.flatnonzero(known + new >= FIRST_MARK).tolist():
            rows = order[starts[group] : ends[group]]
            cell = (int(at[0][rows[0]]), int(at[1][rows[0]]))
            counts = np.add.accumulate(np.append(stats.counts[cell], numbers[rows]))
            sums = np.add.accumulate(np.append(stats.sums[cell], totals[rows]))  # in this order, as one by one
            places = np.searchsorted(_GRID, counts, side="right")
            due = np.flatnonzero(np.diff(places) > 0)
            columns = counts[due + 1], sums[due + 1], results + 1 + rows[due], places[due + 1] - 1
            self.due.pop(cell, None)
            if len(due):
                marks = zip(*(column.tolist() for column in columns), strict=True)
                self._marks.setdefault(cell, []).extend(ChangeMark(*mark) for mark in marks)


_GRID: Sequence[int] = grid()
