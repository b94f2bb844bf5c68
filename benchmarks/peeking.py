"""Looking every day: how often a wrong winner is declared, by common practice and by a claim valid at any time.

    python benchmarks/peeking.py [--runs 2000] [--out results/peeking.json] [--picture docs/figures/peeking.png]

Each version of a page gets 1,000 visitors a day, who buy or do not. Somebody looks once a day, and stops at the first
look at which a rule declares a winner:

- t-test: the leader against the original, two-sided, p < 0.05; against the second if the original leads;
- probability to be best: that of the leader, at least 95 %, with independent posteriors from uniform priors;
- confidence: ``experiment.confidence().level`` is at least 95 %;
- within 0.5 points: ``experiment.confidence().could_lose`` is at most 0.005, as with ``mfb.Sure(0.95, 0.005)``.

Exits with 1 if one of the last two is wrong in more than 5 % of the runs.
"""

import argparse
import json
import math
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from scipy.special import betainc, betaln, ndtri

sys.path.insert(0, str(Path(__file__).parent.parent))

from mfbandit._internal.typing import BoolArray, FloatArray, IntArray
from mfbandit.core import Bounded
from mfbandit.core.claims import Pool, explanation
from mfbandit.core.confidence import Roster
from mfbandit.core.evidence import BoundedCells

LEVEL = 0.95
VISITORS = 1000  # of each version, a day
NODES = 40  # of the integral over the leader's rate
SPREAD = 7.0  # posterior deviations that it covers
TOLERANCE = 0.005
T_TEST, POSTERIOR, CONFIDENCE, WITHIN = "t-test", "probability to be best", "confidence", "within 0.5 points"
PROMISED = (CONFIDENCE, WITHIN)  # to be wrong in at most 5 % of runs
SHOWN_DAYS = (1, 7, 30, 90, 365)
CURVES = {T_TEST: ("--", "#E69F00"), POSTERIOR: ("-.", "#D55E00"), CONFIDENCE: ("-", "#0072B2")}  # Okabe and Ito

# Takes hits, shape (runs, versions), and visitors of each version; tells for which runs the leader has won.
Rule: TypeAlias = Callable[[IntArray, int], BoolArray]


@dataclass(frozen=True)
class Case:
    """Versions of a page, and how long somebody looks.

    Args:
        name: for the table.
        rates: how often each version sells, the original first.
        days: looks, one a day.
    """

    name: str
    rates: tuple[float, ...]
    days: int


EQUAL = Case("two equal versions, 5 %", (0.05, 0.05), 365)
CASES = (
    EQUAL,
    Case("ten equal versions, 5 %", (0.05,) * 10, 90),
    Case("5 % against 5.1 %", (0.05, 0.051), 365),
    Case("5 % against 6 %", (0.05, 0.06), 365),
)


def leading(hits: IntArray) -> tuple[IntArray, IntArray]:
    """Return the version with most hits in each run, shape (runs,), and all others, shape (runs, versions − 1)."""
    order = np.argsort(-hits, axis=1, kind="stable")
    return order[:, 0], order[:, 1:]


def t_test(hits: IntArray, visitors: int) -> BoolArray:
    """Tell where the leader differs from the original with p < 0.05, by the test of two shares."""
    best, others = leading(hits)
    rows = np.arange(len(hits))
    against = np.where(best == 0, others[:, 0], 0)
    first, second = hits[rows, best] / visitors, hits[rows, against] / visitors
    pooled = (first + second) / 2
    error = np.sqrt(np.maximum(2 * pooled * (1 - pooled) / visitors, 1e-300))
    won: BoolArray = (first - second) / error > ndtri(1 - (1 - LEVEL) / 2)
    return won


def probability_to_be_best(hits: IntArray, visitors: int) -> BoolArray:
    """Tell where the posterior probability that the leader is the best is at least 95 %."""
    won: BoolArray = posterior(hits, visitors) >= LEVEL
    return won


