"""One play of a search: fit a candidate on some samples and score it on others."""

import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
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
from mfbandit.search.rungs import Ladder
from mfbandit.search.splits import Splits


@dataclass(frozen=True, eq=False)
class Data:
    """What every fit shares.

    Args:
        x: the samples.
        y: what is to be predicted, or None.
        scorer: gives a number for an estimator on samples; larger is better.
        fit_params: what ``fit`` takes besides, such as sample weights.
        score_params: what the scorer takes besides.
        error_score: the score of a fit that raises an error, NaN for none; or "raise".
    """

    x: Any
    y: Any
    scorer: Any
    fit_params: dict[str, Any]
    score_params: dict[str, Any]
    error_score: float | str


@dataclass(frozen=True)
class Outcome:
    """What came of a fit.

    Args:
        score: of the test samples; NaN where the fit failed.
        fit_time: seconds.
        score_time: seconds.
        error: the traceback of a fit that failed, or a sentence about its score; else None.

    >>> Outcome(score=0.5, fit_time=1.0, score_time=0.25).seconds
    1.25
    """

    score: float
    fit_time: float
    score_time: float = 0.0
    error: str | None = None

    @property
    def seconds(self) -> float:
        """Fitting and scoring together."""
        return self.fit_time + self.score_time

    @property
    def failed(self) -> bool:
        """Whether there is no score, or none that can be squared."""
        return not abs(self.score) <= LARGEST_NUMBER

    def of_type(self, name: str) -> bool:
        r"""Whether the error is of this type.

        >>> Outcome(float("nan"), 0.0, error="Traceback ...\nTypeError: no number").of_type("TypeError")
        True
        """
        return any(line.startswith(f"{name}:") for line in (self.error or "").splitlines())


def fit_and_score(estimator: Any, data: Data, train: IntArray, test: IntArray) -> Outcome:  # noqa: ANN401
    """Fit an estimator on the samples ``train`` and score it on ``test``.

    An error is the outcome, unless ``data.error_score`` is "raise".

    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> x = np.arange(8.0)[:, None]
    >>> data = Data(x, 2 * x[:, 0], lambda model, x, y: model.score(x, y), {}, {}, np.nan)
    >>> round(fit_and_score(LinearRegression(), data, np.arange(4), np.arange(4, 8)).score, 6)
    1.0
    """
    start = time.perf_counter()
    fitted = start
    try:
        _fit(estimator, data, train)
        fitted = time.perf_counter()
        score = _score(estimator, data, train, test)
    except Exception:
        if data.error_score == "raise":
            raise
        end = time.perf_counter()
        spent = (end - start, 0.0) if fitted == start else (fitted - start, end - fitted)
        return Outcome(float(data.error_score), *spent, error=traceback.format_exc())
    found = _one_number(score)
    error = None if abs(found) <= LARGEST_NUMBER else f"the score was {found}"
    return Outcome(found, fitted - start, time.perf_counter() - fitted, error)


class Plays:
    """Makes plays: which estimator, on which samples.

    Args:
        candidates: the arms.
        rungs: the fidelities.
        splits: of the data.
        data: what every fit shares.
        seed: of candidates without one of their own; None leaves them to chance.
    """

    def __init__(
        self, candidates: list[Candidate], rungs: Ladder, splits: Splits, data: Data, seed: int | None
    ) -> None:
        self.candidates, self.rungs, self.data = candidates, rungs, data
        self._splits, self._seed = splits, seed

    def estimator(self, arm: int, fidelity: int, split: int) -> Any:  # noqa: ANN401
        """A candidate as it is fitted; all candidates have the same seed for a split."""
        seed = None
        if self._seed is not None:
            mixed = np.random.SeedSequence([self._seed, 1, split]).generate_state(1)
            seed = int(mixed[0]) >> 1  # 31 bits: some libraries keep a signed number of 32
        return self.candidates[arm].made(seed, **self.rungs.settings(fidelity))

    def made(self, asked: Sequence[tuple[Play, int]], parallel: Any) -> list[Outcome]:  # noqa: ANN401
        """The outcomes of a round, in the order of asking."""
        outcomes: list[Outcome] = parallel(
            delayed(fit_and_score)(
                self.estimator(play.arm, play.fidelity, split),
                self.data,
                *self._splits.sample(split, self.rungs.fraction(play.fidelity)),
            )
            for play, split in asked
        )
        return outcomes


def _fit(estimator: Any, data: Data, train: IntArray) -> None:  # noqa: ANN401
    x, y = _safe_split(estimator, data.x, data.y, train)
    params = _check_method_params(data.x, params=data.fit_params, indices=train)
    estimator.fit(x, **params) if y is None else estimator.fit(x, y, **params)


def _score(estimator: Any, data: Data, train: IntArray, test: IntArray) -> object:  # noqa: ANN401
    x, y = _safe_split(estimator, data.x, data.y, test, train)
    params = _check_method_params(data.x, params=data.score_params, indices=test)
    score: object = data.scorer(estimator, x, **params) if y is None else data.scorer(estimator, x, y, **params)
    return score


def _one_number(score: Any) -> float:  # noqa: ANN401
    value = score.item() if isinstance(score, np.ndarray | np.generic) and score.size == 1 else score
    if not isinstance(value, Real):
        raise InvalidArgument(f"scoring must give one number (several metrics are not supported), got {score!r}")
    return float(value)
