"""IISE, LUCB and MFGrad: the rules written out plainly, published figures, asking and telling, bad arguments."""

import itertools
import json

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from mfbandit import (
    IISE,
    LUCB,
    Bounded,
    Experiment,
    Fidelities,
    Gaussian,
    MFGrad,
    Problem,
    Stats,
    SubGaussian,
    check_policy,
    simulate,
)
from mfbandit.policies.mfgrad import MFGradMemory, strongest
from tests.support import oracle_identification as oracle
from tests.support.effort import examples
from tests.support.strategies import problems

POLICIES = [
    IISE(0.1),
    IISE(0.01, proved=True),
    LUCB(0.6, 0.5, 0.1),
    LUCB(0.6, 0.5, 0.1, guard=0.0),
    LUCB(0.7, 0.4, 0.1, "B"),
    MFGrad(0.1),
    MFGrad(0.1, "decreasing"),
    MFGrad(0.1, proved=True),
]
NOISE = SubGaussian(0.1)
FID = Fidelities([1, 10], [0.1, 0], NOISE)


def rule(problem, policy):
    if isinstance(policy, IISE):
        return oracle.iise(problem.arms, problem.fidelities, policy.delta, policy.proved)
    plain = oracle.lucb if isinstance(policy, LUCB) else oracle.mfgrad
    return plain(problem.arms, problem.fidelities, policy)


def going_on(policy, arms, fidelities=FID):
    """An experiment that does not end when its policy has decided."""
    experiment = Experiment(policy, arms=arms, fidelities=fidelities)
    experiment.set_stop(None)
    return experiment


@pytest.mark.parametrize("policy", POLICIES, ids=str)
class TestEveryPolicy:
    @given(problem=problems(max_arms=5, max_fidelities=3), seed=st.integers(0, 2**32))
    @settings(max_examples=examples(8))
    def test_plays_and_answers_of_the_plain_rule(self, policy, problem, seed):
        assume(isinstance(problem.rewards, Gaussian))  # equal means of 0/1 rewards are ties, which rounding decides
        oracle.decided(problem, policy, 40, np.random.default_rng(seed), rule(problem, policy))

    def test_keeps_the_contract(self, policy):
        check_policy(policy)

    def test_finds_the_best_of_two_also_after_a_restart(self, policy):
        experiment, rng = Experiment(policy, arms=["a", "b"], fidelities=FID), np.random.default_rng(1)
        for n in range(100):
            if experiment.decided is not None:
                break
            play = experiment.ask()
            experiment.tell(play, 0.3 + 0.5 * play.arm + 0.1 * rng.standard_normal())
            if n == 3:
                experiment = Experiment.from_json(experiment.to_json())
        assert experiment.decided is not None
        assert experiment.decided.arm == experiment.best() == 1
        experiment.set_stop(None)
        again = Experiment.from_json(experiment.to_json())
        assert (again.policy, again.ask().arm) == (policy, experiment.ask().arm)

    def test_many_workers_are_spread_and_arms_come_and_go(self, policy):
        experiment, rng = going_on(policy, arms=4), np.random.default_rng(2)
        several: list[bool] = []
        for n in range(40):
            plays = [experiment.ask() for _ in range(5)]
            several.append(len({(play.arm, play.fidelity) for play in plays}) > 1)
            for play in plays[::-1]:
                experiment.tell(play, 0.1 * play.arm + 0.1 * rng.standard_normal())
            if n == 5:
                experiment.add_arm("new")
            if n == 10:
                experiment.retire_arm(3)
            if n == 20:
                experiment.retire_arm(policy.recommend(experiment.stats, FID))
        assert sum(several) > 20
        assert experiment.stats.counts[:, 4].any()
        assert experiment.stats.active[experiment.best()]

    def test_one_arm_is_the_best_once_it_has_a_result(self, policy):
        stats = Stats.empty(2, 2)
        stats.active[0] = False
        assert policy.decision(stats, FID) is None
        stats.counts[0, 1] = 1
        assert policy.decision(stats, FID) == 1

    def test_needs_biases_and_a_scale(self, policy):
        with pytest.raises(ValueError, match="biases are needed here"):
            Experiment(policy, arms=2, fidelities=Fidelities([1, 10], concentration=Bounded()))
        with pytest.raises(ValueError, match=f"must be SubGaussian or Bounded for {type(policy).__name__}, got None"):
            Experiment(policy, arms=2, fidelities=Fidelities([1, 10], [0.1, 0]))

    def test_extreme_rewards_break_nothing(self, policy):
        for size, scale in itertools.product((1e-150, 1.0, 1e150), (1e-150, 1.0, 1e150)):
            experiment = going_on(policy, 3, Fidelities([1, 10], [0.1, 0], SubGaussian(scale)))
            for _ in range(20):
                play = experiment.ask()
                experiment.tell(play, size * (play.arm - 1))
                policy.decision(experiment.stats, experiment.fidelities)
                assert not np.isnan(policy.index(experiment.stats, experiment.fidelities)).any()
            json.loads(experiment.to_json())


