"""A search says what it does not know: tiny test parts, time series, twins, fits that fail, ties."""

import warnings

import numpy as np
import pytest
import sklearn
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import make_classification, make_regression
from sklearn.exceptions import FitFailedWarning
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, KFold, LeaveOneOut, TimeSeriesSplit, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from mfbandit import MFSearchCV, MFTopTwo, Stats
from mfbandit.search.fit_and_score import FitResult
from mfbandit.search.scheduler import PlannedSplits
from mfbandit.search.score_estimates import least_noise, min_useful_score, split_error
from tests.search.test_scheduler import begun
from tests.support.effort import effort

TREES = {"max_depth": [1, 2, 3, 4, 6, None], "min_samples_leaf": [1, 3, 8]}


class Fixed(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Scores its value, on at least ``rows`` training samples, whatever the data."""

    def __init__(self, value=0.5, rows=0):
        self.value = value
        self.rows = rows

    def fit(self, x, y, sample_weight=None):
        if len(x) < self.rows:
            raise ValueError(f"{self.rows} rows are needed")
        self.classes_, self.weights_ = np.unique(y), sample_weight
        return self

    def score(self, _x, _y):
        return self.value


class TestTinyTestParts:
    @pytest.mark.parametrize("folds", ["one", "twenty"])
    def test_no_false_certainty(self, folds):
        wrong = covered = 0
        seeds = range(effort(2, 20))
        for seed in seeds:
            x, y = make_classification(60, 8, n_informative=4, flip_y=0.1, random_state=seed)
            cv = LeaveOneOut() if folds == "one" else KFold(20, shuffle=True, random_state=seed)
            tree = DecisionTreeClassifier(random_state=0)
            search = MFSearchCV(tree, TREES, cv=cv, random_state=seed, capital=30, refit=False).fit(x, y)
            low, high = search.best_interval_
            assert high - low > 0.02
            chosen = cross_val_score(tree.set_params(**search.best_params_), x, y, cv=cv).mean()
            covered += low <= chosen <= high
            wrong += search.stopped_early_
        assert wrong == 0
        assert covered >= 0.9 * len(seeds)

    def test_noise_is_at_least_that_of_one_sample_among_all(self):
        stats = Stats.empty(fidelities=2, arms=3)
        stats.counts[:], stats.sums[:] = [[1], [4]], [[1.0], [4.0]]
        assert least_noise(stats, 1).tolist() == [1 / 6, 1 / 12]
        assert least_noise(stats, 100)[0] < 1e-4
        stats.sums[:] *= -1000  # a loss
        assert least_noise(stats, 1)[0] == pytest.approx(1000**2 / 6)

    def test_one_wrong_sample_is_not_hopeless(self):
        stats = Stats.empty(fidelities=1, arms=8)
        stats.counts[:], stats.sums[:] = 1, [[1, 1, 1, 1, 1, 1, 1, 0]]
        assert min_useful_score(stats, test_size=1) < 0 < min_useful_score(stats, test_size=1000)

    def test_poor_candidates_do_not_widen_the_interval_of_good_ones(self):
        """Scores of 0.96 differ less between splits than those of 0.6 do."""
        stats = Stats.empty(fidelities=2, arms=20)
        stats.counts[0], stats.sums[0], stats.squares[0] = 1, 0.6, 0.36
        stats.counts[1, 0], stats.sums[1, 0], stats.squares[1, 0] = 5, 4.8, 4.608
        known = split_error(stats, [1, 5], 5, 120)
        assert 0 < known < split_error(stats, [1, 5], 5, 30)
        stats.sums[0], stats.squares[0] = 0.96, 0.96**2
        assert known == pytest.approx(split_error(stats, [1, 5], 5, 120))

    def test_twins_need_many_samples(self):
        def retired(test_size):
            scheduler = begun(MFTopTwo(40), capital=40, splits=PlannedSplits(test_size=test_size))
            for _ in range(8):
                asked = scheduler.ask(4)
                scheduler.tell(asked, [FitResult(1.0, 1.0) for _ in asked])
            return scheduler.experiment.retired

        assert not retired(1)
        assert retired(200)


class TestTimeSeries:
    def test_plays_begin_at_the_largest_window_and_cost_their_rows(self):
        x, y = make_regression(120, 4, noise=5.0, random_state=0)
        seen: list[int] = []

        class Counted(Ridge):  # type: ignore[misc]
            def fit(self, x, y):
                seen.append(len(x))
                return super().fit(x, y)

        grid, cv = {"alpha": [0.1, 1.0, 10.0, 100.0]}, TimeSeriesSplit(5)
        search = MFSearchCV(Counted(), grid, cv=cv, capital=6, random_state=0, refit=False).fit(x, y)
        assert {play.split for play in search.plays_[:4]} == {4}
        assert search.spent_ == pytest.approx(sum(seen) / 100)
        assert search.spent_ <= 6

    def test_with_all_capital_it_is_the_grid(self):
        x, y = make_regression(120, 4, noise=5.0, random_state=0)
        grid, cv = {"alpha": [0.1, 1.0, 10.0, 100.0]}, TimeSeriesSplit(5)
        search = MFSearchCV(Ridge(), grid, cv=cv, capital=100, random_state=0, fractions=(1,)).fit(x, y)
        full = GridSearchCV(Ridge(), grid, cv=cv).fit(x, y)
        assert search.cv_results_["mean_test_score"] == pytest.approx(full.cv_results_["mean_test_score"])
        assert search.cv_results_["split0_test_score"] == pytest.approx(full.cv_results_["split0_test_score"])
        assert search.best_params_ == full.best_params_


class TestCapital:
    def test_with_the_grids_capital_every_candidate_has_its_folds(self):
        """Two settings that hardly differ do not take it."""
        x, y = make_regression(150, 5, noise=10.0, random_state=1)
        grid = {"max_depth": [1, 2, 3, 4, 5, 6], "min_samples_leaf": [1, 2]}
        cv = KFold(5, shuffle=True, random_state=0)
        search = MFSearchCV(DecisionTreeRegressor(random_state=0), grid, cv=cv, capital=60, random_state=0).fit(x, y)
        full = GridSearchCV(DecisionTreeRegressor(random_state=0), grid, cv=cv).fit(x, y)
        assert search.cv_results_["plays_at_1"].tolist() == [5] * 12
        assert full.cv_results_["mean_test_score"][search.best_index_] == pytest.approx(full.best_score_)

    @pytest.mark.parametrize("arms", [4, 12, 40, 90])
    def test_the_default_capital_plays_every_rung(self, arms):
        x, y = make_classification(160, 6, random_state=0)
        search = MFSearchCV(Fixed(), {"value": np.linspace(0.1, 0.9, arms).tolist()}, random_state=0, refit=False)
        search.fit(x, y)
        assert search.experiment_.stats.counts.any(axis=1).all()
        assert search.fidelities_.costs[-1] == 1

    def test_a_second_split_where_splits_differ_much(self):
        x, y = make_classification(160, 6, random_state=0)
        grid = {"value": np.linspace(0.1, 0.2, 24).tolist()}

        def looked_again(size):
            def score(model, x, _):
                return model.value + size * float(np.sin(1000 * x[0, 0]))

            search = MFSearchCV(Fixed(), grid, scoring=score, random_state=0, refit=False).fit(x, y)
            return int((search.experiment_.stats.counts[0] > 1).sum())

        assert looked_again(0.5) >= 12
        assert looked_again(0.001) < 12


class TestFailsOnFewSamples:
    X, Y = make_classification(200, 6, random_state=0)  # 160 training samples

    def test_it_is_tried_one_fraction_higher(self):
        grid = [{"value": [0.9], "rows": [100]}, {"value": [0.5, 0.55, 0.6, 0.45, 0.4], "rows": [0]}]
        with pytest.warns(FitFailedWarning, match=r"candidate 'rows=100, value=0\.9' failed at 0\.25, with ValueError"):
            search = MFSearchCV(Fixed(), grid, fractions=(1 / 4, 1), capital=5, random_state=0).fit(self.X, self.Y)
        assert search.best_params_ == {"value": 0.9, "rows": 100}
        assert not search.experiment_.set_aside

    def test_the_warning_names_who_was_dropped(self):
        grid = {"n_neighbors": [1, 5, 1000]}
        said = r"candidate 'n_neighbors=1000' was dropped: it failed at 0\.25, 1, with ValueError: Expected n_neighbors"
        search = MFSearchCV(KNeighborsClassifier(), grid, fractions=(1 / 4, 1), capital=4, random_state=0)
        with pytest.warns(FitFailedWarning, match=said):
            search.fit(self.X, self.Y)
        assert search.best_params_["n_neighbors"] < 1000

    def test_with_a_number_as_error_score_all_that_fail_raise(self):
        with pytest.raises(ValueError, match="and all 2 candidates with them"):
            MFSearchCV(Fixed(rows=1000), {"value": [1, 2]}, capital=6, error_score=0.0).fit(self.X, self.Y)


@pytest.mark.parametrize("seed", range(4))
def test_ties_go_to_the_first_candidate_listed(seed):
    x, y = make_classification(100, 6, random_state=0)
    search = MFSearchCV(Fixed(), {"value": [0.3, 0.7, 0.7, 0.7]}, capital=12, random_state=seed).fit(x, y)
    assert search.best_index_ == 1


@pytest.mark.parametrize("listed", [60, 90])
def test_a_tie_is_one_however_often_each_was_fitted(listed):
    x, y = make_classification(100, 6, random_state=0)
    settings = [{"value": 0.3}] * (listed // 2) + [{"value": 0.7}] * (listed // 2)
    search = MFSearchCV(Fixed(), candidates=settings, random_state=0, refit=False).fit(x, y)
    plays = search.cv_results_["plays_at_1"][listed // 2 :]
    assert len({*plays.tolist()}) > 2
    assert search.best_index_ == listed // 2


class TestSmallOnes:
    X, Y = make_classification(100, 6, random_state=0)

    def test_no_bare_set_params(self):
        class Plain(Fixed):
            def set_params(self, **params):
                assert params, "nothing to set"
                return super().set_params(**params)

        MFSearchCV(candidates=[Plain(0.1), Plain(0.9)], capital=4, random_state=0).fit(self.X, self.Y)

    def test_a_splitter_that_contradicts_itself(self):
        class Odd(KFold):  # type: ignore[misc]
            def get_n_splits(self, *_args, **_more):
                return 4

        with pytest.raises(ValueError, match=r"return inconsistent results\. Expected 4 splits, got 3"):
            MFSearchCV(Fixed(), {"value": [1, 2]}, cv=Odd(3)).fit(self.X, self.Y)

    def test_a_policy_with_another_capital(self):
        search = MFSearchCV(Fixed(), {"value": [0.1, 0.2]}, policy=MFTopTwo(7), capital=5)
        with pytest.raises(ValueError, match=r"policy must have the capital of the search, 5, got MFTopTwo\(capital=7"):
            search.fit(self.X, self.Y)
        with pytest.raises(ValueError, match=r"policy must have the capital of the search, 10, got"):
            search.set_params(capital="grid").fit(self.X, self.Y)
        assert search.set_params(capital=None).fit(self.X, self.Y).capital_ == 7

    def test_workers_are_a_number(self):
        with pytest.raises(ValueError, match="n_jobs must be a whole number, got '2'"):
            MFSearchCV(Fixed(), {"value": [1, 2]}).set_params(n_jobs="2").fit(self.X, self.Y)

    def test_no_play_begins_that_cannot_end_in_time(self):
        """One candidate takes ten times as long as the others."""
        scheduler = begun(MFTopTwo(6), capital=6.0, seconds=True)
        longest = {0: 0.0, 1: 0.0, 2: 0.0, 3: 0.0}
        while asked := scheduler.ask(1):
            times = [(10.0 if play.arm == 3 else 1.0) * (0.0625, 0.25, 1.0)[play.fidelity] for play, _ in asked]
            scheduler.tell(
                asked, [FitResult(0.5 + 0.1 * play.arm, s) for (play, _), s in zip(asked, times, strict=True)]
            )
            longest[asked[0][0].arm] = max(longest[asked[0][0].arm], times[0])
        assert scheduler.experiment.spent <= 6.0
        assert longest[3] > 0

    def test_routing_asks_each_candidate_for_itself(self):
        weights = np.linspace(1, 2, 100)
        with sklearn.config_context(enable_metadata_routing=True):
            wants = Fixed(0.9).set_fit_request(sample_weight=True)
            not_asked = Fixed(0.1).set_fit_request(sample_weight=False)
            search = MFSearchCV(candidates=[not_asked, wants], capital=4, random_state=0, scoring=lambda m, *_: m.value)
            search.fit(self.X, self.Y, sample_weight=weights)
            assert search.best_estimator_.weights_ is not None
            other = MFSearchCV(candidates=[Fixed(0.1).set_fit_request(sample_weight=True), Fixed(0.9)], capital=4)
            with pytest.raises(ValueError, match="sample_weight"):
                other.fit(self.X, self.Y, sample_weight=weights)


def test_no_warning_where_nothing_failed():
    x, y = make_classification(100, 6, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        MFSearchCV(Fixed(), {"value": [0.1, 0.2]}, capital=6, random_state=0).fit(x, y)
