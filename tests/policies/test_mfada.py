"""MFAda against the rule written out plainly, and the engine against both."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mfbandit import (
    MFUCB,
    UCB,
    Bounded,
    Experiment,
    Fidelities,
    Gaussian,
    MFAda,
    MFBayes,
    Problem,
    Stats,
    SubGaussian,
    check_policy,
    learning_curve_problem,
    misleading_problem,
    paper_problem,
    simulate,
)
from mfbandit.core.divergence import kl_upper
from mfbandit.policies.exploration import RESOLUTION, exploration_levels, overlaps, roots
from mfbandit.simulation.engines import mfada as engine
from mfbandit.simulation.engines.exploration_levels import overlap
from mfbandit.simulation.engines.interface import begin_run
from mfbandit.simulation.engines.registry import engine_for
from tests.support import engines, oracle_policies
from tests.support.contracts import assert_simulated_as_played
from tests.support.effort import effort, examples
from tests.support.oracle_policies import policy_plays
from tests.support.problems import SubExponential, small
from tests.support.strategies import problems

MANY = effort(5000, 20_000)  # plays, where each takes a while in Python


def naive_plays(problem, n, seed):
    """The first plays by the plain rule; ties are broken by the package's own inverse of kl."""
    rng = np.random.default_rng(seed)
    shape = range(len(problem.fidelities))
    counts, sums, plays = [[0] * problem.arms for _ in shape], [[0.0] * problem.arms for _ in shape], []
    for _ in range(n):
        arm, m = oracle_policies.mfada(counts, sums, problem.fidelities, kl_upper)
        plays.append((arm, m))
        sums[m][arm] += problem.draw(arm, m, rng, earlier=counts[m][arm])
        counts[m][arm] += 1
    return plays


def engine_plays(problem, policy, n, seed, stretch=10**9):
    return engines.listed(engines.engine_plays(problem, policy, n, seed, stretch=stretch))


class TestPlays:
    @pytest.mark.no_cover
    @pytest.mark.parametrize("number", [1, 2, 3, 4])
    def test_policy_and_plain_rule(self, number):
        problem = small(number, 25)
        assert policy_plays(problem, MFAda(), 1500, 7) == naive_plays(problem, 1500, 7)

    @pytest.mark.no_cover
    @given(problems(max_arms=8), st.integers(0, 100))
    @settings(max_examples=examples(60), deadline=None)
    def test_policy_plain_rule_and_engine_on_any_problem(self, problem, seed):
        plain = naive_plays(problem, 120, seed)
        assert policy_plays(problem, MFAda(), 120, seed) == plain
        assert engine_plays(problem, MFAda(), 120, seed) == plain

    @pytest.mark.slow
    @pytest.mark.no_cover
    @pytest.mark.parametrize("number", [1, 2, 3, 4])
    def test_engine_and_policy_over_many_plays(self, number):
        """Many plays on the problem's own fidelities and rewards, with fewer arms, as a play in Python is slow."""
        problem = small(number, 40)
        assert engine_plays(problem, MFAda(), MANY, 3) == policy_plays(problem, MFAda(), MANY, 3)

    @pytest.mark.slow
    @pytest.mark.no_cover
    @pytest.mark.parametrize("number", [3, 4])
    @pytest.mark.parametrize("policy", [MFUCB(0.05, kl=True), UCB(1.0, kl=True)], ids=str)
    def test_kl_engine_and_policy_over_many_plays(self, number, policy):
        problem = small(number, 40)
        assert engine_plays(problem, policy, 4000, 3) == policy_plays(problem, policy, 4000, 3)

    @pytest.mark.slow
    @pytest.mark.no_cover
    @pytest.mark.parametrize("number", [1, 4])
    def test_engine_and_policy_on_all_arms(self, number):
        problem = paper_problem(number, seed=2)
        assert engine_plays(problem, MFAda(), 3000, 3) == policy_plays(problem, MFAda(), 3000, 3)

    @pytest.mark.no_cover
    @given(problems(max_arms=12), st.sampled_from([UCB, MFUCB]), st.sampled_from([1, 37, 10**9]))
    @settings(max_examples=examples(60), deadline=None)
    def test_kl_engine_and_policy_on_any_problem(self, problem, kind, stretch):
        policy = kind(0.5, kl=True)
        if engine_for(problem, policy) is None:
            return
        assert engine_plays(problem, policy, 300, 1, stretch) == policy_plays(problem, policy, 300, 1)

    def test_replayed_rewards_and_regret(self):
        assert_simulated_as_played(learning_curve_problem("cmc"), MFAda(), capital=60)


