"""Opening a store again: from snapshots and rows, and what is said of damage."""

import sqlite3
from contextlib import closing
from typing import Any

import numpy as np
import pytest

from mfbandit import (
    MFUCB,
    UCB,
    Fidelities,
    MFBayes,
    Store,
    StoreDamaged,
    StoreError,
    SubGaussian,
)
from mfbandit.experiment.events import (
    Asked,
    CapitalSet,
    Noted,
    Paused,
    PolicySet,
    Told,
)
from mfbandit.store import writer
from tests.support.stores import make, play_some, seen, used_snapshots


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
            store.write(lambda connection: connection.run("DELETE FROM mfbandit_snapshots"))
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
            "UPDATE mfbandit_log SET reward = 0.75 WHERE seq = 5",
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
            connection.execute("UPDATE mfbandit_log SET reward = 0.75 WHERE seq = 5")
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
            connection.execute("UPDATE mfbandit_log SET reward = 0.75 WHERE seq = 5")
        with Store(path) as store:
            assert len(store.open("exp").page(5, 10)) == 10
            with pytest.raises(StoreDamaged, match="event 5 is not the one that was written"):
                store.open("exp").page(0, 10)

    @pytest.mark.parametrize(
        "change",
        [
            "DELETE FROM mfbandit_log WHERE seq = 4",
            "DELETE FROM mfbandit_log WHERE seq = 10",
            "UPDATE mfbandit_log SET play = 1000000 WHERE seq = 5",
            "UPDATE mfbandit_log SET play = -1 WHERE seq = 4",
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
            assert [record.seq for record in experiment.page(35, 10)] == list(range(36, 42))
            assert experiment.page(41, 10) == []
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
        with pytest.raises(StoreDamaged, match="0 of the 2 writes, that were acknowledged"):
            Store(path)
        (tmp_path / "store.db-mark").unlink()
        with pytest.raises(StoreDamaged, match="is empty, and was a store before"):
            Store(path)

    def test_newer_stores_are_refused(self, place):
        with Store(place) as store:
            known = store._database.schema
            change = "UPDATE mfbandit_store SET value = ? WHERE key = 'schema'"
            store.write(lambda connection: connection.run(change, (str(known + 1),)))
        for read_only in (True, False):
            with pytest.raises(StoreError, match=rf"newer mfbandit \(schema {known + 1}, this one knows {known}\)"):
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
