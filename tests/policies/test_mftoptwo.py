"""MFTopTwo against the rule written out plainly, within its budget, and what must never happen."""

import json
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mfbandit import (
    Bernoulli,
    CapitalExhausted,
    Experiment,
    Fidelities,
    Gaussian,
    MFTopTwo,
    Problem,
    Stats,
    Store,
    check_policy,
    learning_curve_problem,
    simulate,
)
from mfbandit.core.budget import limit
from mfbandit.experiment.serialization import policy_from_record, policy_record
from mfbandit.policies.mftoptwo import MFTopTwoMemory
from mfbandit.policies.repetition import repeats_itself
from tests.support.contracts import assert_resumes_at_any_point
from tests.support.effort import examples
from tests.support.oracle_policies import TopTwo, check_chain, policy_plays, rule_plays
from tests.support.problems import small
from tests.support.strategies import problems

COSTS = Fidelities([1, 4, 16])


def full_look(problem):
    return problem.arms * problem.fidelities.costs[-1]


def naive_plays(problem, capital, n, seed):
    return rule_plays(problem, TopTwo(problem.fidelities, problem.arms, capital), n, seed)


def played_out(exp, reward):
    """Play until the capital is exhausted; the plays."""
    plays = []
    for i, play in enumerate(exp.plays()):
        exp.tell(play, reward(play, i))
        plays.append((play.arm, play.fidelity))
    return plays


@pytest.mark.no_cover
class TestPlays:
    @pytest.mark.parametrize("look", [0.05, 0.5, 2])
    @pytest.mark.parametrize("number", [1, 2, 3, 4])
    def test_policy_and_plain_rule(self, number, look):
        problem = small(number, 20)
        capital = look * full_look(problem)
        assert policy_plays(problem, MFTopTwo(capital), 200, 7, check_chain) == naive_plays(problem, capital, 200, 7)

    @given(problems(max_arms=8), st.sampled_from([0.01, 0.1, 0.25, 0.7, 1.0, 3.0]), st.integers(0, 100))
    @settings(max_examples=examples(80), deadline=None)
    def test_on_any_problem(self, problem, look, seed):
        """Also beyond the budget, where it goes on as if there were none."""
        capital = look * full_look(problem)
        assert policy_plays(problem, MFTopTwo(capital), 60, seed, check_chain) == naive_plays(
            problem, capital, 60, seed
        )

    def test_the_sweep_reaches_all_arms_where_that_is_cheap_and_fewer_where_it_tells_nothing(self):
        assert MFTopTwo(100).stages(COSTS, arms=10) == ((1, 10),)
        assert MFTopTwo(319).stages(COSTS, arms=10) == ((1, 10), (2, 6))
        assert MFTopTwo(320).stages(COSTS, arms=10) == ((2, 10),)  # half of the capital pays for all at the highest
        flat = Fidelities([0.2, 0.41, 1])  # the lowest pays for 18 of 20, the next for 9
        assert MFTopTwo(5).stages(flat, arms=20) == ((1, 9),)
        assert MFTopTwo(5).stages(Fidelities([0.1, 0.41, 1]), arms=20)[0] == (0, 20)  # it is a screen for the next

    def test_a_budget_too_small_for_a_sweep(self):
        """The first ⌊¾C/λ⌋ arms at the lowest fidelity that is worth it, and at least one."""
        assert MFTopTwo(6).stages(COSTS, arms=20) == ((0, 4),)
        assert MFTopTwo(0.5).stages(COSTS, arms=20) == ((0, 1),)
        exp = Experiment(MFTopTwo(6), arms=20, fidelities=COSTS, capital=6)
        plays = played_out(exp, lambda play, _: play.arm / 10)
        assert plays[:4] == [(0, 0), (1, 0), (2, 0), (3, 0)]
        assert {arm for arm, _ in plays} == {0, 1, 2, 3}
        assert exp.best() == 3

    def test_one_arm_and_one_fidelity(self):
        exp = Experiment(MFTopTwo(5), arms=1, fidelities=Fidelities([1]), capital=5)
        assert played_out(exp, lambda _, i: float(i)) == [(0, 0)] * 5
        assert exp.best() == 0

    def test_finds_the_best_arm(self):
        problem = Problem([[0.1, 0.5, 0.4], [0.3, 0.4, 0.6]], Fidelities([1, 10]), Gaussian(0.05))
        capital = 4 * full_look(problem)
        hits = 0
        for seed in range(20):
            rng, exp = (
                np.random.default_rng(seed),
                Experiment(MFTopTwo(capital), arms=3, fidelities=problem.fidelities, capital=capital),
            )
            played_out(exp, lambda play, _, rng=rng: problem.draw(play.arm, play.fidelity, rng))
            hits += exp.best() == 2
        assert hits >= 19


