"""The draws of :mod:`~mfbandit.core.keyed_draws` for many numbers at once, to the last bit the same.

Logarithms and cosines are those of ``math``, as NumPy's differ from them in the last bit now and then.
"""

import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from mfbandit._internal.typing import FloatArray, IntArray

Words: TypeAlias = np.ndarray[tuple[int, ...], np.dtype[np.uint64]]

_LOW = np.uint64(0xFFFFFFFF)


def uniforms_of(key: int, numbers: IntArray) -> FloatArray:
    """Draw these numbers of a stream from [0, 1), evenly.

    >>> uniforms_of(3231473672, np.arange(2)).round(3).tolist()
    [0.361, 0.814]
    """
    word = _mixed((np.uint64(key) + numbers.astype(np.uint64)) & _LOW)
    high, low = _mixed(word ^ np.uint64(0x5BD1E995)), _mixed(word ^ np.uint64(0x27D4EB2F))
    drawn: FloatArray = ((high >> np.uint64(5)) * 67108864.0 + (low >> np.uint64(6))) / 9007199254740992.0
    return drawn


def _mixed(
    words: "np.ndarray[tuple[int, ...], np.dtype[np.uint64]]",
) -> "np.ndarray[tuple[int, ...], np.dtype[np.uint64]]":
    words = words ^ (words >> np.uint64(16))
    words = (words * np.uint64(0x85EBCA6B)) & _LOW
    words = words ^ (words >> np.uint64(13))
    words = (words * np.uint64(0xC2B2AE35)) & _LOW
    return words ^ (words >> np.uint64(16))


def normals_of(key: int, numbers: IntArray) -> FloatArray:
    """Draw from the standard normal distribution, each by a number of the stream and the next.

    >>> normals_of(3231473672, np.array([0])).round(3).tolist()
    [0.368]
    """
    radius = np.sqrt(-2.0 * _each(math.log, 1.0 - uniforms_of(key, numbers)))
    drawn: FloatArray = radius * _each(math.cos, 2.0 * math.pi * uniforms_of(key, numbers + 1))
    return drawn


def gammas_of(key: int, numbers: IntArray, shapes: FloatArray) -> FloatArray:
    """Draw from Gamma distributions of these shapes, each at least 1.

    >>> gammas_of(3231473672, np.array([0]), np.array([5.0])).round(3).tolist()
    [5.509]
    """
    d = shapes - 1.0 / 3.0
    c = 1.0 / np.sqrt(9.0 * d)
    drawn, left = np.empty(len(shapes)), np.arange(len(shapes))
    while len(left):
        x = normals_of(key, numbers[left])
        v = 1.0 + c[left] * x
        v = v * v * v
        w, x2 = 1.0 - uniforms_of(key, numbers[left] + 2), x * x
        taken = (v > 0.0) & (w < 1.0 - 0.0331 * x2 * x2)
        for i in np.flatnonzero((v > 0.0) & ~taken):
            taken[i] = math.log(w[i]) < 0.5 * x2[i] + d[left[i]] * (1.0 - v[i] + math.log(v[i]))
        drawn[left[taken]] = (d[left] * v)[taken]
        left = left[~taken]
        numbers = numbers + 3
    return drawn


def betas_of(key: int, numbers: IntArray, a: FloatArray, b: FloatArray) -> FloatArray:
    """Draw from Beta(a, b), both at least 1; each takes 64 numbers of the stream.

    >>> betas_of(3231473672, np.array([0]), np.array([30.0]), np.array([70.0])).round(3).tolist()
    [0.319]
    """
    ones = gammas_of(key, numbers, a)
    drawn: FloatArray = ones / (ones + gammas_of(key, numbers + 32, b))
    return drawn


def _each(function: Callable[[float], float], values: FloatArray) -> FloatArray:
    return np.array([function(value) for value in values.tolist()])
