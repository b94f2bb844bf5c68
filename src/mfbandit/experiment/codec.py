"""Events as rows of a table, and as bytes of one fixed layout that numpy reads at once.

The bytes serve two ends. A running CRC-32 over them is the digest of a log: whoever reads the rows again and gets
another digest knows that the log was damaged. And a stretch of them is a snapshot: a million results are folded from
bytes in a fraction of a second, where a million rows would take several.
"""

import json
import struct
import zlib
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mfbandit._internal.typing import BoolArray
from mfbandit.errors import InvalidArgument
from mfbandit.experiment.events import (
    FIELDS,
    KINDS,
    Asked,
    Event,
    Expired,
    Failed,
    Renewed,
    Told,
    ToldBatch,
    ToldInBlock,
)

COLUMNS = ("seq", "time", "kind", "play", "arm", "fidelity", "reward", "cost", "due", "request", "body", "actor")
NUMBERS = ("play", "arm", "fidelity", "reward", "cost")  # fields of events that have a column of their own

# seq, time, kind, play, arm, fidelity, reward, cost and due; request, body and actor
Row = tuple[
    int, float, str, int | None, int | None, int | None, float | None, float | None, float | None, Any, Any, Any
]

_ACTOR = COLUMNS.index("actor")
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
TOLD_KINDS = (Told, ToldBatch, ToldInBlock)
PLAY_KINDS = (Asked, *TOLD_KINDS, Failed, Expired, Renewed)
WITH_TEXT = [CODES[kind] for kind in KINDS if _IN_BODY[kind]]  # kinds that packed rows do not hold whole

Packed = NDArray[Any]


def is_kind(rows: Packed, *kinds: type[Event]) -> BoolArray:
    """Which packed events are of some kinds; shape (N,).

    >>> is_kind(PackedLog.of([Expired(play=0), Renewed(play=0)]).rows, Renewed).tolist()
    [False, True]
    """
    wanted = np.zeros(256, dtype=np.bool_)  # one for each code there can be: the fastest way to look them up
    wanted[[CODES[kind] for kind in kinds]] = True
    return np.asarray(wanted[rows["kind"]])


def is_told(rows: Packed) -> BoolArray:
    """Which packed events are results, of one observation or of many; shape (N,)."""
    return is_kind(rows, *TOLD_KINDS)


def is_about_plays(rows: Packed) -> BoolArray:
    """Which packed events are about plays; shape (N,)."""
    return is_kind(rows, *PLAY_KINDS)


class Record(NamedTuple):
    """An event in a log.

    Args:
        seq: its number, from 1.
        time: when it happened, in seconds since 1970.
        event: what happened.
        due: until when its play is leased.
        request: the key of the request that asked for it.
        actor: who asked for it: the name of a token; None where nobody did, or nobody said so.

    >>> from mfbandit.experiment.events import Paused
    >>> Record(seq=1, time=0.0, event=Paused()).event
    Paused()
    """

    seq: int
    time: float
    event: Event
    due: float | None = None
    request: str | None = None
    actor: str | None = None


def to_row(record: Record) -> Row:
    r"""A record as a row of the log's table, in the order of ``COLUMNS``.

    >>> from mfbandit.experiment.events import Noted, Told
    >>> to_row(Record(seq=2, time=1.5, event=Told(play=0, reward=0.5, cost=1.0)))
    (2, 1.5, 'Told', 0, None, None, 0.5, 1.0, None, None, None, None)
    >>> to_row(Record(seq=3, time=1.5, event=Noted("hello"), actor="crew 7"))[-2:]
    ('{"text": "hello"}', 'crew 7\t354ebd08')
    """
    seq, time, event, due, request, actor = record
    kind = type(event)
    play, arm, fidelity, reward, cost = (getattr(event, name, None) for name in NUMBERS)
    names = _IN_BODY[kind]
    body = json.dumps({name: getattr(event, name) for name in names}) if names else None
    signed = None if actor is None else _signed(actor, seq, kind.__name__, play)
    return seq, time, kind.__name__, play, arm, fidelity, reward, cost, due, request, body, signed


