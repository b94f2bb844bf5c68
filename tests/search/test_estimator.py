"""MFSearchCV is a scikit-learn estimator, spends no more than it has, and says what it did."""

import pickle
import subprocess
import sys
from typing import Any
from unittest import SkipTest

import joblib
import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import BaseEstimator, ClassifierMixin, clone, is_classifier, is_regressor
from sklearn.cluster import KMeans
from sklearn.datasets import load_iris, load_wine, make_classification, make_regression
from sklearn.decomposition import PCA
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.exceptions import FitFailedWarning, NotFittedError
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from sklearn.metrics import make_scorer, r2_score
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.utils.estimator_checks import parametrize_with_checks

from mfbandit import MFUCB, UCB, MFAda, MFBayes, MFSearchCV, MFSure, SubGaussian

X, Y = make_classification(300, 8, n_informative=5, n_classes=3, random_state=0)
XR, YR = make_regression(200, 5, noise=20.0, random_state=0)
DEPTHS = {"max_depth": [1, 2, 4, 8]}


def trees(**arguments):
    default = {"estimator": DecisionTreeClassifier(), "param_grid": DEPTHS, "random_state": 0, "capital": 8}
    return MFSearchCV(**default | arguments)


def told(search):
    """Everything that must be the same in two runs."""
    scores = [(play.arm, play.fidelity, play.split, play.outcome.score) for play in search.plays_]
    return scores, search.best_params_, search.best_interval_, search.spent_


