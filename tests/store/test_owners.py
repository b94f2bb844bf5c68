"""Several processes that write to one database: each to what it owns, and one takes over what another leaves."""

import threading
import time
from contextlib import closing, contextmanager
from typing import Any

import psycopg
import pytest
from psycopg import sql

from mfbandit import Store, StoreDamaged, StoreHeld, StoreUnavailable
from mfbandit.errors import MFBanditError
from mfbandit.experiment.events import Expired, LeasesExtended
from mfbandit.store import membership, writer
from mfbandit.store.membership import Membership
from tests.support.stores import Clock, make, play_some, seen

pytestmark = pytest.mark.filterwarnings("error")


def opened(url, **options) -> Any:
    """A store whose inner parts a test may touch."""
    return Store(url, **options)


@pytest.fixture
def url(postgres_url):
    return postgres_url


def execute(url, command, *values):
    with psycopg.connect(url) as session:
        cursor = session.execute(command, values)
        return cursor.fetchall() if cursor.description else []


def stop(store, url, seconds=100):
    """Let a process do nothing more by itself, as if it had been stopped some seconds ago."""
    store._writer._tried_at = float("inf")
    store.write(lambda _: None)  # whatever is under way is done
    store._writer._tried_at = float("inf")
    store._owners.me._renewed -= seconds
    execute(url, "UPDATE mfbandit_services SET seen = seen - %s WHERE id = %s", seconds, store._owners.me.id)


@pytest.fixture
def steady(monkeypatch):
    """Whoever looks has been here for long enough to take others for gone; and so has the server."""
    monkeypatch.setattr(Membership, "is_steady", lambda _: True)
    monkeypatch.setattr(membership, "_EXPIRED", "ended IS NULL AND extract(epoch from now()) - seen > ?")


def lose_sessions(url, store):
    """Cut the connections of a process."""
    (lock,) = execute(url, "SELECT session_lock FROM mfbandit_services WHERE id = %s", store._owners.me.id)[0]
    command = "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND objid::bigint = %s"
    execute(url, command, lock)


