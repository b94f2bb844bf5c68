"""Results that fade: counts and sums in which a result weighs half as much after each half-life.

A new result weighs 2^e, where e grows by one in a half-life. What counts is the sum of weights, divided by the weight
of a new one. So nothing has to be done for old results. From time to time all weights are divided by a power of two,
which is exact.
"""

from collections.abc import Callable

import numpy as np

from mfbandit._internal.typing import FloatArray, IntArray
from mfbandit.core import Observed, Stats
from mfbandit.experiment.block_sums import BlockSums
from mfbandit.experiment.memory import LOOKS, HalfLife

LARGEST_EXPONENT = 64.0


class Fading:
    """Faded counts, sums and sums of squares of cells.

    Args:
        memory: the half-life.
        fidelities: M.
        arms: K.

    >>> fading = Fading(HalfLife(plays=1), fidelities=1, arms=2)
    >>> fading.add((0, 0), Observed(8, 4.0, 2.0, 0))
    >>> fading.add((0, 1), Observed(1, 1.0, 1.0, 0))
    >>> faded = fading.seen(Stats.empty(1, 2), pending=0)
    >>> faded.counts.tolist(), faded.sums.tolist()
    ([[4, 1]], [[2.0, 1.0]])
    """

    def __init__(self, memory: HalfLife, fidelities: int, arms: int) -> None:
        self.memory = memory
        self.time: float | None = None  # of the last look at the clock
        self.blocks: BlockSums | None = None  # which fade alike
        self._exponent = 0.0
        self._clock = 0.0  # plays, each with its weight
        # Observations, their sum and sum of squares, results, and observations that say nothing about the spread.
        self._cells: FloatArray = np.zeros((5, fidelities, arms))

    def add(self, cell: tuple[int, int], found: Observed) -> None:
        """Add a result; all others fade by one play, if the half-life is in plays."""
        if self.memory.plays is not None:
            self._fade(1 / self.memory.plays)
        weight = 2.0**self._exponent
        self._cells[(slice(None), *cell)] += weight * np.array(
            [found.number, found.total, found.squares, 1, found.unseen], dtype=np.float64
        )
        self._clock += weight

    @property
    def unit(self) -> float:
        """What a new observation weighs."""
        return float(2.0**self._exponent)

    def is_due(self, now: float) -> bool:
        """Whether enough time has passed to write it down."""
        seconds = self.memory.seconds
        if seconds is None:
            return False
        return self.time is None or (self.memory.fades and now - self.time >= seconds / LOOKS)

    def pass_time(self, now: float) -> None:
        """Let results fade until now; a clock that was put back changes nothing."""
        if self.time is not None and self.memory.seconds is not None and now > self.time:
            self._fade((now - self.time) / self.memory.seconds)
        self.time = now if self.time is None else max(now, self.time)

    def _fade(self, half_lives: float) -> None:
        self._exponent += half_lives
        while self._exponent > LARGEST_EXPONENT:
            halvings = min(self._exponent, 1000.0) // 1
            self._exponent -= halvings
            self._cells *= 2.0**-halvings
            self._clock *= 2.0**-halvings
            if self.blocks is not None:
                self.blocks.scale(2.0**-halvings)

    def grow(self, arms: int) -> None:
        """Make room for new arms."""
        self._cells = np.concatenate([self._cells, np.zeros((*self._cells.shape[:2], arms))], axis=2)

    def forget(self, arm: int) -> None:
        """Begin an arm anew."""
        self._cells[:, :, arm] = 0.0

    @property
    def sums(self) -> tuple[FloatArray, FloatArray]:
        """Numbers of observations and their sums, as they weigh; shape (M, K) each."""
        return self._cells[0], self._cells[1]

    def seen(self, stats: Stats, pending: int) -> Stats:
        """Statistics in which results have faded, with whole numbers of observations.

        Counts are rounded, and sums fit them: means stay as they are. A cell with results keeps one observation at
        least, however old.

        Args:
            stats: all results, not faded.
            pending: how many plays are pending.
        """
        number, total, squares, results, unseen = self._cells / 2.0**self._exponent
        counts = _whole(number, number > 0)
        factor = np.divide(counts, number, out=np.ones_like(number), where=number > 0)
        extra = hidden = None
        if stats.extra is not None:
            extra = counts - np.minimum(_whole(results, number > 0), counts)
            hidden = np.minimum(_whole(unseen, np.zeros_like(number, dtype=np.bool_)), extra)
        faded = Stats(
            counts, total * factor, squares * factor, stats.pending, stats.active, stats.memory, extra, hidden
        )
        faded.__dict__["time"] = 1 + round(self._clock / 2.0**self._exponent) + pending
        return faded


def _whole(values: FloatArray, at_least_one: "np.ndarray[tuple[int, ...], np.dtype[np.bool_]]") -> IntArray:
    rounded: IntArray = np.maximum(np.rint(values).astype(np.int64), at_least_one.astype(np.int64))
    return rounded


Clock = Callable[[], float]
