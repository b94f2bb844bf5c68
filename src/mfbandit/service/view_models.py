"""What the pages show: the numbers of an experiment as texts and coordinates, without a line of HTML."""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np

from mfbandit._internal.formatting import plain, readable
from mfbandit._internal.typing import IntArray
from mfbandit.core import POSTERIOR, Audit, Bounds, Fidelities, Stats, audit
from mfbandit.errors import InvalidArgument
from mfbandit.experiment import (
    FIELDS,
    ArmAdded,
    ArmReinstated,
    ArmRestored,
    ArmRetired,
    ArmSetAside,
    BiasRefuted,
    Decided,
    Event,
    Failed,
    Headline,
    LeasesExtended,
    StopSet,
    Told,
    bounds_of,
    conflicting,
    decision_text,
    stop_from_record,
)
from mfbandit.policies import Policy, uses_biases
from mfbandit.service.certainty import UNKNOWN, Certainty
from mfbandit.service.certainty_view import certainty_view
from mfbandit.store import DurableExperiment, RecentActivity

LEADING_ARMS_SHOWN = 12
DRAWING_WIDTH, DRAWING_MARGIN = 300.0, 6.0  # of an arm's bounds, in units of the SVG


@dataclass(frozen=True)
class Interval:
    """Where the bounds and the mean of an arm at a fidelity are drawn."""

    low: float
    high: float
    mean: float


@dataclass(frozen=True)
class ArmView:
    """A row of the table of leading arms."""

    label: str
    best: bool
    note: str
    plays: list[int]
    lower: str
    upper: str
    intervals: list[Interval | None]
    text: str


def list_row(experiment: DurableExperiment) -> dict[str, Any]:
    """Return a row of the list of experiments.

    >>> import tempfile
    >>> from mfbandit import UCB, Bounded, Store
    >>> with tempfile.TemporaryDirectory() as folder, Store(f"{folder}/ads.db") as store:
    ...     ads = store.create("ads", UCB(), arms=2, fidelities=Fidelities([1], None, Bounded()), capital=9)
    ...     list_row(ads)["state"]
    'running'
    """
    with experiment.still():
        capital, spent, reserved = experiment.capital, experiment.spent, experiment.reserved
        state, labels, results = experiment.state, experiment.arms, sum(experiment.results_at)
        alarm, headline = bool(experiment.refuted), experiment.headline()
    return {
        "name": experiment.name,
        "state": state,
        "share": _share(spent, capital),
        "reserved_share": _share(reserved, capital),
        "capital_text": _capital(spent, reserved, capital),
        "spent_text": readable(spent),
        "results": results,
        "arms": len(labels),
        "alarm": alarm,
        "best": None if headline.best is None else labels[headline.best],
        "doubt": _doubt(headline, labels),
    }


def unread_row(name: str, state: str, detail: str) -> dict[str, Any]:
    """Return a row of the list of experiments for one whose numbers are not known.

    >>> unread_row("ads", "damaged", "its log is damaged")["state"]
    'damaged'
    """
    return {"name": name, "state": state, "detail": detail}


