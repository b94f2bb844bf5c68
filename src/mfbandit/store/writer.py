"""One thread that writes, and commits whatever has queued up meanwhile as one group.

A flush to disk takes as long for one result as for a hundred, so results that arrive during a flush wait together for
the next. Whoever handed one in gets a ticket, which is good once the group is on disk.
"""

import asyncio
import threading
import time
import zlib
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from mfbandit.errors import OutcomeUnknown, StoreError, StoreUnavailable
from mfbandit.experiment import Record, pack, to_row
from mfbandit.store.commits import CommitRow, Commits, StoreRow
from mfbandit.store.database import LOG, Connection, Database, prepare
from mfbandit.store.group_watch import GroupWatch

SNAPSHOT_EVERY = 65_536  # events
SNAPSHOT_EVERY_IF_OWNED = 8_192  # events of a log that another process may have to read in a hurry


@dataclass
class LogEnd:
    """Where the log of an experiment ends: its length, its digest, and the bytes since the last snapshot."""

    experiment: int
    head: int
    digest: int
    epoch: int | None = None  # of its owner, where several processes write to one database
    tail: bytearray = field(default_factory=bytearray)
    tail_rows: int = 0


Job = Callable[[Connection], object]
Append = tuple[LogEnd, Sequence[Record]]


class Ticket:
    """A promise that something will be on disk: wait for it, or await it in a coroutine.

    >>> ticket = Ticket()
    >>> ticket.settle(None)
    >>> ticket.wait()
    """

    def __init__(self) -> None:
        self._settled = threading.Event()
        self._lock = threading.Lock()
        self._error: Exception | None = None
        self._waiting: dict[asyncio.AbstractEventLoop, list[asyncio.Future[None]]] = {}

    def settle(self, error: Exception | None) -> None:
        """Everything is on disk, or an error says that nothing is or that it is unknown."""
        with self._lock:
            self._error = error
            self._settled.set()
        for loop, futures in self._waiting.items():
            try:
                loop.call_soon_threadsafe(_wake, futures)  # once for all of them: it is a system call
            except RuntimeError:  # that loop has ended, and nobody waits there any more
                continue

    def failed(self) -> bool | None:
        """Whether something went wrong; None as long as that is not known.

        >>> Ticket().failed() is None
        True
        """
        return self._error is not None if self._settled.is_set() else None

    def wait(self) -> None:
        """Return once it is on disk, or raise what went wrong."""
        self._settled.wait()
        if self._error is not None:
            raise _fresh(self._error)

    def __await__(self) -> Generator[Any, None, None]:
        future = self._future()
        if future is not None:
            yield from future
        self.wait()

    def _future(self) -> "asyncio.Future[None] | None":
        with self._lock:
            if self._settled.is_set():
                return None
            loop = asyncio.get_running_loop()
            future = loop.create_future()
            self._waiting.setdefault(loop, []).append(future)
            return future


def _wake(futures: "list[asyncio.Future[None]]") -> None:
    for future in futures:
        if not future.done():
            future.set_result(None)


def _fresh(error: Exception) -> Exception:
    """The same error for each of those who wait: tracebacks must not pile up on one object."""
    return type(error)(*error.args)


