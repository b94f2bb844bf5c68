"""Measure how fast this machine simulates: the compiled engine beside plain NumPy, in one run."""

import time
from dataclasses import dataclass
from statistics import median

import numpy as np

from mfbandit._internal.progress import Tick
from mfbandit.policies import MFUCB
from mfbandit.problems import paper_problem
from mfbandit.simulation import one_run, plain_run

ROUNDS = 3
ENGINE_LOOKS, PLAIN_LOOKS = 40.0, 0.02  # capital, in full looks at every arm: about a second of work each


@dataclass(frozen=True)
class Speed:
    """Plays a second of MF-UCB on a paper problem, and how many times faster the engine is."""

    problem: int
    arms: int
    engine: float
    plain: float

    @property
    def ratio(self) -> float:
        """The engine's speed over the plain path's."""
        return self.engine / self.plain


def speed(number: int, tick: Tick = lambda _: None) -> Speed:
    """Time both on a paper problem, taking turns, and return medians over rounds.

    Args:
        number: of a paper problem.
        tick: called with the share of the work done since its last call.

    >>> speed(3).ratio > 1
    True
    """
    problem, policy, rounds = paper_problem(number), MFUCB(), []
    full = problem.arms * problem.fidelities.costs[-1]
    one_run(problem, policy, np.array([full / 100]), "paper", np.random.SeedSequence(0))  # compiles, if it must
    for seed in range(ROUNDS):
        start = time.perf_counter()
        fast = one_run(problem, policy, np.array([ENGINE_LOOKS * full]), "paper", np.random.SeedSequence(seed))
        middle = time.perf_counter()
        slow = plain_run(
            problem, policy, np.array([PLAIN_LOOKS * full]), "paper", np.random.default_rng(seed), lambda _: None
        )
        end = time.perf_counter()
        rounds.append((fast.steps / (middle - start), slow.steps / (end - middle)))
        tick(1 / ROUNDS)
    engine, plain = (median(column) for column in zip(*rounds, strict=True))
    return Speed(number, problem.arms, engine, plain)
