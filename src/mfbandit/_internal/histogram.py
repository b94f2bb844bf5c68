"""How many values fell into which bucket: for one thread that counts, and others that look."""

from bisect import bisect_left
from collections.abc import Sequence


class Histogram:
    """Counts of values by upper ends of buckets, and their sum.

    No lock is taken: one thread alone may count. A locked histogram takes five times as long, and this is done for
    each request.

    Args:
        ends: the upper ends of the buckets, ascending; values above the last have a bucket of their own.

    >>> sizes = Histogram([1, 10])
    >>> for size in (1, 7, 70):
    ...     sizes.add(size)
    >>> sizes.cumulative(), sizes.total
    ([1, 2, 3], 78.0)
    """

    __slots__ = ("counts", "ends", "total")

    def __init__(self, ends: Sequence[float]) -> None:
        self.ends = tuple(ends)
        self.counts = [0] * (len(self.ends) + 1)
        self.total = 0.0

    def add(self, value: float) -> None:
        """Count a value."""
        self.counts[bisect_left(self.ends, value)] += 1
        self.total += value

    def cumulative(self) -> list[int]:
        """Return how many values were at most each end; the last is how many there were."""
        found, so_far = [], 0
        for count in self.counts:
            so_far += count
            found.append(so_far)
        return found
