"""An experiment whose log is in a database: the verbs of :class:`~mfbandit.Experiment`, kept on disk."""

import heapq
import json
import math
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, overload

import numpy as np

from mfbandit._internal.validation import positive
from mfbandit.core import Audit, Bounds, Fidelities, Play
from mfbandit.errors import Conflict, InvalidArgument, UnknownExperiment
from mfbandit.experiment import (
    CODES,
    COLUMNS,
    WITH_TEXT,
    ArmAdded,
    ArmRestored,
    Asked,
    BiasRefuted,
    Event,
    Experiment,
    Expired,
    Failed,
    Noted,
    Packed,
    Record,
    Renewed,
    Status,
    Told,
    events_of,
    fidelities_from_record,
    policy_from_record,
    status_of,
)
from mfbandit.policies import Policy
from mfbandit.store.database import Connection
from mfbandit.store.log_reader import Entry, damaged, entry, read_all, read_page, read_records, texts_as_written
from mfbandit.store.timeline import Timeline
from mfbandit.store.writer import Chain, Ticket, Writer

REMEMBERED = 100_000  # request keys
LONGEST_KEY = 200
SHOWN = 12  # of the latest plays, events and leases
COMMON = len((Asked, Told, Failed, Expired, Renewed))  # the kinds that are folded many at a time: all about plays

T = TypeVar("T")


class Home(Protocol):
    """What an experiment needs of the store that it is in."""

    @property
    def name(self) -> str:
        """How to call it in messages."""
        ...

    @property
    def clock(self) -> Callable[[], float]:
        """Seconds since 1970."""
        ...

    @property
    def read_only(self) -> bool:
        """Whether others write, if anybody does."""
        ...

    def writer(self) -> Writer:
        """The one that writes, or an error if this process may not."""
        ...

    def generation(self) -> int:
        """Changes when a write failed, and memory is ahead of the disk."""
        ...

    def lock(self) -> Any:  # noqa: ANN401 - threading's lock types have no common name
        """Orders all that happens to the store's experiments."""
        ...

    def read(self) -> Connection:
        """A connection that reads."""
        ...


@dataclass(frozen=True, slots=True)
class Request:
    """A request that had a key: the kind of its first event, and the numbers of the plays or arms it made."""

    kind: type[Event]
    made: list[int]


@dataclass(frozen=True)
class Recently:
    """What has happened lately, the newest first.

    Args:
        times: seconds since 1970, of the steps of ``spent``.
        spent: what had been spent by then, a list for each fidelity.
        plays: when they were settled, the plays, and what came of them.
        events: those that are not about plays.
        leases: plays under way and when their leases end, the next to end first.
    """

    times: list[float]
    spent: list[list[float]]
    plays: list[tuple[float, Play, Told | Failed | Expired | None]]
    events: list[Record]
    leases: list[tuple[Play, float]]


class Promise:
    """What verbs inside :meth:`DurableExperiment.promised` did; await it before telling anybody."""

    def __init__(self) -> None:
        self.ticket: Ticket | None = None

    def __await__(self) -> Generator[Any, None, None]:
        if self.ticket is not None:
            yield from self.ticket.__await__()


