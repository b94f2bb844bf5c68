"""The engine for MFTopTwo: the chain refitted after each result, number for number as ``policies/mftoptwo.py`` does.

Arms get their first plays in the order of their numbers, so those with a result are the first n. Arrays have shape
(K, R): R fidelities are used, from the first stage's upwards. As long as no arm was played twice, a fit does not depend
on the one before, and is made when it is needed.
"""

import math
from typing import NamedTuple

import numpy as np

from mfbandit._internal.typing import FloatArray, IntArray
from mfbandit.core import limit
from mfbandit.policies import MFTopTwo
from mfbandit.policies.ladder import MANY_ARMS, REPEATS
from mfbandit.policies.mftoptwo import FIRST_EM_STEPS, NOISE_GUESS_RESULTS, SMALLEST_VARIANCE
from mfbandit.problems import Problem
from mfbandit.simulation.engines.chain_fit import (
    ArmResults,
    ChainFit,
    ChainPrior,
    Smoother,
    begin_fit,
    em_step,
    filter_arm,
    first_means,
    fit_noise,
    information,
    least_variance,
    link_arm,
    no_fit,
    smoother_room,
)
from mfbandit.simulation.engines.interface import RunState
from mfbandit.simulation.engines.kernels import Generator, affordable, compiled, counting, make_play
from mfbandit.simulation.engines.outliers import fullest_row, raise_hopeless
from mfbandit.simulation.engines.repetition import EXACT, NOISY, UNKNOWN, Repetition, no_repetition, see_again, verdict
from mfbandit.simulation.engines.truth import Truth

__all__ = ["begin", "prepare", "run_on", "supports", "used"]


class TopTwoRule(NamedTuple):
    """What the policy knows, and its stages."""

    prior: ChainPrior
    noise: float  # prior guess, as a share of the variance between arms
    fade: float
    most: float  # the capital, with room for rounding
    declared: int  # UNKNOWN, EXACT or NOISY
    stages: IntArray  # (3, S, 2): row and arms of each, by what is known of the noise; no arms where there are fewer
    costs: FloatArray  # (R,)


class TopTwoState(NamedTuple):
    """What the engine keeps beside the run's state; single numbers are arrays of one."""

    told: ArmResults
    raised: ArmResults  # the same without hopeless results
    means: FloatArray  # (K, R): of what was told; infinite without a result
    repetition: Repetition
    fit: ChainFit
    room: Smoother
    values: FloatArray  # (K,): at the highest fidelity
    variances: FloatArray  # (K,)
    seen: IntArray  # how many arms have a result
    stale: IntArray  # 1 if the chain is to be fitted from the beginning


def supports(_problem: Problem, _policy: MFTopTwo) -> bool:
    """Always: the policy needs neither biases nor a noise scale.

    >>> from mfbandit.problems import paper_problem
    >>> supports(paper_problem(1), MFTopTwo(capital=100))
    True
    """
    return True


def used(problem: Problem, policy: MFTopTwo) -> list[int]:
    """The fidelities that are kept, from the first stage's upwards.

    >>> from mfbandit.problems import paper_problem
    >>> used(paper_problem(2), MFTopTwo(capital=5000)), used(paper_problem(2), MFTopTwo(capital=3e4))
    ([1, 2, 3], [2, 3])
    """
    lowest = policy.stages(problem.fidelities, problem.arms)[0].fidelity
    return [m for m in policy.kept(problem.fidelities) if m >= lowest]


def prepare(problem: Problem, policy: MFTopTwo, _capital: float) -> TopTwoRule:
    """The policy's parameters and stages, as kernels take them.

    >>> from mfbandit.problems import paper_problem
    >>> prepare(paper_problem(2), MFTopTwo(capital=5000), 5000).stages[2].tolist()
    [[0, 500], [1, 81], [2, 6]]
    """
    rows, fidelities = used(problem, policy), problem.fidelities
    plans = [policy.stages(fidelities, problem.arms, exact) for exact in (None, True, False)]
    stages = np.zeros((len(plans), max(map(len, plans)), 2), dtype=np.int64)
    for table, plan in zip(stages, plans, strict=True):
        table[: len(plan)] = [(rows.index(stage.fidelity), stage.arms) for stage in plan]
    declared = UNKNOWN if policy.deterministic is None else EXACT if policy.deterministic else NOISY
    costs = np.array(fidelities.costs)[rows]
    prior = ChainPrior(policy.r0, policy.nu0)
    return TopTwoRule(prior, policy.noise, policy.fade, limit(policy.capital), declared, stages, costs)


