import pytest

from mfbandit import UCB, Fidelities, NoResults, Stats, SubGaussian

FID = Fidelities([1, 10], concentration=SubGaussian(0.1))


def test_plays_the_highest_fidelity_alone():
    low = Stats.empty(2, 2)
    low.counts[0] = 5
    low.sums[0] = [5, 0]
    assert UCB().choose(low, FID) == (0, 1)
    assert UCB().index(low, FID).tolist() == [float("inf")] * 2
    with pytest.raises(NoResults, match="no active arm has a result that this policy uses"):
        UCB().recommend(low, FID)


def test_needs_no_biases():
    stats = Stats.empty(2, 2)
    stats.counts[1] = [4, 4]
    stats.sums[1] = [1.0, 2.0]
    assert UCB().choose(stats, FID) == (1, 1)
    assert UCB().recommend(stats, FID) == 1
