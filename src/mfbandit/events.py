"""What happens to an experiment, one small record each. Its state is the fold of these, in order."""

from dataclasses import dataclass, fields
from typing import Any, TypeAlias


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


@dataclass(frozen=True, slots=True)
class Failed:
    """A play gave no result; ``cost`` is what it cost all the same."""

    play: int
    cost: float


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


Event: TypeAlias = Asked | Told | Failed | ArmAdded | ArmRetired | ArmSetAside | ArmRestored

_KINDS: dict[str, type[Event]] = {
    kind.__name__: kind for kind in (Asked, Told, Failed, ArmAdded, ArmRetired, ArmSetAside, ArmRestored)
}


def to_record(event: Event) -> dict[str, Any]:
    """The event as a dictionary for JSON.

    >>> to_record(Asked(play=0, arm=3, fidelity=1))
    {'event': 'Asked', 'play': 0, 'arm': 3, 'fidelity': 1}
    """
    values = {field.name: getattr(event, field.name) for field in fields(event)}
    return {"event": type(event).__name__, **values}


def from_record(record: dict[str, Any]) -> Event:
    """The event that :func:`to_record` described.

    >>> from_record({"event": "Asked", "play": 0, "arm": 3, "fidelity": 1})
    Asked(play=0, arm=3, fidelity=1)
    """
    name = record.get("event") if isinstance(record, dict) else record
    kind = _KINDS.get(str(name))
    if kind is None:
        raise ValueError(f"event must be one of {sorted(_KINDS)}, got {name!r}")
    try:
        return kind(**{name: value for name, value in record.items() if name != "event"})
    except TypeError:
        names = [field.name for field in fields(kind)]
        raise ValueError(f"a {kind.__name__} event must have exactly {names}, got {record}") from None
