"""The fidelities of a search: fractions of the training samples, or values of a parameter such as n_estimators."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from mfbandit._internal.validation import positive
from mfbandit.errors import InvalidArgument

SAMPLES = "n_samples"


@dataclass(frozen=True)
class Ladder:
    """What grows from fidelity to fidelity.

    Args:
        resource: "n_samples", or the name of a parameter.
        values: fractions of the training samples, or values of the parameter; M of them.

    >>> ladder = Ladder("n_estimators", (10, 100))
    >>> ladder.costs, ladder.names, ladder.fraction(0), ladder.settings(0)
    ((0.1, 1.0), ('10', '100'), 1.0, {'n_estimators': 10})
    """

    resource: str
    values: tuple[Any, ...]

    @property
    def costs(self) -> tuple[float, ...]:
        """λ_m in units of the highest."""
        return tuple(float(value) / float(self.values[-1]) for value in self.values)

    @property
    def names(self) -> tuple[str, ...]:
        """What people call the fidelities."""
        return tuple(f"{value:.4g}" if isinstance(value, float) else str(value) for value in self.values)

    def fraction(self, m: int) -> float:
        """The share of the training samples at fidelity m."""
        return float(self.values[m]) if self.resource == SAMPLES else 1.0

    def settings(self, m: int) -> dict[str, Any]:
        """What is set on an estimator at fidelity m."""
        return {} if self.resource == SAMPLES else {self.resource: self.values[m]}


def ladder(fractions: Sequence[float], resource: str | None, values: Sequence[Any] | None) -> Ladder:
    """The ladder that a search's arguments describe, or an error.

    >>> ladder((0.25, 1), None, None).values
    (0.25, 1.0)
    >>> ladder((0.5, 0.25), None, None)
    Traceback (most recent call last):
    mfbandit.errors.InvalidArgument: fractions must be strictly increasing, got [0.5, 0.25]
    """
    if resource is None or resource == SAMPLES:
        if values is not None:
            raise InvalidArgument(
                f"values must come with the name of a parameter as resource, got {list(values)} alone"
            )
        return Ladder(SAMPLES, _fractions(fractions))
    if not isinstance(resource, str):
        raise InvalidArgument(f"resource must be the name of a parameter or {SAMPLES!r}, got {resource!r}")
    if values is None:
        raise InvalidArgument(f"values must be given for the resource {resource!r}, got None")
    return Ladder(resource, _increasing("values", values))


def _fractions(given: Sequence[float]) -> tuple[float, ...]:
    fractions = tuple(float(value) for value in _increasing("fractions", given))
    if fractions[-1] != 1:
        raise InvalidArgument(f"fractions must end at 1, all training samples, got {list(fractions)}")
    return fractions


def _increasing(what: str, given: Sequence[Any]) -> tuple[Any, ...]:
    if isinstance(given, str) or not hasattr(given, "__iter__"):
        raise InvalidArgument(f"{what} must be a sequence of numbers, got {given!r}")
    values = tuple(value.item() if hasattr(value, "item") else value for value in given)
    if not values:
        raise InvalidArgument(f"{what} must be at least one, got []")
    for value in values:
        positive(what, value)
    if not all(low < high for low, high in pairwise(values)):
        raise InvalidArgument(f"{what} must be strictly increasing, got {list(values)}")
    return values
