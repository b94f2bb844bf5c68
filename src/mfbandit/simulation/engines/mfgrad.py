"""The engine for MFGrad: evidence and gradient, number for number as ``policies/mfgrad.py`` computes them."""

import math
from typing import NamedTuple

import numpy as np

from mfbandit._internal.typing import FloatArray
from mfbandit.core import scales
from mfbandit.policies import MFGrad
from mfbandit.policies.identification import known_scales
from mfbandit.policies.mfgrad import CONSTANT_RATE, LARGEST_STEP, MOST_BEHIND
from mfbandit.problems import Problem
from mfbandit.simulation.engines.bracket import ANYWHERE, minimum, narrowed
from mfbandit.simulation.engines.interface import RunState
from mfbandit.simulation.engines.kernels import Generator, affordable, compiled, counting, decide, largest, make_play
from mfbandit.simulation.engines.truth import Truth

__all__ = ["begin", "prepare", "run_on", "supports", "used"]

NOBODY = -1
MARGIN, SLACK = 1.0 + 1e-6, 1e-9  # relative, and in units of evidence: by how much a bound must be above, for rounding


class GradRule(NamedTuple):
    """What the learner knows; arrays of shape (M,)."""

    level: float  # log(K/δ)
    proved: bool
    constant: bool  # the rate
    biases: FloatArray
    scales: FloatArray
    relative: FloatArray  # σ_M²/σ_m²
    costs: FloatArray


class GradState(NamedTuple):
    """What was learned of each arm at each fidelity; arrays of shape (K, M) but for the last ones, of shape (K,)."""

    counts: FloatArray  # results, as numbers to compute with
    sums: FloatArray
    low: FloatArray  # X̄ − ζ
    high: FloatArray  # X̄ + ζ
    weights: FloatArray  # of the results, n σ_M²/σ_m²
    tilted: FloatArray  # of the shares
    gradients: FloatArray
    shares: FloatArray
    aims: FloatArray
    means: FloatArray  # where D is smallest, by results
    own: FloatArray  # D there
    tilted_means: FloatArray  # the same by shares
    tilted_own: FloatArray
    bounds: FloatArray  # on the minimum over a of f_ia, for each i that was not looked at


def supports(problem: Problem, _policy: MFGrad) -> bool:
    """Whether biases and the noise's scale are known.

    >>> from mfbandit.problems import paper_problem
    >>> supports(paper_problem(1), MFGrad())
    True
    """
    return problem.fidelities.biases is not None and scales(problem.fidelities) is not None


def used(problem: Problem, _policy: MFGrad) -> list[int]:
    """All fidelities.

    >>> from mfbandit.problems import paper_problem
    >>> used(paper_problem(2), MFGrad())
    [0, 1, 2, 3]
    """
    return list(range(len(problem.fidelities)))


def prepare(problem: Problem, policy: MFGrad, _capital: float) -> GradRule:
    """What the learner knows, as arrays.

    >>> from mfbandit.problems import paper_problem
    >>> prepare(paper_problem(3), MFGrad(), 1e6).costs.tolist()
    [1.0, 10.0]
    """
    fidelities = problem.fidelities
    known = np.array(known_scales(fidelities, "MFGrad"))
    relative = (known[-1] / known) * (known[-1] / known)
    level, constant = math.log(problem.arms / policy.delta), policy.rate == "constant"
    biases, costs = np.array(fidelities.known_biases), np.array(fidelities.costs)
    return GradRule(level, policy.proved, constant, biases, known, relative, costs)


def begin(_truth: Truth, run: RunState) -> GradState:
    """The state before the first play: nothing learned, all shares alike.

    >>> from mfbandit.problems import paper_problem
    >>> from mfbandit.simulation.engines import mfgrad
    >>> from mfbandit.simulation.engines.interface import begin_run
    >>> begin_run(mfgrad, paper_problem(3), MFGrad(), np.array([100.0])).state.aims.shape
    (200, 2)
    """
    shape = run.counts.shape
    cells, arms = [np.zeros(shape) for _ in range(9)], [np.zeros(shape[0]) for _ in range(5)]
    state = GradState(*cells, *arms)
    state.shares[:] = 1.0
    return state


@compiled
def slope(low: FloatArray, high: FloatArray, weights: FloatArray, point: float, before: float) -> float:
    """Add the derivative of an arm's D to what was before."""
    total = before
    for m in range(len(low)):
        total += weights[m] * (max(point - high[m], 0.0) - max(low[m] - point, 0.0))
    return total


@compiled
def distance(low: FloatArray, high: FloatArray, weights: FloatArray, point: float) -> float:
    """D of an arm."""
    total = 0.0
    for m in range(len(low)):
        gap = max(point - high[m], 0.0) - max(low[m] - point, 0.0)
        total += 0.5 * weights[m] * gap * gap
    return total


