"""The best arm: by results that count, never against the highest fidelity, and with its doubts."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

import mfbandit as mfb
from mfbandit.core import ruled_out
from mfbandit.core.audit import ALPHA

FID = mfb.Fidelities([1, 10, 60], [0.2, 0.1, 0], mfb.SubGaussian(0.1), ["a minute", "ten", "an hour"])
POLICIES = [mfb.MFUCB(), mfb.MFAda(), mfb.UCB(), mfb.MFBayes(), mfb.MFTopTwo(capital=1e6)]


@dataclass(frozen=True)
class Stubborn:
    """A policy of one's own that always recommends the first arm."""

    uses_biases: ClassVar[bool] = False

    def choose(self, stats, fidelities):
        return int(stats.active.argmax()), len(fidelities) - 1

    def index(self, stats, _fidelities):
        return np.zeros(len(stats.active))

    def recommend(self, _stats, _fidelities):
        return 0


def told(policy, *results, fidelities=FID, arms=("clickbait", "honest", "poor")):
    """An experiment with these results (arm, fidelity, reward, times)."""
    experiment = mfb.Experiment(policy, arms=list(arms), fidelities=fidelities)
    experiment.add_results([(arm, m, reward, None) for arm, m, reward, n in results for _ in range(n)])
    return experiment


def mixed(policy):
    """The clickbait is far ahead when it is cheap to look, and far behind at the highest fidelity."""
    every = [(arm, m, reward, 2) for arm, reward in (("honest", 0.6), ("poor", 0.1)) for m in (0, 1, 2)]
    return told(policy, ("clickbait", 0, 0.9, 100), ("clickbait", 1, 0.9, 100), ("clickbait", 2, 0.2, 20),
                *every, ("honest", 2, 0.6, 20))  # fmt: skip


class TestBest:
    @pytest.mark.parametrize("policy", [*POLICIES, Stubborn()], ids=lambda policy: type(policy).__name__)
    def test_no_policy_contradicts_what_the_highest_fidelity_has_settled(self, policy):
        experiment = mixed(policy)
        assert ruled_out(experiment.stats, experiment.fidelities)[0]
        assert experiment.arms[experiment.best()] == "honest"

    def test_a_refuted_fidelity_does_not_count(self):
        """Five results at the top refute the bias, too few to rule the arm out there."""
        experiment = told(mfb.MFUCB(), ("clickbait", 0, 0.9, 50), ("clickbait", 2, 0.3, 5), ("honest", 0, 0.5, 50),
                          ("honest", 2, 0.5, 30))  # fmt: skip
        assert {m for m, _ in experiment.refuted} == {0}
        assert not ruled_out(experiment.stats, experiment.fidelities).any()
        assert mfb.MFUCB().recommend(experiment.stats, FID) == 0
        assert experiment.best() == 1

    def test_it_does_not_count_for_other_arms_either(self):
        """A third arm has the best cheap results; as the bias does not hold for another, they say nothing."""
        experiment = told(mfb.MFUCB(), ("clickbait", 0, 0.9, 50), ("clickbait", 2, 0.3, 5), ("honest", 2, 0.5, 30),
                          ("poor", 0, 0.95, 100))  # fmt: skip
        assert mfb.MFUCB().recommend(experiment.stats, FID) == 2
        assert experiment.best() == 1

    def test_other_biases_make_it_count_again(self):
        experiment = told(mfb.MFUCB(), ("clickbait", 0, 0.9, 50), ("clickbait", 2, 0.3, 5), ("honest", 2, 0.5, 30))
        experiment.set_biases([0.9, 0.1, 0])
        assert experiment.refuted == {}
        assert experiment.headline() == mfb.experiment.Headline(1, None, None)

    def test_if_only_refuted_results_are_left_they_have_to_do(self):
        experiment = told(mfb.MFUCB(), ("clickbait", 0, 0.9, 50), ("clickbait", 2, 0.3, 5), ("poor", 0, 0.1, 9))
        experiment.retire_arm("clickbait")
        assert experiment.best() == 2

    def test_it_is_the_same_in_a_store_and_after_a_restart(self, tmp_path):
        with mfb.Store(tmp_path / "a.db") as store:
            kept = store.create("ads", mfb.MFUCB(), arms=["clickbait", "honest"], fidelities=FID)
            kept.add_results([("clickbait", 0, 0.9, None)] * 50 + [("honest", 2, 0.5, None)] * 30)
            kept.add_results([("clickbait", 2, 0.3, None)] * 5)
            before = kept.status()
        with mfb.Store(tmp_path / "a.db") as store:
            again = store.open("ads")
            assert again.status() == before
            assert (again.best(), before["runner_up_label"]) == (1, "clickbait")
            assert before["doubt"] == "results refute the assumed bias of fidelity a minute"


