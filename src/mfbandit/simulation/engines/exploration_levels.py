"""Ratios S/H_k kept up play by play: how much exploration an arm has earned (``policies/exploration.py``).

A play changes H_k of every arm on which more was spent. So H_k is computed where it is asked for, in log K steps, from
an order of arms that is made anew when about sqrt(K) arms were played since.

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

ROOM_TO_MOVE = 32  # arms, and twice the root of their number, that are played before a new order is made


class ExplorationLevels(NamedTuple):
    """What was spent on each arm, and how that compares with the others.

    Arms are in order by their roots, but for those that were played since it was made: these have moved.
    """

    roots: IntArray  # (K,): square root of the capital spent, in grains
    ordered: IntArray  # (K,): the roots when the order was made, increasing
    sums: IntArray  # (K + 1,): of the first so many of these
    spare: IntArray  # (K,): room to make the next order in
    places: IntArray  # (K,): of each arm among those that have moved, or -1
    moved: IntArray  # (D,): arms that have moved, as many as there is room for
    before: IntArray  # (D,): their roots in the order
    after: IntArray  # (D,): their roots now
    number: IntArray  # (1,): how many have moved


def no_levels(arms: int) -> ExplorationLevels:
    """ExplorationLevels before any play.

    >>> no_levels(2).roots.tolist()
    [0, 0]
    """
    most = ROOM_TO_MOVE + 2 * math.isqrt(arms)
    sizes = (arms, arms, arms + 1, arms, arms, most, most, most, 1)
    levels = ExplorationLevels(*(np.zeros(size, dtype=np.int64) for size in sizes))
    levels.places[:] = -1
    return levels


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
    """Keep up the levels after a play of this arm."""
    spent = 0.0
    for m in range(len(costs)):
        spent += costs[m] * counts[arm, m]
    if levels.places[arm] < 0:
        if levels.number[0] == len(levels.moved):
            put_in_order(levels)
        place = levels.number[0]
        levels.places[arm], levels.moved[place], levels.before[place] = place, arm, levels.roots[arm]
        levels.number[0] += 1
    root = np.int64(math.floor(math.sqrt(spent / unit) / RESOLUTION + 0.5))
    levels.roots[arm] = levels.after[levels.places[arm]] = root


@compiled
def put_in_order(levels: ExplorationLevels) -> None:
    """Make a new order, in which no arm has moved: that of before, without roots of before, with those of now."""
    number, taken, added, size = levels.number[0], 0, 0, 0
    before, after, spare = levels.before[:number], levels.after[:number], levels.spare
    for place in range(number):
        levels.places[levels.moved[place]] = -1
    sort(before)
    sort(after)
    for k in range(len(spare)):
        root = levels.ordered[k]
        while added < number and after[added] <= root:
            spare[size] = after[added]
            added, size = added + 1, size + 1
        if taken < number and before[taken] == root:
            taken += 1
        else:
            spare[size] = root
            size += 1
    for place in range(added, number):
        spare[size + place - added] = after[place]
    for k in range(len(spare)):
        levels.ordered[k] = spare[k]
        levels.sums[k + 1] = levels.sums[k] + spare[k]
    levels.number[0] = 0


@compiled
def sort(values: IntArray) -> None:
    """Put numbers in order, in place (Shell's method)."""
    gap = len(values) // 2
    while gap > 0:
        for i in range(gap, len(values)):
            value, k = values[i], i
            while k >= gap and values[k - gap] > value:
                values[k] = values[k - gap]
                k -= gap
            values[k] = value
        gap = gap * 5 // 11 if gap > 2 else gap // 2  # noqa: PLR2004 - gaps end with 1


@compiled
def overlap(levels: ExplorationLevels, arm: int) -> int:
    """Sum over arms of the smaller root."""
    root, ordered, below, left = levels.roots[arm], levels.ordered, 0, len(levels.ordered)
    while left > 1:  # halves without branches, whose outcome no processor could foresee
        half = left >> 1
        below += half * (ordered[below + half - 1] < root)
        left -= half
    below += ordered[below] < root
    total = levels.sums[below] + root * (len(ordered) - below)
    for place in range(levels.number[0]):
        total += min(root, levels.after[place]) - min(root, levels.before[place])
    return total


@inlined
def ratio(levels: ExplorationLevels, unit: float, arm: int, spent: float) -> float:
    """1 + S/H_k when so much is spent."""
    return 1.0 + spent / unit / ((levels.roots[arm] * RESOLUTION) * (overlap(levels, arm) * RESOLUTION))
