"""The row of a process that writes to a database which others write to as well: renewed for as long as it lives.

Whoever writes has a row in ``mfbandit_services``, and renews it twice a second by the database's own clock. Others may
end it when it was not renewed for some seconds: then nothing that this process still sends is kept. Every group of
events is committed together with a change of this row, so that an ended process finds out before it acknowledges
anything.
"""

import secrets
import time
from typing import NamedTuple

from mfbandit.errors import StoreDamaged, StoreUnavailable
from mfbandit.store.commits import Commits, behind, parse_commits
from mfbandit.store.database import Connection, transaction

TABLE = (
    "id TEXT PRIMARY KEY, address TEXT NOT NULL, purpose TEXT NOT NULL, secret TEXT NOT NULL, commits TEXT NOT NULL, "
    "session_lock BIGINT NOT NULL, since DOUBLE PRECISION NOT NULL, seen DOUBLE PRECISION NOT NULL, "
    "ended DOUBLE PRECISION"
)
RENEW_SECONDS = 0.5
GONE_SECONDS = 1.5  # without renewal, of a process whose session is gone as well
FRESH_SECONDS = 1.25  # after a renewal, in which nobody can have ended this process, though clocks run unevenly
LEASE_SECONDS = 2.5  # without renewal, of one whose session is still there: stopped, or out of reach
KEPT_SECONDS = 7 * 24 * 3600.0  # rows of processes that others ended, so that one that slept finds out
SESSION_LOCK = 0x6D67  # the class of advisory locks that say which sessions are there

NOW = "extract(epoch from clock_timestamp())::double precision"
_SILENT = f"({NOW} - greatest(seen, extract(epoch from pg_postmaster_start_time())::double precision))"
_THERE = (
    "EXISTS (SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND granted AND classid::bigint = "  # noqa: S608
    f"{SESSION_LOCK} AND objid::bigint = session_lock "
    "AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))"
)
_END = f"UPDATE mfbandit_services SET ended = {NOW}"  # noqa: S608 - our own words
_GONE = f"abs({_SILENT}) > {GONE_SECONDS} AND NOT {_THERE}"  # below zero: the clock was set back since
_EXPIRED = f"ended IS NULL AND ({_SILENT} > ? OR ({_GONE}))"


class ServiceEntry(NamedTuple):
    """A process that writes, as its table has it.

    Args:
        id: a random text; a process that comes back after it was ended has another one.
        address: where others reach it; empty where it serves nobody, as a script.
        purpose: what it was started as.
        secret: what its peers send with a request that they pass on.
        since: when it began, in seconds since 1970, by the database's clock.
        seen: when it was renewed last.
        ended: when it ended, or was taken for gone; None as long as it is here.
        silent: seconds since it was seen last, those not counted in which the server was down.
        there: whether its session with the database is there.
    """

    id: str
    address: str
    purpose: str
    secret: str
    since: float
    seen: float
    ended: float | None
    silent: float
    there: bool

    @property
    def well(self) -> bool:
        """Whether nothing is known to be wrong with it."""
        return self.ended is None and self.there and self.silent < GONE_SECONDS


ENTRY = f"id, address, purpose, secret, since, seen, ended, {_SILENT}, {_THERE}"  # columns of a ServiceEntry


