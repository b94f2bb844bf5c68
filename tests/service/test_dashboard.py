"""The dashboard in a real browser, of a real service: what people see, and what they can and cannot do."""

import re
import time
from importlib.resources import files
from itertools import pairwise

import httpx
import pytest
from playwright.sync_api import expect

from tests.support.browsers import PATIENCE, chromium, watched
from tests.support.effort import effort
from tests.support.services import Service, create, problem, served, talking

expect.set_options(timeout=PATIENCE)

REFUSED = "status of 40[134]"  # what a console says about a page that was refused
CONTROLS = {
    "pause": {},
    "resume": {},
    "retire": {"arm": "a"},
    "restore": {"arm": "a"},
    "forget": {"arm": "a"},
    "capital": {"capital": "7"},
    "biases": {"biases": "0.3, 0"},
    "add": {"arm": "d"},
    "policy": {"policy": "UCB"},
    "stop": {"level": "95", "tolerance": "", "estimates": ""},
    "note": {"text": "hello", "arm": "b"},
}
STRANGE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(2)>',
    "{{ 7 * 7 }}",
    "مرحبا بالعالم (1)",
    "\u202eright to left\u202c",
    "👩‍👩‍👧‍👦🏳️‍🌈",
    "W" * 200,
]
FORM = {"content-type": "application/x-www-form-urlencoded"}


class House:
    """A service with tokens, and somebody who may do everything by its API."""

    def __init__(self, service):
        self.service, self.url = service, service.url
        with talking(service.url) as nobody:
            admin = nobody.post("/api/tokens", json={"name": "admin", "scope": "admin"}).json()["token"]
        self.api = httpx.Client(base_url=service.url, headers={"authorization": f"Bearer {admin}"}, timeout=30)
        self.tokens = {"admin": admin} | {scope: self.token(scope) for scope in ("read", "write")}

    def token(self, scope):
        return self.post("/api/tokens", name=scope, scope=scope)["token"]

    def session(self, scope):
        """What the cookie of a browser has after signing in."""
        fields = {"token": self.tokens[scope]}
        return httpx.post(f"{self.url}/sign-in", data=fields, headers={"origin": self.url}).cookies["mfbandit"]

    def post(self, address, **body):
        answer = self.api.post(address, json=body)
        assert answer.is_success, answer.text
        return answer.json()

    def create(self, name, **more):
        create(self.api, name, **more)
        return f"/experiments/{name}"

    def feed(self, place, results=1, reward=0.5):
        plays = self.post(f"/api{place}/ask", n=results)["plays"]
        self.post(f"/api{place}/tell", results=[{"play": play["id"], "reward": reward} for play in plays])

    def status(self, place):
        return self.api.get(f"/api{place}").json()

    def events(self, place):
        return self.api.get(f"/api{place}/log").json()["events"]


@pytest.fixture(scope="module")
def browser():
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    with served(tmp_path_factory.mktemp("dashboard") / "a.db") as service:
        house = House(service)
        yield house
        house.api.close()


@pytest.fixture
def visitor(browser, house):
    with watched(browser, house.url) as (page, watch):
        yield page, watch


@pytest.fixture
def visit(visitor):
    return visitor[0]


@pytest.fixture
def watch(visitor):
    return visitor[1]


@pytest.fixture
def place(house, request):
    """The page of a new experiment with the arms a, b and c and a capital of 1,000."""
    name = "".join(c if c.isalnum() else "-" for c in request.node.name)[-60:].lstrip("-")
    return house.create(name, capital=1000)


def sign_in(page, house, scope="write", goto="/"):
    page.goto(goto)
    page.get_by_label("Token").fill(house.tokens[scope])
    page.get_by_role("button", name="Sign in").click()
    expect(page).to_have_url(house.url + goto)


def cookies(page):
    return {cookie["name"]: cookie for cookie in page.context.cookies()}


def until(condition):
    """Seconds until it holds."""
    start = time.monotonic()
    while not condition():
        assert time.monotonic() < start + PATIENCE / 1000
        time.sleep(0.02)
    return time.monotonic() - start


