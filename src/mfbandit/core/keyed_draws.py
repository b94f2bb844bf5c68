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


def keyed_uniform(seed: int, t: int, number: int = 0) -> float:
    """Draw from [0, 1), evenly, by a key.

    Args:
        seed: the policy's; a whole number from 0.
        t: the number of the play, from 1.
        number: which draw of this play, from 0; such as the arm.

    >>> round(keyed_uniform(seed=0, t=1), 3), round(keyed_uniform(seed=0, t=1, number=1), 3)
    (0.361, 0.814)
    """
    key = mixed((seed & _LOW) ^ 0x9E3779B9)
    key = mixed(key ^ ((seed >> 32) & _LOW))
    key = mixed(key ^ (t & _LOW))
    key = mixed(key ^ ((t >> 32) & _LOW))
    key = mixed((key + number) & _LOW)
    high, low = mixed(key ^ 0x5BD1E995), mixed(key ^ 0x27D4EB2F)
    return ((high >> 5) * 67108864.0 + (low >> 6)) / 9007199254740992.0  # 53 bits


def keyed_normal(seed: int, t: int, number: int = 0) -> float:
    """Draw from the standard normal distribution by a key, as :func:`keyed_uniform` does evenly (Box and Muller).

    >>> round(keyed_normal(seed=0, t=1), 3)
    0.368
    """
    radius = math.sqrt(-2.0 * math.log(1.0 - keyed_uniform(seed, t, 2 * number)))
    return radius * math.cos(2.0 * math.pi * keyed_uniform(seed, t, 2 * number + 1))
