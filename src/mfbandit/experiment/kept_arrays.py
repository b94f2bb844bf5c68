"""What bounds are computed from at each ask, kept up result by result: it costs less than arrays made anew."""

from dataclasses import dataclass

import numpy as np

from mfbandit._internal.typing import FloatArray
from mfbandit.core import Stats
from mfbandit.core.stats import means_or_infinity


@dataclass(frozen=True, eq=False)
class KeptArrays:
    """Square roots of counts, and means; arrays of shape (M, K).

    Args:
        roots: of the counts.
        means: infinite where there is no result.
        shown_roots: the same, read-only.
        shown_means: the same, read-only.

    >>> KeptArrays.of(Stats.empty(fidelities=1, arms=1)).shown_means.tolist()
    [[inf]]
    """

    roots: FloatArray
    means: FloatArray
    shown_roots: FloatArray
    shown_means: FloatArray

    @classmethod
    def of(cls, stats: Stats) -> "KeptArrays":
        """Compute them once, and not by properties of statistics that go on changing."""
        arrays = np.sqrt(stats.counts), means_or_infinity(stats.counts, stats.sums)
        shown = [array.view() for array in arrays]
        for view in shown:
            view.flags.writeable = False
        return cls(*arrays, *shown)
