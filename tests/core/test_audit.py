"""The audit of assumed biases: by hand, and by simulation with fixed seeds."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mfbandit import MFUCB, UCB, Bounded, Experiment, Fidelities, MFBayes, Rate, Store, SubGaussian
from mfbandit.core.audit import ALPHA, PRIOR, audit, needed_bias, radius, refuting
from mfbandit.core.stats import Stats
from mfbandit.experiment.events import BiasesSet, BiasRefuted
from tests.support.effort import examples

FID = Fidelities([1, 10], [0.1, 0], SubGaussian(0.2))


def radii(plays, tests):
    return np.array([radius(n, n, 0.2, 0.2, tests) for n in plays])


def running_differences(rng, bias, runs, plays):
    """|top − low| after 1, 2, ... plays at each of both fidelities; shape (runs, plays)."""
    low, top = rng.normal(0.5, 0.2, (runs, plays)), rng.normal(0.5 + bias, 0.2, (runs, plays))
    return np.abs((top - low).cumsum(axis=1) / np.arange(1, plays + 1))


cells = st.tuples(st.sampled_from([0, 1, 5, 40, 300, 2000, 10**6]), st.floats(0, 1))


@settings(max_examples=examples(150))
@given(st.lists(st.tuples(cells, cells, cells), min_size=1, max_size=4), st.sampled_from([0.02, 0.1, 0.4]))
def test_what_refutes_biases_of_rates_is_what_an_audit_says(arms, bias):
    """Though most intervals are not computed, as a look in few places shows that they are not needed."""
    fidelities = Fidelities([1, 10, 100], [2 * bias, bias, 0], Rate())
    stats = Stats.empty(3, len(arms))
    for arm, column in enumerate(arms):
        for m, (count, rate) in enumerate(column):
            stats.counts[m, arm], stats.sums[m, arm] = count, round(count * rate)
    found = {(m, arm) for m, arm, _ in refuting(stats, fidelities)}
    said = audit(stats, fidelities, [str(arm) for arm in range(len(arms))])
    assert found == {(one.fidelity, arm) for one in said.fidelities for arm in one.refuting}


class TestBySimulation:
    def test_a_bias_that_holds_is_refuted_in_at_most_one_run_in_a_hundred(self):
        """Twenty arms that differ by all of ζ = 0.1, tested after every one of 2,000 plays; 1,000 runs."""
        rng = np.random.default_rng(1)
        limits = 0.1 + radii(range(1, 2001), tests=20)
        alarms = sum((running_differences(rng, 0.1, 20, 2000) > limits).any() for _ in range(1000))
        assert alarms <= 1000 * ALPHA

    def test_also_when_plays_are_unevenly_spread(self):
        """As above, with the top fidelity asked for ten times less often; 1,000 runs of 20 arms."""
        rng = np.random.default_rng(2)
        often = np.arange(10, 2001, 10)
        limits = 0.1 + np.array([radius(n, n // 10, 0.2, 0.2, 20) for n in often.tolist()])
        alarms = 0
        for _ in range(1000):
            low = rng.normal(0.5, 0.2, (20, 2000)).cumsum(axis=1)[:, often - 1] / often
            top = rng.normal(0.6, 0.2, (20, 200)).cumsum(axis=1) / np.arange(1, 201)
            alarms += bool((np.abs(top - low) > limits).any())
        assert alarms <= 1000 * ALPHA

    @pytest.mark.slow
    @pytest.mark.no_cover
    def test_also_when_the_policy_picks_the_plays(self):
        """Adaptive plays bend means; 150 experiments of MF-UCB on arms with biases within ζ, at its edge for half."""
        alarms = 0
        for run in range(150):
            rng = np.random.default_rng(1000 + run)
            experiment = Experiment(MFUCB(rho=0.3), arms=8, fidelities=FID)
            top = rng.uniform(0.4, 0.6, 8)
            low = top + rng.choice([-0.1, 0.1, 0.0, 0.05], 8)
            for _ in range(600):
                play = experiment.ask()
                mean = (low, top)[play.fidelity][play.arm]
                experiment.tell(play, float(rng.normal(mean, 0.2)))
            alarms += any(isinstance(event, BiasRefuted) for event in experiment.log)
        assert alarms <= 150 * ALPHA

    def test_twice_the_bias_is_found_by_400_plays(self):
        """One arm of twenty differs by 0.2 where ζ = 0.1: found in at least 95 % of 1,000 runs."""
        rng = np.random.default_rng(3)
        limits = 0.1 + radii(range(1, 401), tests=20)
        found = (running_differences(rng, 0.2, 1000, 400) > limits).any(axis=1).mean()
        assert found >= 0.95

    @pytest.mark.parametrize("arms", [2, 5, 20])
    @pytest.mark.parametrize("spread", [0.0, 0.05])
    def test_the_offsets_interval_covers_it(self, arms, spread):
        """Arms' differences scatter around −0.07; the interval covers that in at least 93 % of 1,000 runs."""
        rng = np.random.default_rng(4)
        covered = 0
        for _ in range(1000):
            stats = Stats.empty(2, arms)
            stats.counts[:] = rng.integers(1, 60, (2, arms))
            means = np.array([np.full(arms, 0.5), 0.5 - 0.07 + rng.normal(0, spread, arms)])
            stats.sums[:] = stats.counts * means + rng.normal(0, 0.2, (2, arms)) * np.sqrt(stats.counts)
            (one,) = audit(stats, FID, [str(k) for k in range(arms)]).fidelities
            covered += one.offset_low <= -0.07 <= one.offset_high
        assert covered >= 930