def since_start() -> float:
    """Seconds since the machine was started, those included in which it slept."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class Membership:
    """The row of this process.

    Args:
        name: of the store, for messages.
        purpose: what this process is, for others.
    """

    renew_seconds = RENEW_SECONDS

    def __init__(self, name: str, purpose: str) -> None:
        self._name, self._purpose = name, purpose
        self.id = ""
        self.secret = secrets.token_urlsafe(32)
        self.address = ""
        self._began = self._renewed = self._steady_since = -1e9

    def serve_at(self, address: str) -> None:
        """Tell others from the next renewal on where this process answers requests."""
        self.address = address

    def is_fresh(self) -> bool:
        """Tell whether nobody can have ended this process yet, by its own clock."""
        return since_start() - self._renewed < FRESH_SECONDS

    def is_steady(self) -> bool:
        """Tell whether it was renewed without a gap for as long as a lease lasts.

        After a server that hung nobody was renewed for a while. Whoever comes first must not end all others.
        """
        return self.is_fresh() and self._renewed - self._steady_since > LEASE_SECONDS

    # Where it stands, for the writer; see CommitRow

    def begin(self, connection: Connection, known: Commits | None) -> Commits:
        """Begin to write over a new connection: go on with the row that is there, or make a new one."""
        began = since_start()
        with transaction(connection):
            found, ended = self._read(connection)
            if known is not None and (found or Commits()).number < known.number:
                raise behind(self._name, found or Commits(), known, "start this process again to go on without it")
            if found is None or ended:
                begun = self._register(connection)
            else:
                begun = found.after([], 0)._replace(epoch=found.epoch + 1)
                self._change(connection, found, begun)
        connection.query("SELECT pg_advisory_lock_shared(?, ?)", (SESSION_LOCK, _lock_number(self.id)))
        self._note_renewal(began)
        return begun

    def begin_again(self, connection: Connection, known: Commits | None) -> Commits:
        """Begin anew after others have ended this process."""
        return self.begin(connection, known)

    def read(self, connection: Connection) -> Commits | None:
        """Return where this process stands; None if it was ended."""
        found, ended = self._read(connection)
        return None if ended else found

    def swap(self, connection: Connection, known: Commits, new: Commits) -> None:
        """Put a new count in place of the one that is known, and renew; refuse if this process was ended."""
        self._began = since_start()
        self._change(connection, known, new)

    def kept(self) -> None:
        """Take note that the last swap was committed."""
        self._note_renewal(self._began)

    def overtaken(self) -> StoreUnavailable:
        """Return the error of a process that others have taken for gone."""
        return StoreUnavailable(
            f"{self._name}: this process was silent for too long, and others may have taken over what it had; nothing "
            f"was kept: try again"
        )

    def end(self, connection: Connection) -> None:
        """End: whatever belongs to a row that is not there belongs to nobody."""
        connection.run("DELETE FROM mfbandit_services WHERE id = ?", (self.id,))

    def _note_renewal(self, began: float) -> None:
        if began - self._renewed > GONE_SECONDS:
            self._steady_since = began
        self._renewed = began

    def _read(self, connection: Connection) -> tuple[Commits | None, bool]:
        rows = connection.query("SELECT commits, ended IS NOT NULL FROM mfbandit_services WHERE id = ?", (self.id,))
        if not rows:
            return None, False
        found = parse_commits(str(rows[0][0]))
        if found is None:
            raise StoreDamaged(f"{self._name} is damaged: a count of commits is {rows[0][0]!r}; take the last backup")
        return found, bool(rows[0][1])

    def _change(self, connection: Connection, known: Commits, new: Commits) -> None:
        changed = connection.run(
            f"UPDATE mfbandit_services SET commits = ?, address = ?, seen = {NOW} "  # noqa: S608 - our own words
            "WHERE id = ? AND commits = ? AND ended IS NULL",
            (str(new), self.address, self.id, str(known)),
        )
        if changed != 1:
            raise self.overtaken()

    def _register(self, connection: Connection) -> Commits:
        self.id, begun = secrets.token_hex(8), Commits(epoch=1)
        connection.run(
            "INSERT INTO mfbandit_services (id, address, purpose, secret, commits, session_lock, since, seen) "  # noqa: S608
            f"VALUES (?, ?, ?, ?, ?, ?, {NOW}, {NOW})",
            (self.id, self.address, self._purpose, self.secret, str(begun), _lock_number(self.id)),
        )
        connection.run(f"DELETE FROM mfbandit_services WHERE ended < {NOW} - {KEPT_SECONDS}")  # noqa: S608
        return begun


def _lock_number(service: str) -> int:
    return int(service[:7], 16)  # 28 bits: a lock has an integer of 32, with a sign


def end_expired(connection: Connection, *, steady: bool, service: str | None = None) -> int:
    """End the processes that were silent for too long; return how many.

    Args:
        connection: to the database, outside a transaction.
        steady: whether whoever asks was renewed without a gap; if not, only those end whose sessions are gone.
        service: the id of one, to end no other.
    """
    limit = LEASE_SECONDS if steady else float("inf")
    only, values = ("", [limit]) if service is None else (" AND id = ?", [limit, service])
    return connection.run(f"{_END} WHERE {_EXPIRED}{only}", values)
