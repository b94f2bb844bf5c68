"""A scan that computes an index only where it could matter, for policies whose index is costly.

KL-UCB's index takes a root by Newton's method; MFAda and MFBayes have a level of their own for every arm. All of them
only grow between an arm's plays, with the plays or with the capital spent. So the index at the end of a block of plays,
its *key*, bounds it from above until then. A step looks at the keys of all arms, one comparison each. It computes the
index of those alone whose key reaches the best found so far: few. An engine's search is::

    arm, best = hint, index of hint
    k = next_candidate(keys, best, 0, arm)
    while k < len(keys):
        value = index of k
        if better(value, k, best, arm):
            arm, best = k, value
        k = next_candidate(keys, best, k + 1, arm)
"""

from mfbandit._internal.typing import FloatArray
from mfbandit.simulation.engines.kernels import inlined

BLOCK_GROWTH = 1.02  # a block lasts until the capital spent, or the plays, have grown by this factor
KEY_MARGIN = 1e-11  # by which keys are too high: rounding need not keep the order of roots and sums to the last bit


@inlined
def key_of(index: float) -> float:
    """The key of an arm whose index will be this at the end of the block: a little more."""
    return index + KEY_MARGIN * (1 + abs(index))


@inlined
def next_candidate(keys: FloatArray, best: float, start: int, arm: int) -> int:
    """The first arm from ``start`` on, other than the best one, whose key reaches the best index.

    The number of arms if there is none.
    """
    k = start
    while k < len(keys) and (k == arm or not keys[k] >= best):
        k += 1
    return k


@inlined
def better(value: float, k: int, best: float, arm: int) -> bool:
    """Whether arm k with this index comes before the best so far: the lowest number among ties."""
    return value > best or (value == best and k < arm)
