"""The fidelities of a search: fractions of the training samples, or values of a parameter such as n_estimators."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from mfbandit._internal.validation import positive
from mfbandit.errors import InvalidArgument

SAMPLES = "n_samples"
EPOCHS = "epochs"


@dataclass(frozen=True)
class Rungs:
    """The values of a resource, one for each fidelity.

    Args:
        resource: "n_samples", the name of a parameter, or "epochs".
        values: fractions of the training samples, values of the parameter, or numbers of passes; M of them.
        by_passes: whether the resource is how often ``partial_fit`` sees the training samples, and no parameter.

    >>> rungs = Rungs("n_estimators", (10, 100))
    >>> rungs.costs, rungs.names, rungs.fraction(0), rungs.settings(0)
    ((0.1, 1.0), ('10', '100'), 1.0, {'n_estimators': 10})
    """

    resource: str
    values: tuple[Any, ...]
    by_passes: bool = False

    @property
    def costs(self) -> tuple[float, ...]:
        """λ_m in units of the highest."""
        return tuple(float(value) / float(self.values[-1]) for value in self.values)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the fidelities."""
        return tuple(f"{value:.4g}" if isinstance(value, float) else str(value) for value in self.values)

    def fraction(self, m: int) -> float:
        """Return the share of the training samples that is used at fidelity m."""
        return float(self.values[m]) if self.resource == SAMPLES else 1.0

    def settings(self, m: int) -> dict[str, Any]:
        """Return the parameters to set on an estimator at fidelity m."""
        return {} if self.resource == SAMPLES or self.by_passes else {self.resource: self.values[m]}

    def passes(self, m: int, start: int | None = None) -> int | None:
        """Return how many passes of ``partial_fit`` lead to fidelity m from another; None for a whole ``fit``.

        >>> Rungs("epochs", (5, 20), by_passes=True).passes(1, start=0)
        15
        """
        if not self.by_passes:
            return None
        return int(self.values[m]) - (0 if start is None else int(self.values[start]))


def checked_rungs(fractions: Sequence[float], resource: str | None, values: Sequence[Any] | None) -> Rungs:
    """Return the rungs that the arguments of a search describe.

    >>> checked_rungs((0.25, 1), None, None).values
    (0.25, 1.0)
    >>> checked_rungs((0.5, 0.25), None, None)
    Traceback (most recent call last):
    mfbandit.errors.InvalidArgument: fractions must be strictly increasing, got [0.5, 0.25]
    """
    if resource is None or resource == SAMPLES:
        if values is not None:
            raise InvalidArgument(
                f"values must come with the name of a parameter as resource, got {list(values)} alone"
            )
        return Rungs(SAMPLES, _checked_fractions(fractions))
    if not isinstance(resource, str):
        raise InvalidArgument(f"resource must be the name of a parameter or {SAMPLES!r}, got {resource!r}")
    if values is None:
        raise InvalidArgument(
            f"values must be given for the resource {resource!r}, got None: such as values=[10, 30, 100]"
        )
    return Rungs(resource, checked_increasing("values", values))


def _checked_fractions(given: Sequence[float]) -> tuple[float, ...]:
    fractions = tuple(float(value) for value in checked_increasing("fractions", given))
    if fractions[-1] != 1:
        raise InvalidArgument(f"fractions must end at 1, all training samples, got {list(fractions)}")
    return fractions


def checked_increasing(what: str, given: Sequence[Any]) -> tuple[Any, ...]:
    """Return numbers that are positive and strictly increasing.

    >>> checked_increasing("values", [1, 2.5])
    (1, 2.5)
    """
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
