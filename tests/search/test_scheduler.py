"""Rounds, learned costs and noise, and how candidates stand."""

from typing import Any

import numpy as np
import pytest

from mfbandit import UCB, MFBayes, MFTopTwo, SubGaussian
from mfbandit.search.fit_and_score import Outcome
from mfbandit.search.scheduler import Trial, Trials, floor, learned_costs, noise_scales
from mfbandit.search.split_effects import Paired

COSTS = (1 / 16, 1 / 4, 1.0)


def begun(policy=None, **arguments):
    given: dict[str, Any] = {"costs": COSTS, "names": ("1/16", "1/4", "1"), "capital": 20.0} | arguments
    return Trials(policy or MFBayes(), given.pop("labels", ["a", "b", "c", "d"]), **given)


def spend(trials, score, batch=1, seconds=lambda _, m: COSTS[m]):
    rng = np.random.default_rng(0)
    while asked := trials.ask(batch):
        outcomes = [Outcome(score(play.arm, play.fidelity, rng), seconds(play.arm, play.fidelity)) for play, _ in asked]
        trials.tell(asked, outcomes)
    return trials


def noisy(arm, fidelity, rng):
    return 0.5 + 0.1 * arm - 0.2 / (1 + fidelity) + rng.normal(scale=0.02)


