"""By how much one arm is better than another: by hand, by the definition, and by counting wrong claims."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mfbandit as mfb
from mfbandit.core import Roster, Stats, difference, log_price
from mfbandit.core.claims import Pool, explanation
from tests.support.effort import effort

ALL = np.array([True, True])
TAILS = [mfb.SubGaussian(0.5), mfb.Bounded(0, 1), mfb.Rate()]


def results(counts, means, fidelities=2):
    stats = Stats.empty(fidelities, len(means[0]))
    stats.counts[:] = counts
    stats.sums[:] = np.array(counts) * np.array(means)
    stats.squares[:] = stats.sums
    return stats


def one(tail):
    return mfb.Fidelities([1], concentration=tail)


def two(tail):
    return mfb.Fidelities([1, 10], [0.1, 0], tail)


@pytest.mark.parametrize("tail", TAILS, ids=repr)
@given(st.lists(st.integers(0, 300), min_size=4, max_size=4), st.integers(0, 2**32 - 1))
def test_the_ends_are_where_the_cheapest_explanation_costs_what_is_needed(tail, counts, seed):
    means = np.random.default_rng(seed).uniform(0.2, 0.8, (2, 2))
    stats, price, level = results(np.array(counts).reshape(2, 2), means), log_price(Roster(2), 0, 1), 0.9
    found = difference(stats, two(tail), (0, 1), ALL, price=price, level=level)
    needed = price - math.log1p(-level)
    one, other = (Pool.of(stats, two(tail), np.array([arm]), ALL) for arm in (0, 1))
    if not (one.known.all() and other.known.all()):
        assert (found.low, found.high, found.level, found.better) == (-math.inf, math.inf, 0.0, 0)
        return
    largest = one.span[1] - one.span[0]
    for leader, rival, end in ((one, other, -found.low), (other, one, found.high)):
        assert end <= largest
        for by, sign in ((1e-6, 1), (-1e-6, -1)):
            cost = float(explanation(leader, rival, np.array([end + by])).cost[0])
            assert end == largest or sign * (cost - needed) >= 0


@pytest.mark.parametrize("tail", TAILS, ids=repr)
def test_it_turns_around_with_its_arms_and_excludes_no_difference_when_it_is_sure_enough(tail):
    for good in (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9):
        stats = results([[50, 80], [60, 40]], [[good, 0.5], [good, 0.5]])
        options = {"price": log_price(Roster(5), 0, 1), "level": 0.95}
        found = difference(stats, two(tail), (0, 1), ALL, **options)
        turned = difference(stats, two(tail), (1, 0), ALL, **options)
        assert (turned.low, turned.high, turned.better) == (-found.high, -found.low, -found.better)
        assert (found.low > 0 or found.high < 0) == (found.level > 0.95)
        assert found.better == (good > 0.5) - (good < 0.5)


def test_weights_of_all_pairs_sum_to_at_most_one():
    for first in (2, 3, 10):
        arms = range(first + 200)
        total = sum(math.exp(-log_price(Roster(first), i, a)) for i in arms for a in arms if i != a)
        assert 0.99 < total < 1


def test_wrong_claims_are_rare_however_often_one_looks():
    """Looked at after each result of arms that are equal, by a rule that plays what seems best: for any pair."""
    rng, level, wrong, runs = np.random.default_rng(3), 0.8, 0, effort(40, 400)
    fid, needed = one(mfb.SubGaussian(0.5)), log_price(Roster(3), 0, 1) - math.log1p(-0.8)
    leaders, rivals = np.array([(i, a) for i in range(3) for a in range(3) if i != a]).T
    for _ in range(runs):
        stats = results([[1, 1, 1]], [rng.integers(0, 2, 3).astype(float)], 1)
        most = -math.inf
        for _ in range(60):
            arm = int(np.argmax(stats.sums[0] / stats.counts[0] + rng.normal(0, 0.1, 3)))
            stats.counts[0, arm] += 1
            stats.sums[0, arm] += rng.integers(0, 2)
            leader, rival = (Pool.of(stats, fid, arms, np.array([True])) for arms in (leaders, rivals))
            most = max(most, float(explanation(leader, rival, np.zeros(6)).cost.max()))
        wrong += most >= needed  # no difference is ruled out for some pair, and there is none
    assert wrong / runs <= 1 - level


def test_it_gets_narrower_and_finds_the_truth():
    rng, widths = np.random.default_rng(0), []
    for n in (30, 300, 3000):
        stats = results([[n, n]], [[rng.binomial(n, 0.6) / n, rng.binomial(n, 0.4) / n]], 1)
        found = difference(
            stats, one(mfb.Rate()), (0, 1), np.array([True]), price=log_price(Roster(2), 0, 1), level=0.95
        )
        assert found.low <= 0.2 <= found.high
        widths.append(found.high - found.low)
    assert widths[0] > 2 * widths[1] > 4 * widths[2]
    assert found.level > 0.999


class TestInAnExperiment:
    def exp(self, **fidelities):
        return mfb.Experiment(mfb.MFUCB(), arms=["a", "b", "c"], fidelities=mfb.Fidelities([1, 10], **fidelities))

    def test_refuted_biases_do_not_count(self):
        exp = self.exp(biases=[0.05, 0], concentration=mfb.SubGaussian(0.1))
        low = [(arm, 0, mean, 0.0) for arm, mean in (("a", 0.9), ("b", 0.1)) for _ in range(200)]
        top = [(arm, 1, 0.5, 0.0) for arm in ("a", "b") for _ in range(200)]
        exp.add_results(low + top)
        found = exp.difference("a", "b")
        assert found.low < 0 < found.high
        assert any("refute its bias" in line for line in found.assumes)
        assert found.sentence.startswith(
            "Not sure yet which of a and b is better (valid whenever you look). a minus b is"
        )

    def test_noise_that_is_learned_gives_an_estimate_and_too_few_results_nothing(self):
        exp = mfb.Experiment(mfb.MFBayes(), arms=["a", "b", "c"], fidelities=mfb.Fidelities([1, 10], [0.1, 0]))
        assert exp.difference("a", "b").sentence.startswith("Which of a and b is better cannot be said: the noise")
        rng = np.random.default_rng(1)
        exp.add_results(
            [(arm, 1, mean + 0.1 * rng.normal(), None) for arm, mean in (("a", 0), ("b", 1)) for _ in range(30)]
        )
        found = exp.difference("a", "b")
        assert (found.kind, found.better, found.level) == ("estimate", 1, 0.95)
        assert found.sentence.startswith("95 % sure that b is better than a (an estimate: ")

    def test_of_an_arm_without_results_nothing_is_known(self):
        exp = self.exp(biases=[0.1, 0], concentration=mfb.SubGaussian(0.1))
        exp.add_results([("a", 1, 0.5, None)])
        found = exp.difference("a", "c")
        assert (found.low, found.high, found.better) == (-math.inf, math.inf, None)
        assert found.sentence.endswith("Nothing is known of the difference.")

    @pytest.mark.parametrize("pair", [("a", "a"), (0, "a"), ("a", "x"), (0, 3)])
    def test_two_arms_are_needed(self, pair):
        with pytest.raises(ValueError, match=r"arm"):
            self.exp(biases=[0.1, 0], concentration=mfb.SubGaussian(0.1)).difference(*pair)
