"""Every route of a running service: what it answers, and what it says when it cannot."""

import csv
import io
import json
import subprocess
import sys
import time
from typing import Any

import pytest

import mfbandit
from mfbandit import Store
from mfbandit.service.api_page import api_page
from tests.support.services import FIDELITIES, create, problem, served, talking


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with served(tmp_path_factory.mktemp("service") / "a.db") as service:
        yield service


@pytest.fixture
def client(service):
    with talking(service.url) as client:
        yield client


@pytest.fixture
def ads(client, request):
    """The address of a new experiment with the arms a, b and c."""
    name = "".join(c if c.isalnum() else "-" for c in request.node.name)[-60:].lstrip("-")
    create(client, name)
    return f"/api/experiments/{name}"


def post(client, address, **body):
    return client.post(address, json=body)


def ask(client, address, **body):
    answer = post(client, f"{address}/ask", **body)
    assert answer.status_code == 200, answer.text
    return answer.json()["plays"]


def tell(client, address, plays, reward=0.5):
    results = [{"play": play["id"], "reward": reward} for play in plays]
    assert post(client, f"{address}/tell", results=results).json() == {"done": len(plays)}


def events(client, address):
    return client.get(f"{address}/log").json()["events"]


class TestPages:
    def test_health_says_that_it_can_write(self, client):
        assert client.get("/health").json() == {"status": "ok", "version": mfbandit.__version__}

    def test_reference_lists_every_route_and_loads_nothing(self, client):
        page = client.get("/api")
        assert page.headers["content-type"].startswith("text/html")
        assert "<script" not in page.text
        assert "http://" not in page.text
        document = client.get("/openapi.json").json()
        assert page.text == api_page(document)
        for path in document["paths"]:
            assert path in page.text

    def test_what_is_not_there(self, client):
        problem(client.get("/nowhere"), 404, "not-found", "No route GET /nowhere")
        problem(client.get("/api/experiments/"), 404, "not-found")
        answer = client.put("/api/experiments", json={})
        problem(answer, 405, "method", "No route PUT /api/experiments; there is ")
        assert "GET" in answer.headers["allow"]


class TestExperiments:
    def test_made_listed_and_deleted(self, client):
        made = create(client, "made", capital=100, lease=60, policy={"name": "UCB", "rho": 1.0})
        assert (made["name"], made["capital"], made["lease"], made["arms"]) == ("made", 100, 60, 3)
        assert made["policy"] == {"name": "UCB", "rho": 1.0, "kl": False}
        assert made["state"] == "running"
        assert client.get("/api/experiments/made").json() == made
        assert "made" in client.get("/api/experiments").json()["experiments"]
        address = "/api/experiments/made"
        problem(client.delete(address), 422, "invalid", "query.confirm")
        problem(
            client.delete(address, params={"confirm": "mad"}), 422, "invalid", "To delete 'made', pass confirm='made'"
        )
        assert client.delete(address, params={"confirm": "made"}).json() == {"deleted": "made"}
        problem(client.get(address), 404, "unknown-experiment", "'made'")
        problem(client.delete(address, params={"confirm": "made"}), 404, "unknown-experiment")

    def test_a_name_is_used_once_except_by_the_same_request(self, client):
        first = create(client, "once", request_key="k1")
        assert create(client, "once", request_key="k1")["id"] == first["id"]
        body = {"name": "once", "arms": 2, "fidelities": FIDELITIES}
        problem(post(client, "/api/experiments", **body), 409, "conflict", "Experiment 'once' already exists")
        problem(post(client, "/api/experiments", **body, request_key="k2"), 409, "conflict")

    @pytest.mark.parametrize(
        ("change", "said"),
        [
            ({"name": "a b"}, "body.name"),
            ({"arms": 0}, "greater than or equal to 1, got 0"),
            ({"arms": ["a", "a"]}, "arms must have different names, got 'a' twice"),
            ({"arms": [""]}, "at least 1 character"),
            ({"fidelities": {"costs": []}}, "body.fidelities.costs"),
            ({"fidelities": {"costs": [10, 1]}}, "costs"),
            ({"fidelities": {}}, "body.fidelities.costs: Field required"),
            ({"fidelities": {"costs": [1], "concentration": "bounded"}}, 'must be {"name": "Bounded", "low": 0, '),
            ({"fidelities": {"costs": [1], "concentration": "bounded"}}, "for each fidelity, got 'bounded'"),
            ({"policy": {"name": "Magic"}}, "got 'Magic'"),
            ({"policy": {"name": "MFUCB", "speed": 1}}, "policy MFUCB does not have the fields ['speed']"),
            ({"policy": {"name": "MFUCB", "rho": -1}}, "rho must be positive and finite, got -1"),
            ({"capital": 0.5}, "capital must pay for the first play"),
            ({"capital": -1}, "body.capital: Input should be greater than 0, got -1"),
            ({"lease": 0}, "body.lease"),
            ({"colour": "red"}, "body.colour: Extra inputs are not permitted, got 'red'"),
        ],
    )  # fmt: skip
    def test_what_makes_no_experiment(self, client, change, said):
        body = {"name": "wrong", "arms": 3, "fidelities": FIDELITIES, **change}
        problem(post(client, "/api/experiments", **body), 422, "invalid", said)
        assert "wrong" not in client.get("/api/experiments").json()["experiments"]

    def test_every_route_of_one_that_is_not_there(self, client):
        paths = client.get("/openapi.json").json()["paths"]
        bodies = {
            "ask": {}, "tell": {"results": [{"play": "a", "reward": 1}]}, "fail": {"plays": ["a"]}, "pause": {},
            "renew": {"plays": ["a"]}, "results": {"results": [{"arm": 0, "fidelity": 0, "reward": 1}]}, "resume": {},
            "capital": {"capital": 1}, "policy": {"policy": {"name": "UCB"}}, "arms": {"label": "z"},
            "retire": {"arm": 0}, "restore": {"arm": 0}, "notes": {"text": "x"}, "biases": {"biases": [0.1, 0]},
            "stop": {"stop": None}, "shares": {"least_share": 0.01}, "forget": {"arm": 0},
        }  # fmt: skip
        for path, methods in paths.items():
            for method in methods:
                if "{name}" in path:
                    address, verb = path.replace("{name}", "no-such"), path.rpartition("/")[2]
                    json = bodies[verb] if method == "post" else None
                    answer = client.request(
                        method, address, json=json, params={"confirm": "no-such", "first": 0, "second": 1}
                    )
                    problem(answer, 404, "unknown-experiment", "Experiment not found")


