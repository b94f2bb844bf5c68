"""Compare all policies on all problems in paired runs; write the tables of docs/policies-measured.md.

Each run on a paper problem has its own instance (seeds from 70,000 on). The learning curves are from the half of lcdb
on which the defaults of MFBayes were chosen. Ratios are of mean regrets, with 95 % intervals over paired runs. On
learning curves, regret is that of the plays, without capital that is left over: these capitals are whole numbers of
plays for UCB alone. It takes four minutes on two cores.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import mfbandit as mfb
from mfbandit.reproduction.panels import COMPARED_POLICIES, median_interval
from mfbandit.simulation.results import ratio_interval

FIRST_SEED = 70_000
KL = {"UCB, ρ = 2, KL": mfb.UCB(2.0, kl=True), "MF-UCB, ρ = 2, KL": mfb.MFUCB(2.0, kl=True)}
CURVES: dict[str, Any] = {
    "UCB, ρ = 1": mfb.UCB(1.0),
    **{name: policy for name, policy in COMPARED_POLICIES.items() if name != "UCB, ρ = 2"},
}
# Limits: of the upper ends of MFAda's intervals at 40 Kλ_M, and of MFBayes's medians on learning curves.
ADA_AT_MOST = {"1": 0.35, "2": 0.35, "3": 0.50, "4": 0.40}
BAYES_AT_MOST = 0.6


def measured(
    make: Callable[[int], mfb.Problem], policies: dict[str, Any], looks: list[float], runs: int
) -> dict[str, Any]:
    """Compute the regret of each policy in each run at each capital, and ratios to MF-UCB at ρ = 2."""

    def one(policy: Any, run: int) -> np.ndarray:
        problem = make(run)
        full = problem.arms * problem.fidelities.costs[-1]
        grid = [look * full for look in looks]
        return mfb.simulate(problem, policy, capital=grid[-1], seed=FIRST_SEED + run, grid=grid, workers=1).regret[0]

    table: dict[str, Any] = {}
    for name, policy in policies.items():
        start = time.perf_counter()
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            table[name] = np.array(list(pool.map(partial(one, policy), range(runs))))
        print(f"    {name}: {time.perf_counter() - start:.1f} s", file=sys.stderr, flush=True)
    base = table["MF-UCB, ρ = 2"]
    ratios = {name: np.array(ratio_interval(regret, base)).T.tolist() for name, regret in table.items()}
    return {
        "looks": looks,
        "runs": runs,
        "regret": {name: r.mean(axis=0).tolist() for name, r in table.items()},
        "ratio": ratios,
    }


def on_curves(runs: int) -> dict[str, Any]:
    """Compute each policy's regret over that of UCB at ρ = 1, by data set and capital; of the plays, and as in eq. 1."""

    def one(name: str) -> dict[str, Any]:
        problem = mfb.learning_curve_problem(name)
        row = {}
        for looks in (2.0, 20.0):
            capital = looks * problem.arms * problem.fidelities.costs[-1]
            lost = {}
            for label, policy in CURVES.items():
                sim = mfb.simulate(problem, policy, capital=capital, runs=runs, seed=FIRST_SEED, grid=1, workers=1)
                rest = (capital - sim.spent) * problem.best_mean
                lost[label] = [float((sim.regret[:, -1] - rest).mean()), float(sim.regret[:, -1].mean())]
            base = lost["UCB, ρ = 1"]
            row[f"{looks:g}"] = {label: [pair[0] / base[0], pair[1] / base[1]] for label, pair in lost.items()}
        return row

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        rows = dict(zip(mfb.learning_curve_names(), pool.map(one, mfb.learning_curve_names()), strict=True))
    summary: dict[str, Any] = {}
    for looks in ("2", "20"):
        summary[looks] = {}
        for label in CURVES:
            plays, with_rest = np.array([row[looks][label] for row in rows.values()]).T
            summary[looks][label] = median_interval(plays) | {
                "better": float((plays < 1).mean()),
                "worst": float(plays.max()),
                "median_with_rest": float(np.median(with_rest)),
            }
    return {"runs": runs, "data_sets": rows, "summary": summary}


