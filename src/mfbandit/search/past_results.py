"""Results that a search begins with: of an Optuna study, or listed by whoever has them."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from mfbandit._internal.validation import number
from mfbandit.errors import InvalidArgument

COMPLETE = "COMPLETE"


class PastRun(NamedTuple):
    """One run that was made before."""

    candidate: Any
    fidelity: int
    score: float


def past_results(past: object, resources: Sequence[Any], direction: str) -> list[PastRun]:
    """Return the results of an Optuna study, or of a list of (candidate, resource, score).

    Of a study's trials, intermediate values count whose step is one of the resources, and the value of a complete trial
    is one at the last resource.

    Args:
        past: a study or a list; None for nothing.
        resources: what an objective is given at each fidelity.
        direction: "maximize" or "minimize".

    >>> past_results([({"rate": 0.1}, 25, 0.9)], [1, 5, 25], "maximize")
    [PastRun(candidate={'rate': 0.1}, fidelity=2, score=0.9)]
    >>> past_results([({"rate": 0.1}, 10, 0.9)], [1, 5, 25], "maximize")
    Traceback (most recent call last):
    mfbandit.errors.InvalidArgument: past must have resources among [1, 5, 25], got 10
    """
    if past is None:
        return []
    if hasattr(past, "get_trials"):
        return _of_study(past, list(resources), direction)
    if not isinstance(past, Sequence) or isinstance(past, str):
        raise InvalidArgument(
            f"past must be a study of Optuna, or a list of (candidate, resource, score), got {past!r}"
        )
    return [_of_entry(one, list(resources)) for one in past]


def _of_entry(one: object, resources: list[Any]) -> PastRun:
    match one:
        case (candidate, resource, score):
            if resource not in resources:
                raise InvalidArgument(f"past must have resources among {resources}, got {resource!r}")
            return PastRun(candidate, resources.index(resource), number("score", score))
    raise InvalidArgument(f"past must be a list of (candidate, resource, score), got {one!r} in it")


def _of_study(study: Any, resources: list[Any], direction: str) -> list[PastRun]:  # noqa: ANN401 - Optuna's
    directions = [one.name.lower() for one in study.directions]
    if directions != [direction]:
        raise InvalidArgument(f"past must be a study whose direction is {direction!r}, got {', '.join(directions)}")
    found = []
    for trial in study.get_trials(deepcopy=False):
        values = dict(trial.intermediate_values)
        if trial.state.name == COMPLETE:
            values[resources[-1]] = trial.value
        for m, resource in enumerate(resources):
            score = values.get(resource)
            if trial.params and score is not None and math.isfinite(score):
                found.append(PastRun(dict(trial.params), m, float(score)))
    return found


def with_past_candidates(drawn: Sequence[Any], past: Sequence[PastRun]) -> tuple[list[Any], list[int]]:
    """Return all candidates, those of the past after the others, and which of them each past result is of.

    >>> with_past_candidates([{"a": 1}], [PastRun({"a": 2}, 0, 0.5), PastRun({"a": 1}, 0, 0.25)])
    ([{'a': 1}, {'a': 2}], [1, 0])
    """
    candidates, places = list(drawn), list[int]()
    known: dict[str, int] = {}
    for k, one in enumerate(candidates):
        known.setdefault(_key(one), k)
    for result in past:
        key = _key(result.candidate)
        if key not in known:
            known[key] = len(candidates)
            candidates.append(result.candidate)
        places.append(known[key])
    return candidates, places


def _key(candidate: object) -> str:
    if isinstance(candidate, Mapping):
        return repr(sorted((str(name), repr(value)) for name, value in candidate.items()))
    return repr(candidate)
