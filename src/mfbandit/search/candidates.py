"""The candidates of a search: settings of one estimator, or different estimators."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sklearn.base import clone, is_classifier, is_regressor
from sklearn.model_selection import ParameterGrid

from mfbandit.errors import InvalidArgument

MOST_LETTERS = 60  # of a name


@dataclass(frozen=True, eq=False)
class Candidate:
    """One arm of a search.

    Args:
        label: what people call it.
        estimator: what is cloned.
        settings: the parameters that are set on the clone.
        params: what ``cv_results_["params"]`` says.

    >>> from sklearn.linear_model import Ridge
    >>> candidate = Candidate("alpha=2", Ridge(), {"alpha": 2.0}, {"alpha": 2.0})
    >>> candidate.made(seed=1)
    Ridge(alpha=2.0, random_state=1)
    """

    label: str
    estimator: Any
    settings: Mapping[str, Any]
    params: Mapping[str, Any]

    def made(self, seed: int | None = None, **more: Any) -> Any:  # noqa: ANN401 - scikit-learn has no types
        """A clone with its settings and ``more``; with a seed, every ``random_state`` that is None becomes it."""
        made = clone(self.estimator).set_params(**clone(dict(self.settings), safe=False), **more)
        if seed is not None:
            unset = [name for name, value in made.get_params().items() if value is None and _is_seed(name)]
            made.set_params(**dict.fromkeys(unset, seed))
        return made


def _is_seed(name: str) -> bool:
    return name.rpartition("__")[2] == "random_state"


def listed(estimator: Any, param_grid: Any, candidates: Any) -> list[Candidate]:  # noqa: ANN401
    """All candidates, from a grid of parameters or a list of settings, estimators or (name, estimator) pairs.

    >>> from sklearn.linear_model import Lasso, Ridge
    >>> [one.label for one in listed(Ridge(), {"alpha": [1, 10]}, None)]
    ['alpha=1', 'alpha=10']
    >>> [one.label for one in listed(None, None, [Ridge(), ("sparse", Lasso())])]
    ['Ridge', 'sparse']
    """
    if (param_grid is None) == (candidates is None):
        got = "neither" if candidates is None else "both"
        raise InvalidArgument(f"one of param_grid and candidates must be given, got {got}")
    if candidates is not None and (isinstance(candidates, str) or not isinstance(candidates, Sequence)):
        raise InvalidArgument(f"candidates must be a list of settings or estimators, got {candidates!r}")
    given = list(ParameterGrid(param_grid) if candidates is None else candidates)
    if not given:
        raise InvalidArgument(f"candidates must be at least one, got {given}")
    found = _renamed([_candidate(one, estimator) for one in given])
    kinds = {(is_classifier(one.estimator), is_regressor(one.estimator)) for one in found}
    if len(kinds) > 1:
        raise InvalidArgument(
            "candidates must be all classifiers, all regressors or all neither, got "
            + ", ".join(dict.fromkeys(type(one.estimator).__name__ for one in found))
        )
    return found


def first(estimator: Any, candidates: Any) -> Any:  # noqa: ANN401
    """The estimator that says what kind of search this is: the one given, or the first candidate; else None.

    >>> from sklearn.linear_model import Ridge
    >>> first(None, [("ridge", Ridge())])
    Ridge()
    """
    if estimator is not None:
        return estimator
    for one in candidates if isinstance(candidates, Sequence) else ():
        inner = one[1] if _is_pair(one) else one
        if hasattr(inner, "fit"):
            return inner
    return None


def _is_pair(one: object) -> bool:
    return isinstance(one, tuple) and len(one) == 2 and isinstance(one[0], str)  # noqa: PLR2004


def _candidate(one: Any, estimator: Any) -> Candidate:  # noqa: ANN401
    if isinstance(one, Mapping):
        if estimator is None:
            raise InvalidArgument(f"estimator must be given for candidates that are settings, got None for {dict(one)}")
        return Candidate(_name(one) or type(estimator).__name__, estimator, one, dict(one))
    name, inner = one if _is_pair(one) else (type(one).__name__, one)
    if not hasattr(inner, "fit") or isinstance(inner, type):
        raise InvalidArgument(f"candidates must be settings, estimators or (name, estimator) pairs, got {one!r}")
    return Candidate(name, inner, {}, {"estimator": inner})


def _name(settings: Mapping[str, Any]) -> str:
    name = ", ".join(f"{key}={_short(value)}" for key, value in settings.items())
    return name if len(name) <= MOST_LETTERS else name[: MOST_LETTERS - 3] + "..."


def _short(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _renamed(found: list[Candidate]) -> list[Candidate]:
    """Names that occur more than once get a number."""
    seen: Counter[str] = Counter()
    taken = {one.label for one in found}
    renamed = []
    for one in found:
        seen[one.label] += 1
        label = one.label
        while seen[one.label] > 1 and label in taken:
            label = f"{one.label} ({seen[one.label]})"
            if label in taken:
                seen[one.label] += 1
        taken.add(label)
        renamed.append(replace(one, label=label))
    return renamed


def check_resource(found: list[Candidate], resource: str) -> None:
    """Refuse a resource that is no parameter of every candidate, or that a candidate sets itself.

    >>> from sklearn.linear_model import Ridge
    >>> check_resource(listed(Ridge(), {"alpha": [1]}, None), "n_trees")
    Traceback (most recent call last):
    mfbandit.errors.InvalidArgument: resource must be a parameter of every candidate, got 'n_trees', which
        alpha=1 has not
    """
    for one in found:
        if resource not in one.made().get_params():  # settings may exchange a step of a pipeline
            raise InvalidArgument(
                f"resource must be a parameter of every candidate, got {resource!r}, which {one.label} has not"
            )
        if resource in one.settings:
            raise InvalidArgument(
                f"resource must not be among the settings of a candidate, got {resource!r}: {one.label}"
            )
