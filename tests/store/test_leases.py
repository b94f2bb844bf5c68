"""Plays that are not told in time are taken back, and late results still count."""

import pytest

from mfbandit import (
    Conflict,
    Store,
)
from mfbandit.experiment import Record
from mfbandit.experiment.events import (
    Asked,
    Expired,
    Opened,
    Renewed,
    Told,
)
from mfbandit.store.leases import Leases
from tests.support.stores import make, seen


class TestLeases:
    def test_a_play_is_taken_back_and_takes_one_late_result(self, place, clock):
        with Store(place, clock=clock) as store:
            experiment = make(store, capital=30, lease=60)
            late = experiment.ask()
            clock.now += 60
            again = experiment.ask()
            assert (again.arm, again.id != late.id) == (late.arm, True)
            assert [type(event) for event in experiment.log] == [Opened, Asked, Expired, Asked]
            experiment.tell(late, 0.5)
            experiment.tell(late, 0.5)
            with pytest.raises(Conflict, match="already has the outcome reward"):
                experiment.tell(late, 0.6)
            assert (experiment.spent, experiment.reserved) == (1.0, 1.0)
            before = seen(experiment)
        with Store(place, clock=clock) as store:
            assert seen(store.open("exp")) == before

    def test_leases_run_on_while_nobody_has_the_store_open(self, place, clock):
        with Store(place, clock=clock) as store:
            play = make(store, lease=60).ask()
            longer = store.open("exp").ask(lease=500)
            for_ever = make(store, "other", lease=None).ask()
        clock.now += 100
        with Store(place, clock=clock) as store:
            experiment = store.open("exp")
            experiment.expire()
            assert [one.id for one in experiment.pending] == [longer.id]
            assert list(experiment.leases) == [longer.id]
            assert [one.id for one in store.open("other").pending] == [for_ever.id]
            experiment.fail(play, cost=0.5)
            with pytest.raises(Conflict, match="already has the outcome failed"):
                experiment.tell(play, 0.5)

    def test_renewing(self, place, clock):
        with Store(place, clock=clock) as store:
            experiment = make(store, lease=60)
            play = experiment.ask()
            clock.now += 50
            assert experiment.renew(play) == clock.now + 60
        with Store(place, clock=clock) as store:
            experiment = store.open("exp")
            clock.now += 50
            experiment.expire()
            assert len(experiment.pending) == 1
            clock.now += 11
            with pytest.raises(Conflict, match="only a pending play can be renewed, got Expired"):
                experiment.renew(play)
            assert Renewed in {type(event) for event in experiment.log}
            assert experiment.renew(experiment.ask(), lease=1e9) == clock.now + 1e9

    def test_the_end_of_a_lease_that_was_renewed_is_no_end(self, place, clock):
        with Store(place, clock=clock) as store:
            experiment = make(store, lease=10)
            play = experiment.ask()
            experiment.renew(play, lease=100)
            clock.now += 50
            experiment.expire()
            experiment.ask()
            assert play in experiment.pending
            experiment.add_results([(0, 0, 0.5, None)])
            *_, asked, _ = experiment.records()
            assert asked.due is None
        with Store(place, clock=clock) as store:
            store.open("exp").ask()
            assert play in store.open("exp").pending
            clock.now += 51
            store.open("exp").expire()
            assert play not in store.open("exp").pending

    def test_that_run_out_set_no_arm_aside(self, place, clock):
        with Store(place, clock=clock) as store:
            experiment = make(store, lease=60)
            for _ in range(5):
                experiment.ask(8)
                clock.now += 61
            experiment.expire()
            assert len([event for event in experiment.log if isinstance(event, Expired)]) == 40
            assert (experiment.set_aside, experiment.status()["warnings"]) == ((), [])
        with Store(place, clock=clock) as store:
            assert store.open("exp").set_aside == ()

    def test_late_results_may_cost_more_than_the_capital(self, place, clock):
        with Store(place, clock=clock) as store:
            experiment = make(store, arms=1, capital=20, lease=60)
            late = []
            for _ in range(3):
                late += experiment.ask(20)
                clock.now += 61
            experiment.tell_many([(play, 0.5, None) for play in late])
            cost = sum(play.cost for play in late)
            said = f"WARNING: spent {cost:g} of 20: results came after their plays had expired"
            assert (experiment.spent, experiment.status()["warnings"]) == (cost, [said])
            assert cost > 40
        with Store(place, clock=clock) as store:
            experiment = store.open("exp")
            assert (experiment.state, experiment.status()["warnings"]) == ("exhausted", [said])

    @pytest.mark.parametrize("lease", [0, -1, float("nan"), float("inf"), "x"])
    def test_must_be_positive(self, tmp_path, lease):
        with Store(tmp_path / "store.db") as store:
            with pytest.raises(ValueError, match="lease must be"):
                make(store, lease=lease)
            with pytest.raises(ValueError, match="lease must be"):
                make(store).ask(lease=lease)
            assert store.open("exp").pending == ()


def test_the_queue_does_not_keep_what_is_settled():
    """Else a service that makes a thousand plays a second keeps a day of them for a lease of a day."""
    leases = Leases()
    for number in range(10_000):
        leases.apply(Record(2 * number + 1, 0.0, Asked(number, 0, 0), due=1e6 + number))
        if number % 100:
            leases.apply(Record(2 * number + 2, 0.0, Told(number, 0.5, 1.0)))
    assert len(leases.due) == 100
    assert len(leases._queue) < 300
    assert leases.take_expired(now=2e6) == list(range(0, 10_000, 100))
