"""The engine for UCB and MF-UCB with bounds by the Bernoulli divergence (``kl=True``): a lazy scan.

The index of an arm grows with t between its plays; a block of plays lasts until t has grown by a factor.
"""

import math
from typing import NamedTuple

import numpy as np

from mfbandit._internal.typing import FloatArray, IntArray
from mfbandit.core import Bounded
from mfbandit.policies import MFUCB, UCB
from mfbandit.problems import Problem
from mfbandit.simulation.engines import lazy_scan
from mfbandit.simulation.engines.binding import join
from mfbandit.simulation.engines.interface import RunState
from mfbandit.simulation.engines.kernels import Generator, affordable, compiled, counting, inlined, make_play
from mfbandit.simulation.engines.lazy_scan import BLOCK_GROWTH, Near, begin_period, key_end, key_of, nobody_near
from mfbandit.simulation.engines.max_tree import change, max_tree, put, rebuild
from mfbandit.simulation.engines.tail_bounds import Tails, prepare_tails, take_in, upper
from mfbandit.simulation.engines.truth import Truth
from mfbandit.simulation.engines.ucb_fidelities import known, used

__all__ = ["begin", "prepare", "run_on", "supports", "used"]


class KLRule(NamedTuple):
    """What the learner knows."""

    rho: float
    tails: Tails
    widths: FloatArray  # (R,): sigma * sqrt(2 rho), by which fidelities are left
    gammas: FloatArray  # (R - 1,)


class KLState(NamedTuple):
    """What was learned of each arm, and its key."""

    sums: FloatArray  # (K, R)
    means: FloatArray  # (K, R): scaled to [0, 1]
    keys: FloatArray  # a tree: the index at the block's end or a near time, or a little more
    near: Near
    block_end: FloatArray  # (1,): in plays


def supports(problem: Problem, policy: UCB | MFUCB) -> bool:
    """Whether bounds are by divergence, and rewards lie in a range wherever the policy plays.

    >>> from mfbandit.problems import paper_problem
    >>> supports(paper_problem(3), UCB(kl=True)), supports(paper_problem(3), UCB())
    (True, False)
    """
    if not policy.kl or problem.fidelities.concentration is None:
        return False
    if problem.fidelities.biases is None and not isinstance(policy, UCB):
        return False
    return all(type(tail) is Bounded for tail in known(problem, policy).tails)


def prepare(problem: Problem, policy: UCB | MFUCB, _capital: float) -> KLRule:
    """What the learner knows, as arrays.

    >>> from mfbandit.problems import paper_problem
    >>> prepare(paper_problem(3), MFUCB(kl=True), 1e6).widths.tolist()
    [1.0, 1.0]
    """
    fidelities = known(problem, policy)
    widths = [math.sqrt(2 * policy.rho) * tail.scale for tail in fidelities.tails if isinstance(tail, Bounded)]
    gammas = np.array(fidelities.gammas, dtype=np.float64)
    return KLRule(policy.rho, prepare_tails(fidelities), np.array(widths), gammas)


def begin(_truth: Truth, run: RunState) -> KLState:
    """The state before the first play: nothing learned.

    >>> from mfbandit.problems import paper_problem
    >>> from mfbandit.simulation.engines import kl_ucb
    >>> from mfbandit.simulation.engines.interface import begin_run
    >>> begin_run(kl_ucb, paper_problem(3), UCB(kl=True), np.array([100.0])).state.means.shape
    (200, 1)
    """
    shape = run.counts.shape
    return KLState(
        np.zeros(shape), np.full(shape, np.nan), max_tree(shape[0], np.inf), nobody_near(shape[0]), np.zeros(1)
    )


@inlined
def index(rule: KLRule, state: KLState, run: RunState, arm: int, now: float) -> float:
    """The index at this time."""
    return upper(rule.tails, run.counts, state.means, arm, rule.rho * math.log(now))


@compiled
def renew(rule: KLRule, state: KLState, run: RunState) -> None:
    """A new block, with new keys for all arms."""
    state.block_end[0] = run.t[0] * BLOCK_GROWTH + 1e-9
    for arm in range(len(run.counts)):
        put(state.keys, arm, key_of(index(rule, state, run, arm, state.block_end[0])))
    rebuild(state.keys)
    begin_period(state.near, run, float(run.t[0]), state.block_end[0])


@compiled
def set_key(rule: KLRule, state: KLState, run: RunState, keys: FloatArray, arm: int, end: float) -> None:
    """Give an arm the key that holds up to this time."""
    change(keys, arm, key_of(index(rule, state, run, arm, end)))


search = join(lazy_scan.search_near, index=index, set_key=set_key)


@compiled
def first_open(rule: KLRule, counts: IntArray, arm: int, t: int) -> int:
    """Step 2 of Algorithm 1: the first fidelity whose width is at least gamma."""
    u = math.sqrt(math.log(t))
    for m in range(len(rule.gammas)):
        count = counts[arm, m]
        if count == 0 or u * (rule.widths[m] / math.sqrt(count)) >= rule.gammas[m]:
            return m
    return len(rule.gammas)


@inlined
def choose(rule: KLRule, state: KLState, run: RunState) -> tuple[int, int]:
    """The next play; first every arm once, by number."""
    t = run.t[0]
    if t <= len(run.counts):
        return t - 1, 0
    if t > state.block_end[0]:
        renew(rule, state, run)
    arm, _ = search(rule, state, run, state.keys, state.near, float(t), state.block_end[0])
    return arm, first_open(rule, run.counts, arm, t)


@inlined
def learn(rule: KLRule, state: KLState, run: RunState, arm: int, m: int, reward: float) -> None:
    """Take in a reward, and keep up the arm's key."""
    take_in(rule.tails, run.counts, state.sums, state.means, arm, m, reward)
    end = max(state.block_end[0], float(run.t[0] - 1))  # the latter if no block is on
    change(state.keys, arm, key_of(index(rule, state, run, arm, key_end(state.near, arm, end))))


@counting
def run_on(truth: Truth, rule: KLRule, state: KLState, run: RunState, rng: Generator, steps: int) -> None:
    """Make up to ``steps`` more plays."""
    for _ in range(steps):
        arm, m = choose(rule, state, run)
        if not affordable(truth, run, arm, m):
            return
        learn(rule, state, run, arm, m, make_play(truth, run, arm, m, rng))
