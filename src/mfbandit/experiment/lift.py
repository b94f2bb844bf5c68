"""The lift: by how much the best arm so far is above the control, at the highest fidelity."""

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np

from mfbandit._internal.formatting import plain
from mfbandit.core import Rate
from mfbandit.errors import NoResults
from mfbandit.experiment.confidence_answer import Kind, percent
from mfbandit.experiment.findings import Findings
from mfbandit.experiment.state import State


@dataclass(frozen=True)
class Lift:
    """By how much an arm is above the control, at the highest fidelity. Printed, it is said in words.

    Args:
        arm: the best arm so far; if that is the control, the best of the others at the highest fidelity.
        label: its name.
        control: the control.
        control_label: its name.
        estimate: the arm's observed mean minus that of the control; NaN where one of them has no result there.
        low: the difference of the true means is at least this; −∞ where nothing is known.
        high: it is at most this; ∞ where nothing is known.
        at_level: the level of this interval, valid whenever one looks and for all pairs of arms at once.
        control_mean: the observed mean of the control; NaN without a result.
        rate: whether these are rates, which are said in percentage points.
        level: a probability: how sure it is that the one is better that seems so.
        kind: "valid", an "estimate", or "withheld".
        why: why it is an estimate, or withheld.

    >>> Lift(2, "c", 0, "a", 0.012, 0.004, 0.021, 0.95, 0.02, True, 0.999, "valid", "").sentence
    'c is above the control a by 0.4 to 2.1 percentage points (observed 1.2), 20 % to 105 % of its observed rate, at
        95 % (valid whenever you look).'
    """

    arm: int
    label: str
    control: int
    control_label: str
    estimate: float
    low: float
    high: float
    at_level: float
    control_mean: float
    rate: bool
    level: float
    kind: Kind
    why: str

    @property
    def relative(self) -> tuple[float, float] | None:
        """The interval as a share of the control's observed mean; None where that makes no sense."""
        if not (self.control_mean > 0 and math.isfinite(self.low) and math.isfinite(self.high)):
            return None
        return self.low / self.control_mean, self.high / self.control_mean

    @property
    def sentence(self) -> str:
        """By how much the arm is above the control, for people."""
        pair = f"{self.label} against the control {self.control_label}"
        if self.kind == "withheld":
            return f"{pair}: nothing can be said, as {self.why}."
        if not (math.isfinite(self.low) and math.isfinite(self.high)):
            return f"{pair}: nothing is known yet at the highest fidelity."
        unit, factor = (" percentage points", 100.0) if self.rate else ("", 1.0)
        ground = "valid whenever you look" if self.kind == "valid" else f"an estimate: {self.why}"
        low, high = factor * self.low, factor * self.high
        seen = "" if math.isnan(self.estimate) else f" (observed {plain(factor * self.estimate, 3)})"
        end = f"{self._relative()}, at {percent(self.at_level)} ({ground})."
        if self.low >= 0:
            said = f"{self.label} is above the control {self.control_label} by"
            return f"{said} {plain(low, 3)} to {plain(high, 3)}{unit}{seen}{end}"
        if self.high <= 0:
            said = f"{self.label} is below the control {self.control_label} by"
            return f"{said} {plain(-high, 3)} to {plain(-low, 3)}{unit}{seen}{end}"
        said = f"{self.label} minus the control {self.control_label} is"
        return f"{said} {plain(low, 3)} to {plain(high, 3)}{unit}{seen}{end}"

    def _relative(self) -> str:
        ends = self.relative
        if ends is None:
            return ""
        low, high = (round(100 * end) for end in (ends if self.low >= 0 or self.high > 0 else (-ends[1], -ends[0])))
        return f", {low} % to {high} % of its observed {'rate' if self.rate else 'mean'}"

    def __str__(self) -> str:
        return self.sentence


def lift_of(findings: Findings, control: int, level: float) -> Lift | None:
    """Compute the lift of the best arm over the control; None without another active arm that has a result.

    Args:
        findings: what is known.
        control: the control.
        level: of the interval.
    """
    stats = findings.stats
    means = stats.top.means[0]
    try:
        arm = findings.best()
    except NoResults:
        return None
    if arm == control:
        others = np.where(stats.active & (stats.counts[-1] > 0), means, -np.inf)
        others[control] = -np.inf
        arm = int(others.argmax())
        if not math.isfinite(others[arm]):
            return None
    found = findings.difference(arm, control, level)
    noise = findings.fidelities.concentration
    return Lift(
        arm=arm,
        label=found.first_label,
        control=control,
        control_label=found.second_label,
        estimate=float(means[arm] - means[control]),
        low=found.low,
        high=found.high,
        at_level=level,
        control_mean=float(means[control]),
        rate=noise is not None and isinstance(findings.fidelities.tails[-1], Rate),
        level=found.level,
        kind=found.kind,
        why=found.why,
    )


def lift_record(lift: Lift | None) -> dict[str, Any] | None:
    """Return the lift ready for JSON, with its sentence; what is infinite or unknown is None.

    >>> lift_record(None) is None
    True
    """
    if lift is None:
        return None
    values = {name: value if _is_said(value) else None for name, value in asdict(lift).items()}
    relative = lift.relative
    return {**values, "relative": None if relative is None else list(relative), "sentence": lift.sentence}


def lift_from_record(record: Mapping[str, Any] | None) -> Lift | None:
    """Return the lift that :func:`lift_record` wrote.

    >>> lift_from_record(None) is None
    True
    """
    if record is None:
        return None
    known: dict[str, Any] = {field.name: record[field.name] for field in fields(Lift)}
    unknown = {"low": -math.inf, "high": math.inf, "estimate": math.nan, "control_mean": math.nan}
    return Lift(**{**known, **{name: value for name, value in unknown.items() if known[name] is None}})


def _is_said(value: object) -> bool:
    return not isinstance(value, float) or math.isfinite(value)


class KeptLift:
    """The lift that was computed last, for those who look again before there is another result."""

    def __init__(self) -> None:
        self._of: tuple[object, ...] | None = None
        self._lift: Lift | None = None

    def now(self, level: float, state: State, findings: Callable[[], Findings]) -> Lift | None:
        """The lift over the control now; None without a control.

        Args:
            level: of the interval.
            state: of the experiment.
            findings: returns what is known.
        """
        control = state.shares.control
        if control is None:
            return None
        active = state.stats.active.tobytes()
        known = (level, control, len(state.plays.told), active, state.policy, state.fidelities, len(state.refuted))
        if known != self._of:
            self._lift = lift_of(findings(), control, level)
            self._of = known
        return self._lift
