"""The engine for MFSure: leader against challenger, number for number as ``policies/mfsure.py`` computes it.

What speaks against a rival changes with its own results and with the leader's: only that is computed anew.
"""

import math
from typing import NamedTuple

import numpy as np

from mfbandit._internal.typing import FloatArray, IntArray
from mfbandit.core import estimate, pair_claim
from mfbandit.core.confidence import Roster
from mfbandit.core.pair_claim import Noise, ResultsByFidelity
from mfbandit.errors import InvalidArgument
from mfbandit.policies import MFSure, duel
from mfbandit.policies.mfsure import GOLDEN
from mfbandit.problems import Problem
from mfbandit.simulation.engines.bracket import ANYWHERE, minimum, narrowed
from mfbandit.simulation.engines.interface import RunState
from mfbandit.simulation.engines.kernels import (
    Generator,
    affordable,
    compiled,
    compiled_with,
    counting,
    decide,
    largest,
    make_play,
)
from mfbandit.simulation.engines.truth import Truth

__all__ = ["begin", "prepare", "run_on", "supports", "used"]

NOBODY = -1

log_mills_ratio = compiled(estimate.log_mills_ratio)
balance_at = compiled_with(estimate.balance_at, log_mills_ratio=log_mills_ratio)
centre = compiled_with(estimate.centre, balance_at=balance_at)
mixture_constant = compiled_with(pair_claim.mixture_constant, log_gamma_of=compiled(pair_claim.log_gamma_of))
gaussian_cell = compiled_with(pair_claim.gaussian_cell, log_mills_ratio=log_mills_ratio)
bounded_cell = compiled(pair_claim.bounded_cell)
pooled = compiled_with(pair_claim.pooled, gaussian_cell=gaussian_cell, bounded_cell=bounded_cell)
possible_means = compiled(pair_claim.possible_means)
open_mean = compiled_with(pair_claim.open_mean, pooled=pooled, possible_means=possible_means)
most_telling = compiled(duel.most_telling)


class SureRule(NamedTuple):
    """What the learner knows; arrays of shape (M,)."""

    tolerance: float
    needed: float  # Λ at which a rival is ruled out
    costs: FloatArray
    noise: Noise  # of arrays


class SureState(NamedTuple):
    """What was learned of each arm; arrays of shape (K,) unless another one is given."""

    counts: FloatArray  # (K, M): results, as numbers to compute with
    sums: FloatArray  # (K, M)
    means: FloatArray  # (K, M)
    weights: FloatArray  # (K, M): n/σ², how much the results of an arm at m count
    constants: FloatArray  # (K, M): the part of the evidence that does not depend on the mean
    centres: FloatArray
    against: FloatArray  # f: what speaks against the arm as a rival of the leader
    meeting: FloatArray  # η, where f has its minimum
    lead: FloatArray  # the leader's part of f
    leader: IntArray  # (1,): against whom
    rival: IntArray  # (1,): one that was not ruled out when last looked at


def supports(problem: Problem, _policy: MFSure) -> bool:
    """Whether biases and the noise's scale are known.

    >>> from mfbandit.problems import paper_problem
    >>> supports(paper_problem(1), MFSure())
    True
    """
    return pair_claim.noise_of(problem.fidelities) is not None


def used(problem: Problem, _policy: MFSure) -> list[int]:
    """All fidelities.

    >>> from mfbandit.problems import paper_problem
    >>> used(paper_problem(2), MFSure())
    [0, 1, 2, 3]
    """
    return list(range(len(problem.fidelities)))


def prepare(problem: Problem, policy: MFSure, _capital: float) -> SureRule:
    """What the learner knows, as arrays.

    >>> from mfbandit.problems import paper_problem
    >>> prepare(paper_problem(3), MFSure(), 1e6).costs.tolist()
    [1.0, 10.0]
    """
    fidelities = problem.fidelities
    noise = pair_claim.noise_of(fidelities)
    if noise is None:
        raise InvalidArgument(f"fidelities must have known biases and scales for MFSure, got {fidelities!r}")
    price = Roster(problem.arms).log_prices(0, np.array([1]))[0]
    return SureRule(
        policy.tolerance, float(price) - math.log(policy.delta), np.array(fidelities.costs), _as_arrays(noise)
    )


