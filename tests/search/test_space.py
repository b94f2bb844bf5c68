"""Spaces of candidates: what they take, what is drawn, and what they refuse."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from mfbandit.errors import InvalidArgument
from mfbandit.search.space import draw_candidates
from tests.support.effort import examples

GRID = {"depth": [1, 2, 3], "loss": ["l1", "l2"]}


def test_lists_are_a_grid():
    found = draw_candidates(GRID)
    assert len(found) == 6
    assert found[0] == {"depth": 1, "loss": "l1"}
    assert found[-1] == {"depth": 3, "loss": "l2"}


def test_a_grid_that_is_smaller_than_the_number_is_listed():
    assert draw_candidates(GRID, 6) == draw_candidates(GRID, 100) == draw_candidates(GRID)


@given(number=st.integers(1, 5), more=st.integers(0, 5), seed=st.integers(0, 2**40))
@settings(max_examples=examples(60))
def test_draws_are_different_and_the_first_of_more(number, more, seed):
    space = GRID | {"rate": (1e-3, 1.0, "log"), "width": (1, 4)}
    found = draw_candidates(space, number, seed)
    assert len({repr(one) for one in found}) == number
    assert draw_candidates(space, number + more, seed)[:number] == found


def test_few_of_a_grid_are_different():
    assert len({repr(one) for one in draw_candidates(GRID, 5)}) == 5


@given(
    low=st.floats(1e-6, 1e3),
    share=st.floats(0, 10),
    log=st.booleans(),
    seed=st.integers(0, 1000),
)
@settings(max_examples=examples(60))
def test_ranges_hold(low, share, log, seed):
    high = low * (1 + share)
    (found,) = draw_candidates({"x": (low, high, "log") if log else (low, high)}, 1, seed)
    assert low <= found["x"] <= high
    assert isinstance(found["x"], float)


def test_whole_numbers_stay_whole_and_reach_both_ends():
    for space in ({"k": (1, 4)}, {"k": (1, 4, "log")}):
        found = {one["k"] for seed in range(60) for one in draw_candidates(space, 1, seed)}
        assert found == {1, 2, 3, 4}
        assert all(type(one) is int for one in found)


def test_a_range_of_whole_numbers_is_listed():
    assert [one["k"] for one in draw_candidates({"k": (3, 5)})] == [3, 4, 5]


def test_logarithms_are_uniform():
    found = [math.log10(one["x"]) for one in draw_candidates({"x": (1e-4, 1.0, "log")}, 2000, seed=3)]
    assert stats.kstest(found, stats.uniform(-4, 4).cdf).pvalue > 1e-3


def test_distributions_of_scipy():
    space = {"x": stats.loguniform(1e-3, 1), "k": stats.randint(1, 9)}
    found = draw_candidates(space, 20, seed=1)
    assert len(found) == 20
    assert all(type(one["x"]) is float and type(one["k"]) is int for one in found)
    assert draw_candidates(space, 20, seed=1) == found != draw_candidates(space, 20, seed=2)


def test_a_distribution_with_few_values_gives_as_many_candidates():
    assert sorted(one["k"] for one in draw_candidates({"k": stats.randint(0, 3)}, 10)) == [0, 1, 2]


def test_arrays_are_lists():
    assert draw_candidates({"x": np.array([0.5, 1.5])}) == [{"x": 0.5}, {"x": 1.5}]


def test_distributions_of_optuna():
    optuna = pytest.importorskip("optuna")
    d = optuna.distributions
    space = {
        "x": d.FloatDistribution(1e-3, 1, log=True),
        "s": d.FloatDistribution(0, 1, step=0.25),
        "k": d.IntDistribution(2, 8, step=2),
        "c": d.CategoricalDistribution(["a", "b"]),
    }
    for one in draw_candidates(space, 30):
        for name, value in one.items():
            assert space[name]._contains(space[name].to_internal_repr(value))
    listed = draw_candidates({name: space[name] for name in ("s", "k", "c")})
    assert len(listed) == 5 * 4 * 2
    assert {type(one["k"]) for one in listed} == {int}


@pytest.mark.parametrize(
    ("space", "number", "said"),
    [
        ({}, None, "space must have at least one setting, got {}"),
        ([1], None, "space must be a dictionary of settings"),
        ({3: [1]}, None, "space must have names as keys, got 3"),
        ({"x": []}, None, "space must give 'x' at least one value"),
        ({"x": "abc"}, None, "space must give 'x' a list"),
        ({"x": 3}, None, "space must give 'x' a list"),
        ({"x": (1, 2, 3)}, 5, "space must give 'x' as a tuple"),
        ({"x": ("a", "b")}, 5, "space must give 'x' as a tuple"),
        ({"x": (2.0, 1.0)}, 5, "space must give 'x' a range from low to high, got 2.0 to 1.0"),
        ({"x": (0.0, 1.0, "log")}, 5, "space must give 'x' a positive range for its logarithm"),
        ({"x": (0.0, math.inf)}, 5, "space must give 'x' a range from low to high"),
        ({"x": (0.0, 1.0)}, None, "n must be given for a space that cannot be listed, got None: 'x' has a range"),
        ({"x": stats.norm()}, None, "n must be given for a space that cannot be listed, got None: 'x' has a distrib"),
        ({"x": (1, 1000), "y": (1, 1000)}, None, "n must be given for a space of 1,000,000 candidates, got None"),
        ({"x": [1]}, 0, "n must be at least 1, got 0"),
        ({"x": [1]}, 1.5, "n must be a whole number, got 1.5"),
    ],
)
def test_what_is_refused(space, number, said):
    with pytest.raises(InvalidArgument) as error:
        draw_candidates(space, number)
    assert str(error.value).startswith(said)
