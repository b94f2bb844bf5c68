"""Updates of an open page: who shares them, what is drawn again, how old a part of them is, and where they are made."""

import asyncio
import threading
import time

import httpx
import pytest

from mfbandit import UCB, Bounded, Fidelities, Store, Sure
from mfbandit.service import create_app, live_updates
from mfbandit.service.certainty import UNKNOWN, Certainty
from mfbandit.service.dashboard import LOOKS_OF_AN_UPDATE
from mfbandit.service.pages import Pages
from mfbandit.service.view_models import AGE_SHOWN_SECONDS, experiment_view
from mfbandit.store import Sessions
from mfbandit.store.durable_experiment import SHORT_LOOKS

ONE = Fidelities([1], concentration=Bounded())
MOST_ARMS = SHORT_LOOKS // LOOKS_OF_AN_UPDATE  # of an experiment whose page is drawn between two answers


class Clock:
    """A store's time, set by hand."""

    def __init__(self):
        self.now = 1e9

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def store(tmp_path, clock):
    with Store(tmp_path / "a.db", clock=clock) as store:
        yield store


@pytest.fixture
def ads(store):
    ads = store.create("ads", UCB(), arms=["a", "b"], fidelities=ONE)
    tell(ads, "b")
    return ads


@pytest.fixture
def updates(store):
    return Pages(store, Sessions(store)).updates


def tell(experiment, arm):
    experiment.add_results([(arm, 0, 1.0, None)])


def working(seconds):
    """Keep a core busy for so long."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass
    return True


class TestSharing:
    def test_all_who_look_within_a_moment_see_the_same(self, ads, updates, monkeypatch):
        monkeypatch.setattr(live_updates, "shared_seconds", lambda _: 60.0)
        first = updates.of(ads)
        tell(ads, "a")
        assert updates.of(ads) is first

    def test_who_comes_later_sees_what_happened_since(self, ads, updates, monkeypatch):
        monkeypatch.setattr(live_updates, "shared_seconds", lambda _: 0.0)
        assert '<p class="big" id="results">1</p>' in updates.of(ads)
        tell(ads, "a")
        assert '<p class="big" id="results">2</p>' in updates.of(ads)

    def test_what_takes_long_is_shown_for_longer(self, ads, updates, monkeypatch):
        asked = list[float]()

        def noted(took):
            asked.append(took)
            return 0.0

        monkeypatch.setattr(live_updates, "shared_seconds", noted)
        updates.of(ads)
        monkeypatch.setattr(live_updates, "experiment_view", lambda *given: working(0.2) and experiment_view(*given))
        updates.of(ads)
        assert asked[0] < 0.2 <= asked[1]

    def test_who_opens_the_page_sees_what_they_did(self, ads, updates, monkeypatch):
        monkeypatch.setattr(live_updates, "shared_seconds", lambda _: 60.0)
        updates.of(ads)
        ads.pause()
        assert "paused" in updates.fresh(ads)
        assert "paused" in updates.of(ads)

    def test_nobody_sees_another_experiment(self, store, ads, updates):
        other = store.create("other", UCB(), arms=["c", "d"], fidelities=ONE)
        assert ("other" in updates.of(ads), "other" in updates.of(other)) == (False, True)

    def test_few_are_kept(self, store, updates, monkeypatch):
        monkeypatch.setattr(live_updates, "EXPERIMENTS_KEPT", 2)
        for name in "abc":
            updates.of(store.create(name, UCB(), arms=2, fidelities=ONE))
        assert len(updates._drawn) == 2

    def test_how_sure_it_is_is_drawn_once(self, ads, updates, monkeypatch):
        monkeypatch.setattr(live_updates, "shared_seconds", lambda _: 0.0)
        known = Certainty(ads.confidence(), events=ads.events)
        monkeypatch.setattr(updates._watch, "at_once", lambda _: known)
        before = updates.of(ads)
        monkeypatch.setattr(live_updates, "certainty_view", lambda *_: pytest.fail("it was drawn again"))
        tell(ads, "a")
        after = updates.of(ads)
        assert "Assumes:" in before
        assert "Assumes:" in after


class TestAge:
    @pytest.fixture
    def known(self, ads, clock):
        return Certainty(ads.confidence(), events=ads.events, at=clock.now)

    def test_is_shown_once_more_has_happened_and_time_has_passed(self, ads, clock, known):
        tell(ads, "a")
        clock.now += AGE_SHOWN_SECONDS - 1
        assert experiment_view(ads, known)["sure_as_of"] == ""
        clock.now += 5
        assert experiment_view(ads, known)["sure_as_of"] == "as of 7 s ago"

    def test_does_not_matter_where_nothing_happened_since(self, ads, clock, known):
        clock.now += 3600
        assert experiment_view(ads, known)["sure_as_of"] == ""

    def test_of_what_is_not_known_is_not_shown(self, ads):
        view = experiment_view(ads, UNKNOWN)
        assert (view["sure"], view["sure_as_of"]) == ("", "")

    def test_is_on_the_page(self, ads, clock, updates, known, monkeypatch):
        monkeypatch.setattr(updates._watch, "at_once", lambda _: known)
        tell(ads, "a")
        clock.now += 9
        page = updates.of(ads)
        assert '<span class="soft" id="sure-as-of">(as of 9 s ago)</span>' in page
        assert '<h2 id="how-sure">How sure it is, as of 9 s ago</h2>' in page


@pytest.mark.parametrize(("arms", "at_once"), [(MOST_ARMS, True), (MOST_ARMS + 1, False)])
def test_it_is_made_between_two_answers_unless_there_are_very_many_arms(store, monkeypatch, arms, at_once):
    store.create("many", UCB(), arms=arms, fidelities=ONE, stop=Sure(0.95))
    made_by = list[threading.Thread]()

    def noted(*given):
        made_by.append(threading.current_thread())
        return experiment_view(*given)

    monkeypatch.setattr(live_updates, "experiment_view", noted)

    async def look():
        transport = httpx.ASGITransport(create_app(store))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            return await client.get("/experiments/many/live")

    assert asyncio.run(look()).status_code == 200
    assert [thread is threading.current_thread() for thread in made_by] == [at_once]
