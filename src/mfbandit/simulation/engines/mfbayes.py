"""The engine for MFBayes: a lazy scan, number for number as ``policies/mfbayes.py`` computes it.

The chain is fitted in ``chain_fit.py``. A block of plays lasts until the capital spent has grown by a factor, or the
chain is fitted anew. Arrays have shape (K, R): R fidelities are used.
"""

import math
from typing import NamedTuple

import numpy as np

from mfbandit._internal.typing import FloatArray, IntArray
from mfbandit.policies import MFBayes, mfbayes
from mfbandit.policies.mfbayes import ARMS_PLAYED_TWICE, FIRST_EM_STEPS, REFIT_GROWTH
from mfbandit.problems import Problem
from mfbandit.simulation.engines import lazy_scan
from mfbandit.simulation.engines.binding import join
from mfbandit.simulation.engines.chain_fit import (
    ArmResults,
    ChainFit,
    ChainPrior,
    Smoother,
    filter_arm,
    first_fit,
    most_telling,
    no_fit,
    refit,
    smoother_room,
)
from mfbandit.simulation.engines.exploration_levels import (
    ExplorationLevels,
    check_levels,
    no_levels,
    put_in_order,
    ratio,
    weigh,
)
from mfbandit.simulation.engines.interface import RunState
from mfbandit.simulation.engines.kernels import Generator, affordable, compiled, counting, inlined, make_play
from mfbandit.simulation.engines.lazy_scan import BLOCK_GROWTH, Near, begin_period, key_end, key_of, nobody_near
from mfbandit.simulation.engines.max_tree import change, first_largest, max_tree, put, rebuild, value_at
from mfbandit.simulation.engines.truth import Truth

__all__ = ["begin", "prepare", "run_on", "supports", "used"]

quantile = compiled(mfbayes.quantile)


class BayesRule(NamedTuple):
    """The policy's parameters, and the costs of the fidelities that it uses."""

    prior: ChainPrior
    nu: float
    safeguard: float
    unit: float  # cost of the lowest fidelity, used or not
    costs: FloatArray  # (R,)


class ArmBeliefs(NamedTuple):
    """What is believed of each arm at the highest fidelity."""

    values: FloatArray  # a tree
    deviations: FloatArray  # (K,)
    keys: FloatArray  # a tree: the index at the block's end or a near time, or a little more
    near: Near


class Schedule(NamedTuple):
    """When the chain was fitted, and what the safeguard is owed; arrays of one number each."""

    fitted_at: FloatArray  # capital spent at the last fit
    seen_at: FloatArray  # capital spent at the last result
    tops: IntArray  # results at the highest fidelity, then
    owed: IntArray  # plays of the safeguard
    block_end: FloatArray  # capital up to which keys hold


class BayesState(NamedTuple):
    """What the engine keeps beside the run's state."""

    told: ArmResults
    levels: ExplorationLevels
    fit: ChainFit
    room: Smoother
    beliefs: ArmBeliefs
    schedule: Schedule


def supports(_problem: Problem, _policy: MFBayes) -> bool:
    """Always: the policy needs neither biases nor a noise scale.

    >>> from mfbandit.problems import paper_problem
    >>> supports(paper_problem(1), MFBayes())
    True
    """
    return True


def used(problem: Problem, policy: MFBayes) -> list[int]:
    """The fidelities that are enough cheaper than the highest, and that one.

    >>> from mfbandit.problems import paper_problem
    >>> used(paper_problem(2), MFBayes(kappa=3))
    [0, 1, 3]
    """
    return policy.used(problem.fidelities)


def prepare(problem: Problem, policy: MFBayes, capital: float) -> BayesRule:
    """The policy's parameters, as kernels take them.

    >>> from mfbandit.problems import paper_problem
    >>> prepare(paper_problem(2), MFBayes(), 1e6).costs.tolist()
    [1.0, 5.0, 20.0, 50.0]
    """
    check_levels(problem, capital)
    costs = np.array(problem.fidelities.costs)
    prior = ChainPrior(policy.r0, policy.nu0)
    return BayesRule(prior, policy.nu, policy.safeguard, float(costs[0]), costs[used(problem, policy)])


def begin(_truth: Truth, run: RunState) -> BayesState:
    """The state before the first play: nothing learned, nothing fitted.

    >>> from mfbandit.problems import paper_problem
    >>> from mfbandit.simulation.engines import mfbayes
    >>> from mfbandit.simulation.engines.interface import begin_run
    >>> begin_run(mfbayes, paper_problem(3), MFBayes(), np.array([100.0])).state.fit.noise.tolist()
    [0.0, 0.0]
    """
    k, r = run.counts.shape
    return BayesState(
        ArmResults(run.counts, np.zeros((k, r)), np.zeros((k, r))),  # the counts are the run's own
        no_levels(k),
        no_fit(r),
        smoother_room(k, r),
        ArmBeliefs(max_tree(k, 0.0), np.zeros(k), max_tree(k, np.inf), nobody_near(k)),
        Schedule(np.zeros(1), np.zeros(1), np.zeros(1, np.int64), np.zeros(1, np.int64), np.zeros(1)),
    )


@compiled
def opening(arms: int) -> int:
    """How many results come before the first fit: one of each arm, and a second one of the best."""
    return arms + min(ARMS_PLAYED_TWICE, arms)