class Moody(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Fails, or scores NaN, with its ``mood``."""

    def __init__(self, mood="fine", value=0.5):
        self.mood = mood
        self.value = value

    def fit(self, x, y):
        if self.mood == "raises":
            raise RuntimeError("in no mood to fit")
        if self.mood == "few" and len(x) < 100:
            raise RuntimeError("too few samples")
        self.classes_, self.n_features_in_ = np.unique(y), x.shape[1]
        return self

    def predict(self, x):
        return np.full(len(x), self.classes_[0])

    def score(self, _, __):
        return np.nan if self.mood == "nan" else self.value


# scikit-learn's own checks. What its GridSearchCV does not pass either is expected, and strictly so for both.

NOT_PASSED = {"Ridge": {"check_supervised_y_2d": "GridSearchCV does not warn either"}}


def not_passed(search):
    return NOT_PASSED.get(type(search.estimator).__name__, {})


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(
    [
        search
        for base, grid in ((LogisticRegression(tol=0.1), {"C": [0.1, 1.0]}), (Ridge(), {"alpha": [0.1, 1.0]}))
        for search in (MFSearchCV(base, grid, cv=2, capital=3), GridSearchCV(base, grid, cv=2))
    ],
    expected_failed_checks=not_passed,
)
def test_scikit_learns_checks(estimator, check):
    try:
        check(estimator)
    except SkipTest as reason:  # of other array libraries than NumPy, which scikit-learn leaves out, too
        if "not checking array_api input" not in str(reason):
            raise


class TestIsNative:
    def test_can_be_shown_before_anything_is_given(self):
        assert "MFSearchCV" in MFSearchCV()._repr_html_()
        with pytest.raises(ValueError, match="one of param_grid and candidates must be given, got neither"):
            MFSearchCV().fit(X, Y)

    def test_kind(self):
        assert is_classifier(trees())
        assert is_regressor(MFSearchCV(Ridge(), {"alpha": [1]}))
        assert is_classifier(MFSearchCV(candidates=[("tree", DecisionTreeClassifier())]))

    def test_clone_and_set_params(self):
        search = clone(trees(policy=MFBayes(nu=4)))
        assert search.policy == MFBayes(nu=4)
        search.set_params(capital=5, estimator__criterion="entropy", cv=3)
        assert search.fit(X, Y).best_estimator_.criterion == "entropy"
        assert search.capital_ == 5
        assert search.n_splits_ == 3
        candidates = clone(MFSearchCV(candidates=[("a", GaussianNB()), DecisionTreeClassifier()])).candidates
        assert candidates[0][0] == "a"

    def test_predicts_like_its_best_estimator(self):
        search = trees().fit(X, Y)
        best = search.best_estimator_
        for verb in ("predict", "predict_proba"):
            assert (getattr(search, verb)(X) == getattr(best, verb)(X)).all()
        assert search.score(X, Y) == best.score(X, Y)
        assert (search.classes_ == [0, 1, 2]).all()
        assert search.n_features_in_ == 8
        assert not hasattr(search, "decision_function")
        assert search.multimetric_ is False
        assert search.refit_time_ > 0

    def test_transforms(self):
        pca = MFSearchCV(PCA(), {"n_components": [2, 3]}, capital=4, random_state=0).fit(X)
        assert pca.inverse_transform(pca.transform(X)).shape == X.shape

    def test_without_refit(self):
        search = trees(refit=False).fit(X, Y)
        assert search.best_params_ in ({"max_depth": depth} for depth in DEPTHS["max_depth"])
        assert not hasattr(search, "best_estimator_")
        with pytest.raises(AttributeError, match="has no attribute 'predict'"):
            search.predict(X)

    def test_not_fitted(self):
        with pytest.raises(NotFittedError):
            trees().predict(X)

    def test_in_a_pipeline_and_as_one(self):
        inner = make_pipeline(StandardScaler(), KNeighborsClassifier())
        search = MFSearchCV(inner, {"kneighborsclassifier__n_neighbors": [1, 3, 5]}, capital=6, random_state=0)
        outer = make_pipeline(StandardScaler(), search).fit(X, Y)
        assert outer.score(X, Y) > 0.6
        assert "kneighborsclassifier__n_neighbors" in outer[-1].best_params_

    def test_inside_cross_validation(self):
        assert cross_val_score(trees(capital=3), X, Y, cv=2).mean() > 0.4

    def test_pandas(self):
        frame = pd.DataFrame(X, columns=[f"f{i}" for i in range(8)])
        search = trees().fit(frame, pd.Series(Y))
        assert search.feature_names_in_.tolist() == list(frame.columns)
        assert told(search) == told(trees().fit(X, Y))
        table = pd.DataFrame(search.cv_results_)
        assert len(table) == 4

    def test_pickle(self):
        search = trees().fit(X, Y)
        again = pickle.loads(pickle.dumps(search))
        assert (again.predict(X) == search.predict(X)).all()
        assert again.experiment_.spent == search.spent_

    def test_text_labels_and_scoring_by_name(self):
        names = np.array(["a", "b", "c"])[Y]
        search = trees(scoring="f1_macro").fit(X, names)
        assert search.predict(X).dtype == names.dtype
        assert search.score(X, names) == search.scorer_(search.best_estimator_, X, names)

    def test_without_y(self):
        search = MFSearchCV(KMeans(n_init=1), {"n_clusters": [2, 3, 5]}, capital=4, random_state=0).fit(X)
        assert search.best_params_["n_clusters"] in (2, 3, 5)

    def test_scikit_learn_is_asked_for_only_here(self):
        code = "import sys, mfbandit; mfbandit.__dir__(); print('sklearn' in sys.modules)"
        assert (
            subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
        )

    def test_a_missing_extra_is_named(self):
        code = "import sys; sys.modules['sklearn'] = None; import mfbandit; mfbandit.MFSearchCV"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        assert "MissingExtra: MFSearchCV needs scikit-learn" in done.stderr
        assert "pip install 'mfbandit[sklearn]'" in done.stderr


class Weighed(DummyClassifier):  # type: ignore[misc]
    """Keeps the weights that it was fitted with."""

    def fit(self, x, y, sample_weight=None):
        assert sample_weight is not None
        assert (sample_weight == x[:, 0]).all()
        return super().fit(x, y, sample_weight)


class TestMetadata:
    def test_sample_weights_are_those_of_the_samples(self):
        x = np.abs(X) + 0.1
        search = MFSearchCV(Weighed(), {"strategy": ["prior", "stratified"]}, capital=4, random_state=0)
        search.fit(x, Y, sample_weight=x[:, 0])
        assert not search.cv_results_["failed_plays"].any()

    def test_groups(self):
        groups = np.repeat(np.arange(30), 10)
        search = trees(cv=GroupKFold(5)).fit(X, Y, groups=groups)
        assert search.n_splits_ == 5
        with pytest.raises(ValueError, match="groups"):
            trees(cv=GroupKFold(5)).fit(X, Y)

    def test_routing(self):
        weights, groups = np.random.default_rng(0).uniform(size=300), np.repeat(np.arange(30), 10)
        with sklearn.config_context(enable_metadata_routing=True):
            tree = DecisionTreeClassifier().set_fit_request(sample_weight=True).set_score_request(sample_weight=False)
            search = MFSearchCV(tree, DEPTHS, cv=GroupKFold(3), capital=4, random_state=0)
            search.fit(X, Y, sample_weight=weights, groups=groups)
            assert search.n_splits_ == 3


class TestSpends:
    @pytest.mark.parametrize("policy", [None, MFBayes(), UCB(rho=0.5)])
    @pytest.mark.parametrize("capital", [4, 7.3, 20])
    def test_no_more_than_it_has(self, policy, capital):
        search = trees(policy=policy, capital=capital).fit(X, Y)
        assert 0 < search.spent_ <= capital
        assert search.spent_ == pytest.approx(sum(play.cost for play in search.plays_))
        assert search.spent_ == pytest.approx(search.cv_results_["cost"].sum())

    def test_the_same_splits_for_all(self):
        plays = trees(capital=12).fit(X, Y).plays_
        for arm in range(4):
            for fidelity in range(3):
                splits = [play.split for play in plays if (play.arm, play.fidelity) == (arm, fidelity)]
                assert splits == list(range(len(splits)))

    def test_a_play_of_everyone_comes_first(self):
        assert sorted(play.arm for play in trees().fit(X, Y).plays_[:4]) == [0, 1, 2, 3]

    def test_capital_by_default(self):
        assert trees(capital=None).fit(X, Y).capital_ == 10  # two rounds of five splits
        many = MFSearchCV(GaussianNB(), {"var_smoothing": np.logspace(-9, 0, 40).tolist()}, cv=2, random_state=0)
        assert many.fit(X, Y).capital_ == 30
        assert trees(capital=None, cv=2).set_params(param_grid={"max_depth": [1]}).fit(X, Y).capital_ == 2

    def test_a_splitter_without_shuffles_ends(self):
        search = trees(cv=KFold(3), capital=1000).fit(X, Y)
        tops = search.cv_results_["plays_at_1"]
        assert tops.max() == 3
        grid = GridSearchCV(DecisionTreeClassifier(random_state=0), DEPTHS, cv=KFold(3)).fit(X, Y)
        again = MFSearchCV(DecisionTreeClassifier(random_state=0), DEPTHS, cv=KFold(3), capital=1000, random_state=0)
        again.fit(X, Y)
        done = again.cv_results_["plays_at_1"] == 3
        assert done.any()
        assert again.cv_results_["mean_test_score"][done] == pytest.approx(grid.cv_results_["mean_test_score"][done])

    def test_ends_early_when_the_best_is_clear(self):
        search = MFSearchCV(Moody(), {"value": [0.1, 0.9, 0.2, 0.3]}, scoring=_noisy, capital=500, random_state=0).fit(
            X, Y
        )
        assert search.stopped_early_
        assert search.best_params_ == {"value": 0.9}
        assert search.spent_ < 500
        assert search.cv_results_["lower_bound"][1] > np.delete(search.cv_results_["upper_bound"], 1).max()
        assert search.best_interval_[0] <= search.best_score_ <= search.best_interval_[1]

    def test_an_interval_is_not_as_wide_as_the_worst_candidate_is_bad(self):
        values = {"value": [-1e30, 0.4, 0.5, 0.6]}
        search = MFSearchCV(Moody(), values, scoring=_noisy, capital=20, random_state=0).fit(X, Y)
        assert search.best_interval_ == pytest.approx((0.6, 0.6), abs=0.1)

    def test_seconds(self):
        search = MFSearchCV(
            SVC(), {"C": [0.1, 1, 10]}, cost="seconds", capital=2.0, fractions=(0.25, 1), random_state=0
        ).fit(X, Y)
        assert search.spent_ == pytest.approx(sum(play.outcome.seconds for play in search.plays_))
        assert search.spent_ < 2.0 + max(play.outcome.seconds for play in search.plays_)
        assert search.fidelities_.costs[1] < 1.0  # learned: it began at 2.0, and a fit takes 0.01 or so

    def test_too_few_seconds(self):
        with pytest.warns(UserWarning, match="was spent before .* of 4 candidates were tried; about .* s would pay"):
            trees(cost="seconds", capital=1e-4).fit(X, Y)

    def test_resource(self):
        search = MFSearchCV(
            RandomForestClassifier(), DEPTHS, resource="n_estimators", values=(2, 8, 32), capital=6, random_state=0
        ).fit(X, Y)
        assert search.fidelities_.costs == (1 / 16, 1 / 4, 1)
        assert search.best_params_["n_estimators"] == 32
        assert search.best_estimator_.n_estimators == 32
        assert "plays_at_2" in search.cv_results_

    def test_resource_of_a_step_that_candidates_exchange(self):
        pipe = Pipeline([("model", GaussianNB())])
        forests = [RandomForestClassifier(), ExtraTreesClassifier()]
        search = MFSearchCV(pipe, {"model": forests}, resource="model__n_estimators", values=(2, 8), capital=4)
        assert search.fit(X, Y).best_params_["model__n_estimators"] == 8
        with pytest.raises(ValueError, match=r"got 'model__n_estimators', which model=GaussianNB\(\) does not have"):
            search.set_params(param_grid={"model": [*forests, GaussianNB()]}).fit(X, Y)

    def test_different_estimators(self):
        candidates = [("bayes", GaussianNB()), DecisionTreeClassifier(max_depth=1), DecisionTreeClassifier()]
        search = MFSearchCV(candidates=candidates, capital=6, random_state=0).fit(X, Y)
        assert search.cv_results_["candidate"].tolist() == [
            "bayes",
            "DecisionTreeClassifier",
            "DecisionTreeClassifier (2)",
        ]
        assert type(search.best_estimator_) is type(search.best_params_["estimator"])

    def test_settings_one_by_one(self):
        candidates = [{"max_depth": 1}, {"criterion": "entropy"}, {}]
        search = trees(param_grid=None, candidates=candidates).fit(X, Y)
        assert search.cv_results_["param_max_depth"].mask.tolist() == [False, True, True]
        assert search.cv_results_["candidate"][2] == "DecisionTreeClassifier"


def _noisy(model, x, _):
    return model.value + 0.01 * float(np.sin(1000 * x[0, 0]))


def _luck(_, x, __):
    return float(np.sin(1000 * x[0, 0]))


class TestPolicies:
    @pytest.mark.parametrize("policy", [MFUCB(rho=0.5), MFAda(), UCB()])
    def test_with_biases(self, policy):
        search = trees(policy=policy, biases=(0.3, 0.1, 0), capital=15).fit(X, Y)
        assert search.best_params_["max_depth"] >= 2
        assert search.audit_ is not None
        assert [row.bias for row in search.audit_.fidelities] == [0.3, 0.1]
        scales = [tail.scale for tail in search.fidelities_.tails]
        assert all(0.005 < scale < 0.2 for scale in scales)
        assert np.isfinite(search.cv_results_["lower_bound_at_0.0625"]).any() or isinstance(policy, UCB)

    def test_refuted_biases_are_in_the_audit(self):
        search = trees(policy=MFBayes(), biases=(1e-3, 1e-4, 0), noise=1e-3).fit(X, Y)
        assert search.audit_.alarm

    def test_a_given_noise(self):
        search = trees(policy=UCB(), noise=0.05).fit(X, Y)
        assert search.fidelities_.tails[0] == SubGaussian(0.05)
        assert trees(noise=SubGaussian(0.1)).fit(X, Y).fidelities_.tails[-1] == SubGaussian(0.1)

    @pytest.mark.parametrize("noise", [0.05, None])
    def test_a_search_ends_when_the_policy_has_decided(self, noise):
        search = trees(
            param_grid={"max_depth": [1, 8]}, policy=MFSure(delta=0.1), biases=(0.25, 0.1, 0), noise=noise, capital=200
        ).fit(X, Y)
        assert search.stopped_early_
        assert search.best_params_["max_depth"] == 8
        assert search.spent_ < 100
        policy, stats = search.experiment_.policy, search.experiment_.stats
        assert policy.decision(stats, search.experiment_.fidelities) == search.experiment_.arms.index("max_depth=8")

    def test_a_tolerance_ends_a_search_between_equals(self):
        values = {"value": [0.5, 0.501]}
        arguments: dict[str, Any] = {
            "fractions": (0.5, 1),
            "biases": (0.01, 0),
            "noise": 0.01,
            "capital": 60,
            "random_state": 0,
        }
        exact = MFSearchCV(Moody(), values, policy=MFSure(), scoring=_noisy, **arguments).fit(X, Y)
        close = MFSearchCV(Moody(), values, policy=MFSure(tolerance=0.05), scoring=_noisy, **arguments).fit(X, Y)
        assert not exact.stopped_early_
        assert close.stopped_early_
        assert close.spent_ < 20 < exact.spent_

    def test_all_splits_seen_is_no_reason_to_decide(self):
        """The first candidate that has seen all splits is retired, and still a rival of the other."""
        cv = KFold(3)
        search = trees(
            param_grid={"max_depth": [4, 8]}, policy=MFSure(), biases=(0.5, 0.3, 0), noise=0.2, capital=50, cv=cv
        ).fit(X, Y)
        assert not search.stopped_early_
        assert search.cv_results_["plays_at_1"].tolist() == [3, 3]

    def test_a_policy_that_decides_needs_biases(self):
        with pytest.raises(ValueError, match="biases are needed here"):
            trees(policy=MFSure()).fit(X, Y)

    def test_a_policy_that_needs_biases(self):
        with pytest.raises(ValueError, match="biases are needed here"):
            trees(policy=MFUCB()).fit(X, Y)


class TestFailures:
    def test_one_that_fails_is_never_the_best(self):
        moods = {"mood": ["raises", "nan", "fine"], "value": [0.5]}
        with pytest.warns(FitFailedWarning, match=r"(?s)6 fits failed out of.*3 fits failed with.*in no mood to fit"):
            search = MFSearchCV(Moody(), moods, capital=10, random_state=0).fit(X, Y)
        assert search.best_params_["mood"] == "fine"
        assert {search.experiment_.arms[k] for k in search.experiment_.set_aside} == {
            "mood=raises, value=0.5",
            "mood=nan, value=0.5",
        }
        results = search.cv_results_
        assert results["failed_plays"].tolist() == [3, 3, 0]
        assert results["rank_test_score"].tolist() == [2, 2, 1]
        assert np.isnan(results["mean_test_score"]).tolist() == [True, True, False]

    def test_one_that_needs_more_samples_is_set_aside(self):
        moods = {"mood": ["few", "fine", "raises"]}
        with pytest.warns(FitFailedWarning, match="too few samples"):
            search = MFSearchCV(Moody(), moods, fractions=(0.1, 0.2, 0.3, 1), capital=1.5, random_state=0).fit(X, Y)
        assert search.best_params_ == {"mood": "fine"}

    @pytest.mark.parametrize(("mood", "said"), [("raises", "in no mood to fit"), ("nan", "the score was nan")])
    def test_all_fail(self, mood, said):
        with pytest.raises(ValueError, match=rf"(?s)All the 6 fits failed, and all 2 candidates with them.*{said}"):
            MFSearchCV(Moody(), {"mood": [mood], "value": [1, 2]}, capital=10).fit(X, Y)

    def test_a_score_too_large_to_be_squared_is_none(self):
        with pytest.warns(FitFailedWarning, match=r"the score was -1e\+160"):
            search = MFSearchCV(Moody(), {"value": [-1e160, 0.5]}, capital=10, random_state=0).fit(X, Y)
        assert search.best_params_ == {"value": 0.5}

    def test_one_that_fails_after_a_score(self):
        scores = iter([0.5, *[np.nan] * 3])
        with pytest.raises(ValueError, match="3 of 4 fits failed, and all 1 candidates with them"):
            MFSearchCV(candidates=[Moody()], scoring=lambda *_: next(scores), fractions=(1,), capital=9).fit(X, Y)

    def test_raise(self):
        with pytest.raises(RuntimeError, match="in no mood"):
            MFSearchCV(Moody(), {"mood": ["fine", "raises"]}, capital=10, error_score="raise").fit(X, Y)

    @pytest.mark.parametrize("error_score", [0.0, np.float32(0)])
    def test_a_score_for_errors(self, error_score):
        moods = {"mood": ["raises", "fine"]}
        with pytest.warns(FitFailedWarning):
            search = MFSearchCV(Moody(), moods, capital=10, error_score=error_score, random_state=0).fit(X, Y)
        assert search.cv_results_["mean_test_score"].tolist() == [0.0, 0.5]


class TestResults:
    def test_has_what_a_grid_search_has(self):
        search = trees(cv=3).fit(X, Y)
        grid = GridSearchCV(DecisionTreeClassifier(), DEPTHS, cv=2).fit(X, Y)
        assert set(grid.cv_results_) - set(search.cv_results_) <= {"split0_test_score", "split1_test_score"}
        for name in set(grid.cv_results_) & set(search.cv_results_):
            assert type(search.cv_results_[name]) is type(grid.cv_results_[name]), name
            assert len(search.cv_results_[name]) == 4
        assert search.cv_results_["param_max_depth"].dtype == grid.cv_results_["param_max_depth"].dtype
        assert set(vars(grid)) <= {*vars(search), "pre_dispatch", "return_train_score", "_checked_cv_orig"}

    @pytest.mark.parametrize(
        "values", [[True, False], [np.float64(1), 2], [1, 2.5], [2**70, 1], [(1,), (1, 2)], ["a", 1]]
    )
    def test_columns_of_parameters_are_those_of_a_grid_search(self, values):
        searches = (MFSearchCV(Moody(), {"value": values}, capital=4), GridSearchCV(Moody(), {"value": values}, cv=2))
        mine, grids = (search.set_params(scoring=_luck).fit(X, Y).cv_results_["param_value"] for search in searches)
        assert mine.dtype == grids.dtype
        assert mine.tolist() == grids.tolist()

    def test_the_best_has_rank_one_and_those_at_the_top_come_next(self):
        results = (search := trees(capital=6).fit(X, Y)).cv_results_
        ranks, at_top = results["rank_test_score"], results["plays_at_1"] > 0
        assert ranks[search.best_index_] == 1
        assert search.best_score_ == results["mean_test_score"][search.best_index_]
        others = np.arange(4) != search.best_index_
        if (at_top & others).any() and (~at_top & others).any():
            assert ranks[at_top & others].max() < ranks[~at_top & others].min()
        assert (results["fidelity"][at_top] == "1").all()

    def test_scores_are_those_of_the_plays(self):
        search = trees().fit(X, Y)
        for arm in range(4):
            name = search.cv_results_["fidelity"][arm]
            m = search.fidelities_.labels.index(name)
            scores = [play.outcome.score for play in search.plays_ if (play.arm, play.fidelity) == (arm, m)]
            assert search.cv_results_["mean_test_score"][arm] == pytest.approx(np.mean(scores))
            assert search.cv_results_["std_test_score"][arm] == pytest.approx(np.std(scores))
            assert search.cv_results_["split0_test_score"][arm] == scores[0]
            assert search.cv_results_[f"plays_at_{name}"][arm] == len(scores)

    def test_a_split_whose_fit_failed_has_no_score(self):
        scores = iter([0.5, np.nan, 0.7])
        search = MFSearchCV(candidates=[Moody()], scoring=lambda *_: next(scores), fractions=(1,), capital=3)
        with pytest.warns(FitFailedWarning):
            results = search.fit(X, Y).cv_results_
        assert [results[f"split{i}_test_score"][0] for i in range(3)] == pytest.approx([0.5, np.nan, 0.7], nan_ok=True)


class TestReproducible:
    def test_with_one_job(self):
        forests = {"estimator": RandomForestClassifier(n_estimators=3), "fractions": (0.25, 1)}
        assert told(trees(**forests).fit(X, Y)) == told(trees(**forests).fit(X, Y))
        assert told(trees(**forests).fit(X, Y)) != told(trees(**forests | {"random_state": 1}).fit(X, Y))

    def test_with_any_number_of_jobs_in_batches(self):
        runs = [told(trees(batch=3, n_jobs=jobs).fit(X, Y)) for jobs in (1, 2)]
        with joblib.parallel_config("threading", n_jobs=3):
            runs.append(told(trees(batch=3).fit(X, Y)))
        assert runs[0] == runs[1] == runs[2]

    def test_by_default_a_batch_is_the_number_of_workers(self):
        with joblib.parallel_config("threading", n_jobs=2):
            assert told(trees().fit(X, Y)) == told(trees(batch=2).fit(X, Y))

    def test_plays_of_a_batch_are_pending_together(self):
        log = trees(batch=4).fit(X, Y).experiment_.log
        most = pending = 0
        for event in log:
            pending += {"Asked": 1, "Told": -1}.get(type(event).__name__, 0)
            most = max(most, pending)
        assert most == 4


class TestShows:
    def test_lines_where_there_is_no_terminal(self, capsys):
        trees(verbose=1).fit(X, Y)
        lines = capsys.readouterr().err.splitlines()
        best = trees().fit(X, Y).best_params_["max_depth"]
        assert lines[0].startswith("searching: 4 fits, 4 of 8 spent; best so far 0.")  # half pays for all in full
        assert lines[-1].endswith(f", max_depth={best}")
        assert 3 <= len(lines) <= 10

    def test_nothing_by_default(self, capsys):
        trees().fit(X, Y)
        assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"fractions": (0.5, 0.25, 1)}, r"fractions must be strictly increasing, got \[0\.5, 0\.25, 1\]"),
        ({"fractions": (0.5,)}, r"fractions must end at 1, all training samples, got \[0\.5\]"),
        ({"fractions": ()}, r"fractions must be at least one, got \[\]"),
        ({"fractions": (0, 1)}, "fractions must be positive and finite, got 0"),
        ({"fractions": 1}, "fractions must be a sequence of numbers, got 1"),
        ({"resource": "n_trees", "values": (1, 2)}, "resource must be a parameter of every candidate, got 'n_trees'"),
        ({"resource": "max_depth", "values": (1, 2)}, "resource must not be among the settings of a candidate"),
        ({"resource": "min_samples_leaf"}, "values must be given for the resource 'min_samples_leaf', got None"),
        ({"resource": "min_samples_leaf", "values": (2, 1)}, r"values must be strictly increasing, got \[2, 1\]"),
        ({"resource": 3, "values": (1, 2)}, "resource must be the name of a parameter or 'n_samples', got 3"),
        ({"values": (1, 2)}, r"values must come with the name of a parameter as resource, got \[1, 2\] alone"),
        ({"capital": 0.2}, r"one play of each of the 4 candidates at the lowest fidelity, 0\.25, got 0\.2"),
        ({"capital": -1}, "capital must be positive and finite, got -1"),
        ({"cost": "euros"}, "cost must be 'samples' or 'seconds', got 'euros'"),
        ({"cost": "seconds", "capital": None}, "capital must be given in seconds with cost='seconds', got None"),
        ({"scoring": ["accuracy", "f1_macro"]}, r"must be one of \['accuracy', 'f1_macro'\], got True"),
        ({"scoring": {"a": "accuracy"}, "refit": "b"}, r"must be one of \['a'\], got 'b'"),
        ({"scoring": lambda *_: {"a": 1.0, "b": 2.0}}, r"must be one of \['a', 'b'\], got True"),
        ({"scoring": lambda *_: {}}, r"scoring must give at least one number, got {}"),
        ({"scoring": lambda *_: {"a": "b"}, "refit": "a"}, "(?s)All the 8 fits failed.*following error:\nb"),
        ({"scoring": lambda *_: {"a": [1]}, "refit": "a"}, r"the metric 'a' must give one number.*got \[1\]"),
        ({"scoring": lambda *_: np.array([0.5, 1.0])}, r"scoring must give one number.*array\(\[0\.5, 1"),
        ({"scoring": lambda *_: 1j}, "scoring must give one number.*1j"),
        ({"scoring": 3}, "scoring must be a metric, a list of metrics or a dictionary of them, got 3"),
        ({"param_grid": None}, "one of param_grid and candidates must be given, got neither"),
        ({"candidates": [{}]}, "one of param_grid and candidates must be given, got both"),
        ({"param_grid": None, "candidates": []}, r"candidates must be at least one, got \[\]"),
        ({"param_grid": None, "candidates": {"max_depth": [1]}}, r"got a dictionary: pass list\(candidates"),
        (
            {"param_grid": None, "candidates": iter([GaussianNB()])},
            r"candidates must be a list of settings, estimators or \(name",
        ),
        ({"param_grid": None, "candidates": [3]}, "candidates must be settings, estimators or .* pairs, got 3"),
        ({"param_grid": None, "candidates": [GaussianNB]}, "candidates must be settings, estimators or"),
        ({"param_grid": None, "candidates": [{}], "estimator": None}, "estimator must be given for candidates that"),
        (
            {"param_grid": None, "candidates": [GaussianNB(), Ridge()]},
            "candidates must be all classifiers, all regressors or all neither, got GaussianNB, Ridge",
        ),
        ({"batch": 0}, "batch must be at least 1, got 0"),
        ({"refit": "accuracy"}, "refit must be True, False, a function or the name of a metric, got 'accuracy'"),
        ({"refit": 1}, "refit must be True or False, got 1"),
        ({"return_train_score": "yes"}, "return_train_score must be True or False, got 'yes'"),
        ({"capital": "all"}, "capital must be a number, got 'all'"),
        ({"capital": "grid", "cost": "seconds"}, "capital must be given in seconds with cost='seconds', got 'grid'"),
        ({"param_distributions": DEPTHS}, "one of param_grid, param_distributions and candidates must be given"),
        ({"param_grid": None, "param_distributions": DEPTHS, "n_iter": 0}, "n_iter must be at least 1, got 0"),
        ({"noise": 0}, "noise must be positive and finite, got 0"),
        ({"error_score": "ignore"}, "error_score must be a number or 'raise', got 'ignore'"),
        ({"biases": (0.1, 0)}, "biases must have one value for each of the 3 costs"),
        ({"policy": UCB}, "policy must be an object with choose, index and recommend"),
    ],
)
def test_bad_input(arguments, said):
    with pytest.raises(ValueError, match=said):
        trees(**arguments).fit(X, Y)


def test_a_fraction_too_small_for_all_classes_is_raised():
    x, y = load_iris(return_X_y=True)
    with pytest.warns(UserWarning, match=r"0\.01 of 120 training samples is fewer than 3.*raised to it: \[0\.025, 1"):
        search = MFSearchCV(GaussianNB(), {"var_smoothing": [1e-9, 1.0]}, fractions=(0.01, 1), capital=4).fit(x, y)
    assert search.fidelities_.costs[0] == pytest.approx(3 / 120)


@pytest.mark.parametrize(
    ("fractions", "left"), [((0.001, 0.002, 0.5, 1), (0.2, 0.1, 0.0)), ((0.001, 0.002, 1), (0.2, 0.0))]
)
def test_fractions_raised_to_the_same_one_have_the_smallest_of_their_biases(fractions, left):
    biases = (0.3, *left)
    with pytest.warns(UserWarning, match="were raised to it"):
        search = trees(fractions=fractions, policy=MFUCB(), biases=np.array(biases)).fit(X, Y)
    assert search.fidelities_.biases == left


def test_it_finds_what_a_grid_search_finds():
    grid = {"max_depth": [1, 2, 3, 4, 6, 8], "min_samples_leaf": [1, 5, 20]}
    full = GridSearchCV(DecisionTreeRegressor(random_state=0), grid, cv=5).fit(XR, YR)
    search = MFSearchCV(DecisionTreeRegressor(random_state=0), grid, random_state=0, scoring=make_scorer(r2_score))
    search.fit(XR, YR)
    loss = full.best_score_ - full.cv_results_["mean_test_score"][search.best_index_]
    assert loss < 0.05
    assert search.spent_ <= 13.5  # full fits, of the grid's 90


def test_rank_of_others_without_a_score_at_the_top():
    search = MFSearchCV(RidgeClassifier(), {"alpha": [1e-3, 1.0, 1e9]}, capital=2.5, random_state=0).fit(X, Y)
    assert sorted(search.cv_results_["rank_test_score"].tolist())[0] == 1


@pytest.mark.parametrize("seed", range(12))
def test_a_poor_candidate_does_not_win_where_most_are_equally_good(seed):
    """Of five settings one or two are hopeless, and the others tie at the top in their first looks."""
    grid = {"svc__C": [0.001, 0.1, 1, 10, 100]}
    search = MFSearchCV(make_pipeline(StandardScaler(), SVC()), grid, random_state=seed).fit(
        *load_wine(return_X_y=True)
    )
    assert search.best_params_["svc__C"] > 0.001
    low, high = search.best_interval_
    assert low <= search.best_score_ <= high
