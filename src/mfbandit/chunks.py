"""Runs of a simulation that are finished, kept in a folder, so that a job that was stopped goes on where it was.

A chunk is a file that is written whole or not at all. Its folder is named by everything that the numbers in it depend
on, so that no chunk is ever taken for another's; the number of runs is not part of that, and more can be added later.
"""

import hashlib
import inspect
import json
import os
import warnings
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mfbandit.arrays import FloatArray, IntArray

DIGITS = 8  # of the numbers of runs in a file's name
ARRAYS = ("regret", "steps", "spent", "plays")


@dataclass(frozen=True, eq=False)
class Chunk:
    """Runs ``first``, ``first + 1``, … of a simulation.

    Args:
        first: number of the first run.
        regret: of each run at each capital; shape (n, G).
        steps: plays of each run; shape (n,).
        spent: capital that each run spent; shape (n,).
        plays: final plays of each run, shape (n, M, K), or their sum over runs, shape (M, K).
    """

    first: int
    regret: FloatArray
    steps: IntArray
    spent: FloatArray
    plays: IntArray

    @property
    def last(self) -> int:
        """One more than the number of the last run."""
        return self.first + len(self.steps)


class Chunks:
    """The chunks of one simulation.

    Args:
        folder: where results of any number of simulations are kept; made if it is not there.
        about: everything that the numbers depend on, by name.

    >>> import tempfile
    >>> one = Chunk(0, np.zeros((2, 1)), np.array([3, 3]), np.array([1.0, 1.0]), np.zeros((1, 2), dtype=np.int64))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Chunks(folder, {"seed": 1}).save(one)
    ...     kept = [(chunk.first, chunk.last) for chunk in Chunks(folder, {"seed": 1}).load(runs=5)]
    ...     others = list(Chunks(folder, {"seed": 2}).load(runs=5))
    >>> kept, others
    ([(0, 2)], [])
    """

    def __init__(self, folder: str | Path, about: dict[str, Any]) -> None:
        self._folder = Path(folder) / fingerprint(about)[:16]
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ValueError(f"results must be a folder that can be written, got {folder} ({error.strerror})") from None
        told = self._folder / "about.json"
        if not told.exists():  # for people; the name of the folder is what counts
            _replace(told, json.dumps({name: _readable(value) for name, value in about.items()}, indent=1).encode())

    def save(self, chunk: Chunk) -> None:
        """Keep a chunk: once this returns it is on disk."""
        target = self._folder / f"runs-{chunk.first:0{DIGITS}}-{chunk.last:0{DIGITS}}.npz"
        part = target.with_name(f".{target.name}.{os.getpid()}")
        try:
            with part.open("wb") as file:
                np.savez(file, **{name: getattr(chunk, name) for name in ARRAYS})
                file.flush()
                os.fsync(file.fileno())
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)

    def load(self, runs: int) -> Iterator[Chunk]:
        """The chunks that are there, among the first ``runs`` runs; one that overlaps another is left out."""
        done = 0
        for path in sorted(self._folder.glob("runs-*.npz")):
            first, last = (int(part) for part in path.stem.split("-")[1:])
            if first >= done and last <= runs:
                chunk = _read(path, first)
                if chunk is not None and chunk.last == last:
                    done = last
                    yield chunk


def _read(path: Path, first: int) -> Chunk | None:
    try:
        with path.open("rb") as stream, np.load(stream) as file:
            return Chunk(first, **{name: file[name] for name in ARRAYS})
    except (KeyError, ValueError, EOFError, OSError, zipfile.BadZipFile, zlib.error) as error:
        warnings.warn(f"{path} is damaged, and its runs are made again ({error})", stacklevel=2)
        return None


def _replace(target: Path, content: bytes) -> None:
    part = target.with_name(f".{target.name}.{os.getpid()}")
    part.write_bytes(content)
    part.replace(target)


def missing(done: list[tuple[int, int]], runs: int, size: int) -> list[tuple[int, int]]:
    """The runs that are not done, in pieces of at most ``size``.

    >>> missing([(0, 2), (5, 6)], runs=9, size=2)
    [(2, 4), (4, 5), (6, 8), (8, 9)]
    """
    pieces, start = [], 0
    for first, last in [*sorted(done), (runs, runs)]:
        pieces += [(at, min(at + size, first)) for at in range(start, first, size)]
        start = last
    return pieces


# What numbers depend on


def fingerprint(thing: object) -> str:
    """A hash of something's content: equal for equal things, also in another process.

    Objects count by their class and fields, or by ``vars``; a class or function from outside this package counts with
    its source, where there is one.

    >>> from mfbandit import MFUCB
    >>> fingerprint(MFUCB(2)) == fingerprint(MFUCB(2.0)) != fingerprint(MFUCB(1))
    True
    """
    digest = hashlib.sha256()
    for part in _parts(thing, set()):
        digest.update(len(part).to_bytes(8, "little") + part)
    return digest.hexdigest()


def _parts(thing: Any, above: set[int]) -> Iterator[bytes]:  # noqa: ANN401 - anything
    yield type(thing).__qualname__.encode()
    if isinstance(thing, str | int | float | bool | bytes | None):
        yield repr(thing).encode()
    elif isinstance(thing, np.ndarray):
        yield f"{thing.dtype.str} {thing.shape}".encode()
        yield np.ascontiguousarray(thing).tobytes()
    elif isinstance(thing, dict):
        for key in sorted(thing, key=repr):
            yield repr(key).encode()
            yield from _parts(thing[key], above)
    elif isinstance(thing, list | tuple):
        for item in thing:
            yield from _parts(item, above)
    elif inspect.isroutine(thing) or isinstance(thing, type):
        yield f"{thing.__module__}.{thing.__qualname__}".encode()
        yield _source(thing)
    elif id(thing) not in above:
        yield _source(type(thing))
        yield from _parts(_content(thing), above | {id(thing)})


def _content(thing: Any) -> Any:  # noqa: ANN401 - fields or variables
    if is_dataclass(thing):  # not what it has worked out and keeps
        return {field.name: getattr(thing, field.name) for field in fields(thing)}
    return vars(thing) if hasattr(thing, "__dict__") else repr(thing)


def _source(thing: Any) -> bytes:  # noqa: ANN401 - a class or function
    if thing.__module__.split(".")[0] == "mfbandit":
        return b""
    try:
        return inspect.getsource(thing).encode()
    except (OSError, TypeError):
        return b""


def _readable(value: object) -> object:
    if isinstance(value, str | int | float | list | None):
        return value
    return str(value)
