"""One arm: what is known of it, its history, results by fidelity, what happened to it, and notes about it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mfbandit._internal.formatting import plain, readable
from mfbandit._internal.typing import FloatArray
from mfbandit.core import Fidelities
from mfbandit.errors import InvalidArgument
from mfbandit.experiment import ArmHistory, without_drifted
from mfbandit.service.arm_table import ArmTable
from mfbandit.service.bias_words import BiasSentence, arm_bias_sentences
from mfbandit.service.certainty_view import BOTTOM, LEFT, RIGHT, TOP, Tick, ticks
from mfbandit.service.event_words import event_words
from mfbandit.service.reward_unit import RewardUnit
from mfbandit.service.view_models import audit_of, short_time
from mfbandit.store import DurableExperiment

POINTS_DRAWN = 120  # of a line
LATEST_RESULTS = 12
EVENTS_SHOWN = 50


@dataclass(frozen=True)
class Line:
    """The mean of an arm at one fidelity, as it was after each result.

    Args:
        fidelity: its index.
        name: its name.
        path: the line, in the words of SVG.
        end: where it ends.
    """

    fidelity: int
    name: str
    path: str
    end: tuple[float, float]


@dataclass(frozen=True)
class MeansChart:
    """The means of an arm as looks at it came in.

    Args:
        lines: one for each fidelity with results.
        heights: the ticks of the vertical axis.
        widths: the ticks of the horizontal one.
        text: the same in words.
    """

    lines: list[Line]
    heights: list[Tick]
    widths: list[Tick]
    text: str


def arm_view(experiment: DurableExperiment, table: ArmTable, arm: int) -> dict[str, Any]:
    """Return everything on the page of an arm.

    Args:
        experiment: the experiment.
        table: all arms, of a moment ago.
        arm: which one.
    """
    with experiment.still():
        history, now = experiment.arm_history(arm), experiment.now()
        numbers = experiment.story(arm=arm)[-EVENTS_SHOWN:][::-1]
    found, unit = table.findings, table.unit
    fidelities, labels = found.fidelities, experiment.arms
    row = table.rows(np.array([arm]))[0]
    ends = found.means(np.array([arm]))
    tested = found.bias_stats
    best, tests = table.best, audit_of(without_drifted(tested, found.drifted), fidelities, labels)
    return {
        "index": arm,
        "label": labels[arm],
        "mark": table.mark(arm),
        "is_best": arm == best,
        "best": None if best is None or best == arm else (best, labels[best]),
        "estimate": row.estimate,
        "interval": unit.interval(float(ends.low[0]), float(ends.high[0])),
        "kind": ends.kind,
        "rival": row.rival,
        "against_best": _against_best(table, arm),
        "looks": f"{len(history.numbers):,}",
        "spent": readable(float(history.costs.sum())),
        "rows": [_row(m, arm, table, history) for m in range(len(fidelities))],
        "bias": [*_drift(experiment, arm), *arm_bias_sentences(arm, tests, found.policy, tested, fidelities, labels)],
        "chart": means_chart(history, fidelities, unit),
        "latest": _latest(history, fidelities, unit),
        "events": [
            {
                "when": short_time(one.time, now),
                "who": one.actor or "-",
                "text": event_words(one.event, labels, fidelities.labels),
            }
            for one in experiment.told(numbers)
        ],
        "retired": arm in table.retired,
        "aside": arm in table.aside,
    }


def _drift(experiment: DurableExperiment, arm: int) -> list[BiasSentence]:
    return [BiasSentence("misleads", one.sentence) for one in experiment.drift() if one.arm == arm]


def _against_best(table: ArmTable, arm: int) -> str:
    if table.best is None or arm == table.best or not table.findings.stats.counts[:, arm].any():
        return ""
    return table.findings.difference(arm, table.best, 0.95).said(table.unit.gap)


def _row(m: int, arm: int, table: ArmTable, history: ArmHistory) -> dict[str, str]:
    found, unit = table.findings, table.unit
    stats, here = found.stats, history.fidelities == m
    results, observations = int(stats.results[m, arm]), int(stats.counts[m, arm])
    bounds = table.bounds
    known = bounds is not None and results > 0
    low, high = (float(bounds.lower[m, arm]), float(bounds.upper[m, arm])) if bounds is not None else (0.0, 0.0)
    return {
        "name": found.fidelities.labels[m],
        "cost": plain(found.fidelities.costs[m]),
        "results": f"{results:,}",
        "observations": "" if observations == results else f"{observations:,}",
        "mean": unit.value(float(stats.means[m, arm]), 4) if results else "-",
        "allows": unit.interval(low, high) or "-" if known else "-",
        "pending": f"{int(stats.pending[m, arm]):,}",
        "spent": readable(float(history.costs[here].sum())),
    }


def _latest(history: ArmHistory, fidelities: Fidelities, unit: RewardUnit) -> list[dict[str, str]]:
    places = range(len(history.numbers) - 1, max(-1, len(history.numbers) - 1 - LATEST_RESULTS), -1)
    return [
        {
            "number": f"{int(history.numbers[i]):,}",
            "fidelity": fidelities.labels[int(history.fidelities[i])],
            "result": unit.value(float(history.rewards[i]), 4),
            "weight": f"{int(history.weights[i]):,}",
        }
        for i in places
    ]


def means_chart(history: ArmHistory, fidelities: Fidelities, unit: RewardUnit) -> MeansChart | None:
    """Draw how the means of an arm moved; None with fewer than two results.

    Args:
        history: its results.
        fidelities: of the experiment.
        unit: of rewards.
    """
    if len(history.numbers) < 2:  # noqa: PLR2004 - a line has two ends
        return None
    running = {m: _running(history, m) for m in range(len(fidelities)) if int((history.fidelities == m).sum())}
    values = unit.factor * np.concatenate([means for _, means in running.values()])
    low, high = float(values.min()), float(values.max())
    margin = 0.08 * (high - low) or 0.5 * abs(high) or 1.0
    low, high = low - margin, high + margin
    across, up = (RIGHT - LEFT) / len(history.numbers), (BOTTOM - TOP) / (high - low)
    lines = []
    for m, (looks, means) in running.items():
        points = [(LEFT + across * x, BOTTOM - up * (unit.factor * y - low)) for x, y in zip(looks, means, strict=True)]
        path = "M" + " L".join(f"{x:.1f} {y:.1f}" for x, y in points)
        lines.append(Line(m, fidelities.labels[m], path, points[-1]))
    heights = [Tick(BOTTOM - up * (value - low), f"{plain(value, 3)}{unit.suffix}") for value in _between(low, high)]
    widths = [Tick(LEFT + across * value, readable(value)) for value in ticks(float(len(history.numbers)))]
    last = "; ".join(f"{fidelities.labels[m]} {unit.value(float(means[-1]))}" for m, (_, means) in running.items())
    return MeansChart(lines, heights, widths, f"Means over the looks at this arm, at the end: {last}")


def _running(history: ArmHistory, m: int) -> tuple[FloatArray, FloatArray]:
    """How many looks there were, and the mean at a fidelity, after each of its results; thinned out."""
    here = np.flatnonzero(history.fidelities == m)
    weights = history.weights[here]
    means = np.cumsum(history.rewards[here] * weights) / np.cumsum(weights)
    kept = np.unique(np.linspace(0, len(here) - 1, min(len(here), POINTS_DRAWN)).astype(np.int64))
    return (here[kept] + 1).astype(np.float64), means[kept]


def _between(low: float, high: float) -> Sequence[float]:
    """Round numbers between two, three to six of them."""
    step = ticks(high - low)[1]
    first = int(np.ceil(low / step))
    return [step * number for number in range(first, int(np.floor(high / step)) + 1)]


def arm_index(text: str, labels: Sequence[str]) -> int:
    """Return the arm that somebody means: its name, or its index with a # before it.

    >>> arm_index("b", ["a", "b"]), arm_index("#0", ["a", "b"])
    (1, 0)
    """
    known = {label: arm for arm, label in enumerate(labels)}
    digits = text.removeprefix("#")
    if text in known:
        return known[text]
    if text.startswith("#") and digits.isdecimal() and len(digits) < 10 and int(digits) < len(labels):  # noqa: PLR2004
        return int(digits)
    raise InvalidArgument(f"arm must be the name of an arm, got {text!r}")
