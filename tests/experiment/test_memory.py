import math
from datetime import timedelta

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mfbandit import MFUCB, UCB, Bounded, Counts, Experiment, Fidelities, HalfLife, MFBayes, MFTopTwo, SubGaussian, Sure
from mfbandit.core import STATS_ARRAYS
from mfbandit.errors import InvalidArgument
from mfbandit.experiment.codec import PackedLog
from mfbandit.experiment.events import TimePassed
from mfbandit.experiment.memory import LOOKS
from mfbandit.experiment.state import State
from tests.support.effort import examples
from tests.support.logs import ARMS, FIDELITIES, logs

TWO = Fidelities([1, 10], [0.2, 0], SubGaussian(0.2))
rewards = st.one_of(st.floats(-1, 2), st.just(Counts(37, 1000)), st.just(Counts(1, 3)))
POLICIES = [MFUCB(), UCB(rho=1.0), MFBayes(), MFTopTwo(capital=1e4)]


def made(memory=None, policy=None, fidelities=TWO, arms=("a", "b", "c"), **options):
    return Experiment(policy or MFUCB(), arms=list(arms), fidelities=fidelities, memory=memory, **options)


def arrays(stats):
    return [None if getattr(stats, name) is None else getattr(stats, name).tolist() for name in STATS_ARRAYS]


class TestInfinite:
    @pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: type(policy).__name__)
    @settings(max_examples=examples(8))
    @given(
        st.lists(st.tuples(rewards, st.sampled_from(["tell", "keep", "fail", "forget"])), max_size=20),
        st.sampled_from([HalfLife(plays=math.inf), HalfLife(time=math.inf)]),
    )
    def test_is_the_same_as_none_play_for_play(self, policy, steps, memory):
        ours, right = made(memory, policy), made(None, policy)
        for reward, step in steps:
            play, due = ours.ask(), right.ask()
            assert (play.arm, play.fidelity) == (due.arm, due.fidelity)
            for experiment, one in ((ours, play), (right, due)):
                if step == "fail":
                    experiment.fail(one)
                elif step != "keep":
                    experiment.tell(one, reward)
                if step == "forget":
                    experiment.forget(one.arm)
        assert arrays(ours.stats) == arrays(right.stats)
        assert ours.stats.time == right.stats.time
        assert (ours.spent, ours.results_at, ours.state) == (right.spent, right.results_at, right.state)
        assert ours.status()["best"] == right.status()["best"]
        if right.status()["best"] is not None:
            assert ours.confidence() == right.confidence()


class TestFading:
    @given(st.lists(st.tuples(st.integers(0, 2), st.floats(0, 1)), min_size=1, max_size=60), st.floats(0.5, 50))
    def test_counts_are_the_sums_of_weights(self, results, half_life):
        experiment = made(HalfLife(plays=half_life))
        experiment.add_results([(arm, 1, reward, None) for arm, reward in results])
        ages = np.arange(len(results))[::-1]
        weights, told = 0.5 ** (ages / half_life), np.array(results)
        stats = experiment.stats
        for arm in range(3):
            mine = told[:, 0] == arm
            number = weights[mine].sum()
            if number:
                assert stats.counts[1, arm] == max(1, round(number)) or abs(number % 1 - 0.5) < 1e-6
                mean = (weights[mine] * told[mine, 1]).sum() / number
                assert stats.means[1, arm] == pytest.approx(mean, abs=1e-9)
        assert experiment.results_at == [0, len(results)]

    def test_by_time(self):
        experiment, now = made(HalfLife(time=timedelta(hours=1))), 1e9
        experiment.clock = lambda: now
        experiment.add_results([("a", 1, Counts(80, 160), None)])
        now += 7200
        experiment.add_results([("a", 1, Counts(0, 160), None)])
        assert experiment.stats.counts[1, 0] == 200
        assert experiment.stats.means[1, 0] == pytest.approx(20 / 200)
        now -= 9999.0  # a clock that was put back changes nothing
        experiment.tell(experiment.ask(), 0.5)
        assert experiment.stats.counts[1, 0] == 200
        times = [event.at for event in experiment.log if isinstance(event, TimePassed)]
        assert times == [1e9, 1e9 + 7200]
        again = Experiment.from_json(experiment.to_json())
        assert (again.memory, arrays(again.stats)) == (experiment.memory, arrays(experiment.stats))

    def test_the_log_of_times_stays_short(self):
        experiment, now = made(HalfLife(time=1000.0)), 0.0

        def clock():
            nonlocal now
            now += 0.1
            return now

        experiment.clock = clock
        for _ in range(500):
            experiment.tell(experiment.ask(), 0.5)
        assert sum(isinstance(event, TimePassed) for event in experiment.log) <= LOOKS * now / 1000 + 1

    def test_weights_do_not_overflow(self):
        experiment = made(HalfLife(plays=0.001))
        for _ in range(20):
            experiment.tell(experiment.ask(), 0.5)
        assert np.isfinite(experiment.stats.sums).all()
        again, now = made(HalfLife(time=1.0)), 0.0
        again.clock = lambda: now
        again.tell(again.ask(), 0.5)
        now = 1e9
        again.tell(again.ask(), 0.5)
        assert np.isfinite(again.stats.sums).all()
        assert again.best() in (0, 1)

    @pytest.mark.parametrize("memory", [HalfLife(plays=3), HalfLife(time=100.0)], ids=repr)
    @settings(max_examples=examples(15))
    @given(data=st.data())
    def test_many_events_at_once_are_those_one_by_one(self, memory, data):
        records = data.draw(logs())
        single, packed = (State(MFUCB(), FIDELITIES, ARMS, 1e6, memory=memory) for _ in range(2))
        for record in records:
            single.apply(record.event)
        packed.apply_all(PackedLog.of_records(records))
        assert arrays(packed.stats) == arrays(single.stats)
        assert packed.stats.time == single.stats.time

    def test_a_winner_that_fades_is_left(self):
        rng = np.random.default_rng(1)
        one = Fidelities([1], concentration=Bounded())
        found = {}
        for memory in (None, HalfLife(plays=200)):
            experiment, rates = made(memory, UCB(rho=0.5), one, ["a", "b"]), [0.8, 0.6]
            for i in range(3000):
                rates[0] = 0.8 if i < 2000 else 0.4
                play = experiment.ask()
                experiment.tell(play, float(rng.random() < rates[play.arm]))
            found[memory] = experiment.best()
        assert found == {None: 0, HalfLife(plays=200): 1}