class TestPlays:
    def test_ask_gives_plays(self, client, ads):
        (play,) = ask(client, ads)
        assert play == {"id": play["id"], "arm": 0, "label": "a", "fidelity": 0, "cost": 1.0}
        assert [play["label"] for play in ask(client, ads, n=2)] == ["b", "c"]
        assert client.get(ads).json()["pending"] == 3

    def test_everything_that_is_wrong_is_said_at_once(self, client, ads):
        answer = client.post("/api/experiments/b d/ask", json={"n": 0, "k": 1})
        problem(answer, 422, "invalid", "path.name: ", "'b d'", "body.n: ", "got 0", "body.k: ")
        nothing = client.post(f"{ads}/ask", headers={"content-type": "application/json"})
        problem(nothing, 422, "invalid", "body: Field required")
        problem(client.post(f"{ads}/ask", json=[]), 422, "invalid", "body: Input should be a valid", "got []")

    def test_the_same_key_gives_the_same_plays(self, client, ads):
        first = ask(client, ads, n=2, request_key="k")
        assert ask(client, ads, n=2, request_key="k") == first
        tell(client, ads, first)
        assert ask(client, ads, n=2, request_key="k") == first
        assert ask(client, ads, n=2, request_key="other") != first
        problem(post(client, f"{ads}/notes", text="x", request_key="k"), 409, "conflict", "'k'", "already used")

    def test_as_many_as_fit_into_the_capital(self, client):
        create(client, "poor", capital=2)
        address = "/api/experiments/poor"
        assert len(ask(client, address, n=5)) == 2
        problem(post(client, f"{address}/ask"), 409, "capital-exhausted", "costs 1", "capital 2", "only 0 of")
        assert client.get(address).json()["state"] == "exhausted"

    def test_tell_takes_a_result_once(self, client, ads):
        (play,) = ask(client, ads)
        for _ in range(2):
            tell(client, ads, [play])
        assert client.get(ads).json()["results"] == [1, 0]
        answer = post(client, f"{ads}/tell", results=[{"play": play["id"], "reward": 0.6}])
        problem(answer, 409, "conflict", play["id"], "reward 0.5 at cost", "got reward 0.6")

    def test_all_results_or_none(self, client, ads):
        plays = ask(client, ads, n=3)
        tell(client, ads, plays[:1])
        good = [{"play": play["id"], "reward": 1.0} for play in plays[1:]]
        before = events(client, ads)
        for bad, kind in (
            ({"play": plays[0]["id"], "reward": 0.9}, "conflict"),
            ({"play": "nobody-0", "reward": 0.9}, "unknown-play"),
            ({"play": plays[1]["id"], "reward": 0.9}, "conflict"),
            ({"play": plays[1]["id"], "reward": 0.9, "cost": -1}, "invalid"),
        ):
            answer = post(client, f"{ads}/tell", results=[*good, bad])
            problem(answer, answer.status_code, kind)
            assert events(client, ads) == before
        assert post(client, f"{ads}/tell", results=good).json() == {"done": 2}

    def test_real_costs_count(self, client, ads):
        (play,) = ask(client, ads)
        post(client, f"{ads}/tell", results=[{"play": play["id"], "reward": 1, "cost": 0.25}]).raise_for_status()
        assert client.get(ads).json()["spent"] == 0.25

    def test_plays_are_failed_all_or_none(self, client, ads):
        plays = ask(client, ads, n=3)
        ids = [play["id"] for play in plays]
        tell(client, ads, plays[2:])
        before = events(client, ads)
        problem(post(client, f"{ads}/fail", plays=[ids[0], "nobody-0"]), 404, "unknown-play", "'nobody-0'")
        problem(post(client, f"{ads}/fail", plays=ids), 409, "conflict", ids[2])
        assert events(client, ads) == before
        for _ in range(2):
            assert post(client, f"{ads}/fail", plays=ids[:2], cost=0.5).json() == {"done": 2}
        assert client.get(ads).json()["spent"] == 2.0

    def test_leases_are_renewed_all_or_none(self, client, ads):
        plays = ask(client, ads, n=2, lease=100)
        ids = [play["id"] for play in plays]
        due = post(client, f"{ads}/renew", plays=ids, lease=5000).json()["due"]
        assert due.keys() == set(ids)
        assert all(abs(end - time.time() - 5000) < 60 for end in due.values())
        assert {play["id"]: play["due"] for play in client.get(f"{ads}/pending").json()["plays"]} == due
        tell(client, ads, plays[1:])
        before = events(client, ads)
        problem(post(client, f"{ads}/renew", plays=ids), 409, "conflict", "pending", "Told")
        problem(post(client, f"{ads}/renew", plays=[ids[0], "nobody-1"]), 404, "unknown-play")
        assert events(client, ads) == before

    def test_a_lease_that_runs_out_gives_the_play_back_and_still_takes_its_result(self, client, ads):
        plays = ask(client, ads, lease=0.3)
        end = time.monotonic() + 60
        while events(client, ads)[-1]["event"] != "Expired":  # nobody asks: the service looks by itself
            assert time.monotonic() < end
            time.sleep(0.1)
        assert client.get(ads).json()["pending"] == 0
        tell(client, ads, plays)

    def test_late_results_may_cost_more_than_the_capital(self, client, ads):
        capital = 20
        post(client, f"{ads}/capital", capital=capital).raise_for_status()
        late = ask(client, ads, n=2, lease=0.3)
        end = time.monotonic() + 60
        while events(client, ads)[-1]["event"] != "Expired":
            assert time.monotonic() < end
            time.sleep(0.1)
        results = [{"play": play["id"], "reward": 0.5, "cost": capital} for play in late]
        post(client, f"{ads}/tell", results=results).raise_for_status()
        status = client.get(ads).json()
        assert status["state"] == "exhausted"
        assert [text.partition(": ")[2] for text in status["warnings"]] == [
            "spent 40 of 20: results came after their plays had expired"
        ]

    def test_past_results_count_as_plays_and_once_for_a_key(self, client, ads):
        past: list[dict[str, Any]]
        past = [{"arm": "a", "fidelity": 0, "reward": 0.5}, {"arm": 1, "fidelity": 1, "reward": 0.25, "cost": 0}]
        for _ in range(2):
            plays = post(client, f"{ads}/results", results=past, request_key="k").json()["plays"]
            assert [(play["label"], play["fidelity"]) for play in plays] == [("a", 0), ("b", 1)]
        assert client.get(ads).json()["results"] == [1, 1]
        assert client.get(ads).json()["spent"] == 1.0
        before = events(client, ads)
        for key, bad, said in (("arm", "z", "got 'z'"), ("arm", 3, "0 to 2, got 3"), ("fidelity", 2, "0 to 1, got 2")):
            answer = post(client, f"{ads}/results", results=[past[0], {**past[0], key: bad}])
            problem(answer, 422, "invalid", said)
        assert events(client, ads) == before


