"""Quantiles for confidence intervals, computed without scipy."""

import math


def normal_quantile(p: float) -> float:
    """Compute a quantile of the standard normal distribution.

    >>> round(normal_quantile(0.975), 3)
    1.96
    """
    from statistics import NormalDist  # here, as it takes a tenth of the time in which all of the package loads

    return NormalDist().inv_cdf(p)


def t_quantile(p: float, freedom: int) -> float:
    r"""Compute a quantile of Student's t with ν degrees of freedom by its expansion in 1/ν around the normal quantile.

    It is exact for 1 and 2 degrees of freedom. From 3 on the error is below 0.4 % at p = 0.975 and below 5 % at
    p = 0.9995; it shrinks quickly as ν grows.

    >>> [round(t_quantile(0.975, n), 3) for n in (1, 2, 9, 99)]
    [12.706, 4.303, 2.262, 1.984]
    """
    match freedom:  # the two that have a closed form
        case 1:
            return math.tan(math.pi * (p - 0.5))
        case 2:
            return (2 * p - 1) * math.sqrt(2 / (4 * p * (1 - p)))
    z = normal_quantile(p)
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return float(z + sum(term / freedom ** (i + 1) for i, term in enumerate(terms)))
