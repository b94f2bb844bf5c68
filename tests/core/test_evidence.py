"""Evidence: e-processes whose mean is at most 1, convex and monotone in the tested mean."""

import numpy as np
import pytest

import mfbandit as mfb
from mfbandit.core.evidence import BoundedCells, GaussianCells
from mfbandit.core.evidence import cells as known_cells
from tests.support.laplace import Laplace

RUNS = 20_000


def cells(tail, counts, sums):
    found = known_cells(tail, counts, sums)
    assert found is not None
    return found


def process(kind: str, counts, sums):
    if kind == "own":
        return cells(Laplace(1.0), counts, sums)
    return GaussianCells(counts, sums, 1.0) if kind == "normal" else BoundedCells(counts, sums, mfb.Bounded(0, 1))


def draw(kind: str, rng, mean, shape):
    if kind == "own":
        return rng.laplace(mean, 1.0, shape)
    return rng.normal(mean, 1.0, shape) if kind == "normal" else (rng.random(shape) < mean).astype(float)


@pytest.mark.parametrize("kind", ["normal", "0/1", "own"])
@pytest.mark.parametrize("below", [True, False])
@pytest.mark.parametrize("plays", [1, 10, 200])
def test_it_is_at_most_one_on_average_at_the_true_mean(kind, below, plays):
    rng = np.random.default_rng(plays)
    sums = draw(kind, rng, 0.3, (plays, RUNS)).sum(axis=0)
    value, _ = process(kind, np.full(RUNS, plays), sums).at(np.full(RUNS, 0.3), below=below)
    evidence = np.exp(value)
    assert evidence.mean() < 1 + 4 * evidence.std() / np.sqrt(RUNS)


@pytest.mark.parametrize("kind", ["normal", "0/1", "own"])
@pytest.mark.parametrize("below", [True, False])
def test_it_is_convex_and_rises_away_from_the_mean(kind, below):
    theta = np.linspace(0.02, 0.98, 2001)
    value, slope = process(kind, np.full(2001, 40), np.full(2001, 13.0)).at(theta, below=below)
    steps = np.diff(value)
    assert ((steps if below else -steps) >= -1e-12).all()
    assert (np.diff(slope) >= -1e-9).all()
    assert slope[1:-1] == pytest.approx((value[2:] - value[:-2]) / (theta[2] - theta[0]), rel=2e-2, abs=5e-2)


@pytest.mark.parametrize("tail", [mfb.SubGaussian(0.7), mfb.Bounded(-1, 3)])
def test_no_result_is_no_evidence(tail):
    value, slope = cells(tail, np.zeros(2, dtype=int), np.zeros(2)).at(np.array([-0.5, 2.0]), below=True)
    assert value.tolist() == [0, 0]
    assert slope.tolist() == [0, 0]


def test_range_of_rewards_does_not_matter():
    hits, counts = np.array([3.0, 17.0]), np.array([20, 20])
    unit = cells(mfb.Bounded(0, 1), counts, hits).at(np.array([0.5, 0.5]), below=True)
    wide = cells(mfb.Bounded(-2, 8), counts, -2 * counts + 10 * hits).at(np.array([3.0, 3.0]), below=True)
    assert wide[0] == pytest.approx(unit[0])
    assert wide[1] == pytest.approx(unit[1] / 10)


def test_noise_without_an_e_process():
    class Heavy:
        nu = 1.0

        def psi(self, x):
            return x * x

        def psi_inv(self, y):
            return y**0.5

    assert known_cells(Heavy(), np.array([1]), np.array([0.5])) is None


class TestOwnEProcess:
    def experiment(self, tail):
        exp = mfb.Experiment(mfb.UCB(), arms=3, fidelities=mfb.Fidelities([1], concentration=tail))
        rng = np.random.default_rng(3)
        exp.add_results(
            [(arm, 0, float(rng.laplace(mean)), None) for arm, mean in enumerate((0, 0, 2)) for _ in "x" * 60]
        )
        return exp

    def test_an_experiment_uses_it(self):
        found = self.experiment(Laplace(1.0)).confidence()
        assert (found.kind, found.best, found.rivals) == ("valid", 2, ())
        assert 0.95 < found.level < 1
        assert found.assumes[0] == "Noise is as Laplace says."

    def test_the_possible_loss_is_finite(self):
        found = self.experiment(Laplace(8.0)).confidence()
        assert found.level == 0
        assert all(0 < ahead < 30 for ahead in found.could_be_ahead)

    def test_without_one_nothing_valid_is_said(self):
        class Heavy(mfb.SubGaussian):
            def psi(self, x, /):
                return 0.5 * super().psi(x)

        assert self.experiment(Heavy(1.0)).confidence().kind == "estimate"

    def test_it_goes_before_that_of_a_parent_class(self):
        class Own(mfb.SubGaussian):
            def evidence(self, counts, sums):
                return GaussianCells(counts, sums, 2 * self.scale)

        found = cells(Own(1.0), np.array([9]), np.array([0.0])).at(np.array([1.0]), below=True)
        assert found[0] == GaussianCells(np.array([9]), np.array([0.0]), 2.0).at(np.array([1.0]), below=True)[0]
