"""The second compiled engine: for policies whose index is costly, so that it is computed only where it could matter.

KL-UCB's index takes a root by Newton's method, MFAda's a level of its own for every arm. Both only grow between an
arm's plays as the capital is spent: MFAda's H_k only grows meanwhile, and with H_k frozen the index grows with S. So
the index at the end of a block of plays, its *bar*, bounds it from above until then. A step looks at the bars of all
arms, one comparison each, and computes the index of those whose bar reaches the best found so far: few. The bars are
made a little too high, as a root found by Newton's method need not keep the order to the last bit.

All sums over arms are sums of whole numbers (``policies/exploration.py``), so that keeping them up play by play gives
the very numbers that the policy computes anew. Arrays over arms and fidelities have shape (K, M) here.
"""

import math
from typing import NamedTuple

import numpy as np

from mfbandit._internal.typing import FloatArray, IntArray
from mfbandit.core import Bounded, SubGaussian, divergence, limit
from mfbandit.policies import MFUCB, UCB, MFAda, Policy
from mfbandit.policies.exploration import RESOLUTION
from mfbandit.problems import Account as AccountName
from mfbandit.problems import Problem
from mfbandit.simulation.engines.heap_ucb import (
    RAN_DRY,
    REPLAY_IN_ORDER,
    RUNNING,
    SPENT,
    Generator,
    Truth,
    compiled,
    counting,
    draw,
    inlined,
    prepare_truth,
    total_cost,
)

LONGER = 1.02  # a block lasts until the capital spent, or the plays, have grown by this factor
ROOM = 1e-11  # by which bars are too high
kl = compiled(divergence.kl)
kl_upper = compiled(divergence.kl_upper)


class Rule(NamedTuple):
    """What the policy knows; arrays of shape (M,)."""

    ada: bool  # MFAda, or UCB and MF-UCB by divergence
    rho: float
    costs: FloatArray
    biases: FloatArray
    scales: FloatArray  # sigma of sub-Gaussian noise; 0 where rewards lie in a range
    lows: FloatArray
    spans: FloatArray
    widths: FloatArray  # of UCB and MF-UCB: sigma * sqrt(2 rho)
    gammas: FloatArray  # (M - 1,): of MF-UCB, or of MFAda
    cap: float  # no index is above this


class Arms(NamedTuple):
    """What was learned of each arm."""

    counts: IntArray  # (K, M)
    sums: FloatArray  # (K, M)
    means: FloatArray  # (K, M): scaled to [0, 1] where rewards lie in a range
    deviations: FloatArray  # (K, M): in units of reward; infinite without a result
    roots: IntArray  # (K,): square root of the capital spent, in grains
    overlaps: IntArray  # (K,): sum over arms of the smaller root
    bars: FloatArray  # (K,): the index at the block's end, or a little more
    lows: FloatArray  # (K,): the least plausible value
    middles: FloatArray  # (K,)
    tally: IntArray  # (M,)


class Clock(NamedTuple):
    """Where a run stands; arrays of one number each, as they change."""

    t: IntArray  # the next play's
    recorded: IntArray
    status: IntArray
    arm: IntArray  # the last one played, or asked for when a table ran dry
    fidelity: IntArray
    leader: IntArray
    block_end: FloatArray  # in plays, or in capital for MFAda
    lost: FloatArray
    spent: FloatArray


class State(NamedTuple):
    """All that changes in a run, and where regret is recorded."""

    arms: Arms
    clock: Clock
    capitals: FloatArray
    limits: FloatArray
    regret: FloatArray
    best_mean: float


def supports(problem: Problem, policy: Policy) -> bool:
    """Whether this engine can run the policy here: MFAda, and UCB and MF-UCB by divergence.

    >>> from mfbandit.problems.builtin import paper_problem
    >>> supports(paper_problem(1), MFAda()), supports(paper_problem(3), UCB(kl=True)), supports(paper_problem(3), UCB())
    (True, True, False)
    """
    fidelities = problem.fidelities
    if fidelities.concentration is None or (fidelities.biases is None and type(policy) is not UCB):
        return False
    if type(policy) is MFAda:
        return all(type(tail) in (SubGaussian, Bounded) for tail in fidelities.tails)
    if type(policy) not in (UCB, MFUCB) or not policy.kl:  # type: ignore[attr-defined]
        return False
    return all(type(tail) is Bounded for tail in (fidelities.tails[-1:] if type(policy) is UCB else fidelities.tails))


