"""No way in: without a token, with the wrong one, or with a request that is not what it seems."""

import asyncio
import csv
import hmac
import io
import json
import re
import socket
import sqlite3
import subprocess
import sys
import time
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner

from mfbandit import Store
from mfbandit._internal.limits import MAX_BODY_BYTES
from mfbandit.cli.main import app
from mfbandit.service.app import create_app
from mfbandit.service.middleware import needed_scope
from tests.support.services import create, problem, served, talking

JSON = {"content-type": "application/json"}
TRICKS = [
    "'; DROP TABLE mfbandit_log; --",
    'x" OR "1"="1',
    "<script>alert(1)</script>",
    "\"><img src=x onerror='alert(1)'>",
    "../../etc/passwd",
    "..\\..\\windows",
    "%2e%2e%2f%2e%2e%2fetc",
    "{{7*7}}${7*7}",
    "a\r\nset-cookie: b=c",
    "a\x00b",
    "=cmd|' /C calc'!A0",
    "\u202egnp.exe",
    "𝒶🎲",
]


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    """A service whose store has a token of each scope: its address, and the tokens."""
    path = tmp_path_factory.mktemp("guarded") / "a.db"
    with Store(path) as store:
        tokens = {scope: store.create_token(f"{scope}-token", scope) for scope in ("read", "write", "admin")}
    with served(path) as service:
        with talking(service.url, tokens["admin"]) as client:
            create(client, "ads")
        yield service.url, tokens


@pytest.fixture(scope="module")
def open_service(tmp_path_factory):
    """A service without tokens, with an experiment ``ads``."""
    path = tmp_path_factory.mktemp("open") / "a.db"
    with served(path) as service, talking(service.url) as client:
        create(client, "ads")
        yield service, path


@pytest.fixture
def client(open_service):
    with talking(open_service[0].url) as client:
        yield client
        assert client.get("/health").json()["status"] == "ok"


def routes(url):
    """All routes of the OpenAPI document: method, address and the scope that it must need."""
    document = httpx.get(f"{url}/openapi.json").json()
    found = []
    for path, methods in document["paths"].items():
        for method in map(str.upper, methods):
            if path not in ("/health", "/ready"):
                address = path.replace("{name}", "ads").replace("{token}", "0a1b2c3d")
                admin = "tokens" in path or method == "DELETE"
                found.append((method, address, "admin" if admin else "read" if method == "GET" else "write"))
    assert len(found) > 20
    return found


def asked(client, method, address, **more):
    content = b"{}" if method == "POST" else None
    return client.request(method, address, content=content, headers={**JSON, **more})


