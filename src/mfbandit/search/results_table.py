"""A search's results as a table, and as a picture for notebooks; nothing in them mixes fidelities."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import numpy as np

from mfbandit._internal.formatting import plain
from mfbandit._internal.imports import needed_for

AT = "plays_at_"  # what a column begins with that counts plays at a fidelity
MAX_ROWS = 20
COLOURS = ("#56B4E9", "#E69F00", "#0072B2", "#009E73", "#D55E00", "#CC79A7")  # Okabe and Ito
MAX_LABEL = 50  # letters beside a bar
ROW, LABEL, BARS, SCORES = 20, 350, 300, 130  # pixels: height of a row, and widths


def report(results: Mapping[str, Any], metric: str, states: Sequence[str]) -> Any:  # noqa: ANN401 - pandas is optional
    """Return a DataFrame with a row for each candidate, the best one first.

    ``mean_test_NAME`` is the mean score at the highest fidelity, and NaN where a candidate has none there: scores
    compare within a column. ``score_at_X`` is the same for each fidelity.

    Args:
        results: ``cv_results_`` of a search.
        metric: the one that decided.
        states: what became of each candidate.

    >>> results = {"candidate": ["a", "b"], "params": [{"C": 1}, {"C": 2}], "rank_test_score": np.array([2, 1]),
    ...            "estimate": np.array([0.5, 0.9]), "lower_bound": np.array([0.4, 0.8]),
    ...            "cost": np.array([0.25, 1.25]), "upper_bound": np.array([0.6, 1.0]),
    ...            "failed_plays": np.array([0, 0])}
    >>> for name, plays, scores in ("0.25", [1, 1], [0.5, 0.8]), ("1", [0, 1], [np.nan, 0.9]):
    ...     results |= {f"plays_at_{name}": np.array(plays), f"mean_score_at_{name}": np.array(scores)}
    >>> report(results, "score", ["", "best"])[["candidate", "mean_test_score", "score_at_0.25"]]
      candidate  mean_test_score  score_at_0.25
    1         b              0.9            0.8
    0         a              NaN            0.5
    """
    with needed_for("report_"):
        import pandas as pd
    names = fidelities_of(results)
    params = dict.fromkeys(name for one in results["params"] for name in one)
    columns: dict[str, Any] = {"candidate": results["candidate"]}
    columns |= {f"param_{name}": [one.get(name) for one in results["params"]] for name in params}
    columns |= {
        "rank": results[f"rank_test_{metric}"],
        "state": list(states),
        f"mean_test_{metric}": results[f"mean_score_at_{names[-1]}"],
        "estimate": results["estimate"],
        "lower_bound": results["lower_bound"],
        "upper_bound": results["upper_bound"],
        "cost": results["cost"],
    }
    for name in names:
        columns |= {f"plays_at_{name}": results[f"{AT}{name}"], f"score_at_{name}": results[f"mean_score_at_{name}"]}
    columns["failed_plays"] = results["failed_plays"]
    return pd.DataFrame(columns).sort_values("rank", kind="stable")


def fidelities_of(results: Mapping[str, Any]) -> list[str]:
    """Return the names of the fidelities in ``cv_results_``, the highest one last.

    >>> fidelities_of({"plays_at_0.25": [], "plays_at_1": []})
    ['0.25', '1']
    """
    return [name.removeprefix(AT) for name in results if name.startswith(AT)]


def spending_picture(results: Mapping[str, Any], metric: str, unit: str) -> str:
    """Draw what the best candidates cost at each fidelity, as SVG in HTML.

    Args:
        results: ``cv_results_`` of a search.
        metric: the one that decided.
        unit: of the capital.

    >>> results = {"candidate": ["a<b"], "rank_test_score": np.array([1]), "plays_at_1": [1], "cost_at_1": [2.0],
    ...            "mean_score_at_1": np.array([0.9])}
    >>> "a&lt;b" in spending_picture(results, "score", "full fits")
    True
    """
    names, order = fidelities_of(results), np.argsort(results[f"rank_test_{metric}"], kind="stable")
    costs = np.array([np.asarray(results[f"cost_at_{name}"], dtype=float) for name in names])
    shown, others = order[:MAX_ROWS], order[MAX_ROWS:]
    rows = [(str(results["candidate"][k]), costs[:, k], _score(results, names, k)) for k in shown]
    if len(others):
        rows.append((f"{len(others):,} others", costs[:, others].sum(axis=1), ""))
    scale = BARS / max(float(max(cost.sum() for _, cost, _ in rows)), 1e-12)
    body = [_row(number, *row, scale) for number, row in enumerate(rows)]
    body += [_legend(names, unit, len(rows))]
    width, height = LABEL + BARS + SCORES, (len(rows) + 2) * ROW
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="capital spent on each candidate" '
        f'viewBox="0 0 {width} {height}" width="{width}" style="max-width:100%;font:12px sans-serif">'
        f"{''.join(body)}</svg>"
    )


def _score(results: Mapping[str, Any], names: Sequence[str], k: int) -> str:
    """The mean score at the highest fidelity that has one, and which that is if it is not the last."""
    for name in reversed(names):
        mean = float(results[f"mean_score_at_{name}"][k])
        if np.isfinite(mean):
            return f"{mean:.4g}" + ("" if name == names[-1] else f" at {name}")
    return "no score"


def _row(number: int, label: str, costs: Any, score: str, scale: float) -> str:  # noqa: ANN401 - an array
    y, x, bars = number * ROW, float(LABEL), []
    for m, cost in enumerate(costs.tolist()):
        colour = COLOURS[m % len(COLOURS)]
        bars.append(f'<rect x="{x:.1f}" y="{y + 3}" width="{scale * cost:.1f}" height="{ROW - 6}" fill="{colour}"/>')
        x += scale * cost
    short = label if len(label) <= MAX_LABEL else f"{label[: MAX_LABEL - 1]}…"
    name = f'<text x="{LABEL - 8}" y="{y + 14}" text-anchor="end" fill="currentColor">{escape(short)}</text>'
    value = f'<text x="{x + 6:.1f}" y="{y + 14}" fill="currentColor">{escape(score)}</text>'
    return f"<g><title>{escape(label)}: {plain(float(costs.sum()), 4)}</title>{name}{''.join(bars)}{value}</g>"


def _legend(names: Sequence[str], unit: str, rows: int) -> str:
    y, x, parts = rows * ROW + 8, LABEL, []
    for m, name in enumerate(names):
        parts.append(f'<rect x="{x}" y="{y}" width="10" height="10" fill="{COLOURS[m % len(COLOURS)]}"/>')
        parts.append(f'<text x="{x + 14}" y="{y + 10}" fill="currentColor">{escape(name)}</text>')
        x += 28 + 7 * len(name)
    title = f'<text x="{LABEL - 8}" y="{y + 10}" text-anchor="end" fill="currentColor">spent ({escape(unit)}) at</text>'
    return title + "".join(parts)
