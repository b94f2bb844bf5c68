"""The state of an experiment: the fold of its events, one by one or many at once."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from operator import add, mul
from typing import Any

import numpy as np

from mfbandit.core import Concentration, Fidelities, Roster, Stats
from mfbandit.experiment.codec import CODES, Packed, PackedLog
from mfbandit.experiment.events import (
    ArmAdded,
    ArmReinstated,
    ArmRestored,
    ArmRetired,
    ArmSetAside,
    Asked,
    BiasesSet,
    BiasesWidened,
    BiasRefuted,
    CapitalSet,
    Decided,
    Event,
    Expired,
    Failed,
    FidelitiesSet,
    LeasesExtended,
    Noted,
    Opened,
    Paused,
    PolicySet,
    Renewed,
    Resumed,
    StopSet,
    Told,
    Unchanged,
)
from mfbandit.experiment.history import History, NextResults
from mfbandit.experiment.incarnations import Incarnations
from mfbandit.experiment.play_table import EXPIRED, FAILED, PENDING, TOLD, PlayTable
from mfbandit.experiment.serialization import fidelities_from_record, policy_from_record
from mfbandit.experiment.stopping import Sure, stop_from_record
from mfbandit.policies import Decides, Policy, Remembers


class State:
    """Policy, fidelities, capital, arms, plays and statistics after a sequence of valid events.

    Args:
        policy: the rule that picks plays.
        fidelities: the M fidelities.
        labels: the names of the first K arms.
        capital: Λ; None is unlimited.
        stop: the rule for stopping; None: what the policy decides by itself, if it does.

    >>> from mfbandit import MFUCB, Bounded
    >>> state = State(MFUCB(), Fidelities(costs=[1, 10], biases=[0.1, 0], concentration=Bounded()), ["a", "b"])
    >>> state.apply(Asked(play=0, arm=1, fidelity=0))
    >>> state.committed, state.spent
    (1.0, 0.0)
    >>> state.apply(Told(play=0, reward=0.5, cost=1.0))
    >>> state.committed, state.spent, state.stats.sums.tolist()
    (1.0, 1.0, [[0.0, 0.5], [0.0, 0.0]])
    """

    def __init__(
        self,
        policy: Policy,
        fidelities: Fidelities,
        labels: Sequence[str],
        capital: float | None = None,
        stop: Sure | None = None,
    ) -> None:
        self.fidelities = fidelities
        self.capital = capital
        self.stop = stop
        self.policy_decides = stop is None  # by a rule of its own, if it has one; until a person sets another
        self.decided: Decided | None = None
        self.labels: list[str] = []
        self.index: dict[str, int] = {}  # of arms, by their names
        self.plays = PlayTable()
        self.incarnations = Incarnations()
        self.pending: dict[int, None] = {}  # numbers of plays, in the order of asking
        self.retired: set[int] = set()
        self.aside: set[int] = set()
        self.failures: list[int] = []  # of each arm since its last result, as workers reported them
        self.late = 0  # plays that were told or failed after they had expired
        self.paused = False
        self.refuted: dict[tuple[int, int], float] = {}  # needed bias by (fidelity, arm)
        self._told_at = [0] * len(fidelities)  # results that cost what their fidelity costs
        self._pending_at = [0] * len(fidelities)
        self._other_costs = 0.0
        self._first_arms = len(labels)
        self._arm_changes: list[tuple[int, int, bool]] = []  # (results before it, arm, whether it takes part then)
        self._stats = Stats.empty(len(fidelities), 0)
        self._grow(labels)
        self._memory: object = None  # the policy's own
        self._use(policy)

    # What is known

    @property
    def stats(self) -> Stats:
        """What was learned so far: read-only, and current until the next event."""
        shown = self._shown
        stats = Stats(shown.counts, shown.sums, shown.squares, shown.pending, shown.active, self._memory)
        stats.__dict__["time"] = 1 + len(self.plays.told) + len(self.pending)  # known without adding up all plays
        return stats

    @property
    def spent(self) -> float:
        """Cost of all told and failed plays: Σ_m λ_m·(results at m), and what other plays really cost."""
        return _sum(self.fidelities.costs, self._told_at) + self._other_costs

    @property
    def reserved(self) -> float:
        """Cost of the pending plays."""
        return _sum(self.fidelities.costs, self._pending_at)

    @property
    def committed(self) -> float:
        """Cost of all told, failed and pending plays."""
        return _sum(self.fidelities.costs, map(add, self._told_at, self._pending_at)) + self._other_costs

    @property
    def roster(self) -> Roster:
        """Which arms there were at the beginning, and whether any came or went since: for claims about the best."""
        return Roster(self._first_arms, changed=bool(self._arm_changes))

    def difference(self, low: int, arm: int) -> float:
        """|X̄_M − X̄_m| of an arm, or 0 where one of them has no result.

        >>> from mfbandit import UCB, Bounded
        >>> State(UCB(), Fidelities(costs=[1, 10], biases=[0.1, 0], concentration=Bounded()), ["a"]).difference(0, 0)
        0.0
        """
        counts, sums = self._stats.counts, self._stats.sums
        top, n = counts[-1, arm], counts[low, arm]
        return float(abs(sums[-1, arm] / top - sums[low, arm] / n)) if top and n else 0.0

    # One event at a time

    def apply(self, event: Event) -> None:
        """Move on by one event.

        >>> from mfbandit import UCB, Bounded
        >>> state = State(UCB(), Fidelities(costs=[1], concentration=Bounded()), ["a"])
        >>> state.apply(ArmAdded("b"))
        >>> state.labels, state.stats.counts.shape
        (['a', 'b'], (1, 2))
        """
        _APPLY[type(event)](self, event)

    def _asked(self, event: Asked) -> None:
        fidelity, arm = event.fidelity, event.arm
        self.plays.add(arm, fidelity)
        self.pending[event.play] = None
        self._stats.pending[fidelity, arm] += 1
        self._pending_at[fidelity] += 1

    def _told(self, event: Told) -> None:
        play, reward, stats = event.play, event.reward, self._stats
        self.late += not self._release(play)
        self.plays.settle(play, TOLD, reward=reward, cost=event.cost)
        arm, fidelity = self.plays[play]
        at = (fidelity, arm)
        stats.counts[at] += 1
        stats.sums[at] += reward
        stats.squares[at] += reward * reward
        self.failures[arm] = 0
        if event.cost == self.fidelities.costs[fidelity]:
            self._told_at[fidelity] += 1
        else:
            self._other_costs += event.cost
        if self._remember is not None:
            self._memory = self._remember(self.stats, self.fidelities)

    def _failed(self, event: Failed) -> None:
        self.late += not self._release(event.play)
        self.failures[self.plays.arms[event.play]] += 1
        self.plays.settle(event.play, FAILED, cost=event.cost)
        self._other_costs += event.cost

    def _expired(self, event: Expired) -> None:
        self._release(event.play)
        self.plays.settle(event.play, EXPIRED)  # which says something about a worker, and nothing about its arm

    def _release(self, play: int) -> bool:
        """Take a play out of the pending ones; False for a late one, which is not among them any more."""
        if play not in self.pending:
            return False
        del self.pending[play]
        arm, fidelity = self.plays[play]
        self._stats.pending[fidelity, arm] -= 1
        self._pending_at[fidelity] -= 1
        return True

    def _arm_added(self, event: ArmAdded) -> None:
        self._grow([event.label])
        self._set_active(len(self.labels) - 1, active=True)

    def _arm_retired(self, event: ArmRetired) -> None:
        self.retired.add(event.arm)
        self._set_active(event.arm, active=False)

    def _arm_set_aside(self, event: ArmSetAside) -> None:
        self.aside.add(event.arm)
        self._set_active(event.arm, active=False)

    def _arm_restored(self, event: ArmRestored) -> None:
        self.aside.discard(event.arm)
        self.failures[event.arm] = 0
        self._set_active(event.arm, active=event.arm not in self.retired)

    def _arm_reinstated(self, event: ArmReinstated) -> None:
        self.retired.discard(event.arm)
        self._set_active(event.arm, active=event.arm not in self.aside)

    def _paused(self, _: Paused) -> None:
        self.paused = True

    def _resumed(self, _: Resumed) -> None:
        self.paused = False

    def _capital_set(self, event: CapitalSet) -> None:
        self.capital = event.capital

    def _policy_set(self, event: PolicySet) -> None:
        self._use(policy_from_record(event.policy))

    def _bias_refuted(self, event: BiasRefuted) -> None:
        self.refuted[event.fidelity, event.arm] = event.needed

    def _biases_set(self, event: BiasesSet | BiasesWidened) -> None:
        self.fidelities = replace(self.fidelities, biases=event.biases)
        self.refuted.clear()

    def _fidelities_set(self, event: FidelitiesSet) -> None:
        better = fidelities_from_record(event.fidelities, known=concentrations(self.fidelities))
        if better.costs != self.fidelities.costs:  # what was paid stays paid
            self._other_costs, self._told_at = self.spent, [0] * len(better)
        self.fidelities = better
        self.refuted.clear()
        self._remember_again()

    def _stop_set(self, event: StopSet) -> None:
        self.stop = stop_from_record(event.stop)
        self.policy_decides = False
        self.decided = None

    def _decided(self, event: Decided) -> None:
        self.decided = event

    def _opened(self, event: Opened) -> None:
        self.incarnations.begin(len(self.plays), event.incarnation)

    def _nothing(self, _: Renewed | Noted | LeasesExtended | Unchanged) -> None:
        """Leave everything as it is: leases and notes are kept elsewhere."""

    def _set_active(self, arm: int, *, active: bool) -> None:
        self._stats.active[arm] = active
        self._arm_changes.append((len(self.plays.told), arm, active))

    def _grow(self, labels: Sequence[str]) -> None:
        self.index.update((label, len(self.labels) + i) for i, label in enumerate(labels))
        self.labels.extend(labels)
        self.failures.extend([0] * len(labels))
        self._stats = self._stats.with_arms(len(labels))
        self._shown = self._stats.read_only()

    # What the policy remembers

    def _use(self, policy: Policy) -> None:
        self.policy = policy
        # Found out once: asking whether an object has a protocol takes as long as a play.
        self._remember = policy.remember if isinstance(policy, Remembers) else None
        self.decide = policy.decision if isinstance(policy, Decides) else None
        self._memory = None

    def _remember_again(self) -> None:
        """Make the policy's memory anew from all results, one after the other."""
        self._memory = None
        if self._remember is not None:
            for stats in self.results_one_by_one():
                self._memory = self._remember(replace(stats, memory=self._memory), self.fidelities)

    def next_results(self, first: int, last: int) -> NextResults:
        """Some results, for a :class:`~mfbandit.experiment.trend.ConfidenceTrend`.

        Args:
            first: the number of the first one, from 0.
            last: the number after the last one.
        """
        history = History(*self.plays.results(first, last))
        return NextResults(history, self.fidelities, self._first_arms, tuple(self._arm_changes))

    def results_one_by_one(self) -> Iterator[Stats]:
        """What was learned after each result, in the order of telling, with the arms that took part then.

        >>> from mfbandit import UCB, Bounded
        >>> state = State(UCB(), Fidelities(costs=[1], concentration=Bounded()), ["a"])
        >>> for event in (Asked(0, 0, 0), Told(0, 0.5, 1.0), Asked(1, 0, 0), Told(1, 0.25, 1.0)):
        ...     state.apply(event)
        >>> [stats.sums.tolist() for stats in state.results_one_by_one()]
        [[[0.5]], [[0.75]]]
        """
        stats, changes = Stats.empty(len(self.fidelities), self._first_arms), deque(self._arm_changes)
        for number, play in enumerate(self.plays.told):
            while changes and changes[0][0] <= number:
                _, changed, active = changes.popleft()
                stats = stats.with_arms(1) if changed == len(stats.active) else stats
                stats.active[changed] = active
            arm, fidelity = self.plays[play]
            reward = self.plays.rewards[play]
            stats.counts[fidelity, arm] += 1
            stats.sums[fidelity, arm] += reward
            stats.squares[fidelity, arm] += reward * reward
            yield stats.copy()

    # Many events at once

    def apply_all(self, log: PackedLog) -> None:
        """Move on by all events of a packed log; bit for bit what one at a time gives.

        >>> from mfbandit import UCB, Bounded
        >>> state = State(UCB(), Fidelities(costs=[1], concentration=Bounded()), ["a", "b"])
        >>> state.apply_all(PackedLog.of([Asked(play=0, arm=1, fidelity=0), Told(play=0, reward=0.5, cost=1.0)]))
        >>> state.spent, state.stats.sums.tolist()
        (1.0, [[0.0, 0.5]])
        """
        for about_plays, other in log.stretches():
            if self._remember is None:
                self._apply_plays(about_plays)
            else:  # a policy that remembers has to see every result
                for event in PackedLog(about_plays, {}).events():
                    self.apply(event)
            if other is not None:
                self.apply(other)

    def _apply_plays(self, rows: Packed) -> None:
        if not len(rows):
            return
        kinds = rows["kind"]
        self.plays.add_all(rows[kinds == CODES[Asked]])
        self._count_failures(rows)
        self._sum_costs(rows[(kinds == CODES[Told]) | (kinds == CODES[Failed])])
        self.plays.settle_all(rows)
        self._sum_rewards(rows[kinds == CODES[Told]])
        self._find_pending()

    def _count_failures(self, rows: Packed) -> None:
        """Count the failures of each arm since its last result, and the outcomes that came late."""
        kinds = rows["kind"]
        is_expired, is_failed, is_told = (kinds == CODES[kind] for kind in (Expired, Failed, Told))
        expired = np.concatenate([self.plays.numbers_in(EXPIRED), rows["play"][is_expired]])
        self.late += int(np.isin(rows["play"][is_failed | is_told], expired).sum())
        lost = np.flatnonzero(is_failed)
        _, told_arms = self.plays.where(rows["play"][is_told])
        _, lost_arms = self.plays.where(rows["play"][lost])
        last = np.full(len(self.labels), -1)
        np.maximum.at(last, told_arms, np.flatnonzero(is_told))
        since = np.bincount(lost_arms[lost > last[lost_arms]], minlength=len(self.labels))
        self.failures = (np.where(last < 0, self.failures, 0) + since).tolist()

    def _sum_costs(self, settled: Packed) -> None:
        costs = np.array(self.fidelities.costs)
        fidelities, _ = self.plays.where(settled["play"])
        usual = (settled["kind"] == CODES[Told]) & (settled["cost"] == costs[fidelities])
        counts = np.bincount(fidelities[usual], minlength=len(costs))
        self._told_at = [before + int(new) for before, new in zip(self._told_at, counts, strict=True)]
        # One after the other, as they came: another order would round otherwise.
        self._other_costs = float(np.add.accumulate(np.append(self._other_costs, settled["cost"][~usual]))[-1])

    def _sum_rewards(self, told: Packed) -> None:
        at, stats = self.plays.where(told["play"]), self._stats
        np.add.at(stats.counts, at, 1)
        np.add.at(stats.sums, at, told["reward"])
        np.add.at(stats.squares, at, told["reward"] * told["reward"])

    def _find_pending(self) -> None:
        pending = self.plays.numbers_in(PENDING)
        fidelities, arms = self.plays.where(pending)
        self.pending = dict.fromkeys(pending.tolist())
        self._stats.pending[:] = 0
        np.add.at(self._stats.pending, (fidelities, arms), 1)
        self._pending_at = np.bincount(fidelities, minlength=len(self.fidelities)).tolist()