class TestTokens:
    def test_every_route_needs_one(self, guarded):
        url, _ = guarded
        with talking(url) as client:
            for method, address, _ in routes(url):
                answer = asked(client, method, address)
                problem(answer, 401, "unauthorized", "a token is needed")
                assert answer.headers["www-authenticate"] == "Bearer"

    def test_pages_without_data_need_none(self, guarded):
        for page in ("/api", "/health", "/ready", "/openapi.json"):
            answer = httpx.get(guarded[0] + page)
            assert answer.status_code == 200
            assert "ads" not in re.findall(r'"name": "(\w+)"', answer.text)

    @pytest.mark.parametrize("address", ["//health", "/health/", "/health/../api/experiments", "/./health", "/api/"])
    def test_no_address_only_looks_like_such_a_page(self, guarded, address):
        host, port = guarded[0].removeprefix("http://").split(":")
        answer = raw(
            host, int(port), f"GET {address} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode()
        )
        first = answer.splitlines()[0]
        assert b" 401 " in first or (b" 303 " in first and b"location: /sign-in" in answer)

    @pytest.mark.parametrize(
        "change",
        [
            lambda token: token[:-1],
            lambda token: token + "a",
            lambda token: token.swapcase(),
            lambda token: token.rsplit("_", 1)[0] + "_",
            lambda _: "mfb_",
            lambda _: "-",
            lambda _: "é".encode().decode("latin-1"),
            lambda _: "' OR 1=1 --",
        ],
    )
    def test_a_wrong_one_opens_nothing(self, guarded, change):
        url, tokens = guarded
        with talking(url) as client:
            for method, address, _ in routes(url):
                header = f"Bearer {change(tokens['admin'])}".encode("latin-1")
                answer = client.request(method, address, content=b"{}", headers=[(b"authorization", header)])
                problem(answer, 401, "unauthorized")

    def test_other_ways_of_sending_it_do_not_count(self, guarded):
        url, tokens = guarded
        admin = tokens["admin"]
        for headers in ({"authorization": admin}, {"authorization": f"Basic {admin}"}, {"cookie": f"token={admin}"}):
            problem(httpx.get(f"{url}/api/tokens?token={admin}", headers=headers), 401, "unauthorized")

    def test_one_of_another_store_opens_nothing(self, guarded, tmp_path):
        with Store(tmp_path / "other.db") as other:
            stranger = other.create_token("admin", "admin")
        with talking(guarded[0], stranger) as client:
            for method, address, _ in routes(guarded[0]):
                problem(asked(client, method, address), 401, "unauthorized", "not one of this store's")

    @pytest.mark.parametrize("scope", ["read", "write"])
    def test_a_smaller_scope_is_refused_on_every_route_that_needs_more(self, guarded, scope):
        url, tokens = guarded
        refused = 0
        with talking(url, tokens[scope]) as client:
            for method, address, needs in routes(url):
                if needs == "admin" or (needs == "write" and scope == "read"):
                    problem(asked(client, method, address), 403, "not-allowed", f"must have scope {needs}, got {scope}")
                    refused += 1
                else:
                    assert asked(client, method, address).status_code not in (401, 403), (method, address)
        assert refused >= (3 if scope == "write" else 15)

    def test_unknown_methods_need_at_least_write(self):
        assert {needed_scope(method, "/api/experiments") for method in ("OPTIONS", "PATCH", "TRACE", "get", "X")} == {
            "write"
        }

    def test_secrets_are_nowhere_in_the_file(self, tmp_path):
        path = tmp_path / "a.db"
        with Store(path) as store:
            secrets = [store.create_token("ci", scope) for scope in ("read", "write", "admin")]
        kept = b"".join(file.read_bytes() for file in tmp_path.iterdir())
        for secret in secrets:
            assert secret.encode() not in kept
            assert secret.split("_", 2)[2].encode() not in kept

    def test_a_revoked_one_stops_working(self, tmp_path):
        with Store(tmp_path / "a.db") as store:
            admin, ci = store.create_token("admin", "admin"), store.create_token("ci", "write")
        with served(tmp_path / "a.db") as service, talking(service.url, admin) as client:
            worker = {"authorization": f"Bearer {ci}"}
            assert client.get("/api/experiments", headers=worker).status_code == 200
            client.delete(f"/api/tokens/{ci.split('_')[1]}").raise_for_status()
            end = time.monotonic() + 60
            while client.get("/api/experiments", headers=worker).status_code != 401:
                assert time.monotonic() < end
                time.sleep(0.1)

    def test_they_are_compared_in_constant_time(self, tmp_path, monkeypatch):
        compared = []

        def compare(one, other):
            compared.append((one, other))
            return one == other

        monkeypatch.setattr(hmac, "compare_digest", compare)
        with Store(tmp_path / "a.db") as store:
            text = store.create_token("ci", "read")
            assert store.token(text) is not None
            assert store.token(text[:-1] + "!") is None
        assert len(compared) == 2
        assert all(len(part) == 64 for pair in compared for part in pair)

    def test_where_others_can_reach_it_the_last_token_revoked_closes_it(self, tmp_path):
        """On this machine alone it is open until there is a token; elsewhere never."""
        with Store(tmp_path / "a.db") as store:
            for loopback, code in ((True, 200), (False, 401)):
                transport = httpx.ASGITransport(create_app(store, loopback=loopback))
                assert status(transport, "/api/experiments") == code


