"""Upper bounds on means by divergence: Gaussian where noise is sub-Gaussian, Bernoulli where rewards lie in a range."""

import math
from typing import NamedTuple

import numpy as np

from mfbandit._internal.typing import FloatArray, IntArray
from mfbandit.core import Bounded, Fidelities, SubGaussian, divergence
from mfbandit.simulation.engines.kernels import compiled, inlined

kl = compiled(divergence.kl)
kl_upper = compiled(divergence.kl_upper)


class Tails(NamedTuple):
    """What is known of rewards at each fidelity; arrays of shape (R,)."""

    biases: FloatArray
    scales: FloatArray  # sigma of sub-Gaussian noise; 0 where rewards lie in a range
    lows: FloatArray  # of that range
    spans: FloatArray  # its length


def prepare_tails(fidelities: Fidelities) -> Tails:
    """Lay out fidelities whose tails are sub-Gaussian or bounded.

    >>> from mfbandit.problems import paper_problem
    >>> prepare_tails(paper_problem(3).fidelities).spans.tolist()
    [1.0, 1.0]
    """
    scales = [tail.scale if type(tail) is SubGaussian else 0.0 for tail in fidelities.tails]
    ranges = [(tail.low, tail.high) if isinstance(tail, Bounded) else (0.0, 0.0) for tail in fidelities.tails]
    lows, highs = (np.array(column) for column in zip(*ranges, strict=True))
    return Tails(np.array(fidelities.known_biases), np.array(scales), lows, highs - lows)


@inlined
def scaled(tails: Tails, m: int, value: float) -> float:
    """A value in units of the range of rewards at m, within [0, 1]."""
    return min(max((value - tails.lows[m]) / tails.spans[m], 0.0), 1.0)


@inlined
def take_in(
    tails: Tails, counts: IntArray, sums: FloatArray, means: FloatArray, arm: int, m: int, reward: float
) -> None:
    """Add a reward that has been counted to the sums, and keep up the mean: scaled where rewards lie in a range."""
    sums[arm, m] += reward
    mean = sums[arm, m] / counts[arm, m]
    means[arm, m] = mean if tails.scales[m] > 0 else scaled(tails, m, mean)


@inlined
def upper(tails: Tails, counts: IntArray, means: FloatArray, arm: int, effort: float) -> float:
    """The smallest of the arm's upper bounds for this effort: sup{y : T·d(mean, y) <= effort} + bias."""
    best = np.inf
    for m in range(len(tails.biases)):
        count = counts[arm, m]
        if count > 0:
            mean = means[arm, m]
            if tails.scales[m] > 0:
                bound = mean + tails.scales[m] * math.sqrt(2 * effort / count)
            else:
                bound = tails.lows[m] + tails.spans[m] * kl_upper(mean, effort / count)
            best = min(best, bound + tails.biases[m])
    return best


@compiled
def divergence_above(tails: Tails, m: int, x: float, y: float) -> float:
    """The information of one reward on whether a mean of x could be y; 0 where y is not above x."""
    if tails.scales[m] > 0:
        return (y - x) * (y - x) / (2 * tails.scales[m] * tails.scales[m]) if y > x else 0.0
    x, y = scaled(tails, m, x), scaled(tails, m, y)
    return kl(x, y) if y > x else 0.0
