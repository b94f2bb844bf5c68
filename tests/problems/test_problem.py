import math
import re
from typing import Any

import numpy as np
import pytest

from mfbandit import Bernoulli, Bounded, Fidelities, Gaussian, Problem, Replay, SubGaussian

FID = Fidelities([1, 10], [0.2, 0], SubGaussian(0.1))
BITS = Fidelities([1, 10], [0.2, 0], Bounded())


def test_truth_and_gaps():
    problem = Problem([[0.5, 0.5, 0.4], [0.4, 0.6, 0.6]], FID, Gaussian(0.1))
    assert problem.best_mean == 0.6
    assert problem.optimal.tolist() == [1, 2]
    assert problem.gaps == pytest.approx([0.2, 0, 0])
    assert problem.arms == 3


def test_means_cannot_be_changed_from_outside():
    given = np.array([[0.5], [0.5]])
    problem = Problem(given, FID, Gaussian(0.1))
    given[0, 0] = 9
    assert problem.means[0, 0] == 0.5
    with pytest.raises(ValueError, match="read-only"):
        problem.means[0, 0] = 9


def test_gaussian_rewards_have_the_mean_and_deviation_of_their_fidelity():
    problem = Problem([[0.5], [0.4]], FID, Gaussian([0.3, 0.1]))
    rng = np.random.default_rng(1)
    for m, (mean, sigma) in enumerate([(0.5, 0.3), (0.4, 0.1)]):
        rewards = np.array([problem.draw(0, m, rng) for _ in range(20_000)])
        assert rewards.mean() == pytest.approx(mean, abs=4 * sigma / math.sqrt(20_000))
        assert rewards.std() == pytest.approx(sigma, rel=0.03)


def test_bernoulli_rewards():
    problem = Problem([[0.3], [0.4]], BITS, Bernoulli())
    rng = np.random.default_rng(1)
    rewards = np.array([problem.draw(0, 1, rng) for _ in range(20_000)])
    assert set(rewards.tolist()) == {0.0, 1.0}
    assert rewards.mean() == pytest.approx(0.4, abs=4 * math.sqrt(0.24 / 20_000))


def test_replay_draws_from_the_table():
    past = Replay([[[0.1, 0.2, 0.6]]])
    problem = Problem(past.means, Fidelities([1]), past)
    rng = np.random.default_rng(1)
    rewards = [problem.draw(0, 0, rng, earlier=n) for n in range(300)]
    assert {round(reward, 1) for reward in rewards} == {0.1, 0.2, 0.6}
    assert past.lengths.tolist() == [[3]]


def test_replay_in_order_runs_dry():
    past = Replay([[[0.1, 0.2]]], replace=False)
    problem = Problem(past.means, Fidelities([1]), past)
    rng = np.random.default_rng(1)
    assert [problem.draw(0, 0, rng, earlier=n) for n in range(2)] == [0.1, 0.2]
    with pytest.raises(ValueError, match="earlier must be the number of earlier plays"):
        problem.draw(0, 0, rng)
    with pytest.raises(RuntimeError, match="exhausted: arm 0 has 2 recorded rewards at fidelity 0"):
        problem.draw(0, 0, rng, earlier=2)


ANYTHING: Any = ["gaussian", Bernoulli, [1, 10]]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: Problem([[0.5, 0.5]], FID, Gaussian(1)),
            "means must have shape (M, K) with M = 2 fidelities, got (1, 2)",
        ),
        (lambda: Problem([0.5, 0.5], FID, Gaussian(1)), "got (2,)"),
        (lambda: Problem([[], []], FID, Gaussian(1)), "means must have at least one arm, got shape (2, 0)"),
        (
            lambda: Problem([[0.5], [math.nan]], FID, Gaussian(1)),
            "means must be finite, got nan for arm 0 at fidelity 1",
        ),
        (
            lambda: Problem([[0.5, 0.9], [0.5, 0.6]], FID, Gaussian(1)),
            "got 0.9 for arm 1 at fidelity 0, 0.3 from 0.6, and a bias of 0.2",
        ),
        (
            lambda: Problem([[1.1], [1.0]], BITS, Bernoulli()),
            "Bernoulli means must lie in [0, 1], got 1.1 for arm 0 at fidelity 0",
        ),
        (lambda: Gaussian(-1), "sigma must be finite and not negative, got -1"),
        (lambda: Gaussian([]), "sigma must be finite and not negative, got []"),
        (
            lambda: Problem([[0.5], [0.5]], FID, Gaussian([1, 1, 1])),
            "sigma must be one for all or one for each of the 2 fidelities",
        ),
        (
            lambda: Problem([[0.5], [0.5]], FID, ANYTHING[0]),
            "rewards must be Gaussian(sigma), Bernoulli() or Replay(samples)",
        ),
        (lambda: Problem([[0.5], [0.5]], BITS, ANYTHING[1]), "rewards must be Gaussian(sigma), Bernoulli() or Replay"),
        (lambda: Problem([[0.5], [0.5]], ANYTHING[2], Gaussian(1)), "fidelities must be a Fidelities, got [1, 10]"),
        (
            lambda: Problem([[0.5], [0.5]], FID, Replay([[[9.0]], [[9.0]]])),
            "means must be the averages of the samples (Replay.means), got 0.5 for arm 0 at fidelity 0",
        ),
        (
            lambda: Problem([[0.5], [0.5, 0.6]], FID, Gaussian(1)),
            "means must be numbers in a regular table, got [[0.5], [0.5, 0.6]]",
        ),
        (lambda: Gaussian(ANYTHING[0]), "sigma must be numbers in a regular table, got 'gaussian'"),
        (lambda: Replay([[["a"]]]), "samples of arm 0 at fidelity 0 must be numbers in a regular table, got ['a']"),
        (lambda: Replay([]), "samples must have a row for each fidelity"),
        (lambda: Replay([[[1.0]], [[1.0], [2.0]]]), "got rows of [1, 2] arms"),
        (lambda: Replay([[[]]]), "samples of arm 0 at fidelity 0 must be a list of at least one finite number"),
        (lambda: Replay([[[1.0, math.nan]]]), "at least one finite number"),
        (
            lambda: Problem([[0.5], [0.5]], FID, Replay([[[0.5]]])),
            "samples must match means of shape (2, 1), got a table of shape (1, 1)",
        ),
    ],
)
def test_bad_input(make, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        make()


def test_means_outside_their_bounds_on_purpose():
    problem = Problem([[0.5, 0.9], [0.5, 0.6]], FID, Gaussian(1), misspecified=True)
    assert problem.misspecified


def test_unknown_biases_bound_nothing():
    assert Problem([[5.0], [0.0]], Fidelities([1, 2]), Gaussian(1)).arms == 1