def experiment_view(experiment: DurableExperiment, certainty: Certainty = UNKNOWN) -> dict[str, Any]:
    """Return everything on the page of an experiment.

    Args:
        experiment: the experiment.
        certainty: how sure it is, computed before.

    >>> import tempfile
    >>> from mfbandit import UCB, Bounded, Store
    >>> with tempfile.TemporaryDirectory() as folder, Store(f"{folder}/ads.db") as store:
    ...     experiment_view(store.create("ads", UCB(), arms=2, fidelities=Fidelities([1], None, Bounded())))["pending"]
    '0 plays'
    """
    with experiment.still():  # everything is read at once, and worked out while the experiment goes on
        row, headline, pending = list_row(experiment), experiment.headline(), experiment.pending_count
        stats, recently, labels = experiment.stats, experiment.recently(), experiment.arms
        policy, fidelities = experiment.policy, experiment.fidelities
        refuted = {fidelity for fidelity, _ in experiment.refuted}
        retired, aside, now = set(experiment.retired), set(experiment.set_aside), experiment.now()
        incidents, decided, stop = experiment.incidents, experiment.decided, experiment.stop
    bounds, found = _bounds(stats, fidelities, policy, labels), _audit(stats, fidelities, labels)
    trust = _Trust(policy, stats, fidelities, refuted)
    best = headline.best
    spent = [steps[-1] if steps else 0.0 for steps in recently.spent]
    order = _order(bounds, best, refuted, len(labels))
    low, high = _range(bounds, order)
    return {
        **row,
        "policy": repr(policy),
        "now": _when(now),
        "pending": _plural(pending, "play"),
        "retired": len(retired),
        "set_aside": len(aside),
        "warnings": [*(found.warnings if found is not None and uses_biases(policy) else ()), *incidents],
        "audit_note": _audit_note(found, fidelities),
        "best_interval": _interval(bounds, best, trust),
        "sure": certainty_view(certainty, labels),
        "stop": "" if stop is None else stop.sentence,
        "decided": "" if decided is None else decision_text(decided, labels[decided.arm]),
        "series": json.dumps(_series(recently, fidelities)),
        "fidelities": _fidelities(fidelities, stats.counts.sum(axis=1).tolist(), spent, found),
        "fidelity_names": list(fidelities.labels),
        "biases_text": ", ".join(plain(bias, thousands="") for bias in fidelities.biases or ()),
        "bounds_kind": "95 % posterior intervals" if _is_posterior(bounds) else "Bounds at each fidelity",
        "axis": f"from {_number(low)} to {_number(high)}" if math.isfinite(low) else "none yet",
        "leading": [_arm(k, bounds, labels, best, retired, aside, (low, high), trust) for k in order],
        "more_arms": len(labels) - len(order),
        "more_text": _rest(stats.counts.sum(axis=0), order),
        "latest": [
            {
                "when": _short(time, now),
                "label": play.label,
                "fidelity": fidelities.labels[play.fidelity],
                "outcome": _outcome(outcome),
            }
            for time, play, outcome in recently.plays
        ],
        "leases": [
            {"label": play.label, "fidelity": fidelities.labels[play.fidelity], "until": _short(due, now)}
            for play, due in recently.leases
        ],
        "events": [
            {"when": _short(record.time, now), "text": _event(record.event, labels, fidelities.labels)}
            for record in recently.events
        ],
    }


@dataclass(frozen=True, eq=False)
class _Trust:
    """Which fidelities an interval is worked out from: a conflict between two must not look like precision."""

    policy: Policy
    stats: Stats
    fidelities: Fidelities
    refuted: set[int]

    def rows(self, arm: int) -> list[int]:
        """The fidelities whose bounds hold for an arm, as far as is known; the highest at least."""
        left_out = self.refuted.union(conflicting(self.policy, self.stats, self.fidelities, arm))
        return [m for m in range(len(self.fidelities)) if m not in left_out]


def _doubt(headline: Headline, labels: Sequence[str]) -> str:
    if headline.doubt is None:
        return ""
    other = "" if headline.runner_up is None else f"or {labels[headline.runner_up]}: "
    return f"{other}{headline.doubt}"


def _bounds(stats: Stats, fidelities: Fidelities, policy: Policy, labels: Sequence[str]) -> Bounds | None:
    """Return the table of bounds; None where the noise is not known, so that there are none."""
    try:
        return bounds_of(policy, stats, fidelities, labels)
    except InvalidArgument:
        return None


def _audit(stats: Stats, fidelities: Fidelities, labels: Sequence[str]) -> Audit | None:
    try:
        return audit(stats, fidelities, labels)
    except InvalidArgument:
        return None


def _is_posterior(bounds: Bounds | None) -> bool:
    return bounds is not None and bounds.kind == POSTERIOR


def _order(bounds: Bounds | None, best: int | None, refuted: set[int], arms: int) -> list[int]:
    """Order arms: the best first, then by their highest lower bound or posterior estimate; those without one last."""
    if bounds is None:
        return sorted(range(arms), key=lambda arm: arm != best)[:LEADING_ARMS_SHOWN]
    rows = [m for m in range(len(bounds.lower)) if m not in refuted]
    kept = replace(bounds, lower=bounds.lower[rows], upper=bounds.upper[rows])
    return kept.ranked(first=best)[:LEADING_ARMS_SHOWN]