class TestWhatIsSaid:
    def told(self, memory, **options):
        experiment = made(memory, arms=["a", "b"], **options)
        past = [(arm, 1, mean, None) for _ in range(30) for arm, mean in (("a", 0.9), ("b", 0.1))]
        experiment.add_results(past)
        return experiment

    def test_a_confidence_is_an_estimate(self):
        found = self.told(HalfLife(plays=100)).confidence()
        assert (found.kind, found.level) == ("estimate", 0.95)
        assert found.why == "old results fade, as means may change"
        assert "Means change little within the half-life of 100 plays." in found.assumes
        assert "Means do not change over time." not in found.assumes
        difference = self.told(HalfLife(time=1e9)).difference("a", "b")
        assert (difference.kind, difference.level) == ("estimate", 0.95)

    def test_a_rule_for_stopping_needs_estimates(self):
        going = self.told(HalfLife(plays=100), stop=Sure(0.9))
        assert going.decided is None
        assert "the rule for stopping cannot be met, as old results fade" in going.status()["warnings"][0]
        assert self.told(HalfLife(plays=100), stop=Sure(0.9, estimates=True)).decided is not None

    def test_a_change_withholds_nothing_as_old_results_fade(self):
        experiment = self.told(HalfLife(plays=20))
        experiment.add_results([("a", 1, 0.2, None)] * 40)
        assert experiment.drift()
        assert experiment.confidence().kind == "estimate"
        assert experiment.status()["warnings"] == []
        assert experiment.refuted == {}


class TestBadInput:
    @pytest.mark.parametrize(
        ("given", "said"),
        [
            ({}, "in plays or in time, got neither"),
            ({"plays": 5, "time": 5}, "in plays or in time, got plays 5 and time 5"),
            ({"plays": 0}, "plays of a half-life must be positive, got 0"),
            ({"plays": -math.inf}, "plays must be"),
            ({"plays": math.nan}, "plays must be"),
            ({"time": "long"}, "time must be"),
            ({"time": timedelta(0)}, "time of a half-life must be positive, got 0"),
        ],
    )
    def test_no_half_life(self, given, said):
        with pytest.raises(InvalidArgument, match=said):
            HalfLife(**given)

    def test_no_memory(self):
        with pytest.raises(InvalidArgument, match="memory must be a HalfLife or None, got 500"):
            made(500)
        text = made(HalfLife(plays=5)).to_json().replace('{"plays": 5.0}', '{"plays": 5.0, "time": 5.0}')
        with pytest.raises(InvalidArgument, match="memory must have either plays or time"):
            Experiment.from_json(text)