class TestSigningIn:
    def test_a_wrong_token_is_refused_and_no_cookie_set(self, visit, watch):
        watch.allowed = REFUSED
        visit.goto("/")
        visit.get_by_label("Token").fill("mfb_00000000_no")
        visit.get_by_role("button", name="Sign in").click()
        expect(visit.get_by_role("alert")).to_have_text("The token is not one of this store's.")
        assert cookies(visit) == {}

    def test_the_cookie_is_out_of_reach_of_scripts_and_other_sites(self, visit, house):
        sign_in(visit, house)
        cookie = cookies(visit)["mfbandit"]
        assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
        assert visit.evaluate("document.cookie") == ""

    def test_it_leads_where_one_wanted_to_go(self, visit, house, place):
        sign_in(visit, house, goto=place)

    def test_signing_out(self, visit, house, place):
        sign_in(visit, house)
        visit.get_by_role("button", name="Sign out").click()
        expect(visit).to_have_url(f"{house.url}/sign-in")
        assert cookies(visit) == {}
        visit.goto(place)
        expect(visit).to_have_url(f"{house.url}/sign-in?next={place}")

    def test_a_page_that_is_open_when_its_token_is_taken_away_asks_for_another(self, visit, watch, house, place):
        watch.allowed = REFUSED
        house.tokens["short"] = house.token("read")
        sign_in(visit, house, "short", goto=place)
        house.api.delete(f"/api/tokens/{house.tokens['short'].split('_')[1]}").raise_for_status()
        expect(visit).to_have_url(f"{house.url}/sign-in?next={place}")

    def test_it_leads_to_no_other_site(self, visit, house):
        visit.goto("/sign-in")
        elsewhere = [
            "https://evil.example",
            "//evil.example",
            "/\\evil.example",
            "\\\\evil.example",
            "/\t/evil.example",
        ]
        elsewhere += [
            "/\n/evil.example",
            "javascript:alert(1)",
            "@evil.example",
            ".evil.example",
            "///evil.example",
            "",
        ]
        for address in elsewhere:
            fields = {"token": house.tokens["read"], "next": address}
            answer = httpx.post(f"{house.url}/sign-in", data=fields, headers={"origin": house.url})
            assert answer.status_code == 303
            origin = visit.evaluate("place => new URL(place, location).origin", answer.headers["location"])
            assert origin == house.url, address

    def test_without_any_token_everybody_on_this_machine_may_do_everything(self, browser, tmp_path):
        with served(tmp_path / "open.db") as service, watched(browser, service.url) as (page, _):
            page.goto("/")
            expect(page.locator("main")).to_contain_text("None yet")
            with talking(service.url) as api:
                create(api, "open")
            page.get_by_role("link", name="open").click()
            expect(page.get_by_role("link", name="Change", exact=True)).to_be_visible()
            expect(page.get_by_role("button", name="Sign out")).to_have_count(0)


