"""Bugs: an answer with an id, the traceback in the log under that id, and nothing of it told to anybody else."""

import asyncio
import logging
import re
import subprocess
import sys
import time

import anyio
import httpx
import numpy as np
import pytest

from mfbandit import MFUCB, Bounded, Fidelities, Store, StoreDamaged, StoreUnavailable, connect
from mfbandit.errors import InternalServiceError, MissingExtra
from mfbandit.service import app as app_module
from mfbandit.service.app import create_app
from mfbandit.service.controls import CONTROLS
from mfbandit.service.error_handlers import log_internal_error
from mfbandit.store import DurableExperiment
from tests.support.services import problem

FIDELITIES = Fidelities(costs=[1, 10], biases=[0.1, 0], concentration=Bounded(0, 1))
BUGS = {
    "KeyError": lambda: dict[str, int]()["x"],
    "ValueError": lambda: np.zeros(2) + np.zeros(3),  # numpy's, which is no wrong argument of a request
    "RuntimeError": lambda: next(iter_that_raises()),
    "MissingExtra": lambda: (_ for _ in ()).throw(MissingExtra("simulate needs numba: pip install 'mfbandit[sim]'")),
}


def iter_that_raises():
    raise RuntimeError("no internals")
    yield


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "a.db") as store:
        store.create("ads", MFUCB(), arms=["a", "b", "c"], fidelities=FIDELITIES, capital=1000)
        yield store


@pytest.fixture
def ask_for(store):
    """Send a request to the service in this process."""

    def send(method, address, **more):
        async def sent():
            transport = httpx.ASGITransport(create_app(store))
            async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
                return await client.request(method, address, **more)

        return asyncio.run(sent())

    return send


def broken(bug):
    def verb(*_, **__):
        BUGS[bug]()

    return verb


def logged(caplog):
    """The one record in the log: its id, and its text with the traceback."""
    (record,) = (record for record in caplog.records if record.name == "mfbandit.service")
    assert record.levelno == logging.ERROR
    text = logging.Formatter().format(record)
    found = re.match(r"internal error ([0-9a-f]{8}) in ", text)
    assert found
    return found[1], text


def an_internal_error(answer, caplog, bug):
    """The answer must be a 500 with an id and no internals; the log has the traceback under the id."""
    identifier, text = logged(caplog)
    told = problem(answer, 500, "internal", identifier)
    assert told["id"] == identifier
    assert told.keys() == {"type", "title", "status", "detail", "id"}
    for internal in (bug, "Traceback", "no internals", "broadcast", "'x'", ".py"):
        assert internal not in answer.text
    assert "Traceback (most recent call last)" in text
    assert bug in text
    assert "BUGS[bug]()" in text
    assert answer.headers["x-mfbandit"] == "1"


@pytest.mark.parametrize("bug", BUGS)
@pytest.mark.parametrize(
    ("method", "address", "verb", "body"),
    [
        ("GET", "/api/experiments/ads", "status", None),
        ("POST", "/api/experiments/ads/ask", "ask", {}),
        ("POST", "/api/experiments/ads/pause", "pause", {}),
        ("GET", "/api/experiments/ads/bounds", "bounds", None),
    ],
)
def test_a_bug_in_a_verb(ask_for, monkeypatch, caplog, bug, method, address, verb, body):
    monkeypatch.setattr(DurableExperiment, verb, broken(bug))
    answer = ask_for(method, address, json=body)
    an_internal_error(answer, caplog, bug)
    assert f"in {method} '{address}'" in logged(caplog)[1]


@pytest.mark.parametrize("bug", ["KeyError", "ValueError"])
def test_a_bug_before_any_route(store, ask_for, monkeypatch, caplog, bug):
    monkeypatch.setattr(store, "needs_token", broken(bug))
    an_internal_error(ask_for("GET", "/api/experiments"), caplog, bug)


def test_tokens_that_cannot_be_read_are_no_bug(store, ask_for, monkeypatch, caplog):
    for error, code, kind in ((StoreUnavailable, 503, "unavailable"), (StoreDamaged, 500, "damaged")):

        def tokens(error=error):
            raise error("the disk is full")

        monkeypatch.setattr(store, "needs_token", tokens)
        problem(ask_for("GET", "/api/experiments"), code, kind, "the disk is full")
    assert not caplog.records


