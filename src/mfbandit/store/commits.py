"""How far a store has been written, as one row of its tables: by which opening, and up to which commit.

Every group raises the row by compare-and-set. So a process that was overtaken by another one finds out before it
acknowledges anything, whatever became of the locks.
"""

import zlib
from typing import NamedTuple, Protocol

from mfbandit.errors import StoreDamaged, StoreError, StoreHeld
from mfbandit.store.database import Connection, transaction

KEY = "commits"
LAST_ID = "last_id"
_PLACES = 4  # epoch, number, events, digest


class Commits(NamedTuple):
    """Where a store stands.

    Args:
        epoch: how often it was opened for writing.
        number: how many groups were committed.
        events: how many events these had, of all experiments, those deleted since included.
        digest: runs over the ends of the logs, group by group.
    """

    epoch: int = 0
    number: int = 0
    events: int = 0
    digest: int = 0

    def __str__(self) -> str:
        return f"{self.epoch} {self.number} {self.events} {self.digest}"

    def after(self, ends: list[tuple[int, int, int]], events: int) -> "Commits":
        """Return where it stands after one more group.

        Args:
            ends: (experiment, head, digest) of each log that the group made longer.
            events: how many events it had.

        >>> Commits(1, 5, 40).after([(1, 42, 7)], events=2).number
        6
        """
        digest = zlib.crc32(repr((self.number, ends)).encode(), self.digest)
        return Commits(self.epoch, self.number + 1, self.events + events, digest)


def parse_commits(text: str) -> Commits | None:
    """Return what a text says; None if it says nothing.

    >>> parse_commits("3 120 4711 99")
    Commits(epoch=3, number=120, events=4711, digest=99)
    >>> parse_commits("three") is None
    True
    """
    parts = text.split(" ")
    if len(parts) != _PLACES or not all(part.isdecimal() and part.isascii() for part in parts):
        return None
    return Commits(*map(int, parts))


def read_commits(name: str, connection: Connection) -> Commits | None:
    """Return the row of a store; None where an earlier version wrote it, which had none.

    Args:
        name: of the store, for messages.
        connection: to its database, with the tables in place.
    """
    rows = connection.query("SELECT value FROM mfbandit_store WHERE key = ?", (KEY,))
    if not rows:
        return None
    found = parse_commits(str(rows[0][0]))
    if found is None:
        raise StoreDamaged(f"{name} is damaged: its count of commits is {rows[0][0]!r}; take the last backup")
    return found


class CommitRow(Protocol):
    """The row that says how far a process has written; each group raises it, or is not kept."""

    @property
    def renew_seconds(self) -> float | None:
        """How often the row is to be changed even if there is nothing to write; None is never."""
        ...

    def begin(self, connection: Connection, known: Commits | None) -> Commits:
        """Begin to write, so that whoever wrote by this row before cannot go on; return where it stands.

        Args:
            connection: the one that writes.
            known: what this process acknowledged before it lost its connection, if it had one.
        """
        ...

    def begin_again(self, connection: Connection, known: Commits | None) -> Commits:
        """Begin anew after this process was overtaken, or raise what is in the way."""
        ...

    def read(self, connection: Connection) -> Commits | None:
        """Return where it stands; None if this process may not write any more."""
        ...

    def swap(self, connection: Connection, known: Commits, new: Commits) -> None:
        """Put a new row in place of the one that is known, or refuse: this process was overtaken."""
        ...

    def kept(self) -> None:
        """Take note that the last swap was committed."""
        ...

    def overtaken(self) -> StoreError:
        """Return the error of a process that may not write any more."""
        ...

    def end(self, connection: Connection) -> None:
        """End: nothing more will be written."""
        ...

    def is_fresh(self) -> bool:
        """Tell whether nobody else can write what this process writes, by its own clock."""
        ...


class StoreRow:
    """The row of a store that one process writes to at a time.

    Args:
        name: of the store, for messages.
    """

    renew_seconds = None

    def __init__(self, name: str) -> None:
        self._name = name

    def begin(self, connection: Connection, known: Commits | None) -> Commits:
        """Begin to write: raise the epoch, so that whoever wrote before cannot go on."""
        with transaction(connection):
            found = self.read(connection)
            if found is None:
                ((events,),) = connection.query("SELECT coalesce(sum(head), 0) FROM mfbandit_experiments")
                found = Commits(events=int(events))
                connection.insert("mfbandit_store", ("key", "value"), [(KEY, str(found))])
            if known is not None and found.number < known.number:
                raise behind(self._name, found, known, "start this process again to go on without the rest")
            begun = found.after([], 0)._replace(epoch=found.epoch + 1)
            self.swap(connection, found, begun)
        return begun

    def begin_again(self, _: Connection, __: Commits | None) -> Commits:
        """Refuse: the other process goes on, or a person ends one of the two."""
        raise self.overtaken()

    def read(self, connection: Connection) -> Commits | None:
        """Return where the store stands."""
        return read_commits(self._name, connection)

    def swap(self, connection: Connection, known: Commits, new: Commits) -> None:
        """Put a new row in place of the one that is known, or refuse: somebody else has written."""
        values = (str(new), KEY, str(known))
        if connection.run("UPDATE mfbandit_store SET value = ? WHERE key = ? AND value = ?", values) != 1:
            raise self.overtaken()

    def kept(self) -> None:
        """Note nothing: the row does not grow old."""

    def overtaken(self) -> StoreHeld:
        """Return the error of a process that is not the one that writes any more."""
        return StoreHeld(
            f"{self._name} was written by another process since this one opened it: nothing more is kept here; end "
            f"this one, or the other"
        )

    def end(self, connection: Connection) -> None:
        """End; the locks of the store say so."""

    def is_fresh(self) -> bool:
        """Always: the locks keep others out."""
        return True


def behind(name: str, found: Commits, known: Commits, way_out: str) -> StoreDamaged:
    """Return the error of a store that has less than was acknowledged.

    >>> behind("ads.db", Commits(1, 3, 100), Commits(1, 9, 300), "give up")
    StoreDamaged('ads.db has 100 of the 300 events, and 3 of the 9 writes, that were acknowledged: take the last
        backup, or give up')
    """
    return StoreDamaged(
        f"{name} has {found.events:,} of the {known.events:,} events, and {found.number:,} of the {known.number:,} "
        f"writes, that were acknowledged: take the last backup, or {way_out}"
    )


def new_experiment_id(connection: Connection) -> int:
    """Return an id that no experiment had before, deleted ones included; inside a transaction.

    Rows that a deleted experiment left behind, by whatever fault, must never become another one's.
    """
    # Where several processes write, whoever comes second waits at one of these, and reads what the first has written.
    connection.run("INSERT INTO mfbandit_store (key, value) VALUES (?, '0') ON CONFLICT (key) DO NOTHING", (LAST_ID,))
    connection.run("UPDATE mfbandit_store SET value = value WHERE key = ?", (LAST_ID,))
    ((there,),) = connection.query("SELECT coalesce(max(id), 0) FROM mfbandit_experiments")
    ((text,),) = connection.query("SELECT value FROM mfbandit_store WHERE key = ?", (LAST_ID,))
    last = max(int(there), int(text) if str(text).isdecimal() else 0) + 1
    connection.run("UPDATE mfbandit_store SET value = ? WHERE key = ?", (str(last), LAST_ID))
    return last
