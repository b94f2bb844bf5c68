"""The lock of a store in a file: one process writes, whatever name it uses for the file.

Two locks are held. The one on the file ``ads.db-writer`` says who writes. The one on the database itself stays when
that file is removed, and holds for every name of the database. Both end with the process, whatever that dies of.
"""

import fcntl
import json
import os
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from mfbandit.errors import StoreHeld, StoreUnavailable
from mfbandit.store.database import process_record
from mfbandit.store.store_files import Identity, beside, identity, mode_of, open_private

_ATTEMPTS = 10  # to lock a file that others remove meanwhile
_held: set[Path] = set()
_mutex = threading.Lock()  # a process always gets its own lock, so threads have to be kept apart here
_descriptors: set[int] = set()  # of locked databases
_readers: Counter[Identity] = Counter()
_unlocked: dict[Identity, list[int]] = {}  # to be closed when nobody reads any more


@contextmanager
def locked(path: Path, purpose: str) -> Iterator[None]:
    """Keep other writers out, until the end or until this process dies.

    Args:
        path: of the database, whether it is there or not.
        purpose: what this process is, for others who find the store held.
    """
    real, note = path.resolve(), beside(path, "writer")
    with _mutex:
        if real in _held:
            raise StoreHeld(f"{path} is open for writing in this process already")
        _held.add(real)
    try:
        file = _note(path, note)
        try:
            os.ftruncate(file, 0)
            with suppress(OSError):  # a full disk: the lock holds without a name
                os.write(file, json.dumps(process_record(purpose)).encode())
            try:
                yield
            finally:
                with suppress(OSError):  # a name that stays is read by nobody who gets the lock
                    os.ftruncate(file, 0)
        finally:
            os.close(file)
    finally:
        _held.discard(real)


def _note(path: Path, note: Path) -> int:
    """Lock the file that says who writes: the one that is at its path, not one that was removed meanwhile."""
    for _ in range(_ATTEMPTS):
        file = open_private(note, mode_of(path))
        try:
            acquire(file, path, note)
            found = os.fstat(file)
            if identity(note) == (found.st_dev, found.st_ino):
                return file
        except BaseException:
            os.close(file)
            raise
        os.close(file)
    raise StoreUnavailable(f"{path} cannot be used now: {note.name} is removed again and again")


def acquire(file: int, path: Path, note: Path) -> None:
    """Lock the file that says who writes, or say who does."""
    try:
        # Of the process, not of the open file: it does not live on in children that were forked off.
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise _held_elsewhere(path, note) from None


def _held_elsewhere(path: Path, note: Path) -> StoreHeld:
    holder = _holder(note)
    instead = ", and its address can be given in place of the file" if "http://" in holder else ""
    return StoreHeld(f"{path} is open for writing elsewhere: {holder}; reading is possible{instead}")


def _holder(note: Path) -> str:
    try:
        told = json.loads(note.read_text())
        return f"by {told['purpose']}, process {told['pid']} on {told['host']}, since {told['since']}"
    except (OSError, ValueError, LookupError, TypeError):
        return "by a process that did not leave its name"


# The database itself. SQLite's own locks on it are of another kind (fcntl) and are not touched by this one (flock) on
# Linux; on other systems they would get into each other's way, and the note is all there is. But they are lost when
# *any* descriptor of the file is closed in this process. So this one stays open for as long as somebody here reads.


@contextmanager
def locked_database(path: Path) -> Iterator[None]:
    """Lock the database itself, which must be there, and which nobody can remove from under the lock."""
    if sys.platform != "linux":
        yield
        return
    file = open_private(path)
    with _mutex:
        _descriptors.add(file)
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise _held_elsewhere(path, beside(path, "writer")) from None
        yield
    finally:
        _release(file)


def _release(file: int) -> None:
    with _mutex:
        if file not in _descriptors:  # closed in a child that was forked off
            return
        _descriptors.discard(file)
        fcntl.flock(file, fcntl.LOCK_UN)
        found = os.fstat(file)
        key = found.st_dev, found.st_ino
        if _readers[key]:
            _unlocked.setdefault(key, []).append(file)
        else:
            os.close(file)


def begin_reading(path: Path) -> Identity | None:
    """Count one more reader of a database in this process; what it returns ends the reading."""
    with _mutex:
        key = identity(path.resolve())
        if key is not None:
            _readers[key] += 1
        return key


def end_reading(key: Identity | None) -> None:
    """Count one reader less."""
    if key is None:
        return
    with _mutex:
        _readers[key] -= 1
        if _readers[key] <= 0:
            del _readers[key]
            for file in _unlocked.pop(key, []):
                os.close(file)


def _forget() -> None:
    """Close the locked databases in a child that was forked off, which would keep them locked."""
    global _mutex  # noqa: PLW0603 - the parent may have held it
    _mutex = threading.Lock()
    for file in (*_descriptors, *(file for files in _unlocked.values() for file in files)):
        with suppress(OSError):
            os.close(file)
    _held.clear()
    _descriptors.clear()
    _readers.clear()
    _unlocked.clear()


os.register_at_fork(after_in_child=_forget)