def prepare(problem: Problem, policy: Policy, account: AccountName) -> tuple[Truth, Rule]:
    """What all runs share.

    >>> from mfbandit.problems.builtin import paper_problem
    >>> prepare(paper_problem(3), MFAda(), "paper")[1].spans.tolist()
    [1.0, 1.0]
    """
    top = type(policy) is UCB
    used = problem.fidelities.top if top else problem.fidelities
    ada, rho = type(policy) is MFAda, float(getattr(policy, "rho", 0.0))
    scales = [tail.scale if type(tail) is SubGaussian else 0.0 for tail in used.tails]
    ranges = [(tail.low, tail.high) if isinstance(tail, Bounded) else (0.0, 0.0) for tail in used.tails]
    lows, highs = (np.array(column) for column in zip(*ranges, strict=True))
    widths = [math.sqrt(2 * rho) * tail.scale for tail in used.tails]  # type: ignore[attr-defined]
    ratios = [low / high for low, high in zip(used.costs[:-1], used.costs[1:], strict=True)]
    climb = [bias * math.sqrt(ratio) for bias, ratio in zip(used.known_biases[:-1], ratios, strict=True)]
    gammas = np.array(climb if ada else used.gammas, dtype=np.float64)
    cap = max(tail.high if isinstance(tail, Bounded) else math.inf for tail in used.tails) if ada else math.inf
    known = np.array(used.costs), np.array(used.known_biases), np.array(scales), lows, highs - lows, np.array(widths)
    return prepare_truth(problem, slice(-1, None) if top else slice(None), account), Rule(ada, rho, *known, gammas, cap)


def begin(truth: Truth, capitals: FloatArray, best_mean: float) -> State:
    """A run before its first play.

    >>> from mfbandit.problems.builtin import paper_problem
    >>> truth, rule = prepare(paper_problem(3), MFAda(), "paper")
    >>> int(begin(truth, np.array([100.0]), 0.9).clock.t[0])
    1
    """
    k, m = truth.means.shape
    counts, roots, overlaps = np.zeros((k, m), dtype=np.int64), np.zeros(k, dtype=np.int64), np.zeros(k, dtype=np.int64)
    unknown = np.full((k, m), np.nan), np.full((k, m), np.inf)
    bounds = np.full(k, np.inf), np.full(k, -np.inf), np.full(k, -np.inf)
    arms = Arms(counts, np.zeros((k, m)), *unknown, roots, overlaps, *bounds, np.zeros(m, dtype=np.int64))
    t, recorded, status, arm, fidelity, leader = (np.array([x], dtype=np.int64) for x in (1, 0, RUNNING, 0, 0, 0))
    clock = Clock(t, recorded, status, arm, fidelity, leader, np.zeros(1), np.zeros(1), np.zeros(1))
    return State(arms, clock, capitals, limit(capitals), np.zeros(len(capitals)), best_mean)


# The kernels


@inlined
def upper(rule: Rule, arms: Arms, arm: int, effort: float) -> float:
    """The smallest of the arm's upper bounds for this effort."""
    best = np.inf
    for m in range(len(rule.costs)):
        count = arms.counts[arm, m]
        if count > 0:
            mean = arms.means[arm, m]
            if rule.scales[m] > 0:
                bound = mean + rule.scales[m] * math.sqrt(2 * effort / count)
            else:
                bound = rule.lows[m] + rule.spans[m] * kl_upper(mean, effort / count)
            best = min(best, bound + rule.biases[m])
    return min(best, rule.cap)


@inlined
def effort_of(rule: Rule, arms: Arms, arm: int, spent: float, t: float) -> float:
    """f_k = log(1 + S/H_k) for MFAda, rho log t else."""
    if rule.ada:
        share = spent / rule.costs[0] / ((arms.roots[arm] * RESOLUTION) * (arms.overlaps[arm] * RESOLUTION))
        return math.log(1.0 + share)
    return rule.rho * math.log(t)


@compiled
def make_bar(rule: Rule, arms: Arms, arm: int, block_end: float) -> None:
    """The arm's index when the block is over, and a little more."""
    bar = upper(rule, arms, arm, effort_of(rule, arms, arm, block_end, block_end))
    arms.bars[arm] = bar + ROOM * (1 + abs(bar))


