"""A file that was cut off or overwritten is refused, or read exactly as it was written; it never passes for another."""

import random
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import mfbandit as mfb
from mfbandit.cli.main import app
from mfbandit.store import writer
from mfbandit.store.doctor import examine
from mfbandit.store.durable_experiment import DurableExperiment

FIDELITIES = mfb.Fidelities(costs=[1.0, 10.0], biases=[0.1, 0.0], concentration=mfb.Bounded(0, 1))
NAMES = ("ads", "models", "empty")
LARGEST = 4096  # bytes overwritten at once
TRIALS = 300


def fill(path: Path) -> None:
    """Every kind of event that has a text, keys, tokens, and more events than a snapshot has."""
    chance = random.Random(0)
    with mfb.Store(path) as store:
        for name in NAMES:
            store.create(name, mfb.MFUCB(), arms=["a", "b"], fidelities=FIDELITIES, capital=5e3, request_key=name)
        for name in NAMES[:2]:
            _work(store.open(name), chance)
        store.create_token("ci", "write")


def _work(experiment: DurableExperiment, chance: random.Random) -> None:
    for turn in range(30):
        for play in experiment.ask(2, request_key=f"turn-{turn}"):
            if chance.random() < 0.9:
                experiment.tell(play, chance.random())
        if turn % 8 == 5:
            experiment.note(f"turn {turn} " * turn, request_key=f"note-{turn}")
            experiment.add_arm(f"arm {turn}", request_key=f"arm-{turn}")
            experiment.set_capital(6e3 + turn)
    experiment.set_policy(mfb.UCB(rho=2.5))
    experiment.fail(experiment.ask(), 0.5)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A store that was closed in peace: everything is in its one file."""
    path = tmp_path_factory.mktemp("whole") / "store.db"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writer, "SNAPSHOT_EVERY", 40)
        fill(path)
    assert not path.with_name("store.db-wal").exists()
    return path


@pytest.fixture
def copy(whole, tmp_path):
    """A copy to damage."""
    path = tmp_path / "store.db"
    path.write_bytes(whole.read_bytes())
    return path


# What is there


def contents(path: Path, *, read_only: bool) -> dict[str, Any]:
    """All that the store says, part by part; where it refuses, the error, which names the file or the experiment."""
    try:
        with mfb.Store(path, read_only=read_only) as store:
            parts: dict[str, Any] = {"names": _told(path, store.list)}
            for name in NAMES:
                parts |= _parts(path, store, name)
            return parts
    except mfb.StoreError as error:
        return {"store": _naming(path, error)}


def _parts(path: Path, store: mfb.Store, name: str) -> dict[str, Any]:
    state, log = lambda: _state(store.open(name)), lambda: list(store.open(name).records())
    return {f"state of {name}": _told(path, state), f"log of {name}": _told(path, log)}


def _told(path: Path, look: Callable[[], Any]) -> Any:
    try:
        return look()
    except mfb.StoreError as error:
        return _naming(path, error)


def _naming(path: Path, error: mfb.StoreError) -> mfb.StoreError:
    assert str(path) in str(error) or any(f"experiment {name!r}" in str(error) for name in NAMES)
    return error


def _state(experiment: DurableExperiment) -> list[Any]:
    stats = experiment.stats
    arrays = [getattr(stats, name).tobytes() for name in ("counts", "sums", "squares", "pending", "active")]
    plain = [experiment.definition, experiment.lease, experiment.created, experiment.capital, experiment.policy]
    keys = {key: (request.kind, request.made) for key, request in experiment._logged._folded.requests.known.items()}
    sums = [experiment.spent, experiment.reserved, experiment.arms, experiment.set_aside]
    return [
        *arrays,
        *plain,
        keys,
        *sums,
        experiment.pending,
        experiment.leases,
        experiment._logged._folded.entry.request,
    ]


def is_same(path: Path, before: dict[str, Any], *, read_only: bool) -> bool:
    """Whether nothing was refused; what was not refused must be as before."""
    parts = contents(path, read_only=read_only)
    refused = [name for name, value in parts.items() if isinstance(value, mfb.StoreError)]
    assert {name: value for name, value in parts.items() if name not in refused} == {
        name: before[name] for name in parts if name not in refused
    }
    return not refused


# Damage at random


@dataclass(frozen=True)
class Damage:
    """Cut off at a length, or overwrite from there."""

    at: int
    new: bytes | None

    def __call__(self, data: bytes) -> bytes:
        rest = b"" if self.new is None else self.new + data[self.at + len(self.new) :]
        return data[: self.at] + rest


def damages(size: int) -> list[Damage]:
    chance = random.Random(7)
    made = [Damage(chance.randrange(1, size), None) for _ in range(TRIALS // 4)]
    while len(made) < TRIALS:
        length = int(LARGEST ** chance.random())  # as many short ones as long ones
        new = chance.choice((chance.randbytes(length), chance.randbytes(length), bytes(length)))
        made.append(Damage(chance.randrange(size - length + 1), new))
    return made


def trials(whole: Path, folder: Path) -> "list[Path]":
    data = whole.read_bytes()
    paths = [folder / f"{number}.db" for number in range(TRIALS)]
    for path, damage in zip(paths, damages(len(data)), strict=True):
        path.write_bytes(damage(data))
    return paths


@pytest.mark.slow
@pytest.mark.no_cover
class TestAtRandom:
    @pytest.mark.parametrize("read_only", [True, False])
    def test_is_refused_or_makes_no_difference(self, whole, tmp_path, read_only):
        before = contents(whole, read_only=True)
        same = [is_same(path, before, read_only=read_only) for path in trials(whole, tmp_path)]
        assert 0 < sum(same) < TRIALS

    def test_doctor_finds_all_of_it(self, whole, tmp_path):
        before = contents(whole, read_only=True)
        for path in trials(whole, tmp_path):
            done = CliRunner().invoke(app, ["doctor", str(path)])
            assert done.exit_code in (0, 1)
            assert isinstance(done.exception, SystemExit | None)
            assert done.exit_code == 1 or is_same(path, before, read_only=True)

    def test_an_export_is_whole_or_none(self, whole, tmp_path):
        out, expected = tmp_path / "out.jsonl", {name: exported(whole, name, tmp_path / "out.jsonl") for name in NAMES}
        for number, path in enumerate(trials(whole, tmp_path)):
            name = NAMES[number % len(NAMES)]
            assert exported(path, name, out) in (None, expected[name])


def exported(path: Path, name: str, out: Path) -> str | None:
    """The file that an export made, or None where it failed in order and left no file."""
    out.unlink(missing_ok=True)
    done = CliRunner().invoke(app, ["experiment", "export", str(path), name, "--out", str(out)])
    assert isinstance(done.exception, SystemExit | None)
    if done.exit_code == 0:
        return out.read_text()
    assert done.exit_code == 1
    assert done.stderr.startswith("Error: ")
    assert [file.name for file in out.parent.glob("*out.jsonl*")] == []
    return None


# Damage on purpose, where it hides


def change(path: Path, command: str, *values: object) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        assert connection.execute(command, values).rowcount == 1


def assert_damaged(path: Path, words: str = "damaged") -> None:
    for read_only in (True, False):
        with pytest.raises(mfb.StoreDamaged, match=words), mfb.Store(path, read_only=read_only) as store:
            store.open("ads")
    assert [one for one in examine(str(path)) if one.mark == "wrong"]


class TestTextsBesideSnapshots:
    """Snapshots have numbers; texts come from the rows that they cover."""

    def row(self, path: Path, kind: str) -> int:
        with closing(sqlite3.connect(path)) as connection:
            query = "SELECT min(seq) FROM mfbandit_log WHERE experiment = 1 AND kind = ?"
            ((seq,),) = connection.execute(query, (kind,)).fetchall()
            ((upto,),) = connection.execute("SELECT max(upto) FROM mfbandit_snapshots WHERE experiment = 1").fetchall()
        assert seq < upto
        return int(seq)

    @pytest.mark.parametrize("body", ['{"label": "another"}', '{"label": ', '{"text": "x"}', "[]", b"\xff"])
    def test_a_label(self, copy, body):
        seq = self.row(copy, "ArmAdded")
        change(copy, "UPDATE mfbandit_log SET body = ? WHERE experiment = 1 AND seq = ?", body, seq)
        assert_damaged(copy, "texts of its events")

    @pytest.mark.parametrize("command", ["SET request = 'another'", "SET request = NULL", "SET kind = 'Unheard'"])
    def test_a_request_key(self, copy, command):
        seq = self.row(copy, "Asked")
        change(copy, f"UPDATE mfbandit_log {command} WHERE experiment = 1 AND seq = ?", seq)
        assert_damaged(copy, "texts of its events")

    @pytest.mark.parametrize("kind", ["Noted", "CapitalSet", "Asked"])
    def test_a_row_that_is_missing(self, copy, kind):
        change(copy, "DELETE FROM mfbandit_log WHERE experiment = 1 AND seq = ?", self.row(copy, kind))
        assert_damaged(copy, "texts of its events")

    def test_a_number_that_cannot_be(self, copy):
        change(copy, "UPDATE mfbandit_log SET seq = 'x' WHERE experiment = 1 AND seq = ?", self.row(copy, "Noted"))
        assert_damaged(copy, "texts of its events")


class TestRows:
    def test_one_that_no_snapshot_needs(self, copy):
        """Opening does not read it; whoever reads the log finds out."""
        change(copy, "UPDATE mfbandit_log SET reward = 'x' WHERE experiment = 1 AND seq = 3")
        with mfb.Store(copy, read_only=True) as store:
            experiment = store.open("ads")
            with pytest.raises(mfb.StoreDamaged, match="not what can be written"):
                list(experiment.records())
        wrong = [one for one in examine(str(copy)) if one.mark == "wrong"]
        assert [one.what for one in wrong] == ["experiment ads"]

    def test_one_that_cannot_be_read(self, copy):
        with mfb.Store(copy, read_only=True) as store:
            experiment = store.open("ads")
            change(copy, "UPDATE mfbandit_log SET kind = 'Unheard' WHERE experiment = 1 AND seq = 3")
            for look in (lambda: experiment.page(0, 10), lambda: list(experiment.records())):
                with pytest.raises(mfb.StoreDamaged, match="an event after 1 cannot be read"):
                    look()


class TestSnapshots:
    @pytest.mark.parametrize("command", ["packed = x'00'", "packed = 'text'", "digest = digest + 1"])
    def test_are_not_needed_and_doctor_tells(self, whole, copy, command):
        first = "experiment = 1 AND upto = (SELECT min(upto) FROM mfbandit_snapshots WHERE experiment = 1)"
        change(copy, f"UPDATE mfbandit_snapshots SET {command} WHERE {first}")  # noqa: S608 - our own
        assert is_same(copy, contents(whole, read_only=True), read_only=True)
        wrong = [one for one in examine(str(copy)) if one.mark == "wrong"]
        assert [one.what for one in wrong] == ["experiment ads"]
        assert "snapshots after event 0 are damaged; the log itself is whole" in wrong[0].detail


class TestEntries:
    @pytest.mark.parametrize("command", ["created = created + 1", "request = 'another'", "request = NULL"])
    def test_what_an_experiment_began_with(self, copy, command):
        change(copy, f"UPDATE mfbandit_experiments SET {command} WHERE id = 1")  # noqa: S608 - our own
        assert_damaged(copy, "not those that were written")

    @pytest.mark.parametrize("where", ["mfbandit_experiments", "sqlite_autoindex_mfbandit_experiments_2"])
    def test_a_name_in_one_of_its_two_places(self, copy, where):
        with closing(sqlite3.connect(copy)) as connection:
            ((page,),) = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (where,)).fetchall()
        data = bytearray(copy.read_bytes())
        start = data.index(b"ads", (page - 1) * 4096)
        data[start : start + 3] = b"adz"
        copy.write_bytes(data)
        assert_damaged(copy)


class TestFirstPage:
    def test_without_its_tables_is_not_taken_for_new(self, copy):
        data = bytearray(copy.read_bytes())
        data[103:105] = b"\0\0"  # the number of entries in the schema
        copy.write_bytes(data)
        with pytest.raises(mfb.StoreDamaged, match="pages and no table"):
            mfb.Store(copy)
        with pytest.raises(mfb.StoreError, match="no mfbandit store"):
            mfb.Store(copy, read_only=True)

    def test_with_bytes_that_are_no_text(self, copy):
        """SQLite quotes the schema in its message, and Python cannot read that."""
        data = copy.read_bytes()
        copy.write_bytes(data.replace(b"seq BIGINT NOT NULL, time", b"seq BIGINT NOT NULL\xb9 time", 1))
        assert_damaged(copy)
