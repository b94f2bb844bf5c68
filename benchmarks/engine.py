"""The engine beside the scans that everyone else makes: steps a second in one process, interleaved, best of five.

    python benchmarks/engine.py [--out FILE.json] [--quick]

MF-UCB on the paper's problems and on larger ones. The tuned scan goes row by row with flags for SIMD; the eight-lane
scan also has its maximum unrolled by hand, and is the fastest scan that we could write. Then the cost of a step at a
million arms, the first call with an empty cache and the start of a second process. Engine and compiled scans are timed
after the first pass over the arms, in which nobody has to search. Other packages are in ``peers.py``. Takes about five
minutes.
"""

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))

import mfbandit as mfb
from benchmarks.scans import numpy_loop, plain_scan, scan_arguments, tuned_scan
from mfbandit.simulation.engines import heap_ucb
from mfbandit.simulation.engines.interface import EngineRun, begin_run

ROUNDS = 5
NO_TRACE = np.zeros((0, 2), dtype=np.int64)
Timed = Callable[[int], float]

# What must hold, as ratios to the tuned scan in the same run.
AT_LEAST = {"paper problem 1": 10.0, "paper problem 2": 4.0, "paper problem 4": 8.0, "K = 10": 0.8, "K = 10,000": 50.0}
MILLION_AT_MOST = 10.0


def seconds(call: Callable[[], object]) -> float:
    """Time of one call."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def large_problem(k: int, *, bernoulli: bool = False) -> mfb.Problem:
    """The paper's first problem with another number of arms, or with 0/1 rewards."""
    rng = np.random.default_rng(0)
    fid = mfb.Fidelities([1, 10, 1000], [0.2, 0.1, 0], mfb.Bounded() if bernoulli else mfb.SubGaussian(0.2))
    truth = np.linspace(0.1, 0.9, k) if bernoulli else np.linspace(0, 1, k + 2)[1:-1]
    means = truth + fid.bias_column * rng.uniform(-1, 1, (3, k))
    if bernoulli:
        return mfb.Problem(means.clip(0, 1), fid, mfb.Bernoulli())
    return mfb.Problem(means, fid, mfb.Gaussian(0.2))


def after_first_pass(
    problem: mfb.Problem, policy: mfb.UCB | mfb.MFUCB
) -> tuple[EngineRun[Any, Any], np.random.Generator]:
    """A run of the engine in which each arm has been played once."""
    started, rng = begin_run(heap_ucb, problem, policy, np.array([1e18])), np.random.default_rng(1)
    started.advance(rng, problem.arms)
    return started, rng


def by_engine(problem: mfb.Problem, policy: mfb.UCB | mfb.MFUCB) -> Timed:
    """Time of n steps of the engine."""

    def run(n: int) -> float:
        started, rng = after_first_pass(problem, policy)
        return seconds(lambda: started.advance(rng, n))

    return run


def by_scan(scan: Callable[..., object], problem: mfb.Problem, policy: mfb.UCB | mfb.MFUCB, *more: bool) -> Timed:
    """Time of n steps of a scan."""
    arguments = scan_arguments(problem, policy)

    def whole_run(n: int) -> float:
        return seconds(lambda: scan(*arguments, n, np.random.default_rng(1), NO_TRACE, *more))

    return lambda n: whole_run(problem.arms + n) - whole_run(problem.arms)


def by_numpy(problem: mfb.Problem) -> Timed:
    """Time of n steps of a loop over NumPy calls."""
    return lambda n: seconds(lambda: numpy_loop(problem, 2.0, n, np.random.default_rng(1)))


def rates(contenders: dict[str, tuple[Timed, int]]) -> dict[str, float]:
    """Best steps a second of each contender over interleaved rounds; each has its own number of steps."""
    for run, _ in contenders.values():
        run(50)  # compile
    best = dict.fromkeys(contenders, 0.0)
    for _ in range(ROUNDS):
        for name, (run, n) in contenders.items():
            best[name] = max(best[name], n / run(n))
    return best


def mfucb_cases(scale: float) -> dict[str, dict[str, float]]:
    """MF-UCB by engine and by scans."""
    problems = {f"paper problem {number}": mfb.paper_problem(number, seed=0) for number in (1, 2, 3, 4)}
    problems |= {f"K = {k:,}": large_problem(k) for k in (10, 1_000, 10_000)}
    problems |= {f"K = {k:,}, 0/1 rewards": large_problem(k, bernoulli=True) for k in (1_000, 10_000)}
    table = {}
    for name, problem in problems.items():
        # The same steps where that takes seconds. A scan looks at everything at every step: its rate does not change.
        slow = int((3e6 if problem.means.size <= 5000 else 1.2e9 / problem.means.size) * scale)
        table[name] = rates(
            {
                "engine": (by_engine(problem, mfb.MFUCB()), int(3e6 * scale)),
                "tuned scan": (by_scan(tuned_scan, problem, mfb.MFUCB()), slow),
                "eight-lane scan": (by_scan(tuned_scan, problem, mfb.MFUCB(), True), slow),
                "plain scan": (by_scan(plain_scan, problem, mfb.MFUCB()), int(2e8 / problem.means.size * scale)),
                "NumPy loop": (by_numpy(problem), int(4000 * scale)),
            }
        )
        report(name, table[name])
    return table


def ucb_case(scale: float) -> dict[str, float]:
    """UCB at 500 arms, by the engine and the scans."""
    problem = mfb.paper_problem(1, seed=0)
    contenders: dict[str, tuple[Timed, int]] = {
        "engine": (by_engine(problem, mfb.UCB()), int(3e6 * scale)),
        "tuned scan": (by_scan(tuned_scan, problem, mfb.UCB()), int(1e6 * scale)),
        "eight-lane scan": (by_scan(tuned_scan, problem, mfb.UCB(), True), int(1e6 * scale)),
    }
    table = rates(contenders)
    report("UCB, paper problem 1", table)
    return table


