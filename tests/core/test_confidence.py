"""Claims about the best arm: how often they are wrong, and that what is computed is what is meant."""

import math

import numpy as np
import pytest

import mfbandit as mfb
from mfbandit.core import pair_claim
from mfbandit.core.claims import Pool, centres, explanation
from mfbandit.core.confidence import Roster, confidence, largest_lead
from mfbandit.core.evidence import GaussianCells
from mfbandit.core.kept_claims import KeptClaims
from mfbandit.core.pair_claim import all_ruled_out
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
        if isinstance(fidelities.tails[-1], mfb.Bounded):
            grid = np.linspace(0, 0.95, 30_001)  # so that the rival's mean is possible as well
        for most in (3, 20, 2000):
            stats = some_stats(rng, 4, most)
            stats.counts[-1] += 1  # without any result the smallest cost lies at infinity
            pools = [Pool.of(stats, fidelities, np.full(len(grid), arm), ALL) for arm in range(4)]
            for arm in (1, 2, 3):
                leader, rival = (Pool.of(stats, fidelities, np.array([one]), ALL) for one in (0, arm))
                found = explanation(leader, rival, np.array([0.05])).cost[0]
                costs = pools[0].at(grid, below=False)[0] + pools[arm].at(grid + 0.05, below=True)[0]
                assert found == pytest.approx(costs.min(), abs=1e-3)
                assert found <= costs.min() + 1e-8

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


class TestExtremes:
    """Inputs at which arithmetic gives out must never make a claim stronger."""

    def one_fidelity(self, tail, counts, sums, arm: int = 0, **given):
        stats = Stats.empty(1, len(counts))
        stats.counts[:], stats.sums[:] = [counts], [sums]
        fid = mfb.Fidelities([1], concentration=tail)
        return confidence(stats, fid, arm, Roster(len(counts)), np.array([True]), **given)

    @pytest.mark.parametrize("tail", [mfb.SubGaussian(0.5), mfb.Bounded(0, 1)], ids=["normal", "0/1"])
    @pytest.mark.parametrize("counts", [(10**6, 0), (0, 10**6)])
    def test_an_arm_without_results_may_be_the_best(self, tail, counts):
        found = self.one_fidelity(tail, counts, [count * 0.9 for count in counts])
        assert (found.level, found.rivals, found.could_lose) == (0.0, (1,), largest_lead_of(tail))

    @pytest.mark.parametrize("many", [10**3, 10**6, 10**9, 10**12, 10**15])
    def test_one_result_against_many(self, many):
        """The loss is nearly that against a known mean; it grows like the logarithm of their number."""
        lost = [
            self.one_fidelity(mfb.SubGaussian(1.0), c, s).could_lose
            for c, s in (([many, 1], [0.5 * many, 0.0]), ([1, many], [0.5, 0.5 * many]))
        ]
        assert 7 < lost[0] < 17
        assert lost[1] == pytest.approx(lost[0] + 0.5, abs=0.01)

    @pytest.mark.parametrize("bias", [1e-100, 1e3, 1e6, 1e100])
    def test_a_bias_out_of_proportion(self, bias):
        """However wide a bias is, a fidelity that says nothing costs one hedge for each of the two arms."""
        stats = Stats.empty(2, 2)
        stats.counts[:], stats.sums[:] = [[9, 9], [10**6, 10**6]], [[4.5, 4.5], [5.06e5, 5.0e5]]
        fid = mfb.Fidelities([1, 10], [bias, 0], mfb.SubGaussian(1.0))
        found = confidence(stats, fid, 0, Roster(2), ALL)
        alone = confidence(stats, fid, 0, Roster(2), np.array([False, True]))
        if bias > 1:
            assert found.level == pytest.approx(alone.level, abs=1e-6)
        assert 0 <= found.level < 1

    @pytest.mark.parametrize("scale", [1e-150, 1e-9, 1e100, 1e150])
    @pytest.mark.parametrize("gap", [-1e3, -1.0, 0.0, 0.3, 1.0])
    def test_units_do_not_matter(self, scale, gap):
        unit = self.one_fidelity(mfb.SubGaussian(1.0), [50, 60], [50 * gap, 0.0])
        found = self.one_fidelity(mfb.SubGaussian(scale), [50, 60], [50 * gap * scale, 0.0])
        assert found.level == pytest.approx(unit.level, rel=1e-6)
        assert found.could_lose == pytest.approx(unit.could_lose * scale, rel=1e-5)

    @pytest.mark.parametrize("span", [(0, 1e-9), (1e9, 1e9 + 1), (-1e100, 1e100), (-1e-90, 1e-90)])
    @pytest.mark.parametrize("rates", [(0.2, 0.7), (0.7, 0.2), (0.0, 1.0), (1.0, 1.0), (0.0, 0.0)])
    def test_ranges_do_not_matter(self, span, rates):
        low, width = span[0], span[1] - span[0]
        unit = self.one_fidelity(mfb.Bounded(0, 1), [50, 50], [50 * rate for rate in rates])
        sums = [50 * (low + rate * width) for rate in rates]
        found = self.one_fidelity(mfb.Bounded(*span), [50, 50], sums)
        assert found.level == pytest.approx(unit.level, abs=1e-5)
        assert found.could_lose == pytest.approx(unit.could_lose * width, rel=1e-4)

    def test_rates_at_an_end_of_the_range(self):
        """All successes: the rival is at most certain, and the leader's rate is below 1 by little."""
        assert self.one_fidelity(mfb.Bounded(0, 1), [50, 50], [50.0, 50.0]).could_lose == pytest.approx(0.15, abs=0.01)
        assert self.one_fidelity(mfb.Bounded(0, 1), [50, 50], [0.0, 0.0]).could_lose == pytest.approx(0.15, abs=0.01)

    def test_rewards_of_any_size_that_are_accepted(self):
        for low, high in ((0.0, 1e150), (-1e150, 1e150), (1e150, 1e150)):
            found = self.one_fidelity(mfb.SubGaussian(1.0), [1, 1], [low, high])
            assert (found.level, found.rivals) == (0.0, (1,))
            assert found.could_lose >= high - low
        assert self.one_fidelity(mfb.SubGaussian(1.0), [1, 1], [1e150, 0.0]).level < 1.0

    def test_two_fidelities_that_contradict_each_other(self):
        stats = Stats.empty(2, 2)
        stats.counts[:], stats.sums[:] = [[50, 50], [1, 1]], [[1e150, 1e150], [-1e150, 1e150]]
        found = confidence(stats, mfb.Fidelities([1, 10], [0.1, 0], mfb.SubGaussian(1.0)), 0, Roster(2), ALL)
        assert found.level == 0.0

    @pytest.mark.parametrize("level", [1e-300, 0.5, 1 - 1e-16])
    def test_any_level(self, level):
        found = self.one_fidelity(mfb.SubGaussian(1.0), [50, 50], [40.0, 0.0], level=level)
        assert (found.rivals == ()) == (found.level >= level)

    def test_an_e_process_that_fails_claims_nothing(self):
        class Broken(mfb.SubGaussian):
            def evidence(self, counts, sums):
                return NotANumber(counts, sums, self.scale)

        class NotANumber(GaussianCells):
            def at(self, theta, *, below):
                value, slope = super().at(theta, below=below)
                return value * np.nan, slope

        assert self.one_fidelity(Broken(1.0), [50, 50], [50.0, 0.0]).level == 0.0