class TestRounds:
    def test_first_looks_do_not_wait_for_each_other(self):
        assert [play.arm for play, _ in begun().ask(1)] == [0, 1, 2, 3]

    def test_with_a_clock_they_do(self):
        assert len(begun(seconds=True).ask(1)) == 1

    def test_a_batch(self):
        trials = begun()
        trials.tell(asked := trials.ask(1), [Outcome(0.5 + play.arm / 10, 1.0) for play, _ in asked])
        assert len(trials.ask(3)) == 3
        assert len(trials.experiment.pending) == 3

    def test_all_used_up_is_the_end(self):
        trials = spend(begun(UCB(), costs=(1.0,), names=("1",), capital=1000, limit=3), noisy)
        assert trials.experiment.stats.counts.tolist() == [[3, 3, 3, 3]]
        assert trials.best() == 3
        assert [trial.split for trial in trials.made if trial.arm == 0] == [0, 1, 2]

    def test_the_best_may_be_one_that_is_used_up(self):
        trials = spend(begun(limit=2, capital=100), noisy)
        assert 3 in trials.experiment.retired
        assert trials.best() == 3

    def test_twins_are_not_compared_for_ever(self):
        trials = spend(begun(capital=40), lambda arm, m, rng: 0.9 if arm > 1 else noisy(arm, m, rng))
        assert trials.experiment.retired == (3,)
        assert trials.experiment.stats.counts[:, 3].sum() <= 5

    def test_those_alike_on_small_samples_alone_are_no_twins(self):
        trials = spend(begun(capital=40), lambda _, m, rng: 0.5 + rng.normal(scale=0.02) if m == 2 else 0.4 + 0.01 * m)
        assert not trials.experiment.retired

    def test_a_twin_is_not_recommended_for_its_early_luck(self):
        for seed in range(10):  # two that are the same, and one that is nearly as good
            luck = np.random.default_rng(seed).normal(0.5, 0.05, size=(2, 60))
            trials = begun(MFTopTwo(30), labels=["a", "b", "c"], costs=(1.0,), names=("1",), capital=30)
            while asked := trials.ask(1):
                trials.tell(asked, [Outcome(luck[play.arm // 2, split], 1.0) for play, split in asked])
            assert trials.best() not in trials.experiment.retired

    def test_unless_the_other_fails(self):
        trials = begun(MFTopTwo(30), labels=["a", "b", "c"], costs=(1.0,), names=("1",), capital=30)
        while asked := trials.ask(1):
            trials.tell(
                asked,
                [Outcome(np.nan if split > 3 else 0.9 if play.arm < 2 else 0.1 * split, 1.0) for play, split in asked],
            )
        assert trials.experiment.retired == (1,)
        assert trials.best() == 1

    def test_nothing_is_left_to_decide_among_twins(self):
        trials = begun(MFTopTwo(200), capital=200)
        while not trials.decided() and (asked := trials.ask(1)):
            trials.tell(asked, [Outcome(0.5, 1.0) for _ in asked])
        assert trials.decided()
        assert trials.experiment.spent < 20


class TestDecided:
    def test_not_without_two_plays_at_the_top(self):
        trials = begun()
        assert not trials.decided()
        trials.tell(asked := trials.ask(1), [Outcome(float(play.arm), 1.0) for play, _ in asked])
        assert not trials.decided()

    def test_once_it_is_clear(self):
        trials = spend(begun(capital=100), noisy)
        standing = trials.standing()
        assert trials.decided()
        assert standing.lower[3] > standing.upper[:3].max()
        assert (standing.lower <= standing.estimate).all()

    def test_three_plays_of_two_candidates_do_not_tell(self):
        wrong = 0
        for seed in range(20):
            rng, trials = np.random.default_rng(seed), begun(MFTopTwo(10), labels=["a", "b"], capital=10)
            while not trials.decided() and (asked := trials.ask(1)):
                trials.tell(asked, [Outcome(0.7 + rng.normal(scale=0.03), 1.0) for _ in asked])
            wrong += trials.decided()
        assert wrong <= 2

    def test_never_among_equals(self):
        assert not spend(begun(), lambda _, __, rng: rng.normal()).decided()


class TestLearns:
    def test_costs(self):
        trials = spend(begun(seconds=True, capital=50.0), noisy, seconds=lambda arm, m: (1 + arm) * (0.1, 0.5, 2.0)[m])
        assert np.array(trials.experiment.fidelities.costs) == pytest.approx([0.25, 1.25, 5.0], rel=0.3)
        assert trials.experiment.spent == pytest.approx(sum(trial.cost for trial in trials.made))
        assert trials.experiment.spent <= 50 + 8

    def test_a_first_fit_beyond_the_capital_is_the_last(self):
        trials = spend(begun(seconds=True, capital=1.0), noisy, seconds=lambda *_: 5.0)
        assert len(trials.made) == 1
        assert trials.fidelities.costs == (5, 20, 80)

    def test_costs_increase_whatever_the_clock_says(self):
        made = [Trial(0, 0, 0, 2.0, Outcome(0.5, 2.0)), Trial(0, 1, 0, 1.0, Outcome(0.5, 1.0))]
        costs = learned_costs(made, np.array([0.5, 1.0]), 1)
        assert costs is not None
        assert costs[0] < costs[1]

    def test_noise(self):
        trials = spend(begun(UCB(), capital=100), noisy)
        assert trials.experiment.fidelities.tails[-1].scale == pytest.approx(0.02, rel=0.5)
        assert trials.fidelities.tails[0].scale == trials.fidelities.tails[-1].scale  # where nothing was played

    def test_a_given_noise_stays(self):
        trials = spend(begun(UCB(), noise=SubGaussian(0.3)), noisy)
        assert trials.fidelities.tails == (SubGaussian(0.3),) * 3

    def test_noise_of_equal_scores_is_above_zero(self):
        trials = spend(begun(UCB(), capital=8), lambda *_: 0.5)
        assert (noise_scales(trials.experiment.stats) > 0).all()

    def test_hopeless_scores_are_taken_for_the_floor(self):
        trials = begun()
        trials.tell(asked := trials.ask(1), [Outcome((-1000.0, 0.3, 0.4, 0.5)[play.arm], 1.0) for play, _ in asked])
        least = floor(trials.results)
        assert least == pytest.approx(0.1)
        policy, stats = trials.experiment.policy, trials.experiment.stats
        assert isinstance(policy, Paired)
        assert policy.floor == least
        assert np.ptp(policy.adjusted(stats).sums[0]) == pytest.approx(0.5 - least)
        assert trials.results.sums[0, 0] == stats.sums[0, 0] == -1000

    def test_with_biases_scores_are_as_they_are(self):
        trials = begun(biases=(0.2, 0.1, 0))
        trials.tell(asked := trials.ask(1), [Outcome((-9.0, 0.3, 0.4, 0.5)[play.arm], 1.0) for play, _ in asked])
        assert trials.experiment.stats.sums[0, 0] == -9
