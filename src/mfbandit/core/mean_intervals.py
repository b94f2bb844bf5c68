r"""Where the mean of each arm lies at the highest fidelity, valid at any time, from the results of all fidelities.

A mean μ is ruled out once the pooled evidence that μ_k is below it, or above it, reaches log(2/δ), as
:mod:`~mfbandit.core.claims` pools it. What is left contains μ_k at all times in at least 1 − δ of experiments. That
holds for one arm; whoever picks the best of many intervals wants :mod:`~mfbandit.core.confidence`.
"""

import math

import numpy as np

from mfbandit._internal.roots import increasing_root
from mfbandit._internal.typing import BoolArray, FloatArray, IntArray
from mfbandit.core.claims import Pool
from mfbandit.core.fidelities import Fidelities
from mfbandit.core.stats import Stats


def mean_intervals(
    stats: Stats, fidelities: Fidelities, arms: IntArray, counted: BoolArray, *, level: float
) -> tuple[FloatArray, FloatArray]:
    """Compute the ends of the arms' intervals.

    Args:
        stats: results, shape (M, K).
        fidelities: the M fidelities.
        arms: which arms, shape (A,).
        counted: which fidelities count, shape (M,).
        level: 1 − δ, of each interval.

    Returns:
        The lower and the upper ends, shape (A,) each; infinite where nothing is known. Where fidelities contradict each
        other, so that no mean is left, a lower end is above the upper one.

    >>> from mfbandit import Rate
    >>> stats, fid = Stats.empty(fidelities=1, arms=2), Fidelities([1], concentration=Rate())
    >>> stats.counts[0, 0], stats.sums[0, 0] = 20_000, 820.0
    >>> low, high = mean_intervals(stats, fid, np.array([0, 1]), np.array([True]), level=0.95)
    >>> low.round(3).tolist(), high.round(3).tolist()
    ([0.035, 0.0], [0.047, 1.0])
    """
    pool, needed = Pool.of(stats, fidelities, arms, counted), math.log(2 / (1 - level))
    (least, most), (low, high) = pool.span, pool.reach()
    begin = np.clip(low, least, most), np.clip(high, least, most)
    begin = np.minimum(*begin), np.maximum(*begin)

    def below(mu: FloatArray) -> FloatArray:
        return pool.at(mu, below=True)[0] - needed

    def above(mu: FloatArray) -> FloatArray:
        return needed - pool.at(mu, below=False)[0]

    known = pool.known
    upper = increasing_root(below, *begin, least=least, most=most)
    lower = increasing_root(above, *begin, least=least, most=most)
    return np.where(known, lower, least), np.where(known, upper, most)