class TestWatching:
    def test_the_list_shows_state_and_progress_and_changes_by_itself(self, visit, house, place):
        sign_in(visit, house)
        row = visit.locator(f"#row-{place.rpartition('/')[2]}")
        expect(row).to_contain_text("no result yet")
        house.feed(place, 10, 0.9)
        expect(row).not_to_contain_text("no result yet")
        expect(row.get_by_role("img", name=re.compile("of 1,000 spent, nothing reserved"))).to_be_visible()
        house.post(f"/api{place}/pause")
        expect(row.locator(".state")).to_have_text("paused")

    def test_a_new_experiment_appears_by_itself(self, visit, house):
        sign_in(visit, house)
        house.create("newcomer")
        visit.get_by_role("link", name="newcomer").click()
        expect(visit.get_by_role("heading", level=1)).to_contain_text("newcomer")

    def test_numbers_change_within_two_seconds(self, visit, house, place):
        sign_in(visit, house, "read", place)
        waits = []
        for results in (1, 2, 3):
            house.feed(place)
            waits.append(until(lambda: visit.inner_text("#results") == str(results)))  # noqa: B023 - used at once
        assert min(waits) < 2.0

    def test_the_chart_changes_with_the_numbers(self, visit, house, place):
        sign_in(visit, house, "read", place)
        expect(visit.locator("#spending-chart canvas")).to_have_count(0)  # of nothing there is no chart
        house.feed(place, 20)
        expect(visit.locator("#spending-chart canvas")).to_be_visible()
        pictures = [visit.evaluate("document.querySelector('canvas').toDataURL()")]
        for _ in range(2):
            house.feed(place, 5)
            until(lambda: visit.evaluate("document.querySelector('canvas').toDataURL()") != pictures[-1])
            pictures.append(visit.evaluate("document.querySelector('canvas').toDataURL()"))
        spent = visit.evaluate("JSON.parse(document.getElementById('spending').dataset.series).spent")
        assert sum(row[-1] for row in spent) == house.status(place)["spent"]

    def test_how_sure_it_is_comes_first_and_is_drawn(self, visit, house, place):
        sign_in(visit, house, "read", place)
        expect(visit.locator("#certainty")).to_be_hidden()  # before any result
        house.feed(place, 20)
        expect(visit.locator("#sure")).to_contain_text(
            "is the best (valid whenever you look). 2 of 3 may still be better"
        )
        expect(
            visit.get_by_role("img", name="Confidence that the leader is the best, %, over the capital spent")
        ).to_be_visible()
        expect(visit.get_by_role("region", name="Arms that may still be better").locator("tbody tr")).to_have_count(2)

    def test_what_one_has_begun_to_type_stays(self, visit, house, place):
        sign_in(visit, house, goto=f"{place}/arms/1")
        visit.get_by_label("Note about this arm").fill("half a thou")
        house.feed(place, 3)
        expect(visit.get_by_role("region", name="Latest results").locator("tbody td").first).to_have_text("2")
        expect(visit.get_by_label("Note about this arm")).to_have_value("half a thou")

    def test_latest_results_leases_and_events_are_listed(self, visit, house):
        place = house.create("listing", lease=60)
        house.feed(place, 2, 0.25)
        house.post(f"/api{place}/ask")
        house.post(f"/api{place}/notes", text="a new poster")
        sign_in(visit, house, "read", place)
        expect(visit.get_by_role("region", name="Latest results")).to_contain_text("0.25")
        expect(visit.get_by_role("region", name="Leases").locator("tbody tr")).to_have_count(1)
        expect(visit.get_by_role("region", name="Events")).to_contain_text("a new poster")

    def test_a_refuted_bias_is_shown_loudly(self, visit, house, place):
        sign_in(visit, house, "read", place)
        expect(visit.get_by_role("alert")).to_have_count(0)
        past = [{"arm": "b", "fidelity": m, "reward": 1 - m} for m in (0, 1) for _ in range(300)]
        house.post(f"/api{place}/results", results=past)
        expect(visit.get_by_role("alert").filter(has_text="is too small")).to_contain_text("b")
        expect(visit.get_by_role("region", name="Events")).to_contain_text("bias of fidelity 0 refuted by b")
        visit.goto("/")
        expect(visit.locator(f"#row-{place.rpartition('/')[2]}")).to_contain_text("bias alarm")

    def test_of_10_000_arms_the_leading_ones_and_a_summary(self, visit, house):
        place = house.create("crowd", arms=10_000)
        house.feed(place, 1000, 0.2)
        sign_in(visit, house, "read", place)
        leading = visit.get_by_role("region", name="Leading arms")
        expect(leading.locator("tbody tr")).to_have_count(12)
        expect(visit.locator("main")).to_contain_text("and 9,988 more arms, 988 results among them, 9,000 without any")

    def test_it_says_that_the_service_does_not_answer_and_recovers(self, browser, tmp_path):
        service = Service(tmp_path / "a.db")
        with talking(service.url) as api:
            create(api, "ads")
        with watched(browser, service.url) as (page, watch):
            watch.allowed = "ERR_CONNECTION|ERR_EMPTY_RESPONSE|Failed to fetch"
            page.goto("/experiments/ads")
            notice = page.get_by_text("The service does not answer")
            expect(notice).to_be_hidden()
            service.stop()
            expect(notice).to_be_visible()
            with served(tmp_path / "a.db", service.port) as again, talking(again.url) as api:
                api.post("/api/experiments/ads/pause", json={})
                expect(notice).to_be_hidden()
                expect(page.locator("h1 .state")).to_have_text("paused")
                page.close()

    def test_a_page_of_a_deleted_experiment_says_so(self, visit, watch, house, place):
        watch.allowed = REFUSED
        sign_in(visit, house, "read", place)
        name = place.rpartition("/")[2]
        house.api.delete(f"/api{place}?confirm={name}").raise_for_status()
        expect(visit.get_by_role("alert")).to_contain_text(name)
        visit.get_by_role("link", name="Back").click()
        expect(visit.get_by_role("heading", name="Experiments")).to_be_visible()


