"""Signing in on a page: a session of its own, which ends when it should, and what is left when no token is."""

import hmac
import re
import subprocess
import sys

import httpx
import pytest

from mfbandit import Store
from mfbandit._internal.limits import MAX_SESSIONS_PER_TOKEN, SESSION_SECONDS
from mfbandit.service.app import create_app
from tests.support.in_process import InProcess
from tests.support.services import create, problem, served, talking

CLOSED = "no token is left: stop the service, make one on its machine with `mfbandit token create"


class Clock:
    def __init__(self):
        self.now = 1e9

    def __call__(self):
        return self.now


class Door:
    """A service in this process, and a browser whose cookies are in the test's hands."""

    def __init__(self, store, base_url="http://localhost"):
        self.store, self.origin = store, base_url
        self.client = InProcess(create_app(store), base_url)

    def post(self, address, cookie="", **fields):
        return self.client.post(address, data=fields, headers={"origin": self.origin, "cookie": cookie})

    def sign_in(self, token, cookie=""):
        """Name and value of the cookie, and its attributes."""
        answer = self.post("/sign-in", cookie, token=token)
        assert answer.status_code == 303, answer.text
        pair, *attributes = answer.headers["set-cookie"].split("; ")
        return pair, {one.lower() for one in attributes}

    def is_in(self, cookie):
        answer = self.client.get("/", headers=[(b"cookie", cookie if isinstance(cookie, bytes) else cookie.encode())])
        assert answer.status_code in (200, 303)
        return answer.status_code == 200


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def store(tmp_path, clock):
    with Store(tmp_path / "a.db", clock=clock) as store:
        yield store


@pytest.fixture
def token(store):
    return store.create_token("me", "write")


@pytest.fixture
def door(store):
    return Door(store)


class TestCookies:
    def test_the_cookie_is_not_the_token(self, door, token, tmp_path):
        pair, attributes = door.sign_in(token)
        name, _, value = pair.partition("=")
        assert name == "mfbandit"
        assert token not in value
        assert token.split("_")[1] not in value
        assert len(value) > 43  # 256 bits
        assert attributes == {"httponly", "samesite=strict", "path=/", f"max-age={int(SESSION_SECONDS)}"}
        kept = b"".join(file.read_bytes() for file in tmp_path.iterdir())
        assert value.partition("_")[2].encode() not in kept
        assert door.is_in(pair)

    def test_the_token_as_a_cookie_opens_nothing(self, door, token):
        assert not door.is_in(f"mfbandit={token}")

    def test_by_tls_it_is_secure_and_of_this_host_alone(self, store, token):
        door = Door(store, "https://localhost")
        pair, attributes = door.sign_in(token)
        assert pair.startswith("__Host-mfbandit=")
        assert "secure" in attributes
        assert "path=/" in attributes
        assert door.is_in(pair)
        assert not door.is_in(pair.removeprefix("__Host-"))  # which anybody on the way could have set

    def test_a_session_opens_no_route_for_programs(self, door, token):
        pair, _ = door.sign_in(token)
        problem(door.client.get("/api/experiments", headers={"cookie": pair}), 401, "unauthorized")

    def test_a_wrong_or_changed_one_opens_nothing(self, door, token):
        pair, _ = door.sign_in(token)
        for wrong in (pair[:-1], pair + "a", pair.partition("_")[0], "mfbandit=_", "mfbandit=", "mfbandit=é"):
            assert not door.is_in(wrong.encode())

    def test_they_are_compared_in_constant_time(self, door, token, monkeypatch):
        pair, _ = door.sign_in(token)
        compared = []

        def compare(one, other):
            compared.append((one, other))
            return one == other

        monkeypatch.setattr(hmac, "compare_digest", compare)
        assert door.is_in(pair)
        assert not door.is_in(pair + "x")
        assert len(compared) >= 2
        assert all(len(part) == 64 for both in compared for part in both)


