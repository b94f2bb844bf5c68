"""Roots of many functions at once."""

import math
from collections.abc import Callable

import numpy as np

from mfbandit._internal.typing import BoolArray, FloatArray

MAX_DOUBLINGS = 200
TOLERANCE = 1e-9  # of the width of the first bracket


def increasing_root(
    function: Callable[[FloatArray], FloatArray],
    low: FloatArray,
    high: FloatArray,
    *,
    tolerance: float = TOLERANCE,
    area: float = 0.0,
    least: FloatArray | float = -math.inf,
    most: FloatArray | float = math.inf,
) -> FloatArray:
    """Find a root of each of many increasing functions, near the interval from ``low`` to ``high``.

    Each root depends on its own function alone, bit for bit, not on the others. Chandrupatla's method: inverse
    quadratic interpolation where it can be trusted, and bisection elsewhere.

    Args:
        function: elementwise; its values have the shape of its argument.
        low: where to begin, the lower ends.
        high: the upper ends.
        tolerance: of a root, as a part of the width of the interval in which the function changes its sign.
        area: of the value times the width that is left, at which a root is good enough. Where the function is the
            slope of a convex one, that one is then at most so much above its minimum.
        least: where the functions begin; not above ``low``.
        most: where they end; not below ``high``.

    Returns:
        Where a function has no root, the end at which it is nearest to one: where it begins or ends, or far out.

    >>> increasing_root(lambda x: x**3 - np.array([8.0, 27.0]), np.zeros(2), np.ones(2)).round(6).tolist()
    [2.0, 3.0]
    """
    with np.errstate(over="ignore", invalid="ignore"):  # ends move far out where a function has no root
        a, fa, b, fb = _widened(function, low, high, least, most)
    least_width = tolerance * np.maximum(b - a, np.finfo(float).tiny)
    c, fc, t = a, fa, np.full(a.shape, 0.5)
    # Without a root it is the end that moved out, whatever rounding makes of the values.
    fa, fb = np.where(fb < 0, -np.inf, fa), np.where(fa > 0, np.inf, fb)
    done = (fa >= 0) | (fb <= 0)
    while not done.all():
        x = a + np.where(done, 0.5, t) * (b - a)
        fx = function(x)
        same = np.sign(fx) == np.sign(fa)
        c, fc, b, fb = _where(done, (c, fc, b, fb), _where(same, (a, fa, b, fb), (b, fb, a, fa)))
        a, fa = _where(done, (a, fa), (x, fx))
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            part = least_width / np.abs(b - a)
            # Two neighbouring numbers have nothing between them.
            done = done | ~(2 * part < 1) | (fa == 0) | (np.abs(b - a) <= 4 * np.spacing(np.abs(a)))
            done |= np.minimum(np.abs(fa), np.abs(fb)) * np.abs(b - a) <= area
            t = np.clip(_step(a, b, c, fa, fb, fc), part, 1 - part)
    root: FloatArray = np.where(np.abs(fa) <= np.abs(fb), a, b)
    return root


def _widened(
    function: Callable[[FloatArray], FloatArray],
    low: FloatArray,
    high: FloatArray,
    least: FloatArray | float,
    most: FloatArray | float,
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Move ends outwards, each time twice as far, until the function changes its sign between them."""
    step = np.maximum(high - low, 1e-6 * np.maximum(1e-6, np.maximum(np.abs(low), np.abs(high))))
    a, b = low, high
    fa, fb = function(a), function(b)
    for _ in range(MAX_DOUBLINGS):
        too_high, too_low = (fa > 0) & (a > least), (fb < 0) & (b < most)
        if not (too_high.any() or too_low.any()):
            break
        a = np.where(too_high, np.maximum(a - step, least), a)
        b = np.where(too_low, np.minimum(b + step, most), b)
        fa = np.where(too_high, function(a), fa) if too_high.any() else fa
        fb = np.where(too_low, function(b), fb) if too_low.any() else fb
        step = step * 2
    return a, fa, b, fb


def _where(mask: BoolArray, first: tuple[FloatArray, ...], second: tuple[FloatArray, ...]) -> tuple[FloatArray, ...]:
    return tuple(np.where(mask, one, other) for one, other in zip(first, second, strict=True))


def _step(a: FloatArray, b: FloatArray, c: FloatArray, fa: FloatArray, fb: FloatArray, fc: FloatArray) -> FloatArray:
    """Choose where to look next, as a part of the way from a to b."""
    xi, phi = (a - b) / (c - b), (fa - fb) / (fc - fb)
    trusted = (phi * phi < xi) & ((1 - phi) ** 2 < 1 - xi)
    t = fa / (fb - fa) * fc / (fb - fc) + (c - a) / (b - a) * fa / (fc - fa) * fb / (fc - fb)
    return np.where(trusted & np.isfinite(t), t, 0.5)