class TestLevel:
    @given(st.lists(st.integers(0, 10**6), min_size=1, max_size=30))
    def test_overlaps_are_the_sum(self, values):
        root = np.array(values)
        assert overlaps(root).tolist() == [sum(min(a, b) for b in values) for a in values]

    @given(problems(max_arms=20), st.integers(0, 2**32))
    @settings(max_examples=examples(50), deadline=None)
    def test_near_the_formula(self, problem, seed):
        """H_k = sum over j of min(c_k, sqrt(c_k c_j)), to 1e-9."""
        rng = np.random.default_rng(seed)
        plays = rng.integers(0, 1000, problem.means.shape)
        plays[0] += 1
        spent = np.array(problem.fidelities.costs) @ plays
        direct = np.minimum(spent[:, None], np.sqrt(spent[:, None] * spent)).sum(axis=1)
        root = roots(plays, problem.fidelities)
        ours = (root * RESOLUTION) * (overlaps(root) * RESOLUTION) * problem.fidelities.costs[0]
        np.testing.assert_allclose(ours, direct, rtol=1e-9)
        np.testing.assert_allclose(
            exploration_levels(plays, problem.fidelities), np.log(1 + spent.sum() / direct), rtol=1e-8
        )

    def test_kept_up_play_by_play_it_does_not_drift(self):
        problem = paper_problem(2, seed=1)
        started = begin_run(engine, problem, MFAda(), np.array([1e15]))
        started.advance(np.random.default_rng(0), 200_000)
        root = roots(started.run.counts.T, problem.fidelities)
        assert started.state.levels.roots.tolist() == root.tolist()
        assert [overlap(started.state.levels, arm) for arm in range(problem.arms)] == overlaps(root).tolist()


