"""How an estimator is trained at a fidelity: from the beginning, or on from where an earlier play ended."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from mfbandit.errors import InvalidArgument
from mfbandit.search.candidates import Candidate
from mfbandit.search.rungs import SAMPLES, Rungs
from mfbandit.search.sklearn_types import Estimator, Samples

WARM_START = "warm_start"
MAX_ITER = "max_iter"


def train(
    estimator: Estimator, x: Samples, y: Samples, params: Mapping[str, Any], *, passes: int | None, targets: Samples
) -> None:
    """Fit an estimator, or show it all samples so many times by ``partial_fit``.

    Args:
        estimator: it may have been trained before, where that goes on.
        x: the samples.
        y: the targets, or None.
        params: further arguments.
        passes: how many; None for ``fit``.
        targets: of all samples of the search: a classifier is told all classes.

    >>> from sklearn.linear_model import SGDClassifier
    >>> model = SGDClassifier(random_state=0)
    >>> train(model, [[0.0], [1.0]], [0, 1], {}, passes=3, targets=[0, 1, 2])
    >>> model.t_, model.classes_.tolist()
    (7.0, [0, 1, 2])
    """
    given = (x,) if y is None else (x, y)
    if passes is None:
        estimator.fit(*given, **params)
        return
    classes = {"classes": np.unique(targets)} if is_classifier(estimator) else {}
    for _ in range(passes):
        estimator.partial_fit(*given, **classes, **params)


@dataclass(frozen=True)
class Resuming:
    """How training goes on from a fidelity to a higher one: by ``warm_start``, or by more passes.

    Args:
        rungs: the fidelities.

    >>> from sklearn.ensemble import GradientBoostingRegressor
    >>> resuming = Resuming(Rungs("n_estimators", (10, 40)))
    >>> resuming.begins_with
    {'warm_start': True}
    >>> model = GradientBoostingRegressor(n_estimators=10, warm_start=True)
    >>> resuming.go_on(model, 0, 1)
    >>> model.n_estimators
    40
    """

    rungs: Rungs

    @property
    def _prefix(self) -> str:
        """Of the part of a pipeline that is trained further."""
        before, mark, _ = self.rungs.resource.rpartition("__")
        return before + mark

    @property
    def begins_with(self) -> dict[str, Any]:
        """The parameters of an estimator that can be trained further."""
        return {} if self.rungs.by_passes else {f"{self._prefix}{WARM_START}": True}

    def go_on(self, estimator: Estimator, start: int, m: int) -> None:
        """Set how far a trained estimator is to be trained."""
        if self.rungs.by_passes:
            return
        low, high = self.rungs.values[start], self.rungs.values[m]
        further = self.rungs.resource.endswith(MAX_ITER) and not self._counts_all(estimator)
        estimator.set_params(**{self.rungs.resource: high - low if further else high})

    def _counts_all(self, estimator: Estimator) -> bool:
        """Whether ``max_iter`` counts what was trained before: it does where it is a number of trees."""
        part = estimator.get_params()[self._prefix.removesuffix("__")] if self._prefix else estimator
        return isinstance(part, HistGradientBoostingClassifier | HistGradientBoostingRegressor)

    def check(self, candidates: Sequence[Candidate]) -> None:
        """Refuse what cannot be trained further.

        >>> from sklearn.tree import DecisionTreeRegressor
        >>> tree = Candidate("tree", DecisionTreeRegressor(), {}, {})
        >>> Resuming(Rungs("max_depth", (1, 2))).check([tree])
        Traceback (most recent call last):
        mfbandit.errors.InvalidArgument: resume=True needs the parameter 'warm_start', which tree does not have
        """
        if self.rungs.resource == SAMPLES:
            wanted = "resource='n_estimators', or another that more training adds to"
            raise InvalidArgument(f"resume=True needs {wanted}, got {SAMPLES!r}")
        for one in candidates:
            for name in self.begins_with:
                if name not in one.build().get_params():
                    raise InvalidArgument(f"resume=True needs the parameter {name!r}, which {one.label} does not have")
