"""A look at every arm for each play, as a template for ``binding.py``: for any index.

All indices are written down first, and searched afterwards. Neither loop then has a way out, and the compiler can
compute several arms at once; each number is rounded as if it were alone.
"""

from typing import NamedTuple

import numpy as np

from mfbandit._internal.typing import FloatArray
from mfbandit.policies.compiled import Clock, Parameters
from mfbandit.simulation.engines.interface import RunState
from mfbandit.simulation.engines.kernels import Generator, highest
from mfbandit.simulation.engines.own_plays import (
    NOT_A_NUMBER,
    Learned,
    clock_now,
    nothing_learned,
    play_arm,
    stop,
    value_of,
)
from mfbandit.simulation.engines.truth import Truth


class ScanState(NamedTuple):
    """What was learned, and room for the index of each arm."""

    learned: Learned
    values: FloatArray  # (K,)


def no_scan(run: RunState) -> ScanState:
    """The state before the first play.

    >>> from mfbandit import UCB, paper_problem
    >>> from mfbandit.simulation.engines import heap_ucb
    >>> from mfbandit.simulation.engines.interface import begin_run
    >>> no_scan(begin_run(heap_ucb, paper_problem(3), UCB(), np.ones(1)).run).values.shape
    (200,)
    """
    return ScanState(nothing_learned(run), np.zeros(len(run.counts)))


def evaluate(learned: Learned, parameters: Parameters, clock: Clock, values: FloatArray) -> bool:
    """Write down the index of every arm; whether one is not a number."""
    wrong = False
    for k in range(len(values)):
        value = value_of(learned, parameters, k, clock)
        values[k] = value
        wrong |= value != value  # noqa: PLR0124 - NaN alone is not itself
    return wrong


def scan_on(truth: Truth, parameters: Parameters, state: ScanState, run: RunState, rng: Generator, steps: int) -> None:
    """Make up to ``steps`` more plays."""
    learned, values = state
    for _ in range(steps):
        clock = clock_now(run, len(values))
        if evaluate(learned, parameters, clock, values):
            stop(run, int(np.isnan(values).argmax()), 0, NOT_A_NUMBER)
            return
        best, arm = highest(values), 0
        while values[arm] != best:  # the lowest number among ties
            arm += 1
        if not play_arm(truth, parameters, learned, run, rng, arm, clock):
            return
