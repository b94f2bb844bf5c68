"""Finished runs of a simulation, kept in a folder: a job that was stopped goes on where it was.

A chunk is a file that is written whole or not at all. Its folder is named by everything that the numbers in it depend
on, so that no chunk is ever taken for another's. The number of runs is not part of that: more can be added later.
"""

import hashlib
import inspect
import json
import os
import re
import secrets
import warnings
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from types import CodeType, FunctionType, MethodType
from typing import Any

import numpy as np

from mfbandit._internal.typing import FloatArray, IntArray
from mfbandit.errors import InvalidArgument

DIGITS = 8  # of the numbers of runs in a file's name
ARRAYS = ("regret", "steps", "spent", "answers", "plays")


@dataclass(frozen=True, eq=False)
class Chunk:
    """Runs ``first``, ``first + 1``, … of a simulation.

    Args:
        first: number of the first run.
        regret: of each run at each capital; shape (n, G).
        steps: plays of each run; shape (n,).
        spent: capital that each run spent; shape (n,).
        answers: the arm that each run's policy decided for, or −1; shape (n,).
        plays: final plays of each run, shape (n, M, K), or their sum over runs, shape (M, K).
    """

    first: int
    regret: FloatArray
    steps: IntArray
    spent: FloatArray
    answers: IntArray
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
    >>> plays = np.zeros((1, 2), dtype=np.int64)
    >>> one = Chunk(0, np.zeros((2, 1)), np.array([3, 3]), np.array([1.0, 1.0]), np.array([-1, 0]), plays)
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
            raise InvalidArgument(f"Cannot write to the folder of results {folder}: {error.strerror}") from None
        told = self._folder / "about.json"
        if not told.exists():  # for people; the name of the folder is what counts
            _replace(told, json.dumps({name: _readable(value) for name, value in about.items()}, indent=1).encode())

    def save(self, chunk: Chunk) -> None:
        """Keep a chunk: once this returns it is on disk."""
        target = self._folder / f"runs-{chunk.first:0{DIGITS}}-{chunk.last:0{DIGITS}}.npz"
        part = _part(target)
        try:
            with part.open("wb") as file:
                np.savez(file, **{name: getattr(chunk, name) for name in ARRAYS})
                file.flush()
                os.fsync(file.fileno())
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)

    def load(self, runs: int) -> Iterator[Chunk]:
        """Read the chunks among the first ``runs`` runs; one that overlaps another is left out."""
        done = 0
        for path in sorted(self._folder.glob("runs-*.npz")):
            name = re.fullmatch(r"runs-(\d+)-(\d+)", path.stem)
            first, last = (int(number) for number in name.groups()) if name else (0, 0)
            if done <= first < last <= runs:
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


def _part(target: Path) -> Path:
    """A name that no other driver has, on this machine or another: in containers all have the same process id."""
    return target.with_name(f".{target.name}.{secrets.token_hex(4)}")


def _replace(target: Path, content: bytes) -> None:
    part = _part(target)
    part.write_bytes(content)
    part.replace(target)


def missing(done: list[tuple[int, int]], runs: int, size: int) -> list[tuple[int, int]]:
    """List the runs that are not done, in pieces of at most ``size``.

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
    """Hash something's content: equal for equal things, also in another process.

    Objects count by their class and fields, or by what pickle would keep of them. A class or function from outside this
    package counts with its source, or its code where there is none. A function also counts with what it has captured.

    >>> from mfbandit import MFUCB
    >>> fingerprint(MFUCB(2)) == fingerprint(MFUCB(2.0)) != fingerprint(MFUCB(1))
    True
    """
    digest = hashlib.sha256()
    for part in _parts(thing, frozenset()):
        digest.update(len(part).to_bytes(8, "little") + part)
    return digest.hexdigest()


def _parts(thing: object, above: frozenset[int]) -> Iterator[bytes]:
    yield type(thing).__qualname__.encode()
    if isinstance(thing, str | int | float | bool | bytes | None):
        yield repr(thing).encode()
    elif id(thing) in above:  # a circle
        return
    elif isinstance(thing, np.ndarray) and not thing.dtype.hasobject:
        yield f"{thing.dtype.str} {thing.shape}".encode()
        yield np.ascontiguousarray(thing).tobytes()
    else:
        inside = _inside(thing)
        yield str(len(inside)).encode()  # where it ends: [[1], 2] is not [[1, 2]]
        for part in inside:
            yield from _parts(part, above | {id(thing)})


def _inside(thing: object) -> Sequence[object]:
    if isinstance(thing, dict):
        return [part for key in sorted(thing, key=repr) for part in (key, thing[key])]
    if isinstance(thing, list | tuple):
        return list(thing)
    if isinstance(thing, set | frozenset):
        return sorted(fingerprint(item) for item in thing)
    return _made_of(thing)


def _made_of(thing: object) -> list[object]:
    if isinstance(thing, type):
        return [thing.__qualname__, *(_source(kind) for kind in thing.__mro__)]
    if isinstance(thing, FunctionType):
        captured = [cell.cell_contents for cell in thing.__closure__ or ()]
        return [thing.__qualname__, _source(thing), captured, thing.__defaults__, thing.__kwdefaults__]
    if isinstance(thing, MethodType):
        return [thing.__func__, thing.__self__]
    if is_dataclass(thing):  # not what it has worked out and keeps
        return [type(thing), {field.name: getattr(thing, field.name) for field in fields(thing)}]
    return [type(thing), _pickled(thing)]


def _pickled(thing: object) -> object:
    try:
        kept = thing.__reduce_ex__(4)
    except TypeError:  # such as a lock
        return vars(thing) if hasattr(thing, "__dict__") else repr(thing)
    return kept if isinstance(kept, str) else [list(part) if isinstance(part, Iterator) else part for part in kept[1:]]


def _source(thing: type | FunctionType) -> bytes:
    if (thing.__module__ or "").split(".")[0] in {"mfbandit", "builtins"}:
        return b""
    try:
        return inspect.getsource(thing).encode()
    except (OSError, TypeError):  # from a prompt or a notebook
        return b"".join(_plain(name, part) for name, part in sorted(vars(thing).items())) + _plain("", thing)


def _plain(name: str, part: object) -> bytes:
    if isinstance(part, str | int | float | tuple) and not name.startswith("__"):
        return f"{name} = {part!r}".encode()
    code = getattr(getattr(part, "fget", part), "__code__", None)
    return _code(code) if code else b""


def _code(code: CodeType) -> bytes:
    inner = [_code(part) if isinstance(part, CodeType) else part for part in code.co_consts]
    return repr((code.co_name, code.co_code, code.co_names, code.co_varnames, inner)).encode()


def _readable(value: object) -> object:
    if isinstance(value, str | int | float | list | None):
        return value
    return str(value)