class TestOneOwner:
    def test_another_process_is_told_who_it_is(self, url):
        with opened(url, purpose="the first") as first, opened(url) as second:
            first._owners.me.serve_at("http://10.0.0.5:8000")
            make(first)
            first.check()
            for verb in (lambda: second.open("exp"), lambda: second.delete("exp", confirm="exp")):
                with pytest.raises(StoreHeld, match=r"'exp' is owned by the first, process \d+ .*use http://10.0.0.5"):
                    verb()

    def test_each_writes_to_its_own(self, url):
        with opened(url) as first, opened(url) as second:
            one, two = make(first, "one"), make(second, "two")
            play_some(one, 3)
            play_some(two, 5)
            assert first.list() == second.list() == ("one", "two")
            assert [one.experiments for one in first.services()] == [("one",), ("two",)]
        with opened(url) as third:
            assert (sum(third.open("one").results_at), sum(third.open("two").results_at)) == (3, 5)

    def test_whoever_reads_owns_nothing(self, url):
        with opened(url) as first, opened(url, read_only=True) as reader:
            play_some(make(first), 3)
            before = execute(url, "SELECT owner, epoch FROM mfbandit_experiments")
            assert sum(reader.open("exp").results_at) == 3
            assert execute(url, "SELECT owner, epoch FROM mfbandit_experiments") == before

    def test_many_who_create_at_once(self, url):
        with opened(url) as first, opened(url) as second:
            threads = [
                threading.Thread(target=make, args=(store, f"{name}-{number}"))
                for number in range(5)
                for name, store in (("a", first), ("b", second))
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert len(set(first.list())) == 10

    def test_of_many_who_create_the_same_one_succeeds(self, url):
        made, refused = [], []

        def create(store):
            try:
                made.append(make(store))
            except MFBanditError as error:
                refused.append(error)

        with opened(url) as first, opened(url) as second:
            threads = [threading.Thread(target=create, args=(store,)) for store in (first, second)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert (len(made), len(refused)) == (1, 1)


class TestTakingOver:
    def test_from_one_that_has_ended(self, url):
        with opened(url) as second:
            with opened(url) as first:
                play = make(first).ask()
            second.open("exp").tell(play, 0.5)
            assert sum(second.open("exp").results_at) == 1

    @pytest.mark.usefixtures("steady")
    def test_from_one_that_was_stopped_and_comes_back(self, url):
        with opened(url) as first, opened(url) as second:
            experiment = make(first)
            plays = experiment.ask(3, request_key="k")
            assert first.is_fresh()
            stop(first, url)
            assert not first.is_fresh()
            theirs = second.open("exp")
            theirs.tell(plays[0], 0.5)
            assert theirs.ask(3, request_key="k") == plays
            for verb in (
                lambda: experiment.tell(plays[1], 0.25),  # would be written
                lambda: experiment.ask(3, request_key="k"),  # was done before, as it believes
            ):
                with pytest.raises(StoreUnavailable, match="try again"):
                    verb()
            with pytest.raises(StoreHeld, match="is owned by"):
                experiment.tell(plays[1], 0.25)
            theirs.tell(plays[1], 0.75)
            before = seen(theirs)
            second.close()
            assert seen(experiment) == before
            experiment.tell(plays[2], 1.0)
            assert sum(experiment.results_at) == 3

    @pytest.mark.usefixtures("steady")
    @pytest.mark.parametrize("verb", ["set_capital", "resume", "tell", "ask", "renew"])
    def test_nothing_is_acknowledged_by_one_that_was_ended(self, url, verb):
        with opened(url) as first, opened(url) as second:
            experiment = make(first, capital=100)
            told, pending = experiment.ask(2, request_key="k")
            experiment.tell(told, 0.5)
            stop(first, url)
            second.open("exp").set_capital(50)
            verbs = {
                "set_capital": lambda: experiment.set_capital(100),
                "resume": experiment.resume,
                "tell": lambda: experiment.tell(told, 0.5),
                "ask": lambda: experiment.ask(2, request_key="k"),
                "renew": lambda: experiment.renew(pending),
            }
            with pytest.raises(StoreUnavailable):
                verbs[verb]()

    def test_from_one_that_was_stopped_in_the_middle_of_a_write(self, url, monkeypatch):
        """Its transaction holds the row of the experiment; the server ends that before its lease is over."""
        inner, in_it, go_on = writer._append_all, threading.Event(), threading.Event()
        errors: list[StoreUnavailable] = []

        def stopped(connection, appends):
            inner(connection, appends)
            if any(record.request and "mine" in record.request for _, records in appends for record in records):
                in_it.set()
                go_on.wait(timeout=30)

        def attempt():
            try:
                experiment.ask(request_key="mine")
            except StoreUnavailable as error:
                errors.append(error)

        with opened(url) as first, opened(url) as second:
            experiment = make(first)
            experiment.ask()
            monkeypatch.setattr(writer, "_append_all", stopped)
            thread = threading.Thread(target=attempt)
            thread.start()
            in_it.wait(timeout=30)
            began = time.monotonic()
            while True:
                try:
                    theirs = second.open("exp")
                    break
                except StoreHeld:
                    time.sleep(0.1)
            assert time.monotonic() - began < 5
            theirs.ask(request_key="theirs")
            go_on.set()
            thread.join()
            assert len(errors) == 1
            assert [record.request for record in theirs.records() if record.request] == ["theirs"]

    def test_a_lost_session_is_taken_up_again_in_time(self, url):
        with opened(url) as first, opened(url) as second:
            experiment = make(first)
            play = experiment.ask()
            me = first._owners.me.id
            lose_sessions(url, first)
            with pytest.raises(StoreHeld):  # it is waited for as long as it may come back
                second.open("exp")
            told_when_back(lambda: experiment.tell(play, 0.5))
            assert first._owners.me.id == me

    def test_a_lost_session_that_does_not_come_back(self, url):
        with opened(url) as first, opened(url) as second:
            play = make(first).ask()
            first._writer._tried_at = float("inf")
            lose_sessions(url, first)
            began = time.monotonic()
            second.open("exp").tell(play, 0.5)
            assert time.monotonic() - began < 5
            first._writer._tried_at = 0.0

    def test_an_open_experiment_is_read_again(self, url):
        """What others wrote meanwhile counts, also where nobody noticed the loss of a session."""
        with opened(url) as first:
            one, two = make(first, "one"), make(first, "two")
            play = one.ask()
            first._writer._tried_at = float("inf")
            lose_sessions(url, first)
            with opened(url) as meanwhile:
                meanwhile.open("two").tell(meanwhile.open("two").ask(), 0.5)
            first._writer._tried_at = 0.0
            told_when_back(lambda: one.tell(play, 0.5))
            assert (one.spent, two.spent) == (1, 1)

    @pytest.mark.usefixtures("steady")
    def test_leases_are_extended_by_the_time_that_nobody_was_there(self, url):
        clock = Clock()
        with opened(url, clock=clock) as first, opened(url, clock=clock) as second:
            for store in (first, second):
                store._owners.me.serve_at(f"http://{id(store)}")
                store.begin_looking()
            play = make(first, lease=60).ask()
            execute(url, "UPDATE mfbandit_services SET since = since - 1000")
            stop(first, url, 40)
            second._owners.end_expired()
            clock.now += 2
            theirs = second.open("exp")
            theirs.note("here")
            assert [event for event in theirs.log if isinstance(event, Expired)] == []
            (extended,) = [event for event in theirs.log if isinstance(event, LeasesExtended)]
            assert 40 <= extended.seconds < 45
            assert theirs.leases[play.id] == pytest.approx(1060 + extended.seconds)

    @pytest.mark.usefixtures("steady")
    def test_leases_are_extended_although_the_first_write_after_it_was_refused(self, url):
        with opened(url) as first, opened(url) as second:
            for store in (first, second):
                store._owners.me.serve_at(f"http://{id(store)}")
                store.begin_looking()
            play = make(first, lease=600).ask()
            due = first.open("exp").leases[play.id]
            execute(url, "UPDATE mfbandit_services SET since = since - 1000")
            stop(first, url, 40)
            second._owners.end_expired()
            theirs = second.open("exp")
            second._writer._tried_at = float("inf")
            lose_sessions(url, second)
            with pytest.raises(StoreUnavailable):
                theirs.note("refused")
            told_when_back(lambda: theirs.note("here"))
            (extended,) = [event for event in theirs.log if isinstance(event, LeasesExtended)]
            assert extended.seconds > 39
            assert theirs.leases[play.id] == pytest.approx(due + extended.seconds)
            told_when_back(lambda: theirs.note("again"))
            assert theirs.leases[play.id] == pytest.approx(due + extended.seconds)

    def test_from_one_that_was_seen_last_before_the_clock_was_set_back(self, url):
        """By the clock of the database it would be there for an hour to come."""
        with opened(url) as first, opened(url) as second:
            play = make(first).ask()
            first._writer._tried_at = float("inf")
            execute(url, "UPDATE mfbandit_services SET seen = seen + 3600 WHERE id = %s", first._owners.me.id)
            lose_sessions(url, first)
            second.open("exp").tell(play, 0.5)

    @pytest.mark.usefixtures("steady")
    def test_one_that_comes_back_answers_nothing_before_it_has_read_again(self, url, monkeypatch):
        """Also in the moment in which it has a new row, and does not know yet that the old one has ended."""
        inner, owned = Membership._note_renewal, []

        def noted(me, began):
            inner(me, began)
            owned.append((first.is_fresh(), first.owns("exp")))

        def refused(*_, **__):
            raise StoreUnavailable("the server cannot be reached")

        with opened(url) as first, opened(url) as second:
            experiment = make(first)
            first._writer._tried_at = float("inf")
            monkeypatch.setattr(first._database, "hold", refused)
            lose_sessions(url, first)
            with pytest.raises(StoreUnavailable):
                first.check()
            first._writer._tried_at = float("inf")
            first._owners.me._renewed = membership.since_start()
            assert experiment.spent == 0  # read again while nobody can have taken it
            assert first.owns("exp")
            first._owners.me._renewed -= 100
            execute(url, "UPDATE mfbandit_services SET seen = seen - 100 WHERE id = %s", first._owners.me.id)
            second.open("exp").ask()
            monkeypatch.undo()
            monkeypatch.setattr(Membership, "_note_renewal", noted)
            first._writer._tried_at = float("inf")
            with pytest.raises(StoreUnavailable, match="was out of reach, and is back"):
                first.check()
            monkeypatch.undo()
            assert (True, False) in owned
            assert (True, True) not in owned


class TestHandingOver:
    def test_whoever_gets_it_goes_on_where_it_was(self, url):
        with opened(url) as first, opened(url) as second:
            experiment = make(first)
            plays = experiment.ask(2)
            experiment.tell(plays[0], 0.5)
            before = seen(experiment)
            first.fleet.hand_over("exp", second.fleet.id)
            assert not first.owns("exp")
            with pytest.raises(StoreUnavailable, match="was handed over to another service: try again"):
                experiment.tell(plays[1], 0.5)
            with pytest.raises(StoreHeld):
                first.open("exp")
            theirs = second.open("exp")
            assert seen(theirs) == before
            theirs.tell(plays[1], 0.5)

    def test_nobody_reads_it_again_in_the_middle_of_it(self, url, monkeypatch):
        """What a failed write made stale is read by whoever asks next, and must not be answered from ever after."""
        with opened(url) as first, opened(url) as second:
            experiment = make(first)
            first._writer.generation += 1  # as after a write that failed
            write, answers = first.write, []

            def meanwhile(job):
                try:
                    answers.append(experiment.spent)  # another thread that looks at it
                except StoreUnavailable:
                    answers.append(None)
                write(job)

            monkeypatch.setattr(first, "write", meanwhile)
            first.fleet.hand_over("exp", second.fleet.id)
            monkeypatch.undo()
            assert len(answers) == 1
            theirs = second.open("exp")
            theirs.tell(theirs.ask(), 0.5)
            assert not first.owns("exp")
            with pytest.raises(StoreUnavailable, match="was handed over to another service: try again"):
                assert experiment.spent == theirs.spent

    def test_comes_after_all_that_was_asked_for_before(self, url):
        with opened(url) as first, opened(url) as second:
            experiment = make(first)
            queued, _ = experiment.queued()
            plays = [queued.ask() for _ in range(20)]
            first.fleet.hand_over("exp", second.fleet.id)
            assert list(second.open("exp").pending) == plays

    def test_experiments_go_where_they_belong_when_a_service_comes(self, url, monkeypatch):
        monkeypatch.setattr("mfbandit.store.fleet.SETTLED_SECONDS", 0.0)
        monkeypatch.setattr("mfbandit.store.fleet.BALANCE_SECONDS", 0.0)
        names = [f"ads-{number}" for number in range(12)]
        with opened(url) as first, opened(url) as second:
            first.fleet.serve_at("http://10.0.0.1:8000")
            for name in names:
                make(first, name)
            second.fleet.serve_at("http://10.0.0.2:8000")
            second.check()
            first.check()
            first.fleet.tend()
            moved = [name for name in names if not first.owns(name)]
            assert 2 < len(moved) < 10
            assert {one.address: one.experiments for one in second.services()}["http://10.0.0.2:8000"] == tuple(moved)
            assert [second.open(name).name for name in moved] == moved
            second.fleet.tend()
            assert all(second.owns(name) for name in moved)

    def test_one_that_cannot_be_handed_over_is_still_answered_for(self, url):
        with two(url) as (first, second):
            play_some(make(first), 3)
            before = seen(first.open("exp"))
            first._writer._tried_at = float("inf")  # it does not find out by itself
            lose_sessions(url, first)
            with pytest.raises(StoreUnavailable):
                first.fleet.hand_over("exp", second.fleet.id)
            assert seen(first.open("exp")) == before
            first.open("exp").ask()


def told_when_back(tell):
    deadline = time.monotonic() + 60
    while True:
        try:
            tell()
            return
        except StoreUnavailable:
            assert time.monotonic() < deadline
            time.sleep(0.05)


class TestADatabaseThatWentBack:
    """A server that was restored, or a replica that was behind, does not have what was acknowledged."""

    @pytest.mark.parametrize("column", ["commits", "id"])
    def test_is_refused(self, url, column):
        with opened(url) as store:
            experiment = make(store)
            play_some(experiment, 3)
            store._writer._tried_at = float("inf")
            execute(url, sql.SQL("UPDATE mfbandit_services SET {} = '1 2 0 0'").format(sql.Identifier(column)))
            lose_sessions_of_all(url)
            store._owners.me._renewed = -1e9
            with pytest.raises(StoreUnavailable):
                experiment.pause()
            with pytest.raises(StoreDamaged, match=r"has 0 of the \d events, and \d of the \d+ writes, that were ackn"):
                experiment.pause()


def lose_sessions_of_all(url):
    command = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()"
    execute(url, f"{command} AND pid <> pg_backend_pid()")


class TestEarlierVersions:
    def test_their_tables_are_brought_to_the_new_form(self, url):
        with opened(url) as store:
            play_some(make(store), 5)
            before = seen(store.open("exp"))
        execute(url, "DROP TABLE mfbandit_services")
        execute(url, "ALTER TABLE mfbandit_experiments DROP COLUMN owner, DROP COLUMN epoch")
        execute(url, "ALTER TABLE mfbandit_log DROP COLUMN actor")
        execute(url, "UPDATE mfbandit_store SET value = '1' WHERE key = 'schema'")
        with opened(url, read_only=True) as reader:
            assert seen(reader.open("exp"))[2:] == before[2:]
        with opened(url) as store:
            assert seen(store.open("exp")) == before
            play_some(store.open("exp"), 2)
        assert execute(url, "SELECT value FROM mfbandit_store WHERE key = 'schema'") == [("3",)]

    def test_one_that_writes_keeps_the_others_out(self, url, monkeypatch):
        monkeypatch.setattr("mfbandit.store.postgres.LOCK_WAIT_SECONDS", 0.2)
        with opened(url) as store, closing(store._database._connect("an old one")) as old:
            key = store._database._key(old)
        with closing(store._database._connect("an old one")) as old:
            old.query("SELECT pg_advisory_lock(?, ?)", (0x6D66, key))
            with pytest.raises(StoreHeld, match="is open for writing elsewhere: by an old one"):
                opened(url)


@contextmanager
def two(url):
    with opened(url) as first, opened(url) as second:
        yield first, second


def test_a_key_names_one_request_wherever_it_is_sent(url):
    with two(url) as (first, second):
        make(first, request_key="k")
        with pytest.raises(StoreHeld):
            make(second, request_key="k")
        first.close()
        assert make(second, request_key="k").name == "exp"
        assert second.list() == ("exp",)
