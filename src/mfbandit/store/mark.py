"""A mark outside database and log: up to which commit a store has acknowledged what it was told.

SQLite takes a damaged write-ahead log for a short one, and a missing one for none. So the end of a store can be lost
without a word. The mark is set after each commit and before anybody is told of it. A store that is behind its mark has
lost something; one that is ahead of it was stopped in between.
"""

import os
import struct
import threading
import zlib
from pathlib import Path
from typing import NamedTuple, Self

from mfbandit.errors import StoreDamaged, StoreError
from mfbandit.store.commits import Commits
from mfbandit.store.store_files import OWNER_ONLY, flush_folder, open_private, unusable

_MAGIC = b"mfbmark1"
_FIELDS = struct.Struct("<8sQ32s4Q")  # magic, turn, store, and the four numbers of Commits
_SUM = struct.Struct("<I")
_OTHER = {0: 4096, 4096: 0}  # two places, so far apart that a write that is cut off spoils one of them
_FILE_BYTES = 8192
FLUSHED_AFTER_SECONDS = 0.05


class Mark:
    """The mark of a store, open for writing.

    It is written before anybody is told, which holds whatever the process dies of, and flushed by a thread of its own
    shortly after: a power cut may leave it behind by that much, never ahead. A second flush for each group would make
    a single client wait a third longer, and a disk that loses what it said it had flushed would lose the mark with it.

    Args:
        path: where it is, or will be.
        mode: of the file, if it is made.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, Mark(Path(folder, "ads.db-mark")) as mark:
    ...     mark.write("0a1b", Commits(1, 5, 40, 7))
    ...     read_mark(Path(folder, "ads.db-mark"))
    ('0a1b', Commits(epoch=1, number=5, events=40, digest=7))
    """

    def __init__(self, path: Path, mode: int = OWNER_ONLY) -> None:
        self._path, self._pid = path, os.getpid()
        self._file = open_private(path, mode)
        try:
            if os.fstat(self._file).st_size < _FILE_BYTES:  # with all its room, so that no write needs more
                os.pwrite(self._file, bytes(_FILE_BYTES), 0)
                os.fsync(self._file)
                flush_folder(path)
            found = _slots(os.pread(self._file, _FILE_BYTES, 0))
        except OSError as error:
            os.close(self._file)
            raise unusable(path, error) from error
        newest = max(found, key=lambda slot: slot.turn, default=None)
        self._turn, self._place = (0, 0) if newest is None else (newest.turn, _OTHER[newest.place])
        self._changed = False
        self._error: OSError | None = None
        self._news = threading.Condition()
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._flush_again_and_again, name="mfbandit mark", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def write(self, store: str, commits: Commits) -> None:
        """Set the mark.

        Args:
            store: the id of the store.
            commits: what is acknowledged from now on.
        """
        with self._news:
            if self._error is not None:
                error, self._error = self._error, None
                raise unusable(self._path, error) from error
            self._turn += 1
            numbers = (commits.epoch, commits.number, commits.events, commits.digest)
            data = _FIELDS.pack(_MAGIC, self._turn, store.encode(), *numbers)
            try:
                os.pwrite(self._file, data + _SUM.pack(zlib.crc32(data)), self._place)
            except OSError as error:
                raise unusable(self._path, error) from error
            if not self._changed:  # else it is awake, and takes this along
                self._changed = True
                self._news.notify()

    def flush(self) -> None:
        """Flush what was written so far; what is written meanwhile goes to the other place, so that one is whole."""
        with self._news:
            self._changed, self._place = False, _OTHER[self._place]
        _flush(self._file)

    def close(self) -> None:
        """Flush the mark, and close the file."""
        if os.getpid() == self._pid:  # a child that was forked off has no such thread, and perhaps a lock held for ever
            with self._news:
                self._ending.set()
                self._news.notify()
            self._thread.join()
        os.close(self._file)

    def _flush_again_and_again(self) -> None:
        while True:
            with self._news:
                self._news.wait_for(lambda: self._changed or self._ending.is_set())
                if not self._changed:
                    return
            self._ending.wait(FLUSHED_AFTER_SECONDS)
            try:
                self.flush()
            except OSError as error:
                with self._news:
                    self._error = error


_flush = getattr(os, "fdatasync", os.fsync)  # the file keeps its size: there is nothing else to flush


def read_mark(path: Path) -> tuple[str, Commits] | None:
    """Return the id of the store and what it acknowledged; None if there is no mark yet.

    Args:
        path: where the mark is.

    Raises:
        StoreDamaged: there is one, and it cannot be read.
    """
    if path.is_symlink():
        raise StoreError(f"{path} is a symbolic link, which is not followed: remove it")
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror}") from error
    found = _slots(data)
    if found:
        newest = max(found, key=lambda slot: slot.turn)
        return newest.store, newest.commits
    if data.strip(b"\0"):
        raise StoreDamaged(
            f"{path} is damaged, so that nobody can tell whether anything is missing in the store: compare it with the "
            f"last backup, and delete {path.name} to go on"
        )
    return None


class _Slot(NamedTuple):
    """What one place of the file says."""

    place: int
    turn: int
    store: str
    commits: Commits


def _slots(data: bytes) -> list[_Slot]:
    """The places that are whole."""
    found = []
    for place in _OTHER:
        fields, after = data[place : place + _FIELDS.size], place + _FIELDS.size
        if len(fields) == _FIELDS.size and data[after : after + _SUM.size] == _SUM.pack(zlib.crc32(fields)):
            magic, turn, store, *numbers = _FIELDS.unpack(fields)
            if magic == _MAGIC:
                found.append(_Slot(place, turn, store.rstrip(b"\0").decode(), Commits(*numbers)))
    return found