@compiled
def search(rule: Rule, arms: Arms, spent: float, t: int, hint: int) -> tuple[int, float]:
    """The arm with the largest index, the lowest number among ties, and that index."""
    arm = hint
    best = upper(rule, arms, arm, effort_of(rule, arms, arm, spent, t))
    for k in range(len(arms.bars)):
        if arms.bars[k] >= best and k != arm:
            value = upper(rule, arms, k, effort_of(rule, arms, k, spent, t))
            if value > best or (value == best and k < arm):
                arm, best = k, value
    return arm, best


@compiled
def lead(rule: Rule, arms: Arms, spent: float, t: int, hint: int) -> tuple[int, float]:
    """The arm with the largest value, the lowest number among ties, and that value: the target."""
    leader = hint
    best = min(upper(rule, arms, leader, effort_of(rule, arms, leader, spent, t)), arms.middles[leader])
    for k in range(len(arms.bars)):
        if arms.middles[k] >= best and arms.bars[k] >= best and k != leader:
            value = min(upper(rule, arms, k, effort_of(rule, arms, k, spent, t)), arms.middles[k])
            if value > best or (value == best and k < leader):
                leader, best = k, value
    return leader, best


@compiled
def first_open(rule: Rule, arms: Arms, arm: int, t: int) -> int:
    """The first fidelity that can still tell something: by its deviation for MFAda, by its width for MF-UCB."""
    u = math.sqrt(math.log(t))
    for m in range(len(rule.gammas)):
        count = arms.counts[arm, m]
        if count == 0:
            return m
        wide = arms.deviations[arm, m] if rule.ada else u * (rule.widths[m] / math.sqrt(count))
        if wide >= rule.gammas[m]:
            return m
    return len(rule.gammas)


@compiled
def divergence_above(rule: Rule, m: int, x: float, y: float) -> float:
    """The information of one reward on whether a mean of x could be y; 0 where y is not above x."""
    if rule.scales[m] > 0:
        return (y - x) * (y - x) / (2 * rule.scales[m] * rule.scales[m]) if y > x else 0.0
    x = min(max((x - rule.lows[m]) / rule.spans[m], 0.0), 1.0)
    y = min(max((y - rule.lows[m]) / rule.spans[m], 0.0), 1.0)
    return kl(x, y) if y > x else 0.0


@compiled
def most_telling(rule: Rule, arms: Arms, arm: int, index: float, target: float) -> int:
    """The fidelity with the most information per cost on whether the arm could reach the target; ties: the highest."""
    top = len(rule.costs) - 1
    best, chosen = 0.0, top
    lowest = min(arms.lows[arm], index)
    for m in range(top, -1, -1):
        guess = lowest - rule.biases[m]
        if m < top and arms.counts[arm, m] > 0:
            mean = arms.sums[arm, m] / arms.counts[arm, m]
            guess = max(guess, mean - 2 * arms.deviations[arm, m])
        rate = divergence_above(rule, m, guess, target - rule.biases[m]) / rule.costs[m]
        if rate > best:
            best, chosen = rate, m
    return chosen


@compiled
def learn(rule: Rule, arms: Arms, arm: int, m: int, reward: float) -> None:
    """Take in a reward: what is known of this arm, and the roots that all overlaps count."""
    arms.counts[arm, m] += 1
    arms.sums[arm, m] += reward
    count = arms.counts[arm, m]
    mean = arms.sums[arm, m] / count
    if rule.scales[m] > 0:
        arms.means[arm, m] = mean
        arms.deviations[arm, m] = rule.scales[m] / math.sqrt(count)
    else:
        scaled = min(max((mean - rule.lows[m]) / rule.spans[m], 0.0), 1.0)
        p = (scaled * count + 0.5) / (count + 1)
        arms.means[arm, m] = scaled
        arms.deviations[arm, m] = rule.spans[m] * math.sqrt(p * (1 - p) / count)
    if rule.ada:
        weigh(rule.costs, rule.costs[0], arms.counts, arms.roots, arms.overlaps, arm)
        place(rule, arms, arm)


@compiled
def weigh(costs: FloatArray, unit: float, counts: IntArray, roots: IntArray, overlaps: IntArray, arm: int) -> None:
    """The arm's new root, and the overlaps of all with it."""
    spent = 0.0
    for m in range(len(costs)):
        spent += costs[m] * counts[arm, m]
    before, after = roots[arm], np.int64(math.floor(math.sqrt(spent / unit) / RESOLUTION + 0.5))
    roots[arm] = after
    own = np.int64(0)
    for k in range(len(roots)):
        root = roots[k]
        overlaps[k] += min(root, after) - min(root, before)
        own += min(root, after)
    overlaps[arm] = own


