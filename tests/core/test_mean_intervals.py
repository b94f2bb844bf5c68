"""Intervals of single arms: they hold at any time, and never say more than the results."""

import numpy as np
import pytest

from mfbandit import Bounded, Fidelities, Rate, SubGaussian
from mfbandit.core import Stats, mean_intervals

BOTH = np.array([True, True])


@pytest.mark.parametrize(
    ("tail", "draw"),
    [
        (SubGaussian(0.5), lambda rng, mean, shape: rng.normal(mean, 0.5, shape)),
        (Bounded(), lambda rng, mean, shape: rng.beta(4 * mean, 4 * (1 - mean), shape)),
        (Rate(), lambda rng, mean, shape: (rng.random(shape) < mean).astype(float)),
    ],
)
def test_looked_at_all_the_time_they_hold_in_95_of_100_experiments(tail, draw):
    """400 experiments with a cheap fidelity that is off by nearly its bias; a standard deviation is 1.1 %."""
    fid, rng, runs, most = Fidelities([1, 10], [0.1, 0], tail), np.random.default_rng(7), 400, 200
    rewards = np.cumsum([draw(rng, mean, (runs, most)) for mean in (0.49, 0.4)], axis=2)
    missed, stats = np.zeros(runs, dtype=bool), Stats.empty(2, runs)
    for number in range(1, most + 1, 3):
        stats.counts[:], stats.sums[:] = number, rewards[:, :, number - 1]
        low, high = mean_intervals(stats, fid, np.arange(runs), BOTH, level=0.95)
        missed |= (low > 0.4) | (high < 0.4)
    assert missed.mean() <= 0.05 + 2 * 0.011
    assert np.median(high - low) < 0.35


def test_without_results_everything_is_possible():
    stats = Stats.empty(2, 2)
    for tail, ends in ((SubGaussian(0.5), (-np.inf, np.inf)), (Rate(), (0.0, 1.0))):
        low, high = mean_intervals(stats, Fidelities([1, 10], [0.1, 0], tail), np.array([1]), BOTH, level=0.95)
        assert (low[0], high[0]) == ends


def test_a_fidelity_that_does_not_count_changes_nothing_but_the_hedge():
    stats, fid = Stats.empty(2, 1), Fidelities([1, 10], [0.1, 0], SubGaussian(0.5))
    stats.counts[1], stats.sums[1] = 50, 20.0
    alone = mean_intervals(stats, fid, np.array([0]), np.array([False, True]), level=0.95)
    stats.counts[0], stats.sums[0] = 500, 450.0
    beside = mean_intervals(stats, fid, np.array([0]), np.array([False, True]), level=0.95)
    assert beside[0] <= alone[0] < alone[1] <= beside[1]
    both = mean_intervals(stats, fid, np.array([0]), BOTH, level=0.95)
    assert both[0] > both[1]  # 0.9 there and 0.4 here, 0.1 apart at most: nothing is left


def test_each_arm_has_its_own_whoever_else_is_asked_for():
    rng, stats, fid = np.random.default_rng(1), Stats.empty(2, 30), Fidelities([1, 10], [0.1, 0], SubGaussian(0.5))
    stats.counts[:] = rng.integers(0, 20, (2, 30))
    stats.sums[:] = stats.counts * rng.random(30)
    all_low, all_high = mean_intervals(stats, fid, np.arange(30), BOTH, level=0.9)
    for arm in (0, 7, 29):
        low, high = mean_intervals(stats, fid, np.array([arm]), BOTH, level=0.9)
        assert (low[0], high[0]) == (all_low[arm], all_high[arm])
