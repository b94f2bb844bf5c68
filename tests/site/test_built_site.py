"""The site that `make docs` has built: every link, no request to elsewhere, search, and what axe finds."""

import re
from collections import defaultdict
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import unquote, urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]

from tests.support.browsers import chromium, watched
from tests.support.requirements import missing

SITE = Path(__file__).parents[2] / "build" / "site"
MAIN = [
    *("index", "start/index", "tutorials/run_ads_live", "how-to/stop_when_sure", "explanation/pictures"),
    *("gallery/index", "reference/http", "reference/api/experiment", "measured/index"),
]
FETCHED = {("script", "src"), ("img", "src"), ("iframe", "src"), ("link", "href"), ("source", "src")}


class Reader(HTMLParser):
    """What a page links to, fetches, names and shows."""

    def __init__(self):
        super().__init__()
        self.names, self.links, self.fetched, self.undescribed = set(), [], [], []

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        self.names |= {values[key] for key in ("id", "name") if values.get(key)}
        for key in ("href", "src"):
            if (tag, key) in FETCHED and values.get(key):
                self.fetched.append(values[key])
            elif values.get(key):
                self.links.append(values[key])
        if tag == "img" and "alt" not in values:
            self.undescribed.append(values.get("src"))


@pytest.fixture(scope="module")
def pages():
    if not (SITE / "index.html").exists():
        missing("the site is not built: make docs")
    found = {}
    for path in SITE.rglob("*.html"):
        if "_static" not in path.parts:
            reader = Reader()
            reader.feed(path.read_text(encoding="utf-8"))
            found[path.resolve()] = reader
    return found


def test_links_and_anchors(pages):
    broken = []
    for path, reader in pages.items():
        for link in [*reader.links, *reader.fetched]:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            there = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            there = there / "index.html" if there.is_dir() else there
            lost = parts.fragment and there in pages and unquote(parts.fragment) not in pages[there].names
            if not there.exists() or lost:
                broken.append(f"{path.relative_to(SITE.resolve())}: {link}")
    assert not broken


def test_pictures_are_described(pages):
    assert not {str(path): reader.undescribed for path, reader in pages.items() if reader.undescribed}


def test_nothing_is_fetched_from_elsewhere(pages):
    outside = [one for reader in pages.values() for one in reader.fetched if re.match(r"(https?:)?//", one)]
    styles = [
        path
        for path in SITE.rglob("*.css")
        if re.search(r"url\(['\"]?(https?:)?//|@import ['\"]?https?:", path.read_text())
    ]
    assert (outside, styles) == ([], [])


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def browser():
    with chromium() as running:
        yield running


@pytest.fixture(scope="module")
def site(pages):  # noqa: ARG001 - it must be built
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=SITE)) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


STATE = "Got invalid theme mode"  # the theme says so at the first visit


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_serious_for_axe(browser, site, scheme):
    """Also: nothing is asked of another host, which ``watched`` holds."""
    found = defaultdict(list)
    for name in (*MAIN, "playground/index"):
        with watched(browser, site, color_scheme=scheme) as (page, watch):
            watch.allowed = STATE
            page.goto(f"/{name}.html", wait_until="networkidle")
            for problem in Axe().run(page, options={"preload": False}).response["violations"]:
                if problem["impact"] in ("serious", "critical"):
                    found[name].append((problem["id"], [node["html"][:120] for node in problem["nodes"][:3]]))
    assert not found


def test_formulas_are_set(browser, site):
    with watched(browser, site) as (page, watch):
        watch.allowed = STATE
        page.goto("/explanation/pictures.html")
        page.wait_for_selector("mjx-container")


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ("stop", "how-to/stop_when_sure"),
        ("CTR", "tutorials/run_ads_live"),
        ("unknown bias", "how-to/unknown_biases"),
        ("resume", "live"),
        ("nginx", "proxy"),
        ("GridSearchCV", "how-to/model_selection"),
    ],
)
def test_search_finds(browser, site, words, wanted):
    with watched(browser, site) as (page, watch):
        watch.allowed = STATE
        page.goto(f"/search.html?q={words}")
        page.wait_for_selector("#search-results .search-summary:has-text('finished')")
        found = page.locator("#search-results li > a").evaluate_all("links => links.map(link => link.pathname)")
        assert f"/{wanted}.html" in found[:4]
