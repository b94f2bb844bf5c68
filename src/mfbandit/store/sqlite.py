"""A store in one file: SQLite in WAL mode, written by one process at a time."""

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from mfbandit.errors import StoreDamaged, StoreError, StoreNotFound, StoreUnavailable
from mfbandit.store.commits import Commits, behind, read_commits
from mfbandit.store.database import ADD_ACTORS, INDEX, PREFIX, SCHEMA, TABLES, Connection, Rows, transaction
from mfbandit.store.file_lock import begin_reading, end_reading, locked, locked_database
from mfbandit.store.mark import Mark, read_mark
from mfbandit.store.store_files import (
    ENDINGS,
    NETWORK_FILE_SYSTEMS,
    Identity,
    OpenFiles,
    beside,
    check_names,
    check_place,
    file_system,
    flush_folder,
    mode_of,
    open_private,
)

DAMAGE_WORDS = ("malformed", "not a database", "corrupt", "decode")
# Sizes of statements with many rows: one each is kept ready, and a statement runs without Python's lock.
ROWS_PER_STATEMENT = (256, 64, 16, 4, 1)
MAX_VALUES_PER_STATEMENT = 32_000
WAY_OUT = "go on from what is there with --accept-loss (accept_loss=True)"


class SQLite:
    """A file with the tables of a store.

    Args:
        path: where it is, or will be.
    """

    schema = SCHEMA

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)
        self._open_files: OpenFiles | None = None

    @property
    def name(self) -> str:
        """The path."""
        return str(self._path)

    @contextmanager
    def hold(self, purpose: str, *, accept_loss: bool = False) -> "Iterator[SQLiteConnection]":
        """Open the only connection that writes, until it is closed.

        Two processes that write could lose data by a fault of SQLite before 3.51.3, and would each go on from a state
        of their own; hence the locks. They end with the process, whatever that dies of.
        """
        self._check_place(accept_loss=accept_loss)
        with locked(self._path, purpose), _named(self.name):
            lost = self._lost(accept_loss=accept_loss)
            with self._mark() as mark, self._database_file(), locked_database(self._path):
                connection = SQLiteConnection(self.name, sqlite3.connect(self._path, **_OPTIONS), batches=True)
                try:
                    connection.start_writing()
                    flush_folder(self._path)
                    self._open_files = OpenFiles(self.name, self._all_files())
                    connection.watch(self._open_files, mark, lost)
                    yield connection
                finally:
                    connection.close()
                    self._open_files = None
                    if connection.unwanted:
                        self._remove()

    def read(self) -> "SQLiteConnection":
        """Open a connection that reads."""
        if not self._path.is_file():
            raise StoreNotFound(f"Store not found: {self.name}")
        if self._open_files is not None:
            self._open_files.check()  # what is read is what is written
        check_names(self._path)
        key = begin_reading(self._path)
        try:
            with _named(self.name):
                uri = f"file:{quote(str(self._path.absolute()))}?mode=ro"
                return SQLiteConnection(self.name, sqlite3.connect(uri, uri=True, **_OPTIONS), reading=key)
        except BaseException:
            end_reading(key)
            raise

    def owners(self, _: str) -> None:
        """Return None: one process writes at a time."""

    def alone(self, _: Connection) -> AbstractContextManager[None]:
        """Do nothing: whoever holds the file is alone."""
        return nullcontext()

    def migrate(self, connection: Connection, schema: int) -> None:
        """Add who asked for an event (2)."""
        if schema == 1:
            connection.run(ADD_ACTORS)
            return
        raise StoreError(f"{self.name} has tables of form {schema}, which no version wrote")

    def tables(self, connection: Connection) -> set[str]:
        """The names of the tables that are there and begin with our prefix."""
        names = connection.query("SELECT name FROM sqlite_schema WHERE type = 'table'")
        return {name for (name,) in names if name.startswith(PREFIX)}

    def create(self, connection: Connection) -> None:
        """Make the tables, unless the file had some once: one whose first page was wiped out must not pass for new."""
        ((pages,),) = connection.query("PRAGMA page_count")
        if pages > 1 and not connection.query("SELECT 1 FROM sqlite_schema LIMIT 1"):
            raise StoreDamaged(f"{self.name} is damaged: it has {pages} pages and no table; take the last backup")
        for name, columns in TABLES.items():
            connection.run(f"CREATE TABLE {name} ({columns}) WITHOUT ROWID")
        connection.run(INDEX)

    def verify(self, connection: Connection) -> None:
        """Check the small tables; the log has its digests."""
        for table in ("mfbandit_store", "mfbandit_experiments", "mfbandit_tokens"):
            found = connection.query(f"PRAGMA integrity_check({table})")  # names are looked up in an index, too
            if found != [("ok",)]:
                raise StoreDamaged(f"{self.name} is damaged: {found[0][0]}; take the last backup")

    def missing(self, connection: Connection) -> StoreDamaged | None:
        """Compare with the mark; it is read first, as a writer may set it meanwhile."""
        marked = read_mark(beside(self._path, "mark"))
        if marked is None or not marked[1].number:
            return None
        store, found = self._standing(connection)
        return self._compared(marked, store, found)

    def _standing(self, connection: Connection) -> tuple[str, Commits]:
        """The id of the store, and where it stands; nothing of both where there are no tables."""
        if "mfbandit_store" not in self.tables(connection):
            return "", Commits()
        rows = connection.query("SELECT value FROM mfbandit_store WHERE key = 'id'")
        return (str(rows[0][0]) if rows else ""), read_commits(self.name, connection) or Commits()

    def _compared(self, marked: tuple[str, Commits], store: str, found: Commits) -> StoreDamaged | None:
        known = marked[1]
        if found.number < known.number:
            return behind(self.name, found, known, WAY_OUT)
        if store != marked[0] or (found.number == known.number and found != known):
            return StoreDamaged(
                f"{self.name} is not the store that was here, which acknowledged {known.events:,} events: take the "
                f"last backup, or {WAY_OUT}"
            )
        return None

    def _lost(self, *, accept_loss: bool) -> str:
        """What was acknowledged and is gone; an error that says so, unless that is accepted.

        Looked for by a connection that reads: one that writes would remove what is left of a damaged log at its end.
        """
        mark = beside(self._path, "mark")
        try:
            marked = read_mark(mark)
            found: StoreDamaged | None = None
            if marked is not None and marked[1].number:
                found = self._compared(marked, "", Commits())
                if self._path.exists():
                    connection = self.read()
                    try:
                        found = self.missing(connection)
                    finally:
                        connection.close()
        except StoreDamaged as error:
            if not accept_loss or mark.name not in str(error):
                raise
            mark.unlink()
            return str(error)
        if found is not None and not accept_loss:
            raise found
        return "" if found is None else str(found).partition(": take")[0]

    @contextmanager
    def _database_file(self) -> Iterator[None]:
        """Make the file if it is not there; one that stays empty is removed, perhaps because the disk is full."""
        new = not self._path.exists()
        if new:
            os.close(open_private(self._path))
        try:
            yield
        finally:
            with suppress(OSError):
                if new and not self._path.stat().st_size:
                    self._path.unlink()

    def _mark(self) -> Mark:
        return Mark(beside(self._path, "mark"), mode_of(self._path))

    def _all_files(self) -> list[Path]:
        return [self._path, *(beside(self._path, ending) for ending in ENDINGS)]

    def _remove(self) -> None:
        for file in self._all_files():
            with suppress(OSError):
                file.unlink(missing_ok=True)

    def _check_place(self, *, accept_loss: bool) -> None:
        check_place(self._path)
        beside_it = [beside(self._path, ending).exists() for ending in ("writer", "mark")]
        if self._path.exists() and not self._path.stat().st_size and beside_it == [True, False] and not accept_loss:
            raise StoreDamaged(
                f"{self.name} is empty, and was a store before: take the last backup, or delete it and "
                f"{beside(self._path, 'writer').name} to start anew"
            )
        kind = file_system(self._path.absolute().parent)
        if kind in NETWORK_FILE_SYSTEMS:
            raise StoreError(
                f"{self.name} is on a network file system ({kind}), where SQLite's locks do not hold: "
                f"use a local disk, or PostgreSQL"
            )


