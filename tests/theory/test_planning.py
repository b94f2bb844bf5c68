"""The plan against simulations, and what it says to people."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mfbandit import (
    MFUCB,
    UCB,
    Bounded,
    Fidelities,
    Gaussian,
    Problem,
    SubGaussian,
    paper_problem,
    plan,
    simulate,
    theory,
)
from mfbandit.theory.planning import allocation_at, allocation_for
from tests.support.effort import examples
from tests.support.strategies import problems

ADS = Fidelities([1, 10, 60], [0.2, 0.1, 0], Bounded(), names=["a minute", "ten minutes", "an hour"])


@pytest.mark.no_cover
class TestAgainstSimulation:
    """Spending at each fidelity within 5 % of the capital; regret within 8 %, UCB's within 15 % (few plays an arm)."""

    @pytest.mark.parametrize("number", [1, 2, 3, 4])
    @pytest.mark.parametrize("times", [2, 10, 40])
    def test_mf_ucb(self, number, times):
        problem = paper_problem(number, seed=3)
        capital = times * problem.arms * problem.fidelities.costs[-1]
        sim = simulate(problem, MFUCB(), capital=capital, runs=10, seed=4, grid=1)
        expected = plan(problem.fidelities, capital, means=problem.means)
        measured = sim.plays.sum(axis=1) * problem.fidelities.costs
        np.testing.assert_allclose(expected.spending, measured, atol=0.05 * capital)
        assert expected.regret == pytest.approx(sim.regret.mean(), rel=0.08)

    @pytest.mark.parametrize("number", [1, 2, 3, 4])
    def test_ucb_is_the_highest_fidelity_alone(self, number):
        problem = paper_problem(number, seed=3)
        capital = 10 * problem.arms * problem.fidelities.costs[-1]
        sim = simulate(problem, UCB(), capital=capital, runs=10, seed=4, grid=1)
        expected = plan(problem.fidelities.top, capital, means=problem.means[-1:])
        assert expected.regret == pytest.approx(sim.regret.mean(), rel=0.15)

    def test_without_a_fidelity(self):
        """Problem 3 has two: without the lower one MF-UCB is UCB."""
        problem = paper_problem(3, seed=3)
        sim = simulate(problem, UCB(), capital=80_000, runs=10, seed=4, grid=1)
        expected = plan(problem.fidelities, 80_000, means=problem.means)
        assert expected.without[0] == pytest.approx(sim.regret.mean(), rel=0.15)
        assert math.isnan(expected.without[1])


@given(problems(max_arms=12, any_psi=True), st.floats(0.01, 1e6), st.sampled_from([0.5, 2.0, 5.0]))
@settings(max_examples=examples(150), deadline=None)
def test_spends_the_capital_and_settles_every_arm(problem, plays, rho):
    capital = plays * problem.arms * problem.fidelities.costs[0]
    expected = plan(problem.fidelities, capital, means=problem.means, rho=rho)
    assert expected.spending.sum() == pytest.approx(capital, rel=2e-4)
    assert expected.settles.sum() == pytest.approx(1)
    assert 0 <= expected.regret <= capital * problem.gaps.max() * (1 + 1e-9)
    assert (math.isinf(expected.resolution)) == (capital <= problem.arms * problem.fidelities.costs[0])
    assert len(expected.verdicts) == len(problem.fidelities)
    assert "NAN" not in str(expected).upper()


def test_an_allocation_by_hand():
    """psi(x) = 2x², costs 1 and 4, bias 1/4, so gamma = 1/8; best mean 3/4; resolution 1/8, rho log n = 1.

    Arm 0: gap 3/4 − 1/8 − 1/4 = 3/8, width 1/2 ≥ 1/8: settled low by 1/(2/4) = 2 plays.
    Arm 1: gap 3/4 − 5/8 − 1/4 = −1/8, width 0 < 1/8: 1/(2/64) = 32 plays low, then gap 1/4, width 3/8: 32/9 plays high.
    Arm 2: gap −1/4, width −1/8: 32 plays low, then gap 0, width 1/8: 32 plays high.
    """
    fid = Fidelities([1, 4], [0.25, 0], Bounded())
    problem = Problem([[0.125, 0.625, 0.75], [0.25, 0.5, 0.75]], fid, Gaussian(0.5))
    allocation = allocation_at(problem, theory.gaps(problem), resolution=0.125, rho_log_n=1.0)
    np.testing.assert_allclose(allocation.plays, np.array([[2, 32, 32], [0, 32 / 9, 32]]), rtol=1e-14)
    assert allocation.settled_by.tolist() == [0, 1, 1]
    assert allocation.spent == pytest.approx(66 + 4 * (32 / 9 + 32))


