"""A look at every arm for each play, as a template for ``binding.py``: for any index."""

import math

import numpy as np

from mfbandit.policies.compiled import Parameters
from mfbandit.simulation.engines.interface import RunState
from mfbandit.simulation.engines.kernels import Generator
from mfbandit.simulation.engines.own_plays import NOT_A_NUMBER, Learned, clock_now, play_arm, stop, value_of
from mfbandit.simulation.engines.truth import Truth


def scan_on(truth: Truth, parameters: Parameters, learned: Learned, run: RunState, rng: Generator, steps: int) -> None:
    """Make up to ``steps`` more plays."""
    arms = len(learned.counts)
    for _ in range(steps):
        clock = clock_now(run, arms)
        arm, best = 0, -np.inf
        for k in range(arms):
            value = value_of(learned, parameters, k, clock)
            if value > best:
                arm, best = k, value
            elif math.isnan(value):
                stop(run, k, 0, NOT_A_NUMBER)
                return
        if not play_arm(truth, parameters, learned, run, rng, arm, clock):
            return
