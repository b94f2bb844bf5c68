"""What engines for policies of one's own have in common: what was learned, and a play of the arm that was chosen.

Functions without a decorator are templates: ``binding.py`` compiles them together with a policy's own functions, which
stand in for ``index_of`` and ``fidelity_of``.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from mfbandit._internal.typing import FloatArray, IntArray
from mfbandit.errors import InvalidArgument
from mfbandit.policies.compiled import ArmCells, Clock, Parameters
from mfbandit.simulation.engines.binding import NOT_COMPILED, Function, compiled_function, why_not
from mfbandit.simulation.engines.interface import RunState
from mfbandit.simulation.engines.kernels import Generator, affordable, inlined, make_play
from mfbandit.simulation.engines.truth import Truth

# Why a kernel stopped, beside what the driver knows.
NOT_A_NUMBER, NO_SUCH_FIDELITY, NO_SUCH_ARM, FELL = range(20, 24)


class Learned(NamedTuple):
    """What was learned; arrays of shape (K, M)."""

    counts: IntArray  # those of the run
    sums: FloatArray
    squares: FloatArray


def nothing_learned(run: RunState) -> Learned:
    """What is known before the first play.

    >>> from mfbandit import UCB, paper_problem
    >>> from mfbandit.simulation.engines import heap_ucb
    >>> from mfbandit.simulation.engines.interface import begin_run
    >>> nothing_learned(begin_run(heap_ucb, paper_problem(3), UCB(), np.ones(1)).run).sums.shape
    (200, 1)
    """
    return Learned(run.counts, np.zeros(run.counts.shape), np.zeros(run.counts.shape))


@inlined
def cells_at(learned: Learned, arm: int) -> ArmCells:
    """What is known of an arm."""
    return ArmCells(learned.counts[arm], learned.counts[arm], learned.sums[arm], learned.squares[arm])


@inlined
def learn(learned: Learned, arm: int, m: int, reward: float) -> None:
    """Take in a reward; the count is the run's."""
    learned.sums[arm, m] += reward
    learned.squares[arm, m] += reward * reward


@inlined
def stop(run: RunState, arm: int, m: int, why: int) -> None:
    """End for a fault of the policy's functions."""
    run.arm[0], run.fidelity[0], run.status[0] = arm, m, why


@inlined
def clock_now(run: RunState, arms: int) -> Clock:
    """The clock of the next play."""
    return Clock(int(run.t[0]), math.log(run.t[0]), run.spent[0], arms)


# Templates


def index_of(_cells: ArmCells, _clock: Clock, _parameters: Parameters) -> float:
    """The policy's index."""
    return math.nan


def fidelity_of(cells: ArmCells, _clock: Clock, _parameters: Parameters) -> int:
    """The highest, if the policy says nothing else."""
    return len(cells.counts) - 1


def value_of(learned: Learned, parameters: Parameters, arm: int, clock: Clock) -> float:
    """The index of an arm; the arguments are in the order of ``heap.search``."""
    return float(index_of(cells_at(learned, arm), clock, parameters))


def play_arm(
    truth: Truth, parameters: Parameters, learned: Learned, run: RunState, rng: Generator, arm: int, clock: Clock
) -> bool:
    """Play this arm at its fidelity; whether that could be done."""
    m = fidelity_of(cells_at(learned, arm), clock, parameters)
    if m < 0 or m >= len(truth.costs):
        stop(run, arm, m, NO_SUCH_FIDELITY)
        return False
    if not affordable(truth, run, arm, m):
        return False
    learn(learned, arm, m, make_play(truth, run, arm, m, rng))
    return True


# What was wrong


def check_stopped(run: RunState, functions: dict[str, str]) -> None:
    """Raise if a policy's function was at fault.

    Args:
        run: where the run stands.
        functions: the names of the functions that gave the arm and the fidelity, by these words.
    """
    arm, m, t, why = int(run.arm[0]), int(run.fidelity[0]), int(run.t[0]), int(run.status[0])
    if why == NOT_A_NUMBER:
        raise InvalidArgument(f"{functions['arm']} must be a number or infinite, got NaN for arm {arm} at t = {t}")
    if why == NO_SUCH_FIDELITY:
        top = run.counts.shape[1] - 1
        raise InvalidArgument(f"{functions['fidelity']} must return a fidelity from 0 to {top}, got {m} at t = {t}")
    if why == NO_SUCH_ARM:
        top = run.counts.shape[0] - 1
        raise InvalidArgument(f"{functions['arm']} must return an arm from 0 to {top}, got {arm} at t = {t}")
    if why == FELL:
        raise InvalidArgument(
            f"{functions['arm']} must only rise between an arm's own plays, as rises_with says, "
            f"but that of arm {arm} fell at t = {t}"
        )


def cannot_compile(functions: dict[str, tuple[Function, tuple[Any, ...]]], error: Exception) -> InvalidArgument:
    """Find the function that Numba cannot compile; the whole reason if each is well by itself.

    Args:
        functions: the policy's functions by their roles, with arguments to try them on.
        error: what Numba said of all together.
    """
    for role, (function, arguments) in functions.items():
        try:
            compiled_function(function)(*arguments)
        except NOT_COMPILED as reason:
            return InvalidArgument(why_not(role, function, reason))
    role, (function, _) = next(iter(functions.items()))
    return InvalidArgument(why_not(role, function, error))
