"""What a store needs of a database, and the tables that it keeps there: the same in SQLite and PostgreSQL."""

import os
import re
import socket
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from mfbandit.errors import InvalidArgument, StoreDamaged, StoreError
from mfbandit.experiment import COLUMNS

if TYPE_CHECKING:
    from mfbandit.store.commits import Commits
    from mfbandit.store.owners import Owners

SCHEMA = 2  # of TABLES; a database that adds to them has a number of its own
PREFIX = "mfbandit_"
LOG = ("experiment", *COLUMNS)
# Types that mean the same to both databases.
TABLES = {
    "mfbandit_store": "key TEXT PRIMARY KEY, value TEXT NOT NULL",
    "mfbandit_experiments": (
        "id BIGINT PRIMARY KEY, name TEXT NOT NULL UNIQUE, created DOUBLE PRECISION NOT NULL, "
        "definition TEXT NOT NULL, request TEXT, head BIGINT NOT NULL, digest BIGINT NOT NULL"
    ),
    "mfbandit_log": (
        "experiment BIGINT NOT NULL REFERENCES mfbandit_experiments (id), seq BIGINT NOT NULL, "
        "time DOUBLE PRECISION NOT NULL, kind TEXT NOT NULL, "
        "play BIGINT, arm BIGINT, fidelity BIGINT, reward DOUBLE PRECISION, cost DOUBLE PRECISION, "
        "due DOUBLE PRECISION, request TEXT, body TEXT, actor TEXT, PRIMARY KEY (experiment, seq)"
    ),
    "mfbandit_snapshots": (
        "experiment BIGINT NOT NULL REFERENCES mfbandit_experiments (id), upto BIGINT NOT NULL, "
        "digest BIGINT NOT NULL, packed BYTEA NOT NULL, "
        "PRIMARY KEY (experiment, upto)"
    ),
    "mfbandit_tokens": (
        "id TEXT PRIMARY KEY, name TEXT NOT NULL, hash TEXT NOT NULL, scope TEXT NOT NULL, "
        "created DOUBLE PRECISION NOT NULL"
    ),
}
ADD_ACTORS = "ALTER TABLE mfbandit_log ADD COLUMN actor TEXT"  # as its last one: readers rely on that
# Events with a text are few, and are looked for when the rest comes from a snapshot.
INDEX = "CREATE INDEX mfbandit_texts ON mfbandit_log (experiment, seq) WHERE body IS NOT NULL"

# Modules by the scheme of an address; each has ``open_database(address)``. A new database is a line here.
DATABASES = {
    "": "mfbandit.store.sqlite",
    "postgresql": "mfbandit.store.postgres",
    "postgres": "mfbandit.store.postgres",
}

Rows = list[tuple[Any, ...]]


