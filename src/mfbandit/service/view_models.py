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
from mfbandit.core import LEVEL, POSTERIOR, Audit, Bounds, Fidelities, Stats, audit
from mfbandit.errors import InvalidArgument
from mfbandit.experiment import (
    Confidence,
    Decided,
    Findings,
    Headline,
    bounds_of,
    conflicting,
    decision_text,
    doubt_left,
    percent,
    unmet_text,
    without_drifted,
)
from mfbandit.policies import Policy, uses_biases
from mfbandit.service.bias_words import BiasSentence, bias_sentences, suspicions
from mfbandit.service.certainty import UNKNOWN, Certainty
from mfbandit.service.event_words import event_words, outcome_words
from mfbandit.service.reward_unit import RewardUnit
from mfbandit.store import DurableExperiment, RecentActivity

LEADING_ARMS_SHOWN = 12
PENDING_SENTENCE = "How sure it is, is being worked out."
AGE_SHOWN_SECONDS = 3.0  # of how sure it is; the rest of a page is of now
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

    index: int
    label: str
    best: bool
    note: str
    plays: list[int]
    estimate: str
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
        row, headline, labels = _totals(experiment), experiment.headline(), experiment.arms
        decided = experiment.decided
    return {**row, "arms": len(labels), **_best(headline, labels, decided)}


def _totals(experiment: DurableExperiment) -> dict[str, Any]:
    capital, spent, reserved = experiment.capital, experiment.spent, experiment.reserved
    results, observations = sum(experiment.results_at), sum(experiment.observations_at)
    return {
        "name": experiment.name,
        "state": experiment.state,
        "share": _share(spent, capital),
        "reserved_share": _share(reserved, capital),
        "capital_text": _capital(spent, reserved, capital),
        "spent_text": readable(spent),
        "results": results,
        "observations": "" if observations == results else _plural(observations, "observation"),
        "alarm": bool(experiment.refuted),
    }


def _best(headline: Headline, labels: Sequence[str], decided: Decided | None) -> dict[str, Any]:
    best = None if headline.best is None else labels[headline.best]
    doubt = doubt_left(headline.doubt, decided=decided is not None and decided.arm == headline.best)
    return {"best": best, "doubt": _doubt(replace(headline, doubt=doubt), labels)}


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
        row, findings, pending = _totals(experiment), experiment.findings(), experiment.pending_count
        recently, refuted = experiment.recently(), {fidelity for fidelity, _ in experiment.refuted}
        retired, aside, now = set(experiment.retired), set(experiment.set_aside), experiment.now()
        incidents, decided, stop = experiment.incidents, experiment.decided, experiment.stop
        events, drift = experiment.events, experiment.drift()
    policy, stats, fidelities, labels = findings.policy, findings.stats, findings.fidelities, findings.labels
    bounds = _bounds(stats, fidelities, policy, labels)
    tested = findings.bias_stats
    found = audit_of(without_drifted(tested, findings.drifted), fidelities, labels)
    trust, headline = _Trust(policy, stats, fidelities, refuted), findings.headline()
    best, lift = headline.best, experiment.lift()
    spent = [steps[-1] if steps else 0.0 for steps in recently.spent]
    order = _order(bounds, best, refuted, len(labels))
    unit = RewardUnit.of(fidelities)
    low, high = unit.possible(*_range(bounds, order))
    estimates = _estimates(findings, order)
    sure = certainty.found if certainty.found is not None and certainty.found.best == best else None

    def note(k: int) -> str:
        return "retired" if k in retired else "set aside after failures" if k in aside else ""

    return {
        **row,
        "arms": len(labels),
        **_best(headline, labels, decided),
        "policy": repr(policy),
        "now": full_time(now),
        "pending": _plural(pending, "play"),
        "retired": len(retired),
        "set_aside": len(aside),
        "warnings": [*(found.warnings if found is not None and uses_biases(policy) else ()), *incidents],
        "audit_note": _audit_note(found, fidelities),
        "best_interval": _interval(bounds, best, trust),
        "best_index": best,
        "best_estimate": "" if best is None else _known(estimates[0]),
        "sure": sure.said(unit.gap) if sure is not None else PENDING_SENTENCE if certainty.found is not None else "",
        "known": certainty.found is not None,
        "standing": standing(decided, headline, sure),
        "level": None if sure is None or sure.kind == "withheld" else sure.level,
        "level_text": "" if sure is None else _level(sure),
        "could_lose": "" if sure is None else _could_lose(sure, unit),
        "kind": "" if sure is None else sure.kind,
        "bias_words": [
            *(BiasSentence("misleads", one.sentence) for one in drift),
            *suspicions(order, found, policy, stats, fidelities, labels),
            *(bias_sentences(found, tested, fidelities, labels) if uses_biases(policy) else ()),
        ],
        "sure_as_of": _as_of(certainty, events, now),
        "lift": "" if lift is None else lift.sentence,
        "shares": experiment.shares.words(labels),
        "stop": "" if stop is None else stop.said(unit.gap),
        "unmet": "" if stop is None else unmet_text(row["state"], type(policy).__name__),
        "decided": "" if decided is None else decision_text(decided, labels[decided.arm], unit.gap),
        "decided_level": "" if decided is None else _decided_level(decided),
        "series": json.dumps(_series(recently, fidelities)),
        "fidelities": _fidelities(fidelities, stats, spent, found),
        "fidelity_names": list(fidelities.labels),
        "bounds_kind": "95 % posterior intervals" if _is_posterior(bounds) else "Bounds at each fidelity",
        "axis": f"from {unit.value(low)} to {unit.value(high)}" if math.isfinite(low) else "none yet",
        "leading": [
            _arm(k, bounds, labels, best, note(k), (low, high), estimate, stats.results[:, k].tolist())
            for k, estimate in zip(order, estimates, strict=True)
        ],
        "more_arms": len(labels) - len(order),
        "more_text": _rest(stats.results.sum(axis=0), order),
        "latest": [
            {
                "when": short_time(time, now),
                "label": play.label,
                "fidelity": fidelities.labels[play.fidelity],
                "outcome": outcome_words(outcome),
            }
            for time, play, outcome in recently.plays
        ],
        "leases": [
            {"label": play.label, "fidelity": fidelities.labels[play.fidelity], "until": short_time(due, now)}
            for play, due in recently.leases
        ],
        "events": [
            {
                "when": short_time(record.time, now),
                "who": record.actor or "-",
                "text": event_words(record.event, labels, fidelities.labels),
            }
            for record in recently.events
        ],
    }


