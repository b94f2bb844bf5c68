"""The files of a store: one name, one owner, and still those that are open."""

import os
import stat
import subprocess
import sys
import time
from contextlib import contextmanager

import pytest

from mfbandit import Store, StoreDamaged, StoreError, StoreUnavailable
from mfbandit.errors import InvalidArgument
from mfbandit.store import file_lock
from mfbandit.store.doctor import examine
from tests.support.services import create, served, talking
from tests.support.stores import make, play_some, seen

# Another process that tries to write; it says what became of it.
WRITES = """
import sys
from mfbandit import Store, StoreError
try:
    with Store(sys.argv[1]) as store:
        store.open("exp").note("from elsewhere")
        print("wrote")
except StoreError as error:
    print(type(error).__name__, error)
"""
FILES = ["store.db", "store.db-mark", "store.db-shm", "store.db-wal", "store.db-writer"]


def elsewhere(path):
    return subprocess.run([sys.executable, "-c", WRITES, str(path)], capture_output=True, text=True, check=True).stdout


@pytest.fixture
def path(tmp_path):
    return tmp_path / "store.db"


BACKUP = "import sqlite3, sys; one, two = map(sqlite3.connect, sys.argv[1:]); one.backup(two)"


def copy_of(store, path):
    """Make a backup, as `.backup` does."""
    subprocess.run([sys.executable, "-c", BACKUP, store.name, str(path)], check=True)


# A file that is replaced or removed while it is open


def replace(path, backup):
    backup.replace(path)


def remove(path, _backup):
    path.unlink()


def rename_folder(path, _backup):
    path.parent.rename(path.parent.with_name("moved"))


@pytest.mark.parametrize("change", [replace, remove, rename_folder])
class TestReplaced:
    def test_nothing_is_acknowledged_any_more(self, tmp_path, change):
        (tmp_path / "folder").mkdir()
        path = tmp_path / "folder" / "store.db"
        with Store(path) as store:
            experiment = make(store)
            play = experiment.ask()
            copy_of(store, path.with_name("backup.db"))
            experiment.tell(play, 0.5)
            change(path, path.with_name("backup.db"))
            verbs = (
                experiment.ask,
                lambda: experiment.tell(play, 0.5),  # known already
                experiment.resume,
                store.check,
                lambda: store.create_token("ci", "read"),
            )
            for verb in verbs * 2:
                with pytest.raises(StoreError, match=r"replaced or removed|Store not found") as caught:
                    verb()
                assert isinstance(caught.value, StoreUnavailable) or "not found" in str(caught.value)

    def test_the_service_says_so(self, tmp_path, change):
        (tmp_path / "folder").mkdir()
        path = tmp_path / "folder" / "store.db"
        with served(path) as service, talking(service.url) as client:
            create(client, "ads")
            with Store(path, read_only=True) as store:
                copy_of(store, path.with_name("backup.db"))
            play = client.post("/api/experiments/ads/ask", json={}).json()["plays"][0]["id"]
            change(path, path.with_name("backup.db"))
            body = {"results": [{"play": play, "reward": 0.5}]}
            answer = client.post("/api/experiments/ads/tell", json=body)
            assert answer.status_code == 503
            assert "was replaced or removed" in answer.json()["detail"]
            time.sleep(1.1)  # a check that was made before counts for a second
            assert client.get("/health").status_code == 503


class TestPutBack:
    def test_the_same_file_is_good_again(self, path, tmp_path):
        with Store(path) as store:
            experiment = make(store)
            play = experiment.ask()
            path.rename(tmp_path / "away.db")
            with pytest.raises(StoreUnavailable, match="was replaced or removed"):
                experiment.tell(play, 0.5)
            (tmp_path / "away.db").rename(path)
            experiment.tell(play, 0.5)
            experiment.note("goes on")
            after = seen(experiment)
        with Store(path) as store:
            assert seen(store.open("exp")) == after

    @pytest.mark.parametrize("file", FILES[1:])
    def test_each_file_counts(self, path, tmp_path, file):
        with Store(path) as store:
            experiment = make(store)
            (tmp_path / file).rename(tmp_path / "away")
            time.sleep(0.6)  # those that hold no results are looked at now and then
            with pytest.raises(StoreUnavailable, match=f"{file} was replaced or removed"):
                experiment.note("nowhere")
            (tmp_path / "away").rename(tmp_path / file)
            experiment.note("here")


# Two writers


class TestTwoNames:
    def test_a_hard_link_is_refused(self, path, tmp_path):
        with Store(path) as store:
            make(store)
        os.link(path, tmp_path / "link.db")
        for name in ("store.db", "link.db"):
            for read_only in (True, False):
                with pytest.raises(StoreError, match=r"must have one name, got 2 \(hard links\)"):
                    Store(tmp_path / name, read_only=read_only)
            assert any("hard links" in one.detail for one in examine(str(tmp_path / name)) if one.mark == "wrong")
        (tmp_path / "link.db").unlink()
        Store(path).close()

    def test_a_hard_link_made_meanwhile_lets_nobody_else_write(self, path, tmp_path):
        with Store(path) as store:
            make(store)
            os.link(path, tmp_path / "link.db")
            assert "hard links" in elsewhere(tmp_path / "link.db")
            store.open("exp").note("goes on")

    def test_a_file_that_is_mounted_by_itself_is_refused(self, path, tmp_path):
        with Store(path) as store:
            make(store)
        (tmp_path / "other").mkdir()
        (tmp_path / "other" / "mounted file.db").touch()
        with mounted(path, tmp_path / "other" / "mounted file.db") as other:
            for read_only in (True, False):
                with pytest.raises(StoreError, match="is mounted by itself"):
                    Store(other, read_only=read_only)

    def test_a_folder_that_is_mounted_twice_has_one_writer(self, tmp_path):
        for name in ("folder", "other"):
            (tmp_path / name).mkdir()
        with (
            mounted(tmp_path / "folder", tmp_path / "other") as other,
            Store(tmp_path / "folder" / "store.db") as store,
        ):
            make(store)
            assert "StoreHeld" in elsewhere(other / "store.db")