@pytest.mark.parametrize("bug", ["KeyError", "ValueError"])
@pytest.mark.parametrize(("address", "reads"), [("/", "headline"), ("/experiments/ads", "recently")])
def test_a_bug_in_a_page_is_a_page_with_the_id(ask_for, monkeypatch, caplog, bug, address, reads):
    monkeypatch.setattr(DurableExperiment, reads, broken(bug))
    answer = ask_for("GET", address)
    identifier, text = logged(caplog)
    assert answer.status_code == (200 if address == "/" else 500)  # a list shows the other experiments
    assert answer.headers["content-type"].startswith("text/html")
    assert f"its log has the traceback under id {identifier}" in answer.text
    assert bug not in answer.text
    assert "BUGS[bug]()" in text


def test_a_bug_in_an_update_of_a_page_is_a_problem(ask_for, monkeypatch, caplog):
    """What is shown stays, and a notice says that it may be old."""
    monkeypatch.setattr(DurableExperiment, "recently", broken("KeyError"))
    an_internal_error(ask_for("GET", "/experiments/ads/live"), caplog, "KeyError")


def test_a_bug_in_a_control(ask_for, monkeypatch, caplog):
    monkeypatch.setattr(DurableExperiment, "pause", broken("KeyError"))
    headers = {"origin": "http://localhost", "content-type": "application/x-www-form-urlencoded"}
    answer = ask_for("POST", "/experiments/ads/do/pause", headers=headers)
    assert (answer.status_code, logged(caplog)[0] in answer.text) == (500, True)
    assert "pause" in CONTROLS


def test_a_form_without_end_is_refused(ask_for):
    headers = {"origin": "http://localhost", "content-type": "application/x-www-form-urlencoded"}
    answer = ask_for("POST", "/sign-in", headers=headers, content="&".join(f"a{i}=1" for i in range(100)))
    problem(answer, 400, "invalid", "at most 20 fields")


def test_a_path_cannot_forge_lines_of_the_log(store, ask_for, monkeypatch, caplog):
    monkeypatch.setattr(store, "needs_token", broken("KeyError"))
    ask_for("GET", "/api/a%0ainternal error 00000000 in GET")
    first = logged(caplog)[1].splitlines()[0]
    assert first.endswith(r"in GET '/api/a\ninternal error 00000000 in GET'")


def test_leases_of_others_run_out_although_those_of_one_cannot(store, monkeypatch, caplog):
    """A bug is logged once, and every second nobody looks there any more."""
    good = store.create("good", MFUCB(), arms=2, fidelities=FIDELITIES)
    good.ask(lease=0.01)
    expire = DurableExperiment.expire

    def sometimes(experiment, **options):
        if experiment.name == "ads":
            broken("KeyError")()
        expire(experiment, **options)

    monkeypatch.setattr(DurableExperiment, "expire", sometimes)
    monkeypatch.setattr(app_module, "EXPIRY_INTERVAL_SECONDS", 0.01)
    store.open("ads")

    async def watched():
        with anyio.move_on_after(120):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(app_module._expire_leases, store)
                while good.pending:
                    await anyio.sleep(0.01)
                await anyio.sleep(0.05)
                tasks.cancel_scope.cancel()

    asyncio.run(watched())
    assert not good.pending
    assert "expiring leases of ads" in logged(caplog)[1]


SERVICE = """
import sys
from mfbandit.store import DurableExperiment
def bug(): return {}["no internals"]
def records(self, after=0): yield bug()
DurableExperiment.status, DurableExperiment.records = lambda self: bug(), records
from mfbandit.__main__ import main
main()
"""


def test_a_client_is_told_the_id_that_is_in_the_log_of_a_real_service(store, tmp_path):
    store.close()
    command = [sys.executable, "-c", SERVICE, "serve", str(tmp_path / "a.db"), "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        url = process.stderr.readline().split(" at ")[1].split()[0]
        try:
            with connect(url) as remote:
                began = time.monotonic()
                with pytest.raises(InternalServiceError) as caught:
                    remote.open("ads")
                assert time.monotonic() - began < 30  # a bug is not tried again
                with pytest.raises(httpx.RemoteProtocolError, match="incomplete"):  # and no answer only looks whole
                    httpx.get(f"{url}/api/experiments/ads/export")
                assert remote.list() == ("ads",)  # the service goes on
        finally:
            process.terminate()
        said = process.stderr.read()
    in_status, in_export = re.findall(r"internal error ([0-9a-f]{8}) in (GET '\S+') request_id=\S+\nTraceback", said)
    assert (in_status[1], in_export[1]) == ("GET '/api/experiments/ads'", "GET '/api/experiments/ads/export'")
    assert in_status[0] in str(caught.value)
    assert said.count("Traceback") == said.count("KeyError: 'no internals'") == 2


def test_ids_differ(caplog):
    ids = {log_internal_error(KeyError("x"), "a test").more["id"] for _ in range(100)}
    assert len(ids) == 100
    assert len(caplog.records) == 100
