import numpy as np

from mfbandit import Stats


def test_time_counts_results_and_pending_plays():
    stats = Stats.empty(2, 2)
    stats.counts[1, 0] = 3
    stats.pending[0, 1] = 2
    assert stats.time == 6
    assert stats.told.time == 4
    assert stats.plays.tolist() == [[0, 2], [3, 0]]


def test_top_is_the_last_row():
    stats = Stats.empty(2, 2)
    stats.sums[1] = [1, 0]
    stats.counts[1] = [2, 0]
    assert stats.top.means[0, 0] == 0.5
    assert np.isnan(stats.top.means[0, 1])


def test_new_arms_come_behind_and_are_active():
    stats = Stats.empty(1, 1)
    stats.counts[0, 0] = 5
    stats.active[0] = False
    grown = stats.with_arms(2)
    assert grown.counts.tolist() == [[5, 0, 0]]
    assert grown.active.tolist() == [False, True, True]
