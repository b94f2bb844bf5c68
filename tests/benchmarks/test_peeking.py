"""The benchmark of daily looks, at tiny sizes: that its rules are what they are called."""

import numpy as np
import pytest
from scipy.stats import ttest_ind

import mfbandit as mfb
from benchmarks import peeking

VISITORS = 2000
HITS = np.array([[100, 131], [131, 100], [90, 160], [100, 100], [3, 40]])


def test_confidence_is_that_of_an_experiment():
    for row, level in zip(HITS, peeking.level(HITS, VISITORS), strict=True):
        fid = mfb.Fidelities([1], concentration=mfb.Bounded())
        exp = mfb.Experiment(mfb.UCB(), arms=2, fidelities=fid)
        for k in (0, 1):  # evenly spread: hits first and misses later would be a mean that changed
            hits = [(i + 1) * row[k] // VISITORS - i * row[k] // VISITORS for i in range(VISITORS)]
            exp.add_results([(k, 0, float(hit), None) for hit in hits])
        assert exp.confidence().level == pytest.approx(level, abs=1e-9)


def test_a_t_test_finds_what_scipy_finds():
    for row, won in zip(HITS, peeking.t_test(HITS, VISITORS), strict=True):
        samples = [np.arange(VISITORS) < hits for hits in row]
        assert (ttest_ind(*(sample.astype(float) for sample in samples)).pvalue < 0.05) == won


def test_probability_to_be_best_is_that_of_the_posteriors():
    rng = np.random.default_rng(0)
    three = np.array([[100, 131, 125]])
    draws = rng.beta(three[0] + 1, VISITORS - three[0] + 1, (200_000, 3))
    share = (draws.argmax(axis=1) == 1).mean()
    assert peeking.posterior(three, VISITORS)[0] == pytest.approx(share, abs=0.005)


def test_looking_every_day_misleads_the_others():
    case = peeking.Case("equal", (0.05, 0.05), 30)
    found = peeking.measured(case, runs=200, seed=0)
    wrong = {name: one["wrong by day"][-1] / 200 for name, one in found.items()}
    assert wrong[peeking.T_TEST] > 0.15
    assert wrong[peeking.POSTERIOR] > 0.3
    assert wrong[peeking.CONFIDENCE] <= 0.05


def test_a_winner_within_the_tolerance_is_right():
    case = peeking.Case("close", (0.05, 0.054), 1)
    ended, winner = np.array([1, 1, 0]), np.array([0, 1, -1])
    assert peeking.summary(case, ended, winner, tolerant=True)["right"] == 2
    assert peeking.summary(case, ended, winner, tolerant=False)["right"] == 1
