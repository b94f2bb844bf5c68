"""Behind a proxy: another name, another scheme and a prefix, without letting anybody else choose them."""

import re
import socket
import ssl
import subprocess
import sys
from importlib.resources import files
from typing import Any

import httpx
import pytest
from playwright.sync_api import expect
from typer.testing import CliRunner

import mfbandit as mfb
from mfbandit import Store
from mfbandit.cli.main import app as commands
from mfbandit.errors import InvalidArgument
from mfbandit.service.app import create_app
from mfbandit.service.public_address import ProxySettings
from tests.support.browsers import PATIENCE, chromium, watched
from tests.support.in_process import InProcess
from tests.support.proxies import HOST, nginx
from tests.support.services import create, problem, served, talking

expect.set_options(timeout=PATIENCE)
FORWARDED = {"x-forwarded-host": HOST, "x-forwarded-proto": "https"}
SETTINGS = {"root_path": "/bandits", "allowed_hosts": [HOST], "trusted_proxies": ["10.1.0.0/16"]}
PROXY, STRANGER = "10.1.2.3", "10.2.0.1"


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "a.db") as store:
        yield store


@pytest.fixture
def token(store):
    return store.create_token("me", "write")


@pytest.fixture
def door(store, token):
    def opened(sender=PROXY, **more):
        assert token
        return InProcess(create_app(store, **{**SETTINGS, **more}), "http://127.0.0.1:8000", sender)

    return opened


def sign_in(door, token, headers, prefix="/bandits"):
    return door.post(f"{prefix}/sign-in", data={"token": token}, headers=headers)


class TestHosts:
    @pytest.mark.parametrize("host", [HOST, HOST.upper(), f"{HOST}:8443", "localhost", "127.0.0.1:8000"])
    def test_a_name_that_was_allowed(self, door, host):
        assert door().get("/health", headers={"host": host}).status_code == 200

    @pytest.mark.parametrize("host", ["evil.example", f"{HOST}.evil.example", f"evil.{HOST}", ""])
    def test_no_other(self, door, host):
        problem(door().get("/health", headers={"host": host}), 421, "host", "--allowed-host", repr(host))

    def test_not_even_where_it_listens_for_others_too(self, door):
        elsewhere = door(loopback=False)
        problem(elsewhere.get("/health", headers={"host": "evil.example"}), 421, "host")
        assert elsewhere.get("/health", headers={"host": HOST}).status_code == 200

    def test_a_proxy_that_changed_the_host_says_the_first(self, door):
        assert door().get("/health", headers={"host": "backend", **FORWARDED}).status_code == 200
        problem(door().get("/health", headers={**FORWARDED, "x-forwarded-host": "evil.example"}), 421, "host")

    def test_a_stranger_is_not_believed(self, door):
        answer = door(STRANGER).get("/health", headers={"host": "evil.example", **FORWARDED})
        problem(answer, 421, "host", "evil.example")

    def test_what_the_nearest_proxy_says_counts(self, door):
        lists = {"x-forwarded-host": f"evil.example, {HOST}", "x-forwarded-proto": "http, https"}
        assert door().get("/health", headers=lists).status_code == 200
        problem(door().get("/health", headers={"x-forwarded-host": f"{HOST}, evil.example"}), 421, "host")


