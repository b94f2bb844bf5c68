"""Workers as a cluster's scheduler starts them: processes that are killed, told to end, and started again."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from mfbandit import MFUCB, UCB, Experiment, Fidelities, Store, SubGaussian, connect, seeded
from mfbandit.experiment.events import Asked, Expired, Failed, Renewed, Told
from tests.support import objectives
from tests.support.commands import call, refused
from tests.support.services import served
from tests.support.wire import Wire

PATIENCE = 180.0  # seconds: nothing here takes long, but on a machine that is busy with other things
FID = Fidelities(costs=[1, 10], biases=[0.1, 0], concentration=SubGaussian(0.1))
LAB = """
import os, time
from pathlib import Path

def stubborn(play):
    try:
        dig(play)
    except BaseException:
        pass
    return 0.5

def waiting(play):
    Path(f"{play.id}.{os.getpid()}").touch()
    while Path("slow").exists():
        time.sleep(0.02)
    return 0.25

def forking(play):
    os.fork()
    return 0.5

def dig(play):
    Path(f"{play.id}.{os.getpid()}").touch()
    time.sleep(60 if Path("slow").exists() else 0.02)
    return play.rng().normal(0.1 * play.arm, 0.1)
"""


@pytest.fixture
def lab(tmp_path):
    (tmp_path / "lab.py").write_text(LAB)
    return tmp_path


WORKERS: list[subprocess.Popen[str]] = []


@pytest.fixture(autouse=True)
def ended():
    """No worker outlives its test."""
    yield
    while WORKERS:
        WORKERS.pop().kill()


def worker(where, folder, *more, objective="lab:dig", **how):
    command = [sys.executable, "-m", "mfbandit", "work", where, "e", objective, *map(str, more)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True} | how
    WORKERS.append(subprocess.Popen(command, cwd=folder, **pipes))
    return WORKERS[-1]


def until(condition):
    """Wait for something; what it is."""
    end = time.monotonic() + PATIENCE
    while not (found := condition()):
        assert time.monotonic() < end
        time.sleep(0.02)
    return found


def started(folder):
    """Wait for a play to be under way; what the file is called by which it says so."""
    return until(lambda: [one.name for one in folder.iterdir() if one.name.rpartition(".")[2].isdecimal()])[0]


@contextmanager
def complaining(folder):
    """Where a worker writes its messages, and how to read what it has written so far."""
    with (folder / "complaints").open("w") as file:
        yield file, (folder / "complaints").read_text


def events(exp, kind):
    return [event for event in exp.log if isinstance(event, kind)]


def test_one_worker_makes_the_plays_of_a_plain_loop(lab):
    with served(lab / "a.db") as service, connect(service.url) as there:
        exp = there.create("e", MFUCB(), arms=3, fidelities=FID, capital=40.0)
        job = worker(service.url, lab, "--seed", 4, "--json")
        said, complained = job.communicate(timeout=PATIENCE)
        assert job.returncode == 0, complained
        assert all(re.match(r"\d+:\d\d: spent", line) for line in complained.splitlines())  # after two seconds
        assert json.loads(said) == {
            "told": 40,
            "failed": [],
            "retried": 0,
            "ended": "the capital is spent",
            "warnings": [],
        }
        plain = Experiment(MFUCB(), arms=3, fidelities=FID, capital=40.0)
        for play in plain.plays():
            plain.tell(play, objectives.noisy(seeded(play, 4)))
        assert exp.log[1:] == plain.log


def test_a_worker_killed_without_warning(lab):
    with served(lab / "a.db") as service, connect(service.url) as there:
        exp = there.create("e", UCB(), arms=3, fidelities=FID, capital=60.0)
        (lab / "slow").touch()
        first = worker(service.url, lab, "--lease", 6)
        mark = started(lab)
        until(lambda: len(events(exp, Renewed)) >= 2)
        os.kill(first.pid, signal.SIGKILL)
        first.communicate(timeout=PATIENCE)
        (lab / "slow").unlink()
        others = [worker(service.url, lab) for _ in range(2)]
        for other in others:
            said, complained = other.communicate(timeout=PATIENCE)
            assert other.returncode == 0, complained
            assert "the capital is spent" in said
        lost = int(mark.split(".")[0].rpartition("-")[2])
        assert [event.play for event in events(exp, Expired)] == [lost]
        asked = events(exp, Asked)
        place = [(event.arm, event.fidelity) for event in asked]
        assert place.index(place[lost], lost + 1) > lost  # asked for again
        assert {event.play for event in events(exp, Told)} == {event.play for event in asked} - {lost}
        assert exp.spent == 60


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_worker_told_to_end_hands_its_play_back(lab, number, code):
    with served(lab / "a.db") as service, connect(service.url) as there:
        exp = there.create("e", UCB(), arms=1, fidelities=FID)
        (lab / "slow").touch()
        for i in range(3):  # three handed back in a row, and the arm is not blamed
            job = worker(service.url, lab)
            mark = started(lab)
            job.send_signal(number)
            _, complained = job.communicate(timeout=PATIENCE)  # the play would take 60
            assert job.returncode == code
            assert "1 pending play given up" in complained
            assert "Traceback" not in complained
            assert len(events(exp, Failed)) == i + 1
            (lab / mark).unlink()
        assert exp.pending == ()
        assert exp.set_aside == ()


@pytest.mark.parametrize("background", [False, True])
def test_an_objective_that_swallows_everything(lab, background):
    """Also in the background, where a shell lets a process ignore Ctrl-C from the start."""
    ignoring = (lambda: signal.signal(signal.SIGINT, signal.SIG_IGN)) if background else None
    with served(lab / "a.db") as service, connect(service.url) as there:
        exp = there.create("e", UCB(), arms=1, fidelities=FID)
        (lab / "slow").touch()
        job = worker(service.url, lab, objective="lab:stubborn", preexec_fn=ignoring)
        started(lab)
        job.send_signal(signal.SIGTERM)
        job.communicate(timeout=PATIENCE)
        assert job.returncode == 143
        assert exp.pending == ()


def test_eight_workers_told_to_end_at_once(lab):
    with served(lab / "a.db") as service, connect(service.url) as there:
        exp = there.create("e", UCB(), arms=1, fidelities=FID)
        (lab / "slow").touch()
        jobs = [worker(service.url, lab) for _ in range(8)]
        until(lambda: exp.status()["pending"] == 8)
        for job in jobs:
            job.send_signal(signal.SIGTERM)
        said = [job.communicate(timeout=PATIENCE)[1] for job in jobs]
        assert [job.returncode for job in jobs] == [143] * 8, said
        assert (exp.pending, exp.set_aside) == ((), ())


def test_a_worker_told_to_end_while_the_answer_with_its_play_is_on_its_way(lab):
    """The service has handed the play out, and the worker has not heard of it: it is given back all the same."""
    with served(lab / "a.db") as service, connect(service.url) as there, Wire(service.port) as wire:
        exp = there.create("e", UCB(), arms=1, fidelities=FID)
        wire.hold_answer_to(b"/ask ")
        job = worker(f"http://127.0.0.1:{wire.port}", lab)
        until(lambda: wire.is_cut)
        assert exp.status()["pending"] == 1
        job.send_signal(signal.SIGTERM)
        wire.mend()
        _, complained = job.communicate(timeout=PATIENCE)
        assert job.returncode == 143
        assert "1 pending play given up" in complained
        assert (exp.pending, len(events(exp, Asked)), len(events(exp, Failed))) == ((), 1, 1)


def test_an_objective_that_forks(lab):
    with served(lab / "a.db") as service, connect(service.url) as there:
        exp = there.create("e", UCB(), arms=2, fidelities=FID)
        job = worker(service.url, lab, "--plays", 4, objective="lab:forking")
        said, _ = job.communicate(timeout=PATIENCE)
        assert (job.returncode, said[:13]) == (0, "e: 4 results,")
        time.sleep(1)
        assert (len(events(exp, Asked)), len(events(exp, Told))) == (4, 4)


def test_a_paused_experiment_and_an_arm_that_is_set_aside_are_said(lab):
    with served(lab / "a.db") as service, connect(service.url) as there:
        exp = there.create("e", UCB(), arms=["good", "bad"], fidelities=FID)
        exp.fail_many([play for play in exp.ask(6) if play.label == "bad"])
        exp.fail_many(exp.pending)
        exp.restore_arm("good")
        exp.pause()
        with complaining(lab) as (file, complaints):
            job = worker(service.url, lab, "--plays", 2, stderr=file)
            until(lambda: "waiting until it is resumed" in complaints())
            time.sleep(3)  # in which it is said no more
            exp.resume()
            said, _ = job.communicate(timeout=PATIENCE)
            complained = complaints()
        assert (job.returncode, said[:13]) == (0, "e: 2 results,")
        assert "WARNING: bad was set aside after 3 failures in a row; `restore_arm` brings it back" in said
        assert complained.count("the experiment is paused: waiting until it is resumed") == 1
        assert complained.count("waiting is over: the run goes on") == 1


def test_a_result_that_cannot_be_told_is_kept_for_the_next_worker(lab):
    with served(lab / "a.db") as service:
        with connect(service.url) as there:
            there.create("e", UCB(), arms=2, fidelities=FID)
        (lab / "slow").touch()
        with complaining(lab) as (file, complaints):
            how = {"objective": "lab:waiting", "stderr": file}
            job = worker(service.url, lab, "--patience", 1, "--spool", lab / "spool", **how)
            started(lab)
            service.kill()
            (lab / "slow").unlink()
            until(lambda: "results are kept in" in complaints())
            kept = list((lab / "spool").glob("*.jsonl"))
            job.send_signal(signal.SIGTERM)
            job.communicate(timeout=PATIENCE)
            complained = complaints()
        assert job.returncode == 143
        assert f"results are kept in {kept[0]} until the store is back" in complained
        assert f"the next run of this experiment tells what is in {kept[0]}" in complained
        assert kept[0].stat().st_mode & 0o777 == 0o600
    with served(lab / "a.db") as service, connect(service.url) as there:
        job = worker(service.url, lab, "--plays", 0, "--spool", lab / "spool")
        _, complained = job.communicate(timeout=PATIENCE)
        assert "untold results of an earlier run, which are told first: 1" in complained
        assert [event.reward for event in events(there.open("e"), Told)] == [0.25]
    assert list((lab / "spool").iterdir()) == []


def test_a_worker_told_to_end_while_the_service_is_down(lab):
    with served(lab / "a.db") as service:
        with connect(service.url) as there:
            there.create("e", UCB(), arms=1, fidelities=FID, lease=3.0)
        (lab / "slow").touch()
        job = worker(service.url, lab)
        started(lab)
        service.kill()
        time.sleep(1.5)  # the lease cannot be renewed
        job.send_signal(signal.SIGTERM)
        _, complained = job.communicate(timeout=PATIENCE)
    assert job.returncode == 143
    assert "pending plays are left to their leases" in complained


def test_a_play_that_takes_too_long(lab):
    with served(lab / "a.db") as service, connect(service.url) as there:
        exp = there.create("e", UCB(), arms=["a"], fidelities=FID)
        (lab / "slow").touch()
        job = worker(service.url, lab, "--timeout", 0.3, "--retries", 1)
        _, complained = job.communicate(timeout=PATIENCE)
        assert job.returncode == 1
        assert "failed after 2 attempts: it took longer than 0.3 s" in complained
        assert "Error: No arm is active" in complained
        assert exp.set_aside == (0,)


def test_a_store_on_this_machine_and_a_number_of_plays(lab):
    with Store(lab / "a.db") as store:
        store.create("e", UCB(), arms=3, fidelities=FID)
    said, _ = worker(str(lab / "a.db"), lab, "--plays", 5).communicate(timeout=PATIENCE)
    assert said.startswith("e: 5 results, 0 failed, 0 retried in ")
    with Store(lab / "a.db") as store:
        assert len(store.open("e").history.rewards) == 5


def test_wrong_input(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with Store("a.db") as store:
        store.create("e", UCB(), arms=3, fidelities=FID)
    refused(call("work", "a.db", "e", "lab"), "MODULE:OBJECTIVE must name a function of a module, such as lab:dig")
    refused(
        call("work", "a.db", "e", "nolab:dig"), "a module that can be imported, got 'nolab:dig' (ModuleNotFoundError"
    )
    Path("broken.py").write_text("def dig(:")
    refused(call("work", "a.db", "e", "broken:dig"), "a module that can be imported, got 'broken:dig' (SyntaxError")
    Path("leaving.py").write_text("raise SystemExit(3)")
    refused(
        call("work", "a.db", "e", "leaving:dig"), "a module that can be imported, got 'leaving:dig' (SystemExit: 3)"
    )
    refused(call("work", "a.db", "e", "math:digs"), "must name something that math has, got 'digs'")
    refused(call("work", "a.db", "e", "math:pi"), "objective must be a function of a play, got 3.14")
    refused(call("work", "a.db", "f", "math:sqrt"), "f")
    refused(call("work", "b.db", "e", "math:sqrt"), "Store not found: b.db")
    refused(call("work", "a.db", "e", "math:sqrt", "--timeout", -1), "timeout must be positive and finite, got -1")