class TestViews:
    @pytest.fixture
    def played(self, client, ads):
        tell(client, ads, ask(client, ads, n=3), 0.5)
        tell(client, ads, ask(client, ads), 1.0)
        ask(client, ads)
        return ads

    def test_best(self, client, ads):
        problem(client.get(f"{ads}/best"), 409, "no-results", "There is no result")
        tell(client, ads, ask(client, ads))
        assert client.get(f"{ads}/best").json() == {"arm": 0, "label": "a"}

    def test_stats_are_the_sums_of_the_log(self, client, played):
        stats = client.get(f"{played}/stats").json()
        assert stats["counts"][0] == [2, 1, 1]
        assert stats["sums"][0] == [1.5, 0.5, 0.5]
        assert stats["squares"][0] == [1.25, 0.25, 0.25]
        assert sum(map(sum, stats["pending"])) == 1
        assert stats["active"] == [True] * 3

    def test_bounds_lie_around_means_and_are_null_without_results(self, client, played):
        bounds = client.get(f"{played}/bounds").json()
        assert bounds["plays"] == [[2, 1, 1], [0, 0, 0]]
        assert bounds["means"] == [[0.75, 0.5, 0.5], [None] * 3]
        assert bounds["upper"][0][0] > 0.75 > bounds["lower"][0][0]
        narrow = client.get(f"{played}/bounds", params={"rho": 0.1}).json()
        assert narrow["widths"][0][0] < bounds["widths"][0][0]
        for rho in ("0", "-1", "nan", "x"):
            problem(client.get(f"{played}/bounds", params={"rho": rho}), 422, "invalid", "query.rho")

    def test_the_log_comes_in_pages(self, client, played):
        whole = events(client, played)
        assert [event["seq"] for event in whole] == list(range(1, 11))
        pages = [client.get(f"{played}/log", params={"after": at, "limit": 4}).json()["events"] for at in (0, 4, 8, 10)]
        assert [event for page in pages for event in page] == whole
        assert pages[3] == []
        for wrong in ({"after": -1}, {"limit": 0}, {"limit": 1001}, {"after": "x"}, {"after": 2**63}):
            problem(client.get(f"{played}/log", params=wrong), 422, "invalid", f"query.{next(iter(wrong))}")

    def test_exports_are_the_plays_or_the_log(self, client, played):
        answer = client.get(f"{played}/export")
        assert answer.headers["content-type"].startswith("text/csv")
        rows = list(csv.DictReader(io.StringIO(answer.text)))
        assert [row["outcome"] for row in rows] == ["told"] * 4 + ["pending"]
        answer = client.get(f"{played}/export", params={"format": "jsonl"})
        assert answer.headers["content-type"] == "application/jsonl"
        lines = [json.loads(line) for line in answer.text.splitlines()]
        ids = [line.pop("id", None) for line in lines]
        assert lines == events(client, played)
        assert [one for one in ids if one] == [row["play"] for row in rows if row["outcome"] == "told"]


