"""A search that trains candidates further, and one that goes on where it was ended."""

import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.cluster import MiniBatchKMeans
from sklearn.datasets import make_classification
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.exceptions import FitFailedWarning
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mfbandit import MFSearchCV
from mfbandit.errors import InvalidArgument
from mfbandit.search.estimator_training import Resuming, train
from mfbandit.search.failures import SearchInterrupted
from mfbandit.search.kept_fits import Checkpoint, FitsInMemory
from mfbandit.search.rungs import Rungs

X, Y = make_classification(240, 6, n_informative=4, random_state=0)
RATES = {"learning_rate": [0.03, 0.1, 0.3], "max_depth": [1, 2]}


def boosting(**arguments):
    default: dict[str, Any] = {"resource": "n_estimators", "values": (2, 8, 32), "random_state": 0, "capital": 5}
    return MFSearchCV(GradientBoostingClassifier(), RATES, **default | arguments)


def told(search):
    return [(one.arm, one.fidelity, one.split, one.cost, one.outcome.score) for one in search.plays_]


def found(search):
    return told(search), search.best_params_, search.best_score_, search.spent_, search.best_interval_


class TestTrainingFurther:
    @pytest.mark.parametrize(
        ("model", "resource", "values"),
        [
            (GradientBoostingClassifier(random_state=1), "n_estimators", (5, 20)),
            (GradientBoostingClassifier(random_state=1, subsample=0.5), "n_estimators", (5, 20)),
            (RandomForestClassifier(random_state=1), "n_estimators", (5, 20)),
            (ExtraTreesClassifier(random_state=1), "n_estimators", (5, 20)),
            (HistGradientBoostingClassifier(random_state=1), "max_iter", (5, 20)),
            (SGDClassifier(random_state=1, shuffle=False), "epochs", (1, 8)),
            (make_pipeline(StandardScaler(), GradientBoostingClassifier(random_state=1)),
             "gradientboostingclassifier__n_estimators", (5, 20)),
        ],
        ids=str,
    )  # fmt: skip
    def test_ends_where_training_in_one_go_does(self, model, resource, values):
        arguments = {"resource": resource, "random_state": 0, "refit": False, "fractions": None}
        twice = [("one", model), ("two", model)]
        search = MFSearchCV(candidates=twice, values=values, resume=True, capital=2.5, **arguments).fit(X, Y)
        high = next(one for one in search.plays_ if one.resumed_from == 0)
        assert (high.fidelity, high.split) == (1, 0)
        assert high.cost == pytest.approx(1 - values[0] / values[1])
        whole = MFSearchCV(candidates=[model], values=values[1:], capital=1, **arguments).fit(X, Y)
        assert high.outcome.score == pytest.approx(whole.plays_[0].outcome.score, abs=1e-12)

    def test_iterations_of_a_solver_are_added(self):
        rungs = Rungs("max_iter", (10, 40))
        solver, trees = LogisticRegression(max_iter=10), HistGradientBoostingClassifier(max_iter=10)
        for model in (solver, trees):
            Resuming(rungs).go_on(model, 0, 1)
        assert (solver.max_iter, trees.max_iter) == (30, 40)

    def test_more_plays_for_the_same_capital(self):
        plain, resumed = boosting().fit(X, Y), boosting(resume=True).fit(X, Y)
        gone_on = [one for one in resumed.plays_ if one.resumed_from is not None]
        costs = np.array([2, 8, 32]) / 32
        assert gone_on
        assert all(one.cost == pytest.approx(costs[one.fidelity] - costs[one.resumed_from]) for one in gone_on)
        at_top = [sum(one.fidelity == 2 for one in search.plays_) for search in (plain, resumed)]
        assert at_top[1] >= at_top[0]
        assert resumed.spent_ <= 5

    def test_every_training_is_on_one_split(self):
        search = boosting(resume=True, capital=12).fit(X, Y)
        waiting = set()
        for one in search.plays_:
            if one.resumed_from is not None:
                assert (one.arm, one.resumed_from, one.split) in waiting
            waiting.add((one.arm, one.fidelity, one.split))
        assert len(waiting) == len(search.plays_)  # none was made twice

    @pytest.mark.parametrize("n_jobs", [1, 2])
    def test_workers_and_seconds(self, n_jobs):
        search = boosting(resume=True, n_jobs=n_jobs, batch=3).fit(X, Y)
        assert told(search) == told(boosting(resume=True, batch=3).fit(X, Y))
        timed = boosting(resume=True, cost="seconds", capital=4.0, n_jobs=n_jobs).fit(X, Y)
        assert any(one.resumed_from is not None for one in timed.plays_)

    def test_a_fit_that_fails_is_made_again_from_the_same_state(self):
        search = MFSearchCV(
            candidates=[Stumbling(), Stumbling(at=3)],
            resource="n_estimators",
            values=(1, 3),
            resume=True,
            capital=3,
            random_state=0,
        )
        with pytest.warns(FitFailedWarning, match=r"Stumbling \(2\)' failed at 3"):
            search.fit(X, Y)
        again = [one for one in search.plays_ if one.arm == 1 and one.fidelity == 1]
        assert {one.resumed_from for one in again} == {0}
        assert {one.split for one in again} == {0}
        assert search.best_params_["estimator"].at is None

    def test_what_was_trained_of_candidates_that_are_out_is_dropped(self, monkeypatch):
        kept = FitsInMemory()
        monkeypatch.setattr("mfbandit.search.fit_runner.FitsInMemory", lambda: kept)
        twins = [GradientBoostingClassifier(random_state=0), GradientBoostingClassifier(random_state=0)]
        options: dict[str, Any] = {"resource": "n_estimators", "values": (1, 3), "resume": True, "random_state": 0}
        search = MFSearchCV(candidates=twins, cv=KFold(2), capital=4, **options).fit(X, Y)
        waiting = {(one.arm, one.split) for one in search.plays_ if one.fidelity == 0}
        waiting -= {(one.arm, one.split) for one in search.plays_ if one.fidelity == 1}
        assert search.experiment_.retired
        assert kept.count <= len([arm for arm, _ in waiting if arm not in search.experiment_.retired])

    def test_epochs_without_resuming_are_passes(self):
        model, whole = SGDClassifier(random_state=0, shuffle=False), SGDClassifier(random_state=0, shuffle=False)
        train(model, X, Y, {}, passes=3, targets=Y)
        for _ in range(3):
            whole.partial_fit(X, Y, classes=[0, 1])
        assert (model.coef_ == whole.coef_).all()
        search = MFSearchCV(model, {"alpha": [1e-3, 1e-1]}, resource="epochs", values=(1, 3), random_state=0).fit(X, Y)
        assert search.best_estimator_.t_ == 1 + 3 * len(Y)
        assert search.cv_results_["params"] == [{"alpha": 1e-3}, {"alpha": 1e-1}]

    def test_without_targets(self):
        search = MFSearchCV(
            MiniBatchKMeans(n_init=1), {"n_clusters": [2, 4]}, resource="epochs", values=(1, 4), resume=True, capital=2,
            random_state=0,
        ).fit(X)  # fmt: skip
        assert search.best_params_["n_clusters"] in (2, 4)

    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            ({"resource": None, "values": None}, "resume=True needs resource='n_estimators', or another that"),
            ({"resource": "trees", "values": (2, 4)}, "resource must be a parameter of every candidate, got 'trees'"),
            ({"resource": "epochs"}, "resource 'epochs' needs partial_fit, which learning_rate=0.03.* does not have"),
            ({"resource": "max_iter", "estimator": MiniBatchKMeans(), "param_grid": {"n_clusters": [2]}},
             "resume=True needs the parameter 'warm_start', which n_clusters=2 does not have"),
            ({"resource": "epochs", "values": (0.5, 2), "estimator": SGDClassifier(), "param_grid": {"alpha": [1]}},
             "values must be a whole number, got 0.5"),
            ({"resume": "yes"}, "resume must be True or False, got 'yes'"),
        ],
    )  # fmt: skip
    def test_bad_input(self, arguments, said):
        search = boosting(resume=True).set_params(**arguments)
        with pytest.raises(InvalidArgument, match=said):
            search.fit(X, Y)
        assert not hasattr(search, "cv_results_")

    def test_states_that_cannot_be_kept(self):
        model = Stumbling(secret=True)
        search = MFSearchCV(candidates=[model], resource="n_estimators", values=(1, 3), resume=True, capital=1)
        with pytest.raises(InvalidArgument, match="resume=True needs estimators that can be pickled, got Stumbling: "):
            search.fit(X, Y)


