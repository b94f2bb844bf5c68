"""Three services on one PostgreSQL: any of them answers for any experiment, also when one is gone."""

import os
import secrets
import signal
import time
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

import mfbandit as mfb
from mfbandit.service.peers import ACTOR_HEADER, ADDRESS_HEADER, PEER_HEADER
from mfbandit.store import ServiceEntry
from mfbandit.store.fleet import belongs_to
from tests.support import crash, fleet
from tests.support.commands import done, told
from tests.support.effort import effort
from tests.support.services import problem, served

TWO = mfb.Fidelities([1, 10], [0.1, 0], mfb.Bounded(0, 1))
FID = mfb.Fidelities([1], concentration=mfb.Bounded())
PATIENCE = 120.0  # seconds: how long taking over takes is for the soak to measure, on a machine that is free
NAMES = [f"ads-{number}" for number in range(6)]


@pytest.fixture(scope="module")
def address(postgres_server):
    name = f"fleet_{secrets.token_hex(8)}"
    yield postgres_server.database(name)
    postgres_server.drop(name)


@pytest.fixture(scope="module")
def services(address):
    with ExitStack() as stack:
        yield [stack.enter_context(served(address)) for _ in range(3)]


@pytest.fixture(scope="module")
def token(services):
    """Made at the first service, and used at the others right away."""
    with mfb.connect(services[0].url) as store:
        return store.create_token("me", "admin")


class Patient(httpx.Client):
    """Sends a request again, as every client does, where a service was too busy to be taken for alive."""

    def send(self, request, **options):
        deadline = time.monotonic() + PATIENCE
        while True:
            answer = super().send(request, **options)
            if answer.status_code != 503 or time.monotonic() > deadline:
                return answer
            time.sleep(0.1)


@pytest.fixture(scope="module")
def clients(services, token):
    with ExitStack() as stack:
        headers = {"authorization": f"Bearer {token}"}
        yield [
            stack.enter_context(Patient(base_url=service.url, headers=headers, timeout=PATIENCE))
            for service in services
        ]


@pytest.fixture(scope="module")
def experiments(clients, services):
    """Made at one service after the other, and where they belong: none is handed over any more."""
    for number, name in enumerate(NAMES):
        created(clients[number % 3], name)
    entries = [ServiceEntry(one.url, one.url, "", "", 0.0, 0.0, None, 0.0, True) for one in services]
    homes = {name: getattr(belongs_to(name, entries), "id", None) for name in NAMES}
    until(lambda: owners(clients[0]) == homes)
    return NAMES


