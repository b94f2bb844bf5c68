"""The engine for MFAuto: a lazy scan, number for number as ``policies/mfauto.py`` computes it.

The chain is fitted in ``robust_fit.py``. A block of plays lasts until the capital spent has grown by a factor, or the
chain is fitted anew. Arrays have shape (K, R): R fidelities are used.
"""

import math
from typing import NamedTuple

import numpy as np

from mfbandit._internal.typing import FloatArray, IntArray
from mfbandit.core import QUADRATIC, SubGaussian, has_range
from mfbandit.policies import MFAuto, mfauto
from mfbandit.policies.auto_beliefs import BOUNDS_ROUTE, FREEDOM
from mfbandit.policies.divergence_bounds import index_cap
from mfbandit.policies.kept_arms import FAR
from mfbandit.policies.mfauto import FIRST_EM_STEPS, GUARDS, REFIT_GROWTH, SECOND_LOOKS, chain_model, used_fidelities
from mfbandit.problems import Problem
from mfbandit.simulation.engines import lazy_scan
from mfbandit.simulation.engines.binding import join
from mfbandit.simulation.engines.chain_fit import ArmResults, ChainFit, no_fit
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
from mfbandit.simulation.engines.mfbayes import quantile, second_look
from mfbandit.simulation.engines.robust_fit import (
    RobustModel,
    RobustRoom,
    filter_robust,
    first_robust_fit,
    robust_refit,
    robust_room,
    robust_worth,
)
from mfbandit.simulation.engines.tail_bounds import Tails, divergence_above, take_in, upper
from mfbandit.simulation.engines.truth import Truth

__all__ = ["begin", "prepare", "run_on", "supports", "used"]

guard_plays = compiled(mfauto.guard_plays)
arms_to_test = compiled(mfauto.arms_to_test)


class AutoRule(NamedTuple):
    """What the policy knows."""

    model: RobustModel
    tails: Tails  # scales are those of the state where the noise is learned
    costs: FloatArray  # (R,)
    unit: float  # cost of the lowest fidelity, used or not
    cap: float  # no index is above this
    guard: int
    looks: int  # arms that are played twice at first


class AutoArms(NamedTuple):
    """What is believed of each arm at the highest fidelity, (K,); means and deviations of its results, (K, R)."""

    values: FloatArray  # a tree
    deviations: FloatArray
    keys: FloatArray  # a tree: the index at the block's end or a near time, or a little more
    near: Near
    lows: FloatArray  # the least plausible mean
    highs: FloatArray
    means: FloatArray  # (K, R): scaled to [0, 1] where rewards lie in a range
    widths: FloatArray  # (K, R): infinite without a result


class AutoSchedule(NamedTuple):
    """When the chain was fitted, and what the guard is owed; arrays of one number each."""

    fitted_at: FloatArray  # capital spent at the last fit
    block_end: FloatArray  # capital up to which keys hold
    doubt: FloatArray  # of the last fit
    fitted: IntArray  # 1 once it was
    tops: IntArray  # results at the highest fidelity
    guarded: IntArray  # plays of the guard
    owed: IntArray
    tested: IntArray  # arms with a result at the highest fidelity


class NoneToTest(NamedTuple):
    """Whether all arms without a result at the highest fidelity are known to be out; arrays of one number each."""

    holds: IntArray  # 1 if it is
    safest: IntArray  # the arm with the largest low, whose high is not below that
    lowest: FloatArray  # that low: what a high must reach


class AutoState(NamedTuple):
    """What the engine keeps beside the run's state."""

    told: ArmResults
    levels: ExplorationLevels
    fit: ChainFit
    room: RobustRoom
    arms: AutoArms
    tails: Tails
    schedule: AutoSchedule
    none: NoneToTest


def supports(problem: Problem, _policy: MFAuto) -> bool:
    """Whether noise is learned, or told as sub-Gaussian or bounded.

    >>> from mfbandit.problems import paper_problem
    >>> supports(paper_problem(1), MFAuto())
    True
    """
    fidelities = problem.fidelities
    return fidelities.concentration is None or all(type(tail) in QUADRATIC for tail in fidelities.tails)


