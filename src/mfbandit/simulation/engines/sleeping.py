"""Arms that cannot be the best for a while sleep: shorter and shorter lists of those that are awake.

A list has only those arms whose index can reach a threshold by a certain time: a tenth of all, a second list a tenth
of these, and so on. A list is good until its time has come or the best index falls below its threshold. No sleeper
can be the best before that.
"""

import math
from typing import NamedTuple

import numpy as np

from mfbandit._internal.typing import FloatArray, IntArray
from mfbandit.simulation.engines.heap import SmallArray
from mfbandit.simulation.engines.kernels import compiled, counting
from mfbandit.simulation.engines.lines import Lines, index

FEWER = 10  # each list of arms that are more awake is this much shorter
NEVER = 2**62
SAMPLE = 256  # arms at most by which a threshold is chosen


class Sleepers(NamedTuple):
    """The lists of arms that are more and more awake; L of them."""

    lists: SmallArray  # (L, K): the first has all arms, the last those in the heap
    numbers: IntArray  # (L,): arms in each list
    thresholds: FloatArray  # (L,): no arm outside the list has an index that reaches this ...
    wake_at: IntArray  # (L,): ... up to this time
    woken_at: IntArray  # (L,): when the list was made
    naps: FloatArray  # (L,): how long it was meant to last
    bounds: FloatArray  # (K,): each arm's index when the second list's time is over


def all_awake(arms: int, most: int) -> Sleepers:
    """The lists before any is made: so many that the last has about ``most`` arms.

    >>> all_awake(arms=100_000, most=2048).numbers.tolist()
    [100000, 100000, 100000]
    """
    n = 1 + max(0, math.ceil(math.log(arms / most, FEWER)))
    lists = np.zeros((n, arms + 1), dtype=np.uint32)
    lists[0, :arms] = np.arange(arms)
    return Sleepers(
        lists=lists,
        numbers=np.full(n, arms, dtype=np.int64),
        thresholds=np.full(n, -np.inf),
        wake_at=np.array([NEVER] + [0] * (n - 1), dtype=np.int64),
        woken_at=np.full(n, arms, dtype=np.int64),
        naps=arms / 8 / FEWER ** np.arange(n, dtype=np.float64),
        bounds=np.zeros(arms),
    )


@compiled
def first_invalid(sleepers: Sleepers, t: int, best: float) -> int:
    """The first list whose time has come or whose threshold is above the best index; their number if all are valid."""
    for i in range(len(sleepers.numbers)):
        if t > sleepers.wake_at[i] or best < sleepers.thresholds[i]:
            return i
    return len(sleepers.numbers)


@counting
def rouse(sleepers: Sleepers, lines: Lines, first: int, t: int) -> None:
    """Make the lists anew from the first that is no longer valid.

    A list that comes out empty says that the one before it is not valid either: all in there have fallen below its
    threshold. The first made of all arms is never empty.
    """
    i = first
    while i < len(sleepers.numbers):
        make_list(sleepers, lines, i, t)
        i += 1 if sleepers.numbers[i] > 0 else -1


@counting
def make_list(sleepers: Sleepers, lines: Lines, i: int, t: int) -> None:
    """Make one list from the one before it, to last twice as long as the last one did."""
    intercepts, slopes, bounds = lines.intercepts, lines.slopes, sleepers.bounds
    lasted = 2.0 * (t - sleepers.woken_at[i])
    sleepers.naps[i] = min(max(lasted, sleepers.naps[i] / 4, 1.0), sleepers.naps[i] * 4)
    sleepers.woken_at[i] = t
    sleepers.wake_at[i] = min(t + int(sleepers.naps[i]), sleepers.wake_at[i - 1])
    u, u_wake = math.sqrt(math.log(t)), math.sqrt(math.log(sleepers.wake_at[i]))
    source = sleepers.lists[i - 1, : sleepers.numbers[i - 1]]
    threshold = max(choose_threshold(source, intercepts, slopes, u, u_wake), sleepers.thresholds[i - 1])
    sleepers.thresholds[i] = threshold
    if i == 1:
        bound_all(bounds, intercepts, slopes, u_wake)
    sleepers.numbers[i] = select(source, sleepers.lists[i], bounds, intercepts, slopes, u_wake, threshold)


@counting
def choose_threshold(source: SmallArray, intercepts: FloatArray, slopes: FloatArray, u: float, u_wake: float) -> float:
    """An index that about one in ``FEWER`` of these arms will reach by u_wake, by a sample of them.

    Never above an index of now: among equal arms all might have one and the same, and the best would sleep too.
    """
    step = (len(source) - 1) // SAMPLE + 1
    sample = np.empty((len(source) - 1) // step + 1)
    highest = -np.inf
    for i in range(len(sample)):
        sample[i] = index(intercepts, slopes, source[i * step], u_wake)
        highest = max(highest, index(intercepts, slopes, source[i * step], u))
    sample.sort()
    return min(sample[len(sample) - 1 - len(sample) // FEWER], highest)


@compiled
def bound_all(bounds: FloatArray, intercepts: FloatArray, slopes: FloatArray, u_wake: float) -> None:
    """Every arm's index at u_wake."""
    for arm in range(len(bounds)):
        bounds[arm] = index(intercepts, slopes, arm, u_wake)


@compiled
def select(
    source: SmallArray,
    chosen: SmallArray,
    bounds: FloatArray,
    intercepts: FloatArray,
    slopes: FloatArray,
    u_wake: float,
    threshold: float,
) -> int:
    """Write down the arms whose index reaches the threshold by u_wake; how many there are.

    Most are left out by one number, their bound, since lines lie far apart in memory. Neither loop has a branch.
    """
    number = 0
    for arm in source:
        chosen[number] = arm
        number += bounds[arm] >= threshold
    within, number = number, 0
    for i in range(within):
        arm = chosen[i]
        chosen[number] = arm
        number += index(intercepts, slopes, arm, u_wake) >= threshold
    return number
