"""What a search says of itself: a table, a picture, how sure it is, and what MLflow is told."""

import io
import warnings

import matplotlib.pyplot as plt
import mlflow
import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.exceptions import FitFailedWarning, NotFittedError
from sklearn.tree import DecisionTreeClassifier

import mfbandit as mfb
from mfbandit import MFSearchCV
from mfbandit.errors import InvalidArgument
from mfbandit.plotting import plot_spending
from mfbandit.search.live_lines import leaders_table

X, Y = make_classification(300, 8, n_informative=5, random_state=0)
GRID = {"max_depth": [1, 2, 4, 8], "min_samples_leaf": [1, 5, 20]}


def trees(**arguments):
    default = {"estimator": DecisionTreeClassifier(), "param_grid": GRID, "random_state": 0, "fractions": (0.25, 1)}
    return MFSearchCV(**default | arguments)


@pytest.fixture(scope="module")
def search():
    return trees().fit(X, Y)


class TestReport:
    def test_nothing_mixes_fidelities(self, search):
        table = search.report_
        assert table.index[0] == search.best_index_
        assert table["rank"].is_monotonic_increasing
        assert table.loc[search.best_index_, "state"] == "best"
        for k, row in table.iterrows():
            assert (row["param_max_depth"], row["param_min_samples_leaf"]) == tuple(
                search.cv_results_["params"][k].values()
            )
            scores = {
                m: [one.outcome.score for one in search.plays_ if (one.arm, one.fidelity) == (k, m)] for m in (0, 1)
            }
            assert row["plays_at_0.25"] == len(scores[0])
            assert row["plays_at_1"] == len(scores[1])
            top = np.mean(scores[1]) if scores[1] else np.nan
            assert row["mean_test_score"] == pytest.approx(top, nan_ok=True)
            assert row["score_at_1"] == pytest.approx(top, nan_ok=True)
        assert table["mean_test_score"].isna().any()  # else this shows nothing
        assert table["cost"].sum() == pytest.approx(search.spent_)

    def test_states(self):
        twins = [(name, DecisionTreeClassifier(max_depth=3, random_state=0)) for name in ("a", "b")]
        wrong = ("wrong", DecisionTreeClassifier(max_depth=-1))
        search = MFSearchCV(candidates=[*twins, wrong], random_state=0, capital=30, fractions=(0.25, 1))
        with pytest.warns(FitFailedWarning, match="wrong"):
            search.fit(X, Y)
        states = search.report_.set_index("candidate")["state"].to_dict()
        assert states == {"a": "best", "b": "same as a", "wrong": "failed"}

    def test_of_several_metrics_the_one_that_decides(self):
        search = trees(scoring=["accuracy", "roc_auc"], refit="roc_auc").fit(X, Y)
        assert "mean_test_roc_auc" in search.report_
        assert "mean_test_accuracy" not in search.report_
        assert plot_spending(search).get_xlabel() == "capital spent  (full fits)"
        plt.close("all")

    def test_before_it_was_fitted(self):
        with pytest.raises(NotFittedError):
            trees().report_  # noqa: B018 - it raises
        with pytest.raises(InvalidArgument, match="results must be a search that was fitted, or its cv_results_, got"):
            plot_spending(trees())


class TestPicture:
    def test_a_notebook_shows_it_below_the_diagram(self, search):
        for shown in (search._repr_html_(), search._repr_mimebundle_()["text/html"]):
            assert shown.index("MFSearchCV") < shown.index("<svg")
            assert "max_depth=" in shown
        assert "<svg" not in trees()._repr_html_()

    def test_names_are_not_markup(self):
        search = MFSearchCV(
            candidates=[("<b>", DecisionTreeClassifier()), ("x" * 80, DecisionTreeClassifier(max_depth=1))],
            random_state=0,
        ).fit(X, Y)
        assert "<b>" not in search._picture()
        assert "&lt;b&gt;" in search._picture()

    def test_plot_is_that_of_the_results(self, search):
        one, other = plot_spending(search), plot_spending(search.cv_results_)
        assert [text.get_text() for text in one.get_yticklabels()] == [t.get_text() for t in other.get_yticklabels()]
        plt.close("all")

    def test_seconds_are_the_unit(self):
        search = trees(cost="seconds", capital=0.3, param_grid={"max_depth": [1, 2]}).fit(X, Y)
        assert plot_spending(search).get_xlabel() == "capital spent  (seconds)"
        assert "spent (seconds) at" in search._picture()
        plt.close("all")


