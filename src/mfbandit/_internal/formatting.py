"""Results as text: columns for people, strict JSON for machines."""

import json
import math
from collections.abc import Sequence
from typing import Any


def columns(rows: Sequence[Sequence[str]]) -> list[str]:
    r"""One line a row, the first column flush left and the others flush right.

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
    """A number with about four digits that matter.

    >>> [readable(value) for value in (1234567.8, 12.3456, 0.000123456, float("nan"))]
    ['1,234,568', '12.35', '0.0001235', '-']
    """
    if math.isnan(value):
        return "-"
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e15 else f"{value:.4g}"  # noqa: PLR2004 - four digits


def strict_json(value: Any, indent: int | None = None) -> str:  # noqa: ANN401 - whatever JSON can hold
    """JSON without NaN and infinities, which it does not have: they become null.

    >>> strict_json({"left": [1.5, float("inf")]})
    '{"left": [1.5, null]}'
    """
    return json.dumps(_finite(value), indent=indent, allow_nan=False)


def _finite(value: Any) -> Any:  # noqa: ANN401
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
