"""Events as rows of a table, and as bytes of one fixed layout that numpy reads at once.

The bytes serve two ends. A running CRC-32 over them is the digest of a log: whoever reads the rows again and gets
another digest knows that the log was damaged. And a stretch of them is a snapshot: a million results are folded from
bytes in a fraction of a second, where a million rows would take several.
"""

import json
import struct
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mfbandit.errors import InvalidArgument
from mfbandit.experiment.events import FIELDS, KINDS, Asked, Event, Expired, Failed, Renewed, Told

COLUMNS = ("seq", "time", "kind", "play", "arm", "fidelity", "reward", "cost", "due", "request", "body")
NUMBERS = ("play", "arm", "fidelity", "reward", "cost")  # fields of events that have a column of their own

Row = tuple[int, float, str, int | None, int | None, int | None, float | None, float | None, float | None, Any, Any]

_NAN = float("nan")
_LAYOUT = struct.Struct("<BqihddddI")
DTYPE = np.dtype(
    [
        ("kind", "u1"),
        ("play", "<i8"),
        ("arm", "<i4"),
        ("fidelity", "<i2"),
        ("reward", "<f8"),
        ("cost", "<f8"),
        ("time", "<f8"),
        ("due", "<f8"),
        ("text", "<u4"),
    ]
)
CODES: dict[type[Event], int] = {kind: code for code, kind in enumerate(KINDS)}
_NAMES = {kind.__name__: code for code, kind in enumerate(KINDS)}
_IN_COLUMNS = {kind: tuple(name for name in NUMBERS if name in FIELDS[kind]) for kind in KINDS}
_IN_BODY = {kind: tuple(name for name in FIELDS[kind] if name not in NUMBERS) for kind in KINDS}
WITH_TEXT = [CODES[kind] for kind in KINDS if _IN_BODY[kind]]  # kinds that packed rows do not hold whole

Packed = NDArray[Any]
ABOUT_PLAYS = len((Asked, Told, Failed, Expired, Renewed))  # kinds below this code are about plays


class Record(NamedTuple):
    """An event in a log: its number from 1, when it happened, until when its play is leased, the request that asked.

    >>> from mfbandit.experiment.events import Paused
    >>> Record(seq=1, time=0.0, event=Paused()).event
    Paused()
    """

    seq: int
    time: float
    event: Event
    due: float | None = None
    request: str | None = None


def to_row(record: Record) -> Row:
    """A record as a row of the log's table, in the order of ``COLUMNS``.

    >>> from mfbandit.experiment.events import Noted, Told
    >>> to_row(Record(seq=2, time=1.5, event=Told(play=0, reward=0.5, cost=1.0)))
    (2, 1.5, 'Told', 0, None, None, 0.5, 1.0, None, None, None)
    >>> to_row(Record(seq=3, time=1.5, event=Noted("hello")))[-1]
    '{"text": "hello"}'
    """
    seq, time, event, due, request = record
    kind = type(event)
    play, arm, fidelity, reward, cost = (getattr(event, name, None) for name in NUMBERS)
    names = _IN_BODY[kind]
    body = json.dumps({name: getattr(event, name) for name in names}) if names else None
    return seq, time, kind.__name__, play, arm, fidelity, reward, cost, due, request, body


def from_row(row: Sequence[Any]) -> Record:
    """The record that :func:`to_row` wrote.

    >>> from mfbandit.experiment.events import Noted
    >>> from_row(to_row(Record(seq=3, time=1.5, event=Noted("hello")))).event
    Noted(text='hello')
    """
    seq, time, name, play, arm, fidelity, reward, cost, due, request, body = row
    if name not in _NAMES:
        raise InvalidArgument(f"event must be one of {sorted(_NAMES)}, got {name!r}")
    kind = KINDS[_NAMES[name]]
    numbers = dict(zip(NUMBERS, (play, arm, fidelity, reward, cost), strict=True))
    values = {field: numbers[field] for field in _IN_COLUMNS[kind]}
    if body is not None:
        values |= json.loads(body)
    return Record(seq, time, kind(**values), due, request)