class TestControls:
    def confirm(self, page, button, *said):
        """The page that asks once more must say this; then say yes."""
        for words in said:
            expect(page.locator("main")).to_contain_text(words)
        page.get_by_role("button", name=button, exact=True).click()

    def test_pause_and_resume(self, visit, house, place):
        house.post(f"/api{place}/ask")
        sign_in(visit, house, goto=f"{place}/change")
        visit.get_by_role("button", name="Pause").click()
        self.confirm(visit, "Pause", "No plays are handed out until it is resumed", "pending plays, 1 now")
        expect(visit.locator("h1 .state")).to_have_text("paused")
        visit.get_by_role("link", name="Change", exact=True).click()
        visit.get_by_role("button", name="Resume").click()
        self.confirm(visit, "Resume", "Plays are handed out again")
        expect(visit.locator("h1 .state")).to_have_text("running")
        assert house.status(place)["state"] == "running"

    def test_retire_an_arm(self, visit, house, place):
        sign_in(visit, house, goto=f"{place}/change")
        visit.get_by_label("Arm to retire").fill("b")
        visit.get_by_role("button", name="Retire").click()
        self.confirm(visit, "Retire", "Retire b?", "not asked for or recommended any more", "until it is restored")
        expect(visit.locator("main")).to_contain_text("b (retired)")
        assert house.api.get(f"/api{place}/arms").json()["retired"] == [1]

    def test_restore_an_arm(self, visit, house):
        place = house.create("restoring", arms=["only"])
        for _ in range(3):
            (play,) = house.post(f"/api{place}/ask")["plays"]
            house.post(f"/api{place}/fail", plays=[play["id"]])
        sign_in(visit, house, goto=place)
        expect(visit.locator("main")).to_contain_text("only (set aside after failures)")
        visit.get_by_role("link", name="Change", exact=True).click()
        visit.get_by_label("Arm that was retired or set aside").fill("only")
        visit.get_by_role("button", name="Restore").click()
        self.confirm(visit, "Restore", "Restore only?", "is asked for again")
        expect(visit.locator("h1 .state")).to_have_text("running")

    @pytest.mark.parametrize(("given", "said", "then"), [("2500", "2,500", 2500.0), ("unlimited", "unlimited", None)])
    def test_raise_the_capital(self, visit, house, place, given, said, then):
        house.feed(place, 3)
        sign_in(visit, house, goto=f"{place}/change")
        visit.get_by_label("Capital in all").fill(given)
        visit.locator("form", has=visit.get_by_label("Capital in all")).get_by_role("button").click()
        self.confirm(visit, "Change the capital", said, "instead of 1,000", "is spent already")
        expect(visit.get_by_role("region", name="Events")).to_contain_text("capital set")
        assert house.status(place)["capital"] == then

    def test_change_the_biases(self, visit, house, place):
        sign_in(visit, house, goto=f"{place}/change")
        expect(visit.get_by_label("Biases, separated")).to_have_value("0.1, 0")
        visit.get_by_label("Biases, separated").fill("0.3, 0")
        visit.locator("form", has=visit.get_by_label("Biases, separated")).get_by_role("button").click()
        self.confirm(visit, "Change the biases", "biases of 0.3, 0 from now on, instead of 0.1, 0", "look longer")
        expect(visit.get_by_role("region", name="Events")).to_contain_text("biases set")

    def test_nothing_happens_when_one_cancels(self, visit, house, place):
        sign_in(visit, house, goto=f"{place}/change")
        before = house.events(place)
        visit.get_by_role("button", name="Pause").click()
        visit.get_by_role("link", name="Cancel").click()
        expect(visit).to_have_url(house.url + place)
        assert house.events(place) == before

    @pytest.mark.parametrize(
        ("verb", "field", "value", "said"),
        [
            ("capital", "capital", "much", "capital must be a number or unlimited, got 'much'"),
            ("capital", "capital", "nan", "capital must be"),
            ("biases", "biases", "0.1; 0", "biases must be numbers with commas between them, got '0.1; 0'"),
            ("retire", "arm", "nobody", "nobody"),
            ("explode", "arm", "a", "verb must be one of"),
            ("add", "arm", "a", "the name of a new arm must not be there yet, got 'a'"),
            ("add", "arm", " ", "must not be empty"),
            ("policy", "policy", "MFUCB 2", "parameters of a policy must be given as name=value, got '2'"),
            ("policy", "policy", "Nobody", "Nobody"),
            ("stop", "level", "sure", "level and tolerance must be numbers"),
            ("note", "text", " ", "a note must not be empty"),
        ],
    )
    def test_what_cannot_be_done_is_said_before_or_after_asking(
        self, visit, watch, house, place, verb, field, value, said
    ):
        watch.allowed = "status of 4"
        sign_in(visit, house, goto=f"{place}/change")
        before = house.events(place)
        visit.goto(f"{place}/confirm?verb={verb}&{field}={value}")
        if visit.get_by_role("alert").count() == 0:
            visit.locator("main").get_by_role("button").click()
        expect(visit.get_by_role("alert")).to_contain_text(said)
        assert house.events(place) == before
        visit.get_by_role("link", name="Back").click()
        expect(visit).to_have_url(house.url + place)

    def test_add_an_arm(self, visit, house, place):
        sign_in(visit, house, goto=f"{place}/change")
        visit.get_by_label("New arm, by name").fill("<b>d</b>")
        visit.get_by_role("button", name="Add").click()
        self.confirm(visit, "Add the arm", "Add <b>d</b>?", "tried before any other", "not removed")
        assert house.api.get(f"/api{place}/arms").json()["arms"] == ["a", "b", "c", "<b>d</b>"]

    def test_change_the_policy(self, visit, house, place):
        sign_in(visit, house, goto=f"{place}/change")
        visit.get_by_label("Its name, and parameters").fill("UCB rho=1.5")
        visit.locator("form", has=visit.get_by_label("Its name")).get_by_role("button").click()
        self.confirm(visit, "Change the policy", "UCB(rho=1.5) picks plays", "What was learned is kept")
        assert house.status(place)["policy"] == {"name": "UCB", "rho": 1.5, "kl": False}

    def test_change_when_it_stops(self, visit, house, place):
        sign_in(visit, house, goto=f"{place}/change")
        visit.get_by_label("Sure to").fill("90")
        visit.get_by_label("Tolerance").fill("0.05")
        visit.get_by_label("An estimate will do").check()
        visit.locator("form", has=visit.get_by_label("Sure to")).get_by_role("button").click()
        self.confirm(visit, "Change the rule", "90 % sure that no other arm is better by more than 0.05", "no rule")
        assert house.status(place)["stop"] == {"level": 0.9, "tolerance": 0.05, "estimates": True}

    def test_a_note_says_who_wrote_it_and_about_which_arm(self, visit, house, place):
        sign_in(visit, house, goto=f"{place}/arms/1")
        visit.get_by_label("Note about this arm").fill("<i>a new picture</i>")
        visit.get_by_role("button", name="Write").click()
        self.confirm(visit, "Write the note", "<i>a new picture</i>", "into the log of b")
        expect(visit).to_have_url(f"{house.url}{place}/arms/1")
        row = visit.get_by_role("region", name="Notes and events").locator("tbody tr")
        expect(row).to_contain_text("note about b: <i>a new picture</i>")
        expect(row.locator(".who")).to_have_text("write")
        event = house.events(place)[-1]
        assert (event["event"], event["arm"], event["actor"]) == ("ArmNoted", 1, "write")