def _signed(actor: str, seq: int, name: str, play: int | None) -> str:
    """A name with a checksum that ties it to its row: digests of logs were there before it, and leave it out."""
    return f"{actor}\t{zlib.crc32(f'{actor} {seq} {name} {play}'.encode()):08x}"


def actor_of(row: Sequence[Any]) -> str | None:
    r"""Who asked for what a row says; a row of an earlier version has no such column.

    >>> from mfbandit.experiment.events import Paused
    >>> row = to_row(Record(seq=3, time=1.5, event=Paused(), actor="crew 7"))
    >>> actor_of(row), actor_of(row[:-1])
    ('crew 7', None)
    >>> actor_of((4, *row[1:]))
    Traceback (most recent call last):
    mfbandit.errors.InvalidArgument: the name of whoever did it must be that which was written, got 'crew 7\t40d6be01'
    """
    signed = row[_ACTOR] if len(row) > _ACTOR else None
    if signed is None:
        return None
    actor = str(signed).rpartition("\t")[0]
    if signed != _signed(actor, row[0], row[2], row[3]):
        raise InvalidArgument(f"the name of whoever did it must be that which was written, got {signed!r}")
    return actor


def from_row(row: Sequence[Any]) -> Record:
    """The record that :func:`to_row` wrote.

    >>> from mfbandit.experiment.events import Noted
    >>> from_row(to_row(Record(seq=3, time=1.5, event=Noted("hello")))).event
    Noted(text='hello')
    """
    seq, time, name, play, arm, fidelity, reward, cost, due, request, body = row[:_ACTOR]
    if name not in _NAMES:
        raise InvalidArgument(f"event must be one of {sorted(_NAMES)}, got {name!r}")
    kind = KINDS[_NAMES[name]]
    numbers = dict(zip(NUMBERS, (play, arm, fidelity, reward, cost), strict=True))
    values = {field: numbers[field] for field in _IN_COLUMNS[kind]}
    if body is not None:
        values |= json.loads(body)
    return Record(seq, time, kind(**values), due, request, actor_of(row))


def pack(row: Sequence[Any]) -> bytes:
    """The bytes of a row: its kind, numbers and times, and a CRC-32 of its texts.

    >>> from mfbandit.experiment.events import Told
    >>> len(pack(to_row(Record(seq=2, time=1.5, event=Told(play=0, reward=0.5, cost=1.0)))))
    51
    """
    _, time, name, play, arm, fidelity, reward, cost, due, request, body = row[:_ACTOR]
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

    @property
    def batches(self) -> dict[int, ToldBatch]:
        """The results of many observations, by the numbers of their plays."""
        events = (record.event for record in self.texts.values())
        return {event.play: event for event in events if isinstance(event, ToldBatch)}

    @property
    def has_blocks(self) -> bool:
        """Whether any result is of a block."""
        return CODES[ToldInBlock] in self.rows["kind"]

    def stretches(self) -> "Iterator[tuple[PackedLog, Event | None]]":
        """Stretches of events about plays, each with the other event that ends it; None at the end.

        >>> from mfbandit.experiment.events import Asked, Paused
        >>> log = PackedLog.of([Asked(play=0, arm=3, fidelity=1), Paused()])
        >>> [(len(part.rows), other) for part, other in log.stretches()]
        [(1, Paused()), (0, None)]
        """
        start, places = 0, sorted(self.texts)
        for place in np.flatnonzero(~is_about_plays(self.rows)).tolist():
            yield self._part(start, place, places), self.event(place)
            start = place + 1
        yield self._part(start, len(self.rows), places), None

    def _part(self, start: int, end: int, places: list[int]) -> "PackedLog":
        within = places[bisect_left(places, start) : bisect_left(places, end)]
        return PackedLog(self.rows[start:end], {place - start: self.texts[place] for place in within})