class TestForms:
    @pytest.mark.parametrize("host", [{"host": HOST}, {"host": "backend"}])
    def test_of_its_own_pages(self, door, token, host):
        answer = sign_in(door(), token, {**host, **FORWARDED, "origin": f"https://{HOST}"})
        assert answer.status_code == 303, answer.text
        assert answer.headers["location"] == "/bandits/"
        cookie = answer.headers["set-cookie"]
        assert cookie.startswith("__Secure-mfbandit=")
        assert {"Secure", "HttpOnly", "SameSite=strict", "Path=/bandits"} <= set(cookie.split("; "))

    @pytest.mark.parametrize(
        "origin",
        [f"http://{HOST}", "https://evil.example", f"https://{HOST}:8443", "null", "", "http://127.0.0.1:8000"],
    )
    def test_not_of_others(self, door, token, origin):
        answer = sign_in(door(), token, {**FORWARDED, "origin": origin})
        problem(answer, 403, "origin", f"https://{HOST}", repr(origin))

    def test_a_proxy_that_is_not_trusted_is_named_as_the_reason(self, door, token):
        answer = sign_in(door(STRANGER), token, {"host": HOST, **FORWARDED, "origin": f"https://{HOST}"})
        problem(answer, 403, "origin", "--trusted-proxy must name the proxy")

    def test_a_port_that_browsers_leave_out(self, door, token):
        headers = {**FORWARDED, "x-forwarded-host": f"{HOST}:443", "origin": f"https://{HOST}"}
        assert sign_in(door(), token, headers).status_code == 303


class TestPrefix:
    @pytest.mark.parametrize("prefix", ["/bandits", ""])
    def test_links_scripts_and_redirects_have_it(self, door, token, prefix):
        create_headers = {"authorization": f"Bearer {token}", "host": HOST}
        body = {"name": "ads", "arms": ["a", "b"], "fidelities": {"costs": [1], "concentration": None}}
        body["policy"] = {"name": "MFBayes"}
        made = door().post(f"{prefix}/api/experiments", json=body, headers=create_headers)
        assert made.status_code == 201, made.text
        answer = door().get(f"{prefix}/experiments/ads", headers={"host": HOST})
        assert (answer.status_code, answer.headers["location"]) == (303, "/bandits/sign-in?next=/experiments/ads")
        fields = {"token": token, "next": "/experiments/ads"}
        headers = {**FORWARDED, "origin": f"https://{HOST}"}
        signed_in = door().post(f"{prefix}/sign-in", data=fields, headers=headers)
        assert signed_in.headers["location"] == "/bandits/experiments/ads"
        cookie = signed_in.headers["set-cookie"].split(";")[0]
        more = [f"/experiments/ads{page}" for page in ("", "/arms/0", "/compare", "/events", "/confirm?verb=pause")]
        for page in ("/", *more, "/sign-in", "/api", "/nowhere"):
            shown = door().get(f"{prefix}{page}", headers={**FORWARDED, "cookie": cookie})
            places = re.findall(r"""(?:href|src|action|hx-get)=["']([^"']*)["']""", shown.text)
            assert all(place.startswith(("/bandits/", "data:", "#")) for place in places), (page, places)
            assert len(places) > 2 or page == "/nowhere"
        done = door().post(f"{prefix}/experiments/ads/do/pause", data={"x": ""}, headers={**headers, "cookie": cookie})
        assert (done.status_code, done.headers["location"]) == (303, "/bandits/experiments/ads")

    def test_no_template_forgets_it(self):
        for file in (files("mfbandit.service") / "templates").iterdir():
            places = re.findall(r"""(?:href|src|action|hx-[a-z]+)=["']([^"']*/[^"']*)["']""", file.read_text())
            assert [place for place in places if not place.startswith("{{ root }}")] == [], file.name

    def test_of_the_openapi_document(self, door):
        for prefix in ("/bandits", ""):
            document = door().get(f"{prefix}/openapi.json", headers={"host": HOST}).json()
            assert document["servers"] == [{"url": "/bandits"}]
            assert "/api/experiments" in document["paths"]

    def test_itself_is_the_first_page(self, door):
        answer = door().get("/bandits", headers={"host": HOST})
        assert (answer.status_code, answer.headers["location"]) == (303, "/bandits/sign-in?next=/")

    def test_what_only_looks_like_it_is_none(self, door, token):
        headers = {"host": HOST, "authorization": f"Bearer {token}"}
        for path in ("/banditsapi/experiments", "/bandits2/api/experiments", "/bandits/bandits/api/experiments"):
            assert door().get(path, headers=headers).status_code == 404
        problem(door().get("/bandits/api/experiments", headers={"host": HOST}), 401, "unauthorized")

    def test_signing_in_leads_to_no_neighbour(self, door, token):
        for goal in ("/../other", "/%2e%2e/other", "/x/..%2f../other", "/..\\other"):
            headers = {**FORWARDED, "origin": f"https://{HOST}"}
            answer = door().post("/bandits/sign-in", data={"token": token, "next": goal}, headers=headers)
            assert answer.headers["location"] == "/bandits/"


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"root_path": "bandits"}, "root_path must be a path such as /bandits, got 'bandits'"),
        ({"root_path": "/../x"}, "root_path must be a path"),
        ({"root_path": "//evil.example"}, "root_path must be a path"),
        ({"root_path": '/a"b'}, "root_path must be a path"),
        ({"root_path": "/api/x"}, "root_path must not begin like a path of the service, got '/api/x'"),
        ({"allowed_hosts": ["https://a.example"]}, "allowed_hosts must be names of hosts without scheme"),
        ({"allowed_hosts": ["a.example:80"]}, "got 'a.example:80'"),
        ({"allowed_hosts": ["*"]}, "got '*'"),
        ({"trusted_proxies": ["proxy.example"]}, "trusted_proxies must be addresses or networks"),
        ({"trusted_proxies": ["10.0.0.1/8"]}, "host bits set"),
    ],
)
def test_wrong_settings(store, settings, said):
    with pytest.raises(InvalidArgument, match=re.escape(said)):
        create_app(store, **settings)


