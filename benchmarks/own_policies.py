"""A policy of one's own, plain and compiled, beside the package's engine and a compiled scan: plays a second.

    python benchmarks/own_policies.py [--out FILE.json] [--quick]

UCB-V in ten lines, on problem 1 of the paper (500 arms, normal rewards): its plain form in NumPy; the same index
compiled, with a look at each arm and, declared to rise with log t, with few looks; UCB in the package's engine; and
plain compiled scans over the arms, of UCB-V and of UCB. All in one process, interleaved, best of five rounds, in
seconds of the processor. Takes a minute.
"""

import argparse
import json
import math
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit

sys.path.insert(0, str(Path(__file__).parent.parent))

import mfbandit as mfb
from benchmarks.engine import Timed, rates
from benchmarks.scans import plain_scan, reward, scan_arguments
from mfbandit._internal.formatting import columns, readable
from mfbandit._internal.typing import FloatArray, IntArray
from mfbandit.core import Fidelities, Stats
from mfbandit.policies import ArmCells, Clock
from mfbandit.simulation.engines.interface import begin_run
from mfbandit.simulation.engines.registry import engine_for

PLAIN_AT_LEAST, ENGINE_AT_LEAST, SCAN_AT_LEAST = 100.0, 0.5, 1.0
NO_TRACE = np.zeros((0, 2), dtype=np.int64)


def ucbv(cells: ArmCells, clock: Clock, parameters: tuple[float]) -> float:
    """The index of UCB-V (Audibert, Munos, Szepesvári 2009) at the highest fidelity."""
    n = cells.plays[-1]
    if n == 0:
        return math.inf
    mean = cells.sums[-1] / n
    variance = max(cells.squares[-1] / n - mean * mean, 0.0)
    level = parameters[0] * clock.log_t
    return float(mean + math.sqrt(2.0 * variance * level / n) + 3.0 * level / n)


@dataclass(frozen=True)
class UCBV(mfb.IndexPolicy):
    """UCB-V; its index in NumPy is the fastest plain form, so that the comparison is fair."""

    rho: float = 1.2
    lazy: bool = True

    def compiled(self, _fidelities: Fidelities) -> mfb.CompiledIndex:
        """The functions for Numba."""
        return mfb.CompiledIndex(ucbv, parameters=(self.rho,), rises_with="log t" if self.lazy else None)

    def index(self, stats: Stats, _fidelities: Fidelities) -> FloatArray:
        """The same for all arms at once."""
        n, level = stats.plays[-1], self.rho * math.log(stats.time)
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = stats.sums[-1] / n
            variance = np.maximum(stats.squares[-1] / n - mean * mean, 0.0)
            values = mean + np.sqrt(2.0 * variance * level / n) + 3.0 * level / n
        return np.where(stats.active, np.where(n > 0, values, np.inf), -np.inf)


def compiled(problem: mfb.Problem, policy: mfb.Policy) -> Timed:
    """Time of n plays by an engine, after the first pass over the arms."""
    engine = engine_for(problem, policy)
    if engine is None:
        raise SystemExit(f"no engine runs {policy}")

    def run(n: int) -> float:
        started, rng = begin_run(engine, problem, policy, np.array([1e18])), np.random.default_rng(1)
        started.advance(rng, 2 * problem.arms)
        start = time.process_time()
        started.advance(rng, n)
        return time.process_time() - start

    return run


def plain(problem: mfb.Problem, policy: mfb.Policy) -> Timed:
    """Time of n plays in Python, as an experiment's loop would make them."""

    def run(n: int) -> float:
        stats, rng = Stats.empty(len(problem.fidelities), problem.arms), np.random.default_rng(1)
        start = time.process_time()
        for _ in range(n):
            arm, m = policy.choose(stats.read_only(), problem.fidelities)
            reward = problem.draw(arm, m, rng)
            stats.counts[m, arm] += 1
            stats.sums[m, arm] += reward
            stats.squares[m, arm] += reward * reward
        return time.process_time() - start

    return run


