"""What is kept of fits: their results in a checkpoint, and the estimators that training may go on from."""

import json
import os
import pickle
import secrets
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import fields
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self, TypeAlias

import joblib

from mfbandit.errors import InvalidArgument
from mfbandit.search.fit_and_score import FitResult
from mfbandit.search.sklearn_types import Estimator

APPLICATION = 0x6D666373  # "mfcs", by which SQLite files are told apart
WAIT_SECONDS = 30.0  # for another process that writes
SEED_BITS = 31


Place: TypeAlias = tuple[int, int, int]
"""An arm, a fidelity and a split."""


class KeptFits(Protocol):
    """Where fits are kept, each under a name."""

    def name(self, place: Place, parts: Callable[[], object]) -> str:
        """Return the name of a fit: by its place in one search, or by all parts that it depends on."""
        ...

    def result(self, name: str) -> FitResult | None:
        """Return the result of a fit that was made before, or None."""
        ...

    def keep(self, name: str, result: FitResult, estimator: Estimator, before: str | None) -> None:
        """Keep a result, the trained estimator if there is one, and no longer the one that it went on from."""
        ...

    def estimator(self, name: str) -> Estimator:
        """Return a trained estimator, or None if it is not there."""
        ...

    def drop(self, name: str) -> None:
        """Drop a trained estimator that no later fit of this search goes on from."""
        ...


class FitsInMemory:
    """Estimators in memory, packed, so that a fit that fails half-way changes nothing; no results.

    >>> from sklearn.linear_model import Ridge
    >>> fits = FitsInMemory()
    >>> fits.keep("a", FitResult(0.5, 0.1), Ridge(), None)
    >>> fits.estimator("a"), fits.result("a")
    (Ridge(), None)
    """

    def __init__(self) -> None:
        self._states: dict[str, bytes] = {}

    def name(self, place: Place, parts: Callable[[], object]) -> str:  # noqa: ARG002 - the protocol's
        """Return the place in words."""
        return repr(place)

    def result(self, name: str) -> FitResult | None:  # noqa: ARG002 - the protocol's
        """Return None: every play of a search is another one."""
        return None

    def keep(self, name: str, result: FitResult, estimator: Estimator, before: str | None) -> None:
        """Keep an estimator in the place of the one that it went on from."""
        if result.failed:
            return
        if estimator is not None:
            self._states[name] = packed(estimator)
        if before is not None:
            self._states.pop(before, None)

    def estimator(self, name: str) -> Estimator:
        """Return a copy of a trained estimator."""
        return pickle.loads(self._states[name]) if name in self._states else None  # noqa: S301 - our own

    def drop(self, name: str) -> None:
        """Drop a trained estimator."""
        self._states.pop(name, None)

    @property
    def count(self) -> int:
        """How many estimators are kept."""
        return len(self._states)


