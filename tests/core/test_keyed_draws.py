"""Draws by a key: the distributions that they are named by; one at a time, many at once and compiled the same."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as reference

from mfbandit.core.keyed_arrays import betas_of, gammas_of, normals_of, uniforms_of
from mfbandit.core.keyed_draws import beta_of, gamma_of, keyed_normal, keyed_uniform, normal_of, stream, uniform_of
from mfbandit.simulation.engines.binding import compiled_function
from tests.support.effort import examples

NUMBERS = 64 * np.arange(20_000)
SEEDS, TIMES = st.integers(0, 2**70), st.integers(1, 2**40)


@given(SEEDS, TIMES, st.lists(st.integers(0, 2**31), min_size=1, max_size=20), st.floats(1.0, 1e9))
@settings(max_examples=examples(200))
def test_many_at_once_are_the_same(seed, t, numbers, shape):
    key, shapes, where = stream(seed, t), np.full(len(numbers), shape), np.array(numbers)
    assert uniforms_of(key, where).tolist() == [uniform_of(key, number) for number in numbers]
    assert normals_of(key, where).tolist() == [normal_of(key, number) for number in numbers]
    assert gammas_of(key, where, shapes).tolist() == [gamma_of(key, number, shape) for number in numbers]
    betas = betas_of(key, where, shapes, 2.0 * shapes)
    assert betas.tolist() == [beta_of(key, number, shape, 2.0 * shape) for number in numbers]


def test_compiled_they_are_the_same():
    compiled = {function: compiled_function(function) for function in (uniform_of, normal_of, gamma_of, beta_of)}
    rng = np.random.default_rng(0)
    for number in range(2000):
        key, (a, b) = stream(5, number + 1), 1.0 + rng.exponential(50.0, 2)
        for function, shapes in ((uniform_of, ()), (normal_of, ()), (gamma_of, (a,)), (beta_of, (a, b))):
            assert compiled[function](key, number, *shapes) == function(key, number, *shapes)


def test_the_keys_of_plays_and_of_words_of_a_seed_differ():
    assert len({stream(0, t) for t in range(1, 2001)}) == 2000
    assert len({stream(2**power, 1) for power in range(64)}) == 64
    assert stream(3, 7) == stream(3 + 2**64, 7)


def test_uniform_and_normal_by_seed_and_play():
    assert keyed_uniform(4, 9, 2) == uniform_of(stream(4, 9), 2)
    assert keyed_normal(4, 9, 2) == normal_of(stream(4, 9), 4)


# Kolmogorov and Smirnov on 20,000 draws; the seeds are fixed, and p above 0.001 is asked for.


def test_uniform_and_normal():
    assert reference.kstest(uniforms_of(stream(1, 1), NUMBERS), "uniform").pvalue > 1e-3
    assert reference.kstest(normals_of(stream(1, 2), NUMBERS), "norm").pvalue > 1e-3


@pytest.mark.parametrize("shape", [1.0, 1.5, 7.0, 400.0, 1e6])
def test_gamma(shape):
    drawn = gammas_of(stream(2, 1), NUMBERS, np.full(len(NUMBERS), shape))
    assert reference.kstest(drawn, reference.gamma(shape).cdf).pvalue > 1e-3


@pytest.mark.parametrize(("a", "b"), [(1.0, 1.0), (1.0, 30.0), (21.0, 981.0), (501.0, 2.0)])
def test_beta(a, b):
    drawn = betas_of(stream(3, 1), NUMBERS, np.full(len(NUMBERS), a), np.full(len(NUMBERS), b))
    assert reference.kstest(drawn, reference.beta(a, b).cdf).pvalue > 1e-3


def test_arms_and_plays_next_to_each_other_are_not_alike():
    by_play = np.array([normals_of(stream(0, t), 64 * np.arange(40)) for t in range(1, 2001)])
    limit = 4.5 / math.sqrt(len(by_play))
    assert abs(np.corrcoef(by_play[:-1, 0], by_play[1:, 0])[0, 1]) < limit
    between = np.corrcoef(by_play.T)[np.triu_indices(40, 1)]
    assert abs(between).max() < limit
