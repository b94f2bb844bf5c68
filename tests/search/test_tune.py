"""Tuning any objective: on every executor, in memory and in stores, and after a kill."""

import os
import pickle
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mfbandit as mfb
from mfbandit.errors import InvalidArgument
from mfbandit.experiment.events import Asked, Told
from mfbandit.search.tuned import Direction
from mfbandit.search.tuner import OneRun, Task, checked_resources
from tests.support.effort import examples
from tests.support.objectives import curve, curve_or_kill, walked, walked_or_kill
from tests.support.services import served

SPACE = {"rate": (0.0, 1.0)}
EPOCHS = [1, 5, 25]
ROOT = Path(__file__).parents[2]


def quiet(objective: Any = curve, candidates: Any = SPACE, **options: Any) -> mfb.Tuned:
    given: dict[str, Any] = {"fidelities": EPOCHS, "progress": False} | (
        {"n": 12} if isinstance(candidates, dict) else {}
    )
    return mfb.tune(objective, candidates, **given | options)


def steps(found):
    return [event for event in found.experiment.log if isinstance(event, Asked | Told)]


def went_on(found):
    """How many runs went on from earlier ones."""
    return sum(found.experiment.play(event.play).resume_from is not None for event in steps(found))


class TestResult:
    def test_the_best_candidate_is_found(self):
        found = quiet(n=40, capital=15)
        regrets = sorted(abs(one["rate"] - 0.3) for one in found.candidates)
        assert abs(found.best_config["rate"] - 0.3) <= regrets[2]
        assert found.best_config is found.candidates[found.best_index]
        assert found.best_resource == 25
        assert found.spent <= 15 + 1e-9
        assert found.capital == 15

    def test_minimizing_is_maximizing_what_has_the_other_sign(self):
        most = quiet()
        least = quiet(lambda *given: -curve(*given), direction="minimize")
        assert steps(most) == steps(least)
        assert least.best_config == most.best_config
        assert least.best_score == -most.best_score
        low, high = most.best_interval
        assert least.best_interval == (-high, -low)

    def test_the_table_adds_up(self):
        found = quiet(n=30, capital=6)
        rows = found.table
        assert [row["config"] for row in rows] == list(found.candidates)
        assert sum(row["spent"] for row in rows) == pytest.approx(found.spent)
        assert sum(row["runs"] for row in rows) == found.ran.told
        for row in rows:
            scores = [row[f"score_at_{epochs}"] for epochs in EPOCHS]
            known = [score for score in scores if score is not None]
            assert row["score"] == (known[-1] if known else None)
            assert [row[f"runs_at_{epochs}"] > 0 for epochs in EPOCHS] == [score is not None for score in scores]
        assert found.frame()["param_rate"].tolist() == [one["rate"] for one in found.candidates]
        assert f"in {found.ran.told} runs" in str(found)

    def test_without_one_interval_the_text_has_none(self):
        fidelities = mfb.Fidelities([1], concentration=mfb.SubGaussian(1.0))
        found = quiet(lambda c, m, _: c + m, [1.0, 2.0], fidelities=fidelities, policy=mfb.UCB(), capital=6)
        assert found.best_interval == (-np.inf, np.inf)
        assert "95 %" not in str(found)

    def test_failures_are_listed_and_their_candidate_is_set_aside(self):
        def fails(config, _epochs, _seed):
            if config == "bad":
                raise ValueError("no such thing")
            return 1.0

        found = quiet(fails, ["good", "bad", "fine"])
        assert {failure.play.label for failure in found.failures} == {"bad"}
        assert [row["candidate"] for row in found.table if row["set_aside"]] == ["bad"]
        assert found.table[1]["score"] is None
        assert "3 failed" in str(found)

    def test_confidence_is_the_experiments(self):
        found = quiet()
        assert found.confidence == found.experiment.confidence()

    def test_real_costs_are_told(self):
        found = quiet(lambda config, epochs, seed: (curve(config, epochs, seed), 0.5), capital=6)
        assert found.spent == 0.5 * found.ran.told