def used(problem: Problem, _policy: MFAuto) -> list[int]:
    """The fidelities that the policy plays.

    >>> from mfbandit.problems import paper_problem
    >>> used(paper_problem(1), MFAuto())
    [0, 1, 2]
    """
    return used_fidelities(problem.fidelities)


def prepare(problem: Problem, policy: MFAuto, capital: float) -> AutoRule:
    """What the policy knows, as arrays.

    >>> from mfbandit.problems import paper_problem
    >>> prepare(paper_problem(3), MFAuto(), 1e6).cap
    1.0
    """
    check_levels(problem, capital)
    fidelities, told = problem.fidelities, chain_model(problem.fidelities)
    none, rows = np.zeros(len(told.rows)), told.rows
    ranges = [(tail.low, tail.high) if has_range(tail) else (0.0, 0.0) for tail in told.tails or [None] * len(rows)]
    lows, highs = (np.array(column) for column in zip(*ranges, strict=True))
    ranged = highs > lows
    noise = none if told.tails is None else np.array([told.tail_noise(tail) for tail in told.tails])
    scales = (
        none
        if told.tails is None
        else np.array([tail.scale if isinstance(tail, SubGaussian) else 0.0 for tail in told.tails])
    )
    steps = np.zeros(len(rows) - 1) if told.guesses is None else told.guesses
    biases = none if told.guesses is None else np.array([fidelities.known_biases[m] for m in rows])
    spans, told_noise = highs - lows, told.tails is not None
    model = RobustModel(
        told_noise, noise, ranged, lows, spans, told.guesses is not None, steps, told.r0, told.nu0, told.robust
    )
    tails = Tails(biases, scales, lows, spans)
    cap = math.inf if told.tails is None else index_cap(told.tails)
    costs, looks = np.array([fidelities.costs[m] for m in rows]), 0 if told_noise else SECOND_LOOKS
    return AutoRule(model, tails, costs, fidelities.costs[0], cap, GUARDS.index(policy.guard), looks)


def begin(_truth: Truth, run: RunState) -> AutoState:
    """The state before the first play: nothing learned.

    >>> from mfbandit.problems import paper_problem
    >>> from mfbandit.simulation.engines import mfauto
    >>> from mfbandit.simulation.engines.interface import begin_run
    >>> begin_run(mfauto, paper_problem(3), MFAuto(), np.array([100.0])).state.fit.noise.tolist()
    [0.0, 0.0]
    """
    k, r = run.counts.shape
    return AutoState(
        ArmResults(run.counts, np.zeros((k, r)), np.zeros((k, r))),  # the counts are the run's own
        no_levels(k),
        no_fit(r),
        robust_room(k, r),
        AutoArms(
            max_tree(k, 0.0),
            np.zeros(k),
            max_tree(k, np.inf),
            nobody_near(k),
            np.full(k, -np.inf),
            np.full(k, np.inf),
            np.zeros((k, r)),
            np.full((k, r), np.inf),
        ),
        Tails(*(np.zeros(r) for _ in range(4))),
        AutoSchedule(np.zeros(1), np.zeros(1), np.zeros(1), *(np.zeros(1, np.int64) for _ in range(5))),
        NoneToTest(np.zeros(1, np.int64), np.zeros(1, np.int64), np.zeros(1)),
    )


@inlined
def weigh_results(rule: AutoRule, state: AutoState, arm: int) -> None:
    """The deviations of an arm's means, and the values that they and the biases allow."""
    arms, told, tails = state.arms, state.told, state.tails
    low, high = -np.inf, np.inf
    for r in range(len(rule.costs)):
        n = told.counts[arm, r]
        if n == 0:
            continue
        if tails.scales[r] > 0:
            width = tails.scales[r] / math.sqrt(n)
        else:
            p = (arms.means[arm, r] * n + 0.5) / (n + 1)
            width = tails.spans[r] * math.sqrt(p * (1 - p) / n)
        arms.widths[arm, r] = width
        mean, off = told.sums[arm, r] / n, FAR * width
        low = max(low, mean - tails.biases[r] - off)
        high = min(high, mean + tails.biases[r] + off)
    arms.lows[arm], arms.highs[arm] = low, high


