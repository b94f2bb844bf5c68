"""The state of an experiment: the fold of its events, one by one or many at once."""

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import fields, replace
from operator import add, mul
from typing import Any

import numpy as np

from mfbandit._internal.typing import IntArray
from mfbandit.core import Concentration, Fidelities, Observed, Roster, Stats
from mfbandit.core.drift import FIRST_MARK
from mfbandit.experiment.block_sums import BlockCells, BlockSums
from mfbandit.experiment.change_points import ChangePoints
from mfbandit.experiment.codec import CODES, Packed, PackedLog, is_kind, is_told
from mfbandit.experiment.events import (
    ArmAdded,
    ArmForgotten,
    ArmNoted,
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
    DriftFound,
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
    SharesSet,
    StopSet,
    TimePassed,
    Told,
    ToldBatch,
    ToldInBlock,
    Unchanged,
)
from mfbandit.experiment.fading import Fading
from mfbandit.experiment.forgetting import Forgotten
from mfbandit.experiment.history import NextResults
from mfbandit.experiment.incarnations import Incarnations
from mfbandit.experiment.kept_arrays import KeptArrays
from mfbandit.experiment.memory import HalfLife
from mfbandit.experiment.play_table import EXPIRED, FAILED, PENDING, TOLD, PlayTable
from mfbandit.experiment.serialization import fidelities_from_record, policy_from_record
from mfbandit.experiment.shares import NO_SHARES, Shares, shares_from_record
from mfbandit.experiment.stopping import Sure, stop_from_record
from mfbandit.experiment.sums import add as add_to
from mfbandit.experiment.sums import add_all, each
from mfbandit.experiment.training import Training
from mfbandit.policies import Decides, Policy, Remembers