def pack(row: Sequence[Any]) -> bytes:
    """The bytes of a row: its kind, numbers and times, and a CRC-32 of its texts.

    >>> from mfbandit.experiment.events import Told
    >>> len(pack(to_row(Record(seq=2, time=1.5, event=Told(play=0, reward=0.5, cost=1.0)))))
    51
    """
    _, time, name, play, arm, fidelity, reward, cost, due, request, body = row
    return _LAYOUT.pack(
        _NAMES.get(name, 255),
        -1 if play is None else play,
        -1 if arm is None else arm,
        -1 if fidelity is None else fidelity,
        _NAN if reward is None else reward,
        _NAN if cost is None else cost,
        time,
        _NAN if due is None else due,
        0 if request is None and body is None else zlib.crc32(f"{request}\0{body}".encode()),
    )


def unpack(data: bytes) -> Packed:
    """The rows in a stretch of bytes, as a structured array of shape (N,); read-only.

    >>> from mfbandit.experiment.events import Asked
    >>> rows = unpack(pack(to_row(Record(seq=1, time=0.0, event=Asked(play=0, arm=3, fidelity=1)))))
    >>> rows["arm"].tolist()
    [3]
    """
    if len(data) % _LAYOUT.size:
        raise InvalidArgument(f"packed rows must be a multiple of {_LAYOUT.size} bytes, got {len(data)}")
    return np.frombuffer(data, dtype=DTYPE)


@dataclass(frozen=True, eq=False)
class PackedLog:
    """Events that were read back: all of them packed, and those with texts whole.

    Args:
        rows: packed events, in order; shape (N,).
        texts: records of the events that have a text, by their places in ``rows``.

    >>> from mfbandit.experiment.events import Asked, Noted
    >>> log = PackedLog.of([Asked(play=0, arm=3, fidelity=1), Noted("hello")])
    >>> list(log.events())
    [Asked(play=0, arm=3, fidelity=1), Noted(text='hello')]
    """

    rows: Packed
    texts: Mapping[int, Record]

    @classmethod
    def of(cls, events: Iterable[Event]) -> "PackedLog":
        """Pack events, as if they had happened at time 0.

        >>> from mfbandit.experiment.events import Paused
        >>> len(PackedLog.of([Paused()]).rows)
        1
        """
        return cls.of_records([Record(seq, 0.0, event) for seq, event in enumerate(events, start=1)])

    @classmethod
    def of_records(cls, records: Sequence[Record]) -> "PackedLog":
        """Pack records.

        >>> from mfbandit.experiment.events import Paused
        >>> PackedLog.of_records([Record(seq=1, time=2.5, event=Paused())]).rows["time"].tolist()
        [2.5]
        """
        rows = unpack(b"".join(pack(to_row(record)) for record in records))
        texts = {place: record for place, record in enumerate(records) if CODES[type(record.event)] in WITH_TEXT}
        return cls(rows, texts)

    def event(self, place: int) -> Event:
        """The event at a place.

        >>> from mfbandit.experiment.events import Paused
        >>> PackedLog.of([Paused()]).event(0)
        Paused()
        """
        if place in self.texts:
            return self.texts[place].event
        row = self.rows[place]
        kind: type[Event] = KINDS[int(row["kind"])]
        return kind(**{name: row[name].item() for name in _IN_COLUMNS[kind]})

    def events(self) -> Iterator[Event]:
        """All events, one by one."""
        columns = (self.rows[name].tolist() for name in ("kind", *NUMBERS))
        for place, (code, *numbers) in enumerate(zip(*columns, strict=True)):
            if place in self.texts:
                yield self.texts[place].event
                continue
            kind = KINDS[code]
            values = dict(zip(NUMBERS, numbers, strict=True))
            yield kind(**{name: values[name] for name in _IN_COLUMNS[kind]})

    def stretches(self) -> Iterator[tuple[Packed, Event | None]]:
        """Stretches of packed events about plays, each with the other event that ends it; None at the end.

        >>> from mfbandit.experiment.events import Asked, Paused
        >>> log = PackedLog.of([Asked(play=0, arm=3, fidelity=1), Paused()])
        >>> [(len(rows), other) for rows, other in log.stretches()]
        [(1, Paused()), (0, None)]
        """
        start = 0
        for place in np.flatnonzero(self.rows["kind"] >= ABOUT_PLAYS).tolist():
            yield self.rows[start:place], self.event(place)
            start = place + 1
        yield self.rows[start:], None
