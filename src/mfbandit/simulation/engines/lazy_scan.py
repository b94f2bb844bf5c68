"""A search that computes an index only where it could matter, for policies whose index is costly.

KL-UCB's index takes a root by Newton's method; MFAda, MFAuto and MFBayes have a level of their own for every arm. All
of them only grow between an arm's plays, with the plays or with the capital spent. So the index at the end of a block
of plays, its *key*, bounds it from above until then. Keys are in a tree of maxima. A step computes the index of those
arms alone whose key reaches the best found so far: few.
"""

import numpy as np

from mfbandit._internal.typing import FloatArray
from mfbandit.simulation.engines.interface import RunState
from mfbandit.simulation.engines.kernels import inlined
from mfbandit.simulation.engines.max_tree import first_largest, next_reaching

BLOCK_GROWTH = 1.02  # a block lasts until the capital spent, or the plays, have grown by this factor
KEY_MARGIN = 1e-11  # by which keys are too high: rounding need not keep the order of roots and sums to the last bit


@inlined
def key_of(index: float) -> float:
    """The key of an arm whose index will be this at the end of the block: a little more, unless it is infinite."""
    return index + KEY_MARGIN * (1 + abs(index)) if index > -np.inf else index


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
