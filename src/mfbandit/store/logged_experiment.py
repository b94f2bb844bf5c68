"""One experiment of a store: a core in memory, what else its log folds to, and the end of that log on disk."""

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

import numpy as np

from mfbandit._internal.typing import IntArray
from mfbandit.core import Fidelities
from mfbandit.errors import InvalidArgument, StoreUnavailable, UnknownExperiment
from mfbandit.experiment import (
    WITH_TEXT,
    Asked,
    Event,
    Experiment,
    Failed,
    Opened,
    Packed,
    PackedLog,
    Record,
    Renewed,
    TimePassed,
    Told,
    from_row,
)
from mfbandit.policies import Policy
from mfbandit.store.actor import ACTOR
from mfbandit.store.database import Connection
from mfbandit.store.home import Home
from mfbandit.store.import_ids import ImportIds, import_record
from mfbandit.store.leases import Leases
from mfbandit.store.log_reader import (
    Entry,
    damaged,
    entry,
    log_rows,
    read_all,
    read_page,
    read_records,
    texts_as_written,
)
from mfbandit.store.recent import RecentEvents
from mfbandit.store.request_keys import RequestKeys, key_of
from mfbandit.store.writer import Job, LogEnd, Ticket, Writer

NUMBERS_PER_QUERY = 500
STALE = -1  # a generation that no writer has

T = TypeVar("T")


@dataclass(eq=False)
class LogState:
    """Everything that a log has led to.

    Args:
        entry: what the experiment began with, and where its log ended when it was read.
        end: where the log ends, as the writer sees it.
        core: the experiment in memory; its events are taken out and written to disk.
        lease: seconds that a play may take if nothing else is said; None is for ever.
        leases: until when pending plays are leased.
        requests: the requests that had keys.
        imports: the ids of results from elsewhere.
        recent: what happened lately.
        events: how many events there are, those included that are not on disk yet.
        outages_seen: how many of the store's outages the leases were extended by.
        owed: seconds by which they are to be extended for earlier ones.
    """

    entry: Entry
    end: LogEnd
    core: Experiment
    lease: float | None
    leases: Leases
    requests: RequestKeys
    imports: ImportIds
    recent: RecentEvents
    events: int
    outages_seen: int
    owed: float

    def take_news(
        self,
        now: float,
        request: str | None = None,
        due: float | None = None,
        ids: Mapping[int, str] | None = None,
        actor: str | None = None,
    ) -> list[Record]:
        """Number the core's new events as those of one request, and fold them into everything else."""
        records = []
        for event in self.core.drain():
            self.events += 1
            until = due if isinstance(event, Asked | Renewed) else None
            # That is no part of a request.
            asked_for = () if isinstance(event, Opened | TimePassed) else (request, actor)
            record = Record(self.events, now, event, until, *asked_for)
            if ids and isinstance(event, Told) and event.play in ids:
                record = import_record(record, ids[event.play])
                self.imports.apply(record)
            records.append(record)
            self.leases.apply(record)
            self.requests.apply(record)
            self.recent.apply(record)
        return records


@dataclass(frozen=True)
class Repeatable(Generic[T]):
    """A request that may come again.

    Args:
        text: its key and the digest of its content.
        kinds: that its first event may have.
        answer: its answer, from what it made.
    """

    text: str
    kinds: tuple[type[Event], ...]
    answer: Callable[[Experiment, list[int]], T]


