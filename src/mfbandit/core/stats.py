"""What has been learned: plays, and sums over their rewards for each fidelity and arm."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from mfbandit._internal.typing import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class Play:
    """One look at one arm: what ``ask`` hands out and ``tell`` takes back.

    Args:
        id: names the play within and across experiments.
        arm: index of the arm, from 0.
        fidelity: index of the fidelity, from 0 (the cheapest).
        cost: λ of that fidelity, reserved until the play is told or failed.
        label: the arm's name, for people.

    >>> Play(id="demo-0", arm=0, fidelity=2, cost=1000.0, label="ad-a").label
    'ad-a'
    """

    id: str
    arm: int
    fidelity: int
    cost: float
    label: str


@dataclass(frozen=True, eq=False)
class Stats:
    r"""All that a policy may look at, besides :class:`~mfbandit.Fidelities`: a snapshot for one decision.

    Args:
        counts: T^(m)_k, the number of results; integers of shape (M, K).
        sums: sum of their rewards; shape (M, K).
        squares: sum of their squared rewards; shape (M, K).
        pending: plays asked for and not yet told; integers of shape (M, K).
        active: which arms may be asked for or recommended; booleans of shape (K,).
        memory: what the policy's ``remember`` made of the log so far, for policies that have one; else None.

    >>> stats = Stats.empty(fidelities=2, arms=3)
    >>> stats.time, stats.means.shape
    (1, (2, 3))
    """

    counts: IntArray
    sums: FloatArray
    squares: FloatArray
    pending: IntArray
    active: BoolArray
    memory: object = None

    @classmethod
    def empty(cls, fidelities: int, arms: int) -> "Stats":
        """Nothing learned yet, all arms active.

        >>> Stats.empty(fidelities=1, arms=2).counts.tolist()
        [[0, 0]]
        """
        shape = (fidelities, arms)
        counts, pending = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
        return cls(counts, np.zeros(shape), np.zeros(shape), pending, np.ones(arms, dtype=np.bool_))

    @cached_property
    def plays(self) -> IntArray:
        """T^(m)_k with pending plays counted, shape (M, K).

        >>> Stats.empty(fidelities=1, arms=2).plays.tolist()
        [[0, 0]]
        """
        return self.counts + self.pending

    @cached_property
    def time(self) -> int:
        """The paper's t: one more than the plays so far, pending ones included.

        >>> Stats.empty(fidelities=1, arms=2).time
        1
        """
        return 1 + int(self.plays.sum())

    @property
    def means(self) -> FloatArray:
        """X̄, the mean reward, shape (M, K); NaN where there is no result.

        >>> np.isnan(Stats.empty(fidelities=1, arms=1).means).all()
        np.True_
        """
        with np.errstate(invalid="ignore"):
            return self.sums / self.counts

    @property
    def top(self) -> "Stats":
        """The highest fidelity alone, shape (1, K); what was learned below it is left out.

        >>> Stats.empty(fidelities=3, arms=2).top.counts.shape
        (1, 2)
        """
        return Stats(self.counts[-1:], self.sums[-1:], self.squares[-1:], self.pending[-1:], self.active, self.memory)

    @property
    def told(self) -> "Stats":
        """The same results with nothing pending: what is known, not what is under way.

        >>> Stats.empty(fidelities=1, arms=2).told.time
        1
        """
        return Stats(self.counts, self.sums, self.squares, np.zeros_like(self.pending), self.active, self.memory)

    def with_arms(self, number: int) -> "Stats":
        """The same and ``number`` new active arms behind the others, in arrays of their own.

        >>> Stats.empty(fidelities=1, arms=2).with_arms(1).counts.tolist()
        [[0, 0, 0]]
        """
        new = Stats.empty(len(self.counts), number)
        wider = (np.hstack(pair) for pair in zip(self._arrays, new._arrays, strict=True))
        return replace(Stats(*wider), memory=self.memory)

    def read_only(self) -> "Stats":
        """The same arrays, seen through views that cannot be written.

        >>> Stats.empty(fidelities=1, arms=1).read_only().counts[0, 0] = 5
        Traceback (most recent call last):
        ValueError: assignment destination is read-only
        """
        views = tuple(array.view() for array in self._arrays)
        for view in views:
            view.flags.writeable = False
        return replace(Stats(*views), memory=self.memory)

    def copy(self) -> "Stats":
        """Arrays of their own, so that later results do not show through.

        >>> live = Stats.empty(fidelities=1, arms=1)
        >>> kept = live.copy()
        >>> live.counts[0, 0] += 1
        >>> int(kept.counts[0, 0])
        0
        """
        return replace(Stats(*(array.copy() for array in self._arrays)), memory=self.memory)

    @property
    def _arrays(self) -> tuple[Any, ...]:
        return self.counts, self.sums, self.squares, self.pending, self.active