class TestEnds:
    def test_signing_out_ends_it(self, door, token):
        pair, _ = door.sign_in(token)
        other, _ = door.sign_in(token)
        answer = door.post("/sign-out", pair)
        assert answer.headers["set-cookie"].startswith('mfbandit="";')
        assert not door.is_in(pair)
        assert door.is_in(other)
        assert not Door(door.store).is_in(pair)

    def test_it_needs_a_form_of_our_own_to_sign_out(self, door, token):
        pair, _ = door.sign_in(token)
        answer = door.client.post("/sign-out", headers={"cookie": pair, "origin": "http://evil.example"})
        problem(answer, 403, "origin", "http://localhost, got 'http://evil.example'")
        assert door.is_in(pair)

    def test_with_its_token(self, door, token, store):
        pair, _ = door.sign_in(token)
        other, _ = door.sign_in(store.create_token("other", "read"))
        store.revoke_token(token.split("_")[1])
        assert not door.is_in(pair)
        assert door.is_in(other)

    def test_after_a_week_however_much_it_is_used(self, door, token, clock):
        pair, _ = door.sign_in(token)
        for _ in range(7):
            assert door.is_in(pair)
            clock.now += SESSION_SECONDS / 7
        assert not door.is_in(pair)
        assert not Door(door.store).is_in(pair)

    def test_not_with_a_restart(self, token, store, door, tmp_path, clock):
        pair, _ = door.sign_in(token)
        store.close()
        with Store(tmp_path / "a.db", clock=clock) as again:
            assert Door(again).is_in(pair)

    def test_a_token_has_so_many(self, door, token, store, clock):
        pairs = []
        other, _ = door.sign_in(store.create_token("other", "read"))
        for _ in range(MAX_SESSIONS_PER_TOKEN + 2):
            pairs.append(door.sign_in(token)[0])
            clock.now += 1
        assert [door.is_in(pair) for pair in pairs] == [False, False] + [True] * MAX_SESSIONS_PER_TOKEN
        assert door.is_in(other)

    def test_signing_in_ends_what_the_browser_had_and_takes_over_nothing(self, door, token):
        first, _ = door.sign_in(token)
        second, _ = door.sign_in(token, cookie=first)
        assert first != second
        assert not door.is_in(first)
        assert door.sign_in(token, cookie="mfbandit=chosen_by-somebody-else")[0] != "mfbandit=chosen_by-somebody-else"
        assert not door.is_in("mfbandit=chosen_by-somebody-else")

    def test_ended_ones_are_not_kept(self, door, token, store, clock):
        for _ in range(3):
            door.sign_in(token)
        clock.now += SESSION_SECONDS + 1
        door.sign_in(token)
        connection = store.read()
        assert connection.query("SELECT count(*) FROM mfbandit_store WHERE key LIKE 'session:%'") == [(1,)]
        connection.close()


class TestNoTokenLeft:
    def test_a_service_that_had_tokens_stays_closed(self, tmp_path):
        with served(tmp_path / "a.db") as service, talking(service.url) as nobody:
            create(nobody, "ads")  # open, as long as there never was one
            admin = nobody.post("/api/tokens", json={"name": "admin", "scope": "admin"}).json()["token"]
            with talking(service.url, admin) as client:
                client.delete(f"/api/tokens/{admin.split('_')[1]}").raise_for_status()
                problem(client.get("/api/experiments"), 401, "unauthorized", CLOSED)
            problem(nobody.get("/api/experiments"), 401, "unauthorized", CLOSED)
            problem(nobody.post("/api/tokens", json={"name": "x", "scope": "admin"}), 401, "unauthorized", CLOSED)
            page = httpx.get(service.url, follow_redirects=True)
            assert "Nobody can sign in: no token is left" in page.text
            assert "<form" not in page.text
        with served(tmp_path / "a.db") as service:  # nor is it open after a restart
            assert "no token is left: nobody may use it" in service.greeting
            problem(httpx.get(f"{service.url}/api/experiments"), 401, "unauthorized", CLOSED)
        with Store(tmp_path / "a.db") as store:
            token = store.create_token("new", "read")
        with served(tmp_path / "a.db") as service, talking(service.url, token) as client:
            assert client.get("/api/experiments").json()["experiments"] == ["ads"]

    def test_also_where_the_tokens_are_from_before_the_mark(self, tmp_path):
        with Store(tmp_path / "a.db") as store:
            public = store.create_token("old", "admin").split("_")[1]
            store.writer().submit(
                lambda connection: connection.run("DELETE FROM mfbandit_store WHERE key = 'had tokens'")
            ).wait()
        with Store(tmp_path / "a.db") as store:
            assert store.needs_token()
            store.revoke_token(public)
            assert store.needs_token()
            assert store.tokens() == {}
        with Store(tmp_path / "a.db") as store:
            assert store.needs_token()

    def test_the_command_that_revokes_the_last_says_so(self, tmp_path):
        with Store(tmp_path / "a.db") as store:
            ids = [store.create_token(name, "admin").split("_")[1] for name in ("a", "b")]
        said = []
        for public in ids:
            command = [sys.executable, "-m", "mfbandit", "token", "revoke", str(tmp_path / "a.db"), public]
            said.append(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        assert said[0] == f"{ids[0]}: revoked\n"
        assert re.match(rf"{ids[1]}: revoked; no token is left, and the service stays closed: .*token create", said[1])