class LoggedExperiment:
    """An experiment of a store, shared by all who use it; whatever fails, it goes on from what is on disk.

    A lock of its own orders all that happens to it, in memory and in its log. Other experiments do not wait for it.

    Args:
        home: the store.
        name: its name there.
        policy: the policy it began with, where that is one of your own and not the package's.
        fidelities: its fidelities, where their concentration is one of your own.
    """

    def __init__(self, home: Home, name: str, policy: Policy | None, fidelities: Fidelities | None) -> None:
        self.home, self.name = home, name
        self._given_policy, self._given_fidelities = policy, fidelities
        self._deleted = self._left = False
        self._away = 0, 0.0  # the end of the log when it was taken over, and for how long nobody had been there
        self.expiries = 0  # leases that ran out since it was opened here
        self._lock = threading.RLock()
        self._generation = home.generation()
        self._folded = self._load()

    @contextmanager
    def current(self) -> Iterator[LogState]:
        """Inside, nothing changes, and what is seen is what was kept."""
        with self._lock:
            if self._deleted:
                raise UnknownExperiment(f"experiment {self.name!r} was deleted from {self.home.name}")
            if self._left:
                raise StoreUnavailable(f"experiment {self.name!r} was handed over to another service: try again")
            generation = self.home.generation()
            if self._generation != generation:
                self._folded = self._load()
                self._generation = generation
            yield self._folded

    def busy(self, patience: float) -> bool:
        """Whether somebody is at work on it, for as long as ``patience`` says, in seconds."""
        if not self._lock.acquire(timeout=patience):
            return True
        self._lock.release()
        return False

    @contextmanager
    def if_free(self) -> Iterator[LogState | None]:
        """The state as in :meth:`current`, or None if one would have to wait for it: inside, nothing changes."""
        if not self._lock.acquire(blocking=False):
            yield None
            return
        try:
            known = not self._deleted and not self._left and self._generation == self.home.generation()
            yield self._folded if known else None
        finally:
            self._lock.release()

    def write(
        self,
        verb: Callable[[Experiment], T],
        *,
        request: Repeatable[T] | None = None,
        due: Callable[[LogState], float | None] = lambda _: None,
        expire: bool = False,
        ids: Mapping[int, str] | None = None,
    ) -> tuple[T, Ticket]:
        """Run a verb in memory and hand its events to the writer.

        Args:
            verb: what to do with the experiment in memory.
            request: the request's key and its answer if it came before; None without a key.
            due: until when the plays that it asks for or renews are leased.
            expire: whether to take back plays whose leases have run out first.
            ids: of results from elsewhere, by the numbers of the plays that they will be.

        Returns:
            What the verb returned, and a ticket that is good when its events are on disk.
        """
        writer = self.home.writer()
        with self.current() as folded:
            made = None if request is None else folded.requests.find(request.text, *request.kinds)
            if request is not None and made is not None:
                return request.answer(folded.core, made), writer.confirm(self._generation)
            until = due(folded)
            text, actor = None if request is None else request.text, ACTOR.get()
            with self._stale_unless_done():
                news = self._extended(folded)
                news += self._expired(folded) if expire else []
                result = _result_or_error(verb, folded.core)
                # What came before an error has happened.
                made_now = folded.take_news(self.home.clock(), text, until, ids, actor)
                if text is not None and not made_now and not isinstance(result, _Raised):
                    folded.core.note_unchanged()
                    made_now = folded.take_news(self.home.clock(), text, until, actor=actor)
                news += made_now
                ticket = self._hand_in(writer, folded, news)
        try:
            if isinstance(result, _Raised):
                raise result.error
            return result, ticket
        finally:
            del result  # an error that its own traceback leads to would stay until the next collection

    def expire(self, *, wait: bool = True) -> Ticket | None:
        """Take back the plays whose leases have run out; a ticket if there were any.

        Args:
            wait: whether to wait while somebody else is at work on it; else nothing is done then.
        """
        with self.current() if wait else self.if_free() as folded:
            if folded is None or not folded.leases.any_expired(self.home.clock()):
                return None
            writer = self.home.writer()
            with self._stale_unless_done():
                news = self._extended(folded) + self._expired(folded)
                return self._hand_in(writer, folded, news)

    def _hand_in(self, writer: Writer, folded: LogState, news: list[Record]) -> Ticket:
        """Queue events, unless a write failed since the state was read that they stand on."""
        if not news:
            return writer.confirm(self._generation)
        return writer.submit((folded.end, news), self._generation)

    def _extended(self, folded: LogState) -> list[Record]:
        """Extend all leases by the time that the service was away since this was called last."""
        now, outages = self.home.clock(), self.home.outages
        outages.look(now)
        if folded.outages_seen == len(outages) and not folded.owed:
            return []
        number = len(outages)
        seconds = folded.owed + outages.seconds(folded.outages_seen, number)
        folded.outages_seen, folded.owed = number, 0.0
        if not folded.leases.due:
            return []
        folded.core.extend_leases(seconds)
        return folded.take_news(now)

    def _expired(self, folded: LogState) -> list[Record]:
        """Take back the plays whose leases have run out."""
        now = self.home.clock()
        for play in folded.leases.take_expired(now):
            folded.core.expire(play)
            self.expiries += 1
        return folded.take_news(now)

    @contextmanager
    def _stale_unless_done(self) -> Iterator[None]:
        """Read everything again after an error or an interrupt: memory may be ahead of the disk."""
        try:
            yield
        except BaseException:
            self._generation = STALE
            raise

    def refresh(self) -> None:
        """Read again what others have written meanwhile."""
        with self._lock:
            self._generation = STALE  # if it cannot be read, nobody goes on from what was there before
            self._folded = self._load()
            self._generation = self.home.generation()

    def is_current(self) -> bool:
        """Tell whether what is in memory is what was kept; otherwise it is read again before it is used."""
        return not self._left and self._generation == self.home.generation()

    def leave(self, job: Callable[[LogEnd], Job]) -> Ticket:
        """Do a last job after all that was handed in, and be of no use from then on: another process goes on."""
        writer = self.home.writer()
        with self.current() as folded:
            ticket = writer.submit(job(folded.end), self._generation)
            self._left = True
        return ticket

    def drop(self) -> bool:
        """Be of no use from now on, unless it was read again meanwhile; tell whether it is so."""
        with self._lock:
            self._left = not self.is_current()
            return self._left

    def forget(self) -> None:
        """Tell whoever still has it from now on that it was deleted."""
        with self._lock:  # what was handed in before is written before it is deleted
            self._deleted = True

    # From the disk

    def records(self, after: int = 0) -> Iterator[Record]:
        """Events with their numbers and times; those after number ``after``."""
        with closing(self.home.read()) as connection:
            yield from map(_with_key_alone, read_records(connection, entry(connection, self.name), after))

    def page(self, after: int, limit: int) -> list[Record]:
        """At most ``limit`` events after number ``after``; plays and results as they were folded."""
        with closing(self.home.read()) as connection, connection.reading():
            records = read_page(connection, entry(connection, self.name), after, limit)
        with self.current() as folded:
            _check_as_folded(folded, records)
        return [_with_key_alone(record) for record in records]

    def told(self, numbers: IntArray) -> list[Record]:
        """Events of these numbers, in their order; such as :class:`~mfbandit.store.story.Story` has them."""
        with closing(self.home.read()) as connection, connection.reading():
            of = entry(connection, self.name)
            found = log_rows(connection, *_these(of, numbers))
        records = {row[0]: _with_key_alone(from_row(row)) for row in found}
        return [records[number] for number in numbers.tolist() if number in records]  # the last may not be on disk yet

    def _load(self) -> LogState:
        claim = self.home.claim(self.name)  # first: what is read afterwards is all that others have written
        with closing(self.home.read()) as connection, connection.reading():
            of = entry(connection, self.name)
            rows, end = read_all(connection, of)
            log = PackedLog(rows, _texts(connection, of, rows))
            folded = self._begin(of, end)
            last = float(rows["time"][-1]) if len(rows) else of.created
            folded.owed = self.home.outages.seconds_after(last, folded.outages_seen)
            if claim is not None:
                end.epoch = claim.epoch
                self._away = (end.head, claim.away) if claim.away else self._away
                folded.owed += self._away[1] if self._away[0] == end.head else 0.0  # as long as nothing was written
            folded.core.folded.apply_all(log)
            folded.leases.apply_all(log)
            folded.imports.apply_all(log)
            read = partial(_read_numbers, connection, of, rows)
            folded.recent.apply_all(log, read)
            folded.requests.apply_all(log, read)
        if not self.home.read_only:
            folded.core.begin_incarnation()
        return folded

    def _begin(self, of: Entry, end: LogEnd) -> LogState:
        """The experiment before its first event, and what will be folded beside it."""
        first = _definition(of)
        try:
            core = Experiment.from_definition(first, policy=self._given_policy, fidelities=self._given_fidelities)
        except InvalidArgument as error:
            where = f"experiment {self.name!r} in {self.home.name}"
            raise InvalidArgument(f"{where} cannot be opened: {error}") from None
        core.clock = self.home.clock
        state = core.folded
        return LogState(
            of,
            end,
            core,
            first["lease"],
            Leases(),
            RequestKeys(state),
            ImportIds(),
            RecentEvents(state, len(state.labels)),
            events=end.head,
            outages_seen=len(self.home.outages),
            owed=0.0,
        )


