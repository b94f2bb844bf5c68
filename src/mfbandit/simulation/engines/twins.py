"""Arms with the very same lines: such twins stand behind one another, and only the first is looked at."""

import math
from typing import NamedTuple

import numpy as np

from mfbandit._internal.typing import FloatArray, IntArray
from mfbandit.simulation.engines.kernels import compiled

NOBODY = -1
MIXER = 1181783497276652981  # of a multiplicative hash


class Twins(NamedTuple):
    """Who stands behind whom."""

    behind: IntArray  # (K,): the next arm with the very same lines, or NOBODY
    tails: IntArray  # (K,): the last of those, while they are being linked
    slots: IntArray  # hash table of arms by their lines; one slot where twins do not matter


def no_twins(arms: int, *, wanted: bool) -> Twins:
    """All arms alone, with a hash table if twins are to be looked for.

    >>> len(no_twins(3, wanted=True).slots), len(no_twins(3, wanted=False).slots)
    (8, 1)
    """
    slots = 2 ** math.ceil(math.log2(2 * arms)) if wanted else 1
    behind, tails, table = (np.full(n, NOBODY, dtype=np.int64) for n in (arms, arms, slots))
    return Twins(behind, tails, table)


@compiled
def clear_slots(slots: IntArray, arms: int) -> int:
    """Empty as much of the hash table as so many arms need; the mask for its slots."""
    size = 1
    while size < 2 * arms:
        size *= 2
    slots[:size] = NOBODY
    return size - 1


@compiled
def same_lines(intercepts: FloatArray, slopes: FloatArray, one: int, other: int) -> bool:
    """Whether two arms have equal indices now and for as long as neither is played."""
    for m in range(intercepts.shape[1]):
        if intercepts[one, m] != intercepts[other, m] or slopes[one, m] != slopes[other, m]:
            return False
    return True


@compiled
def hashed(counts: IntArray, sum_bits: IntArray, arm: int) -> int:
    """A number that arms with equal counts and sums share, and hardly any others."""
    mixed = 0
    for m in range(counts.shape[1]):
        mixed = (mixed ^ (int(counts[arm, m]) << 1) ^ int(sum_bits[arm, m])) * MIXER
        mixed ^= mixed >> 32
    return mixed


@compiled
def stands_behind(
    twins: Twins,
    counts: IntArray,
    sum_bits: IntArray,
    intercepts: FloatArray,
    slopes: FloatArray,
    arm: int,
    mask: int,
) -> bool:
    """Link an arm behind an earlier one with the same lines; False if there is none, and it comes first itself."""
    slot = hashed(counts, sum_bits, arm) & mask
    twins.behind[arm] = NOBODY
    while twins.slots[slot] != NOBODY:
        first = twins.slots[slot]
        if same_lines(intercepts, slopes, first, arm):
            twins.behind[twins.tails[first]] = arm
            twins.tails[first] = arm
            return True
        slot = (slot + 1) & mask
    twins.slots[slot] = arm
    twins.tails[arm] = arm
    return False
