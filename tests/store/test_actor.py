"""Who did it: the name of whoever asked for an event is kept beside it."""

import json
import sqlite3
from contextlib import closing

import httpx
import pytest

from mfbandit import Store, StoreDamaged
from mfbandit.errors import InvalidArgument
from mfbandit.experiment.events import Asked, Expired, Noted, Opened, Paused, Told
from mfbandit.store import acting_as, examine, jsonl
from tests.support.services import served
from tests.support.stores import make, play_some


def who(experiment, *kinds):
    return [record.actor for record in experiment.records() if isinstance(record.event, kinds)]


def test_it_is_kept_beside_each_event_and_nobody_is_named_for_what_happened_by_itself(place, clock):
    with Store(place, clock=clock) as store:
        experiment = make(store, lease=60)
        with acting_as("crew 7"):
            play_some(experiment, 2)
            experiment.ask(request_key="k")
        with acting_as("Zoë"):
            experiment.note("hello")
        experiment.pause()
        clock.now += 61
        experiment.expire()
        assert experiment.recently().events[1].actor == "Zoë"
    with Store(place, clock=clock) as store:
        experiment = store.open("exp")
        assert [one.actor for one in experiment.recently().events] == [None, "Zoë"]
        assert who(experiment, Asked, Told) == ["crew 7"] * 5
        assert (who(experiment, Noted), who(experiment, Paused)) == (["Zoë"], [None])
        assert set(who(experiment, Opened, Expired)) == {None}
        assert experiment.page(0, 100) == list(experiment.records())
        lines = [json.loads(line) for line in jsonl(experiment.records())]
        assert [line.get("actor") for line in lines] == [record.actor for record in experiment.records()]


def test_a_request_that_comes_again_is_that_of_whoever_came_first(place):
    with Store(place) as store:
        experiment = make(store)
        for name in ("first", "second"):
            with acting_as(name):
                experiment.ask(request_key="k")
        assert who(experiment, Asked) == ["first"]


@pytest.mark.parametrize("name", ["", "two\nlines", "x" * 65])
def test_a_name_must_be_short_and_printable(name):
    with pytest.raises(InvalidArgument, match="name must be 1 to 64 printable characters"), acting_as(name):
        pass


@pytest.mark.parametrize("damage", ["'crew 8' || substr(actor, 7)", "'crew 7'", "x'00'", "actor || '0'"])
def test_a_name_that_is_not_the_one_that_was_written_is_damage(tmp_path, damage):
    path = tmp_path / "store.db"
    with Store(path) as store, acting_as("crew 7"):
        make(store).pause()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f"UPDATE mfbandit_log SET actor = {damage} WHERE kind = 'Paused'")  # noqa: S608 - ours
    with Store(path, read_only=True) as store, pytest.raises(StoreDamaged, match="of whoever did it"):
        store.open("exp")
    assert [one.what for one in examine(str(path)) if one.mark == "wrong"] == ["experiment exp"]


def test_a_store_from_before_opens_and_names_whoever_comes_from_now_on(tmp_path):
    path = tmp_path / "store.db"
    with Store(path) as store:
        make(store).pause()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("ALTER TABLE mfbandit_log DROP COLUMN actor")
        connection.execute("UPDATE mfbandit_store SET value = '1' WHERE key = 'schema'")
    with Store(path, read_only=True) as store:
        assert who(store.open("exp"), Paused) == [None]
        assert len(store.open("exp").recently().events) == 1
    with Store(path) as store, acting_as("me"):
        store.open("exp").resume()
        assert [record.actor for record in store.open("exp").records()][-1] == "me"
    assert not [one for one in examine(str(path)) if one.mark == "wrong"]


def test_over_http_it_is_the_name_of_the_token_or_of_that_of_the_session(tmp_path):
    path = tmp_path / "store.db"
    with Store(path) as store:
        make(store)
        crew, boss = store.create_token("crew 7", "write"), store.create_token("boss", "admin")
    with served(path) as service, httpx.Client(base_url=service.url) as client:
        headers = {"authorization": f"Bearer {crew}"}
        client.post("/api/experiments/exp/ask", json={"n": 3}, headers=headers)
        client.post("/api/experiments/exp/notes", json={"text": "hello"}, headers=headers)
        origin = {"origin": service.url}
        client.post("/sign-in", data={"token": boss, "next": "/"}, headers=origin)
        client.post("/experiments/exp/do/pause", headers=origin)
        events = client.get("/api/experiments/exp/log", headers=headers).json()["events"]
    assert [one["actor"] for one in events if one["event"] != "Opened"] == ["crew 7"] * 4 + ["boss"]
