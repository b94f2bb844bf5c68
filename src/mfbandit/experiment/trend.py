"""How sure it was as capital was spent: the claim about the best arm after some of the results, in order."""

import math
from typing import NamedTuple

import numpy as np

from mfbandit._internal.typing import BoolArray
from mfbandit.core import Fidelities, KeptClaims, Roster, Stats
from mfbandit.core.claims import centres
from mfbandit.experiment.forgetting import Forgotten, clear_arm
from mfbandit.experiment.history import NextResults

POINTS = 20  # at most; with more, every other one is dropped


class TrendPoint(NamedTuple):
    """What could be said once so much was spent.

    Args:
        spent: on results, in units of capital.
        level: how sure it was.
        could_lose: the possible loss, in units of reward; infinite where nothing was known.
        leader: the arm that it was said of; None where no arm had a result that counts.
    """

    spent: float
    level: float
    could_lose: float
    leader: int | None


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
        self._later: Forgotten | None = None  # which arms there were so far
        self._spent = 0.0
        self._stats: Stats | None = None
        self._claims = KeptClaims()

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
        later = self._later = self._later or Forgotten(len(results.fidelities), results.first_arms)
        counted, first = np.ones(len(history.arms), dtype=np.bool_), self._seen - len(history.arms)
        for before, arm, active in _changes(results)[self._changes :]:
            if before >= self._seen:  # it happened after the last result, so that the next point knows
                break
            self._changes += 1
            if active is None:
                clear_arm(stats, arm)
                counted[: before - first] &= history.arms[: before - first] != arm
                later.number(arm, before)
                continue
            if arm == len(stats.active):
                stats = stats.with_arms(1)
                later.came(arm)
            stats.active[arm] = active
        at = (history.fidelities[counted], history.arms[counted])
        np.add.at(stats.counts, at, history.weights[counted])
        np.add.at(stats.sums, at, history.sums[counted])
        self._stats = stats
        return stats

    def _point(self, stats: Stats, results: NextResults) -> TrendPoint:
        counts: BoolArray = np.isin(np.arange(len(results.fidelities)), self._counted)
        found = np.where(stats.active, centres(stats, results.fidelities, counts), -np.inf)
        leader = int(found.argmax())
        if found[leader] == -np.inf:
            return TrendPoint(self._spent, 0.0, math.inf, None)
        later = () if self._later is None else self._later.later
        roster = Roster(results.first_arms, self._changes > 0, later)
        claim = self._claims.confidence(stats, results.fidelities, leader, roster, counts, self._level)
        return TrendPoint(self._spent, claim.level, claim.could_lose, leader)


def _changes(results: NextResults) -> list[tuple[int, int, bool | None]]:
    """Arms that came or went (whether they take part then), and those that were begun anew (None), in order."""
    begun: list[tuple[int, int, bool | None]] = [(before, arm, None) for before, arm in results.forgotten]
    return sorted([*results.changes, *begun], key=lambda one: one[0])
