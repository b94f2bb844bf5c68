"""A real Dask cluster on this machine, whose workers are killed in the middle."""

import functools
import logging
import os
import signal
import threading
import time
from contextlib import contextmanager
from typing import Any

import dask
import numpy as np
import pytest
from distributed import Client, LocalCluster
from joblib import parallel_config

from mfbandit import MFUCB, Experiment, Fidelities, SubGaussian, paper_problem, run, seeded, simulate, tune
from mfbandit.experiment.events import Asked, Told
from tests.support import objectives
from tests.support.effort import effort
from tests.support.objectives import play_number

pytestmark = pytest.mark.slow
FID = Fidelities(costs=[1, 10], biases=[0.1, 0], concentration=SubGaussian(0.1))


@contextmanager
def cluster(workers, threads=1, **config):
    quick = {
        "distributed.comm.timeouts.connect": "10s",
        "distributed.worker.daemon": True,
        "distributed.deploy.lost-worker-timeout": "300s",  # else a worker that starts again may be dropped for good
    }
    with (
        dask.config.set(quick | config),
        LocalCluster(
            n_workers=workers,
            threads_per_worker=threads,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
            silence_logs=50,
        ) as local,
        Client(local) as client,
    ):
        yield local, client


def kill_one(choose, then=lambda: None):
    """A thread that kills the worker with the process id that ``choose`` gives; ``join`` tells it, too."""
    killed = []

    def work():
        killed.append(choose())
        os.kill(killed[0], signal.SIGKILL)
        then()

    thread = threading.Thread(target=work)
    thread.start()

    def join():
        thread.join()
        return killed[0]

    return join


def begun(folder, number):
    """The process id of the worker that has begun a play, by its number."""
    end = time.monotonic() + 120
    while time.monotonic() < end:
        for play, worker, _ in (name.split(".") for name in os.listdir(folder)):
            if int(play.rpartition("-")[2]) == number:
                return int(worker)
        time.sleep(0.002)
    raise AssertionError(f"play {number} was not begun")


def in_a_moment(local):
    """The process id of a worker, half a second later."""
    time.sleep(0.5)
    return next(iter(local.workers.values())).pid


def test_a_worker_killed_while_plays_are_under_way(tmp_path):
    exp, marks, go = Experiment(MFUCB(), arms=10, fidelities=FID, capital=120.0), tmp_path / "marks", tmp_path / "go"
    marks.mkdir()
    with cluster(3) as (_, client):
        killed = kill_one(lambda: begun(marks, 25), then=go.touch)
        objective = objectives.Waiting(marks, 0.02, 25, go)
        ran = run(exp, objective, client.get_executor(), seed=5, progress=False)
        pid = killed()
    asked = [event for event in exp.log if isinstance(event, Asked)]
    told = [event for event in exp.log if isinstance(event, Told)]
    assert sorted(event.play for event in told) == [event.play for event in asked]  # each once
    assert ran.told == len(told) == 120
    assert ran.failures == ()
    for event in told:  # the same rewards as without a kill
        play = exp.play(event.play)
        assert event.reward == objectives.noisy(seeded(play, 5))
    calls = [name.split(".") for name in os.listdir(marks)]
    assert any(int(worker) == pid for _, worker, _ in calls)  # it had worked
    assert len(calls) > 120  # and what it had not finished was made again


@pytest.mark.parametrize(("workers", "threads"), [(3, 1), (1, 3)])  # in the latter each death is a death of all
def test_an_objective_that_kills_its_worker(caplog, workers, threads):
    exp = Experiment(MFUCB(), arms=["dies", "fine", "good"], fidelities=FID, capital=30.0)
    with cluster(workers, threads, **{"distributed.scheduler.allowed-failures": 1}) as (_, client):
        ran = run(exp, objectives.misbehaving, client.get_executor(), progress=False)
    assert exp.set_aside == (0,)
    assert exp.spent == 30
    assert [failure.play.label for failure in ran.failures] == ["dies"] * 3
    assert "KilledWorker" in caplog.text


def test_one_bad_play_does_not_cost_the_best_arm_its_place():
    """Two plays of the best arm kill the worker that four of its plays share; it has results in between."""
    exp = Experiment(MFUCB(), arms=["poor", "best"], fidelities=FID, capital=60.0)
    with cluster(1, 4, **{"distributed.scheduler.allowed-failures": 0}) as (_, client):
        ran = run(exp, objectives.dying_now_and_then, client.get_executor(), progress=False)
    assert [play_number(failure.play) for failure in ran.failures] == [15, 40]
    assert exp.set_aside == ()
    assert exp.arms[exp.best()] == "best"
    assert exp.spent == 60


