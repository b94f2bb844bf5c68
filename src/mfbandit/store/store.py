"""Experiments that survive: the same verbs, kept in a SQLite file or in PostgreSQL.

Every verb returns once what it did is on disk. The log of events is the truth; what is kept in memory is its fold, made
anew whenever a write fails.
"""

import json
import os
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from types import TracebackType
from typing import Any, Self

from mfbandit._internal.limits import DEFAULT_LEASE_SECONDS, MAX_ITEMS_PER_REQUEST
from mfbandit._internal.validation import whole
from mfbandit.core import Fidelities
from mfbandit.errors import Conflict, InvalidArgument, NotAllowed, StoreError, UnknownExperiment
from mfbandit.experiment import HalfLife, Sure
from mfbandit.policies import Policy
from mfbandit.store.commits import new_experiment_id
from mfbandit.store.database import Connection, check_tables, database_at, purpose_of_this_process
from mfbandit.store.definition import check_definition, check_name
from mfbandit.store.durable_experiment import DurableExperiment
from mfbandit.store.fleet import Fleet, ServiceRecord, services
from mfbandit.store.locks import LocksByName
from mfbandit.store.log_reader import entry, find_entry, first_digest, names_after
from mfbandit.store.logged_experiment import LoggedExperiment
from mfbandit.store.outages import Outages
from mfbandit.store.owners import Holding, Owners
from mfbandit.store.request_keys import request_text
from mfbandit.store.store_requests import find_request, keep_request
from mfbandit.store.token_book import TokenBook
from mfbandit.store.tokens import Token
from mfbandit.store.writer import Job, Ticket, Writer

LOOKS_KEPT_EVERY_SECONDS = 10.0
_LOOKS = "looks"  # the row that says when a service looked at the clock last
_KEEP = "INSERT INTO mfbandit_store (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value"


