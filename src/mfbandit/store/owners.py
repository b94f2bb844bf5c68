"""Which process owns which experiment, where several write to one database.

An experiment has one owner at a time, which alone appends to its log. Its row says who that is, and an epoch that is
raised whenever the owner changes. Whoever owns it compares the epoch in every commit.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

from mfbandit.errors import StoreHeld, StoreUnavailable
from mfbandit.store.database import Connection
from mfbandit.store.membership import ENTRY, Membership, ServiceEntry, end_expired

CLAIM_SECONDS = 5.0  # to wait for an owner that seems to be gone to be ended
PAUSE_SECONDS = 0.1
TURN_SECONDS = 3.0  # to wait for the connection, while another thread uses it

T = TypeVar("T")

_ROW = "SELECT id, owner, epoch FROM mfbandit_experiments WHERE name = ?"
_TAKE = (
    "UPDATE mfbandit_experiments SET owner = ?, epoch = epoch + 1 WHERE id = ? AND epoch = ? "
    "AND EXISTS (SELECT 1 FROM mfbandit_services WHERE mfbandit_services.id = ? AND ended IS NULL)"
)


@dataclass(frozen=True)
class Place:
    """Where an experiment is.

    Args:
        experiment: its number.
        epoch: of its owner.
        owner: who owns it; None if nobody does, or the owner has ended.
        last: who owned it last, if that one has ended.
    """

    experiment: int
    epoch: int
    owner: ServiceEntry | None
    last: ServiceEntry | None


@dataclass(frozen=True)
class Holding:
    """What it takes to append to a log as its owner.

    Args:
        epoch: compared in every commit.
        away: seconds for which nobody could use the experiment, because the owner before this one was gone.
    """

    epoch: int
    away: float = 0.0


class Owners:
    """Looks up, takes and hands over experiments for one process, over a connection of its own.

    Args:
        name: of the store, for messages.
        connect: opens a connection, outside transactions.
        me: the row of this process.
    """

    def __init__(self, name: str, connect: Callable[[], Connection], me: Membership) -> None:
        self._name, self._connect, self.me = name, connect, me
        self._lock = threading.Lock()
        self._kept: Connection | None = None
        self._closed = False
        self._failed_at, self._failure = -1e9, ""

    def close(self) -> None:
        """Close the connection."""
        self._closed = True
        with self._lock:
            if self._kept is not None:
                self._kept.close()

    def services(self) -> list[ServiceEntry]:
        """Return all processes that write and have not ended, the oldest first."""
        query = f"SELECT {ENTRY} FROM mfbandit_services WHERE ended IS NULL ORDER BY since, id"  # noqa: S608
        return [ServiceEntry(*row) for row in self._ask(lambda connection: connection.query(query))]

    def owned(self) -> list[str]:
        """Return the names of the experiments that this process owns."""
        query = "SELECT name FROM mfbandit_experiments WHERE owner = ? ORDER BY id"
        return [str(name) for (name,) in self._ask(lambda connection: connection.query(query, (self.me.id,)))]

    def end_expired(self) -> int:
        """End the processes that are gone; return how many."""
        return self._ask(lambda connection: end_expired(connection, steady=self.me.is_steady()))

    def find(self, name: str) -> Place | None:
        """Return where an experiment is; None if there is none of that name."""
        return self._ask(lambda connection: _place(connection, name))

    def claim(self, name: str) -> Holding | None:
        """Become the owner of an experiment, or stay it; None if there is none of that name.

        Raises:
            StoreHeld: another process owns it.
        """
        deadline = time.monotonic() + CLAIM_SECONDS
        while True:
            place = self.find(name)
            if place is None:
                return None
            owner = place.owner
            if owner is not None and owner.id == self.me.id:
                return Holding(place.epoch)
            claim = self._take(place) if owner is None else None
            if claim is not None:
                return claim
            if owner is not None and (owner.well or time.monotonic() > deadline):
                raise owned_elsewhere(name, owner)
            if time.monotonic() > deadline:
                raise StoreUnavailable(f"{self._name}: experiment {name!r} changes owners all the time: try again")
            if owner is not None and not self._end(owner):
                time.sleep(PAUSE_SECONDS)

    def _take(self, place: Place) -> Holding | None:
        """Take an experiment that nobody owns; None if another process was faster."""

        def take(connection: Connection) -> Holding | None:
            values = (self.me.id, place.experiment, place.epoch, self.me.id)
            if connection.run(_TAKE, values) == 1:
                return Holding(place.epoch + 1, self._away(connection, place.last))
            me = _entry(connection, self.me.id)
            if me is None or me.ended is not None:
                raise self.me.overtaken()
            return None

        return self._ask(take)

    def _away(self, connection: Connection, last: ServiceEntry | None) -> float:
        """Return for how long nobody could use an experiment: until others ended the service that had it.

        If this one was not there yet, then the store's own record of outages says so.
        """
        if last is None or last.ended is None or not last.address or not self.me.address:
            return 0.0
        me = _entry(connection, self.me.id)
        return last.ended - last.seen if me is not None and me.since <= last.seen else 0.0

    def _end(self, owner: ServiceEntry) -> bool:
        """End an owner, if it was silent for too long."""
        steady = self.me.is_steady()
        return self._ask(lambda connection: end_expired(connection, steady=steady, service=owner.id)) == 1

    def _ask(self, work: Callable[[Connection], T]) -> T:
        """Do work over the connection, one thread at a time; once more where the connection was lost meanwhile."""
        with self._turn():
            kept, self._kept = self._kept, None
            if kept is not None:
                try:
                    result = work(kept)
                    self._kept = kept
                except StoreUnavailable:
                    kept.close()
                else:
                    return result
            connection = self._connect()
            try:
                result = work(connection)
                self._kept = connection
            finally:
                if self._kept is None:
                    connection.close()
            return result

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Wait for one's turn; not long, and not at all where the database has just been out of reach."""
        if not self._lock.acquire(timeout=TURN_SECONDS):
            raise StoreUnavailable(f"{self._name} does not answer")
        try:
            if self._closed:
                raise StoreUnavailable(f"the store is closed: {self._name}")
            if time.monotonic() - self._failed_at < PAUSE_SECONDS:
                raise StoreUnavailable(f"{self._name} cannot be used now: {self._failure}")
            yield
        except StoreUnavailable as error:
            if time.monotonic() - self._failed_at >= PAUSE_SECONDS:
                self._failed_at, self._failure = time.monotonic(), str(error)
            raise
        finally:
            self._lock.release()