class TestControls:
    def test_pause_and_resume(self, client, ads):
        (play,) = ask(client, ads)
        assert post(client, f"{ads}/pause").json()["state"] == "paused"
        problem(post(client, f"{ads}/ask"), 409, "paused", "resume it")
        tell(client, ads, [play])
        assert post(client, f"{ads}/resume").json()["state"] == "running"
        ask(client, ads)

    def test_capital(self, client, ads):
        ask(client, ads, n=3)
        assert post(client, f"{ads}/capital", capital=50).json()["capital"] == 50
        problem(post(client, f"{ads}/capital", capital=2), 422, "invalid", "cover the 3", "got 2")
        problem(post(client, f"{ads}/capital"), 422, "invalid", "body.capital: Field required")
        assert post(client, f"{ads}/capital", capital=None).json()["capital"] is None

    def test_policy(self, client, ads):
        changed = post(client, f"{ads}/policy", policy={"name": "UCB", "rho": 3}).json()
        assert changed["policy"] == {"name": "UCB", "rho": 3, "kl": False}
        problem(post(client, f"{ads}/policy", policy={"name": "os.system"}), 422, "invalid", "got 'os.system'")

    def test_arms_come_go_and_are_restored(self, client, ads):
        for _ in range(2):
            assert post(client, f"{ads}/arms", label="d", request_key="k").json() == {"arm": 3}
        problem(post(client, f"{ads}/arms", label="d"), 422, "invalid", "different names, got 'd' twice")
        assert post(client, f"{ads}/retire", arm="a").json()["retired"] == [0]
        problem(post(client, f"{ads}/retire", arm="z"), 422, "invalid", "got 'z'")
        for _ in range(3):
            (play,) = ask(client, ads)
            post(client, f"{ads}/fail", plays=[play["id"]]).raise_for_status()
        assert client.get(f"{ads}/arms").json() == {
            "arms": ["a", "b", "c", "d"], "retired": [0], "set_aside": [play["arm"]]
        }  # fmt: skip
        for _ in range(2):
            assert post(client, f"{ads}/restore", arm=play["label"], request_key="r").json()["set_aside"] == []
        problem(post(client, f"{ads}/restore", arm=play["label"]), 422, "invalid", "which was not")
        for _ in range(2):
            assert post(client, f"{ads}/restore", arm="a", request_key="back").json()["retired"] == []

    def test_notes(self, client, ads):
        for _ in range(2):
            post(client, f"{ads}/notes", text="hello", request_key="k").raise_for_status()
        assert [event["text"] for event in events(client, ads)] == ["hello"]
        problem(post(client, f"{ads}/notes", text="  "), 422, "invalid", "must not be empty, got '  '")
        problem(post(client, f"{ads}/notes", text="x" * 10_001), 422, "invalid", "body.text")