def test_settings_of_every_kind():
    settings = ProxySettings("/a/b/", ["ADS.example", "[::1]"], ["::1", "10.0.0.0/8"])
    assert settings.root_path == "/a/b"
    assert settings.allows("::1")
    ipv6 = {"client": ("::ffff:10.2.3.4", 1), "scheme": "http"}
    assert settings.address_of(ipv6, {b"x-forwarded-proto": b"https"}).secure
    assert not settings.address_of({"client": None, "scheme": "http"}, {b"x-forwarded-proto": b"https"}).secure


@pytest.mark.parametrize("option", ["--allowed-host", "--trusted-proxy"])
def test_without_a_token_there_is_no_proxy(tmp_path, option):
    value = {"--allowed-host": HOST, "--trusted-proxy": "127.0.0.1"}[option]
    command = [sys.executable, "-m", "mfbandit", "serve", str(tmp_path / "a.db"), "--port", "0", option, value]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert re.fullmatch(r"Error: a proxy must not be named while \S+ has no token, got .*\n", done.stderr)


def test_nor_is_anybody_let_in_where_an_application_was_made_without(store):
    anybody = InProcess(create_app(store, allowed_hosts=[HOST]))
    problem(anybody.get("/api/experiments"), 401, "unauthorized", "token create")


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("https://me:secret@ads.example.org/bandits", "url must have no user and password, not shown here"),
        ("https://secret@ads.example.org", "url must have no user and password"),
        ("https://ads.example.org/bandits?a=b", "without ? and #, got 'https://ads.example.org/bandits?a=b'"),
        ("https://ads.example.org/bandits#top", "without ? and #"),
    ],
)
def test_addresses_that_have_more_than_a_prefix(address, said):
    with pytest.raises(InvalidArgument, match=re.escape(said)) as refused:
        mfb.connect(address)
    assert "secret" not in str(refused.value)


# With a real nginx, and a real browser in front of it.


@pytest.fixture(scope="module")
def browser():
    with chromium("--host-resolver-rules=MAP ads.example.org 127.0.0.1") as browser:
        yield browser


CHANGES: dict[str, dict[str, Any]] = {
    "as documented": {},
    "prefix taken off": {"prefix_off": True},
    "Host replaced": {"without": "proxy_set_header Host "},
}