def open_database(address: str) -> SQLite:
    """The database in a file.

    >>> open_database("ads.db").name
    'ads.db'
    """
    return SQLite(address)


_OPTIONS: dict[str, Any] = {"isolation_level": None, "check_same_thread": False, "timeout": 10.0}


class SQLiteConnection:
    """A connection that names its file in every error."""

    def __init__(
        self, name: str, connection: sqlite3.Connection, *, batches: bool = False, reading: Identity | None = None
    ) -> None:
        self._name, self._connection, self._reading = name, connection, reading
        self._batches = ROWS_PER_STATEMENT if batches else (1,)
        self._files: OpenFiles | None = None
        self._mark: Mark | None = None
        self._store = ""
        self.accepted_loss = ""
        self.unwanted = False

    def start_writing(self) -> None:
        """Set WAL mode, and a flush to disk before every commit is acknowledged."""
        (mode,) = self.query("PRAGMA journal_mode = WAL")[0]
        if mode != "wal":
            raise StoreError(f"{self._name} is on a disk where SQLite's WAL mode does not work: it gave {mode!r}")
        self.run("PRAGMA synchronous = FULL")
        self.run("PRAGMA foreign_keys = ON")  # nothing is appended to an experiment that was deleted
        self.run("PRAGMA fullfsync = ON")  # macOS needs to be told
        self.query("SELECT 1 FROM sqlite_schema LIMIT 1")  # from now on all files are there

    def watch(self, files: OpenFiles, mark: Mark, lost: str) -> None:
        """Compare files with those that are open, and set the mark, from now on.

        Args:
            files: that are open.
            mark: of what is acknowledged.
            lost: what was acknowledged before, and is gone.
        """
        self._files, self._mark, self.accepted_loss = files, mark, lost

    def query(self, sql: str, values: Sequence[Any] = ()) -> Rows:
        """All rows of an answer."""
        with _named(self._name):
            return self._connection.execute(sql, values).fetchall()

    def run(self, sql: str, values: Sequence[Any] = ()) -> int:
        """Run a statement without an answer; return how many rows it changed."""
        with _named(self._name):
            return self._connection.execute("BEGIN IMMEDIATE" if sql == "BEGIN" else sql, values).rowcount

    def insert(self, table: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """Insert many rows in few statements."""
        start, row = 0, f"({', '.join('?' * len(columns))})"
        for size in self._batches:
            while len(rows) - start >= size and size * len(columns) <= MAX_VALUES_PER_STATEMENT:
                values = [value for each in rows[start : start + size] for value in each]
                names, places = ", ".join(columns), ", ".join([row] * size)
                self.run(f"INSERT INTO {table} ({names}) VALUES {places}", values)  # noqa: S608 - our own names
                start += size

    def reading(self) -> AbstractContextManager[None]:
        """Let all queries inside see one and the same state."""
        return transaction(self, "BEGIN DEFERRED")

    def check_hold(self) -> None:
        """Check that the files at their paths are those that are open."""
        if self._files is not None:
            self._files.check()

    def acknowledge(self, commits: Commits) -> None:
        """Set the mark, and check that what was committed is where others will look for it."""
        if self._mark is not None:
            self._store = self._store or str(self.query("SELECT value FROM mfbandit_store WHERE key = 'id'")[0][0])
            self._mark.write(self._store, commits)
        self.check_hold()

    def discard(self) -> None:
        """Remove the store when the connection is closed: nothing was kept in it."""
        self.unwanted = True

    def close(self) -> None:
        """Close the connection."""
        with suppress(sqlite3.Error):
            self._connection.close()
        end_reading(self._reading)
        self._reading = None


@contextmanager
def _named(name: str) -> Iterator[None]:
    """Turn errors of SQLite into those of a store, with the file's name."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        text = str(error)
        if "not a database" in text:
            raise StoreDamaged(f"{name} is no SQLite database, or its beginning is damaged") from error
        if "readonly" in text:
            text += "; its folder and the files beside it, -wal and -shm, must be writable, for readers too"
        if any(word in text for word in DAMAGE_WORDS):
            raise StoreDamaged(
                f"{name} is damaged ({text}): take the last backup; `mfbandit doctor` may say more"
            ) from error
        raise StoreUnavailable(f"{name} cannot be used now: {text}") from error
    except UnicodeDecodeError as error:  # not even the message about it can be read
        raise StoreDamaged(f"{name} is damaged ({error}): take the last backup") from error
