"""What users of GridSearchCV and RandomizedSearchCV are used to: draws, several metrics, train scores, callbacks."""

import math
import warnings

import joblib
import numpy as np
import pytest
import sklearn
from scipy.stats import loguniform, randint
from sklearn.datasets import make_classification
from sklearn.exceptions import FitFailedWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, roc_auc_score
from sklearn.model_selection import GridSearchCV, KFold, ParameterGrid, ParameterSampler, RandomizedSearchCV
from sklearn.tree import DecisionTreeClassifier

from mfbandit import MFSearchCV
from mfbandit.search.callbacks import FitTask

X, Y = make_classification(300, 8, n_informative=5, random_state=0)
DEPTHS = {"max_depth": [1, 2, 4, 8]}
DRAWN = {"max_depth": randint(1, 9), "ccp_alpha": loguniform(1e-5, 1e-2)}


def trees(**arguments):
    default = {"estimator": DecisionTreeClassifier(), "random_state": 0, "capital": 8}
    if not {"param_grid", "param_distributions", "candidates"} & arguments.keys():
        default["param_grid"] = DEPTHS
    return MFSearchCV(**default | arguments)


def told(search):
    return [(one.arm, one.fidelity, one.split, one.outcome.score) for one in search.plays_], search.best_params_


class TestDistributions:
    def test_settings_are_those_of_a_randomized_search(self):
        mine = trees(param_distributions=DRAWN, n_iter=6).fit(X, Y)
        other = RandomizedSearchCV(DecisionTreeClassifier(), DRAWN, n_iter=6, random_state=0, cv=2).fit(X, Y)
        assert mine.cv_results_["params"] == other.cv_results_["params"]
        assert (mine.cv_results_["param_ccp_alpha"] == other.cv_results_["param_ccp_alpha"]).all()

    def test_a_sampler_and_a_grid_are_candidates(self):
        drawn = trees(param_distributions=DRAWN, n_iter=4).fit(X, Y)
        assert told(trees(candidates=ParameterSampler(DRAWN, 4, random_state=0)).fit(X, Y)) == told(drawn)
        assert told(trees(candidates=ParameterGrid(DEPTHS)).fit(X, Y)) == told(trees().fit(X, Y))

    def test_draws_without_a_seed_differ(self):
        search = trees(param_distributions=DRAWN, n_iter=3, random_state=None)
        assert search.fit(X, Y).cv_results_["params"] != search.fit(X, Y).cv_results_["params"]

    def test_draws_of_a_generator_are_repeated_with_it(self):
        found = [
            trees(param_distributions=DRAWN, n_iter=3, random_state=np.random.RandomState(7)).fit(X, Y)
            for _ in range(2)
        ]
        assert told(found[0]) == told(found[1])

    def test_ten_by_default_and_no_more_than_there_are(self):
        assert len(trees(param_distributions=DRAWN).fit(X, Y).cv_results_["params"]) == 10
        with pytest.warns(UserWarning, match="The total space of parameters 4 is smaller than n_iter=10"):
            assert len(trees(param_distributions=DEPTHS).fit(X, Y).cv_results_["params"]) == 4

    def test_with_metadata_routing(self):
        weights = np.linspace(1, 2, len(Y))
        with sklearn.config_context(enable_metadata_routing=True):
            tree = DecisionTreeClassifier().set_fit_request(sample_weight=True).set_score_request(sample_weight=False)
            search = trees(estimator=tree, param_distributions=DRAWN, n_iter=3, random_state=None)
            assert len(search.fit(X, Y, sample_weight=weights).cv_results_["params"]) == 3
            assert search.get_metadata_routing() is not None


def both(model, x, y):
    scores = model.predict_proba(x)[:, 1]
    return {"accuracy": accuracy_score(y, model.predict(x)), "roc_auc": roc_auc_score(y, scores)}


