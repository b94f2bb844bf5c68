"""The state of an experiment: the fold of its events."""

from array import array
from collections.abc import Iterable, Sequence
from operator import add, mul

import numpy as np

from mfbandit._internal.typing import FloatArray, IntArray
from mfbandit._internal.validation import LARGEST_NUMBER
from mfbandit.core import Fidelities, Stats
from mfbandit.errors import InvalidArgument
from mfbandit.experiment.codec import CODES, Packed
from mfbandit.experiment.events import (
    ArmAdded,
    ArmRestored,
    ArmRetired,
    ArmSetAside,
    Asked,
    BiasesSet,
    BiasRefuted,
    CapitalSet,
    Event,
    Expired,
    Failed,
    Noted,
    Paused,
    PolicySet,
    Renewed,
    Resumed,
    Told,
)

PENDING, TOLD, FAILED, EXPIRED = range(4)


class Plays:
    """All plays of an experiment, a column for each of their properties: some thirty bytes a play.

    >>> plays = Plays()
    >>> plays.add(arm=3, fidelity=1)
    >>> plays.settle(0, TOLD, reward=0.5, cost=10.0)
    >>> plays[0], plays.outcome(0)
    ((3, 1), Told(play=0, reward=0.5, cost=10.0))
    """

    def __init__(self) -> None:
        self.arms = array("i")
        self.fidelities = array("h")
        self.states = bytearray()
        self.rewards = array("d")
        self.costs = array("d")
        self.told = array("q")  # numbers of plays in the order of their results

    def __len__(self) -> int:
        return len(self.states)

    def __getitem__(self, play: int) -> tuple[int, int]:
        """Its arm and fidelity."""
        return self.arms[play], self.fidelities[play]

    def add(self, arm: int, fidelity: int) -> None:
        """A play that was handed out."""
        self.arms.append(arm)
        self.fidelities.append(fidelity)
        self.states.append(PENDING)
        self.rewards.append(0.0)
        self.costs.append(0.0)

    def settle(self, play: int, state: int, *, reward: float = 0.0, cost: float = 0.0) -> None:
        """What came of a play."""
        self.states[play] = state
        self.rewards[play] = reward
        self.costs[play] = cost
        if state == TOLD:
            self.told.append(play)

    def outcome(self, play: int) -> Told | Failed | Expired | None:
        """What came of a play, or None while it is under way."""
        match self.states[play]:
            case 1:
                return Told(play, self.rewards[play], self.costs[play])
            case 2:
                return Failed(play, self.costs[play])
            case 3:
                return Expired(play)
        return None

    def results(self) -> tuple[IntArray, IntArray, FloatArray, FloatArray]:
        """Arms, fidelities, rewards and costs of all results, in the order of telling."""
        told = np.array(self.told, dtype=np.int64)
        arms, fidelities = np.array(self.arms, dtype=np.int64), np.array(self.fidelities, dtype=np.int64)
        rewards, costs = np.array(self.rewards, dtype=np.float64), np.array(self.costs, dtype=np.float64)
        return arms[told], fidelities[told], rewards[told], costs[told]