@compiled
def place(rule: Rule, arms: Arms, arm: int) -> None:
    """The arm's least plausible value and the middle of the plausible ones."""
    low, high = -np.inf, np.inf
    for m in range(len(rule.costs)):
        if arms.counts[arm, m] > 0:
            mean, off = arms.sums[arm, m] / arms.counts[arm, m], 2 * arms.deviations[arm, m]
            low = max(low, (mean - rule.biases[m]) - off)
            high = min(high, (mean + rule.biases[m]) + off)
    arms.lows[arm] = low
    arms.middles[arm] = low + max(0.0, high - low) / 2


@compiled
def choose(rule: Rule, arms: Arms, clock: Clock) -> tuple[int, int]:
    """The next play."""
    t, spent = clock.t[0], clock.spent[0]
    if t <= len(arms.bars):
        return t - 1, 0
    arm, index = search(rule, arms, spent, t, clock.arm[0])
    if not rule.ada:
        return arm, first_open(rule, arms, arm, t)
    clock.leader[0], target = lead(rule, arms, spent, t, clock.leader[0])
    if arm == clock.leader[0]:
        return arm, first_open(rule, arms, arm, t)
    return arm, most_telling(rule, arms, arm, index, target)


@compiled
def renew(rule: Rule, arms: Arms, clock: Clock) -> None:
    """A new block, with new bars for all arms."""
    now = clock.spent[0] if rule.ada else float(clock.t[0])
    clock.block_end[0] = now * LONGER + 1e-9
    for arm in range(len(arms.bars)):
        make_bar(rule, arms, arm, clock.block_end[0])


@compiled
def record(
    capitals: FloatArray,
    limits: FloatArray,
    regret: FloatArray,
    best_mean: float,
    recorded: IntArray,
    spent: float,
    lost: float,
    after: float,
) -> None:
    """Write down the regret at every capital that the next play, after which ``after`` is spent, does not fit into."""
    while recorded[0] < len(limits) and after > limits[recorded[0]]:
        regret[recorded[0]] = (capitals[recorded[0]] - spent) * best_mean + lost  # eq. 1
        recorded[0] += 1


@compiled
def obstacle(truth: Truth, spent: bool, earlier: int, arm: int, m: int) -> int:
    """What is in the way of the next play, if anything: no capital left, or no recorded reward."""
    if spent:
        return SPENT
    return RAN_DRY if truth.kind == REPLAY_IN_ORDER and earlier >= truth.lengths[arm, m] else RUNNING


@counting
def run_on(truth: Truth, rule: Rule, state: State, rng: Generator, steps: int, trace: IntArray) -> None:
    """Up to ``steps`` more plays; fewer where the capital is spent or a table runs dry."""
    arms, clock = state.arms, state.clock
    for _ in range(steps):
        now = clock.spent[0] if rule.ada else float(clock.t[0])
        if now > clock.block_end[0] and clock.t[0] > len(arms.bars):
            renew(rule, arms, clock)
        arm, m = choose(rule, arms, clock)
        after = total_cost(rule.costs, arms.tally, m)[1]
        where = state.capitals, state.limits, state.regret, state.best_mean
        record(*where, clock.recorded, clock.spent[0], clock.lost[0], after)
        clock.status[0] = obstacle(truth, clock.recorded[0] == len(state.limits), arms.counts[arm, m], arm, m)
        if clock.status[0] != RUNNING:
            clock.arm[0], clock.fidelity[0] = arm, m
            return
        earlier = arms.counts[arm, m]
        learn(rule, arms, arm, m, draw(truth, arm, m, earlier, rng))
        arms.tally[m] += 1
        clock.spent[0] = after
        clock.lost[0] += truth.losses[arm, m]
        make_bar(
            rule, arms, arm, max(clock.block_end[0], after if rule.ada else float(clock.t[0]))
        )  # if no block is on
        if clock.t[0] <= len(trace):
            trace[clock.t[0] - 1, 0], trace[clock.t[0] - 1, 1] = arm, m
        clock.arm[0] = arm
        clock.t[0] += 1
