"""What was acknowledged and is gone is said, whatever took it: a damaged or missing log, a backup, another file."""

import shutil
import sqlite3
import subprocess
import sys
import time
from contextlib import closing

import pytest

from mfbandit import Store, StoreDamaged, StoreUnavailable
from mfbandit.experiment.events import Noted
from mfbandit.store.commits import Commits
from mfbandit.store.doctor import examine
from mfbandit.store.mark import Mark, read_mark
from tests.support.stores import make, play_some, seen

# A process that dies without closing anything: all is in the write-ahead log.
DIES = """
import os, sys
from mfbandit import Store
from tests.support.stores import make, play_some
store = Store(sys.argv[1])
play_some(make(store), int(sys.argv[2]))
os.kill(os.getpid(), 9)
"""
DIES_BEFORE_THE_MARK = """
import os, sys
from mfbandit import Store
from mfbandit.store.sqlite import SQLiteConnection
from tests.support.stores import make, play_some
store = Store(sys.argv[1])
experiment = make(store)
play_some(experiment, 3)
SQLiteConnection.acknowledge = lambda *_: os.kill(os.getpid(), 9)
experiment.note("kept, and not acknowledged")
"""


def run(code, *words):
    subprocess.run([sys.executable, "-c", code, *map(str, words)], check=False)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "store.db"


@pytest.fixture
def killed(path):
    run(DIES, path, 30)
    assert path.with_name("store.db-wal").stat().st_size > 50_000
    return path


def marked(path):
    found = read_mark(path.with_name("store.db-mark"))
    assert found is not None
    return found[1]


def flip(path, at):
    data = bytearray(path.read_bytes())
    data[int(len(data) * at)] ^= 0x40
    path.write_bytes(data)


def cut(path, at):
    path.write_bytes(path.read_bytes()[: int(path.stat().st_size * at)])


def refused(path, words):
    """Both ways of opening it say the same, change nothing, and doctor finds it."""
    for read_only in (True, False, True):
        with pytest.raises(StoreDamaged, match=words):
            Store(path, read_only=read_only)
    wrong = [one.detail for one in examine(str(path)) if one.mark == "wrong"]
    assert any("acknowledged" in one for one in wrong)


class TestDamagedLog:
    """SQLite takes the first bad frame for the end."""

    @pytest.mark.parametrize("at", [0.1, 0.5, 0.9, 0.999])
    @pytest.mark.parametrize("damage", [flip, cut])
    def test_is_refused_until_the_loss_is_accepted(self, killed, damage, at):
        wal = killed.with_name("store.db-wal")
        damage(wal, at)
        left = wal.read_bytes()
        refused(killed, r"has \d+ of the \d\d events, and \d+ of the \d+ writes, that were acknowledged")
        assert wal.read_bytes() == left
        with Store(killed, accept_loss=True) as store:
            assert " events, and " in store.accepted_loss
            experiment = store.open("exp") if store.list() else make(store)
            play_some(experiment, 2)
            after = seen(experiment)
        with Store(killed) as store:
            assert store.accepted_loss == ""
            assert seen(store.open("exp")) == after

    def test_a_missing_one_does_not_make_a_new_store(self, killed):
        killed.with_name("store.db-wal").unlink()
        refused(killed, r"has 0 of the \d\d events")

    def test_all_is_well_without_damage(self, killed):
        for read_only in (True, False):
            with Store(killed, read_only=read_only) as store:
                assert sum(store.open("exp").results_at) == 30
        assert not [one for one in examine(str(killed)) if one.mark == "wrong"]


class TestOtherFile:
    def test_a_backup_is_refused_until_the_loss_is_accepted(self, path, tmp_path):
        with Store(path) as store:
            play_some(make(store), 3)
        shutil.copy(path, tmp_path / "backup.db")
        with Store(path) as store:
            play_some(store.open("exp"), 5)
            store.create_token("ci", "read")
        shutil.copy(tmp_path / "backup.db", path)
        refused(path, r"has \d of the 1\d events")
        with Store(path, accept_loss=True) as store:
            assert sum(store.open("exp").results_at) == 3

    def test_a_backup_elsewhere_opens(self, path, tmp_path):
        with Store(path) as store:
            play_some(make(store), 3)
            with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(tmp_path / "copy.db")) as copy:
                source.backup(copy)
        for read_only in (True, False):
            with Store(tmp_path / "copy.db", read_only=read_only) as store:
                assert sum(store.open("exp").results_at) == 3

    def test_another_store_is_refused(self, path, tmp_path):
        with Store(path) as store:
            play_some(make(store), 3)
        with Store(tmp_path / "other.db") as store:
            play_some(make(store), 30)
        shutil.copy(tmp_path / "other.db", path)
        refused(path, r"is not the store that was here, which acknowledged \d events")

    def test_a_copy_that_went_another_way_is_refused(self, path, tmp_path):
        with Store(path) as store:
            play_some(make(store), 3)
        shutil.copy(path, tmp_path / "copy.db")
        for one, seed in ((path, 1), (tmp_path / "copy.db", 2)):
            with Store(one) as store:
                play_some(store.open("exp"), 3, seed=seed)
        shutil.copy(tmp_path / "copy.db", path)
        refused(path, "is not the store that was here")

    def test_a_removed_one_is_not_made_again_without_a_word(self, path):
        with Store(path) as store:
            play_some(make(store), 3)
        path.unlink()
        with pytest.raises(StoreDamaged, match=r"has 0 of the \d events"):
            Store(path)
        with Store(path, accept_loss=True) as store:
            assert store.list() == ()


