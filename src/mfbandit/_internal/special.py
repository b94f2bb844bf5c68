"""Special functions over arrays, with NumPy alone: what SciPy calls ``log_ndtr``, ``erfcx`` and ``gammaln``."""

import math
from functools import cache

import numpy as np
from numpy.polynomial import chebyshev

from mfbandit._internal.typing import FloatArray

ERFCX_CENTRE = 3.75  # of the map from [0, ∞) to [−1, 1] in which erfcx is a short polynomial
ERFCX_DEGREE = 22
FRACTION_FROM = 2.0  # where the continued fraction of erfcx converges within FRACTION_TERMS
FRACTION_TERMS = 120
FAR = 50.0  # where 1/z is so much smaller than z that their difference would be rounding alone
STIRLING_FROM = 10.0
STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)


def erfcx(x: FloatArray) -> FloatArray:
    r"""Compute exp(x²)·erfc(x) of x ≥ 0, to 13 digits: (1 + 2x)·erfcx(x) is a polynomial in (x − c)/(x + c), nearly.

    >>> erfcx(np.array([0.0, 1.0, 100.0])).round(8).tolist()
    [1.0, 0.42758358, 0.00564161]
    """
    t = (x - ERFCX_CENTRE) / (x + ERFCX_CENTRE)
    highest, *others = _erfcx_series()
    result = np.full_like(t, highest)
    for term in others:  # in place, which takes half the time
        result *= t
        result += term
    result /= 1 + 2 * x
    return result


def log_mills(z: FloatArray) -> tuple[FloatArray, FloatArray]:
    r"""Compute log(exp(z²/2)·Φ(z)) and its slope z + φ(z)/Φ(z), where Φ is the normal distribution function.

    >>> value, slope = log_mills(np.array([-40.0, 0.0, 3.0]))
    >>> value.round(4).tolist(), slope.round(4).tolist()
    ([-4.6084, -0.6931, 4.4986], [0.025, 0.7979, 3.0044])
    """
    half = 0.5 * erfcx(np.abs(z) * math.sqrt(0.5))  # exp(z²/2)·Φ(−|z|)
    with np.errstate(over="ignore", under="ignore"):
        above = np.maximum(z, 0.0)
        half_square = 0.5 * above * above
        tail = np.exp(-half_square)
    scaled = np.where(z < 0, half, 1 - tail * half)  # Φ(z), times exp(z²/2) for z < 0
    value = np.log(scaled) + half_square
    slope = z + tail / (math.sqrt(2 * math.pi) * scaled)
    far = z < -FAR
    return value, np.where(far, _far_slope(z), slope) if far.any() else slope


def _far_slope(z: FloatArray) -> FloatArray:
    """The slope z + φ(z)/Φ(z) for z far below 0: the continued fraction of Mills' ratio, 1/(|z| + 2/(|z| + 3/(…)))."""
    x = np.maximum(-z, FAR)
    slope: FloatArray = 1 / (x + 2 / (x + 3 / (x + 4 / x)))
    return slope


def log_gamma(x: FloatArray) -> FloatArray:
    r"""Compute log Γ(x) of x > 0, to 13 digits: Stirling's series, from x + 10 down for small x.

    >>> log_gamma(np.array([0.5, 1.0, 5.0, 1e6])).round(6).tolist()
    [0.572365, 0.0, 3.178054, 12815504.569148]
    """
    small = x < STIRLING_FROM
    product, near = np.ones_like(x), np.minimum(x, STIRLING_FROM)
    for step in range(int(STIRLING_FROM)):  # Γ(x + 10)/Γ(x)
        product *= near + step
    product = np.where(small, product, 1.0)
    y = np.where(small, x + STIRLING_FROM, x)
    inverse = 1 / y
    square = inverse * inverse
    series = np.zeros_like(y)
    for term in reversed(STIRLING):
        series = series * square + term
    result: FloatArray = (y - 0.5) * np.log(y) - y + 0.5 * math.log(2 * math.pi) + series * inverse - np.log(product)
    return result


@cache
def _erfcx_series() -> tuple[float, ...]:
    """The coefficients of the polynomial, the highest first, from its values at Chebyshev's points."""
    number = ERFCX_DEGREE + 1
    angles = [math.pi * (j + 0.5) / number for j in range(number)]
    xs = [ERFCX_CENTRE * (1 + math.cos(angle)) / (1 - math.cos(angle)) for angle in angles]
    values = [(1 + 2 * x) * _erfcx_of(x) for x in xs]
    sums = [sum(v * math.cos(k * a) for v, a in zip(values, angles, strict=True)) for k in range(number)]
    series = [(1 if k == 0 else 2) / number * total for k, total in enumerate(sums)]
    return tuple(chebyshev.cheb2poly(series)[::-1].tolist())


def _erfcx_of(x: float) -> float:
    if x < FRACTION_FROM:
        return math.exp(x * x) * math.erfc(x)
    fraction = x
    for term in range(FRACTION_TERMS, 0, -1):
        fraction = x + term / 2 / fraction
    return 1 / (math.sqrt(math.pi) * fraction)
