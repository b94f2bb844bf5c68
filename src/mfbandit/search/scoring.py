"""The metrics of a search: one, or several of which one decides."""

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import numpy as np
from sklearn.metrics import check_scoring
from sklearn.metrics._scorer import _check_multimetric_scoring, _MultimetricScorer

from mfbandit._internal.validation import LARGEST_NUMBER
from mfbandit.errors import InvalidArgument
from mfbandit.search.sklearn_types import Estimator, Refit, Scorer

ONE_METRIC = "score"  # its name in columns, where there is one
NEEDS_NAME = (
    "For multi-metric scoring, the parameter refit must be set to a scorer key or a callable to refit an estimator "
    "with the best parameters (or to False); it must be one of {}, got {!r}"
)


@dataclass(frozen=True)
class Scores:
    """The scores of one fitted estimator on some samples.

    Args:
        deciding: the score that the search goes by; NaN for none.
        all: of each metric by name, where there are several.
        error: what went wrong with the deciding metric; None for nothing.

    >>> Scores(0.5).by_name
    {'score': 0.5}
    """

    deciding: float
    all: Mapping[str, float] = field(default_factory=dict)
    error: str | None = None

    @property
    def by_name(self) -> dict[str, float]:
        """Each score by the name of its metric, as columns of results have it."""
        return dict(self.all) or {ONE_METRIC: self.deciding}


def scorer_of(estimator: Estimator, scoring: Scorer, refit: Refit, *, raises: bool) -> Scorer:
    """Return the callable that scores a fitted estimator: by one number, or by a dictionary of them.

    Args:
        estimator: what is scored; its own ``score`` counts where ``scoring`` is None.
        scoring: a metric, or several as a list of names or a dictionary.
        refit: with several metrics, which one decides.
        raises: whether an error of one of several metrics is raised.

    >>> from sklearn.linear_model import Ridge
    >>> scorer_of(Ridge(), ["r2", "neg_max_error"], "r2", raises=True)
    MultiMetricScorer("r2", "neg_max_error")
    >>> scorer_of(Ridge(), ["r2", "neg_max_error"], True, raises=True)
    Traceback (most recent call last):
    mfbandit.errors.InvalidArgument: For multi-metric scoring, the parameter refit must be set to a scorer key or a
        callable to refit an estimator with the best parameters (or to False); it must be one of
        ['r2', 'neg_max_error'], got True
    """
    if callable(scoring):
        return scoring
    if scoring is None or isinstance(scoring, str):
        if isinstance(refit, str) and refit != scoring:
            raise InvalidArgument(f"refit must be True, False, a function or the name of a metric, got {refit!r}")
        return check_scoring(estimator, scoring)
    if not isinstance(scoring, Mapping | Sequence | set):
        raise InvalidArgument(f"scoring must be a metric, a list of metrics or a dictionary of them, got {scoring!r}")
    scorers = _check_multimetric_scoring(estimator, scoring)
    deciding_metric(list(scorers), refit)
    return _MultimetricScorer(scorers=scorers, raise_exc=raises)


def deciding_metric(names: Sequence[str], refit: Refit) -> str:
    """Return which of several metrics the search goes by: the one of ``refit``, or else the first.

    >>> deciding_metric(["accuracy", "roc_auc"], "roc_auc"), deciding_metric(["accuracy", "roc_auc"], False)
    ('roc_auc', 'accuracy')
    """
    if isinstance(refit, str) and refit in names:
        return refit
    if refit is False or callable(refit):
        return names[0]
    raise InvalidArgument(NEEDS_NAME.format(list(names), refit))


def read_scores(given: object, refit: Refit, error_score: float = math.nan) -> Scores:
    """Return the scores that a scorer gave: a number, or a dictionary of numbers.

    Args:
        given: by the scorer. In a dictionary text is the traceback of a metric that failed.
        refit: with several metrics, which one decides.
        error_score: the score of a metric that failed.

    >>> read_scores({"accuracy": 0.75, "roc_auc": 0.5}, "roc_auc").deciding
    0.5
    """
    if not isinstance(given, Mapping):
        value = _number(given, ONE_METRIC)
        return Scores(value, error=None if abs(value) <= LARGEST_NUMBER else f"the score was {value}")
    if not given:
        raise InvalidArgument(f"scoring must give at least one number, got {given!r}")
    name = deciding_metric(list(given), refit)
    values = {key: error_score if isinstance(one, str) else _number(one, key) for key, one in given.items()}
    wrong = given[name] if isinstance(given[name], str) else None
    if wrong is None and not abs(values[name]) <= LARGEST_NUMBER:
        wrong = f"the score {name} was {values[name]}"
    return Scores(values[name], values, wrong)


def _number(given: object, name: str) -> float:
    value: Any = given.item() if isinstance(given, np.ndarray | np.generic) and given.size == 1 else given
    if not isinstance(value, Real):
        what = "scoring" if name == ONE_METRIC else f"the metric {name!r}"
        raise InvalidArgument(f"{what} must give one number, or a dictionary of numbers, got {given!r}")
    return float(value)


def warn_of_missing_scores(scores: Sequence[Mapping[str, float]]) -> None:
    """Warn of metrics, besides the deciding one, that gave no number in some fits."""
    names = dict.fromkeys(name for one in scores for name in one)
    for name in names:
        missing = sum(not math.isfinite(one[name]) for one in scores if name in one)
        if missing:
            said = f"the metric {name!r} gave no finite number in {missing} of {len(scores)} fits"
            warnings.warn(said, UserWarning, stacklevel=7)
