"""What happened, in words; and the kinds of events that a page can be asked for."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mfbandit._internal.formatting import plain, readable
from mfbandit.experiment import (
    FIELDS,
    PLAY_KINDS,
    ArmAdded,
    ArmForgotten,
    ArmNoted,
    ArmReinstated,
    ArmRestored,
    ArmRetired,
    ArmSetAside,
    BiasRefuted,
    Decided,
    DriftFound,
    Event,
    LeasesExtended,
    Noted,
    SharesSet,
    StopSet,
    decision_text,
    shares_from_record,
    stop_from_record,
)
from mfbandit.experiment.events import (
    KINDS,
    Asked,
    Expired,
    Failed,
    Opened,
    Renewed,
    TimePassed,
    Told,
    ToldBatch,
    ToldInBlock,
    Unchanged,
)

_ARM_EVENTS: dict[type[Event], str] = {
    ArmRetired: "arm retired",
    ArmSetAside: "arm set aside after failures",
    ArmRestored: "arm restored",
    ArmReinstated: "retired arm brought back",
    ArmForgotten: "arm begun anew",
}
_WORDS = {
    "Paused": "paused",
    "Resumed": "resumed",
    "CapitalSet": "capital set",
    "PolicySet": "policy set",
    "Noted": "note",
    "BiasesSet": "biases set",
    "BiasesWidened": "refuted biases widened",
    "FidelitiesSet": "fidelities set",
}


@dataclass(frozen=True)
class Group:
    """Kinds of events that belong together.

    Args:
        title: for people.
        kinds: the kinds.
    """

    title: str
    kinds: tuple[type[Event], ...]


_WARNINGS = (BiasRefuted, DriftFound)
_NOTES, _ARMS = (Noted, ArmNoted), (ArmAdded, ArmRetired, ArmSetAside, ArmRestored, ArmReinstated, ArmForgotten)
GROUPS: Mapping[str, Group] = {
    "notes": Group("Notes", _NOTES),
    "arms": Group("Arms that came and went", _ARMS),
    "decisions": Group("Decisions and rules for stopping", (Decided, StopSet)),
    "warnings": Group("Refuted biases and means that changed", _WARNINGS),
    "changes": Group(
        "Other changes",
        tuple(
            kind
            for kind in KINDS
            if kind not in (*PLAY_KINDS, *_NOTES, *_ARMS, *_WARNINGS, Decided, StopSet)
            and kind not in (Opened, TimePassed, Unchanged)
        ),
    ),
}


def event_words(event: Event, labels: Sequence[str], names: Sequence[str]) -> str:
    """Say what happened.

    Args:
        event: what happened; if it is about a play, :func:`play_words` says more.
        labels: the names of arms.
        names: the names of fidelities.

    >>> event_words(ArmNoted(1, "a new picture"), ["a", "b"], ["0"])
    'note about b: a new picture'
    """
    match event:
        case ArmAdded(label):
            return f"arm added: {label}"
        case ArmNoted(arm, text):
            return f"note about {labels[arm]}: {text}"
        case ArmRetired(arm) | ArmSetAside(arm) | ArmRestored(arm) | ArmReinstated(arm) | ArmForgotten(arm):
            return f"{_ARM_EVENTS[type(event)]}: {labels[arm]}"
        case BiasRefuted() | DriftFound():
            return _finding(event, labels[event.arm], names[event.fidelity])
        case StopSet() | Decided() | SharesSet():
            return _rule(event, labels)
    return _about_settings(event)


def _about_settings(event: Event) -> str:
    if isinstance(event, LeasesExtended):
        return f"leases extended by {readable(event.seconds)} s: the service was away, or the clock jumped"
    kind = type(event)
    name = _WORDS.get(kind.__name__, re.sub(r"(?<!^)([A-Z])", r" \1", kind.__name__).lower())
    values = ", ".join(_value(getattr(event, field)) for field in FIELDS[kind])
    return f"{name}: {values}" if values else name


def play_words(event: Event, labels: Sequence[str], names: Sequence[str], where: tuple[int, int]) -> str:
    """Say what happened to a play.

    Args:
        event: what happened.
        labels: the names of arms.
        names: the names of fidelities.
        where: the play's arm and fidelity.

    >>> play_words(Told(7, 0.25, 1.0), ["a"], ["minute"], (0, 0))
    'told: a at minute, 0.25, for 1'
    """
    at = f"{labels[where[0]]} at {names[where[1]]}"
    match event:
        case Asked():
            return f"asked: {at}"
        case Told():
            return f"told: {at}, {outcome_words(event)}, for {plain(event.cost)}"
        case Failed(_, cost):
            return f"failed: {at}{f', for {plain(cost)}' if cost else ''}"
        case Expired():
            return f"lease ran out: {at}"
        case Renewed():
            return f"lease renewed: {at}"
    return event_words(event, labels, names)


def outcome_words(outcome: Event | None) -> str:
    """Say what came of a play.

    >>> outcome_words(ToldBatch(0, 0.037, 1.0, 1000, None, 37)), outcome_words(Failed(0, 0.0)), outcome_words(None)
    ('37 of 1,000', 'failed', 'lease ran out')
    >>> outcome_words(ToldInBlock(0, 0.5, 1.0, 1, None, None, "monday"))
    '0.5, in monday'
    """
    block = f", in {outcome.block}" if isinstance(outcome, ToldInBlock) else ""
    match outcome:
        case ToldBatch(successes=int(successes), weight=trials):
            return f"{successes:,} of {trials:,}{block}"
        case ToldBatch(reward=mean, weight=weight) if weight > 1:
            return f"{plain(mean)}, mean of {weight:,}{block}"
        case Told(reward=reward):
            return f"{plain(reward)}{block}"
        case Failed():
            return "failed"
    return "lease ran out"


def _finding(event: BiasRefuted | DriftFound, label: str, name: str) -> str:
    if isinstance(event, BiasRefuted):
        return f"bias of fidelity {name} refuted by {label}: it must be at least {plain(event.needed, 3)}"
    before, after = plain(event.before, 3), plain(event.after, 3)
    return f"{label} has changed at fidelity {name}: from {before} in its first {event.since:,} observations to {after}"


def _rule(event: StopSet | Decided | SharesSet, labels: Sequence[str]) -> str:
    if isinstance(event, SharesSet):
        return f"shares set: {shares_from_record(event.shares).words(labels) or 'none'}"
    if isinstance(event, Decided):
        return f"decided: {decision_text(event, labels[event.arm])}"
    rule = stop_from_record(event.stop)
    return f"rule for stopping set: {'none' if rule is None else rule.sentence}"


def _value(value: object) -> str:
    match value:
        case None:
            return "unlimited"
        case float():
            return readable(value)
        case list() | tuple():
            return ", ".join(map(_value, value))
    return str(value)
