"""A point estimate of an arm's mean from all its fidelities, for single numbers; engines compile this same source."""

import math
from collections.abc import Sequence

PRIOR = 1.0  # ρ of the mixtures, in plays
MAX_LOOKS = 96
HALVED_EVERY = 10  # looks, in case Newton's method does not get near
NEAR = 2.0**-48  # of the width of the bands
ROUNDING = 2.0**-51  # of a mean
FRACTION_FROM = 5.0  # from where on erfcx is its continued fraction ...
FRACTION_TERMS = 30  # ... of so many terms

ROOT_2 = math.sqrt(2.0)
ROOT_PI = math.sqrt(math.pi)
ROOT_2_PI = ROOT_2 * ROOT_PI


def log_mills_ratio(z: float) -> float:
    r"""Compute log(exp(z²/2)·Φ(z)), where Φ is the normal distribution function.

    >>> round(log_mills_ratio(0.0), 6), round(log_mills_ratio(-40.0), 4)
    (-0.693147, -4.6084)
    """
    if z >= 0:
        return 0.5 * z * z + math.log(1.0 - 0.5 * math.erfc(z / ROOT_2))
    x = -z / ROOT_2
    if x < FRACTION_FROM:
        return x * x + math.log(0.5 * math.erfc(x))
    fraction = x
    for term in range(FRACTION_TERMS, 0, -1):
        fraction = x + 0.5 * term / fraction
    return -math.log(2.0 * ROOT_PI * fraction)


def centre(counts: Sequence[float], sums: Sequence[float], scales: Sequence[float], biases: Sequence[float]) -> float:
    r"""Find the μ for which as much speaks for a mean above it as below: Σ_m log E⁺_m(μ − ζ_m) = Σ_m log E⁻_m(μ + ζ_m).

    E are half-normal mixtures with ρ = 1 (:mod:`~mfbandit.core.evidence`). With results at one fidelity alone it is
    their mean.

    Args:
        counts: n_m, the number of results of the arm at each fidelity.
        sums: the sums of their rewards.
        scales: σ_m.
        biases: ζ_m.

    Returns:
        In units of reward; −∞ without any result.

    >>> round(centre([20, 4], [8.0, 2.4], [0.1, 0.1], [0.1, 0.0]), 3)
    0.51
    """
    low, high = math.inf, -math.inf
    for m in range(len(counts)):
        if counts[m] > 0:
            mean = sums[m] / counts[m]
            low, high = min(low, mean - biases[m]), max(high, mean + biases[m])
    if low > high:
        return -math.inf
    near = max(NEAR * (high - low), ROUNDING * max(abs(low), abs(high)))
    middle = 0.5 * (low + high)
    for look in range(1, MAX_LOOKS + 1):
        balance, slope = balance_at(middle, counts, sums, scales, biases)
        if balance > 0:
            high = middle
        else:
            low = middle
        following = math.nan
        if 0 < slope < math.inf:  # Newton's step
            following = middle - balance / slope
            if abs(following - middle) <= near:
                return following
        if high - low <= near:
            return middle
        if not low < following < high or look % HALVED_EVERY == 0:
            following = 0.5 * (low + high)
        middle = following
    return middle


def balance_at(
    mean: float, counts: Sequence[float], sums: Sequence[float], scales: Sequence[float], biases: Sequence[float]
) -> tuple[float, float]:
    """Compute Σ_m log E⁺_m(μ − ζ_m) − log E⁻_m(μ + ζ_m), which rises with μ, and its slope.

    >>> balance_at(0.5, [4], [2.0], [0.1], [0.0])[0]
    0.0
    """
    balance, slope = 0.0, 0.0
    for m in range(len(counts)):
        if counts[m] > 0:
            spread = scales[m] * math.sqrt(counts[m] + PRIOR)
            above = (counts[m] * (mean - biases[m]) - sums[m]) / spread
            below = (sums[m] - counts[m] * (mean + biases[m])) / spread
            more, less = log_mills_ratio(above), log_mills_ratio(below)
            balance += more - less
            slope += (above + below + (math.exp(-more) + math.exp(-less)) / ROOT_2_PI) * counts[m] / spread
    return balance, slope
