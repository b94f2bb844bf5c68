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


def plain(value: float, digits: int = 6, thousands: str = ",") -> str:
    """Format a number as people write it: with so many significant digits, and all digits before the point.

    Args:
        value: the number.
        digits: how many are significant, at least.
        thousands: what separates them; none where numbers are separated by commas.

    >>> [plain(value) for value in (2e6, 1234567.8, 0.5, 1000.25, 1e16)]
    ['2,000,000', '1,234,568', '0.5', '1,000.25', '1e+16']
    >>> plain(1234.5678, 3), plain(2e6, thousands="")
    ('1,235', '2000000')
    """
    if not FIRST_WITHOUT_DECIMALS <= abs(value) < FIRST_WITH_EXPONENT:
        return f"{value:.{digits}g}"
    decimals = max(0, digits - len(str(int(abs(value)))))
    text = f"{value:,.{decimals}f}"
    return (text.rstrip("0").rstrip(".") if decimals else text).replace(",", thousands)


def readable(value: float) -> str:
    """Format a number with about four significant digits; NaN is a dash.

    >>> [readable(value) for value in (1234567.8, 12.3456, 0.000123456, float("nan"))]
    ['1,234,568', '12.35', '0.0001235', '-']
    """
    return "-" if math.isnan(value) else plain(value, 4)


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