def note_until(deadline, experiment):
    while time.monotonic() < deadline:
        experiment.note("more")


class TestMark:
    def test_a_crash_before_it_is_set_is_no_damage(self, path):
        run(DIES_BEFORE_THE_MARK, path)
        for read_only in (True, False):
            with Store(path, read_only=read_only) as store:
                assert store.open("exp").log[-1] == Noted("kept, and not acknowledged")

    def test_is_at_or_above_all_that_was_acknowledged(self, path):
        with Store(path) as store:
            experiment = make(store)
            for number in range(1, 6):
                experiment.note(str(number))
                assert marked(path).events == number

    def test_of_a_store_without_one_is_made(self, path):
        with Store(path) as store:
            play_some(make(store), 3)
        path.with_name("store.db-mark").unlink()
        with Store(path, read_only=True) as store:
            events = store.open("exp").events
        assert not path.with_name("store.db-mark").exists()
        Store(path).close()
        assert marked(path).events == events

    @pytest.mark.parametrize("slot", [0, 4096])
    def test_survives_a_write_that_was_cut_off(self, tmp_path, slot):
        path = tmp_path / "mark"
        with Mark(path) as mark:
            mark.write("id", Commits(1, 1, 1, 1))
            mark.flush()
            mark.write("id", Commits(1, 2, 2, 2))
        data = bytearray(path.read_bytes())
        data[slot + 20 : slot + 60] = bytes(40)
        path.write_bytes(data)
        assert read_mark(path) == ("id", Commits(1, 2, 2, 2) if slot == 0 else Commits(1, 1, 1, 1))
        with Mark(path) as mark:
            mark.write("id", Commits(1, 3, 3, 3))
        assert read_mark(path) == ("id", Commits(1, 3, 3, 3))

    @pytest.mark.parametrize("data", [b"", bytes(100), bytes(8192)])
    def test_that_was_never_written_says_nothing(self, path, data):
        path.with_name("store.db-mark").write_bytes(data)
        with Store(path) as store:
            play_some(make(store), 3)
            events = store.open("exp").events
        assert marked(path).events == events

    def test_that_cannot_be_read_is_damage(self, path):
        with Store(path) as store:
            play_some(make(store), 3)
        path.with_name("store.db-mark").write_bytes(b"x" * 8192)
        for read_only in (True, False):
            with pytest.raises(StoreDamaged, match=r"store\.db-mark is damaged"):
                Store(path, read_only=read_only)
        with Store(path, accept_loss=True) as store:
            assert "store.db-mark is damaged" in store.accepted_loss
        Store(path).close()

    def test_a_write_whose_mark_fails_is_not_acknowledged_and_goes_on(self, path, monkeypatch):
        failed: list[bool] = []
        with Store(path) as store:
            experiment = make(store)
            with monkeypatch.context() as patch:

                def fail(*_):
                    failed.append(True)
                    raise OSError(5, "Input/output error")

                patch.setattr("mfbandit.store.mark._flush", fail)
                experiment.note("some")
                deadline = time.monotonic() + 60
                while not failed and time.monotonic() < deadline:
                    time.sleep(0.01)
                with pytest.raises(StoreUnavailable, match="Input/output error"):
                    note_until(deadline, experiment)  # the first one, unless it is faster than the error
            known = experiment.events
            experiment.note("last")
        with Store(path) as store:
            assert store.open("exp").events == known + 1

    def test_is_flushed_shortly_after_each_write_and_at_the_end(self, path, monkeypatch):
        """At most so many groups are ahead of it after a power cut as fit into that time."""
        flushed = []
        with Store(path) as store:
            experiment = make(store)
            monkeypatch.setattr("mfbandit.store.mark._flush", lambda _: flushed.append(marked(path).events))
            experiment.note("one")
            deadline = time.monotonic() + 30
            while flushed[-1:] != [1] and time.monotonic() < deadline:
                time.sleep(0.01)
            assert flushed[-1:] == [1]
            experiment.note("two")
        assert flushed[-1:] == [2]
