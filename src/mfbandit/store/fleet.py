"""The services that share a database, as one of them sees them: who is here, and what belongs where."""

import hashlib
import time
from collections.abc import Iterable, Sequence
from contextlib import closing, suppress
from typing import TYPE_CHECKING, NamedTuple

from mfbandit.errors import MFBanditError
from mfbandit.store.database import Connection
from mfbandit.store.locks import LocksByName
from mfbandit.store.membership import ENTRY, ServiceEntry
from mfbandit.store.owners import Owners, Place
from mfbandit.store.writer import Job, LogEnd

if TYPE_CHECKING:
    from mfbandit.store.durable_experiment import DurableExperiment
    from mfbandit.store.store import Store

SETTLED_SECONDS = 5.0  # that a service must have been here before experiments are handed over to it
BALANCE_SECONDS = 1.0  # between looks for experiments that belong elsewhere
MAX_MOVES = 20  # of experiments at a time
MAX_NAMES = 1000  # of experiments that are listed for a service


class ServiceRecord(NamedTuple):
    """A process that writes to a shared database, and what it owns.

    Args:
        id: a random text.
        address: where it answers requests; empty for a script.
        purpose: what it was started as.
        since: when it began, in seconds since 1970.
        silent: seconds since it was seen last.
        owned: how many experiments it owns.
        experiments: their names, the oldest first, 1,000 at most.
    """

    id: str
    address: str
    purpose: str
    since: float
    silent: float
    owned: int
    experiments: tuple[str, ...]


def belongs_to(name: str, services: Iterable[ServiceEntry]) -> ServiceEntry | None:
    """Return the service that an experiment belongs to, the same for whoever asks; None if there is none.

    Each has its own order of the services, by a hash. So they spread evenly, and only those of a service that comes or
    goes change places.

    Args:
        name: of the experiment.
        services: those that are here; those without an address do not count.

    >>> entries = [ServiceEntry(str(i), f"http://10.0.0.{i}:8000", "", "", 0.0, 0.0, None, 0.1, True) for i in range(3)]
    >>> [sum(belongs_to(f"ads-{j}", entries).id == str(i) for j in range(300)) for i in range(3)]
    [107, 102, 91]
    """
    serving = [one for one in services if one.address]
    return max(serving, key=lambda one: hashlib.sha256(f"{one.address} {name}".encode()).digest(), default=None)