class Stumbling(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Fails when it is trained to some number of trees, if that is asked for."""

    def __init__(self, n_estimators=1, at=None, secret=False, warm_start=False):
        self.n_estimators, self.at, self.secret, self.warm_start = n_estimators, at, secret, warm_start

    def fit(self, _, y):
        if self.n_estimators == self.at:
            raise ValueError("stumbled")
        self.classes_, self.state_ = np.unique(y), (lambda: 0) if self.secret else 0
        return self

    def predict(self, x):
        return np.full(len(x), self.classes_[int(self.n_estimators > 1)])


class TestCheckpoint:
    @pytest.mark.parametrize("resume", [False, True])
    @pytest.mark.parametrize("seed", [0, None])
    def test_the_same_search_again_fits_nothing(self, tmp_path, resume, seed):
        path = tmp_path / "search.db"
        arguments = {"checkpoint": path, "resume": resume, "random_state": seed}
        first = boosting(**arguments).fit(X, Y)
        if seed is not None:
            assert found(first) == found(boosting(resume=resume).fit(X, Y))
        before = path.read_bytes()
        again = boosting(**arguments).fit(X, Y)
        assert found(again) == found(first)
        assert [one.outcome for one in again.plays_] == [one.outcome for one in first.plays_]  # times too
        assert path.read_bytes() == before
        assert path.stat().st_mode & 0o777 == 0o600

    @pytest.mark.parametrize("resume", [False, True])
    def test_more_capital_and_candidates_take_what_is_there(self, tmp_path, resume):
        arguments = {"checkpoint": tmp_path / "search.db", "resume": resume}
        boosting(**arguments).fit(X, Y)
        kept = results_in(arguments["checkpoint"])
        more = boosting(**arguments, capital=9).set_params(param_grid={**RATES, "subsample": [1.0]}).fit(X, Y)
        assert told(more) == told(boosting(capital=9, resume=resume).set_params(param_grid=more.param_grid).fit(X, Y))
        assert kept < results_in(arguments["checkpoint"]) < kept + len(more.plays_)

    def test_other_data_metrics_and_settings_are_other_fits(self, tmp_path):
        arguments = {"checkpoint": tmp_path / "search.db", "capital": 2}
        seen = 0
        for search, x in (
            (boosting(**arguments), X),
            (boosting(**arguments), X + 1e-9),
            (boosting(**arguments, scoring="roc_auc"), X),
            (boosting(**arguments, cv=KFold(3)), X),
            (boosting(**arguments, random_state=1), X),
            (boosting(**arguments, values=(3, 9)), X),
        ):
            plays = len(search.fit(x, Y).plays_)
            assert results_in(arguments["checkpoint"]) == seen + plays
            seen += plays

    def test_failures_are_kept_too(self, tmp_path):
        candidates = [Stumbling(), Stumbling(at=1)]
        first, second = (
            MFSearchCV(candidates=candidates, capital=4, random_state=0, checkpoint=tmp_path / "search.db")
            for _ in range(2)
        )
        for search in (first, second):
            with pytest.warns(FitFailedWarning, match="stumbled"):
                search.fit(X, Y)
        reasons = [[one.outcome.reason for one in search.plays_] for search in (first, second)]
        assert reasons[0] == reasons[1]
        assert results_in(tmp_path / "search.db") == len(reasons[0])

    @pytest.mark.slow
    @pytest.mark.parametrize("resume", [False, True])
    def test_killed_in_the_middle_it_goes_on_to_the_same_result(self, tmp_path, resume):
        """SIGKILL again and again, until it ends by itself."""
        script, path, kills = SCRIPT.format(resume=resume), tmp_path / "search.db", 0
        while True:
            process = subprocess.Popen([sys.executable, "-c", script, str(path)], stdout=subprocess.PIPE, text=True)
            before, deadline = results_in(path), time.monotonic() + 60
            while process.poll() is None and results_in(path) < before + 4 and time.monotonic() < deadline:
                time.sleep(0.005)
            if process.poll() is None:
                process.kill()
                kills += 1
            output, _ = process.communicate()
            if process.returncode == 0:
                break
        undisturbed = subprocess.run(
            [sys.executable, "-c", script, str(tmp_path / "other.db")], capture_output=True, text=True, check=True
        )
        assert output == undisturbed.stdout
        assert kills >= 2

    @pytest.mark.parametrize(
        ("given", "said"),
        [
            (7, "checkpoint must be the path of a file, got 7"),
            ("", "checkpoint must be the path of a file, got ''"),
            ("folder", "checkpoint must be a file that can be written"),
            ("missing/search.db", "checkpoint must be a file that can be written.*No such file"),
            ("text", "checkpoint must be a file that can be written.*not a database"),
            ("other.db", "checkpoint must be a file of a search, got another database"),
        ],
    )
    def test_bad_input(self, tmp_path, monkeypatch, given, said):
        monkeypatch.chdir(tmp_path)
        Path("folder").mkdir()
        Path("text").write_text("no database " * 100)
        with sqlite3.connect("other.db") as other:
            other.execute("CREATE TABLE mine (x)")
        search = boosting(checkpoint=given)
        with pytest.raises(InvalidArgument, match=said):
            search.fit(X, Y)
        assert Path("text").read_text().startswith("no database")

    def test_what_cannot_be_told_again_is_refused(self, tmp_path):
        search = boosting(checkpoint=tmp_path / "search.db", scoring=lambda model, x, y: model.score(x, y))
        with pytest.raises(InvalidArgument, match="checkpoint needs what the search is made of to be picklable"):
            search.fit(X, Y)


SCRIPT = textwrap.dedent("""
    import sys
    from sklearn.datasets import make_classification
    from sklearn.ensemble import GradientBoostingClassifier
    from mfbandit import MFSearchCV
    x, y = make_classification(240, 6, n_informative=4, random_state=0)
    grid = {{"learning_rate": [0.03, 0.1, 0.3], "max_depth": [1, 2]}}
    search = MFSearchCV(GradientBoostingClassifier(), grid, resource="n_estimators", values=(4, 16, 64), capital=8,
                        resume={resume}, checkpoint=sys.argv[1], random_state=0).fit(x, y)
    print(search.best_params_, search.best_score_, search.spent_)
    print([(one.arm, one.fidelity, one.split, one.outcome.score) for one in search.plays_])
""")


def results_in(path):
    """How many fits a checkpoint has; 0 if it is not there yet."""
    if not path.exists():
        return 0
    with sqlite3.connect(path, timeout=30) as database:
        try:
            [[count]] = database.execute("SELECT count(*) FROM fits")
        except sqlite3.OperationalError:  # being made
            return 0
    database.close()
    return count


class Slow(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Sends the process a Ctrl-C in its n-th fit."""

    fits = 0
    interrupt_at = None

    def __init__(self, value=0):
        self.value = value

    def fit(self, _, y):
        type(self).fits += 1
        if type(self).fits == self.interrupt_at:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(1)
        self.classes_ = np.unique(y)
        return self

    def predict(self, x):
        return np.full(len(x), self.classes_[self.value % 2])


@pytest.mark.skipif(threading.current_thread() is not threading.main_thread(), reason="Ctrl-C is for the main thread")
class TestInterrupt:
    @pytest.fixture
    def slow(self, monkeypatch):
        monkeypatch.setattr(Slow, "fits", 0)
        return MFSearchCV(Slow(), {"value": [0, 1, 2]}, capital=8, fractions=(0.25, 1), random_state=0)

    def test_what_was_scored_is_kept_and_the_best_is_fitted(self, slow, monkeypatch):
        monkeypatch.setattr(Slow, "interrupt_at", 6)
        before = signal.getsignal(signal.SIGINT)
        with pytest.warns(SearchInterrupted, match="was interrupted with .* of 8 spent: the best .* that of 5 fits"):
            slow.fit(X, Y)
        assert slow.interrupted_
        assert not slow.stopped_early_
        assert len(slow.plays_) == 5
        assert slow.predict(X).shape == Y.shape
        assert signal.getsignal(signal.SIGINT) is before

    def test_half_a_round_counts(self, slow, monkeypatch):
        monkeypatch.setattr(Slow, "interrupt_at", 3)
        with pytest.warns(SearchInterrupted):
            slow.set_params(batch=6).fit(X, Y)
        assert len(slow.plays_) == 2

    def test_before_any_score_it_is_raised(self, slow, monkeypatch):
        monkeypatch.setattr(Slow, "interrupt_at", 1)
        with pytest.raises(KeyboardInterrupt):
            slow.fit(X, Y)
        assert not hasattr(slow, "cv_results_")

    def test_a_checkpoint_goes_on_after_it(self, slow, monkeypatch, tmp_path):
        slow.set_params(checkpoint=tmp_path / "search.db")
        monkeypatch.setattr(Slow, "interrupt_at", 6)
        with pytest.warns(SearchInterrupted):
            slow.fit(X, Y)
        first = told(slow)
        monkeypatch.setattr(Slow, "interrupt_at", None)
        slow.fit(X, Y)
        assert not slow.interrupted_
        assert told(slow)[: len(first)] == first


def test_the_seed_is_kept(tmp_path):
    with Checkpoint(tmp_path / "a.db") as one:
        seed = one.seed
    with Checkpoint(tmp_path / "a.db") as again, Checkpoint(tmp_path / "b.db") as other:
        assert again.seed == seed
        assert other.seed != seed
