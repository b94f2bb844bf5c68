"""A search that computes an index only where it could matter, for policies whose index is costly.

KL-UCB's index takes a root by Newton's method; MFAda, MFAuto and MFBayes have a level of their own for every arm. All
of them only grow between an arm's plays, with the plays or with the capital spent. So the index at the end of a block
of plays, its *key*, bounds it from above until then. Keys are in a tree of maxima. A step computes the index of those
arms alone whose key reaches the best found so far: few.

Where many arms are nearly equal, a step would look at the same ones again and again. So an arm that was looked at in
vain gets the key of a time that is near. When that is over, these arms alone get those of the block's end again.
"""

import math
from typing import NamedTuple

import numpy as np

from mfbandit._internal.typing import FloatArray, IntArray
from mfbandit.simulation.engines.interface import RunState
from mfbandit.simulation.engines.kernels import inlined
from mfbandit.simulation.engines.max_tree import first_largest, next_reaching

BLOCK_GROWTH = 1.02  # a block lasts until the capital spent, or the plays, have grown by this factor
NEAR_TIME = 0.5  # in roots of the number of plays: how far away a time is that is near
KEY_MARGIN = 1e-11  # by which keys are too high: rounding need not keep the order of roots and sums to the last bit


@inlined
def key_of(index: float) -> float:
    """The key of an arm whose index will be this at the end of the block: a little more, unless it is infinite."""
    return index + KEY_MARGIN * (1 + abs(index)) if index > -np.inf else index


class Near(NamedTuple):
    """Arms whose keys hold up to a near time only; arrays of one number each but for the first two."""

    arms: IntArray  # (K,): those, as many as there are
    marks: IntArray  # (K,): the period in which an arm became one of them
    number: IntArray  # how many there are
    period: IntArray  # the periods are numbered
    end: FloatArray  # of this period, in capital or plays


def nobody_near(arms: int) -> Near:
    """The first period, which is over at once.

    >>> nobody_near(3).arms.tolist()
    [0, 0, 0]
    """
    one, none = np.ones(1, np.int64), np.zeros(1, np.int64)
    return Near(np.zeros(arms, np.int64), np.zeros(arms, np.int64), none, one, np.zeros(1))


@inlined
def begin_period(near: Near, run: RunState, now: float, block_end: float) -> None:
    """Let all keys hold up to the block's end, as they do when they were made for it, and begin another period."""
    near.number[0] = 0
    near.period[0] += 1
    near.end[0] = min(block_end, now * (1 + NEAR_TIME / math.sqrt(run.t[0])))


@inlined
def key_end(near: Near, arm: int, block_end: float) -> float:
    """The time up to which a new key of this arm must hold."""
    return near.end[0] if near.marks[arm] == near.period[0] else block_end


# Templates for ``binding.py``


def index(_rule: object, _state: object, _run: RunState, _arm: int, _now: float) -> float:
    """The policy's index of an arm, at a capital or a time."""
    return 0.0


def search(rule: object, state: object, run: RunState, keys: FloatArray, now: float) -> tuple[int, float]:
    """The arm with the largest index, the lowest number among ties, and that index."""
    arm = first_largest(keys)
    best = index(rule, state, run, arm, now)
    k = next_reaching(keys, best, 0)
    while k >= 0:
        if k != arm:
            value = index(rule, state, run, k, now)
            if value > best or (value == best and k < arm):
                arm, best = k, value
        k = next_reaching(keys, best, k + 1)
    return arm, best


def set_key(_rule: object, _state: object, _run: RunState, _keys: FloatArray, _arm: int, _end: float) -> None:
    """Give an arm the key that holds up to this time; not copied into the search, where it is rare."""


def search_near(
    rule: object, state: object, run: RunState, keys: FloatArray, near: Near, now: float, block_end: float
) -> tuple[int, float]:
    """The same as :func:`search`, and look at an arm in vain only once in a period."""
    if now > near.end[0]:
        for place in range(near.number[0]):
            set_key(rule, state, run, keys, near.arms[place], block_end)
        begin_period(near, run, now, block_end)
    arm, best, start = first_largest(keys), -np.inf, 0
    k = arm
    while k >= 0:
        value, vain = index(rule, state, run, k, now), k
        if value > best or (value == best and k < arm):
            vain, arm, best = arm, k, value
        if vain != arm and near.marks[vain] != near.period[0]:
            near.marks[vain] = near.period[0]
            near.arms[near.number[0]] = vain
            near.number[0] += 1
            set_key(rule, state, run, keys, vain, near.end[0])
        k = next_reaching(keys, best, start)
        start = k + 1
        if k == arm:
            k = next_reaching(keys, best, start)
            start = k + 1
    return arm, best