class TestMetrics:
    def test_one_of_several_decides_as_if_it_were_alone(self):
        alone = trees(scoring="roc_auc").fit(X, Y)
        for scoring in (["accuracy", "roc_auc"], {"accuracy": "accuracy", "roc_auc": "roc_auc"}, both):
            search = trees(scoring=scoring, refit="roc_auc").fit(X, Y)
            assert told(search) == told(alone)
            assert search.multimetric_
            assert search.metric_ == "roc_auc"
            assert search.best_score_ == alone.best_score_
            assert search.score(X, Y) == pytest.approx(alone.score(X, Y))
            for name in ("mean_test", "std_test", "split0_test", "rank_test"):
                np.testing.assert_array_equal(search.cv_results_[f"{name}_roc_auc"], alone.cv_results_[f"{name}_score"])
            assert "mean_test_score" not in search.cv_results_

    def test_other_metrics_are_those_of_the_same_fits(self):
        search = trees(scoring=["accuracy", "roc_auc"], refit="roc_auc", capital="grid", cv=KFold(3)).fit(X, Y)
        grid = GridSearchCV(DecisionTreeClassifier(), DEPTHS, cv=KFold(3), scoring=["accuracy", "roc_auc"], refit=False)
        mine = search.cv_results_["mean_test_accuracy"]
        assert mine == pytest.approx(grid.fit(X, Y).cv_results_["mean_test_accuracy"], abs=0.1)
        order = np.argsort(-mine, kind="stable")
        assert (np.diff(search.cv_results_["rank_test_accuracy"][order]) >= 0).all()

    def test_without_refit_the_first_decides(self):
        search = trees(scoring=["roc_auc", "accuracy"], refit=False).fit(X, Y)
        assert search.metric_ == "roc_auc"
        assert told(search) == told(trees(scoring="roc_auc").fit(X, Y))
        assert not hasattr(search, "best_estimator_")

    def test_refit_as_a_function(self):
        seen = {}

        def smallest(results):
            seen.update(results)
            return int(np.argmin(results["param_max_depth"]))

        search = trees(refit=smallest, scoring=["accuracy", "roc_auc"]).fit(X, Y)
        assert search.best_params_ == {"max_depth": 1}
        assert search.best_estimator_.max_depth == 1
        assert not hasattr(search, "best_score_")
        assert seen.keys() == search.cv_results_.keys()
        low, high = search.best_interval_
        assert low < search.cv_results_["mean_test_accuracy"][0] < high
        assert search.score(X, Y) == accuracy_score(Y, search.predict(X))

    def test_a_function_as_refit_leaves_no_score_of_an_earlier_fit(self):
        search = trees().fit(X, Y)
        assert not hasattr(search.set_params(refit=lambda _: 0).fit(X, Y), "best_score_")

    @pytest.mark.parametrize(("index", "error"), [(4, IndexError), (-1, IndexError), ("a", TypeError)])
    def test_a_function_that_returns_no_index(self, index, error):
        with pytest.raises(error, match="best_index_"):
            trees(refit=lambda _: index).fit(X, Y)

    def test_a_metric_that_fails_beside_the_one_that_decides(self):
        def broken(model, _, __):
            if model.max_depth == 1:
                raise RuntimeError("no trees of one level")
            return 1.0

        with pytest.warns(UserWarning, match="the metric 'broken' gave no finite number in"):
            search = trees(scoring={"good": "accuracy", "broken": broken}, refit="good").fit(X, Y)
        assert np.isnan(search.cv_results_["mean_test_broken"]).tolist() == [True, False, False, False]
        assert np.isfinite(search.cv_results_["mean_test_good"]).all()
        with pytest.warns(FitFailedWarning, match="no trees of one level"):
            search = trees(scoring={"good": "accuracy", "broken": broken}, refit="broken").fit(X, Y)
        assert search.best_params_["max_depth"] > 1

    def test_error_score_is_that_of_all_metrics(self):
        def picky(model, _, __):
            if model.max_depth == 1:
                raise RuntimeError("no trees of one level")
            return {"a": 0.5, "b": 0.25}

        with pytest.warns(FitFailedWarning, match="will be set to 0.125"):
            search = trees(scoring=picky, refit="a", error_score=0.125).fit(X, Y)
        assert search.cv_results_["mean_test_b"].tolist() == [0.125, 0.25, 0.25, 0.25]


