"""Bounds on means and information by divergence: Gaussian for sub-Gaussian noise, Bernoulli for rewards in a range."""

import math
from collections.abc import Sequence

import numpy as np

from mfbandit._internal.typing import FloatArray
from mfbandit.core import Concentration, SubGaussian, has_range, kl, kl_upper


def index_cap(tails: Sequence[Concentration]) -> float:
    """Return the largest reward there can be; infinite where that is not known.

    >>> from mfbandit.core import Bounded
    >>> index_cap([Bounded(0, 2)]), index_cap([SubGaussian(1)])
    (2.0, inf)
    """
    return max(tail.high if has_range(tail) else math.inf for tail in tails)


def upper_bounds_at(tail: Concentration, means: FloatArray, exploration: FloatArray, plays: FloatArray) -> FloatArray:
    """Compute sup{y : T·d(X̄, y) ≤ f} for arms with results, shape (K,); ``exploration`` is f, ``plays`` is T.

    >>> from mfbandit.core import Bounded
    >>> upper_bounds_at(Bounded(0, 1), np.array([0.0]), np.array([1.0]), np.array([1])).round(4).tolist()
    [0.6321]
    """
    if type(tail) is SubGaussian:
        result: FloatArray = means + tail.scale * np.sqrt(2 * exploration / plays)
        return result
    levels = (exploration / plays).tolist()
    if has_range(tail):
        scaled = ((means - tail.low) / (tail.high - tail.low)).clip(0.0, 1.0).tolist()
        tops = [kl_upper(p, level) for p, level in zip(scaled, levels, strict=True)]
        ranged: FloatArray = tail.low + (tail.high - tail.low) * np.array(tops)
        return ranged
    wide: FloatArray = means + np.array([tail.psi_inv(level) for level in levels])
    return wide


def mean_deviations(tail: Concentration, means: FloatArray, plays: FloatArray) -> FloatArray:
    """Compute the standard deviation of each mean: σ/sqrt(T), or for bounded rewards that of 0/1 rewards.

    >>> mean_deviations(SubGaussian(0.2), np.array([0.0]), np.array([4])).tolist()
    [0.1]
    """
    if type(tail) is SubGaussian:
        narrow: FloatArray = tail.scale / np.sqrt(plays)
        return narrow
    if has_range(tail):
        span = tail.high - tail.low
        scaled = ((means - tail.low) / span).clip(0.0, 1.0)
        p = (scaled * plays + 0.5) / (plays + 1)
        spread: FloatArray = span * np.sqrt(p * (1 - p) / plays)
        return spread
    return np.array([tail.psi_inv(0.5 / n) for n in plays.tolist()])


def divergence_above(tail: Concentration, x: float, y: float) -> float:
    """Compute the information of one reward on whether a mean of x could be y; 0 if y is not above x.

    >>> divergence_above(SubGaussian(1.0), 0.0, 2.0), divergence_above(SubGaussian(1.0), 2.0, 0.0)
    (2.0, 0.0)
    """
    if has_range(tail):
        span = tail.high - tail.low
        x, y = (min(max((value - tail.low) / span, 0.0), 1.0) for value in (x, y))
        return kl(x, y) if y > x else 0.0
    if not y > x:
        return 0.0
    if type(tail) is SubGaussian:
        return (y - x) * (y - x) / (2 * tail.scale * tail.scale)
    return tail.psi(y - x)
