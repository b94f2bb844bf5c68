"""Plays on executors: the same plays as a plain loop, nothing lost, whatever objectives and workers do."""

import io
import logging
import multiprocessing
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor, wait
from contextlib import contextmanager

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from mfbandit import (
    MFUCB,
    UCB,
    Bounded,
    Experiment,
    ExperimentPaused,
    Fidelities,
    NoActiveArms,
    Store,
    StoreUnavailable,
    SubGaussian,
    connect,
    run,
    seeded,
)
from mfbandit.execution.attempt import MAX_ERROR_CHARACTERS, SeededPlay, make_attempt
from mfbandit.execution.display import RunProgress, _panel, progress_display, progress_line
from mfbandit.execution.worker_pool import InlineExecutor, SingleProcessWorkers, worker_pool
from mfbandit.experiment.events import ArmSetAside, Asked, Expired, Failed, Noted, Renewed, Told
from mfbandit.service.remote_experiment import RemoteExperiment
from mfbandit.store.writer import Ticket
from tests.support import objectives
from tests.support.effort import examples
from tests.support.services import served

FID = Fidelities(costs=[1, 10], biases=[0.1, 0], concentration=SubGaussian(0.1))


def experiment(arms=4, capital=60.0, policy=None, fidelities=FID):
    return Experiment(policy or MFUCB(), arms=arms, fidelities=fidelities, capital=capital)


def events(exp, *kinds):
    return [event for event in exp.log if isinstance(event, kinds)]


def until(condition):
    """Wait for something."""
    end = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


@contextmanager
def processes(workers):
    # Not forked from a process that has threads already; but from one that has loaded what it needs.
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.support.objectives", "mfbandit.execution.attempt"])
    with ProcessPoolExecutor(workers, mp_context=context) as pool:
        yield pool


class TestPlainLoop:
    @given(
        seed=st.integers(0, 2**40),
        arms=st.integers(1, 6),
        costs=st.sampled_from([[1.0], [1.0, 5.0], [1.0, 3.0, 20.0]]),
        policy=st.sampled_from([UCB(), MFUCB(), MFUCB(rho=0.1)]),
        objective=st.sampled_from([objectives.noisy, objectives.coin]),
    )
    @settings(max_examples=examples(40))
    def test_one_worker_makes_the_same_plays(self, seed, arms, costs, policy, objective):
        fidelities = Fidelities(costs, [0.1 * m for m in reversed(range(len(costs)))], SubGaussian(0.1))
        ours, plain = (experiment(arms, 40 * costs[-1], policy, fidelities) for _ in range(2))
        with ThreadPoolExecutor(1) as pool:
            run(ours, objective, pool, seed=seed)
        for play in plain.plays():
            plain.tell(play, objective(seeded(play, seed)))
        assert ours.log == plain.log
        assert ours.spent == plain.spent

    def test_workers_of_any_kind_get_the_same_seeds(self):
        with ThreadPoolExecutor(1) as threads, processes(1) as pool:
            logs = []
            for executor in (threads, pool):
                exp = experiment()
                run(exp, objectives.noisy, executor, seed=3)
                logs.append(exp.log)
        assert logs[0] == logs[1]