class Checkpoint:
    """A SQLite file with the results of fits, each under a digest of all that it depends on.

    A search that is run again finds what was fitted before: the same estimator with the same settings and seed, on the
    same samples, scored in the same way. So it goes on where it was killed, also with more capital or candidates.
    Trained estimators are kept by pickle: nobody else may write to the file.

    Args:
        path: of the file; it is made if it is not there.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, Checkpoint(f"{folder}/search.db") as checkpoint:
    ...     name = checkpoint.name((0, 0, 0), lambda: ("data", 1))
    ...     checkpoint.keep(name, FitResult(0.5, 0.1), None, None)
    ...     checkpoint.result(name).score, checkpoint.result("another")
    (0.5, None)
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        if not isinstance(path, str | os.PathLike) or not os.fspath(path):
            raise InvalidArgument(f"checkpoint must be the path of a file, got {path!r}")
        place, self.context = Path(path), ""
        new = not place.exists()
        try:
            if new:
                place.touch(mode=0o600)
            self._database = sqlite3.connect(place, timeout=WAIT_SECONDS, isolation_level=None)
            self._prepare(place)
        except (OSError, sqlite3.Error) as error:
            raise InvalidArgument(
                f"checkpoint must be a file that can be written, got {str(path)!r}: {error}"
            ) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._database.close()

    def begin(self, *context: object) -> None:
        """Begin a search on these data, scored in this way."""
        self.context = digest(context)

    @property
    def seed(self) -> int:
        """The seed of searches without one of their own, so that they find their fits again."""
        [[seed]] = self._database.execute("SELECT value FROM about WHERE name = 'seed'")
        return int(seed)

    def name(self, place: Place, parts: Callable[[], object]) -> str:  # noqa: ARG002 - the protocol's
        """Return a digest of all parts: the same in the next search, wherever the fit has its place there."""
        return digest((self.context, parts()))

    def result(self, name: str) -> FitResult | None:
        """Return the result of a fit that was made before."""
        found = self._database.execute("SELECT result FROM fits WHERE name = ?", [name]).fetchone()
        return None if found is None else FitResult(**json.loads(found[0]))

    def keep(self, name: str, result: FitResult, estimator: Estimator, before: str | None) -> None:
        """Keep a result, and an estimator in the place of the one that it went on from; both or nothing."""
        told = {one.name: getattr(result, one.name) for one in fields(result) if one.name != "fitted"}
        state = None if estimator is None or result.failed else packed(estimator)
        self._database.execute("BEGIN IMMEDIATE")
        with self._database:
            self._database.execute("INSERT OR REPLACE INTO fits VALUES (?, ?, ?)", [name, json.dumps(told), state])
            if before is not None and not result.failed:
                self._database.execute("UPDATE fits SET state = NULL WHERE name = ?", [before])

    def estimator(self, name: str) -> Estimator:
        """Return a trained estimator."""
        found = self._database.execute("SELECT state FROM fits WHERE name = ?", [name]).fetchone()
        return None if found is None or found[0] is None else pickle.loads(found[0])  # noqa: S301 - see the class

    def drop(self, name: str) -> None:
        """Keep it all the same: a later search may have more candidates or capital, and go on from it."""

    def _prepare(self, place: Path) -> None:
        with closing(self._database.cursor()) as cursor:
            [[application]] = cursor.execute("PRAGMA application_id")
            [[tables]] = cursor.execute("SELECT count(*) FROM sqlite_master")
            if tables and application != APPLICATION:
                raise InvalidArgument(f"checkpoint must be a file of a search, got another database: {str(place)!r}")
            cursor.execute("PRAGMA journal_mode = WAL")  # a fit is on disk when the next begins; a power cut may lose
            cursor.execute("PRAGMA synchronous = NORMAL")  # the last ones, which are then made again
            if not tables:
                cursor.execute("BEGIN IMMEDIATE")
                with self._database, suppress(sqlite3.OperationalError):  # another process was first
                    cursor.execute("CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL)")
                    cursor.execute("CREATE TABLE fits (name TEXT PRIMARY KEY, result TEXT NOT NULL, state BLOB)")
                    cursor.execute("INSERT INTO about VALUES ('seed', ?)", [str(secrets.randbits(SEED_BITS))])
                    cursor.execute(f"PRAGMA application_id = {APPLICATION}")


def digest(parts: object) -> str:
    """Return a digest that is the same in every process.

    >>> digest({"a": 1}) == digest({"a": 1}), digest(1) == digest(2)
    (True, False)
    """
    try:
        found: str = joblib.hash(parts)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise InvalidArgument(f"checkpoint needs what the search is made of to be picklable, got {error}") from None
    return found


def packed(estimator: Estimator) -> bytes:
    """Pickle an estimator that training may go on from.

    >>> packed(lambda: None)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    mfbandit.errors.InvalidArgument: resume=True needs estimators that can be pickled, got function: ...
    """
    try:
        return pickle.dumps(estimator, protocol=pickle.HIGHEST_PROTOCOL)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise InvalidArgument(
            f"resume=True needs estimators that can be pickled, got {type(estimator).__name__}: {error}"
        ) from None
