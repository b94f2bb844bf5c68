"""What a split does to all candidates is taken out, and nothing else."""

from mfbandit import Fidelities, MFTopTwo
from mfbandit.core.stats import Stats
from mfbandit.search.split_effects import SplitAdjustedPolicy


def stats_of(seen, fidelities, arms):
    stats = Stats.empty(fidelities, arms)
    for m, arm, _, score in seen:
        stats.counts[m, arm] += 1
        stats.sums[m, arm] += score
        stats.squares[m, arm] += score * score
    return stats


class TestSplitAdjustedPolicy:
    def test_a_hard_split_does_not_count_against_those_who_met_it(self):
        seen = [(0, arm, 0, 0.5 + 0.01 * arm) for arm in range(6)]
        seen += [(0, arm, 1, 0.4 + 0.01 * arm) for arm in (2, 3, 4, 5)]
        policy, fidelities = SplitAdjustedPolicy(MFTopTwo(10), fits=seen), Fidelities([1])
        stats = stats_of(seen, 1, 6)
        assert MFTopTwo(10).recommend(stats, fidelities) == 1
        assert policy.recommend(stats, fidelities) == 5
        assert policy.index(stats, fidelities).argmax() == 5

    def test_a_log_may_be_read_from_its_start(self):
        seen = [(0, 0, 0, 0.5), (1, 0, 0, 0.7)]
        adjusted = SplitAdjustedPolicy(MFTopTwo(10), fits=seen).adjusted(stats_of(seen[:1], 2, 1))
        assert adjusted.sums[1, 0] == 0
