"""Plays, and what was learned from them: counts and sums of rewards for each fidelity and arm."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from mfbandit._internal.typing import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class Play:
    """One trial of an arm at a fidelity: ``ask`` returns it and ``tell`` takes its result.

    Args:
        id: identifies the play, also across experiments.
        arm: index of the arm, from 0.
        fidelity: index of the fidelity, from 0 (the cheapest).
        cost: λ of that fidelity, reserved until the play is told or failed.
        label: the arm's label, for people.

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
    r"""The results so far, as a policy sees them.

    Args:
        counts: T^(m)_k, the number of results; integers of shape (M, K).
        sums: sum of their rewards; shape (M, K).
        squares: sum of their squared rewards; shape (M, K).
        pending: plays that were asked and not yet told; integers of shape (M, K).
        active: which arms may be asked or recommended; booleans of shape (K,).
        memory: what the policy's ``remember`` returned last, for policies that have this method; else None.

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
        """Make statistics without any result, with all arms active.

        >>> Stats.empty(fidelities=1, arms=2).counts.tolist()
        [[0, 0]]
        """
        shape = (fidelities, arms)
        counts, pending = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
        return cls(counts, np.zeros(shape), np.zeros(shape), pending, np.ones(arms, dtype=np.bool_))

    @cached_property
    def plays(self) -> IntArray:
        """T^(m)_k, pending plays included; shape (M, K).

        >>> Stats.empty(fidelities=1, arms=2).plays.tolist()
        [[0, 0]]
        """
        return self.counts + self.pending

    @cached_property
    def time(self) -> int:
        """The paper's t: one more than the number of plays so far, pending ones included.

        >>> Stats.empty(fidelities=1, arms=2).time
        1
        """
        return 1 + int(self.plays.sum())

    @property
    def means(self) -> FloatArray:
        """X̄, the mean reward; shape (M, K), NaN where there is no result.

        >>> np.isnan(Stats.empty(fidelities=1, arms=1).means).all()
        np.True_
        """
        with np.errstate(invalid="ignore"):
            return self.sums / self.counts

    @property
    def top(self) -> "Stats":
        """The statistics of the highest fidelity alone, shape (1, K).

        >>> Stats.empty(fidelities=3, arms=2).top.counts.shape
        (1, 2)
        """
        return Stats(self.counts[-1:], self.sums[-1:], self.squares[-1:], self.pending[-1:], self.active, self.memory)

    @property
    def told(self) -> "Stats":
        """The same results with no pending plays.

        >>> Stats.empty(fidelities=1, arms=2).told.time
        1
        """
        return Stats(self.counts, self.sums, self.squares, np.zeros_like(self.pending), self.active, self.memory)

    def with_arms(self, number: int) -> "Stats":
        """Return a copy with ``number`` new active arms after the others.

        >>> Stats.empty(fidelities=1, arms=2).with_arms(1).counts.tolist()
        [[0, 0, 0]]
        """
        new = Stats.empty(len(self.counts), number)
        wider = (np.hstack(pair) for pair in zip(self._arrays, new._arrays, strict=True))
        return replace(Stats(*wider), memory=self.memory)

    def read_only(self) -> "Stats":
        """Return the same statistics with read-only views of the arrays.

        >>> Stats.empty(fidelities=1, arms=1).read_only().counts[0, 0] = 5
        Traceback (most recent call last):
        ValueError: assignment destination is read-only
        """
        views = tuple(array.view() for array in self._arrays)
        for view in views:
            view.flags.writeable = False
        return replace(Stats(*views), memory=self.memory)

    def copy(self) -> "Stats":
        """Return a copy that later results do not change.

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
