"""How sure it was as capital was spent: the claim about the best arm after some of the results, in order."""

import math
from typing import NamedTuple

import numpy as np

from mfbandit._internal.typing import BoolArray
from mfbandit.core import Fidelities, Roster, Stats, confidence
from mfbandit.core.claims import centres
from mfbandit.experiment.history import NextResults

POINTS = 20  # at most; with more, every other one is dropped


class TrendPoint(NamedTuple):
    """What could be said once so much was spent.

    Args:
        spent: on results, in units of capital.
        level: how sure it was.
        could_lose: the possible loss, in units of reward; infinite where nothing was known.
    """

    spent: float
    level: float
    could_lose: float


class ConfidenceTrend:
    """Level and possible loss over spending, by the biases and noise that are assumed now.

    It is computed from the results alone, so that it is the same after a restart. From one point to the next there is
    the same number of results, which doubles as the experiment grows. A point is about the arm with the largest centre
    at that time, among those that took part then.

    Args:
        level: at which the possible loss is given.

    >>> from mfbandit import UCB, Bounded, Experiment
    >>> exp = Experiment(UCB(), arms=2, fidelities=Fidelities([1], concentration=Bounded()))
    >>> _ = exp.add_results([(k % 2, 0, k % 2, None) for k in range(40)])
    >>> trend = ConfidenceTrend()
    >>> while trend.lags(results=40):
    ...     trend.add(exp.folded.next_results(*trend.wanted), counted=(0,))
    >>> [(point.spent, round(point.level, 3), round(point.could_lose, 3)) for point in trend.points[3:9:2]]
    [(8.0, 0.942, 0.018), (12.0, 0.995, 0.0), (16.0, 1.0, 0.0)]
    """

    def __init__(self, level: float = 0.95) -> None:
        self._level = level
        self._fidelities: Fidelities | None = None
        self._counted: tuple[int, ...] = ()
        self._begin()

    def _begin(self) -> None:
        self.points: list[TrendPoint] = []
        self._step = 1  # results from one point to the next
        self._seen = 0  # results so far
        self._changes = 0  # of arms so far
        self._spent = 0.0
        self._stats: Stats | None = None

    def lags(self, results: int) -> bool:
        """Tell whether there are enough results for one more point.

        Args:
            results: how many there are.
        """
        while results // self._step > POINTS:
            self.points = self.points[1::2]
            self._step *= 2
        return self.wanted[1] <= results

    @property
    def wanted(self) -> tuple[int, int]:
        """Which results the next point needs: the number of the first one, and that after the last one."""
        return self._seen, self._seen - self._seen % self._step + self._step

    def add(self, results: NextResults, counted: tuple[int, ...]) -> None:
        """Compute the next point; begin anew where other fidelities or biases are assumed than before.

        Args:
            results: those that are :attr:`wanted`.
            counted: the fidelities whose results count.
        """
        if self._fidelities is not results.fidelities or self._counted != counted:
            self._fidelities, self._counted = results.fidelities, counted
            if self._seen:
                self._begin()
                return
        self.points.append(self._point(self._moved_on(results), results))

    def _moved_on(self, results: NextResults) -> Stats:
        history, known = results.history, self._stats
        stats = Stats.empty(len(results.fidelities), results.first_arms) if known is None else known.copy()
        self._seen += len(history.arms)
        self._spent += float(history.costs.sum())
        for before, arm, active in results.changes[self._changes :]:
            if before >= self._seen:  # it happened after the last result, so that the next point knows
                break
            stats = stats.with_arms(1) if arm == len(stats.active) else stats
            stats.active[arm] = active
            self._changes += 1
        at = (history.fidelities, history.arms)
        np.add.at(stats.counts, at, 1)
        np.add.at(stats.sums, at, history.rewards)
        self._stats = stats
        return stats

    def _point(self, stats: Stats, results: NextResults) -> TrendPoint:
        counts: BoolArray = np.isin(np.arange(len(results.fidelities)), self._counted)
        found = np.where(stats.active, centres(stats, results.fidelities, counts), -np.inf)
        leader = int(found.argmax())
        if found[leader] == -np.inf:
            return TrendPoint(self._spent, 0.0, math.inf)
        roster = Roster(results.first_arms, changed=self._changes > 0)
        claim = confidence(stats, results.fidelities, leader, roster, counts, self._level)
        return TrendPoint(self._spent, claim.level, claim.could_lose)
