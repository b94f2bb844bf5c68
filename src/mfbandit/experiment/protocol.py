"""What an experiment is, said once: in memory, in a store and at a service are three kinds of it.

:func:`~mfbandit.check_experiment` checks a kind of your own. ``run``, the search and the command line take any.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NotRequired, Protocol, Self, TypeAlias, TypedDict, overload

from mfbandit.core import LEVEL, Audit, Bounds, Fidelities, Play, Reward, Stats
from mfbandit.errors import CapitalExhausted, ExperimentDecided
from mfbandit.experiment.confidence_answer import Confidence
from mfbandit.experiment.difference_answer import Difference
from mfbandit.experiment.drift_answer import Drift
from mfbandit.experiment.events import Decided, Event
from mfbandit.experiment.history import History
from mfbandit.experiment.lift import Lift
from mfbandit.experiment.memory import HalfLife
from mfbandit.experiment.shares import Shares
from mfbandit.experiment.stopping import Sure, checked_stop
from mfbandit.policies import Policy

Result: TypeAlias = tuple[Play | str, Reward, float | None]
"""A play or its id, its reward, and what it really cost (None: what its fidelity costs).

The reward is a number, or a :class:`~mfbandit.Counts` or :class:`~mfbandit.Batch` of many observations."""

PastResult: TypeAlias = (
    tuple[int | str, int, Reward, float | None] | tuple[int | str, int, Reward, float | None, str | None]
)
"""An arm or its name, a fidelity, a reward, what it cost (None: what its fidelity costs), and maybe an id.

