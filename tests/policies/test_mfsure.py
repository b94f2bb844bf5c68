"""MFSure: its plays against the rule written out in loops, what it needs, and runs that must not get stuck."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mfbandit import (
    Bernoulli,
    Bounded,
    Experiment,
    Fidelities,
    Gaussian,
    MFSure,
    Problem,
    Stats,
    SubGaussian,
    check_policy,
    simulate,
)
from mfbandit.core.claims import Pool, explanation
from mfbandit.core.confidence import Roster
from mfbandit.core.estimate import centre
from mfbandit.core.pair_claim import all_ruled_out
from mfbandit.errors import InvalidArgument
from mfbandit.policies.mfsure import GOLDEN
from tests.support.effort import examples
from tests.support.oracle_policies import policy_plays
from tests.support.strategies import problems

FIVE = Problem([[0.4] * 4 + [0.5], [0.5] * 4 + [0.6]], Fidelities([0.5, 5], [0.1, 0], SubGaussian(0.1)), Gaussian(0.1))
# Bands that nearly touch, at costs of 1 to 50: where rules that choose each arm's fidelity alone never end.
FOREVER = Problem([[0.46, 0.64], [0.5, 0.6]], Fidelities([0.1, 5], [0.1, 0], SubGaussian(1.0)), Gaussian(1.0))


def written_out(plays, counts, sums, fidelities, tolerance):
    """The next play, one arm and one fidelity at a time, with the meeting point found by a fine search."""
    costs, biases = fidelities.costs, fidelities.biases
    scales = [tail.scale for tail in fidelities.tails]
    number, arms = len(costs), range(len(counts[0]))
    for k in arms:
        if not any(plays[m][k] for m in range(number)):
            return k, 0
    if len(arms) == 1:
        return 0, number - 1
    column = lambda table, k: [table[m][k] for m in range(number)]  # noqa: E731
    centres = [centre(column(counts, k), column(sums, k), scales, biases) for k in arms]
    leader = max(arms, key=lambda k: (centres[k], -k))

    def parts(a, eta):
        first = second = 0.0
        for m in range(number):
            if counts[m][leader]:
                gap = max(sums[m][leader] / counts[m][leader] - biases[m] - eta, 0)
                first += plays[m][leader] * gap * gap / (2 * scales[m] ** 2)
            if counts[m][a]:
                gap = max(eta + tolerance - sums[m][a] / counts[m][a] - biases[m], 0)
                second += plays[m][a] * gap * gap / (2 * scales[m] ** 2)
        return first, second

    def meeting(a):
        low, high = -50.0, 50.0
        for _ in range(200):
            one, two = low + (high - low) / 3, high - (high - low) / 3
            low, high = (one, high) if sum(parts(a, one)) > sum(parts(a, two)) else (low, two)
        return (low + high) / 2

    def far(k, eta, side):
        reach, worth = math.inf, []
        hopes = [math.inf] * number
        for m in range(number):
            if counts[m][k]:
                optimism = 3.0 if m == number - 1 else 2.5
                hopes[m] = side * sums[m][k] / counts[m][k] + optimism * scales[m] / math.sqrt(plays[m][k])
                reach = min(reach, hopes[m] + biases[m])
        for m in range(number):
            distance = max(min(hopes[m], reach + biases[m]) - biases[m] - side * eta, 0)
            worth.append(distance**2 / (2 * scales[m] ** 2 * costs[m]))
        return max(range(number), key=lambda m: (worth[m], m)) if max(worth) > 0 else number - 1

    ranked = []
    for a in arms:
        if a != leader:
            eta = meeting(a)
            value = sum(parts(a, eta))
            if value < 1e-12:
                value = 0.0
            ranked.append((value + math.log(sum(column(plays, a))), -centres[a], a, value, eta))
    _, _, challenger, value, eta = min(ranked)
    if value == 0:
        eta = (centres[leader] + centres[challenger]) / 2 - tolerance / 2
    mine, others = far(leader, eta, 1), far(challenger, eta + tolerance, -1)
    if value == 0:
        spent = [sum(cost * n for cost, n in zip(costs, column(plays, k), strict=True)) for k in (leader, challenger)]
        first = spent[0] < spent[1]
    else:
        share = parts(challenger, eta)[0] / value
        odds, against = share / costs[mine], (1 - share) / costs[others]
        time = sum(map(sum, plays)) + 1
        first = (time * GOLDEN) % 1 < odds / (odds + against)
    return (leader, mine) if first else (challenger, others)


def test_contract():
    check_policy(MFSure())
    check_policy(MFSure(delta=0.3, tolerance=0.2))


@pytest.mark.parametrize("tolerance", [0.0, 0.07])
def test_plays_are_those_of_the_rule_written_out(tolerance):
    """Over random rewards no two numbers are so close that a search in place of a formula decides otherwise."""
    fidelities = Fidelities([1, 4, 20], [0.2, 0.05, 0], SubGaussian(0.3))
    problem = Problem([[0.2, 0.6, 0.4], [0.25, 0.5, 0.4], [0.3, 0.5, 0.42]], fidelities, Gaussian(0.3))
    rng, counts, sums = np.random.default_rng(3), np.zeros((3, 3), int), np.zeros((3, 3))
    policy = MFSure(delta=1e-9, tolerance=tolerance)
    for arm, m in policy_plays(problem, policy, 60, seed=3):
        assert (arm, m) == written_out(counts.tolist(), counts.tolist(), sums.tolist(), fidelities, tolerance)
        sums[m, arm] += problem.draw(arm, m, rng, earlier=int(counts[m, arm]))
        counts[m, arm] += 1


def test_pending_plays_count_in_numbers_and_not_in_means():
    fidelities = Fidelities([1, 4], [0.1, 0], SubGaussian(0.2))
    rng, stats = np.random.default_rng(0), Stats.empty(2, 3)
    for _ in range(40):
        at = rng.integers(2), rng.integers(3)
        stats.counts[at] += 1
        stats.sums[at] += rng.normal(0.2 * at[1], 0.2)
    for _ in range(20):
        stats.pending[rng.integers(2), rng.integers(3)] += 1
        given = (stats.plays.tolist(), stats.counts.tolist(), stats.sums.tolist())
        assert MFSure().choose(stats, fidelities) == written_out(*given, fidelities, 0.0)


@pytest.mark.parametrize("means", [(0.1, 0.8), (0.1, 0.8, 0.6)])
def test_an_arm_whose_first_result_is_late_is_played_again(means):
    """Else the others are played for ever: without a result of each arm, nothing can be decided."""
    fidelities, rng = Fidelities([1, 10], [0.1, 0], SubGaussian(0.1)), np.random.default_rng(1)
    exp = Experiment(MFSure(), arms=len(means), fidelities=fidelities, capital=2000)
    *told, _late = exp.ask(len(means))
    exp.tell_many([(play, means[play.arm], None) for play in told])
    for play in exp.plays():
        exp.tell(play, reward=rng.normal(means[play.arm], 0.1))
    assert exp.state == "decided"
    assert exp.decided is not None
    assert exp.decided.arm == 1
    assert len(exp.pending) == 1


class TestDecision:
    @given(problem=problems(max_arms=4, max_fidelities=3), seed=st.integers(0, 2**32), n=st.integers(1, 60))
    @settings(max_examples=examples(40))
    def test_is_the_claim_of_the_core(self, problem, seed, n):
        """Yes or no by tangents, and the whole minimum by the vectorised search, agree."""
        policy, rng = MFSure(delta=0.2, tolerance=0.01), np.random.default_rng(seed)
        stats, fidelities = Stats.empty(len(problem.fidelities), problem.arms), problem.fidelities
        for _ in range(n):
            at = rng.integers(len(fidelities)), rng.integers(problem.arms)
            stats.counts[at] += 1
            stats.sums[at] += problem.draw(at[1], at[0], rng)
        if not stats.counts.any(axis=0).all():
            assert policy.decision(stats, fidelities) is None
            return
        leader = policy.recommend(stats, fidelities)
        others = np.flatnonzero(np.arange(problem.arms) != leader)
        counted = np.ones(len(fidelities), dtype=bool)
        first = Pool.of(stats, fidelities, np.full(len(others), leader), counted)
        cost = explanation(first, Pool.of(stats, fidelities, others, counted), np.full(len(others), 0.01)).cost
        needed = Roster(problem.arms).log_prices(leader, others) - math.log(0.2)
        if len(others) and np.abs(cost - needed).min() < 1e-5:
            return  # too close to call
        assert (policy.decision(stats, fidelities) == leader) == bool((cost >= needed).all())

    def test_every_arm_needs_a_result(self):
        stats = Stats.empty(1, 3)
        stats.counts[0, :2], stats.sums[0, :2] = 1000, [900.0, 100.0]
        fidelities = Fidelities([1], concentration=Bounded())
        assert MFSure().decision(stats, fidelities) is None
        stats.active[2] = False
        assert MFSure().decision(stats, fidelities) == 0

    def test_one_arm_is_the_answer_once_it_has_a_result(self):
        stats, fidelities = Stats.empty(1, 1), Fidelities([1], concentration=Bounded())
        assert MFSure().decision(stats, fidelities) is None
        stats.counts[0, 0] = 1
        assert MFSure().decision(stats, fidelities) == 0

    def test_an_e_process_of_ones_own(self):
        class Wide(SubGaussian):
            def evidence(self, counts, sums):
                from mfbandit.core.evidence import GaussianCells

                return GaussianCells(counts, sums, self.scale)

        stats = Stats.empty(1, 2)
        stats.counts[:], stats.sums[:] = 30, [[3.0, 9.0]]
        own, ours = (Fidelities([1], concentration=tail) for tail in (Wide(0.1), SubGaussian(0.1)))
        assert MFSure().decision(stats, own) == MFSure().decision(stats, ours) == 1

    @pytest.mark.parametrize("far", [1e-6, 1e6, 1e150])
    def test_extreme_units(self, far):
        stats, fidelities = Stats.empty(2, 2), Fidelities([1, 10], [0.1 * far, 0], SubGaussian(far))
        stats.counts[:], stats.sums[:] = 1000, np.array([[0.0, 1000.0], [0.0, 1000.0]]) * far
        assert MFSure().decision(stats, fidelities) == 1
        assert not all_ruled_out(stats, fidelities, 0, np.array([1]), 0.0, np.array([3.0]), np.array([0.5 * far]))


class TestEveryRunEnds:
    """Where variants of the rule got stuck: without log(plays), by rates where nothing is known yet, and the like."""

    def test_published_instance(self):
        sim = simulate(FIVE, MFSure(delta=0.1), capital=1e5, runs=200, grid=1)
        assert sim.answers.tolist() == [4] * 200
        assert sim.spent.max() < 2000
        assert sim.spent.mean() == pytest.approx(227, abs=15)

    @pytest.mark.parametrize("seed", range(5))
    def test_random_problems(self, seed):
        rng = np.random.default_rng(seed)
        biases, top = [0.3, 0.03, 0.0], rng.uniform(0, 1, 20)
        means = [top + rng.uniform(-bias, bias, 20) for bias in biases]
        problem = Problem(means, Fidelities([1, 10, 100], biases, SubGaussian(0.2)), Gaussian(0.2))
        sim = simulate(problem, MFSure(tolerance=0.05), capital=1e6, runs=2, grid=1)
        assert (sim.answers >= 0).all()
        assert (top[sim.answers] >= top.max() - 0.05).all()

    def test_bands_that_nearly_touch(self):
        """The dearest case that is known: here in units in which it takes a quarter of the plays."""
        easier = replace(FOREVER.fidelities, concentration=SubGaussian(0.5))
        sim = simulate(Problem(FOREVER.means, easier, Gaussian(0.5)), MFSure(delta=0.1), capital=1e5, runs=2, grid=1)
        assert sim.answers.tolist() == [1, 1]

    def test_zeros_and_ones(self):
        problem = Problem(
            [[0.05, 0.06, 0.12], [0.05, 0.05, 0.15]], Fidelities([1, 5], [0.04, 0], Bounded()), Bernoulli()
        )
        assert simulate(problem, MFSure(), capital=1e5, runs=20, grid=1).answers.tolist() == [2] * 20

    def test_noise_that_hides_everything_at_first(self):
        """The first rewards put the best arm far behind; it comes back."""
        problem = Problem([[0.5, 0.52, 0.6]], Fidelities([1], concentration=SubGaussian(1.0)), Gaussian(1.0))
        assert (simulate(problem, MFSure(tolerance=0.05), capital=1e6, runs=5, grid=1).answers >= 0).all()

    def test_rewards_without_noise(self):
        problem = Problem([[0.5, 0.5, 0.6]], Fidelities([1], concentration=SubGaussian(0.1)), Gaussian(0.0))
        assert simulate(problem, MFSure(), capital=1e4, grid=1).answers.tolist() == [2]


class TestWhatItNeeds:
    def test_biases_and_scales_at_the_first_choice(self):
        stats = Stats.empty(2, 2)
        with pytest.raises(InvalidArgument, match="concentration must be SubGaussian or Bounded for MFSure, got None"):
            MFSure().choose(stats, Fidelities([1, 10], [0.1, 0]))
        with pytest.raises(InvalidArgument, match="biases"):
            MFSure().choose(stats, Fidelities([1, 10], concentration=Bounded()))

    @pytest.mark.parametrize("delta", [0, 1, -0.1, 1.5, math.nan])
    def test_delta(self, delta):
        with pytest.raises(InvalidArgument, match="delta must"):
            MFSure(delta=delta)

    @pytest.mark.parametrize("tolerance", [-0.1, math.nan, math.inf])
    def test_tolerance(self, tolerance):
        with pytest.raises(InvalidArgument, match="tolerance must"):
            MFSure(tolerance=tolerance)


def test_arms_that_come_and_go():
    """New arms are played first, retired ones never."""
    exp = Experiment(MFSure(), arms=2, fidelities=FIVE.fidelities)
    for play in exp.ask(2):
        exp.tell(play, 0.5)
    exp.add_arm("new")
    assert exp.ask().arm == 2
    exp.retire_arm(0)
    assert {exp.ask().arm for _ in range(20)} <= {1, 2}
