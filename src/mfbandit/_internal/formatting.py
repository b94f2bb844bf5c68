"""Results as text: aligned columns for people, strict JSON for programs."""

import json
import math
from collections.abc import Sequence

from mfbandit._internal.typing import JSON

FIRST_WITHOUT_DECIMALS, FIRST_WITH_EXPONENT = 1000, 1e15


def columns(rows: Sequence[Sequence[str]]) -> list[str]:
    r"""Align rows of cells: the first column to the left, the others to the right; one line per row.

    >>> print("\n".join(columns([("policy", "regret"), ("UCB", "1,234")])))
    policy  regret
    UCB      1,234
    """
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    return [
        "  ".join([f"{row[0]:<{widths[0]}}", *(f"{c:>{w}}" for c, w in zip(row[1:], widths[1:], strict=True))]).rstrip()
        for row in rows
    ]


def readable(value: float) -> str:
    """Format a number with about four significant digits; NaN is a dash.

    >>> [readable(value) for value in (1234567.8, 12.3456, 0.000123456, float("nan"))]
    ['1,234,568', '12.35', '0.0001235', '-']
    """
    if math.isnan(value):
        return "-"
    return f"{value:,.0f}" if FIRST_WITHOUT_DECIMALS <= abs(value) < FIRST_WITH_EXPONENT else f"{value:.4g}"


def strict_json(value: JSON, indent: int | None = None) -> str:
    """Encode a value as JSON; NaN and infinities, which JSON does not have, become null.

    >>> strict_json({"left": [1.5, float("inf")]})
    '{"left": [1.5, null]}'
    """
    return json.dumps(_finite(value), indent=indent, allow_nan=False)


def _finite(value: JSON) -> JSON:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