class DurableExperiment(Experiment):
    """An experiment in a store. Verbs return once what they did is on disk, and may be called from many threads.

    Beyond those of :class:`~mfbandit.Experiment`, ``ask`` takes a request key, with which a repeated request gets the
    same plays again, and a lease: a play that is neither told, failed nor renewed within it is taken back. Made by
    :class:`~mfbandit.Store`.
    """

    def __init__(
        self, home: Home, name: str, *, policy: Policy | None = None, fidelities: Fidelities | None = None
    ) -> None:
        self._home, self._name = home, name
        self._given_policy, self._given_fidelities = policy, fidelities
        self._request: str | None = None  # the key of the request at work
        self._until: float | None = None  # when the leases of plays that it asks for end
        self._news: list[Record] = []
        self._deleted = False
        self._promise: Promise | None = None
        self._load()

    def __repr__(self) -> str:
        return super().__repr__().replace("<Experiment", f"<Experiment {self._name!r} in {self._home.name}:", 1)

    @property
    def name(self) -> str:
        """Its name in the store."""
        return self._name

    @property
    def created(self) -> float:
        """When it was made, in seconds since 1970."""
        return self._entry.created

    @property
    def lease(self) -> float | None:
        """How long, in seconds, a play may take if ``ask`` says nothing else; None is for ever."""
        return self._lease

    @property
    def shared(self) -> bool:
        """True: others can use it at the same time."""
        return True

    @property
    def events(self) -> int:
        """How many events its log has."""
        return self._next - 1

    # The verbs, kept

    @overload
    def ask(self, *, request_key: str | None = None, lease: float | None = None) -> Play: ...
    @overload
    def ask(self, n: int, *, request_key: str | None = None, lease: float | None = None) -> list[Play]: ...

    def ask(
        self, n: int | None = None, *, request_key: str | None = None, lease: float | None = None
    ) -> Play | list[Play]:
        """The next play to make, or the next ``n``.

        Args:
            n: how many; those that fit into the capital are returned.
            request_key: names this request: the same key again gives the same plays again, and makes no new ones.
            lease: seconds within which each play is told, failed or renewed; the experiment's own by default.
        """

        def verb() -> list[Play]:
            self._until = self._due_in(lease)
            self._expire()
            return Experiment.ask(self, 1 if n is None else n)

        plays = self._keep(verb, request_key, Asked, lambda plays: [self._play(play) for play in plays])
        return plays[0] if n is None else plays

    def renew(self, play: Play | str, lease: float | None = None) -> float | None:
        """Make the lease of a play that is under way longer, counted from now; returns when it ends.

        Raises:
            Conflict: the play is not under way any more.
        """
        (due,) = self.renew_many([play], lease).values()
        return due

    def renew_many(self, plays: Iterable[Play | str], lease: float | None = None) -> dict[str, float | None]:
        """Make the leases of many plays longer: all of them, or none if one is refused; when they end, by their ids."""
        given = list(plays)  # not under the lock: whatever makes them may take its time, or ask this experiment

        def verb() -> dict[str, float | None]:
            self._expire()
            numbers = self._renewable(given)
            self._until = until = self._due_in(lease)
            for at in numbers:
                self._add(Renewed(at))
            return {f"{self._id}-{at}": until for at in numbers}

        return self._keep(verb)

    def tell(self, play: Play | str, reward: float, cost: float | None = None) -> None:
        """Take in the result of a play, in any order; a late one after its lease ran out, too."""
        self._keep(lambda: Experiment.tell(self, play, reward, cost))

    def tell_many(self, results: Iterable[tuple[Play | str, float, float | None]]) -> None:
        """Take in many results (play, reward, cost or None) at once: all of them, or none if one is refused."""
        given = list(results)
        self._keep(lambda: Experiment.tell_many(self, given))

    def fail(self, play: Play | str, cost: float = 0.0) -> None:
        """Give a play up: its capital is released, and it leaves no trace in the statistics."""
        self.fail_many([play], cost)

    def fail_many(self, plays: Iterable[Play | str], cost: float = 0.0) -> None:
        """Give many plays up at once: all of them, or none if one is refused."""
        given = list(plays)
        self._keep(lambda: Experiment.fail_many(self, given, cost))

    def add_results(
        self, results: Iterable[tuple[int | str, int, float, float | None]], *, request_key: str | None = None
    ) -> list[Play]:
        """Take in results from elsewhere (arm, fidelity, reward, cost or None), as plays already made."""
        given = list(results)

        def verb() -> list[Play]:
            self._until = None
            return Experiment.add_results(self, given)

        return self._keep(verb, request_key, Asked, lambda plays: [self._play(play) for play in plays])

    def add_arm(self, label: str, *, request_key: str | None = None) -> int:
        """A new arm, which will be tried before any other; returns its index."""
        return self._keep(lambda: Experiment.add_arm(self, label), request_key, ArmAdded, lambda arms: arms[0])

    def retire_arm(self, arm: int | str) -> None:
        """Stop asking for an arm, by its index or name. It keeps its index and takes late results."""
        self._keep(lambda: Experiment.retire_arm(self, arm))

    def restore_arm(self, arm: int | str, *, request_key: str | None = None) -> None:
        """Let an arm that was set aside after failures take part again, by its index or name."""
        self._keep(lambda: Experiment.restore_arm(self, arm), request_key, ArmRestored, lambda _: None)

    def pause(self) -> None:
        """Hand out no plays until :meth:`resume`; results of those under way are still taken."""
        self._keep(lambda: Experiment.pause(self))

    def resume(self) -> None:
        """Hand out plays again."""
        self._keep(lambda: Experiment.resume(self))

    def set_capital(self, capital: float | None) -> None:
        """Change Λ, what all plays together may cost, those made so far included; None is unlimited."""
        self._keep(lambda: Experiment.set_capital(self, capital))

    def set_policy(self, policy: Policy) -> None:
        """Let another policy of the package pick plays from now on, with all that was learned."""
        self._keep(lambda: Experiment.set_policy(self, policy))

    def set_biases(self, biases: Sequence[float]) -> None:
        """Assume other biases ζ_1 > … > ζ_M = 0 from now on; whether they hold is tested anew."""
        self._keep(lambda: Experiment.set_biases(self, biases))

    def note(self, text: str, *, request_key: str | None = None) -> None:
        """Write something into the log, for people."""
        self._keep(lambda: Experiment.note(self, text), request_key, Noted, lambda _: None)

    def expire(self) -> None:
        """Take back the plays whose leases have run out; ``ask`` does so by itself."""
        if self._leases and self._leases[0][0] <= self._home.clock():
            self._keep(self._expire)

    @contextmanager
    def promised(self) -> Iterator[Promise]:
        """Inside, verbs do not wait for the disk; what they did must not be told to anybody before the promise holds.

        For a service, which awaits the promise while it goes on with other requests. Only verbs of this experiment may
        be used inside: one of another would wait for a writer that waits for this one.
        """
        with self._home.lock():
            self._promise = promise = Promise()
            try:
                yield promise
            finally:
                self._promise = None

    # What is known now

    def now(self) -> float:
        """The store's time, in seconds since 1970."""
        return self._home.clock()

    @property
    def leases(self) -> dict[str, float]:
        """When the leases of plays under way end, by the plays' ids, in seconds since 1970."""
        with self._current():
            return {f"{self._id}-{play}": due for play, due in self._due.items()}

    def status(self) -> Status:
        """State, capital, results, pending plays and the best arm so far, all of one moment."""
        with self._current():
            found = status_of(self, events=self.events, lease=self.lease)
            # The first four in this order, as they have always been on the wire.
            first = {"name": self._name, "id": found["id"], "state": found["state"], "created": self.created}
            return {**first, **found}  # type: ignore[typeddict-item]

    def best(self) -> int:
        """The arm that the policy would recommend now."""
        with self._current():
            return super().best()

    def audit(self) -> Audit:
        """Whether the assumed biases hold, by all results so far."""
        with self._current():
            return super().audit()

    def bounds(self, rho: float | None = None) -> Bounds:
        """Plays, means, widths and bounds of every arm at every fidelity, by results alone."""
        with self._current():
            return super().bounds(rho)

    @property
    def log(self) -> tuple[Event, ...]:
        """Everything that happened, in order, read back from the disk."""
        return tuple(record.event for record in self.records())

    def records(self, after: int = 0) -> Iterator[Record]:
        """Events with their numbers and times, from the disk; those after number ``after``.

        The whole log (``after=0``) is checked against its digest while it is read.
        """
        with closing(self._home.read()) as connection:
            yield from read_records(connection, entry(connection, self._name), after)

    def page(self, after: int, limit: int) -> list[Record]:
        """At most ``limit`` events after number ``after``, from the disk; plays and results as they were folded."""
        with closing(self._home.read()) as connection, connection.reading():
            records = read_page(connection, entry(connection, self._name), after, limit)
        with self._current():
            self._check_as_folded(records)
        return records

    def _check_as_folded(self, records: list[Record]) -> None:
        plays = self._ledger.plays
        for seq, _, event, *_ in records:
            if seq >= self._next or not isinstance(event, Asked | Told | Failed):
                continue
            there = 0 <= event.play < len(plays)
            known = there and (
                Asked(event.play, *plays[event.play]) if isinstance(event, Asked) else plays.outcome(event.play)
            )
            if event != known:
                raise damaged(self._entry, f"event {seq} is not the one that was written")

    def refresh(self) -> None:
        """Read again what others have written meanwhile: for a store that was opened for reading."""
        if self._home.read_only:
            with self._home.lock():
                self._load()

    def forget(self) -> None:
        """The experiment is being deleted: whoever still has it is told so from now on."""
        self._deleted = True

    # How it is kept

    def _keep(
        self,
        verb: Callable[[], T],
        key: str | None = None,
        kind: type[Event] | None = None,
        again: Callable[[list[int]], T] | None = None,
    ) -> T:
        """Run a verb in memory, hand its events to the writer, and wait until they are on disk.

        Where the key is known, ``again`` gives the answer from what that request made: plays or arms, if ``kind`` is
        the kind of its events.
        """
        writer = self._home.writer()
        with self._current():
            known = self._requests.get(_checked_key(key)) if key is not None and again is not None else None
            if known is not None and again is not None:
                if known.kind is not kind:
                    raise Conflict(f"a request key must name one request, got {key!r}, which was another one's")
                result, ticket = again(known.made), writer.newest()
            else:
                self._request = key
                result, ticket = self._run(verb, writer)
            if self._promise is not None:
                self._promise.ticket = ticket
                return result
        ticket.wait()
        return result

    def _run(self, verb: Callable[[], T], writer: Writer) -> tuple[T, Ticket]:
        self._news = []
        try:
            result = verb()
        except Exception:
            self._hand_in(writer)  # what came before it in the same verb has happened, such as a lease that ran out
            raise
        except BaseException:
            self._generation = -1  # interrupted somewhere in between: read everything again
            raise
        return result, self._hand_in(writer)

    def _hand_in(self, writer: Writer) -> Ticket:
        news, self._news = self._news, []
        return writer.submit((self._chain, news)) if news else writer.newest()

    def _add(self, event: Event) -> None:
        self._ledger.apply(event)
        leased = isinstance(event, Asked | Renewed)
        self._news.append(Record(self._next, self._home.clock(), event, self._until if leased else None, self._request))
        self._next += 1
        self._show(self._news[-1])
        if leased:
            self._start_lease(event.play, self._until)  # type: ignore[union-attr]
        elif isinstance(event, Told | Failed | Expired):
            self._due.pop(event.play, None)
        if self._request is not None:
            self._remember_request(self._request, event)
        self._react(event)

    # For people who look

    @contextmanager
    def still(self) -> Iterator[None]:
        """Inside, nothing changes, so that what is read belongs together; everybody else waits: it must be short."""
        with self._current():
            yield

    def recently(self) -> "Recently":
        """What a page about it shows beyond numbers: spending over time, the latest plays and events, leases."""
        with self._current():
            plays = [(time, self._play(play), self._ledger.plays.outcome(play)) for time, play in self._latest]
            # There may be many leases, and whoever tells a result waits meanwhile: no loop over them in Python.
            due, leased = np.fromiter(self._due.values(), np.float64, len(self._due)), list(self._due)
            first = np.argsort(due, kind="stable")[:SHOWN].tolist()
            leases = [(self._play(leased[i]), float(due[i])) for i in first]
            return Recently(*self._timeline.series(), plays[::-1], list(self._notable)[::-1], leases)

    def _show(self, record: Record) -> None:
        event = record.event
        if isinstance(event, Told | Failed):
            self._timeline.add(record.time, self._ledger.plays.fidelities[event.play], event.cost)
        if isinstance(event, Told | Failed | Expired):
            self._latest.append((record.time, event.play))
        elif not isinstance(event, Asked | Renewed):
            self._notable.append(record)

    def _show_all(self, rows: Packed, texts: dict[int, Record]) -> None:
        """The same for a log that was read back."""
        kinds = rows["kind"]
        paid = rows[(kinds == CODES[Told]) | (kinds == CODES[Failed])]
        fidelities = np.array(self._ledger.plays.fidelities, dtype=np.int64)[paid["play"]]
        self._timeline.add_all(paid["time"], fidelities, paid["cost"])
        settled = np.flatnonzero(np.isin(kinds, [CODES[kind] for kind in (Told, Failed, Expired)]))[-SHOWN:]
        self._latest.extend((float(rows["time"][i]), int(rows["play"][i])) for i in settled)
        for place in np.flatnonzero(kinds >= COMMON)[-SHOWN:].tolist():
            (event,) = [texts[place + 1].event] if place + 1 in texts else events_of(rows[place : place + 1])
            self._notable.append(Record(place + 1, float(rows["time"][place]), event))

    # Leases

    def _due_in(self, lease: float | None) -> float | None:
        seconds = self._lease if lease is None else positive("lease", lease)
        return None if seconds is None else self._home.clock() + seconds

    def _start_lease(self, play: int, due: float | None) -> None:
        self._due.pop(play, None)
        if due is not None:
            self._due[play] = due
            heapq.heappush(self._leases, (due, play))

    def _expire(self) -> None:
        now = self._home.clock()
        while self._leases and self._leases[0][0] <= now:
            due, play = heapq.heappop(self._leases)
            if self._due.get(play) == due:  # else it is settled, or was renewed since
                self._request, request = None, self._request
                self._lose(Expired(play))
                self._request = request

    # Request keys

    def _remember_request(self, key: str, event: Event) -> None:
        request = self._requests.get(key)
        if request is None:
            request = self._requests[key] = Request(type(event), [])
        if isinstance(event, Asked):
            request.made.append(event.play)
        elif isinstance(event, ArmAdded):
            request.made.append(self._ledger.index[event.label])
        if len(self._requests) > 2 * REMEMBERED:
            self._forget_requests()

    def _forget_requests(self) -> None:
        """Keep the latest keys, and those of plays under way: an answer that was lost was never told."""
        old = list(self._requests)[:-REMEMBERED]
        for key in old:
            if not any(play in self._ledger.pending for play in self._requests[key].made):
                del self._requests[key]

    # Reading it back

    @contextmanager
    def _current(self) -> Iterator[None]:
        with self._home.lock():
            if self._deleted:
                raise UnknownExperiment(f"experiment {self._name!r} was deleted from {self._home.name}")
            if self._generation != self._home.generation():
                self._load()
            yield

    def _load(self) -> None:
        generation = self._home.generation()
        with closing(self._home.read()) as connection, connection.reading():
            of = entry(connection, self._name)
            rows, chain = read_all(connection, of)
            self._generation = -1  # until all is read, nothing of it counts
            self._begin(of, chain)
            texts = self._texts(rows, connection)
            self._fold(rows, texts)
            self._find_requests(rows, texts, connection)
        self._generation = generation

    def _begin(self, of: Entry, chain: Chain) -> None:
        """The experiment before its first event."""
        first = _definition(of)
        try:
            super().__init__(
                self._given_policy or policy_from_record(first["policy"]),
                arms=first["arms"],
                fidelities=self._given_fidelities or fidelities_from_record(first["fidelities"]),
                capital=first["capital"],
            )
        except ValueError as error:
            raise InvalidArgument(f"experiment {self._name!r} in {self._home.name} cannot be opened: {error}") from None
        self._id = str(first["id"])
        self._lease: float | None = first["lease"]
        self._entry, self._chain, self._next = of, chain, chain.head + 1
        self._timeline = Timeline(len(self._fidelities))
        self._latest: deque[tuple[float, int]] = deque(maxlen=SHOWN)
        self._notable: deque[Record] = deque(maxlen=SHOWN)
        self._requests: dict[str, Request] = {}
        self._due: dict[int, float] = {}
        self._leases: list[tuple[float, int]] = []

    def _fold(self, rows: Packed, texts: dict[int, Record]) -> None:
        rare = np.flatnonzero(rows["kind"] >= COMMON).tolist()
        start = 0
        for place in [*rare, len(rows)]:
            self._fold_plays(rows[start:place])
            if place < len(rows):
                (event,) = [texts[place + 1].event] if place + 1 in texts else events_of(rows[place : place + 1])
                self._ledger.apply(event)
                self._react(event)
            start = place + 1
        self._find_leases(rows)
        self._show_all(rows, texts)

    def _fold_plays(self, rows: Packed) -> None:
        if self._remember is None:
            if len(rows):
                self._ledger.apply_all(rows)
            return
        for event in events_of(rows):  # a policy that remembers has to see them one by one
            self._ledger.apply(event)
            self._react(event)

    def _texts(self, rows: Packed, connection: Connection) -> dict[int, Record]:
        found = connection.query(
            f"SELECT {', '.join(COLUMNS)} FROM mfbandit_log WHERE experiment = ? AND body IS NOT NULL",  # noqa: S608
            (self._entry.id,),
        )
        due = np.flatnonzero(np.isin(rows["kind"], WITH_TEXT)) + 1
        return {record.seq: record for record in texts_as_written(self._entry, rows, found, due)}

    def _find_leases(self, rows: Packed) -> None:
        kinds = rows["kind"]
        leased = rows[(kinds == CODES[Asked]) | (kinds == CODES[Renewed])]
        last = np.full(len(self._ledger.plays), math.nan)
        last[leased["play"]] = leased["due"]  # the last one of each play stays
        for play in self._ledger.pending:
            if not math.isnan(last[play]):
                self._start_lease(play, float(last[play]))

    def _find_requests(self, rows: Packed, texts: dict[int, Record], connection: Connection) -> None:
        """The latest request keys, and those of plays under way; each with all that the request made."""
        firsts, plays = _runs(rows, self._ledger.pending)
        found = _rows_of(connection, self._entry.id, firsts)
        keyed = texts_as_written(self._entry, rows, found, np.array(firsts, dtype=np.int64))
        made = dict(zip(firsts, plays, strict=True))
        for record in sorted([*keyed, *texts.values()], key=lambda record: record.seq):
            if record.seq in made:
                self._requests[str(record.request)] = Request(type(record.event), made[record.seq])
            elif record.request is not None and not isinstance(record.event, BiasRefuted):
                self._remember_request(record.request, record.event)


