"""What it costs to find the best arm: MFSure, the baselines from the literature, and the highest fidelity alone.

    python benchmarks/identification.py [--only 5x2 mu3 ...] [--out results/identification.json]

Problems are the two published ones of MF-GRAD's authors (5x2, mu3), problems 2 and 3 of the paper cut to 20 arms (the
best and every n-th behind it), random ones with 20 arms, random ones with 100 arms of which the best is 0.1 ahead, and
such with 1,000. "Highest alone" is MFSure where there is no other fidelity. A run that has not decided when its
capital is spent counts with all of that, and as not ended: its mean is a lower bound.

LUCB is told the true means of the two best arms, which flatters it. The lower bound is T*·kl(δ, 1 − δ). "Known
proportions" is a rule that is told the true means, plays the proportions that are best for δ → 0, and stops as MFSure.

The whole takes an hour or two. ``--only`` measures some pieces, ``--gaps`` the random problems with 20 arms whose two
best are so far apart; what is measured is added to the file, and ``--only`` without a piece prints the file. Plays
grow with 1/gap², at the highest fidelity and whatever the rule: nearly all of the time is for the closest ones.
MFSure's optimism was chosen with random problems 0 to 99 in view; those measured here begin at 100.
"""

import argparse
import json
import math
import os
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))

import mfbandit as mfb
from benchmarks.identification_bounds import best_shares, known_proportions, lower_bound
from benchmarks.identification_problems import (
    Instance,
    cut,
    five_by_two,
    gap,
    highest_alone,
    mu3,
    random_problem,
)
from mfbandit._internal.formatting import plain
from mfbandit._internal.typing import FloatArray

DELTAS = (0.1, 0.01, 1e-6)
PUBLISHED = {"MFGrad": (472.0, 63.0), "IISE": (1775.0, 54.0), "LUCB-A": (2998.0, 45.0)}  # on 5x2 at δ = .1
AT_MOST = {0.1: 0.6, 1e-6: 0.8}  # of MFGrad's cost, on 5x2 and mu3
MEAN_RATIO, LARGEST_RATIO = 0.5, 1.5  # of the cost of the highest fidelity alone, on random problems
STEP_MICROSECONDS = {100: 30.0, 1000: 150.0}
FRESH = 100  # the first seed of random problems that nothing was chosen on
ALONE, KNOWN, BOUNDS = "highest alone", "known proportions", "characteristic costs"
UNIFORM, AHEAD = "20 arms", "20 arms, 0.1 ahead"
GAPS = (0.0, 0.004, 0.012, 0.03, 1.0)
SURELY = 3.0  # standard errors by which a share may exceed its limit by chance


def rules(problem: mfb.Problem, delta: float) -> dict[str, tuple[mfb.Problem, Any]]:
    """The problem and the policy of each rule, by name."""
    second, best = (float(mean) for mean in np.sort(problem.means[-1])[-2:])
    lucb = partial(mfb.LUCB, best, second, delta)
    return {
        "MFSure": (problem, mfb.MFSure(delta)),
        ALONE: (highest_alone(problem), mfb.MFSure(delta)),
        "MFGrad": (problem, mfb.MFGrad(delta)),
        "IISE": (problem, mfb.IISE(delta)),
        "LUCB-A": (problem, lucb(explore="A", guard=0.0)),
        "LUCB-B": (problem, lucb(explore="B", guard=0.0)),
    }


def measured(instance: Instance, rule: str, delta: float, runs: int, seed: int = 0) -> dict[str, Any]:
    """Let one rule find the best arm, many times."""
    problem, policy = rules(instance.problem, delta)[rule]
    began = time.perf_counter()
    sim = mfb.simulate(problem, policy, capital=instance.capital, runs=runs, seed=seed, grid=1)
    best = problem.means[-1] == problem.best_mean
    return {
        "cost": float(sim.spent.mean()),
        "half": half_width(sim.spent),
        "wrong": float((~best[sim.answers] & (sim.answers >= 0)).mean()),
        "ended": float((sim.answers >= 0).mean()),
        "runs": runs,
        "steps": float(sim.steps.mean()),
        "seconds": time.perf_counter() - began,
    }


