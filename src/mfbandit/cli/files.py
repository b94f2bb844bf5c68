"""Files that commands read and write: each is there whole, or as it was."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mfbandit.errors import InvalidArgument

_REASONS = {
    FileNotFoundError: "File not found",
    PermissionError: "Permission denied",
    IsADirectoryError: "Not a file but a folder",
    NotADirectoryError: "Not a folder",
    FileExistsError: "File exists already",
}


def os_error_text(error: OSError) -> str:
    """Say what went wrong with which file.

    >>> os_error_text(FileNotFoundError(2, "No such file or directory", "no.toml"))
    'File not found: no.toml'
    >>> os_error_text(OSError(28, "No space left on device"))
    'No space left on device'
    """
    reason = _REASONS.get(type(error)) or error.strerror or str(error)
    return reason if error.filename is None else f"{reason}: {os.fsdecode(error.filename)}"


def read_text(path: Path) -> str:
    """Read a file of UTF-8 text, with or without a byte order mark.

    >>> read_text(Path("no.csv"))
    Traceback (most recent call last):
    mfbandit.errors.InvalidArgument: File not found: no.csv
    """
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidArgument(f"{path} must be UTF-8 text ({error.reason} at byte {error.start})") from None
    except OSError as error:
        raise InvalidArgument(os_error_text(error)) from None


def check_writable(option: str, path: Path) -> None:
    """Refuse a path that cannot be written, before any work is done for it.

    >>> check_writable("--out", Path("no-such-folder/plays.csv"))
    Traceback (most recent call last):
    mfbandit.errors.InvalidArgument: --out must be a file that can be written, got no-such-folder/plays.csv
    """
    if "\0" in str(path) or path.is_dir() or not os.access(path.parent, os.W_OK):
        raise InvalidArgument(f"{option} must be a file that can be written, got {path}")


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a path to write to; at the end the file is put in place, unless something went wrong.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with replacing(Path(folder, "plays.csv")) as part:
    ...         _ = part.write_text("play,arm")
    ...     os.listdir(folder)
    ['plays.csv']
    """
    part = path.with_name(f".{path.name}.part")
    try:
        yield part
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