def begin(_truth: Truth, run: RunState) -> TopTwoState:
    """The state before the first play: nothing learned, nothing fitted.

    >>> from mfbandit.problems import paper_problem
    >>> from mfbandit.simulation.engines import mftoptwo
    >>> from mfbandit.simulation.engines.interface import begin_run
    >>> begin_run(mftoptwo, paper_problem(3), MFTopTwo(capital=500), np.array([500.0])).state.fit.noise.tolist()
    [0.0, 0.0]
    """
    k, r = run.counts.shape
    told, raised = (ArmResults(run.counts, np.zeros((k, r)), np.zeros((k, r))) for _ in range(2))
    numbers = (np.zeros(k), np.zeros(k), np.zeros(1, np.int64), np.zeros(1, np.int64))
    means = np.full((k, r), np.inf)
    return TopTwoState(told, raised, means, no_repetition(k, r), no_fit(r), smoother_room(k, r), *numbers)


@compiled
def fit_chain(rule: TopTwoRule, state: TopTwoState, exact: int) -> None:
    """Fit the chain to the arms with a result: five steps of EM from the beginning, or one from where it was."""
    told, fit, n = state.raised, state.fit, state.seen[0]
    row = fullest_row(told.counts, n)
    raise_hopeless(state.told, state.means, told, row, n, state.values)
    of_seen = ArmResults(told.counts[:n], told.sums[:n], told.squares[:n])
    floor = max(least_variance(of_seen), SMALLEST_VARIANCE)
    start, variance = first_means(of_seen, row)
    if exact == EXACT:
        fit.noise[:] = floor
    else:
        fit_noise(of_seen, fit, floor, rule.noise * variance, NOISE_GUESS_RESULTS, rule.fade)
    steps = 1
    if state.stale[0] == 1:
        begin_fit(rule.prior, fit, start, variance, floor)
        steps = FIRST_EM_STEPS
    for _ in range(steps):
        em_step(rule.prior, of_seen, fit, state.room, floor)
    state.stale[0] = 0


@compiled
def believe(state: TopTwoState) -> None:
    """Value and variance of each arm with a result, at the highest fidelity."""
    for arm in range(state.seen[0]):
        filter_arm(state.raised, state.fit, state.room, arm)
        deviation = math.sqrt(state.room.variances[-1])
        state.values[arm], state.variances[arm] = state.room.means[-1], deviation * deviation


@compiled
def highest_row(counts: IntArray, arm: int) -> int:
    """The highest row at which the arm was played; −1 if it was not."""
    r = counts.shape[1] - 1
    while r >= 0 and counts[arm, r] == 0:
        r -= 1
    return r


@compiled
def best_of_once(state: TopTwoState) -> int:
    """The best of the arms with one play at the lowest row; −1 if there is none."""
    chosen = -1
    for arm in range(state.seen[0]):
        if state.told.counts[arm, 0] == 1 and (chosen < 0 or state.values[arm] > state.values[chosen]):
            chosen = arm
    return chosen


@compiled
def promoted(rule: TopTwoRule, state: TopTwoState, exact: int, left: float) -> tuple[int, int]:
    """The play of the first later stage that is not complete; arm −1 if all are, or it does not fit."""
    stages = rule.stages[exact]
    for i in range(1, len(stages)):
        row, arms = stages[i, 0], stages[i, 1]
        reached, chosen = 0, -1
        for arm in range(state.seen[0]):
            highest = highest_row(state.told.counts, arm)
            if highest >= row:
                reached += 1
            elif highest >= stages[i - 1, 0] and (chosen < 0 or state.values[arm] > state.values[chosen]):
                chosen = arm
        if reached < arms:
            return chosen if rule.costs[row] <= left else -1, row
    return -1, 0


