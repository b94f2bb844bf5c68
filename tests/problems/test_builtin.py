import numpy as np
import pytest

from mfbandit import (
    Bernoulli,
    Bounded,
    Gaussian,
    Replay,
    SubGaussian,
    gap_problem,
    learning_curve_names,
    learning_curve_problem,
    misleading_problem,
    paper_problem,
    theory,
)
from mfbandit.problems.learning_curves import bundled_curves

PAPER = {
    1: (500, (1, 10, 1000), (0.2, 0.1, 0), Gaussian(0.2), SubGaussian(0.2)),
    2: (500, (1, 5, 20, 50), (1, 0.5, 0.2, 0), Gaussian(1.0), SubGaussian(1.0)),
    3: (200, (1, 10), (0.2, 0), Bernoulli(), Bounded()),
    4: (1000, (1, 3, 10, 30, 100), (0.5, 0.2, 0.1, 0.05, 0), Bernoulli(), Bounded()),
}


@pytest.mark.parametrize("number", PAPER)
@pytest.mark.parametrize("seed", range(5))
def test_as_in_the_appendix(number, seed):
    arms, costs, biases, rewards, noise = PAPER[number]
    problem = paper_problem(number, seed)
    fid = problem.fidelities
    assert (problem.arms, fid.costs, fid.biases, problem.rewards, fid.tails[0]) == (arms, costs, biases, rewards, noise)
    spread = np.abs(problem.means - problem.means[-1]).max(axis=1)
    assert (spread <= np.array(biases) + 1e-12).all()
    assert (spread[:-1] > 0.8 * np.array(biases[:-1])).all()
    assert len(problem.optimal) == 1


@pytest.mark.parametrize(("number", "first", "last"), [(1, 1 / 501, 500 / 501), (3, 0.1, 0.9), (4, 0.1, 0.9)])
def test_grids(number, first, last):
    truth = paper_problem(number).means[-1]
    assert truth[[0, -1]] == pytest.approx([first, last])
    assert np.diff(truth) == pytest.approx((last - first) / (len(truth) - 1))


@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("seed", range(20))
def test_optimal_gaussian_arm_is_below_a_suboptimal_one_at_low_fidelities(number, seed):
    problem = paper_problem(number, seed)
    best = problem.optimal[0]
    others = np.delete(problem.means, best, axis=1)
    floor = problem.best_mean - np.array(problem.fidelities.known_biases[:-1])
    looks, best_looking_other = problem.means[:-1, best], others[:-1].max(axis=1)
    possible = best_looking_other > floor
    assert (looks < best_looking_other)[possible].all()
    assert looks[~possible] == pytest.approx(floor[~possible])
    assert possible.all() or number == 2
    below = (problem.best_mean - looks) / problem.fidelities.known_biases[:-1]
    assert ((below >= 0.5 - 1e-12) & (below <= 1 + 1e-12)).all()


def test_seed_decides_the_low_means():
    assert (paper_problem(1, 3).means == paper_problem(1, 3).means).all()
    assert (paper_problem(1, 3).means != paper_problem(1, 4).means).any()


def test_misleading_problem_is_ranked_wrongly_at_every_low_fidelity():
    problem = misleading_problem()
    assert (np.diff(problem.means[-1]) > 0).all()
    assert (np.diff(problem.means[:-1], axis=1) < 0).all()
    assert not problem.misspecified


@pytest.mark.parametrize("number", [0, 5])
def test_unknown_problem(number):
    with pytest.raises(ValueError, match=f"number must be 1, 2, 3 or 4, got {number}"):
        paper_problem(number)


def test_one_arm_cannot_mislead():
    with pytest.raises(ValueError, match="arms must be at least 2, got 1"):
        misleading_problem(1)
    with pytest.raises(ValueError, match=r"arms must be a whole number, got 2\.5"):
        misleading_problem(2.5)  # type: ignore[arg-type]


def test_gap_problem_is_of_k_2():
    problem = gap_problem()
    parts = theory.partition(problem)
    assert parts.classes.tolist() == [1] * 9 + [-1]
    assert not parts.first.any()
    assert theory.optimal_fidelity(problem).tolist() == [0] * 9 + [-1]
    with pytest.raises(ValueError, match="arms must be at least 2, got 1"):
        gap_problem(1)


class TestLearningCurves:
    @pytest.mark.parametrize("name", learning_curve_names())
    def test_every_data_set_is_a_problem(self, name):
        problem = learning_curve_problem(name)
        assert 18 <= problem.arms <= 20
        assert len(problem.fidelities) == 4
        assert len(bundled_curves().learners(name)) == problem.arms
        assert (problem.means > 0).all()
        assert (problem.means <= 1).all()

    def test_by_number(self):
        assert learning_curve_problem(23).digest == learning_curve_problem("cmc").digest

    def test_results_are_those_of_lcdb(self):
        """The linear support vector machine on 16 rows of cmc: 25 results in the original table."""
        problem = learning_curve_problem("cmc")
        arm = bundled_curves().learners("cmc").index("SVC_linear")
        assert isinstance(problem.rewards, Replay)
        assert len(np.asarray(problem.rewards.samples[0][arm])) == 25
        assert problem.means[0, arm] == pytest.approx(0.404312, abs=1e-9)

    def test_biases_bound_the_means_and_decrease(self):
        """Where a larger size is further from the truth than a smaller one, the smaller one's bias covers both."""
        problem = learning_curve_problem("car-21")
        away = np.abs(problem.means - problem.means[-1]).max(axis=1)
        assert away[2] > away[0]
        assert (np.array(problem.fidelities.known_biases) >= away).all()

    @pytest.mark.parametrize("name", ["iris", 24, None])
    def test_unknown_data_sets(self, name):
        with pytest.raises(ValueError, match=r"name_or_id must be one of .*cmc.*, or its OpenML number, got"):
            learning_curve_problem(name)
