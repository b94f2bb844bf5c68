"""Claims about the best arm: how often they are wrong, and that what is computed is what is meant."""

import math

import numpy as np
import pytest

import mfbandit as mfb
from mfbandit.core.claims import Pool, centres, explanation
from mfbandit.core.confidence import Roster, confidence, largest_lead
from mfbandit.core.stats import Stats

ALL = np.array([True, True])


def some_stats(rng, arms: int, most: int) -> Stats:
    stats = Stats.empty(2, arms)
    stats.counts[:] = rng.integers(0, most, (2, arms))
    stats.sums[:] = np.round(stats.counts * rng.random((2, arms)))
    return stats


@pytest.fixture(params=[mfb.SubGaussian(0.5), mfb.Bounded(0, 1)], ids=["normal", "0/1"])
def fidelities(request):
    return mfb.Fidelities([1, 10], [0.1, 0], request.param)


class TestExplanation:
    def test_is_the_smallest_cost(self, fidelities):
        rng, grid = np.random.default_rng(1), np.linspace(-1, 2, 30_001)
        for most in (3, 20, 2000):
            stats = some_stats(rng, 4, most)
            stats.counts[-1] += 1  # without any result the smallest cost lies at infinity
            pools = [Pool.of(stats, fidelities, np.full(len(grid), arm), ALL) for arm in range(4)]
            for arm in (1, 2, 3):
                leader, rival = (Pool.of(stats, fidelities, np.array([one]), ALL) for one in (0, arm))
                found = explanation(leader, rival, np.array([0.05])).cost[0]
                costs = pools[0].at(grid, below=False)[0] + pools[arm].at(grid + 0.05, below=True)[0]
                assert found == pytest.approx(costs.min(), abs=1e-3)
                assert found <= costs.min() + 1e-9

    def test_does_not_depend_on_the_other_rivals(self, fidelities):
        stats = some_stats(np.random.default_rng(2), 50, 300)
        rivals = np.arange(1, 50)
        leader = Pool.of(stats, fidelities, np.zeros(49, dtype=int), ALL)
        together = explanation(leader, Pool.of(stats, fidelities, rivals, ALL), np.zeros(49)).cost
        one = Pool.of(stats, fidelities, np.array([0]), ALL)
        alone = [
            explanation(one, Pool.of(stats, fidelities, np.array([arm]), ALL), np.zeros(1)).cost[0] for arm in rivals
        ]
        assert together.tolist() == alone


class TestConfidence:
    def test_possible_loss_is_the_smallest_that_is_ruled_out(self, fidelities):
        rng, rivals, roster = np.random.default_rng(3), np.array([1, 2, 3]), Roster(4)
        checked = 0
        for most in (3, 30, 300, 3000) * 5:
            stats = some_stats(rng, 4, most)
            loss = confidence(stats, fidelities, 0, roster, ALL).could_lose
            if 0 < loss < largest_lead(fidelities):
                leader = Pool.of(stats, fidelities, np.zeros(3, dtype=int), ALL)
                pool, needed = Pool.of(stats, fidelities, rivals, ALL), roster.log_prices(0, rivals) - math.log(0.05)
                assert (explanation(leader, pool, np.full(3, loss)).cost >= needed - 1e-9).all()
                assert (explanation(leader, pool, np.full(3, loss * 0.999)).cost < needed).any()
                checked += 1
        assert checked > 5

    def test_level_and_rivals_agree(self, fidelities):
        rng = np.random.default_rng(4)
        for most in (3, 30, 300, 3000) * 5:
            stats = some_stats(rng, 5, most)
            found = confidence(stats, fidelities, 0, Roster(5), ALL)
            assert (found.level >= 0.95) == (found.rivals == ()) == (found.could_lose == 0)

    def test_one_arm_is_the_best(self, fidelities):
        found = confidence(Stats.empty(2, 1), fidelities, 0, Roster(1), ALL)
        assert (found.level, found.could_lose, found.rivals) == (1.0, 0.0, ())

    def test_nothing_known(self):
        fid = mfb.Fidelities([1, 10], [0.1, 0], mfb.SubGaussian(1.0))
        found = confidence(Stats.empty(2, 3), fid, 0, Roster(3), ALL)
        assert (found.level, found.could_lose, set(found.rivals)) == (0.0, math.inf, {1, 2})

    def test_an_arm_that_came_later_costs_more(self):
        rivals = np.array([1, 2])
        assert (Roster(3, changed=True).log_prices(0, rivals) > Roster(3).log_prices(0, rivals)).all()
        weights = np.exp(
            -np.array([Roster(3, changed=True).log_prices(i, np.delete(np.arange(9), i)) for i in range(9)])
        )
        assert weights.sum() <= 0.1  # of all pairs: what the fixed set left over


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["normal", "5 %", "50 %"])
@pytest.mark.parametrize("number", [1, 2])
def test_wrong_claims_are_rare_however_often_one_looks(kind, number):
    """Two arms with the same mean, a look after each round: a claim about the second one is wrong by definition."""
    runs, rounds, rng = 400, 150, np.random.default_rng(number)
    biases = (0.04, 0.0)[2 - number :]
    tail = mfb.SubGaussian(1.0) if kind == "normal" else mfb.Bounded(0, 1)
    mean = {"normal": 0.0, "5 %": 0.05, "50 %": 0.5}[kind]
    fid, stats = mfb.Fidelities([1.0, 10.0][:number], biases, tail), Stats.empty(number, 2 * runs)
    one, other, counted = np.arange(runs), np.arange(runs, 2 * runs), np.ones(number, dtype=bool)
    largest = np.full(runs, -np.inf)
    for _ in range(rounds):
        for arms, side in ((one, -1), (other, 1)):
            at = rng.integers(0, number, runs)
            means = mean + side * np.array(biases)[at]  # as far off as the biases allow
            rewards = rng.normal(means, 1.0) if kind == "normal" else (rng.random(runs) < means).astype(float)
            np.add.at(stats.counts, (at, arms), 1)
            np.add.at(stats.sums, (at, arms), rewards)
        wrong_one, best = Pool.of(stats, fid, other, counted), Pool.of(stats, fid, one, counted)
        largest = np.maximum(largest, explanation(wrong_one, best, np.zeros(runs)).cost)
    for delta in (0.1, 0.05, 0.01):
        wrong = (largest >= math.log(1 / delta)).mean()
        assert wrong <= delta + 2 * math.sqrt(delta / runs)


def test_centre_of_one_fidelity_is_its_mean():
    stats = Stats.empty(1, 3)
    stats.counts[:], stats.sums[:] = [[4, 0, 100]], [[1.0, 0.0, 70.0]]
    found = centres(stats, mfb.Fidelities([1], concentration=mfb.SubGaussian(0.3)), np.array([True]))
    assert found.tolist() == [pytest.approx(0.25), -math.inf, pytest.approx(0.7)]
