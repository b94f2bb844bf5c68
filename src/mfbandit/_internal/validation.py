"""Checks of arguments; an error says "X must be Y, got Z"."""

import math
import operator
from typing import SupportsFloat, SupportsIndex

from mfbandit._internal.limits import MAX_VALUE_SHOWN
from mfbandit.errors import InvalidArgument

LARGEST_NUMBER = 1e150  # sums of squared rewards must stay finite
SMALLEST_NUMBER = 1e-150  # of what is divided by: its square must not be 0
CALCULABLE = f"from {SMALLEST_NUMBER:g} to {LARGEST_NUMBER:g}"


def shown(value: object) -> str:
    """Return a value as a message repeats it, cut off where it is long.

    >>> shown(0.5), shown("a"), shown(10**400)[-6:], shown(10**5000)
    ('0.5', "'a'", '000...', 'a number of thousands of digits')
    """
    try:
        text = repr(value) if isinstance(value, str) else str(value)
    except ValueError:  # Python's limit for whole numbers
        return "a number of thousands of digits"
    return text if len(text) <= MAX_VALUE_SHOWN else f"{text[:MAX_VALUE_SHOWN]}..."


def number(what: str, value: object) -> float:
    """Return a finite number as a float; refuse text, NaN, infinities and numbers too large to be squared.

    >>> number("reward", 1)
    1.0
    >>> number("reward", -0.0)
    0.0
    >>> number("reward", "1")
    Traceback (most recent call last):
    mfbandit.errors.InvalidArgument: reward must be a number, got '1'
    """
    result = _float(what, value)
    if not -LARGEST_NUMBER <= result <= LARGEST_NUMBER:
        rule = f"at most {LARGEST_NUMBER:g} in size" if math.isfinite(result) else "finite"
        raise InvalidArgument(f"{what} must be {rule}, got {shown(value)}")
    return result + 0.0  # -0.0 becomes 0.0: SQLite does not keep the sign of a zero


def positive(what: str, value: object) -> float:
    """Return a finite number above 0 as a float; refuse those whose square would be 0 or infinite.

    >>> positive("rho", 0)
    Traceback (most recent call last):
    mfbandit.errors.InvalidArgument: rho must be positive and finite, got 0
    >>> positive("scale", 1e-320)
    Traceback (most recent call last):
    mfbandit.errors.InvalidArgument: scale must be from 1e-150 to 1e+150, got 1e-320
    """
    result = _float(what, value)
    if not 0 < result < math.inf:
        raise InvalidArgument(f"{what} must be positive and finite, got {shown(value)}")
    if not SMALLEST_NUMBER <= result <= LARGEST_NUMBER:
        raise InvalidArgument(f"{what} must be {CALCULABLE}, got {shown(value)}")
    return result


def cost(value: object) -> float:
    """Return a cost as a float: finite and not negative.

    >>> cost(-1)
    Traceback (most recent call last):
    mfbandit.errors.InvalidArgument: cost must not be negative, got -1
    """
    result = number("cost", value)
    if result < 0:
        raise InvalidArgument(f"cost must not be negative, got {value}")
    return result


def whole(what: str, value: object) -> int:
    """Return an integer as an int; refuse floats, also 2.0, and text.

    >>> whole("n", 2.5)
    Traceback (most recent call last):
    mfbandit.errors.InvalidArgument: n must be a whole number, got 2.5
    """
    if isinstance(value, int):
        return value
    if not isinstance(value, SupportsIndex):
        raise InvalidArgument(f"{what} must be a whole number, got {value!r}")
    return operator.index(value)


def seed(value: object) -> int:
    """Return a seed as an int; refuse negative ones.

    >>> seed(-1)
    Traceback (most recent call last):
    mfbandit.errors.InvalidArgument: seed must not be negative, got -1
    """
    if whole("seed", value) < 0:
        raise InvalidArgument(f"seed must not be negative, got {value}")
    return whole("seed", value)


def flag(what: str, value: object) -> bool:
    """Return True or False; refuse everything else.

    >>> flag("kl", "yes")
    Traceback (most recent call last):
    mfbandit.errors.InvalidArgument: kl must be True or False, got 'yes'
    """
    if not isinstance(value, bool):
        raise InvalidArgument(f"{what} must be True or False, got {value!r}")
    return value


def _float(what: str, value: object) -> float:
    if isinstance(value, float):
        return value
    try:
        if isinstance(value, SupportsFloat):
            return float(value)
    except TypeError:
        pass
    except OverflowError:  # a whole number of hundreds of digits
        rule = f"at most {LARGEST_NUMBER:g} in size"
        raise InvalidArgument(f"{what} must be {rule}, got {shown(value)}") from None
    raise InvalidArgument(f"{what} must be a number, got {value!r}")
