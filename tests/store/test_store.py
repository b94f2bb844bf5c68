"""Stores in a SQLite file and in PostgreSQL: what was acknowledged is there, whatever happens in between."""

import json
import multiprocessing
import os
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing
from typing import Any

import numpy as np
import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mfbandit import (
    MFUCB,
    UCB,
    Bounded,
    CapitalExhausted,
    Conflict,
    Experiment,
    ExperimentPaused,
    Fidelities,
    MFBayes,
    NotAllowed,
    Play,
    Store,
    StoreDamaged,
    StoreError,
    StoreHeld,
    StoreUnavailable,
    SubGaussian,
    UnknownExperiment,
    UnknownPlay,
    check_experiment,
)
from mfbandit.experiment import AnyExperiment
from mfbandit.experiment.events import (
    ArmSetAside,
    Asked,
    BiasRefuted,
    CapitalSet,
    Expired,
    Noted,
    Paused,
    PolicySet,
    Renewed,
    Resumed,
    Told,
)
from mfbandit.store import log_reader as logs
from mfbandit.store import sqlite, writer
from mfbandit.store.sqlite import SQLite

FID = Fidelities([1, 5, 25], [0.3, 0.1, 0], SubGaussian(0.2))
ARMS = ["a", "b", "c", "d"]


@pytest.fixture(params=["sqlite", "postgres"])
def place(request, tmp_path):
    """Where a store may be: a file, or a database of a real server."""
    if request.param == "sqlite":
        return str(tmp_path / "store.db")
    return request.getfixturevalue("postgres_url")


class Clock:
    """Time that passes when a test says so."""

    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


def make(store, name="exp", policy=None, arms=ARMS, fidelities=FID, **options):
    return store.create(name, policy or MFUCB(rho=0.5), arms=arms, fidelities=fidelities, **options)


def seen(experiment):
    """Everything that a later play can depend on, to the last bit."""
    stats = experiment.stats
    arrays = [getattr(stats, name).tolist() for name in ("counts", "sums", "squares", "pending", "active")]
    plays = [play.id for play in experiment.pending]
    return arrays, plays, experiment.spent, experiment.reserved, experiment.capital, experiment.policy, experiment.arms


def used_snapshots(store, name="exp"):
    """Up to which event the log would be read from snapshots."""
    with closing(store.read()) as connection:
        _, chain = logs.read_all(connection, logs.entry(connection, name))
    return chain.head - chain.tail_rows


def play_some(experiment, number=30, seed=0):
    rng = np.random.default_rng(seed)
    for _ in range(number):
        play = experiment.ask()
        experiment.tell(play, float(rng.random() < 0.2 + 0.2 * play.arm))


class TestContract:
    def test_stored_experiments_keep_it(self, place):
        made = 0

        def next_one(policy, arms, fidelities, capital):
            nonlocal made
            made += 1
            return store.create(f"e{made}", policy, arms=arms, fidelities=fidelities, capital=capital)

        with Store(place) as store:
            check_experiment(next_one)

    @pytest.mark.slow
    @pytest.mark.no_cover
    def test_also_when_closed_and_opened_before_every_call(self, tmp_path):
        """Whatever a stored experiment knows is on disk."""
        made = 0

        class Forgetful:
            def __init__(self, policy, arms, fidelities, capital):
                nonlocal made
                made += 1
                self.path, self.name = tmp_path / "store.db", f"e{made}"
                with Store(self.path) as store:
                    store.create(self.name, policy, arms=arms, fidelities=fidelities, capital=capital)

            def __getattr__(self, name):
                if isinstance(getattr(AnyExperiment, name), property):
                    with Store(self.path) as store:
                        return getattr(store.open(self.name), name)

                def call(*args, **options):
                    with Store(self.path) as store:
                        experiment = store.open(self.name)
                        result = getattr(experiment, name)(*args, **options)
                        result = list(result) if name == "plays" else result
                        return self if result is experiment else result

                return call

        check_experiment(Forgetful)


