"""Examine what could go wrong with a store, and whether something has."""

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mfbandit._internal.progress import progress_bar
from mfbandit.errors import StoreDamaged, StoreError
from mfbandit.experiment import unpack
from mfbandit.store.database import Connection, Database, check_tables, database_at
from mfbandit.store.log_reader import Entry, entries, packed, pages, read_all
from mfbandit.store.sqlite import SQLite
from mfbandit.store.store_files import NETWORK_FILE_SYSTEMS, file_system

FIXED_VERSION = (3, 51, 3)  # of SQLite: two writers in WAL mode cannot damage a file any more
LITTLE_SPACE_BYTES = 2**28


@dataclass(frozen=True)
class Finding:
    """One thing that was examined.

    Args:
        mark: "good", "note" or "wrong".
        what: the thing.
        detail: what was found, and what to do.
    """

    mark: str
    what: str
    detail: str

    def __str__(self) -> str:
        return f"{self.mark:5}  {self.what}: {self.detail}"


def examine(place: str | None = None) -> list[Finding]:
    """Examine this machine, and a store if one is given.

    >>> print(examine()[0].what)
    SQLite
    """
    findings = [_sqlite_version()]
    if place is None:
        return findings
    database = database_at(place)
    if isinstance(database, SQLite):
        findings += _file(Path(database.name))
    return findings + _tables(database)


def _sqlite_version() -> Finding:
    found = sqlite3.sqlite_version
    if sqlite3.sqlite_version_info < FIXED_VERSION:
        fixed = ".".join(map(str, FIXED_VERSION))
        detail = (
            f"{found}; before {fixed} two processes that write at once can damage a file in WAL mode. mfbandit lets "
            f"one process write, so keep other programs from writing to a store"
        )
        return Finding("note", "SQLite", detail)
    return Finding("good", "SQLite", found)


def _file(path: Path) -> Iterator[Finding]:
    folder = path.absolute().parent
    if not folder.is_dir():
        yield Finding("wrong", "folder", f"Folder not found: {folder}")
        return
    kind = file_system(folder)
    shared = kind in NETWORK_FILE_SYSTEMS
    advice = "SQLite's locks do not hold there; use a local disk or PostgreSQL"
    yield Finding("wrong" if shared else "good", "file system", f"{kind}: {advice}" if shared else kind)
    beside = [path, *(path.with_name(f"{path.name}-{end}") for end in ("wal", "shm", "writer"))]
    writable = os.access(folder, os.W_OK) and all(os.access(file, os.W_OK) for file in beside if file.exists())
    yield Finding(
        "good" if writable else "wrong", "permissions", "writable" if writable else f"Permission denied: {path}"
    )
    room = os.statvfs(folder)
    free = room.f_bavail * room.f_frsize
    yield Finding("good" if free > LITTLE_SPACE_BYTES else "note", "free space", f"{free / 2**30:,.1f} GiB")


def _tables(database: Database) -> list[Finding]:
    try:
        with closing(database.read()) as connection:
            missing = database.missing(connection)
            if missing is not None:
                return [Finding("wrong", "store", str(missing))]
            check_tables(database, connection)
            findings = [
                Finding("good", "tables", "complete, of a known version"),
                *_pages(database, connection),
            ]
            for of in entries(connection):
                findings += _attempt(f"experiment {of.name}", lambda of=of: _experiment(connection, of))  # type: ignore[misc]
            return findings
    except StoreError as error:
        return [Finding("wrong", "store", str(error))]


def _attempt(what: str, look: Callable[[], list[Finding]]) -> list[Finding]:
    try:
        return look()
    except StoreError as error:
        return [Finding("wrong", what, str(error))]


def _pages(database: Database, connection: Connection) -> list[Finding]:
    """Let SQLite check every page of the file."""
    if not isinstance(database, SQLite):
        return []
    found = [text for (text,) in connection.query("PRAGMA integrity_check")]
    if found == ["ok"]:
        return [Finding("good", "pages", "SQLite finds no damage")]
    return [Finding("wrong", "pages", f"{found[0]}; take the last backup")]


def _experiment(connection: Connection, of: Entry) -> list[Finding]:
    """Check every row of the log against its digest, and the snapshots against the rows."""
    with connection.reading():
        with progress_bar(f"log of {of.name}", max(of.head, 1)) as tick:
            parts = []
            for page in pages(connection, of):
                parts.append(packed(of, page))
                tick(len(page))
        rows = unpack(b"".join(parts))
        quick, chain = read_all(connection, of)
        ((snapshots, upto),) = connection.query(
            "SELECT count(*), coalesce(max(upto), 0) FROM mfbandit_snapshots WHERE experiment = ? AND upto <= ?",
            (of.id, of.head),
        )
    if not np.array_equal(rows.view(np.uint8), quick.view(np.uint8)):
        raise StoreDamaged("snapshots and log disagree: take the last backup")
    used = chain.head - chain.tail_rows
    if used != upto:
        raise StoreDamaged(
            f"its snapshots after event {used:,} are damaged; the log itself is whole, and is used instead"
        )
    detail = f"{of.head:,} events, each as it was written; {snapshots} snapshots up to event {upto:,} agree"
    return [Finding("good", f"experiment {of.name}", detail)]
