"""When an experiment is sure enough: the rule for stopping, and the decision that follows from it."""

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from mfbandit._internal.formatting import plain
from mfbandit._internal.validation import flag, number, shown
from mfbandit.errors import InvalidArgument
from mfbandit.experiment.confidence_answer import Confidence, checked_level, percent
from mfbandit.experiment.events import Decided


@dataclass(frozen=True)
class Sure:
    """A rule for stopping: no other arm is better than the best one by more than a tolerance, at a level.

    It may be tested after every result. At a level of 95 % it stops with a wrong answer in at most 5 of 100
    experiments, whatever policy picks the plays.

    Args:
        level: how sure it has to be, strictly between 0 and 1.
        tolerance: how much worse than the best the answer may be, in units of reward; at least 0.
        estimates: whether an estimate is enough, where noise or biases are not known; else only what is valid is.

    >>> from mfbandit import UCB, Bounded, Experiment, Fidelities
    >>> fid = Fidelities([1], concentration=Bounded())
    >>> exp = Experiment(UCB(), arms=["a", "b"], fidelities=fid, stop=Sure(0.95))
    >>> for play in exp.plays():
    ...     exp.tell(play, reward={"a": 0.0, "b": 1.0}[play.label])
    >>> exp.state, exp.decided.arm, exp.spent
    ('decided', 1, 16.0)
    """

    level: float = 0.95
    tolerance: float = 0.0
    estimates: bool = False

    def __post_init__(self) -> None:
        level, tolerance = checked_level(self.level), number("tolerance", self.tolerance)
        if tolerance < 0:
            raise InvalidArgument(f"tolerance must be at least 0, got {shown(self.tolerance)}")
        object.__setattr__(self, "level", level)
        object.__setattr__(self, "tolerance", tolerance)
        flag("estimates", self.estimates)

    @property
    def sentence(self) -> str:
        """When it is sure enough, for people.

        >>> Sure(0.95, tolerance=0.01).sentence
        '95 % sure that no other arm is better by more than 0.01'
        """
        return self.said()

    def said(self, amount: Callable[[float], str] = plain) -> str:
        """Say when it is sure enough.

        Args:
            amount: formats a difference of two means.

        >>> Sure(0.95, tolerance=0.01).said(lambda difference: f"{100 * difference:g} %")
        '95 % sure that no other arm is better by more than 1 %'
        """
        by = f" by more than {amount(self.tolerance)}" if self.tolerance else ""
        estimated = ", or so estimated" if self.estimates else ""
        return f"{plain(100 * self.level, 10)} % sure that no other arm is better{by}{estimated}"

    def met_by(self, found: Confidence) -> bool:
        """Tell whether it is sure enough.

        Args:
            found: by :meth:`~mfbandit.Experiment.confidence` at the level of this rule.

        >>> from mfbandit import UCB, Bounded, Experiment, Fidelities
        >>> exp = Experiment(UCB(), arms=2, fidelities=Fidelities([1], concentration=Bounded()))
        >>> _ = exp.add_results([(0, 0, 1.0, None)] * 8 + [(1, 0, 0.0, None)] * 8)
        >>> found = exp.confidence()
        >>> Sure(0.99).met_by(found), Sure(0.99999).met_by(found)
        (True, False)
        """
        if found.kind == "withheld" or (found.kind == "estimate" and not self.estimates):
            return False
        within = found.at_level >= self.level and found.could_lose <= self.tolerance
        return found.level >= self.level or within

    def decision(self, found: Confidence) -> Decided | None:
        """The decision that follows; None as long as it is not sure enough."""
        if not self.met_by(found):
            return None
        # Within the tolerance it is as sure as the rule says, or more where that holds without one.
        loss = found.could_lose if math.isfinite(found.could_lose) else None
        return Decided(found.best, max(found.level, self.level), loss, self.tolerance, found.kind)


def checked_rule(rule: object) -> Sure:
    """Return a rule for stopping; refuse everything else.

    >>> checked_rule(0.95)
    Traceback (most recent call last):
    mfbandit.errors.InvalidArgument: rule must be a Sure, got 0.95
    """
    if not isinstance(rule, Sure):
        raise InvalidArgument(f"rule must be a Sure, got {rule!r}")
    return rule


def checked_stop(stop: object, name: str = "stop") -> Sure | None:
    """Return a rule for stopping, or None; refuse everything else.

    >>> checked_stop(0.95)
    Traceback (most recent call last):
    mfbandit.errors.InvalidArgument: stop must be a Sure or None, got 0.95
    """
    if stop is not None and not isinstance(stop, Sure):
        raise InvalidArgument(f"{name} must be a Sure or None, got {stop!r}")
    return stop


def stop_record(stop: Sure | None) -> dict[str, Any] | None:
    """The rule as a dictionary for JSON.

    >>> stop_record(Sure(0.9))
    {'level': 0.9, 'tolerance': 0.0, 'estimates': False}
    """
    return None if stop is None else asdict(stop)


def stop_from_record(record: Mapping[str, Any] | None) -> Sure | None:
    """The rule that :func:`stop_record` described.

    >>> stop_from_record({"level": 0.9})
    Sure(level=0.9, tolerance=0.0, estimates=False)
    """
    if record is None:
        return None
    fields = list(Sure.__dataclass_fields__)
    if not isinstance(record, Mapping) or not record.keys() <= set(fields):
        raise InvalidArgument(f"stop must have the fields {', '.join(fields)}, got {shown(record)}")
    return Sure(**record)


def unmet_text(state: str, policy: str) -> str:
    """Say what to do where the capital was spent before the rule was met; empty where it was not.

    Args:
        state: of an experiment that has a rule.
        policy: the name of its policy.

    >>> unmet_text("exhausted", "MFUCB")
    'The capital was spent before that. Raise it; the policy MFSure is made to get there soon.'
    >>> unmet_text("exhausted", "MFSure"), unmet_text("running", "MFUCB")
    ('The capital was spent before that. Raise it.', '')
    """
    if state != "exhausted":
        return ""
    sooner = "" if policy == "MFSure" else "; the policy MFSure is made to get there soon"
    return f"The capital was spent before that. Raise it{sooner}."


def decision_text(decided: Decided, label: str, amount: Callable[[float], str] = plain) -> str:
    """Say in a sentence what was decided, without its full stop.

    Args:
        decided: the decision.
        label: the name of its arm.
        amount: formats a difference of two means.

    >>> decision_text(Decided(3, 0.97, 0.0, 0.0, "valid"), "ad-34")
    'ad-34 (arm 3) is the best, 97 % sure'
    >>> decision_text(Decided(3, 0.95, 0.0098, 0.01, "valid"), "ad-34")
    'no other is better than ad-34 (arm 3) by more than 0.01, 95 % sure'
    """
    arm = f"{label} (arm {decided.arm})"
    if decided.level is None:
        return f"{arm} is the best, by the policy's own rule"
    sure = {"estimate": "an estimate", "policy": "by the policy's own rule"}.get(decided.kind)
    sure = f"{percent(decided.level)} sure" + (f" ({sure})" if sure else "")
    if not decided.tolerance:
        return f"{arm} is the best, {sure}"
    return f"no other is better than {arm} by more than {amount(decided.tolerance)}, {sure}"
