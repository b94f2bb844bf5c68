"""What was spent at each fidelity over time, in a fixed number of steps that grow with the experiment."""

import numpy as np
from numpy.typing import NDArray

from mfbandit._internal.typing import FloatArray

STEPS = 256


class Timeline:
    """Spending by time and fidelity. However long it runs, it has at most ``STEPS`` steps.

    Args:
        fidelities: how many there are.

    >>> timeline = Timeline(fidelities=2)
    >>> timeline.add(1000.0, 0, 1.0)
    >>> timeline.add(1000.0 + 3600, 1, 10.0)
    >>> timeline.width, timeline.spent.sum(axis=1).tolist()
    (16.0, [1.0, 10.0])
    """

    def __init__(self, fidelities: int) -> None:
        self.start = 0.0
        self.width = 1.0  # seconds
        self.spent = np.zeros((fidelities, STEPS))
        self._empty = True

    def add(self, time: float, fidelity: int, cost: float) -> None:
        """Something was paid for."""
        if self._empty:
            self.start, self._empty = time, False
        step = int((time - self.start) / self.width)
        while step >= STEPS:
            self._coarsen()
            step = int((time - self.start) / self.width)
        self.spent[fidelity, max(step, 0)] += cost  # a clock may be set back

    def add_all(self, times: FloatArray, fidelities: NDArray[np.integer], costs: FloatArray) -> None:
        """Much was paid for.

        >>> timeline = Timeline(fidelities=1)
        >>> timeline.add_all(np.array([0.0, 255.0, 256.0]), np.array([0, 0, 0]), np.array([1.0, 1.0, 1.0]))
        >>> timeline.width, timeline.spent[0, [0, 127, 128]].tolist()
        (2.0, [1.0, 1.0, 1.0])
        """
        if not len(times):
            return
        if self._empty:
            self.start, self._empty = float(times[0]), False
        while (times.max() - self.start) / self.width >= STEPS:
            self._coarsen()
        steps = np.maximum(((times - self.start) / self.width).astype(np.int64), 0)
        np.add.at(self.spent, (fidelities, steps), costs)

    def series(self) -> tuple[list[float], list[list[float]]]:
        """Times (seconds since 1970), and what had been spent by then at each fidelity; the steps used so far.

        >>> timeline = Timeline(fidelities=1)
        >>> timeline.add(1000.0, 0, 2.0)
        >>> timeline.series()
        ([1000.0, 1001.0], [[0.0, 2.0]])
        """
        used = int(np.flatnonzero(self.spent.any(axis=0)).max(initial=-1)) + 1
        times = [self.start + self.width * step for step in range(used + 1)]
        totals = np.cumsum(self.spent[:, :used], axis=1)
        return times, [[0.0, *row] for row in totals.tolist()]

    def _coarsen(self) -> None:
        pairs = self.spent.reshape(len(self.spent), STEPS // 2, 2).sum(axis=2)
        self.spent = np.hstack([pairs, np.zeros_like(pairs)])
        self.width *= 2
