"""Metrics, logs, ids of requests and readiness, at real services."""

import asyncio
import json
import re
import threading
import time

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from mfbandit import Store
from mfbandit.errors import StoreDamaged, StoreUnavailable
from mfbandit.service.metrics import MAX_EXPERIMENTS_NAMED, Metrics
from mfbandit.store import DatabaseOutage, GroupWatch
from tests.support.services import Service, create, problem, served, talking
from tests.support.stores import Clock, make

HUSH = "hush-hush"


def samples(text):
    """All samples of a scrape: value by name and labels."""
    found = {}
    for family in text_string_to_metric_families(text):
        for one in family.samples:
            key = (one.name, *sorted(one.labels.items()))
            assert key not in found, f"{key} is there twice"
            found[key] = one.value
    return found


def value(found, name, **labels):
    return found[name, *sorted(labels.items())]


def play(client, name, number):
    for _ in range(number):
        (one,) = client.post(f"/api/experiments/{name}/ask", json={}).json()["plays"]
        told = client.post(f"/api/experiments/{name}/tell", json={"results": [{"play": one["id"], "reward": 1}]})
        assert told.status_code == 200


def lines(said):
    """The entries of a log of JSON lines, each of which must be one."""
    return [json.loads(line) for line in said.splitlines()]


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    with served(tmp_path_factory.mktemp("metrics") / "store.db") as service, talking(service.url) as client:
        create(client, "ads", capital=100)
        play(client, "ads", 5)
        client.post("/api/experiments/ads/ask", json={"n": 2})
        client.get("/api/experiments/none-of-that-name")
        client.get("/wp-admin/17")
        client.get("/static/style.css")
        answer = client.get("/metrics")
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/plain; version=")
        return samples(answer.text)


class TestMetrics:
    def test_requests_are_counted_by_route_with_their_latencies(self, found):
        tell = {"method": "POST", "route": "/api/experiments/{name}/tell", "status": "200"}
        assert value(found, "mfbandit_request_seconds_count", **tell) == 5
        assert 0 < value(found, "mfbandit_request_seconds_sum", **tell) < 60
        assert value(found, "mfbandit_request_seconds_bucket", le="+Inf", **tell) == 5

    def test_a_path_that_is_no_route_has_no_label_of_its_own(self, found):
        routes = {dict(key[1:])["route"] for key in found if key[0] == "mfbandit_request_seconds_count"}
        assert not any("wp-admin" in route or "none-of" in route for route in routes)
        assert {"none", "/static/{name}"} <= routes

    def test_groups_flushes_and_queue(self, found):
        assert value(found, "mfbandit_group_requests_sum") == 11  # 6 asks, 5 tells
        assert 1 <= value(found, "mfbandit_flush_seconds_count") <= 11
        assert value(found, "mfbandit_queue") >= 0
        assert (value(found, "mfbandit_store_up"), value(found, "mfbandit_group_failures_total")) == (1, 0)

    def test_experiments(self, found):
        names = ("pending", "leases", "arms", "set_aside", "capital", "refuted", "warnings")
        assert [value(found, f"mfbandit_experiment_{name}", experiment="ads") for name in names] == [
            2,
            2,
            3,
            0,
            100,
            0,
            0,
        ]
        assert value(found, "mfbandit_experiment_results_total", experiment="ads") == 5
        assert value(found, "mfbandit_experiment_spent", experiment="ads") >= 5  # each costs 1 or 10
        assert value(found, "mfbandit_experiments", state="running") == 1

    def test_the_process(self, found):
        assert value(found, "process_resident_memory_bytes") > 1e6


