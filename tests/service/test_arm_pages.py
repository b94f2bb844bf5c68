"""The pages of arms, of two arms, of events, and downloads, in a real browser of a real service."""

import csv
import json
import re

import pytest
from playwright.sync_api import expect

from tests.support.browsers import PATIENCE, chromium, watched
from tests.support.services import create, served, talking

expect.set_options(timeout=PATIENCE)
PLACE, CROWD = "/experiments/ads", "/experiments/crowd"
RATES = {"costs": [1, 10], "biases": [0.1, 0], "concentration": {"name": "Rate"}, "names": ["minute", "hour"]}


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with served(tmp_path_factory.mktemp("arms") / "a.db") as service, talking(service.url) as api:
        create(api, "ads", arms=["plain", "bold", "bait"], fidelities=RATES, capital=10_000)
        results = [("plain", 1, 40, 1000), ("bold", 1, 120, 1000), ("bait", 1, 30, 1000), ("bait", 0, 600, 1000)]
        past = [{"arm": a, "fidelity": m, "successes": s, "trials": n} for a, m, s, n in results for _ in range(5)]
        api.post(f"/api{PLACE}/results", json={"results": past}).raise_for_status()
        api.post(f"/api{PLACE}/notes", json={"text": "a new picture", "arm": "bold"}).raise_for_status()
        api.post(f"/api{PLACE}/retire", json={"arm": "plain"}).raise_for_status()
        create(api, "crowd", arms=10_000)
        some = [{"arm": k, "fidelity": 1, "reward": k / 1000} for k in range(1000)]
        api.post(f"/api{CROWD}/results", json={"results": some}).raise_for_status()
        yield service


@pytest.fixture(scope="module")
def browser():
    with chromium() as browser:
        yield browser


@pytest.fixture
def visit(browser, service):
    with watched(browser, service.url) as (page, _):
        yield page


class TestArms:
    def test_a_click_rate_is_shown_in_per_cent_with_its_interval(self, visit):
        visit.goto(f"{PLACE}/arms")
        expect(visit.locator("#arm-1 .mean")).to_have_text("12.1 % ± 1.9")
        visit.goto(PLACE)
        expect(visit.locator("#estimate")).to_have_text("12.1 % ± 1.9")

    def test_10_000_arms_are_searched_sorted_and_paged_and_the_address_has_it_all(self, visit, service):
        visit.goto(f"{CROWD}/arms")
        expect(visit.locator("#found")).to_have_text("1 to 50 of 10,000 arms.")
        visit.get_by_label("Order").select_option("Highest mean first")
        expect(visit.locator("tbody tr").first).to_contain_text("999")
        visit.get_by_label("Search by name").fill("99")
        visit.keyboard.press("Enter")
        expect(visit.locator("#found")).to_contain_text("of 280 found, among 10,000 arms")
        visit.get_by_role("link", name="Next").click()
        expect(visit.locator("#found")).to_contain_text("51 to 100 of 280")
        assert visit.url == f"{service.url}{CROWD}/arms?q=99&sort=mean&page=2"
        shown = visit.locator("tbody td.label").all_text_contents()
        with_link = visit.context.new_page()
        with_link.goto(visit.url)
        assert with_link.locator("tbody td.label").all_text_contents() == shown
        visit.wait_for_timeout(2500)  # an update must leave the same view
        expect(visit.locator("#found")).to_contain_text("51 to 100 of 280")

    @pytest.mark.parametrize(
        ("query", "found"),
        [
            ("show=untried", "9,000"),
            ("show=retired", "0"),
            ("page=999999", "10,000"),
            ("page=-1&sort=x&show=y", "10,000"),
        ],
    )
    def test_whatever_an_address_asks_for_there_is_an_answer(self, visit, query, found):
        visit.goto(f"{CROWD}/arms?{query}")
        expect(visit.locator("#found")).to_contain_text("No arm" if found == "0" else f"of {found}")