class State:
    """Policy, fidelities, capital, arms, plays and statistics after a sequence of valid events.

    Args:
        policy: the rule that picks plays.
        fidelities: the M fidelities.
        labels: the names of the first K arms.
        capital: Λ; None is unlimited.
        stop: the rule for stopping; None: what the policy decides by itself, if it does.
        memory: how long results count; None is for ever.
        shares: the control, and the shares of arms at the highest fidelity.

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
        shares: Shares = NO_SHARES,
        memory: HalfLife | None = None,
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
        self.noise_reset: set[int] = set()  # fidelities whose noise was told anew when there were results
        self.shares = shares
        self.quota = shares.quota(0)
        self.changes = ChangePoints()
        self.drifted: dict[tuple[int, int], DriftFound] = {}  # means that have changed, by (fidelity, arm)
        self.forgotten = Forgotten(len(fidelities), len(labels))
        self._told_at = [0] * len(fidelities)  # results that cost what their fidelity costs
        self._pending_at = [0] * len(fidelities)
        self._other_costs = 0.0
        self._first_arms = len(labels)
        self.fading = None if memory is None else Fading(memory, len(fidelities), 0)
        self.blocks: BlockSums | None = None  # none as long as no result is of a block
        self._arm_changes: list[tuple[int, int, bool]] = []  # (results before it, arm, whether it takes part then)
        empty = Stats.empty(len(fidelities), 0)
        self.training = Training() if fidelities.resume else None
        self._stats = empty.with_states() if fidelities.resume else empty
        self._kept: KeptArrays | None = None  # None if counts have changed all at once
        self._grow(labels)
        self._memory: object = None  # the policy's own
        self._use(policy)

    # What is known

    @property
    def stats(self) -> Stats:
        """What was learned so far: read-only, and current until the next event."""
        if self.blocks is None:
            return self._all_stats
        return self.blocks.adjusted(self._all_stats, self.fidelities, self._unit)

    @property
    def _all_stats(self) -> Stats:
        """What was learned, with what blocks do to all arms alike."""
        shown = self._shown
        if self.fading is not None:
            return self.fading.seen(replace(shown, memory=self._memory), len(self.pending))
        # After each result, and a dataclass's own __init__ takes as long as an operation on all arms.
        stats = object.__new__(Stats)
        known = stats.__dict__
        known.update(self._shown_fields)
        known["memory"] = self._memory
        known["time"] = 1 + len(self.plays.told) + len(self.pending)  # without adding up all plays
        if self._kept is None:
            self._kept = KeptArrays.of(self._stats)
        known["means_or_infinity"] = self._kept.shown_means
        if not self.pending:
            known["observations"], known["root_observations"] = shown.counts, self._kept.shown_roots
        return stats

    @property
    def _unit(self) -> float:
        """What a new observation weighs among those that fade."""
        return 1.0 if self.fading is None else self.fading.unit

    @property
    def adjusts(self) -> bool:
        """Whether what blocks do to all arms alike is taken out: there are two blocks at least."""
        return self.blocks is not None and self.blocks.adjusts

    def block_cells(self) -> BlockCells | None:
        """A copy of the results by block, where there are two blocks at least; else None."""
        return self.blocks.cells(self._unit) if self.blocks is not None and self.blocks.adjusts else None

    @property
    def bias_stats(self) -> Stats:
        """What the test of the biases looks at: with fewer observations, where fidelities were seen in other blocks."""
        cells = self.block_cells()
        return self.stats if cells is None else cells.fidelities_compared(self.stats)

    @property
    def block_effects(self) -> dict[str, float]:
        """By how much results in each block are above those elsewhere; 0 where there is one."""
        if self.blocks is None:
            return {}
        effects = self.blocks.effects(self._unit).tolist() if self.blocks.adjusts else [0.0]
        return {name or "": effect for name, effect in zip(self.blocks.names, effects, strict=True)}

    @property
    def spent(self) -> float:
        """Cost of all told and failed plays: Σ_m λ_m·(results at m), and what other plays really cost."""
        return _sum(self.fidelities.costs, self._told_at) + self._other_costs

    @property
    def reserved(self) -> float:
        """Cost of the pending plays."""
        return _sum(self.fidelities.costs, self._pending_at) - self._saved

    @property
    def committed(self) -> float:
        """Cost of all told, failed and pending plays."""
        plays = map(add, self._told_at, self._pending_at)
        return _sum(self.fidelities.costs, plays) + self._other_costs - self._saved

    @property
    def _saved(self) -> float:
        """What pending plays cost less because they go on from earlier ones."""
        if self.training is None:
            return 0.0
        return math.fsum(self.fidelities.costs[m] for m in self.training.pending_starts(self.pending))

    def start(self, play: int) -> int | None:
        """The fidelity that a play goes on from; None where it began anew."""
        return None if self.training is None else self.training.starts.get(play)

    def cost(self, play: int) -> float:
        """What a play costs, unless it is told that it cost something else."""
        costs, start = self.fidelities.costs, self.start(play)
        full = costs[self.plays.fidelities[play]]
        return full if start is None else full - costs[start]

    @property
    def roster(self) -> Roster:
        """Which arms there were at the beginning, and whether any came or went since: for claims about the best."""
        changed = bool(self._arm_changes or self.forgotten.arms)
        return Roster(self._first_arms, changed, self.forgotten.later)

    @property
    def told_stats(self) -> Stats:
        """All results since arms began, read-only: what is looked at for changes of means."""
        return self._shown

    @property
    def fades(self) -> bool:
        """Whether old results count less."""
        return self.fading is not None and self.fading.memory.fades

    @property
    def stale(self) -> dict[tuple[int, int], DriftFound]:
        """Means that have changed while all old results count, by fidelity and arm."""
        return {} if self.fades else self.drifted

    @property
    def results_at(self) -> IntArray:
        """How many results there are at each fidelity, those of forgotten arms included; shape (M,)."""
        total: IntArray = self._stats.results.sum(axis=1) + self.forgotten.results
        return total

    @property
    def observations_at(self) -> IntArray:
        """How many observations there are at each fidelity, those of forgotten arms included; shape (M,)."""
        total: IntArray = self._stats.counts.sum(axis=1) + self.forgotten.observations
        return total

    def observations_of(self, fidelity: int, arm: int) -> int:
        """How many observations there are of an arm at a fidelity, since it began."""
        return int(self._stats.counts[fidelity, arm])

    def difference(self, low: int, arm: int) -> float:
        """|X̄_M − X̄_m| of an arm, or 0 where one of them has no result.

        >>> from mfbandit import UCB, Bounded
        >>> State(UCB(), Fidelities(costs=[1, 10], biases=[0.1, 0], concentration=Bounded()), ["a"]).difference(0, 0)
        0.0
        """
        stats = self._stats if self.fading is None and self.blocks is None else self.stats
        counts, sums = stats.counts, stats.sums
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
        if self.training is not None:
            self.training.asked(event.play, arm, fidelity, self._stats)
        self._stats.pending[fidelity, arm] += 1
        self._pending_at[fidelity] += 1
        if self.quota is not None and fidelity == len(self._told_at) - 1:
            self.quota.asked(event.play, arm)

    def _told(self, event: Told) -> None:
        play, reward, stats = event.play, event.reward, self._stats
        pending = self._release(play)
        self.late += not pending
        arm, fidelity = self.plays[play]
        at = (fidelity, arm)
        if self.blocks is None and isinstance(event, ToldInBlock):
            self._begin_blocks()
        if self.training is not None:
            self.training.told(play, arm, fidelity, self._stats, late=not pending)
        if isinstance(event, ToldBatch):
            number = event.weight
            self.plays.settle_batch(event)
            self._have(add_to(stats, at, event.observed))
            stats = self._stats
        else:
            number = 1
            self.plays.settle(play, TOLD, reward=reward, cost=event.cost)
            stats.counts[at] += 1
            stats.sums[at] += reward
            stats.squares[at] += reward * reward
        if self.fading is not None:
            self.fading.add(at, event.observed)
        if self.blocks is not None:
            block = event.block if isinstance(event, ToldInBlock) else None
            self.blocks.add(block, at, event.observed, self._unit)
        count = int(stats.counts[at])
        if self._kept is not None:
            self._kept.roots[at] = math.sqrt(count)
            self._kept.means[at] = stats.sums[at] / count
        if not self.adjusts and count >= self.changes.due.get(at, FIRST_MARK):
            self.changes.see(at, count - number, count, float(stats.sums[at]), len(self.plays.told))
        self.failures[arm] = 0
        if event.cost == self.fidelities.costs[fidelity]:
            self._told_at[fidelity] += 1
        else:
            self._other_costs += event.cost
        if self._remember is not None:
            self._memory = self._remember(self.stats, self.fidelities)

    def _begin_blocks(self) -> None:
        """The first result of a block: those before it have none."""
        before = (self._stats.counts.astype(np.float64), self._stats.sums) if self.fading is None else self.fading.sums
        self.blocks = BlockSums(*before)
        if self.fading is not None:
            self.fading.blocks = self.blocks

    def _have(self, stats: Stats) -> None:
        """Go on with these statistics, and show the same."""
        if stats is not self._stats:
            self._show(stats)

    def _show(self, stats: Stats) -> None:
        self._stats, self._shown, self._kept = stats, stats.read_only(), None
        self._shown_fields = {one.name: getattr(self._shown, one.name) for one in fields(Stats)}

    def _failed(self, event: Failed) -> None:
        pending = self._release(event.play)
        self.late += not pending
        if self.training is not None and pending:
            self.training.lost(event.play, self.plays.arms[event.play], self._stats)
        self.failures[self.plays.arms[event.play]] += 1
        self.plays.settle(event.play, FAILED, cost=event.cost)
        self._other_costs += event.cost
        self._lost(event.play)

    def _expired(self, event: Expired) -> None:
        self._release(event.play)
        if self.training is not None:
            self.training.lost(event.play, self.plays.arms[event.play], self._stats)
        self._lost(event.play, expired=True)
        self.plays.settle(event.play, EXPIRED)  # which says something about a worker, and nothing about its arm

    def _lost(self, play: int, *, expired: bool = False) -> None:
        arm, fidelity = self.plays[play]
        if self.quota is not None and fidelity == len(self._told_at) - 1:
            self.quota.lost(play, arm, expired=expired)

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
        self.forgotten.came(len(self.labels) - 1)
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
        if self.plays.told:
            self.noise_reset.update(_other_noise(self.fidelities, better))
        self.fidelities = better
        self.refuted.clear()
        self._remember_again()

    def _stop_set(self, event: StopSet) -> None:
        self.stop = stop_from_record(event.stop)
        self.policy_decides = False
        self.decided = None

    def _shares_set(self, event: SharesSet) -> None:
        self.shares = shares_from_record(event.shares)
        self.quota = self.shares.quota(len(self.labels), begun=len(self.plays))

    def _decided(self, event: Decided) -> None:
        self.decided = event

    def _drift_found(self, event: DriftFound) -> None:
        self.drifted[event.fidelity, event.arm] = event
        top = len(self.fidelities) - 1
        for cell in [cell for cell in self.refuted if cell[1] == event.arm and event.fidelity in (cell[0], top)]:
            del self.refuted[cell]  # what did not fit together were results of different times

    def _arm_forgotten(self, event: ArmForgotten) -> None:
        arm = event.arm
        self.forgotten.forget(arm, len(self.plays.told), self._stats)
        self._kept = None
        self.changes.forget(arm)
        if self.training is not None:
            self.training.forgotten(arm, self._stats, [play for play in self.pending if self.plays.arms[play] == arm])
        if self.fading is not None:
            self.fading.forget(arm)
        if self.blocks is not None:
            self.blocks.forget(arm)
        self.drifted = {cell: found for cell, found in self.drifted.items() if cell[1] != arm}
        self.refuted = {cell: needed for cell, needed in self.refuted.items() if cell[1] != arm}
        self._remember_again()

    def _time_passed(self, event: TimePassed) -> None:
        if self.fading is not None:
            self.fading.pass_time(event.at)

    def _opened(self, event: Opened) -> None:
        self.incarnations.begin(len(self.plays), event.incarnation)

    def _nothing(self, _: Renewed | Noted | ArmNoted | LeasesExtended | Unchanged) -> None:
        """Leave everything as it is: leases and notes are kept elsewhere."""

    def _set_active(self, arm: int, *, active: bool) -> None:
        self._stats.active[arm] = active
        if self.training is not None and not active:
            self.training.dropped(arm, self._stats)
        self._arm_changes.append((len(self.plays.told), arm, active))
        if self.quota is not None and active:
            self.quota.comes(arm)

    def _grow(self, labels: Sequence[str]) -> None:
        self.index.update((label, len(self.labels) + i) for i, label in enumerate(labels))
        self.labels.extend(labels)
        self.failures.extend([0] * len(labels))
        if self.quota is not None:
            for arm in range(len(self.labels) - len(labels), len(self.labels)):
                self.quota.comes(arm)
        self._have(self._stats.with_arms(len(labels)))
        if self.fading is not None:
            self.fading.grow(len(labels))

    # What the policy remembers

    def _use(self, policy: Policy) -> None:
        self.policy = policy
        # Found out once: asking whether an object has a protocol takes as long as a play.
        self._remember = policy.remember if isinstance(policy, Remembers) else None
        self.decide = policy.decision if isinstance(policy, Decides) else None
        self._memory = None

    @property
    def remembers(self) -> bool:
        """Whether the policy keeps something between results."""
        return self._remember is not None

    def _remember_again(self) -> None:
        """Make the policy's memory anew from all results, one after the other."""
        self._memory = None
        if self._remember is not None and (self.fades or self.adjusts):  # what was known when is not known any more
            self._memory = self._remember(self.stats, self.fidelities) if self._stats.counts.any() else None
        elif self._remember is not None:
            for stats in self.results_one_by_one():
                self._memory = self._remember(replace(stats, memory=self._memory), self.fidelities)

    def next_results(self, first: int, last: int) -> NextResults:
        """Some results, for a :class:`~mfbandit.experiment.trend.ConfidenceTrend`.

        Args:
            first: the number of the first one, from 0.
            last: the number after the last one.
        """
        results = self.plays.results(first, last)
        changes, forgotten = tuple(self._arm_changes), tuple(self.forgotten.arms)
        return NextResults(results, self.fidelities, self._first_arms, changes, forgotten)

    def results_one_by_one(self) -> Iterator[Stats]:
        """What was learned after each result that still counts, in the order of telling, with the arms of that time.

        >>> from mfbandit import UCB, Bounded
        >>> state = State(UCB(), Fidelities(costs=[1], concentration=Bounded()), ["a"])
        >>> for event in (Asked(0, 0, 0), Told(0, 0.5, 1.0), Asked(1, 0, 0), Told(1, 0.25, 1.0)):
        ...     state.apply(event)
        >>> [stats.sums.tolist() for stats in state.results_one_by_one()]
        [[[0.5]], [[0.75]]]
        """
        stats, changes = Stats.empty(len(self.fidelities), self._first_arms), deque(self._arm_changes)
        begun = {arm: results for results, arm in self.forgotten.arms}
        for number, play in enumerate(self.plays.told):
            while changes and changes[0][0] <= number:
                _, changed, active = changes.popleft()
                stats = stats.with_arms(1) if changed == len(stats.active) else stats
                stats.active[changed] = active
            arm, fidelity = self.plays[play]
            if number < begun.get(arm, 0):
                continue
            reward, batch = self.plays.rewards[play], self.plays.batches.get(play)
            found = Observed(1, reward, reward * reward, 0) if batch is None else batch.observed
            stats = add_to(stats, (fidelity, arm), found)
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
            one_by_one = (self._remember, self.fading, self.blocks, self.training)
            if all(part is None for part in one_by_one) and not about_plays.has_blocks:
                self._apply_plays(about_plays)
            else:  # a policy that remembers has to see every result; they fade, resume, and are of blocks, one by one
                for event in about_plays.events():
                    self.apply(event)
            if other is not None:
                self.apply(other)

    def _apply_plays(self, log: PackedLog) -> None:
        rows = log.rows
        if not len(rows):
            return
        told = is_told(rows)
        self.plays.add_all(rows[is_kind(rows, Asked)])
        self._count_failures(rows)
        self._count_shares(rows)
        self._sum_costs(rows[told | is_kind(rows, Failed)])
        self.plays.settle_all(log)
        self._sum_rewards(rows[told])
        self._find_pending()

    def _count_failures(self, rows: Packed) -> None:
        """Count the failures of each arm since its last result, and the outcomes that came late."""
        failed, told = is_kind(rows, Failed), is_told(rows)
        expired = np.concatenate([self.plays.numbers_in(EXPIRED), rows["play"][is_kind(rows, Expired)]])
        self.late += int(np.isin(rows["play"][failed | told], expired).sum())
        lost = np.flatnonzero(failed)
        _, told_arms = self.plays.where(rows["play"][told])
        _, lost_arms = self.plays.where(rows["play"][lost])
        last = np.full(len(self.labels), -1)
        np.maximum.at(last, told_arms, np.flatnonzero(told))
        since = np.bincount(lost_arms[lost > last[lost_arms]], minlength=len(self.labels))
        self.failures = (np.where(last < 0, self.failures, 0) + since).tolist()

    def _count_shares(self, rows: Packed) -> None:
        """Count the plays at the highest fidelity, one after the other."""
        if self.quota is None:
            return
        fidelities, arms = self.plays.where(rows["play"])
        wanted = (fidelities == len(self._told_at) - 1) & is_kind(rows, Asked, Failed, Expired)
        columns = (column[wanted].tolist() for column in (rows["kind"], rows["play"], arms))
        for code, play, arm in zip(*columns, strict=True):
            if code == CODES[Asked]:
                self.quota.asked(play, arm)
            else:
                self.quota.lost(play, arm, expired=code == CODES[Expired])

    def _sum_costs(self, settled: Packed) -> None:
        costs = np.array(self.fidelities.costs)
        fidelities, _ = self.plays.where(settled["play"])
        usual = (settled["kind"] != CODES[Failed]) & (settled["cost"] == costs[fidelities])
        counts = np.bincount(fidelities[usual], minlength=len(costs))
        self._told_at = [before + int(new) for before, new in zip(self._told_at, counts, strict=True)]
        # One after the other, as they came: another order would round otherwise.
        self._other_costs = float(np.add.accumulate(np.append(self._other_costs, settled["cost"][~usual]))[-1])

    def _sum_rewards(self, told: Packed) -> None:
        plays = told["play"]
        at, rewards, many = self.plays.where(plays), told["reward"], self.plays.observed(plays)
        numbers, sums, _ = each(rewards, many)
        self.changes.see_all(self._stats, at, numbers, sums, len(self.plays.told) - len(plays))
        self._have(add_all(self._stats, at, rewards, many))
        self._kept = None

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
    ToldBatch: State._told,
    ToldInBlock: State._told,
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
    ArmNoted: State._nothing,
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
    SharesSet: State._shares_set,
    DriftFound: State._drift_found,
    ArmForgotten: State._arm_forgotten,
    TimePassed: State._time_passed,
}


def concentrations(fidelities: Fidelities) -> Sequence[Concentration]:
    """The concentration of each fidelity; none where nothing is known of the noise.

    >>> concentrations(Fidelities(costs=[1]))
    ()
    """
    return () if fidelities.concentration is None else fidelities.tails


def _other_noise(before: Fidelities, after: Fidelities) -> list[int]:
    """The fidelities whose noise is not what it was."""
    if before.concentration is None or after.concentration is None:
        return [] if before.concentration is after.concentration else list(range(len(after)))
    return [m for m, (old, new) in enumerate(zip(before.tails, after.tails, strict=True)) if old != new]


def _sum(costs: Iterable[float], plays: Iterable[int]) -> float:
    total: float = sum(map(mul, costs, plays))
    return total