@inlined
def believe(rule: AutoRule, state: AutoState, arm: int) -> float:
    """The arm's value at the highest fidelity; its deviation is written down."""
    arms = state.arms
    weigh_results(rule, state, arm)
    filter_robust(rule.model, state.told, state.fit, state.room, arm)
    value = state.room.means[-1]
    if rule.model.steps_told:
        low, high = arms.lows[arm], arms.highs[arm]
        value = (low + high) / 2 if low > high else min(max(value, low), high)
    arms.deviations[arm] = math.sqrt(state.room.variances[-1])
    return value


@inlined
def far(rule: AutoRule, state: AutoState, arm: int, share: float) -> float:
    """The factor of the deviation in the index, where ``share`` is 1 + S/H_k."""
    if not rule.model.steps_told:
        return math.sqrt(2.0 * math.log(share))
    return quantile(share, FREEDOM * (1.0 + state.told.counts[arm, -1]))


@inlined
def index(rule: AutoRule, state: AutoState, _run: RunState, arm: int, spent: float) -> float:
    """U_k when so much is spent."""
    share = ratio(state.levels, rule.unit, arm, spent)
    highest = value_at(state.arms.values, arm) + state.arms.deviations[arm] * far(rule, state, arm, share)
    if not rule.model.steps_told:
        return highest
    bound = upper(state.tails, state.told.counts, state.arms.means, arm, math.log(share))
    return min(highest, min(bound, rule.cap))


@compiled
def doubt_of(state: AutoState) -> float:
    """What is not known of an untested arm, as a share of that and of what makes arms differ."""
    arms, counts, n, last = state.arms, state.told.counts, len(state.told.counts), state.told.counts.shape[1] - 1
    added, unsure, squares, untested = 0.0, 0.0, 0.0, 0
    for k in range(n):
        added += value_at(arms.values, k)
        if counts[k, last] == 0:
            unsure += arms.deviations[k] * arms.deviations[k]
            untested += 1
    mean = added / n
    for k in range(n):
        off = value_at(arms.values, k) - mean
        squares += off * off
    spread, unsure = squares / n, unsure / max(untested, 1)
    return unsure / (unsure + spread) if 0.0 < unsure + spread < np.inf else 0.0


@compiled
def renew(rule: AutoRule, state: AutoState, run: RunState, fitted: bool) -> None:
    """A new block, with new keys for all arms; new values, too, if the chain was fitted anew."""
    arms, end = state.arms, run.spent[0] * BLOCK_GROWTH
    state.schedule.block_end[0] = end
    put_in_order(state.levels)
    for k in range(len(run.counts)):
        if fitted:
            put(arms.values, k, believe(rule, state, k))
        put(arms.keys, k, key_of(index(rule, state, run, k, end)))
    rebuild(arms.values)
    rebuild(arms.keys)
    if fitted:
        state.schedule.doubt[0] = doubt_of(state)
        state.none.holds[0] = 0
    begin_period(arms.near, run, run.spent[0], end)


@compiled
def set_key(rule: AutoRule, state: AutoState, run: RunState, keys: FloatArray, arm: int, end: float) -> None:
    """Give an arm the key that holds up to this capital."""
    change(keys, arm, key_of(index(rule, state, run, arm, end)))


search = join(lazy_scan.search_near, index=index, set_key=set_key)


@compiled
def untested_arm(rule: AutoRule, state: AutoState) -> int:
    """The arm with the largest value among those never played at the highest fidelity and not ruled out; −1 if none."""
    arms, told, last = state.arms, state.told, len(rule.costs) - 1
    lowest, safest, any_allowed = -np.inf, 0, not rule.model.steps_told
    for k in range(len(told.counts)):
        if arms.lows[k] > lowest:
            lowest, safest = arms.lows[k], k
    for k in range(len(told.counts)):
        any_allowed = any_allowed or arms.highs[k] >= lowest
    chosen, best = -1, -np.inf
    for k in range(len(told.counts)):
        if told.counts[k, last] > 0 or (rule.model.steps_told and any_allowed and not arms.highs[k] >= lowest):
            continue
        value = value_at(arms.values, k)
        if chosen < 0 or value > best:
            chosen, best = k, value
    if chosen < 0 and arms.highs[safest] >= lowest:
        state.none.holds[0], state.none.safest[0], state.none.lowest[0] = 1, safest, lowest
    return chosen