class Ledger:
    """Counts, sums and plays after a sequence of events, each of which must already be known to be valid.

    Args:
        fidelities: the M fidelities, with their costs.
        labels: the names of the first K arms.

    >>> ledger = Ledger(Fidelities(costs=[1, 10], biases=[0.1, 0]), ["a", "b"])
    >>> ledger.apply(Asked(play=0, arm=1, fidelity=0))
    >>> ledger.committed, ledger.spent
    (1.0, 0.0)
    >>> ledger.apply(Told(play=0, reward=0.5, cost=1.0))
    >>> ledger.committed, ledger.spent, ledger.stats.sums.tolist()
    (1.0, 1.0, [[0.0, 0.5], [0.0, 0.0]])
    """

    def __init__(self, fidelities: Fidelities, labels: Sequence[str]) -> None:
        self.costs = fidelities.costs
        self.labels: list[str] = []
        self.index: dict[str, int] = {}
        self.plays = Plays()
        self.pending: dict[int, None] = {}  # in the order of asking
        self.retired: set[int] = set()
        self.aside: set[int] = set()
        self.failures: list[int] = []
        self.paused = False
        self.refuted: dict[tuple[int, int], float] = {}  # needed bias by (fidelity, arm)
        self._told_at = [0] * len(fidelities)
        self._pending_at = [0] * len(fidelities)
        self._other_costs = 0.0
        self.memory: object = None  # the policy's own, see Policy
        self._stats = Stats.empty(len(fidelities), 0)
        self._grow(labels)

    @property
    def stats(self) -> Stats:
        """What was learned so far: read-only, and current until the next event."""
        shown = self._shown
        stats = Stats(shown.counts, shown.sums, shown.squares, shown.pending, shown.active, self.memory)
        stats.__dict__["time"] = 1 + len(self.plays.told) + len(self.pending)  # known without adding up all plays
        return stats

    @property
    def spent(self) -> float:
        """Cost of all told and failed plays: Σ_m λ_m·(results at m), and what other plays really cost."""
        return _sum(self.costs, self._told_at) + self._other_costs

    @property
    def reserved(self) -> float:
        """Cost of the plays under way."""
        return _sum(self.costs, self._pending_at)

    @property
    def committed(self) -> float:
        """Cost of all told and failed plays, and of those under way."""
        return _sum(self.costs, map(add, self._told_at, self._pending_at)) + self._other_costs

    def difference(self, low: int, arm: int) -> float:
        """|X̄_M − X̄_m| of an arm, or 0 where one of them has no result.

        >>> Ledger(Fidelities(costs=[1, 10], biases=[0.1, 0]), ["a"]).difference(0, 0)
        0.0
        """
        counts, sums = self._stats.counts, self._stats.sums
        top, n = counts[-1, arm], counts[low, arm]
        return float(abs(sums[-1, arm] / top - sums[low, arm] / n)) if top and n else 0.0

    def apply(self, event: Event) -> None:  # noqa: PLR0912 - one for each kind of event
        """Move on by one event.

        >>> ledger = Ledger(Fidelities(costs=[1]), ["a"])
        >>> ledger.apply(ArmAdded("b"))
        >>> ledger.labels, ledger.stats.counts.shape
        (['a', 'b'], (1, 2))
        """
        match event:
            case Asked():
                self._asked(event)
            case Told():
                self._told(event)
            case Failed():
                self._failed(event)
            case Expired(play):
                self._release(play)
                self.plays.settle(play, EXPIRED)
                self.failures[self.plays.arms[play]] += 1
            case ArmAdded(label):
                self._grow([label])
            case ArmRetired(arm):
                self.retired.add(arm)
                self._stats.active[arm] = False
            case ArmSetAside(arm):
                self.aside.add(arm)
                self._stats.active[arm] = False
            case ArmRestored(arm):
                self.aside.discard(arm)
                self.failures[arm] = 0
                self._stats.active[arm] = arm not in self.retired
            case Paused():
                self.paused = True
            case Resumed():
                self.paused = False
            case BiasRefuted(fidelity, arm, needed):
                self.refuted[fidelity, arm] = needed
            case BiasesSet():
                self.refuted.clear()
            case Renewed() | CapitalSet() | PolicySet() | Noted():
                pass  # not about plays or arms

    def apply_all(self, rows: Packed) -> None:
        """Move on by many packed events about plays at once; bit for bit what one at a time gives.

        >>> from mfbandit.experiment.codec import Record, pack, to_row, unpack
        >>> told = [Asked(play=0, arm=1, fidelity=0), Told(play=0, reward=0.5, cost=1.0)]
        >>> rows = b"".join(pack(to_row(Record(seq, 0.0, event))) for seq, event in enumerate(told, start=1))
        >>> ledger = Ledger(Fidelities(costs=[1]), ["a", "b"])
        >>> ledger.apply_all(unpack(rows))
        >>> ledger.spent, ledger.stats.sums.tolist()
        (1.0, [[0.0, 0.5]])
        """
        kinds = rows["kind"]
        asked, told = rows[kinds == CODES[Asked]], rows[kinds == CODES[Told]]
        failed, expired = rows[kinds == CODES[Failed]], rows[kinds == CODES[Expired]]
        self._extend(asked)
        late = np.isin(failed["play"], np.flatnonzero(self._states() == EXPIRED))
        late |= np.isin(failed["play"], expired["play"])
        arms = np.frombuffer(self.plays.arms, dtype=np.intc)
        lost = np.concatenate([rows["play"][kinds == CODES[Expired]], failed["play"][~late]])
        places = np.concatenate(
            [np.flatnonzero(kinds == CODES[Expired]), np.flatnonzero(kinds == CODES[Failed])[~late]]
        )
        self._count_failures(arms[told["play"]], np.flatnonzero(kinds == CODES[Told]), arms[lost], places)
        self._sum_costs(rows[(kinds == CODES[Told]) | (kinds == CODES[Failed])])
        del arms  # the columns cannot grow while somebody looks into them
        self._settle_all(told, failed, expired)
        self._sum_rewards(told)
        self._find_pending()

    def check(self, event: Event) -> None:
        """Refuse an event that cannot have happened now: for logs that come from outside.

        >>> Ledger(Fidelities(costs=[1]), ["a"]).check(Told(play=7, reward=0.5, cost=1.0))
        Traceback (most recent call last):
        mfbandit.errors.InvalidArgument: the log does not fit together: Told(play=7, reward=0.5, cost=1.0)
            after 0 plays of 1 arms
        """
        if not self._possible(event):
            raise InvalidArgument(
                f"the log does not fit together: {event} after {len(self.plays)} plays of {len(self.labels)} arms"
            )

    def _possible(self, event: Event) -> bool:  # noqa: PLR0911, PLR0912 - one for each kind of event
        match event:
            case Asked(play, arm, fidelity):
                known = _below(arm, len(self.labels)) and _below(fidelity, len(self.costs))
                return _is_int(play) and play == len(self.plays) and known and bool(self._stats.active[arm])
            case Told(play, reward, cost):
                return self._open(play) and _finite(reward) and _finite(cost) and cost >= 0
            case Failed(play, cost):
                return self._open(play) and _finite(cost) and cost >= 0
            case Expired(play) | Renewed(play):
                return _is_int(play) and play in self.pending
            case ArmAdded(label):
                return isinstance(label, str) and bool(label) and label not in self.index
            case ArmRetired(arm):
                return _below(arm, len(self.labels)) and len(self.retired | {arm}) < len(self.labels)
            case ArmSetAside(arm):
                return _below(arm, len(self.labels))
            case ArmRestored(arm):
                return _is_int(arm) and arm in self.aside
            case Paused() | Resumed():
                return self.paused is isinstance(event, Resumed)
            case CapitalSet(capital):
                return capital is None or (_finite(capital) and capital > 0)
            case PolicySet(policy):
                return isinstance(policy, dict)
            case Noted(text):
                return isinstance(text, str)
            case BiasRefuted(fidelity, arm, needed):
                return _below(fidelity, len(self.costs) - 1) and _below(arm, len(self.labels)) and _finite(needed)
            case BiasesSet(biases):
                return isinstance(biases, list | tuple) and len(biases) == len(self.costs)

    def takes_outcome(self, play: int) -> bool:
        """Whether a play is under way, or expired and still takes a late result."""
        return self.plays.states[play] in (PENDING, EXPIRED)

    def _open(self, play: int) -> bool:
        return _is_int(play) and 0 <= play < len(self.plays) and self.takes_outcome(play)

    def _asked(self, event: Asked) -> None:
        fidelity, arm = event.fidelity, event.arm
        self.plays.add(arm, fidelity)
        self.pending[event.play] = None
        self._stats.pending[fidelity, arm] += 1
        self._pending_at[fidelity] += 1

    def _told(self, event: Told) -> None:
        play, reward, stats = event.play, event.reward, self._stats
        self._release(play)
        self.plays.settle(play, TOLD, reward=reward, cost=event.cost)
        arm, fidelity = self.plays[play]
        at = (fidelity, arm)
        stats.counts[at] += 1
        stats.sums[at] += reward
        stats.squares[at] += reward * reward
        self.failures[arm] = 0
        if event.cost == self.costs[fidelity]:
            self._told_at[fidelity] += 1
        else:
            self._other_costs += event.cost

    def _failed(self, event: Failed) -> None:
        if self._release(event.play):  # else it had expired, and was counted then
            self.failures[self.plays.arms[event.play]] += 1
        self.plays.settle(event.play, FAILED, cost=event.cost)
        self._other_costs += event.cost

    def _release(self, play: int) -> bool:
        """Take a play out of those under way; False for a late one, which is not among them any more."""
        if play not in self.pending:
            return False
        del self.pending[play]
        arm, fidelity = self.plays[play]
        self._stats.pending[fidelity, arm] -= 1
        self._pending_at[fidelity] -= 1
        return True

    def _grow(self, labels: Sequence[str]) -> None:
        self.index.update((label, len(self.labels) + i) for i, label in enumerate(labels))
        self.labels.extend(labels)
        self.failures.extend([0] * len(labels))
        self._stats = self._stats.with_arms(len(labels))
        self._shown = self._stats.read_only()

    # Many at once

    def _states(self) -> IntArray:
        return np.frombuffer(bytes(self.plays.states), dtype=np.uint8).astype(np.int64)

    def _extend(self, asked: Packed) -> None:
        numbers = np.arange(len(self.plays), len(self.plays) + len(asked))
        if not np.array_equal(asked["play"], numbers):
            raise InvalidArgument(f"the log does not fit together: plays must be numbered on from {len(self.plays)}")
        plays = self.plays
        plays.arms.frombytes(asked["arm"].astype(np.intc).tobytes())
        plays.fidelities.frombytes(asked["fidelity"].astype(np.short).tobytes())
        plays.states.extend(bytes(len(asked)))
        plays.rewards.frombytes(bytes(8 * len(asked)))
        plays.costs.frombytes(bytes(8 * len(asked)))

    def _count_failures(self, told: IntArray, told_places: IntArray, lost: IntArray, lost_places: IntArray) -> None:
        """Failures of each arm since its last result."""
        last = np.full(len(self.labels), -1)
        np.maximum.at(last, told, told_places)
        since = np.bincount(lost[lost_places > last[lost]], minlength=len(self.labels))
        before = np.where(last < 0, self.failures, 0)
        self.failures = (before + since).tolist()

    def _sum_costs(self, settled: Packed) -> None:
        fidelities = np.frombuffer(self.plays.fidelities, dtype=np.short)[settled["play"]]
        usual = (settled["kind"] == CODES[Told]) & (settled["cost"] == np.array(self.costs)[fidelities])
        counts = np.bincount(fidelities[usual], minlength=len(self.costs))
        self._told_at = [before + int(new) for before, new in zip(self._told_at, counts, strict=True)]
        # One after the other, as they came: another order would round otherwise.
        self._other_costs = float(np.add.accumulate(np.append(self._other_costs, settled["cost"][~usual]))[-1])

    def _settle_all(self, told: Packed, failed: Packed, expired: Packed) -> None:
        plays = self.plays
        states = np.frombuffer(plays.states, dtype=np.uint8)
        rewards, costs = np.frombuffer(plays.rewards), np.frombuffer(plays.costs)
        states[expired["play"]] = EXPIRED
        for state, settled in ((FAILED, failed), (TOLD, told)):
            states[settled["play"]] = state
            costs[settled["play"]] = settled["cost"]
        rewards[told["play"]] = told["reward"]
        plays.told.frombytes(told["play"].astype(np.int64).tobytes())

    def _sum_rewards(self, told: Packed) -> None:
        fidelities = np.frombuffer(self.plays.fidelities, dtype=np.short)[told["play"]]
        arms, stats = np.frombuffer(self.plays.arms, dtype=np.intc)[told["play"]], self._stats
        np.add.at(stats.counts, (fidelities, arms), 1)
        np.add.at(stats.sums, (fidelities, arms), told["reward"])
        np.add.at(stats.squares, (fidelities, arms), told["reward"] * told["reward"])

    def _find_pending(self) -> None:
        pending = np.flatnonzero(self._states() == PENDING)
        fidelities = np.frombuffer(self.plays.fidelities, dtype=np.short)[pending]
        arms = np.frombuffer(self.plays.arms, dtype=np.intc)[pending]
        self.pending = dict.fromkeys(pending.tolist())
        self._stats.pending[:] = 0
        np.add.at(self._stats.pending, (fidelities, arms), 1)
        self._pending_at = np.bincount(fidelities, minlength=len(self.costs)).tolist()


def _sum(costs: Iterable[float], plays: Iterable[int]) -> float:
    total: float = sum(map(mul, costs, plays))
    return total


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _below(index: int, limit: int) -> bool:
    return _is_int(index) and 0 <= index < limit


def _finite(number: float) -> bool:
    return isinstance(number, int | float) and abs(number) <= LARGEST_NUMBER
