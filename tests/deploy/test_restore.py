"""The drill of docs/production.md: a backup while plays go on, a crash, a restore, and the same workers go on."""

import contextlib
import sqlite3
import subprocess
import threading
import time

import pytest
from typer.testing import CliRunner

import mfbandit as mfb
from mfbandit.cli.main import app as commands
from tests.support.postgres import free_port, programs
from tests.support.services import Service

FIDELITIES = mfb.Fidelities(costs=[1, 10], biases=[0.1, 0], concentration=mfb.Bounded(0, 1))
ENOUGH = 30  # results before, and after the backup
PATIENCE = 60.0

pytestmark = [pytest.mark.slow, pytest.mark.no_cover]


class Worker(threading.Thread):
    """Asks and tells without pause, whatever becomes of the service; it notes what was acknowledged."""

    def __init__(self, url):
        super().__init__(daemon=True)
        self.url, self.told, self.unknown, self.ending = url, {}, [], threading.Event()

    def run(self):
        with mfb.connect(self.url, patience=PATIENCE) as store:
            experiment = store.open("ads")
            while not self.ending.is_set():
                play = experiment.ask()
                reward = (play.arm % 3) / 2
                try:
                    experiment.tell(play, reward)
                    self.told[play.id] = reward
                except mfb.UnknownPlay:
                    self.unknown.append(play.id)

    def end(self):
        """Stop after the play that is being made."""
        self.ending.set()
        self.join(PATIENCE)
        assert not self.is_alive()

    def until(self, number):
        """Wait for so many results more; what was acknowledged until then."""
        wanted, deadline = len(self.told) + number, time.monotonic() + PATIENCE
        while len(self.told) < wanted:
            assert self.is_alive()
            assert time.monotonic() < deadline
            time.sleep(0.01)
        return dict(self.told)


@contextlib.contextmanager
def at_work(place, port):
    """A service of one experiment with a worker; the service is to be killed inside."""
    service = Service(place, port)
    try:
        with mfb.connect(service.url) as store:
            store.create("ads", mfb.MFUCB(), arms=6, fidelities=FIDELITIES)
        worker = Worker(service.url)
        worker.start()
        yield service, worker
    finally:
        service.kill()


def check_restored(url, worker, before, after, lost_export):
    """What was told before the backup is there; what came after it is unknown; ids are new; an export makes it good."""
    later = worker.until(ENOUGH)  # it went on by itself
    new = later.keys() - after.keys()
    with mfb.connect(url) as store:
        experiment = store.open("ads")
        for play, reward in before.items():
            experiment.tell(play, reward)  # the same again is fine: it is there
        lost = []
        for play, reward in after.items():
            try:
                experiment.tell(play, reward)
            except mfb.UnknownPlay:
                lost.append(play)
        assert len(lost) >= ENOUGH - 1  # one may have been in the backup, and noted by the worker after it
        assert not set(lost) & set(before)
        assert len({play.rpartition("-")[0] for play in lost} & {play.rpartition("-")[0] for play in new}) == 0
        again = {play.rpartition("-")[2] for play in lost} & {play.rpartition("-")[2] for play in new}
        assert again  # the same numbers were given out again, and yet nothing was taken for something else
        worker.end()
        told = sum(experiment.status()["results"])
        command("experiment", "import", url, "ads", str(lost_export))
        brought = sum(experiment.status()["results"]) - told
        assert brought in (len(lost), len(lost) + 1)  # one more was kept, if the service was killed before its answer


def command(*words):
    """Run a command in this process."""
    done = CliRunner().invoke(commands, list(map(str, words)))
    assert done.exit_code == 0, done.output


def test_a_file(tmp_path):
    place, copy, port = tmp_path / "store.db", tmp_path / "copy.db", free_port()
    with at_work(place, port) as (service, worker):
        before = worker.until(ENOUGH)
        with contextlib.closing(sqlite3.connect(place)) as source, contextlib.closing(sqlite3.connect(copy)) as target:
            source.backup(target)  # what `sqlite3 store.db ".backup copy.db"` does
        worker.until(ENOUGH)
        service.kill()
        after = dict(worker.told)
        command("experiment", "export", place, "ads", "--out", tmp_path / "lost.csv")
        for end in ("-wal", "-shm"):
            place.with_name(place.name + end).unlink(missing_ok=True)
        place.write_bytes(copy.read_bytes())
        with pytest.raises(mfb.StoreDamaged, match="acknowledged"):
            mfb.Store(place)
        restored = Service(place, port, options=["--accept-loss"])
        try:
            assert "acknowledged" in restored.said_before  # how much was lost
            check_restored(restored.url, worker, before, after, tmp_path / "lost.csv")
        finally:
            restored.kill()
    command("doctor", place)


@pytest.mark.postgres
def test_a_database(tmp_path, postgres_server, postgres_url):
    port, dump = free_port(), tmp_path / "ads.dump"
    new = postgres_server.database(f"restored_{port}")
    with at_work(postgres_url, port) as (service, worker):
        before = worker.until(ENOUGH)
        postgres_program("pg_dump", "--format=custom", f"--file={dump}", postgres_url)
        worker.until(ENOUGH)
        service.kill()
        after = dict(worker.told)
        command("experiment", "export", postgres_url, "ads", "--out", tmp_path / "lost.csv")
        postgres_program("pg_restore", "--exit-on-error", f"--dbname={new}", str(dump))
        restored = Service(new, port)
        try:
            check_restored(restored.url, worker, before, after, tmp_path / "lost.csv")
        finally:
            restored.kill()
    command("doctor", new)
    postgres_server.drop(f"restored_{port}")


def postgres_program(name, *words):
    done = subprocess.run([programs() / name, *words], check=False, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