def status(transport, address):
    async def get():
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return (await client.get(address)).status_code

    return asyncio.run(get())


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1"])  # noqa: S104 - refused before anything listens
def test_serving_others_without_a_token_is_refused(tmp_path, host):
    command = [sys.executable, "-m", "mfbandit", "serve", str(tmp_path / "a.db"), "--host", host, "--port", "0"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 1
    assert done.stdout == ""
    assert re.fullmatch(r"Error: host must be a loopback address while \S+ has no token, got .*\n", done.stderr)


class TestHosts:
    @pytest.mark.parametrize(
        "host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "testserver", "10.0.0.1"]
    )
    def test_a_page_of_another_site_cannot_reach_it_by_a_name_of_its_own(self, client, host):
        for page in ("/api", "/health", "/api/experiments"):
            problem(client.get(page, headers={"host": host}), 421, "host", host.split(":")[0])

    @pytest.mark.parametrize("host", ["localhost", "LOCALHOST:80", "127.0.0.1", "127.0.0.2:8000", "[::1]", "[::1]:80"])
    def test_names_of_this_machine_do(self, client, host):
        assert client.get("/health", headers={"host": host}).status_code == 200

    def test_nor_by_a_form_that_browsers_send_without_asking(self, client):
        for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""):
            answer = client.post("/api/experiments/ads/pause", content=b"{}", headers={"content-type": kind})
            problem(answer, 415, "media-type", "application/json")
        assert client.get("/api/experiments/ads").json()["state"] == "running"

    def test_no_answer_lets_other_sites_read_it_or_frame_it(self, client):
        answer = client.get("/api", headers={"origin": "http://evil.example"})
        assert "access-control-allow-origin" not in answer.headers
        assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
        assert answer.headers["x-content-type-options"] == "nosniff"


def raw(host, port, data):
    """What is answered to these bytes until the connection is closed, or nothing comes for a while."""
    answer = b""
    with socket.create_connection((host, port), timeout=2) as line:
        try:
            line.sendall(data)
            while part := line.recv(65536):
                answer += part
        except OSError:
            pass
    return answer


class TestTricks:
    """Text is either refused or given back as it was; the tables stay as they are."""

    @pytest.fixture(autouse=True)
    def tables_stay(self, open_service):
        yield
        with sqlite3.connect(f"file:{open_service[1]}?mode=ro", uri=True) as connection:
            names = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
        connection.close()
        assert len(names) == 5
        assert all(name.startswith("mfbandit_") for name in names)

    @pytest.mark.parametrize("trick", TRICKS)
    def test_names_of_experiments(self, client, trick):
        body = {"name": trick, "arms": 2, "fidelities": {"costs": [1]}}
        problem(client.post("/api/experiments", json=body), 422, "invalid", "body.name", "pattern")
        assert client.get("/api/experiments").json()["experiments"][0] == "ads"

    @pytest.mark.parametrize("trick", TRICKS)
    def test_labels(self, client, trick):
        index = client.post("/api/experiments/ads/arms", json={"label": trick}).json()["arm"]
        assert client.get("/api/experiments/ads/arms").json()["arms"][index] == trick
        problem(client.post("/api/experiments/ads/arms", json={"label": trick}), 422, "invalid", "different names")

    @pytest.mark.parametrize("trick", TRICKS)
    def test_notes(self, client, trick):
        before = client.post("/api/experiments/ads/notes", json={"text": trick}).json()["events"] - 1
        (event,) = client.get("/api/experiments/ads/log", params={"after": before}).json()["events"]
        assert event["text"] == trick

    @pytest.mark.parametrize("trick", TRICKS)
    def test_request_keys(self, client, trick):
        answers = [client.post("/api/experiments/ads/ask", json={"request_key": trick}) for _ in range(2)]
        if trick.isascii() and trick.isprintable():
            assert answers[0].json() == answers[1].json()
        else:
            problem(answers[0], 422, "invalid", "body.request_key")

    @pytest.mark.parametrize("trick", TRICKS)
    def test_plays(self, client, trick):
        answer = client.post("/api/experiments/ads/tell", json={"results": [{"play": trick, "reward": 1.0}]})
        problem(answer, 404, "unknown-play", "was not asked from this experiment")

    @pytest.mark.parametrize("trick", TRICKS)
    def test_names_of_tokens(self, tmp_path, trick):
        with Store(tmp_path / "a.db") as store:
            if trick.isprintable():
                store.create_token(trick, "read")
                assert [token.name for token in store.tokens().values()] == [trick]
            else:
                with pytest.raises(ValueError, match="printable"):
                    store.create_token(trick, "read")

    def test_labels_come_back_from_exports(self, client):
        create(client, "labels", arms=TRICKS)
        plays = client.post("/api/experiments/labels/ask", json={"n": len(TRICKS)}).json()["plays"]
        assert [play["label"] for play in plays] == TRICKS
        text = client.get("/api/experiments/labels/export").text
        assert [row["label"] for row in csv.DictReader(io.StringIO(text, newline=""))] == TRICKS

    @pytest.mark.parametrize(
        "name",
        ["..", ".", "../a.db", "%2e%2e%2fa.db", "%2e%2e/%2e%2e/etc/passwd", "/etc/passwd", "%2fetc%2fpasswd", "a%00b",
         "ads%00", "ads%0d%0aset-cookie:x", "ads%22;x=%22", "ads%0a", "%c3%a9", "a" * 65, "-ads", ".ads"],
    )  # fmt: skip
    @pytest.mark.parametrize("verb", ["/export", "", "/log"])
    def test_no_name_leads_out_of_the_store(self, open_service, name, verb):
        request = f"GET /api/experiments/{name}{verb} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        answer = raw("127.0.0.1", open_service[0].port, request.encode())
        assert re.match(rb"HTTP/1.1 4\d\d ", answer), answer
        assert b"root:" not in answer
        assert b"SQLite" not in answer
        assert b"set-cookie" not in answer.lower().split(b"\r\n\r\n")[0]

    def test_exports_are_named_after_their_experiment_and_nothing_else(self, client):
        for kind in ("csv", "jsonl"):
            answer = client.get("/api/experiments/ads/export", params={"format": kind})
            assert answer.headers["content-disposition"] == f'attachment; filename="ads.{kind}"'
        for kind in ('csv"; x="', "../csv", "csv\r\nx: y", ""):
            problem(client.get("/api/experiments/ads/export", params={"format": kind}), 422, "invalid", "query.format")