@inlined
def believe(state: BayesState, arm: int) -> float:
    """The arm's value at the highest fidelity; its deviation is written down."""
    filter_arm(state.told, state.fit, state.room, arm)
    state.beliefs.deviations[arm] = math.sqrt(state.room.variances[-1])
    return state.room.means[-1]


@inlined
def index(rule: BayesRule, state: BayesState, _run: RunState, arm: int, spent: float) -> float:
    """U_k when so much is spent."""
    nu = rule.nu * (1.0 + state.told.counts[arm, -1])
    far = quantile(ratio(state.levels, rule.unit, arm, spent), nu)
    return value_at(state.beliefs.values, arm) + state.beliefs.deviations[arm] * far


@compiled
def renew(rule: BayesRule, state: BayesState, run: RunState, fitted: bool) -> None:
    """A new block, with new keys for all arms; new values, too, if the chain was fitted anew."""
    beliefs, end = state.beliefs, run.spent[0] * BLOCK_GROWTH
    state.schedule.block_end[0] = end
    put_in_order(state.levels)
    for k in range(len(run.counts)):
        if fitted:
            put(beliefs.values, k, believe(state, k))
        put(beliefs.keys, k, key_of(index(rule, state, run, k, end)))
    rebuild(beliefs.values)
    rebuild(beliefs.keys)
    begin_period(beliefs.near, run, run.spent[0], end)


@compiled
def set_key(rule: BayesRule, state: BayesState, run: RunState, keys: FloatArray, arm: int, end: float) -> None:
    """Give an arm the key that holds up to this capital."""
    change(keys, arm, key_of(index(rule, state, run, arm, end)))


search = join(lazy_scan.search_near, index=index, set_key=set_key)


@compiled
def second_look(told: ArmResults) -> int:
    """The best-looking arm with one result."""
    chosen, best = 0, -np.inf
    for arm in range(len(told.counts)):
        if told.counts[arm, 0] == 1 and told.sums[arm, 0] > best:
            chosen, best = arm, told.sums[arm, 0]
    return chosen


@compiled
def ucb(told: ArmResults, noise: float, t: int) -> int:
    """UCB's choice at the highest fidelity."""
    effort = 2.0 * noise * math.log(t)
    chosen, best = 0, -np.inf
    for arm in range(len(told.counts)):
        plays = told.counts[arm, -1]
        value = told.sums[arm, -1] / plays + math.sqrt(effort / plays) if plays > 0 else np.inf
        if value > best:
            chosen, best = arm, value
    return chosen


@inlined
def choose(rule: BayesRule, state: BayesState, run: RunState) -> tuple[int, int]:
    """The next play."""
    told, n, t, last = state.told, len(run.counts), run.t[0], len(rule.costs) - 1
    if t <= n:
        return t - 1, 0
    if t <= opening(n):
        return second_look(told), 0
    if state.schedule.owed[0] > 0:
        return ucb(told, state.fit.noise[last], t), last
    beliefs, end = state.beliefs, state.schedule.block_end[0]
    arm, _ = search(rule, state, run, beliefs.keys, beliefs.near, run.spent[0], end)
    if arm == first_largest(state.beliefs.values):
        return arm, last
    return arm, most_telling(told, state.fit, state.room, rule.costs, arm)


@inlined
def remember(rule: BayesRule, state: BayesState, run: RunState) -> bool:
    """Keep up the chain after the newest result; whether it was fitted anew."""
    schedule, spent, tops = state.schedule, run.spent[0], run.tally[-1]
    results, first = run.t[0] - 1, opening(len(run.counts))
    if results < first:
        return False
    if results == first:
        first_fit(rule.prior, state.told, state.fit, state.room, FIRST_EM_STEPS)
        schedule.fitted_at[0], schedule.seen_at[0], schedule.tops[0], schedule.owed[0] = spent, spent, tops, 0
        return True
    if rule.safeguard > 0:
        price = rule.costs[-1] / rule.safeguard
        paid = tops - schedule.tops[0]
        schedule.owed[0] = max(0, schedule.owed[0] - paid) + int(spent / price) - int(schedule.seen_at[0] / price)
    schedule.seen_at[0], schedule.tops[0] = spent, tops
    if spent < REFIT_GROWTH * schedule.fitted_at[0]:
        return False
    refit(rule.prior, state.told, state.fit, state.room)
    schedule.fitted_at[0] = spent
    return True


@inlined
def learn(rule: BayesRule, state: BayesState, run: RunState, arm: int, m: int, reward: float) -> None:
    """Take in a reward, fit the chain anew if it is time, and keep the keys up."""
    told, schedule = state.told, state.schedule
    told.sums[arm, m] += reward
    told.squares[arm, m] += reward * reward
    weigh(rule.costs, rule.unit, told.counts, state.levels, arm)
    fitted = remember(rule, state, run)
    if run.t[0] - 1 < opening(len(told.counts)):
        return
    if fitted or run.spent[0] > schedule.block_end[0]:
        renew(rule, state, run, fitted)
    change(state.beliefs.values, arm, believe(state, arm))
    end = key_end(state.beliefs.near, arm, schedule.block_end[0])
    change(state.beliefs.keys, arm, key_of(index(rule, state, run, arm, end)))


@counting
def run_on(truth: Truth, rule: BayesRule, state: BayesState, run: RunState, rng: Generator, steps: int) -> None:
    """Make up to ``steps`` more plays."""
    for _ in range(steps):
        arm, m = choose(rule, state, run)
        if not affordable(truth, run, arm, m):
            return
        learn(rule, state, run, arm, m, make_play(truth, run, arm, m, rng))
