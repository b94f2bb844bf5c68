"""The engine for MFAda: a lazy scan, number for number as ``policies/mfada.py`` computes it.

Between an arm's plays H_k only grows, and with H_k frozen the index grows with the capital spent. A block of plays
lasts until that has grown by a factor.
"""

import math
from typing import NamedTuple

import numpy as np

from mfbandit._internal.typing import FloatArray, IntArray
from mfbandit.core import QUADRATIC, Bounded
from mfbandit.policies import MFAda
from mfbandit.problems import Problem
from mfbandit.simulation.engines import lazy_scan
from mfbandit.simulation.engines.binding import join
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
from mfbandit.simulation.engines.lazy_scan import BLOCK_GROWTH, key_of
from mfbandit.simulation.engines.max_tree import change, max_tree, put, rebuild
from mfbandit.simulation.engines.tail_bounds import Tails, divergence_above, prepare_tails, take_in, upper
from mfbandit.simulation.engines.truth import Truth

__all__ = ["begin", "prepare", "run_on", "supports", "used"]


class AdaRule(NamedTuple):
    """What the policy knows."""

    tails: Tails
    costs: FloatArray  # (M,)
    gammas: FloatArray  # (M - 1,): bias * sqrt(cost / next cost)
    cap: float  # no index is above this


class AdaState(NamedTuple):
    """What was learned of each arm, and its key."""

    sums: FloatArray  # (K, M)
    means: FloatArray  # (K, M): scaled to [0, 1] where rewards lie in a range
    deviations: FloatArray  # (K, M): in units of reward; infinite without a result
    levels: ExplorationLevels
    lows: FloatArray  # (K,): the least plausible value
    middles: FloatArray  # (K,): the middle of the plausible values
    keys: FloatArray  # a tree: the index at the block's end, or a little more
    leads: FloatArray  # a tree: the middle, or the key where that is smaller
    block_end: FloatArray  # (1,): in capital


def supports(problem: Problem, _policy: MFAda) -> bool:
    """Whether biases are known, and all noise is sub-Gaussian or bounded.

    >>> from mfbandit.problems import paper_problem
    >>> supports(paper_problem(1), MFAda())
    True
    """
    fidelities = problem.fidelities
    if fidelities.concentration is None or fidelities.biases is None:
        return False
    return all(type(tail) in QUADRATIC for tail in fidelities.tails)


def used(problem: Problem, _policy: MFAda) -> list[int]:
    """All fidelities.

    >>> from mfbandit.problems import paper_problem
    >>> used(paper_problem(1), MFAda())
    [0, 1, 2]
    """
    return list(range(len(problem.fidelities)))


def prepare(problem: Problem, _policy: MFAda, capital: float) -> AdaRule:
    """What the policy knows, as arrays.

    >>> from mfbandit.problems import paper_problem
    >>> prepare(paper_problem(3), MFAda(), 1e6).cap
    1.0
    """
    check_levels(problem, capital)
    fidelities = problem.fidelities
    ratios = [low / high for low, high in zip(fidelities.costs[:-1], fidelities.costs[1:], strict=True)]
    gammas = [bias * math.sqrt(ratio) for bias, ratio in zip(fidelities.known_biases[:-1], ratios, strict=True)]
    cap = max(tail.high if isinstance(tail, Bounded) else math.inf for tail in fidelities.tails)
    return AdaRule(prepare_tails(fidelities), np.array(fidelities.costs), np.array(gammas, dtype=np.float64), cap)


def begin(_truth: Truth, run: RunState) -> AdaState:
    """The state before the first play: nothing learned.

    >>> from mfbandit.problems import paper_problem
    >>> from mfbandit.simulation.engines import mfada
    >>> from mfbandit.simulation.engines.interface import begin_run
    >>> begin_run(mfada, paper_problem(3), MFAda(), np.array([100.0])).state.deviations.shape
    (200, 2)
    """
    shape = run.counts.shape
    k = shape[0]
    return AdaState(
        sums=np.zeros(shape),
        means=np.full(shape, np.nan),
        deviations=np.full(shape, np.inf),
        levels=no_levels(k),
        lows=np.full(k, -np.inf),
        middles=np.full(k, -np.inf),
        keys=max_tree(k, np.inf),
        leads=max_tree(k, -np.inf),
        block_end=np.zeros(1),
    )


@inlined
def index(rule: AdaRule, state: AdaState, run: RunState, arm: int, spent: float) -> float:
    """U_k when so much is spent: the smallest upper bound for the effort f_k = log(1 + S/H_k)."""
    effort = math.log(ratio(state.levels, rule.costs[0], arm, spent))
    return min(upper(rule.tails, run.counts, state.means, arm, effort), rule.cap)


