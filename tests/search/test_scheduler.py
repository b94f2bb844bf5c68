"""Rounds, learned costs and noise, and what is known of candidates."""

from typing import Any

import numpy as np
import pytest

from mfbandit import UCB, Fidelities, MFBayes, MFTopTwo, SubGaussian
from mfbandit.search.fit_and_score import FitResult, Trial
from mfbandit.search.learned_fidelities import learned_costs, noise_scales
from mfbandit.search.scheduler import PlannedSplits, SearchScheduler
from mfbandit.search.score_estimates import min_useful_score
from mfbandit.search.split_effects import SplitAdjustedPolicy

COSTS = (1 / 16, 1 / 4, 1.0)


def begun(policy=None, **arguments):
    given: dict[str, Any] = {"costs": COSTS, "names": ("1/16", "1/4", "1"), "capital": 20.0} | arguments
    fidelities = Fidelities(given.pop("costs"), given.pop("biases", None), names=given.pop("names"))
    return SearchScheduler(policy or MFBayes(), given.pop("labels", ["a", "b", "c", "d"]), fidelities, **given)


def spend(scheduler, score, batch=1, seconds=lambda _, m: COSTS[m]):
    rng = np.random.default_rng(0)
    while asked := scheduler.ask(batch):
        outcomes = [
            FitResult(score(play.arm, play.fidelity, rng), seconds(play.arm, play.fidelity)) for play, _ in asked
        ]
        scheduler.tell(asked, outcomes)
    return scheduler


def noisy(arm, fidelity, rng):
    return 0.5 + 0.1 * arm - 0.2 / (1 + fidelity) + rng.normal(scale=0.02)