@settings(max_examples=40)
@given(
    st.integers(1, 5),
    st.integers(1, 3),
    st.booleans(),
    st.lists(
        st.tuples(st.sampled_from(["ask", "ask", "ask", "tell", "tell", "fail", "reopen", "wait"]), st.integers(0, 99)),
        max_size=60,
    ),
)
def test_same_plays_as_in_memory(tmp_path_factory, arms, levels, bernoulli, steps):
    """Play by play, for the same results, through reopenings and leases that run out."""
    clock = Clock()
    path = tmp_path_factory.mktemp("same") / "store.db"
    fid = Fidelities(
        [3.0**m for m in range(levels)],
        [*[0.5**m for m in range(1, levels)], 0.0],
        Bounded(0, 1) if bernoulli else SubGaussian(0.3),
    )
    store = Store(path, clock=clock)
    ours, plain = make(store, arms=arms, fidelities=fid, lease=10), Experiment(MFUCB(0.5), arms=arms, fidelities=fid)
    waiting: list[tuple[Play, Play]] = []
    for verb, number in steps:
        clock.now += 1
        if verb == "reopen":
            store.close()
            store = Store(path, clock=clock)
            ours = store.open("exp")
        elif verb == "wait":
            clock.now += 20
            ours.expire()
            for _, theirs in waiting:
                plain.fail(theirs)
            waiting = []
        elif verb == "ask" or not waiting:
            if plain.state != "running":
                break
            waiting.append((ours.ask(), plain.ask()))
            assert (waiting[-1][0].arm, waiting[-1][0].fidelity) == (waiting[-1][1].arm, waiting[-1][1].fidelity)
            ours.renew(waiting[-1][0], lease=1e6)
            ours.renew(waiting[-1][0])
        else:
            play, theirs = waiting.pop(number % len(waiting))
            reward = float(number % 2) if bernoulli else number / 100
            for experiment, one in ((ours, play), (plain, theirs)):
                experiment.tell(one, reward) if verb == "tell" else experiment.fail(one)
        waiting = [pair for pair in waiting if pair[0].id in {play.id for play in ours.pending}]
    assert [getattr(ours.stats, x).tolist() for x in ("counts", "sums", "squares")] == [
        getattr(plain.stats, x).tolist() for x in ("counts", "sums", "squares")
    ]
    store.close()


class TestReopening:
    def test_everything_is_as_it_was(self, place):
        with Store(place) as store:
            experiment = make(store, capital=5000)
            play_some(experiment)
            experiment.ask(3)
            experiment.add_arm("e")
            experiment.retire_arm("a")
            experiment.set_capital(6000)
            experiment.set_policy(UCB(rho=1))
            experiment.note("halfway")
            experiment.pause()
            before, log = seen(experiment), experiment.log
        with Store(place) as store:
            again = store.open("exp")
            assert seen(again) == before
            assert again.log == log
            assert again.paused
            assert {type(event) for event in log} >= {Asked, Told, CapitalSet, PolicySet, Noted, Paused}

    @pytest.mark.parametrize("policy", [MFUCB(rho=0.5), MFBayes()])
    def test_later_plays_do_not_depend_on_it(self, tmp_path, policy):
        with Store(tmp_path / "one.db") as one, Store(tmp_path / "two.db") as two:
            straight, broken = make(one, policy=policy), make(two, policy=policy)
            play_some(straight, 80)
            play_some(broken, 40)
        with Store(tmp_path / "two.db") as two:
            broken = two.open("exp")
            rng = np.random.default_rng(0)
            rng.random(40)
            for _ in range(40):
                play = broken.ask()
                broken.tell(play, float(rng.random() < 0.2 + 0.2 * play.arm))
            assert [event for event in broken.log if isinstance(event, Asked)] == [
                event
                for event in Store(tmp_path / "one.db", read_only=True).open("exp").log
                if isinstance(event, Asked)
            ]

    def test_zeros_with_a_sign_are_no_damage(self, place):
        """SQLite keeps -0.0 as 0.0: a digest over the sign would not fit what is read back."""
        with Store(place) as store:
            exp = make(store)
            exp.tell(exp.ask(), -0.0)
            exp.tell(exp.ask(), 1.0, cost=-0.0)
            exp.fail(exp.ask(), cost=-0.0)
            exp.add_results([(0, 0, -0.0, -0.0)])
            before = seen(exp)
        with Store(place) as store:
            assert seen(store.open("exp")) == before
            assert store.open("exp").log

    def test_from_snapshots_and_from_rows_alone(self, place, monkeypatch):
        monkeypatch.setattr(writer, "SNAPSHOT_EVERY", 20)
        with Store(place) as store:
            experiment = make(store)
            play_some(experiment, 50)
            experiment.note("with a text")
            play_some(experiment, 50)
            before = seen(experiment)
            with closing(store.read()) as connection:
                assert len(connection.query("SELECT upto FROM mfbandit_snapshots")) >= 5
        with Store(place) as store:
            assert seen(store.open("exp")) == before
            play_some(store.open("exp"), 50)  # snapshots go on from the right place
            before = seen(store.open("exp"))
            store._write(lambda connection: connection.run("DELETE FROM mfbandit_snapshots"))
        with Store(place) as store:
            assert seen(store.open("exp")) == before

    def test_a_damaged_snapshot_is_left_out_and_made_anew(self, tmp_path, monkeypatch):
        monkeypatch.setattr(writer, "SNAPSHOT_EVERY", 20)
        path = tmp_path / "store.db"
        with Store(path) as store:
            play_some(make(store), 50)
            before = seen(store.open("exp"))
        with sqlite3.connect(path) as connection:
            connection.execute("UPDATE mfbandit_snapshots SET packed = x'00' WHERE upto < 50")
        with Store(path) as store:
            assert seen(store.open("exp")) == before
            play_some(store.open("exp"), 1)
            before = seen(store.open("exp"))
        rows = sqlite3.connect(path).execute("SELECT upto, length(packed) FROM mfbandit_snapshots").fetchall()
        assert len(rows) == 1
        assert rows[0][1] > 10
        with Store(path) as store:
            assert seen(store.open("exp")) == before

    def test_snapshots_follow_each_other_and_others_are_left_out(self, place, monkeypatch):
        monkeypatch.setattr(writer, "SNAPSHOT_EVERY", 20)
        with Store(place) as store:
            play_some(make(store), 50)
            before = seen(store.open("exp"))
            assert used_snapshots(store) == 100
            connection: Any = store._writer._connection  # type: ignore[union-attr]
            ((first,),) = connection.query("SELECT packed FROM mfbandit_snapshots WHERE upto = 20")
            # Bytes that can be read, and are those of other events.
            connection.run("UPDATE mfbandit_snapshots SET packed = ? WHERE upto = 40", (first,))
            assert used_snapshots(store) == 20
        with Store(place) as store:
            assert seen(store.open("exp")) == before
            play_some(store.open("exp"), 10)
            assert used_snapshots(store) >= 100

    def test_a_concentration_of_ones_own_has_to_be_passed_in(self, tmp_path):
        class Own(SubGaussian):
            pass

        fid = Fidelities([1], concentration=Own(0.5))
        with Store(tmp_path / "store.db") as store:
            make(store, fidelities=fid).ask()
        with Store(tmp_path / "store.db") as store:
            with pytest.raises(
                ValueError, match=r"experiment 'exp' in .* cannot be opened: concentration must be one of"
            ):
                store.open("exp")
            assert store.open("exp", fidelities=fid).pending[0].arm == 0


