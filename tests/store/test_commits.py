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
    def test_nothing_is_acknowledged_any_more(self, place):
        with Store(place) as store:
            experiment = make(store)
            play = experiment.ask()
            experiment.pause()
            before = seen(experiment)
            overtake(place)
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
        with Store(place) as store:
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

    def test_a_database_that_went_back_is_refused(self, postgres_url):
        """A server that was restored, or a replica that was behind, does not have what was acknowledged."""
        with Store(postgres_url) as store:
            experiment = make(store)
            play_some(experiment, 3)
            execute(postgres_url, "UPDATE mfbandit_store SET value = '1 2 0 0' WHERE key = 'commits'")
            lose_session(postgres_url)
            with pytest.raises(StoreUnavailable):
                experiment.pause()
            with pytest.raises(StoreDamaged, match=r"has 0 of the \d events, and 2 of the 8 writes, that were ackno"):
                experiment.pause()


def lose_session(url):
    with psycopg.connect(url, autocommit=True) as other:
        other.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_locks JOIN pg_database ON database = pg_database.oid "
            "WHERE locktype = 'advisory' AND datname = current_database()"
        )


class TestLostSession:
    @pytest.mark.parametrize("verb", ["set_capital", "resume", "tell", "ask", "renew"])
    def test_what_changes_nothing_is_not_acknowledged_either(self, postgres_url, verb):
        with Store(postgres_url) as store:
            experiment = make(store, capital=100)
            told, pending = experiment.ask(2, request_key="k")
            experiment.tell(told, 0.5)
            lose_session(postgres_url)
            with Store(postgres_url) as other:
                other.open("exp").set_capital(50)
                other.open("exp").pause()
            verbs = {
                "set_capital": lambda: experiment.set_capital(100),
                "resume": experiment.resume,
                "tell": lambda: experiment.tell(told, 0.5),
                "ask": lambda: experiment.ask(2, request_key="k"),
                "renew": lambda: experiment.renew(pending),
            }
            with pytest.raises(StoreUnavailable):
                verbs[verb]()
            with pytest.raises(StoreUnavailable, match="is back: try again"):
                verbs[verb]()
            assert experiment.capital == 50
            assert experiment.paused


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
    def test_counts_openings_groups_and_events(self, place):
        with Store(place) as store:
            play_some(make(store), 5)
            first, events = commits(store), store.open("exp").events
            assert (first.epoch, first.number, first.events) == (1, 12, events)
        with Store(place) as store:
            second = commits(store)
            assert (second.epoch, second.number, second.events) == (2, 13, events)
            store.open("exp").resume()
            assert commits(store) == second  # nothing changed, so nothing was written

    def test_an_earlier_store_gets_one(self, place):
        with Store(place) as store:
            play_some(make(store), 5)
        execute(place, "DELETE FROM mfbandit_store WHERE key IN ('commits', 'last_id')")
        Path(f"{place}-mark").unlink(missing_ok=True)
        with Store(place, read_only=True) as store:
            assert commits(store) is None
        with Store(place) as store:
            assert (commits(store).epoch, commits(store).events) == (1, store.open("exp").events)
            make(store, "other")

    @pytest.mark.parametrize("text", ["", "1 2 3", "1 2 3 x", "1 2 3 -4", "1 2 3 4 5"])
    def test_that_cannot_be_read_is_damage(self, place, text):
        Store(place).close()
        execute(place, "UPDATE mfbandit_store SET value = ? WHERE key = 'commits'", text)
        with pytest.raises(StoreDamaged, match="count of commits is"):
            Store(place)
