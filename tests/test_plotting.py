"""The figures show the right data and labels; their style is not tested."""

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot as plt

from mfbandit import (
    MFUCB,
    UCB,
    Fidelities,
    Gaussian,
    Problem,
    SubGaussian,
    misleading_problem,
    paper_problem,
    plotting,
    simulate,
    theory,
)

mpl.use("agg")


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def sims():
    problem = paper_problem(3)
    return [simulate(problem, policy, capital=60_000, runs=4, grid=20) for policy in (MFUCB(), UCB())]


def legend(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def points(ax):
    """How many points of each line lie in the axes."""
    return [len(np.asarray(line.get_xdata())) for line in ax.lines]


class TestPartition:
    def test_every_arm_is_settled_in_one_row(self):
        problem = paper_problem(2)
        ax = plotting.plot_partition(problem)
        parts = theory.partition(problem)
        settled = [line for line in ax.lines if line.get_color() in plotting.COLOURS]
        assert [len(np.asarray(line.get_xdata())) for line in settled] == parts.sizes.tolist()

    def test_rows_have_thresholds_and_counts(self):
        ax = plotting.plot_partition(paper_problem(3))
        texts = [text.get_text() for text in ax.texts]
        assert "$2\\gamma_{1}$" in texts
        assert any("112 arms" in text for text in texts)
        assert [label.get_text().splitlines()[0] for label in ax.get_yticklabels()] == ["$m = 1$", "$m = 2$"]

    def test_draws_on_given_axes(self):
        _, ax = plt.subplots()
        assert plotting.plot_partition(misleading_problem(), ax) is ax

    def test_a_million_arms_are_thinned(self):
        fid = Fidelities([1, 10], [0.1, 0], SubGaussian(0.1))
        truth = np.linspace(0, 1, 1_000_000)
        ax = plotting.plot_partition(Problem([truth, truth], fid, Gaussian(0.1)))
        assert sum(points(ax)) < 3 * plotting.MAX_DOTS


class TestMeans:
    def test_one_line_a_fidelity_in_the_order_of_the_truth(self):
        problem = paper_problem(2)
        ax = plotting.plot_means(problem)
        assert points(ax) == [500] * 4
        assert np.asarray(ax.lines[-1].get_ydata()).tolist() == sorted(problem.means[-1].tolist())

    def test_one_arm(self):
        assert points(plotting.plot_means(Problem([[0.5]], Fidelities([1]), Gaussian(1)))) == [1]


class TestPlays:
    def test_only_played_fidelities(self, sims):
        ours, ucb = sims
        assert len(plotting.plot_plays(ours).lines) == 2
        ax = plotting.plot_plays(ucb)
        assert legend(ax) == ["$m = 2$"]

    def test_arms_are_ordered_by_mean(self):
        problem = Problem([[0.5, 0.9, 0.1]], Fidelities([1], concentration=SubGaussian(0.1)), Gaussian(0.1))
        sim = simulate(problem, UCB(), capital=500)
        drawn = np.asarray(plotting.plot_plays(sim).lines[0].get_ydata())
        assert drawn.tolist() == sim.plays[0, [2, 0, 1]].tolist()


class TestRegret:
    def test_means_bands_and_bounds(self, sims):
        problem = paper_problem(3)
        bound = theory.upper_bound(problem, sims[0].capital, rho=5).total
        ax = plotting.plot_regret(sims, bounds={"Lemma 10": bound}, log=True)
        labels = legend(ax)
        assert labels == ["MFUCB(rho=2.0)", "UCB(rho=2.0)", "Lemma 10"]
        assert len(ax.collections) == 2
        assert np.asarray(ax.lines[0].get_ydata()).tolist() == sims[0].regret.mean(axis=0).tolist()
        assert np.asarray(ax.lines[2].get_ydata()).tolist() == bound.tolist()
        assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")

    def test_labels_of_ones_own(self, sims):
        ax = plotting.plot_regret({"ours": sims[0]})
        assert legend(ax) == ["ours"]
        assert ax.get_ylim()[0] == 0

    def test_two_simulations_of_one_policy_are_both_drawn(self, sims):
        longer = simulate(paper_problem(3), MFUCB(), capital=90_000, runs=2, grid=20)
        ax = plotting.plot_regret([sims[0], longer])
        assert len(ax.lines) == 2
        assert ax.get_xlim() == (0, 90_000)

    def test_regret_below_zero_is_seen(self):
        problem = Problem([[-2.0, -1.0]], Fidelities([3], concentration=SubGaussian(1)), Gaussian(1))
        ax = plotting.plot_regret([simulate(problem, UCB(), capital=100, runs=2, grid=[2.0, 100.0])])
        assert ax.get_ylim()[0] < -1

    def test_nothing_to_draw(self):
        with pytest.raises(ValueError, match=r"sims must have at least one simulation, got \[\]"):
            plotting.plot_regret([])

    def test_large_numbers_are_short(self):
        assert [plotting._short(x, None) for x in (0, 250, 2000, 1.5e6, 2e9)] == ["0", "250", "2k", "1.5M", "2G"]
