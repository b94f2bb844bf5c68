"""Plays, and what was learned from them: counts and sums of rewards for each fidelity and arm."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from mfbandit._internal.typing import BoolArray, FloatArray, IntArray

ALWAYS_ARRAYS = ("counts", "sums", "squares", "pending", "active")
STATS_ARRAYS = (*ALWAYS_ARRAYS, "extra", "unseen", "states", "resumed")  # these four may be None


@dataclass(frozen=True, slots=True)
class Play:
    """One trial of an arm at a fidelity: ``ask`` returns it and ``tell`` takes its result.

    Args:
        id: identifies the play, also across experiments.
        arm: index of the arm, from 0.
        fidelity: index of the fidelity, from 0 (the cheapest).
        cost: λ of that fidelity, reserved until the play is told or failed.
        label: the arm's label, for people.
        resume_from: the fidelity of an earlier play of the arm, from whose training this one goes on; None where it
            begins anew. Its cost is the difference of the two fidelities' costs.

    >>> Play(id="demo-0", arm=0, fidelity=2, cost=1000.0, label="ad-a").label
    'ad-a'
    """

    id: str
    arm: int
    fidelity: int
    cost: float
    label: str
    resume_from: int | None = field(default=None, kw_only=True, repr=False)


@dataclass(frozen=True, eq=False)
class Stats:
    r"""The results so far, as a policy sees them.

    Args:
        counts: T^(m)_k, the number of observations; integers of shape (M, K). A result is one, unless it was told with
            counts or a weight.
        sums: their sum; shape (M, K).
        squares: the sum of their squares; shape (M, K).
        pending: plays that were asked and not yet told; integers of shape (M, K).
        active: which arms may be asked or recommended; booleans of shape (K,).
        memory: what the policy's ``remember`` returned last, for policies that have this method; else None.
        extra: observations beyond the first of each result, shape (M, K); None where every result is one.
        unseen: those of ``extra`` that say nothing about the spread, shape (M, K); None where every result is one.
        states: how many results of an arm at a fidelity a further play can go on from, shape (M, K): training that no
            play has gone on from yet. None where nothing resumes.
        resumed: how many plays, pending ones included, went on from a result of an arm at a fidelity, shape (M, K);
            each was cheaper by λ_m of that fidelity. None where nothing resumes.

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
    extra: IntArray | None = None
    unseen: IntArray | None = None
    states: IntArray | None = None
    resumed: IntArray | None = None

    @classmethod
    def empty(cls, fidelities: int, arms: int) -> "Stats":
        """Make statistics without any result, with all arms active.

        >>> Stats.empty(fidelities=1, arms=2).counts.tolist()
        [[0, 0]]
        """
        shape = (fidelities, arms)
        counts, pending = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
        return cls(counts, np.zeros(shape), np.zeros(shape), pending, np.ones(arms, dtype=np.bool_))

    @property
    def results(self) -> IntArray:
        """The number of results, each of one play; shape (M, K).

        >>> Stats.empty(fidelities=1, arms=2).results.tolist()
        [[0, 0]]
        """
        return self.counts if self.extra is None else self.counts - self.extra

    @cached_property
    def plays(self) -> IntArray:
        """The number of plays, pending ones included: what costs are paid for; shape (M, K).

        >>> Stats.empty(fidelities=1, arms=2).plays.tolist()
        [[0, 0]]
        """
        return self.results + self.pending

    @cached_property
    def observations(self) -> IntArray:
        """T^(m)_k as widths have it, with the observations that pending plays will bring; shape (M, K).

        A pending play counts as many as a result at its fidelity has on average, rounded.

        >>> stats = Stats.empty(fidelities=1, arms=2).with_batches()
        >>> stats.counts[0, 0], stats.extra[0, 0], stats.pending[0] = 1000, 999, 1  # one result
        >>> stats.observations.tolist(), stats.plays.tolist()
        ([[2000, 1000]], [[2, 1]])
        """
        if self.extra is None:
            return self.counts + self.pending
        number = np.maximum(self.results.sum(axis=1), 1)
        each = np.maximum((self.counts.sum(axis=1) / number).round().astype(np.int64), 1)
        number_each: IntArray = self.counts + self.pending * each[:, None]
        return number_each

    @cached_property
    def root_observations(self) -> FloatArray:
        """√T^(m)_k, by which widths fall; shape (M, K).

        >>> Stats.empty(fidelities=1, arms=2).root_observations.tolist()
        [[0.0, 0.0]]
        """
        roots: FloatArray = np.sqrt(self.observations)
        return roots

    @cached_property
    def means_or_infinity(self) -> FloatArray:
        """X̄, infinite where there is no result; shape (M, K).

        >>> Stats.empty(fidelities=1, arms=1).means_or_infinity.tolist()
        [[inf]]
        """
        return means_or_infinity(self.counts, self.sums)

    @property
    def freedom(self) -> IntArray:
        """The degrees of freedom of the squares around the mean; shape (M, K), 0 where nothing is known of the spread.

        >>> stats = Stats.empty(fidelities=1, arms=2)
        >>> stats.counts[0] = [3, 0]
        >>> stats.freedom.tolist()
        [[2, 0]]
        """
        seen = self.counts if self.unseen is None else self.counts - self.unseen
        return np.maximum(seen - 1, 0)

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
        extra = None if self.extra is None else self.extra[-1:]
        unseen = None if self.unseen is None else self.unseen[-1:]
        states = None if self.states is None else self.states[-1:]
        resumed = None if self.resumed is None else self.resumed[-1:]
        top = (self.counts[-1:], self.sums[-1:], self.squares[-1:], self.pending[-1:])
        return Stats(*top, self.active, self.memory, extra, unseen, states, resumed)

    @property
    def told(self) -> "Stats":
        """The same results with no pending plays.

        >>> Stats.empty(fidelities=1, arms=2).told.time
        1
        """
        known = (self.counts, self.sums, self.squares, np.zeros_like(self.pending), self.active, self.memory)
        return Stats(*known, self.extra, self.unseen, self.states, self.resumed)

    def with_batches(self) -> "Stats":
        """Return the same statistics with room for results of many observations.

        >>> Stats.empty(fidelities=1, arms=2).with_batches().extra.tolist()
        [[0, 0]]
        """
        if self.extra is not None:
            return self
        return replace(self, extra=np.zeros_like(self.counts), unseen=np.zeros_like(self.counts))

    def with_states(self) -> "Stats":
        """Return the same statistics with room for training that can be gone on from.

        >>> Stats.empty(fidelities=1, arms=2).with_states().states.tolist()
        [[0, 0]]
        """
        if self.states is not None:
            return self
        return replace(self, states=np.zeros_like(self.counts), resumed=np.zeros_like(self.counts))

    def start(self, arm: int, fidelity: int) -> int | None:
        """The fidelity that the next play of an arm at a fidelity goes on from: the highest below it with a state.

        >>> stats = Stats.empty(fidelities=3, arms=1).with_states()
        >>> stats.states[:, 0] = [2, 1, 0]
        >>> stats.start(0, 2), stats.start(0, 1), stats.start(0, 0)
        (1, 0, None)
        """
        if self.states is None:
            return None
        below = self.states[:fidelity, arm].nonzero()[0]
        return int(below[-1]) if len(below) else None

    def next_costs(self, costs: Sequence[float]) -> FloatArray:
        """What the next play of each arm at each fidelity costs: λ_m − λ_m' where it goes on from m'; shape (M, K).

        Args:
            costs: λ_m of all fidelities; shape (M,).

        >>> stats = Stats.empty(fidelities=3, arms=2).with_states()
        >>> stats.states[0, 1] = 1
        >>> stats.next_costs([1, 4, 16]).tolist()
        [[1.0, 1.0], [4.0, 3.0], [16.0, 15.0]]
        """
        each = np.repeat(np.array(costs, dtype=np.float64)[:, None], len(self.active), axis=1)
        if self.states is not None:
            saved = np.zeros(len(self.active))
            for m, kept in enumerate(self.states):
                each[m] -= saved
                saved = np.where(kept > 0, costs[m], saved)
        return each

    def with_arms(self, number: int) -> "Stats":
        """Return a copy with ``number`` new active arms after the others.

        >>> Stats.empty(fidelities=1, arms=2).with_arms(1).counts.tolist()
        [[0, 0, 0]]
        """
        new = Stats.empty(len(self.counts), number)
        others = new if self.extra is None else new.with_batches()
        others = others if self.states is None else others.with_states()
        return self._changed({name: np.hstack([array, getattr(others, name)]) for name, array in self._arrays.items()})

    def read_only(self) -> "Stats":
        """Return the same statistics with read-only views of the arrays.

        >>> Stats.empty(fidelities=1, arms=1).read_only().counts[0, 0] = 5
        Traceback (most recent call last):
        ValueError: assignment destination is read-only
        """
        views = {name: array.view() for name, array in self._arrays.items()}
        for view in views.values():
            view.flags.writeable = False
        return self._changed(views)

    def copy(self) -> "Stats":
        """Return a copy that later results do not change.

        >>> live = Stats.empty(fidelities=1, arms=1)
        >>> kept = live.copy()
        >>> live.counts[0, 0] += 1
        >>> int(kept.counts[0, 0])
        0
        """
        return self._changed({name: array.copy() for name, array in self._arrays.items()})

    @property
    def _arrays(self) -> dict[str, Any]:
        named = {name: getattr(self, name) for name in STATS_ARRAYS}
        return {name: array for name, array in named.items() if array is not None}

    def _changed(self, arrays: dict[str, Any]) -> "Stats":
        return Stats(**arrays, memory=self.memory)


def means_or_infinity(counts: IntArray, sums: FloatArray) -> FloatArray:
    """Compute X̄, infinite where there is no result.

    Args:
        counts: T, the number of observations.
        sums: their sum.

    >>> means_or_infinity(np.array([0, 4]), np.array([0.0, 3.0])).tolist()
    [inf, 0.75]
    """
    found: FloatArray = np.full(counts.shape, np.inf)
    np.divide(sums, counts, out=found, where=counts > 0)
    return found