def _range(bounds: Bounds | None, order: Sequence[int]) -> tuple[float, float]:
    """Return the ends of the drawing: the lowest and highest finite bound or mean of the arms shown."""
    if bounds is None:
        return -math.inf, math.inf
    lower, upper, means = (array[:, list(order)] for array in (bounds.lower, bounds.upper, bounds.means))
    seen = np.isfinite(means)
    if not seen.any():
        return -math.inf, math.inf
    ends = [*lower[np.isfinite(lower)].tolist(), *upper[np.isfinite(upper)].tolist(), *means[seen].tolist()]
    return min(ends), max(ends)


def _arm(
    k: int,
    bounds: Bounds | None,
    labels: Sequence[str],
    best: int | None,
    retired: set[int],
    aside: set[int],
    ends: tuple[float, float],
    trust: _Trust,
) -> ArmView:
    note = "retired" if k in retired else "set aside after failures" if k in aside else ""
    if bounds is None:
        seen = trust.stats.counts[:, k].tolist()
        return ArmView(labels[k], k == best, note, seen, "-", "-", [], "no bounds")
    intervals = [_drawn(bounds, m, k, ends) for m in range(len(bounds.plays))]
    lower, upper = _ends(bounds, k, trust)
    parts = (
        f"fidelity {bounds.fidelities[m]}: {_number(bounds.lower[m, k])} to {_number(bounds.upper[m, k])}"
        for m in range(len(intervals))
        if math.isfinite(bounds.lower[m, k])
    )
    text = f"{labels[k]}: {'; '.join(parts) or 'no result yet'}"
    plays = bounds.plays[:, k].tolist()
    return ArmView(labels[k], k == best, note, plays, _number(lower), _number(upper), intervals, text)


def _drawn(bounds: Bounds, m: int, k: int, ends: tuple[float, float]) -> Interval | None:
    lower, upper, mean = float(bounds.lower[m, k]), float(bounds.upper[m, k]), float(bounds.means[m, k])
    if not math.isfinite(lower) or not math.isfinite(upper):
        return None
    if bounds.kind == POSTERIOR:
        mean = (lower + upper) / 2
    low, high = ends
    span = (high - low) or 1.0

    def place(value: float) -> float:
        share = min(max((value - low) / span, 0.0), 1.0)
        return round(DRAWING_MARGIN + (DRAWING_WIDTH - 2 * DRAWING_MARGIN) * share, 1)

    return Interval(place(lower), place(upper), place(mean))


def _ends(bounds: Bounds, arm: int, trust: _Trust) -> tuple[float, float]:
    rows = trust.rows(arm)
    return float(bounds.lower[rows, arm].max()), float(bounds.upper[rows, arm].min())


def _interval(bounds: Bounds | None, best: int | None, trust: _Trust) -> str:
    if bounds is None or best is None:
        return ""
    low, high = _ends(bounds, best, trust)
    if low > high:
        return "its bounds contradict each other: a bias does not hold"
    rows = trust.rows(best)
    at = "" if len(rows) == len(bounds.lower) else f" at fidelity {', '.join(bounds.fidelities[m] for m in rows)}"
    by = "95 % posterior interval" if bounds.kind == POSTERIOR else "bounds"
    return f"between {_number(low)} and {_number(high)}, by its {by}{at}" if math.isfinite(high - low) else ""


def _series(recently: RecentActivity, fidelities: Fidelities) -> dict[str, Any]:
    names = [f"fidelity {name}" for name in fidelities.labels]
    return {"names": names, "times": recently.times, "spent": recently.spent}


def _fidelities(
    fidelities: Fidelities, results: list[int], spent: list[float], found: Audit | None
) -> list[dict[str, Any]]:
    total = sum(spent)
    rows = []
    for m, name in enumerate(fidelities.labels):
        share = spent[m] / total if total else 0.0
        row = {
            "name": name,
            "cost": plain(fidelities.costs[m]),
            "results": f"{results[m]:,}",
            "spent": readable(spent[m]),
            "share": share,
            "share_text": f"{share:.0%} of what was spent",
            "bias": "-" if fidelities.biases is None else plain(fidelities.biases[m]),
        }
        rows.append(row | _audited(found, m))
    return rows


