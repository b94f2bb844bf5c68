"""The engine for LUCB: leader and runner-up, number for number as ``policies/lucb.py`` computes them."""

import math
from typing import NamedTuple

import numpy as np

from mfbandit._internal.typing import FloatArray, IntArray
from mfbandit.core import scales
from mfbandit.policies import LUCB, lucb
from mfbandit.policies.identification import known_scales
from mfbandit.policies.lucb import NOT_YET
from mfbandit.problems import Problem
from mfbandit.simulation.engines.interface import RunState
from mfbandit.simulation.engines.kernels import Generator, affordable, compiled, counting, decide, make_play
from mfbandit.simulation.engines.truth import Truth

__all__ = ["begin", "prepare", "run_on", "supports", "used"]

NOBODY = -1

explore_a = compiled(lucb.explore_a)
explore_b = compiled(lucb.explore_b)
guarded = compiled(lucb.guarded)


class LUCBRule(NamedTuple):
    """What the learner knows; arrays of shape (M,)."""

    best_mean: float
    second_mean: float
    level: float  # log(4KM/δ)
    commits: bool  # Explore-B
    guard: float
    biases: FloatArray
    scales: FloatArray
    costs: FloatArray


class LUCBState(NamedTuple):
    """What was learned, and the plays of this round."""

    counts: FloatArray  # (K, M): results, as numbers to compute with
    sums: FloatArray  # (K, M)
    upper: FloatArray  # (K,): U
    fixed: IntArray  # (K,): the fidelity that Explore-B has fixed, or NOT_YET
    arms: IntArray  # (2M,): the plays of this round
    fidelities: IntArray  # (2M,): the same
    length: IntArray  # (1,): how many there are; 0 before the first round
    place: IntArray  # (1,): of the next one


def supports(problem: Problem, _policy: LUCB) -> bool:
    """Whether biases and the noise's scale are known.

    >>> from mfbandit.problems import paper_problem
    >>> supports(paper_problem(1), LUCB(1.0, 0.9))
    True
    """
    return problem.fidelities.biases is not None and scales(problem.fidelities) is not None


def used(problem: Problem, _policy: LUCB) -> list[int]:
    """All fidelities.

    >>> from mfbandit.problems import paper_problem
    >>> used(paper_problem(2), LUCB(1.0, 0.9))
    [0, 1, 2, 3]
    """
    return list(range(len(problem.fidelities)))


def prepare(problem: Problem, policy: LUCB, _capital: float) -> LUCBRule:
    """What the learner knows, as arrays.

    >>> from mfbandit.problems import paper_problem
    >>> prepare(paper_problem(3), LUCB(1.0, 0.9), 1e6).costs.tolist()
    [1.0, 10.0]
    """
    fidelities = problem.fidelities
    return LUCBRule(
        policy.best_mean,
        policy.second_mean,
        math.log(4.0 * problem.means.size / policy.delta),
        policy.explore == "B",
        policy.guard,
        np.array(fidelities.known_biases),
        np.array(known_scales(fidelities, "LUCB")),
        np.array(fidelities.costs),
    )


def begin(_truth: Truth, run: RunState) -> LUCBState:
    """The state before the first play: nothing learned, no round.

    >>> from mfbandit.problems import paper_problem
    >>> from mfbandit.simulation.engines import lucb
    >>> from mfbandit.simulation.engines.interface import begin_run
    >>> begin_run(lucb, paper_problem(3), LUCB(1.0, 0.9), np.array([100.0])).state.upper.shape
    (200,)
    """
    k, m = run.counts.shape
    nothing = np.zeros(1, dtype=np.int64)
    return LUCBState(
        counts=np.zeros((k, m)),
        sums=np.zeros((k, m)),
        upper=np.full(k, np.inf),
        fixed=np.full(k, NOT_YET),
        arms=np.zeros(2 * m, dtype=np.int64),
        fidelities=np.zeros(2 * m, dtype=np.int64),
        length=nothing.copy(),
        place=nothing.copy(),
    )