def verdicts(results: dict[str, Any]) -> list[str]:
    """List the limits that are exceeded."""
    wrong = []
    for number, most in ADA_AT_MOST.items():
        high = results[f"problem {number}"]["ratio"]["MFAda"][-1][2]
        if high > most:
            wrong.append(f"MFAda on problem {number}: up to {high:.3f} of MF-UCB's regret, more than {most}")
    for looks, row in results["learning curves"]["summary"].items():
        if row["MFBayes"]["median"] > BAYES_AT_MOST:
            wrong.append(
                f"MFBayes on learning curves at {looks} Kλ_M: median {row['MFBayes']['median']:.3f} of UCB's regret"
            )
    for looks, row in results["learning curves"]["summary"].items():
        rest = row["MFBayes"]["median_with_rest"]
        print(f"MFBayes at {looks} Kλ_M with the capital left over counted: median {rest:.3f}", file=sys.stderr)
    return wrong


def markdown(results: dict[str, Any]) -> str:
    """Make the tables of the docs."""
    lines = [
        "# Policies, measured",
        "",
        "Written by `python benchmarks/policies.py`; see [the page on policies](policies.md).",
        "",
    ]
    for title, result in results.items():
        if title == "learning curves":
            continue
        lines += [
            f"## {title[0].upper()}{title[1:]}",
            "",
            f"Ratio of regret to that of MF-UCB at ρ = 2, {result['runs']} paired runs, 95 % intervals.",
            "",
        ]
        lines += [
            "| policy | " + " | ".join(f"{look:g} Kλ_M" for look in result["looks"]) + " |",
            "|---" * (1 + len(result["looks"])) + "|",
        ]
        for name, row in result["ratio"].items():
            cells = [
                f"{value:.2f} ({low:.2f} to {high:.2f})" if name != "MF-UCB, ρ = 2" else "1" for value, low, high in row
            ]
            lines.append(f"| {name} | " + " | ".join(cells) + " |")
        lines.append("")
    curves = results["learning curves"]
    lines += [
        "## Learning curves",
        "",
        f"Ratio of the regret of plays to that of UCB at ρ = 1 on {len(curves['data_sets'])} data sets, "
        f"{curves['runs']} runs each. Shown are",
        "the median over data sets with a 95 % interval, the share of data sets with a ratio below 1, and the",
        "worst.",
        "",
        "MF-UCB and MFAda know an oracle's ζ and noise, UCB the noise, MFBayes neither. The data sets are",
        "from the half of lcdb on which the defaults of MFBayes were chosen. So its figures here are not a",
        "test on unseen curves.",
        "",
    ]
    lines += ["| policy | median at 2 Kλ_M | below 1 | worst | median at 20 Kλ_M | below 1 | worst |", "|---" * 7 + "|"]
    for name in CURVES:
        cells = []
        for looks in ("2", "20"):
            row = curves["summary"][looks][name]
            cells += [
                f"{row['median']:.2f} ({row['low']:.2f} to {row['high']:.2f})",
                f"{100 * row['better']:.0f} %",
                f"{row['worst']:.1f}",
            ]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    rest = curves["summary"]
    lines += [
        "",
        "These ratios do not count capital that is left over: nothing for UCB, up to one play for the others.",
        "With it counted as lost, as in eq. 1, the medians of MFBayes are "
        f"{rest['2']['MFBayes']['median_with_rest']:.2f} and {rest['20']['MFBayes']['median_with_rest']:.2f}.",
        "",
    ]
    return "\n".join(lines)


def main() -> int:
    """Measure, write, and list the limits that are exceeded."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--out", type=Path, default=Path("results/policies.json"))
    parser.add_argument("--docs", type=Path, help="also write the tables here, as Markdown")
    options = parser.parse_args()
    results: dict[str, Any] = {}
    for number in (1, 2, 3, 4):
        print(f"problem {number}", file=sys.stderr)
        policies = COMPARED_POLICIES | KL if number > 2 else COMPARED_POLICIES
        make = partial(_paper, number)
        results[f"problem {number}"] = measured(make, policies, [2, 10, 40], options.runs)
    results["the misleading problem"] = measured(
        lambda _: mfb.misleading_problem(), COMPARED_POLICIES, [10, 100, 1000], options.runs
    )
    results["the gap problem"] = measured(lambda _: mfb.gap_problem(), COMPARED_POLICIES, [10, 100, 1000], options.runs)
    print("learning curves", file=sys.stderr)
    results["learning curves"] = on_curves(options.runs)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(results, indent=1))
    if options.docs:
        options.docs.write_text(markdown(results))
    print(markdown(results))
    wrong = verdicts(results)
    print("\n".join(wrong), file=sys.stderr)
    return 1 if wrong else 0


def _paper(number: int, run: int) -> mfb.Problem:
    return mfb.paper_problem(number, seed=FIRST_SEED + run)


if __name__ == "__main__":
    sys.exit(main())