class TestWorkers:
    def test_all_are_busy_and_every_play_is_told_once(self):
        exp = experiment(arms=20, capital=400.0)
        with ThreadPoolExecutor(8) as pool:
            ran = run(exp, objectives.slow, pool)
        told = [event.play for event in events(exp, Told)]
        assert sorted(told) == [event.play for event in events(exp, Asked)] == list(range(ran.told))
        assert exp.spent <= 400 < exp.spent + 10
        assert exp.pending == ()
        assert ran.failures == ()
        assert 0 < ran.busy <= 1  # how much is for the benchmark to say

    def test_as_many_plays_as_wanted(self):
        exp = experiment(capital=None)
        with ThreadPoolExecutor(3) as pool:
            ran = run(exp, objectives.noisy, pool, plays=7)
            assert (ran.told, ran.ended) == (7, "all plays that were wanted are made")
            assert run(exp, objectives.noisy, pool, plays=0).told == 0
        assert re.match(r"7 results, 0 failed, 0 retried in \d\.\d s", str(ran))

    def test_plays_ahead_wait_at_the_executor(self):
        exp, most = experiment(arms=20, capital=40.0), []

        def objective(play):
            most.append(len(exp.pending))
            time.sleep(0.01)
            return objectives.noisy(play)

        with ThreadPoolExecutor(2) as pool:
            run(exp, objective, pool, ahead=3)
        assert max(most) == 5
        assert exp.spent == 40

    def test_costs_that_objectives_tell(self):
        exp = experiment(capital=10.0)
        with ThreadPoolExecutor(2) as pool:
            run(exp, objectives.priced, pool)
        assert {event.cost for event in events(exp, Told)} <= {0.25, 2.5}
        assert exp.spent > 9

    def test_a_failed_play_makes_room_for_another(self):
        fidelities = Fidelities([1], concentration=SubGaussian(0.1))
        exp = experiment(2, 3.0, UCB(), fidelities)
        with ThreadPoolExecutor(1) as pool:
            run(exp, lambda play: float("nan") if play.id.endswith("-2") else 0.5, pool)
        assert exp.spent == 3
        assert len(events(exp, Failed)) == 1


