"""Leases keep their real length while the service is down or stopped, and when the clock jumps."""

import os
import signal
import time

import pytest

from mfbandit import UCB, Bounded, Fidelities, Store, connect
from mfbandit.errors import StoreUnavailable
from mfbandit.experiment.events import Expired, LeasesExtended
from mfbandit.store.outages import MAX_OUTAGES_KEPT, Outages
from mfbandit.store.writer import Writer
from tests.support.services import served
from tests.support.stores import make, seen

HOURS = 3600.0
FID = Fidelities([1], concentration=Bounded())


def kinds(experiment, kind):
    return [event for event in experiment.log if isinstance(event, kind)]


@pytest.fixture
def store(place, clock):
    """A store that is being served."""
    with Store(place, clock=clock) as store:
        store.begin_looking()
        yield store


class TestAClockThatJumps:
    def test_ahead_by_two_hours_ends_no_lease(self, store, clock):
        experiment = make(store, lease=60)
        plays = experiment.ask(8)
        clock.now += 1
        store.look()
        clock.now += 2 * HOURS
        experiment.ask()  # before the service has looked again
        store.look()
        experiment.expire()
        assert kinds(experiment, Expired) == []
        assert kinds(experiment, LeasesExtended) == [LeasesExtended(2 * HOURS)]
        assert experiment.leases[plays[0].id] == 1000.0 + 60 + 2 * HOURS
        experiment.tell_many([(play, 0.5, None) for play in plays])
        assert (experiment.set_aside, len(experiment.pending)) == ((), 1)

    def test_back_leaves_leases_no_longer_than_they_were(self, store, clock):
        experiment = make(store, lease=60)
        play = experiment.ask()
        clock.now -= 2 * HOURS
        store.look()
        experiment.ask()
        assert experiment.leases[play.id] == clock.now + 60
        for _ in range(61):
            clock.now += 1
            store.look()
        experiment.expire()
        assert len(kinds(experiment, Expired)) == 2

    def test_a_lease_still_ends_in_its_time(self, store, clock):
        experiment = make(store, lease=60)
        experiment.ask()
        for _ in range(60):
            clock.now += 1
            store.look()
        experiment.expire()
        assert (len(kinds(experiment, Expired)), kinds(experiment, LeasesExtended)) == (1, [])

    def test_every_verb_looks_before_it_changes_anything(self, store, clock):
        experiment = make(store, lease=60)
        first, second = experiment.ask(2)
        clock.now += 2 * HOURS
        experiment.tell(first, 0.5)
        assert [type(event).__name__ for event in experiment.log][-2:] == ["LeasesExtended", "Told"]
        assert experiment.leases[second.id] == clock.now + 60

    def test_nothing_is_written_where_nothing_is_leased(self, store, clock):
        experiment = make(store, lease=60)
        clock.now += 2 * HOURS
        play = experiment.ask()
        assert kinds(experiment, LeasesExtended) == []
        assert experiment.leases == {play.id: clock.now + 60}


class TestAServiceThatWasAway:
    def test_extends_leases_when_an_experiment_is_opened(self, place, clock):
        with Store(place, clock=clock) as store:
            store.begin_looking()
            play = make(store, lease=60).ask()
            clock.now += 20
            store.end_looking()
        clock.now += 2 * HOURS
        with Store(place, clock=clock) as store:
            store.begin_looking()
            clock.now += 2
            experiment = store.open("exp")
            experiment.expire()
            experiment.ask()
            before = seen(experiment), experiment.leases
            # It was asked for at 1000, and the last look that counts is the one of the event itself.
            assert experiment.leases[play.id] == 1060 + 2 * HOURS + 20
        with Store(place, clock=clock) as store:
            assert (seen(store.open("exp")), store.open("exp").leases) == before
            assert len(kinds(store.open("exp"), LeasesExtended)) == 1

    def test_twice_before_it_is_opened(self, place, clock):
        with Store(place, clock=clock) as store:
            store.begin_looking()
            play = make(store, lease=60).ask()
        for _ in range(2):
            clock.now += HOURS
            with Store(place, clock=clock) as store:
                store.begin_looking()
        with Store(place, clock=clock) as store:
            store.begin_looking()
            store.open("exp").ask()
            assert store.open("exp").leases[play.id] == 1060 + 2 * HOURS

    def test_only_by_what_a_later_play_has_missed(self, place, clock):
        with Store(place, clock=clock) as store:
            store.begin_looking()
            make(store, lease=60)
        clock.now += HOURS
        with Store(place, clock=clock) as store:  # on the command line, meanwhile
            play = store.open("exp").ask()
        clock.now += HOURS
        with Store(place, clock=clock) as store:
            store.begin_looking()
            store.open("exp").ask()
            assert store.open("exp").leases[play.id] == clock.now + 60

    def test_without_a_service_leases_run_on(self, place, clock):
        with Store(place, clock=clock) as store:
            store.begin_looking()
            store.end_looking()
            make(store, lease=60).ask()
            clock.now += 2 * HOURS
            store.look()
            store.open("exp").ask()
            assert len(kinds(store.open("exp"), Expired)) == 1

    def test_after_a_failed_write_they_are_extended_all_the_same(self, store, clock, monkeypatch):
        experiment = make(store, lease=60)
        play = experiment.ask()
        clock.now += 2 * HOURS
        with monkeypatch.context() as patch:
            patch.setattr("mfbandit.store.writer.pack", lambda _: 1 / 0)
            with pytest.raises(Exception, match="division"):
                experiment.ask()
        experiment.ask()
        assert kinds(experiment, Expired) == []
        assert experiment.leases[play.id] == clock.now + 60


