"""The third compiled engine: MFBayes, number for number as ``policies/mfbayes.py`` computes it.

The order of operations is that of the policy's array expressions, and sums over arms are added up term after term. As
in ``lazy_scan.py``, a bar bounds each arm's index from above until the capital spent has grown by a factor, and only
the indices of arms whose bar reaches the best one are computed. Arrays have shape (K, R): R fidelities are used.
"""

import math
from typing import NamedTuple

import numpy as np

from mfbandit._internal.typing import FloatArray, IntArray
from mfbandit.core import limit
from mfbandit.policies import MFBayes, mfbayes
from mfbandit.policies.exploration import RESOLUTION
from mfbandit.policies.gaussian_chain import DEVIATION_FLOOR, NOISE_WEIGHT, SPREAD_FLOOR
from mfbandit.policies.mfbayes import ARMS_PLAYED_TWICE, FIRST_EM_STEPS, REFIT_GROWTH
from mfbandit.problems import Account as AccountName
from mfbandit.problems import Problem
from mfbandit.simulation.engines.heap_ucb import (
    RUNNING,
    Generator,
    Truth,
    compiled,
    counting,
    draw,
    prepare_truth,
    total_cost,
)
from mfbandit.simulation.engines.lazy_scan import LONGER, ROOM, obstacle, record, weigh

quantile = compiled(mfbayes.quantile)


class Rule(NamedTuple):
    """The policy's parameters, and the costs of the fidelities that it uses."""

    r0: float
    nu0: float
    nu: float
    safeguard: float
    unit: float  # cost of the lowest fidelity, used or not
    costs: FloatArray  # (R,)


class Arms(NamedTuple):
    """What was learned of each arm, and what is believed of it."""

    counts: IntArray  # (K, R)
    sums: FloatArray  # (K, R)
    squares: FloatArray  # (K, R)
    roots: IntArray  # (K,)
    overlaps: IntArray  # (K,)
    values: FloatArray  # (K,): E mu at the highest fidelity
    deviations: FloatArray  # (K,)
    bars: FloatArray  # (K,)
    tally: IntArray  # (R,)


class Chain(NamedTuple):
    """The fitted chain; single numbers are arrays of one, as they change."""

    start: FloatArray
    spread: FloatArray
    shifts: FloatArray  # (R - 1,)
    steps: FloatArray  # (R - 1,)
    predicted: FloatArray  # (R - 1,)
    noise: FloatArray  # (R,)
    spent: FloatArray
    seen: FloatArray
    tops: IntArray
    due: IntArray


class Work(NamedTuple):
    """Room for a filter and a smoother: one arm's (R,), and all arms' (K, R)."""

    means: FloatArray
    variances: FloatArray
    before: FloatArray  # predicted means
    wide: FloatArray  # predicted variances
    smooth: FloatArray  # (K, R)
    unsure: FloatArray  # (K, R)
    gains: FloatArray  # (K, R)


class Clock(NamedTuple):
    """Where a run stands; arrays of one number each, as they change."""

    t: IntArray
    recorded: IntArray
    status: IntArray
    arm: IntArray
    fidelity: IntArray
    block_end: FloatArray
    lost: FloatArray
    spent: FloatArray


class State(NamedTuple):
    """All that changes in a run, and where regret is recorded."""

    arms: Arms
    chain: Chain
    work: Work
    clock: Clock
    capitals: FloatArray
    limits: FloatArray
    regret: FloatArray
    best_mean: float


def prepare(problem: Problem, policy: MFBayes, account: AccountName) -> tuple[Truth, Rule]:
    """What all runs share.

    >>> from mfbandit.problems.builtin import paper_problem
    >>> prepare(paper_problem(2), MFBayes(), "paper")[1].costs.tolist()
    [1.0, 5.0, 20.0, 50.0]
    """
    rows = policy.used(problem.fidelities)
    costs = np.array(problem.fidelities.costs)
    rule = Rule(policy.r0, policy.nu0, policy.nu, policy.safeguard, float(costs[0]), costs[rows])
    return prepare_truth(problem, rows, account), rule


