"""The Bernoulli divergence and its inverse, to 1e-12."""

import decimal
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

from mfbandit.core import divergence
from mfbandit.core.divergence import MAX_NEWTON_STEPS, kl, kl_upper

MEANS = st.floats(0, 1) | st.floats(-12, 0).map(lambda x: 10**x) | st.floats(-12, 0).map(lambda x: 1 - 10**x)
LEVELS = st.floats(-14, 2.5).map(lambda x: 10**x)
compiled_kl: Any = njit(divergence.kl)
compiled_upper: Any = njit(divergence.kl_upper)


def exact_upper(p, level):
    """By bisection with fifty digits."""
    with decimal.localcontext() as context:
        context.prec = 50
        p, level = decimal.Decimal(p), decimal.Decimal(level)
        low, high = p, 1 - decimal.Decimal(10) ** -45
        for _ in range(170):
            q = (low + high) / 2
            value = p * (p / q).ln() + (1 - p) * ((1 - p) / (1 - q)).ln()
            low, high = (low, q) if value > level else (q, high)
        return float(low)


@given(MEANS.filter(lambda p: 0 < p < 1), LEVELS)
def test_the_inverse_is_exact_to_1e_12(p, level):
    assert kl_upper(p, level) == pytest.approx(exact_upper(p, level), abs=1e-12)


@given(MEANS, LEVELS)
def test_compiled_it_gives_the_same_bits(p, level):
    assert compiled_upper(p, level) == kl_upper(p, level)
    q = min(1.0, p + level)
    assert compiled_kl(p, q) == kl(p, q)


@given(MEANS.filter(lambda p: 0 < p < 1), LEVELS)
def test_newton_is_done_before_its_last_step(p, level):
    """With twice the steps the result is the same: ten are enough."""
    original = divergence.MAX_NEWTON_STEPS
    try:
        divergence.MAX_NEWTON_STEPS = 2 * MAX_NEWTON_STEPS
        more = kl_upper(p, level)
    finally:
        divergence.MAX_NEWTON_STEPS = original
    assert kl_upper(p, level) == more


def test_ends():
    assert kl_upper(0.0, 1.0) == pytest.approx(1 - math.exp(-1))
    assert kl_upper(1.0, 5.0) == 1
    assert kl_upper(0.3, 0.0) == 0.3
    assert kl_upper(0.5, 1e300) == 1
    assert (kl(0.0, 0.0), kl(1.0, 1.0), kl(0.5, 0.0), kl(0.5, 1.0), kl(0.0, 1.0)) == (
        0,
        0,
        math.inf,
        math.inf,
        math.inf,
    )


@given(st.floats(0, 1), st.floats(0, 1))
def test_never_below_zero(p, q):
    assert kl(p, q) >= 0
