import math

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


@pytest.mark.parametrize(("low", "high"), [(1, 1), (2, 1), (math.nan, 1), (0, math.inf)])
def test_bounds_must_be_in_order(low, high):
    with pytest.raises(ValueError, match=f"finite with low < high, got low={low}, high={high}"):
        Bounded(low, high)
