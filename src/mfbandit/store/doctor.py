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
from mfbandit.store.store_files import ENDINGS, NETWORK_FILE_SYSTEMS, beside, file_system

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
    if place is None:
        return [_sqlite_version()]
    database = database_at(place)
    about = [_sqlite_version(), *_file(Path(database.name))] if isinstance(database, SQLite) else _server(database)
    return about + _tables(database)


def _server(database: Database) -> list[Finding]:
    """Look at a PostgreSQL server: its version, and whether it keeps what it says that it kept."""
    try:
        with closing(database.read()) as connection:
            names = ("server_version", "fsync", "full_page_writes", "synchronous_commit")
            found = {name: str(connection.query(f"SHOW {name}")[0][0]) for name in names}
            checksums = str(connection.query("SHOW data_checksums")[0][0])
    except StoreError as error:
        return [Finding("wrong", "PostgreSQL", str(error))]
    off = [name for name in ("fsync", "full_page_writes") if found[name] == "off"]
    findings = [Finding("good", "PostgreSQL", found["server_version"])]
    if off:
        detail = f"{' and '.join(off)} must be on, got off: a power cut can damage all databases of the server"
        findings.append(Finding("wrong", "durability", detail))
    else:
        findings.append(Finding("good", "durability", "the server flushes what it commits"))
    if checksums == "off":
        detail = "off, so that the server does not notice damaged pages; `pg_checksums --enable` turns them on"
        findings.append(Finding("note", "checksums", detail))
    return findings


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
    files = [path, *(beside(path, ending) for ending in ENDINGS)]
    writable = os.access(folder, os.W_OK) and all(os.access(file, os.W_OK) for file in files if file.exists())
    yield Finding(
        "good" if writable else "wrong", "permissions", "writable" if writable else f"Permission denied: {path}"
    )
    room = os.statvfs(folder)
    free = room.f_bavail * room.f_frsize
    yield Finding("good" if free > LITTLE_SPACE_BYTES else "note", "free space", f"{free / 2**30:,.1f} GiB")
    if path.exists() and not beside(path, "mark").exists():
        detail = f"File not found: {beside(path, 'mark')}; whether the end of the store is missing cannot be told"
        yield Finding("note", "mark", detail)


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
            findings += _leftovers(connection)
            for of in entries(connection):
                findings += _attempt(f"experiment {of.name}", lambda of=of: _experiment(connection, of))  # type: ignore[misc]
            return findings
    except StoreError as error:
        return [Finding("wrong", "store", str(error))]


def _leftovers(connection: Connection) -> list[Finding]:
    """Look for rows that belong to no experiment, or come after the end of its log: somebody else has written."""
    findings = []
    for table, column in (("log", "seq"), ("snapshots", "upto")):
        rows = connection.query(
            f"SELECT experiment, count(*) FROM mfbandit_{table} AS row WHERE NOT EXISTS "  # noqa: S608 - our own names
            f"(SELECT 1 FROM mfbandit_experiments WHERE id = row.experiment AND head >= row.{column}) "
            f"GROUP BY experiment ORDER BY experiment"
        )
        for experiment, count in rows:
            where = f"mfbandit_{table}, {_whose(connection, experiment)}"
            detail = f"{count:,} in {where}: a second process has written; compare with the last backup"
            findings.append(Finding("wrong", "rows", detail))
    return findings or [Finding("good", "rows", "each belongs to an experiment")]


def _whose(connection: Connection, experiment: int) -> str:
    names = connection.query("SELECT name FROM mfbandit_experiments WHERE id = ?", (experiment,))
    if names:
        return f"beyond the end of the log of {names[0][0]}"
    return f"of experiment number {experiment}, which was deleted"


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
