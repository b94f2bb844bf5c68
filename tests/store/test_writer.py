"""One writer for all: who may write, groups of many threads, and writes that fail."""

import asyncio
import multiprocessing
import os
import subprocess
import sys
import threading
import time
from typing import Any

import pytest

from mfbandit import (
    MFUCB,
    NotAllowed,
    Store,
    StoreError,
    StoreHeld,
    StoreUnavailable,
)
from mfbandit.experiment.events import (
    Asked,
    Expired,
    Noted,
    Opened,
)
from mfbandit.store import file_lock, writer
from tests.support.stores import make, play_some, seen


class TestOneWriter:
    def test_another_process_is_told_who_holds_it_and_may_read(self, place):
        with Store(place, purpose="a test of holding") as store:
            play_some(make(store), 5)
            code = (
                "import sys; from mfbandit import Store, StoreHeld\n"
                "reader = Store(sys.argv[1], read_only=True).open('exp'); print(reader.spent)\n"
                "try: Store(sys.argv[1]).open('exp')\n"
                "except StoreHeld as error: print(error)\n"
            )
            ended = subprocess.run([sys.executable, "-c", code, place], capture_output=True, text=True, check=True)
            spent, held = ended.stdout.splitlines()
            assert float(spent) == store.open("exp").spent
            assert ("is owned by" if "postgresql" in place else "is open for writing elsewhere: by") in held
            assert "a test of holding" in held
            assert str(os.getpid()) in held
        Store(place).close()

    def test_the_same_process_is_told_too(self, tmp_path):
        with Store(tmp_path / "store.db"):
            (tmp_path / "link").symlink_to(tmp_path)
            for path in ("store.db", "link/store.db"):
                with pytest.raises(StoreHeld, match="is open for writing in this process already"):
                    Store(tmp_path / path)
        Store(tmp_path / "store.db").close()

    def test_one_of_many_threads_gets_it(self, tmp_path, monkeypatch):
        take = file_lock.acquire

        def slow(*args):
            take(*args)
            time.sleep(0.05)

        monkeypatch.setattr(file_lock, "acquire", slow)
        stores, refused = [], []

        def hold():
            try:
                stores.append(Store(tmp_path / "store.db"))
            except StoreHeld as error:
                refused.append(error)

        threads = [threading.Thread(target=hold) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert (len(stores), len(refused)) == (1, 3)
        stores[0].close()
        Store(tmp_path / "store.db").close()

    def test_a_lock_dies_with_its_process(self, place):
        code = "import sys, os; from mfbandit import Store; Store(sys.argv[1]); os.kill(os.getpid(), 9)"
        subprocess.run([sys.executable, "-c", code, place], check=False)
        Store(place).close()

    @pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
    def test_a_forked_child_is_refused_and_does_not_keep_the_lock(self, tmp_path):
        with Store(tmp_path / "store.db") as store:
            experiment = make(store)
            pipe, end = multiprocessing.Pipe()
            process = multiprocessing.get_context("fork").Process(target=_ask_in_child, args=(experiment, end))
            process.start()
            assert "was opened before this process was forked" in pipe.recv()
            child = multiprocessing.get_context("fork").Process(target=time.sleep, args=(30,))
            child.start()
        Store(tmp_path / "store.db").close()
        child.kill()
        child.join()
        process.join()

    def test_readers_change_nothing(self, place):
        with Store(place) as store:
            play_some(make(store), 5)
        with Store(place, read_only=True) as reader:
            experiment = reader.open("exp")
            assert experiment.best() >= 0
            for verb in (experiment.ask, experiment.pause, lambda: make(reader, "other")):
                with pytest.raises(NotAllowed, match="was opened read-only"):
                    verb()
            assert reader.list() == ("exp",)

    def test_readers_see_what_is_new_when_they_look_again(self, place):
        with Store(place) as store, Store(place, read_only=True) as reader:
            experiment = make(store)
            theirs = reader.open("exp")
            play_some(experiment, 3)
            assert theirs.spent == 0
            theirs.refresh()
            assert theirs.spent == experiment.spent

    def test_network_file_systems_are_refused(self, tmp_path, monkeypatch):
        monkeypatch.setattr("mfbandit.store.sqlite.file_system", lambda _: "nfs4")
        with pytest.raises(StoreError, match=r"is on a network file system \(nfs4\)"):
            Store(tmp_path / "store.db")

    def test_a_closed_store_says_so(self, tmp_path):
        store = Store(tmp_path / "store.db")
        experiment = make(store)
        store.close()
        with pytest.raises(StoreError, match="the store is closed"):
            experiment.ask()


def _ask_in_child(experiment, pipe):
    try:
        experiment.ask()
    except StoreError as error:
        pipe.send(str(error))


class TestManyThreads:
    def test_each_result_once_and_no_untouched_arm_twice(self, place):
        with Store(place) as store:
            experiment = make(store, arms=48, policy=MFUCB())
            first = []

            def work():
                for i in range(12):
                    play = experiment.ask()
                    if i < 4:
                        first.append(play.arm)
                    experiment.tell(play, 0.5)

            threads = [threading.Thread(target=work) for _ in range(12)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            asked = [event.arm for event in experiment.log if isinstance(event, Asked)]
            assert sorted(asked[:48]) == list(range(48))
            assert sum(experiment.results_at) == 144
            before = seen(experiment)
        with Store(place) as store:
            assert seen(store.open("exp")) == before

    def test_groups_are_committed_together(self, tmp_path, monkeypatch):
        """Many threads need fewer commits than they have results."""
        with Store(tmp_path / "store.db") as store:
            experiment = make(store, arms=8)
            plays = experiment.ask(200)
            commits: list[int] = []
            inner = store.writer()._commit

            def counted(group):
                deadline = time.monotonic() + 60  # a disk that takes its time, until all have come who can
                while len(group) + store.writer().waiting() < sum(thread.is_alive() for thread in threads):
                    assert time.monotonic() < deadline
                    time.sleep(0.001)
                commits.append(len(group))
                inner(group)

            monkeypatch.setattr(store.writer(), "_commit", counted)
            threads = [
                threading.Thread(target=lambda part=part: [experiment.tell(play, 0.5) for play in part])
                for part in (plays[i::20] for i in range(20))
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert sum(commits) == 200
            assert len(commits) < 100


class TestWritesThatFail:
    def test_memory_goes_back_to_what_is_on_disk(self, place, monkeypatch):
        with Store(place) as store:
            experiment = make(store)
            play_some(experiment, 3)
            play = experiment.ask()
            before = seen(experiment)
            inner = writer._append_all

            def full(connection, appends):
                inner(connection, appends)
                raise StoreUnavailable("no space left")

            monkeypatch.setattr(writer, "_append_all", full)
            with pytest.raises(StoreUnavailable, match="no space left"):
                experiment.tell(play, 0.5)
            monkeypatch.undo()
            assert seen(experiment) == before
            experiment.tell(play, 0.5)
            experiment.tell(play, 0.5)  # a result that is known is acknowledged from what is on disk
            store.check()
            after = seen(experiment)
        with Store(place) as store:
            assert seen(store.open("exp")) == after

    @pytest.mark.parametrize("queued", [False, True], ids=["being written", "still queued"])
    def test_a_repeated_request_waits_for_the_first_one(self, tmp_path, monkeypatch, queued):
        """Nothing is acknowledged before the disk has it, by whichever of two requests; what fails, fails for both."""
        with Store(tmp_path / "store.db") as store:
            experiment = make(store)
            play = experiment.ask()
            go_on, at_work, errors, inner = threading.Event(), threading.Event(), [], writer._append_all

            def stuck(connection, appends):
                at_work.set()
                go_on.wait(timeout=30)
                if not any(isinstance(record.event, Noted) for _, records in appends for record in records):
                    raise StoreUnavailable("stuck")
                inner(connection, appends)

            def attempt(verb):
                try:
                    verb()
                except StoreUnavailable as error:
                    errors.append(error)

            def start(*verbs):
                threads = [threading.Thread(target=attempt, args=(verb,)) for verb in verbs]
                for thread in threads:
                    thread.start()
                return threads

            monkeypatch.setattr(writer, "_append_all", stuck)
            threads = start(lambda: experiment.note("before")) if queued else []
            if queued:
                at_work.wait(timeout=30)
            threads += start(lambda: experiment.tell_many([(play, 0.5, None)]))
            while not sum(experiment.results_at):
                time.sleep(0.01)
            at_work.wait(timeout=30)
            again = start(
                lambda: experiment.tell(play, 0.5),
                lambda: experiment.tell_many([(play, 0.5, None)]),
            )
            time.sleep(0.1)
            assert all(thread.is_alive() for thread in again)
            go_on.set()
            for thread in [*threads, *again]:
                thread.join(timeout=30)
            assert len(errors) == 1 + len(again)

    def test_what_is_on_disk_is_acknowledged_again_after_a_failure(self, tmp_path, monkeypatch):
        with Store(tmp_path / "store.db") as store:
            experiment = make(store)
            one, two = experiment.ask(2, request_key="k")
            experiment.tell(one, 0.5)

            def full(_connection, _appends):
                raise StoreUnavailable("no space left")

            monkeypatch.setattr(writer, "_append_all", full)
            with pytest.raises(StoreUnavailable):
                experiment.tell(two, 0.5)
            experiment.tell(one, 0.5)
            assert experiment.ask(2, request_key="k") == [one, two]

    def test_a_gap_in_the_log_is_never_written(self, tmp_path):
        with Store(tmp_path / "store.db") as store:
            experiment = make(store)
            experiment._logged._folded.events += 1
            with pytest.raises(StoreUnavailable, match="event 2 came where 1 was due"):
                experiment.note("too early")
            experiment.note("in time")
            assert experiment.log == (Noted("in time"),)

    def test_the_same_key_waits_for_the_first_request(self, tmp_path, monkeypatch):
        with Store(tmp_path / "store.db") as store:
            experiment = make(store)
            go_on, inner = threading.Event(), writer._append_all

            def slow(connection, appends):
                go_on.wait(timeout=30)
                inner(connection, appends)

            monkeypatch.setattr(writer, "_append_all", slow)
            plays = []
            threads = [threading.Thread(target=lambda: plays.append(experiment.ask(request_key="k"))) for _ in range(3)]
            for thread in threads:
                thread.start()
            time.sleep(0.1)
            assert plays == []
            go_on.set()
            for thread in threads:
                thread.join(timeout=30)
            assert len(plays) == 3
            assert len(set(plays)) == 1

    def test_those_who_wait_behind_a_failed_group_are_told_too(self, tmp_path, monkeypatch):
        with Store(tmp_path / "store.db") as store:
            experiment = make(store, arms=30)
            plays = experiment.ask(30)
            calls = []

            def stuck(_connection, _appends):
                calls.append(1)
                time.sleep(0.2)
                raise StoreUnavailable("stuck")

            monkeypatch.setattr(writer, "_append_all", stuck)
            errors = []

            def tell(play):
                try:
                    experiment.tell(play, 0.5)
                except StoreUnavailable as error:
                    errors.append(error)

            threads = [threading.Thread(target=tell, args=(play,)) for play in plays]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert len(errors) == 30
            assert len(set(map(id, errors))) == 30
            monkeypatch.undo()
            assert sum(experiment.results_at) == 0
            for play in plays:
                experiment.tell(play, 0.5)
            assert sum(experiment.results_at) == 30

    @pytest.mark.parametrize("part", ["state", "leases", "recent"])
    def test_an_interrupted_verb_leaves_no_trace_in_memory(self, tmp_path, monkeypatch, part):
        with Store(tmp_path / "store.db") as store:
            experiment = make(store)
            play = experiment.ask()
            folded = experiment._logged._folded
            reducer = folded.core.folded if part == "state" else getattr(folded, part)
            whole = reducer.apply

            def interrupted(event):
                whole(event)
                raise KeyboardInterrupt

            monkeypatch.setattr(reducer, "apply", interrupted)
            with pytest.raises(KeyboardInterrupt):
                experiment.tell(play, 0.5)
            monkeypatch.undo()
            assert experiment.spent == 0
            experiment.tell(play, 0.5)
            assert experiment.spent == 1

    def test_faults_of_ours_do_not_leave_anybody_waiting(self, tmp_path, monkeypatch):
        with Store(tmp_path / "store.db") as store:
            experiment = make(store)

            def wrong(_connection, _appends):
                raise ZeroDivisionError

            monkeypatch.setattr(writer, "_append_all", wrong)
            with pytest.raises(StoreError, match="writing failed: ZeroDivisionError"):
                experiment.ask()


def test_every_commit_is_flushed(tmp_path):
    with Store(tmp_path / "store.db") as store:
        connection: Any = store._writer._connection  # type: ignore[union-attr]
        pragmas = {name: connection.query(f"PRAGMA {name}") for name in ("journal_mode", "synchronous", "foreign_keys")}
    assert pragmas == {"journal_mode": [("wal",)], "synchronous": [(2,)], "foreign_keys": [(1,)]}


def test_a_promise_holds_only_if_all_that_was_queued_is_kept(tmp_path, monkeypatch):
    with Store(tmp_path / "store.db") as store:
        queued, promise = make(store).queued()

        def full(_connection, _appends):
            raise StoreUnavailable("the disk is full")

        monkeypatch.setattr(writer, "_append_all", full)
        queued.ask()
        with pytest.raises(StoreUnavailable, match=r"full|a write before this one failed"):  # in its group, or the next
            store.open("exp").note("behind it")
        monkeypatch.undo()
        queued.note("kept")

        async def wait():
            await promise

        with pytest.raises(StoreUnavailable, match="full"):
            asyncio.run(wait())


def test_what_expired_goes_with_the_verb_that_found_it(tmp_path, monkeypatch, clock):
    """An interrupt in between leaves both out, and the next verb stands on what is on disk."""
    with Store(tmp_path / "store.db", clock=clock) as store:
        experiment = make(store, lease=10)
        experiment.ask()
        clock.now += 11

        def interrupted(*_):
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(MFUCB, "choose", interrupted)
            with pytest.raises(KeyboardInterrupt):
                experiment.ask()
        experiment.ask()
        assert [type(event) for event in experiment.log] == [Opened, Asked, Expired, Opened, Asked]