class TestBudget:
    @given(problems(max_arms=8), st.floats(0.02, 3), st.integers(0, 100))
    @settings(max_examples=examples(60), deadline=None)
    def test_never_more_than_the_budget_and_never_much_less(self, problem, look, seed):
        capital = look * full_look(problem)
        policy, rng = MFTopTwo(capital), np.random.default_rng(seed)
        lowest = policy.stages(problem.fidelities, problem.arms)[0].fidelity
        if capital < problem.fidelities.costs[lowest]:
            return
        exp = Experiment(
            policy,
            arms=problem.arms,
            fidelities=replace(problem.fidelities, concentration=None, biases=None),
            capital=capital,
        )
        played_out(exp, lambda play, _: problem.draw(play.arm, play.fidelity, rng))
        assert exp.spent <= limit(capital)
        assert exp.state == "exhausted"
        assert capital - exp.spent <= problem.fidelities.costs[lowest]

    @pytest.mark.parametrize("capital", [1000, None])
    def test_with_more_capital_it_goes_on(self, capital):
        exp = Experiment(MFTopTwo(50), arms=3, fidelities=COSTS, capital=capital)
        rng = np.random.default_rng(0)
        for _ in range(60):
            play = exp.ask()
            exp.tell(play, rng.normal(play.arm))
        assert exp.spent > 50
        assert exp.best() == 2

    def test_a_comparison_needs_both(self):
        """The rest pays for one play at the top, where no arm was played: it goes on below."""
        exp = Experiment(MFTopTwo(60), arms=9, fidelities=COSTS, capital=60)
        plays = played_out(exp, lambda play, i: play.arm / 9 + 0.01 * (i % 3))
        assert MFTopTwo(60).stages(COSTS, arms=9) == ((0, 9), (1, 5))  # and 31 of 60 are left
        assert {fidelity for _, fidelity in plays[14:]} <= {0, 1}

    def test_pending_plays_count_as_spent(self):
        exp = Experiment(MFTopTwo(50), arms=4, fidelities=COSTS, capital=50)
        plays = exp.ask(100)
        assert 50 - sum(play.cost for play in plays) < 4
        with pytest.raises(CapitalExhausted):
            exp.ask()
        exp.fail(plays[-1])
        assert exp.ask().cost <= plays[-1].cost


class TestWithoutNoise:
    """Every play gives the mean: what was played once is known."""

    FIDELITIES = Fidelities([1, 4, 16, 64])

    def played_out(self, policy, arms=60, capital=600.0, noise=0.0):
        means = np.random.default_rng(5).normal(size=(4, arms)).cumsum(axis=0)
        rng = np.random.default_rng(6)
        exp = Experiment(policy, arms=arms, fidelities=self.FIDELITIES, capital=capital)
        plays = played_out(exp, lambda play, _: means[play.fidelity, play.arm] + noise * rng.normal())
        return exp, plays, means

    def test_declared_no_arm_is_played_twice_at_a_fidelity(self):
        exp, plays, means = self.played_out(MFTopTwo(600, deterministic=True))
        assert len(set(plays)) == len(plays)
        (first, n), (middle, some), (last, few) = exp.policy.stages(self.FIDELITIES, 60)
        assert plays[:n] == [(k, first) for k in range(n)]
        ranked = np.argsort(-means[first, :n], kind="stable")[:some].tolist()
        assert [arm for arm, _ in plays[n : n + some]] == ranked
        ranked = sorted(ranked, key=lambda k: -means[middle, k])[:few]
        assert plays[n + some : n + some + few] == [(k, last) for k in ranked]
        assert 600 - exp.spent < 64

    def test_found_out_by_three_plays(self):
        declared, plays, _ = self.played_out(MFTopTwo(600, deterministic=True))
        exp, undeclared, _ = self.played_out(MFTopTwo(600))
        twice = [play for play in set(undeclared) if undeclared.count(play) > 1]
        assert len(twice) == 3
        assert len(undeclared) == len(set(undeclared)) + 3
        assert exp.best() == declared.best()
        assert len(plays) - len(undeclared) < 10

    def test_one_play_shows_noise(self):
        _, plays, _ = self.played_out(MFTopTwo(600), noise=0.01)
        n = MFTopTwo(600).stages(self.FIDELITIES, 60)[0].arms
        assert [plays.count(play) for play in plays[:n]].count(2) >= 1
        assert plays[n][1] == 1  # the best of the first stage again
        assert plays[n + 1][1] == 2

    def test_declared_noisy_it_does_not_look(self):
        _, plays, _ = self.played_out(MFTopTwo(600, deterministic=False))
        n = MFTopTwo(600).stages(self.FIDELITIES, 60)[0].arms
        assert plays[n][1] == 2

    def test_coarse_rewards_are_no_proof(self):
        """Zeros and ones, which every arm repeats by chance."""
        exp = Experiment(MFTopTwo(600), arms=60, fidelities=self.FIDELITIES, capital=600)
        played_out(exp, lambda play, _: float(play.arm % 2))
        assert repeats_itself(exp.stats) is None

    def test_with_more_capital_than_there_is_to_learn(self):
        exp = Experiment(MFTopTwo(2000, deterministic=True), arms=3, fidelities=COSTS, capital=2000)
        played_out(exp, lambda play, _: play.arm / 3)
        assert exp.best() == 2
        assert exp.stats.counts[-1].all()


