"""Arms that were begun anew: what counts no more, and which arms they are from then on."""

import numpy as np

from mfbandit._internal.typing import IntArray
from mfbandit.core import Stats


class Forgotten:
    """The arms that were begun anew, in order.

    An arm that is begun anew is another arm for claims about the best one: whoever begins an arm anew after bad luck
    must not get another chance for nothing.

    Args:
        fidelities: M.
        first: how many arms there were at the beginning.

    >>> known = Forgotten(fidelities=1, first=2)
    >>> known.came(2)
    >>> known.later
    ()
    >>> known.number(0, results=7)
    >>> known.came(3)
    >>> known.later, known.arms
    (((0, 2), (3, 3)), [(7, 0)])
    """

    def __init__(self, fidelities: int, first: int) -> None:
        self._first = first
        self._numbered = 0  # arms that came later or were begun anew
        self._later: dict[int, int] = {}
        self.arms: list[tuple[int, int]] = []  # how many results there were before, and the arm
        self.results: IntArray = np.zeros(fidelities, dtype=np.int64)
        self.observations: IntArray = np.zeros(fidelities, dtype=np.int64)

    @property
    def later(self) -> tuple[tuple[int, int], ...]:
        """Which of the later arms each is, where it is not the place of its index."""
        if not self.arms:  # nearly always
            return ()
        return tuple(sorted((arm, at) for arm, at in self._later.items() if at != arm - self._first + 1))

    def came(self, arm: int) -> None:
        """A new arm."""
        self._numbered += 1
        self._later[arm] = self._numbered

    def number(self, arm: int, results: int) -> None:
        """An arm is another one from now on."""
        self.arms.append((results, arm))
        self.came(arm)

    def forget(self, arm: int, results: int, stats: Stats) -> None:
        """Begin an arm anew.

        Args:
            arm: its index.
            results: how many results of all arms there are.
            stats: all results; those of the arm are taken out.
        """
        self.results += stats.results[:, arm]
        self.observations += stats.counts[:, arm]
        clear_arm(stats, arm)
        self.number(arm, results)


def clear_arm(stats: Stats, arm: int) -> None:
    """Take the results of an arm out of statistics; pending plays stay.

    >>> stats = Stats.empty(1, 2)
    >>> stats.counts[:] = 5
    >>> clear_arm(stats, 0)
    >>> stats.counts.tolist()
    [[0, 5]]
    """
    for array in (stats.counts, stats.sums, stats.squares, stats.extra, stats.unseen):
        if array is not None:
            array[:, arm] = 0