def posterior(hits: IntArray, visitors: int) -> FloatArray:
    """Compute ∫ f_leader Π F_others, the posterior probability that the leader is the best, as a sum over a grid."""
    best, others = leading(hits)
    won, lost = hits + 1.0, visitors - hits + 1.0
    a, b = (np.take_along_axis(array, best[:, None], axis=1) for array in (won, lost))
    mean, deviation = a / (a + b), np.sqrt(a * b / ((a + b) ** 2 * (a + b + 1)))
    low, high = np.maximum(mean - SPREAD * deviation, 1e-12), np.minimum(mean + SPREAD * deviation, 1 - 1e-12)
    at = low + (high - low) * np.linspace(0, 1, NODES)
    density = np.exp((a - 1) * np.log(at) + (b - 1) * np.log1p(-at) - betaln(a, b))
    below = np.ones(at.shape)
    for k in range(others.shape[1]):
        one = others[:, k : k + 1]
        below *= betainc(np.take_along_axis(won, one, axis=1), np.take_along_axis(lost, one, axis=1), at)
    found: FloatArray = (density * below).sum(axis=1) / density.sum(axis=1)
    return found


def confidence(hits: IntArray, visitors: int) -> BoolArray:
    """Tell where it is 95 % sure that no version is better than the leader."""
    won: BoolArray = level(hits, visitors) >= LEVEL
    return won


def within(hits: IntArray, visitors: int) -> BoolArray:
    """Tell where it is 95 % sure that no version is better than the leader by more than half a point."""
    won: BoolArray = level(hits, visitors, TOLERANCE) >= LEVEL
    return won


def level(hits: IntArray, visitors: int, tolerance: float = 0.0) -> FloatArray:
    """Compute the level of such a claim for each run: what ``experiment.confidence()`` says, for many runs at once."""
    best, others = leading(hits)
    rivals = others.shape[1]
    rows = np.repeat(np.arange(len(hits)), rivals)
    cost = explanation(
        _pool(hits[rows, np.repeat(best, rivals)], visitors),
        _pool(hits[rows, others.ravel()], visitors),
        np.full(len(rows), tolerance),
    ).cost.reshape(others.shape)
    price = float(Roster(rivals + 1).log_prices(0, np.array([1]))[0])
    return np.maximum(0.0, -np.expm1(price - cost.min(axis=1)))


def _pool(hits: IntArray, visitors: int) -> Pool:
    counts, sums = np.full(len(hits), visitors), hits.astype(np.float64)
    return Pool((BoundedCells(counts, sums, Bounded()),), (0.0,), counts[None], sums[None] / visitors, (0.0, 1.0))


RULES: dict[str, Rule] = {
    T_TEST: t_test,
    POSTERIOR: probability_to_be_best,
    CONFIDENCE: confidence,
    WITHIN: within,
}


def measured(case: Case, runs: int, seed: int) -> dict[str, Any]:
    """Simulate a case: for each rule the day on which each run ended (0: it did not), and with which version."""
    rng = np.random.default_rng(seed)
    rates, hits = np.array(case.rates), np.zeros((runs, len(case.rates)), dtype=np.int64)
    ended = {name: np.zeros(runs, dtype=np.int64) for name in RULES}
    winner = {name: np.full(runs, -1) for name in RULES}
    for day in range(1, case.days + 1):
        hits += rng.binomial(VISITORS, rates, hits.shape)
        for name, rule in RULES.items():
            left = np.flatnonzero(ended[name] == 0)
            if not len(left):
                continue
            now = left[rule(hits[left], day * VISITORS)]
            ended[name][now], winner[name][now] = day, leading(hits[now])[0]
    return {name: summary(case, ended[name], winner[name], name == WITHIN) for name in RULES}


