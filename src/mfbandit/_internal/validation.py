"""Numbers that come from outside, checked: an error names the thing, the rule and the value."""

import math
import operator
from typing import SupportsFloat, SupportsIndex

from mfbandit.errors import InvalidArgument

HUGE = 1e150  # squares of rewards are summed and have to stay finite


def number(what: str, value: object) -> float:
    """A finite number as a float; text, NaN, infinities and numbers too large to be squared are refused.

    >>> number("reward", 1)
    1.0
    >>> number("reward", -0.0)
    0.0
    >>> number("reward", "1")
    Traceback (most recent call last):
    mfbandit.errors.InvalidArgument: reward must be a number, got '1'
    """
    result = _float(what, value)
    if not -HUGE <= result <= HUGE:
        rule = f"at most {HUGE:g} in size" if math.isfinite(result) else "finite"
        raise InvalidArgument(f"{what} must be {rule}, got {value}")
    return result + 0.0  # -0.0 becomes 0.0: SQLite keeps no sign of a zero


def positive(what: str, value: object) -> float:
    """A finite number above 0.

    >>> positive("rho", 0)
    Traceback (most recent call last):
    mfbandit.errors.InvalidArgument: rho must be positive and finite, got 0
    """
    result = _float(what, value)
    if not 0 < result < math.inf:
        raise InvalidArgument(f"{what} must be positive and finite, got {value}")
    return result


def cost(value: object) -> float:
    """What something cost: a finite number, not negative.

    >>> cost(-1)
    Traceback (most recent call last):
    mfbandit.errors.InvalidArgument: cost must not be negative, got -1
    """
    result = number("cost", value)
    if result < 0:
        raise InvalidArgument(f"cost must not be negative, got {value}")
    return result


def whole(what: str, value: object) -> int:
    """A whole number as an int; 2.5 and text are refused, and so is 2.0.

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
    """A whole number, not negative.

    >>> seed(-1)
    Traceback (most recent call last):
    mfbandit.errors.InvalidArgument: seed must not be negative, got -1
    """
    if whole("seed", value) < 0:
        raise InvalidArgument(f"seed must not be negative, got {value}")
    return whole("seed", value)


def flag(what: str, value: object) -> bool:
    """True or False.

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
    except (TypeError, OverflowError):
        pass
    raise InvalidArgument(f"{what} must be a number, got {value!r}")