class TestMisbehaving:
    ARMS = ("fine", "raises", "dies", "exits", "hangs", "hangs hard", "nan", "text", "triple", "poor", "good")

    def test_each_is_failed_and_named_and_others_go_on(self, caplog, monkeypatch):
        exp = experiment(self.ARMS, 150.0)
        monkeypatch.setattr("mfbandit.execution.play_runner.OVERDUE_GRACE_SECONDS", 4.0)
        with processes(3) as pool, caplog.at_level(logging.WARNING, "mfbandit"):
            ran = run(exp, objectives.misbehaving, pool, timeout=1.5, progress=False)
        bad = set(self.ARMS) - {"fine", "good"}
        assert {exp.arms[arm] for arm in exp.set_aside} == bad
        assert exp.spent == 150
        assert exp.pending == ()
        assert sorted(f.play.label for f in ran.failures) == sorted(list(bad) * 3)
        why = {failure.play.label: failure.error for failure in ran.failures}
        assert why == {
            "raises": "ZeroDivisionError: x over 0",
            "dies": "its process died",
            "exits": "SystemExit: 4",
            "hangs": "it took longer than 1.5 s",
            "hangs hard": "it took longer than 1.5 s",
            "nan": "reward must be finite, got nan",
            "text": "reward must be a number, got 'good'",
            "triple": "an objective must return a reward or (reward, cost), got (1, 2, 3)",
            "poor": "cost must not be negative, got -1",
        }
        notes = [note.text for note in events(exp, Noted)]
        assert len(notes) == len(ran.failures)
        for label, error in why.items():
            named = [text for text in notes if f"of {label!r} at fidelity 0 failed: {error}" in text]
            assert len(named) == 3
            assert all(text in caplog.text for text in named)
            assert f"arm {label!r} is set aside after three failures in a row" in caplog.text

    def test_a_process_that_dies_takes_nobody_along(self):
        exp = experiment(["dies", *"abc"], 40.0)
        with processes(4) as pool:
            ran = run(exp, objectives.misbehaving, pool)
        assert [failure.play.label for failure in ran.failures] == ["dies"] * 3
        assert {event.play for event in events(exp, Told)} | {f.play for f in events(exp, Failed)} == set(
            range(len(events(exp, Asked)))
        )

    def test_a_pool_that_breaks_while_it_starts_a_process_takes_nobody_along(self):
        exp = experiment([*"abc"], 20.0)
        with processes(2) as pool:
            pool._call_queue._reader.close()  # as a pool does once one of its processes has died
            ran = run(exp, objectives.noisy, pool)
        assert (ran.failures, len(events(exp, Told)), exp.spent) == ((), len(events(exp, Asked)), 20)

    def test_a_play_alone_in_a_pool_is_the_one_that_broke_it(self):
        exp = experiment(["dies", "fine"], 20.0)
        with processes(1) as pool:
            ran = run(exp, objectives.misbehaving, pool)
        assert [failure.error for failure in ran.failures] == ["its process died"] * 3
        assert exp.spent == 20

    def test_a_pool_that_broke_before(self):
        exp = experiment(["fine", "good"], 20.0)
        with processes(2) as pool:
            with pytest.raises(Exception, match="terminated abruptly"):
                pool.submit(objectives.misbehaving, SeededPlay("x-0", 0, 0, 1.0, "dies", 0)).result()
            assert run(exp, objectives.misbehaving, pool).told == 20

    def test_a_pool_that_cannot_be_repaired(self):
        def refuse():
            raise OSError("no licence")

        exp = experiment()
        with (
            ThreadPoolExecutor(2, initializer=refuse) as pool,
            pytest.raises(RuntimeError, match="the executor is broken and cannot go on"),
        ):
            run(exp, objectives.noisy, pool)
        assert exp.pending == ()
        assert exp.set_aside == ()

    def test_results_that_were_there_when_the_pool_broke_are_not_made_again(self, tmp_path):
        exp, calls = experiment(["b", "c", "d", "dies"], 5.0), list[Future[object]]()
        ask, marks = exp.ask, tmp_path / "marks"
        marks.mkdir()

        def slow(n):
            if len(exp.log) == 5:  # once; meanwhile all others end, and then the pool breaks
                wait(calls[:3])
                (tmp_path / "go").touch()
                wait(calls)
            return ask(n)

        exp.ask = slow
        with processes(4) as pool:
            submit = pool.submit

            def submit_and_note(*args):
                calls.append(submit(*args))
                return calls[-1]

            pool.submit = submit_and_note
            run(exp, objectives.DyingLast(marks, tmp_path / "go"), pool)
        made = Counter(path.name.split(".")[0].rpartition("-")[2] for path in marks.iterdir())
        assert [made[play] for play in "012"] == [1, 1, 1]

    def test_a_thread_that_hangs_is_left_behind_and_its_worker_goes_on(self):
        exp, stop = experiment(["hangs", "b", "c"], 40.0), threading.Event()

        def objective(play):
            if play.label == "hangs":
                stop.wait(60)
            return 0.5

        with ThreadPoolExecutor(1) as pool:
            ran = run(exp, objective, pool, timeout=1.0, progress=False)
        stop.set()
        assert [failure.play.label for failure in ran.failures] == ["hangs"] * 3
        assert {failure.error for failure in ran.failures} == {"it took longer than 1 s"}
        assert exp.spent == 40

    def test_an_objective_in_a_thread_of_its_own_raises_as_elsewhere(self):
        exp = experiment(["raises", "exits", "fine"], 20.0)
        with ThreadPoolExecutor(2) as pool:
            ran = run(exp, objectives.misbehaving, pool, timeout=60)
        why = {failure.play.label: failure.error for failure in ran.failures}
        assert why == {"raises": "ZeroDivisionError: x over 0", "exits": "SystemExit: 4"}

    def test_workers_that_never_come_back_are_lost(self, monkeypatch):
        """An executor of which nothing is heard: what was handed out is dropped, and in the end that is said."""
        monkeypatch.setattr("mfbandit.execution.play_runner.OVERDUE_GRACE_SECONDS", 0.1)
        exp = experiment(["a", "b", "c"], 40.0)
        with pytest.raises(RuntimeError, match=r"every worker is lost: 2 of 2 .* longer than 0.1 s"):
            run(exp, objectives.noisy, Silent(), workers=2, timeout=0.1)
        assert exp.pending == ()
        assert len(events(exp, Failed)) == 2

    def test_a_worker_that_comes_back_late_works_again(self, monkeypatch):
        monkeypatch.setattr("mfbandit.execution.play_runner.OVERDUE_GRACE_SECONDS", 0.1)
        exp, late = experiment(["a", "b"], 20.0), Silent()
        threading.Timer(3.0, late.answer).start()
        with ThreadPoolExecutor(1) as pool:
            late.others = pool
            ran = run(exp, objectives.noisy, late, workers=2, timeout=1.0)
        assert len(ran.failures) == 1
        assert exp.spent == 20

    def test_retries(self):
        exp = experiment()
        seen = []

        def objective(play):
            seen.append((play.id, play.seed, play.attempt))
            return objectives.second_time(play)

        with ThreadPoolExecutor(2) as pool:
            ran = run(exp, objective, pool, retries=1)
        assert ran.retried == ran.told == len(events(exp, Told))
        assert ran.failures == ()
        assert len({(play, seed) for play, seed, _ in seen}) == ran.told  # the same seed in both attempts
        assert events(exp, Failed, Noted) == []

    def test_the_last_retry_counts(self):
        exp = experiment(["raises", "fine"], 20.0)
        with ThreadPoolExecutor(2) as pool:
            ran = run(exp, objectives.misbehaving, pool, retries=2)
        assert (len(ran.failures), ran.retried) == (3, 6)
        assert len(events(exp, ArmSetAside)) == 1
        assert events(exp, Noted)[0].text.endswith("failed after 3 attempts: ZeroDivisionError: x over 0")

    def test_rewards_outside_the_range_fail(self):
        exp = experiment(2, 5.0, UCB(), Fidelities([1], concentration=Bounded()))
        with ThreadPoolExecutor(1) as pool:
            ran = run(exp, lambda play: 1.5 if play.arm else 0.5, pool)
        assert {failure.error for failure in ran.failures} == {
            "reward must lie in 0 to 1, as the fidelities say, got 1.5"
        }
        assert exp.spent == 5

    def test_rewards_outside_the_range_fail_at_a_service(self, tmp_path):
        with served(tmp_path / "a.db") as service, connect(service.url) as there:
            fidelities = Fidelities([1], concentration=Bounded())
            exp = there.create("e", UCB(), arms=2, fidelities=fidelities, capital=5.0)
            ran = run(exp, lambda play: 1.5 if play.arm else 0.5, InlineExecutor())
            assert {failure.error for failure in ran.failures} == {
                "reward must lie in 0 to 1, as the fidelities say, got 1.5"
            }
            assert exp.spent == 5

    def test_when_every_arm_fails_the_last_error_is_told(self):
        exp = experiment(2)
        with ThreadPoolExecutor(2) as pool, pytest.raises(NoActiveArms, match=r"2 set aside .* reward must be finite"):
            run(exp, lambda _: float("inf"), pool)

    def test_long_errors_are_cut(self):
        def objective(_):
            raise ValueError("x\n" * 10_000)

        error = make_attempt(objective, SeededPlay("x-0", 0, 0, 1.0, "a", 0)).error
        assert error is not None
        assert len(error) == MAX_ERROR_CHARACTERS + 3
        assert "\n" not in error

    def test_errors_that_cannot_be_told(self, tmp_path):
        class Silent(Exception):
            def __str__(self):
                raise ZeroDivisionError

        def objective(play):
            if play.label == "silent":
                raise Silent
            raise ValueError("half a \udcff")

        with served(tmp_path / "a.db") as service, connect(service.url) as there:
            exp = there.create("e", MFUCB(), arms=["silent", "half"], fidelities=FID)
            with pytest.raises(NoActiveArms):
                run(exp, objective, InlineExecutor())
            notes = {note.text.partition("failed: ")[2] for note in events(exp, Noted)}
        assert notes == {"Silent", r"ValueError: half a \udcff"}

    def test_an_executor_that_is_shut_down_under_way(self):
        exp = experiment(capital=None)
        pool = ThreadPoolExecutor(1)

        def objective(_):
            pool.shutdown(wait=False)
            return 0.5

        with pytest.raises(RuntimeError, match="cannot schedule new futures after shutdown"):
            run(exp, objective, pool)
        assert exp.pending == ()


