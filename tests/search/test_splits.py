"""Samples are nested and stratified, splits are the same for all and never end."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneGroupOut,
    RepeatedStratifiedKFold,
    ShuffleSplit,
    StratifiedKFold,
    TimeSeriesSplit,
)

from mfbandit.search.splits import Splits, nested_order, raise_small_fractions
from tests.support.effort import examples


def labels_of(sizes, seed):
    return np.random.default_rng(seed).permutation(np.repeat(np.arange(len(sizes)), sizes))


class TestNestedOrder:
    @given(st.lists(st.integers(1, 40), min_size=1, max_size=8), st.integers(0, 99))
    def test_every_beginning_is_stratified(self, sizes, seed):
        labels = labels_of(sizes, seed)
        ordered = labels[nested_order(labels, np.random.default_rng(seed))]
        for c, size in enumerate(sizes):
            share = size / len(labels)
            found = np.cumsum(ordered == c)
            expected = share * np.arange(1, len(labels) + 1)
            assert (np.abs(found - expected) <= 1 + share * len(sizes)).all()
            assert found[len(sizes) - 1] == 1  # one of each class comes first

    @given(st.lists(st.integers(1, 40), min_size=1, max_size=5), st.integers(0, 99))
    def test_it_is_an_order(self, sizes, seed):
        order = nested_order(labels_of(sizes, seed), np.random.default_rng(seed))
        assert sorted(order.tolist()) == list(range(sum(sizes)))

    def test_labels_may_be_text(self):
        assert len(nested_order(np.array(["b", "a", "b"], dtype=object), np.random.default_rng(0))) == 3


class TestSplits:
    @settings(max_examples=examples(40))
    @given(st.integers(0, 30), st.floats(0.05, 1), st.floats(0.05, 1), st.booleans())
    def test_samples_are_nested_and_apart_from_the_test_part(self, i, one, other, classifier):
        y = labels_of([30, 20, 10], 0)
        splits = Splits(4, np.zeros((60, 2)), y, classifier=classifier, seed=3)
        (small, test), (large, same) = (splits.sample(i, fraction) for fraction in sorted([one, other]))
        assert set(small) <= set(large)
        assert not set(large) & set(test)
        assert (test == same).all()
        assert len(large) == max(splits.min_samples, int(max(one, other) * (60 - len(test)) + 1e-6))
        if classifier:
            assert set(y[small]) == {0, 1, 2}

    def test_all_training_samples_are_the_splitters_own(self):
        x, y, cv = np.zeros((20, 1)), labels_of([10, 10], 0), StratifiedKFold(5)
        splits = Splits(cv, x, y, classifier=True, seed=0)
        for i, (train, test) in enumerate(cv.split(x, y)):
            assert [part.tolist() for part in splits.sample(i, 1.0)] == [train.tolist(), test.tolist()]

    @pytest.mark.parametrize(
        ("cv", "limit"),
        [
            (None, None),
            (3, None),
            (np.int64(3), None),
            (KFold(3), 3),
            (KFold(3, shuffle=True), None),
            (KFold(3, shuffle=True, random_state=5), None),
            (ShuffleSplit(4), None),
            (RepeatedStratifiedKFold(n_splits=2, n_repeats=2), None),
            (TimeSeriesSplit(3), 3),
            ([(np.arange(10), np.arange(10, 20))], 1),
            ([(np.arange(20) < 10, np.arange(20) >= 10)], 1),
        ],
        ids=str,
    )
    def test_new_splits_after_the_splitters_own(self, cv, limit):
        x, y = np.zeros((20, 1)), labels_of([10, 10], 1)
        splits = Splits(cv, x, y, classifier=True, seed=1)
        assert splits.max_splits == limit
        first, later = splits.sample(0, 1.0)[1], splits.sample(splits.n_splits, 1.0)[1]
        assert (first.tolist() == later.tolist()) == (limit is not None)
        again = Splits(cv, x, y, classifier=True, seed=1).sample(splits.n_splits, 0.5)
        assert [part.tolist() for part in again] == [part.tolist() for part in splits.sample(splits.n_splits, 0.5)]

    def test_a_splitter_with_a_seed_begins_with_its_own_splits(self):
        x, cv = np.zeros((20, 1)), ShuffleSplit(3, random_state=7)
        splits = Splits(cv, x, None, classifier=False, seed=1)
        own = [test.tolist() for _, test in cv.split(x)]
        assert [splits.sample(i, 1.0)[1].tolist() for i in range(3)] == own

    def test_the_same_split_again_has_another_sample(self):
        splits = Splits(KFold(2), np.zeros((40, 1)), None, classifier=False, seed=1)
        assert splits.sample(0, 0.25)[0].tolist() != splits.sample(2, 0.25)[0].tolist()
        assert splits.sample(0, 1.0)[0].tolist() == splits.sample(2, 1.0)[0].tolist()

    @pytest.mark.parametrize("cv", [GroupKFold(3), GroupKFold(3, shuffle=True), LeaveOneGroupOut()], ids=str)
    @pytest.mark.parametrize("fraction", [0.2, 0.5, 1.0])
    def test_no_group_is_trained_and_tested_on(self, cv, fraction):
        groups = np.repeat(np.arange(6), 5)
        splits = Splits(
            cv, np.zeros((30, 1)), labels_of([15, 15], 0), classifier=True, seed=0, arguments={"groups": groups}
        )
        for i in range(8):
            train, test = splits.sample(i, fraction)
            assert not set(groups[train]) & set(groups[test])

    def test_of_a_time_series_it_is_the_latest_part(self):
        splits = Splits(TimeSeriesSplit(3), np.zeros((40, 1)), None, classifier=False, seed=0)
        assert splits.sample(2, 0.1)[0].tolist() == [27, 28, 29]

    def test_no_split(self):
        with pytest.raises(ValueError, match="cv must give at least one split"):
            Splits([], np.zeros((4, 1)), None, classifier=False, seed=0)


class TestRaised:
    def test_a_warning_says_to_what(self):
        with pytest.warns(UserWarning, match=r"0\.01 of 40 training samples is fewer than 4.*raised to it: \[0\.1, 1"):
            assert raise_small_fractions((0.01, 0.05, 1.0), training_size=40, min_samples=4) == (0.1, 1.0)

    def test_fewer_samples_than_classes(self):
        with pytest.warns(UserWarning, match="raised"):
            assert raise_small_fractions((0.5, 1.0), training_size=3, min_samples=5) == (1.0,)
