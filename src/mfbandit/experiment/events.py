"""What happens to an experiment, one small record each. Its state is the fold of these, in order."""

from dataclasses import dataclass, fields
from typing import Any, TypeAlias

from mfbandit.core import Batch, Counts, Observed, Reward, summed
from mfbandit.errors import InvalidArgument


@dataclass(frozen=True, slots=True)
class Asked:
    """Play number ``play`` was handed out."""

    play: int
    arm: int
    fidelity: int


@dataclass(frozen=True, slots=True)
class Told:
    """The result of a play came in; ``cost`` is what it really cost."""

    play: int
    reward: float
    cost: float

    @property
    def observed(self) -> Observed:
        """What it adds to the statistics."""
        return Observed(1, self.reward, self.reward * self.reward, 0)


@dataclass(frozen=True, slots=True)
class ToldBatch(Told):
    """The result of a play that is many observations; ``reward`` is their mean.

    A kind of its own, so that the many results of one observation stay as small as they are.

    Args:
        weight: how many observations there are.
        sd: their sample standard deviation; None where it is not known.
        successes: how many of them were 1, where all others were 0; else None.
    """

    weight: int
    sd: float | None
    successes: int | None

    @property
    def observed(self) -> Observed:
        """What they add to the statistics."""
        return summed(self.reward, self.weight, self.sd, self.successes)


@dataclass(frozen=True, slots=True)
class ToldInBlock(ToldBatch):
    """The result of a play in a block, such as a day; one observation is a batch of one.

    Args:
        block: its name.
    """

    block: str


def told(play: int, reward: Reward, cost: float) -> Told:
    """The event of a result; one observation is a plain one, however it was given.

    >>> told(0, Counts(37, 1000), 1.0)
    ToldBatch(play=0, reward=0.037, cost=1.0, weight=1000, sd=None, successes=37)
    >>> told(0, Counts(1, 1), 1.0)
    Told(play=0, reward=1.0, cost=1.0)
    >>> told(0, Batch(0.5, 1, block="monday"), 1.0)
    ToldInBlock(play=0, reward=0.5, cost=1.0, weight=1, sd=None, successes=None, block='monday')
    """
    if not isinstance(reward, Counts | Batch):
        return Told(play, reward, cost)
    if reward.block is not None:
        many = reward.weight, reward.sd, None if reward.weight == 1 else reward.successes
        return ToldInBlock(play, reward.reward, cost, *many, reward.block)
    if reward.weight == 1:
        return Told(play, reward.reward, cost)
    return ToldBatch(play, reward.reward, cost, reward.weight, reward.sd, reward.successes)


@dataclass(frozen=True, slots=True)
class Failed:
    """A play gave no result; ``cost`` is what it cost all the same."""

    play: int
    cost: float


@dataclass(frozen=True, slots=True)
class Expired:
    """The lease of a play ran out: its capital is free again, and it still takes one late result."""

    play: int


def outcome_text(outcome: Told | Failed | Expired) -> str:
    """Say what came of a play and what it cost, with every digit.

    >>> outcome_text(told(0, Counts(37, 1000), 1.0)), outcome_text(Told(0, 0.5, 1.0))
    ('37 of 1,000 at cost 1.0', 'reward 0.5 at cost 1.0')
    >>> outcome_text(told(0, Batch(0.43, weight=20, sd=0.1), 1.0)), outcome_text(Failed(0, 0.0))
    ('reward 0.43 as the mean of 20 with sd 0.1 at cost 1.0', 'failed at cost 0.0')
    >>> outcome_text(told(0, Batch(0.5, 1, block="monday"), 1.0))
    "reward 0.5 in block 'monday' at cost 1.0"
    """
    match outcome:
        case ToldBatch(successes=int(successes), weight=trials):
            words = f"{successes:,} of {trials:,}"
        case ToldBatch(reward=mean, weight=weight, sd=sd) if weight > 1:
            words = f"reward {mean!r} as the mean of {weight:,}" + ("" if sd is None else f" with sd {sd!r}")
        case Told(reward=reward):
            words = f"reward {reward!r}"
        case Failed():
            words = "failed"
        case Expired():
            return "expired"
    block = f" in block {outcome.block!r}" if isinstance(outcome, ToldInBlock) else ""
    return f"{words}{block} at cost {outcome.cost!r}"


@dataclass(frozen=True, slots=True)
class Renewed:
    """Whoever makes the play is still at it, and its lease was made longer."""

    play: int


@dataclass(frozen=True, slots=True)
class ArmAdded:
    """A new arm, with the next index."""

    label: str


@dataclass(frozen=True, slots=True)
class ArmRetired:
    """The arm is not asked for or recommended any more."""

    arm: int


@dataclass(frozen=True, slots=True)
class ArmSetAside:
    """The arm failed too often in a row and rests until it is restored."""

    arm: int


@dataclass(frozen=True, slots=True)
class ArmRestored:
    """An arm that was set aside takes part again."""

    arm: int


@dataclass(frozen=True, slots=True)
class Paused:
    """No more plays are handed out until it is resumed; results still come in."""


@dataclass(frozen=True, slots=True)
class Resumed:
    """Plays are handed out again."""


@dataclass(frozen=True, slots=True)
class CapitalSet:
    """What all plays together may cost from now on; None is unlimited."""

    capital: float | None


@dataclass(frozen=True, slots=True)
class PolicySet:
    """Another policy picks plays from now on: {name, its fields}."""

    policy: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Noted:
    """Something that people wanted to remember."""

    text: str


@dataclass(frozen=True, slots=True)
class ArmNoted:
    """Something about an arm that people wanted to remember."""

    arm: int
    text: str