class TestTrainScores:
    def test_are_scores_on_the_samples_of_the_fit(self):
        plain = trees(scoring="accuracy").fit(X, Y)
        search = trees(scoring="accuracy", return_train_score=True).fit(X, Y)
        assert told(search) == told(plain)
        assert not any("train" in name for name in plain.cv_results_)
        full = search.cv_results_["param_max_depth"] == 8
        assert (search.cv_results_["mean_train_score"][full] > 0.95).all()
        assert {"split0_train_score", "std_train_score"} <= search.cv_results_.keys()

    def test_of_several_metrics(self):
        search = trees(scoring=both, refit="roc_auc", return_train_score=True).fit(X, Y)
        assert (search.cv_results_["mean_train_roc_auc"] >= search.cv_results_["mean_train_accuracy"]).all()

    def test_that_fail_are_unknown(self):
        def shy(_, x, __):
            if len(x) > 100:  # no test part is as large
                raise RuntimeError("too many samples")
            return 0.5

        search = trees(scoring=shy, return_train_score=True, fractions=(0.1, 1)).fit(X, Y)
        top = search.cv_results_["fidelity"] == "1"
        assert np.isnan(search.cv_results_["mean_train_score"][top]).all()
        with pytest.raises(RuntimeError, match="too many samples"):
            trees(scoring=shy, return_train_score=True, error_score="raise").fit(X, Y)

    def test_cost_seconds_like_anything_else(self):
        search = trees(return_train_score=True, cost="seconds", capital=2.0).fit(X, Y)
        assert all(one.outcome.train_score_time > 0 for one in search.plays_)
        assert search.spent_ == pytest.approx(sum(one.outcome.seconds for one in search.plays_))


class TestCapitalOfAGrid:
    def test_all_candidates_have_all_folds(self):
        search = trees(capital="grid", cv=4).fit(X, Y)
        assert search.cv_results_["plays_at_1"].tolist() == [4] * 4
        assert search.capital_ == 16

    def test_also_where_training_parts_differ_in_size(self):
        half = np.arange(len(Y)) < 100
        search = trees(capital="grid", cv=[(~half, half), (half, ~half)]).fit(X, Y)
        assert search.cv_results_["plays_at_1"].tolist() == [2] * 4


class TestVerbose:
    def test_best_so_far_changes_nothing(self, capsys):
        quiet = trees().fit(X, Y)
        assert told(trees(verbose=3).fit(X, Y)) == told(quiet)
        lines = capsys.readouterr().out.splitlines()
        assert len(lines) == len(quiet.plays_)
        assert "max_depth=1, 1, split 0, score=0." in lines[0]

    @pytest.mark.parametrize(
        ("arguments", "shown"),
        [
            ({"verbose": 2}, "max_depth=1, 1, split 0, 0."),
            ({"return_train_score": True}, "score=(train=0."),
            ({"scoring": both, "refit": "roc_auc"}, "accuracy: (test=0."),
            ({"scoring": both, "refit": "roc_auc", "return_train_score": True}, "roc_auc: (train=0."),
        ],
    )
    def test_each_fit(self, arguments, shown, capsys):
        trees(**{"verbose": 3} | arguments).fit(X, Y)
        assert shown in capsys.readouterr().out

    def test_no_best_before_a_score(self, capsys):
        scores = iter([math.nan] * 4 + [0.5] * 100)
        with pytest.warns(FitFailedWarning):
            trees(scoring=lambda *_: next(scores), verbose=1, fractions=(1,), batch=1).fit(X, Y)
        assert "4 fits, 4 of 8 spent\n" in capsys.readouterr().err


