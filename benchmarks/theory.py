"""Every function of the theory, and the planner, on a million arms: each must take less than two seconds."""

import json
import sys
import time
from collections.abc import Callable

import numpy as np

import mfbandit as mfb
from mfbandit import theory

ARMS = 1_000_000
AT_MOST = 2.0  # seconds; 1 is returned if a function takes longer


def million_arms() -> mfb.Problem:
    """Bernoulli arms like the paper's third problem's, with three fidelities."""
    rng = np.random.default_rng(0)
    fidelities = mfb.Fidelities([1, 10, 100], [0.2, 0.05, 0], mfb.Bounded())
    means = np.linspace(0.1, 0.9, ARMS) + fidelities.bias_column * rng.uniform(-1, 1, (3, ARMS))
    return mfb.Problem(means.clip(0, 1), fidelities, mfb.Bernoulli())


def best_of(call: Callable[[], object], repeats: int = 3) -> float:
    """The shortest of a few times, in seconds."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> int:
    """Time everything and say so."""
    problem = million_arms()
    capital = 40 * ARMS * 100.0
    calls: dict[str, Callable[[], object]] = {
        "gaps": lambda: theory.gaps(problem),
        "partition": lambda: theory.partition(problem),
        "decay_condition": lambda: theory.decay_condition(problem.fidelities),
        "regret_rate": lambda: theory.regret_rate(problem),
        "best_arm_doubted": lambda: theory.best_arm_doubted(problem.fidelities, 100, 5),
        "expected_plays": lambda: str(theory.expected_plays(problem, 10**9, 5)),
        "plays_tail": lambda: theory.plays_tail(problem, 10**9, 2, 5),
        "upper_bound": lambda: theory.upper_bound(problem, capital, 5).total,
        "ucb_upper_bound": lambda: theory.ucb_upper_bound(problem, capital, 5).total,
        "lower_bound": lambda: theory.lower_bound(problem).proven,
        "lower_bound, divergence": lambda: theory.lower_bound(problem, form="divergence").proven,
        "optimal_fidelity": lambda: theory.optimal_fidelity(problem),
        "plan, all means": lambda: mfb.plan(problem.fidelities, capital, means=problem.means),
        "plan, highest means": lambda: mfb.plan(problem.fidelities, capital, means=problem.means[-1]),
        "plan, prior": lambda: mfb.plan(problem.fidelities, capital, prior=problem.means[-1, ::100], arms=ARMS),
    }
    seconds = {name: best_of(call) for name, call in calls.items()}
    print(json.dumps({"arms": ARMS, "seconds": {name: round(value, 4) for name, value in seconds.items()}}, indent=2))
    slow = [name for name, value in seconds.items() if value > AT_MOST]
    if slow:
        print(f"slower than {AT_MOST:g} s: {', '.join(slow)}", file=sys.stderr)
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