def until(condition):
    """Wait for something."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def all_owned(clients):
    """Ask for all experiments, so that they have owners also after a service was too busy to be taken for alive."""
    assert {clients[0].get(f"/api/experiments/{name}").status_code for name in NAMES} == {200}
    return set(NAMES) <= set(owners(clients[0]))


def created(client, name, **more):
    """Make an experiment as a client does: again, if it is handed over at this very moment."""
    token = client.headers["authorization"].removeprefix("Bearer ")
    with mfb.connect(str(client.base_url), token, patience=PATIENCE) as store:
        made = store.create(name, mfb.MFUCB(), arms=["a", "b", "c"], fidelities=TWO, **more)
        return made.status()


def owners(client):
    """Which service has what."""
    found = client.get("/api/services").json()["services"]
    return {name: one["address"] for one in found for name in one["experiments"]}


class TestAnyServiceAnswers:
    def test_for_any_experiment_with_every_verb(self, clients, experiments):
        for name in experiments:
            path = f"/api/experiments/{name}"
            one, two, three = clients
            (play,) = one.post(f"{path}/ask", json={"request_key": "k"}).json()["plays"]
            assert two.post(f"{path}/ask", json={"request_key": "k"}).json()["plays"] == [play]
            assert three.post(f"{path}/renew", json={"plays": [play["id"]]}).status_code == 200
            assert two.post(f"{path}/tell", json={"results": [{"play": play["id"], "reward": 1}]}).json() == {"done": 1}
            assert three.post(f"{path}/arms", json={"label": "new", "request_key": "new"}).json() == {"arm": 3}
            assert one.post(f"{path}/pause", json={}).json()["state"] == "paused"
            assert two.post(f"{path}/resume", json={}).json()["state"] == "running"
            assert two.get(path, headers={"content-length": "0"}).status_code == 200
            states = [client.get(path).json() for client in clients]
            assert states[0] == states[1] == states[2]
            logs = [client.get(f"{path}/export?format=jsonl").text for client in clients]
            assert len(logs[0].splitlines()) == states[0]["events"]
            assert logs[0] == logs[1] == logs[2]

    def test_and_says_who_asked(self, clients, experiments):
        for number, client in enumerate(clients):
            forged, body = (
                {ACTOR_HEADER.decode(): "somebody%20else"},
                {"text": "hello", "request_key": f"note-{number}"},
            )
            answer = client.post(f"/api/experiments/{experiments[2]}/notes", json=body, headers=forged)
            assert answer.status_code == 200
        events = clients[0].get(f"/api/experiments/{experiments[2]}/log").json()["events"]
        assert [one["actor"] for one in events if one["event"] == "Noted"] == ["me"] * len(clients)

    def test_with_the_same_errors(self, clients, experiments):
        for client in clients:
            answer = client.post(
                f"/api/experiments/{experiments[0]}/tell", json={"results": [{"play": "x-1", "reward": 1}]}
            )
            problem(answer, 404, "unknown-play")
            answer = client.post(f"/api/experiments/{experiments[0]}/ask", json={"n": 0})
            problem(answer, 422, "invalid", "body.n")
            problem(client.get("/api/experiments/none"), 404, "unknown-experiment")
            problem(client.get(f"/api/experiments/{experiments[0]}/none"), 404, "not-found")
            problem(client.post("/api/experiments", json={"name": experiments[0]}), 422, "invalid")
            assert "content-security-policy" in answer.headers

    def test_to_deletions(self, clients, token):
        created(clients[0], "short-lived")
        with mfb.connect(str(clients[1].base_url), token) as store:
            store.delete("short-lived", confirm="short-lived")
        for client in clients:
            problem(client.get("/api/experiments/short-lived"), 404, "unknown-experiment")

    def test_a_key_names_one_request_wherever_it_is_sent(self, clients):
        made = [created(client, "once", request_key="once") for client in clients]
        assert made[0] == made[1] == made[2]

    def test_one_name_is_one_experiment(self, clients, experiments):
        body = {"name": experiments[0], "arms": 2, "fidelities": {"costs": [1], "concentration": {"name": "Bounded"}}}
        for client in clients:
            problem(client.post("/api/experiments", json=body), 409, "conflict", "already exists")


class TestWhoHasWhat:
    @pytest.mark.usefixtures("experiments")
    def test_over_http(self, clients, services):
        until(lambda: all_owned(clients) and owners(clients[0]) == owners(clients[1]))
        assert set(owners(clients[1]).values()) <= {service.url for service in services}

    @pytest.mark.usefixtures("experiments")
    def test_on_the_command_line(self, address, clients, services, token):
        for place in (services[1].url, address):
            command = ("services", place, "--token", token)

            def all_there(command=command):
                said = done(*command)
                return all_owned(clients) and all(service.url in said for service in services)

            until(all_there)
            until(lambda command=command: {name for one in told(*command) for name in one["experiments"]} >= set(NAMES))

    def test_on_the_dashboard(self, clients, services, experiments):
        for client in clients:
            page, deadline = client.get("/").text, time.monotonic() + PATIENCE
            while 'class="state busy"' in page and time.monotonic() < deadline:  # one is being handed over
                page = client.get("/").text
            assert 'class="state busy"' not in page
            assert all(f"/experiments/{name}" in page for name in experiments)
            assert all(service.url in page for service in services)

    def test_a_page_of_an_experiment_is_shown_by_whoever_is_asked(self, clients, experiments):
        for client in clients:
            for name in experiments:
                page = client.get(f"/experiments/{name}")
                assert (page.status_code, f"<title>{name}" in page.text) == (200, True)


class TestWhoMayWhat:
    def test_a_session_started_at_one_holds_at_the_others(self, services, token, experiments):
        with Patient(timeout=PATIENCE) as browser:
            form = {"token": token, "next": "/"}
            answer = browser.post(f"{services[0].url}/sign-in", data=form, headers={"origin": services[0].url})
            assert answer.status_code == 303
            for service in services:
                for name in experiments:
                    page = browser.get(f"{service.url}/experiments/{name}")
                    assert (page.status_code, "Pause" in page.text) == (200, True)
                origin = {"origin": service.url}
                done = browser.post(f"{service.url}/experiments/{experiments[0]}/do/pause", headers=origin)
                assert (done.status_code, done.headers["location"]) == (303, f"/experiments/{experiments[0]}")
                done = browser.post(f"{service.url}/experiments/{experiments[0]}/do/resume", headers=origin)
                assert done.status_code == 303

    def test_a_request_is_not_believed_to_come_from_another_service(self, services, experiments):
        for path in (f"/api/experiments/{experiments[0]}", "/peer-rows?name=a", "/api/tokens"):
            headers = {PEER_HEADER.decode(): "guessed", ADDRESS_HEADER.decode(): '["http", "localhost", ""]'}
            problem(httpx.get(services[0].url + path, headers=headers), 421, "misdirected")
        assert httpx.get(f"{services[0].url}/peer-rows?name=a").status_code in (303, 401)

    def test_without_a_token_nothing_is_passed_on(self, services, experiments):
        for service in services:
            problem(httpx.get(f"{service.url}/api/experiments/{experiments[0]}"), 401, "unauthorized")


class TestOneIsGone:
    def test_stopped_it_is_replaced_and_comes_back_as_another(self, services, clients, token, experiments):
        path = f"/api/experiments/{experiments[1]}"
        clients[0].post(f"{path}/ask", json={"n": 2, "request_key": "both"})
        owner = owners(clients[0])[experiments[1]]
        (at,) = [number for number, service in enumerate(services) if service.url == owner]
        before = clients[at].get(path).json()
        process, other = services[at].process, services[at - 1]
        process.send_signal(signal.SIGSTOP)
        began = time.monotonic()
        try:
            with mfb.connect(other.url, token, patience=PATIENCE) as elsewhere:
                again = elsewhere.open(experiments[1])
                plays = again.ask(2, request_key="both")
                again.tell(plays[0], 1.0)
                assert time.monotonic() - began < PATIENCE
                assert again.status()["pending"] == before["pending"] - 1
        finally:
            process.send_signal(signal.SIGCONT)
        with mfb.connect(owner, token, patience=PATIENCE) as back:
            assert back.open(experiments[1]).status()["pending"] == before["pending"] - 1
            back.open(experiments[1]).tell(plays[1], 0.0)
        assert clients[at - 1].get(path).json()["pending"] == before["pending"] - 2

    def test_an_experiment_that_a_script_has_is_answered_for_when_the_script_ends(self, address, clients, token):
        names = (f"script-{number}" for number in range(5))
        name = next(name for name in names if held_by_a_script(address, name, clients[0]))
        with mfb.connect(",".join(str(client.base_url) for client in clients), token, patience=PATIENCE) as store:
            assert len(store.open(name).pending) == 1
        with mfb.Store(address) as script:
            until(lambda: clients[0].get(f"/api/experiments/{name}").status_code == 200)
            with pytest.raises(mfb.StoreHeld, match="in place of the store"):
                script.open(name)


def held_by_a_script(address, name, client):
    """Let a script have an experiment, and ask a service for it; False if the script was too busy to keep it."""
    with mfb.Store(address) as script:
        made = script.create(name, mfb.UCB(), arms=2, fidelities=FID)
        with httpx.Client(base_url=client.base_url, headers=client.headers, timeout=PATIENCE) as impatient:
            answer, deadline = None, time.monotonic() + PATIENCE
            while answer is None or f", process {os.getpid()} on " not in answer.text:
                assert time.monotonic() < deadline
                answer = impatient.post(f"/api/experiments/{name}/ask", json={})
                if answer.status_code == 200:
                    return False
        problem(answer, 503, "unavailable", "is owned by ")
        made.ask()
        return True


@pytest.mark.slow
@pytest.mark.no_cover
def test_kills_stops_and_cut_wires_lose_nothing(postgres_url, tmp_path):
    faults = effort(3, 15)
    plan = crash.Plan(faults=faults, ways=("kill", "partition", "stop", "drop", "terminate"), in_turn=True, clients=3)
    record, _ = fleet.run(postgres_url, Path(tmp_path), plan, within=PATIENCE)  # soak.py holds the 5 s
    assert record.problems == ()
    assert record.good
    assert record.told > faults
