"""A tree of maxima over the arms: the largest value, and the next arm whose value is large enough, in log K looks.

The array has room for two numbers an arm: leaves, by the arms' numbers, come after all the nodes above them. A node has
the larger value of its two children; the root is at 1.
"""

import numpy as np

from mfbandit._internal.typing import FloatArray
from mfbandit.simulation.engines.kernels import compiled, inlined


def max_tree(arms: int, value: float) -> FloatArray:
    """A tree in which all arms have this value.

    >>> max_tree(arms=3, value=7.0).tolist()
    [-inf, 7.0, 7.0, 7.0, 7.0, 7.0, 7.0, -inf]
    """
    leaves = 1 << max(0, arms - 1).bit_length()
    tree = np.full(2 * leaves, -np.inf)
    tree[leaves : leaves + arms] = value
    rebuild(tree)
    return tree


@inlined
def value_at(tree: FloatArray, arm: int) -> float:
    """The value of an arm."""
    return tree[(len(tree) >> 1) + arm]


@inlined
def put(tree: FloatArray, arm: int, value: float) -> None:
    """Give an arm a value without a look at the nodes above; :func:`rebuild` must follow."""
    tree[(len(tree) >> 1) + arm] = value


@compiled
def rebuild(tree: FloatArray) -> None:
    """Make all nodes above the leaves anew."""
    for node in range((len(tree) >> 1) - 1, 0, -1):
        tree[node] = max(tree[2 * node], tree[2 * node + 1])


@inlined
def change(tree: FloatArray, arm: int, value: float) -> None:
    """Give an arm another value."""
    node = (len(tree) >> 1) + arm
    tree[node] = value
    while node > 1:
        node >>= 1
        largest = max(tree[2 * node], tree[2 * node + 1])
        if tree[node] == largest:
            break
        tree[node] = largest


@inlined
def first_largest(tree: FloatArray) -> int:
    """The arm with the largest value, the lowest number among ties."""
    node, leaves = 1, len(tree) >> 1
    while node < leaves:
        node *= 2
        node += tree[node + 1] > tree[node]
    return node - leaves


@inlined
def next_reaching(tree: FloatArray, least: float, start: int) -> int:
    """The first arm from ``start`` on whose value is at least so much; −1 if there is none."""
    leaves = len(tree) >> 1
    node = leaves + start if start < leaves else 0
    while node > 0 and not tree[node] >= least:
        while node & 1:
            node >>= 1
        node += node > 0
    if node == 0:
        return -1
    while node < leaves:
        node *= 2
        node += not tree[node] >= least
    return node - leaves
