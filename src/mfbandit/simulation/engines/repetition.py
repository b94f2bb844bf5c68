"""Whether results repeat themselves, kept up result by result; ``policies/repetition.py`` says how it is told."""

import math
from typing import NamedTuple

import numpy as np

from mfbandit._internal.typing import BoolArray, FloatArray, IntArray
from mfbandit.policies.repetition import CHANCE, FEWEST_REPEATS, ROUNDING
from mfbandit.simulation.engines.chain_fit import ArmResults
from mfbandit.simulation.engines.kernels import compiled

UNKNOWN, EXACT, NOISY = range(3)  # what is known of the noise


class Repetition(NamedTuple):
    """What second results have shown; single numbers are arrays of one."""

    known: IntArray  # UNKNOWN, EXACT or NOISY
    repeated: IntArray  # pairs of an arm and a row with two results or more
    differing: IntArray  # those whose results differ
    differs: BoolArray  # (K, R)


def no_repetition(arms: int, fidelities: int) -> Repetition:
    """Nothing is known.

    >>> no_repetition(arms=3, fidelities=2).known.tolist() == [UNKNOWN]
    True
    """
    known, repeated, differing = (np.zeros(1, np.int64) for _ in range(3))
    return Repetition(known, repeated, differing, np.zeros((arms, fidelities), np.bool_))


@compiled
def verdict(repetition: Repetition, declared: int) -> int:
    """What is known of the noise; what is declared goes first."""
    return declared if declared != UNKNOWN else repetition.known[0]


@compiled
def see_again(repetition: Repetition, told: ArmResults, means: FloatArray, arm: int, r: int) -> None:
    """Take in the last result, of this arm in this row."""
    plays, total, squares = told.counts[arm, r], told.sums[arm, r], told.squares[arm, r]
    if plays > 1:
        repetition.repeated[0] += int(plays - 1 == 1)
        differs = squares - total * (total / plays) > ROUNDING * squares
        repetition.differing[0] += int(differs) - int(repetition.differs[arm, r])
        repetition.differs[arm, r] = differs
    repetition.known[0] = UNKNOWN
    if repetition.differing[0] > 0:
        repetition.known[0] = NOISY
    elif repetition.repeated[0] >= FEWEST_REPEATS and log_chance(told.counts, means) <= math.log(CHANCE):
        repetition.known[0] = EXACT


@compiled
def log_chance(counts: IntArray, means: FloatArray) -> float:
    """The logarithm of the chance of all equal results."""
    chance = 0.0
    for r in range(counts.shape[1]):
        added, seen = 0.0, 0
        for arm in range(len(counts)):
            seen += int(counts[arm, r] > 0)
        for arm in range(len(counts)):
            if counts[arm, r] > 1:
                same = same_means(means, r, means[arm, r])
                added += math.log(same / seen) * (counts[arm, r] - 1)
        chance += added
    return chance


@compiled
def same_means(means: FloatArray, r: int, own: float) -> int:
    """How many arms have this mean in the row, but for rounding; infinite ones are no results."""
    same, slack = 0, ROUNDING * abs(own)
    for arm in range(len(means)):
        if own - slack <= means[arm, r] <= own + slack:
            same += 1
    return same
