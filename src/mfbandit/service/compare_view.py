"""Two arms beside each other: which one is better, by how much, and how sure that is."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from mfbandit.core import LEVEL
from mfbandit.errors import InvalidArgument
from mfbandit.experiment import Difference
from mfbandit.service.arm_table import ArmTable
from mfbandit.service.arm_view import arm_index
from mfbandit.service.reward_unit import RewardUnit

SUGGESTED = 30  # arms, by name, while somebody types
ROUNDING = 1.05  # of a drawing, around its interval


def compare_view(table: ArmTable, query: Mapping[str, str]) -> dict[str, Any]:
    """Return everything on the page that compares two arms.

    Args:
        table: all arms, of a moment ago.
        query: of the page's address, with the arms' names as ``a`` and ``b``.
    """
    labels = table.findings.labels
    leading = table.order("rank")[:SUGGESTED].tolist()
    names = [query.get("a", ""), query.get("b", "")]
    if not any(names) and table.best is not None and len(leading) > 1:
        names = [labels[leading[0]], labels[leading[1]]]
    shown: dict[str, Any] = {"names": names, "suggested": [labels[arm] for arm in leading], "wrong": "", "pair": None}
    if not all(names):
        return shown
    try:
        arms = [arm_index(name, labels) for name in names]
        if arms[0] == arms[1]:
            raise InvalidArgument("the two arms must differ")
    except InvalidArgument as error:
        return {**shown, "wrong": str(error)}
    return {**shown, "pair": _pair(table, arms[0], arms[1])}


def _pair(table: ArmTable, first: int, second: int) -> dict[str, Any]:
    found, unit = table.findings, table.unit
    difference = found.difference(first, second, LEVEL)
    stats, bounds = found.stats, table.bounds
    rows = [
        {
            "name": name,
            "cells": [
                {
                    "mean": unit.value(float(stats.means[m, arm]), 4) if stats.results[m, arm] else "-",
                    "looks": f"{int(stats.results[m, arm]):,}",
                    "allows": ""
                    if bounds is None or not stats.results[m, arm]
                    else unit.interval(float(bounds.lower[m, arm]), float(bounds.upper[m, arm])),
                }
                for arm in (first, second)
            ],
        }
        for m, name in enumerate(found.fidelities.labels)
    ]
    return {
        "arms": table.rows(np.array([first, second])),
        "better": difference.better if difference.low >= 0 or difference.high <= 0 else None,
        "sentence": difference.said(unit.gap),
        "assumes": list(difference.assumes),
        "drawn": _drawn(difference, unit),
        "rows": rows,
    }


def _drawn(found: Difference, unit: RewardUnit) -> dict[str, Any] | None:
    """Where the interval of the difference lies, from 0 to 100, with nothing between the two in the middle."""
    if not (np.isfinite(found.low) and np.isfinite(found.high)):
        return None
    reach = ROUNDING * max(abs(found.low), abs(found.high)) or 1.0
    low, high = (50 + 50 * end / reach for end in (-found.high, -found.low))  # the first arm is on the left
    ends = f"{unit.gap(found.low)} to {unit.gap(found.high)}"
    return {
        "low": round(low, 2),
        "high": round(high, 2),
        "text": f"{found.first_label} minus {found.second_label}: {ends}",
    }
