"""Searches that begin with the results of a study of Optuna, and that become one."""

import optuna
import pytest

import mfbandit as mfb
from mfbandit.errors import InvalidArgument
from tests.support.objectives import curve, walked

EPOCHS = [1, 5, 25]
SPACE = {"rate": (1e-3, 1.0, "log"), "depth": (1, 9), "loss": ["l1", "l2"]}


def scored(config, epochs, seed):
    return curve(config, epochs, seed) - 0.01 * (config.get("loss") == "l1")


def quiet(objective=scored, candidates=SPACE, **options):
    drawn = {"n": 12} if isinstance(candidates, dict) else {}
    return mfb.tune(objective, candidates, **{"fidelities": EPOCHS, "progress": False, **drawn, **options})


@pytest.fixture(autouse=True)
def _quiet_optuna():
    optuna.logging.set_verbosity(optuna.logging.ERROR)


def old_study(direction="maximize"):
    """Trials of an objective that reports after 1, 5 and 25 epochs, some of them pruned."""
    sign = 1 if direction == "maximize" else -1

    def objective(trial):
        config = {"rate": trial.suggest_float("rate", 1e-3, 1.0, log=True)}
        for epochs in EPOCHS:
            trial.report(sign * curve(config, epochs, 0), epochs)
            if trial.number % 3 and epochs == 5:
                raise optuna.TrialPruned
        return sign * curve(config, 25, 0)

    study = optuna.create_study(direction=direction, sampler=optuna.samplers.RandomSampler(seed=1))
    study.optimize(objective, n_trials=9)
    return study


class TestExport:
    def test_each_candidate_that_ran_is_a_trial(self):
        found = quiet(n=30, capital=6)
        study = found.study()
        ran = [row for row in found.table if row["runs"]]
        assert len(study.trials) == len(ran)
        for trial, row in zip(study.trials, ran, strict=True):
            assert trial.params == row["config"]
            assert trial.state.name == ("COMPLETE" if row["score_at_25"] is not None else "PRUNED")
            known = {epochs: row[f"score_at_{epochs}"] for epochs in EPOCHS}
            assert trial.intermediate_values == {at: score for at, score in known.items() if score is not None}
        assert any(trial.state.name == "PRUNED" for trial in study.trials)
        assert study.best_value == max(row["score_at_25"] for row in ran if row["score_at_25"] is not None)

    def test_distributions_are_those_of_the_space(self):
        found = quiet(direction="minimize")
        assert found.study().direction.name == "MINIMIZE"
        [one, *_] = found.study().trials
        assert one.distributions == {
            "rate": optuna.distributions.FloatDistribution(1e-3, 1.0, log=True),
            "depth": optuna.distributions.IntDistribution(1, 9),
            "loss": optuna.distributions.CategoricalDistribution(("l1", "l2")),
        }
        given = {"rate": optuna.distributions.FloatDistribution(0.0, 1.0, step=0.25)}
        [one, *_] = quiet(candidates=given).study().trials
        assert one.distributions == given

    def test_optuna_goes_on_with_it(self):
        study = quiet().study()
        known = len(study.trials)
        study.optimize(lambda trial: curve({"rate": trial.suggest_float("rate", 1e-3, 1.0, log=True)}, 25, 0), 3)
        assert len(study.trials) == known + 3

    def test_candidates_that_are_no_settings(self):
        study = quiet(lambda c, *_: float(c), [1.0, 2.0], capital=20).study()
        assert study.best_params == {"candidate": "2"}
        mixed = quiet(
            lambda c, *_: 1.0 if c["size"] == 3 else 0.0, [{"size": 3, "f": max}, {"size": 5, "f": min}], capital=20
        )
        assert mixed.study().best_params == {"size": 3, "f": repr(max)}

    def test_one_that_only_failed(self):
        def fails(config, *_):
            return 1 / config["x"]

        study = quiet(fails, [{"x": 0}, {"x": 1}, {"x": 2}]).study()
        assert [trial.state.name for trial in study.trials if trial.params["x"] == 0] == ["FAIL"]

    def test_resources_that_are_no_whole_numbers_are_steps_from_0(self):
        found = quiet(lambda c, *_: float(c), [1.0, 2.0], capital=9, fidelities={"draft": 0.1, "final": 1})
        assert set(found.study().best_trial.intermediate_values) <= {0, 1}


class TestPast:
    def test_results_of_a_study_count(self):
        study = old_study()
        found = quiet(candidates={"rate": (1e-3, 1.0, "log")}, n=5, past=study, capital=4)
        values = [len(trial.intermediate_values) for trial in study.trials]
        assert len(found.candidates) == 5 + 9
        assert sum(row["runs"] for row in found.table) == found.ran.told + sum(values)
        past = 3 * (1 / 25 + 1 / 5 + 1) + 6 * (1 / 25 + 1 / 5)
        assert found.capital == pytest.approx(4 + past)
        assert found.spent <= found.capital + 1e-9
        for trial in study.trials:
            row = found.table[found.candidates.index(trial.params)]
            assert row["runs_at_1"] >= 1
        assert -found.best_score < 0.02

    def test_minimizing_and_back_again(self):
        study = old_study("minimize")
        with pytest.raises(InvalidArgument, match="past must be a study whose direction is 'maximize', got minimize"):
            quiet(past=study)
        found = quiet(lambda *given: -curve(*given), candidates={"rate": (1e-3, 1.0)}, past=study, direction="minimize")
        again = quiet(lambda *given: -curve(*given), [{"rate": 0.5}], past=found.study(), direction="minimize")
        assert {row["candidate"] for row in found.table if row["runs"]} <= {row["candidate"] for row in again.table}

    def test_a_list_of_results(self):
        past = [({"rate": 0.3}, 25, 1.0), ({"rate": 0.7}, 1, -2.0)]
        found = quiet(candidates=[{"rate": 0.7}, {"rate": 0.2}], past=past, capital=2)
        assert found.candidates == ({"rate": 0.7}, {"rate": 0.2}, {"rate": 0.3})
        assert found.best_config == {"rate": 0.3}

    def test_a_store_has_them_once(self, tmp_path):
        study, place = old_study(), tmp_path / "search.db"
        first = quiet(candidates={"rate": (1e-3, 1.0)}, past=study, store=place, capital=3)
        more = quiet(candidates={"rate": (1e-3, 1.0)}, past=study, store=place, capital=5)
        assert more.capital == pytest.approx(first.capital + 2)
        assert sum(row["runs"] for row in more.table) == sum(row["runs"] for row in first.table) + more.ran.told

    @pytest.mark.parametrize(
        ("past", "said"),
        [
            (3, "past must be a study of Optuna, or a list of (candidate, resource, score), got 3"),
            ([3], "past must be a list of (candidate, resource, score), got 3 in it"),
            ([({"rate": 1}, 2, 0.5)], "past must have resources among [1, 5, 25], got 2"),
            ([({"rate": 1}, 5, "good")], "score must be a number, got 'good'"),
        ],
    )
    def test_what_is_refused(self, past, said):
        with pytest.raises(InvalidArgument) as error:
            quiet(past=past)
        assert str(error.value).startswith(said)

    def test_runs_that_resume_need_states(self):
        with pytest.raises(InvalidArgument, match="past must be None where runs resume, as it has no states"):
            quiet(walked, candidates={"rate": (0.0, 1.0)}, resume=True, past=[({"rate": 1}, 5, 0.5)])
