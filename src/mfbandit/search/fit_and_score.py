"""One play of a search: fit a candidate on some samples and score it on others."""

import math
import time
import traceback
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sklearn.utils.metaestimators import _safe_split
from sklearn.utils.validation import _check_method_params

from mfbandit._internal.typing import IntArray
from mfbandit._internal.validation import LARGEST_NUMBER
from mfbandit.search.callbacks import FitTask
from mfbandit.search.estimator_training import train
from mfbandit.search.scoring import read_scores
from mfbandit.search.sklearn_types import Estimator, Refit, Samples, Scorer


@dataclass(frozen=True, eq=False)
class SearchData:
    """What every fit of a search shares.

    Args:
        x: the samples.
        y: the targets, or None.
        scorer: scores an estimator on samples; larger is better. It may give several scores, as a dictionary.
        fit_params: further arguments of ``fit``, such as sample weights.
        score_params: further arguments of the scorer.
        error_score: the score of a fit that raises an error, NaN for none; or "raise".
        refit: with several scores, which one decides: its name, or else the first.
        train_scores: whether to score on the training samples as well.
        keeps: whether a result brings the trained estimator.
    """

    x: Samples
    y: Samples
    scorer: Scorer
    fit_params: dict[str, Any]
    score_params: dict[str, Any]
    error_score: float | str
    refit: Refit = True
    train_scores: bool = False
    keeps: bool = False


@dataclass(frozen=True)
class FitResult:
    """The result of one fit.

    Args:
        score: on the test samples, by the metric that decides; NaN where the fit failed.
        fit_time: seconds.
        score_time: seconds.
        error: the traceback of a fit that failed, or a sentence about its score; else None.
        scores: on the test samples by metric, where there are several.
        train_scores: on the training samples by metric (one metric is "score"), where they are wanted.
        train_score_time: seconds.
        fitted: the estimator, where training may go on from it.

    >>> FitResult(score=0.5, fit_time=1.0, score_time=0.25).seconds
    1.25
    """

    score: float
    fit_time: float
    score_time: float = 0.0
    error: str | None = None
    scores: Mapping[str, float] = field(default_factory=dict)
    train_scores: Mapping[str, float] = field(default_factory=dict)
    train_score_time: float = 0.0
    fitted: Estimator = field(default=None, repr=False, compare=False)

    @property
    def seconds(self) -> float:
        """The time for fitting and scoring together."""
        return self.fit_time + self.score_time + self.train_score_time

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
        resumed_from: the fidelity at which the play went on from an earlier one on the same split; None where it began
            anew.
    """

    arm: int
    fidelity: int
    split: int
    cost: float
    outcome: FitResult
    resumed_from: int | None = None


def fit_and_score(
    estimator: Estimator,
    data: SearchData,
    fitted: IntArray,
    test: IntArray,
    task: FitTask | None = None,
    passes: int | None = None,
) -> FitResult:
    """Fit an estimator on the samples ``fitted`` and score it on ``test``.

    An error becomes part of the result, unless ``data.error_score`` is "raise". Callbacks are told of the ``task``.
    With a number of ``passes``, the estimator sees the samples so often by ``partial_fit``.

    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> x = np.arange(8.0)[:, None]
    >>> data = SearchData(x, 2 * x[:, 0], lambda model, x, y: model.score(x, y), {}, {}, np.nan)
    >>> round(fit_and_score(LinearRegression(), data, np.arange(4), np.arange(4, 8)).score, 6)
    1.0
    """
    start = time.perf_counter()
    trained = start
    try:
        x, y = _safe_split(estimator, data.x, data.y, fitted)
        params = _check_method_params(data.x, params=data.fit_params, indices=fitted)
        with (task or FitTask()).running(estimator, x, y, params.get("sample_weight")):
            train(estimator, x, y, params, passes=passes, targets=data.y)
            trained = time.perf_counter()
            given = _score(estimator, data, fitted, test)
    except Exception:  # whatever an estimator or a scorer raises
        if data.error_score == "raise":
            raise
        end = time.perf_counter()
        times = (end - start, 0.0) if trained == start else (trained - start, end - trained)
        return FitResult(float(data.error_score), *times, error=traceback.format_exc())
    scored = time.perf_counter()
    scores = read_scores(given, data.refit, _number_or_nan(data.error_score))
    on_train = _train_scores(estimator, data, fitted, scores.by_name) if data.train_scores else {}
    times = (trained - start, scored - trained)
    late = time.perf_counter() - scored if data.train_scores else 0.0
    kept = estimator if data.keeps else None
    return FitResult(scores.deciding, *times, scores.error, scores.all, on_train, late, kept)


def _score(estimator: Estimator, data: SearchData, fitted: IntArray, on: IntArray) -> object:
    """Score an estimator that was fitted on some samples, on these or others."""
    x, y = _safe_split(estimator, data.x, data.y, on, fitted)
    params = _check_method_params(data.x, params=data.score_params, indices=on)
    score: object = data.scorer(estimator, x, **params) if y is None else data.scorer(estimator, x, y, **params)
    return score


def _train_scores(estimator: Estimator, data: SearchData, fitted: IntArray, names: Iterable[str]) -> dict[str, float]:
    """Score an estimator on the samples that it was fitted on; NaN where that fails and errors are not raised."""
    try:
        given = _score(estimator, data, fitted, fitted)
    except Exception:  # whatever a scorer raises
        if data.error_score == "raise":
            raise
        return dict.fromkeys(names, math.nan)
    return read_scores(given, data.refit, _number_or_nan(data.error_score)).by_name


def _number_or_nan(error_score: float | str) -> float:
    return math.nan if isinstance(error_score, str) else float(error_score)