@dataclass(frozen=True, slots=True)
class BiasRefuted:
    """Results of an arm refute the bias that was assumed for a fidelity; it must be at least ``needed``."""

    fidelity: int
    arm: int
    needed: float


@dataclass(frozen=True, slots=True)
class BiasesSet:
    """Other biases ζ_1, …, ζ_M are assumed from now on."""

    biases: list[float]


@dataclass(frozen=True, slots=True)
class FidelitiesSet:
    """Other costs, biases and noise of the fidelities are known from now on; what was paid stays paid."""

    fidelities: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ArmReinstated:
    """An arm that was retired takes part again."""

    arm: int


@dataclass(frozen=True, slots=True)
class LeasesExtended:
    """All leases of pending plays end so many seconds later, as the service was away; earlier if that is negative."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Opened:
    """It was opened for writing: the ids of plays asked for from now on have this incarnation."""

    incarnation: str


@dataclass(frozen=True, slots=True)
class Unchanged:
    """A request with a key changed nothing: it is remembered, so that it changes nothing if it comes again."""


@dataclass(frozen=True, slots=True)
class BiasesWidened:
    """Biases that results refuted were raised without a person: ζ_1, …, ζ_M are assumed from now on."""

    biases: list[float]


@dataclass(frozen=True, slots=True)
class StopSet:
    """Another rule for stopping holds from now on: the fields of a :class:`~mfbandit.Sure`, or None for no rule.

    What was decided before is no longer in force, and what the policy itself decides does not count any more.
    """

    stop: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class Decided:
    """The rule for stopping was met, or the policy has decided by a rule of its own: no more plays are handed out.

    Args:
        arm: the answer.
        level: how sure it is that no other arm is better by more than the tolerance; None where the policy has no
            level.
        could_lose: by how much another arm may be better at the level of the rule, in units of reward; None where the
            policy does not say.
        tolerance: of the rule.
        kind: "valid", "estimate", or "policy" for the policy's own rule.
    """

    arm: int
    level: float | None
    could_lose: float | None
    tolerance: float
    kind: str


@dataclass(frozen=True, slots=True)
class SharesSet:
    """Other shares hold from now on, counted from here: the fields of :class:`~mfbandit.Shares`, or None for none.

    It also comes after results from elsewhere, which are no plays that were handed out.
    """

    shares: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class DriftFound:
    """The mean of an arm at a fidelity has changed, as its results show.

    Args:
        fidelity: its index.
        arm: its index.
        since: how many observations of the arm at the fidelity there had been when it most likely changed.
        results: how many results of all arms there had been then.
        before: the mean of the observations before.
        after: that of those since, when it was found.
    """

    fidelity: int
    arm: int
    since: int
    results: int
    before: float
    after: float


@dataclass(frozen=True, slots=True)
class ArmForgotten:
    """The arm begins anew: its results until now do not count any more."""

    arm: int


@dataclass(frozen=True, slots=True)
class TimePassed:
    """So late it is: results fade until then, where their half-life is a time. In seconds since 1970."""

    at: float


Event: TypeAlias = (
    Asked
    | Told
    | Failed
    | Expired
    | Renewed
    | ArmAdded
    | ArmRetired
    | ArmSetAside
    | ArmRestored
    | Paused
    | Resumed
    | CapitalSet
    | PolicySet
    | Noted
    | BiasRefuted
    | BiasesSet
    | FidelitiesSet
    | ArmReinstated
    | LeasesExtended
    | Opened
    | Unchanged
    | BiasesWidened
    | StopSet
    | Decided
    | ToldBatch
    | ArmNoted
    | SharesSet
    | DriftFound
    | ArmForgotten
    | TimePassed
    | ToldInBlock
)

# Stores write these numbers: a new kind goes to the end.
KINDS: tuple[type[Event], ...] = (
    Asked,
    Told,
    Failed,
    Expired,
    Renewed,
    ArmAdded,
    ArmRetired,
    ArmSetAside,
    ArmRestored,
    Paused,
    Resumed,
    CapitalSet,
    PolicySet,
    Noted,
    BiasRefuted,
    BiasesSet,
    FidelitiesSet,
    ArmReinstated,
    LeasesExtended,
    Opened,
    Unchanged,
    BiasesWidened,
    StopSet,
    Decided,
    ToldBatch,
    ArmNoted,
    SharesSet,
    DriftFound,
    ArmForgotten,
    TimePassed,
    ToldInBlock,
)
FIELDS: dict[type[Event], tuple[str, ...]] = {kind: tuple(field.name for field in fields(kind)) for kind in KINDS}
_BY_NAME = {kind.__name__: kind for kind in KINDS}


def to_record(event: Event) -> dict[str, Any]:
    """The event as a dictionary for JSON.

    >>> to_record(Asked(play=0, arm=3, fidelity=1))
    {'event': 'Asked', 'play': 0, 'arm': 3, 'fidelity': 1}
    """
    kind = type(event)
    return {"event": kind.__name__, **{name: getattr(event, name) for name in FIELDS[kind]}}


def from_record(record: dict[str, Any]) -> Event:
    """The event that :func:`to_record` described.

    >>> from_record({"event": "Asked", "play": 0, "arm": 3, "fidelity": 1})
    Asked(play=0, arm=3, fidelity=1)
    """
    name = record.get("event") if isinstance(record, dict) else record
    kind = _BY_NAME.get(str(name))
    if kind is None:
        raise InvalidArgument(f"event must be one of {sorted(_BY_NAME)}, got {name!r}")
    try:
        return kind(**{name: value for name, value in record.items() if name != "event"})
    except TypeError:
        names = list(FIELDS[kind])
        raise InvalidArgument(f"a {kind.__name__} event must have exactly {names}, got {record}") from None
