"""How long results count: old ones fade by half in each half-life."""

import math
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from mfbandit._internal.formatting import plain
from mfbandit._internal.validation import number
from mfbandit.errors import InvalidArgument

LOOKS = 256  # at the time in one half-life: between them, time stands still


@dataclass(frozen=True)
class HalfLife:
    """Results count half as much after so many plays, or after so much time; a quarter after twice that, and so on.

    Args:
        plays: results of all arms after which a result counts half; infinite: nothing fades.
        time: seconds, or a ``timedelta``, instead.

    >>> HalfLife(plays=500), HalfLife(time=timedelta(days=2))
    (HalfLife(plays=500.0), HalfLife(time=172800.0))
    >>> HalfLife()
    Traceback (most recent call last):
    mfbandit.errors.InvalidArgument: a half-life must be given in plays or in time, got neither
    """

    plays: float | None = None
    time: float | timedelta | None = None

    def __post_init__(self) -> None:
        if (self.plays is None) is (self.time is None):
            what = "neither" if self.plays is None else f"plays {self.plays} and time {self.time}"
            raise InvalidArgument(f"a half-life must be given in plays or in time, got {what}")
        if self.plays is not None:
            object.__setattr__(self, "plays", _length("plays", self.plays))
        else:
            seconds = self.time.total_seconds() if isinstance(self.time, timedelta) else self.time
            object.__setattr__(self, "time", _length("time", seconds))

    def __repr__(self) -> str:
        given = f"plays={self.plays}" if self.time is None else f"time={self.time}"
        return f"HalfLife({given})"

    @property
    def seconds(self) -> float | None:
        """The half-life in seconds; None if it is in plays."""
        return None if self.time is None else float(self.time)  # type: ignore[arg-type]

    @property
    def fades(self) -> bool:
        """Whether anything fades: not with an infinite half-life."""
        return math.isfinite(self.seconds if self.plays is None else self.plays)  # type: ignore[arg-type]

    @property
    def words(self) -> str:
        """How long it is, for people.

        >>> HalfLife(plays=500).words, HalfLife(time=3600).words
        ('500 plays', '3,600 seconds')
        """
        return f"{plain(self.plays)} plays" if self.plays is not None else f"{plain(self.seconds or 0.0)} seconds"


def _length(what: str, value: object) -> float:
    if isinstance(value, float) and value == math.inf:
        return value
    length = number(what, value)
    if length <= 0:
        raise InvalidArgument(f"{what} of a half-life must be positive, got {plain(length)}")
    return length


def checked_memory(memory: object) -> HalfLife | None:
    """The memory of an experiment, or an error if it is no half-life.

    >>> checked_memory(500)
    Traceback (most recent call last):
    mfbandit.errors.InvalidArgument: memory must be a HalfLife or None, got 500
    """
    if memory is not None and not isinstance(memory, HalfLife):
        raise InvalidArgument(f"memory must be a HalfLife or None, got {memory!r}")
    return memory


def memory_record(memory: HalfLife | None) -> dict[str, Any] | None:
    """The memory ready for JSON, where an infinite half-life is None.

    >>> memory_record(HalfLife(plays=500)), memory_record(HalfLife(time=math.inf))
    ({'plays': 500.0}, {'time': None})
    """
    if memory is None:
        return None
    name, length = ("plays", memory.plays) if memory.time is None else ("time", memory.seconds)
    return {name: length if memory.fades else None}


def memory_from_record(record: dict[str, Any] | None) -> HalfLife | None:
    """The memory that :func:`memory_record` wrote.

    >>> memory_from_record({"plays": None})
    HalfLife(plays=inf)
    """
    if record is None:
        return None
    if not isinstance(record, dict) or len(record) != 1 or not record.keys() <= {"plays", "time"}:
        raise InvalidArgument(f"memory must have either plays or time, got {record!r}")
    return HalfLife(**{name: math.inf if length is None else length for name, length in record.items()})