def begin(truth: Truth, capitals: FloatArray, best_mean: float) -> State:
    """A run before its first play.

    >>> from mfbandit.problems.builtin import paper_problem
    >>> truth, rule = prepare(paper_problem(3), MFBayes(), "paper")
    >>> begin(truth, np.array([100.0]), 0.9).arms.counts.shape
    (200, 2)
    """
    k, r = truth.means.shape

    def one(value: int = 0) -> IntArray:
        return np.array([value], dtype=np.int64)

    whole = np.zeros((k, r), dtype=np.int64), np.zeros(k, dtype=np.int64), np.zeros(k, dtype=np.int64)
    arms = Arms(
        whole[0],
        np.zeros((k, r)),
        np.zeros((k, r)),
        *whole[1:],
        np.zeros(k),
        np.zeros(k),
        np.full(k, np.inf),
        np.zeros(r, dtype=np.int64),
    )
    shifts, steps, predicted = np.zeros(r - 1), np.zeros(r - 1), np.zeros(r - 1)
    fitted = np.zeros(1), np.zeros(1), shifts, steps, predicted, np.zeros(r), np.zeros(1), np.zeros(1)
    chain = Chain(*fitted, one(), one())
    work = Work(*(np.zeros(r) for _ in range(4)), *(np.zeros((k, r)) for _ in range(3)))
    clock = Clock(one(1), one(), one(RUNNING), one(), one(), np.zeros(1), np.zeros(1), np.zeros(1))
    return State(arms, chain, work, clock, capitals, limit(capitals), np.zeros(len(capitals)), best_mean)


# The kernels


@compiled
def filter_arm(arms: Arms, chain: Chain, work: Work, arm: int) -> None:
    """The Kalman filter of one arm, into the work's one-arm arrays."""
    mean, variance = chain.start[0], chain.spread[0]
    last = len(chain.noise) - 1
    for r in range(last + 1):
        work.before[r], work.wide[r] = mean, variance
        plays, noise = arms.counts[arm, r], chain.noise[r]
        seen = arms.sums[arm, r] / plays if plays > 0 else 0.0
        weight = variance * plays + noise
        mean = mean + variance * plays / weight * (seen - mean)
        variance = variance * (noise / weight)
        work.means[r], work.variances[r] = mean, variance
        if r < last:
            mean, variance = mean + chain.shifts[r], variance + chain.predicted[r]


@compiled
def believe(arms: Arms, chain: Chain, work: Work, arm: int) -> None:
    """The arm's value and deviation at the highest fidelity."""
    filter_arm(arms, chain, work, arm)
    arms.values[arm] = work.means[-1]
    arms.deviations[arm] = math.sqrt(work.variances[-1])


@compiled
def smooth_all(arms: Arms, chain: Chain, work: Work) -> None:
    """Filter and smoother of every arm, into the work's tables."""
    last = len(chain.noise) - 1
    for arm in range(len(arms.values)):
        filter_arm(arms, chain, work, arm)
        work.smooth[arm, last], work.unsure[arm, last] = work.means[last], work.variances[last]
        for r in range(last - 1, -1, -1):
            gain = work.variances[r] / work.wide[r + 1]
            work.gains[arm, r] = gain
            work.unsure[arm, r] = work.variances[r] + gain * gain * (work.unsure[arm, r + 1] - work.wide[r + 1])
            work.smooth[arm, r] = work.means[r] + gain * (work.smooth[arm, r + 1] - work.before[r + 1])


@compiled
def em_step(rule: Rule, arms: Arms, chain: Chain, work: Work, floor: float) -> None:
    """One step of EM: all parameters but the noise."""
    smooth_all(arms, chain, work)
    n, last = len(arms.values), len(chain.noise) - 1
    added = 0.0
    for arm in range(n):
        added += work.smooth[arm, 0]
    start = added / n
    added = 0.0
    for arm in range(n):
        away = work.smooth[arm, 0] - start
        added += away * away + work.unsure[arm, 0]
    spread = max(added / n, SPREAD_FLOOR * chain.noise[0], floor)
    for r in range(last):
        fit_step(rule, arms, chain, work, r, spread, floor)
    chain.start[0], chain.spread[0] = start, spread


@compiled
def seen_above(arms: Arms, arm: int, r: int) -> bool:
    """Whether the arm has a result above this row."""
    results = 0
    for higher in range(r + 1, arms.counts.shape[1]):
        results += arms.counts[arm, higher]
    return results > 0


@compiled
def fit_step(rule: Rule, arms: Arms, chain: Chain, work: Work, r: int, spread: float, floor: float) -> None:
    """Shift and variance of the step from row r to the next."""
    added, above = 0.0, 0
    for arm in range(len(arms.values)):
        if seen_above(arms, arm, r):
            added += work.smooth[arm, r + 1] - work.smooth[arm, r]
            above += 1
    shift = added / (above + chain.steps[r] / chain.spread[0])
    added = 0.0
    for arm in range(len(arms.values)):
        if seen_above(arms, arm, r):
            off = work.smooth[arm, r + 1] - work.smooth[arm, r] - shift
            unsure = work.unsure[arm, r + 1] * (1.0 - 2.0 * work.gains[arm, r]) + work.unsure[arm, r]
            added += off * off + max(unsure, 0.0)
    chain.shifts[r] = shift
    chain.steps[r] = max((rule.nu0 * rule.r0 * rule.r0 * spread + added) / (rule.nu0 + above), floor)
    chain.predicted[r] = chain.steps[r] * (1.0 + 1.0 / (above + 1.0))


