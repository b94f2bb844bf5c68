"""Creating and deleting experiments and tokens with request keys: done once."""

import pytest

from mfbandit import Conflict, Store, UnknownExperiment
from tests.support.services import problem, served, talking
from tests.support.stores import make

KEY = "0123456789abcdef0123456789abcdef"


def test_creating_is_bound_to_its_content(place):
    with Store(place) as store:
        first = make(store, request_key="k")
        assert make(store, request_key="k").id == first.id
        for other in ({"capital": 50}, {"name": "other"}):
            with pytest.raises(Conflict, match="Request key 'k' was already used for another request"):
                make(store, request_key="k", **other)
        store.delete("exp", confirm="exp")
        with pytest.raises(UnknownExperiment):  # which is not made again
            make(store, request_key="k")


def test_creating_again_does_not_give_the_next_one_of_that_name(place):
    with Store(place) as store:
        make(store, request_key="k")
        store.delete("exp", confirm="exp")
        other = make(store, capital=7)
        with pytest.raises(UnknownExperiment, match="'exp' of this request was deleted; there is another one now"):
            make(store, request_key="k")
        assert store.open("exp").id == other.id


def test_deleting_again_spares_the_next_one_of_that_name(place):
    with Store(place) as store:
        make(store)
        store.delete("exp", confirm="exp", request_key="d")
        make(store)
        store.delete("exp", confirm="exp", request_key="d")
        assert store.list() == ("exp",)


def test_a_token_that_nobody_received(place, clock):
    with Store(place, clock=clock) as store:
        lost = store.create_token("me", "admin", request_key="t")
        again = store.create_token("me", "admin", request_key="t")
        assert store.token(lost) is None
        with pytest.raises(Conflict, match="already used for another request"):
            store.create_token("me", "read", request_key="t")
        assert store.token(again) is not None  # and now it is used
        assert len(store.tokens()) == 1
        with pytest.raises(Conflict, match="which is in use, revoked or older than ten minutes"):
            store.create_token("me", "admin", request_key="t")
        old = store.create_token("old", "admin", request_key="o")
        clock.now += 601
        with pytest.raises(Conflict, match="older than ten minutes"):
            store.create_token("old", "admin", request_key="o")
        name = old.split("_")[1]
        store.revoke_token(name, request_key="r")
        store.revoke_token(name, request_key="r")
    with Store(place, clock=clock) as store:
        clock.now -= 601
        with pytest.raises(Conflict, match="which is in use"):  # on disk, too
            store.create_token("me", "admin", request_key="t")


def test_the_first_one_over_http(tmp_path):
    body = {"name": "me", "scope": "admin", "request_key": KEY}
    with served(tmp_path / "a.db") as service, talking(service.url) as client:
        lost = client.post("/api/tokens", json=body).json()["token"]
        for wrong in ({**body, "request_key": "x" * 32}, {**body, "scope": "read"}, {"name": "me", "scope": "admin"}):
            problem(client.post("/api/tokens", json=wrong), 401, "unauthorized")
        problem(client.get("/api/tokens"), 401, "unauthorized")
        token = client.post("/api/tokens", json=body).json()["token"]
        with talking(service.url, lost) as other:
            problem(other.get("/api/tokens"), 401, "unauthorized")
        with talking(service.url, token) as other:
            assert len(other.get("/api/tokens").json()["tokens"]) == 1
        problem(client.post("/api/tokens", json=body), 401, "unauthorized")