class TestWhoMayNot:
    def test_a_read_token_sees_no_controls_and_is_refused_each(self, visit, watch, house, place):
        watch.allowed = REFUSED
        sign_in(visit, house, "read", place)
        before = house.events(place)
        expect(visit.get_by_role("link", name="Change", exact=True)).to_have_count(0)
        assert visit.goto(f"{place}/change").status == 403
        visit.goto(place)
        expect(visit.locator("main").get_by_role("button")).to_have_count(0)
        for verb, fields in CONTROLS.items():
            answer = visit.goto(f"{place}/confirm?verb={verb}&{httpx.QueryParams(fields)}")
            assert answer.status == 403
            expect(visit.get_by_role("alert")).to_contain_text("has scope read; this needs scope write")
            posted = visit.request.post(f"{place}/do/{verb}", form=fields, headers={"origin": house.url})
            assert posted.status == 403
        assert house.events(place) == before

    def test_nobody_sees_or_downloads_anything_without_signing_in(self, house, place):
        for page in ("", "/arms", "/arms/0", "/compare", "/events", "/change", "/download?kind=csv"):
            answer = httpx.get(f"{house.url}{place}{page}")
            assert (answer.status_code, answer.headers["location"].split("?")[0]) == (303, "/sign-in")
            update = httpx.get(f"{house.url}{place}{page}", headers={"hx-request": "true"})
            assert update.status_code == 401

    @pytest.mark.parametrize("origin", ["http://evil.example", "null", None, "http://localhost:1", "https://127.0.0.1"])
    def test_forms_of_other_sites_are_refused(self, house, place, origin):
        before, headers = house.events(place), {} if origin is None else {"origin": origin}
        cookie = {"mfbandit": house.session("write")}
        with httpx.Client(base_url=house.url, cookies=cookie, headers={**headers, **FORM}) as client:
            for verb, fields in CONTROLS.items():
                problem(client.post(f"{place}/do/{verb}", data=fields), 403, "origin", "from a page of this service")
            problem(client.post("/sign-in", data={"token": house.tokens["read"]}), 403, "origin")
            problem(client.post("/sign-out"), 403, "origin")
        assert house.events(place) == before

    def test_a_form_of_another_kind_is_refused(self, house, place):
        headers = {"origin": house.url, "content-type": "text/plain", "cookie": f"mfbandit={house.session('write')}"}
        problem(httpx.post(f"{house.url}{place}/do/pause", headers=headers), 415, "media-type")

    def test_a_cookie_opens_no_api(self, house, place):
        cookie = {"cookie": f"mfbandit={house.session('admin')}"}
        problem(httpx.get(f"{house.url}/api{place}", headers=cookie), 401, "unauthorized")