@compiled
def own_minimum(low: FloatArray, high: FloatArray, weights: FloatArray) -> float:
    """Where D of an arm is smallest: where its slope, linear between the ends, is 0."""
    bracket = ANYWHERE
    number = len(low)
    for place in range(2 * number):
        point = low[place] if place < number else high[place - number]
        steep = slope(low, high, weights, point, 0.0)
        bracket = narrowed(bracket, point, steep)
    return minimum(bracket)


@compiled
def meeting_point(state: GradState, weights: FloatArray, arm: int, rival: int) -> float:
    """Where the sum of D of two arms is smallest."""
    bracket = ANYWHERE
    number = state.low.shape[1]
    for place in range(4 * number):
        k, m = arm if place < 2 * number else rival, place % number
        point = state.low[k, m] if place % (2 * number) < number else state.high[k, m]
        steep = slope(state.low[arm], state.high[arm], weights[arm], point, 0.0)
        steep = slope(state.low[rival], state.high[rival], weights[rival], point, steep)
        bracket = narrowed(bracket, point, steep)
    return minimum(bracket)


@compiled
def at_least(
    state: GradState, weights: FloatArray, means: FloatArray, own: FloatArray, pair: tuple[int, int], at: float
) -> float:
    """Bound f_ia from below by any point up to η_i: the two meet either below it, or above."""
    arm, rival = pair
    below = distance(state.low[arm], state.high[arm], weights[arm], at) + own[rival]
    above = own[rival]
    if at > means[rival]:
        above = distance(state.low[rival], state.high[rival], weights[rival], at)
    return min(below, own[arm] + above)


@compiled
def weakest_point(
    state: GradState, weights: FloatArray, means: FloatArray, own: FloatArray, arm: int, slack: float
) -> tuple[float, int, float, float]:
    """The minimum over a of f_ia: its value, a, η_i and η_a. Pairs that are surely above it are passed over."""
    least, rival, mean, rival_mean = np.inf, NOBODY, means[arm], 0.0
    for k in range(len(means)):
        if k == arm:
            continue
        if means[k] < means[arm]:
            if rival != NOBODY and at_least(state, weights, means, own, (arm, k), mean) > MARGIN * least + slack:
                continue
            mine = theirs = meeting_point(state, weights, arm, k)
            value = distance(state.low[arm], state.high[arm], weights[arm], mine)
            value += distance(state.low[k], state.high[k], weights[k], mine)
        else:
            mine, theirs, value = means[arm], means[k], own[arm] + own[k]
        if value < least or rival == NOBODY:
            least, rival, mean, rival_mean = value, k, mine, theirs
    return least, rival, mean, rival_mean


@compiled
def set_bounds(bounds: FloatArray, means: FloatArray, own: FloatArray) -> None:
    """Bound the minimum over a of f_ia for each i, by one arm a that is better."""
    first, calm = largest(means), 0
    for k in range(len(own)):
        if own[k] < own[calm] or (own[k] == own[calm] and means[k] > means[calm]):
            calm = k
    for k in range(len(own)):
        bounds[k] = own[k] + (own[calm] if means[k] <= means[calm] else own[first])
    bounds[calm] = own[calm] + own[first]
    bounds[first] = np.inf


@compiled
def strongest(
    state: GradState, weights: FloatArray, means: FloatArray, own: FloatArray, slack: float
) -> tuple[float, int, int, float, float]:
    """F = max over i of min over a of f_ia: its value, i, a, η_i and η_a."""
    set_bounds(state.bounds, means, own)
    best, leader, against, mean, rival_mean = -np.inf, NOBODY, NOBODY, 0.0, 0.0
    while True:
        arm = largest(state.bounds)
        if state.bounds[arm] == -np.inf or (leader != NOBODY and state.bounds[arm] < best):
            return best, leader, against, mean, rival_mean
        value, rival, mine, theirs = weakest_point(state, weights, means, own, arm, slack)
        if leader == NOBODY or value > best or (value == best and arm < leader):
            best, leader, against, mean, rival_mean = value, arm, rival, mine, theirs
        state.bounds[arm] = -np.inf


@compiled
def look(state: GradState, weights: FloatArray, means: FloatArray, own: FloatArray, arm: int) -> None:
    """Compute where an arm's D is smallest, and its value there."""
    means[arm] = own_minimum(state.low[arm], state.high[arm], weights[arm])
    own[arm] = distance(state.low[arm], state.high[arm], weights[arm], means[arm])


