import numpy as np
import pytest

from mfbandit import Bernoulli, Bounded, Gaussian, SubGaussian, misleading_problem, paper_problem

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
def test_optimal_gaussian_arm_looks_worse_than_a_suboptimal_one(number, seed):
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