def _estimates(findings: Findings, order: Sequence[int]) -> list[str]:
    """Where the means of these arms lie, each as a middle and half a width."""
    unit, found = RewardUnit.of(findings.fidelities), findings.means(np.array(order, dtype=np.int64))
    if found.kind == "withheld":
        return ["-"] * len(order)
    tried = findings.stats.results[:, list(order)].sum(axis=0) > 0
    ends = zip(tried.tolist(), found.low.tolist(), found.high.tolist(), strict=True)
    return [unit.estimate(low, high) if known else "-" for known, low, high in ends]


def _known(estimate: str) -> str:
    return "" if estimate in ("-", "contradictory") else estimate


def standing(decided: Decided | None, headline: Headline, found: Confidence | None) -> str:
    """Say in a word how far the best arm can be relied on: "decided", "sure", "not sure yet" or "in doubt".

    It is sure only where a valid answer says so at 95 %. An arm that is not the best after all is never called sure
    because nobody doubted it.

    Args:
        decided: what was decided, if anything was.
        headline: the best arm, and whether that is in doubt.
        found: how sure it is that this one is the best; None where that is not known yet.

    >>> standing(None, Headline(1), None), standing(None, Headline(1, "its bias is refuted"), None)
    ('not sure yet', 'in doubt')
    """
    if headline.best is None:
        return ""
    if decided is not None and decided.arm == headline.best:
        return "decided"
    if headline.doubt is not None:
        return "in doubt"
    sure = found is not None and found.kind == "valid" and found.level >= LEVEL
    return "sure" if sure else "not sure yet"


def _level(found: Confidence) -> str:
    if found.kind == "withheld":
        return "unknown"
    return percent(found.level) if found.level > 0 else "not yet"


def _decided_level(decided: Decided) -> str:
    return "by its rule" if decided.level is None else percent(decided.level)


def _could_lose(found: Confidence, unit: RewardUnit) -> str:
    return unit.gap(found.could_lose) if math.isfinite(found.could_lose) else ""


def _as_of(certainty: Certainty, events: int, now: float) -> str:
    """Say how old it is where more has happened since, and that may matter."""
    if certainty.found is None or certainty.events == events:
        return ""
    age = now - certainty.at
    return f"as of {age:.0f} s ago" if age >= AGE_SHOWN_SECONDS else ""


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


def audit_of(stats: Stats, fidelities: Fidelities, labels: Sequence[str]) -> Audit | None:
    """Test the biases; None where the noise is not known, so that they cannot be tested."""
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
    note: str,
    ends: tuple[float, float],
    estimate: str,
    results: Sequence[int],
) -> ArmView:
    if bounds is None:
        return ArmView(k, labels[k], k == best, note, list(results), estimate, [], "no bounds")
    intervals = [_drawn(bounds, m, k, ends) for m in range(len(bounds.plays))]
    parts = (
        f"fidelity {bounds.fidelities[m]}: {_number(bounds.lower[m, k])} to {_number(bounds.upper[m, k])}"
        for m in range(len(intervals))
        if math.isfinite(bounds.lower[m, k])
    )
    text = f"{labels[k]}: {'; '.join(parts) or 'no result yet'}"
    plays = bounds.plays[:, k].tolist()
    return ArmView(k, labels[k], k == best, note, plays, estimate, intervals, text)


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


def _fidelities(fidelities: Fidelities, stats: Stats, spent: list[float], found: Audit | None) -> list[dict[str, Any]]:
    total, results, observations = sum(spent), stats.results.sum(axis=1), stats.counts.sum(axis=1)
    rows = []
    for m, name in enumerate(fidelities.labels):
        share = spent[m] / total if total else 0.0
        row = {
            "name": name,
            "cost": plain(fidelities.costs[m]),
            "results": f"{results[m]:,}",
            "observations": f"{observations[m]:,}",
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
    return plain(value, 3) if math.isfinite(value) else "-"


def short_time(time: float, now: float) -> str:
    """Return the time of day, and the date too where it is not today.

    >>> short_time(0.0, 60.0), short_time(0.0, 1e9)
    ('00:00:00', '1970-01-01 00:00')
    """
    when, today = datetime.fromtimestamp(time, UTC), datetime.fromtimestamp(now, UTC)
    return f"{when:%H:%M:%S}" if when.date() == today.date() else f"{when:%Y-%m-%d %H:%M}"


def full_time(time: float) -> str:
    """Return date and time.

    >>> full_time(0.0)
    '1970-01-01 00:00:00 UTC'
    """
    return f"{datetime.fromtimestamp(time, UTC):%Y-%m-%d %H:%M:%S} UTC"