class TestByHand:
    def test_the_radius(self):
        spread = 0.04 * (400 + PRIOR) / 400**2 + 0.09 * (100 + PRIOR) / 100**2
        price = math.log(20 / 0.01) + 0.5 * math.log(1 + 400 / PRIOR) + 0.5 * math.log(1 + 100 / PRIOR)
        assert radius(400, 100, 0.2, 0.3, 20) == pytest.approx(math.sqrt(2 * spread * price))

    def test_of_an_experiment(self):
        experiment = Experiment(
            UCB(), arms=["a", "b", "c"], fidelities=Fidelities([1, 5, 10], [0.3, 0.1, 0], Bounded())
        )
        assert [one.arms for one in experiment.audit().fidelities] == [0, 0]
        assert math.isinf(experiment.audit().fidelities[0].enough)
        assert math.isnan(experiment.audit().fidelities[0].offset)
        experiment.add_results([("a", 0, 0.25, None), ("a", 2, 0.75, None), ("b", 1, 0.5, None)])
        low, middle = experiment.audit().fidelities
        assert (low.arms, low.offset, low.needed, middle.arms) == (1, 0.5, 0.0, 0)
        assert low.enough == 0.5 + radius(1, 1, 0.5, 0.5, 6)
        assert str(experiment.audit()).splitlines()[0].startswith("fidelity")

    def test_one_arm_and_one_fidelity(self):
        assert Experiment(UCB(), arms=1, fidelities=Fidelities([1], [0], Bounded())).audit().fidelities == ()

    def test_without_biases_it_still_measures(self):
        experiment = Experiment(MFBayes(), arms=2, fidelities=Fidelities([1, 10], concentration=SubGaussian(0.2)))
        experiment.add_results([(0, 0, 0.0, None), (0, 1, 5.0, None)] * 50)
        (one,) = experiment.audit().fidelities
        assert (one.bias, one.refuting) == (None, ())
        assert one.needed > 4
        assert not experiment.audit().alarm

    def test_without_a_noise_scale_it_says_so(self):
        experiment = Experiment(MFBayes(), arms=2, fidelities=Fidelities([1, 10]))
        with pytest.raises(ValueError, match="concentration must be SubGaussian or Bounded for an audit"):
            experiment.audit()


def refuted(arms=2):
    """An experiment whose second arm is 0.5 better at the top than below, where 0.1 was assumed."""
    experiment = Experiment(MFUCB(), arms=arms, fidelities=FID)
    experiment.add_results([(1, 0, 0.0, None), (1, 1, 0.5, None)] * 100)
    return experiment


class TestEvents:
    def test_the_first_refutation_is_in_the_log_once(self):
        experiment = refuted()
        alarms = [event for event in experiment.log if isinstance(event, BiasRefuted)]
        assert [(alarm.fidelity, alarm.arm) for alarm in alarms] == [(0, 1)]
        assert 0.1 < alarms[0].needed < 0.5
        assert experiment.audit().alarm
        assert experiment.audit().fidelities[0].refuting == (1,)
        assert (
            experiment.audit().warnings[0].startswith("WARNING: bias 0.1 of fidelity 0 is too small: 1 differs by more")
        )

    def test_the_clearest_come_first_and_many_are_counted(self):
        experiment = Experiment(MFUCB(), arms=9, fidelities=FID)
        experiment.add_results([x for k in range(9) for x in [(k, 0, 0.0, None), (k, 1, 0.5 + 0.1 * k, None)] * 100])
        (one,) = experiment.audit().fidelities
        assert one.refuting == (8, 7, 6, 5, 4, 3, 2, 1, 0)
        assert "8, 7, 6, 5, 4 and 4 more differ by more" in experiment.audit().warnings[0]

    def test_other_biases_end_the_alarm_and_change_the_plays(self):
        experiment = refuted()
        before = experiment.policy.index(experiment.stats, experiment.fidelities)
        experiment.set_biases([0.6, 0])
        experiment.set_biases([0.6, 0])
        assert not experiment.audit().alarm
        assert experiment.log.count(BiasesSet([0.6, 0.0])) == 1
        assert (experiment.policy.index(experiment.stats, experiment.fidelities) >= before).all()
        experiment.set_biases([0.05, 0])
        assert isinstance(experiment.log[-1], BiasRefuted)  # at once, not with the next result of that arm

    @pytest.mark.parametrize("biases", [[0.1], [0.1, 0.1], [0, 0.1], [0.1, 0.2, 0], ["x", 0], [math.nan, 0]])
    def test_biases_that_make_no_sense_change_nothing(self, biases):
        experiment = refuted()
        events = len(experiment.log)
        with pytest.raises(ValueError, match="biases must"):
            experiment.set_biases(biases)
        assert len(experiment.log) == events
        assert experiment.fidelities == FID

    def test_reopened_from_json_and_from_a_store(self, tmp_path):
        experiment = refuted()
        experiment.set_biases([0.05, 0])
        again = Experiment.from_json(experiment.to_json())
        assert again.log == experiment.log
        assert again.fidelities.biases == (0.05, 0.0)
        with Store(tmp_path / "a.db") as store:
            kept = store.create("a", MFUCB(), arms=2, fidelities=FID)
            kept.add_results([(1, 0, 0.0, None), (1, 1, 0.5, None)] * 100)
            kept.set_biases([0.05, 0])
        with Store(tmp_path / "a.db") as store:
            kept = store.open("a")
            assert kept.log[1:] == experiment.log  # the first says that it was opened
            assert kept.fidelities.biases == (0.05, 0.0)
            assert kept.audit() == again.audit()

    def test_the_scalar_and_the_table_agree(self):
        experiment = refuted(arms=5)
        assert experiment.audit().fidelities[0].needed == pytest.approx(
            needed_bias(experiment.stats, 0, 1, experiment.fidelities), abs=1e-15
        )
