"""How far a store was written: nobody who was overtaken acknowledges anything, and no id comes back."""

import sqlite3
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from mfbandit import Store, StoreDamaged, StoreHeld, StoreUnavailable
from mfbandit.store.commits import read_commits
from tests.support.stores import make, play_some, seen


def execute(place, command, *values):
    """Run a statement behind the store's back."""
    if place.startswith("postgresql"):
        with psycopg.connect(place) as session:
            cursor = session.execute(command.replace("?", "%s"), values)
            return cursor.fetchall() if cursor.description else []
    with closing(sqlite3.connect(place)) as connection, connection:
        return connection.execute(command, values).fetchall()


@pytest.fixture
def file(tmp_path):
    """Where one process writes at a time; see test_owners.py for databases to which several write."""
    return str(tmp_path / "store.db")


def commits(store):
    with closing(store.read()) as connection:
        return read_commits(store.name, connection)


def overtake(place):
    """Do what a second process would do that got hold of the store in spite of its locks."""
    ((text,),) = execute(place, "SELECT value FROM mfbandit_store WHERE key = 'commits'")
    epoch, number, *rest = text.split()
    new = " ".join([str(int(epoch) + 1), str(int(number) + 1), *rest])
    execute(place, "UPDATE mfbandit_store SET value = ? WHERE key = 'commits'", new)


class TestOvertaken:
    def test_nothing_is_acknowledged_any_more(self, file):
        with Store(file) as store:
            experiment = make(store)
            play = experiment.ask()
            experiment.pause()
            before = seen(experiment)
            overtake(file)
            verbs = (
                lambda: experiment.tell(play, 0.5),
                experiment.pause,  # changes nothing, and may not be true any more
                lambda: store.create_token("ci", "read"),
                store.check,
            )
            for verb in verbs:
                with pytest.raises(StoreHeld, match="was written by another process"):
                    verb()
            assert seen(experiment) == before
        with Store(file) as store:
            assert seen(store.open("exp")) == before
            store.open("exp").tell(play, 0.5)

    def test_a_log_that_ends_elsewhere_is_read_again(self, place):
        with Store(place) as store:
            experiment = make(store)
            play_some(experiment, 3)
            events = experiment.events
            experiment._logged._folded.end.head += 1
            experiment._logged._folded.events += 1
            with pytest.raises(StoreUnavailable, match=f"does not end at event {events + 1} any more"):
                experiment.note("too late")
            experiment.note("in time")
            assert experiment.events == events + 1


class TestIds:
    def test_of_deleted_experiments_do_not_come_back(self, place):
        with Store(place) as store:
            make(store, "first")
            make(store, "second")
            store.delete("second", confirm="second")
            make(store, "third")
        with Store(place) as store:
            store.delete("third", confirm="third")
            make(store, "fourth")
        assert execute(place, "SELECT id FROM mfbandit_experiments ORDER BY id") == [(1,), (4,)]


class TestRow:
    def test_counts_openings_groups_and_events(self, file):
        with Store(file) as store:
            play_some(make(store), 5)
            first, events = commits(store), store.open("exp").events
            assert (first.epoch, first.number, first.events) == (1, 12, events)
        with Store(file) as store:
            second = commits(store)
            assert (second.epoch, second.number, second.events) == (2, 13, events)
            store.open("exp").resume()
            assert commits(store) == second  # nothing changed, so nothing was written

    def test_an_earlier_store_gets_one(self, file):
        with Store(file) as store:
            play_some(make(store), 5)
        execute(file, "DELETE FROM mfbandit_store WHERE key IN ('commits', 'last_id')")
        Path(f"{file}-mark").unlink(missing_ok=True)
        with Store(file, read_only=True) as store:
            assert commits(store) is None
        with Store(file) as store:
            assert (commits(store).epoch, commits(store).events) == (1, store.open("exp").events)
            make(store, "other")

    @pytest.mark.parametrize("text", ["", "1 2 3", "1 2 3 x", "1 2 3 -4", "1 2 3 4 5"])
    def test_that_cannot_be_read_is_damage(self, file, text):
        Store(file).close()
        execute(file, "UPDATE mfbandit_store SET value = ? WHERE key = 'commits'", text)
        with pytest.raises(StoreDamaged, match="count of commits is"):
            Store(file)