@compiled
def learn(rule: GradRule, state: GradState, arm: int, m: int, reward: float) -> None:
    """Take in a reward."""
    state.counts[arm, m] += 1.0
    state.sums[arm, m] += reward
    mean = state.sums[arm, m] / state.counts[arm, m]
    state.low[arm, m], state.high[arm, m] = mean - rule.biases[m], mean + rule.biases[m]
    state.weights[arm, m] = state.counts[arm, m] * rule.relative[m]
    look(state, state.weights, state.means, state.own, arm)


@compiled
def enough(rule: GradRule, time: int) -> float:
    """β, as ``MFGrad.threshold`` computes it."""
    number, repeated = len(rule.costs), math.log(time)
    if rule.proved:
        most = 2.0 * number * math.log(rule.level + 1.0) + 12.0 * number * math.log(repeated + 3.0)
        return rule.level + most + 2.0 * number
    return rule.level + number * math.log(repeated + 1.0)


@compiled
def add_gradient(rule: GradRule, state: GradState, arm: int, m: int, price: float, gap: float) -> None:
    """Add what a play of an arm at m would give, for its cost."""
    if gap > 0 or m == len(rule.costs) - 1:
        step = price * (gap * gap / (2.0 * rule.scales[m] * rule.scales[m] * rule.costs[m]))
        state.gradients[arm, m] += min(step, LARGEST_STEP)


@compiled
def climb(rule: GradRule, state: GradState) -> None:
    """Add the gradient at the present shares."""
    arms, number = state.shares.shape
    whole, speed = 0.0, 0.0
    for k in range(arms):
        for m in range(number):
            state.tilted[k, m] = (state.shares[k, m] / rule.costs[m]) * rule.relative[m]
            whole += state.shares[k, m]
            speed += state.shares[k, m] / rule.costs[m]
        look(state, state.tilted, state.tilted_means, state.tilted_own, k)
    slack = SLACK * rule.scales[number - 1] * rule.scales[number - 1]
    _, arm, rival, mean, rival_mean = strongest(state, state.tilted, state.tilted_means, state.tilted_own, slack)
    for m in range(number):
        add_gradient(rule, state, arm, m, whole / speed, state.low[arm, m] - mean)
        add_gradient(rule, state, rival, m, whole / speed, rival_mean - state.high[rival, m])


@compiled
def aim(rule: GradRule, state: GradState, run: RunState) -> None:
    """Compute the new shares, and add them to the aims."""
    arms, number = state.shares.shape
    steps = run.t[0] - arms * number
    rate = CONSTANT_RATE if rule.constant else 1.0 / math.sqrt(steps + 1.0)
    most, speed = -np.inf, 0.0
    for k in range(arms):
        for m in range(number):
            most = max(most, state.gradients[k, m])
    for k in range(arms):
        for m in range(number):
            state.shares[k, m] = math.exp(max(rate * (state.gradients[k, m] - most), -MOST_BEHIND))
            speed += state.shares[k, m] / rule.costs[m]
    forced = 1.0 / (4.0 * math.sqrt(float(run.t[0])))
    for k in range(arms):
        for m in range(number):
            share = (state.shares[k, m] / rule.costs[m]) / speed
            state.aims[k, m] += (1.0 - forced) * share + forced / (arms * number)


@compiled
def choose(state: GradState, run: RunState) -> tuple[int, int]:
    """The next play: first every arm at every fidelity, then where plays are furthest behind."""
    arms, number = state.aims.shape
    t = run.t[0]
    if t <= arms * number:
        return (t - 1) // number, (t - 1) % number
    arm, fidelity, most = 0, 0, -np.inf
    for m in range(number):
        for k in range(arms):
            behind = state.aims[k, m] - state.counts[k, m]
            if behind > most:
                arm, fidelity, most = k, m, behind
    return arm, fidelity


@compiled
def decided(rule: GradRule, state: GradState, run: RunState) -> int:
    """The answer if there is enough evidence, or NOBODY."""
    arms, number = state.aims.shape
    if arms == 1:
        return 0
    if run.t[0] <= arms * number:
        return NOBODY
    scale = rule.scales[number - 1]
    value, arm, _, _, _ = strongest(state, state.weights, state.means, state.own, SLACK * scale * scale)
    return arm if value / (scale * scale) >= enough(rule, run.t[0] - 1) else NOBODY


@counting
def run_on(truth: Truth, rule: GradRule, state: GradState, run: RunState, rng: Generator, steps: int) -> None:
    """Make up to ``steps`` more plays."""
    for _ in range(steps):
        arm, m = choose(state, run)
        if not affordable(truth, run, arm, m):
            return
        learn(rule, state, arm, m, make_play(truth, run, arm, m, rng))
        answer = decided(rule, state, run)
        if answer != NOBODY:
            decide(run, answer)
            return
        if run.t[0] > state.aims.size:
            climb(rule, state)
            aim(rule, state, run)
