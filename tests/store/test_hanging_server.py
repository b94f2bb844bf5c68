"""A PostgreSQL server that does not answer: a stopped process, whose connections stay open."""

import os
import signal
import time
from contextlib import contextmanager

import pytest

from mfbandit import Store, StoreUnavailable
from mfbandit.store import postgres
from tests.support.services import create, served, talking
from tests.support.stores import make

SOON = postgres.SILENCE_SECONDS + 20  # seconds: one silence, and an attempt to connect, on a busy machine


@contextmanager
def stopped(server):
    pids = server.processes()
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


def test_a_store_gives_up_within_seconds_and_goes_on(own_postgres, monkeypatch):
    monkeypatch.setattr(postgres, "SILENCE_SECONDS", 1.0)
    with Store(own_postgres.database("hangs")) as store:
        experiment = make(store)
        play = experiment.ask()
        with stopped(own_postgres):
            began = time.monotonic()
            with pytest.raises(StoreUnavailable, match="the server did not answer for 1 seconds"):
                experiment.tell(play, 0.5)
            assert time.monotonic() - began < 25
        deadline = time.monotonic() + 120
        while True:
            try:
                experiment.tell(play, 0.5)
                break
            except StoreUnavailable:
                assert time.monotonic() < deadline
        assert sum(experiment.results_at) == 1


@pytest.mark.slow
@pytest.mark.no_cover
def test_the_service_answers_meanwhile(own_postgres):
    url = own_postgres.database("hangs")
    with served(url) as service, talking(service.url) as client:
        create(client, "ads")
        client.post("/api/experiments/ads/ask", json={})
        time.sleep(2.5)  # so that the tokens are due to be read again
        with stopped(own_postgres):
            began = time.monotonic()
            assert client.post("/api/experiments/ads/ask", json={}).status_code == 503
            assert time.monotonic() - began < SOON
            for _ in range(5):
                began = time.monotonic()
                assert client.get("/static/style.css").status_code == 200
                assert time.monotonic() - began < postgres.SILENCE_SECONDS / 2
                time.sleep(0.5)
        deadline = time.monotonic() + 120
        while client.post("/api/experiments/ads/ask", json={}).status_code != 200:
            assert time.monotonic() < deadline
