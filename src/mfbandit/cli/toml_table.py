"""Tables of a TOML file, read key by key; every error names the file, the table, the key and the rule."""

import difflib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

from mfbandit._internal.limits import MAX_VALUE_SHOWN
from mfbandit._internal.validation import LARGEST_NUMBER
from mfbandit.errors import InvalidArgument

TOML: TypeAlias = Any
"""A value that TOML can hold."""

QUOTES = "'\""


@dataclass(frozen=True)
class ValueKind:
    """What a value may be, in words and as a test."""

    words: str
    fits: Callable[[Any], bool]


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= LARGEST_NUMBER


def _list_of(fits: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list) and all(fits(item) for item in value)


ANYTHING = ValueKind("anything", lambda _: True)
NUMBER = ValueKind("a finite number", _is_number)
WHOLE = ValueKind("a whole number", lambda value: isinstance(value, int) and not isinstance(value, bool))
TEXT = ValueKind("text in quotes", lambda value: isinstance(value, str))
FLAG = ValueKind("true or false", lambda value: isinstance(value, bool))
NUMBERS = ValueKind("a list of numbers", _list_of(_is_number))
TEXTS = ValueKind("a list of texts", _list_of(TEXT.fits))
ROWS = ValueKind("a list of rows of numbers", _list_of(NUMBERS.fits))
NUMBER_OR_NUMBERS = ValueKind("a number or a list of numbers", lambda value: NUMBER.fits(value) or NUMBERS.fits(value))
NUMBERS_OR_ROWS = ValueKind(
    "a list of numbers or of rows of numbers", lambda value: NUMBERS.fits(value) or ROWS.fits(value)
)
TABLE_LIST = ValueKind("a list of tables, [{...}, ...]", _list_of(lambda value: isinstance(value, dict)))
TEXTS_OR_WHOLE = ValueKind("a list of texts or a whole number", lambda value: TEXTS.fits(value) or WHOLE.fits(value))
TEXT_OR_WHOLE = ValueKind("text in quotes or a whole number", lambda value: TEXT.fits(value) or WHOLE.fits(value))


class Table:
    """One table of a file, read key by key; what is left over at the end is an error."""

    def __init__(self, where: str, values: dict[str, Any], what: str = "key") -> None:
        self.where, self._values, self._what, self._known = where, values, what, list[str]()

    def __contains__(self, key: str) -> bool:
        return key in self._values

    def need(self, key: str, kind: ValueKind) -> TOML:
        """Return a value that must be there."""
        if key not in self._values:
            near = difflib.get_close_matches(key, self._values, n=1)
            hint = f"; it has {near[0]}, did you mean {key}?" if near else ""
            raise InvalidArgument(f"{self.where} needs the key {key}, {kind.words}{hint}")
        return self.get(key, kind)

    def get(self, key: str, kind: ValueKind, default: TOML = None) -> TOML:
        """Return a value that may be there."""
        self._known.append(key)
        value = self._values.get(key, default)
        if key in self._values and not kind.fits(value):
            raise InvalidArgument(f"{self.where} {key} must be {kind.words}, got {shown(value)}")
        return value

    def chosen(self, keys: dict[str, ValueKind]) -> dict[str, Any]:
        """Return those of these keys that are there, with their values."""
        values = {key: self.get(key, kind) for key, kind in keys.items()}
        return {key: value for key, value in values.items() if key in self}

    def close(self) -> None:
        """Refuse keys that were not read."""
        for key in self._values:
            if key not in self._known:
                near = difflib.get_close_matches(key, self._known, n=1)
                hint = f"did you mean {near[0]}?" if near else f"it may have {', '.join(self._known)}"
                raise InvalidArgument(f"{self.where} has no {self._what} {shown(key).strip(QUOTES)}; {hint}")


@contextmanager
def at(where: str) -> Iterator[None]:
    """Say where in the file a refused value is.

    >>> with at("ads.toml: [fidelities]"):
    ...     raise InvalidArgument("scale must be positive and finite, got -1")
    Traceback (most recent call last):
    mfbandit.errors.InvalidArgument: ads.toml: [fidelities] scale must be positive and finite, got -1
    """
    try:
        yield
    except InvalidArgument as error:
        text = str(error)
        raise InvalidArgument(text if text.startswith(where) else f"{where} {text}") from None
    except ArithmeticError as error:
        raise InvalidArgument(f"{where} numbers of such sizes do not go together ({error})") from None


def shown(value: object) -> str:
    r"""Return a value as one would write it, control characters escaped, cut off where it is long.

    >>> print(shown("a\n"), len(shown("a" * 1000)))
    'a\n' 83
    """
    text = repr(value)
    return text if len(text) <= MAX_VALUE_SHOWN else f"{text[:MAX_VALUE_SHOWN]}..."
