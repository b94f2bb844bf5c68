import math

import numpy as np
import pytest

from mfbandit._internal.validation import cost, number, positive, whole


def test_numbers():
    assert [number("x", value) for value in (1, 2.5, np.float32(0.5), np.int64(3), True)] == [1, 2.5, 0.5, 3, 1]
    assert type(number("x", np.float64(1))) in (float, np.float64)
    assert positive("x", 2) == 2
    assert cost(0) == 0
    assert [whole("x", value) for value in (2, np.int64(3))] == [2, 3]


@pytest.mark.parametrize("value", ["1", None, [1], 1j])
def test_no_numbers(value):
    with pytest.raises(ValueError, match="x must be a number, got"):
        number("x", value)
    with pytest.raises(ValueError, match="x must be a number, got"):
        positive("x", value)


@pytest.mark.parametrize("check", [number, positive])
def test_numbers_that_are_too_large(check):
    with pytest.raises(ValueError, match=r"x must be at most 1e\+150 in size, got 10000"):
        check("x", 10**400)


@pytest.mark.parametrize(("value", "rule"), [(math.nan, "finite"), (math.inf, "finite"), (-1e151, "at most 1e.150")])
def test_too_much(value, rule):
    with pytest.raises(ValueError, match=f"x must be {rule}.*, got {value}".replace("+", ".")):
        number("x", value)


@pytest.mark.parametrize("value", [2.5, "2", None, 2.0])
def test_not_whole(value):
    with pytest.raises(ValueError, match="x must be a whole number, got"):
        whole("x", value)