class Fleet:
    """What a service has to know of the others that share its database.

    Args:
        store: whose experiments it serves.
        owners: who owns which experiment.
        opened: the experiments that are open here, by name.
        one_by_one: keeps threads apart that open or close the same one.
    """

    def __init__(
        self, store: "Store", owners: Owners, opened: "dict[str, DurableExperiment]", one_by_one: LocksByName
    ) -> None:
        self._store, self._owners = store, owners
        self._opened, self._one_by_one = opened, one_by_one
        self._others: dict[str, ServiceEntry] = {}
        self._balanced_at = 0.0

    @property
    def secret(self) -> str:
        """What others send along with a request that they pass on to this one."""
        return self._owners.me.secret

    @property
    def id(self) -> str:
        """The id of this one."""
        return self._owners.me.id

    @property
    def address(self) -> str:
        """Where this one answers requests."""
        return self._owners.me.address

    def serve_at(self, address: str) -> None:
        """Tell others where this one answers requests."""
        self._owners.me.serve_at(address)
        self._store.check()
        self.tend()

    def is_here(self, service: str) -> bool:
        """Tell whether another one was here at the last look."""
        return service in self._others

    def find(self, name: str) -> Place | None:
        """Return where an experiment is; None if there is none of that name."""
        place = self._owners.find(name)
        if place is not None and place.owner is not None and place.owner.id not in self._others:
            self._others = {**self._others, place.owner.id: place.owner}  # it has just come
        return place

    def home_of(self, name: str) -> ServiceEntry | None:
        """Return the service that an experiment belongs to."""
        return belongs_to(name, self._others.values())

    def tend(self) -> None:
        """Look who is here, take over from those who are gone, and hand over what belongs elsewhere."""
        self._owners.end_expired()
        self._others = {one.id: one for one in self._owners.services()}
        if time.monotonic() - self._balanced_at > BALANCE_SECONDS:
            self._balanced_at = time.monotonic()
            self._balance()
            self._drop_lost()

    def _balance(self) -> None:
        me = self._others.get(self.id)
        if me is None or not me.address:
            return
        newest = me.seen - SETTLED_SECONDS
        settled = [one for one in self._others.values() if one.id == me.id or (one.well and one.since < newest)]
        moves = 0
        for name in self._owners.owned():
            home = belongs_to(name, settled)
            if home is not None and home.id != me.id and moves < MAX_MOVES:
                moves += 1
                with suppress(MFBanditError):  # it stays, was deleted, or whoever asks next finds out where it is
                    self.hand_over(name, home.id)

    def hand_over(self, name: str, service: str) -> None:
        """Make another service the owner of an experiment, after all that was asked of it here.

        Args:
            name: its name.
            service: the id of the other one.
        """
        with self._one_by_one.of(name):
            found, place = self._opened.get(name), self.find(name)
            if found is not None and not found.drop():  # else whoever reads it again has to open it anew
                left = found.leave(lambda end: _hand_over(end, service))
                self._opened.pop(name, None)  # first: nobody can use it any more, also if this cannot be kept
                left.wait()
                return
            self._opened.pop(name, None)
            if place is not None and place.owner is not None and place.owner.id == self.id:
                self._store.write(_hand_over(LogEnd(place.experiment, 0, 0, place.epoch), service))

    def _drop_lost(self) -> None:
        """Forget the experiments that others have taken over: nobody would use what is known of them here."""
        stale = [name for name, one in list(self._opened.items()) if not one.is_current()]
        if not stale:
            return
        with closing(self._store.read()) as connection:
            lost = [name for name, owner in owners_of(connection, stale).items() if owner.id != self.id]
        for name in lost:
            with self._one_by_one.of(name):
                found = self._opened.get(name)
                if found is not None and found.drop():
                    del self._opened[name]


def _hand_over(end: LogEnd, service: str) -> Job:
    """Return the job that makes another service the owner, if this one has not lost it yet."""
    change = "UPDATE mfbandit_experiments SET owner = ?, epoch = epoch + 1 WHERE id = ? AND epoch = ?"
    return lambda connection: connection.run(change, (service, end.experiment, end.epoch))


def services(connection: Connection) -> tuple[ServiceRecord, ...]:
    """Return the processes that write and have not ended, with what they own, the oldest first.

    Args:
        connection: to a database in which processes have rows.
    """
    rows = connection.query(f"SELECT {ENTRY} FROM mfbandit_services WHERE ended IS NULL ORDER BY since, id")  # noqa: S608
    counts = dict(_pairs(connection, "SELECT owner, count(*) FROM mfbandit_experiments GROUP BY owner"))
    found = []
    for one in (ServiceEntry(*row) for row in rows):
        query = "SELECT name FROM mfbandit_experiments WHERE owner = ? ORDER BY id LIMIT ?"
        names = tuple(str(name) for (name,) in connection.query(query, (one.id, MAX_NAMES)))
        owned = int(counts.get(one.id, 0))
        found.append(ServiceRecord(one.id, one.address, one.purpose, one.since, one.silent, owned, names))
    return tuple(found)


def owners_of(connection: Connection, names: Sequence[str]) -> dict[str, ServiceEntry]:
    """Return who owns each of these experiments, by name; those that nobody owns are left out."""
    marks = ", ".join("?" * len(names))
    query = f"SELECT name, owner FROM mfbandit_experiments WHERE owner IS NOT NULL AND name IN ({marks})"  # noqa: S608
    here = connection.query(f"SELECT {ENTRY} FROM mfbandit_services WHERE ended IS NULL")  # noqa: S608
    entries = {row[0]: ServiceEntry(*row) for row in here}
    rows = connection.query(query, tuple(names)) if names else []
    return {str(name): entries[owner] for name, owner in rows if owner in entries}


def _pairs(connection: Connection, query: str) -> list[tuple[str, int]]:
    return [(str(owner), int(count)) for owner, count in connection.query(query)]