class TestRounds:
    def test_first_plays_do_not_wait_for_each_other(self):
        assert [play.arm for play, _ in begun().ask(1)] == [0, 1, 2, 3]

    def test_with_a_clock_they_do(self):
        assert len(begun(seconds=True).ask(1)) == 1

    def test_a_batch(self):
        scheduler = begun()
        scheduler.tell(asked := scheduler.ask(1), [FitResult(0.5 + play.arm / 10, 1.0) for play, _ in asked])
        assert len(scheduler.ask(3)) == 3
        assert len(scheduler.experiment.pending) == 3

    def test_when_all_have_seen_all_splits_it_ends(self):
        scheduler = spend(
            begun(UCB(), costs=(1.0,), names=("1",), capital=1000, splits=PlannedSplits(max_splits=3)), noisy
        )
        assert scheduler.experiment.stats.counts.tolist() == [[3, 3, 3, 3]]
        assert scheduler.best() == 3
        assert [trial.split for trial in scheduler.trials if trial.arm == 0] == [0, 1, 2]

    def test_the_best_may_be_one_that_has_seen_all_splits(self):
        scheduler = spend(begun(splits=PlannedSplits(max_splits=2), capital=100), noisy)
        assert 3 in scheduler.experiment.retired
        assert scheduler.best() == 3

    def test_duplicates_are_not_compared_for_ever(self):
        scheduler = spend(begun(capital=40), lambda arm, m, rng: 0.9 if arm > 1 else noisy(arm, m, rng))
        assert scheduler.experiment.retired == (3,)
        assert scheduler.experiment.stats.counts[:, 3].sum() <= 5

    def test_those_alike_on_small_samples_alone_are_no_duplicates(self):
        scheduler = spend(
            begun(capital=40), lambda _, m, rng: 0.5 + rng.normal(scale=0.02) if m == 2 else 0.4 + 0.01 * m
        )
        assert not scheduler.experiment.retired

    def test_a_duplicate_is_not_recommended_for_its_early_luck(self):
        for seed in range(10):  # two that are the same, and one that is nearly as good
            luck = np.random.default_rng(seed).normal(0.5, 0.05, size=(2, 60))
            scheduler = begun(MFTopTwo(30), labels=["a", "b", "c"], costs=(1.0,), names=("1",), capital=30)
            while asked := scheduler.ask(1):
                scheduler.tell(asked, [FitResult(luck[play.arm // 2, split], 1.0) for play, split in asked])
            assert scheduler.best() not in scheduler.experiment.retired

    def test_unless_the_other_fails(self):
        scheduler = begun(MFTopTwo(30), labels=["a", "b", "c"], costs=(1.0,), names=("1",), capital=30)
        while asked := scheduler.ask(1):
            scheduler.tell(
                asked,
                [
                    FitResult(np.nan if split > 3 else 0.9 if play.arm < 2 else 0.1 * split, 1.0)
                    for play, split in asked
                ],
            )
        assert scheduler.experiment.retired == (1,)
        assert scheduler.best() == 1

    def test_nothing_is_left_to_decide_among_duplicates(self):
        scheduler = begun(MFTopTwo(200), capital=200)
        while not scheduler.decided() and (asked := scheduler.ask(1)):
            scheduler.tell(asked, [FitResult(0.5, 1.0) for _ in asked])
        assert scheduler.decided()
        assert scheduler.experiment.spent < 20


class TestDecided:
    def test_not_without_two_plays_at_the_top(self):
        scheduler = begun()
        assert not scheduler.decided()
        scheduler.tell(asked := scheduler.ask(1), [FitResult(float(play.arm), 1.0) for play, _ in asked])
        assert not scheduler.decided()

    def test_once_it_is_clear(self):
        scheduler = spend(begun(capital=100), noisy)
        known = scheduler.estimates()
        assert scheduler.decided()
        assert known.lower[3] > known.upper[:3].max()
        assert (known.lower <= known.estimate).all()

    def test_three_plays_of_two_candidates_do_not_tell(self):
        wrong = 0
        for seed in range(20):
            rng, scheduler = np.random.default_rng(seed), begun(MFTopTwo(10), labels=["a", "b"], capital=10)
            while not scheduler.decided() and (asked := scheduler.ask(1)):
                scheduler.tell(asked, [FitResult(0.7 + rng.normal(scale=0.03), 1.0) for _ in asked])
            wrong += scheduler.decided()
        assert wrong <= 2

    def test_never_among_equals(self):
        assert not spend(begun(), lambda _, __, rng: rng.normal()).decided()


class TestLearns:
    def test_costs(self):
        scheduler = spend(
            begun(seconds=True, capital=50.0), noisy, seconds=lambda arm, m: (1 + arm) * (0.1, 0.5, 2.0)[m]
        )
        assert np.array(scheduler.experiment.fidelities.costs) == pytest.approx([0.25, 1.25, 5.0], rel=0.3)
        assert scheduler.experiment.spent == pytest.approx(sum(trial.cost for trial in scheduler.trials))
        assert scheduler.experiment.spent <= 50 + 8

    def test_a_first_fit_beyond_the_capital_is_the_last(self):
        scheduler = spend(begun(seconds=True, capital=1.0), noisy, seconds=lambda *_: 5.0)
        assert len(scheduler.trials) == 1
        assert scheduler.fidelities.costs == (5, 20, 80)

    def test_costs_increase_whatever_the_clock_says(self):
        made = [Trial(0, 0, 0, 2.0, FitResult(0.5, 2.0)), Trial(0, 1, 0, 1.0, FitResult(0.5, 1.0))]
        costs = learned_costs(made, np.array([0.5, 1.0]), 1)
        assert costs is not None
        assert costs[0] < costs[1]

    def test_noise(self):
        scheduler = spend(begun(UCB(), capital=100), noisy)
        assert scheduler.experiment.fidelities.tails[-1].scale == pytest.approx(0.02, rel=0.5)
        assert scheduler.fidelities.tails[0].scale == scheduler.fidelities.tails[-1].scale  # where nothing was played

    def test_a_given_noise_stays(self):
        scheduler = spend(begun(UCB(), noise=SubGaussian(0.3)), noisy)
        assert scheduler.fidelities.tails == (SubGaussian(0.3),) * 3

    def test_noise_of_equal_scores_is_above_zero(self):
        scheduler = spend(begun(UCB(), capital=8), lambda *_: 0.5)
        assert (noise_scales(scheduler.experiment.stats) > 0).all()

    def test_hopeless_scores_are_shown_as_the_minimum(self):
        scheduler = begun()
        scheduler.tell(
            asked := scheduler.ask(1), [FitResult((-1000.0, 0.3, 0.4, 0.5)[play.arm], 1.0) for play, _ in asked]
        )
        least = min_useful_score(scheduler.results)
        assert least == pytest.approx(0.1)
        policy, stats = scheduler.experiment.policy, scheduler.experiment.stats
        assert isinstance(policy, SplitAdjustedPolicy)
        assert policy.min_score == least
        assert np.ptp(policy.adjusted(stats).sums[0]) == pytest.approx(0.5 - least)
        assert scheduler.results.sums[0, 0] == stats.sums[0, 0] == -1000

    def test_with_biases_scores_are_as_they_are(self):
        scheduler = begun(biases=(0.2, 0.1, 0))
        scheduler.tell(
            asked := scheduler.ask(1), [FitResult((-9.0, 0.3, 0.4, 0.5)[play.arm], 1.0) for play, _ in asked]
        )
        assert scheduler.experiment.stats.sums[0, 0] == -9