@njit(cache=True, nogil=True, error_model="numpy")
def ucbv_scan(means: FloatArray, sigma: float, rho: float, n: int, rng: np.random.Generator) -> IntArray:
    """UCB-V as loops, compiled: every index from counts and sums at every step."""
    counts, sums, squares = np.zeros(len(means), np.int64), np.zeros(len(means)), np.zeros(len(means))
    for t in range(1, n + 1):
        level = rho * math.log(t)
        best, arm = -np.inf, 0
        for k in range(len(means)):
            value = np.inf
            if counts[k] > 0:
                mean = sums[k] / counts[k]
                variance = max(squares[k] / counts[k] - mean * mean, 0.0)
                value = mean + math.sqrt(2.0 * variance * level / counts[k]) + 3.0 * level / counts[k]
            if value > best:
                best, arm = value, k
        got = reward(means[arm], sigma, False, rng)
        counts[arm] += 1
        sums[arm] += got
        squares[arm] += got * got
    return counts


def by_scan(scan: Callable[..., object], *arguments: object) -> Timed:
    """Time of n plays by a compiled scan over all arms."""

    def run(n: int) -> float:
        start = time.process_time()
        scan(*arguments, n, np.random.default_rng(1))
        return time.process_time() - start

    return run


def ucb_scan(*arguments: Any) -> object:  # noqa: ANN401 - those of the scan
    """UCB by the plain scan, without a trace."""
    scan: Callable[..., object] = plain_scan
    return scan(*arguments, NO_TRACE)


def main() -> None:
    """Measure, print, and say what holds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", help="also write the figures to this file, as JSON")
    parser.add_argument("--quick", action="store_true", help="a fifth of the plays")
    options = parser.parse_args()
    scale, problem = (0.2 if options.quick else 1.0), mfb.paper_problem(1, seed=0)
    means, sigma, *rest = scan_arguments(problem, mfb.UCB())
    speed = rates(
        {
            "UCB-V, plain": (plain(problem, UCBV()), int(5_000 * scale)),
            "UCB-V, compiled, all looks": (compiled(problem, UCBV(lazy=False)), int(200_000 * scale)),
            "UCB-V, compiled, few looks": (compiled(problem, UCBV()), int(5e6 * scale)),
            "UCB, the package's engine": (compiled(problem, mfb.UCB()), int(5e6 * scale)),
            "UCB-V, plain compiled scan": (by_scan(ucbv_scan, means[0], sigma, UCBV().rho), int(200_000 * scale)),
            "UCB, plain compiled scan": (by_scan(ucb_scan, means, sigma, *rest), int(200_000 * scale)),
        }
    )
    rows = [("policy", "plays a second"), *((name, readable(rate)) for name, rate in speed.items())]
    print("\n".join(columns(rows)))
    few = speed["UCB-V, compiled, few looks"]
    ratios = {
        f"few looks over plain (at least {PLAIN_AT_LEAST:g})": few / speed["UCB-V, plain"],
        f"few looks over the engine (at least {ENGINE_AT_LEAST:g})": few / speed["UCB, the package's engine"],
        f"all looks over the scan of UCB-V (at least {SCAN_AT_LEAST:g})": speed["UCB-V, compiled, all looks"]
        / speed["UCB-V, plain compiled scan"],
        f"all looks over the scan of UCB (at least {SCAN_AT_LEAST:g})": speed["UCB-V, compiled, all looks"]
        / speed["UCB, plain compiled scan"],
    }
    for what, ratio in ratios.items():
        print(f"{what}: {ratio:.3g}")
    if options.out:
        Path(options.out).parent.mkdir(parents=True, exist_ok=True)
        Path(options.out).write_text(json.dumps({"plays a second": speed, "ratios": ratios}, indent=1))


if __name__ == "__main__":
    main()