def _place(connection: Connection, name: str) -> Place | None:
    rows = connection.query(_ROW, (name,))
    if not rows:
        return None
    number, owner, epoch = rows[0]
    entry = None if owner is None else _entry(connection, str(owner))
    gone = entry is None or entry.ended is not None
    return Place(int(number), int(epoch), None if gone else entry, entry if gone else None)


def _entry(connection: Connection, service: str) -> ServiceEntry | None:
    rows = connection.query(f"SELECT {ENTRY} FROM mfbandit_services WHERE id = ?", (service,))  # noqa: S608
    return ServiceEntry(*rows[0]) if rows else None


def owned_elsewhere(name: str, owner: ServiceEntry) -> StoreHeld:
    """Return the error of an experiment that another process owns.

    >>> entry = ServiceEntry("0a", "http://10.0.0.5:8000", "mfbandit serve", "", 0.0, 9.5, None, 0.2, True)
    >>> owned_elsewhere("ads", entry)
    StoreHeld("experiment 'ads' is owned by mfbandit serve; use http://10.0.0.5:8000 in place of the store, or read it")
    """
    way = f"use {owner.address} in place of the store, or read it" if owner.address else "reading is possible"
    return StoreHeld(f"experiment {name!r} is owned by {owner.purpose}; {way}")