@inlined
def look_again(state: AutoState, arm: int) -> None:
    """Doubt that there is no arm to test, if a result of this arm may have let one in."""
    none, low, high, kept = state.none, state.arms.lows[arm], state.arms.highs[arm], True
    if arm == none.safest[0] or low > none.lowest[0]:
        kept = none.lowest[0] <= low <= high
        none.safest[0], none.lowest[0] = arm, low
    if not kept or (state.told.counts[arm, -1] == 0 and high >= none.lowest[0]):
        none.holds[0] = 0


@compiled
def guarded_arm(rule: AutoRule, state: AutoState) -> int:
    """The arm that the guard plays: never played at the highest fidelity, or with the largest bound there."""
    arms, told, last = state.arms, state.told, len(rule.costs) - 1
    plays, lowest, any_allowed = 0, -np.inf, not rule.model.steps_told
    for k in range(len(told.counts)):
        plays += told.counts[k, last]
        lowest = max(lowest, arms.lows[k])
    for k in range(len(told.counts)):
        any_allowed = any_allowed or arms.highs[k] >= lowest
    effort = math.sqrt(2.0 * math.log(plays + 2.0))
    chosen, best, untested = -1, -np.inf, False
    for k in range(len(told.counts)):
        if rule.model.steps_told and any_allowed and not arms.highs[k] >= lowest:
            continue
        n = told.counts[k, last]
        if untested and n > 0:
            continue
        value = value_at(arms.values, k) if n == 0 else told.sums[k, last] / n + effort * arms.widths[k, last]
        if chosen < 0 or value > best or (n == 0 and not untested):
            chosen, best = k, value
        untested = untested or n == 0
    return chosen


@compiled
def due_arm(rule: AutoRule, state: AutoState, run: RunState) -> int:
    """The arm that the guard plays now; −1 if it plays none."""
    schedule = state.schedule
    if schedule.owed[0] > 0:
        return guarded_arm(rule, state)
    due = arms_to_test(rule.guard, len(run.counts), run.spent[0] / rule.costs[-1], schedule.doubt[0])
    return untested_arm(rule, state) if schedule.tested[0] < due and state.none.holds[0] == 0 else -1


@compiled
def by_bounds(rule: AutoRule, state: AutoState, arm: int, highest: float, leading: float, spent: float) -> int:
    """The row at which bounds settle the arm at a small cost; −1 if the posterior does it for less."""
    arms, told, tails, last = state.arms, state.told, state.tails, len(rule.costs) - 1
    target, share = min(leading, highest), ratio(state.levels, rule.unit, arm, spent)
    level, best, chosen = math.log(share), np.inf, -1
    for r in range(last + 1):
        n, guess = told.counts[arm, r], value_at(arms.values, arm)
        if n > 0:
            guess = told.sums[arm, r] / n - arms.widths[arm, r]
        rate = divergence_above(tails, r, guess, target - tails.biases[r])
        if rate > 0:
            needed = max(level / rate - n, 1.0) * rule.costs[r]
            if needed < best:
                best, chosen = needed, r
    gap = target - value_at(arms.values, arm)
    if not gap > 0:
        return chosen
    allowed, deviation = gap / far(rule, state, arm, share), arms.deviations[arm]
    precision = 1.0 / (allowed * allowed) - 1.0 / (deviation * deviation)
    posterior = max(state.room.noise[last] * precision, 1.0) * rule.costs[last]
    return chosen if best < BOUNDS_ROUTE * posterior else -1