class TestMetricsOfAStore:
    def test_labels_are_bounded_and_the_rest_is_summed(self, tmp_path):
        with Store(tmp_path / "store.db") as store:
            for number in range(MAX_EXPERIMENTS_NAMED + 3):
                make(store, f"e{number}").ask(2)
            make(store, "other").ask()
            found = samples(Metrics(store).text().decode())
        pending = {
            dict(key[1:])["experiment"]: n for key, n in found.items() if key[0] == "mfbandit_experiment_pending"
        }
        assert len(pending) == MAX_EXPERIMENTS_NAMED + 1
        assert (pending["e0"], pending["other"]) == (2, 3 * 2 + 1)

    def test_expiries_set_aside_arms_and_alarms(self, tmp_path):
        clock = Clock()
        with Store(tmp_path / "store.db", clock=clock) as store:
            exp = make(store, "ads", arms=["a", "b"], lease=60)
            for _ in range(3):
                exp.fail(exp.ask())
            for _ in range(3):
                exp.ask()
            clock.now += 61
            exp.expire()
            found = samples(Metrics(store).text().decode())
            assert value(found, "mfbandit_experiment_expiries_total", experiment="ads") == 3
            aside = value(found, "mfbandit_experiment_set_aside", experiment="ads")
            assert aside == len(exp.set_aside) >= 1
            assert value(found, "mfbandit_experiment_warnings", experiment="ads") == len(exp.incidents)

    def test_a_busy_experiment_delays_nobody_and_is_shown_as_it_was(self, tmp_path):
        with Store(tmp_path / "store.db") as store:
            exp, metrics = make(store, "ads"), Metrics(store)
            exp.ask()
            metrics.text()
            held, go_on = threading.Event(), threading.Event()

            def hold():
                with exp.still():
                    held.set()
                    go_on.wait(30)

            thread = threading.Thread(target=hold)
            thread.start()
            held.wait(30)
            try:
                found = samples(metrics.text().decode())
            finally:
                go_on.set()
                thread.join()
            assert value(found, "mfbandit_experiment_pending", experiment="ads") == 1


def test_an_outage_is_of_the_database_alone():
    seen: list[DatabaseOutage] = []
    watch = GroupWatch()
    watch.on_outage = seen.append
    watch.refused(StoreDamaged("a row is damaged"))
    assert (watch.outage, watch.failures, seen) == (None, 1, [])
    watch.refused(StoreUnavailable("gone"))
    watch.refused(StoreUnavailable("still gone"))
    watch.kept([], 0.1)
    assert [(one.error, one.refused, one.end is None) for one in seen] == [("gone", 1, True), ("gone", 2, False)]
    assert watch.outage is None


class TestTokens:
    def test_metrics_need_a_token_that_reads_and_ready_needs_none(self, tmp_path):
        with Store(tmp_path / "store.db") as store:
            reader = store.create_token("prometheus", "read")
        with served(tmp_path / "store.db") as service:
            with talking(service.url) as client:
                problem(client.get("/metrics"), 401, "unauthorized")
                assert client.get("/ready").status_code == 200
            with talking(service.url, reader) as client:
                assert client.get("/metrics").status_code == 200