def summary(case: Case, ended: IntArray, winner: IntArray, tolerant: bool) -> dict[str, Any]:
    """Count runs with a wrong winner by each day.

    Where all versions are equal, every winner is wrong. Of a tolerant rule, only one that is worse by more is.
    """
    rates, found = np.array(case.rates), ended > 0
    equal = rates.min() == rates.max() and not tolerant
    wrong = found & (equal | (rates[winner] < rates.max() - TOLERANCE * tolerant))
    by_day = [int((wrong & (ended <= day)).sum()) for day in range(1, case.days + 1)]
    half = np.sort(np.where(found, ended, np.iinfo(np.int64).max))[(len(ended) - 1) // 2]
    return {
        "wrong by day": by_day,
        "right": int((found & ~wrong).sum()),
        "undecided": int((~found).sum()),
        "median day": int(half) if half < np.iinfo(np.int64).max else None,
    }


def markdown(results: dict[str, Any], runs: int) -> str:
    """The table of the docs."""
    heads = ["versions", "rule", *(f"wrong by day {day}" for day in SHOWN_DAYS), "right", "undecided", "half by day"]
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    for case in CASES:
        for name, found in results[case.name].items():
            by_day = found["wrong by day"]
            cells = [f"{by_day[day - 1] / runs:.1%}" if day <= case.days else "" for day in SHOWN_DAYS]
            more = [f"{found['right'] / runs:.1%}", f"{found['undecided'] / runs:.1%}", found["median day"] or "-"]
            lines.append("| " + " | ".join([case.name, name, *cells, *map(str, more)]) + " |")
    return "\n".join(lines)


def interval(wrong: int, runs: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a share."""
    z, share = 1.96, wrong / runs
    centre, half = share + z * z / (2 * runs), z * math.sqrt(share * (1 - share) / runs + z * z / (4 * runs * runs))
    return (centre - half) / (1 + z * z / runs), (centre + half) / (1 + z * z / runs)


def verdicts(results: dict[str, Any], runs: int) -> dict[str, bool]:
    """Say whether the claim keeps its promise."""
    return {
        f"{case.name}: {name} is wrong in at most {1 - LEVEL:.0%} of runs": (
            results[case.name][name]["wrong by day"][-1] <= (1 - LEVEL) * runs
        )
        for case in CASES
        for name in PROMISED
    }


def draw(results: dict[str, Any], runs: int, path: Path) -> None:
    """Draw the share of wrong winners against the number of looks, for two equal versions."""
    import matplotlib.pyplot as plt  # only for the picture

    figure, ax = plt.subplots(figsize=(7.2, 4.2), layout="constrained")
    days = np.arange(1, EQUAL.days + 1)
    for name, (dashes, colour) in CURVES.items():
        share = 100 * np.array(results[EQUAL.name][name]["wrong by day"]) / runs
        ax.plot(days, share, dashes, color=colour, lw=2.2, clip_on=False, zorder=3)
        at = (float(days[-1]), float(share[-1]))
        label = f"{name},\n{share[-1]:.2g} %"
        ax.annotate(label, at, (8, -3), textcoords="offset points", va="bottom", color=colour)
    ax.axhline(5, color="0.5", lw=1)
    at = (float(EQUAL.days), 5.0)
    ax.annotate("5 %, what was promised", at, (-4, 4), textcoords="offset points", ha="right", color="0.4", fontsize=9)
    ax.set_xscale("log")
    ax.set_xticks(SHOWN_DAYS, [str(day) for day in SHOWN_DAYS])
    ax.minorticks_off()
    ax.set_xlim(1, EQUAL.days)
    ax.set_ylim(0, None)
    ax.set_xlabel("looks so far, one a day")
    ax.set_ylabel("runs with a winner so far, %")
    ax.set_title("Two versions that sell equally well: any winner is an error", loc="left", fontsize=11)
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(axis="y", color="0.9")
    ax.set_axisbelow(True)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def main() -> int:
    """Measure, print, draw, and say what does not hold."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--picture", type=Path)
    options = parser.parse_args()
    results: dict[str, Any] = {}
    for number, case in enumerate(CASES):
        start = time.perf_counter()
        results[case.name] = measured(case, options.runs, options.seed + number)
        print(f"{case.name}: {time.perf_counter() - start:.0f} s", file=sys.stderr)
    print(markdown(results, options.runs))
    kept = verdicts(results, options.runs)
    for rule, holds in kept.items():
        print(f"{'holds' if holds else 'MISSED':7} {rule}")
    if options.out is not None:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps({"runs": options.runs, "results": results, "verdicts": kept}, indent=1))
    if options.picture is not None:
        draw(results, options.runs, options.picture)
    return 0 if all(kept.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
