"""How sure an experiment is, as texts and coordinates for its page."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

from mfbandit._internal.formatting import plain, readable
from mfbandit.experiment import Confidence
from mfbandit.service.certainty import Certainty
from mfbandit.service.reward_unit import RewardUnit

RIVALS_SHOWN = 12
PLAIN = RewardUnit()
LEFT, RIGHT, TOP, BOTTOM = 48.0, 472.0, 8.0, 150.0  # of a chart's drawing, in units of its SVG
MOST_STEPS = 5  # between the ticks of an axis


@dataclass(frozen=True)
class RivalView:
    """A row of the table of rivals.

    Args:
        label: the arm's name.
        ahead: by how much it could be better.
        share: the same, as a share of the largest.
    """

    label: str
    ahead: str
    share: float


class Tick(NamedTuple):
    """A number beside an axis, and where it is drawn."""

    at: float
    text: str


@dataclass(frozen=True)
class Chart:
    """A line over the capital spent.

    Args:
        title: what it shows.
        path: the line, in the words of SVG; what is not known is a gap.
        heights: the ticks of the vertical axis.
        widths: the ticks of the horizontal one.
        text: the same in words.
    """

    title: str
    path: str
    heights: list[Tick]
    widths: list[Tick]
    text: str


def certainty_view(certainty: Certainty, labels: Sequence[str], unit: RewardUnit = PLAIN) -> dict[str, Any]:
    """Return what a page shows of it.

    Args:
        certainty: how sure it is.
        labels: the names of all arms.
        unit: of rewards.

    >>> certainty_view(Certainty(), ["a", "b"])["rivals"]
    []
    """
    found = certainty.found
    return {
        "assumes": [] if found is None else list(found.assumes),
        "rivals": [] if found is None else _rivals(found, labels, unit),
        "more_rivals": 0 if found is None else max(0, len(found.rivals) - RIVALS_SHOWN),
        "at_level": "" if found is None else f"{plain(100 * found.at_level)} %",
        "charts": _charts(certainty, unit),
        "leaders": leaders(certainty, labels),
        "drawn_to": "" if certainty.whole or not certainty.trend else readable(certainty.trend[-1].spent),
    }


@dataclass(frozen=True)
class Reign:
    """A stretch of spending through which one arm led.

    Args:
        label: the arm's name.
        colour: a number for the arm's colour.
        x: where it begins in a drawing.
        width: how wide it is there.
        text: the same in words.
    """

    label: str
    colour: int
    x: float
    width: float
    text: str


def leaders(certainty: Certainty, labels: Sequence[str]) -> list[Reign]:
    """Say which arm led while the capital was spent.

    Args:
        certainty: how sure it is, and was.
        labels: the names of all arms.

    >>> from mfbandit.experiment import TrendPoint
    >>> trend = [TrendPoint(1.0, 0.0, 1.0, 0), TrendPoint(2.0, 0.0, 1.0, 1), TrendPoint(4.0, 0.9, 0.1, 1)]
    >>> [one.text for one in leaders(Certainty(trend=tuple(trend)), ["a", "b"])]
    ['a until 2 was spent', 'b since then']
    >>> [one.text for one in leaders(Certainty(trend=tuple(trend), whole=False), ["a", "b"])]
    ['a until 2 was spent', 'b up to 4 spent']
    """
    points = [point for point in certainty.trend if point.leader is not None]
    if not points or points[-1].spent <= 0:
        return []
    begins = [0, *(i for i in range(1, len(points)) if points[i].leader != points[i - 1].leader), len(points)]
    colours: dict[int | None, int] = {}
    reigns: list[Reign] = []
    across = (RIGHT - LEFT) / points[-1].spent
    for first, after in pairwise(begins):
        arm = points[first].leader
        start = 0.0 if first == 0 else points[first].spent
        end = points[after].spent if after < len(points) else points[-1].spent
        if after < len(points):
            when = f"until {readable(end)} was spent"
        elif certainty.whole:
            when = "since then" if reigns else "all the time"
        else:
            when = f"up to {readable(end)} spent"
        colour = colours.setdefault(arm, len(colours) % 6)
        label = labels[arm or 0]
        reigns.append(Reign(label, colour, LEFT + across * start, across * (end - start), f"{label} {when}"))
    return reigns


def _rivals(found: Confidence, labels: Sequence[str], unit: RewardUnit) -> list[RivalView]:
    if found.kind == "withheld":
        return []
    largest = max((ahead for ahead in found.could_be_ahead if math.isfinite(ahead)), default=0.0)
    pairs = list(zip(found.rivals, found.could_be_ahead, strict=True))[:RIVALS_SHOWN]
    return [RivalView(labels[arm], unit.gap(ahead), _share(ahead, largest)) for arm, ahead in pairs]


def _share(ahead: float, largest: float) -> float:
    if not math.isfinite(ahead):
        return 1.0
    return ahead / largest if largest > 0 else 0.0


def _charts(certainty: Certainty, unit: RewardUnit) -> list[Chart]:
    points = certainty.trend
    if not points[1:] or points[-1].spent <= 0:
        return []
    spent = [point.spent for point in points]
    percent = [100 * point.level for point in points]
    loss = [unit.factor * point.could_lose for point in points]
    level = "" if certainty.found is None else f" at {plain(100 * certainty.found.at_level)} %"
    return [
        _chart("Confidence that the leader is the best, %", spent, percent, highest=100.0),
        _chart(f"Possible loss{level}{unit.gap_suffix and ','}{unit.gap_suffix}", spent, loss, highest=_highest(loss)),
    ]


def _highest(loss: Sequence[float]) -> float:
    """The top of the drawing: the first losses are large and short, so that they may lie outside of it."""
    known = sorted(value for value in loss if math.isfinite(value))
    return 1.25 * known[(3 * len(known)) // 4] or known[-1] or 1.0 if known else 1.0


def _chart(title: str, spent: Sequence[float], values: Sequence[float], highest: float) -> Chart:
    across, up = (RIGHT - LEFT) / spent[-1], (BOTTOM - TOP) / highest
    path, begun = [], False
    for x, value in zip(spent, values, strict=True):
        shown = math.isfinite(value) and value <= highest
        if shown:
            path.append(f"{'L' if begun else 'M'}{LEFT + across * x:.1f} {BOTTOM - up * value:.1f}")
        begun = shown
    last = f"{plain(values[-1], 3)} after {readable(spent[-1])}" if math.isfinite(values[-1]) else "not known yet"
    return Chart(
        title,
        " ".join(path),
        [Tick(BOTTOM - up * value, plain(value, 3)) for value in ticks(highest)],
        [Tick(LEFT + across * value, readable(value)) for value in ticks(spent[-1])],
        f"{title}, over the capital spent: {last}",
    )


def ticks(highest: float) -> list[float]:
    """Return round numbers from 0 up to a number: three to six of them.

    >>> ticks(100.0), [round(value, 2) for value in ticks(0.07)]
    ([0.0, 20.0, 40.0, 60.0, 80.0, 100.0], [0.0, 0.02, 0.04, 0.06])
    """
    power = 10.0 ** math.floor(math.log10(highest))
    step = next(factor * power for factor in (0.2, 0.5, 1.0, 2.0) if highest / (factor * power) <= MOST_STEPS)
    return [step * number for number in range(int(highest / step * (1 + 1e-9)) + 1)]