def half_width(values: FloatArray) -> float:
    """Half the width of a 95 % interval of the mean."""
    return float(1.96 * values.std(ddof=1) / math.sqrt(len(values))) if len(values) > 1 else math.nan


def in_parallel(work: Callable[[Any], Any], jobs: Sequence[Any]) -> list[Any]:
    """Do all jobs, on all cores."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(work, jobs))


def on_random(
    make: Callable[[int], mfb.Problem],
    rules_used: Sequence[str],
    delta: float,
    seeds: Sequence[int],
    capital: float,
    runs: int = 1,
) -> dict[str, dict[str, Any]]:
    """Let rules find the best arm of each of many problems; by seed, as text: the gap, and by rule what was found."""

    def one(job: tuple[int, str]) -> dict[str, Any]:
        seed, rule = job
        problem, policy = rules(make(seed), delta)[rule]
        sim = mfb.simulate(problem, policy, capital=capital, runs=runs, seed=seed, grid=1, workers=1)
        ended, wrong = sim.answers >= 0, sim.answers != int(problem.means[-1].argmax())
        return {
            "costs": sim.spent.tolist(),
            "ended": float(ended.mean()),
            "wrong": float((ended & wrong).mean()),
        }

    jobs = [(seed, rule) for seed in seeds for rule in rules_used]
    found: dict[str, dict[str, Any]] = {str(seed): {"gap": gap(make(seed))} for seed in seeds}
    for (seed, rule), row in zip(jobs, in_parallel(one, jobs), strict=True):
        found[str(seed)][rule] = row
    return found


def summary(problems: dict[str, dict[str, Any]], rule: str) -> dict[str, Any]:
    """The mean cost of a rule over the random problems that it was tried on, as ``measured`` has it."""
    rows = [problem[rule] for problem in problems.values() if rule in problem]
    costs = np.array([np.mean(row["costs"]) for row in rows])
    return {
        "cost": float(costs.mean()),
        "half": half_width(costs),
        "wrong": float(np.mean([row["wrong"] for row in rows])),
        "ended": float(np.mean([row["ended"] for row in rows])),
        "runs": sum(len(row["costs"]) for row in rows),
    }


def step_time(arms: int, plays: int) -> float:
    """Microseconds of a play of MFSure with its stop test, of the thread that makes them, compilation left out."""
    from mfbandit.simulation.engines import mfsure
    from mfbandit.simulation.engines.interface import begin_run

    problem, capital = random_problem(0, arms, ahead=0.1), np.array([1e12])
    begin_run(mfsure, problem, mfb.MFSure(0.05), capital).advance(np.random.default_rng(0), 2)
    made, seconds, seed = 0, 0.0, 0
    while made < plays:
        run = begin_run(mfsure, problem, mfb.MFSure(0.05), capital)
        began = time.thread_time()
        run.advance(np.random.default_rng(seed), plays - made)
        seconds, made, seed = seconds + time.thread_time() - began, made + int(run.run.t[0]) - 1, seed + 1
    return 1e6 * seconds / made


# What must hold


def verdicts(results: dict[str, Any]) -> list[str]:
    """List what does not hold."""
    return [
        *_against_mfgrad(results["named"]),
        *_against_published(results["named"]),
        *_wrong_answers(results),
        *_on_random_ones(results["random"].get(UNIFORM, {}).get("0.1", {})),
        *[
            f"a step at K = {arms}: {found:.0f} µs, more than {STEP_MICROSECONDS[int(arms)]:g}"
            for arms, found in results["step"].items()
            if found > STEP_MICROSECONDS[int(arms)]
        ],
    ]


def _against_mfgrad(named: dict[str, Any]) -> list[str]:
    wrong = []
    for name in {"5x2", "mu3"} & set(named):
        for delta, most in AT_MOST.items():
            row = named[name].get(f"{delta:g}", {})
            if "MFSure" in row and "MFGrad" in row and row["MFSure"]["cost"] > most * row["MFGrad"]["cost"]:
                share = row["MFSure"]["cost"] / row["MFGrad"]["cost"]
                wrong.append(f"{name}, δ = {delta:g}: {share:.2f} of MFGrad's cost, more than {most}")
    return sorted(wrong)


def _against_published(named: dict[str, Any]) -> list[str]:
    row = named.get("5x2", {}).get("0.1", {})
    return [
        f"{rule} on 5x2: {row[rule]['cost']:.0f} ± {row[rule]['half']:.0f}, published {cost:.0f} ± {half:.0f}"
        for rule, (cost, half) in PUBLISHED.items()
        if rule in row and abs(row[rule]["cost"] - cost) > half + row[rule]["half"]
    ]


def _wrong_answers(results: dict[str, Any]) -> list[str]:
    wrong = []
    rows = [
        (name, delta, row["MFSure"]) for name, by_delta in results["named"].items() for delta, row in by_delta.items()
    ]
    rows += [(name, delta, summary(problems, "MFSure")) for name, delta, problems in _random_ones(results)]
    for name, delta, found in rows:
        limit = float(delta)
        if found["wrong"] > limit + SURELY * math.sqrt(limit / found["runs"]):
            wrong.append(f"{name}, δ = {delta}: wrong in {found['wrong']:.3f} of all runs")
    return wrong


def _random_ones(results: dict[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    by_name = results["random"].items()
    return [(f"random, {name}", delta, problems) for name, row in by_name for delta, problems in row.items()]


def _on_random_ones(problems: dict[str, Any]) -> list[str]:
    if not problems:
        return []
    ratios, wrong, name = to_highest(problems, "MFSure"), [], f"random, {UNIFORM}"
    ended = summary(problems, "MFSure")["ended"]
    if ended < 1:
        wrong.append(f"{name}: {ended:.0%} of all runs ended")
    if ratios.mean() > MEAN_RATIO:
        wrong.append(f"{name}: {ratios.mean():.2f} of the highest fidelity's cost, more than {MEAN_RATIO}")
    if ratios.max() > LARGEST_RATIO:
        wrong.append(f"{name}: up to {ratios.max():.2f} of the highest fidelity's, more than {LARGEST_RATIO}")
    return wrong


def to_highest(problems: dict[str, Any], rule: str) -> FloatArray:
    """The mean cost of a rule over that of the highest fidelity alone, problem by problem."""
    pairs = [(np.mean(found[rule]["costs"]), np.mean(found[ALONE]["costs"])) for found in problems.values()]
    return np.array([cost / highest for cost, highest in pairs])


# Tables


def table(results: dict[str, Any]) -> str:
    """All costs, as tables of the docs."""
    used = ["MFSure", ALONE, "MFGrad", "IISE", "LUCB-A", "LUCB-B"]
    lines: list[tuple[str, ...]] = [("problem", "δ", *used, "lower bound")]
    for name, by_delta in results["named"].items():
        for delta, row in by_delta.items():
            bound = results["lower bounds"][name].get(delta)
            least = "" if bound is None else rounded(bound)
            lines.append((name, delta, *(_cell(row[rule]) if rule in row else "" for rule in used), least))
    for name, delta, problems in _random_ones(results):
        known = {rule for found in problems.values() for rule in found}
        lines.append((name, delta, *(_cell(summary(problems, rule)) if rule in known else "" for rule in used), ""))
    text = markdown(lines)
    for arms, found in results["step"].items():
        text += f"\nA play of MFSure with its stop test at K = {arms}: {found:.1f} µs."
    for name in (UNIFORM, AHEAD):
        if name in results["random"]:
            text += f"\n\n{name}, parts of the cost of the highest fidelity alone:\n\n"
            text += shares_table(results["random"][name]["0.1"])
    return text


def rounded(cost: float) -> str:
    """A cost to the unit, or with two digits if it is small."""
    return f"{cost:,.0f}" if cost >= 10 else plain(cost, 2)


def markdown(lines: Sequence[tuple[str, ...]]) -> str:
    """A table, its head first."""
    ruled = [lines[0], ("---",) * len(lines[0]), *lines[1:]]
    return "\n".join("| " + " | ".join(line) + " |" for line in ruled)


def shares_table(problems: dict[str, dict[str, Any]]) -> str:
    """What rules cost on random problems beside the highest fidelity alone, by how far the two best are apart."""
    head = ("gap", "problems", "MFSure, mean", "median", "largest", "ratio of mean costs", KNOWN, "least for δ → 0")
    lines: list[tuple[str, ...]] = [head]
    for low, high in [*pairwise(GAPS), (GAPS[0], GAPS[-1])]:
        some = {seed: found for seed, found in problems.items() if low <= found["gap"] < high}
        if not some:
            continue
        ratios = to_highest(some, "MFSure")
        whole = summary(some, "MFSure")["cost"] / summary(some, ALONE)["cost"]
        known = {seed: found for seed, found in some.items() if KNOWN in found}
        least = [found[BOUNDS][0] / found[BOUNDS][1] for found in some.values() if BOUNDS in found]
        lines.append(
            (
                f"{low:g} to {high:g}",
                str(len(some)),
                *(f"{value:.2f}" for value in (ratios.mean(), np.median(ratios), ratios.max(), whole)),
                f"{to_highest(known, KNOWN).mean():.2f}" if known else "",
                f"{np.mean(least):.2f}" if least else "",
            )
        )
    return markdown(lines)


def _cell(found: dict[str, Any]) -> str:
    """A cost, with what is unusual: runs that did not end, and wrong answers."""
    text = rounded(found["cost"])
    text += "" if math.isnan(found["half"]) else f" ± {rounded(found['half'])}"
    text += f", {found['ended']:.0%} ended" if found["ended"] < 1 else ""
    return text + (f", {found['wrong']:.1%} wrong" if found["wrong"] else "")


# The pieces

Results = dict[str, Any]


def measure_named(results: Results, instance: Instance, deltas: Sequence[float], runs: int) -> None:
    """All rules on one published problem."""
    characteristic = best_shares(instance.problem).least
    by_delta = results["named"].setdefault(instance.name, {})
    bounds = results["lower bounds"].setdefault(instance.name, {})
    for delta in deltas:
        number = runs if instance.problem.arms < 20 else max(2, runs // 10)
        by_delta[f"{delta:g}"] = {
            rule: measured(instance, rule, delta, number) for rule in rules(instance.problem, delta)
        }
        if isinstance(instance.problem.rewards, mfb.Gaussian):  # for others of that scale it is not a bound
            bounds[f"{delta:g}"] = lower_bound(characteristic, delta)


def measure_twenty(results: Results, name: str, number: int, gaps: tuple[float, float], runs: int) -> None:
    """MFSure beside the highest fidelity alone, and what no rule can be below for δ → 0, problem by problem."""
    make = partial(random_problem, arms=20, ahead=0.1 if name == AHEAD else None)
    seeds = [seed for seed in range(FRESH, FRESH + number) if gaps[0] <= gap(make(seed)) < gaps[1]]
    seeds.sort(key=lambda seed: gap(make(seed)))  # the longest ones first
    found = on_random(make, ("MFSure", ALONE), 0.1, seeds, 1e11, runs)
    for seed in seeds:
        problem, rng = make(seed), np.random.default_rng(seed)
        best = best_shares(problem)
        costs = [known_proportions(problem, best, 0.1, rng) for _ in range(2)]
        found[str(seed)] |= {
            KNOWN: {"costs": costs, "ended": 1.0, "wrong": 0.0},
            BOUNDS: [best.least, best_shares(highest_alone(problem)).cost],
        }
    results["random"].setdefault(name, {}).setdefault("0.1", {}).update(found)


def measure_hundred(results: Results, deltas: Sequence[float]) -> None:
    """All rules, on problems whose best arm is 0.1 ahead; MFGrad and LUCB on every fifth, as they are slow."""
    make, seeds = partial(random_problem, arms=100, ahead=0.1), range(FRESH, FRESH + 100)
    for delta in deltas:
        found = on_random(make, ("MFSure", ALONE, "IISE"), delta, seeds, 1e7)
        for seed, slow in on_random(make, ("MFGrad", "LUCB-A", "LUCB-B"), delta, seeds[::5], 1e6).items():
            found[seed] |= slow
        results["random"].setdefault("100 arms", {})[f"{delta:g}"] = found


def measure_thousand(results: Results) -> None:
    """MFSure and what can be borne beside it, on four problems with 1,000 arms."""
    make = partial(random_problem, arms=1000, ahead=0.1)
    found = on_random(make, ("MFSure", "IISE"), 0.1, range(FRESH, FRESH + 4), 2e6)
    results["random"]["1,000 arms"] = {"0.1": found}


def measure_steps(results: Results) -> None:
    """The time of a step."""
    results["step"] = {"100": step_time(100, 40_000), "1000": step_time(1000, 100_000)}


def pieces(options: argparse.Namespace) -> dict[str, Callable[[Results], None]]:
    """What can be measured, by name."""
    deltas, gaps = options.deltas, tuple(options.gaps)
    instances = [
        Instance("5x2", five_by_two(), 1e5),
        Instance("mu3", mu3(), 1e4),
        *(Instance(f"problem {n}, 20 arms", cut(n), 1e6) for n in (2, 3)),
    ]
    found: dict[str, Callable[[Results], None]] = {
        one.name: partial(measure_named, instance=one, deltas=deltas, runs=options.runs) for one in instances
    }
    for name in (UNIFORM, AHEAD):
        found[name] = partial(measure_twenty, name=name, number=100, gaps=gaps, runs=options.each)
    return found | {
        "100 arms": partial(measure_hundred, deltas=deltas),
        "1,000 arms": measure_thousand,
        "step": measure_steps,
    }


def main() -> int:
    """Measure, write, and list what does not hold."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=400, help="of each rule on the published problems")
    parser.add_argument("--each", type=int, default=4, help="runs on each random problem with 20 arms")
    parser.add_argument("--deltas", type=float, nargs="+", default=DELTAS)
    parser.add_argument("--gaps", type=float, nargs=2, default=(0.0, 1.0), metavar=("LOW", "HIGH"))
    parser.add_argument("--only", nargs="*", metavar="PIECE", help="names of problems, or step; none prints the file")
    parser.add_argument("--out", type=Path, default=Path("results/identification.json"))
    options = parser.parse_args()
    chosen = pieces(options)
    unknown = set(options.only or ()) - set(chosen)
    if unknown:
        parser.error(f"--only must be one of {', '.join(chosen)}; got {', '.join(sorted(unknown))}")
    results: Results = {"named": {}, "lower bounds": {}, "random": {}, "step": {}}
    if options.only is not None and options.out.exists():
        results = json.loads(options.out.read_text())
    for name in chosen if options.only is None else options.only:
        began = time.perf_counter()
        chosen[name](results)
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(results, indent=1))
        print(f"{name}: {time.perf_counter() - began:.0f} s", file=sys.stderr, flush=True)
    print(table(results))
    wrong = verdicts(results)
    print("\n".join(wrong), file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