@compiled
def least_variance(arms: Arms) -> float:
    """The smallest variance that is taken for real."""
    added, plays = 0.0, 0
    for r in range(arms.counts.shape[1]):
        for arm in range(len(arms.values)):
            added += arms.squares[arm, r]
            plays += arms.counts[arm, r]
    size = math.sqrt(added / max(1, plays))
    return DEVIATION_FLOOR * DEVIATION_FLOOR * (size * size if size > 0 else 1.0)


@compiled
def fit_noise(arms: Arms, chain: Chain, floor: float) -> None:
    """The noise of each row, pooled within arms; the row below counts for five results."""
    for r in range(len(chain.noise)):
        within, freedom = 0.0, 0.0
        for arm in range(len(arms.values)):
            plays, total = arms.counts[arm, r], arms.sums[arm, r]
            if plays > 0:
                within += max(arms.squares[arm, r] - total * total / plays, 0.0)
                freedom += float(plays - 1)
        before = NOISE_WEIGHT if r > 0 else 0.0
        below = chain.noise[r - 1] if r > 0 else 0.0
        chain.noise[r] = max((before * below + within) / max(before + freedom, 1.0), floor)


@compiled
def first_fit(rule: Rule, arms: Arms, chain: Chain, work: Work, spent: float) -> None:
    """Starting values from the means at the lowest fidelity, and five steps of EM."""
    n, floor = len(arms.values), least_variance(arms)
    added = 0.0
    for arm in range(n):
        added += arms.sums[arm, 0] / arms.counts[arm, 0]
    start = added / n
    added = 0.0
    for arm in range(n):
        away = arms.sums[arm, 0] / arms.counts[arm, 0] - start
        added += away * away
    variance = added / n
    fit_noise(arms, chain, floor)
    spread = max(variance - chain.noise[0], 0.1 * variance, SPREAD_FLOOR * chain.noise[0], floor)
    chain.start[0], chain.spread[0] = start, spread
    chain.shifts[:] = 0.0
    chain.steps[:] = rule.r0 * rule.r0 * spread
    chain.predicted[:] = rule.r0 * rule.r0 * spread
    for _ in range(FIRST_EM_STEPS):
        em_step(rule, arms, chain, work, floor)
    chain.spent[0], chain.seen[0], chain.tops[0], chain.due[0] = spent, spent, arms.tally[-1], 0


@compiled
def remember(rule: Rule, arms: Arms, chain: Chain, work: Work, clock: Clock) -> bool:
    """The chain after the newest result; whether it was fitted anew."""
    n, spent = len(arms.values), clock.spent[0]
    opening = n + min(ARMS_PLAYED_TWICE, n)
    if clock.t[0] < opening:
        return False
    if clock.t[0] == opening:
        first_fit(rule, arms, chain, work, spent)
        return True
    if rule.safeguard > 0:
        price = rule.costs[-1] / rule.safeguard
        paid = arms.tally[-1] - chain.tops[0]
        chain.due[0] = max(0, chain.due[0] - paid) + int(spent / price) - int(chain.seen[0] / price)
    chain.seen[0], chain.tops[0] = spent, arms.tally[-1]
    if spent < REFIT_GROWTH * chain.spent[0]:
        return False
    floor = least_variance(arms)
    fit_noise(arms, chain, floor)
    em_step(rule, arms, chain, work, floor)
    chain.spent[0] = spent
    return True


@compiled
def index(rule: Rule, arms: Arms, arm: int, spent: float) -> float:
    """U_k when so much is spent."""
    ratio = 1.0 + spent / rule.unit / ((arms.roots[arm] * RESOLUTION) * (arms.overlaps[arm] * RESOLUTION))
    nu = rule.nu * (1.0 + arms.counts[arm, -1])
    return arms.values[arm] + arms.deviations[arm] * quantile(ratio, nu)


@compiled
def make_bar(rule: Rule, arms: Arms, arm: int, spent: float) -> None:
    """The arm's index when so much is spent, and a little more."""
    bar = index(rule, arms, arm, spent)
    arms.bars[arm] = bar + ROOM * (1 + abs(bar))


@compiled
def search(rule: Rule, arms: Arms, spent: float, hint: int) -> int:
    """The arm with the largest index, the lowest number among ties."""
    arm, best = hint, index(rule, arms, hint, spent)
    for k in range(len(arms.bars)):
        if arms.bars[k] >= best and k != arm:
            value = index(rule, arms, k, spent)
            if value > best or (value == best and k < arm):
                arm, best = k, value
    return arm


