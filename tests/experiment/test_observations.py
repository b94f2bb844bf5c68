"""Many observations of one play: the same as single rewards, wherever plays do not count."""

import math
import statistics
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mfbandit import (
    IISE,
    LUCB,
    MFUCB,
    UCB,
    Batch,
    Bounded,
    Conflict,
    Counts,
    Experiment,
    Fidelities,
    MFAda,
    MFBayes,
    MFGrad,
    MFSure,
    MFTopTwo,
    Store,
    SubGaussian,
    Sure,
)
from mfbandit.core import STATS_ARRAYS, audit, bounds_table
from mfbandit.errors import InvalidArgument
from mfbandit.experiment import ConfidenceTrend
from mfbandit.experiment.events import Told, ToldBatch
from mfbandit.experiment.learned_noise import with_learned_noise
from mfbandit.policies.gaussian_chain import pooled_noise
from tests.support.effort import effort, examples

FIDELITIES = Fidelities([1, 10], [0.25, 0], Bounded())
ARMS = 3
POLICIES = [
    UCB(),
    UCB(kl=True),
    MFUCB(),
    MFUCB(kl=True),
    MFAda(),
    MFBayes(),
    MFTopTwo(capital=1e4),
    MFSure(),
    IISE(),
    LUCB(best_mean=0.7, second_mean=0.5),
    MFGrad(),
]
# What these recommend depends on observations alone, and neither on log t nor on what was spent.
WITHOUT_CLOCK = [MFBayes(), MFTopTwo(capital=1e4), MFSure(), IISE(proved=True), MFGrad()]
LOG_T = [MFUCB(), MFUCB(kl=True), MFUCB(rho=0.5)]


def by_name(policy):
    return repr(policy)


@st.composite
def counted(draw):
    """Counts of some plays, each with its arm and fidelity."""
    trials = draw(st.integers(1, 40))
    arm, fidelity = draw(st.integers(0, ARMS - 1)), draw(st.integers(0, 1))
    return arm, fidelity, Counts(draw(st.integers(0, trials)), trials)


results = st.lists(counted(), min_size=1, max_size=12)