class TestDamage:
    @pytest.mark.parametrize(
        "change",
        [
            "UPDATE mfbandit_log SET reward = 0.75 WHERE seq = 4",
            "UPDATE mfbandit_log SET play = 'x' WHERE seq = 4",
            "UPDATE mfbandit_log SET kind = 'Tld' WHERE seq = 4",
            "UPDATE mfbandit_log SET time = time + 1 WHERE seq = 4",
            "UPDATE mfbandit_log SET request = 'k' WHERE seq = 4",
            "DELETE FROM mfbandit_log WHERE seq = 4",
            "DELETE FROM mfbandit_log WHERE seq > 50",
            "UPDATE mfbandit_experiments SET head = head - 1",
            "UPDATE mfbandit_experiments SET head = 'x'",
            "UPDATE mfbandit_experiments SET digest = digest + 1",
            "UPDATE mfbandit_experiments SET definition = replace(definition, '0.3', '0.4')",
            "UPDATE mfbandit_experiments SET name = 'exp2'",
            "DROP TABLE mfbandit_tokens",
            "UPDATE mfbandit_store SET value = 'x' WHERE key = 'schema'",
        ],
    )
    def test_nothing_that_was_changed_goes_unnoticed(self, tmp_path, change):
        path = tmp_path / "store.db"
        with Store(path) as store:
            play_some(make(store))
        with sqlite3.connect(path) as connection:
            connection.execute(change)
        for read_only in (True, False):
            with pytest.raises(StoreDamaged, match="damaged"), Store(path, read_only=read_only) as store:
                store.open(store.list()[0])

    def test_export_reads_rows_that_snapshots_cover(self, tmp_path, monkeypatch):
        monkeypatch.setattr(writer, "SNAPSHOT_EVERY", 20)
        path = tmp_path / "store.db"
        with Store(path) as store:
            play_some(make(store))
        with sqlite3.connect(path) as connection:
            connection.execute("UPDATE mfbandit_log SET reward = 0.75 WHERE seq = 4")
        with Store(path) as store:
            experiment = store.open("exp")  # the state is right
            with pytest.raises(StoreDamaged, match="the log of experiment 'exp' is damaged"):
                list(experiment.records())

    def test_a_page_of_the_log_is_what_was_folded(self, tmp_path, monkeypatch):
        monkeypatch.setattr(writer, "SNAPSHOT_EVERY", 20)
        path = tmp_path / "store.db"
        with Store(path) as store:
            play_some(make(store))
        with sqlite3.connect(path) as connection:
            connection.execute("UPDATE mfbandit_log SET reward = 0.75 WHERE seq = 4")
        with Store(path) as store:
            assert len(store.open("exp").page(4, 10)) == 10
            with pytest.raises(StoreDamaged, match="event 4 is not the one that was written"):
                store.open("exp").page(0, 10)

    @pytest.mark.parametrize(
        "change",
        [
            "DELETE FROM mfbandit_log WHERE seq = 4",
            "DELETE FROM mfbandit_log WHERE seq = 10",
            "UPDATE mfbandit_log SET play = 1000000 WHERE seq = 4",
            "UPDATE mfbandit_log SET play = -1 WHERE seq = 3",
        ],
    )
    def test_a_page_of_the_log_has_no_gap(self, tmp_path, monkeypatch, change):
        monkeypatch.setattr(writer, "SNAPSHOT_EVERY", 20)
        path = tmp_path / "store.db"
        with Store(path) as store:
            play_some(make(store), 20)
        with sqlite3.connect(path) as connection:
            connection.execute(change)
        with Store(path) as store:
            experiment = store.open("exp")
            assert [record.seq for record in experiment.page(20, 10)] == list(range(21, 31))
            assert [record.seq for record in experiment.page(35, 10)] == list(range(36, 41))
            assert experiment.page(40, 10) == []
            assert experiment.page(1000, 10) == []
            with pytest.raises(StoreDamaged, match=r"are missing|is not the one that was written"):
                experiment.page(0, 10)

    def test_a_reader_that_could_not_read_again_does_not_go_on_from_nothing(self, tmp_path, monkeypatch):
        monkeypatch.setattr(writer, "SNAPSHOT_EVERY", 5)
        path = tmp_path / "store.db"
        with Store(path) as store:
            make(store).note("hello")
            play_some(store.open("exp"), 10)
        with Store(path, read_only=True) as store:
            experiment = store.open("exp")
            with sqlite3.connect(path) as connection:
                connection.execute("UPDATE mfbandit_log SET body = '{}' WHERE seq = 1")
            with pytest.raises(StoreDamaged):
                experiment.refresh()
            with pytest.raises(StoreDamaged):
                experiment.spent  # noqa: B018 - reading is what fails

    def test_a_file_that_was_emptied_is_not_a_new_store(self, tmp_path):
        path = tmp_path / "store.db"
        path.touch()
        with Store(path) as store:  # one that was always empty is
            make(store)
        path.write_bytes(b"")
        with pytest.raises(StoreDamaged, match="is empty, and was a store before"):
            Store(path)

    def test_newer_stores_are_refused(self, place):
        with Store(place) as store:
            change = "UPDATE mfbandit_store SET value = '2' WHERE key = 'schema'"
            store._write(lambda connection: connection.run(change))
        for read_only in (True, False):
            with pytest.raises(StoreError, match=r"newer mfbandit \(schema 2, this one knows 1\): upgrade"):
                Store(place, read_only=read_only)

    def test_what_is_no_store(self, tmp_path):
        other = tmp_path / "other.txt"
        other.write_text("hello " * 1000)
        with pytest.raises(StoreDamaged, match="is no SQLite database"):
            Store(other)
        assert other.read_text() == "hello " * 1000
        with pytest.raises(StoreError, match=r"Store not found"):
            Store(tmp_path / "none.db", read_only=True)
        with pytest.raises(StoreError, match=r"Folder not found"):
            Store(tmp_path / "no" / "none.db")
        with pytest.raises(StoreError, match=r"is a folder, not a store file"):
            Store(tmp_path)
        for nonsense in ("", ":memory:", "mysql://x/y", 5):
            with pytest.raises((ValueError, TypeError), match=r"a store must be a file or|expected str"):
                Store(nonsense)  # type: ignore[arg-type]

    def test_other_peoples_tables_are_left_alone(self, tmp_path):
        path = tmp_path / "shared.db"
        with sqlite3.connect(path) as connection:
            connection.execute("CREATE TABLE theirs (a)")
            connection.execute("INSERT INTO theirs VALUES (1)")
        with Store(path) as store:
            make(store)
        assert sqlite3.connect(path).execute("SELECT a FROM theirs").fetchall() == [(1,)]


