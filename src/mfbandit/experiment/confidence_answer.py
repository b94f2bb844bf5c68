"""How sure it is that the best arm so far is the best: the answer, in numbers and in words."""

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from functools import partial
from typing import Any, Literal

from mfbandit._internal.formatting import columns, plain
from mfbandit._internal.validation import number
from mfbandit.errors import InvalidArgument

Kind = Literal["valid", "estimate", "withheld"]

ESTIMATE_CAP = 0.95  # no estimate is said to be more than this
MOST_RIVALS_NAMED = 20
WHOLE_PERCENTS_BELOW = 0.99
MOST_SAID = 0.999
ROUNDING = 1e-9  # 100 times 0.29 is a little less than 29


@dataclass(frozen=True)
class Confidence:
    """How sure it is that the best arm so far is the best of all active ones. Printed, it is said in words.

    Args:
        best: the arm that :meth:`~mfbandit.Experiment.best` names.
        label: its name.
        level: a probability: how sure it is, however often one looks; 0 where nothing can be said.
        could_lose: by how much another arm may be better at ``at_level``, in units of reward; infinite where nothing
            is known.
        at_level: the level at which rivals and the possible loss are given.
        rivals: the arms that may be better at ``at_level``; the one that could be ahead by most first.
        could_be_ahead: for each rival, by how much.
        kind: "valid" at any time and whatever rule chose the plays; an "estimate"; or "withheld".
        why: why it is an estimate, or withheld; empty if it is valid.
        assumes: what must hold, in sentences.
        fidelities: the fidelities whose results count.
        results: how many results of active arms there are at each of them.
        arms: how many active arms there are, the best one included.

    >>> from mfbandit import UCB, Bounded, Experiment, Fidelities
    >>> exp = Experiment(UCB(), arms=["a", "b"], fidelities=Fidelities([1], concentration=Bounded()))
    >>> _ = exp.add_results([("a", 0, 1.0, None)] * 4 + [("b", 0, 0.0, None)] * 4)
    >>> found = exp.confidence()
    >>> found.label, round(found.level, 3), found.rivals, found.kind
    ('a', 0.942, (1,), 'valid')
    >>> print(found.sentence)
    94 % sure that a is the best (valid whenever you look). 1 of 2 may still be better, by at most 0.0185.
    """

    best: int
    label: str
    level: float
    could_lose: float
    at_level: float
    rivals: tuple[int, ...]
    could_be_ahead: tuple[float, ...]
    kind: Kind
    why: str
    assumes: tuple[str, ...]
    fidelities: tuple[int, ...]
    results: tuple[int, ...]
    arms: int

    @property
    def sentence(self) -> str:
        """How sure it is, which arms may still be better, and by how much, for people."""
        return self.said(partial(plain, digits=3))

    def said(self, amount: Callable[[float], str]) -> str:
        """Say it in a unit of one's own.

        Args:
            amount: formats a difference of two means.

        >>> answer = Confidence(0, "a", 0.5, 0.02, 0.95, (1,), (0.02,), "valid", "", (), (0,), (4,), 2)
        >>> answer.said(lambda gap: f"{100 * gap:g} points").partition(". ")[2]
        '1 of 2 may still be better, by at most 2 points.'
        """
        if self.kind == "withheld":
            return f"How sure it is that {self.label} is the best cannot be said: {self.why}."
        return f"{self._sure()} {self._rivals(amount)}"

    def _sure(self) -> str:
        if self.kind == "estimate":
            over = "over " if self.level >= ESTIMATE_CAP else ""
            return f"{self.label} is the best with an estimated {over}{percent(self.level)}: {self.why}."
        if self.level <= 0:
            return f"Not sure yet that {self.label} is the best (valid whenever you look)."
        sure = percent(self.level).capitalize()
        return f"{sure} sure that {self.label} is the best (valid whenever you look)."

    def _rivals(self, amount: Callable[[float], str]) -> str:
        if not self.rivals:
            return "No other may be better." if self.arms > 1 else "There is no other."
        by = "" if math.isinf(self.could_lose) else f", by at most {amount(self.could_lose)}"
        return f"{len(self.rivals):,} of {self.arms:,} may still be better{by}."

    def __str__(self) -> str:
        return "\n".join([self.sentence, *(f"- {line}" for line in self.assumes)])

    def table(self, labels: "tuple[str, ...]") -> str:
        """Return the rivals as a table, the one that could be ahead by most first; at most twenty.

        Args:
            labels: the names of all arms.

        >>> print(Confidence(0, "a", 0.5, 0.25, 0.95, (1,), (0.25,), "valid", "", (), (0,), (4,), 2).table(("a", "b")))
        arm  could be ahead by
        b                 0.25
        """
        shown = list(zip(self.rivals, self.could_be_ahead, strict=True))[:MOST_RIVALS_NAMED]
        rows = [(labels[arm], "any amount" if math.isinf(by) else plain(by, 3)) for arm, by in shown]
        more = len(self.rivals) - len(shown)
        return "\n".join([*columns([("arm", "could be ahead by"), *rows]), *([f"and {more:,} more"] if more else [])])


def percent(level: float) -> str:
    """Return a level in percent, rounded down: it is not said to be surer than it is.

    >>> percent(0.29), percent(0.979), percent(0.99678), percent(0.9999999)
    ('29 %', '97 %', '99.6 %', 'over 99.9 %')
    """
    if level < WHOLE_PERCENTS_BELOW:
        return f"{math.floor(100 * level + ROUNDING)} %"
    if level > MOST_SAID:
        return f"over {plain(100 * MOST_SAID)} %"
    return f"{math.floor(1000 * level + ROUNDING) / 10:.1f} %"


def checked_level(level: object) -> float:
    """Return a level of confidence; refuse all that is not strictly between 0 and 1.

    >>> checked_level(95)
    Traceback (most recent call last):
    mfbandit.errors.InvalidArgument: level must lie strictly between 0 and 1, got 95
    """
    value = number("level", level)
    if not 0 < value < 1:
        raise InvalidArgument(f"level must lie strictly between 0 and 1, got {plain(value)}")
    return value


def confidence_record(found: Confidence) -> dict[str, Any]:
    """Return the answer ready for JSON, with its sentence; what is infinite is None.

    >>> answer = Confidence(0, "a", 0.5, math.inf, 0.95, (1,), (math.inf,), "valid", "", (), (0,), (4,), 2)
    >>> confidence_record(answer)["could_be_ahead"]
    [None]
    """
    record = {**asdict(found), "sentence": found.sentence}
    record["could_lose"] = _finite(found.could_lose)
    record["could_be_ahead"] = [_finite(by) for by in found.could_be_ahead]
    return {name: list(value) if isinstance(value, tuple) else value for name, value in record.items()}


def confidence_from_record(record: Mapping[str, Any]) -> Confidence:
    """Return the answer that :func:`confidence_record` wrote.

    >>> answer = Confidence(0, "a", 0.5, math.inf, 0.95, (1,), (math.inf,), "valid", "", ("x",), (0,), (4,), 2)
    >>> confidence_from_record(confidence_record(answer)) == answer
    True
    """
    given = {field.name: record[field.name] for field in fields(Confidence)}
    known: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in given.items()}
    known["could_lose"] = _infinite(record["could_lose"])
    known["could_be_ahead"] = tuple(_infinite(by) for by in record["could_be_ahead"])
    return Confidence(**known)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _infinite(value: float | None) -> float:
    return math.inf if value is None else float(value)