class Writer:
    """The thread, its queue and its connection.

    Args:
        database: where to write.
        purpose: what this process is, for others who find the store held.
        row: says how far this process has written; that of the store by default.
        accept_loss: whether to go on where something that was acknowledged is gone.

    ``generation`` counts failed groups: whoever keeps a state in memory that went ahead of the disk has to read it
    again when this has changed. Its lock guards the queue and is held for moments; what is handed in for an experiment
    is in the order of that experiment's own lock.
    """

    def __init__(
        self, database: Database, purpose: str, *, row: CommitRow | None = None, accept_loss: bool = False
    ) -> None:
        self.generation = 0
        self.watch = GroupWatch()  # counts groups, for people
        self._row: CommitRow = StoreRow(database.name) if row is None else row
        self._lock = threading.Lock()
        self._database, self._purpose = database, purpose
        self._work_or_end = threading.Condition(self._lock)
        self._queue: list[Append | Job] = []
        self._ticket = Ticket()
        self._ending = False
        self._tried_at = -1e9  # when a change of the row was tried last
        self._stack = ExitStack()
        self._commits: Commits | None = None  # as of the last group that was kept
        self._certain = True  # False after a failure: it may have been kept
        self._unused: Commits | None = None  # where a store stood that was made here
        self._connection: Connection | None = self._connect(accept_loss=accept_loss)
        self.accepted_loss = self._connection.accepted_loss
        self._thread = threading.Thread(target=self._run, name="mfbandit writer", daemon=True)
        self._thread.start()

    def submit(self, work: Append | Job, generation: int | None = None) -> Ticket:
        """Queue work; the ticket is good when it is on disk.

        Args:
            work: rows to append, or something else to do with the connection.
            generation: that of the state that the work stands on; None if it stands on none.

        Raises:
            StoreUnavailable: a group has failed since that state was read.
        """
        with self._lock:
            if self._ending:
                raise StoreError("the store is closed")
            self._check_generation(generation)
            self._queue.append(work)
            self._work_or_end.notify()
            return self._ticket

    def confirm(self, generation: int | None = None) -> Ticket:
        """A ticket that is good when all that was handed in so far is on disk, and nobody else has written since.

        For requests that change nothing: what they are told must be true as well.
        """
        return self.submit(_nothing, generation)

    def waiting(self) -> int:
        """Return how many pieces of work wait for the next group."""
        return len(self._queue)

    def _check_generation(self, generation: int | None) -> None:
        if generation is not None and generation != self.generation:
            raise StoreUnavailable(
                f"{self._database.name}: a write before this one failed, and this one was not made: try again"
            )

    def close(self, *, discard_unused: bool = False) -> None:
        """Write what has queued up, and end.

        Args:
            discard_unused: whether to remove a store that was made here, if nothing was ever kept in it.
        """
        with self._lock:
            self._ending = True
            self._work_or_end.notify()
        self._thread.join()
        if discard_unused and self._connection is not None and self._certain and self._commits == self._unused:
            self._connection.discard()
        if self._connection is not None:
            with suppress(StoreError):  # else others find out by themselves
                self._row.end(self._connection)
        self._stack.close()

    def _run(self) -> None:
        while True:
            with self._lock:
                while not self._queue and not self._ending and not self._renewal_due():
                    self._work_or_end.wait(self._row.renew_seconds)
                if self._ending and not self._queue:
                    return
                if self._renewal_due():
                    self._queue.append(_renewal)
                group, self._queue = self._queue, []
                ticket, self._ticket = self._ticket, Ticket()
            began = time.perf_counter()
            try:
                self._commit(group)
            except StoreError as error:
                self._fail(ticket, error)
            except Exception as error:
                self._fail(ticket, StoreError(f"writing failed: {error!r}"))
            else:
                self.watch.kept(group, time.perf_counter() - began)
                ticket.settle(None)

    def _renewal_due(self) -> bool:
        every = self._row.renew_seconds
        return every is not None and time.monotonic() - self._tried_at >= every

    def is_fresh(self) -> bool:
        """Tell whether nobody else can have written what this process writes, by its own clock."""
        return self._row.is_fresh()

    def _commit(self, group: "list[Append | Job]") -> None:
        work = [one for one in group if one is not _nothing]
        if work:
            self._tried_at = time.monotonic()
        if self._connection is None:
            self._connection = self._connect()
            # What was read while nobody held the store, this group stands on: somebody else may have written since.
            raise StoreUnavailable(f"{self._database.name} was out of reach, and is back: try again")
        connection, known = self._connection, self._known(self._connection)
        if not work:
            if self._row.read(connection) != known:
                raise self._row.overtaken()
            connection.check_hold()
            return
        if all(one is _renewal for one in work):
            self._row.swap(connection, known, known)
            self._row.kept()
            return
        connection.run("BEGIN")
        try:
            _write_all(connection, work)
            new = known.after(*_lengths(work))
            self._row.swap(connection, known, new)
        except BaseException:
            _roll_back(connection)
            raise
        with _outcome_unknown():
            _finish(connection)
            self._commits = new
            self._row.kept()
            connection.acknowledge(new)

    def _known(self, connection: Connection) -> Commits:
        """Where the store stands; read again after a failure, as a commit that was refused may have been kept."""
        known = self._commits
        if known is None or not self._certain:
            found = self._row.read(connection)
            if found is None or known is None or found.epoch != known.epoch:
                self._commits = self._row.begin_again(connection, known)
                raise self._row.overtaken()  # of this group; the next one may be kept
            known = self._commits = found
            self._certain = True
        return known

    def _fail(self, ticket: Ticket, error: StoreError) -> None:
        """The group may be lost, and what was handed in since stands on it: refuse that, too."""
        with self._lock:
            self.generation += 1
            queued, self._queue = bool(self._queue), []
            behind, self._ticket = self._ticket, Ticket()
            self._certain = False
        self.watch.refused(error)
        ticket.settle(error)
        if queued:
            behind.settle(error)
        self._check_connection()

    def _check_connection(self) -> None:
        try:
            if self._connection is not None:
                self._connection.run("BEGIN")  # which fails inside a transaction that could not be ended, too
                self._connection.run("ROLLBACK")
        except StoreError:
            self._connection = None
            with suppress(OSError):
                self._stack.close()
            self._reconnect()

    def _reconnect(self) -> None:
        """Connect again at once, so that no further request has to fail; if that is impossible, the next group tries.

        What was read while nobody held the store may be old: somebody else may have written since.
        """
        with suppress(StoreError):
            self._connection = self._connect()
            self._forget_what_was_read()

    def _forget_what_was_read(self) -> None:
        with self._lock:
            self.generation += 1

    def _connect(self, *, accept_loss: bool = False) -> Connection:
        try:
            held = self._database.hold(self._purpose, accept_loss=accept_loss)
            connection = self._stack.enter_context(held)
            new = prepare(self._database, connection)
            if self._commits is not None:
                self._forget_what_was_read()  # before the row is fresh again: others may have written meanwhile
            self._commits = self._row.begin(connection, self._commits)
            self._certain = True
            self._unused = self._commits if new else None
            connection.acknowledge(self._commits)
        except BaseException:
            self._stack.close()
            raise
        return connection