class TestOneWriter:
    def test_another_process_is_told_who_holds_it_and_may_read(self, place):
        with Store(place, purpose="a test of holding") as store:
            play_some(make(store), 5)
            code = (
                "import sys; from mfbandit import Store, StoreHeld\n"
                "reader = Store(sys.argv[1], read_only=True).open('exp'); print(reader.spent)\n"
                "try: Store(sys.argv[1])\n"
                "except StoreHeld as error: print(error)\n"
            )
            ended = subprocess.run([sys.executable, "-c", code, place], capture_output=True, text=True, check=True)
            spent, held = ended.stdout.splitlines()
            assert float(spent) == store.open("exp").spent
            assert "is open for writing elsewhere: by" in held
            assert "a test of holding" in held
            assert str(os.getpid()) in held
        Store(place).close()

    def test_the_same_process_is_told_too(self, tmp_path):
        with Store(tmp_path / "store.db"):
            (tmp_path / "link.db").symlink_to(tmp_path / "store.db")
            for path in ("store.db", "link.db"):
                with pytest.raises(StoreHeld, match="is open for writing in this process already"):
                    Store(tmp_path / path)
        Store(tmp_path / "store.db").close()

    def test_one_of_many_threads_gets_it(self, tmp_path, monkeypatch):
        take = sqlite._acquire

        def slow(*args):
            take(*args)
            time.sleep(0.05)

        monkeypatch.setattr(sqlite, "_acquire", slow)
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
            commits = []
            inner = store.writer()._commit

            def counted(group):
                time.sleep(0.005)  # a disk that takes its time, on any machine
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


