"""Reading the log of an experiment back: all of it, checked against its digest.

The digest starts from all that an experiment began with and runs over every event. It is written with every group,
so that a log with a byte changed, a row missing or its end cut off does not pass. Snapshots hold the same bytes in
large pieces, each with the digest up to its end; what they do not cover is read from the log's own rows.
"""

import struct
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mfbandit._internal.typing import IntArray
from mfbandit.errors import StoreDamaged, UnknownExperiment
from mfbandit.experiment import Packed, Record, actor_of, from_row, pack, unpack
from mfbandit.store.database import Connection, Rows
from mfbandit.store.writer import LogEnd

ROWS_PER_QUERY = 10_000
MAX_EXPERIMENTS = 2**53  # more than there are
_AFTER = "experiment = ? AND seq > ? AND seq <= ? ORDER BY seq LIMIT ?"


@dataclass(frozen=True)
class Entry:
    """An experiment as its table has it: what it began with, and where its log ends."""

    id: int
    name: str
    created: float
    definition: str
    request: str | None
    head: int
    digest: int

    @property
    def start(self) -> int:
        """The digest before the first event."""
        return first_digest(self.name, self.definition, self.created, self.request)


def first_digest(name: str, definition: str, created: float, request: str | None) -> int:
    """The digest of a log without events.

    >>> first_digest("ads", "{}", 0.0, None) == first_digest("adz", "{}", 0.0, None)
    False
    """
    return zlib.crc32(f"{name}\0{definition}\0{created!r}\0{request}".encode())


def entries(connection: Connection) -> list[Entry]:
    """All experiments, in the order in which they were made."""
    return [_entry(row) for row in connection.query(_ENTRIES + " ORDER BY id")]


def names_after(connection: Connection, number: int, limit: int | None) -> list[tuple[int, str]]:
    """The numbers and names of experiments after a number, in the order in which they were made.

    Args:
        connection: to the database.
        number: that of an experiment, also of one that was deleted; 0 begins with the first.
        limit: how many at most; None is all.
    """
    query = "SELECT id, name FROM mfbandit_experiments WHERE id > ? ORDER BY id"
    rows = (
        connection.query(query, (number,)) if limit is None else connection.query(f"{query} LIMIT ?", (number, limit))
    )
    return [(int(at), str(name)) for at, name in rows]


def find_entry(connection: Connection, name: str) -> Entry | None:
    """The experiment of that name; None if there is none."""
    rows = connection.query(_ENTRIES + " WHERE name = ?", (name,))
    return _entry(rows[0]) if rows else None


def entry(connection: Connection, name: str) -> Entry:
    """The experiment of that name, or an error that lists those that are there."""
    found = find_entry(connection, name)
    if found is None:
        there = [found for (found,) in connection.query("SELECT name FROM mfbandit_experiments ORDER BY id LIMIT 11")]
        names = ", ".join(there[:10]) + (", ..." if len(there) > 10 else "")  # noqa: PLR2004 - those ten
        raise UnknownExperiment(f"Experiment not found: {name!r}; the store has {names or 'none yet'}")
    return found


def _entry(row: tuple[Any, ...]) -> Entry:
    if tuple(map(type, row)) not in _TYPES:
        raise StoreDamaged(f"the entry of experiment {row[1]!r} is damaged; take the last backup")
    return Entry(*row)


_TYPES = [(int, str, float, str, request, int, int) for request in (str, type(None))]
_ENTRIES = "SELECT id, name, created, definition, request, head, digest FROM mfbandit_experiments"


def log_rows(connection: Connection, where: str, values: Sequence[Any]) -> Rows:
    """Rows of the log as :func:`from_row` takes them.

    Args:
        connection: to the database.
        where: which ones.
        values: for the marks in it.
    """
    # All columns, in the order in which they were made: a log that an earlier version wrote has fewer at the end.
    return [row[1:] for row in connection.query(f"SELECT * FROM mfbandit_log WHERE {where}", values)]  # noqa: S608


def read_all(connection: Connection, of: Entry) -> tuple[Packed, LogEnd]:
    """All events packed, and the end of the log for a writer to go on from.

    Whatever snapshot is damaged or does not fit is left out, and the rows of the log are read instead.
    """
    parts, upto, digest = _snapshots(connection, of)
    end = LogEnd(of.id, upto, digest)
    for page in pages(connection, of, after=upto):
        data = packed(of, page)
        end.digest = zlib.crc32(data, end.digest)
        end.head += len(page)
        end.tail += data
        end.tail_rows += len(page)
    _check(of, end.head, end.digest)
    parts.append(unpack(bytes(end.tail)))
    return np.concatenate(parts), end


