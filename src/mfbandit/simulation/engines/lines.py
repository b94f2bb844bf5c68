"""The index of UCB and MF-UCB as lines: the bound of fidelity m is intercept + u * slope in u = sqrt(log t)."""

import math
from typing import NamedTuple

import numpy as np

from mfbandit._internal.typing import FloatArray, IntArray
from mfbandit.simulation.engines.kernels import inlined


class LineRule(NamedTuple):
    """What the learner knows, in the form in which the lines need it."""

    biases: FloatArray  # (R,)
    scales: FloatArray  # (R,): sigma * sqrt(2 rho), so that the slope is scale / sqrt(T)
    gammas: FloatArray  # (R - 1,)


class Lines(NamedTuple):
    """What was learned of each arm at each fidelity."""

    sums: FloatArray  # (K, R): of rewards
    intercepts: FloatArray  # (K, R): mean + bias; infinite without a result
    slopes: FloatArray  # (K, R): scale / sqrt(T); infinite without a result


def no_lines(arms: int, fidelities: int) -> Lines:
    """Lines before any result.

    >>> no_lines(arms=2, fidelities=1).intercepts.tolist()
    [[inf], [inf]]
    """
    shape = (arms, fidelities)
    return Lines(np.zeros(shape), np.full(shape, np.inf), np.full(shape, np.inf))


@inlined
def index(intercepts: FloatArray, slopes: FloatArray, arm: int, u: float) -> float:
    """B_k(t), eq. 3: the smallest of the arm's lines at u."""
    best = np.inf
    for m in range(intercepts.shape[1]):
        best = min(best, intercepts[arm, m] + u * slopes[arm, m])
    return best


@inlined
def fidelity(slopes: FloatArray, gammas: FloatArray, arm: int, u: float) -> int:
    """Step 2 of Algorithm 1: the first fidelity whose width is at least gamma; without a play it is infinite."""
    m = 0
    while m < len(gammas) and u * slopes[arm, m] < gammas[m]:
        m += 1
    return m


@inlined
def learn(
    counts: IntArray,
    sums: FloatArray,
    intercepts: FloatArray,
    slopes: FloatArray,
    biases: FloatArray,
    scales: FloatArray,
    arm: int,
    m: int,
    reward: float,
) -> None:
    """Count a reward, and move the line of its arm and fidelity."""
    count = counts[arm, m] + 1
    total = sums[arm, m] + reward
    counts[arm, m] = count
    sums[arm, m] = total
    intercepts[arm, m] = total / count + biases[m]
    slopes[arm, m] = scales[m] / math.sqrt(count)