class TestLeases:
    def test_a_play_is_taken_back_and_takes_one_late_result(self, place, clock):
        with Store(place, clock=clock) as store:
            experiment = make(store, capital=30, lease=60)
            late = experiment.ask()
            clock.now += 60
            again = experiment.ask()
            assert (again.arm, again.id != late.id) == (late.arm, True)
            assert [type(event) for event in experiment.log] == [Asked, Expired, Asked]
            experiment.tell(late, 0.5)
            experiment.tell(late, 0.5)
            with pytest.raises(Conflict, match="already has the outcome Told"):
                experiment.tell(late, 0.6)
            assert (experiment.spent, experiment.reserved) == (1.0, 1.0)
            before = seen(experiment)
        with Store(place, clock=clock) as store:
            assert seen(store.open("exp")) == before

    def test_leases_run_on_while_nobody_has_the_store_open(self, place, clock):
        with Store(place, clock=clock) as store:
            play = make(store, lease=60).ask()
            longer = store.open("exp").ask(lease=500)
            for_ever = make(store, "other", lease=None).ask()
        clock.now += 100
        with Store(place, clock=clock) as store:
            experiment = store.open("exp")
            experiment.expire()
            assert [one.id for one in experiment.pending] == [longer.id]
            assert list(experiment.leases) == [longer.id]
            assert [one.id for one in store.open("other").pending] == [for_ever.id]
            experiment.fail(play, cost=0.5)
            with pytest.raises(Conflict, match="already has the outcome Failed"):
                experiment.tell(play, 0.5)

    def test_renewing(self, place, clock):
        with Store(place, clock=clock) as store:
            experiment = make(store, lease=60)
            play = experiment.ask()
            clock.now += 50
            assert experiment.renew(play) == clock.now + 60
        with Store(place, clock=clock) as store:
            experiment = store.open("exp")
            clock.now += 50
            experiment.expire()
            assert len(experiment.pending) == 1
            clock.now += 11
            with pytest.raises(Conflict, match="only a pending play can be renewed, got Expired"):
                experiment.renew(play)
            assert Renewed in {type(event) for event in experiment.log}
            assert experiment.renew(experiment.ask(), lease=1e9) == clock.now + 1e9

    def test_the_end_of_a_lease_that_was_renewed_is_no_end(self, place, clock):
        with Store(place, clock=clock) as store:
            experiment = make(store, lease=10)
            play = experiment.ask()
            experiment.renew(play, lease=100)
            clock.now += 50
            experiment.expire()
            experiment.ask()
            assert play in experiment.pending
            experiment.add_results([(0, 0, 0.5, None)])
            *_, asked, _ = experiment.records()
            assert asked.due is None
        with Store(place, clock=clock) as store:
            store.open("exp").ask()
            assert play in store.open("exp").pending
            clock.now += 51
            store.open("exp").expire()
            assert play not in store.open("exp").pending

    def test_three_in_a_row_set_an_arm_aside(self, tmp_path, clock):
        with Store(tmp_path / "store.db", clock=clock) as store:
            experiment = make(store, lease=60)
            experiment.ask()
            for _ in range(3):
                clock.now += 61
                arm = experiment.ask().arm
            assert arm == 1
            assert experiment.set_aside == (0,)
            assert ArmSetAside(0) in experiment.log

    @pytest.mark.parametrize("lease", [0, -1, float("nan"), float("inf"), "x"])
    def test_must_be_positive(self, tmp_path, lease):
        with Store(tmp_path / "store.db") as store:
            with pytest.raises(ValueError, match="lease must be"):
                make(store, lease=lease)
            with pytest.raises(ValueError, match="lease must be"):
                make(store).ask(lease=lease)
            assert store.open("exp").pending == ()