def step_after_first_pass(k: int, n: int, *, bernoulli: bool) -> float:
    """Nanoseconds a step over n steps after each arm has been played once."""
    started, rng = after_first_pass(large_problem(k, bernoulli=bernoulli), mfb.MFUCB())
    return seconds(lambda: started.advance(rng, n)) / n * 1e9


def scale_in_arms(scale: float) -> dict[str, dict[str, float]]:
    """The cost of a step from a thousand arms to a million, and the memory of the whole process at the end."""
    table: dict[str, dict[str, float]] = {}
    for bernoulli in (False, True):
        column = {}
        for k in (1_000, 10_000, 100_000, 1_000_000):
            n = int(max(20 * k, 3e6) * scale)
            rounds = ROUNDS if k < 1_000_000 else 2
            column[f"{k:,}"] = min(step_after_first_pass(k, n, bernoulli=bernoulli) for _ in range(rounds))
        table["0/1 rewards" if bernoulli else "Gaussian"] = column
        print(f"  ns a step, {'0/1 rewards' if bernoulli else 'Gaussian'}:", {k: round(v) for k, v in column.items()})
    return table


def memory_at_a_million() -> float:
    """Peak megabytes of a process that simulates a million arms."""
    code = (
        "import resource, sys; sys.path.insert(0, sys.argv[1])\n"
        "from benchmarks.engine import large_problem; import mfbandit as m\n"
        "m.simulate(large_problem(1_000_000), m.MFUCB(), capital=4e6)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)"
    )
    command = [sys.executable, "-c", code, str(Path(__file__).parent.parent)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def start_up() -> dict[str, float]:
    """Seconds of first simulations with an empty cache, in a second process, and once warm: MF-UCB and UCB."""
    code = (
        "import time; s = time.perf_counter(); import mfbandit as m; p = m.paper_problem(3)\n"
        "go = lambda: [m.simulate(p, policy, capital=1e4) for policy in (m.MFUCB(), m.UCB())]\n"
        "go(); first = time.perf_counter() - s\n"
        "s = time.perf_counter(); go(); print(first, time.perf_counter() - s)"
    )
    with tempfile.TemporaryDirectory() as cache:
        environment = os.environ | {"NUMBA_CACHE_DIR": cache}
        runs = [
            subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
            for _ in range(4)
        ]
    times = [tuple(map(float, run.stdout.split())) for run in runs]
    return {"empty cache": times[0][0], "second process": min(first for first, _ in times[1:]), "warm": times[-1][1]}


def report(name: str, table: dict[str, float]) -> None:
    """One line: millions of steps a second, and the ratio of the engine to each."""
    ours = table["engine"]
    cells = [f"{other} {rate / 1e6:.4g} M/s (x{ours / rate:.3g})" for other, rate in table.items()]
    print(f"  {name}: " + ", ".join(cells), flush=True)


def verdicts(results: dict[str, Any]) -> dict[str, str]:
    """Each target with what was measured."""
    lines = {}
    for name, least in AT_LEAST.items():
        table = results["MF-UCB"][name]
        ratio, other = table["engine"] / table["tuned scan"], table["engine"] / table["eight-lane scan"]
        held = "holds" if ratio >= least else "MISSED"
        lines[name] = f"{ratio:.3g} of the tuned scan, at least {least:g}: {held} ({other:.3g} of the eight-lane scan)"
    steps = results["ns a step"]["Gaussian"]
    ratio = steps["1,000,000"] / steps["1,000"]
    held = "holds" if ratio <= MILLION_AT_MOST else "MISSED"
    lines["a million arms"] = f"a step takes {ratio:.3g} of one at 1,000 arms, at most {MILLION_AT_MOST:g}: {held}"
    memory, start = results["memory MB"], results["start-up s"]
    lines["memory"] = f"{memory:.0f} MB at a million arms, under 1,000: {'holds' if memory < 1000 else 'MISSED'}"
    first, extra = start["empty cache"], start["second process"] - start["warm"]
    lines["empty cache"] = f"{first:.1f} s, under 20: {'holds' if first < 20 else 'MISSED'}"
    lines["second process"] = f"{extra:.2f} s of overhead, under 1: {'holds' if extra < 1 else 'MISSED'}"
    return lines


def main() -> int:
    """Measure, print, write; 1 if a target was missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="write the numbers to this JSON file")
    parser.add_argument("--quick", action="store_true", help="a tenth of the steps: a look, not a measurement")
    options = parser.parse_args()
    scale = 0.1 if options.quick else 1.0
    print("MF-UCB, steps a second (and how many times as fast the engine is)")
    results: dict[str, Any] = {"MF-UCB": mfucb_cases(scale), "UCB": ucb_case(scale)}
    print("the cost of a step after the first pass over the arms")
    results["ns a step"] = scale_in_arms(scale)
    results["memory MB"] = memory_at_a_million()
    results["start-up s"] = start_up()
    results["machine"] = {
        "python": platform.python_version(),
        "numpy": np.__version__,
        "numba": numba.__version__,
        "cores": os.cpu_count(),
        "peak MB here": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }
    results["verdicts"] = verdicts(results)
    for name, line in results["verdicts"].items():
        print(f"  {name}: {line}")
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(results, indent=2) + "\n")
    return int(any("MISSED" in line for line in results["verdicts"].values()))


if __name__ == "__main__":
    sys.exit(main())
