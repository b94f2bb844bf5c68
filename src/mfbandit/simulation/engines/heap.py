"""Arms in a heap by a key that bounds their index from above, and the search for the best index."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mfbandit._internal.typing import FloatArray
from mfbandit.simulation.engines.kernels import compiled, inlined
from mfbandit.simulation.engines.lines import index

SmallArray = NDArray[np.uint32]

CHILDREN = 4  # of a node in the heap
FIRST_BLOCK = 16.0  # plays for which the first keys are made


class Heap(NamedTuple):
    """A heap with the largest key at its root; arrays have room for more than all arms."""

    keys: FloatArray
    nodes: SmallArray  # the arm at each place
    stack: SmallArray  # places still to be searched


def empty_heap(arms: int) -> Heap:
    """A heap with room for so many arms.

    >>> len(empty_heap(arms=10).keys)
    18
    """
    room = arms + 2 * CHILDREN
    return Heap(np.full(room, -np.inf), np.zeros(room, dtype=np.uint32), np.zeros(room, dtype=np.uint32))


@inlined
def sift_down(keys: FloatArray, nodes: SmallArray, place: int, size: int) -> None:
    """Let the node at a place sink to where its key belongs.

    Keys behind the heap's end are minus infinity, so that every node may be asked for four children. The largest of
    them is found without branches, whose outcome no processor could foresee.
    """
    key, arm = keys[place], nodes[place]
    child = CHILDREN * place + 1
    while child < size:
        left, right = max(keys[child], keys[child + 1]), max(keys[child + 2], keys[child + 3])
        largest = max(left, right)
        if largest <= key:
            break
        of_left = child + (keys[child + 1] > keys[child])
        of_right = child + 2 + (keys[child + 3] > keys[child + 2])
        child = of_right if right > left else of_left
        keys[place], nodes[place] = largest, nodes[child]
        place = child
        child = CHILDREN * place + 1
    keys[place], nodes[place] = key, arm


@inlined
def sift_up(keys: FloatArray, nodes: SmallArray, place: int) -> None:
    """Let the node at a place rise to where its key belongs."""
    key, arm = keys[place], nodes[place]
    while place > 0:
        parent = (place - 1) // CHILDREN
        if keys[parent] >= key:
            break
        keys[place], nodes[place] = keys[parent], nodes[parent]
        place = parent
    keys[place], nodes[place] = key, arm


@compiled
def heapify(keys: FloatArray, nodes: SmallArray, size: int) -> None:
    """Put the first ``size`` keys in order, and mark the heap's end."""
    keys[size : size + CHILDREN] = -np.inf
    for place in range((size + CHILDREN - 2) // CHILDREN - 1, -1, -1):
        sift_down(keys, nodes, place, size)


@compiled
def search(
    keys: FloatArray,
    nodes: SmallArray,
    size: int,
    stack: SmallArray,
    intercepts: FloatArray,
    slopes: FloatArray,
    u: float,
    best: float,
) -> tuple[int, float, int]:
    """The place of the arm with the largest index, the lowest number among ties; its index; looks beyond the root.

    ``best`` is the index of the root, which has been looked at.
    """
    place, best_arm, looks, top, node = 0, nodes[0], 0, 0, 0
    while True:
        for child in range(CHILDREN * node + 1, min(CHILDREN * node + 1 + CHILDREN, size)):
            if keys[child] >= best:
                stack[top] = child
                top += 1
        while top > 0 and keys[stack[top - 1]] < best:
            top -= 1
        if top == 0:
            return place, best, looks
        top -= 1
        node = stack[top]
        looks += 1
        arm = nodes[node]
        value = index(intercepts, slopes, arm, u)
        if value > best or (value == best and arm < best_arm):
            place, best, best_arm = node, value, arm


@compiled
def next_block(block: float, awake: int, extra: int, n_arms: int, t: int) -> float:
    """The length of the next block: longer where new keys cost more than the looks that they would have saved."""
    factor = math.sqrt((7.0 * awake + 60.0) / (16.0 * extra + 1.0))
    longest = max(n_arms / 8, t / 1000) + 16
    return min(block * min(max(factor, 0.5), 2.0), longest)
