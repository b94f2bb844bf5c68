"""Rows of text in columns, for people to read on a terminal."""

import math
from collections.abc import Sequence


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
