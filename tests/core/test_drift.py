import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mfbandit import Bounded, Rate, SubGaussian
from mfbandit.core.drift import (
    PRIOR,
    SHARPNESS,
    ChangeMark,
    change,
    grid,
    is_checked,
    is_tested,
    log_prices,
    needed,
    place,
)
from mfbandit.experiment.change_points import ChangePoints

MEANS = np.linspace(-1, 2, 30_001)
SMALL = np.logspace(-13, -2, 500)
RATES = np.concatenate([SMALL, np.linspace(0.01, 0.99, 5001), 1 - SMALL])
sums = st.floats(0, 1)


def log_mixture(number, total, mean, prior, scale):
    """log of the normal mixture against a mean."""
    z = total - number * mean
    return z * z / (2 * scale**2 * (number + prior)) - 0.5 * np.log1p(number / prior)


gamma = np.vectorize(math.lgamma)


def log_beta_mixture(number, total, rate, a, b):
    """log of the mixture over Beta(a, b) against a rate."""
    mixed = gamma(a + total) - gamma(a) + gamma(b + number - total) - gamma(b) - gamma(a + b + number) + gamma(a + b)
    return mixed - total * np.log(rate) - (number - total) * np.log1p(-rate)


def log_centred(number, total, rate):
    """The same with the prior that is used before a mark: centred on the rate itself."""
    worth = grid()[place(number)] / SHARPNESS
    return log_beta_mixture(number, total, rate, worth * rate, worth * (1 - rate))


def log_later(number, total, rate, before):
    """The same with the two priors that are used after a mark, of which one is centred on what was seen before it."""
    seen = (before[1] + 0.5) / (before[0] + 1)
    worth = 1 / min(seen, 1 - seen)
    wide = log_beta_mixture(number, total, rate, 0.5, 0.5)
    return np.logaddexp(wide, log_beta_mixture(number, total, rate, worth * seen, worth * (1 - seen))) - math.log(2)


def mark(number, total):
    return ChangeMark(number, total, 9, place(number))


def evidence(tail, marks, number, total):
    found = change(tail, marks, number, total)
    assert found is not None
    return found.evidence


def weight(number):
    return -log_prices()[place(number)]


@given(st.integers(8, 1000), st.integers(1, 1000), sums, sums, st.sampled_from([0.1, 0.5]))
def test_gaussian_evidence_is_the_least_over_all_means(before, after, first, second, scale):
    total, rest = before * first, after * second
    prior = grid()[place(before)] / SHARPNESS
    both = log_mixture(before, total, MEANS, prior, scale) + log_mixture(after, rest, MEANS, PRIOR, scale)
    found = evidence(SubGaussian(scale), [mark(before, total)], before + after, total + rest)
    assert found == pytest.approx(both.min() + weight(before), abs=1e-2, rel=1e-3)


@given(st.integers(8, 1000), st.integers(1, 1000), sums, sums)
def test_evidence_of_rates_is_the_least_over_all_rates(before, after, first, second):
    total, rest = round(before * first), round(after * second)
    both = log_centred(before, total, RATES) + log_later(after, rest, RATES, (before, total))
    for tail in (Rate(), Bounded(0, 1)):
        found = evidence(tail, [mark(before, float(total))], before + after, float(total + rest))
        assert found == pytest.approx(both.min() + weight(before), abs=2e-2)
    percent = evidence(Bounded(0, 100), [mark(before, 100.0 * total)], before + after, 100.0 * (total + rest))
    assert percent == pytest.approx(found, abs=1e-6)


@pytest.mark.parametrize("rate", [0.02, 0.3, 0.5, 0.9])
def test_each_part_is_1_on_average_against_the_true_rate(rate):
    """So that the smallest over all rates is at most 1 on average: exactly, by adding up over all outcomes."""

    def chance(number, total):
        ways = math.lgamma(number + 1) - math.lgamma(total + 1) - math.lgamma(number - total + 1)
        return ways + total * math.log(rate) + (number - total) * math.log1p(-rate)

    before, after = 35, 20
    parts = [log_centred(before, k, rate) + chance(before, k) for k in range(before + 1)]
    assert math.fsum(map(math.exp, parts)) == pytest.approx(1)
    for seen in (0, 5, 35):
        parts = [log_later(after, k, rate, (before, seen)) + chance(after, k) for k in range(after + 1)]
        assert math.fsum(map(math.exp, parts)) == pytest.approx(1)