class TestArguments:
    def test_seeds_decide(self):
        assert steps(quiet(seed=3)) == steps(quiet(seed=3))
        assert quiet(seed=3).candidates != quiet(seed=4).candidates

    @given(
        arms=st.integers(1, 40),
        capital=st.floats(1, 30),
        fidelities=st.sampled_from([[1], [1, 3], [2, 6, 20], {"a": 1, "b": 2.5}]),
        seed=st.integers(0, 99),
    )
    @settings(max_examples=examples(30), deadline=None)
    def test_it_is_a_loop_of_ask_and_tell(self, arms, capital, fidelities, seed):
        def objective(config, resource, seed):
            return config + 0.1 * len(str(resource)) + seed / 2**33

        candidates = np.random.default_rng(seed).normal(size=arms).tolist()
        capital *= checked_resources(fidelities)[0].costs[-1]
        found = quiet(objective, candidates, fidelities=fidelities, capital=capital, seed=seed)
        known, resources = checked_resources(fidelities)
        plain = mfb.Experiment(mfb.MFTopTwo(capital), arms=arms, fidelities=known, capital=capital)
        for play in plain.plays():
            config = candidates[found.order[play.arm]]
            plain.tell(play, objective(config, resources[play.fidelity], mfb.seeded(play, seed).seed))
        assert steps(found) == list(plain.log)
        assert sorted(found.order) == list(range(arms))

    def test_fidelities_of_its_own_give_the_index(self):
        seen = set()

        def objective(config, fidelity, _seed):
            seen.add(fidelity)
            return config

        quiet(objective, [1.0, 2.0], fidelities=mfb.Fidelities([1, 10]), capital=30)
        assert seen == {0, 1}

    def test_scores_may_be_arrays_of_one_number(self):
        assert quiet(lambda c, *_: np.array([c]), [1.0, 2.0]).best_config == 2.0

    @pytest.mark.parametrize(
        ("options", "said"),
        [
            ({"objective": 3}, "objective must be a function, got 3"),
            ({"objective": abs}, "objective must take (candidate, resource, seed), got abs(x, /)"),
            ({"candidates": "ab"}, "candidates must be a list, or a space as a dictionary, got 'ab'"),
            ({"candidates": []}, "candidates must be at least one, got []"),
            ({"candidates": [1], "n": 3}, "n must be None for a list of candidates, got 3"),
            ({"n": None}, "n must be given for a space that cannot be listed, got None: 'rate' has a range"),
            ({"fidelities": []}, "fidelities must be at least one, got []"),
            ({"fidelities": [3, 1]}, "fidelities must be strictly increasing, got [3, 1]"),
            ({"fidelities": {"a": 2, "b": 1}}, "costs of fidelities must be strictly increasing, got [2, 1]"),
            ({"capital": -1}, "capital must be positive and finite, got -1"),
            ({"capital": 5, "policy": mfb.MFTopTwo(4)}, "policy must have the capital of the search, 5, got MFTopTwo("),
            ({"direction": "up"}, "direction must be 'maximize' or 'minimize', got 'up'"),
            ({"executor": "clouds"}, "executor must be one of ('threads', 'processes') or an Executor, got 'clouds'"),
            ({"workers": 0}, "workers must be at least 1, got 0"),
            ({"store": 3}, "store must be a path, a Store or a service, got 3"),
            ({"seed": -1}, "seed must not be negative, got -1"),
        ],
    )
    def test_what_is_refused(self, options, said):
        with pytest.raises(InvalidArgument) as error:
            quiet(**options)
        assert str(error.value).startswith(said)

    def test_an_objective_that_returns_nothing(self):
        calls = []
        with pytest.raises(InvalidArgument, match=r"10 failures at first: .* got None: does it end without a return"):
            quiet(lambda *given: calls.append(given))
        assert len(calls) == 10

    def test_all_candidates_fail(self):
        with pytest.raises(mfb.NoActiveArms, match="the last failure was: ZeroDivisionError"):
            quiet(lambda *_: 1 / 0, [1, 2])

    def test_what_a_process_cannot_be_sent(self):
        with pytest.raises(InvalidArgument, match="something that can be sent to another process"):
            quiet(lambda *_: 1.0, executor="processes", workers=1)


