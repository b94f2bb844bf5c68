"""The engine for IISE: rounds of plays, number for number as ``policies/iise.py`` computes them."""

from typing import NamedTuple

import numpy as np

from mfbandit._internal.typing import FloatArray, IntArray
from mfbandit.core import scales
from mfbandit.policies import IISE, iise
from mfbandit.policies.identification import known_scales
from mfbandit.problems import Problem
from mfbandit.simulation.engines.interface import RunState
from mfbandit.simulation.engines.kernels import Generator, affordable, compiled, counting, decide, make_play
from mfbandit.simulation.engines.truth import Truth

__all__ = ["begin", "prepare", "run_on", "supports", "used"]

proved_radius = compiled(iise.proved_radius)
practical_radius = compiled(iise.practical_radius)


class IISERule(NamedTuple):
    """What the learner knows; arrays of shape (M,)."""

    delta: float
    proved: bool
    biases: FloatArray
    scales: FloatArray
    limits: FloatArray  # τ; never reached at the highest fidelity


class IISEState(NamedTuple):
    """Where the rounds stand."""

    sums: FloatArray  # (K,): of rewards at this fidelity
    left: IntArray  # (K,): the arms that are left, increasing, and then others
    number: IntArray  # (1,): how many are left
    place: IntArray  # (1,): of the next one to play
    rounds: IntArray  # (1,): complete ones at this fidelity
    fidelity: IntArray  # (1,)


def supports(problem: Problem, _policy: IISE) -> bool:
    """Whether biases and the noise's scale are known.

    >>> from mfbandit.problems import paper_problem
    >>> supports(paper_problem(1), IISE())
    True
    """
    return problem.fidelities.biases is not None and scales(problem.fidelities) is not None


def used(problem: Problem, _policy: IISE) -> list[int]:
    """All fidelities.

    >>> from mfbandit.problems import paper_problem
    >>> used(paper_problem(2), IISE())
    [0, 1, 2, 3]
    """
    return list(range(len(problem.fidelities)))


def prepare(problem: Problem, policy: IISE, _capital: float) -> IISERule:
    """What the learner knows, as arrays.

    >>> from mfbandit.problems import paper_problem
    >>> prepare(paper_problem(3), IISE(), 1e6).biases.tolist()
    [0.2, 0.0]
    """
    fidelities = problem.fidelities
    limits = np.array([*iise.last_radii(fidelities), -np.inf])
    known = np.array(known_scales(fidelities, "IISE"))
    return IISERule(policy.delta, policy.proved, np.array(fidelities.known_biases), known, limits)


def begin(_truth: Truth, run: RunState) -> IISEState:
    """The state before the first play: every arm is left.

    >>> from mfbandit.problems import paper_problem
    >>> from mfbandit.simulation.engines import iise
    >>> from mfbandit.simulation.engines.interface import begin_run
    >>> begin_run(iise, paper_problem(3), IISE(), np.array([100.0])).state.left.shape
    (200,)
    """
    arms = len(run.counts)
    nothing = np.zeros(1, dtype=np.int64)
    return IISEState(
        sums=np.zeros(arms),
        left=np.arange(arms, dtype=np.int64),
        number=np.full(1, arms, dtype=np.int64),
        place=nothing.copy(),
        rounds=nothing.copy(),
        fidelity=nothing.copy(),
    )


@compiled
def remove(rule: IISERule, state: IISEState, width: float) -> None:
    """Remove the arms that are behind the best mean by more than two widths and two biases."""
    bias, n = rule.biases[state.fidelity[0]], state.rounds[0]
    best = -np.inf
    for place in range(state.number[0]):
        best = max(best, state.sums[state.left[place]] / n)
    reach, kept = (best - width) - bias, 0
    for place in range(state.number[0]):
        arm = state.left[place]
        mean = state.sums[arm] / n
        if not (reach >= (mean + width) + bias and mean < best):
            state.left[kept] = arm
            kept += 1
    state.number[0] = kept


@compiled
def end_round(rule: IISERule, state: IISEState, run: RunState) -> None:
    """Compare the arms after a round; perhaps go on to the next fidelity."""
    state.place[0] = 0
    state.rounds[0] += 1
    arms, number = run.counts.shape
    m, n = state.fidelity[0], state.rounds[0]
    careful = proved_radius(n, arms, number, rule.scales[m], rule.delta)
    width = careful
    if not rule.proved:
        width = practical_radius(n, run.t[0] - 1, arms, number, rule.scales[m], rule.delta)
    remove(rule, state, width)
    if state.number[0] > 1 and 4.0 * careful <= rule.limits[m]:
        state.fidelity[0], state.rounds[0] = m + 1, 0
        state.sums[:] = 0.0


@counting
def run_on(truth: Truth, rule: IISERule, state: IISEState, run: RunState, rng: Generator, steps: int) -> None:
    """Make up to ``steps`` more plays."""
    for _ in range(steps):
        arm, m = state.left[state.place[0]], state.fidelity[0]
        if not affordable(truth, run, arm, m):
            return
        state.sums[arm] += make_play(truth, run, arm, m, rng)
        state.place[0] += 1
        if state.place[0] == state.number[0]:
            end_round(rule, state, run)
        if state.number[0] == 1:
            decide(run, state.left[0])
            return
