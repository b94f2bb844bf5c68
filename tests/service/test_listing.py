"""Lists of many experiments, a page at a time; one that is damaged does not hide the others."""

import asyncio
import json
import sqlite3
import subprocess
import sys
import threading
import time

import httpx
import pytest

from mfbandit import MFUCB, Experiment, Fidelities, SubGaussian, connect
from mfbandit import Store as OpenStore
from mfbandit.errors import InvalidArgument
from mfbandit.service import create_app
from mfbandit.service.dashboard import EXPERIMENTS_PER_PAGE
from mfbandit.store import log_reader
from mfbandit.store.log_reader import first_digest
from tests.support.services import FIDELITIES, served
from tests.support.stores import FID, make

LONE = "ad-\ud800"


@pytest.fixture
def store(tmp_path):
    with OpenStore(tmp_path / "store.db") as store:
        yield store


class Client:
    """Requests to an application in this process."""

    def __init__(self, store):
        self._app = create_app(store)

    def get(self, address):
        return asyncio.run(self._send("GET", address))

    def post(self, address, content):
        return asyncio.run(self._send("POST", address, content, {"content-type": "application/json"}))

    async def _send(self, method, address, content=None, headers=None):
        transport = httpx.ASGITransport(self._app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            return await client.request(method, address, content=content, headers=headers)


@pytest.fixture
def client(store):
    return Client(store)


def add_rows(path, number):
    """Experiments without events, by the row: making them one by one would flush each."""
    definition = (
        '{"id": "0a1b2c3d4e5f", "policy": {"name": "MFUCB", "rho": 2.0}, "arms": ["a", "b"], "capital": null, '
        '"lease": null, "fidelities": {"costs": [1.0], "biases": [0.0], "concentration": {"name": "SubGaussian", '
        '"scale": 0.2}}}'
    )
    rows = [
        (1000 + i, f"e{i}", 0.0, definition, None, 0, first_digest(f"e{i}", definition, 0.0, None))
        for i in range(number)
    ]
    with sqlite3.connect(path) as connection:
        connection.executemany("INSERT INTO mfbandit_experiments VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
    connection.close()


class TestPages:
    def test_of_the_store_follow_each_other(self, store):
        for name in "abcde":
            make(store, name)
        names, after = store.list_page(limit=2)
        assert names == ("a", "b")
        store.delete("b", confirm="b")  # what the page before ended with
        names, after = store.list_page(after=after, limit=2)
        assert names == ("c", "d")
        assert store.list_page(after=after, limit=2) == (("e",), None)
        assert store.list() == ("a", "c", "d", "e")

    @pytest.mark.parametrize(("after", "limit"), [(-1, 2), (0, 0), (0, -1), ("a", 1)])
    def test_must_make_sense(self, store, after, limit):
        with pytest.raises(InvalidArgument, match=r"(after|limit) must be"):
            store.list_page(after=after, limit=limit)

    def test_over_http(self, store, client):
        for name in "abc":
            make(store, name)
        first = client.get("/api/experiments?limit=2").json()
        assert first["experiments"] == ["a", "b"]
        assert client.get(f"/api/experiments?limit=2&after={first['next']}").json() == {
            "experiments": ["c"],
            "next": None,
        }
        assert client.get("/api/experiments?limit=0").status_code == 422

    def test_ten_thousand_are_listed_by_client_and_page(self, tmp_path):
        with OpenStore(tmp_path / "store.db"):
            pass
        add_rows(tmp_path / "store.db", 10_000)
        with served(tmp_path / "store.db") as service, connect(service.url) as remote:
            start = time.perf_counter()
            names = remote.list()
            assert time.perf_counter() - start < 5  # it takes some hundredths of a second
            assert names == tuple(f"e{i}" for i in range(10_000))

    def test_of_the_dashboard_show_some_and_link_to_the_next(self, client, tmp_path):
        add_rows(tmp_path / "store.db", EXPERIMENTS_PER_PAGE + 5)
        first = client.get("/").text
        assert first.count('<tr id="row-') == EXPERIMENTS_PER_PAGE
        last = f"e{EXPERIMENTS_PER_PAGE - 1}"
        assert f'href="/?after={1000 + EXPERIMENTS_PER_PAGE - 1}"' in first
        assert f"/experiments/{last}" in first
        second = client.get(f"/?after={1000 + EXPERIMENTS_PER_PAGE - 1}").text
        assert second.count('<tr id="row-') == 5
        assert f'hx-get="/live?after={1000 + EXPERIMENTS_PER_PAGE - 1}"' in second
        assert 'href="/"' in second
        assert client.get("/?after=x").status_code == 422


def test_making_one_reads_no_other(store, monkeypatch):
    """Else a thousand experiments take a thousand times a thousand reads."""
    make(store, "first")
    read, inner = [], log_reader._entry

    def counted(row):
        read.append(row[1])
        return inner(row)

    monkeypatch.setattr(log_reader, "_entry", counted)
    make(store, "second")
    assert set(read) == {"second"}
    store.list()
    assert set(read) == {"second"}


class TestDamage:
    def test_of_one_experiment_is_shown_beside_the_others(self, store, client, tmp_path):
        make(store, "good").ask()
        make(store, "bad").note("hello")
        make(store, "fine")
        with sqlite3.connect(tmp_path / "store.db") as connection:
            connection.execute("UPDATE mfbandit_log SET time = 7 WHERE experiment = 2")
            connection.execute("UPDATE mfbandit_experiments SET definition = 'x' WHERE name = 'fine'")
        connection.close()
        store._open.clear()
        for page in ("/", "/live"):
            answer = client.get(page)
            assert answer.status_code == 200
            assert answer.text.count('class="state damaged">damaged<') == 2
            assert '<span class="state running">running</span>' in answer.text
        assert client.get("/api/experiments").json()["experiments"] == ["good", "bad", "fine"]

    def test_is_not_looked_for_again_at_every_update(self, store, client, tmp_path, monkeypatch):
        make(store, "bad")
        with sqlite3.connect(tmp_path / "store.db") as connection:
            connection.execute("UPDATE mfbandit_experiments SET definition = 'x'")
        connection.close()
        store._open.clear()
        opened, inner = [], store.open

        def counted(name):
            opened.append(name)
            return inner(name)

        monkeypatch.setattr(store, "open", counted)
        for _ in range(3):
            assert "damaged" in client.get("/live").text
        assert opened == ["bad"]

    def test_one_that_is_busy_does_not_delay_the_page(self, store, client, monkeypatch):
        make(store, "busy", policy=MFUCB(rho=7))
        make(store, "other")
        waiting, go_on, choose = threading.Event(), threading.Event(), MFUCB.choose

        def slow(policy, *args):
            if policy.rho == 7:
                waiting.set()
                go_on.wait(timeout=30)
            return choose(policy, *args)

        monkeypatch.setattr(MFUCB, "choose", slow)
        asking = threading.Thread(target=store.open("busy").ask)
        asking.start()
        waiting.wait(timeout=30)
        text = client.get("/").text
        assert asking.is_alive()
        assert 'class="state busy">busy<' in text
        assert 'class="state running">running<' in text
        go_on.set()
        asking.join(timeout=30)


class TestLoneSurrogates:
    def test_are_refused_in_memory(self):
        for arms in ([LONE, "b"], ["a", "\udfff"]):
            with pytest.raises(InvalidArgument, match="arms must be named in valid Unicode, got"):
                Experiment(MFUCB(), arms=arms, fidelities=FID)
        experiment = Experiment(MFUCB(), arms=2, fidelities=FID)
        with pytest.raises(InvalidArgument, match="in valid Unicode"):
            experiment.add_arm(LONE)
        with pytest.raises(InvalidArgument, match="text must be valid Unicode"):
            experiment.note(LONE)
        named = Fidelities([1, 2, 3], [0.2, 0.1, 0], SubGaussian(1), names=["a", "b", LONE])
        with pytest.raises(InvalidArgument, match="fidelities must be named in valid Unicode"):
            Experiment(MFUCB(), arms=2, fidelities=named)
        with pytest.raises(InvalidArgument, match="fidelities must be named in valid Unicode"):
            experiment.set_fidelities(named)

    def test_are_refused_by_the_service(self, client):
        content = json.dumps({"name": "x", "arms": [LONE, "b"], "fidelities": FIDELITIES})
        answer = client.post("/api/experiments", content)
        assert answer.status_code == 422
        assert "/api/experiments" not in answer.text
        assert client.get("/api/experiments").json()["experiments"] == []

    def test_of_an_earlier_store_are_shown_safely(self, store, client, monkeypatch):
        with monkeypatch.context() as patch:
            patch.setattr("mfbandit.experiment.checks.check_text", lambda *_: None)
            made = make(store, "old", arms=[LONE, "b"])
            make(store, "other")
            made.tell(made.ask(), 0.5)
        store._open.clear()
        for page in ("/", "/live", "/experiments/old", "/experiments/old/live"):
            answer = client.get(page)
            assert answer.status_code == 200, page
            assert r"ad-\ud800" in answer.text
        views = (
            "",
            "/best",
            "/arms",
            "/pending",
            "/stats",
            "/bounds",
            "/audit",
            "/confidence",
            "/definition",
            "/log",
            "/export",
        )
        for view in views:
            answer = client.get(f"/api/experiments/old{view}")
            assert answer.status_code == 200, view
        again = Experiment.from_json(store.open("old").to_json())
        assert again.arms == (LONE, "b")

    def test_of_an_earlier_store_are_printed_safely(self, tmp_path, monkeypatch):
        with monkeypatch.context() as patch, OpenStore(tmp_path / "old.db") as store:
            patch.setattr("mfbandit.experiment.checks.check_text", lambda *_: None)
            made = make(store, "old", arms=[LONE, "b"])
            made.tell(made.ask(), 0.5)
        command = [sys.executable, "-m", "mfbandit", "experiment", "status", str(tmp_path / "old.db"), "old"]
        ended = subprocess.run(command, capture_output=True, text=True, check=True)
        assert r"ad-\ud800" in ended.stdout
