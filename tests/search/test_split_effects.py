"""What a split does to all candidates is taken out, and nothing else."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mfbandit import Fidelities, MFTopTwo
from mfbandit.core.stats import Stats
from mfbandit.search.split_effects import SplitAdjustedPolicy, split_effects


def stats_of(seen, fidelities, arms):
    stats = Stats.empty(fidelities, arms)
    for m, arm, _, score in seen:
        stats.counts[m, arm] += 1
        stats.sums[m, arm] += score
        stats.squares[m, arm] += score * score
    return stats


class TestSplitEffects:
    def test_one_that_all_have_seen_is_known(self):
        arms, splits = np.tile(np.arange(50), 2), np.repeat([0, 1], 50)
        scores = 0.01 * arms + np.array([0.0, 0.3])[splits]
        effects = split_effects(arms, splits, scores)
        assert effects[1] - effects[0] == pytest.approx(0.3, rel=0.02)

    @given(st.integers(0, 99))
    def test_it_is_the_least_squares_solution(self, seed):
        rng = np.random.default_rng(seed)
        numbers = rng.integers(1, 4, size=6)
        arms = np.repeat(np.arange(6), numbers)
        splits = np.concatenate([np.arange(n) for n in numbers])
        scores = rng.normal(size=len(arms))
        rows = np.zeros((len(arms) + numbers.max(), 6 + numbers.max()))
        rows[np.arange(len(arms)), arms] = 1
        rows[np.arange(len(arms)), 6 + splits] = 1
        rows[len(arms) + np.arange(numbers.max()), 6 + np.arange(numbers.max())] = np.sqrt(0.5)
        expected = np.linalg.lstsq(rows, np.append(scores, np.zeros(numbers.max())), rcond=None)[0][6:]
        assert split_effects(arms, splits, scores) == pytest.approx(expected, abs=0.02)


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
