"""A store in one file: SQLite in WAL mode, written by one process at a time."""

import fcntl
import json
import os
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from mfbandit.errors import StoreDamaged, StoreError, StoreHeld, StoreNotFound, StoreUnavailable
from mfbandit.store.database import INDEX, PREFIX, TABLES, Connection, Rows, process_record, transaction

NETWORK_FILE_SYSTEMS = {
    "nfs",
    "nfs4",
    "cifs",
    "smb3",
    "smbfs",
    "afs",
    "9p",
    "glusterfs",
    "lustre",
    "fuse.sshfs",
    "fuse.glusterfs",
}
DAMAGE_WORDS = ("malformed", "not a database", "corrupt", "decode")
# Sizes of statements with many rows: one each is kept ready, and a statement runs without Python's lock.
ROWS_PER_STATEMENT = (256, 64, 16, 4, 1)
MAX_VALUES_PER_STATEMENT = 32_000

_held: set[Path] = set()
_held_lock = threading.Lock()  # a process always gets its own lock, so threads have to be kept apart here


class SQLite:
    """A file with the tables of a store.

    Args:
        path: where it is, or will be.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)

    @property
    def name(self) -> str:
        """The path."""
        return str(self._path)

    @contextmanager
    def hold(self, purpose: str) -> "Iterator[SQLiteConnection]":
        """Open the only connection that writes, until it is closed.

        Two processes that write could lose data by a fault of SQLite before 3.51.3, and would each go on from a state
        of their own; hence the lock. It ends with the process, whatever that dies of.
        """
        self._check_place()
        with _lock(self._path, purpose), _named(self.name):
            connection = SQLiteConnection(self.name, sqlite3.connect(self._path, **_OPTIONS), batches=True)
            try:
                connection.start_writing()
                _flush_folder(self._path)
                yield connection
            finally:
                connection.close()
                if self._path.exists() and not self._path.stat().st_size:
                    self._path.unlink()  # it could not be made, perhaps because the disk is full

    def read(self) -> "SQLiteConnection":
        """Open a connection that reads."""
        if not self._path.is_file():
            raise StoreNotFound(f"Store not found: {self.name}")
        with _named(self.name):
            connection = sqlite3.connect(f"file:{quote(str(self._path.absolute()))}?mode=ro", uri=True, **_OPTIONS)
            return SQLiteConnection(self.name, connection)

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

    def _check_place(self) -> None:
        folder = self._path.absolute().parent
        if not folder.is_dir():
            raise StoreNotFound(f"Folder not found: {folder}, for the store {self.name}")
        if self._path.is_dir():
            raise StoreError(f"{self.name} is a folder, not a store file")
        if not os.access(folder, os.W_OK) or (self._path.exists() and not os.access(self._path, os.W_OK)):
            raise StoreError(f"Permission denied: {self.name} and its folder must be writable")
        if self._path.exists() and not self._path.stat().st_size and _holder_file(self._path).exists():
            raise StoreDamaged(
                f"{self.name} is empty, and was a store before: take the last backup, or delete it and "
                f"{_holder_file(self._path).name} to start anew"
            )
        kind = file_system(folder)
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

    def __init__(self, name: str, connection: sqlite3.Connection, *, batches: bool = False) -> None:
        self._name, self._connection = name, connection
        self._batches = ROWS_PER_STATEMENT if batches else (1,)

    def start_writing(self) -> None:
        """Set WAL mode, and a flush to disk before every commit is acknowledged."""
        (mode,) = self.query("PRAGMA journal_mode = WAL")[0]
        if mode != "wal":
            raise StoreError(f"{self._name} is on a disk where SQLite's WAL mode does not work: it gave {mode!r}")
        self.run("PRAGMA synchronous = FULL")
        self.run("PRAGMA foreign_keys = ON")  # nothing is appended to an experiment that was deleted
        self.run("PRAGMA fullfsync = ON")  # macOS needs to be told

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
        """Check nothing yet."""

    def close(self) -> None:
        """Close the connection."""
        with suppress(sqlite3.Error):
            self._connection.close()


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


@contextmanager
def _lock(path: Path, purpose: str) -> Iterator[None]:
    """Keep other writers out, until the end or until this process dies."""
    real = path.resolve()
    note = _holder_file(path)
    with _held_lock:
        if real in _held:
            raise StoreHeld(f"{path} is open for writing in this process already")
        _held.add(real)
    try:
        with _opened(path, note) as file:
            _acquire(file, path, note)
            os.ftruncate(file, 0)
            with suppress(OSError):  # a full disk: the lock holds without a name
                os.write(file, json.dumps(process_record(purpose)).encode())
            try:
                yield
            finally:
                with suppress(OSError):  # a name that stays is read by nobody who gets the lock
                    os.ftruncate(file, 0)
    finally:
        _held.discard(real)


@contextmanager
def _opened(path: Path, note: Path) -> Iterator[int]:
    try:
        file = os.open(note, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise StoreUnavailable(f"{path} cannot be used now: {error}") from error
    try:
        yield file
    finally:
        os.close(file)


def _holder_file(path: Path) -> Path:
    """The file where the writer leaves its name; it stays, as a sign that there was a store."""
    real = path.resolve()
    return real.with_name(f"{real.name}-writer")


def _acquire(file: int, path: Path, note: Path) -> None:
    try:
        # Of the process, not of the open file: it does not live on in children that were forked off.
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        holder = _holder(note)
        instead = ", and its address can be given in place of the file" if "http://" in holder else ""
        raise StoreHeld(f"{path} is open for writing elsewhere: {holder}; reading is possible{instead}") from None


def _holder(note: Path) -> str:
    try:
        told = json.loads(note.read_text())
        return f"by {told['purpose']}, process {told['pid']} on {told['host']}, since {told['since']}"
    except (OSError, ValueError, LookupError, TypeError):
        return "by a process that did not leave its name"


def _flush_folder(path: Path) -> None:
    """Flush the folder: a new file is safe once its folder is on disk, too."""
    folder = os.open(path.absolute().parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def file_system(folder: Path) -> str:
    """The kind of file system that a folder is on, or "unknown".

    >>> file_system(Path("/proc"))
    'proc'
    """
    try:
        lines = Path("/proc/self/mountinfo").read_text().splitlines()
    except OSError:
        return "unknown"
    best, kind = -1, "unknown"
    real = folder.resolve()
    for line in lines:
        before, _, after = line.partition(" - ")
        mounted = Path(before.split()[4].replace("\\040", " "))
        if (real == mounted or mounted in real.parents) and len(mounted.parts) >= best:
            best, kind = len(mounted.parts), after.split()[0]
    return kind
