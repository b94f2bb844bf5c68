"""The paper's results against values worked out by hand, brute force, and each other."""

import math
import re
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mfbandit import Bernoulli, Bounded, Fidelities, Gaussian, Problem, Replay, SubGaussian, paper_problem, theory
from mfbandit.theory.lower import bernoulli_divergence
from mfbandit.theory.plays import kappa
from mfbandit.theory.upper import top_only
from tests.support.effort import examples
from tests.support.problems import SubExponential
from tests.support.strategies import problems

MEANS = [
    [0.125, 0.5, 0.375, 0.5, 0.625],
    [0.25, 0.375, 0.4375, 0.5625, 0.6875],
    [0.25, 0.375, 0.5, 0.5625, 0.75],
]


def by_hand():
    """Five arms and three fidelities, all in powers of two, so that nothing below is rounded.

    Costs 1, 4, 16; biases 1/4, 1/8, 0; rewards in [0, 1], so psi(x) = 2x² and gamma_m = zeta_m·sqrt(1/4): 1/8 and
    1/16. Thresholds 2·gamma: 1/4 and 1/8. The best mean is 3/4, arm 4's. Gaps mu* − mu − zeta:

        arm          0      1      2      3      4
        m = 1      3/8      0    1/8      0   −1/8      (1/2 − mu)
        m = 2      3/8    1/4   3/16   1/16  −1/16      (5/8 − mu)
        m = 3      1/2    3/8    1/4   3/16      0      (3/4 − mu)

    Arm 0: 3/8 > 1/4, so class 1, and K_1 with nothing below. Arm 1: 0 ≤ 1/4, then 1/4 > 1/8, so class 2, K_1 as 0 ≤ 0.
    Arm 2: 1/8 ≤ 1/4, then 3/16 > 1/8, so class 2, K_2 as 1/8 > 0. Arm 3: 0 ≤ 1/4, 1/16 ≤ 1/8, so class 3, K_2 as
    1/16 > 0.
    """
    return Problem(MEANS, Fidelities([1, 4, 16], [0.25, 0.125, 0], Bounded()), Bernoulli())