MU3 = np.array([(0.41, 0.45, 0.47, 0.48, 0.5), (0.35, 0.37, 0.38, 0.36, 0.35)])
MU3 = np.vstack([MU3, [(0.51, 0.56, 0.64, 0.62, 0.61), (0.41, 0.39, 0.4, 0.42, 0.43)]])
PUBLISHED = {
    "5x2": Problem(
        [[0.4, 0.4, 0.4, 0.4, 0.5], [0.5, 0.5, 0.5, 0.5, 0.6]], Fidelities([0.5, 5], [0.1, 0], NOISE), Gaussian(0.1)
    ),
    "mu3": Problem(MU3.T, Fidelities([0.1, 0.125, 0.25, 0.5, 1], [0.1, 0.08, 0.04, 0.02, 0], NOISE), Gaussian(0.1)),
}


@pytest.mark.no_cover
@pytest.mark.parametrize(
    ("name", "policy", "cost", "error"),
    [
        ("5x2", MFGrad(0.1), 472, 32),  # 472 ± 63 by the authors' code, and so on
        ("5x2", IISE(0.1), 1775, 28),
        ("5x2", LUCB(0.6, 0.5, 0.1), 2998, 44),
        # By simulations of the rules as published, in other code.
        ("5x2", LUCB(0.6, 0.5, 0.1, "B"), 4924, 25),
        ("5x2", MFGrad(0.1, "decreasing"), 638, 13),
        ("5x2", IISE(0.1, proved=True), 3617, 18),
        ("mu3", MFGrad(0.1), 46.6, 1.0),
        ("mu3", IISE(0.1), 62.6, 0.4),
        ("mu3", LUCB(0.61, 0.5, 0.1), 499, 3.6),
        ("mu3", LUCB(0.61, 0.5, 0.1, "B"), 619, 3.6),
    ],
    ids=str,
)
def test_costs_that_were_published(name, policy, cost, error):
    """Mean costs within three standard errors of both; and at most δ of the answers are wrong."""
    problem, runs = PUBLISHED[name], 200
    found = simulate(problem, policy, capital=1e5, runs=runs, seed=3, grid=1, workers=1)
    assert (found.answers != problem.means[-1].argmax()).mean() <= policy.delta
    assert abs(found.spent.mean() - cost) < 3 * np.hypot(error, found.spent.std() / np.sqrt(runs))