@compiled
def value(rule: AdaRule, state: AdaState, run: RunState, arm: int, spent: float) -> float:
    """The middle of the plausible values, or the index where that is smaller; the leader has the largest."""
    return min(index(rule, state, run, arm, spent), state.middles[arm])


@compiled
def renew(rule: AdaRule, state: AdaState, run: RunState) -> None:
    """A new block, with new keys for all arms."""
    state.block_end[0] = run.spent[0] * BLOCK_GROWTH + 1e-9
    put_in_order(state.levels)
    for arm in range(len(run.counts)):
        key = key_of(index(rule, state, run, arm, state.block_end[0]))
        put(state.keys, arm, key)
        put(state.leads, arm, min(key, state.middles[arm]))
    rebuild(state.keys)
    rebuild(state.leads)


search = join(lazy_scan.search, index=index)
lead = join(lazy_scan.search, index=value)


@compiled
def first_open(rule: AdaRule, state: AdaState, arm: int) -> int:
    """The first fidelity whose deviation is at least gamma, infinite without a play; the highest if there is none."""
    for m in range(len(rule.gammas)):
        if state.deviations[arm, m] >= rule.gammas[m]:
            return m
    return len(rule.gammas)


@compiled
def most_telling(rule: AdaRule, state: AdaState, counts: IntArray, arm: int, highest: float, target: float) -> int:
    """The fidelity with the most information per cost on whether the arm could reach the target; ties: the highest."""
    top = len(rule.costs) - 1
    best, chosen = 0.0, top
    lowest = min(state.lows[arm], highest)
    for m in range(top, -1, -1):
        guess = lowest - rule.tails.biases[m]
        if m < top and counts[arm, m] > 0:
            mean = state.sums[arm, m] / counts[arm, m]
            guess = max(guess, mean - 2 * state.deviations[arm, m])
        rate = divergence_above(rule.tails, m, guess, target - rule.tails.biases[m]) / rule.costs[m]
        if rate > best:
            best, chosen = rate, m
    return chosen


@inlined
def choose(rule: AdaRule, state: AdaState, run: RunState) -> tuple[int, int]:
    """The next play; first every arm once, by number."""
    t = run.t[0]
    if t <= len(run.counts):
        return t - 1, 0
    if run.spent[0] > state.block_end[0]:
        renew(rule, state, run)
    arm, highest = search(rule, state, run, state.keys, run.spent[0])
    leader, target = lead(rule, state, run, state.leads, run.spent[0])
    if arm == leader:
        return arm, first_open(rule, state, arm)
    return arm, most_telling(rule, state, run.counts, arm, highest, target)


@inlined
def deviation(tails: Tails, m: int, mean: float, count: int) -> float:
    """How far a mean of so many rewards is off, usually: sigma/sqrt(T), or what 0/1 rewards with this mean have."""
    if tails.scales[m] > 0:
        return tails.scales[m] / math.sqrt(count)
    p = (mean * count + 0.5) / (count + 1)
    return tails.spans[m] * math.sqrt(p * (1 - p) / count)


@inlined
def place(rule: AdaRule, state: AdaState, counts: IntArray, arm: int) -> None:
    """The arm's least plausible value and the middle of the plausible ones."""
    low, high = -np.inf, np.inf
    for m in range(len(rule.costs)):
        if counts[arm, m] > 0:
            mean, off = state.sums[arm, m] / counts[arm, m], 2 * state.deviations[arm, m]
            low = max(low, (mean - rule.tails.biases[m]) - off)
            high = min(high, (mean + rule.tails.biases[m]) + off)
    state.lows[arm] = low
    state.middles[arm] = low + max(0.0, high - low) / 2


@inlined
def learn(rule: AdaRule, state: AdaState, run: RunState, arm: int, m: int, reward: float) -> None:
    """Take in a reward: what is known of this arm, the levels of all, and the arm's key."""
    counts = run.counts
    take_in(rule.tails, counts, state.sums, state.means, arm, m, reward)
    state.deviations[arm, m] = deviation(rule.tails, m, state.means[arm, m], counts[arm, m])
    weigh(rule.costs, rule.costs[0], counts, state.levels, arm)
    place(rule, state, counts, arm)
    key = key_of(index(rule, state, run, arm, max(state.block_end[0], run.spent[0])))  # the latter if no block is on
    change(state.keys, arm, key)
    change(state.leads, arm, min(key, state.middles[arm]))


@counting
def run_on(truth: Truth, rule: AdaRule, state: AdaState, run: RunState, rng: Generator, steps: int) -> None:
    """Make up to ``steps`` more plays."""
    for _ in range(steps):
        arm, m = choose(rule, state, run)
        if not affordable(truth, run, arm, m):
            return
        learn(rule, state, run, arm, m, make_play(truth, run, arm, m, rng))