class TestWorkers:
    @pytest.mark.parametrize(("executor", "workers"), [("threads", 3), ("processes", 2), (None, 2)])
    def test_each_run_is_made_once(self, executor, workers):
        found = quiet(executor=executor, workers=workers, capital=8)
        asked = [event.play for event in found.experiment.log if isinstance(event, Asked)]
        told = [event for event in found.experiment.log if isinstance(event, Told)]
        assert sorted(event.play for event in told) == asked
        for event in told:
            play = mfb.seeded(found.experiment.play(event.play))
            config = found.candidates[found.order[play.arm]]
            assert event.reward == curve(config, EPOCHS[play.fidelity], play.seed)

    def test_an_executor_is_left_open(self):
        with ThreadPoolExecutor(2) as pool:
            quiet(executor=pool)
            assert pool.submit(max, 1, 2).result() == 2

    def test_a_worker_is_sent_one_candidate(self):
        direction = Direction.MAXIMIZE
        task = Task(curve, tuple({"rate": k / 1000} for k in range(1000)), (1, 25), direction)
        play = mfb.SeededPlay("demo-0", 7, 1, 1.0, "a", seed=7)
        assert task.of_play(play) == OneRun(curve, {"rate": 0.007}, 25, direction)
        assert task(play) == curve({"rate": 0.007}, 25, 7)
        assert len(pickle.dumps(task.of_play(play))) < 400

    def test_threads_run_at_the_same_time(self):
        together = threading.Barrier(3, timeout=120)

        def meet(config, _epochs, _seed):
            if not met.is_set():
                together.wait()
                met.set()
            return config

        met = threading.Event()
        assert quiet(meet, [1.0, 2.0, 3.0, 4.0], workers=3).best_config == 4.0