@given(st.integers(8, 10**9), st.integers(1, 10**9), st.floats(1e-6, 0.5), st.floats(0.1, 3), st.booleans())
def test_no_rate_explains_results_better_than_evidence_says(before, after, rate, factor, high):
    """Also with a billion observations: of any rate that could be the true one."""
    total, rest = round(before * rate), round(after * rate * factor)
    if high:
        total, rest = before - total, max(0, after - rest)
    rest = min(rest, after)
    if 0 in (total + rest, before + after - total - rest):
        return
    found = evidence(Rate(), [mark(before, float(total))], before + after, float(total + rest))
    near = np.concatenate([np.linspace(total / before, rest / after, 400), [rate, (total + rest) / (before + after)]])
    tried = near[(near > 0) & (near < 1)]
    both = log_centred(before, total, tried) + log_later(after, rest, tried, (before, total))
    assert found <= both.min() + weight(before) + 1e-4 + 1e-6 * abs(found)


def test_rewards_whose_sum_is_hardly_anything_are_no_evidence():
    assert change(Bounded(), [mark(100, 0.0)], 1000, 0.5) is None
    assert change(Bounded(), [mark(100, 100.0)], 1000, 999.5) is None
    assert evidence(Bounded(), [mark(100, 0.0)], 1000, 0.0) < 0


def test_weights_of_all_marks_add_up_to_no_more_than_one():
    assert sum(math.exp(weight(number)) for number in grid()) <= 1
    assert all(later <= math.ceil(1.25 * number) for number, later in zip(grid(), grid()[1:], strict=False))


@pytest.mark.parametrize(
    ("tail", "draw"),
    [
        (SubGaussian(0.3), lambda rng, n: rng.normal(0.4, 0.3, n)),
        (Rate(), lambda rng, n: (rng.random(n) < 0.05).astype(float)),
        (Bounded(0, 1), lambda rng, n: rng.uniform(0, 1, n)),
    ],
    ids=["gaussian", "rate", "uniform"],
)
def test_false_alarms_are_as_rare_as_promised(tail, draw):
    """With a level of one half: at most half of all runs ever reach it, however often one looks; seeds are fixed."""
    rng, alarms, runs = np.random.default_rng(7), 0, 60
    for _ in range(runs):
        values, points = draw(rng, 400), ChangePoints()
        totals, reached = np.cumsum(values), -math.inf
        for n in range(1, 401):
            points.see((0, 0), n - 1, n, float(totals[n - 1]), n)
            if n > 8 and is_checked(n - 1, n):
                reached = max(reached, evidence(tail, points.marks((0, 0)), n, float(totals[n - 1])))
        alarms += reached >= math.log(2)
    assert alarms <= 0.5 * runs


def test_few_marks_and_few_looks_however_many_results():
    points, looks = ChangePoints(), 0
    for n in range(1, 20_001):
        points.see((0, 0), n - 1, n, 0.0, n)
        looks += is_checked(n - 1, n)
    assert len(points.marks((0, 0))) < 80
    assert looks < 300  # some 32 for each doubling


def test_noise_of_another_kind_is_not_tested():
    class Wide(SubGaussian):
        def psi(self, x):
            return 0.5 * super().psi(x)

    assert not is_tested(Wide(0.2))
    assert change(Wide(0.2), [mark(8, 8.0)], 100, 8.0) is None
    assert change(SubGaussian(0.2), [], 100, 8.0) is None
    assert needed(0.5) == pytest.approx(math.log(200))


@example(8, 1, 0.0, 0.5, 2.0)
@given(st.integers(8, 1000), st.integers(1, 1000), sums, sums, st.floats(2, 50))
def test_what_cannot_matter_is_left_out(before, after, first, second, least):
    for tail in (SubGaussian(0.3), Rate()):
        marks = [mark(8, first * 8), mark(before, before * first)]
        given = marks, before + after, before * first + after * second
        whole, quick = change(tail, *given), change(tail, *given, least=least)
        found = -math.inf if whole is None else whole.evidence  # sums below 1 are no evidence
        assert found < least + 1e-9 if quick is None else quick.evidence <= found + 1e-9