class Store:
    """Experiments in a SQLite file, or in PostgreSQL by a postgresql:// address.

    One process at a time may write, and its threads share the store; others can read, or use a service
    (``mfbandit serve``). Use it in a ``with`` statement, or close it.

    Args:
        place: a path, or postgresql://user:password@host/database.
        read_only: look and change nothing; works while another process writes.
        clock: seconds since 1970, for the times of events and leases.
        purpose: what this process is, for others who find the store held.
        accept_loss: go on where something that was acknowledged is gone, as after a restored backup; otherwise that is
            a :class:`StoreDamaged`. ``accepted_loss`` then says what it was.

    >>> import tempfile
    >>> from mfbandit import Bounded
    >>> fid = Fidelities(costs=[1, 10], biases=[0.1, 0], concentration=Bounded(0, 1))
    >>> folder = tempfile.TemporaryDirectory()
    >>> with Store(f"{folder.name}/ads.db") as store:
    ...     exp = store.create("ads", arms=["ad-a", "ad-b"], fidelities=fid, capital=100)
    ...     exp.tell(exp.ask(), reward=1.0)
    >>> with Store(f"{folder.name}/ads.db") as store:  # after a crash, too
    ...     store.list(), store.open("ads").spent
    (('ads',), 1.0)
    >>> folder.cleanup()
    """

    def __init__(
        self,
        place: str | os.PathLike[str],
        *,
        read_only: bool = False,
        clock: Callable[[], float] = time.time,
        purpose: str | None = None,
        accept_loss: bool = False,
    ) -> None:
        self._database = database_at(place)
        self._clock, self._read_only = clock, read_only
        self._one_by_one = LocksByName()  # one experiment is made, opened or deleted by one thread at a time
        self._writer: Writer | None = None
        self._owners: Owners | None = None
        self.fleet: Fleet | None = None  # of services that share the database
        self.accepted_loss = ""
        self._pid = os.getpid()
        self._closed = False
        self._open: dict[str, DurableExperiment] = {}
        self._outages = Outages()
        self._looks_kept_at = -1e9
        self._looks_kept: Ticket | None = None
        self._looks_fail = False
        self._token_book = TokenBook(self)
        if read_only:
            with closing(self.read()) as connection:
                missing = self._database.missing(connection)
                if missing is not None and not accept_loss:
                    raise missing
                check_tables(self._database, connection)
        else:
            what = purpose or purpose_of_this_process()
            self._owners = self._database.owners(what)
            row = None if self._owners is None else self._owners.me
            self.fleet = None if self._owners is None else Fleet(self, self._owners, self._open, self._one_by_one)
            self._writer = Writer(self._database, what, row=row, accept_loss=accept_loss)
            self.accepted_loss = self._writer.accepted_loss

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close(discard_unused=kind is not None)  # what failed leaves no empty store behind

    def __repr__(self) -> str:
        return f"<Store {self.name}{', read-only' * self._read_only}>"

    def close(self) -> None:
        """Write what is queued, and let others write."""
        self._close(discard_unused=False)

    def _close(self, *, discard_unused: bool) -> None:
        if self._writer is not None and os.getpid() == self._pid:
            self._writer.close(discard_unused=discard_unused)
            if self._owners is not None:
                self._owners.close()
        self._open.clear()
        self._closed = True
        self._token_book.close()

    # Experiments

    def create(  # noqa: PLR0913 - options with names and defaults
        self,
        name: str,
        policy: Policy | None = None,
        *,
        arms: int | Sequence[str],
        fidelities: Fidelities,
        capital: float | None = None,
        widen: bool = False,
        stop: Sure | None = None,
        control: int | str | None = None,
        control_share: float = 0.0,
        least_share: float = 0.0,
        memory: HalfLife | None = None,
        lease: float | None = DEFAULT_LEASE_SECONDS,
        request_key: str | None = None,
    ) -> DurableExperiment:
        """Create an experiment.

        Args:
            name: up to 64 letters, digits, dots, dashes and underscores; the first a letter or digit.
            policy: the rule that picks plays; :class:`~mfbandit.MFAuto` by default.
            arms: the options: their names, or how many there are.
            fidelities: costs, biases and noise of each fidelity.
            capital: what all plays together may cost; None is unlimited.
            widen: whether biases that results refute are raised at once.
            stop: when it is sure enough, and hands out no more plays; None is never, unless the policy has a rule.
            control: the arm that others are compared with, by its name or index.
            control_share: of the plays at the highest fidelity, for the control.
            least_share: of these plays, for every active arm.
            memory: how long results count; None is for ever.
            lease: seconds after which a play that was neither told nor renewed is taken back; None is never.
            request_key: names this request: the same key again gives the same experiment.

        Raises:
            Conflict: there is one of that name already.
        """
        check_name(name)
        first = check_definition(
            policy,
            arms=arms,
            fidelities=fidelities,
            capital=capital,
            widen=widen,
            stop=stop,
            control=control,
            control_share=control_share,
            least_share=least_share,
            memory=memory,
            lease=lease,
        )
        definition = json.dumps(first, allow_nan=False)
        content = {member: value for member, value in first.items() if member != "id"}
        text = None if request_key is None else request_text(request_key, "create", name, content)
        self.writer()
        with self._one_by_one.of(name):
            if not self._made_by(name, request_key, text):

                def job(connection: Connection) -> None:
                    number = self._insert(connection, name, definition, request_key)
                    keep_request(connection, text, experiment=number)

                self.write(job)
        return self.open(name, policy=policy, fidelities=fidelities)

    def open(
        self, name: str, *, policy: Policy | None = None, fidelities: Fidelities | None = None
    ) -> DurableExperiment:
        """Open the experiment of that name: always the same object, for all threads.

        Args:
            name: its name.
            policy: the policy it began with, where that is one of your own and not the package's.
            fidelities: its fidelities, where their concentration is one of your own.

        Raises:
            UnknownExperiment: the store has none of that name.
            StoreDamaged: its log is not what was written.
        """
        self.check_usable()
        found = self._open.get(name)
        if found is None:
            # A long log takes its time; and not while it is deleted, as it would stay open then.
            with self._one_by_one.of(name):
                found = self._open.get(name) or DurableExperiment(LoggedExperiment(self, name, policy, fidelities))
                self._open[name] = found
        return found

    def opened(self) -> dict[str, DurableExperiment]:
        """The experiments opened so far, by name."""
        return self._open

    def check(self) -> None:
        """Check that the store is writable; raise what is in the way if it is not."""
        now = (repr(self._clock()),)
        if self._owners is not None:
            self.write(lambda _: None)  # the row of this process changes: others need not wait for one that all share
        else:
            self.write(lambda one: one.run("UPDATE mfbandit_store SET value = ? WHERE key = 'checked'", now))

    def list(self) -> tuple[str, ...]:
        """The names of all experiments, in the order in which they were made."""
        self.check_usable()
        with closing(self.read()) as connection:
            return tuple(name for _, name in names_after(connection, 0, None))

    def list_page(self, *, after: int = 0, limit: int = MAX_ITEMS_PER_REQUEST) -> tuple[tuple[str, ...], int | None]:
        """A page of the names of experiments, and where the next page begins.

        Args:
            after: 0 for the first page, then what the page before returned.
            limit: how many names at most.

        Returns:
            The names, and ``after`` of the next page; None if this is the last one.
        """
        if whole("after", after) < 0:
            raise InvalidArgument(f"after must be at least 0, got {after}")
        if whole("limit", limit) < 1:
            raise InvalidArgument(f"limit must be at least 1, got {limit}")
        self.check_usable()
        with closing(self.read()) as connection:
            rows = names_after(connection, after, limit + 1)
        return tuple(name for _, name in rows[:limit]), rows[limit - 1][0] if len(rows) > limit else None

    def delete(self, name: str, *, confirm: str, request_key: str | None = None) -> None:
        """Delete an experiment and its log, for good.

        Args:
            name: which one.
            confirm: its name again.
            request_key: names this request: the same key again deletes nothing more.
        """
        if confirm != name:
            raise InvalidArgument(f"To delete {name!r}, pass confirm={name!r}")
        self.writer()
        text = None if request_key is None else request_text(request_key, "delete", name)
        with self._one_by_one.of(name):
            if self.done(text) is not None:
                return
            self.claim(name)
            with closing(self.read()) as connection:
                number = entry(connection, name).id
            opened = self._open.pop(name, None)
            if opened is not None:
                opened.be_deleted()

            def job(connection: Connection) -> None:
                _delete(connection, number)
                keep_request(connection, text)

            self.write(job)

    # Where several processes write

    def owns(self, name: str) -> bool:
        """Tell whether an experiment is open here and nobody else can have changed it; it asks nobody."""
        found = self._open.get(name)
        return found is not None and found.is_current() and self.is_fresh()

    def services(self) -> tuple[ServiceRecord, ...]:
        """The processes that write to a shared database, with what they own; none for a file."""
        self.check_usable()
        with closing(self.read()) as connection:
            shared = "mfbandit_services" in self._database.tables(connection)
            return services(connection) if shared else ()

    def claim(self, name: str) -> Holding | None:
        """Become the owner of an experiment, or stay it; None where one process has the whole store.

        Raises:
            StoreHeld: another process owns it; the message says which.
        """
        if self._owners is None:
            return None
        if not self.is_fresh():
            self.write(lambda _: None)  # says what is wrong, or makes it right
        return self._owners.claim(name)

    def is_fresh(self) -> bool:
        """Tell whether nobody else can have written what this process writes; by the clock of this machine."""
        return self._writer is None or self._writer.is_fresh()

    # The clock of a service over this store

    def begin_looking(self) -> None:
        """Look at the clock from now on, so that leases are extended by the time that the service is away."""
        with closing(self.read()) as connection:
            rows = connection.query("SELECT value FROM mfbandit_store WHERE key = ?", (_LOOKS,))
        self._outages.begin(self._clock(), str(rows[0][0]) if rows else "")
        self.write(self._keep_looks)

    def look(self) -> None:
        """Look at the clock; a service does this every second, and now and then it is kept on disk.

        While that fails, the service is as good as away: results cannot be told, nor leases renewed.
        """
        failed = None if self._looks_kept is None else self._looks_kept.failed()
        self._looks_fail = self._looks_fail if failed is None else failed
        if not self._looks_fail:
            self._outages.look(self._clock())
        if time.monotonic() - self._looks_kept_at > LOOKS_KEPT_EVERY_SECONDS:
            self._looks_kept_at = time.monotonic()
            self._looks_kept = self.writer().submit(self._keep_looks)

    def end_looking(self) -> None:
        """Look no more, and keep when that was."""
        self.write(self._keep_looks)
        self._outages.end()

    def _keep_looks(self, connection: Connection) -> None:
        connection.run(_KEEP, (_LOOKS, self._outages.to_keep()))

    # Tokens of a service over this store

    def create_token(self, name: str, scope: str, *, request_key: str | None = None, only_again: bool = False) -> str:
        """Create a bearer token; it cannot be shown again, only its hash is kept.

        Args:
            name: what people call it.
            scope: read, write or admin.
            request_key: names this request. The same key again, within ten minutes and before the token is used, gives
                the token a new secret in place of the one that nobody received.
            only_again: refuse a request that did not come before, with a long key.

        Raises:
            Conflict: the key's token is in use, revoked or too old.
        """
        return self._token_book.create(name, scope, request_key=request_key, only_again=only_again)

    def revoke_token(self, token: str, *, request_key: str | None = None) -> None:
        """Revoke a token, by its id; with the same request key again, nothing more is done."""
        self._token_book.revoke(token, request_key=request_key)

    def tokens(self) -> dict[str, Token]:
        """All tokens, by their ids; read again every few seconds."""
        return self._token_book.all()

    def token(self, text: str) -> Token | None:
        """The token of this text, if it is one of this store's."""
        return self._token_book.find(text)

    def refresh_tokens(self) -> None:
        """Read the tokens again at once: another service may have made one."""
        self._token_book.refresh()

    def needs_token(self) -> bool:
        """Tell whether a service needs a token: from the first one on, also after the last one is revoked."""
        return self._token_book.needed()

    def first_token_may_be_lost(self) -> bool:
        """Whether there is one token, which perhaps nobody received: then nobody could ask for another."""
        return self._token_book.first_may_be_lost()

    # What its experiments need

    @property
    def name(self) -> str:
        """Where it is; without a password."""
        return self._database.name

    @property
    def clock(self) -> Callable[[], float]:
        """Seconds since 1970."""
        return self._clock

    @property
    def outages(self) -> Outages:
        """When a service over it was away."""
        return self._outages

    @property
    def read_only(self) -> bool:
        """Whether it was opened read-only."""
        return self._read_only

    def writer(self) -> Writer:
        """The one that writes, or an error if this process may not."""
        self.check_usable()
        if self._writer is None:
            raise NotAllowed(f"{self.name} was opened read-only")
        return self._writer

    def generation(self) -> int:
        """Changes when a write failed, and memory is ahead of the disk."""
        return 0 if self._writer is None else self._writer.generation

    def read(self) -> Connection:
        """A connection that reads."""
        return self._database.read()

    def write(self, job: Job) -> None:
        """Let the writer do a job, and wait until it is on disk."""
        self.writer().submit(job).wait()

    def queue(self, job: Job) -> None:
        """Let the writer do a job, and do not wait."""
        self.writer().submit(job)

    def done(self, text: str | None) -> dict[str, Any] | None:
        """What was kept of a request that was done before."""
        if text is None:
            return None
        with closing(self.read()) as connection:
            return find_request(connection, text)

    def check_usable(self) -> None:
        """Raise an error if the store is closed, or belongs to another process."""
        if self._closed:
            raise StoreError(f"the store is closed: {self.name}")
        if os.getpid() != self._pid:
            raise StoreError(
                f"{self.name} was opened before this process was forked: open it here with read_only=True, or use "
                f"a service (mfbandit serve)"
            )

    def _made_by(self, name: str, request_key: str | None, text: str | None) -> bool:
        """Whether this very request made it before; any other one of that name is in the way."""
        done = self.done(text)
        with closing(self.read()) as connection:
            found = find_entry(connection, name)
        if done is not None:
            if found is not None and done.get("experiment", found.id) != found.id:
                raise UnknownExperiment(f"experiment {name!r} of this request was deleted; there is another one now")
            return True
        if found is not None and (request_key is None or found.request != request_key):
            raise Conflict(f"Experiment {name!r} already exists in {self.name}")
        return found is not None

    def _insert(self, connection: Connection, name: str, definition: str, request: str | None) -> int:
        columns = ("id", "name", "created", "definition", "request", "head", "digest")
        created = float(self._clock())
        digest = first_digest(name, definition, created, request)
        number = new_experiment_id(connection)
        row = (number, name, created, definition, request, 0, digest)
        connection.insert("mfbandit_experiments", columns, [row])
        return number


def _delete(connection: Connection, experiment: int) -> None:
    for table, column in (("log", "experiment"), ("snapshots", "experiment"), ("experiments", "id")):
        connection.run(f"DELETE FROM mfbandit_{table} WHERE {column} = ?", (experiment,))  # noqa: S608 - our own names