def one_by_one(told):
    """The same observations as single rewards: they cost nothing but the first of each play."""
    for arm, fidelity, counts in told:
        steps = [number * counts.successes // counts.trials for number in range(counts.trials + 1)]
        rewards = [float(after - before) for before, after in pairwise(steps)]  # evenly spread
        for number, reward in enumerate(rewards):
            yield arm, fidelity, reward, None if number == 0 else 0.0


def make(policy, fidelities=FIDELITIES):
    return Experiment(policy, arms=ARMS, fidelities=fidelities)


def both(policy, told, fidelities=FIDELITIES):
    many, single = make(policy, fidelities), make(policy, fidelities)
    many.add_results([(arm, fidelity, counts, None) for arm, fidelity, counts in told])
    single.add_results(one_by_one(told))
    return many, single


def arrays(stats):
    return [getattr(stats, name).tolist() for name in ("counts", "sums", "squares", "freedom", "means")]


@pytest.mark.parametrize("policy", POLICIES, ids=by_name)
@settings(max_examples=examples(6))
@given(told=results)
def test_counts_are_single_rewards_to_the_last_bit(policy, told):
    many, single = both(policy, told)
    assert repr(arrays(many.stats)) == repr(arrays(single.stats))  # as text, where NaN is NaN
    assert many.spent == single.spent == sum(FIDELITIES.costs[fidelity] for _, fidelity, _ in told)
    assert many.results_at == [sum(fidelity == m for _, fidelity, _ in told) for m in range(2)]
    assert many.stats.time == 1 + len(told)
    audits = [audit(made.stats, FIDELITIES, ["a"] * ARMS) for made in (many, single)]
    assert repr(audits[0]) == repr(audits[1])


@settings(max_examples=examples(20))
@given(told=results)
def test_evidence_is_that_of_single_rewards(told):
    made = [one.findings() for one in both(MFSure(), told)]
    many, single = (replace(one, stats=replace(one.stats, memory=None), drifted=frozenset()) for one in made)
    sure, expected = (found.confidence(0.9) for found in (many, single))
    assert (sure.best, sure.level, sure.could_lose) == (expected.best, expected.level, expected.could_lose)
    assert (sure.rivals, sure.could_be_ahead) == (expected.rivals, expected.could_be_ahead)


@pytest.mark.parametrize("policy", WITHOUT_CLOCK, ids=by_name)
@settings(max_examples=examples(10))
@given(told=results)
def test_what_has_no_clock_recommends_the_same_arm(policy, told):
    many, single = (replace(made.stats, memory=None) for made in both(UCB(), told))
    assert policy.recommend(many, FIDELITIES) == policy.recommend(single, FIDELITIES)


@pytest.mark.parametrize("policy", LOG_T, ids=by_name)
@settings(max_examples=examples(10))
@given(told=results)
def test_bounds_are_the_same_at_the_same_time(policy, told):
    many, single = (made.stats for made in both(policy, told))
    table = bounds_table(many, FIDELITIES, policy.rho, "abc")
    assert table.plays.sum() == len(told)
    many.__dict__["time"] = single.time  # t counts plays
    assert policy.index(many, FIDELITIES).tolist() == policy.index(single, FIDELITIES).tolist()
    assert policy.choose(many, FIDELITIES) == policy.choose(single, FIDELITIES)


@pytest.mark.parametrize("policy", POLICIES, ids=by_name)
@settings(max_examples=effort(1, 20), deadline=None)
@given(told=results, seed=st.integers(0, 99))
def test_a_store_has_what_memory_has(policy, told, seed, tmp_path_factory):
    rng = np.random.default_rng(seed)
    place = tmp_path_factory.mktemp("counts") / "s.db"
    memory = make(policy)
    with Store(place) as store:
        kept = store.create("e", policy, arms=ARMS, fidelities=FIDELITIES)
        for experiment in (memory, kept):
            experiment.add_results([(arm, fidelity, counts, None) for arm, fidelity, counts in told])
        for _ in range(6):
            trials = int(rng.integers(1, 50))
            successes = int(rng.integers(0, trials + 1))
            if memory.state == "decided":
                break
            ours, right = kept.ask(), memory.ask()
            assert (ours.arm, ours.fidelity) == (right.arm, right.fidelity)
            kept.tell(ours, successes=successes, trials=trials)
            memory.tell(right, successes=successes, trials=trials)
    with Store(place) as store:
        again = store.open("e")
        same(again, memory)
        assert again.decided == memory.decided
        if memory.decided is None:
            ours, right = again.ask(), memory.ask()
            assert (ours.arm, ours.fidelity) == (right.arm, right.fidelity)
    same(Experiment.from_json(memory.to_json()), memory)


def same(again, expected):
    for name in STATS_ARRAYS:
        found, right = getattr(again.stats, name), getattr(expected.stats, name)
        assert (found is None) == (right is None)
        assert found is None or found.tolist() == right.tolist()
    assert [e for e in again.log if isinstance(e, Told)] == [e for e in expected.log if isinstance(e, Told)]


class TestMeans:
    def test_a_spread_within_counts_as_if_each_observation_was_told(self):
        rng = np.random.default_rng(0)
        many, single = make(MFBayes(), Fidelities([1, 10])), make(MFBayes(), Fidelities([1, 10]))
        for _ in range(20):
            rewards, arm = rng.normal(3.0, 0.5, rng.integers(2, 30)).tolist(), int(rng.integers(ARMS))
            batch = Batch(statistics.fmean(rewards), len(rewards), statistics.stdev(rewards))
            many.add_results([(arm, 1, batch, None)])
            single.add_results([(arm, 1, reward, None) for reward in rewards])
        for name in ("sums", "squares"):
            assert getattr(many.stats, name) == pytest.approx(getattr(single.stats, name), rel=1e-12)
        assert many.stats.freedom.tolist() == single.stats.freedom.tolist()
        noise, expected = (pooled_noise(made.stats, [1], 1e-9)[0] for made in (many, single))
        assert noise == pytest.approx(expected, rel=1e-9)

    def test_without_it_the_noise_is_learned_from_the_means_of_batches(self):
        rng = np.random.default_rng(1)
        scale, arms = 0.5, 200
        made = Experiment(MFBayes(), arms=arms, fidelities=Fidelities([1]))
        for arm in range(arms):
            sizes = rng.integers(1, 50, 6)
            means = [float(rng.normal(arm, scale / math.sqrt(n))) for n in sizes]
            made.add_results([(arm, 0, Batch(mean, int(n)), None) for mean, n in zip(means, sizes, strict=True)])
        assert made.stats.freedom.sum() == arms * 5
        learned, enough = with_learned_noise(made.stats, Fidelities([1]))
        # 1,000 degrees of freedom: the standard error is 2.2 %. With one for each observation it would be 0.22.
        assert learned.tails[0].psi_inv(0.5) == pytest.approx(scale, rel=0.07)  # x²/(2σ²) = ½ at x = σ
        assert enough.all()

    def test_one_batch_without_it_says_nothing_about_the_noise(self):
        made = make(MFBayes(), Fidelities([1, 10]))
        made.add_results([(0, 0, Batch(0.5, 1000), None), (1, 0, Counts(500, 1000), None)])
        assert made.stats.freedom.tolist() == [[0, 999, 0], [0, 0, 0]]


class TestPlays:
    def test_a_batch_costs_one_play_and_takes_one_step_of_the_clock(self):
        made = Experiment(UCB(), arms=2, fidelities=Fidelities([2], None, Bounded()), capital=10)
        for play in made.plays():
            made.tell(play, successes=play.arm, trials=1000)
        assert (made.spent, made.stats.time, made.results_at) == (10.0, 6, [5])
        assert (made.observations_at, made.status()["observations"]) == ([5000], [5000])
        assert "observations" in str(made.bounds())

    def test_plays_ahead_are_of_several_arms_as_if_each_had_the_usual_number(self):
        made = Experiment(UCB(), arms=3, fidelities=Fidelities([1], None, Bounded()))
        for _ in range(9):
            play = made.ask()
            made.tell(play, successes=490 + 5 * play.arm, trials=1000)
        assert {play.arm for play in made.ask(6)} == {0, 1, 2}
        assert made.stats.observations.sum() == 15_000

    def test_an_experiment_is_decided_by_observations(self):
        made = Experiment(UCB(), arms=2, fidelities=Fidelities([1], None, Bounded()), stop=Sure(0.95))
        made.add_results([(0, 0, Counts(500, 1000), None), (1, 0, Counts(700, 1000), None)])
        assert made.decided is not None
        assert made.decided.arm == 1
        assert made.confidence().results == (2,)

    def test_the_trend_counts_observations(self):
        made = Experiment(UCB(), arms=2, fidelities=Fidelities([1], None, Bounded()))
        made.add_results([(k % 2, 0, Counts(300 + 100 * (k % 2), 1000), None) for k in range(4)])
        trend = ConfidenceTrend()
        while trend.lags(results=4):
            trend.add(made.folded.next_results(*trend.wanted), counted=(0,))
        assert trend.points[-1].level == made.confidence().level
        assert trend.points[-1].spent == 4

    def test_fidelities_that_change_let_a_policy_look_at_all_batches_again(self):
        others = Fidelities([1, 20], [0.25, 0], Bounded())
        changed, fresh = make(MFBayes()), make(MFBayes(), others)
        for made in (changed, fresh):
            made.add_results([(arm, 0, Counts(arm + 1, 10), None) for arm in range(ARMS)] * 2)
            made.add_results([(0, 1, 0.5, None), (1, 1, Batch(0.5, 4), None)])
        changed.set_fidelities(others)
        assert changed.stats.memory is not None
        assert repr(changed.stats.memory) == repr(fresh.stats.memory)


class TestOutcomes:
    @pytest.mark.parametrize("same", [{"successes": 1, "trials": 1}, {"reward": 1.0}, {"reward": 1, "weight": 1}])
    def test_one_observation_is_a_plain_result(self, same):
        made = make(UCB())
        play = made.ask()
        made.tell(play, **same)
        made.tell(play, 1.0)
        assert made.log[-1] == Told(0, 1.0, 10.0)
        assert made.stats.extra is None

    def test_another_result_is_a_conflict(self):
        made = make(UCB())
        play = made.ask()
        made.tell(play, successes=37, trials=1000)
        made.tell(play, successes=37, trials=1000)
        with pytest.raises(Conflict, match=r"37 of 1,000 at cost .*; got 38 of 1,000 at cost"):
            made.tell(play, successes=38, trials=1000)
        assert made.log[-1] == ToldBatch(0, 0.037, 10.0, 1000, None, 37)
        play = made.ask()
        with pytest.raises(Conflict, match="told twice"):
            made.tell_many([(play, Counts(1, 2), None), (play, 0.5, None)])

    def test_arrays_of_numpy_are_fine(self):
        made = make(UCB())
        made.tell(made.ask(), successes=np.int64(3), trials=np.int32(4))
        made.tell(made.ask(), reward=np.float32(0.5), weight=np.int64(3), sd=np.float64(0.25))
        assert Experiment.from_json(made.to_json()).log[:4] == made.log


REFUSED = [
    ({"successes": 5, "trials": 4}, "successes must lie in 0 to trials, which are 4, got 5"),
    ({"successes": -1, "trials": 4}, "successes must lie in 0 to trials, which are 4, got -1"),
    ({"successes": 0.5, "trials": 4}, "successes must be a whole number, got 0.5"),
    ({"successes": 2.0, "trials": 4}, "successes must be a whole number, got 2.0"),
    ({"successes": True, "trials": 4}, "successes must be a whole number, got True"),
    ({"successes": 1, "trials": math.nan}, "trials must be a whole number, got nan"),
    ({"successes": 0, "trials": 0}, "trials must be from 1 to 1000000000000, got 0"),
    ({"successes": 1, "trials": 10**13}, "trials must be from 1 to 1000000000000, got 10000000000000"),
    ({"successes": 1}, "successes and trials must be given together, got 1 and None"),
    ({"trials": 1}, "successes and trials must be given together, got None and 1"),
    ({"reward": 0.5, "successes": 1, "trials": 2}, "reward must be left out where successes are given, got 0.5"),
    ({"successes": 1, "trials": 2, "weight": 2}, "weight must be left out where successes are given, got 2"),
    ({"successes": 1, "trials": 2, "sd": 0.1}, "sd must be left out where successes are given, got 0.1"),
    ({"reward": 0.5, "weight": 0}, "weight must be from 1 to 1000000000000, got 0"),
    ({"reward": 0.5, "weight": -3}, "weight must be from 1 to 1000000000000, got -3"),
    ({"reward": 0.5, "weight": 2.5}, "weight must be a whole number, got 2.5"),
    ({"reward": math.nan, "weight": 2}, "reward must be finite, got nan"),
    ({"reward": 0.5, "weight": 2, "sd": math.nan}, "sd must be finite, got nan"),
    ({"reward": 0.5, "weight": 2, "sd": -0.1}, "sd must not be negative, got -0.1"),
    ({"reward": 0.5, "weight": 1, "sd": 0.1}, "sd must be 0 or left out where weight is 1, got 0.1"),
    ({"reward": 0.5, "sd": 0.1}, "weight must be given where sd is, got sd 0.1 alone"),
    ({"reward": 0.5, "weight": 10, "sd": 0.6}, "sd must be at most 0.527046 for 10 rewards in 0 to 1 of mean 0.5"),
    ({"reward": 1.5, "weight": 10}, "reward must lie in 0 to 1, as the fidelities say, got 1.5"),
    ({"reward": Counts(1, 2), "weight": 10}, "weight and sd must be left out where reward has its own"),
    ({"weight": 10}, "reward must be a number, got None"),
]


@pytest.mark.parametrize(("given", "message"), REFUSED, ids=[str(given) for given, _ in REFUSED])
def test_what_is_refused_changes_nothing(given, message):
    made = make(UCB())
    play = made.ask()
    before = made.to_json()
    with pytest.raises(InvalidArgument) as caught:
        made.tell(play, **given)
    assert str(caught.value).startswith(message)
    assert made.to_json() == before


@pytest.mark.parametrize(("low", "high"), [(2, 3), (0, 0.5), (0.5, 2)])
def test_counts_must_fit_the_range_of_rewards(low, high):
    made = Experiment(UCB(), arms=1, fidelities=Fidelities([1], None, Bounded(low, high)))
    with pytest.raises(InvalidArgument, match=rf"reward must lie in {low} to {high}, as the fidelities say"):
        made.tell(made.ask(), successes=1, trials=2)


def test_sums_of_squares_stay_finite():
    made = Experiment(UCB(), arms=1, fidelities=Fidelities([1], None, SubGaussian(1.0)))
    with pytest.raises(InvalidArgument, match=r"sqrt\(weight\) times reward and sd must be at most 1e\+150 in size"):
        made.tell(made.ask(), reward=1e149, weight=1000)


@pytest.mark.parametrize(
    "change",
    [{"weight": 0}, {"weight": 1}, {"successes": 11}, {"reward": 0.5}, {"sd": 0.1}, {"weight": "x"}, {"sd": -1}],
)
def test_a_log_of_impossible_counts_is_refused(change):
    made = make(UCB())
    made.tell(made.ask(), successes=3, trials=10)
    text = made.to_json()
    wrong = text.replace('"reward": 0.3', '"reward": 0.5') if "reward" in change else text
    for name, value in change.items():
        old = {"weight": "10", "successes": "3", "sd": "null"}.get(name, "")
        wrong = wrong.replace(f'"{name}": {old}', f'"{name}": {value!r}'.replace("'", '"')) if old else wrong
    assert wrong != text
    with pytest.raises(InvalidArgument, match="the log does not fit together"):
        Experiment.from_json(wrong)