def test_more_capital_resolves_more():
    resolutions = [allocation_for(paper_problem(1), capital, 2.0).resolution for capital in (1e5, 1e6, 1e7, 1e8)]
    assert resolutions == sorted(resolutions, reverse=True)


class TestGuesses:
    def test_past_results_are_drawn_from(self):
        expected = plan(ADS, 10_000, prior=[0.1, 0.2, 0.6], arms=30)
        assert expected.arms == 30
        assert plan(ADS, 10_000, prior=[0.1, 0.2, 0.6]).arms == 3

    def test_a_prior_at_every_fidelity(self):
        table = [[0.15, 0.3, 0.5], [0.1, 0.2, 0.6], [0.1, 0.2, 0.6]]
        assert plan(ADS, 10_000, prior=table, arms=7).settles.sum() == pytest.approx(1)

    def test_the_same_seed_gives_the_same_plan(self):
        one, same, other = (plan(ADS, 10_000, prior=[0.1, 0.2, 0.6], arms=9, seed=s).regret for s in (1, 1, 2))
        assert one == same != other

    def test_more_draws_come_nearer_to_the_mean(self):
        far, near = (
            np.std([plan(ADS, 10_000, prior=[0.1, 0.2, 0.6], arms=5, draws=d, seed=s).regret for s in range(12)])
            for d in (1, 16)
        )
        assert near < far

    def test_drawn_low_means_stay_in_the_range_of_rewards(self):
        assert plan(ADS, 1000, means=[0.0, 1.0]).regret >= 0

    def test_bad_past_results_are_refused_whether_drawn_or_not(self):
        for seed in range(5):
            with pytest.raises(ValueError, match="prior must lie within their biases"):
                plan(ADS, 100, prior=[[0.5, 0.9], [0.5, 0.5], [0.5, 0.5]], arms=1, draws=1, seed=seed)

    def test_what_a_fidelity_can_settle_does_not_depend_on_the_capital(self):
        poor, rich = (plan(ADS, capital, means=np.linspace(0, 1, 50), seed=1) for capital in (10, 1e6))
        assert poor.settles.tolist() == rich.settles.tolist()

    def test_what_can_be_settled_by_hand(self):
        """gamma = 1/8; gaps at the low fidelity 3/8, 1/8 and 1/16: the first two reach gamma."""
        fid = Fidelities([1, 4], [0.25, 0], Bounded())
        means = [[0.125, 0.375, 0.4375, 0.75], [0.25, 0.375, 0.5, 0.75]]
        assert plan(fid, 1000, means=means).settles.tolist() == [0.5, 0.5]

    def test_one_fidelity_needs_no_draws(self):
        top = ADS.top
        assert plan(top, 1000, means=[0.1, 0.5], seed=1).regret == plan(top, 1000, means=[0.1, 0.5], seed=2).regret

    def test_drawn_low_means_are_clipped_to_the_range(self):
        """Low-fidelity means of arms at 0 are not below 0, so low fidelities can settle fewer of them."""
        wide = Fidelities([1, 10], [0.5, 0], SubGaussian(0.5))
        narrow = Fidelities([1, 10], [0.5, 0], Bounded(0, 1))
        means = [0.0] * 20 + [1.0]
        assert plan(narrow, 5000, means=means).regret > plan(wide, 5000, means=means).regret

    @pytest.mark.parametrize("seed", [-1, "a"])
    def test_seeds(self, seed):
        with pytest.raises(ValueError, match="seed must"):
            plan(ADS, 100, prior=[0.1, 0.2], seed=seed)