@compiled
def second_look(arms: Arms) -> int:
    """The best-looking arm with one result."""
    chosen, best = 0, -np.inf
    for arm in range(len(arms.values)):
        if arms.counts[arm, 0] == 1 and arms.sums[arm, 0] > best:
            chosen, best = arm, arms.sums[arm, 0]
    return chosen


@compiled
def ucb(arms: Arms, noise: float, t: int) -> int:
    """UCB's choice at the highest fidelity."""
    effort = 2.0 * noise * math.log(t)
    chosen, best = 0, -np.inf
    for arm in range(len(arms.values)):
        plays = arms.counts[arm, -1]
        value = arms.sums[arm, -1] / plays + math.sqrt(effort / plays) if plays > 0 else np.inf
        if value > best:
            chosen, best = arm, value
    return chosen


@compiled
def most_telling(rule: Rule, arms: Arms, chain: Chain, work: Work, arm: int) -> int:
    """The row where a look narrows the arm's value most for its cost, the lowest among ties."""
    filter_arm(arms, chain, work, arm)
    last = len(chain.noise) - 1
    work.smooth[arm, last], work.unsure[arm, last] = work.variances[last], work.variances[last]
    for r in range(last - 1, -1, -1):
        gain = work.variances[r] / work.wide[r + 1]
        work.unsure[arm, r] = work.variances[r] + gain * gain * (work.unsure[arm, r + 1] - work.wide[r + 1])
        work.smooth[arm, r] = work.smooth[arm, r + 1] * gain  # covariance with the highest
    best, chosen = -1.0, 0
    for r in range(last + 1):
        link = work.smooth[arm, r]
        worth = link * (link / ((work.unsure[arm, r] + chain.noise[r]) * rule.costs[r]))
        if worth > best:
            best, chosen = worth, r
    return chosen


@compiled
def choose(rule: Rule, state: State) -> tuple[int, int]:
    """The next play."""
    arms, chain, clock = state.arms, state.chain, state.clock
    n, t, last = len(arms.values), clock.t[0], len(rule.costs) - 1
    if t <= n:
        return t - 1, 0
    if t <= n + min(ARMS_PLAYED_TWICE, n):
        return second_look(arms), 0
    if chain.due[0] > 0:
        return ucb(arms, chain.noise[last], t), last
    arm = search(rule, arms, clock.spent[0], clock.arm[0])
    leader = 0
    for k in range(n):
        if arms.values[k] > arms.values[leader]:
            leader = k
    if arm == leader:
        return arm, last
    return arm, most_telling(rule, arms, chain, state.work, arm)


@compiled
def learn(rule: Rule, state: State, arm: int, m: int, reward: float) -> None:
    """Take in a reward, fit the chain anew if it is time, and keep the bars up."""
    arms, clock = state.arms, state.clock
    arms.counts[arm, m] += 1
    arms.sums[arm, m] += reward
    arms.squares[arm, m] += reward * reward
    weigh(rule.costs, rule.unit, arms.counts, arms.roots, arms.overlaps, arm)
    fitted = remember(rule, arms, state.chain, state.work, clock)
    if clock.t[0] < len(arms.values) + min(ARMS_PLAYED_TWICE, len(arms.values)):
        return
    if fitted or clock.spent[0] > clock.block_end[0]:
        clock.block_end[0] = clock.spent[0] * LONGER
        for k in range(len(arms.values)):
            if fitted:
                believe(arms, state.chain, state.work, k)
            make_bar(rule, arms, k, clock.block_end[0])
    believe(arms, state.chain, state.work, arm)
    make_bar(rule, arms, arm, clock.block_end[0])


@counting
def run_on(truth: Truth, rule: Rule, state: State, rng: Generator, steps: int, trace: IntArray) -> None:
    """Up to ``steps`` more plays; fewer where the capital is spent or a table runs dry."""
    arms, clock = state.arms, state.clock
    for _ in range(steps):
        arm, m = choose(rule, state)
        after = total_cost(rule.costs, arms.tally, m)[1]
        where = state.capitals, state.limits, state.regret, state.best_mean
        record(*where, clock.recorded, clock.spent[0], clock.lost[0], after)
        clock.status[0] = obstacle(truth, clock.recorded[0] == len(state.limits), arms.counts[arm, m], arm, m)
        if clock.status[0] != RUNNING:
            clock.arm[0], clock.fidelity[0] = arm, m
            return
        earlier = arms.counts[arm, m]
        arms.tally[m] += 1
        clock.spent[0] = after
        clock.lost[0] += truth.losses[arm, m]
        learn(rule, state, arm, m, draw(truth, arm, m, earlier, rng))
        if clock.t[0] <= len(trace):
            trace[clock.t[0] - 1, 0], trace[clock.t[0] - 1, 1] = arm, m
        clock.arm[0] = arm
        clock.t[0] += 1