_APPLY: dict[type[Event], Callable[[State, Any], None]] = {
    Asked: State._asked,
    Told: State._told,
    Failed: State._failed,
    Expired: State._expired,
    Renewed: State._nothing,
    ArmAdded: State._arm_added,
    ArmRetired: State._arm_retired,
    ArmSetAside: State._arm_set_aside,
    ArmRestored: State._arm_restored,
    Paused: State._paused,
    Resumed: State._resumed,
    CapitalSet: State._capital_set,
    PolicySet: State._policy_set,
    Noted: State._nothing,
    BiasRefuted: State._bias_refuted,
    BiasesSet: State._biases_set,
    BiasesWidened: State._biases_set,
    FidelitiesSet: State._fidelities_set,
    ArmReinstated: State._arm_reinstated,
    LeasesExtended: State._nothing,
    Opened: State._opened,
    Unchanged: State._nothing,
    StopSet: State._stop_set,
    Decided: State._decided,
}


def concentrations(fidelities: Fidelities) -> Sequence[Concentration]:
    """The concentration of each fidelity; none where nothing is known of the noise.

    >>> concentrations(Fidelities(costs=[1]))
    ()
    """
    return () if fidelities.concentration is None else fidelities.tails


def _sum(costs: Iterable[float], plays: Iterable[int]) -> float:
    total: float = sum(map(mul, costs, plays))
    return total