class TestInterrupts:
    def test_what_was_told_is_kept_and_the_rest_handed_back(self, tmp_path):
        script = tmp_path / "job.py"
        script.write_text(
            "import sys, time\n"
            "from concurrent.futures import ThreadPoolExecutor\n"
            "import mfbandit as mfb\n"
            "def objective(play):\n"
            "    time.sleep(0.02 if play.id.endswith(('0', '2', '4')) else 3)\n"
            "    return 0.5\n"
            f"store = mfb.Store({str(tmp_path / 'a.db')!r})\n"
            "fid = mfb.Fidelities([1], concentration=mfb.Bounded())\n"
            "exp = store.create('e', mfb.UCB(), arms=2, fidelities=fid)\n"
            "with ThreadPoolExecutor(8) as pool:\n"
            "    print('go', flush=True)\n"
            "    mfb.run(exp, objective, pool)\n"
        )
        with subprocess.Popen(
            [sys.executable, script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as job:
            assert job.stdout is not None
            assert job.stdout.readline() == "go\n"
            with Store(tmp_path / "a.db", read_only=True) as store:
                until(lambda: len(events(store.open("e"), Told)) >= 3)
            job.send_signal(signal.SIGINT)
            _, said = job.communicate(timeout=120)
        assert job.returncode != 0
        assert "KeyboardInterrupt" in said
        assert "pending plays given up" in said
        with Store(tmp_path / "a.db") as store:
            exp = store.open("e")
            asked, told, failed = (events(exp, kind) for kind in (Asked, Told, Failed))
            assert len(told) >= 3
            assert len(asked) == len(told) + len(failed)
            assert exp.pending == ()
            assert exp.set_aside == ()  # eight failures at once, and no arm is blamed
            assert exp.reserved == 0

    def test_workers_that_are_interrupted_too(self):
        """As by Ctrl-C at a terminal, which every process of the job gets."""
        exp = experiment(["stops", "b"], None)

        def objective(play):
            if play.label == "stops":
                raise KeyboardInterrupt
            return 0.5

        class Quick(ThreadPoolExecutor):
            def submit(self, *args, **more):
                future = super().submit(*args, **more)
                wait([future])
                return future

        with Quick(2) as pool, pytest.raises(KeyboardInterrupt):
            run(exp, objective, pool)
        assert exp.pending == ()
        assert len(events(exp, Told)) == 1

    def test_results_that_are_there_are_told(self):
        exp, done = experiment(capital=None), threading.Event()

        def objective(play):
            if play.id.endswith("-3"):
                done.wait(10)
                raise AssertionError("nobody waits for this")
            return 0.5

        class Interrupting(ThreadPoolExecutor):
            def submit(self, *args, **more):
                if self._work_queue.qsize() == 0 and len(exp.log) > 12:
                    raise KeyboardInterrupt
                return super().submit(*args, **more)

        with Interrupting(3) as pool:
            with pytest.raises(KeyboardInterrupt):
                run(exp, objective, pool)
            done.set()
        assert exp.pending == ()
        assert len(events(exp, Asked)) == len(events(exp, Told)) + len(events(exp, Failed))

    @pytest.mark.parametrize("at", range(1, 9))
    def test_in_the_middle_of_a_write(self, tmp_path, monkeypatch, at):
        waits, real = [], Ticket.wait

        def interrupted(ticket):
            waits.append(ticket)
            if len(waits) == at:
                signal.raise_signal(signal.SIGINT)
            real(ticket)

        with Store(tmp_path / "a.db") as store:
            exp = store.create("e", MFUCB(), arms=3, fidelities=FID, lease=None)
            monkeypatch.setattr(exp, "_settle", interrupted)
            with ThreadPoolExecutor(2) as pool, pytest.raises(KeyboardInterrupt):
                run(exp, objectives.noisy, pool, plays=100)
            assert exp.pending == ()
            assert exp.log == store.open("e").log

    @pytest.mark.parametrize("at", [1, 3])
    def test_between_the_answer_of_a_service_and_its_reading(self, tmp_path, monkeypatch, at):
        """The service has handed out plays that the run has not heard of; they are given back, too."""
        answers, real = [], RemoteExperiment.ask

        def interrupted(exp, n, **options):
            answers.append(real(exp, n, **options))
            if len(answers) == at:
                raise KeyboardInterrupt
            return answers[-1]

        monkeypatch.setattr(RemoteExperiment, "ask", interrupted)
        with served(tmp_path / "a.db") as service, connect(service.url) as there:
            exp = there.create("e", UCB(), arms=3, fidelities=FID)
            with ThreadPoolExecutor(2) as pool, pytest.raises(KeyboardInterrupt):
                run(exp, objectives.noisy, pool, progress=False)
            assert len(answers) == at + 1
            assert exp.pending == ()
            assert len(events(exp, Asked)) == len(events(exp, Told)) + len(events(exp, Failed))

    def test_it_says_so_where_nobody_answers_any_more(self, tmp_path, monkeypatch, caplog):
        errors = iter([KeyboardInterrupt(), StoreUnavailable("gone")])

        def unanswered(*_, **__):
            raise next(errors)

        monkeypatch.setattr(RemoteExperiment, "ask", unanswered)
        with served(tmp_path / "a.db") as service, connect(service.url) as there:
            exp = there.create("e", UCB(), arms=3, fidelities=FID)
            with ThreadPoolExecutor(2) as pool, pytest.raises(KeyboardInterrupt):
                run(exp, objectives.noisy, pool, progress=False)
        assert (
            "plays of a request that was not answered, if there are any, are left to their leases: gone" in caplog.text
        )


class TestStored:
    def test_leases_are_renewed_while_plays_are_under_way(self, tmp_path):
        with Store(tmp_path / "a.db") as store:
            exp = store.create("e", MFUCB(), arms=3, fidelities=FID, capital=3.0, lease=1.0)
            with ThreadPoolExecutor(3) as pool:
                ran = run(exp, objectives.long, pool, progress=False)
            assert ran.told == 3
            assert events(exp, Expired) == []
            assert len(events(exp, Renewed)) >= 6

    def test_a_lease_of_its_own(self, tmp_path):
        with Store(tmp_path / "a.db") as store:
            exp = store.create("e", MFUCB(), arms=3, fidelities=FID, capital=3.0)
            ends: list[float] = []

            def objective(_):
                ends.extend(due - exp.now() for due in exp.leases.values())
                return 0.5

            with ThreadPoolExecutor(1) as pool:
                run(exp, objective, pool, lease=60.0)
            assert 50 < min(ends) <= max(ends) <= 60

    def test_a_play_that_was_taken_back_is_still_told(self, tmp_path):
        now = [1e9]
        with Store(tmp_path / "a.db", clock=lambda: now[0]) as store:
            exp = store.create("e", MFUCB(), arms=2, fidelities=FID, capital=10.0, lease=0.3)

            def objective(play):
                if play.id.endswith("-0"):
                    now[0] += 10  # the driver slept; the play is taken back
                    until(lambda: events(exp, Expired))
                return 0.5

            with ThreadPoolExecutor(2) as pool:
                run(exp, objective, pool)
            assert len(events(exp, Expired)) >= 1
            assert exp.spent >= 10
            assert exp.pending == ()

    def test_two_jobs_at_a_service(self, tmp_path):
        with served(tmp_path / "a.db") as service, connect(service.url) as there:
            exp = there.create("e", MFUCB(), arms=5, fidelities=FID, capital=120.0)
            rans = []

            def job():
                with ThreadPoolExecutor(3) as pool:
                    rans.append(run(there.open("e"), objectives.noisy, pool, stay=True))

            jobs = [threading.Thread(target=job) for _ in range(2)]
            for thread in jobs:
                thread.start()
            for thread in jobs:
                thread.join()
            told = sorted(event.play for event in exp.log if isinstance(event, Told))
            assert told == list(range(sum(ran.told for ran in rans)))
            assert exp.spent == 120

    def test_a_paused_one_is_waited_for(self, tmp_path):
        with served(tmp_path / "a.db") as service, connect(service.url) as there:
            exp = there.create("e", MFUCB(), arms=5, fidelities=FID, capital=12.0)
            exp.pause()
            threading.Timer(0.5, exp.resume).start()
            with ThreadPoolExecutor(3) as pool:
                assert run(exp, objectives.noisy, pool).told == 12

    def test_others_may_make_room(self, tmp_path):
        with served(tmp_path / "a.db") as service, connect(service.url) as there:
            exp = there.create("e", UCB(), arms=2, fidelities=Fidelities([1], concentration=SubGaussian(1)), capital=4)
            others = exp.ask(2)
            threading.Timer(0.5, exp.fail_many, [others]).start()
            with ThreadPoolExecutor(2) as pool:
                assert run(exp, objectives.noisy, pool, stay=True).told == 4

    def test_results_of_plays_that_others_settled_are_not_taken(self, caplog):
        exp = experiment(2, 4.0)

        def objective(play):
            if play.id.endswith("-0"):
                exp.tell(play, 9.0)
            if play.id.endswith("-1"):
                exp.tell(play, 9.0)
                raise ValueError
            return 0.5

        with ThreadPoolExecutor(1) as pool:
            ran = run(exp, objective, pool)
        assert ran.told == 2
        assert "was not accepted: Play" in caplog.text


class Silent(Executor):
    """Takes a call and is not heard of again, until it is told to answer; others get the later calls."""

    others: Executor | None = None

    def __init__(self):
        self.first: Future[object] = Future()
        self.calls = 0

    def submit(self, call, /, *args, **more):
        self.calls += 1
        if self.others is not None and self.calls > 1:
            return self.others.submit(call, *args, **more)
        return self.first if self.calls == 1 else Future()

    def answer(self):
        self.first.set_result(None)


class Nameless(Executor):
    """Runs calls at once, and does not say how many workers it has."""

    def submit(self, call, /, *args, **more):
        future: Future[object] = Future()
        future.set_result(call(*args, **more))
        return future


class TestInput:
    def test_an_executor_that_does_not_say_how_many_workers_it_has(self):
        with pytest.raises(ValueError, match="workers must be given for an executor of this kind, got <tests"):
            run(experiment(), objectives.noisy, Nameless())
        assert run(experiment(capital=5.0), objectives.noisy, Nameless(), workers=2).told == 5

    @pytest.mark.parametrize(
        ("options", "said"),
        [
            ({"retries": -1}, "retries must not be negative, got -1"),
            ({"retries": 0.5}, "retries must be a whole number, got 0.5"),
            ({"timeout": 0}, "timeout must be positive and finite, got 0"),
            ({"seed": -3}, "seed must not be negative, got -3"),
            ({"seed": "x"}, "seed must be a whole number, got 'x'"),
            ({"plays": -1}, "plays must not be negative, got -1"),
            ({"ahead": -1}, "ahead must not be negative, got -1"),
            ({"workers": 0}, "workers must be at least 1, got 0"),
            ({"lease": 5}, "lease must be None for an experiment in memory, got 5"),
            ({"objective": 3}, "objective must be a function of a play, got 3"),
            ({"executor": ThreadPoolExecutor}, "executor must be a concurrent.futures.Executor, got <class"),
        ],
    )
    def test_what_makes_no_sense(self, options, said):
        exp = experiment()
        with ThreadPoolExecutor(1) as pool, pytest.raises(ValueError, match="must") as refused:
            run(exp, **{"objective": objectives.noisy, "executor": pool} | options)
        assert str(refused.value).startswith(said)
        assert exp.log == ()

    def test_an_objective_that_cannot_be_sent(self):
        with processes(1) as pool, pytest.raises(ValueError, match="objective must be something that can be sent"):
            run(experiment(), lambda _: 0.5, pool)

    def test_a_paused_experiment_in_memory(self):
        exp = experiment()
        exp.pause()
        with ThreadPoolExecutor(1) as pool, pytest.raises(ExperimentPaused):
            run(exp, objectives.noisy, pool)


class TestDisplay:
    PROGRESS = RunProgress(
        30.0, 100.0, "[ad]:x:\n", (12, 3), ("a", "b", "c", "d", "e", "f"), 1, 7, 8, 61.0, 140.0, "paused"
    )

    def test_a_line(self):
        assert progress_line(self.PROGRESS) == (
            "1:01: spent 30 of 100 (30 %), 15 results (12 + 3), best [ad]:x: , 7 of 8 workers busy, 1 failed, "
            "set aside: a, b, c, d, e and 1 more, 2:20 left, paused"
        )

    def test_a_panel(self):
        out = io.StringIO()
        Console(file=out, width=100).print(_panel(self.PROGRESS))
        for words in (
            "30 of 100 (30 %)",
            "12 + 3",
            "[ad]:x:",
            "7 of 8 busy",
            "1 play",
            "and 1 more",
            "about 2:20 left",
        ):
            assert words in out.getvalue()
        Console(file=out, width=100).print(_panel(RunProgress(5.0, None, None, (0,), (), 0, 0, 8, 3725.0)))
        assert "no result yet" in out.getvalue()
        assert "1:02:05" in out.getvalue()

    def test_lines_where_there_is_no_terminal(self, capsys, monkeypatch):
        monkeypatch.setattr("mfbandit.execution.display.LINE_INTERVAL_SECONDS", 1000.0)  # one after two seconds
        exp = experiment(["raises", "b", "c"], 60.0)

        def objective(play):
            time.sleep(0.1)
            return objectives.misbehaving(play)

        with ThreadPoolExecutor(2) as pool:
            run(exp, objective, pool)
        said = [text for text in capsys.readouterr().err.splitlines() if "workers busy" in text]
        assert len(said) == 2
        assert "set aside: raises" in said[-1]
        assert "spent 60 of 60 (100 %)" in said[-1]

    def test_live_on_a_terminal(self, monkeypatch):
        class Terminal(io.StringIO):
            def isatty(self):
                return True

        screen = Terminal()
        monkeypatch.setattr(sys, "stderr", screen)
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.setenv("COLUMNS", "100")
        exp = experiment(["a", "b"], 30.0)

        def objective(play):
            until(lambda: "2 of 2 busy" in screen.getvalue())
            return objectives.slow(play)

        with ThreadPoolExecutor(2) as pool:
            run(exp, objective, pool)
        assert "best so far" in screen.getvalue()
        assert "2 of 2 busy" in screen.getvalue()

    def test_nothing_where_none_is_wanted(self, capsys):
        with progress_display(False) as display:
            assert display is None
        assert capsys.readouterr().err == ""


def test_single_processes_are_ended():
    with processes(2) as pool:
        single = worker_pool(pool, None, objectives.noisy).repaired()
        assert isinstance(single, SingleProcessWorkers)
        hanging = single.submit(time.sleep, 60)
        quick = single.submit(time.sleep, 0)
        quick.result()
        assert single.repaired() is single
        single.close()
        with pytest.raises(Exception, match="terminated abruptly"):
            hanging.result()