class TestArguments:
    @pytest.mark.parametrize("kind", [IISE, MFGrad, lambda delta: LUCB(1, 0, delta)])
    @pytest.mark.parametrize("delta", [0, 1, -0.1, 2])
    def test_delta(self, kind, delta):
        with pytest.raises(ValueError, match=f"delta must lie strictly between 0 and 1, got {delta:g}"):
            kind(delta=delta)

    @pytest.mark.parametrize(
        ("kind", "given", "said"),
        [
            (IISE, {"proved": 1}, "proved must be True or False, got 1"),
            (MFGrad, {"proved": "yes"}, "proved must be True or False, got 'yes'"),
            (MFGrad, {"rate": 0.25}, "rate must be 'constant' or 'decreasing', got 0.25"),
            (LUCB, {"best_mean": 0.5, "second_mean": 0.6}, "second_mean must be at most best_mean, 0.5, got 0.6"),
            (LUCB, {"best_mean": 0.6, "second_mean": "0.5"}, "second_mean must be a number, got '0.5'"),
            (LUCB, {"best_mean": 1, "second_mean": 0, "explore": "C"}, "explore must be 'A' or 'B', got 'C'"),
            (LUCB, {"best_mean": 1, "second_mean": 0, "guard": 1}, "guard must be at least 0 and below 1, got 1"),
        ],
    )
    def test_others(self, kind, given, said):
        with pytest.raises(ValueError, match=said):
            kind(**given)


class TestMFGrad:
    @given(
        seed=st.integers(0, 2**32), arms=st.integers(2, 8), number=st.integers(1, 4), zeta=st.sampled_from([0.05, 0.5])
    )
    @settings(max_examples=examples(25))
    def test_evidence_of_all_pairs(self, seed, arms, number, zeta):
        """Looking at few arms finds the maximum over all of them, also where results contradict the biases."""
        rng = np.random.default_rng(seed)
        biases = [*(zeta * 0.5 ** np.arange(number - 1)).tolist(), 0.0]
        fidelities = Fidelities((2.0 ** np.arange(number)).tolist(), biases, NOISE)
        means, weights = rng.normal(size=(number, arms)), rng.exponential(size=(number, arms))
        cells = [(k, m) for k in range(arms) for m in range(number)]
        expected = oracle.evidence({c: weights[c[::-1]] for c in cells}, {c: means[c[::-1]] for c in cells}, fidelities)
        column = np.array(biases)[:, None]
        found = strongest(means - column, means + column, weights / NOISE.scale**2)
        assert found[1:3] == expected[1:3]
        assert found == pytest.approx(expected, rel=1e-9, abs=1e-9)

    def test_a_new_arm_begins_with_the_largest_share(self):
        experiment = going_on(MFGrad(), arms=2)
        for _ in range(10):
            play = experiment.ask()
            experiment.tell(play, float(play.arm))
        experiment.add_arm("new")
        first = [experiment.ask(), experiment.ask()]
        assert [(play.arm, play.fidelity) for play in first] == [(2, 0), (2, 1)]
        for play in first:
            experiment.tell(play, 0.5)
        memory = experiment.stats.memory
        assert isinstance(memory, MFGradMemory)
        assert memory.gradients[:, 2].min() > memory.gradients[:, 0].max()

    def test_a_policy_set_later_does_not_make_up_for_plays_of_another(self):
        stats = Stats.empty(2, 2)
        stats.counts[:], stats.sums[:] = [[500, 5], [5, 5]], [[250, 2], [2, 3]]
        memory = MFGrad().remember(stats, FID)
        assert memory is not None
        assert memory.aims.sum() == pytest.approx(stats.counts.sum() - 4 + 1)


class TestLUCB:
    def test_ends_where_the_published_rule_does_not(self):
        """Both arms look better at the lowest fidelity, where their bands overlap for ever."""
        fidelities = Fidelities([0.1, 5], [0.1, 0], NOISE)
        stats = Stats.empty(2, 2)
        stats.counts[:], stats.sums[0], stats.sums[1] = [[10**8] * 2, [10**4] * 2], [46e6, 64e6], [5e3, 6e3]
        assert LUCB(0.6, 0.5, guard=0.0).choose(stats, fidelities) == (1, 0)
        assert LUCB(0.6, 0.5).choose(stats, fidelities) == (1, 1)


def test_problem_of_one_fidelity_has_rewards_in_a_range():
    problem = Problem([[0.2, 0.8]], Fidelities([1], concentration=Bounded()), Gaussian(0.1))
    for policy in POLICIES:
        assert oracle.decided(problem, policy, 10**4, np.random.default_rng(0))[1] == 1