@contextmanager
def mounted(source, target):
    try:
        run("mount", "--bind", source, target)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("this machine lets nobody mount a file")
    try:
        yield target
    finally:
        run("umount", target)


def run(*words):
    subprocess.run([str(word) for word in words], check=True, capture_output=True)


class TestLock:
    @pytest.mark.skipif(sys.platform != "linux", reason="the database itself is locked on Linux alone")
    def test_stays_when_the_note_is_removed(self, path):
        with Store(path) as store:
            make(store)
            path.with_name("store.db-writer").unlink()
            assert "StoreHeld" in elsewhere(path)
        assert elsewhere(path) == "wrote\n"

    def test_of_a_dead_process_is_not_kept_by_its_children(self, path):
        """A child that was forked off lives on; the next writer does not have to wait for it."""
        code = (
            "import os, sys, time; from mfbandit import Store\n"
            "store = Store(sys.argv[1])\n"
            "child = os.fork()\n"
            "if child == 0: os.close(1); os.close(2); time.sleep(30)\n"
            "print(child, flush=True); os.kill(os.getpid(), 9)\n"
        )
        started = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=False)
        try:
            Store(path).close()
        finally:
            os.kill(int(started.stdout), 9)

    def test_a_reader_of_this_process_may_outlive_the_writer(self, path):
        with Store(path) as store:
            play_some(make(store), 10)
            events, records = store.open("exp").events, store.open("exp").records()
            first = next(records)
        assert elsewhere(path) == "wrote\n"
        assert [first.seq, *(record.seq for record in records)] == list(range(1, events + 1))


# Modes and links


def modes(folder):
    return {file.name: stat.S_IMODE(file.stat().st_mode) for file in sorted(folder.iterdir())}


class TestModes:
    @pytest.mark.parametrize("umask", [0o000, 0o022, 0o377])
    def test_new_files_are_their_owners_alone(self, path, umask):
        before = os.umask(umask)
        try:
            with Store(path) as store:
                make(store)
                assert modes(path.parent) == dict.fromkeys(FILES, 0o600)
        finally:
            os.umask(before)

    def test_of_files_that_are_there_stay(self, path):
        Store(path).close()
        for name in ("store.db-writer", "store.db-mark"):
            path.with_name(name).unlink()
        path.chmod(0o640)
        with Store(path) as store:
            make(store)
            assert modes(path.parent) == dict.fromkeys(FILES, 0o640)


class TestSymbolicLinks:
    @pytest.mark.parametrize("there", [True, False])
    def test_in_place_of_the_store_is_not_followed(self, path, tmp_path, there):
        target = tmp_path / "target.db"
        if there:
            Store(target).close()
        path.symlink_to(target)
        with pytest.raises(StoreError, match="is a symbolic link, which is not followed: give the file itself"):
            Store(path)
        assert target.exists() == there

    @pytest.mark.parametrize("ending", ["writer", "mark"])
    def test_beside_the_store_is_not_followed(self, path, tmp_path, ending):
        target = tmp_path / "precious"
        target.write_text("of somebody else")
        path.with_name(f"store.db-{ending}").symlink_to(target)
        with pytest.raises(StoreError, match=f"store.db-{ending} is a symbolic link, which is not followed"):
            Store(path)
        assert target.read_text() == "of somebody else"
        assert not path.exists()


# What failed leaves nothing


class TestUnused:
    def test_a_store_that_was_made_for_nothing_is_removed(self, path):
        with pytest.raises(ZeroDivisionError), Store(path):
            raise ZeroDivisionError
        assert list(path.parent.iterdir()) == []

    def test_one_that_was_there_or_has_something_stays(self, path):
        Store(path).close()
        with pytest.raises(ZeroDivisionError), Store(path):
            raise ZeroDivisionError
        assert path.exists()
        with pytest.raises(InvalidArgument), Store(path.with_name("other.db")) as store:
            store.create_token(store.create_token("ci", "read"), "root")
        assert path.with_name("other.db").exists()


def test_a_file_that_was_emptied_is_not_hidden_by_closing(path):
    """The next process must not begin anew."""
    with Store(path) as store:
        play_some(make(store), 5)
    store = Store(path)
    os.truncate(path, 0)
    store.close()
    for file in (path, path.with_name("store.db-wal"), path.with_name("store.db-shm")):
        file.unlink(missing_ok=True)
    with pytest.raises(StoreDamaged, match=r"has 0 of the 1\d events"):
        Store(path)


def test_readers_are_counted_for_as_long_as_they_read(path):
    with Store(path) as store:
        make(store)
        store.list()
    assert not file_lock._readers
    assert not file_lock._unlocked
    assert not file_lock._descriptors