_LENGTHEN = "UPDATE mfbandit_experiments SET head = ?, digest = ? WHERE id = ? AND head = ?"
_LENGTHEN_AS_OWNER = f"{_LENGTHEN} AND epoch = ?"


def _nothing(_: Connection) -> None:
    """The work of a request that changes nothing."""


def _renewal(_: Connection) -> None:
    """The work of a process that has nothing to write, and must be seen: the row alone changes."""


def _write_all(connection: Connection, group: "Sequence[Append | Job]") -> None:
    appends: list[Append] = []
    for work in group:
        if callable(work):
            _append_all(connection, appends)
            work(connection)
            appends = []
        else:
            appends.append(work)
    _append_all(connection, appends)


def _lengths(group: "Sequence[Append | Job]") -> tuple[list[tuple[int, int, int]], int]:
    """Where the logs of a group end, and how many events it has."""
    appends = [work for work in group if not callable(work)]
    ends = {end.experiment: (end.experiment, end.head, end.digest) for end, _ in appends}
    return list(ends.values()), sum(len(records) for _, records in appends)


@contextmanager
def _outcome_unknown() -> Iterator[None]:
    """Say of an error that nobody knows whether the group was kept."""
    try:
        yield
    except StoreError as error:
        raise OutcomeUnknown(
            f"{error}; whether this was kept is unknown: read the state again, or repeat the request with the same key"
        ) from error


def _finish(connection: Connection) -> None:
    try:
        connection.run("COMMIT")
    except StoreError:
        _roll_back(connection)
        raise


def _roll_back(connection: Connection) -> None:
    with suppress(StoreError):  # what went wrong first is what matters
        connection.run("ROLLBACK")


def _append_all(connection: Connection, appends: Sequence[Append]) -> None:
    """Rows of the log, and with them the new ends of the logs."""
    if not appends:
        return
    rows: list[tuple[Any, ...]] = []
    ends: dict[int, LogEnd] = {}
    heads: dict[int, int] = {}
    for end, records in appends:
        ends[end.experiment] = end
        heads.setdefault(end.experiment, end.head)
        for record in records:
            row = to_row(record)
            rows.append((end.experiment, *row))
            _lengthen(end, row)
    connection.insert("mfbandit_log", LOG, rows)
    for end in ends.values():
        values = [end.head, end.digest, end.experiment, heads[end.experiment]]
        owned = end.epoch is not None
        if connection.run(_LENGTHEN_AS_OWNER if owned else _LENGTHEN, [*values, end.epoch] if owned else values) != 1:
            raise StoreUnavailable(f"a log on disk does not end at event {heads[end.experiment]} any more: try again")
        if end.tail_rows >= (min(SNAPSHOT_EVERY, SNAPSHOT_EVERY_IF_OWNED) if owned else SNAPSHOT_EVERY):
            take_snapshot(connection, end)


def _lengthen(end: LogEnd, row: Sequence[Any]) -> None:
    end.head += 1
    if row[0] != end.head:
        raise StoreUnavailable(f"event {row[0]} came where {end.head} was due: try again")
    data = pack(row)
    end.digest = zlib.crc32(data, end.digest)
    end.tail += data
    end.tail_rows += 1


def take_snapshot(connection: Connection, end: LogEnd) -> None:
    """Keep the bytes of the latest events in one piece, with the digest of the log up to there.

    >>> end = LogEnd(experiment=1, head=0, digest=0)
    >>> end.tail_rows
    0
    """
    packed = zlib.compress(bytes(end.tail), level=1)
    start, values = end.head - end.tail_rows, [(end.experiment, end.head, end.digest, packed)]
    # Where the last ones were damaged, this one reaches further back than they did.
    connection.run("DELETE FROM mfbandit_snapshots WHERE experiment = ? AND upto > ?", (end.experiment, start))
    connection.insert("mfbandit_snapshots", ("experiment", "upto", "digest", "packed"), values)
    end.tail, end.tail_rows = bytearray(), 0