class TestStages:
    def test_many_arms_are_promoted_in_steps(self):
        costs = Fidelities([1, 2, 4.6, 9, 18])
        assert MFTopTwo(540).stages(costs, arms=300) == ((0, 189), (2, 49), (4, 2))
        assert MFTopTwo(540, deterministic=True).stages(costs, arms=300) == ((0, 189), (2, 49), (4, 6))

    @given(
        st.lists(st.floats(0.01, 100), min_size=1, max_size=6, unique=True).map(sorted),
        st.integers(1, 500),
        st.floats(0.01, 10_000),
        st.sampled_from([None, True, False]),
    )
    @settings(max_examples=examples(100), deadline=None)
    def test_stages_fit_and_narrow(self, costs, arms, capital, deterministic):
        policy = MFTopTwo(capital, deterministic=deterministic)
        fidelities = Fidelities(costs)
        stages = policy.stages(fidelities, arms)
        assert all(low.fidelity < high.fidelity and low.arms >= high.arms for low, high in pairwise(stages))
        assert all(1 <= stage.arms <= arms and stage.fidelity in policy.kept(fidelities) for stage in stages)
        cost = sum(stage.arms * fidelities.costs[stage.fidelity] for stage in stages)
        assert cost <= limit(limit(capital)) or stages == ((policy.kept(fidelities)[0], 1),)

    def test_broken_arms_do_not_hide_the_others(self):
        """A fifth of the arms is worse by a thousand times the spread."""
        hits = 0
        for seed in range(20):
            rng = np.random.default_rng(seed)
            means = rng.normal(size=20)
            means[rng.permutation(20)[:4]] -= 1000
            exp = Experiment(MFTopTwo(160), arms=20, fidelities=COSTS, capital=160)
            played_out(exp, lambda play, _, rng=rng, means=means: means[play.arm] + 0.1 * rng.normal())
            hits += means[exp.best()] > means.max() - 0.2
        assert hits >= 19

    def test_pending_plays_are_not_promoted_twice(self):
        policy, fidelities = MFTopTwo(600, deterministic=True), Fidelities([1, 4, 16, 64])
        exp = Experiment(policy, arms=60, fidelities=fidelities)
        n, some = (stage.arms for stage in policy.stages(fidelities, 60)[:2])
        for play in exp.ask(n):
            exp.tell(play, float(play.arm))
        asked = exp.ask(some)
        assert [play.arm for play in asked] == list(range(59, 59 - some, -1))
        assert {play.fidelity for play in asked} == {2}


