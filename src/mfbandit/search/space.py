"""Spaces of settings: grids of lists, ranges, and distributions of SciPy and Optuna; candidates are drawn by a seed."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Protocol

import numpy as np

from mfbandit._internal.validation import seed as checked_seed
from mfbandit._internal.validation import whole
from mfbandit.errors import InvalidArgument

LOG = "log"
TRIES_PER_CANDIDATE = 20  # for a candidate that was not drawn before
LARGEST_GRID = 100_000  # that is listed whole


class Dimension(Protocol):
    """The values that one setting can have."""

    @property
    def values(self) -> Sequence[Any] | None:
        """All of them; None where they are too many to list."""
        ...

    def draw(self, rng: np.random.Generator) -> object:
        """Draw one."""
        ...


@dataclass(frozen=True)
class Choice:
    """One of a list of values.

    >>> Choice(("adam", "sgd")).draw(np.random.default_rng(0))
    'sgd'
    """

    values: tuple[Any, ...]

    def draw(self, rng: np.random.Generator) -> object:
        """Draw one of the values, all with the same probability."""
        return self.values[int(rng.integers(len(self.values)))]


@dataclass(frozen=True)
class Range:
    """A number between two others, both included.

    Args:
        low: the lowest.
        high: the highest.
        log: whether its logarithm is uniform.
        step: between neighbours; None for any number.
        integer: whether it is a whole number.

    >>> Range(1, 4, integer=True).values
    (1, 2, 3, 4)
    >>> round(Range(1e-4, 1e-1, log=True).draw(np.random.default_rng(0)), 5)
    0.00814
    """

    low: float
    high: float
    log: bool = False
    step: float | None = None
    integer: bool = False

    @property
    def values(self) -> tuple[Any, ...] | None:
        """All values, where they are equally likely and not too many."""
        step = 1 if self.integer and self.step is None else self.step
        if self.log or step is None:
            return None
        number = 1 + math.floor((self.high - self.low) / step * (1 + 1e-12))
        if number > LARGEST_GRID:
            return None
        return tuple(self._number(self.low + i * step) for i in range(number))

    def draw(self, rng: np.random.Generator) -> object:
        """Draw a number."""
        if self.integer and self.log:  # each whole number has the share of the logarithms that round to it
            value = math.exp(rng.uniform(math.log(self.low - 0.5), math.log(self.high + 0.5)))
            return min(max(round(value), int(self.low)), int(self.high))
        if self.integer or self.step is not None:
            step = self.step or 1
            number = 1 + math.floor((self.high - self.low) / step * (1 + 1e-12))
            return self._number(self.low + int(rng.integers(number)) * step)
        if self.log:
            value = math.exp(rng.uniform(math.log(self.low), math.log(self.high)))
            return min(max(value, self.low), self.high)
        return float(rng.uniform(self.low, self.high))

    def _number(self, value: float) -> float:
        return int(value) if self.integer else float(value)


@dataclass(frozen=True)
class Drawn:
    """Whatever a distribution of SciPy draws."""

    distribution: Any
    values: None = None

    def draw(self, rng: np.random.Generator) -> object:
        """Draw one value, as a plain number where it is one."""
        value = self.distribution.rvs(random_state=rng)
        return value.item() if hasattr(value, "item") and np.ndim(value) == 0 else value


def draw_candidates(space: Mapping[str, object], number: int | None = None, seed: int = 0) -> list[dict[str, Any]]:
    """Draw different settings from a space; without a number list all of them, where each has a list.

    Args:
        space: for each setting a list of values; a tuple (low, high) for a number between them, both included, a whole
            one if both are; (low, high, "log") where its logarithm is uniform; a distribution of ``scipy.stats``; or
            one of ``optuna.distributions``.
        number: how many to draw; a space that has fewer is listed whole. None lists a space of lists and whole numbers.
        seed: of the draws. The first draws of a larger number are those of a smaller one.

    >>> draw_candidates({"depth": [2, 4], "loss": ["l1", "l2"]})
    [{'depth': 2, 'loss': 'l1'}, {'depth': 2, 'loss': 'l2'}, {'depth': 4, 'loss': 'l1'}, {'depth': 4, 'loss': 'l2'}]
    >>> [sorted(one) for one in draw_candidates({"rate": (1e-3, 1.0, "log"), "depth": (1, 9)}, 1)]
    [['depth', 'rate']]
    >>> draw_candidates({"rate": (0.0, 1.0)})
    Traceback (most recent call last):
    mfbandit.errors.InvalidArgument: n must be given for a space that cannot be listed, got None: 'rate' has a range
    """
    dimensions = checked_space(space)
    checked_seed(seed)
    if number is not None and whole("n", number) < 1:
        raise InvalidArgument(f"n must be at least 1, got {number}")
    size = _size(dimensions)
    if number is None:
        unlisted = next((name for name, one in dimensions.items() if one.values is None), None)
        if unlisted is not None:
            what = "a distribution" if isinstance(dimensions[unlisted], Drawn) else "a range"
            raise InvalidArgument(
                f"n must be given for a space that cannot be listed, got None: {unlisted!r} has {what}"
            )
        if size is not None and size > LARGEST_GRID:
            raise InvalidArgument(f"n must be given for a space of {size:,} candidates, got None")
        return list(_grid(dimensions))
    if size is not None and size <= number:
        return list(_grid(dimensions))
    return _drawn(dimensions, number, seed)


def checked_space(space: Mapping[str, object]) -> dict[str, Dimension]:
    """Return the dimensions of a space, or an error that says what is wrong with which.

    >>> checked_space({"depth": 3})
    Traceback (most recent call last):
    mfbandit.errors.InvalidArgument: space must give 'depth' a list, a tuple (low, high) or (low, high, "log"), or a
        distribution of SciPy or Optuna, got 3
    """
    if not isinstance(space, Mapping):
        raise InvalidArgument(f"space must be a dictionary of settings, got {space!r}")
    if not space:
        raise InvalidArgument("space must have at least one setting, got {}")
    for name in space:
        if not isinstance(name, str):
            raise InvalidArgument(f"space must have names as keys, got {name!r}")
    return {name: _dimension(name, given) for name, given in space.items()}


def _dimension(name: str, given: object) -> Dimension:
    if isinstance(given, tuple):
        return _range(name, given)
    if type(given).__module__.partition(".")[0] == "optuna":
        return _of_optuna(name, given)
    if hasattr(given, "rvs"):
        return Drawn(given)
    if isinstance(given, Sequence | np.ndarray) and not isinstance(given, str | bytes):
        values = given.tolist() if isinstance(given, np.ndarray) else list(given)
        if not values:
            raise InvalidArgument(f"space must give {name!r} at least one value, got {given!r}")
        return Choice(tuple(values))
    raise InvalidArgument(
        f'space must give {name!r} a list, a tuple (low, high) or (low, high, "log"), or a distribution of SciPy or '
        f"Optuna, got {given!r}"
    )


def _range(name: str, given: tuple[Any, ...]) -> Range:
    match given:
        case (low, high) | (low, high, "log") if _is_number(low) and _is_number(high):
            log = len(given) > 2  # noqa: PLR2004 - the third one is the word
        case _:
            raise InvalidArgument(
                f'space must give {name!r} as a tuple (low, high) or (low, high, "log") of numbers, or as a list of '
                f"values, got {given!r}"
            )
    integer = isinstance(low, int | np.integer) and isinstance(high, int | np.integer)
    return _checked_range(name, Range(low, high, log=log, integer=integer))


def _checked_range(name: str, one: Range) -> Range:
    if not (math.isfinite(one.low) and math.isfinite(one.high) and one.low <= one.high):
        raise InvalidArgument(f"space must give {name!r} a range from low to high, got {one.low} to {one.high}")
    if one.log and one.low <= 0:
        raise InvalidArgument(f"space must give {name!r} a positive range for its logarithm, got {one.low} upwards")
    return one


def _of_optuna(name: str, given: Any) -> Dimension:  # noqa: ANN401 - what Optuna has
    """Take a distribution of Optuna by its attributes, so that it need not be installed."""
    if hasattr(given, "choices"):
        return Choice(tuple(given.choices))
    if not (hasattr(given, "low") and hasattr(given, "high")):
        raise InvalidArgument(f"space must give {name!r} a distribution of Optuna, got {given!r}")
    integer = type(given).__name__.startswith("Int")
    step = None if given.step in (None, 1) and (integer or given.step is None) else given.step
    return _checked_range(name, Range(given.low, given.high, bool(given.log), step, integer))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def _size(dimensions: Mapping[str, Dimension]) -> int | None:
    """How many different settings there are; None where that is not known."""
    numbers = [None if one.values is None else len(one.values) for one in dimensions.values()]
    return None if None in numbers else math.prod(number for number in numbers if number is not None)


def _grid(dimensions: Mapping[str, Dimension]) -> Iterator[dict[str, Any]]:
    for values in product(*(one.values or () for one in dimensions.values())):
        yield dict(zip(dimensions, values, strict=True))


def _drawn(dimensions: Mapping[str, Dimension], number: int, seed: int) -> list[dict[str, Any]]:
    rng = np.random.default_rng([seed, len(dimensions)])
    found: dict[str, dict[str, Any]] = {}
    for _ in range(TRIES_PER_CANDIDATE * number):
        one = {name: dimension.draw(rng) for name, dimension in dimensions.items()}
        found.setdefault(repr(one), one)
        if len(found) == number:
            break
    return list(found.values())
