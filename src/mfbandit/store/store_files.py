"""The files of a store in SQLite: where they may be, how they are made, and whether they are still those that are open.

``ads.db`` has ``ads.db-wal`` and ``ads.db-shm`` (SQLite's own), ``ads.db-writer`` (who writes) and ``ads.db-mark``
(what was acknowledged) beside it.
"""

import os
import re
import stat
import time
from collections.abc import Iterable
from pathlib import Path

from mfbandit.errors import StoreError, StoreNotFound, StoreUnavailable

NETWORK_FILE_SYSTEMS = {
    "nfs",
    "nfs4",
    "cifs",
    "smb3",
    "smbfs",
    "afs",
    "9p",
    "glusterfs",
    "lustre",
    "fuse.sshfs",
    "fuse.glusterfs",
}
OWNER_ONLY = 0o600
ENDINGS = ("wal", "shm", "writer", "mark")
ALL_FILES_CHECKED_SECONDS = 0.5

Identity = tuple[int, int]


def beside(path: Path, ending: str) -> Path:
    """Return the file of a store with this ending.

    >>> beside(Path("/data/ads.db"), "mark").name
    'ads.db-mark'
    """
    real = path.resolve()
    return real.with_name(f"{real.name}-{ending}")


def mode_of(database: Path) -> int:
    """Return the mode for files beside a database: its own, as SQLite does; its owner's alone if it is not there."""
    try:
        return stat.S_IMODE(os.stat(database).st_mode) & 0o666
    except OSError:
        return OWNER_ONLY


def open_private(path: Path, mode: int = OWNER_ONLY) -> int:
    """Open a file for reading and writing; if it is not there, make one, for its owner alone whatever the umask is.

    No symbolic link is followed, and the mode of a file that is there is left alone.

    Args:
        path: where it is.
        mode: of a new file.
    """
    flags = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        try:
            file = os.open(path, flags | os.O_CREAT | os.O_EXCL, mode)
        except FileExistsError:
            return os.open(path, flags)
        os.fchmod(file, mode)
    except OSError as error:
        if path.is_symlink():
            raise StoreError(f"{path} is a symbolic link, which is not followed: remove it") from None
        raise unusable(path, error) from error
    return file


def unusable(path: Path, error: OSError) -> StoreUnavailable:
    """Return the error that names a store, and the file of it that cannot be used.

    >>> unusable(Path("ads.db-mark"), OSError(28, "No space left on device"))
    StoreUnavailable('ads.db cannot be used now: No space left on device: ads.db-mark')
    """
    store = re.sub(f"-({'|'.join(ENDINGS)})$", "", str(path))
    return StoreUnavailable(f"{store} cannot be used now: {error.strerror}: {path.name}")


def identity(path: Path) -> Identity | None:
    """Return what stays the same for as long as a file is the same; None if it is not there."""
    try:
        found = os.stat(path, follow_symlinks=False)
    except OSError:
        return None
    return found.st_dev, found.st_ino


class OpenFiles:
    """The files that are open, to be compared with those at their paths.

    Args:
        name: of the store, for messages.
        paths: of its files; the first two are those that hold what is written.
    """

    def __init__(self, name: str, paths: Iterable[Path]) -> None:
        self._name = name
        self._files = [(os.fspath(path), found) for path in paths if (found := identity(path)) is not None]
        self._all_checked = time.monotonic()

    def check(self) -> None:
        """Refuse to go on where a file was replaced or removed: what is written would be lost with it.

        Each look costs a switch between threads, so those files that hold no results are looked at now and then.
        """
        now = time.monotonic()
        every = now - self._all_checked > ALL_FILES_CHECKED_SECONDS
        for path, (device, number) in self._files if every else self._files[:2]:
            try:
                found = os.lstat(path)
            except OSError:
                found = None
            if found is None or found.st_ino != number or found.st_dev != device:
                raise StoreUnavailable(
                    f"{Path(path).name} was replaced or removed while {self._name} was open: nothing more is kept. Put "
                    f"the same file back, or stop this process first and then put the store in order"
                )
        if every:
            self._all_checked = now


def check_place(path: Path) -> None:
    """Refuse a path where a store could not be written safely.

    >>> check_place(Path("/no/such/folder/ads.db"))
    Traceback (most recent call last):
    mfbandit.errors.StoreNotFound: Folder not found: /no/such/folder, for the store /no/such/folder/ads.db
    """
    folder = path.absolute().parent
    if not folder.is_dir():
        raise StoreNotFound(f"Folder not found: {folder}, for the store {path}")
    if path.is_symlink():
        raise StoreError(f"{path} is a symbolic link, which is not followed: give the file itself, {os.readlink(path)}")
    if path.is_dir():
        raise StoreError(f"{path} is a folder, not a store file")
    if not os.access(folder, os.W_OK) or (path.exists() and not os.access(path, os.W_OK)):
        raise StoreError(f"Permission denied: {path} and its folder must be writable")
    check_names(path)


def check_names(path: Path) -> None:
    """Refuse a file that has a second name: whoever uses that one sees other files beside it, and no lock.

    Args:
        path: of a store; nothing is wrong with one that is not there.
    """
    try:
        found = os.stat(path)
    except OSError:
        return
    if stat.S_ISREG(found.st_mode) and found.st_nlink > 1:
        raise StoreError(
            f"{path} must have one name, got {found.st_nlink} (hard links): two processes could write to it at once; "
            f"remove the others, or copy it"
        )
    if str(path.resolve()) in mount_points():
        raise StoreError(
            f"{path} is mounted by itself, without the files that belong beside it: mount its folder instead"
        )


def mount_points() -> dict[str, str]:
    """Return the kind of file system by mount point, the last mounted of each; empty where nobody knows.

    >>> mount_points().get("/proc", "proc")
    'proc'
    """
    try:
        lines = Path("/proc/self/mountinfo").read_text(errors="surrogateescape").splitlines()
    except OSError:
        return {}
    found = {}
    for line in lines:
        before, _, after = line.partition(" - ")
        found[_unescaped(before.split()[4])] = after.split()[0]
    return found


def _unescaped(text: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), text)


def file_system(folder: Path) -> str:
    """Return the kind of file system that a folder is on, or "unknown".

    >>> file_system(Path("/proc"))
    'proc'
    """
    known, real = mount_points(), folder.resolve()
    for one in (real, *real.parents):
        if str(one) in known:
            return known[str(one)]
    return "unknown"


def flush_folder(path: Path) -> None:
    """Flush the folder of a file: a new file is safe once its folder is on disk, too."""
    folder = os.open(path.absolute().parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