class TestResuming:
    def test_it_ends_where_training_in_one_go_does(self):
        found = quiet(walked, resume=True, capital=6)
        fresh = {}
        for event in found.experiment.log:
            if isinstance(event, Told):
                play = found.experiment.play(event.play)
                config = found.candidates[found.order[play.arm]]
                if play.resume_from is None:
                    fresh[play.arm] = mfb.seeded(play).seed
                whole, _ = walked(config, EPOCHS[play.fidelity], fresh[play.arm], None)
                assert event.reward == pytest.approx(whole, abs=1e-12)
                assert event.cost == play.cost
        assert went_on(found)
        assert found.best_state == (found.best_resource, pytest.approx(found.best_score))

    def test_two_functions(self):
        trainer = mfb.Trainer(lambda c, state, epochs, seed: walked(c, epochs, seed, state)[1], lambda _, s: s[1])
        assert steps(quiet(trainer, resume=True)) == steps(quiet(walked, resume=True))

    def test_the_cost_may_be_told(self):
        found = quiet(lambda *given: (*walked(*given), 0.25), resume=True, capital=4)
        assert found.spent == 0.25 * found.ran.told

    def test_fidelities_may_say_so(self):
        fidelities = mfb.Fidelities([1, 5, 25], resume=True)
        found = quiet(lambda c, m, s, state: walked(c, EPOCHS[m], s, state), fidelities=fidelities, capital=100)
        assert found.experiment.fidelities == fidelities

    @pytest.mark.parametrize("executor", ["threads", "processes"])
    def test_on_workers(self, executor):
        found = quiet(walked, resume=True, executor=executor, workers=2, capital=6)
        assert went_on(found)
        assert found.failures == ()

    def test_a_killed_search_goes_on_as_if_nothing_had_happened(self, tmp_path):
        place, mark = tmp_path / "search.db", tmp_path / "killed"
        script = (
            "import mfbandit as mfb; from tests.support.objectives import walked_or_kill; import functools, sys;"
            "mfb.tune(functools.partial(walked_or_kill, sys.argv[2]), {'rate': (0.0, 1.0)}, n=12,"
            "fidelities=[1, 5, 25], store=sys.argv[1], resume=True, progress=False)"
        )
        command = [sys.executable, "-c", script, str(place), str(mark)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == -signal.SIGKILL, done.stderr
        found = quiet(walked, store=place, resume=True)
        undisturbed = quiet(walked, store=tmp_path / "other.db", resume=True)
        assert 0 < found.ran.told < undisturbed.ran.told
        assert steps(found) == steps(undisturbed)
        assert walked_or_kill(mark, {"rate": 0.5}, 25, 1, (1, 0.0)) == walked({"rate": 0.5}, 25, 1, (1, 0.0))

    @pytest.mark.parametrize(
        ("objective", "options", "said"),
        [
            (curve, {}, "objective must take (candidate, resource, seed, state), got curve(config, epochs, seed)"),
            (walked, {"resume": 1}, "resume must be True or False, got 1"),
            (curve, {"resume": False, "states": "here"}, "states must be None where runs do not resume, got 'here'"),
            (walked, {"states": 3}, "states must be in a folder, or None for memory, got 3"),
            (lambda *_: 0.5, {}, "objective must have results, got 10 failures at first: InvalidArgument: objective "
             "must return (score, state) where runs resume, got 0.5"),
            (lambda *_: (0.5, threading.Lock()), {}, "objective must have results, got 10 failures at first: state "
             "must be something that pickle can keep, or the path of a checkpoint, got a lock"),
        ],
    )  # fmt: skip
    def test_what_is_refused(self, objective, options, said):
        with pytest.raises(InvalidArgument) as error:
            quiet(objective, **{"resume": True} | options)
        assert str(error.value).startswith(said)

    def test_a_search_that_did_not_resume(self, tmp_path):
        quiet(store=tmp_path / "search.db")
        with pytest.raises(InvalidArgument, match="resume must be that of the search 'tune'"):
            quiet(walked, store=tmp_path / "search.db", resume=True)


class TestStores:
    def test_it_goes_on_with_more_capital(self, tmp_path):
        place = tmp_path / "search.db"
        first = quiet(store=place, capital=4)
        again = quiet(store=place)
        assert again.ran.told == 0
        assert again.experiment.spent == first.spent
        more = quiet(store=place, capital=9)
        assert more.ran.told > 0
        assert 4 < more.spent <= 9
        assert more.candidates == first.candidates
        with mfb.Store(place, read_only=True) as store:
            assert store.open("tune").spent == more.spent

    def test_another_search_needs_another_name(self, tmp_path):
        place = tmp_path / "search.db"
        quiet(store=place)
        with pytest.raises(InvalidArgument, match="candidates must be those of the search 'tune' that the store has"):
            quiet(store=place, seed=1)
        with pytest.raises(InvalidArgument, match="fidelities must be those of the search 'tune'"):
            quiet(store=place, fidelities=[1, 25])
        quiet(store=place, seed=1, name="other")

    def test_an_open_store(self, tmp_path):
        with mfb.Store(tmp_path / "search.db") as store:
            found = quiet(store=store)
            assert store.open("tune").spent == found.spent

    def test_a_service(self, tmp_path):
        with served(tmp_path / "search.db") as service, mfb.connect(service.url) as store:
            found = quiet(store=store, workers=2)
            assert store.open("tune").spent == found.spent
        assert steps(found)

    def test_a_killed_search_goes_on_as_if_nothing_had_happened(self, tmp_path):
        place, mark = tmp_path / "search.db", tmp_path / "killed"
        script = (
            "import mfbandit as mfb; from tests.support.objectives import curve_or_kill; import functools, sys;"
            "mfb.tune(functools.partial(curve_or_kill, sys.argv[2]), {'rate': (0.0, 1.0)}, n=12, fidelities=[1, 5, 25],"
            "store=sys.argv[1], progress=False)"
        )
        command = [sys.executable, "-c", script, str(place), str(mark)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == -signal.SIGKILL, done.stderr
        assert mark.exists()
        found, undisturbed = quiet(store=place), quiet(store=tmp_path / "other.db")
        assert 0 < found.ran.told < undisturbed.ran.told
        assert steps(found) == steps(undisturbed)
        assert found.best_config == undisturbed.best_config
        assert os.path.exists(mark)
        assert curve_or_kill(mark, {"rate": 0.5}, 25, 1) == curve({"rate": 0.5}, 25, 1)
