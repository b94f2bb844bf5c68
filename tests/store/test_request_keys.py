"""A repeated request gets the same answer, and makes nothing twice."""

import pytest

from mfbandit import (
    CapitalExhausted,
    Conflict,
    Store,
)
from mfbandit.experiment.events import (
    Asked,
    BiasRefuted,
    Expired,
    Noted,
    Opened,
)
from tests.support.stores import make, seen


class TestRequestKeys:
    def test_the_same_key_gives_the_same_plays(self, place):
        with Store(place) as store:
            experiment = make(store)
            one, three = experiment.ask(request_key="k1"), experiment.ask(3, request_key="k3")
            assert experiment.ask(request_key="k1") == one
            assert experiment.ask(3, request_key="k3") == three
            experiment.tell(one, 0.5)
        with Store(place) as store:
            experiment = store.open("exp")
            assert experiment.ask(request_key="k1") == one
            assert experiment.ask(3, request_key="k3") == three
            assert experiment.ask().id not in {play.id for play in [one, *three]}

    def test_also_for_arms_notes_imports_and_experiments(self, place):
        with Store(place) as store:
            for _ in range(2):
                experiment = make(store, request_key="c")
                assert experiment.add_arm("e", request_key="a") == 4
                experiment.note("once", request_key="n")
                plays = experiment.add_results([("a", 0, 0.5, None)] * 3, request_key="i")
                assert [play.id[-2:] for play in plays] == ["-0", "-1", "-2"]
            assert experiment.log.count(Noted("once")) == 1
            assert sum(experiment.results_at) == 3
            with pytest.raises(Conflict, match="Experiment 'exp' already exists"):
                make(store, request_key="another")
            with pytest.raises(Conflict, match="was already used for another request"):
                experiment.ask(request_key="n")

    def test_a_request_that_was_refused_may_be_tried_again(self, tmp_path):
        with Store(tmp_path / "store.db") as store:
            experiment = make(store, capital=1)
            play = experiment.ask(request_key="k")
            with pytest.raises(CapitalExhausted):
                experiment.ask(request_key="k2")
            experiment.fail(play)
            assert experiment.ask(request_key="k2").arm == 0

    def test_old_keys_are_forgotten_unless_their_plays_are_under_way(self, tmp_path, monkeypatch):
        monkeypatch.setattr("mfbandit._internal.limits.REQUEST_KEYS_KEPT", 10)
        with Store(tmp_path / "store.db") as store:
            experiment = make(store)
            kept = experiment.ask(request_key="kept")
            for i in range(60):
                experiment.tell(experiment.ask(request_key=f"k{i}"), 0.5)
            assert len(experiment._logged._folded.requests.known) <= 21
            assert experiment.ask(request_key="kept") == kept
        with Store(tmp_path / "store.db") as store:
            assert store.open("exp").ask(request_key="kept") == kept

    def test_leases_that_ran_out_are_no_part_of_the_request_that_found_them(self, place, clock):
        with Store(place, clock=clock) as store:
            experiment = make(store, lease=10)
            experiment.ask(3)
            clock.now += 20
            plays = experiment.ask(2, request_key="k")
            assert experiment.ask(2, request_key="k") == plays
        with Store(place, clock=clock) as store:
            assert store.open("exp").ask(2, request_key="k") == plays
            requests = {type(record.event): record.request for record in store.open("exp").records()}
            assert requests == {Opened: None, Asked: "k", Expired: None}

    def test_an_import_of_many_results_is_one_request(self, place, monkeypatch):
        """Requests are counted, not their events: a long file that is read again adds nothing."""
        monkeypatch.setattr("mfbandit._internal.limits.REQUEST_KEYS_KEPT", 10)
        parts = [[(arm % 4, fidelity, 0.9 * fidelity, None) for arm in range(8) for fidelity in (0, 2)]] * 8
        with Store(place) as store:
            for i, part in enumerate(parts):
                made = make(store, request_key="c").add_results(part, request_key=f"part {i}")
            before = seen(store.open("exp"))
            assert any(isinstance(event, BiasRefuted) for event in store.open("exp").log)
        with Store(place) as store:
            experiment = store.open("exp")
            for i, part in enumerate(parts):
                again = experiment.add_results(part, request_key=f"part {i}")
                assert len(again) == len(part)
            assert again == made
            assert seen(experiment) == before

    def test_old_requests_of_plays_under_way_are_whole(self, place, monkeypatch):
        monkeypatch.setattr("mfbandit._internal.limits.REQUEST_KEYS_KEPT", 5)
        with Store(place) as store:
            experiment = make(store)
            three = experiment.ask(3, request_key="three")
            experiment.tell_many([(play, 0.5, None) for play in three[:2]])
            for i in range(20):
                experiment.tell(experiment.ask(request_key=f"k{i}"), 0.5)
        with Store(place) as store:
            assert store.open("exp").ask(3, request_key="three") == three

    @pytest.mark.parametrize("key", ["", "x" * 201, "ü", "a\nb", 5])
    def test_must_be_short_and_plain(self, tmp_path, key):
        with Store(tmp_path / "store.db") as store, pytest.raises(ValueError, match="request_key must be 1 to 200"):
            make(store).ask(request_key=key)