def _audited(found: Audit | None, m: int) -> dict[str, str]:
    if found is None or m >= len(found.fidelities) or not found.fidelities[m].arms:
        return {"needed": "-", "enough": "-", "offset": "-"}
    one = found.fidelities[m]
    offset = f"{_number(one.offset)} ({_number(one.offset_low)} to {_number(one.offset_high)})"
    return {"needed": _number(one.needed), "enough": _number(one.enough), "offset": offset}


def _audit_note(found: Audit | None, fidelities: Fidelities) -> str:
    if found is None:
        return "Whether biases hold cannot be tested: the noise is not known."
    if len(fidelities) == 1:
        return ""
    return (
        "At least: the smallest bias that no arm's results refute. Enough: a bias that covers all that they leave "
        "possible. Offset: how much more the top fidelity gives than this one, on average over arms."
    )


def _rest(counts: IntArray, order: Sequence[int]) -> str:
    rest = np.delete(counts, list(order))
    untouched = int((rest == 0).sum())
    return f"{int(rest.sum()):,} results among them, {untouched:,} without any" if len(rest) else ""


def _outcome(outcome: Event | None) -> str:
    match outcome:
        case Told(_, reward, _):
            return plain(reward)
        case Failed():
            return "failed"
    return "lease ran out"


_ARM_EVENTS: dict[type[Event], str] = {
    ArmRetired: "arm retired",
    ArmSetAside: "arm set aside after failures",
    ArmRestored: "arm restored",
    ArmReinstated: "retired arm brought back",
}


def _event(event: Event, labels: Sequence[str], names: Sequence[str]) -> str:
    match event:
        case ArmAdded(label):
            return f"arm added: {label}"
        case ArmRetired(arm) | ArmSetAside(arm) | ArmRestored(arm) | ArmReinstated(arm):
            return f"{_ARM_EVENTS[type(event)]}: {labels[arm]}"
        case LeasesExtended(seconds):
            return f"leases extended by {readable(seconds)} s: the service was away, or the clock jumped"
        case BiasRefuted(fidelity, arm, needed):
            return (
                f"bias of fidelity {names[fidelity]} refuted by {labels[arm]}: it must be at least {plain(needed, 3)}"
            )
        case StopSet() | Decided():
            return _stopping(event, labels)
    kind = type(event)
    words = {"Paused": "paused", "Resumed": "resumed", "CapitalSet": "capital set", "PolicySet": "policy set"}
    words |= {"Noted": "note", "BiasesSet": "biases set", "BiasesWidened": "refuted biases widened"}
    name = words.get(kind.__name__, kind.__name__)
    values = ", ".join(_value(getattr(event, field)) for field in FIELDS[kind])
    return f"{name}: {values}" if values else name


def _stopping(event: StopSet | Decided, labels: Sequence[str]) -> str:
    if isinstance(event, Decided):
        return f"decided: {decision_text(event, labels[event.arm])}"
    rule = stop_from_record(event.stop)
    return f"rule for stopping set: {'none' if rule is None else rule.sentence}"


def _value(value: object) -> str:
    match value:
        case None:
            return "unlimited"
        case float():
            return readable(value)
        case list() | tuple():
            return ", ".join(map(_value, value))
    return str(value)


def _plural(number: int, thing: str) -> str:
    return f"{number:,} {thing}{'s' * (number != 1)}"


def _share(part: float, capital: float | None) -> float:
    return 0.0 if capital is None else min(part / capital, 1.0)


def _capital(spent: float, reserved: float, capital: float | None) -> str:
    kept = f"{readable(reserved)} reserved" if reserved else "nothing reserved"
    if capital is None:
        return f"spent of unlimited capital, {kept}"
    return f"{spent / capital:.1%} of {readable(capital)} spent, {kept}"


def _number(value: float) -> str:
    return plain(value, 4) if math.isfinite(value) else "-"


def _short(time: float, now: float) -> str:
    """Return the time of day, and the date too where it is not today."""
    when, today = datetime.fromtimestamp(time, UTC), datetime.fromtimestamp(now, UTC)
    return f"{when:%H:%M:%S}" if when.date() == today.date() else f"{when:%Y-%m-%d %H:%M}"


def _when(time: float) -> str:
    return f"{datetime.fromtimestamp(time, UTC):%Y-%m-%d %H:%M:%S} UTC"