class TestLooks:
    def test_strange_labels_are_text_and_break_no_layout(self, visit, house):
        place = house.create("strange", arms=STRANGE, lease=60)
        house.feed(place, 20)
        house.post(f"/api{place}/ask", n=5)
        house.post(f"/api{place}/notes", text="<b>bold</b> " + "w" * 200)
        sign_in(visit, house, goto=place)
        expect(visit.get_by_role("region", name="Events")).to_contain_text("<b>bold</b>")
        leading = visit.get_by_role("region", name="Leading arms").locator("td.label")
        assert {text.strip() for text in leading.all_text_contents()} == set(STRANGE)
        visit.wait_for_timeout(1500)  # an update must not turn them into anything else either
        assert {text.strip() for text in leading.all_text_contents()} == set(STRANGE)
        for address in ("arms", f"compare?{httpx.QueryParams({'a': STRANGE[0], 'b': STRANGE[1]})}", "arms/1"):
            visit.goto(f"{place}/{address}")
            expect(visit.locator("main")).to_contain_text(STRANGE[1])
        for label in STRANGE:
            visit.goto(f"{place}/confirm?{httpx.QueryParams({'verb': 'retire', 'arm': label})}")
            assert visit.locator("h1").text_content() == f"Retire {label}?"

    def test_no_page_is_wider_than_a_telephone(self, visit, watch, house):
        watch.allowed = REFUSED
        place = house.create("n" * 64, arms=STRANGE, lease=60)
        house.feed(place, 20)
        house.post(f"/api{place}/ask", n=5)
        past = [{"arm": STRANGE[-1], "fidelity": m, "reward": 1 - m} for m in (0, 1) for _ in range(300)]
        house.post(f"/api{place}/results", results=past)
        visit.set_viewport_size({"width": 375, "height": 800})
        sign_in(visit, house)
        retire = httpx.QueryParams({"verb": "retire", "arm": STRANGE[-1]})
        others = [f"{place}/{page}" for page in ("arms", "arms/6", "compare", "events?kind=everything", "change")]
        others += [f"{place}/confirm?{retire}", "/experiments/" + "x" * 64]
        for address in ("/", place, *others, "/sign-in", "/api"):
            visit.goto(address)
            width = visit.evaluate("document.documentElement.scrollWidth")
            assert width <= 375, address

    def test_the_chart_follows_the_width_of_the_window(self, visit, house, place):
        house.feed(place, 5)
        sign_in(visit, house, "read", place)
        visit.set_viewport_size({"width": 375, "height": 800})
        until(lambda: visit.evaluate("document.querySelector('canvas')?.offsetWidth ?? 999") <= 375)

    def test_everything_is_reached_by_the_keyboard_and_seen_to_be(self, visit, house, place):
        house.feed(place, 5)
        visit.goto(place)
        expect(visit.get_by_label("Token")).to_be_focused()
        visit.keyboard.type(house.tokens["write"])
        visit.keyboard.press("Enter")
        expect(visit).to_have_url(house.url + place)
        wanted = visit.locator("a, button, input, [tabindex='0']").count()
        for _ in range(wanted):
            visit.keyboard.press("Tab")
            seen = visit.evaluate(
                """() => {
                    const style = getComputedStyle(document.activeElement);
                    (window.reached ??= new Set()).add(document.activeElement);
                    return [style.outlineStyle, parseFloat(style.outlineWidth), document.activeElement.outerHTML];
                }"""
            )
            assert (seen[0], seen[1] >= 2) == ("solid", True), seen
        assert visit.evaluate("window.reached.size") == wanted

    def test_a_control_by_the_keyboard_alone(self, visit, house, place):
        sign_in(visit, house, goto=f"{place}/change")
        visit.get_by_role("button", name="Pause").focus()
        visit.keyboard.press("Enter")
        expect(visit.get_by_role("button", name="Pause", exact=True)).to_be_focused()
        visit.keyboard.press("Enter")
        expect(visit.locator("h1 .state")).to_have_text("paused")

    def test_headings_go_down_one_by_one(self, visit, house, place):
        sign_in(visit, house, goto=place)
        levels = visit.evaluate("[...document.querySelectorAll('h1, h2, h3, h4')].map(one => +one.tagName[1])")
        assert levels[0] == 1
        assert all(after <= before + 1 for before, after in pairwise(levels))


