"""The engine for Greedy: the best mean at the highest fidelity, by one look at each arm."""

from typing import NamedTuple

import numpy as np

from mfbandit._internal.typing import FloatArray
from mfbandit.policies import Policy
from mfbandit.problems import Problem
from mfbandit.simulation.engines.interface import RunState
from mfbandit.simulation.engines.kernels import Generator, affordable, counting, make_play
from mfbandit.simulation.engines.truth import Truth


class GreedyState(NamedTuple):
    """What was learned of each arm; arrays of shape (K,)."""

    sums: FloatArray
    means: FloatArray  # infinite before the first result


def supports(_problem: Problem, _policy: Policy) -> bool:
    """Any problem will do."""
    return True


def used(problem: Problem, _policy: Policy) -> list[int]:
    """The highest fidelity alone; kernels call it 0."""
    return [len(problem.fidelities) - 1]


def prepare(_problem: Problem, _policy: Policy, _capital: float) -> None:
    """The policy has no parameters, and knows nothing."""


def begin(_truth: Truth, run: RunState) -> GreedyState:
    """Nothing is learned before the first play."""
    return GreedyState(np.zeros(len(run.counts)), np.full(len(run.counts), np.inf))


@counting
def run_on(truth: Truth, _rule: None, state: GreedyState, run: RunState, rng: Generator, steps: int) -> None:
    """Choose, make the play if it fits, and learn."""
    for _ in range(steps):
        arm = np.argmax(state.means)
        if not affordable(truth, run, arm, 0):
            return
        state.sums[arm] += make_play(truth, run, arm, 0, rng)
        state.means[arm] = state.sums[arm] / run.counts[arm, 0]
