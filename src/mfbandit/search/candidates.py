"""The candidates of a search: settings of one estimator, or different estimators."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sklearn.base import clone, is_classifier, is_regressor
from sklearn.model_selection import ParameterGrid, ParameterSampler

from mfbandit._internal.validation import whole
from mfbandit.errors import InvalidArgument
from mfbandit.search.labels import settings_label, unique_labels
from mfbandit.search.rungs import EPOCHS
from mfbandit.search.sklearn_types import Estimator, ParamDistributions, ParamGrid, RandomState


@dataclass(frozen=True, eq=False)
class Candidate:
    """One arm of a search.

    Args:
        label: its name.
        estimator: what is cloned.
        settings: the parameters that are set on the clone.
        params: its entry in ``cv_results_["params"]``.

    >>> from sklearn.linear_model import Ridge
    >>> candidate = Candidate("alpha=2", Ridge(), {"alpha": 2.0}, {"alpha": 2.0})
    >>> candidate.build(seed=1)
    Ridge(alpha=2.0, random_state=1)
    """

    label: str
    estimator: Estimator
    settings: Mapping[str, Any]
    params: Mapping[str, Any]

    def build(self, seed: int | None = None, **more: object) -> Estimator:
        """Clone the estimator, with its settings and ``more``; a seed replaces every ``random_state`` that is None."""
        built = clone(self.estimator)
        settings = clone(dict(self.settings), safe=False) | more
        if settings:  # as GridSearchCV: some estimators have no set_params
            built.set_params(**settings)
        unset = [] if seed is None else _unset_seeds(built)
        if unset:
            built.set_params(**dict.fromkeys(unset, seed))
        return built


def _unset_seeds(built: Estimator) -> list[str]:
    """Names of the parameters ``random_state`` that are None, of the estimator and its parts."""
    params = built.get_params().items()
    return [name for name, value in params if value is None and name.rpartition("__")[2] == "random_state"]


def list_candidates(
    estimator: Estimator, param_grid: ParamGrid | None, candidates: Iterable[object] | None
) -> list[Candidate]:
    """List all candidates of a grid of parameters, or of settings, estimators or (name, estimator) pairs.

    A ``ParameterGrid`` or ``ParameterSampler`` of scikit-learn is a list of settings, too.

    >>> from sklearn.linear_model import Lasso, Ridge
    >>> [one.label for one in list_candidates(Ridge(), {"alpha": [1, 10]}, None)]
    ['alpha=1', 'alpha=10']
    >>> [one.label for one in list_candidates(None, None, [Ridge(), ("sparse", Lasso())])]
    ['Ridge', 'sparse']
    """
    if (param_grid is None) == (candidates is None):
        got = "neither" if candidates is None else "both"
        raise InvalidArgument(f"one of param_grid and candidates must be given, got {got}")
    listed = isinstance(candidates, Sequence | ParameterGrid | ParameterSampler) and not isinstance(candidates, str)
    if candidates is not None and not listed:
        got = "a dictionary: pass list(candidates.items())" if isinstance(candidates, Mapping) else repr(candidates)
        wanted = "a list of settings, estimators or (name, estimator) pairs"
        raise InvalidArgument(f"candidates must be {wanted}, got {got}")
    given = list(ParameterGrid(param_grid) if candidates is None else candidates)
    if not given:
        raise InvalidArgument(f"candidates must be at least one, got {given}")
    found = _with_unique_labels([_candidate(one, estimator) for one in given])
    _check_same_kind(found)
    return found


def sampled_settings(distributions: ParamDistributions, n_iter: int, random_state: RandomState) -> list[dict[str, Any]]:
    """Draw settings as RandomizedSearchCV does: without replacement where all values are listed.

    >>> sampled_settings({"alpha": [1, 10, 100]}, 2, random_state=0)
    [{'alpha': 100}, {'alpha': 10}]
    """
    if whole("n_iter", n_iter) < 1:
        raise InvalidArgument(f"n_iter must be at least 1, got {n_iter}")
    return list(ParameterSampler(distributions, n_iter, random_state=random_state))


def _check_same_kind(found: list[Candidate]) -> None:
    kinds = {(is_classifier(one.estimator), is_regressor(one.estimator)) for one in found}
    if len(kinds) > 1:
        raise InvalidArgument(
            "candidates must be all classifiers, all regressors or all neither, got "
            + ", ".join(dict.fromkeys(type(one.estimator).__name__ for one in found))
        )


def representative_estimator(estimator: Estimator, candidates: object) -> Estimator:
    """Return the estimator that decides the kind of search: the given one, else the first candidate, else None.

    >>> from sklearn.linear_model import Ridge
    >>> representative_estimator(None, [("ridge", Ridge())])
    Ridge()
    """
    if estimator is not None:
        return estimator
    for one in candidates if isinstance(candidates, Sequence) else ():
        _, inner = _named(one)
        if hasattr(inner, "fit"):
            return inner
    return None


def _named(one: object) -> tuple[str, Estimator]:
    match one:
        case tuple((str() as name, inner)):
            return name, inner
    return type(one).__name__, one


def _candidate(one: object, estimator: Estimator) -> Candidate:
    if isinstance(one, Mapping):
        if estimator is None:
            raise InvalidArgument(f"estimator must be given for candidates that are settings, got None for {dict(one)}")
        return Candidate(settings_label(one) or type(estimator).__name__, estimator, one, dict(one))
    name, inner = _named(one)
    if not hasattr(inner, "fit") or isinstance(inner, type):
        raise InvalidArgument(f"candidates must be settings, estimators or (name, estimator) pairs, got {one!r}")
    return Candidate(name, inner, {}, {"estimator": inner})


def _with_unique_labels(found: list[Candidate]) -> list[Candidate]:
    labels = unique_labels([one.label for one in found])
    return [replace(one, label=label) for one, label in zip(found, labels, strict=True)]


def trains_by_passes(found: list[Candidate], resource: str) -> bool:
    """Return whether a resource is the number of passes of ``partial_fit``: "epochs", where that is no parameter.

    >>> from sklearn.linear_model import Ridge, SGDRegressor
    >>> trains_by_passes(list_candidates(None, None, [SGDRegressor()]), "epochs")
    True
    >>> trains_by_passes(list_candidates(None, None, [Ridge()]), "epochs")
    Traceback (most recent call last):
    mfbandit.errors.InvalidArgument: resource 'epochs' needs partial_fit, which Ridge does not have
    """
    if resource != EPOCHS or all(EPOCHS in one.build().get_params() for one in found):
        return False
    for one in found:
        if not hasattr(one.build(), "partial_fit"):
            kind = type(one.build()).__name__
            what = one.label if one.label == kind else f"{one.label} ({kind})"
            raise InvalidArgument(f"resource {EPOCHS!r} needs partial_fit, which {what} does not have")
    return True


def check_resource(found: list[Candidate], resource: str) -> None:
    """Refuse a resource that some candidate does not have as a parameter, or sets itself.

    >>> from sklearn.linear_model import Ridge
    >>> check_resource(list_candidates(Ridge(), {"alpha": [1]}, None), "n_trees")
    Traceback (most recent call last):
    mfbandit.errors.InvalidArgument: resource must be a parameter of every candidate, got 'n_trees', which
        alpha=1 does not have
    """
    for one in found:
        if resource not in one.build().get_params():  # settings may exchange a step of a pipeline
            raise InvalidArgument(
                f"resource must be a parameter of every candidate, got {resource!r}, which {one.label} does not have"
            )
        if resource in one.settings:
            raise InvalidArgument(
                f"resource must not be among the settings of a candidate, got {resource!r}: {one.label}"
            )