class TestBodies:
    """Too much, too deep or no JSON: refused, and the service goes on."""

    @pytest.mark.parametrize(
        ("body", "code", "said"),
        [
            ("[" * 100_000 + "]" * 100_000, 400, "nested"),
            ('{"a":' * 100_000 + "1" + "}" * 100_000, 400, "nested"),
            ('{"results": [{"play": "a", "reward": NaN}]}', 400, "no NaN"),
            ('{"results": [{"play": "a", "reward": -Infinity}]}', 400, "no -Infinity"),
            ('{"results": [{"play": "a", "reward": 1e999}]}', 422, "finite"),
            ('{"results": [{"play": "a", "reward": 1' + "0" * 400 + "}]}", 422, "body.results.0.reward"),
            ('{"results": [{"play": "a", "reward": 1' + "0" * 10_000 + "}]}", 400, "digits"),
            ('{"results": [{"play": "a", "reward": 1e151}]}', 422, "1e+150"),
            ('{"results": [{"play": "a", "reward": "1"}]}', 422, "valid number"),
            ('{"results": [{"play": "a", "reward": true}]}', 422, "valid number"),
            ('{"results": [{"play": "a", "reward": 1, "reward": 2}]}', 400, "'reward' twice"),
            ('{"results": [{"play": "a", "reward": 1}], "more": 1}', 422, "body.more"),
            ('{"results": [' + "1," * 2_000_000 + "1]}", 422, "at most 1000"),
            ("{" + ",".join(f'"{i}": 1' for i in range(200_000)) + "}", 400, "at most 100 members"),
            ('{"results": []}', 422, "at least 1"),
            ("[]", 422, "body"),
            ("", 422, "body"),
            ("{", 400, "must be JSON"),
            ('{"results": "\\ud800"}', 422, "body.results"),
            (b'{"results": "\xff\xfe"}', 400, "UTF-8"),
            (b"\xef\xbb\xbf{}", 400, "must be JSON"),
            ("{}".encode("utf-16"), 400, "UTF-8"),
        ],
    )  # fmt: skip
    def test_bodies_that_make_no_sense(self, client, body, code, said):
        answer = client.post("/api/experiments/ads/tell", content=body, headers=JSON)
        problem(answer, code, "invalid", said)
        assert len(answer.content) < 10_000

    @pytest.mark.parametrize("n", [0, -1, 1001, 10**9, 10**400, 1.0, "1", None, [1]])
    def test_numbers_of_plays(self, client, n):
        answer = client.post("/api/experiments/ads/ask", content=json.dumps({"n": n}), headers=JSON)
        problem(answer, 422, "invalid", "body.n")

    def test_a_million_arms_and_one(self, client):
        body = {"name": "many", "arms": 1_000_001, "fidelities": {"costs": [1]}}
        problem(client.post("/api/experiments", json=body), 422, "invalid", "1000000")
        body["arms"] = [str(arm) for arm in range(1_000_001)]
        problem(client.post("/api/experiments", json=body), 422, "invalid", "at most 1000000 items")

    def test_a_length_that_is_too_large_is_refused_before_the_body_is_sent(self, open_service):
        for length in (str(MAX_BODY_BYTES + 1), "9" * 15, "9" * 30):
            head = f"POST /api/experiments/ads/tell HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n"
            more = "Connection: close\r\nContent-Type: application/json\r\n\r\n"
            answer = raw("127.0.0.1", open_service[0].port, f"{head}{more}".encode())
            assert re.match(rb"HTTP/1.1 4(13|00) ", answer), answer

    def test_without_a_length_it_is_counted(self, client):
        parts = (b" " * 2**20 for _ in range(20))
        problem(client.post("/api/experiments/ads/tell", content=parts, headers=JSON), 413, "too-large", "16,777,216")

    def test_lengths_that_lie_do_no_harm(self, open_service, client):
        head = b"POST /api/experiments/ads/ask HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        before = client.get("/api/experiments/ads").json()["events"]
        for lie in (b"Content-Length: 1\r\n\r\n{}", b"Content-Length: 100\r\n\r\n{}", b"Content-Length: -1\r\n\r\n{}",
                    b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}x",
                    b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}"):  # fmt: skip
            answer = raw("127.0.0.1", open_service[0].port, head + lie)
            assert not answer or re.match(rb"HTTP/1.1 4\d\d ", answer), (lie, answer)
        assert client.get("/api/experiments/ads").json()["events"] == before


