"""Costs and leads by Newton's method between tangents: the same as by bisection, and never too small a lead."""

import math

import numpy as np
import pytest

import mfbandit as mfb
from mfbandit.core.claims import Pool, explanation, pair_cost
from mfbandit.core.confidence import Prices, largest_lead, quickly, slowly
from mfbandit.core.evidence import BoundedCells, GaussianCells
from mfbandit.core.stats import Stats
from tests.support.effort import effort
from tests.support.laplace import Laplace

TAILS = [mfb.SubGaussian(0.2), mfb.Bounded(0, 1), mfb.Bounded(-3, 5)]
MOST_RESULTS = (2, 4, 30, 300, 30_000)


def some_stats(rng, tail, arms: int, most: int, *, only_ends: bool = False) -> Stats:
    stats = Stats.empty(3, arms)
    stats.counts[:] = rng.integers(0, most, (3, arms))
    low, width = (tail.low, tail.high - tail.low) if isinstance(tail, mfb.Bounded) else (0.0, 1.0)
    rates = np.clip(rng.random(arms) + rng.normal(0, 0.1, (3, arms)), 0, 1)
    hits = rng.binomial(stats.counts, np.round(rates) if only_ends else rates)
    stats.sums[:] = stats.counts * low + hits * width
    return stats


def pools(stats, fidelities, counted) -> tuple[Pool, Pool]:
    rivals = np.arange(1, stats.counts.shape[1])
    return Pool.of(stats, fidelities, np.array([0]), counted), Pool.of(stats, fidelities, rivals, counted)


@pytest.fixture(params=TAILS, ids=["normal", "0/1", "range"])
def tail(request):
    return request.param


def fidelities_of(tail) -> mfb.Fidelities:
    wide = tail.high - tail.low if isinstance(tail, mfb.Bounded) else 1.0
    return mfb.Fidelities([1, 10, 100], [0.3 * wide, 0.03 * wide, 0], tail)


@pytest.mark.parametrize("counted", [(True, True, True), (True, False, True), (False, False, True)])
def test_a_look_is_the_cost_and_its_derivatives(tail, counted):
    rng, fidelities = np.random.default_rng(1), fidelities_of(tail)
    leader, rivals = pools(some_stats(rng, tail, 60, 40), fidelities, np.array(counted))
    low, high = leader.span if math.isfinite(leader.span[0]) else (-0.5, 1.5)
    x, y = rng.uniform(low, high, (2, 59))
    cost, tiny = pair_cost(leader, rivals), 1e-6 * (high - low)
    assert cost is not None
    look = cost.at(x, y)
    one, other = leader.among(np.zeros(59, dtype=int)).at(x, below=False), rivals.at(y, below=True)
    assert look[:2] == pytest.approx(np.array([[one[0], other[0]], [one[1], other[1]]]), rel=1e-9, abs=1e-11)
    steeper, flatter = cost.at(x + tiny, y + tiny)[1], cost.at(x - tiny, y - tiny)[1]
    near = (steeper - flatter) / (2 * tiny)
    jumps = np.abs(near - look[2]) > 1e-3 * (np.abs(near) + 1)  # at an end of the range, or where results lie
    assert jumps.mean() < 0.02


@pytest.mark.parametrize("changed", [False, True])
@pytest.mark.parametrize("only_ends", [False, True])
def test_the_same_as_by_bisection(tail, changed, only_ends):
    """Also where all results are at the ends of the range, and costs have kinks or are infinite."""
    rng, fidelities, largest = np.random.default_rng(2), fidelities_of(tail), largest_lead(fidelities_of(tail))
    missing, asked = 0, 0
    for most in MOST_RESULTS:
        for _ in range(effort(1, 20)):
            stats = some_stats(rng, tail, 60, most, only_ends=only_ends)
            leader, rivals = pools(stats, fidelities, np.array([not changed, True, True]))
            prices = Prices(rng.uniform(1, 15, 59), rng.choice([0.5, 0.95, 0.999]))
            costs, ahead = quickly(leader, rivals, prices, largest)
            many = leader.among(np.zeros(59, dtype=int))
            right, lead = slowly(many, rivals, prices.needed, largest)
            left = np.isnan(costs) | np.isnan(ahead)  # to bisection
            missing, asked = missing + left.sum(), asked + len(left)
            costs, ahead = np.where(left, right, costs), np.where(left, lead, ahead)
            exact = (right >= prices.logs) | (ahead == largest)
            assert costs[exact] == pytest.approx(right[exact], abs=2e-8, rel=1e-12)
            assert (costs[~exact] < prices.logs[~exact] + 2e-8).all()
            # By bisection, a lead may be too large by some more near the ends of a range, but it is never too small.
            assert (ahead <= lead * (1 + 3e-6)).all()
            inside = (ahead > 0) & (ahead < largest)
            shown = explanation(many, rivals, np.where(inside, ahead, 0.0)).cost
            assert (shown >= prices.needed * (1 - 1e-10) - 1e-7)[inside].all()
    assert missing <= 0.005 * asked


def test_what_is_of_another_kind_is_left_to_bisection():
    counted, stats = np.ones(3, dtype=bool), some_stats(np.random.default_rng(3), TAILS[0], 4, 9)
    for tails in ((mfb.SubGaussian(0.2), mfb.Bounded(0, 1), mfb.Bounded(0, 1)), (Laplace(1.0),) * 3):
        leader, rivals = pools(stats, mfb.Fidelities([1, 10, 100], [0.3, 0.03, 0], tails), counted)
        assert pair_cost(leader, rivals) is None
        assert np.isnan(quickly(leader, rivals, Prices(np.ones(3), 0.5), math.inf)).all()


def test_weights_are_those_of_results():
    assert GaussianCells(np.array([1]), np.zeros(1), 0.5).weight == 4.0
    assert BoundedCells(np.array([1]), np.zeros(1), mfb.Bounded(0, 2)).weight == 1.0