class TestConfidence:
    def test_an_estimate_of_the_model(self, search):
        sure = search.confidence_
        assert sure.best == search.best_index_
        assert sure.kind in ("estimate", "withheld")
        more = trees(capital="grid").fit(X, Y).confidence_
        assert more.kind == "estimate"
        assert more.label.startswith("max_depth=")
        assert 0 < more.level <= 0.95
        assert "Scores on different splits are independent." in more.assumes
        assert all(0 <= rival < 12 and rival != more.best for rival in more.rivals)

    def test_with_noise_that_is_given_it_is_valid(self):
        found = trees(noise=0.05, policy=mfb.MFSure(0.1, tolerance=0.2), biases=(0.1, 0), capital=200).fit(X, Y)
        assert found.stopped_early_
        assert found.confidence_.kind == "valid"
        assert found.confidence_.could_lose < 0.25  # 0.2 at 90 %, a little more at 95 %
        assert found.confidence_.best == found.best_index_

    @pytest.mark.parametrize("policy", [mfb.MFAuto(), mfb.MFBayes(), mfb.UCB()])
    def test_whatever_the_policy(self, policy):
        found = trees(policy=policy, capital=20).fit(X, Y).confidence_
        assert found.kind in ("estimate", "withheld")

    def test_without_noise_the_experiment_claims_nothing_valid(self, search):
        assert search.experiment_.confidence().kind != "valid"

    def test_wrong_certainty_is_rare(self):
        """Labels that no feature tells: an estimate of 95 % that the best is best would be a lie."""
        rng, sure = np.random.default_rng(0), 0
        for seed in range(20):
            x, y = rng.normal(size=(60, 4)), rng.integers(0, 2, 60)
            found = trees(param_grid={"max_depth": [1, 2, 3, 4, 5]}, random_state=seed, capital="grid").fit(x, y)
            sure += found.confidence_.kind == "estimate" and found.confidence_.level >= 0.95
        assert sure <= 2


def test_the_live_table_has_the_leaders(monkeypatch):
    tables = []
    monkeypatch.setattr("mfbandit.search.live_lines.SECONDS_BETWEEN_TABLES", 0.0)

    def kept(scheduler):
        tables.append(leaders_table(scheduler))
        return tables[-1]

    monkeypatch.setattr("mfbandit.search.live_lines.leaders_table", kept)

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr("sys.stderr", Terminal())
    search = trees(verbose=1).fit(X, Y)
    head, *rows = tables[-1].splitlines()
    assert head.split() == ["candidate", "estimate", "at", "0.25", "at", "1", "fits"]
    assert len(rows) == 5
    assert any(search.cv_results_["candidate"][search.best_index_] in row for row in rows)


class TestMLflow:
    @pytest.fixture
    def runs(self, tmp_path, monkeypatch):
        monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
        before = mlflow.get_tracking_uri()
        mlflow.set_tracking_uri((tmp_path / "runs").as_uri())
        mlflow.set_experiment("searches")

        def found():
            client = mlflow.MlflowClient()
            [known] = [one for one in client.search_experiments() if one.name == "searches"]
            return client, client.search_runs([known.experiment_id])

        yield found
        mlflow.sklearn.autolog(disable=True, silent=True)
        mlflow.set_tracking_uri(before)

    @pytest.mark.filterwarnings("ignore")
    def test_a_run_with_child_runs(self, runs):
        mlflow.sklearn.autolog(max_tuning_runs=3, silent=True)
        search = trees().fit(X, Y)
        client, logged = runs()
        [parent] = [one for one in logged if "mlflow.parentRunId" not in one.data.tags]
        children = [one for one in logged if one.data.tags.get("mlflow.parentRunId") == parent.info.run_id]
        assert len(logged) == 4  # and none for the fits inside
        assert len(children) == 3
        assert parent.data.tags["estimator_name"] == "MFSearchCV"
        assert parent.data.params["random_state"] == "0"
        assert parent.data.params["best_max_depth"] == str(search.best_params_["max_depth"])
        assert parent.data.metrics["best_cv_score"] == search.best_score_
        assert parent.data.metrics["spent"] == search.spent_
        assert "cv_results.csv" in [one.path for one in client.list_artifacts(parent.info.run_id)]
        best = min(children, key=lambda run: run.data.metrics["rank"])
        assert best.data.params == {name: str(value) for name, value in search.best_params_.items()}
        assert best.data.metrics["mean_test_score"] == search.best_score_
        [model] = mlflow.search_logged_models(output_format="list")
        loaded = mlflow.sklearn.load_model(model.model_uri)
        assert (loaded.predict(X) == search.predict(X)).all()

    @pytest.mark.filterwarnings("ignore")
    def test_an_active_run_is_used(self, runs):
        mlflow.sklearn.autolog(log_models=False, max_tuning_runs=0, silent=True)
        with mlflow.start_run() as mine:
            trees(param_grid={"max_depth": [1, 2]}).fit(X, Y)
        assert [one.info.run_id for one in runs()[1]] == [mine.info.run_id]

    def test_without_autologging_nothing_is_logged(self, runs):
        trees(param_grid={"max_depth": [1, 2]}).fit(X, Y)
        assert runs()[1] == []

    def test_a_log_that_cannot_be_written_is_a_warning(self, runs, monkeypatch):
        assert runs()[1] == []
        mlflow.sklearn.autolog(silent=True)
        monkeypatch.setattr(mlflow, "start_run", lambda: 1 / 0)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            search = trees(param_grid={"max_depth": [1, 2]}).fit(X, Y)
        assert any("MLflow was not told of the search: division by zero" in str(one.message) for one in said)
        assert search.predict(X).shape == Y.shape
