import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mfbandit import Bounded, Concentration, SubGaussian

positive = st.floats(1e-3, 1e3)


@given(positive, positive)
def test_sub_gaussian_inverse(scale, x):
    noise = SubGaussian(scale)
    assert noise.psi_inv(noise.psi(x)) == pytest.approx(x, rel=1e-12)
    assert noise.psi(x) == pytest.approx(x**2 / (2 * scale**2), rel=1e-12)
    assert noise.nu == 1


@given(st.floats(-100, 100), positive, positive)
def test_bounded_is_hoeffding(low, span, x):
    noise = Bounded(low, low + span)
    assert noise.psi(x) == pytest.approx(2 * x**2 / (noise.high - noise.low) ** 2, rel=1e-12)
    assert noise.psi_inv(noise.psi(x)) == pytest.approx(x, rel=1e-12)
    assert noise.nu == 1


def test_both_are_concentrations():
    assert isinstance(SubGaussian(1), Concentration)
    assert isinstance(Bounded(), Concentration)
    assert not isinstance(1.0, Concentration)


@pytest.mark.parametrize("scale", [0, -1, math.nan, math.inf])
def test_scale_must_be_positive(scale):
    with pytest.raises(ValueError, match=f"scale must be positive and finite, got {scale}"):
        SubGaussian(scale)


@pytest.mark.parametrize(("low", "high"), [(1, 1), (2, 1)])
def test_bounds_must_be_in_order(low, high):
    with pytest.raises(ValueError, match=f"low must be below high, got low={low}, high={high}"):
        Bounded(low, high)


def test_bounds_must_be_finite():
    with pytest.raises(ValueError, match="low must be finite, got nan"):
        Bounded(math.nan, 1)
    with pytest.raises(ValueError, match="high must be finite, got inf"):
        Bounded(0, math.inf)


def test_numbers_become_plain_floats():
    for two in (2, np.int64(2), np.float32(2)):
        noise = SubGaussian(two)  # type: ignore[arg-type]
        assert type(noise.scale) is float
    assert type(Bounded(0, 1).high) is float


def test_text_is_no_number():
    with pytest.raises(ValueError, match="scale must be a number, got '1'"):
        SubGaussian("1")  # type: ignore[arg-type]