def _snapshots(connection: Connection, of: Entry) -> tuple[list[Packed], int, int]:
    """The snapshots that follow each other from the start, where the last of them ends, and the digest there."""
    parts: list[Packed] = []
    upto, digest = 0, of.start
    for end, expected, piece in connection.query(
        "SELECT upto, digest, packed FROM mfbandit_snapshots WHERE experiment = ? ORDER BY upto", (of.id,)
    ):
        try:
            data = zlib.decompress(piece)
            rows = unpack(data)
        except (zlib.error, ValueError, TypeError):
            break
        new = zlib.crc32(data, digest)
        if upto + len(rows) != end or new != expected or end > of.head:
            break
        parts, upto, digest = [*parts, rows], end, new
    return parts, upto, digest


def read_page(connection: Connection, of: Entry, after: int, limit: int) -> list[Record]:
    """At most ``limit`` events after a number; a gap among them is damage."""
    rows = log_rows(connection, _AFTER, (of.id, after, of.head, limit))
    if [row[0] for row in rows] != list(range(after + 1, min(after + limit, of.head) + 1)):
        raise damaged(of, f"of its {of.head} events, some after number {after} are missing")
    return _records(of, rows)


def pages(connection: Connection, of: Entry, after: int = 0) -> Iterator[list[tuple[Any, ...]]]:
    """Rows of the log in order, some thousands at a time; a gap among them is damage."""
    while after < of.head:
        rows = log_rows(connection, _AFTER, (of.id, after, of.head, ROWS_PER_QUERY))
        if [row[0] for row in rows] != list(range(after + 1, after + len(rows) + 1)) or not rows:
            raise damaged(of, f"of its {of.head} events, some after number {after} are missing")
        yield rows
        after += len(rows)


def read_records(connection: Connection, of: Entry, after: int = 0) -> Iterator[Record]:
    """Events one by one; those of the whole log (``after=0``) are checked against its digest at the end."""
    digest, seq = of.start, after
    for page in pages(connection, of, after):
        digest = zlib.crc32(packed(of, page), digest)
        yield from _records(of, page)
        seq += len(page)
    if after == 0:
        _check(of, seq, digest)


def texts_as_written(of: Entry, rows: Packed, found: list[tuple[Any, ...]], due: IntArray) -> list[Record]:
    """Records that were read beside the packed rows, which have no texts: all that are due, each as it was written.

    Args:
        of: whose log it is.
        rows: all its events packed, checked already.
        found: rows of the log that have a text.
        due: numbers of events that must be among them.
    """
    numbers = [row[0] for row in found]
    known = all(type(number) is int and 0 < number <= len(rows) for number in numbers)
    places = np.array(numbers if known else [], dtype=np.int64) - 1
    if not known or not np.isin(due, places + 1).all() or rows[places].tobytes() != packed(of, found):
        raise damaged(of, "the texts of its events are not those that were written")
    return _records(of, found)


def _records(of: Entry, rows: list[tuple[Any, ...]]) -> list[Record]:
    try:
        return [from_row(row) for row in rows]
    except (ValueError, TypeError) as error:
        raise damaged(of, f"an event after {rows[0][0]} cannot be read ({error})") from None


def packed(of: Entry, page: list[tuple[Any, ...]]) -> bytes:
    """The bytes of rows of the log, which say as well who asked for what."""
    try:
        for row in page:
            actor_of(row)
        return b"".join(map(pack, page))
    except (struct.error, TypeError, ValueError) as error:
        raise damaged(
            of, f"an event between {page[0][0]} and {page[-1][0]} is not what can be written ({error})"
        ) from None


def _check(of: Entry, head: int, digest: int) -> None:
    if (head, digest) != (of.head, of.digest):
        raise damaged(of, "its events are not those that were written")


def damaged(of: Entry, what: str) -> StoreDamaged:
    """The error for a log that cannot be trusted."""
    return StoreDamaged(
        f"the log of experiment {of.name!r} is damaged: {what}. Nothing was changed; take the last backup, or look at "
        f"what is left with `mfbandit doctor`"
    )