class TestRequestKeys:
    def test_the_same_key_gives_the_same_plays(self, place):
        with Store(place) as store:
            experiment = make(store)
            one, three = experiment.ask(request_key="k1"), experiment.ask(3, request_key="k3")
            assert experiment.ask(request_key="k1") == one
            assert experiment.ask(3, request_key="k3") == three
            experiment.tell(one, 0.5)
        with Store(place) as store:
            experiment = store.open("exp")
            assert experiment.ask(request_key="k1") == one
            assert experiment.ask(3, request_key="k3") == three
            assert experiment.ask().id not in {play.id for play in [one, *three]}

    def test_also_for_arms_notes_imports_and_experiments(self, place):
        with Store(place) as store:
            for _ in range(2):
                experiment = make(store, request_key="c")
                assert experiment.add_arm("e", request_key="a") == 4
                experiment.note("once", request_key="n")
                plays = experiment.add_results([("a", 0, 0.5, None)] * 3, request_key="i")
                assert [play.id[-2:] for play in plays] == ["-0", "-1", "-2"]
            assert experiment.log.count(Noted("once")) == 1
            assert sum(experiment.results_at) == 3
            with pytest.raises(Conflict, match="Experiment 'exp' already exists"):
                make(store, request_key="another")
            with pytest.raises(Conflict, match="was already used for another request"):
                experiment.ask(request_key="n")

    def test_a_request_that_was_refused_may_be_tried_again(self, tmp_path):
        with Store(tmp_path / "store.db") as store:
            experiment = make(store, capital=1)
            play = experiment.ask(request_key="k")
            with pytest.raises(CapitalExhausted):
                experiment.ask(request_key="k2")
            experiment.fail(play)
            assert experiment.ask(request_key="k2").arm == 0

    def test_old_keys_are_forgotten_unless_their_plays_are_under_way(self, tmp_path, monkeypatch):
        monkeypatch.setattr("mfbandit._internal.limits.REQUEST_KEYS_KEPT", 10)
        with Store(tmp_path / "store.db") as store:
            experiment = make(store)
            kept = experiment.ask(request_key="kept")
            for i in range(60):
                experiment.tell(experiment.ask(request_key=f"k{i}"), 0.5)
            assert len(experiment._logged._folded.requests.known) <= 21
            assert experiment.ask(request_key="kept") == kept
        with Store(tmp_path / "store.db") as store:
            assert store.open("exp").ask(request_key="kept") == kept

    def test_leases_that_ran_out_are_no_part_of_the_request_that_found_them(self, place, clock):
        with Store(place, clock=clock) as store:
            experiment = make(store, lease=10)
            experiment.ask(3)
            clock.now += 20
            plays = experiment.ask(2, request_key="k")
            assert experiment.ask(2, request_key="k") == plays
        with Store(place, clock=clock) as store:
            assert store.open("exp").ask(2, request_key="k") == plays
            requests = {type(record.event): record.request for record in store.open("exp").records()}
            assert requests == {Asked: "k", Expired: None}

    def test_an_import_of_many_results_is_one_request(self, place, monkeypatch):
        """Requests are counted, not their events: a long file that is read again adds nothing."""
        monkeypatch.setattr("mfbandit._internal.limits.REQUEST_KEYS_KEPT", 10)
        parts = [[(arm % 4, fidelity, 0.9 * fidelity, None) for arm in range(8) for fidelity in (0, 2)]] * 8
        with Store(place) as store:
            for i, part in enumerate(parts):
                made = make(store, request_key="c").add_results(part, request_key=f"part {i}")
            before = seen(store.open("exp"))
            assert any(isinstance(event, BiasRefuted) for event in store.open("exp").log)
        with Store(place) as store:
            experiment = store.open("exp")
            for i, part in enumerate(parts):
                again = experiment.add_results(part, request_key=f"part {i}")
                assert len(again) == len(part)
            assert again == made
            assert seen(experiment) == before

    def test_old_requests_of_plays_under_way_are_whole(self, place, monkeypatch):
        monkeypatch.setattr("mfbandit._internal.limits.REQUEST_KEYS_KEPT", 5)
        with Store(place) as store:
            experiment = make(store)
            three = experiment.ask(3, request_key="three")
            experiment.tell_many([(play, 0.5, None) for play in three[:2]])
            for i in range(20):
                experiment.tell(experiment.ask(request_key=f"k{i}"), 0.5)
        with Store(place) as store:
            assert store.open("exp").ask(3, request_key="three") == three

    @pytest.mark.parametrize("key", ["", "x" * 201, "ü", "a\nb", 5])
    def test_must_be_short_and_plain(self, tmp_path, key):
        with Store(tmp_path / "store.db") as store, pytest.raises(ValueError, match="request_key must be 1 to 200"):
            make(store).ask(request_key=key)