class TestAskTell:
    def test_keeps_the_contract(self):
        check_policy(MFAda())

    def test_any_psi(self):
        fid = Fidelities([1, 10], [0.2, 0], SubExponential())
        problem = Problem([[0.1, 0.5, 0.3], [0.2, 0.6, 0.3]], fid, Gaussian(0.1))
        sim = simulate(problem, MFAda(), capital=500)
        assert sim.plays.sum() > 50

    def test_asked_ahead_workers_spread_over_arms(self):
        problem = paper_problem(3)
        exp = Experiment(MFAda(), arms=problem.arms, fidelities=problem.fidelities)
        assert sorted(play.arm for play in exp.ask(200)) == list(range(200))

    def test_pending_plays_narrow_and_spread(self):
        """Among arms that are alike, many plays asked at once do not all go to one."""
        problem = Problem(np.full((1, 12), 0.5), Fidelities([1], concentration=SubGaussian(0.2)), Gaussian(0.2))
        rng = np.random.default_rng(0)
        exp = Experiment(MFAda(), arms=problem.arms, fidelities=problem.fidelities)
        for _ in range(60):
            play = exp.ask()
            exp.tell(play, problem.draw(play.arm, play.fidelity, rng))
        assert len({play.arm for play in exp.ask(30)}) > 3

    def test_pending_plays_move_to_higher_fidelities(self):
        """One arm, nothing told: fidelities are left behind once enough plays are under way there, as with MF-UCB."""
        fid = Fidelities([1, 10, 100], [0.4, 0.3, 0], SubGaussian(0.2))
        exp = Experiment(MFAda(), arms=1, fidelities=fid)
        assert {play.fidelity for play in exp.ask(200)} == {0, 1, 2}

    def test_pending_plays_count_as_spending(self):
        """An arm with many pending plays has a lower level than one with few."""
        stats = Stats.empty(1, 2)
        stats.counts[:], stats.sums[:] = 5, 2.5
        stats.pending[0, 0] = 20
        first, second = MFAda().index(stats, Fidelities([1], concentration=SubGaussian(1.0)))
        assert first < second

    def test_a_retired_arm_no_longer_leads(self):
        problem = small(2, 6)
        rng = np.random.default_rng(0)
        exp = Experiment(MFAda(), arms=6, fidelities=problem.fidelities)
        for _ in range(200):
            play = exp.ask()
            exp.tell(play, problem.draw(play.arm, play.fidelity, rng))
        leader = exp.best()
        exp.retire_arm(leader)
        assert all(exp.ask().arm != leader for _ in range(10))

    def test_resumed_it_goes_on_the_same(self):
        problem = small(2, 8)
        rng = np.random.default_rng(0)
        exp = Experiment(MFAda(), arms=problem.arms, fidelities=problem.fidelities)
        for _ in range(100):
            play = exp.ask()
            exp.tell(play, problem.draw(play.arm, play.fidelity, rng))
        again = Experiment.from_json(exp.to_json())
        assert [(p.arm, p.fidelity) for p in again.ask(20)] == [(p.arm, p.fidelity) for p in exp.ask(20)]

    def test_recommends_the_best_after_a_while(self):
        problem = misleading_problem(6)
        rng = np.random.default_rng(0)
        exp = Experiment(MFAda(), arms=problem.arms, fidelities=problem.fidelities)
        for _ in range(3000):
            play = exp.ask()
            exp.tell(play, problem.draw(play.arm, play.fidelity, rng))
        assert exp.best() == 5

    @pytest.mark.parametrize("policy", [MFAda(), MFUCB()], ids=str)
    def test_what_is_missing_and_who_needs_it_not(self, policy):
        with pytest.raises(ValueError, match=r"biases are needed here.*MFAuto needs none"):
            Experiment(policy, arms=2, fidelities=Fidelities([1, 10], concentration=Bounded()))
        with pytest.raises(ValueError, match=r"a concentration is needed here.*MFAuto needs none"):
            Experiment(policy, arms=2, fidelities=Fidelities([1, 10], [0.1, 0]))
        Experiment(MFBayes(), arms=2, fidelities=Fidelities([1, 10]))

    def test_kl_needs_a_range(self):
        with pytest.raises(ValueError, match=r"kl=True needs rewards in a range, Bounded\(.*\), got SubGaussian"):
            simulate(paper_problem(1), UCB(kl=True), capital=1e6)
        with pytest.raises(ValueError, match="kl must be True or False, got 'yes'"):
            UCB(kl="yes")  # type: ignore[arg-type]


def test_kl_bounds_are_tighter_than_hoeffdings():
    problem = paper_problem(4, seed=1)
    ours, plain = (simulate(problem, UCB(2.0, kl=kl), capital=4e6, runs=4).regret[:, -1].mean() for kl in (True, False))
    assert ours < plain


def test_kl_in_another_range_is_the_same_scaled():
    """Rewards in [−2, 2]: the same plays as in [0, 1]."""
    unit = small(3, 10)
    fid = Fidelities(unit.fidelities.costs, [4 * bias for bias in unit.fidelities.known_biases], Bounded(-2, 2))
    rng = np.random.default_rng(3)
    one, other = Stats.empty(2, 10), Stats.empty(2, 10)
    for _ in range(300):
        arm, m = UCB(kl=True).choose(one.read_only(), unit.fidelities)
        assert UCB(kl=True).choose(other.read_only(), fid) == (arm, m)
        reward = float(rng.random() < unit.means[m, arm])
        for stats, value in ((one, reward), (other, 4 * reward - 2)):
            stats.counts[m, arm] += 1
            stats.sums[m, arm] += value


def test_regret_is_a_fraction_of_mf_ucbs():
    """Problem 2 at 40 full looks, 8 instances: 0.19 ± 0.04 was measured; at most 0.35 must hold."""
    pairs = []
    for seed in range(8):
        problem = paper_problem(2, seed=900 + seed)
        capital = 40 * problem.arms * problem.fidelities.costs[-1]
        pairs.append(
            [simulate(problem, policy, capital=capital, seed=seed).regret[0, -1] for policy in (MFAda(), MFUCB())]
        )
    ours, paper = np.array(pairs).mean(axis=0)
    assert ours / paper < 0.35
    assert math.isfinite(ours)
