"""A full disk: what cannot be kept is refused in words, what was acknowledged stays, and all goes on with more room.

With the right to mount, the disk is a small one in memory. Without, it is a limit on the size of the service's files.
"""

import os
import resource
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

import mfbandit as mfb
from mfbandit.experiment.events import Told
from mfbandit.store.durable_experiment import DurableExperiment
from tests.support import comparison, crash
from tests.support.clients import FIDELITIES, PATIENCE, POLICIES
from tests.support.objectives import play_number

SMALL, LARGE = "400k", "64m"
UNLIMITED = resource.RLIM_INFINITY


class Disk:
    """A disk of a few hundred kilobytes that can be made larger."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def make(self) -> None:
        _run("mount", "-t", "tmpfs", "-o", f"size={SMALL}", "tmpfs", self.folder)

    def enlarge(self) -> None:
        _run("mount", "-o", f"remount,size={LARGE}", self.folder)

    def remove(self) -> None:
        _run("umount", self.folder)


def _run(*words: object) -> None:
    subprocess.run([str(word) for word in words], check=True, capture_output=True)


@pytest.fixture
def disk(tmp_path) -> Iterator[Disk]:
    made = Disk(tmp_path / "disk")
    made.folder.mkdir()
    if os.geteuid() != 0:
        pytest.skip("only root may mount a small disk; the limit on the size of files is tested instead")
    try:
        made.make()
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("this machine lets nobody mount a small disk")
    yield made
    made.remove()


def fill(path: Path) -> None:
    """Leave no room for anything."""
    with path.open("wb", buffering=0) as file, suppress(OSError):
        while file.write(bytes(4096)):
            pass


def work(experiment: DurableExperiment, first: int) -> dict[int, float]:
    """Ask and tell until the disk is full; the results that were acknowledged."""
    kept: dict[int, float] = {}
    for turn in range(first, first + 100_000):
        try:
            play = experiment.ask(request_key=str(turn))
            experiment.tell(play, turn % 7 / 7)
        except mfb.StoreUnavailable as error:
            return kept if "database or disk is full" in str(error) else {}
        kept[play_number(play)] = turn % 7 / 7
    raise AssertionError("the disk is never full")


def results(experiment: DurableExperiment) -> dict[int, float]:
    return {event.play: event.reward for event in experiment.log if isinstance(event, Told)}


class TestStore:
    def test_goes_on_when_there_is_room_again(self, disk):
        path = disk.folder / "store.db"
        with mfb.Store(path) as store:
            experiment = store.create("ads", mfb.MFUCB(), arms=3, fidelities=FIDELITIES)
            kept = work(experiment, 0)
            assert work(experiment, 100_000) == {}  # and it stays refused
            assert results(experiment) == kept
            disk.enlarge()
            asked = experiment.ask(3, request_key="later")
            experiment.tell_many((play, 0.5, None) for play in asked)
            state = comparison.state(experiment)
        with mfb.Store(path) as store:
            experiment = store.open("ads")
            assert comparison.state(experiment) == state
            assert results(experiment) == kept | {play_number(play): 0.5 for play in asked}

    def test_is_whole_when_it_was_closed_and_opened_without_room(self, disk):
        path = disk.folder / "store.db"
        with mfb.Store(path) as store:
            kept = work(store.create("ads", mfb.MFUCB(), arms=3, fidelities=FIDELITIES), 0)
        fill(disk.folder / "rest")
        with suppress(mfb.StoreUnavailable), mfb.Store(path) as store:
            assert results(store.open("ads")) == kept
        (disk.folder / "rest").unlink()
        disk.enlarge()
        with mfb.Store(path) as store:
            assert results(store.open("ads")) == kept
            store.open("ads").note("there is room")

    def test_cannot_be_made_without_room_and_can_be_afterwards(self, disk):
        path, rest = disk.folder / "store.db", disk.folder / "rest"
        fill(rest)
        with pytest.raises(mfb.StoreUnavailable, match=r"store\.db cannot be used now: .*(full|No space left)"):
            mfb.Store(path)
        rest.unlink()
        with mfb.Store(path) as store:
            assert store.list() == ()


class TestService:
    def test_on_a_small_disk(self, disk, tmp_path):
        act = fill_and_free(lambda _: None, lambda _: disk.enlarge())
        record = crash.under_load(str(disk.folder / "store.db"), tmp_path, crash.Plan(faults=0), act)
        assert record.good, record

    @pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="limits of another process are set on Linux alone")
    def test_whose_files_may_not_grow(self, tmp_path):
        path = tmp_path / "store.db"

        def limit(load: crash.Load) -> None:
            pause_until(lambda: load.kept > 20)
            bound(load, (tmp_path / "store.db-wal").stat().st_size)

        act = fill_and_free(limit, lambda load: bound(load, UNLIMITED))
        record = crash.under_load(str(path), tmp_path, crash.Plan(faults=0), act)
        assert record.good, record


def bound(load: crash.Load, size: int) -> None:
    assert load.service.process is not None
    resource.prlimit(load.service.process.pid, resource.RLIMIT_FSIZE, (size, UNLIMITED))


def fill_and_free(
    hinder: Callable[[crash.Load], None], free: Callable[[crash.Load], None]
) -> Callable[[crash.Load], None]:
    """Let the disk become full under load, look at the answers, make room, and let the work go on."""

    def act(load: crash.Load) -> None:
        load.service.wait(*POLICIES)
        load.signs.up.set()
        hinder(load)
        pause_until(lambda: httpx.get(f"{load.service.url}/health").status_code != 200)
        time.sleep(0.5)
        look(load)
        free(load)
        load.service.wait()
        before = load.kept
        pause_until(lambda: load.kept > before + 50)

    return act


def look(load: crash.Load) -> None:
    """A full disk is a problem in words that names the file; what is there can still be read."""
    url = f"{load.service.url}/api/experiments/first"
    for _ in range(100):  # what stands on a write that failed is told so, without the reason
        answer = httpx.post(f"{url}/ask", json={"n": 200})
        assert answer.status_code == 503
        if "a write before this one failed" not in answer.json()["detail"]:
            break
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.headers["retry-after"] == "1"
    problem = answer.json()
    # SQLite writes at the commit: whether a commit that failed was kept is not known until the state is read again.
    kinds = {"urn:mfbandit:unavailable": "Store unavailable", "urn:mfbandit:outcome-unknown": "Outcome unknown"}
    assert problem["title"] == kinds[problem["type"]]
    assert f"{load.service.place} cannot be used now: " in problem["detail"]
    assert "disk" in problem["detail"]
    assert httpx.get(url).status_code == 200


def pause_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_place_where_nobody_can_leave_a_name(tmp_path):
    (tmp_path / "store.db-writer").mkdir()
    with pytest.raises(mfb.StoreUnavailable, match=r"store\.db cannot be used now"):
        mfb.Store(tmp_path / "store.db")
