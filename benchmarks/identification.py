"""What it costs to find the best arm: MFSure, the baselines from the literature, and the highest fidelity alone.

Problems are the two published ones of MF-GRAD's authors (5x2, mu3), problems 2 and 3 of the paper cut to 20 arms (the
best and every n-th behind it), random ones with 20 arms, random ones with 100 arms of which the best is 0.1 ahead, and
one such with 1,000. "Highest alone" is MFSure where there is no other fidelity. A run that has not decided when its
capital is spent counts with all of that, and as not ended: its mean is a lower bound.

LUCB is told the true means of the two best arms, which flatters it. The lower bound is T*·kl(δ, 1 − δ) for δ → 0.

Takes half an hour on two cores; ``--quick`` gives an idea in a minute. Most of the time is for the random problems with
20 arms whose two best are close. Plays grow with 1/gap², at the highest fidelity and whatever the rule: 0.0001 apart, a
run takes 500 million. So those closer than ``--least-gap`` are left out; how many is said.
"""

import argparse
import json
import math
import os
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import mfbandit as mfb
from mfbandit._internal.formatting import columns, readable
from mfbandit._internal.typing import FloatArray

DELTAS = (0.1, 0.01, 1e-6)
MU3 = ((0.41, 0.45, 0.47, 0.48, 0.5), (0.35, 0.37, 0.38, 0.36, 0.35), (0.51, 0.56, 0.64, 0.62, 0.61))
RANDOM_BIASES, RANDOM_COSTS, RANDOM_SCALE = (0.3, 0.03, 0.0), (1.0, 10.0, 100.0), 0.2
PUBLISHED = {"MFGrad": (472.0, 63.0), "IISE": (1775.0, 54.0), "LUCB-A": (2998.0, 45.0)}  # on 5x2 at δ = .1
AT_MOST = {0.1: 0.6, 1e-6: 0.8}  # of MFGrad's cost, on 5x2 and mu3
MEAN_RATIO, LARGEST_RATIO = 0.5, 1.5  # of the cost of the highest fidelity alone, on random problems
STEP_MICROSECONDS = {100: 30.0, 1000: 150.0}
SURELY = 3.0  # standard errors by which a share may exceed its limit by chance


@dataclass(frozen=True)
class Instance:
    """A problem, by name, and what its runs may cost."""

    name: str
    problem: mfb.Problem
    capital: float


def gaussian(
    means: Sequence[Sequence[float]], scale: float, biases: Sequence[float], costs: Sequence[float]
) -> mfb.Problem:
    """A problem with normal rewards whose scale and biases are known."""
    return mfb.Problem(means, mfb.Fidelities(costs, biases, mfb.SubGaussian(scale)), mfb.Gaussian(scale))


def five_by_two() -> mfb.Problem:
    """The published problem 5x2."""
    return gaussian([[0.4] * 4 + [0.5], [0.5] * 4 + [0.6]], 0.1, (0.1, 0), (0.5, 5))


def mu3() -> mfb.Problem:
    """The published problem mu3."""
    means = np.array([*MU3, (0.41, 0.39, 0.4, 0.42, 0.43)]).T
    return gaussian(means.tolist(), 0.1, (0.1, 0.08, 0.04, 0.02, 0), (0.1, 0.125, 0.25, 0.5, 1))