class TestLogs:
    def test_json_lines_with_ids_and_names_and_without_secrets(self, tmp_path):
        with Store(tmp_path / "store.db") as store:
            token = store.create_token("crew 7", "admin")
        service = Service(tmp_path / "store.db", options=["--log-format", "json"])
        with talking(service.url, token) as client:
            create(client, "ads")
            given = client.get("/api/experiments/ads", headers={"x-request-id": "from-nginx.1"})
            assert given.headers["x-request-id"] == "from-nginx.1"
            made = client.get(f"/api/experiments/{token}?password={HUSH}", headers={"x-request-id": 'no "id"'})
            assert re.fullmatch(r"[0-9a-f]{8}-\d+", made.headers["x-request-id"])
            client.get("/a%0A%7B%22forged%22%3A1%7D")
        with talking(service.url, f"{token[:-1]}!") as client:
            assert client.get("/api/experiments").status_code == 401
        code, said = service.stop()
        assert code == 0
        assert token.split("_", 2)[2][:-1] not in said
        assert HUSH not in said
        entries = [one for one in lines(said) if one["logger"] == "mfbandit.access"]
        made_line, given_line, long_line, forged, refused = entries
        assert (made_line["method"], made_line["status"], made_line["token"]) == ("POST", 201, "crew 7")
        assert (given_line["request_id"], given_line["route"]) == ("from-nginx.1", "/api/experiments/{name}")
        assert given_line["path"] == "/api/experiments/ads"
        assert given_line["client"] == "127.0.0.1"
        assert 0 < given_line["seconds"] < 30
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", given_line["time"])
        assert long_line["path"] == "/api/experiments/***"
        assert (forged["route"], forged["status"]) == ("none", 404)
        assert (refused["status"], "token" in refused) == (401, False)

    def test_text_lines(self, tmp_path):
        service = Service(tmp_path / "store.db", options=["--log-format", "text"])
        with talking(service.url) as client:
            client.get("/a%0Aforged b")
        _, said = service.stop()
        (line,) = said.splitlines()
        assert re.search(
            r'Z INFO mfbandit.access: request request_id=\S+ method=GET path="/a\\nforged b" route=none', line
        )

    def test_without_a_format_requests_are_not_logged(self, tmp_path):
        with served(tmp_path / "store.db") as service, talking(service.url) as client:
            client.get("/health")  # and the service must have said nothing in the end

    def test_requests_can_be_left_out(self, tmp_path):
        service = Service(tmp_path / "store.db", options=["--log-format", "json", "--no-access-log"])
        httpx.get(f"{service.url}/health")
        assert service.stop() == (0, "")

    def test_a_bug_is_logged_with_the_id_of_its_request(self, tmp_path, monkeypatch, caplog):
        from mfbandit.service import create_app
        from mfbandit.service.logs import JsonLines
        from mfbandit.store import DurableExperiment

        monkeypatch.setattr(DurableExperiment, "status", lambda _: 1 / 0)
        written = []
        monkeypatch.setattr(caplog.handler, "emit", lambda record: written.append(JsonLines().format(record)))

        async def ask(app):
            transport = httpx.ASGITransport(app)
            async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
                return await client.get("/api/experiments/ads")

        with Store(tmp_path / "store.db") as store:
            make(store, "ads")
            answer = asyncio.run(ask(create_app(store)))
        assert answer.status_code == 500
        (entry,) = [one for one in map(json.loads, written) if one["logger"] == "mfbandit.service"]
        assert entry["request_id"] == answer.headers["x-request-id"]
        assert "ZeroDivisionError" in entry["traceback"]
        assert answer.json()["id"] in entry["message"]


def until_ready(client, status, seconds=120):
    deadline = time.monotonic() + seconds
    while True:
        answer = client.get("/ready")
        if answer.status_code == status:
            return answer.json()
        assert time.monotonic() < deadline, answer.text
        time.sleep(0.1)


@pytest.mark.postgres
def test_an_outage_of_postgresql_is_seen_and_logged(own_postgres):
    url = own_postgres.database("outage")
    service = Service(
        url.replace("postgres@", f"postgres:{HUSH}@"), options=["--log-format", "json", "--no-access-log"]
    )
    with talking(service.url) as client:
        create(client, "ads")
        play(client, "ads", 1)
        assert client.get("/ready").json()["status"] == "ready"
        assert value(samples(client.get("/metrics").text), "mfbandit_store_up") == 1
        own_postgres.stop()
        gone = until_ready(client, 503)  # nobody has to ask for anything else
        assert gone["detail"].startswith("the store cannot be written: ")
        found = samples(client.get("/metrics").text)
        assert value(found, "mfbandit_store_up") == 0
        assert value(found, "mfbandit_group_failures_total") >= 1
        assert value(found, "mfbandit_experiment_results_total", experiment="ads") == 1  # as it was
        own_postgres.start()
        until_ready(client, 200)
        assert sum(client.get("/api/experiments/ads").json()["results"]) == 1
    code, said = service.stop()
    assert code == 0
    assert HUSH not in said
    began, ended = (one for one in lines(said) if one["logger"] == "mfbandit.store")
    assert (began["event"], began["level"], ended["event"]) == ("outage-began", "error", "outage-ended")
    assert began["since"] == ended["since"]
    assert ended["seconds"] > 0
    assert ended["refused"] >= 1