class TestAskTell:
    def test_keeps_the_contract(self):
        for capital in (1e-6, 1, 5, 40, 1e9):
            check_policy(MFTopTwo(capital))

    @pytest.mark.parametrize("batch", [1, 7])
    def test_resumed_at_any_point_it_goes_on_the_same(self, batch):
        problem = learning_curve_problem("cmc")
        capital = 3 * full_look(problem)
        exp = Experiment(MFTopTwo(capital), arms=problem.arms, fidelities=problem.fidelities)
        assert_resumes_at_any_point(exp, problem, batch)

    def test_kept_in_a_store(self, tmp_path):
        plain = Experiment(MFTopTwo(200), arms=6, fidelities=COSTS, capital=200)
        straight = played_out(plain, lambda play, i: np.sin(3.0 * i) + play.arm)
        with Store(tmp_path / "one.db") as store:
            exp = store.create("exp", MFTopTwo(200), arms=6, fidelities=COSTS, capital=200)
            first = []
            for i in range(8):
                play = exp.ask()
                exp.tell(play, np.sin(3.0 * i) + play.arm)
                first.append((play.arm, play.fidelity))
        with Store(tmp_path / "one.db") as store:
            exp = store.open("exp")
            assert exp.policy == MFTopTwo(200)
            rest = played_out(exp, lambda play, i: np.sin(3.0 * (i + 8)) + play.arm)
            assert first + rest == straight
            assert exp.best() == plain.best()

    def test_many_workers_from_the_start(self):
        """More workers than arms, before any result: each ask gets a play, untouched arms first."""
        exp = Experiment(MFTopTwo(1000), arms=3, fidelities=COSTS)
        plays = exp.ask(9)
        assert [play.arm for play in plays[:3]] == [0, 1, 2]
        assert sorted(play.arm for play in plays) == [0, 0, 0, 1, 1, 1, 2, 2, 2]

    def test_during_the_sweep_untouched_arms_first(self):
        exp = Experiment(MFTopTwo(1000), arms=5, fidelities=COSTS)
        exp.tell(exp.ask(), 0.5)
        assert [play.arm for play in exp.ask(4)] == [1, 2, 3, 4]
        assert exp.ask().arm == 0  # the only one with a result

    def test_pending_plays_spread_over_more_than_one_look(self):
        exp = Experiment(MFTopTwo(2000), arms=5, fidelities=COSTS)
        rng = np.random.default_rng(0)
        for _ in range(12):
            play = exp.ask()
            exp.tell(play, rng.normal(0, 0.1))
        values = exp.policy.index(exp.stats, COSTS)
        assert len({(play.arm, play.fidelity) for play in exp.ask(10)}) > 1
        np.testing.assert_array_equal(exp.policy.index(exp.stats, COSTS), values)

    def test_a_failing_arm_does_not_stall_the_sweep(self):
        exp = Experiment(MFTopTwo(100), arms=5, fidelities=COSTS, capital=100)
        arms = set()
        while True:
            try:
                play = exp.ask()
            except CapitalExhausted:
                break
            if play.arm == 2:
                exp.fail(play)
            else:
                arms.add(play.arm)
                exp.tell(play, float(play.arm))
        assert exp.set_aside == (2,)
        assert arms == {0, 1, 3, 4}
        assert exp.best() == 4

    def test_retired_arms_are_skipped(self):
        exp = Experiment(MFTopTwo(200), arms=5, fidelities=COSTS, capital=200)
        exp.retire_arm(1)
        for _ in range(6):
            play = exp.ask()
            exp.tell(play, float(play.arm))
        exp.retire_arm(4)
        arms = {arm for arm, _ in played_out(exp, lambda play, _: float(play.arm))}
        assert arms <= {0, 2, 3}
        assert exp.best() == 3

    def test_new_arms_are_played(self):
        exp = Experiment(MFTopTwo(1000), arms=3, fidelities=COSTS)
        rng = np.random.default_rng(0)
        for _ in range(12):
            exp.tell(exp.ask(), rng.normal())
        new = exp.add_arm("new")
        assert exp.ask().arm == new

    def test_costs_that_change_on_the_way(self):
        """No part of the old costs stays: a chain of other fidelities is replaced by a new one."""
        policy = MFTopTwo(100)
        stats = Stats.empty(3, 10)
        stats.counts[0], stats.sums[0], stats.squares[0] = 1, np.arange(10) / 10, (np.arange(10) / 10) ** 2
        stats = replace(stats, memory=policy.remember(stats, Fidelities([1, 50, 60])))
        dear, cheap = Fidelities([2, 60, 70]), Fidelities([1, 4, 16])
        assert isinstance(stats.memory, MFTopTwoMemory)
        assert stats.memory.rows == (0, 2)
        for told in (dear, cheap):
            fresh = replace(stats, memory=None)
            if told is cheap:
                assert policy.choose(stats, told) == policy.choose(fresh, told)
            arm, m = policy.choose(stats, told)
            assert arm in range(10)
            assert m in policy.kept(told)
            assert np.isfinite(policy.index(stats, told)).all()

    @pytest.mark.parametrize("reward", [0.0, 0.5, 1e150, -1e150, 1e-150, 1e-155])
    def test_equal_rewards(self, reward):
        exp = Experiment(MFTopTwo(300), arms=4, fidelities=COSTS, capital=300)
        for play in exp.plays():
            exp.tell(play, reward)
            check_chain(exp.stats.memory)
            assert np.isfinite(exp.policy.index(exp.stats, COSTS)[exp.stats.counts.any(axis=0)]).all()
        assert exp.best() == 0

    def test_zeros_and_ones(self):
        problem = Problem([[0.2, 0.5, 0.5, 0.9]] * 3, COSTS, Bernoulli())
        rng = np.random.default_rng(0)
        exp = Experiment(MFTopTwo(3000), arms=4, fidelities=COSTS, capital=3000)
        played_out(exp, lambda play, _: problem.draw(play.arm, play.fidelity, rng))
        assert exp.best() == 3

    def test_its_memory_cannot_be_written(self):
        exp = Experiment(MFTopTwo(100), arms=2, fidelities=COSTS)
        exp.tell(exp.ask(), 0.1)
        chain = exp.stats.memory
        assert isinstance(chain, MFTopTwoMemory)
        with pytest.raises(ValueError, match="read-only"):
            chain.noise[0] = 5

    def test_simulated(self):
        problem = learning_curve_problem("cmc")
        capital = full_look(problem)
        sim = simulate(problem, MFTopTwo(capital), capital=capital, runs=2, workers=1)
        assert (sim.spent <= limit(capital)).all()
        assert (sim.spent > 0.9 * capital).all()