def test_an_interrupt_while_a_play_is_put_on_trial():
    exp = Experiment(MFUCB(), arms=["dies", "fine"], fidelities=FID, capital=30.0)

    class Presses(logging.Handler):
        def emit(self, record):
            if "made again" in record.getMessage():
                signal.raise_signal(signal.SIGINT)

    handler = Presses()
    logging.getLogger("mfbandit").addHandler(handler)
    try:
        with (
            cluster(1, 1, **{"distributed.scheduler.allowed-failures": 0}) as (_, client),
            pytest.raises(KeyboardInterrupt),
        ):
            run(exp, objectives.misbehaving, client.get_executor(), progress=False)
    finally:
        logging.getLogger("mfbandit").removeHandler(handler)
    assert exp.pending == ()
    assert exp.reserved == 0
    assert exp.set_aside == ()


def test_a_play_that_begins_anew_has_its_whole_time_again(tmp_path, monkeypatch):
    monkeypatch.setattr("mfbandit.execution.play_runner.OVERDUE_GRACE_SECONDS", 0.0)
    exp = Experiment(MFUCB(), arms=1, fidelities=FID, capital=1.0)

    def once_it_is_half_done():
        while not (marks := os.listdir(tmp_path)):
            time.sleep(0.01)
        time.sleep(2.5)
        return int(marks[0].split(".")[1])

    with cluster(2) as (_, client):
        killed = kill_one(once_it_is_half_done)
        ran = run(exp, objectives.Marking(tmp_path, 4.0), client.get_executor(), timeout=6.0, progress=False)
        killed()
    assert (ran.told, ran.failures) == (1, ())
    assert len(os.listdir(tmp_path)) == 2


def test_a_cluster_that_starts_workers_for_plays():
    exp = Experiment(MFUCB(), arms=3, fidelities=FID, capital=6.0)
    with cluster(0) as (local, client):
        local.adapt(minimum=0, maximum=1, interval="100ms")
        ran = run(exp, objectives.noisy, client.get_executor(), progress=False)
    assert (ran.told, ran.failures) == (6, ())


def test_a_cluster_without_workers_is_said(caplog, monkeypatch):
    monkeypatch.setattr("mfbandit.execution.worker_usage.NO_WORKER_WARNING_SECONDS", 0.2)
    exp = Experiment(MFUCB(), arms=3, fidelities=FID, capital=3.0)
    with cluster(0) as (local, client):
        later = threading.Timer(2.5, local.scale, [1])
        later.start()
        ran = run(exp, objectives.noisy, client.get_executor(), progress=False)
        later.join()
    assert ran.told == 3
    assert caplog.text.count("the cluster has had no worker for 0.2 s") == 1


def test_a_cluster_that_is_gone():
    exp = Experiment(MFUCB(), arms=3, fidelities=FID)
    with cluster(1) as (local, client):
        threading.Timer(0.7, local.close).start()
        with pytest.raises(RuntimeError, match="cluster is gone"):
            run(exp, objectives.slow, client.get_executor(), progress=False)
    assert exp.pending == ()


def test_a_worker_killed_while_runs_are_simulated():
    problem = paper_problem(1)
    given: dict[str, Any] = {"capital": effort(1e6, 4e6), "runs": 12, "seed": 2, "grid": 5, "keep_plays": True}
    local_result = simulate(problem, MFUCB(), **given)
    with cluster(2) as (local, client), parallel_config("dask", client=client):
        killed = kill_one(lambda: in_a_moment(local))
        sim = simulate(problem, MFUCB(), **given)
        killed()
    np.testing.assert_array_equal(sim.regret, local_result.regret)
    np.testing.assert_array_equal(sim.run_plays, local_result.run_plays)
    np.testing.assert_array_equal(sim.spent, local_result.spent)


def test_a_worker_killed_while_candidates_are_tuned(tmp_path):
    """It costs the runs that it was making, which are made again, and no other."""
    marks, go = tmp_path / "marks", tmp_path / "go"
    marks.mkdir()
    with cluster(3) as (_, client):
        killed = kill_one(lambda: begun(marks, 12), then=go.touch)
        objective = functools.partial(objectives.marked_curve, str(marks), str(go))
        found = tune(
            objective,
            [{"rate": k / 20, "k": k} for k in range(20)],
            fidelities=[1, 5, 25],
            executor=client.get_executor(),
            progress=False,
            capital=15,
        )
        killed()
    told = [event for event in found.experiment.log if isinstance(event, Told)]
    asked = [event.play for event in found.experiment.log if isinstance(event, Asked)]
    assert sorted(event.play for event in told) == asked  # each once
    assert found.failures == ()
    for event in told:
        play = seeded(found.experiment.play(event.play))
        config, epochs = found.candidates[found.order[play.arm]], [1, 5, 25][play.fidelity]
        assert event.reward == objectives.curve(config, epochs, play.seed)
    assert len(os.listdir(marks)) <= len(asked) + 3
