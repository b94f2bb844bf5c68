"""A store in PostgreSQL, for teams: the same tables, and several processes that write, each to what it owns."""

import hashlib
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from typing import Any, TypeVar
from urllib.parse import urlsplit

from mfbandit._internal.imports import needed_for
from mfbandit.errors import InvalidArgument, StoreError, StoreHeld, StoreUnavailable
from mfbandit.store.commits import Commits
from mfbandit.store.database import (
    ADD_ACTORS,
    INDEX,
    PREFIX,
    TABLES,
    Connection,
    Rows,
    named_process,
    transaction,
    without_password,
)
from mfbandit.store.membership import TABLE as SERVICES
from mfbandit.store.membership import Membership
from mfbandit.store.owners import Owners

with needed_for("a store in PostgreSQL", "postgres"):
    import psycopg

T = TypeVar("T")
MAX_VALUES_PER_STATEMENT = 60_000
MAX_ROWS_PER_STATEMENT = 256
MAX_APPLICATION_NAME_LENGTH = 63  # of an application, to PostgreSQL
LOCK_WAIT_SECONDS = 5.0  # for a writer of an earlier version that has just died
STORE_LOCK, TABLES_LOCK = 0x6D66, 0x6D68  # the classes of advisory locks: on a store, and on the form of its tables
# A process that was stopped inside a transaction keeps no row from others for longer than it is taken for alive.
_IDLE = "SET idle_in_transaction_session_timeout = '2s'"

SILENCE_SECONDS = 8.0  # of a server that has a statement to answer; it may be stopped, and its system still be there
# On the side of the server, so that a client that has gone without a word does not keep its locks.
_SETTINGS = (
    "SET statement_timeout = '60s'; SET idle_in_transaction_session_timeout = '60s'; "
    "SET tcp_keepalives_idle = 10; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 3"
)
# A server that has gone without a word is noticed within some seconds.
_TIMEOUTS: dict[str, Any] = {
    "connect_timeout": 5,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 15_000,
}


class Postgres:
    """A database with the tables of a store, in the first schema of its search path.

    Args:
        url: postgresql://user:password@host:port/database.
    """

    schema = 3

    def __init__(self, url: str) -> None:
        self._url = url
        self.name = without_password(url)
        try:
            psycopg.conninfo.conninfo_to_dict(url)
            parts = urlsplit(url)
            good = "@" not in parts.path and parts.netloc.count("@") < 2  # noqa: PLR2004 - the rest is of a password
            _ = "," in parts.netloc or parts.port  # a number, where there is one host
        except (psycopg.Error, ValueError):  # whose message may have a part of the password
            good = False
        if not good:
            raise InvalidArgument(
                "the address of a store in PostgreSQL must be postgresql://user:password@host:port/database, with "
                f"special characters as %-codes, got {self.name}"
            )

    @contextmanager
    def hold(self, purpose: str, *, accept_loss: bool = False) -> "Iterator[PostgresConnection]":  # noqa: ARG002
        """Open a connection that writes, until it is closed or lost.

        It shares an advisory lock with others that write. Versions that had one writer take it for themselves.
        """
        connection = self._connect(named_process(purpose)[:MAX_APPLICATION_NAME_LENGTH])
        try:
            self._lock(connection)
            connection.run("SET synchronous_commit = on")
            connection.run(_IDLE)
            yield connection
        finally:
            connection.close()

    def owners(self, purpose: str) -> Owners:
        """Return who owns which experiment."""
        connect = partial(self._connect, "mfbandit owners")
        return Owners(self.name, connect, Membership(self.name, named_process(purpose)))

    def read(self) -> "PostgresConnection":
        """Open a connection that reads."""
        connection = self._connect("mfbandit reader")
        connection.run("SET default_transaction_read_only = on")
        return connection

    def tables(self, connection: Connection) -> set[str]:
        """The names of the tables that are there and begin with our prefix."""
        names = connection.query("SELECT tablename FROM pg_tables WHERE schemaname = current_schema()")
        return {name for (name,) in names if name.startswith(PREFIX)}

    @contextmanager
    def alone(self, connection: Connection) -> "Iterator[None]":
        """Keep others from making or changing tables meanwhile."""
        key = self._key(connection)
        connection.query("SELECT pg_advisory_lock(?, ?)", (TABLES_LOCK, key))
        try:
            yield
        finally:
            with suppress(StoreError):  # a lost session has no lock
                connection.query("SELECT pg_advisory_unlock(?, ?)", (TABLES_LOCK, key))

    def create(self, connection: Connection) -> None:
        """Make the tables."""
        for name, columns in TABLES.items():
            connection.run(f"CREATE TABLE {name} ({columns})")
        connection.run(INDEX)
        _add_owners(connection)

    def migrate(self, connection: Connection, schema: int) -> None:
        """Add the owners of experiments (2), where there was one writer; then who asked for an event (3)."""
        match schema:
            case 1:
                _add_owners(connection)
            case 2:
                connection.run(ADD_ACTORS)
            case _:
                raise StoreError(f"{self.name} has tables of form {schema}, which no version wrote")

    def missing(self, connection: Connection) -> None:
        """Nothing: PostgreSQL checks its own log, and does not start where the end of that cannot be read."""

    def verify(self, connection: Connection) -> None:
        """Check nothing: PostgreSQL looks after its pages, and the log has its digests."""

    def _connect(self, application: str) -> "PostgresConnection":
        with _named(self.name):
            connection = _Impatient.connect(
                self._url, autocommit=True, application_name=application, prepare_threshold=3, **_TIMEOUTS
            )
            connection.execute(_SETTINGS)
        return PostgresConnection(self.name, connection)

    def _key(self, connection: Connection) -> int:
        """The number of this store among those of the database, in its locks."""
        (schema,) = connection.query("SELECT current_schema()")[0]
        return int.from_bytes(hashlib.sha256(f"mfbandit {schema}".encode()).digest()[:4]) - 2**31

    def _lock(self, connection: "PostgresConnection") -> None:
        key = self._key(connection)
        connection.run(f"SET lock_timeout = '{LOCK_WAIT_SECONDS:g}s'")
        try:
            connection.query("SELECT pg_advisory_lock_shared(?, ?)", (STORE_LOCK, key))
        except StoreUnavailable as error:
            if not isinstance(error.__cause__, psycopg.errors.LockNotAvailable):
                raise
            raise StoreHeld(
                f"{self.name} is open for writing elsewhere: {self._holder(connection, key)}; reading is possible"
            ) from None
        connection.run("SET lock_timeout = 0")

    def _holder(self, connection: "PostgresConnection", key: int) -> str:
        held = connection.query(
            "SELECT application_name, backend_start FROM pg_stat_activity JOIN pg_locks USING (pid) "
            "WHERE locktype = 'advisory' AND classid::bigint = ? AND objid::bigint = ? AND granted",
            (STORE_LOCK, key % 2**32),
        )
        return (
            f"by {held[0][0]}, since {held[0][1]:%Y-%m-%d %H:%M:%S %Z}" if held else "by a process that has just gone"
        )