class TestEvents:
    def test_pausing(self, place):
        with Store(place) as store:
            experiment = make(store)
            play = experiment.ask()
            experiment.pause()
            experiment.pause()
            with pytest.raises(ExperimentPaused, match="The experiment is paused"):
                experiment.ask()
            experiment.tell(play, 0.5)
            experiment.resume()
            experiment.resume()
            experiment.ask()
            assert [type(event) for event in experiment.log] == [Asked, Paused, Told, Resumed, Asked]

    def test_each_has_a_time(self, tmp_path, clock):
        with Store(tmp_path / "store.db", clock=clock) as store:
            experiment = make(store)
            experiment.note("first")
            clock.now += 5
            experiment.note("second")
            assert [(record.seq, record.time) for record in experiment.records()] == [(1, 1000.0), (2, 1005.0)]
            assert [record.seq for record in experiment.records(after=1)] == [2]
            assert [record.seq for record in experiment.page(0, 1)] == [1]

    def test_capital(self, place):
        with Store(place) as store:
            experiment = make(store, capital=2)
            experiment.ask(2)
            assert experiment.state == "exhausted"
            with pytest.raises(ValueError, match="capital must cover the 2 that is spent or reserved already, got 1"):
                experiment.set_capital(1)
            experiment.set_capital(3)
            experiment.set_capital(3)
            experiment.ask()
            experiment.set_capital(None)
            assert [event for event in experiment.log if isinstance(event, CapitalSet)] == [
                CapitalSet(3.0),
                CapitalSet(None),
            ]

    def test_results_from_elsewhere_are_taken_together_or_not_at_all(self, place):
        with Store(place) as store:
            experiment = make(store)
            for bad in [("x", 0, 0.5, None), ("a", 3, 0.5, None), ("a", 0, float("nan"), None), ("a", 0, 0.5, -1)]:
                with pytest.raises(ValueError, match=r"must"):
                    experiment.add_results([("a", 0, 0.5, None), bad])
            assert experiment.events == 0
            experiment.add_results([("b", 1, 0.5, None), ("b", 0, 0.5, 0.0)])
            assert (experiment.spent, experiment.results_at) == (5.0, [1, 1, 0])
            assert experiment.ask().label == "a"

    def test_many_results_are_taken_together_or_not_at_all(self, place):
        with Store(place) as store:
            experiment = make(store)
            one, two = experiment.ask(2)
            with pytest.raises(UnknownPlay):
                experiment.tell_many([(one, 0.5, None), ("nobody-0", 0.5, None)])
            with pytest.raises(Conflict, match="was told twice"):
                experiment.tell_many([(one, 0.5, None), (one, 0.6, None)])
            assert experiment.events == 2
            experiment.tell_many([(one, 0.5, None), (one, 0.5, None), (two, 0.25, 2.0)])
            assert experiment.spent == 3.0

    def test_what_is_handed_in_may_be_made_on_the_way(self, tmp_path):
        """Plays are asked for while results are collected: that must not wait for a disk that waits for it."""
        store = Store(tmp_path / "store.db")
        exp = make(store, capital=40)

        def work():
            exp.tell_many((play, 0.5, None) for play in exp.plays())
            exp.set_capital(None)
            exp.renew_many(exp.ask() for _ in range(2))
            exp.fail_many(exp.ask() for _ in range(2))
            exp.add_results((exp.ask().arm, 0, 0.5, 0.0) for _ in range(2))

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        thread.join(timeout=30)
        assert not thread.is_alive()
        assert (len(exp.pending), len(exp.history.arms) > 2) == (4, True)
        store.close()

    def test_json_of_a_stored_experiment_goes_on_in_memory(self, tmp_path):
        with Store(tmp_path / "store.db") as store:
            experiment = make(store)
            play_some(experiment)
            copy = Experiment.from_json(experiment.to_json())
            assert json.loads(copy.to_json())["log"] == json.loads(experiment.to_json())["log"]
            assert (copy.ask().arm, copy.ask().fidelity) == (experiment.ask().arm, experiment.ask().fidelity)