@pytest.fixture(scope="module", params=CHANGES)
def proxied(request, tmp_path_factory):
    """The public address of a service behind nginx, its certificate and a token."""
    folder = tmp_path_factory.mktemp("proxied")
    with Store(folder / "a.db") as store:
        token = store.create_token("me", "admin")
    options = ["--root-path", "/bandits", "--allowed-host", HOST, "--trusted-proxy", "127.0.0.1"]
    with served(folder / "a.db", options=options) as service:
        with talking(service.url, token) as client:
            create(client, "ads", capital=1000)
        with nginx(folder, service.port, **CHANGES[request.param]) as (url, pem):
            yield url, pem, token


@pytest.fixture
def _names(monkeypatch, proxied):
    """Let this process find the host, and believe its certificate."""
    usual = socket.getaddrinfo

    def getaddrinfo(host, *more, **options):
        return usual("127.0.0.1" if host in (HOST, HOST.encode()) else host, *more, **options)

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    monkeypatch.setenv("SSL_CERT_FILE", str(proxied[1]))


class TestNginx:
    def test_the_dashboard(self, browser, proxied):
        url, _, token = proxied
        with watched(browser, url, ignore_https_errors=True) as (page, watch):
            page.goto(f"{url}/experiments/ads")
            page.get_by_label("Token").fill(token)
            page.get_by_role("button", name="Sign in").click()
            expect(page).to_have_url(f"{url}/experiments/ads")
            (cookie,) = page.context.cookies()
            assert (cookie["name"], cookie["path"], cookie["secure"]) == ("__Secure-mfbandit", "/bandits", True)
            page.wait_for_load_state()  # the address is there before the scripts are
            assert page.evaluate("typeof htmx + typeof uPlot") == "objectfunction"
            before = page.inner_text("#now")
            expect(page.locator("#now")).not_to_have_text(before)  # it updates itself
            page.get_by_role("button", name="Pause …").click()
            page.get_by_role("button", name="Pause", exact=True).click()
            expect(page.locator("h1 .state")).to_have_text("paused")
            page.get_by_role("button", name="Resume …").click()
            page.get_by_role("button", name="Resume", exact=True).click()
            expect(page.locator("h1 .state")).to_have_text("running")
            page.get_by_role("link", name="API").click()
            expect(page.get_by_role("heading", level=1)).to_contain_text("mfbandit")
            assert page.evaluate("document.styleSheets.length") == 1
            place = page.get_by_role("link", name="openapi.json").get_attribute("href")
            document = page.evaluate("async place => (await fetch(place)).json()", place)
            assert document["servers"] == [{"url": "/bandits"}]
            page.goto(url)
            page.get_by_role("button", name="Sign out").click()
            expect(page).to_have_url(f"{url}/sign-in")
            assert page.context.cookies() == []
            assert all(address.startswith((url, "data:")) for address in watch.addresses)

    @pytest.mark.usefixtures("_names")
    def test_a_client(self, proxied):
        url, _, token = proxied
        with mfb.connect(url, token) as store:
            assert store.list() == ("ads",)
            experiment = store.open("ads")
            play = experiment.ask()
            experiment.tell(play, 0.5)
            assert len(list(experiment.records())) >= 2

    @pytest.mark.usefixtures("_names")
    def test_commands(self, proxied):
        url, _, token = proxied
        for *command, said in (
            ["list", url, "ads"],
            ["status", f"{url}/", "ads", "running"],
            ["export", url, "ads", "play,"],
        ):
            done = CliRunner().invoke(commands, ["experiment", *command], env={"MFBANDIT_TOKEN": token})
            assert done.exit_code == 0, done.stderr
            assert said in done.stdout

    def test_another_name_is_refused(self, proxied):
        url, pem, _ = proxied
        port = url.split(":")[2].split("/")[0]
        context = ssl.create_default_context(cafile=str(pem))
        with httpx.Client(verify=context) as client:
            for host, code in ((f"{HOST}:{port}", 200), ("evil.example", 421)):
                request = client.build_request(
                    "GET", f"https://127.0.0.1:{port}/bandits/health", headers={"host": host}
                )
                request.extensions["sni_hostname"] = HOST
                assert client.send(request).status_code == code
