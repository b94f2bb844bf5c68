"""Take the pictures of the dashboard that are in the docs: the demonstration, on its way and decided.

    python scripts/screenshots.py [--out docs/figures]

Needs Chromium and the dev extra.
"""

import argparse
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import httpx
from PIL import Image
from playwright.sync_api import Browser, sync_playwright

ARM = 7  # the clickbait
PAGES = {
    "list": "/",
    "experiment": "/experiments/ads",
    "arms": "/experiments/ads/arms",
    "arm": f"/experiments/ads/arms/{ARM}",
    "compare": "/experiments/ads/compare",
    "events": "/experiments/ads/events",
    "change": "/experiments/ads/change",
    "confirm": "/experiments/ads/confirm?verb=pause",
    "sign-in": "/sign-in",
}
LOOKS: dict[str, tuple[Literal["dark", "light"], int]] = {
    "": ("light", 1280),
    "-dark": ("dark", 1280),
    "-375": ("light", 375),
}
ON_THE_WAY, TOP_HEIGHT = "top", 1000  # of the page of the experiment before it is decided, its upper part
TALLEST = {1280: 2000, 375: 2400}  # what a picture shows of a page, from its top
COLOURS = 128
POLL_SECONDS = 0.2
UPDATE_MILLISECONDS = 1500  # one update of a page, and some
TREND_SECONDS = 900  # until the charts of an open page are whole, at most: on a busy machine they take long


def main() -> int:
    """Start the demonstration, take a picture on the way, wait until it is decided, take the others."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("docs/figures"))
    parser.add_argument("--results", type=int, default=1500, help="before the picture on the way")
    options = parser.parse_args()
    with _demo() as url, sync_playwright() as playwright:
        _wait(url, lambda status: sum(status["results"]) >= options.results)
        program = shutil.which("chromium")
        browser = playwright.chromium.launch(
            executable_path=program, args=["--no-sandbox", "--force-color-profile=srgb"]
        )
        _take(browser, url, "experiment", "", options.out / f"dashboard-{ON_THE_WAY}.png", TOP_HEIGHT, ready="#sure")
        _wait(url, lambda status: status["state"] == "decided")
        _take_part(url)
        _draw_charts(browser, url)
        for look in LOOKS:
            for name in PAGES:
                _take(browser, url, name, look, options.out / f"dashboard-{name}{look}.png")
        browser.close()
    return 0


def _take_part(url: str) -> None:
    """Do what people do, so that there are events of all kinds."""
    with httpx.Client(base_url=f"{url}/api/experiments/ads") as client:
        about = {"text": "Its picture promises what the page does not keep.", "arm": ARM}
        client.post("/notes", json=about).raise_for_status()
        client.post("/notes", json={"text": "Shown to the team on Monday."}).raise_for_status()


@contextmanager
def _demo() -> Iterator[str]:
    command = [sys.executable, "-m", "mfbandit", "demo", "--seed", "0", "--speed", "100"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        greeting = process.stderr.readline() if process.stderr is not None else ""
        found = re.search(r"http://\S+", greeting)
        if found is None:
            raise RuntimeError(f"the demonstration did not start: {greeting}")
        yield found[0]
    finally:
        process.terminate()
        process.wait()


def _wait(url: str, enough: Callable[[dict[str, Any]], bool]) -> None:
    """Wait until the experiment has come so far."""
    while not enough(httpx.get(f"{url}/api/experiments/ads").json()):
        time.sleep(POLL_SECONDS)


def _draw_charts(browser: Browser, url: str) -> None:
    """Keep a page open until its charts are computed, which is done bit by bit."""
    page = browser.new_page()
    page.goto(f"{url}/experiments/ads")
    ends = time.monotonic() + TREND_SECONDS
    while not page.locator("svg.chart").count() or page.get_by_text("The rest is being computed.").count():
        if time.monotonic() > ends:
            raise RuntimeError(f"the charts were not whole after {TREND_SECONDS} s")
        page.wait_for_timeout(UPDATE_MILLISECONDS)
    page.close()


def _take(
    browser: Browser, url: str, name: str, look: str, path: Path, tallest: int = 10_000, ready: str = "main"
) -> None:
    colours, width = LOOKS[look]
    page = browser.new_page(color_scheme=colours, viewport={"width": width, "height": 800})
    page.goto(url + PAGES[name])
    page.locator(ready).wait_for()
    page.wait_for_timeout(UPDATE_MILLISECONDS)
    tall = int(page.evaluate("document.querySelector('main').getBoundingClientRect().bottom"))
    height = min(tall, TALLEST[width], tallest)
    page.screenshot(path=path, full_page=True, clip={"x": 0, "y": 0, "width": width, "height": height})
    page.close()
    with Image.open(path) as picture:
        picture.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)
    print(f"{path} {path.stat().st_size / 1e3:.0f} kB", flush=True)


if __name__ == "__main__":
    sys.exit(main())