@inlined
def choose(rule: AutoRule, state: AutoState, run: RunState) -> tuple[int, int]:
    """The next play."""
    t, last = run.t[0], len(rule.costs) - 1
    if t <= len(run.counts):
        return t - 1, 0
    if state.schedule.fitted[0] == 0:
        return second_look(state.told), 0
    arm = due_arm(rule, state, run)
    if arm >= 0:
        return arm, last
    arm, highest = search(rule, state, run, state.arms.keys, state.arms.near, run.spent[0], state.schedule.block_end[0])
    leader = first_largest(state.arms.values)
    if arm == leader and not rule.model.steps_told:
        return arm, last
    filter_robust(rule.model, state.told, state.fit, state.room, arm)
    if arm != leader and rule.model.steps_told:
        r = by_bounds(rule, state, arm, highest, value_at(state.arms.values, leader), run.spent[0])
        if r >= 0:
            return arm, r
    return arm, robust_worth(rule.costs, state.room)


@inlined
def remember(rule: AutoRule, state: AutoState, run: RunState) -> bool:
    """Keep up the chain after the newest result; whether it was fitted anew."""
    schedule, spent, tops, arms = state.schedule, run.spent[0], run.tally[-1], len(run.counts)
    if schedule.fitted[0] == 0:
        if run.t[0] - 1 < arms + min(rule.looks, arms):
            return False
        first_robust_fit(rule.model, state.told, state.fit, state.room, FIRST_EM_STEPS)
        schedule.fitted[0], schedule.fitted_at[0], schedule.tops[0] = 1, spent, tops
        schedule.owed[0] = guard_plays(rule.guard, arms, spent / rule.costs[-1])
        return True
    schedule.guarded[0] += min(schedule.owed[0], max(0, tops - schedule.tops[0]))
    schedule.tops[0] = tops
    schedule.owed[0] = max(0, guard_plays(rule.guard, arms, spent / rule.costs[-1]) - schedule.guarded[0])
    if spent < REFIT_GROWTH * schedule.fitted_at[0]:
        return False
    robust_refit(rule.model, state.told, state.fit, state.room)
    schedule.fitted_at[0] = spent
    return True


@compiled
def take_tails(rule: AutoRule, state: AutoState) -> None:
    """The tails that bounds are computed with: told, or Gaussian with the learned noise."""
    for r in range(len(rule.costs)):
        state.tails.biases[r], state.tails.lows[r] = rule.tails.biases[r], rule.tails.lows[r]
        state.tails.spans[r], state.tails.scales[r] = rule.tails.spans[r], rule.tails.scales[r]
        if not rule.model.noise_told:
            state.tails.scales[r] = math.sqrt(state.fit.noise[r])


@inlined
def learn(rule: AutoRule, state: AutoState, run: RunState, arm: int, m: int, reward: float) -> None:
    """Take in a reward, fit the chain anew if it is time, and keep the keys up."""
    told, schedule = state.told, state.schedule
    told.squares[arm, m] += reward * reward
    if m == len(rule.costs) - 1 and told.counts[arm, m] == 1:
        schedule.tested[0] += 1
    if rule.model.ranged[m]:
        take_in(rule.tails, told.counts, told.sums, state.arms.means, arm, m, reward)
    else:
        told.sums[arm, m] += reward
        state.arms.means[arm, m] = told.sums[arm, m] / told.counts[arm, m]
    weigh(rule.costs, rule.unit, told.counts, state.levels, arm)
    fitted = remember(rule, state, run)
    if schedule.fitted[0] == 0:
        return
    if fitted:
        take_tails(rule, state)
    if fitted or run.spent[0] > schedule.block_end[0]:
        renew(rule, state, run, fitted)
    change(state.arms.values, arm, believe(rule, state, arm))
    look_again(state, arm)
    end = key_end(state.arms.near, arm, schedule.block_end[0])
    change(state.arms.keys, arm, key_of(index(rule, state, run, arm, end)))


@counting
def run_on(truth: Truth, rule: AutoRule, state: AutoState, run: RunState, rng: Generator, steps: int) -> None:
    """Make up to ``steps`` more plays."""
    for _ in range(steps):
        arm, m = choose(rule, state, run)
        if not affordable(truth, run, arm, m):
            return
        learn(rule, state, run, arm, m, make_play(truth, run, arm, m, rng))