class TestStore:
    def test_names(self, place):
        with Store(place) as store:
            for name in ("", "a/b", "../x", "-a", "a" * 65, "ä", "a b", "a'; DROP TABLE mfbandit_log; --", 5, "a\n"):
                with pytest.raises(ValueError, match="an experiment's name must be"):
                    make(store, name)
            make(store, "a" * 64)
            assert store.list() == ("a" * 64,)
            with pytest.raises(UnknownExperiment, match=r"Experiment not found: .*the store has aaaa"):
                store.open("ads")

    def test_deleting_needs_the_name_again(self, place):
        with Store(place) as store:
            make(store, "one")
            play_some(make(store, "two"), 3)
            with pytest.raises(ValueError, match="To delete 'two', pass confirm='two'"):
                store.delete("two", confirm="one")
            two = store.open("two")
            store.delete("two", confirm="two")
            assert store.list() == ("one",)
            with pytest.raises(UnknownExperiment, match="experiment 'two' was deleted"):
                two.ask()
            with pytest.raises(UnknownExperiment):
                store.delete("two", confirm="two")
            assert make(store, "two").events == 0

    def test_experiments_do_not_touch_each_other(self, place):
        with Store(place) as store:
            one, two = make(store, "one"), make(store, "two")
            play_some(one, 10)
            assert two.events == 0
            with pytest.raises(UnknownPlay):
                two.tell(one.ask(), 0.5)

    def test_nothing_is_appended_to_an_experiment_that_is_gone(self, place):
        with Store(place) as store:
            experiment = make(store)
            store._write(lambda connection: connection.run("DELETE FROM mfbandit_experiments"))
            with pytest.raises(StoreError):
                experiment.ask()
            with pytest.raises(UnknownExperiment):
                experiment.ask()

    def test_one_of_many_who_make_the_same_experiment_succeeds(self, place):
        with Store(place) as store:
            outcomes = []

            def one():
                try:
                    make(store)
                    outcomes.append("made")
                except Conflict:
                    outcomes.append("conflict")

            threads = [threading.Thread(target=one) for _ in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert sorted(outcomes) == ["conflict"] * 7 + ["made"]

    def test_open_gives_the_same_object_to_all(self, tmp_path):
        with Store(tmp_path / "store.db") as store:
            assert make(store) is store.open("exp")

    def test_texts_of_all_kinds_come_back(self, place):
        labels = ["<script>alert(1)</script>", "'; DROP TABLE x; --", "مرحبا", "😀" * 50, "\u0000", "\ud800", " "]
        with Store(place) as store:
            experiment = make(store, arms=labels)
            experiment.note("".join(labels))
        with Store(place) as store:
            assert store.open("exp").arms == tuple(labels)
            assert store.open("exp").log == (Noted("".join(labels)),)

    def test_tokens(self, place):
        with Store(place) as store:
            text = store.create_token("ci", "write")
            assert store.token(text).allows("read")  # type: ignore[union-attr]
            assert store.token(text[:-1] + ("a" if text[-1] != "a" else "b")) is None
            assert store.token("") is None
            with pytest.raises(ValueError, match="scope must be one of read, write, admin"):
                store.create_token("ci", "root")
            ((name, token),) = store.tokens().items()
            assert text not in repr(token)
            with pytest.raises(ValueError, match="Token not found"):
                store.revoke_token("nope")
            store.revoke_token(name)
            assert store.token(text) is None


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

    def test_a_lost_connection_may_have_let_somebody_else_write(self, postgres_url):
        with Store(postgres_url) as store:
            one, two = make(store, "one"), make(store, "two")
            play = one.ask()
            with psycopg.connect(postgres_url, autocommit=True) as other:
                other.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_locks JOIN pg_database ON database = pg_database.oid "
                    "WHERE locktype = 'advisory' AND datname = current_database()"
                )
            with pytest.raises(StoreUnavailable):
                one.tell(play, 0.5)
            assert two.spent == 0
            with Store(postgres_url) as meanwhile:
                meanwhile.open("two").tell(meanwhile.open("two").ask(), 0.5)
            with pytest.raises(StoreUnavailable, match="is back: try again"):
                one.tell(play, 0.5)
            one.tell(play, 0.5)
            assert (one.spent, two.spent) == (1, 1)

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


@pytest.mark.slow
@pytest.mark.no_cover
def test_a_hundred_thousand_results_are_taken_up_again(tmp_path):
    """From snapshots of the usual size; how long it takes is for benchmarks."""
    rng = np.random.default_rng(0)
    n = 100_000
    arms, levels, rewards = rng.integers(50, size=n).tolist(), rng.integers(3, size=n).tolist(), rng.random(n).tolist()
    with Store(tmp_path / "store.db") as store:
        experiment = make(store, arms=50)
        experiment.add_results(zip(arms, levels, rewards, [None] * n, strict=True))
        before = seen(experiment)
    with Store(tmp_path / "store.db") as store:
        assert seen(store.open("exp")) == before


def test_paths_with_odd_characters(tmp_path):
    for name in ("a b?c#d%20.db", "ünïcode 😀.db"):
        with Store(tmp_path / name) as store:
            make(store)
        assert Store(tmp_path / name, read_only=True).list() == ("exp",)
    assert SQLite(tmp_path / "x.db").name.endswith("x.db")


def test_every_commit_is_flushed(tmp_path):
    with Store(tmp_path / "store.db") as store:
        connection: Any = store._writer._connection  # type: ignore[union-attr]
        pragmas = {name: connection.query(f"PRAGMA {name}") for name in ("journal_mode", "synchronous", "foreign_keys")}
    assert pragmas == {"journal_mode": [("wal",)], "synchronous": [(2,)], "foreign_keys": [(1,)]}
