"""Ratios S/H_k kept up play by play: how much exploration an arm has earned (``policies/exploration.py``).

All sums over arms are sums of whole numbers, so that keeping them up gives the very numbers that the policy computes
anew.
"""

import math
from typing import NamedTuple

import numpy as np

from mfbandit._internal.typing import FloatArray, IntArray
from mfbandit.errors import InvalidArgument
from mfbandit.policies.exploration import RESOLUTION, costs_too_far_apart, fits_in_integers
from mfbandit.problems import Problem
from mfbandit.simulation.engines.kernels import compiled, inlined


class ExplorationLevels(NamedTuple):
    """What was spent on each arm, and how that compares with the others; arrays of shape (K,)."""

    roots: IntArray  # square root of the capital spent, in grains
    overlaps: IntArray  # sum over arms of the smaller root


def no_levels(arms: int) -> ExplorationLevels:
    """ExplorationLevels before any play.

    >>> no_levels(2).roots.tolist()
    [0, 0]
    """
    return ExplorationLevels(np.zeros(arms, dtype=np.int64), np.zeros(arms, dtype=np.int64))


def check_levels(problem: Problem, capital: float) -> None:
    """Refuse a capital so large that whole numbers cannot hold the sums, however it is spread.

    >>> from mfbandit.problems import paper_problem
    >>> check_levels(paper_problem(3), 1e25)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    mfbandit.errors.InvalidArgument: costs must not be so far apart for so many arms ..., got [1.0, 10.0]
    """
    costs = problem.fidelities.costs
    if not fits_in_integers(problem.arms, capital, costs):
        raise InvalidArgument(costs_too_far_apart(costs))


@compiled
def weigh(costs: FloatArray, unit: float, counts: IntArray, levels: ExplorationLevels, arm: int) -> None:
    """Keep up the levels after a play of this arm: its own root, and the overlaps of all with it."""
    roots, overlaps = levels.roots, levels.overlaps
    spent = 0.0
    for m in range(len(costs)):
        spent += costs[m] * counts[arm, m]
    before, after = roots[arm], np.int64(math.floor(math.sqrt(spent / unit) / RESOLUTION + 0.5))
    roots[arm] = after
    own = np.int64(0)
    for k in range(len(roots)):
        root = roots[k]
        overlaps[k] += min(root, after) - min(root, before)
        own += min(root, after)
    overlaps[arm] = own


@inlined
def ratio(levels: ExplorationLevels, unit: float, arm: int, spent: float) -> float:
    """1 + S/H_k when so much is spent."""
    return 1.0 + spent / unit / ((levels.roots[arm] * RESOLUTION) * (levels.overlaps[arm] * RESOLUTION))
