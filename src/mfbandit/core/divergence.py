"""The Bernoulli divergence and its inverse for single numbers; engines compile this same source."""

import math

MAX_NEWTON_STEPS = 10  # five are usual


def kl(p: float, q: float) -> float:
    r"""Compute the Bernoulli divergence p log(p/q) + (1 − p) log((1 − p)/(1 − q)) of p, q in [0, 1], with 0·log 0 = 0.

    >>> round(kl(0.5, 0.75), 6), kl(0.0, 0.0), kl(0.5, 1.0)
    (0.143841, 0.0, inf)
    """
    step = q - p
    win, lose = 0.0, 0.0
    if p > 0:
        if -step >= p:  # q is 0 up to rounding
            return math.inf
        win = -p * math.log1p(step / p)
    if p < 1:
        if step >= 1 - p:
            return math.inf
        lose = -(1 - p) * math.log1p(-step / (1 - p))
    return max(win + lose, 0.0)


def kl_upper(p: float, level: float) -> float:
    r"""Find the largest q in [p, 1] with kl(p, q) ≤ level: the KL-UCB index of p for a level of f/T, to 1e-12.

    Newton's method starts above q; it cannot overshoot from there, as kl is convex in q. Its start is the smallest of
    four bounds, from kl ≥ 2(q − p)², kl ≥ (q − p)²/(2q), kl ≥ (q − p)²/(2(1 − p)) and
    kl ≥ −(1 − p) log(1 − q) − entropy(p).

    Args:
        p: a mean in [0, 1].
        level: at least 0.

    >>> round(kl_upper(0.5, kl(0.5, 0.75)), 12), kl_upper(1.0, 3.0), kl_upper(0.25, 0.0)
    (0.75, 1.0, 0.25)
    """
    if p >= 1 or level <= 0:
        return p
    if p <= 0:
        return -math.expm1(-level)
    entropy = -p * math.log(p) - (1 - p) * math.log1p(-p)
    far = -math.expm1(-(level + entropy) / (1 - p))
    near = p + min(math.sqrt(level / 2), level + math.sqrt(level * (level + 2 * p)), math.sqrt(2 * (1 - p) * level))
    q = min(far, near)
    for _ in range(MAX_NEWTON_STEPS):
        step = q - p
        if step >= 1 - p:
            return 1.0
        if step <= 0:
            return p
        excess = -p * math.log1p(step / p) - (1 - p) * math.log1p(-step / (1 - p)) - level
        lower = q - excess * q * (1 - q) / step
        if not p < lower < q:
            return q
        q = lower
    return q