class TestByHand:
    def test_gaps(self):
        expected = np.array([[6, 0, 2, 0, -2], [6, 4, 3, 1, -1], [8, 6, 4, 3, 0]]) / 16
        assert theory.gaps(by_hand()).tolist() == expected.tolist()

    def test_partition(self):
        parts = theory.partition(by_hand())
        assert parts.classes.tolist() == [0, 1, 1, 2, -1]
        assert parts.first.tolist() == [True, True, False, False, False]
        assert parts.optimal.tolist() == [4]
        assert parts.sizes.tolist() == [1, 2, 1]
        assert parts.members(1).tolist() == [1, 2]
        assert str(parts).splitlines()[2] == "fidelity 1     2    1    1"

    def test_decay_condition(self):
        """1/psi(zeta): 1/(2/16) = 8, 1/(2/64) = 32, infinite. Sums: 8 ≤ 32, 40 ≤ infinity."""
        decay = theory.decay_condition(by_hand().fidelities)
        assert (decay.left.tolist(), decay.right.tolist()) == ([8, 40], [32, math.inf])
        assert decay.holds.all()

    def test_decay_that_is_too_slow(self):
        """1/psi: 1/(2/16) = 8, 1/(2·9/256) = 14.2, 32, 1/(2·0.12²) = 34.7. Sums: 8 ≤ 14.2, 22.2 ≤ 32, 54.2 > 34.7."""
        decay = theory.decay_condition(Fidelities([1, 2, 4, 8, 16], [0.25, 0.1875, 0.125, 0.12, 0], Bounded()))
        assert decay.holds.tolist() == [True, True, False, True]
        assert "no" in str(decay).splitlines()[3]

    def test_expected_plays(self):
        """rho = 5, kappa = 1 + 1/2 + 3/3 = 5/2, E = 5 log n.

        psi(gamma): 2/64 = 1/32 and 2/256 = 1/128, so below their class arms are played 32E + 1 and 128E + 1 times.
        psi(Delta/2): arm 0 2·(3/16)² = 9/128, arm 1 2·(1/8)² = 1/32, arms 2 and 3 2·(3/32)² = 9/512.
        """
        bounds = theory.expected_plays(by_hand(), n=1000, rho=5)
        effort, k = 5 * math.log(1000), 2.5
        expected = [
            [effort * 128 / 9 + k, 32 * effort + 1, 32 * effort + 1, 32 * effort + 1, 32 * effort + 1],
            [k, 32 * effort + k, effort * 512 / 9 + k, 128 * effort + 1, 128 * effort + 1],
            [k, k, k, effort * 512 / 9 + k, 1000],
        ]
        assert bounds.kappa == k
        np.testing.assert_allclose(bounds.plays, expected, rtol=1e-14)
        assert bounds.above.tolist() == [k, k, k, 0, 0]

    def test_table_of_plays(self):
        """Table 1: the mean over the arms of a class; class 2 has arms 1 and 2."""
        bounds = theory.expected_plays(by_hand(), n=1000, rho=5)
        assert bounds.table.shape == (3, 4)
        np.testing.assert_allclose(bounds.table[:, 1], bounds.plays[:, [1, 2]].mean(axis=1))
        assert bounds.table[2, 3] == 1000
        assert str(bounds).splitlines()[-1].split() == ["arms", "1", "2", "1", "1"]

    def test_plays_tail(self):
        """rho = 5, x = 2, n = 100, nu = 1. Arm 0: kappa_k = 3/4·(9/128/5)⁴, over (2 log n)⁴, plus n⁻⁹.

        Above the class: 3/(4·2⁴) + 1/(3·2³) = 3/64 + 1/24.
        """
        tails = theory.plays_tail(by_hand(), n=100, x=2, rho=5)
        own = 0.75 * (9 / 128 / 5) ** 4 / (2 * math.log(100)) ** 4 + 100.0**-9
        assert tails.own[0] == pytest.approx(own, rel=1e-13)
        np.testing.assert_allclose(tails.above, [3 / 64 + 1 / 24] * 3 + [0, 0], rtol=1e-14)
        assert tails.threshold[0] == pytest.approx(2 * (1 + 5 * math.log(100) * 128 / 9), rel=1e-14)
        assert tails.threshold[4] == math.inf

    def test_best_arm_doubted(self):
        """Mnu/((rho − 2)u^(rho−2)) = 3/(3·10³)."""
        assert theory.best_arm_doubted(by_hand().fidelities, u=10, rho=5) == pytest.approx(1e-3, rel=1e-14)

    def test_regret_rate(self):
        """Delta^(M)·lambda/psi(Delta): arm 0 1/2·1/(9/32) = 16/9, arm 1 3/8·4/(1/8) = 12, arm 2 1/4·4/(9/128) = 128/9,
        arm 3 3/16·16/(9/128) = 128/3.
        """
        np.testing.assert_allclose(theory.regret_rate(by_hand()).per_arm, [16 / 9, 12, 128 / 9, 128 / 3, 0], rtol=1e-14)

    @pytest.mark.parametrize("form", ["every", "large"])
    def test_upper_bound(self, form):
        """Per unit of rho·L and besides, times Delta^(M); kappa = 5/2, lambda_M·kappa = 40.

            arm 0 (1/2):  128/9                        and  5/2 + 40
            arm 1 (3/8):  32 + 4·32                    and  1 + 10 + 40
            arm 2 (1/4):  32 + 4·512/9                 and  1 + 10 + 40
            arm 3 (3/16): 32 + 4·128 + 16·512/9        and  1 + 4 + 40 (its class is the highest: nothing above it)

        and the residual 3/4·16 = 12.
        """
        bound = theory.upper_bound(by_hand(), capital=[1000, 2000.0], rho=5, form=form)
        gap = np.array([1 / 2, 3 / 8, 1 / 4, 3 / 16, 0])
        slope = 5 * gap * [128 / 9, 160, 32 + 2048 / 9, 544 + 8192 / 9, 0]
        constant = gap * [42.5, 51, 51, 45, 0]
        capitals = np.array([1000, 2000])
        log_plays = np.log(capitals) if form == "every" else np.log(capitals // 16) + 1 + math.log(2)
        np.testing.assert_allclose(bound.slope, slope, rtol=1e-14)
        np.testing.assert_allclose(bound.constant, constant, rtol=1e-14)
        np.testing.assert_allclose(bound.per_arm, log_plays[:, None] * slope + constant, rtol=1e-14)
        np.testing.assert_allclose(bound.total, 12 + log_plays * slope.sum() + constant.sum(), rtol=1e-14)

    def test_upper_bound_as_printed(self):
        """No additive terms but mu*·kappa·lambda_M = 3/4·(1 + 1/3 + 3/3)·16 = 28, the stray mu* included."""
        bound = theory.upper_bound(by_hand(), capital=1000, rho=5, form="printed")
        np.testing.assert_allclose(bound.constant, 28 * np.array([1 / 2, 3 / 8, 1 / 4, 3 / 16, 0]), rtol=1e-14)
        assert bound.residual == 12

    def test_ucb_upper_bound(self):
        """M = 1, kappa = 1 + 1/2 + 1/3 = 11/6; psi(Delta/2) = Delta²/2, so an arm adds 16·(5L·2/Delta + 11/6·Delta)."""
        bound = theory.ucb_upper_bound(by_hand(), capital=1600, rho=5)
        gap, log_plays = np.array([1 / 2, 3 / 8, 1 / 4, 3 / 16]), math.log(100)
        np.testing.assert_allclose(bound.per_arm[:4], 16 * (10 * log_plays / gap + 11 / 6 * gap), rtol=1e-14)
        assert bound.per_arm[4] == 0
        assert bound.total == pytest.approx(12 + bound.per_arm.sum(), rel=1e-14)

    def test_lower_bound(self):
        """Delta^(M)·lambda/Delta²: arm 0 1/2·1·64/9; arm 1 3/8·4·16; arm 2, in K_2, 1/4·min(1·64, 4·256/9) = 16;
        arm 3, in K_2, 3/16·min(4·256, 16·256/9) = 256/3.

        Constants: (mu* − zeta)(1 − mu* + zeta) is 1/4, 15/64, 3/16, at its least 3/16 from any p on; over M − p + 1
        and over 4. p is the first fidelity with a positive gap: 1, 2, 1, 2.
        """
        bound = theory.lower_bound(by_hand())
        np.testing.assert_allclose(bound.per_arm, [32 / 9, 24, 16, 256 / 3, 0], rtol=1e-14)
        np.testing.assert_allclose(bound.constants[:4], [1 / 64, 3 / 128, 1 / 64, 3 / 128], rtol=1e-14)
        assert bound.first == pytest.approx(32 / 9 + 24)
        assert bound.second == pytest.approx(16 + 256 / 3)
        assert bound.total == pytest.approx(bound.first + bound.second)
        assert bound.proven == pytest.approx(32 / 9 / 64 + 24 * 3 / 128 + 16 / 64 + 256 / 3 * 3 / 128)
        assert bound.at(16 * 100) == pytest.approx(bound.proven * math.log(100))

    def test_lower_bound_of_the_lemma(self):
        """Without the limit to l ≤ [k] the same fidelities win here; the constants lack the 4."""
        lemma, theorem = theory.lower_bound(by_hand(), form="lemma"), theory.lower_bound(by_hand())
        assert lemma.per_arm.tolist() == theorem.per_arm.tolist()
        np.testing.assert_allclose(lemma.constants, 4 * theorem.constants)

    def test_lower_bound_by_divergence(self):
        """kl(mu, mu* − zeta) at the cheapest evidence: arms 0, 2 at m = 1 (1/2), arm 1 at 2 (5/8), arm 3 at 3 (3/4).

        Arm 2: 1/kl(3/8, 1/2) = 31.6 against 4/kl(7/16, 5/8) = 55.9 and 16/kl(1/2, 3/4) = 111.
        Arm 3: 16/kl(9/16, 3/4) = 189 against 4/kl(9/16, 5/8) = 480.
        """

        def kl(p, q):
            return p * math.log(p / q) + (1 - p) * math.log((1 - p) / (1 - q))

        bound = theory.lower_bound(by_hand(), form="divergence")
        cheapest = [1 / kl(1 / 8, 1 / 2), 4 / kl(3 / 8, 5 / 8), 1 / kl(3 / 8, 1 / 2), 16 / kl(9 / 16, 3 / 4), 0]
        np.testing.assert_allclose(bound.per_arm, np.array([1 / 2, 3 / 8, 1 / 4, 3 / 16, 0]) * cheapest, rtol=1e-13)
        assert bound.proven == bound.total
        assert theory.optimal_fidelity(by_hand()).tolist() == [0, 1, 0, 2, -1]

    def test_lower_bound_by_divergence_for_gaussian_rewards(self):
        """kl is Delta²/(2 sigma²): arm 2's at fidelity 1 (1/8)²/(2/4) = 1/32, so 1/4·32."""
        problem = Problem(MEANS, by_hand().fidelities, Gaussian(0.5))
        assert theory.lower_bound(problem, form="divergence").per_arm[2] == 8


class Heavier(Bounded):
    """Hoeffding's tail with a factor of 3 in front."""

    @property
    def nu(self):
        return 3.0


class TestFactorNu:
    """nu = 3 at one fidelity of three: the largest counts everywhere."""

    @property
    def problem(self):
        fid = Fidelities([1, 4, 16], [0.25, 0.125, 0], [Bounded(), Heavier(), Bounded()])
        return Problem(MEANS, fid, Bernoulli())

    def test_kappa(self):
        """1 + 3/2 + 9/3 at rho = 5; at rho = 3, where 1/(rho − 2) is larger than 1/2, 1 + 3 + 9."""
        assert kappa(self.problem.fidelities, 5) == 5.5
        assert kappa(self.problem.fidelities, 3) == 13
        assert kappa(by_hand().fidelities, 3) == 1 + 1 + 3

    def test_tails(self):
        """x = 2, rho = 3, n = 4: 9/(2·4) + 3/2, more than 1; x = 10, rho = 5: 9/(4·10⁴) + 3/(3·10³)."""
        assert theory.plays_tail(self.problem, n=4, x=2, rho=3).above[0] == 1
        tails = theory.plays_tail(self.problem, n=4, x=10, rho=5)
        np.testing.assert_allclose(tails.above[:3], 9 / 4e4 + 1e-3, rtol=1e-12)

    def test_own_tail(self):
        """rho = 2.5, x = 1, n = 4: 3·3/1.5·(psi/(2.5·log 4))^1.5 + 3·4^−1.5, psi = 9/128 for arm 0."""
        own = 6 * (9 / 128 / (2.5 * math.log(4))) ** 1.5 + 3 / 8
        assert theory.plays_tail(self.problem, n=4, x=1, rho=2.5).own[0] == pytest.approx(own, rel=1e-12)

    def test_best_arm_doubted(self):
        assert theory.best_arm_doubted(self.problem.fidelities, u=10, rho=5) == pytest.approx(3e-3, rel=1e-12)

    def test_printed_constant(self):
        """mu*·lambda_M·(1 + 3/3 + 9/3) = 12·5."""
        bound = theory.upper_bound(self.problem, 1000, rho=5, form="printed")
        assert bound.constant[0] == pytest.approx(60 / 2)


class TestDetails:
    def test_a_gap_of_exactly_twice_gamma_is_not_enough(self):
        """Gap 1/4 = 2·gamma at the low fidelity: not settled there."""
        problem = Problem([[0.25, 0.75], [0.25, 0.75]], by_hand().fidelities.only([1, 2]), Bernoulli())
        assert theory.gaps(problem)[0, 0] == 0.375
        exact = Problem([[0.375, 0.75], [0.25, 0.75]], by_hand().fidelities.only([1, 2]), Bernoulli())
        assert theory.gaps(exact)[0, 0] == 2 * exact.fidelities.gammas[0] * 2
        on_the_line = Problem([[0.5, 0.75], [0.375, 0.75]], by_hand().fidelities.only([1, 2]), Bernoulli())
        assert theory.gaps(on_the_line)[0, 0] == 2 * on_the_line.fidelities.gammas[0]
        assert theory.partition(on_the_line).classes.tolist() == [1, -1]

    def test_rates_of_each_fidelity(self):
        """sigma 1/2 below, 1 above: arm 1, of class 2, adds 3/8·4/(1/16/2)."""
        fid = Fidelities([1, 4, 16], [0.25, 0.125, 0], [SubGaussian(0.5), SubGaussian(1.0), SubGaussian(0.5)])
        rate = theory.regret_rate(Problem(MEANS, fid, Gaussian([0.5, 1.0, 0.5])))
        assert rate.per_arm[1] == pytest.approx(3 / 8 * 4 * 32)

    def test_divergence_with_noise_of_each_fidelity(self):
        """sigma 2 at the low fidelities: arm 2's evidence is cheapest at the top, 16·2·(1/4)²/(1/4)²."""
        problem = Problem(MEANS, Fidelities([1, 4, 16], [0.25, 0.125, 0], SubGaussian(2.0)), Gaussian([2.0, 2.0, 0.25]))
        assert theory.optimal_fidelity(problem)[2] == 2
        assert theory.lower_bound(problem, form="divergence").per_arm[2] == pytest.approx(1 / 4 * 16 * 2)

    def test_constants_look_upwards_only(self):
        """mu* = 0.9, zeta = 0.45: (0.45·0.55, 0.9·0.1); from p = 2 on 0.09, from p = 1 the least is 0.09 over 2."""
        problem = Problem([[0.1, 0.5, 0.9], [0.5, 0.6, 0.9]], Fidelities([1, 10], [0.45, 0], Bounded()), Bernoulli())
        np.testing.assert_allclose(theory.lower_bound(problem, form="lemma").constants[:2], [0.09 / 2, 0.09])
        low = Problem([[0.1, 0.5, 0.6], [0.3, 0.5, 0.6]], Fidelities([1, 10], [0.45, 0], Bounded()), Bernoulli())
        np.testing.assert_allclose(theory.lower_bound(low, form="lemma").constants[:2], [0.15 * 0.85 / 2, 0.24])

    def test_lower_bound_counts_whole_plays(self):
        bound = theory.lower_bound(by_hand())
        assert bound.at(16 * 2.9) == bound.at(16 * 2)

    def test_best_mean_of_one_half(self):
        problem = Problem([[0.2, 0.5]], Fidelities([1], concentration=Bounded()), Bernoulli())
        with pytest.raises(ValueError, match=r"a best mean in \(1/2, 1\), got 0.5"):
            theory.lower_bound(problem)

    def test_a_little_more_noise_is_too_much(self):
        problem = Problem(MEANS, Fidelities([1, 4, 16], [0.25, 0.125, 0], SubGaussian(0.49)), Bernoulli())
        with pytest.raises(ValueError, match=r"a scale of 0.5 at fidelity 0, whose concentration has 0.49"):
            theory.upper_bound(problem, 100, rho=5)

    def test_a_little_more_bias_is_too_much(self):
        problem = Problem(
            [[0.51, 0.5], [0.25, 0.6]], Fidelities([1, 4], [0.25, 0], Bounded()), Bernoulli(), misspecified=True
        )
        with pytest.raises(ValueError, match=r"exceeds its bias of 0.25 by 0.01"):
            theory.upper_bound(problem, 100, rho=5)

    def test_lemma_11_needs_no_square(self):
        problem = Problem(MEANS, Fidelities([1, 4, 16], [0.25, 0.125, 0], SubExponential()), Bernoulli())
        assert theory.lower_bound(problem, form="lemma").caveats == ()

    @pytest.mark.parametrize("rho", [Fraction(5), np.float32(5), 5])
    def test_any_number_will_do(self, rho):
        assert theory.upper_bound(by_hand(), 1000, rho=rho).total == theory.upper_bound(by_hand(), 1000, rho=5.0).total
        assert theory.plays_tail(by_hand(), 10, 1, rho=rho).own.dtype == np.float64

    def test_extremes(self):
        fid = by_hand().fidelities
        assert theory.best_arm_doubted(fid, u=1e6, rho=60) == pytest.approx(3 / 58 * 1e6**-58.0, abs=1e-300)
        assert theory.best_arm_doubted(fid, u=1e-3, rho=200) == math.inf
        assert theory.plays_tail(by_hand(), n=10, x=1000, rho=150).above[0] == 0
        with pytest.raises(ValueError, match=r"n must be at least 1 and at most 1e.300, got 1000"):
            theory.expected_plays(by_hand(), 10**400, rho=5)

    def test_tables_of_many_arms_stay_in_their_columns(self):
        truth = np.linspace(0.1, 0.9, 1_000_000)
        problem = Problem([truth, truth], Fidelities([1, 10], [0.1, 0], Bounded()), Bernoulli())
        for table in (str(theory.partition(problem)), str(theory.expected_plays(problem, 10**9, rho=5))):
            assert all(re.search(r"\d\d{3},|,\d{4}", line) is None for line in table.splitlines())
            assert "  " in table.splitlines()[1].strip()


# Brute force


def naive_classes(problem):
    """The definitions of Section 4 in loops: class from 0, −1 if optimal, and whether in K_1."""
    fid, best = problem.fidelities, problem.best_mean
    result = []
    for k in range(problem.arms):
        gap = [best - problem.means[m, k] - fid.known_biases[m] for m in range(len(fid))]
        if problem.means[-1, k] == best:
            result.append((-1, False))
            continue
        m = 0
        while m < len(fid) - 1 and not gap[m] > 2 * fid.gammas[m]:
            m += 1
        result.append((m, all(g <= 0 for g in gap[:m])))
    return result


@given(problems(max_arms=20, any_psi=True))
@settings(max_examples=examples(200), deadline=None)
def test_partition_is_the_definition(problem):
    parts = theory.partition(problem)
    assert list(zip(parts.classes.tolist(), parts.first.tolist(), strict=True)) == naive_classes(problem)


@given(problems(max_arms=20, any_psi=True))
@settings(max_examples=examples(100), deadline=None)
def test_classes_are_disjoint_cover_all_and_keep_their_inequalities(problem):
    parts, gap = theory.partition(problem), theory.gaps(problem)
    members = [parts.members(m) for m in range(len(problem.fidelities))]
    everyone = np.concatenate([*members, parts.optimal])
    assert sorted(everyone.tolist()) == list(range(problem.arms))
    assert parts.optimal.tolist() == problem.optimal.tolist()
    for m, arms in enumerate(members):
        gammas = np.array(problem.fidelities.gammas)
        assert (gap[:m, arms] <= 2 * gammas[:m, None]).all()
        assert (gap[m, arms] > (2 * gammas[m] if m < len(gammas) else 0)).all()


def naive_upper_bound(problem, log_plays, rho):
    fid = problem.fidelities
    extra = kappa(fid, rho)
    total = max(problem.best_mean, 0) * fid.costs[-1]
    for k, (m, _) in enumerate(naive_classes(problem)):
        if m < 0:
            continue
        gap = problem.best_mean - problem.means[m, k] - fid.known_biases[m]
        cost = sum(fid.costs[low] * (rho * log_plays / fid.tails[low].psi(fid.gammas[low]) + 1) for low in range(m))
        cost += fid.costs[m] * (rho * log_plays / fid.tails[m].psi(gap / 2) + extra)
        cost += extra * fid.costs[-1] if m < len(fid) - 1 else 0
        total += (problem.best_mean - problem.means[-1, k]) * cost
    return total


@given(problems(max_arms=20, any_psi=True), st.floats(1, 1e9))
@settings(max_examples=examples(100), deadline=None)
def test_upper_bound_is_the_sum(problem, capital):
    bound = theory.upper_bound(problem, capital, rho=5, unproven=True)
    log_plays = math.log(max(capital / problem.fidelities.costs[0], 1))
    assert bound.total == pytest.approx(naive_upper_bound(problem, log_plays, 5), rel=1e-9)


@given(problems(max_arms=20, any_psi=True), st.integers(1, 10**9))
@settings(max_examples=examples(100), deadline=None)
def test_regret_of_the_bounded_plays_is_the_upper_bound(problem, n):
    """Lemma 10 is Lemma 8 weighed by gaps and costs."""
    fid = problem.fidelities
    plays = theory.expected_plays(problem, n, rho=5, unproven=True)
    bound = theory.upper_bound(problem, n * fid.costs[0], rho=5, unproven=True)
    counted = np.arange(len(fid))[:, None] <= plays.partition.classes
    weighed = np.where(counted, plays.plays * np.array(fid.costs)[:, None], 0).sum(axis=0) + plays.above * fid.costs[-1]
    np.testing.assert_allclose(bound.per_arm, weighed * problem.gaps, rtol=1e-9)


@given(problems(max_arms=12))
@settings(max_examples=examples(100), deadline=None)
def test_lower_bounds_by_brute_force(problem):
    gap = theory.gaps(problem)
    for form in ("theorem", "lemma"):
        bound = theory.lower_bound(problem, form=form, unproven=True)
        for k, (m, _) in enumerate(naive_classes(problem)):
            usable = [low for low in range(len(gap)) if gap[low, k] > 0 and (form == "lemma" or low <= m)]
            costs = [problem.fidelities.costs[low] / gap[low, k] ** 2 for low in usable]
            expected = problem.gaps[k] * min(costs) if m >= 0 else 0
            assert bound.per_arm[k] == pytest.approx(expected, rel=1e-12)


@given(problems(max_arms=12))
@settings(max_examples=examples(100), deadline=None)
def test_the_best_fidelity_attains_the_lower_bound(problem):
    bound = theory.lower_bound(problem, form="divergence", unproven=True)
    for k, m in enumerate(theory.optimal_fidelity(problem, unproven=True).tolist()):
        if m < 0:
            assert bound.per_arm[k] == 0
            continue
        gap = theory.gaps(problem)[m, k]
        assert gap > 0
        if isinstance(problem.rewards, Gaussian):
            kl = gap**2 / (2 * problem.rewards.sigmas(len(problem.fidelities))[m] ** 2)
            assert bound.per_arm[k] == pytest.approx(problem.gaps[k] * problem.fidelities.costs[m] / kl, rel=1e-9)


# Symmetries


@given(problems(max_arms=10, max_fidelities=1))
@settings(max_examples=examples(50), deadline=None)
def test_one_fidelity_is_ucb(problem):
    ours, ucb = (bound(problem, 1e5, rho=5, unproven=True) for bound in (theory.upper_bound, theory.ucb_upper_bound))
    assert ours.total == ucb.total
    assert ours.per_arm.tolist() == ucb.per_arm.tolist()
    assert set(theory.partition(problem).classes.tolist()) <= {0, -1}


def test_ucb_bound_ignores_low_fidelities():
    alone = Problem(MEANS[-1:], Fidelities([16], concentration=Bounded()), Bernoulli())
    assert theory.ucb_upper_bound(by_hand(), 1e4, rho=5).total == theory.upper_bound(alone, 1e4, rho=5).total


@given(problems(max_arms=10), st.sampled_from([0.25, 2.0, 1024.0]))
@settings(max_examples=examples(50), deadline=None)
def test_costs_scale_regret(problem, scale):
    fid = problem.fidelities
    scaled_fid = Fidelities([scale * cost for cost in fid.costs], fid.biases, fid.concentration)
    scaled = Problem(problem.means, scaled_fid, problem.rewards)
    for form in ("every", "large", "printed"):
        ours, other = (
            theory.upper_bound(p, c, rho=5, form=form, unproven=True)
            for p, c in ((problem, 1e6), (scaled, scale * 1e6))
        )
        assert other.total == pytest.approx(scale * ours.total, rel=1e-12)
    lower, other_lower = (theory.lower_bound(p, form="divergence", unproven=True).total for p in (problem, scaled))
    assert other_lower == pytest.approx(scale * lower, rel=1e-12)


@given(st.integers(0, 2**32), st.sampled_from([-4.0, 0.5, 8.0]))
@settings(max_examples=examples(50), deadline=None)
def test_shifting_all_means_changes_neither_classes_nor_plays(seed, shift):
    """Means, biases and shifts are multiples of 2⁻¹⁰, so that sums and differences are exact."""
    rng = np.random.default_rng(seed)
    fid = Fidelities([1, 4, 16], [0.25, 0.125, 0], SubGaussian(0.5))
    truth = rng.integers(0, 1024, size=8) / 1024
    means = truth + np.array([[256], [128], [0]]) * np.round(rng.uniform(-1, 1, (3, 8)) * 16) / 16 / 1024
    here, there = (Problem(means + move, fid, Gaussian(0.5)) for move in (0.0, shift))
    assert theory.partition(here).classes.tolist() == theory.partition(there).classes.tolist()
    ours, other = (theory.expected_plays(p, n=10_000, rho=5) for p in (here, there))
    assert ours.plays.tolist() == other.plays.tolist()
    assert ours.above.tolist() == other.above.tolist()


# Conditions


def gaussian():
    return Problem(MEANS, by_hand().fidelities, Gaussian(0.5))


def misspecified():
    return Problem([[0.9, 0.5], [0.2, 0.5]], Fidelities([1, 4], [0.25, 0], Bounded()), Bernoulli(), misspecified=True)


def noisier():
    return Problem(MEANS, Fidelities([1, 4, 16], [0.25, 0.125, 0], SubGaussian(0.25)), Gaussian(0.5))


BOUNDS: dict[str, tuple[Any, str]] = {
    "regret_rate": (theory.regret_rate, "Theorem 2"),
    "upper_bound": (lambda p, **option: theory.upper_bound(p, 1e4, rho=5, **option), "Lemma 10"),
    "ucb": (lambda p, **option: theory.ucb_upper_bound(p, 1e4, rho=5, **option), "Lemma 10"),
    "expected_plays": (lambda p, **option: theory.expected_plays(p, 100, rho=5, **option), "Lemma 8"),
    "plays_tail": (lambda p, **option: theory.plays_tail(p, 100, 2, rho=5, **option), "Lemma 9"),
    "theorem": (theory.lower_bound, "Theorem 4"),
    "lemma": (lambda p, **option: theory.lower_bound(p, form="lemma", **option), "Lemma 11"),
    "divergence": (lambda p, **option: theory.lower_bound(p, form="divergence", **option), "divergence form"),
}


class TestConditions:
    @pytest.mark.parametrize(("bound", "name"), BOUNDS.values(), ids=BOUNDS)
    def test_noise_beyond_the_concentration(self, bound, name):
        with pytest.raises(ValueError, match=rf"{name}.*eq. 2.*0.5 at fidelity \d, whose concentration has 0.25"):
            bound(noisier())
        assert any("eq. 2" in caveat for caveat in bound(noisier(), unproven=True).caveats)

    @pytest.mark.parametrize("which", [name for name in BOUNDS if name != "ucb"])
    def test_misspecified_problems(self, which):
        bound, name = BOUNDS[which]
        with pytest.raises(
            ValueError, match=rf"{name}.*misspecified problem: arm 0 at fidelity 0 exceeds its bias of .* by 0.45"
        ):
            bound(misspecified())
        assert any("misspecified" in caveat for caveat in bound(misspecified(), unproven=True).caveats)

    def test_a_problem_said_to_be_misspecified_that_is_not(self):
        problem = Problem(MEANS, by_hand().fidelities, Bernoulli(), misspecified=True)
        assert theory.upper_bound(problem, 1e4, rho=5).caveats == ()

    def test_slowly_decaying_biases_for_theorem_2(self):
        fid = Fidelities([1, 2, 4, 8], [0.3, 0.29, 0.28, 0], Bounded())
        problem = Problem(np.full((4, 2), [0.5, 0.6]), fid, Bernoulli())
        with pytest.raises(ValueError, match=r"Theorem 2 needs biases that decay fast .*Assumption 1\), got \(0.3"):
            theory.regret_rate(problem)
        assert len(theory.regret_rate(problem, unproven=True).caveats) == 1

    def test_one_psi_of_ones_own_does_not_hide_the_others(self):
        fid = Fidelities([1, 4], [0.25, 0], [SubExponential(), SubGaussian(0.01)])
        problem = Problem([[0.5, 0.6], [0.5, 0.6]], fid, Gaussian(0.5))
        with pytest.raises(ValueError, match=r"fidelity 1, whose concentration has 0.01"):
            theory.upper_bound(problem, 100, rho=5)

    def test_tables_replayed_in_order(self):
        table = Replay([[[0.0, 0.5], [0.5, 1.0]]], replace=False)
        problem = Problem(table.means, Fidelities([1], concentration=Bounded()), table)
        with pytest.raises(ValueError, match="Lemma 8 needs independent rewards"):
            theory.expected_plays(problem, 10, rho=5)

    @pytest.mark.parametrize("rho", [2, 4, 0.5])
    def test_rho_too_small_for_regret(self, rho):
        with pytest.raises(ValueError, match=rf"Lemma 10 needs rho above 4, got rho={rho} \(unproven=True"):
            theory.upper_bound(by_hand(), 1e4, rho=rho)
        bound = theory.upper_bound(by_hand(), 1e4, rho=rho, unproven=True)
        assert bound.caveats == (f"Lemma 10 needs rho above 4, got rho={rho}",)
        assert bound.per_arm[4] == 0
        assert math.isinf(bound.total) == (rho <= 2)

    @pytest.mark.parametrize("rho", [2, 1, 0.5])
    def test_rho_too_small_for_plays(self, rho):
        with pytest.raises(ValueError, match="Lemma 8 needs rho above 2"):
            theory.expected_plays(by_hand(), 100, rho=rho)
        assert theory.expected_plays(by_hand(), 100, rho=rho, unproven=True).plays[1, 0] == math.inf
        with pytest.raises(ValueError, match="Lemma 9 needs rho above 2"):
            theory.plays_tail(by_hand(), 100, 1, rho=rho)
        assert theory.plays_tail(by_hand(), 100, 1, rho=rho, unproven=True).above[0] == 1
        with pytest.raises(ValueError, match="Lemma 7 needs rho above 2"):
            theory.best_arm_doubted(by_hand().fidelities, 10, rho=rho)
        assert theory.best_arm_doubted(by_hand().fidelities, 10, rho=rho, unproven=True) == math.inf

    def test_gaussian_rewards_for_theorem_4(self):
        with pytest.raises(ValueError, match="Theorem 4 needs Bernoulli rewards, got Gaussian"):
            theory.lower_bound(gaussian())
        bound = theory.lower_bound(gaussian(), unproven=True)
        assert bound.caveats == ("Theorem 4 needs Bernoulli rewards, got Gaussian",)
        assert math.isnan(bound.proven)
        assert bound.total == pytest.approx(32 / 9 + 24 + 16 + 256 / 3)

    @pytest.mark.parametrize(
        ("means", "biases", "said"),
        [
            ([[0.2, 0.3], [0.2, 0.4]], [0.25, 0], "best mean in (1/2, 1), got 0.4"),
            ([[0.2, 0.9], [0.2, 1.0]], [0.25, 0], "best mean in (1/2, 1), got 1"),
            ([[0.2, 0.9], [0.2, 0.9]], [0.5, 0], "biases below 1/2, got 0.5 at fidelity 0"),
        ],
    )
    def test_means_and_biases_for_theorem_4(self, means, biases, said):
        problem = Problem(means, Fidelities([1, 4], biases, Bounded()), Bernoulli())
        with pytest.raises(ValueError, match="Theorem 4 needs") as error:
            theory.lower_bound(problem)
        assert said in str(error.value)

    def test_two_broken_conditions_are_both_named(self):
        with pytest.raises(ValueError, match="rho above 4, got rho=2; and means within their biases"):
            theory.upper_bound(misspecified(), 1e4, rho=2)

    def test_forms_for_large_capital_say_so(self):
        assert "holds beyond a capital" in theory.upper_bound(by_hand(), 1e4, rho=5, form="large").caveats[0]
        assert "not a bound" in theory.upper_bound(by_hand(), 1e4, rho=5, form="printed").caveats[0]
        assert theory.ucb_upper_bound(by_hand(), 1e4, rho=5, form="large").caveats == ()
        assert theory.upper_bound(by_hand(), 1e4, rho=5).caveats == ()

    def test_replayed_rewards(self):
        """Half the range of a table is a scale that Hoeffding guarantees; its divergence is not known."""
        table = Replay([[[0.0, 0.5], [0.25, 0.75]], [[0.0, 0.5], [0.5, 1.0]]])
        problem = Problem(table.means, Fidelities([1, 4], [0.25, 0], SubGaussian(0.25)), table)
        assert theory.upper_bound(problem, 100, rho=5).caveats == ()
        assert theory.ucb_upper_bound(problem, 100, rho=5).caveats == ()
        with pytest.raises(ValueError, match="needs Bernoulli or Gaussian rewards, got Replay"):
            theory.optimal_fidelity(problem)
        # Arm 0: gaps 0.25 and 0.5, psi(x) = 8x²; 1/psi(0.25) = 2 against 4/psi(0.5) = 2: the first of the two.
        assert theory.optimal_fidelity(problem, unproven=True).tolist() == [0, -1]

    def test_psi_that_is_no_square_for_theorem_4(self):
        class Cubic(Bounded):
            def psi(self, x):
                return x**3

            def psi_inv(self, y):
                return y ** (1 / 3)

        problem = Problem(MEANS, Fidelities([1, 4, 16], [0.25, 0.125, 0], Cubic()), Bernoulli())
        with pytest.raises(ValueError, match="Theorem 4 needs a psi that is a multiple of x²"):
            theory.lower_bound(problem)
        assert theory.upper_bound(problem, 100, rho=5).total > 0


class TestBadInput:
    @pytest.mark.parametrize("n", [0, -1])
    def test_n(self, n):
        with pytest.raises(ValueError, match=f"n must be at least 1 .*, got {n}"):
            theory.expected_plays(by_hand(), n, rho=5)

    def test_n_that_is_no_whole_number(self):
        with pytest.raises(ValueError, match=r"n must be a whole number, got 2.5"):
            theory.plays_tail(by_hand(), 2.5, 1, rho=5)  # type: ignore[arg-type]

    def test_x(self):
        with pytest.raises(ValueError, match=r"x must be at least 1 .*, got 0"):
            theory.plays_tail(by_hand(), 10, 0, rho=5)

    @pytest.mark.parametrize("capital", [0, -1, math.nan, math.inf, [1, -1], "a lot"])
    def test_capital(self, capital):
        with pytest.raises(ValueError, match="capital must be"):
            theory.upper_bound(by_hand(), capital, rho=5)

    def test_forms(self):
        with pytest.raises(ValueError, match=r"form must be one of \['every', 'large', 'printed'\], got 'best'"):
            theory.upper_bound(by_hand(), 10, rho=5, form="best")  # type: ignore[arg-type]
        with pytest.raises(ValueError, match=r"form must be one of \['theorem', 'lemma', 'divergence'\], got 'best'"):
            theory.lower_bound(by_hand(), form="best")  # type: ignore[arg-type]

    def test_rho(self):
        with pytest.raises(ValueError, match="rho must be positive and finite, got -1"):
            theory.upper_bound(by_hand(), 10, rho=-1, unproven=True)

    def test_unknown_biases(self):
        problem = Problem([[0.1, 0.2], [0.2, 0.3]], Fidelities([1, 2], concentration=Bounded()), Bernoulli())
        with pytest.raises(ValueError, match="biases are needed here"):
            theory.partition(problem)


class TestEdges:
    def test_one_arm(self):
        problem = Problem([[0.5], [0.6]], Fidelities([1, 4], [0.25, 0], Bounded()), Bernoulli())
        assert theory.partition(problem).classes.tolist() == [-1]
        assert theory.upper_bound(problem, 100, rho=5).total == pytest.approx(0.6 * 4)
        assert theory.lower_bound(problem).proven == 0
        assert theory.optimal_fidelity(problem).tolist() == [-1]

    def test_negative_best_mean_has_no_residual(self):
        problem = Problem([[-2.0, -1.0]], Fidelities([3], concentration=SubGaussian(1)), Gaussian(1))
        assert theory.upper_bound(problem, 100, rho=5).residual == 0

    def test_capital_below_one_play(self):
        assert theory.upper_bound(by_hand(), 0.5, rho=5).log_plays == 0

    def test_after_one_play(self):
        assert theory.expected_plays(by_hand(), 1, rho=5).plays[0, 1] == 1
        assert theory.plays_tail(by_hand(), 1, 1, rho=5).own.tolist() == [1, 1, 1, 1, 0]

    def test_certain_rewards(self):
        """Gaussian rewards without noise: one play is enough evidence at any capital."""
        problem = Problem(MEANS, by_hand().fidelities, Gaussian(0))
        assert theory.lower_bound(problem, form="divergence").total == 0

    def test_noise_of_each_fidelity(self):
        problem = Problem(MEANS, by_hand().fidelities, Gaussian([0.1, 0.2, 0.5]))
        assert theory.ucb_upper_bound(problem, 100, rho=5).caveats == ()
        assert top_only(problem).rewards == Gaussian([0.5])

    def test_means_0_and_1(self):
        p, q = np.array([0.0, 1.0, 0.0, 0.5]), np.array([0.25, 1.0, 0.0, 1.0])
        assert bernoulli_divergence(p, q).tolist() == [-math.log(0.75), 0, 0, math.inf]

    @given(st.floats(0.01, 0.98), st.floats(1e-9, 0.01))
    def test_divergence_of_near_means(self, p, step):
        """To second order it is step²/(2p(1−p)), which logarithms of p/q would not give at 1e-9."""
        kl = float(bernoulli_divergence(np.array(p), np.array(p + step)))
        third_order = 4 * step / min(p, 1 - p)
        assert kl == pytest.approx(step**2 / (2 * p * (1 - p)), rel=third_order + 1e-5)

    def test_no_low_fidelity_helps(self):
        """All arms alike: everything is optimal."""
        problem = Problem(np.full((2, 3), 0.5), Fidelities([1, 4], [0.25, 0], Bounded()), Bernoulli())
        assert theory.partition(problem).sizes.tolist() == [0, 0]
        assert theory.expected_plays(problem, 10, rho=5).table.shape == (2, 3)
        assert "-" in str(theory.expected_plays(problem, 10, rho=5))


@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_paper_problems_meet_assumption_1_and_mf_ucb_gains(number):
    problem = paper_problem(number)
    assert theory.decay_condition(problem.fidelities).holds.all()
    assert theory.regret_rate(problem).total < theory.regret_rate(top_only(problem)).total
