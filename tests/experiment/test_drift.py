import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mfbandit import MFUCB, UCB, Bounded, Counts, Experiment, Fidelities, MFBayes, Rate, SubGaussian
from mfbandit.core import STATS_ARRAYS
from mfbandit.errors import InvalidArgument
from mfbandit.experiment.events import ArmForgotten, BiasRefuted, DriftFound

ONE = Fidelities([1], concentration=SubGaussian(0.2))
TWO = Fidelities([1, 10], [0.2, 0], SubGaussian(0.2))


def made(fidelities=ONE, arms=("a", "b", "c"), policy=None, **options):
    return Experiment(policy or UCB(), arms=list(arms), fidelities=fidelities, **options)


def told(experiment, arm, mean, number, fidelity=0, seed=0):
    rng = np.random.default_rng(seed)
    experiment.add_results([(arm, fidelity, float(rng.normal(mean, 0.2)), None) for _ in range(number)])


class TestWhatIsFound:
    def test_says_which_arm_since_when_and_by_how_much(self):
        experiment = made()
        told(experiment, "a", 0.5, 30)
        told(experiment, "b", 0.8, 100, seed=1)
        told(experiment, "b", 0.4, 60, seed=2)
        (found,) = experiment.drift()
        assert (found.label, found.fidelity) == ("b", 0)
        assert 80 <= found.since <= 125
        assert found.results == found.since + 30
        assert (found.before, found.after) == pytest.approx((0.8, 0.4), abs=0.12)
        (event,) = [event for event in experiment.log if isinstance(event, DriftFound)]
        assert (event.arm, event.since) == (1, found.since)
        said = experiment.status()["warnings"]
        assert said == [f"WARNING: {found.sentence[:-1]}; `forget` begins it anew"]
        assert experiment.headline().doubt == "its mean at fidelity 0 has changed, and old results count"

    @pytest.mark.parametrize("tail", [Rate(), Bounded()], ids=repr)
    def test_counts_of_a_fading_ad(self, tail):
        experiment = made(Fidelities([1], concentration=tail))
        for rate in (70, 70, 70, 70, 70, 20, 20, 20, 20):
            experiment.add_results([("a", 0, Counts(rate, 1000), None)])
        (found,) = experiment.drift()
        assert (found.since, found.before, found.after) == (5000, 0.07, pytest.approx(0.02))

    def test_nothing_is_said_where_the_noise_is_not_known(self):
        experiment = made(Fidelities([1]), policy=MFBayes())
        told(experiment, "a", 0.8, 40)
        told(experiment, "a", 0.2, 40)
        assert experiment.drift() == ()

    def test_a_change_is_said_once(self):
        experiment = made()
        told(experiment, "a", 0.8, 50)
        told(experiment, "a", 0.2, 200)
        assert sum(isinstance(event, DriftFound) for event in experiment.log) == 1

    def test_no_claim_is_made_until_the_arm_begins_anew(self):
        experiment = made(arms=["a", "b"])
        told(experiment, "b", 0.1, 60, seed=3)
        told(experiment, "a", 0.9, 60)
        assert experiment.confidence().level > 0.9
        told(experiment, "a", 0.5, 40)
        assert experiment.confidence().why == "the mean of a has changed; `forget` begins it anew"
        assert experiment.difference("a", "b").kind == "withheld"
        experiment.forget("a")
        told(experiment, "a", 0.5, 60)
        assert experiment.confidence().kind == "valid"
        assert experiment.confidence().level > 0.9
        assert "Means do not change over time." in experiment.confidence().assumes


class TestBias:
    def test_a_winner_that_fades_is_not_blamed_on_the_bias(self):
        experiment = made(TWO, policy=MFUCB(), arms=["a", "b"])
        told(experiment, "a", 0.8, 60)
        told(experiment, "a", 0.8, 30, fidelity=1, seed=1)
        told(experiment, "a", 0.2, 300, fidelity=1, seed=2)
        assert [one.fidelity for one in experiment.drift()] == [1]
        assert experiment.refuted == {}
        assert not any(isinstance(event, BiasRefuted) for event in experiment.log)
        assert not experiment.audit().alarm

    def test_nor_are_biases_widened(self):
        experiment = made(TWO, policy=MFUCB(), arms=["a", "b"], widen=True)
        told(experiment, "a", 0.8, 60)
        told(experiment, "a", 0.8, 30, fidelity=1, seed=1)
        told(experiment, "a", 0.2, 300, fidelity=1, seed=2)
        assert experiment.fidelities.biases == (0.2, 0.0)

    def test_a_bias_that_does_not_hold_is_still_refuted(self):
        experiment = made(TWO, policy=MFUCB(), arms=["a", "b"])
        told(experiment, "a", 0.8, 60)
        told(experiment, "a", 0.3, 60, fidelity=1, seed=1)
        assert list(experiment.refuted) == [(0, 0)]
        assert experiment.drift() == ()

    def test_one_that_was_refuted_before_the_change_was_found_holds_again(self):
        experiment = made(TWO, policy=MFUCB(), arms=["a", "b"])
        told(experiment, "a", 0.8, 60)
        told(experiment, "a", 0.3, 60, fidelity=1, seed=1)
        assert experiment.refuted
        told(experiment, "a", 0.9, 60, fidelity=1, seed=2)
        assert experiment.drift()
        assert not experiment.refuted
        assert not Experiment.from_json(experiment.to_json()).refuted


class TestForgetting:
    @given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 1), st.floats(-1, 2)), max_size=30), st.integers(0, 30))
    def test_only_later_results_of_the_arm_count(self, results, cut):
        experiment, fresh = made(TWO), made(TWO)
        past = [(arm, m, reward, None) for arm, m, reward in results]
        experiment.add_results(past[:cut])
        experiment.forget("b")
        experiment.add_results(past[cut:])
        fresh.add_results([one for place, one in enumerate(past) if place >= cut or one[0] != 1])
        for name in STATS_ARRAYS:
            assert np.array_equal(getattr(experiment.stats, name), getattr(fresh.stats, name))
        assert sum(experiment.results_at) == len(past)
        again = Experiment.from_json(experiment.to_json())
        assert np.array_equal(again.stats.sums, experiment.stats.sums)
        last = [made(TWO).stats, *experiment.folded.results_one_by_one()][-1]
        if past[cut:]:
            assert np.array_equal(last.sums, experiment.stats.sums)

    def test_each_new_beginning_needs_more_evidence(self):
        levels = []
        for times in (0, 1, 2):
            experiment = made(arms=["a", "b"])
            for _ in range(times):
                told(experiment, "a", 0.5, 1)
                experiment.forget("a")
            told(experiment, "a", 0.9, 15)
            told(experiment, "b", 0.5, 15)
            levels.append(experiment.confidence().level)
        assert levels[0] > levels[1] > levels[2] > 0

    def test_a_policy_that_remembers_forgets(self):
        experiment = made(ONE, policy=MFBayes())
        told(experiment, "a", 0.9, 5)
        told(experiment, "b", 0.5, 5)
        experiment.forget("a")
        assert experiment.best() == 1
        assert Experiment.from_json(experiment.to_json()).ask().arm == experiment.ask().arm

    def test_bad_arms_change_nothing(self):
        experiment = made()
        for bad in ("nobody", 3, -1, 1.5):
            with pytest.raises(InvalidArgument, match="arm must"):
                experiment.forget(bad)
        experiment.forget("a")  # nothing to forget
        assert experiment.log == ()
        told(experiment, "a", 0.5, 1)
        experiment.forget("a")
        assert experiment.log[-1] == ArmForgotten(0)