def files(folder):
    """All files, without those that SQLite makes for itself."""
    return sorted(path for path in folder.rglob("*") if not path.name.endswith(("-wal", "-shm")))


class TestFiles:
    """What the command line writes is where it was told to, or nothing."""

    @pytest.fixture
    def file(self, tmp_path):
        toml = tmp_path / "a.toml"
        toml.write_text('[experiment]\narms = ["a", "b"]\n[fidelities]\ncosts = [1]\nrange = [0, 1]\n')
        path = tmp_path / "a.db"
        assert CliRunner().invoke(app, ["experiment", "create", str(path), "ads", str(toml)]).exit_code == 0
        return path

    @pytest.mark.parametrize("name", ["../ads", "/etc/passwd", "ads\x00", "..", "", "ads\n", "%2e%2e%2fads"])
    def test_names_that_are_paths(self, file, tmp_path, name):
        before = files(tmp_path)
        result = CliRunner().invoke(app, ["experiment", "export", str(file), name, "--out", str(tmp_path / "o.csv")])
        assert result.exit_code == 2
        assert result.stderr.startswith("Error: ")
        assert result.stderr.count("\n") == 1
        assert files(tmp_path) == before

    @pytest.mark.parametrize("out", ["nowhere/o.csv", "o\x00.csv", ".", "..", "a.db/o.csv"])
    def test_places_that_cannot_be_written(self, file, tmp_path, out):
        before = files(tmp_path)
        result = CliRunner().invoke(
            app, ["experiment", "export", str(file), "ads", "--format", "csv", "--out", f"{tmp_path}/{out}"]
        )
        assert result.exit_code in (1, 2)
        assert result.stderr.splitlines()[-1].startswith("Error: ")
        assert files(tmp_path) == before


def test_a_length_beside_chunks_is_no_way_round_the_limit(tmp_path):
    """Servers other than uvicorn with httptools let both pass, and read chunks without an end."""
    sent: list[dict[str, Any]] = []
    parts = iter(range(10))

    async def receive():
        return {"type": "http.request", "body": b" " * 2**20, "more_body": next(parts, None) is not None}

    async def send(message):
        sent.append(message)

    headers = [(b"host", b"localhost"), (b"content-type", b"application/json")]
    headers += [(b"content-length", b"2"), (b"transfer-encoding", b"chunked")]
    scope: dict[str, Any] = {"type": "http"}
    scope |= {"http_version": "1.1", "method": "POST", "path": "/api/experiments", "headers": headers}
    scope |= {"query_string": b"", "scheme": "http", "raw_path": b"/api/experiments", "root_path": ""}
    with Store(tmp_path / "store.db") as store:
        app_of_4_mib = create_app(store, max_body_bytes=2**22)
        asyncio.run(asyncio.wait_for(app_of_4_mib(scope, receive, send), timeout=30))
    assert sent[0]["status"] == 413