class Recorder:
    """A callback that counts what it is told; it follows scikit-learn's protocol."""

    def __init__(self):
        self.seen = []

    def setup(self, estimator, context):
        self.seen.append(("setup", context.task_name, estimator))

    def on_fit_task_begin(self, _, context, *, X=None, metadata=None):  # noqa: N803 - scikit-learn's name
        self.seen.append(("begin", context.task_name, None if X is None else len(X), metadata))

    def on_fit_task_end(self, estimator, context):
        self.seen.append(("end", context.task_name, estimator))

    def teardown(self, estimator, context):
        self.seen.append(("teardown", context.task_name, estimator))

    def names(self, what):
        return [one[1] for one in self.seen if one[0] == what]


@pytest.mark.skipif(not hasattr(GridSearchCV, "set_callbacks"), reason="this scikit-learn has no callbacks")
class TestCallbacks:
    def test_are_told_of_the_search_of_each_fit_and_of_the_refit(self):
        recorder = Recorder()
        search = trees().set_callbacks(recorder)
        assert told(search.fit(X, Y)) == told(trees().fit(X, Y))
        fits = ["candidate-split-evaluation"] * len(search.plays_)
        assert recorder.names("begin") == ["fit", "search", *fits, "refit-with-best-params"]
        assert sorted(recorder.names("end")) == sorted(recorder.names("begin"))
        assert recorder.seen[0] == ("setup", "fit", search)
        assert recorder.seen[-1] == ("teardown", "fit", search)
        rows = [one[2] for one in recorder.seen if one[:2] == ("begin", "candidate-split-evaluation")]
        assert max(rows) == 240  # of 300, in five folds

    def test_without_refit(self):
        recorder = Recorder()
        trees(refit=False).set_callbacks(recorder).fit(X, Y)
        assert "refit-with-best-params" not in recorder.names("begin")

    def test_are_told_of_weights(self):
        recorder, weights = Recorder(), np.linspace(1, 2, len(Y))
        trees().set_callbacks(recorder).fit(X, Y, sample_weight=weights)
        given = [one[3] for one in recorder.seen if one[:2] == ("begin", "refit-with-best-params")]
        assert (given[0]["sample_weight"] == weights).all()

    def test_are_taken_down_after_an_error(self):
        recorder = Recorder()
        with pytest.raises(ValueError, match="cv"):
            trees(cv=[]).set_callbacks(recorder).fit(X, Y)
        assert recorder.names("teardown") == ["fit"]

    def test_inside_another_search(self):
        recorder = Recorder()
        inner = trees(capital=5).set_callbacks(recorder)
        outer = GridSearchCV(inner, {"capital": [5]}, cv=2).fit(X, Y)
        assert outer.best_estimator_.best_params_ is not None


def test_a_task_without_callbacks_is_nothing():
    assert FitTask.of_fit(trees()).part("search").context is None


def test_without_scikit_learns_callbacks(monkeypatch):
    """Before version 1.9 searches have no set_callbacks."""
    expected = told(trees().fit(X, Y))
    monkeypatch.setattr("mfbandit.search.callbacks.supports_callbacks", lambda _: False)
    assert told(trees().fit(X, Y)) == expected


def test_all_options_together_in_threads():
    with joblib.parallel_config("threading", n_jobs=2), warnings.catch_warnings():
        warnings.simplefilter("error")
        search = MFSearchCV(
            LogisticRegression(),
            param_distributions={"C": loguniform(1e-3, 1e3)},
            n_iter=8,
            scoring=["accuracy", "roc_auc"],
            refit="roc_auc",
            return_train_score=True,
            random_state=0,
        ).fit(X, Y)
    assert search.score(X, Y) > 0.8
