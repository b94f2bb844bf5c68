"""MFAuto against the rule written out plainly, the engine against both, and what must never happen."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mfbandit import (
    MFUCB,
    UCB,
    Bernoulli,
    Bounded,
    Counts,
    Experiment,
    Fidelities,
    Gaussian,
    MFAuto,
    Problem,
    Rate,
    Replay,
    SubGaussian,
    check_policy,
    gap_problem,
    learning_curve_problem,
    misleading_problem,
    paper_problem,
    simulate,
)
from mfbandit.core import kl_upper
from mfbandit.policies.auto_beliefs import Beliefs
from mfbandit.policies.kept_arms import KeptArms
from mfbandit.policies.mfauto import MFAutoMemory, arms_to_test, chain_model
from tests.policies.test_mfada import engine_plays
from tests.policies.test_mfbayes import Degenerate, climbs_in_time, random_small_problem, stuck
from tests.support.contracts import assert_resumes_at_any_point, assert_simulated_as_played
from tests.support.effort import examples
from tests.support.oracle_auto import Auto
from tests.support.oracle_policies import check_chain, policy_plays, rule_plays
from tests.support.problems import small
from tests.support.strategies import problems

KNOWN = ("all", "nothing", "biases", "noise")


def told(problem, known):
    """The same problem, of which less is told."""
    fidelities = problem.fidelities
    biases = list(fidelities.known_biases) if known in ("all", "biases") else None
    noise = list(fidelities.tails) if known in ("all", "noise") else None
    return Problem(problem.means, Fidelities(list(fidelities.costs), biases, noise), problem.rewards)


def remembered(stats) -> MFAutoMemory:
    assert isinstance(stats.memory, MFAutoMemory)
    return stats.memory


def plain_plays(problem, guard, n, seed):
    return rule_plays(problem, Auto(problem.fidelities, problem.arms, guard, kl_upper), n, seed)


class TestPlays:
    @pytest.mark.no_cover
    @pytest.mark.parametrize("known", KNOWN)
    @pytest.mark.parametrize("number", [1, 2, 3, 4])
    def test_policy_plain_rule_and_engine(self, number, known):
        problem = told(small(number, 12), known)
        plain = plain_plays(problem, "light", 300, 7)
        assert policy_plays(problem, MFAuto(), 300, 7, check_chain) == plain
        assert engine_plays(problem, MFAuto(), 300, 7) == plain

    @pytest.mark.no_cover
    @given(problems(max_arms=6), st.integers(0, 100), st.sampled_from(KNOWN), st.sampled_from(["light", "strict"]))
    @settings(max_examples=examples(60), deadline=None)
    def test_on_any_problem(self, problem, seed, known, guard):
        problem = told(problem, known)
        plain = plain_plays(problem, guard, 80, seed)
        assert policy_plays(problem, MFAuto(guard), 80, seed, check_chain) == plain
        assert engine_plays(problem, MFAuto(guard), 80, seed, stretch=7) == plain

    @pytest.mark.no_cover
    @pytest.mark.parametrize("make", [misleading_problem, gap_problem, lambda: learning_curve_problem("cmc")])
    @pytest.mark.parametrize("known", ["all", "nothing"])
    def test_engine_and_policy_over_many_plays(self, make, known):
        problem = told(make(), known)
        assert engine_plays(problem, MFAuto(), 1500, 3) == policy_plays(problem, MFAuto(), 1500, 3)

    def test_regret_to_the_last_bit(self):
        assert_simulated_as_played(learning_curve_problem("wind"), MFAuto(), capital=200)


class TestIndex:
    @pytest.mark.parametrize("known", KNOWN)
    @pytest.mark.parametrize("number", [1, 3])
    def test_the_fast_search_finds_the_largest_index(self, number, known):
        problem, policy = told(small(number, 30), known), MFAuto()
        exp = Experiment(policy, arms=problem.arms, fidelities=problem.fidelities)
        rng = np.random.default_rng(0)
        for _ in range(150):
            play = exp.ask()
            exp.tell(play, problem.draw(play.arm, play.fidelity, rng))
        waiting = exp.stats
        waiting.pending[0, 3] = 2
        for stats in (exp.stats, waiting):
            beliefs = Beliefs(remembered(stats), KeptArms(), chain_model(problem.fidelities), stats, problem.fidelities)
            index = policy.index(stats, problem.fidelities)
            assert beliefs.most_promising() == (int(index.argmax()), index.max())

    def test_told_biases_bound_the_values(self):
        """Two deviations and the bias: nothing beyond that is believed, whatever the chain says."""
        problem = misleading_problem()
        exp = Experiment(arms=problem.arms, fidelities=problem.fidelities)
        rng = np.random.default_rng(0)
        for _ in range(300):
            play = exp.ask()
            exp.tell(play, problem.draw(play.arm, play.fidelity, rng))
        beliefs = Beliefs(
            remembered(exp.stats), KeptArms(), chain_model(problem.fidelities), exp.stats, problem.fidelities
        )
        sound = beliefs.lows <= beliefs.highs
        assert (beliefs.values >= beliefs.lows)[sound].all()
        assert (beliefs.values <= beliefs.highs)[sound].all()


class TestAskTell:
    @pytest.mark.parametrize("guard", ["light", "strict", "off"])
    def test_keeps_the_contract(self, guard):
        check_policy(MFAuto(guard))

    def test_needs_costs_alone(self):
        exp = Experiment(arms=4, fidelities=Fidelities([1, 10, 100]))
        rng = np.random.default_rng(0)
        for _ in range(60):
            play = exp.ask()
            exp.tell(play, rng.normal(play.arm, 0.1))
        assert exp.policy == MFAuto()
        assert exp.best() == 3
        assert exp.bounds().kind.startswith("posterior")
        assert exp.confidence().kind in ("estimate", "withheld")

    @pytest.mark.parametrize("known", KNOWN)
    @pytest.mark.parametrize("batch", [1, 7])
    def test_resumed_at_any_point_it_goes_on_the_same(self, batch, known):
        problem = told(learning_curve_problem("cmc"), known)
        exp = Experiment(MFAuto("strict"), arms=problem.arms, fidelities=problem.fidelities)
        assert_resumes_at_any_point(exp, problem, batch)

    def test_many_workers_from_the_start(self):
        exp = Experiment(arms=3, fidelities=Fidelities([1, 10]))
        assert sorted(play.arm for play in exp.ask(9)) == [0, 0, 0, 1, 1, 1, 2, 2, 2]

    def test_the_guard_does_not_send_all_workers(self):
        """One guard play is due, and pending: the next asks are by the index."""
        problem = misleading_problem()
        exp = Experiment(MFAuto("strict"), arms=problem.arms, fidelities=problem.fidelities)
        rng = np.random.default_rng(0)
        while exp.stats.memory is None or not remembered(exp.stats).owed:
            play = exp.ask()
            exp.tell(play, problem.draw(play.arm, play.fidelity, rng))
        due = remembered(exp.stats).owed
        tops = [play.arm for play in exp.ask(due)]
        assert len(set(tops)) == due
        assert exp.stats.pending[-1].sum() == due

    def test_new_arms_are_played(self):
        exp = Experiment(arms=3, fidelities=Fidelities([1, 10], [0.1, 0], SubGaussian(0.1)))
        rng = np.random.default_rng(0)
        for _ in range(40):
            exp.tell(exp.ask(), rng.normal())
        new = exp.add_arm("new")
        assert exp.ask().arm == new

    def test_a_retired_arm_no_longer_leads(self):
        exp = Experiment(arms=3, fidelities=Fidelities([1, 10]))
        rng = np.random.default_rng(0)
        for _ in range(60):
            play = exp.ask()
            exp.tell(play, rng.normal(play.arm, 0.1))
        exp.retire_arm(2)
        assert {exp.ask().arm for _ in range(20)} <= {0, 1}
        assert exp.best() == 1

    def test_counts_of_observations(self):
        """A play told as 1,000 trials counts as so many observations, and as one play for what it costs."""
        exp = Experiment(arms=3, fidelities=Fidelities([1, 10], [0.05, 0], Rate()))
        rng = np.random.default_rng(0)
        for _ in range(30):
            play = exp.ask()
            exp.tell(play, Counts(int(rng.binomial(1000, 0.02 * (1 + play.arm))), 1000))
        assert exp.best() == 2
        assert exp.stats.plays.sum() == 30

    def test_its_memory_cannot_be_written(self):
        exp = Experiment(arms=1, fidelities=Fidelities([1, 10]))
        for reward in (0.1, 0.2):
            exp.tell(exp.ask(), reward)
        chain = exp.stats.memory
        assert isinstance(chain, MFAutoMemory)
        with pytest.raises(ValueError, match="read-only"):
            chain.noise[0] = 5

    def test_parameters(self):
        with pytest.raises(ValueError, match="guard must be 'light', 'strict' or 'off', got 'some'"):
            MFAuto(guard="some")


@pytest.mark.parametrize("known", KNOWN)
@pytest.mark.parametrize("name", [name for name in vars(Degenerate) if name.isupper()])
def test_nothing_breaks_where_there_is_nothing_to_learn(name, known):
    problem = getattr(Degenerate, name)
    noise = Bounded() if isinstance(problem.rewards, Bernoulli) else SubGaussian(0.1)
    biases = [0.1, 0.0][-len(problem.fidelities) :]
    fidelities = Fidelities(
        list(problem.fidelities.costs),
        biases if known in ("all", "biases") else None,
        noise if known in ("all", "noise") else None,
    )
    try:
        problem = Problem(problem.means, fidelities, problem.rewards)
    except ValueError:
        pytest.skip("these biases do not hold")
    plays = policy_plays(problem, MFAuto(), 150, 0, check_chain)
    assert engine_plays(problem, MFAuto(), 150, 0) == plays
    assert len(plays) == 150


@pytest.mark.parametrize("known", ["all", "nothing"])
def test_no_run_gets_stuck_below_the_top(known):
    checked = 0
    for seed in (*range(150), 661, 717, 1405, 1617, 1631):
        problem = random_small_problem(seed)
        if climbs_in_time(problem):
            assert stuck(told(problem, known), MFAuto(), seed) < 0.5, seed
            checked += 1
    assert checked > 50


def test_a_needle_is_found():
    """The best arm looks worst below the top: the guard finds it."""
    truth, low = np.array([0.5, 0.5, 0.5, 0.5, 0.9]), np.array([0.5, 0.52, 0.54, 0.56, 0.1])
    problem = Problem([low, truth], Fidelities([1, 10], [0.8, 0], SubGaussian(0.05)), Gaussian(0.05))
    sim = simulate(told(problem, "nothing"), MFAuto(), capital=400 * 5 * 10, runs=10)
    ucb = simulate(problem, UCB(1.0), capital=400 * 5 * 10, runs=10)
    assert sim.regret[:, -1].mean() < 6 * ucb.regret[:, -1].mean()


class TestArmsToTest:
    """The light guard tests arms at the highest fidelity: soon where lower ones tell little, late elsewhere."""

    @pytest.mark.parametrize("arms", [2, 20, 1000])
    def test_it_grows_with_doubt_and_capital_up_to_all_arms(self, arms):
        capitals = [looks * arms for looks in (0.5, 2, 20, 200, 1e6, 1e12)]
        due = np.array([[arms_to_test(0, arms, spent, d) for d in (0.0, 0.2, 0.4, 0.7, 1.0)] for spent in capitals])
        assert (np.diff(due, axis=0) >= 0).all()
        assert (np.diff(due, axis=1) >= 0).all()
        assert due.min() == 0
        assert (due[-2:] == arms).all()

    def test_the_other_guards_have_none(self):
        assert [arms_to_test(guard, 20, 1e6, 1.0) for guard in (1, 2)] == [0, 0]

    def test_a_needle_among_many_arms_is_found_soon(self):
        """The best arm looks worst below. Without a guard it has 57 times UCB's regret here, with tests 20 times."""
        rng = np.random.default_rng(0)
        truth = rng.normal(0.4, 0.03, 20)
        low = truth + rng.normal(0, 0.03, 20)
        truth[low.argmin()] = 0.8
        problem = Problem([low, truth], Fidelities([1, 10]), Gaussian(0.02))
        told_noise = Problem(problem.means, Fidelities([1, 10], None, SubGaussian(0.02)), Gaussian(0.02))
        capital = 60 * 20 * 10
        ours = simulate(problem, MFAuto(), capital=capital, runs=10).regret[:, -1].mean()
        assert ours < 30 * simulate(told_noise, UCB(1.0), capital=capital, runs=10).regret[:, -1].mean()

    def test_arms_that_biases_rule_out_are_not_tested(self):
        low, truth = np.array([0.1, 0.1, 0.1, 0.9]), np.array([0.12, 0.1, 0.08, 0.9])
        problem = Problem([low, truth], Fidelities([1, 10], [0.05, 0], SubGaussian(0.05)), Gaussian(0.05))
        plays = engine_plays(problem, MFAuto(), 1000, 0)
        assert {arm for arm, fidelity in plays if fidelity == 1} == {3}

    def test_waiting_tests_are_not_asked_for_again(self):
        """Workers that ask at the same time test other arms."""
        exp = Experiment(arms=20, fidelities=Fidelities([1, 10]))
        rng = np.random.default_rng(0)
        while exp.stats.memory is None or remembered(exp.stats).tested <= (exp.stats.counts[-1] > 0).sum() + 1:
            exp.tell(exp.ask(), 0.5 + 0.1 * rng.normal())
        due = remembered(exp.stats).tested - int((exp.stats.counts[-1] > 0).sum())
        untested = {k for k in range(20) if exp.stats.counts[-1, k] == 0}
        asked = [play for play in exp.ask(due + remembered(exp.stats).owed) if play.arm in untested]
        assert len({play.arm for play in asked if play.fidelity == 1}) >= due


@pytest.mark.parametrize(("known", "most"), [("all", 0.6), ("nothing", 0.6)])
def test_less_regret_than_mf_ucb(known, most):
    """On problem 3 at 10 Kλ_M, the ratio was 0.33 with biases and 0.36 without."""
    problem = paper_problem(3, seed=3)
    capital = 10 * problem.arms * problem.fidelities.costs[-1]
    ours = simulate(told(problem, known), MFAuto(), capital=capital, runs=3).regret[:, -1].mean()
    assert ours < most * simulate(problem, MFUCB(), capital=capital, runs=3).regret[:, -1].mean()


def test_a_table_that_runs_dry():
    table = Replay([[[0.1, 0.2, 0.3]] * 2, [[0.2, 0.3]] * 2], replace=False)
    problem = Problem(table.means, Fidelities([1, 10], [0.2, 0], Bounded()), table)
    with pytest.raises(RuntimeError, match=r"Replay table exhausted: arm \d has [23] recorded rewards at"):
        simulate(problem, MFAuto(), capital=10_000)