@pytest.fixture(scope="module")
def busy(house):
    """The page of an experiment with everything that can be on it."""
    place = house.create("busy", capital=10_000, lease=60)
    house.feed(place, 50)
    past = [{"arm": "b", "fidelity": m, "reward": 1 - m} for m in (0, 1) for _ in range(300)]
    house.post(f"/api{place}/results", results=past)
    house.post(f"/api{place}/ask", n=3)
    house.post(f"/api{place}/retire", arm="c")
    return place


class TestAccessibility:
    AXE = (files("axe_playwright_python") / "axe.min.js").read_text()

    def check(self, page):
        page.evaluate(self.AXE)
        found = page.evaluate("axe.run()")
        assert len(found["passes"]) > 5
        wrong = [one for one in found["violations"] if one["impact"] in ("serious", "critical")]
        told = [(one["id"], one["help"], [node["html"] for node in one["nodes"]]) for one in wrong]
        assert told == []

    @pytest.mark.parametrize(
        ("scheme", "width"),
        [("light", 1280), ("dark", 375), *effort((), (("light", 375), ("dark", 1280)))],
    )
    def test_no_serious_violation_on_any_page(self, browser, house, busy, scheme, width):
        options = {"color_scheme": scheme, "viewport": {"width": width, "height": 800}}
        with watched(browser, house.url, **options) as (page, watch):
            watch.allowed = REFUSED
            page.goto("/sign-in")
            self.check(page)
            sign_in(page, house)
            self.check(page)
            page.goto(busy)
            expect(page.locator("canvas")).to_be_visible()
            self.check(page)
            for address in ("arms", "arms/1", "compare", "events", "change", "confirm?verb=pause"):
                page.goto(f"{busy}/{address}")
                self.check(page)
            page.goto("/experiments/nobody")
            self.check(page)
            page.goto("/api")
            self.check(page)
            sign_out = page.request.post("/sign-in", form={"token": "no"}, headers={"origin": house.url})
            page.route(
                "**/sign-in", lambda route: route.fulfill(status=200, content_type="text/html", body=sign_out.text())
            )
            page.goto("/sign-in")
            expect(page.get_by_role("alert")).to_be_visible()
            self.check(page)