class TestOnePair:
    """The answer of yes or no about one pair, for single numbers, against the cost over arrays."""

    def test_agrees_with_the_cost(self, fidelities):
        rng = np.random.default_rng(7)
        ruled_out = 0
        for most in (3, 30, 300, 3000) * 30:
            stats = some_stats(rng, 2, most)
            stats.counts[-1] += 1
            leader, rival = (Pool.of(stats, fidelities, np.array([arm]), ALL) for arm in (0, 1))
            cost = explanation(leader, rival, np.array([0.02])).cost[0]
            for needed in (cost - 0.01, cost + 0.01):
                given = np.array([1]), 0.02, np.array([needed]), np.array([rng.random()])
                found = all_ruled_out(stats, fidelities, 0, *given)
                assert found == (needed < cost)
                ruled_out += found
        assert ruled_out > 20

    def test_what_it_cannot_show_is_not_ruled_out(self, monkeypatch):
        monkeypatch.setattr(pair_claim, "MAX_LOOKS", 1)
        stats = Stats.empty(1, 2)
        stats.counts[:], stats.sums[:] = 100, [[90.0, 10.0]]
        given = np.array([1]), 0.0, np.array([3.0]), np.array([0.3])
        assert not all_ruled_out(stats, mfb.Fidelities([1], concentration=mfb.SubGaussian(0.5)), 0, *given)


def largest_lead_of(tail) -> float:
    return largest_lead(mfb.Fidelities([1], concentration=tail))


def test_a_dropped_fidelity_never_strengthens_a_claim(fidelities):
    """So that a fidelity may be dropped, and taken up again, whenever one likes: also because of its results."""
    rng, rivals, zero = np.random.default_rng(6), np.arange(1, 40), np.zeros(39, dtype=int)
    for most in (2, 30, 3000):
        stats = some_stats(rng, 40, most)
        costs = []
        for counted in (ALL, np.array([False, True])):
            leader, others = (Pool.of(stats, fidelities, arms, counted) for arms in (zero, rivals))
            costs.append(explanation(leader, others, np.zeros(39)).cost)
        assert (costs[1] <= costs[0] + 1e-7).all()


def test_centre_of_one_fidelity_is_its_mean():
    stats = Stats.empty(1, 3)
    stats.counts[:], stats.sums[:] = [[4, 0, 100]], [[1.0, 0.0, 70.0]]
    found = centres(stats, mfb.Fidelities([1], concentration=mfb.SubGaussian(0.3)), np.array([True]))
    assert found.tolist() == [pytest.approx(0.25), -math.inf, pytest.approx(0.7)]


class TestKeptClaims:
    @pytest.mark.parametrize("tail", [mfb.SubGaussian(0.2), mfb.Bounded(-3, 4)])
    def test_the_same_to_the_last_bit(self, tail) -> None:
        rng, kept, fid = np.random.default_rng(5), KeptClaims(), mfb.Fidelities([1, 10], [0.1, 0], tail)
        stats, roster = Stats.empty(2, 30), Roster(30)
        for step in range(60):
            if step == 40:
                stats, roster = stats.with_arms(2), Roster(30, changed=True)
            if step == 50:
                stats.active[[3, 8]] = False
            arm, fidelity, number = rng.integers(stats.counts.shape[1]), rng.integers(2), int(rng.integers(1, 9))
            stats.counts[fidelity, arm] += number
            stats.sums[fidelity, arm] += rng.normal(0.05 * arm, 0.2) * number
            about, level = 0 if step < 30 else 1, 0.95 if step % 3 else 0.8
            asked = stats, fid, about, roster, ALL, level
            assert kept.confidence(*asked) == confidence(*asked)