class TestParameters:
    @pytest.mark.parametrize(
        ("option", "said"),
        [
            ({"capital": 0}, "capital must be positive and finite, got 0.0"),
            ({"capital": "all"}, "capital must be a number, got 'all'"),
            ({"capital": float("inf")}, "capital must be finite, got inf"),
            ({"share": 0}, "share must be positive and finite, got 0"),
            ({"share": 1.5}, "share must be at most 1, got 1.5"),
            ({"kappa": 0.5}, "kappa must be at least 1, got 0.5"),
            ({"deterministic": 1}, "deterministic must be True or False, got 1"),
            ({"noise": float("nan")}, "noise must be positive and finite, got nan"),
        ],
    )
    def test_refused(self, option, said):
        with pytest.raises(ValueError, match="must be") as error:
            MFTopTwo(**{"capital": 10, **option})
        assert str(error.value) == said

    def test_on_the_wire(self):
        record = json.loads(json.dumps(policy_record(MFTopTwo(10, share=0.5))))
        assert policy_from_record(record) == MFTopTwo(10, share=0.5)
        with pytest.raises(ValueError, match=r"policy MFTopTwo must have the fields \['capital'\], got \['share'\]"):
            policy_from_record({"name": "MFTopTwo", "share": 0.5})


class TestResuming:
    @given(
        costs=st.lists(st.floats(1.6, 6.0), min_size=1, max_size=4),
        arms=st.integers(1, 80),
        share=st.floats(0.05, 3.0),
        deterministic=st.sampled_from([None, True, False]),
    )
    def test_stages_fit_and_narrow(self, costs, arms, share, deterministic):
        fidelities = Fidelities(np.cumprod([1.0, *costs]).tolist(), resume=True)
        capital = max(share * arms * fidelities.costs[-1], 1.0)
        policy = MFTopTwo(capital, deterministic=deterministic)
        stages = policy.stages(fidelities, arms)
        assert [stage.fidelity for stage in stages] == policy.kept(fidelities)[: len(stages)]
        assert all(low.arms >= high.arms >= 1 for low, high in pairwise(stages))
        before = [0.0, *fidelities.costs]
        cost = sum(stage.arms * (fidelities.costs[stage.fidelity] - before[stage.fidelity]) for stage in stages)
        assert cost <= limit(limit(capital))

    @pytest.mark.parametrize("noise", [0.0, 0.1])
    def test_it_knows_what_plays_cost(self, noise):
        """It goes on from what it has trained, and leaves less of the capital than a full training."""
        rng = np.random.default_rng(0)
        fidelities, truth = Fidelities([1, 4, 16], resume=True), rng.normal(size=(3, 40)).cumsum(axis=0)
        exp = Experiment(MFTopTwo(200), arms=40, fidelities=fidelities, capital=200)
        for play in exp.plays():
            exp.tell(play, float(truth[play.fidelity, play.arm] + noise * rng.normal()))
        stats: Any = exp.stats
        assert exp.spent == (stats.counts - stats.resumed).sum(axis=1) @ [1, 4, 16]
        assert 200 - 16 < exp.spent <= 200
        assert stats.resumed[0].sum() >= 5
        assert stats.resumed[1].sum() >= 1
        assert exp.best() in np.argsort(-truth[-1])[:10]