def _as_arrays(noise: Noise) -> Noise:
    return Noise(*(np.array(values, dtype=np.float64) for values in noise))


def begin(_truth: Truth, run: RunState) -> SureState:
    """The state before the first play: nothing learned.

    >>> from mfbandit.problems import paper_problem
    >>> from mfbandit.simulation.engines import mfsure
    >>> from mfbandit.simulation.engines.interface import begin_run
    >>> begin_run(mfsure, paper_problem(3), MFSure(), np.array([100.0])).state.centres.shape
    (200,)
    """
    k, m = run.counts.shape
    return SureState(
        counts=np.zeros((k, m)),
        sums=np.zeros((k, m)),
        means=np.zeros((k, m)),
        weights=np.zeros((k, m)),
        constants=np.zeros((k, m)),
        centres=np.full(k, -np.inf),
        against=np.zeros(k),
        meeting=np.zeros(k),
        lead=np.zeros(k),
        leader=np.full(1, NOBODY),
        rival=np.full(1, NOBODY),
    )


@compiled
def lower_end(rule: SureRule, state: SureState, arm: int, m: int) -> float:
    """X̄ − ζ: below it, results at m speak against a leader's mean."""
    return state.means[arm, m] - rule.noise.biases[m]


@compiled
def upper_end(rule: SureRule, state: SureState, arm: int, m: int) -> float:
    """X̄ + ζ − ε: above it, results at m speak against a rival's mean."""
    return state.means[arm, m] + rule.noise.biases[m] - rule.tolerance


@compiled
def slope(rule: SureRule, state: SureState, leader: int, rival: int, point: float) -> float:
    """The derivative of f in η."""
    total = 0.0
    for m in range(len(rule.costs)):
        if state.counts[leader, m] > 0:
            total -= state.weights[leader, m] * max(lower_end(rule, state, leader, m) - point, 0.0)
    for m in range(len(rule.costs)):
        if state.counts[rival, m] > 0:
            total += state.weights[rival, m] * max(point - upper_end(rule, state, rival, m), 0.0)
    return total


@compiled
def meeting_point(rule: SureRule, state: SureState, leader: int, rival: int) -> float:
    """η, where f has its minimum."""
    bracket = ANYWHERE
    number = len(rule.costs)
    for place in range(2 * number):
        m = place % number
        if state.counts[leader if place < number else rival, m] == 0:
            continue
        point = lower_end(rule, state, leader, m) if place < number else upper_end(rule, state, rival, m)
        steep = slope(rule, state, leader, rival, point)
        bracket = narrowed(bracket, point, steep)
    return minimum(bracket)


@compiled
def compare(rule: SureRule, state: SureState, leader: int, rival: int) -> None:
    """Compute f, η and the leader's part of f, as ``duel.evidence_against`` does."""
    meeting = meeting_point(rule, state, leader, rival)
    first, second = 0.0, 0.0
    for m in range(len(rule.costs)):
        if state.counts[leader, m] > 0:
            gap = max(lower_end(rule, state, leader, m) - meeting, 0.0)
            first += 0.5 * state.weights[leader, m] * gap * gap
        if state.counts[rival, m] > 0:
            gap = max(meeting - upper_end(rule, state, rival, m), 0.0)
            second += 0.5 * state.weights[rival, m] * gap * gap
    state.against[rival], state.meeting[rival], state.lead[rival] = first + second, meeting, first


@compiled
def plays_of(counts: FloatArray, arm: int) -> float:
    """How many results an arm has."""
    total = 0.0
    for m in range(counts.shape[1]):
        total += counts[arm, m]
    return total


@compiled
def find_challenger(state: SureState, leader: int) -> int:
    """The rival with the smallest f + log(plays), the larger centre among ties, then the lower number."""
    chosen, best = NOBODY, np.inf
    for k in range(len(state.centres)):
        if k != leader:
            value = state.against[k] + math.log(plays_of(state.counts, k))
            if value < best or (value == best and state.centres[k] > state.centres[chosen]):
                chosen, best = k, value
    return chosen