def test_every_arm_is_played_once():
    """Capital for one play of each arm at the lowest fidelity and half a play more."""
    expected = plan(ADS, 30, means=np.linspace(0, 1, 20))
    assert expected.plays[0] == pytest.approx(30, rel=1e-3)
    problem = Problem([[0.0, 100.0], [0.0, 100.0]], Fidelities([1, 10], [0.1, 0], SubGaussian(0.1)), Gaussian(0.1))
    assert allocation_at(problem, theory.gaps(problem), 1.0, 1.0).plays[0, 0] == 1


def test_sizes_that_do_not_go_together_end_in_a_sentence():
    with pytest.raises(
        ValueError, match=r"capital must be of a size that fits the costs, \[1.0, 10.0\], .*, got 2e\+93"
    ):
        plan(Fidelities([1, 10], [0.1, 0], SubGaussian(1e-119)), 2e93, means=[0.1, 0.2, 0.5])


class TestWords:
    def test_a_fidelity_that_is_in_the_way(self):
        """Nearly as expensive as the highest fidelity and nearly as biased as the one below."""
        fid = Fidelities([1, 9, 10], [0.2, 0.19, 0], SubGaussian(0.2))
        verdicts = plan(fid, 100_000, means=np.linspace(0, 1, 100)).verdicts
        assert verdicts[0].startswith("Fidelity 0 helps: it can settle")
        assert verdicts[1].startswith("Fidelity 1 hurts: without it regret would be 0.")
        assert verdicts[2].startswith("Fidelity 2 is the highest;")

    def test_capital_for_less_than_a_play_of_each_arm(self):
        expected = plan(ADS, 10, means=np.linspace(0, 1, 20))
        assert math.isinf(expected.resolution)
        assert "does not pay for one play of each of the 20 arms" in str(expected)
        assert expected.plays.tolist() == [10, 0, 0]
        assert expected.regret == pytest.approx(5)

    def test_one_arm_has_no_regret(self):
        expected = plan(ADS, 1000, means=[0.5])
        assert expected.regret == 0
        assert "makes little difference" in expected.verdicts[0]


class TestBadInput:
    def test_both_or_neither(self):
        with pytest.raises(ValueError, match="either means, a guess for each arm, or prior"):
            plan(ADS, 100)
        with pytest.raises(ValueError, match="either means"):
            plan(ADS, 100, means=[0.1], prior=[0.1])

    def test_arms_with_means(self):
        with pytest.raises(ValueError, match=r"arms must not be given with means.*got 3"):
            plan(ADS, 100, means=[0.1], arms=3)

    @pytest.mark.parametrize(
        ("option", "rule"), [({"arms": 0}, "arms must be at least 1"), ({"draws": 0}, "draws must")]
    )
    def test_counts(self, option, rule):
        with pytest.raises(ValueError, match=rule):
            plan(ADS, 100, prior=[0.1, 0.2], **option)

    @pytest.mark.parametrize("means", [[], [[0.1, 0.2]], 3, [[[1]]]])
    def test_shapes(self, means):
        with pytest.raises(ValueError, match=r"means must have shape \(n,\) or \(3, n\), got"):
            plan(ADS, 100, means=means)

    def test_words_for_means(self):
        with pytest.raises(ValueError, match="means must be numbers, got 'many'"):
            plan(ADS, 100, means="many")

    def test_means_that_are_not_finite(self):
        with pytest.raises(ValueError, match="prior must be finite, got nan"):
            plan(ADS, 100, prior=[0.1, math.nan])

    def test_past_results_that_break_the_biases(self):
        with pytest.raises(
            ValueError, match=r"means must lie within .*, got 0.9 in column 0 at fidelity 0, 0.5 at the highest"
        ):
            plan(ADS, 100, means=[[0.9, 0.5], [0.5, 0.5], [0.5, 0.5]])

    @pytest.mark.parametrize("capital", [0, -1, math.inf, math.nan])
    def test_capital(self, capital):
        with pytest.raises(ValueError, match="capital must be positive and finite"):
            plan(ADS, capital, means=[0.1])

    def test_fidelities(self):
        with pytest.raises(ValueError, match="fidelities must be a Fidelities"):
            plan([1, 10], 100, means=[0.1])  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="biases are needed here"):
            plan(Fidelities([1, 10], concentration=Bounded()), 100, means=[0.1])
        with pytest.raises(ValueError, match="a concentration is needed here"):
            plan(Fidelities([1, 10], [0.1, 0]), 100, means=[0.1])