def _guarded(read: property) -> property:
    """Read never while a verb is at work, nor from a state that was not kept."""
    inner: Any = read.fget

    def current(self: DurableExperiment) -> Any:  # noqa: ANN401 - whatever the property is
        with self._current():
            return inner(self)

    return property(current, doc=read.__doc__)


for _name, _read in vars(Experiment).items():
    if isinstance(_read, property) and _name not in vars(DurableExperiment):
        setattr(DurableExperiment, _name, _guarded(_read))


def _checked_key(key: str) -> str:
    if not isinstance(key, str) or not 0 < len(key) <= LONGEST_KEY or not key.isascii() or not key.isprintable():
        raise InvalidArgument(f"a request key must be 1 to {LONGEST_KEY} printable ASCII characters, got {key!r}")
    return key


def _runs(rows: Packed, pending: Iterable[int]) -> tuple[list[int], list[list[int]]]:
    """The latest requests that had a key, and those of plays under way: their first events, and the plays they made."""
    # The events of a request follow each other; only that a bias is refuted may come in between.
    places = np.flatnonzero(rows["kind"] != CODES[BiasRefuted])
    kinds = rows["kind"][places]
    # A text of an event that has none itself is that of its request.
    keys = np.where(np.isin(kinds, WITH_TEXT), 0, rows["text"][places])
    first = (keys != 0) & (keys != np.append(0, keys[:-1]))
    asked = (kinds == CODES[Asked]) & (keys != 0)
    plays, run_of = rows["play"][places[asked]], np.cumsum(first)[asked] - 1
    starts = places[first] + 1
    latest = np.arange(max(0, len(starts) - REMEMBERED), len(starts))
    runs = np.union1d(latest, run_of[np.isin(plays, list(pending))]).astype(np.int64)
    ends = zip(np.searchsorted(run_of, runs), np.searchsorted(run_of, runs, side="right"), strict=True)
    return starts[runs].tolist(), [plays[start:end].tolist() for start, end in ends]


def _rows_of(connection: Connection, experiment: int, numbers: list[int]) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = []
    for start in range(0, len(numbers), 500):
        part = numbers[start : start + 500]
        places = ", ".join("?" * len(part))
        rows += connection.query(
            f"SELECT {', '.join(COLUMNS)} FROM mfbandit_log WHERE experiment = ? AND seq IN ({places})",  # noqa: S608
            (experiment, *part),
        )
    return rows


def _definition(of: Entry) -> dict[str, Any]:
    try:
        first = json.loads(of.definition)
        if first.keys() >= {"policy", "fidelities", "arms", "capital", "lease", "id"}:
            return dict(first)
    except (ValueError, AttributeError):
        pass
    raise damaged(of, "what the experiment began with cannot be read")