class Connection(Protocol):
    """A connection to a database. Statements have ``?`` for values; what goes wrong is a :class:`StoreError`."""

    def query(self, sql: str, values: Sequence[Any] = ()) -> Rows:
        """All rows of an answer."""
        ...

    def run(self, sql: str, values: Sequence[Any] = ()) -> int:
        """Run a statement without an answer; return how many rows it changed."""
        ...

    def insert(self, table: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """Insert many rows in few statements."""
        ...

    def reading(self) -> AbstractContextManager[None]:
        """Let all queries inside see one and the same state."""
        ...

    @property
    def accepted_loss(self) -> str:
        """What was acknowledged and is gone, where that was accepted; empty otherwise."""
        ...

    def check_hold(self) -> None:
        """Check that this still is the connection that writes, as far as it can be told without asking the database."""
        ...

    def acknowledge(self, commits: "Commits") -> None:
        """Take note, where the database itself cannot lose it, that everything up to here is going to be relied on."""
        ...

    def discard(self) -> None:
        """Remove a store that was just made, in which nothing was kept, when the connection is closed."""
        ...

    def close(self) -> None:
        """Close the connection."""
        ...


class Database(Protocol):
    """A place where a store lives."""

    @property
    def name(self) -> str:
        """How to call it in messages; without a password."""
        ...

    @property
    def schema(self) -> int:
        """The number of its tables' form, raised when they change."""
        ...

    def owners(self, purpose: str) -> "Owners | None":
        """Return who owns which experiment, where several processes write; None where one writes at a time.

        Args:
            purpose: what this process is, for others.
        """
        ...

    def hold(self, purpose: str, *, accept_loss: bool = False) -> AbstractContextManager[Connection]:
        """Open the connection that writes, until it is closed.

        It is the only one where there are no owners; then :class:`StoreHeld` says who else has it.

        Args:
            purpose: what this process is, for others who find the store held.
            accept_loss: whether to go on where something that was acknowledged is gone.
        """
        ...

    def read(self) -> Connection:
        """Open a connection that reads; it never waits for the one that writes."""
        ...

    def tables(self, connection: Connection) -> set[str]:
        """The names of the tables that are there and begin with our prefix."""
        ...

    def alone(self, connection: Connection) -> AbstractContextManager[None]:
        """Keep others from making or changing tables meanwhile."""
        ...

    def create(self, connection: Connection) -> None:
        """Make the tables."""
        ...

    def migrate(self, connection: Connection, schema: int) -> None:
        """Bring the tables from an older form to the next, inside a transaction."""
        ...

    def missing(self, connection: Connection) -> StoreDamaged | None:
        """Return an error that says what was acknowledged and is gone; None if nothing is."""
        ...

    def verify(self, connection: Connection) -> None:
        """Look for damage that shows without reading everything; :class:`StoreDamaged` says what it is."""
        ...


def database_at(place: str | os.PathLike[str]) -> Database:
    """The database of a path or of an address.

    >>> database_at("ads.db").name
    'ads.db'
    >>> database_at("mysql://host/ads")
    Traceback (most recent call last):
    mfbandit.errors.InvalidArgument: a store must be a file or a postgresql:// address, got 'mysql://host/ads'
    """
    text = os.fspath(place)
    scheme = text.partition("://")[0] if isinstance(text, str) and "://" in text else ""
    mistyped = isinstance(text, str) and text.startswith(("postgresql:", "postgres:")) and not scheme
    if not isinstance(text, str) or text in ("", ":memory:") or scheme not in DATABASES or mistyped:
        shown = without_password(text) if isinstance(text, str) else text
        raise InvalidArgument(f"a store must be a file or a postgresql:// address, got {shown!r}")
    database: Database = import_module(DATABASES[scheme]).open_database(text)
    return database


def without_password(address: str) -> str:
    """Return an address as it may be shown: without password and options, where it is malformed, too.

    >>> without_password("postgresql://me:secret@host:5432/ads?password=secret")
    'postgresql://me@host:5432/ads'
    >>> without_password("postgresql://me:se/cret@host/ads")
    'postgresql://me@host/ads'
    >>> without_password("ads.db")
    'ads.db'
    """
    scheme, colon, rest = address.partition(":")
    if not colon or "/" not in rest or not scheme.replace("+", "").isalnum():
        return address
    place = rest.lstrip("/")
    slashes = rest[: len(rest) - len(place)]
    login, at, place = _parted(place)
    user = login.partition(":")[0] + at
    host, slash, path = re.split(r"[?#]", place, maxsplit=1)[0].partition("/")
    name, _, port = host.rpartition(":")
    if name and not at and "," not in host and not port.isdecimal():  # a login without its host
        host = name
    return f"{scheme}:{slashes}{user}{host}{slash}{path}"


def _parted(place: str) -> tuple[str, str, str]:
    """What comes before the last @, which a password or an option may have as well, and what comes after it."""
    first, _, options = place.partition("?")
    if "@" not in first and "@" in options and "/" in first:
        return "", "", first.partition(":")[0]  # of an option, or of a password with two special characters
    return first.rpartition("@") if "@" in first else place.rpartition("@")


@contextmanager
def transaction(connection: Connection, begin: str = "BEGIN") -> Iterator[None]:
    """Run all statements inside, or none of them.

    >>> from mfbandit.store.sqlite import SQLite
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, SQLite(f"{folder}/a.db").hold("a test") as connection:
    ...     with transaction(connection):
    ...         _ = connection.run("CREATE TABLE t (a BIGINT)")
    ...     connection.query("SELECT count(*) FROM t")
    [(0,)]
    """
    connection.run(begin)
    try:
        yield
        connection.run("COMMIT")
    except BaseException:
        with suppress(StoreError):  # what went wrong first is what matters
            connection.run("ROLLBACK")
        raise


def prepare(database: Database, connection: Connection) -> bool:
    """Make the tables of a new store, or check those that are there; return whether it is new.

    >>> from mfbandit.store.sqlite import SQLite
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     database = SQLite(f"{folder}/a.db")
    ...     with database.hold("a test") as connection:
    ...         prepare(database, connection)
    ...         check_tables(database, connection)
    True
    """
    with database.alone(connection):
        if database.tables(connection):
            check_tables(database, connection)
            _migrate(database, connection)
            return False
        with transaction(connection):
            database.create(connection)
            made = {"schema": database.schema, "id": os.urandom(8).hex(), "created": repr(time.time()), "checked": ""}
            connection.insert("mfbandit_store", ("key", "value"), [(key, str(value)) for key, value in made.items()])
    return True


def _migrate(database: Database, connection: Connection) -> None:
    """Bring the tables to the form that this version writes, one step at a time."""
    for schema in range(_schema(connection), database.schema):
        with transaction(connection):
            database.migrate(connection, schema)
            connection.run("UPDATE mfbandit_store SET value = ? WHERE key = 'schema'", (str(schema + 1),))


def _schema(connection: Connection) -> int:
    ((found,),) = connection.query("SELECT value FROM mfbandit_store WHERE key = 'schema'")
    return int(found)


def check_tables(database: Database, connection: Connection) -> None:
    """Refuse a store that is newer, incomplete or damaged.

    >>> from mfbandit.store.sqlite import SQLite
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     database = SQLite(f"{folder}/a.db")
    ...     with database.hold("a test") as connection:
    ...         check_tables(database, connection)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    mfbandit.errors.StoreError: ...a.db is no mfbandit store: it has none of its tables
    """
    there = database.tables(connection)
    if not there:
        raise StoreError(f"{database.name} is no mfbandit store: it has none of its tables")
    if "mfbandit_store" in there:
        _check_schema(database, connection)
    if not set(TABLES) <= there:
        missing = ", ".join(sorted(set(TABLES) - there))
        raise StoreDamaged(f"{database.name} is damaged: the tables {missing} are missing; take the last backup")
    database.verify(connection)


def _check_schema(database: Database, connection: Connection) -> None:
    rows = connection.query("SELECT value FROM mfbandit_store WHERE key = ?", ("schema",))
    found = str(rows[0][0]) if rows else ""
    if not found.isdecimal() or int(found) < 1:
        raise StoreDamaged(f"{database.name} is damaged: its schema version is {found!r}; take the last backup")
    if int(found) > database.schema:
        raise StoreError(
            f"{database.name} was written by a newer mfbandit (schema {found}, this one knows {database.schema}): "
            f"upgrade with `pip install --upgrade mfbandit`"
        )


def process_record(purpose: str) -> dict[str, Any]:
    """Describe this process, for others who find the store held.

    >>> sorted(process_record("a test"))
    ['host', 'pid', 'purpose', 'since']
    """
    since = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime())
    return {"purpose": purpose, "pid": os.getpid(), "host": socket.gethostname(), "since": since}


def named_process(purpose: str) -> str:
    """Name this process for others, by its purpose, number and host.

    >>> named_process("a test").startswith("a test, process ")
    True
    """
    me = process_record(purpose)
    return f"{me['purpose']}, process {me['pid']} on {me['host']}"


def purpose_of_this_process() -> str:
    """What the process was started as, such as ``mfbandit experiment``; arguments of other programs may be secret.

    >>> isinstance(purpose_of_this_process(), str)
    True
    """
    program = Path(sys.argv[0]).name if sys.argv and sys.argv[0] else "python"
    commands = [word for word in sys.argv[1:2] if program == "mfbandit" and word.isalpha()]
    return " ".join([program, *commands])