@compiled
def finalists(state: TopTwoState, exact: int) -> tuple[int, int]:
    """The leader and its challenger, which is −1 if there is none."""
    leader, challenger, least, last = 0, -1, np.inf, state.told.counts.shape[1] - 1
    for arm in range(state.seen[0]):
        if state.values[arm] > state.values[leader]:
            leader = arm
    for arm in range(state.seen[0]):
        if arm == leader or (exact == EXACT and state.told.counts[arm, last] > 0):
            continue
        behind = (state.values[leader] - state.values[arm]) / math.sqrt(state.variances[leader] + state.variances[arm])
        if behind < least:
            challenger, least = arm, behind
    return leader, challenger


@compiled
def worth_playing(counts: IntArray, exact: int, arm: int, row: int) -> bool:
    """Whether a play may tell something: without noise, not at or below an earlier one."""
    return arm >= 0 and (exact != EXACT or highest_row(counts, arm) < row)


@compiled
def needed(counts: IntArray, exact: int, pair: tuple[int, int], row: int) -> int:
    """How many plays of the finalists there must be paid for, at least one; 0 if none tells anything."""
    plays, new = 0, 0
    for arm in pair:
        if worth_playing(counts, exact, arm, row):
            plays += 1
            if counts[arm, row] == 0:
                new += 1
    return max(new, min(plays, 1))


@compiled
def most_informative(
    rule: TopTwoRule, state: TopTwoState, exact: int, pair: tuple[int, int], left: float
) -> tuple[int, int]:
    """The finalists' play with the most information per cost, among ties the first.

    It is one at a row where all that must be paid for fits. If there is none, it is at the lowest; but where nothing
    fits there, it goes on as if all did. Without noise and anything to learn, it is the leader at the highest fidelity.
    """
    counts, costs = state.told.counts, rule.costs
    any_fits = False
    for row in range(len(costs)):
        plays = needed(counts, exact, pair, row)
        any_fits = any_fits or (plays > 0 and plays * costs[row] <= left)
    best, chosen, at = -1.0, pair[0], len(costs) - 1
    for arm in pair:
        if arm < 0:
            continue
        link_arm(state.raised, state.fit, state.room, arm)
        for row in range(len(costs)):
            fits = needed(counts, exact, pair, row) * costs[row] <= left if any_fits else costs[0] > left or row == 0
            if fits and worth_playing(counts, exact, arm, row):
                gain = information(state.fit, state.room, costs, arm, row)
                if gain > best:
                    best, chosen, at = gain, arm, row
    return chosen, at


@compiled
def choose(rule: TopTwoRule, state: TopTwoState, run: RunState) -> tuple[int, int]:
    """The next play."""
    exact, n, left = verdict(state.repetition, rule.declared), state.seen[0], rule.most - run.spent[0]
    first_fits = rule.costs[0] <= left or n == 0
    if n < rule.stages[exact, 0, 1] and first_fits:
        return n, 0
    if state.stale[0] == 1:
        fit_chain(rule, state, exact)
    believe(state)
    many = rule.stages[exact, 0, 1] >= MANY_ARMS
    if exact == UNKNOWN and first_fits and many and state.repetition.repeated[0] < REPEATS:
        arm = best_of_once(state)
        if arm >= 0:
            return arm, 0
    arm, row = promoted(rule, state, exact, left)
    if arm >= 0:
        return arm, row
    return most_informative(rule, state, exact, finalists(state, exact), left)


@compiled
def learn(rule: TopTwoRule, state: TopTwoState, run: RunState, arm: int, m: int, reward: float) -> None:
    """Take in a reward, and refit the chain once an arm was played twice."""
    told = state.told
    told.sums[arm, m] += reward
    told.squares[arm, m] += reward * reward
    state.means[arm, m] = told.sums[arm, m] / told.counts[arm, m]
    state.seen[0] = max(state.seen[0], arm + 1)
    see_again(state.repetition, told, state.means, arm, m)
    if run.t[0] - 1 > state.seen[0]:
        fit_chain(rule, state, verdict(state.repetition, rule.declared))
    else:
        state.stale[0] = 1


@counting
def run_on(truth: Truth, rule: TopTwoRule, state: TopTwoState, run: RunState, rng: Generator, steps: int) -> None:
    """Make up to ``steps`` more plays."""
    for _ in range(steps):
        arm, m = choose(rule, state, run)
        if not affordable(truth, run, arm, m):
            return
        learn(rule, state, run, arm, m, make_play(truth, run, arm, m, rng))