def _with_key_alone(record: Record) -> Record:
    """The record as people see it: the key of a request without its digest, and no id of a row."""
    if record.request is None:
        return record
    key = key_of(record.request)
    return record._replace(request=key) if key else record._replace(request=None, due=None)


@dataclass(frozen=True)
class _Raised:
    """What a verb raised, until its events are handed in."""

    error: Exception


def _result_or_error(verb: Callable[[Experiment], T], core: Experiment) -> T | _Raised:
    try:
        return verb(core)
    except Exception as error:  # raised again by the caller
        return _Raised(error)


def _check_as_folded(folded: LogState, records: list[Record]) -> None:
    plays = folded.core.folded.plays
    for seq, _, event, *_ in records:
        if seq > folded.events or not isinstance(event, Asked | Told | Failed):
            continue
        there = 0 <= event.play < len(plays)
        known = there and (
            Asked(event.play, *plays[event.play]) if isinstance(event, Asked) else plays.outcome(event.play)
        )
        if event != known:
            raise damaged(folded.entry, f"event {seq} is not the one that was written")


def _texts(connection: Connection, of: Entry, rows: Packed) -> dict[int, Record]:
    """The events that have texts, whole, by their places among the packed ones."""
    found = log_rows(connection, "experiment = ? AND body IS NOT NULL", (of.id,))
    numbers = np.flatnonzero(np.isin(rows["kind"], WITH_TEXT)) + 1
    return {record.seq - 1: record for record in texts_as_written(of, rows, found, numbers)}


def _read_numbers(connection: Connection, of: Entry, rows: Packed, numbers: IntArray) -> list[Record]:
    """The records of these numbers, whole."""
    found: list[tuple[Any, ...]] = []
    for start in range(0, len(numbers), NUMBERS_PER_QUERY):
        found += log_rows(connection, *_these(of, numbers[start : start + NUMBERS_PER_QUERY]))
    return texts_as_written(of, rows, found, numbers)


def _these(of: Entry, numbers: IntArray) -> tuple[str, tuple[int, ...]]:
    """Which rows of the log have these numbers, at most ``NUMBERS_PER_QUERY`` of them."""
    return f"experiment = ? AND seq IN ({', '.join('?' * len(numbers))})", (of.id, *numbers.tolist())


def _definition(of: Entry) -> dict[str, Any]:
    try:
        first = json.loads(of.definition)
        if first.keys() >= {"policy", "fidelities", "arms", "capital", "lease", "id"}:
            return dict(first)
    except (ValueError, AttributeError):
        pass
    raise damaged(of, "what the experiment began with cannot be read")
