"""By how much one arm is better than another: the answer, in numbers and in words."""

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from functools import partial
from typing import Any

from mfbandit._internal.formatting import plain
from mfbandit.experiment.confidence_answer import Kind, percent


@dataclass(frozen=True)
class Difference:
    """By how much the mean of one arm is above that of another, at the highest fidelity. Printed, it is said in words.

    Args:
        first: an arm.
        second: another one.
        first_label: the name of the first.
        second_label: the name of the second.
        low: the mean of the first, minus that of the second, is at least this; −∞ where nothing is known.
        high: it is at most this; ∞ where nothing is known.
        at_level: the level of this interval.
        better: the arm that seems better; None if that cannot be told.
        level: a probability: how sure it is that this one is better.
        kind: "valid" at any time and for all pairs of arms at once; an "estimate"; or "withheld".
        why: why it is an estimate, or withheld; empty if it is valid.
        assumes: what must hold, in sentences.

    >>> Difference(0, 1, "a", "b", 0.02, 0.15, 0.95, 0, 0.979, "valid", "", ()).sentence
    '97 % sure that a is better than b (valid whenever you look): by 0.02 to 0.15 at 95 %.'
    """

    first: int
    second: int
    first_label: str
    second_label: str
    low: float
    high: float
    at_level: float
    better: int | None
    level: float
    kind: Kind
    why: str
    assumes: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """Which of the two is better, how sure that is, and by how much, for people."""
        return self.said(partial(plain, digits=3))

    def said(self, amount: Callable[[float], str]) -> str:
        """Say it in a unit of one's own.

        Args:
            amount: formats a difference of two means.

        >>> answer = Difference(0, 1, "a", "b", 0.02, 0.15, 0.95, 0, 0.979, "valid", "", ())
        >>> answer.said(lambda gap: f"{100 * gap:g} points")
        '97 % sure that a is better than b (valid whenever you look): by 2 points to 15 points at 95 %.'
        """
        pair = f"{self.first_label} and {self.second_label}"
        if self.kind == "withheld":
            return f"Which of {pair} is better cannot be said: {self.why}."
        ground = "valid whenever you look" if self.kind == "valid" else f"an estimate: {self.why}"
        if self.level <= 0 or self.better is None:
            return f"Not sure yet which of {pair} is better ({ground}). {self._interval(amount)}"
        names = (self.first_label, self.second_label)
        one, other = names if self.better == self.first else names[::-1]
        sure = percent(self.level).capitalize()
        if not self._says_which():
            return f"{sure} sure that {one} is better than {other} ({ground}). {self._interval(amount)}"
        least, most = sorted((abs(self.low), abs(self.high)))
        return f"{sure} sure that {one} is better than {other} ({ground}): {self._by(least, most, amount)}."

    def _says_which(self) -> bool:
        return self.low >= 0 or self.high <= 0

    def _by(self, low: float, high: float, amount: Callable[[float], str]) -> str:
        most = f" to {amount(high)}" if math.isfinite(high) else " or more"
        return f"by {amount(low)}{most} at {percent(self.at_level)}"

    def _interval(self, amount: Callable[[float], str]) -> str:
        if math.isinf(self.low) and math.isinf(self.high):
            return "Nothing is known of the difference."
        ends = f"{amount(self.low)} to {amount(self.high)}"
        return f"{self.first_label} minus {self.second_label} is {ends} at {percent(self.at_level)}."

    def __str__(self) -> str:
        return "\n".join([self.sentence, *(f"- {line}" for line in self.assumes)])


def difference_record(found: Difference) -> dict[str, Any]:
    """Return the answer ready for JSON, with its sentence; what is infinite is None.

    >>> answer = Difference(0, 1, "a", "b", -math.inf, math.inf, 0.95, None, 0.0, "valid", "", ())
    >>> difference_record(answer)["low"] is None
    True
    """
    ends = {name: value if math.isfinite(value) else None for name, value in (("low", found.low), ("high", found.high))}
    return {**asdict(found), **ends, "assumes": list(found.assumes), "sentence": found.sentence}


def difference_from_record(record: Mapping[str, Any]) -> Difference:
    """Return the answer that :func:`difference_record` wrote.

    >>> answer = Difference(0, 1, "a", "b", -math.inf, 0.5, 0.95, 1, 0.25, "valid", "", ("x",))
    >>> difference_from_record(difference_record(answer)) == answer
    True
    """
    known: dict[str, Any] = {field.name: record[field.name] for field in fields(Difference)}
    known["low"] = -math.inf if known["low"] is None else known["low"]
    known["high"] = math.inf if known["high"] is None else known["high"]
    return Difference(**{**known, "assumes": tuple(known["assumes"])})