def test_a_store_that_cannot_be_written_is_as_good_as_away(store, clock, monkeypatch):
    experiment = make(store, lease=60)
    play = experiment.ask()
    monkeypatch.setattr("mfbandit.store.store.LOOKS_KEPT_EVERY_SECONDS", 0.0)

    def failed(*_):
        raise StoreUnavailable("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(Writer, "_commit", failed)
        for _ in range(3 * 60):
            store.look()
            clock.now += 1
            if store._looks_kept is not None:
                with pytest.raises(StoreUnavailable):
                    store._looks_kept.wait()
    store.look()
    experiment.ask()
    store.look()
    experiment.expire()
    assert kinds(experiment, Expired) == []
    assert clock.now + 50 < experiment.leases[play.id] <= clock.now + 60


@pytest.mark.parametrize("kept", ["", "{", "[]", '{"at": "x"}', '{"at": 1, "outages": [3]}'])
def test_a_row_that_says_nothing(kept):
    outages = Outages()
    outages.begin(1e9, kept)
    assert len(outages) == 0


def test_what_is_kept_stays_small():
    outages = Outages()
    outages.begin(0.0)
    for step in range(3 * MAX_OUTAGES_KEPT):
        outages.look(10.0 * step)
    again = Outages()
    again.begin(10.0 * step, outages.to_keep())
    assert len(again) == MAX_OUTAGES_KEPT


@pytest.mark.slow
class TestAProcess:
    """With real time: leases of six seconds, and a service that is away for nine."""

    def test_that_was_down_for_longer_than_the_leases(self, tmp_path):
        with served(tmp_path / "a.db") as service, connect(service.url) as there:
            plays = there.create("e", UCB(), arms=4, fidelities=FID, lease=6.0).ask(16)
            service.kill()
        time.sleep(9)
        with served(tmp_path / "a.db") as service, connect(service.url) as there:
            experiment = there.open("e")
            time.sleep(1.5)  # it has looked for leases that ran out
            experiment.tell_many([(play, 0.5, None) for play in plays])
            assert kinds(experiment, Expired) == []
            assert (experiment.set_aside, experiment.status()["warnings"]) == ((), [])

    def test_that_was_stopped_for_longer_than_the_leases(self, tmp_path):
        with served(tmp_path / "a.db") as service, connect(service.url) as there:
            experiment = there.create("e", UCB(), arms=4, fidelities=FID, lease=6.0)
            plays = experiment.ask(16)
            os.kill(service.process.pid, signal.SIGSTOP)
            time.sleep(9)
            os.kill(service.process.pid, signal.SIGCONT)
            time.sleep(1.5)  # it has looked for leases that ran out
            experiment.tell_many([(play, 0.5, None) for play in plays])
            assert kinds(experiment, Expired) == []
            assert len(kinds(experiment, LeasesExtended)) == 1
            experiment.ask(4)
            deadline = time.monotonic() + 60
            while experiment.pending:  # until their time really has passed
                assert time.monotonic() < deadline
                time.sleep(0.1)
