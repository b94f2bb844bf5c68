"""Results of blocks, such as days: what a block does to all arms alike is taken out."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mfbandit import (
    LUCB,
    MFUCB,
    UCB,
    Batch,
    Bounded,
    Conflict,
    Counts,
    Experiment,
    Fidelities,
    HalfLife,
    MFAuto,
    MFBayes,
    MFSure,
    MFTopTwo,
    Rate,
    SubGaussian,
    Sure,
    Thompson,
)
from mfbandit.core import STATS_ARRAYS
from mfbandit.errors import InvalidArgument
from mfbandit.experiment import block_sums
from mfbandit.experiment.codec import PackedLog
from mfbandit.experiment.events import ToldInBlock
from mfbandit.experiment.state import State
from tests.support.effort import examples
from tests.support.logs import ARMS, FIDELITIES, logs

TWO = Fidelities([1, 10], [0.2, 0], Bounded(-10, 10))
ONE = Fidelities([1], concentration=SubGaussian(0.5))
POLICIES = [MFUCB(), UCB(), MFAuto(), MFBayes(), MFTopTwo(capital=1e4), MFSure(), Thompson()]
MEMORIES = [None, HalfLife(plays=math.inf), HalfLife(plays=5)]
DAYS = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]


def made(policy=None, fidelities=TWO, arms=("a", "b", "c"), **options):
    return Experiment(policy or MFUCB(), arms=list(arms), fidelities=fidelities, **options)


def arrays(stats):
    return [None if getattr(stats, name) is None else getattr(stats, name).tolist() for name in STATS_ARRAYS]


def in_block(reward, block):
    match reward:
        case Counts(successes, trials):
            return Counts(successes, trials, block)
        case Batch(mean, weight, sd):
            return Batch(mean, weight, sd, block)
    return Batch(reward, 1, None, block)


rewards = st.sampled_from([0.25, 0.5, 1 / 3, -1.0, Counts(3, 10), Counts(1, 1), Batch(0.7, 4), Batch(0.7, 4, 0.1)])
steps = st.lists(st.tuples(rewards, st.sampled_from(["tell", "tell", "keep", "fail", "forget"])), max_size=20)


class TestOneBlock:
    @pytest.mark.parametrize("memory", MEMORIES, ids=repr)
    @pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: type(policy).__name__)
    @settings(max_examples=examples(12))
    @given(steps)
    def test_is_the_same_as_none_play_for_play(self, policy, memory, steps):
        ours, right = made(policy, memory=memory), made(policy, memory=memory)
        for reward, step in steps:
            if right.state != "running":
                break
            play, due = ours.ask(), right.ask()
            assert (play.arm, play.fidelity) == (due.arm, due.fidelity)
            for experiment, one in ((ours, play), (right, due)):
                if step == "fail":
                    experiment.fail(one)
                elif step != "keep":
                    experiment.tell(one, reward, block="only" if experiment is ours else None)
                if step == "forget":
                    experiment.forget(one.arm)
        assert arrays(ours.stats) == arrays(right.stats)
        assert ours.stats.time == right.stats.time
        assert (ours.spent, ours.results_at, ours.state) == (right.spent, right.results_at, right.state)
        assert (ours.drift(), ours.refuted) == (right.drift(), right.refuted)
        status, due = ours.status(), right.status()
        assert status["best"] == due["best"]
        if due["best"] is not None:
            assert ours.confidence() == right.confidence()
            assert ours.difference("a", "b") == right.difference("a", "b")

    def test_has_no_effect_and_no_price(self):
        experiment = made()
        assert experiment.block_effects() == {}
        experiment.add_results([("a", 1, Counts(300, 400, "mon"), None), ("b", 1, Counts(100, 400, "mon"), None)])
        assert experiment.block_effects() == {"mon": 0.0}


class TestLog:
    @pytest.mark.parametrize("memory", MEMORIES, ids=repr)
    @settings(max_examples=examples(30))
    @given(data=st.data())
    def test_many_events_at_once_are_those_one_by_one(self, memory, data):
        records = data.draw(logs())
        single, packed, parts = (State(MFUCB(), FIDELITIES, ARMS, 1e6, memory=memory) for _ in range(3))
        for record in records:
            single.apply(record.event)
        packed.apply_all(PackedLog.of_records(records))
        half = data.draw(st.integers(0, len(records)))
        for part in (records[:half], records[half:]):
            parts.apply_all(PackedLog.of_records(part))
        for other in (packed, parts):
            assert arrays(other.stats) == arrays(single.stats)
            assert arrays(other.told_stats) == arrays(single.told_stats)
            assert other.stats.time == single.stats.time
            assert other.block_effects == single.block_effects

    @pytest.mark.parametrize("memory", [None, HalfLife(plays=5)], ids=repr)
    @pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: type(policy).__name__)
    @settings(max_examples=examples(10))
    @given(st.lists(st.tuples(rewards, st.sampled_from([None, *DAYS]), st.booleans()), max_size=20))
    def test_read_again_gives_the_same_plays(self, policy, memory, steps):
        live = made(policy, memory=memory)
        for reward, block, keep in steps:
            if live.state != "running":
                break
            play = live.ask()
            if not keep:
                live.tell(play, reward, block=block)
        again = Experiment.from_json(live.to_json())
        assert arrays(again.stats) == arrays(live.stats)
        assert again.block_effects() == live.block_effects()
        assert again.log == live.log
        for _ in range(3):
            if live.state != "running":
                break
            play, other = live.ask(), again.ask()
            assert (play.arm, play.fidelity) == (other.arm, other.fidelity)
            live.tell(play, 0.5, block="sun")
            again.tell(other, 0.5, block="sun")
        assert arrays(again.stats) == arrays(live.stats)

    def test_the_same_result_of_another_block_is_a_conflict(self):
        experiment = made()
        play = experiment.ask()
        for _ in range(2):
            experiment.tell(play, 0.5, block="mon")
        with pytest.raises(Conflict, match="in block 'mon'"):
            experiment.tell(play, 0.5, block="tue")
        with pytest.raises(Conflict, match="in block 'mon'"):
            experiment.tell(play, 0.5)
        assert experiment.stats.counts.sum() == 1


class TestEffects:
    @settings(max_examples=examples(60))
    @given(st.integers(0, 10**6), st.booleans())
    def test_what_days_do_to_all_arms_is_taken_out(self, seed, whole):
        """Without noise, all differences are those of the arms, wherever enough arms share days."""
        rng = np.random.default_rng(seed)
        means, days = rng.uniform(0, 1, (2, 3)), rng.normal(0, 1, 7)
        experiment = made(fidelities=Fidelities([1, 10]), policy=MFBayes())
        told = [
            (k, m, Batch(means[m, k] + days[d], int(rng.integers(10**5, 10**6)), 0.0, DAYS[d]), None)
            for m in range(2)
            for k in range(3)
            for d in range(7)
            if whole or d == 0 or rng.random() < 0.5  # the first day links all arms
        ]
        experiment.add_results([told[i] for i in rng.permutation(len(told))])
        found = experiment.stats.means - experiment.stats.means[0, 0]
        assert found == pytest.approx(means - means[0, 0], abs=1e-3)
        squares = experiment.stats.squares / experiment.stats.counts
        assert squares == pytest.approx(experiment.stats.means**2, abs=1e-3)  # and no spread is left

    def test_counts_and_costs_are_as_they_were(self):
        experiment, plain = made(), made()
        for number, day in enumerate([*DAYS, *DAYS]):
            for one in (experiment, plain):
                one.tell(one.ask(), successes=number, trials=20, block=day if one is experiment else None)
        assert experiment.stats.counts.sum() == plain.stats.counts.sum()
        assert (experiment.spent, experiment.results_at) == (plain.spent, plain.results_at)
        assert experiment.history.sums.tolist() == plain.history.sums.tolist()

    def test_results_without_a_block_are_one_more(self):
        experiment = made(fidelities=ONE)
        experiment.add_results([(arm, 0, Batch(0.1 * arm, 100, 0.5), None) for arm in range(3)])
        assert experiment.block_effects() == {}
        experiment.add_results([(arm, 0, Batch(0.1 * arm + 1, 100, 0.5, "mon"), None) for arm in range(3)])
        effects = experiment.block_effects()
        assert list(effects) == ["", "mon"]
        assert effects["mon"] - effects[""] == pytest.approx(1, abs=0.01)
        assert np.diff(experiment.stats.means[0]) == pytest.approx([0.1, 0.1], abs=1e-9)

    def test_means_of_rates_stay_between_0_and_1(self):
        experiment = made(Thompson(), Fidelities([1], concentration=Rate()))
        for day, rates in (("mon", (0, 30, 100)), ("tue", (0, 100, 100)), ("wed", (0, 0, 100))):
            experiment.add_results([(arm, 0, Counts(rate, 100, day), None) for arm, rate in enumerate(rates)])
        experiment.add_results([(0, 0, Counts(0, 1000, "low"), None), (1, 0, Counts(0, 1000, "low"), None)])
        means = experiment.stats.means[0]
        assert ((means >= 0) & (means <= 1)).all()
        assert experiment.ask().arm in (0, 1, 2)

    def test_a_day_fades_with_its_results(self):
        experiment = made(fidelities=ONE, memory=HalfLife(plays=2))
        for day in DAYS * 3:
            experiment.add_results([(arm, 0, Batch(arm + 0.1 * len(day), 50, 0.1, day), None) for arm in range(3)])
        assert np.diff(experiment.stats.means[0]) == pytest.approx([1, 1], abs=0.02)
        assert set(experiment.block_effects()) == set(DAYS)

    def test_weights_that_grow_are_brought_down(self):
        experiment = made(fidelities=ONE, memory=HalfLife(plays=0.01))
        for number in range(10):
            for arm in range(3):
                experiment.add_results([(arm, 0, Batch(float(arm), 50, 0.1, DAYS[number % 7]), None)])
        assert np.isfinite(list(experiment.block_effects().values())).all()
        assert np.isfinite(experiment.stats.sums).all()

    def test_a_forgotten_arm_takes_its_days_with_it(self):
        forgetful, other = made(fidelities=ONE), made(fidelities=ONE)
        days = [
            (arm, 0, Batch(arm + shift, 100, 0.5, day), None) for day, shift in (("m", 0), ("t", 5)) for arm in (1, 2)
        ]
        forgetful.add_results([(0, 0, Batch(7.0, 100, 0.5, "m"), None), (0, 0, Batch(-7.0, 100, 0.5, "t"), None)])
        for experiment in (forgetful, other):
            experiment.add_results(days)
        forgetful.forget(0)
        assert forgetful.block_effects() == pytest.approx(other.block_effects())
        assert forgetful.stats.sums == pytest.approx(other.stats.sums)

    def test_a_new_arm_joins(self):
        experiment = made(fidelities=ONE)
        experiment.add_results(
            [(arm, 0, Batch(arm + s, 100, 0.5, d), None) for d, s in (("m", 0), ("t", 5)) for arm in (1, 2)]
        )
        experiment.add_arm("d")
        experiment.add_results([(3, 0, Batch(3.0, 100, 0.5, "m"), None)])
        assert np.diff(experiment.stats.means[0, 1:]) == pytest.approx([1, 1], abs=0.05)

    def test_plays_follow_the_arm_and_not_the_day(self):
        """An arm that was seen on bad days only is still the better one."""
        experiment = made(UCB(), ONE, ["good", "bad", "third"])
        for day, shift, arms in (("sat", -3.0, (0, 0, 0, 2)), ("tue", 0.0, (1, 1, 1, 2)), ("wed", 0.0, (0, 1))):
            experiment.add_results([(arm, 0, Batch((1.0, 0.0, -1.0)[arm] + shift, 50, 0.5, day), None) for arm in arms])
        raw = experiment.folded.told_stats.means[0]
        assert raw[0] < raw[1]
        assert experiment.best() == 0


class TestWhatIsSaid:
    def told(self, policy=None, days=("mon", "tue"), weight=200, **options):
        experiment = made(policy, ONE, ["a", "b"], **options)
        for day in days:
            past = [(arm, 0, Batch(mean, weight, 0.5, day), None) for arm, mean in (("a", 0.9), ("b", 0.1))]
            experiment.add_results(past)
        return experiment

    def test_a_confidence_is_an_estimate(self):
        found = self.told().confidence()
        assert (found.kind, found.level, found.best) == ("estimate", 0.95, 0)
        assert found.why == "what blocks do to all arms is learned from the results"
        assert "A block does the same to all arms." in found.assumes
        assert found.results == (4,)
        difference = self.told().difference("a", "b")
        assert (difference.kind, difference.level) == ("estimate", 0.95)
        assert difference.low < 0.8 < difference.high
        one = self.told(days=["mon", "mon"])
        assert (one.confidence().kind, one.difference("a", "b").kind) == ("valid", "valid")

    def test_both_reasons_are_said(self):
        found = self.told(memory=HalfLife(plays=100)).confidence()
        assert found.kind == "estimate"
        assert "old results fade" in found.why
        assert "blocks" in found.why

    def test_a_rule_for_stopping_needs_estimates(self):
        going = self.told(stop=Sure(0.9), days=["mon", "tue"], weight=2)
        going.add_results([(k % 2, 0, Batch(0.9 - 0.8 * (k % 2), 200, 0.5, DAYS[k // 2 % 7]), None) for k in range(28)])
        assert going.decided is None
        assert "cannot be met, as what blocks do to all arms is learned" in going.status()["warnings"][0]
        assert self.told(stop=Sure(0.9, estimates=True)).decided is not None

    @pytest.mark.parametrize("policy", [MFSure(), LUCB(best_mean=0.9, second_mean=0.1)], ids=repr)
    def test_a_policy_of_proofs_does_not_decide(self, policy):
        assert self.told(policy, days=["mon", "mon"], weight=2000).decided is not None
        assert self.told(policy, days=["mon", "tue"], weight=2).decided is None
        later = self.told(policy, days=["mon"], weight=2)
        later.add_results(
            [(k % 2, 0, Batch(0.9 - 0.8 * (k % 2), 9000, 0.5, DAYS[k // 2 % 7]), None) for k in range(28)]
        )
        assert later.decided is None

    def test_arms_that_share_no_day_are_not_compared(self):
        experiment = made(fidelities=ONE, arms=["a", "b"])
        experiment.add_results([("a", 0, Batch(0.9, 10**6, 0.5, "mon"), None)])
        experiment.add_results([("b", 0, Batch(0.1, 10**6, 0.5, "tue"), None)])
        assert experiment.confidence().level < 0.6
        difference = experiment.difference("a", "b")
        assert difference.low < -1
        assert difference.high > 1
        experiment.add_results(
            [(arm, 0, Batch(mean, 10**6, 0.5, "wed"), None) for arm, mean in (("a", 1.9), ("b", 1.1))]
        )
        assert experiment.confidence().level == 0.95

    def test_arms_that_hardly_share_days_count_as_what_links_them(self):
        linked, plain = made(fidelities=ONE, arms=["a", "b"]), made(fidelities=ONE, arms=["a", "b"])
        past = [("a", 0, "mon", 10**5), ("b", 0, "tue", 10**5), ("a", 0, "wed", 60), ("b", 0, "wed", 60)]
        linked.add_results([(arm, m, Batch(0.5, n, 0.5, day), None) for arm, m, day, n in past])
        plain.add_results([(arm, 0, Batch(0.5, 60, 0.5), None) for arm in ("a", "b")])
        ours, due = linked.difference("a", "b"), plain.difference("a", "b")
        assert due.high - due.low <= ours.high - ours.low <= 2 * (due.high - due.low)

    def test_too_many_blocks_are_not_compared(self, monkeypatch):
        monkeypatch.setattr(block_sums, "MAX_BLOCKS_COMPARED", 3)
        assert self.told(days=DAYS[:3]).confidence().kind == "estimate"
        many = self.told(days=DAYS)
        assert (many.confidence().kind, many.difference("a", "b").kind) == ("withheld", "withheld")
        assert many.confidence().why == "7 blocks of 2 arms are too many to be compared"

    def test_one_active_arm_is_the_best(self):
        experiment = self.told()
        experiment.retire_arm("b")
        assert experiment.confidence().level == 1

    def test_a_weekend_is_no_change_of_a_mean(self):
        swings, plain = made(fidelities=ONE, arms=["a", "b"]), made(fidelities=ONE, arms=["a", "b"])
        for number in range(60):
            weekend = number % 7 > 4
            for experiment in (swings, plain):
                block = f"day {number}" if experiment is swings else None
                past = [(k, 0, Batch(0.5 + 0.3 * k - weekend, 100, 0.5, block), None) for k in range(2)]
                experiment.add_results(past)
        assert plain.drift()
        assert swings.drift() == ()
        assert swings.best() == 1

    def test_a_bias_is_not_refuted_by_days(self):
        """Cheap looks on a good day, dear ones on a bad day."""
        fidelities = Fidelities([1, 10], [0.1, 0], SubGaussian(0.5))
        days, plain = made(fidelities=fidelities, arms=["a", "b"]), made(fidelities=fidelities, arms=["a", "b"])
        for experiment in (days, plain):
            good, bad = ("good", "bad") if experiment is days else (None, None)
            past = [(k, 0, Batch(1.5 + k, 1000, 0.5, good), None) for k in range(2)]
            past += [(k, 1, Batch(0.5 + k, 1000, 0.5, bad), None) for k in range(2)]
            past += [(k, 0, Batch(0.5 + k, 1000, 0.5, bad), None) for k in range(2)]
            experiment.add_results(past)
        assert plain.folded.difference(0, 0) == pytest.approx(0.5)
        assert days.folded.difference(0, 0) < 1e-3
        assert not days.refuted
        assert not days.audit().alarm


class TestBadInput:
    @pytest.mark.parametrize(
        "block", ["", "   ", "x" * 101, "two\nlines", "\ud800", 7, 7.5, True, ["mon"], b"mon", math.nan]
    )
    def test_no_block(self, block):
        experiment = made()
        play = experiment.ask()
        before = experiment.to_json()
        for kind in ({"reward": 0.5}, {"successes": 1, "trials": 2}, {"reward": 0.5, "weight": 3}):
            with pytest.raises(InvalidArgument, match="block must be text of 1 to 100 printable characters"):
                experiment.tell(play, **kind, block=block)
        with pytest.raises(InvalidArgument, match="block must be text"):
            Counts(1, 2, block)
        with pytest.raises(InvalidArgument, match="block must be text"):
            Batch(0.5, 2, block=block)
        assert experiment.to_json() == before

    def test_two_blocks(self):
        experiment = made()
        with pytest.raises(InvalidArgument, match="block must be that of the reward, which is 'mon', got 'tue'"):
            experiment.tell(experiment.ask(), Counts(1, 2, "mon"), block="tue")
        experiment.tell(experiment.ask(), Counts(1, 2, "mon"), block="mon")

    def test_a_bad_reward_in_a_block(self):
        experiment = made(fidelities=Fidelities([1], concentration=Rate()))
        play = experiment.ask()
        for bad in (2.0, math.nan, "x", None):
            with pytest.raises(InvalidArgument):
                experiment.tell(play, bad, block="mon")
        assert experiment.pending == (play,)
        assert experiment.block_effects() == {}

    def test_a_log_that_was_changed(self):
        experiment = made()
        experiment.tell(experiment.ask(), 0.5, block="mon")
        assert isinstance(experiment.log[-1], ToldInBlock)
        for bad in ('"block": ""', '"block": 7', '"block": null'):
            with pytest.raises(InvalidArgument):
                Experiment.from_json(experiment.to_json().replace('"block": "mon"', bad))
