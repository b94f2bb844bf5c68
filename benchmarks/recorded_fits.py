"""Fits of a task that are made once: searches run as they are, and what was fitted before is read from a file."""

import hashlib
import pickle
import warnings
from pathlib import Path

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.metrics import check_scoring

from benchmarks.search_tasks import Task
from mfbandit._internal.typing import FloatArray, IntArray

Key = tuple[int, bytes, bytes]


class Records:
    """The scores of a task's candidates on samples of its rows.

    Args:
        task: what is fitted.
        path: where scores are kept.
    """

    def __init__(self, task: Task, path: Path) -> None:
        self.task, self._path, self.candidates = task, path, task.candidates
        self._scores: dict[Key, float] = pickle.loads(path.read_bytes()) if path.exists() else {}  # noqa: S301 - ours
        self._known = len(self._scores)
        self.rows = 0  # that all fits so far have seen, as a measure of cost

    def fit(self, rows: int) -> None:
        """Count a fit."""
        self.rows += rows

    def score(self, k: int, train: IntArray, test: IntArray) -> float:
        """A candidate's score on some rows after a fit on others; it raises what the candidate raises."""
        key = (k, _digest(train), _digest(test))
        if key not in self._scores:
            self._scores[key] = self._fitted(k, train, test)
        found = self._scores[key]
        if np.isnan(found):
            raise ValueError("the fit failed")
        return found

    def save(self) -> None:
        """Keep what is new."""
        if len(self._scores) > self._known:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._path.write_bytes(pickle.dumps(self._scores))
            self._known = len(self._scores)

    def _fitted(self, k: int, train: IntArray, test: IntArray) -> float:
        model = clone(self.candidates[k])
        x, y = self.task.x, self.task.y
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # fits on few samples warn a lot
            try:
                model.fit(x[train], y[train])
                return float(check_scoring(model, self.task.scoring)(model, x[test], y[test]))
            except ValueError:  # as with more neighbours than samples
                return np.nan


def _digest(rows: IntArray) -> bytes:
    return hashlib.blake2b(np.ascontiguousarray(rows, dtype=np.int32).tobytes(), digest_size=10).digest()


class Recorded(BaseEstimator):  # type: ignore[misc]
    """Candidate k of some records; its samples are the numbers of rows.

    Args:
        records: shared by all clones.
        k: the candidate.
    """

    def __init__(self, records: Records, k: int = 0) -> None:
        self.records = records
        self.k = k

    def __sklearn_clone__(self) -> "Recorded":
        return type(self)(self.records, self.k)

    def fit(self, x: IntArray, y: FloatArray) -> "Recorded":
        """Take note of the training rows."""
        self.train_, self.classes_ = x[:, 0], np.unique(y)
        self.records.fit(len(x))
        return self

    def score(self, x: IntArray, _y: FloatArray) -> float:
        """The score that the candidate has."""
        return float(self.records.score(self.k, self.train_, x[:, 0]))


class RecordedClassifier(ClassifierMixin, Recorded):  # type: ignore[misc]
    """Whose splits are stratified."""

    score = Recorded.score


class RecordedRegressor(RegressorMixin, Recorded):  # type: ignore[misc]
    """Whose splits are not."""

    score = Recorded.score
