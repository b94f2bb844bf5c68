"""The state of an experiment: the fold of its events."""

from collections.abc import Iterable, Sequence
from operator import add, mul

from mfbandit.events import ArmAdded, ArmRestored, ArmRetired, ArmSetAside, Asked, Event, Failed, Told
from mfbandit.fidelities import Fidelities
from mfbandit.stats import Stats
from mfbandit.values import HUGE


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
        self.plays: list[Asked] = []
        self.outcomes: list[Told | Failed | None] = []
        self.pending: dict[int, Asked] = {}
        self.retired: set[int] = set()
        self.aside: set[int] = set()
        self.failures: list[int] = []
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
        return Stats(shown.counts, shown.sums, shown.squares, shown.pending, shown.active, self.memory)

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

    def apply(self, event: Event) -> None:
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

    def check(self, event: Event) -> None:
        """Refuse an event that cannot have happened now: for logs that come from outside.

        >>> Ledger(Fidelities(costs=[1]), ["a"]).check(Told(play=7, reward=0.5, cost=1.0))
        Traceback (most recent call last):
        ValueError: the log does not fit together: Told(play=7, reward=0.5, cost=1.0) after 0 plays of 1 arms
        """
        if not self._possible(event):
            raise ValueError(
                f"the log does not fit together: {event} after {len(self.plays)} plays of {len(self.labels)} arms"
            )

    def _possible(self, event: Event) -> bool:  # noqa: PLR0911 - one for each kind of event
        match event:
            case Asked(play, arm, fidelity):
                known = _below(arm, len(self.labels)) and _below(fidelity, len(self.costs))
                return _is_int(play) and play == len(self.plays) and known and bool(self._stats.active[arm])
            case Told(play, reward, cost):
                return _is_int(play) and play in self.pending and _finite(reward) and _finite(cost) and cost >= 0
            case Failed(play, cost):
                return _is_int(play) and play in self.pending and _finite(cost) and cost >= 0
            case ArmAdded(label):
                return isinstance(label, str) and bool(label) and label not in self.index
            case ArmRetired(arm):
                return _below(arm, len(self.labels)) and len(self.retired | {arm}) < len(self.labels)
            case ArmSetAside(arm):
                return _below(arm, len(self.labels))
            case ArmRestored(arm):
                return _is_int(arm) and arm in self.aside

    def _asked(self, event: Asked) -> None:
        self.plays.append(event)
        self.outcomes.append(None)
        self.pending[event.play] = event
        self._stats.pending[event.fidelity, event.arm] += 1
        self._pending_at[event.fidelity] += 1

    def _told(self, event: Told) -> None:
        play = self._settle(event)
        at = (play.fidelity, play.arm)
        self._stats.counts[at] += 1
        self._stats.sums[at] += event.reward
        self._stats.squares[at] += event.reward * event.reward
        self.failures[play.arm] = 0
        if event.cost == self.costs[play.fidelity]:
            self._told_at[play.fidelity] += 1
        else:
            self._other_costs += event.cost

    def _failed(self, event: Failed) -> None:
        play = self._settle(event)
        self.failures[play.arm] += 1
        self._other_costs += event.cost

    def _settle(self, event: Told | Failed) -> Asked:
        play = self.pending.pop(event.play)
        self.outcomes[event.play] = event
        self._stats.pending[play.fidelity, play.arm] -= 1
        self._pending_at[play.fidelity] -= 1
        return play

    def _grow(self, labels: Sequence[str]) -> None:
        self.index.update((label, len(self.labels) + i) for i, label in enumerate(labels))
        self.labels.extend(labels)
        self.failures.extend([0] * len(labels))
        self._stats = self._stats.with_arms(len(labels))
        self._shown = self._stats.read_only()


def _sum(costs: Iterable[float], plays: Iterable[int]) -> float:
    total: float = sum(map(mul, costs, plays))
    return total


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _below(index: int, limit: int) -> bool:
    return _is_int(index) and 0 <= index < limit


def _finite(number: float) -> bool:
    return isinstance(number, int | float) and abs(number) <= HUGE