class TestRuledOut:
    def test_by_hand(self):
        experiment = mixed(mfb.MFUCB())
        assert ruled_out(experiment.stats, FID).tolist() == [True, False, True]

    def test_a_retired_arm_rules_out_none(self):
        experiment = mixed(mfb.MFUCB())
        experiment.retire_arm("honest")
        assert not ruled_out(experiment.stats, FID).any()

    def test_unknown_noise_settles_nothing(self):
        experiment = mixed(mfb.MFUCB())
        assert not ruled_out(experiment.stats, mfb.Fidelities([1, 10, 60])).any()

    def test_another_concentration_has_its_own_radius(self):
        class Own:
            nu = 1.0

            def psi(self, x):
                return 50.0 * x * x

            def psi_inv(self, y):
                return float(np.sqrt(y / 50.0))

        experiment = mixed(mfb.MFUCB())
        fidelities = mfb.Fidelities([1, 10, 60], [0.2, 0.1, 0], Own())
        assert ruled_out(experiment.stats, fidelities).tolist() == [True, False, True]

    def test_the_best_arm_is_hardly_ever_ruled_out_however_often_one_looks(self):
        """Two equal arms, a look after every result; the share of 2,000 runs in which one is ever ruled out."""
        rng, runs, plays = np.random.default_rng(0), 2000, np.arange(1, 201)
        means = rng.normal(0.0, 0.1, (runs, 2, len(plays))).cumsum(axis=2) / plays
        # Ruled out once the means are two radii apart, which is where ruled_out says so.
        limits = np.array([_distance_that_settles(int(n)) for n in plays])
        assert (np.abs(means[:, 0] - means[:, 1]) > limits).any(axis=1).mean() <= ALPHA


def _distance_that_settles(plays):
    """How far two arms with so many results must be apart, by bisection."""
    low, high, stats = 0.0, 10.0, mfb.core.Stats.empty(1, 2)
    stats.counts[:] = plays
    for _ in range(40):
        middle = (low + high) / 2
        stats.sums[0] = [0.0, middle * plays]
        low, high = (low, middle) if ruled_out(stats, FID.top)[0] else (middle, high)
    return high


class TestDoubt:
    def test_none_without_results(self):
        assert told(mfb.MFUCB()).headline() == mfb.experiment.Headline(None, None, None)

    def test_an_arm_without_a_result_at_the_top(self):
        found = told(mfb.MFUCB(), ("honest", 0, 0.9, 50), ("poor", 0, 0.1, 50)).headline()
        assert found == mfb.experiment.Headline(1, "it has no result at the highest fidelity yet", 2)

    def test_a_conflict_is_doubt_before_it_is_a_refutation(self):
        experiment = told(mfb.MFUCB(), ("clickbait", 0, 0.9, 50), ("clickbait", 2, 0.35, 1), ("honest", 2, 0.2, 9))
        assert experiment.refuted == {}
        found = experiment.headline()
        assert (found.best, found.runner_up) == (0, 1)
        assert found.doubt == (
            "its mean is 0.9 at fidelity a minute and 0.35 at an hour, which a bias of 0.2 hardly explains"
        )

    def test_no_doubt_where_everything_fits(self):
        assert told(mfb.MFUCB(), ("honest", 0, 0.6, 50), ("honest", 2, 0.5, 9)).headline().doubt is None

    def test_status_has_it(self):
        record = told(mfb.MFUCB(), ("honest", 0, 0.9, 50), ("poor", 0, 0.1, 50)).status()
        assert record["doubt"] == "it has no result at the highest fidelity yet"
        assert (record["runner_up"], record["runner_up_label"], record["widen"]) == (2, "poor", False)


class TestPoliciesWithoutBiases:
    @pytest.mark.parametrize("policy", [*POLICIES[2:], Stubborn()], ids=lambda policy: type(policy).__name__)
    def test_are_not_told_of_bias(self, policy):
        experiment = mixed(policy)
        assert experiment.refuted == {}
        assert experiment.status()["warnings"] == []
        assert experiment.headline().doubt is None
        assert not any(type(event).__name__ == "BiasRefuted" for event in experiment.log)
        assert experiment.audit().alarm  # whoever asks is answered

    def test_one_that_uses_them_is_told_when_it_takes_over(self):
        experiment = mixed(mfb.UCB())
        experiment.set_policy(mfb.MFUCB())
        assert {arm for _, arm in experiment.refuted} == {0}
        experiment.set_policy(mfb.MFBayes())
        assert (experiment.refuted, experiment.status()["warnings"]) == ({}, [])