def _add_owners(connection: Connection) -> None:
    connection.run(f"CREATE TABLE mfbandit_services ({SERVICES})")
    connection.run("ALTER TABLE mfbandit_experiments ADD COLUMN owner TEXT")
    connection.run("ALTER TABLE mfbandit_experiments ADD COLUMN epoch BIGINT NOT NULL DEFAULT 0")


def open_database(address: str) -> Postgres:
    """The database at a postgresql:// address.

    >>> open_database("postgresql://me:secret@host/ads").name
    'postgresql://me@host/ads'
    """
    return Postgres(address)


class _Impatient(psycopg.Connection[Any]):
    """A session that is given up when the server does not answer: no time-out of the server's own helps there."""

    def wait(self, gen: "Generator[Any, Any, T]", *args: Any, **options: Any) -> T:  # noqa: ANN401 - as it is there
        """Wait for an answer, as long as something happens."""
        try:
            return super().wait(_unless_silent(gen), *args, **options)
        except _Silent:
            self.pgconn.finish()  # what it would answer later belongs to nobody
            raise


class _Silent(psycopg.OperationalError):
    """The server did not answer."""


def _unless_silent(answer: "Generator[Any, Any, T]") -> "Generator[Any, Any, T]":
    heard = time.monotonic()
    try:
        wanted = next(answer)
        while True:
            ready = yield wanted
            now = time.monotonic()
            if ready:
                heard = now
            elif now - heard > SILENCE_SECONDS:
                raise _Silent(f"the server did not answer for {SILENCE_SECONDS:g} seconds")
            wanted = answer.send(ready)
    except StopIteration as done:
        result: T = done.value
        return result


class PostgresConnection:
    """A connection that names its database in every error."""

    def __init__(self, name: str, connection: "psycopg.Connection[Any]") -> None:
        self._name, self._connection = name, connection
        self.accepted_loss = ""

    def query(self, sql: str, values: Sequence[Any] = ()) -> Rows:
        """All rows of an answer."""
        with _named(self._name):
            return self._connection.execute(_marked(sql), values).fetchall()

    def run(self, sql: str, values: Sequence[Any] = ()) -> int:
        """Run a statement without an answer; return how many rows it changed."""
        with _named(self._name):
            return self._connection.execute(_marked(sql), values or None).rowcount

    def insert(self, table: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """Insert many rows in few statements."""
        row = f"({', '.join('?' * len(columns))})"
        most = min(MAX_ROWS_PER_STATEMENT, MAX_VALUES_PER_STATEMENT // len(columns))
        for start in range(0, len(rows), most):
            part = rows[start : start + most]
            names, places = ", ".join(columns), ", ".join([row] * len(part))
            values = [value for each in part for value in each]
            self.run(f"INSERT INTO {table} ({names}) VALUES {places}", values)  # noqa: S608 - our own names

    def reading(self) -> AbstractContextManager[None]:
        """Let all queries inside see one and the same state."""
        return transaction(self, "BEGIN ISOLATION LEVEL REPEATABLE READ")

    def check_hold(self) -> None:
        """Check nothing: the row of this process was read over this very session."""

    def acknowledge(self, commits: Commits) -> None:
        """Note nothing: a server that lost its end does not start."""

    def discard(self) -> None:
        """Leave the tables where they are: the database was there before."""

    def close(self) -> None:
        """Close the connection."""
        with suppress(psycopg.Error):
            self._connection.close()


def _marked(sql: str) -> Any:  # noqa: ANN401 - psycopg wants literals, ours are made of our own names
    return sql.replace("?", "%s")


@contextmanager
def _named(name: str) -> Iterator[None]:
    """Turn errors of PostgreSQL into those of a store, with the database's name."""
    try:
        yield
    except (psycopg.OperationalError, psycopg.errors.IdleInTransactionSessionTimeout) as error:
        raise StoreUnavailable(f"{name} cannot be used now: {_line(error)}") from error
    except psycopg.errors.UniqueViolation as error:
        raise StoreUnavailable(f"{name}: another process has just written the same: try again") from error
    except psycopg.Error as error:
        raise StoreError(f"{name} refused: {_line(error)}") from error


def _line(error: Exception) -> str:
    return " ".join(str(error).split())