@compiled
def upper_bound(rule: LUCBRule, state: LUCBState, arm: int, level: float) -> float:
    """U of an arm; infinite without a result."""
    least = np.inf
    for m in range(len(rule.costs)):
        n = state.counts[arm, m]
        if n > 0:
            least = min(least, (state.sums[arm, m] / n + rule.biases[m]) + rule.scales[m] * math.sqrt(level / n))
    return least


@compiled
def lower_bound(rule: LUCBRule, state: LUCBState, arm: int, level: float) -> float:
    """L of an arm; infinite without a result."""
    most = -np.inf
    for m in range(len(rule.costs)):
        n = state.counts[arm, m]
        if n > 0:
            most = max(most, (state.sums[arm, m] / n - rule.biases[m]) - rule.scales[m] * math.sqrt(level / n))
    return most


@compiled
def largest(values: FloatArray, but: int) -> int:
    """The arm with the largest value except one, the lowest number among ties."""
    first = NOBODY
    for k in range(len(values)):
        if k != but and (first == NOBODY or values[k] > values[first]):
            first = k
    return first


@compiled
def everywhere(state: LUCBState, arm: int) -> bool:
    """Whether an arm has a result at every fidelity."""
    least = np.inf
    for m in range(state.counts.shape[1]):
        least = min(least, state.counts[arm, m])
    return least > 0


@compiled
def fix(rule: LUCBRule, state: LUCBState, leader: int) -> None:
    """Fix the fidelities of the arms that have shown a large enough gap."""
    for k in range(len(state.fixed)):
        if state.fixed[k] == NOT_YET and everywhere(state, k):
            known, side = (rule.second_mean, 1.0) if k == leader else (rule.best_mean, -1.0)
            state.fixed[k] = explore_b(
                state.counts[k], state.sums[k], rule.scales, rule.biases, rule.costs, known, side, rule.level
            )


@compiled
def add_play(state: LUCBState, arm: int, m: int) -> None:
    """Add a play to the round."""
    at = state.length[0]
    state.arms[at], state.fidelities[at] = arm, m
    state.length[0] = at + 1


@compiled
def add_plays(rule: LUCBRule, state: LUCBState, arm: int, leader: int) -> None:
    """Add the plays of an arm to the round."""
    counts = state.counts[arm]
    if rule.commits and state.fixed[arm] == NOT_YET:
        for m in range(len(rule.costs)):
            add_play(state, arm, m)
        return
    if rule.commits:
        chosen = state.fixed[arm]
    else:
        known, side = (rule.second_mean, 1.0) if arm == leader else (rule.best_mean, -1.0)
        chosen = explore_a(counts, state.sums[arm], rule.biases, rule.costs, known, side)
    add_play(state, arm, guarded(counts, rule.costs, chosen, rule.guard) if counts[chosen] > 0 else chosen)


@compiled
def begin_round(rule: LUCBRule, state: LUCBState, run: RunState) -> int:
    """Plan the next round; return the answer, or NOBODY."""
    level = 2.0 * (rule.level + 4.0 * math.log(float(run.t[0])))
    for k in range(len(state.upper)):
        state.upper[k] = upper_bound(rule, state, k, level)
    leader = largest(state.upper, NOBODY)
    second = largest(state.upper, leader)
    state.length[0], state.place[0] = 0, 0
    if rule.commits:
        fix(rule, state, leader)
    add_plays(rule, state, leader, leader)
    if second == NOBODY:
        return leader if run.t[0] > 1 else NOBODY
    add_plays(rule, state, second, leader)
    return leader if lower_bound(rule, state, leader, level) > state.upper[second] else NOBODY


@counting
def run_on(truth: Truth, rule: LUCBRule, state: LUCBState, run: RunState, rng: Generator, steps: int) -> None:
    """Make up to ``steps`` more plays."""
    if state.length[0] == 0:
        begin_round(rule, state, run)
    for _ in range(steps):
        arm, m = state.arms[state.place[0]], state.fidelities[state.place[0]]
        if not affordable(truth, run, arm, m):
            return
        state.sums[arm, m] += make_play(truth, run, arm, m, rng)
        state.counts[arm, m] += 1.0
        state.place[0] += 1
        if state.place[0] == state.length[0]:
            answer = begin_round(rule, state, run)
            if answer != NOBODY:
                decide(run, answer)
                return