class TestOneArm:
    def test_it_has_results_by_fidelity_history_and_notes(self, visit):
        visit.goto(f"{PLACE}/arms")
        visit.get_by_role("link", name="bold").click()
        table = visit.get_by_role("region", name="Results by fidelity")
        expect(table.locator("tbody tr").nth(1)).to_contain_text("12 %")
        expect(visit.get_by_role("img", name="Means over the looks at this arm")).to_be_visible()
        expect(visit.get_by_role("region", name="Notes and events")).to_contain_text("note about bold: a new picture")

    def test_a_cheap_look_that_overstates_is_said_so(self, visit):
        visit.goto(f"{PLACE}/arms/2")
        expect(visit.locator("ul.words")).to_contain_text(
            re.compile(r"Looks at minute overstate bait by at least \d+ points: 60 % there, 3 % at hour\.")
        )
        visit.goto(PLACE)
        expect(visit.locator("ul.words")).to_contain_text("Looks at minute overstate bait")

    def test_an_arm_that_is_not_there(self, browser, service):
        with watched(browser, service.url) as (page, watch):
            watch.allowed = "status of 4"
            page.goto(f"{PLACE}/arms/3")
            expect(page.get_by_role("alert")).to_contain_text("arm must lie in 0 to 2, got 3")


class TestTwoArms:
    def test_the_leaders_are_compared_first_and_any_others_by_name(self, visit, service):
        visit.goto(f"{PLACE}/compare")
        expect(visit.get_by_label("One arm")).to_have_value("bold")
        visit.get_by_label("Another").fill("plain")
        visit.get_by_role("button", name="Compare").click()
        expect(visit.locator("#difference")).to_contain_text(
            "sure that bold is better than plain (valid whenever you look)"
        )
        expect(visit.locator("#difference")).to_contain_text("points")
        assert visit.url == f"{service.url}{PLACE}/compare?a=bold&b=plain"

    def test_names_that_nobody_has(self, visit):
        visit.goto(f"{PLACE}/compare?a=bold&b=nobody")
        expect(visit.get_by_role("alert")).to_have_text("arm must be the name of an arm, got 'nobody'")
        visit.goto(f"{PLACE}/compare?a=bold&b=bold")
        expect(visit.get_by_role("alert")).to_have_text("the two arms must differ")


class TestEvents:
    def rows(self, page):
        return page.get_by_role("region", name="Events").locator("tbody tr")

    def test_all_but_plays_the_latest_first_and_filtered(self, visit):
        visit.goto(f"{PLACE}/events")
        expect(self.rows(visit).first).to_contain_text("arm retired: plain")
        visit.get_by_label("What").select_option("Notes")
        expect(self.rows(visit)).to_have_count(1)
        visit.goto(f"{PLACE}/events?q=PICTURE")
        expect(self.rows(visit)).to_have_count(1)
        visit.goto(f"{PLACE}/events?who=somebody")
        expect(self.rows(visit)).to_have_count(0)

    def test_plays_and_results_a_page_at_a_time(self, visit):
        visit.goto(f"{CROWD}/events?kind=everything")
        expect(self.rows(visit)).to_have_count(50)
        last = self.rows(visit).last.locator("td").first.text_content()
        visit.get_by_role("link", name="Older").click()
        first = self.rows(visit).first.locator("td").first
        expect(first).to_have_text(f"{int(last.replace(',', '')) - 1:,}")
        visit.get_by_role("link", name="Latest").click()
        expect(self.rows(visit).first).to_contain_text("told: ")


class TestDownloads:
    def test_plays_as_csv_and_the_log_as_json_lines(self, visit):
        visit.goto(PLACE)
        for name, kind in (("CSV", "csv"), ("JSON Lines", "jsonl")):
            with visit.expect_download() as loading:
                visit.get_by_role("link", name=name).click()
            assert loading.value.suggested_filename == f"ads.{kind}"
            text = loading.value.path().read_text()
            if kind == "csv":
                assert len(list(csv.DictReader(text.splitlines()))) == 20
            else:
                assert json.loads(text.splitlines()[-1])["event"] == "ArmRetired"
