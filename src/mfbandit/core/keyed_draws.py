"""Chance that is a function of a seed and of the play: the same in Python and compiled, after a restart, on any worker.

A policy that draws must choose the same play for the same statistics. So a draw has a key: the policy's seed, the
play's number t, and the number of the draw within it. The key is mixed by multiplications modulo 2³² (the finalizer of
MurmurHash3); only whole numbers below 2³² occur, so that Python and Numba agree.
"""

import math

_LOW = 0xFFFFFFFF  # the lowest 32 bits


def mixed(word: int) -> int:
    """Mix the bits of a number below 2³², so that each of them changes half of the others.

    >>> mixed(0), mixed(1)
    (0, 1364076727)
    """
    word ^= word >> 16
    word = (word * 0x85EBCA6B) & _LOW
    word ^= word >> 13
    word = (word * 0xC2B2AE35) & _LOW
    return word ^ (word >> 16)


def stream(seed: int, t: int) -> int:
    """Mix a policy's seed and the number of a play into the key of all draws of that play.

    Args:
        seed: a whole number from 0; two that agree modulo 2⁶⁴ give the same.
        t: the number of the play, from 1.

    >>> stream(seed=0, t=1), stream(seed=0, t=2)
    (3231473672, 2550364134)
    """
    key = mixed((seed & _LOW) ^ 0x9E3779B9)
    key = mixed(key ^ ((seed >> 32) & _LOW))
    key = mixed(key ^ (t & _LOW))
    return mixed(key ^ ((t >> 32) & _LOW))


def uniform_of(key: int, number: int) -> float:
    """Draw number ``number`` of a stream from [0, 1), evenly.

    >>> round(uniform_of(stream(seed=0, t=1), 0), 3)
    0.361
    """
    word = mixed((key + number) & _LOW)
    high, low = mixed(word ^ 0x5BD1E995), mixed(word ^ 0x27D4EB2F)
    return ((high >> 5) * 67108864.0 + (low >> 6)) / 9007199254740992.0  # 53 bits


def normal_of(key: int, number: int) -> float:
    """Draw from the standard normal distribution, by draws ``number`` and ``number + 1`` of a stream (Box and Muller).

    >>> round(normal_of(stream(seed=0, t=1), 0), 3)
    0.368
    """
    radius = math.sqrt(-2.0 * math.log(1.0 - uniform_of(key, number)))
    return radius * math.cos(2.0 * math.pi * uniform_of(key, number + 1))


def gamma_of(key: int, number: int, shape: float) -> float:
    """Draw from the Gamma distribution of this shape, at least 1, and scale 1 (Marsaglia and Tsang, 2000).

    A try takes three draws of the stream, from ``number`` on; one in twenty is rejected at most.

    >>> round(gamma_of(stream(seed=0, t=1), 0, shape=5.0), 3)
    5.509
    """
    d = shape - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    while True:
        x = normal_of(key, number)
        v = 1.0 + c * x
        v = v * v * v
        w, x2 = 1.0 - uniform_of(key, number + 2), x * x
        if v > 0.0 and (w < 1.0 - 0.0331 * x2 * x2 or math.log(w) < 0.5 * x2 + d * (1.0 - v + math.log(v))):
            return d * v
        number += 3


def beta_of(key: int, number: int, a: float, b: float) -> float:
    """Draw from Beta(a, b), both at least 1, as the share of one Gamma draw of two; takes 64 numbers of the stream.

    >>> round(beta_of(stream(seed=0, t=1), 0, a=30.0, b=70.0), 3)
    0.319
    """
    one = gamma_of(key, number, a)
    return one / (one + gamma_of(key, number + 32, b))


def keyed_uniform(seed: int, t: int, number: int = 0) -> float:
    """Draw from [0, 1), evenly, by a key.

    Args:
        seed: the policy's; a whole number from 0.
        t: the number of the play, from 1.
        number: which draw of this play, from 0; such as the arm.

    >>> round(keyed_uniform(seed=0, t=1), 3), round(keyed_uniform(seed=0, t=1, number=1), 3)
    (0.361, 0.814)
    """
    return uniform_of(stream(seed, t), number)


def keyed_normal(seed: int, t: int, number: int = 0) -> float:
    """Draw from the standard normal distribution by a key, as :func:`keyed_uniform` does evenly (Box and Muller).

    >>> round(keyed_normal(seed=0, t=1), 3)
    0.368
    """
    return normal_of(stream(seed, t), 2 * number)