def cut(number: int, arms: int = 20) -> mfb.Problem:
    """A problem of the paper, with fewer arms."""
    whole = mfb.paper_problem(number)
    order = np.argsort(-whole.means[-1], kind="stable")[:: whole.arms // arms][:arms]
    return mfb.Problem(whole.means[:, order], whole.fidelities, whole.rewards)


def random_problem(seed: int, arms: int, ahead: float | None = None) -> mfb.Problem:
    """Means uniform on (0, 1); with ``ahead``, the first arm is that much better than the best other."""
    rng = np.random.default_rng([seed, arms])
    top = rng.uniform(0, 1, arms)
    if ahead is not None:
        top[0] = top[1:].max() + ahead
    means = [(top + rng.uniform(-bias, bias, arms)).tolist() for bias in RANDOM_BIASES]
    return gaussian(means, RANDOM_SCALE, RANDOM_BIASES, RANDOM_COSTS)


def gap(problem: mfb.Problem) -> float:
    """How far the second best arm is behind."""
    second, best = np.sort(problem.means[-1])[-2:]
    return float(best - second)


def highest_alone(problem: mfb.Problem) -> mfb.Problem:
    """The same problem with its highest fidelity only."""
    fidelities = mfb.Fidelities(problem.fidelities.costs[-1:], [0.0], problem.fidelities.tails[-1:])
    return mfb.Problem(problem.means[-1:], fidelities, problem.rewards)


def rules(problem: mfb.Problem, delta: float) -> dict[str, tuple[mfb.Problem, Any]]:
    """The problem and the policy of each rule, by name."""
    second, best = (float(mean) for mean in np.sort(problem.means[-1])[-2:])
    lucb = partial(mfb.LUCB, best, second, delta)
    return {
        "MFSure": (problem, mfb.MFSure(delta)),
        "highest alone": (highest_alone(problem), mfb.MFSure(delta)),
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


def in_parallel(job: Callable[[int], Any], seeds: Sequence[int]) -> list[Any]:
    """Do a job for each seed, on all cores."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(job, seeds))


def on_random(
    make: Callable[[int], mfb.Problem], rule: str, seeds: Sequence[int], capital: float, runs: int = 1
) -> dict[str, Any]:
    """Let a rule find the best arm of each of many problems, at δ = .1; costs are means over its runs."""

    def one(seed: int) -> tuple[float, float, float]:
        problem, policy = rules(make(seed), 0.1)[rule]
        sim = mfb.simulate(problem, policy, capital=capital, runs=runs, seed=seed, grid=1, workers=1)
        ended, wrong = sim.answers >= 0, sim.answers != int(problem.means[-1].argmax())
        return float(sim.spent.mean()), float(ended.mean()), float((ended & wrong).mean())

    costs, ended, wrong = (np.array(values) for values in zip(*in_parallel(one, seeds), strict=True))
    return {
        "cost": float(costs.mean()),
        "half": half_width(costs),
        "costs": costs.tolist(),
        "ended": float(ended.mean()),
        "wrong": float(wrong.mean()),
        "runs": runs * len(seeds),
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


# The lower bound


def evidence_rates(problem: mfb.Problem, shares: FloatArray) -> tuple[FloatArray, FloatArray]:
    """f_ia of the true means for each arm a, at weights ω/λ, and the meeting points; the best arm has infinity."""
    costs, biases = np.array(problem.fidelities.costs)[:, None], np.array(problem.fidelities.known_biases)[:, None]
    scales = np.array([tail.scale for tail in problem.fidelities.tails])[:, None]  # type: ignore[attr-defined]
    weights, best = shares / costs / (2 * scales**2), int(problem.means[-1].argmax())
    low, high = problem.means.min() - 1 + np.zeros(problem.arms), problem.means.max() + 1 + np.zeros(problem.arms)
    lead, rivals = problem.means[:, [best]] - biases, problem.means + biases
    for _ in range(40):
        middle = 0.5 * (low + high)
        slope = (weights * np.maximum(middle - rivals, 0)).sum(axis=0)
        slope -= (weights[:, [best]] * np.maximum(lead - middle, 0)).sum(axis=0)
        low, high = np.where(slope > 0, low, middle), np.where(slope > 0, middle, high)
    value = (weights[:, [best]] * np.maximum(lead - low, 0) ** 2).sum(axis=0)
    value += (weights * np.maximum(low - rivals, 0) ** 2).sum(axis=0)
    value[best] = np.inf
    return value, low


def characteristic_cost(problem: mfb.Problem, steps: int = 2000) -> float:
    """T* = 1/max over cost shares ω of min over a of f_ia(ω/λ), by mirror ascent; from above."""
    best = int(problem.means[-1].argmax())
    costs, biases = np.array(problem.fidelities.costs)[:, None], np.array(problem.fidelities.known_biases)[:, None]
    scales = np.array([tail.scale for tail in problem.fidelities.tails])[:, None]  # type: ignore[attr-defined]
    log_shares, largest = np.zeros(problem.means.shape), 0.0
    average = np.zeros(problem.means.shape)
    for step in range(1, steps + 1):
        shares = np.exp(log_shares - log_shares.max())
        shares /= shares.sum()
        average += (shares - average) / step
        values, meeting = evidence_rates(problem, shares)
        rival = int(values.argmin())
        largest = max(largest, float(values[rival]))
        if step % 20 == 0:
            largest = max(largest, float(evidence_rates(problem, average)[0].min()))
        slope = np.zeros(problem.means.shape)
        distance = np.maximum(problem.means[:, [best]] - biases - meeting[rival], 0)
        slope[:, [best]] = distance**2 / (2 * scales**2 * costs)
        distance = np.maximum(meeting[rival] - problem.means[:, [rival]] - biases, 0)
        slope[:, [rival]] = distance**2 / (2 * scales**2 * costs)
        log_shares += slope / max(float(slope.max()), 1e-300) / math.sqrt(step)
    return 1 / largest


def lower_bound(characteristic: float, delta: float) -> float:
    """T*·kl(δ, 1 − δ): no rule that is wrong in at most δ of all runs costs less on average."""
    return characteristic * (1 - 2 * delta) * math.log((1 - delta) / delta)


# What must hold


def verdicts(results: dict[str, Any]) -> list[str]:
    """List what does not hold."""
    return [
        *_against_mfgrad(results["named"]),
        *_against_published(results["named"]),
        *_wrong_answers(results),
        *_on_random_ones(results["random"].get("20 arms")),
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
    for name, by_delta in results["named"].items():
        for delta, row in by_delta.items():
            found, limit = row["MFSure"], float(delta)
            if found["wrong"] > limit + SURELY * math.sqrt(limit / found["runs"]):
                wrong.append(f"{name}, δ = {delta}: wrong in {found['wrong']:.3f} of all runs")
    for name, row in results["random"].items():
        found = row["MFSure"]
        if found["wrong"] > 0.1 + SURELY * math.sqrt(0.1 / found["runs"]):
            wrong.append(f"random, {name}: wrong in {found['wrong']:.3f} of all runs")
    return wrong


def _on_random_ones(row: dict[str, Any] | None) -> list[str]:
    if row is None:
        return []
    ratios, wrong = ratios_to_highest(row), []
    if row["MFSure"]["ended"] < 1:
        wrong.append(f"random, 20 arms: {row['MFSure']['ended']:.0%} of all runs ended")
    if ratios.mean() > MEAN_RATIO:
        wrong.append(f"random, 20 arms: {ratios.mean():.2f} of the highest fidelity's cost, more than {MEAN_RATIO}")
    if ratios.max() > LARGEST_RATIO:
        wrong.append(f"random, 20 arms: up to {ratios.max():.2f} of the highest fidelity's, more than {LARGEST_RATIO}")
    return wrong


def ratios_to_highest(row: dict[str, Any]) -> FloatArray:
    """The cost of MFSure over that of the highest fidelity alone, problem by problem."""
    ratios: FloatArray = np.array(row["MFSure"]["costs"]) / np.array(row["highest alone"]["costs"])
    return ratios


# The whole


def table(results: dict[str, Any]) -> str:
    """All costs, as text."""
    lines = [("problem", "δ", "rule", "mean cost", "±", "ended", "wrong", "µs/play", "of the lower bound")]
    for name, by_delta in results["named"].items():
        for delta, row in by_delta.items():
            for rule, found in row.items():
                times = found["cost"] / results["lower bounds"][name][delta]
                per_play = 1e6 * found["seconds"] / max(1.0, found["steps"] * found["runs"])
                lines.append((name, delta, rule, *_cells(found), f"{per_play:.1f}", f"{times:.2f}"))
    for name, row in results["random"].items():
        lines += [(f"random, {name}", "0.1", rule, *_cells(found), "", "") for rule, found in row.items()]
    text = "\n".join(columns(lines))
    for arms, found in results["step"].items():
        text += f"\nA play of MFSure with its stop test at K = {arms}: {found:.1f} µs."
    if "20 arms" in results["random"]:
        row = results["random"]["20 arms"]
        ratios = ratios_to_highest(row)
        text += (
            f"\nRandom, 20 arms: MFSure costs {ratios.mean():.2f} of the highest fidelity alone (mean over problems), "
            f"{np.median(ratios):.2f} (median), {ratios.max():.2f} (largest), "
            f"{row['MFSure']['cost'] / row['highest alone']['cost']:.2f} (ratio of mean costs). "
            f"For δ → 0 no rule has less than {np.mean(results['least ratios']):.2f} (mean over problems)."
        )
    return text


def _cells(found: dict[str, Any]) -> tuple[str, ...]:
    return readable(found["cost"]), readable(found["half"]), f"{found['ended']:.0%}", f"{found['wrong']:.2%}"


def named_instances(quick: bool) -> list[Instance]:
    """The problems that have a name."""
    published = [Instance("5x2", five_by_two(), 1e5), Instance("mu3", mu3(), 1e4)]
    return published if quick else [*published, *(Instance(f"problem {n}, 20 arms", cut(n), 1e6) for n in (2, 3))]


def run_all(*, quick: bool, runs: int, least_gap: float) -> dict[str, Any]:
    """Measure everything; ``quick`` is for an idea."""
    results: dict[str, Any] = {"named": {}, "lower bounds": {}, "random": {}, "step": {}}
    for instance in named_instances(quick):
        by_delta = results["named"][instance.name] = {}
        bounds = results["lower bounds"][instance.name] = {}
        characteristic = characteristic_cost(instance.problem)
        for delta in DELTAS[:1] if quick else DELTAS:
            print(f"{instance.name}, δ = {delta:g}", file=sys.stderr, flush=True)
            number = runs if len(instance.problem.means[0]) < 20 else max(2, runs // 10)
            by_delta[f"{delta:g}"] = {
                rule: measured(instance, rule, delta, number) for rule in rules(instance.problem, delta)
            }
            bounds[f"{delta:g}"] = lower_bound(characteristic, delta)
    number = 5 if quick else 100
    print("random problems", file=sys.stderr, flush=True)
    small = partial(random_problem, arms=20)
    seeds = [seed for seed in range(number) if gap(small(seed)) >= (0.05 if quick else least_gap)]
    print(f"left out, as the best two are too close: {number - len(seeds)} of {number}", file=sys.stderr, flush=True)
    results["random"]["20 arms"] = {
        rule: on_random(small, rule, seeds, 1e10, 8) for rule in ("MFSure", "highest alone")
    }
    chosen = [small(seed) for seed in seeds]
    results["least ratios"] = [
        characteristic_cost(one, 200) / characteristic_cost(highest_alone(one), 200) for one in chosen
    ]
    if not quick:
        large = partial(random_problem, arms=100, ahead=0.1)
        names = ("MFSure", "highest alone", "IISE")
        results["random"]["100 arms"] = {rule: on_random(large, rule, range(number), 1e6) for rule in names}
        huge = partial(random_problem, arms=1000, ahead=0.1)
        results["random"]["1,000 arms"] = {rule: on_random(huge, rule, [0, 0], 2e6) for rule in ("MFSure", "IISE")}
        results["step"] = {"100": step_time(100, 40_000), "1000": step_time(1000, 100_000)}
    return results


def main() -> int:
    """Measure, write, and list what does not hold."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=400, help="of each rule on the published problems")
    parser.add_argument("--quick", action="store_true", help="the published problems at δ = .1, and five random ones")
    parser.add_argument("--least-gap", type=float, default=0.004, help="between the two best of 20 random arms")
    parser.add_argument("--out", type=Path, default=Path("results/identification.json"))
    options = parser.parse_args()
    results = run_all(quick=options.quick, runs=options.runs, least_gap=options.least_gap)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(results, indent=1))
    print(table(results))
    wrong = verdicts(results)
    print("\n".join(wrong), file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