def test_tokens_are_made_listed_and_revoked(tmp_path):
    with served(tmp_path / "a.db") as service, talking(service.url) as client:
        assert "no tokens yet" in service.greeting
        assert client.get("/api/tokens").json() == {"tokens": []}
        answer = post(client, "/api/tokens", name="me", scope="admin")
        assert answer.status_code == 201
        token = answer.json()["token"]
        problem(client.get("/api/tokens"), 401, "unauthorized", "Authorization: Bearer")
        client.headers["authorization"] = f"Bearer {token}"
        (known,) = client.get("/api/tokens").json()["tokens"]
        assert (known["name"], known["scope"], known["id"]) == ("me", "admin", token.split("_")[1])
        assert known.keys() == {"id", "name", "scope", "created"}
        problem(post(client, "/api/tokens", name="x", scope="root"), 422, "invalid", "body.scope", "got 'root'")
        problem(post(client, "/api/tokens", name="a\nb", scope="read"), 422, "invalid", "printable")
        problem(client.delete("/api/tokens/00000000"), 422, "invalid", "Token not found: '00000000'")
        problem(client.delete("/api/tokens/x"), 422, "invalid", "Token not found: 'x'")
        assert client.delete(f"/api/tokens/{known['id']}").json() == {"revoked": known["id"]}


class TestEnding:
    def test_sigterm_ends_it_in_peace_with_everything_on_disk(self, tmp_path):
        with served(tmp_path / "a.db") as service, talking(service.url) as client:
            create(client, "ads")
            tell(client, "/api/experiments/ads", ask(client, "/api/experiments/ads", n=3))
            assert service.stop() == (0, "")
        with Store(tmp_path / "a.db") as store:
            assert store.open("ads").spent == 3

    def test_killed_it_comes_back_as_it_was(self, tmp_path):
        with served(tmp_path / "a.db") as service, talking(service.url) as client:
            create(client, "ads")
            plays = ask(client, "/api/experiments/ads", n=2, request_key="k")
            tell(client, "/api/experiments/ads", plays[:1])
            service.kill()
        with served(tmp_path / "a.db", service.port) as again, talking(again.url) as client:
            assert ask(client, "/api/experiments/ads", n=2, request_key="k") == plays
            assert client.get("/api/experiments/ads").json()["spent"] == 1

    def test_a_port_that_is_taken_is_named(self, service, tmp_path):
        command = [sys.executable, "-m", "mfbandit", "serve", str(tmp_path / "b.db"), "--port", str(service.port)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
        assert done.returncode == 2
        assert done.stderr.startswith(f"Error: Cannot listen on 127.0.0.1:{service.port}: Address already in use")
        assert done.stderr.count("\n") == 1