In a store and at a service, a result whose id is there already is not added again, ever."""


class Status(TypedDict):
    """An experiment at a glance, ready for JSON; ``name`` and ``created`` where it is in a store."""

    name: NotRequired[str]
    id: str
    state: str
    created: NotRequired[float]
    policy: dict[str, Any]
    arms: int
    fidelities: dict[str, Any]
    capital: float | None
    spent: float
    reserved: float
    lease: float | None
    events: int
    results: list[int]
    observations: list[int]
    pending: int
    retired: list[int]
    set_aside: list[int]
    best: int | None
    best_label: str | None
    doubt: str | None
    runner_up: int | None
    runner_up_label: str | None
    widen: bool
    paused: bool
    stop: dict[str, Any] | None
    decided: dict[str, Any] | None
    decided_label: str | None
    shares: dict[str, Any] | None
    control_label: str | None
    lift: dict[str, Any] | None
    memory: dict[str, Any] | None
    drift: list[dict[str, Any]]
    warnings: list[str]


class AnyExperiment(Protocol):
    """Ask which play to make, tell what came of it. Every kind of experiment offers all of this.

    Every verb takes a request key: the same request with the same key is done once, and answered as before; another
    request with that key is a :class:`~mfbandit.Conflict`. In memory plays have no leases and requests no keys: there
    ``lease`` is None, ``renew`` has nothing to do, and a lease or a key is refused.
    """

    # What it is made of

    @property
    def id(self) -> str:
        """What the ids of its plays begin with; no other experiment has it."""
        ...

    @property
    def policy(self) -> Policy:
        """The rule that picks plays."""
        ...

    @property
    def fidelities(self) -> Fidelities:
        """Costs, biases and noise of each fidelity."""
        ...

    @property
    def arms(self) -> tuple[str, ...]:
        """The names of all arms, retired ones included; an arm's index is its place here."""
        ...

    @property
    def capital(self) -> float | None:
        """Λ, what all plays together may cost; None is unlimited."""
        ...

    @property
    def widen(self) -> bool:
        """Whether biases that results refute are raised at once."""
        ...

    @property
    def stop(self) -> Sure | None:
        """The rule for stopping; None: it goes on, unless the policy decides by a rule of its own."""
        ...

    @property
    def shares(self) -> Shares:
        """The control, and the shares of arms of the plays at the highest fidelity."""
        ...

    @property
    def memory(self) -> HalfLife | None:
        """How long results count; None is for ever."""
        ...

    @property
    def lease(self) -> float | None:
        """Seconds within which a play is told, failed or renewed if ``ask`` says nothing else; None is for ever."""
        ...

    @property
    def remote(self) -> bool:
        """Whether verbs wait for a service, which may be out of reach."""
        ...

    @property
    def shared(self) -> bool:
        """Whether others can use it at the same time: True in a store and at a service."""
        ...

    @property
    def definition(self) -> dict[str, Any]:
        """What the experiment began with, ready for JSON; whatever changed later is in the log."""
        ...

    @property
    def log(self) -> tuple[Event, ...]:
        """Everything that happened, in order."""
        ...

    # What is known now

    @property
    def stats(self) -> Stats:
        """What was learned so far: a copy that later results do not change."""
        ...

    @property
    def spent(self) -> float:
        """The cost of all told plays, and of failed ones that cost something."""
        ...

    @property
    def reserved(self) -> float:
        """The cost of the pending plays."""
        ...

    @property
    def pending(self) -> tuple[Play, ...]:
        """The plays asked for and neither told nor failed, in the order of asking."""
        ...

    @property
    def retired(self) -> tuple[int, ...]:
        """The arms that were retired."""
        ...

    @property
    def set_aside(self) -> tuple[int, ...]:
        """The arms that failed three times in a row; not asked for or recommended until a result or ``restore_arm``."""
        ...

    @property
    def paused(self) -> bool:
        """Whether plays are not handed out for now."""
        ...

    @property
    def decided(self) -> Decided | None:
        """What was decided, and how sure it was at that moment; None as long as it goes on."""
        ...

    @property
    def state(self) -> str:
        """What ``ask`` would do: "running", "decided", "paused", "exhausted" or "no active arms"."""
        ...

    @property
    def history(self) -> History:
        """The results told so far, in the order of telling."""
        ...

    def status(self) -> Status:
        """State, capital, results, pending plays and the best arm so far, all of one moment."""
        ...

    def best(self) -> int:
        """The arm to use if no more plays were made; never one that the highest fidelity has ruled out."""
        ...

    def bounds(self, rho: float | None = None) -> Bounds:
        """Plays, means, widths and bounds of every arm at every fidelity, by results alone."""
        ...

    def confidence(self, level: float = LEVEL) -> Confidence:
        """How sure it is that :meth:`best` names the best arm, how much could be lost, and which arms may be better."""
        ...

    def difference(self, first: int | str, second: int | str, level: float = LEVEL) -> Difference:
        """By how much one arm is better than another, by their indices or names; how sure that is."""
        ...

    def lift(self, level: float = LEVEL) -> Lift | None:
        """By how much the best arm so far is above the control; None without a control or without results."""
        ...

    def is_sure(self, rule: Sure) -> bool:
        """Whether it is sure enough by this rule now; it changes nothing."""
        ...

    def audit(self) -> Audit:
        """Whether the assumed biases hold, by all results so far."""
        ...

    def block_effects(self) -> dict[str, float]:
        """By how much results in each block are above those elsewhere, as far as is known; that is taken out."""
        ...

    def drift(self) -> tuple[Drift, ...]:
        """The means that have changed, by fidelity and arm."""
        ...

    def to_json(self) -> str:
        """The whole experiment with its log, for :meth:`mfbandit.Experiment.from_json`."""
        ...

    # The verbs

    @overload
    def ask(self, *, request_key: str | None = None, lease: float | None = None) -> Play: ...
    @overload
    def ask(self, n: int, *, request_key: str | None = None, lease: float | None = None) -> list[Play]: ...
    def ask(
        self, n: int | None = None, *, request_key: str | None = None, lease: float | None = None
    ) -> Play | list[Play]:
        """The next play to make, or the next ``n``."""
        ...

    def plays(self, until: Sure | None = None) -> Iterator[Play]:
        """Ask again and again until the next play does not fit into the capital, or it is sure enough."""
        ...

    def tell(  # noqa: PLR0913 - options with names and defaults
        self,
        play: Play | str,
        reward: Reward | None = None,
        cost: float | None = None,
        *,
        successes: int | None = None,
        trials: int | None = None,
        weight: int | None = None,
        sd: float | None = None,
        block: str | None = None,
        request_key: str | None = None,
    ) -> None:
        """Take in the result of a play, in any order: a reward, successes and trials, or a mean and its weight."""
        ...

    def tell_many(self, results: Iterable[Result], *, request_key: str | None = None) -> None:
        """Take in many results: all of them, or none if one is refused."""
        ...

    def fail(self, play: Play | str, cost: float = 0.0, *, request_key: str | None = None) -> None:
        """Give a play up: its capital is released, and it leaves no trace in the statistics."""
        ...

    def fail_many(self, plays: Iterable[Play | str], cost: float = 0.0, *, request_key: str | None = None) -> None:
        """Give many plays up: all of them, or none if one is refused."""
        ...

    def renew(self, play: Play | str, lease: float | None = None, *, request_key: str | None = None) -> float | None:
        """Make the lease of a pending play longer, counted from now; returns when it ends, None for never."""
        ...

    def renew_many(
        self, plays: Iterable[Play | str], lease: float | None = None, *, request_key: str | None = None
    ) -> dict[str, float | None]:
        """Make the leases of many pending plays longer: all of them, or none; when they end, by their ids."""
        ...

    def add_results(self, results: Iterable[PastResult], *, request_key: str | None = None) -> list[Play]:
        """Take in results from elsewhere, as plays already made: a warm start."""
        ...

    def add_arm(self, label: str, *, request_key: str | None = None) -> int:
        """Add an arm, which will be tried before any other; returns its index."""
        ...

    def retire_arm(self, arm: int | str, *, request_key: str | None = None) -> None:
        """Stop asking for an arm, by its index or name."""
        ...

    def restore_arm(self, arm: int | str, *, request_key: str | None = None) -> None:
        """Let an arm that was retired, or set aside after failures, take part again."""
        ...

    def forget(self, arm: int | str, *, request_key: str | None = None) -> None:
        """Begin an arm anew, by its index or name: its results until now do not count any more."""
        ...

    def pause(self, *, request_key: str | None = None) -> None:
        """Hand out no plays until :meth:`resume`; results of pending ones are still taken."""
        ...

    def resume(self, *, request_key: str | None = None) -> None:
        """Hand out plays again."""
        ...

    def set_capital(self, capital: float | None, *, request_key: str | None = None) -> None:
        """Change Λ, what all plays together may cost; None is unlimited."""
        ...

    def set_policy(self, policy: Policy, *, request_key: str | None = None) -> None:
        """Let another policy pick plays from now on, with all that was learned."""
        ...

    def set_biases(self, biases: Sequence[float], *, request_key: str | None = None) -> None:
        """Assume other biases ζ_1 > … > ζ_M = 0 from now on."""
        ...

    def set_stop(self, stop: Sure | None, *, request_key: str | None = None) -> None:
        """Stop by another rule from now on, or by none; an experiment that is decided goes on."""
        ...

    def set_shares(
        self,
        *,
        control: int | str | None = None,
        control_share: float = 0.0,
        least_share: float = 0.0,
        request_key: str | None = None,
    ) -> None:
        """Let arms have these shares of the plays at the highest fidelity from now on; what is left out is none."""
        ...

    def note(self, text: str, *, arm: int | str | None = None, request_key: str | None = None) -> None:
        """Write something into the log, for people; maybe about an arm, by its index or name."""
        ...

    def with_patience(self, seconds: float) -> Self:
        """The same experiment for a caller in a hurry: requests to a service are given up after so many seconds."""
        ...


def plays_until_exhausted(experiment: AnyExperiment, until: Sure | None = None) -> Iterator[Play]:
    """Ask again and again until the capital is exhausted, the experiment is decided, or it is sure enough.

    Args:
        experiment: of any kind.
        until: how sure it has to be for this loop to end; None is never.

    >>> from mfbandit import UCB, Bounded, Experiment
    >>> exp = Experiment(UCB(), arms=2, fidelities=Fidelities([1], concentration=Bounded()), capital=5)
    >>> len(list(plays_until_exhausted(exp)))
    5
    """
    return _plays(experiment, checked_stop(until, "until"))  # checked at once, and not with the first play


def _plays(experiment: AnyExperiment, until: Sure | None) -> Iterator[Play]:
    while until is None or not experiment.is_sure(until):
        try:
            play = experiment.ask()
        except (CapitalExhausted, ExperimentDecided):
            return
        yield play
