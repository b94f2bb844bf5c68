"""One play of a search: fit a candidate on some samples and score it on others."""

import time
import traceback
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils.metaestimators import _safe_split
from sklearn.utils.parallel import delayed
from sklearn.utils.validation import _check_method_params

from mfbandit._internal.typing import IntArray
from mfbandit._internal.validation import LARGEST_NUMBER
from mfbandit.core import Play
from mfbandit.errors import InvalidArgument
from mfbandit.search.candidates import Candidate
from mfbandit.search.rungs import Rungs
from mfbandit.search.sklearn_types import Estimator, Samples, Scorer
from mfbandit.search.splits import Splits


@dataclass(frozen=True, eq=False)
class SearchData:
    """What every fit of a search shares.

    Args:
        x: the samples.
        y: the targets, or None.
        scorer: scores an estimator on samples; larger is better.
        fit_params: further arguments of ``fit``, such as sample weights.
        score_params: further arguments of the scorer.
        error_score: the score of a fit that raises an error, NaN for none; or "raise".
    """

    x: Samples
    y: Samples
    scorer: Scorer
    fit_params: dict[str, Any]
    score_params: dict[str, Any]
    error_score: float | str


@dataclass(frozen=True)
class FitResult:
    """The result of one fit.

    Args:
        score: on the test samples; NaN where the fit failed.
        fit_time: seconds.
        score_time: seconds.
        error: the traceback of a fit that failed, or a sentence about its score; else None.

    >>> FitResult(score=0.5, fit_time=1.0, score_time=0.25).seconds
    1.25
    """

    score: float
    fit_time: float
    score_time: float = 0.0
    error: str | None = None

    @property
    def seconds(self) -> float:
        """The time for fitting and scoring together."""
        return self.fit_time + self.score_time

    @property
    def failed(self) -> bool:
        """Whether there is no score, or one that is too large to be squared."""
        return not abs(self.score) <= LARGEST_NUMBER

    @property
    def reason(self) -> str:
        r"""The last line of what went wrong.

        >>> FitResult(float("nan"), 0.0, error="Traceback ...\nTypeError: no number\n").reason
        'TypeError: no number'
        """
        return (self.error or "").strip().rpartition("\n")[2]

    def is_error(self, name: str) -> bool:
        r"""Return whether the fit raised an error of this type.

        >>> FitResult(float("nan"), 0.0, error="Traceback ...\nTypeError: no number").is_error("TypeError")
        True
        """
        return any(line.startswith(f"{name}:") for line in (self.error or "").splitlines())


@dataclass(frozen=True)
class Trial:
    """One play of a search that was made.

    Args:
        arm: the candidate's index.
        fidelity: its index.
        split: the number of the split; the same for the i-th play of every candidate at a fidelity.
        cost: in units of capital.
        outcome: the score and times.
    """

    arm: int
    fidelity: int
    split: int
    cost: float
    outcome: FitResult


def fit_and_score(estimator: Estimator, data: SearchData, train: IntArray, test: IntArray) -> FitResult:
    """Fit an estimator on the samples ``train`` and score it on ``test``.

    An error becomes part of the result, unless ``data.error_score`` is "raise".

    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> x = np.arange(8.0)[:, None]
    >>> data = SearchData(x, 2 * x[:, 0], lambda model, x, y: model.score(x, y), {}, {}, np.nan)
    >>> round(fit_and_score(LinearRegression(), data, np.arange(4), np.arange(4, 8)).score, 6)
    1.0
    """
    start = time.perf_counter()
    fitted = start
    try:
        _fit(estimator, data, train)
        fitted = time.perf_counter()
        score = _score(estimator, data, train, test)
    except Exception:  # whatever an estimator or a scorer raises
        if data.error_score == "raise":
            raise
        end = time.perf_counter()
        times = (end - start, 0.0) if fitted == start else (fitted - start, end - fitted)
        return FitResult(float(data.error_score), *times, error=traceback.format_exc())
    value = _one_number(score)
    error = None if abs(value) <= LARGEST_NUMBER else f"the score was {value}"
    return FitResult(value, fitted - start, time.perf_counter() - fitted, error)


RunParallel = Callable[[Iterable[object]], list[FitResult]]
"""What joblib's ``Parallel`` is: makes delayed calls and returns their results in order."""


class FitRunner:
    """Makes the fits of plays: each with its candidate, on the samples of its split.

    Args:
        candidates: the arms.
        rungs: the fidelities.
        splits: of the data.
        data: what every fit shares.
        seed: of candidates without one of their own; None leaves them unseeded.
        fit_params: further arguments of ``fit`` for each candidate.
    """

    def __init__(
        self,
        candidates: list[Candidate],
        rungs: Rungs,
        splits: Splits,
        data: SearchData,
        seed: int | None,
        fit_params: Sequence[dict[str, Any]],
    ) -> None:
        self.candidates, self.rungs, self.data, self.fit_params = candidates, rungs, data, fit_params
        self._splits, self._seed = splits, seed

    def build_estimator(self, arm: int, fidelity: int, split: int) -> Estimator:
        """Return an unfitted candidate; all candidates have the same seed for a split."""
        seed = None
        if self._seed is not None:
            mixed = np.random.SeedSequence([self._seed, 1, split]).generate_state(1)
            seed = int(mixed[0]) >> 1  # 31 bits: some libraries keep a signed number of 32
        return self.candidates[arm].build(seed, **self.rungs.settings(fidelity))

    def run(self, asked: Sequence[tuple[Play, int]], parallel: RunParallel) -> list[FitResult]:
        """Fit and score the plays of a round, given with the numbers of their splits; results in the same order."""
        return parallel(
            delayed(fit_and_score)(
                self.build_estimator(play.arm, play.fidelity, split),
                replace(self.data, fit_params=self.fit_params[play.arm]),
                *self._splits.sample(split, self.rungs.fraction(play.fidelity)),
            )
            for play, split in asked
        )


def _fit(estimator: Estimator, data: SearchData, train: IntArray) -> None:
    x, y = _safe_split(estimator, data.x, data.y, train)
    params = _check_method_params(data.x, params=data.fit_params, indices=train)
    estimator.fit(x, **params) if y is None else estimator.fit(x, y, **params)


def _score(estimator: Estimator, data: SearchData, train: IntArray, test: IntArray) -> object:
    x, y = _safe_split(estimator, data.x, data.y, test, train)
    params = _check_method_params(data.x, params=data.score_params, indices=test)
    score: object = data.scorer(estimator, x, **params) if y is None else data.scorer(estimator, x, y, **params)
    return score


def _one_number(score: object) -> float:
    value: object = score.item() if isinstance(score, np.ndarray | np.generic) and score.size == 1 else score
    if not isinstance(value, Real):
        raise InvalidArgument(f"scoring must give one number (several metrics are not supported), got {score!r}")
    return float(value)