@compiled
def look(rule: SureRule, state: SureState, arm: int, beyond: float, side: float) -> int:
    """The fidelity that may tell most of an arm for its cost."""
    counts = state.counts[arm]
    return most_telling(counts, counts, state.sums[arm], rule.noise.scales, rule.noise.biases, rule.costs, beyond, side)


@compiled
def spent_on(rule: SureRule, state: SureState, arm: int) -> float:
    """What an arm has cost so far."""
    total = 0.0
    for m in range(len(rule.costs)):
        total += rule.costs[m] * state.counts[arm, m]
    return total


@compiled
def choose(rule: SureRule, state: SureState, run: RunState) -> tuple[int, int]:
    """The next play; first every arm once, by number."""
    t, leader = run.t[0], state.leader[0]
    if t <= len(state.centres):
        return t - 1, 0
    if len(state.centres) == 1:
        return 0, len(rule.costs) - 1
    challenger = find_challenger(state, leader)
    value, eta = state.against[challenger], state.meeting[challenger]
    if value <= 0:
        eta = 0.5 * (state.centres[leader] + state.centres[challenger]) - 0.5 * rule.tolerance
    first = look(rule, state, leader, eta, 1.0)
    second = look(rule, state, challenger, eta + rule.tolerance, -1.0)
    if value <= 0:
        behind = spent_on(rule, state, leader) < spent_on(rule, state, challenger)
    else:
        share = state.lead[challenger] / value
        odds, others = share / rule.costs[first], (1.0 - share) / rule.costs[second]
        behind = (t * GOLDEN) % 1.0 < odds / (odds + others)
    return (leader, first) if behind else (challenger, second)


@compiled
def learn(rule: SureRule, state: SureState, run: RunState, arm: int, m: int, reward: float) -> None:
    """Take in a reward; compare anew whatever it changes."""
    state.counts[arm, m] += 1.0
    state.sums[arm, m] += reward
    state.means[arm, m] = state.sums[arm, m] / state.counts[arm, m]
    state.weights[arm, m] = state.counts[arm, m] / (rule.noise.scales[m] * rule.noise.scales[m])
    state.constants[arm, m] = mixture_constant(
        state.counts[arm, m], state.sums[arm, m], rule.noise.lows[m], rule.noise.widths[m]
    )
    state.centres[arm] = centre(state.counts[arm], state.sums[arm], rule.noise.scales, rule.noise.biases)
    if run.t[0] - 1 < len(state.centres):
        return
    leader = largest(state.centres)
    if leader == state.leader[0] and arm != leader:
        compare(rule, state, leader, arm)
        return
    state.leader[0] = leader
    for k in range(len(state.centres)):
        if k != leader:
            compare(rule, state, leader, k)


@compiled
def results_of(state: SureState, arm: int) -> ResultsByFidelity:
    """The results of one arm."""
    return ResultsByFidelity(state.counts[arm], state.sums[arm], state.constants[arm])


@compiled
def is_open(rule: SureRule, state: SureState, leader: int, rival: int) -> bool:
    """Whether a rival is not ruled out."""
    start = 0.5 * (state.centres[leader] + state.centres[rival]) - 0.5 * rule.tolerance
    first, second = results_of(state, leader), results_of(state, rival)
    return not math.isnan(open_mean(first, second, rule.noise, rule.tolerance, rule.needed, start))


@compiled
def decided(rule: SureRule, state: SureState, run: RunState) -> bool:
    """Whether all rivals of the leader are ruled out; the one that was not is looked at first."""
    if run.t[0] - 1 < len(state.centres):
        return False
    leader, last = state.leader[0], state.rival[0]
    if last not in (NOBODY, leader) and is_open(rule, state, leader, last):
        return False
    for k in range(len(state.centres)):
        if k not in (leader, last) and is_open(rule, state, leader, k):
            state.rival[0] = k
            return False
    return True


@counting
def run_on(truth: Truth, rule: SureRule, state: SureState, run: RunState, rng: Generator, steps: int) -> None:
    """Make up to ``steps`` more plays."""
    for _ in range(steps):
        arm, m = choose(rule, state, run)
        if not affordable(truth, run, arm, m):
            return
        learn(rule, state, run, arm, m, make_play(truth, run, arm, m, rng))
        if decided(rule, state, run):
            decide(run, state.leader[0])
            return
