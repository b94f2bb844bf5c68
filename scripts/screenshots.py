"""Take the pictures of the dashboard that are in the docs: the demonstration, some thousand visitors later.

    python scripts/screenshots.py [--out docs/figures]

Needs Chromium and the dev extra.
"""

import argparse
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import httpx
from PIL import Image
from playwright.sync_api import Browser, sync_playwright

PICTURES = {
    "list": ("/", "light", 1280, 240),
    "top": ("/experiments/ads", "light", 1280, 920),
    "experiment": ("/experiments/ads", "light", 1280, 2600),
    "experiment-dark": ("/experiments/ads", "dark", 1280, 2600),
    "experiment-375": ("/experiments/ads", "light", 375, 2200),
}  # address, colours, width, height at most
POLL_SECONDS = 0.2
UPDATE_MILLISECONDS = 1500  # one update of a page, and some
TREND_SECONDS = 15  # until the charts of an open page are whole


def main() -> int:
    """Start the demonstration, wait until there is something to see, take the pictures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("docs/figures"))
    parser.add_argument("--results", type=int, default=6000, help="to wait for")
    options = parser.parse_args()
    with _demo() as url, sync_playwright() as playwright:
        _wait(url, options.results)
        program = shutil.which("chromium")
        browser = playwright.chromium.launch(
            executable_path=program, args=["--no-sandbox", "--force-color-profile=srgb"]
        )
        _draw_charts(browser, url)
        for name in PICTURES:
            path = options.out / f"dashboard-{name}.png"
            _take(browser, url, name, path)
            print(f"{path} {path.stat().st_size / 1e3:.0f} kB")
        browser.close()
    return 0


@contextmanager
def _demo() -> Iterator[str]:
    command = [sys.executable, "-m", "mfbandit", "demo", "--seed", "0", "--speed", "120"]
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


def _wait(url: str, results: int) -> None:
    """Wait until there are enough results: some thousand after the audit has found the clickbait."""
    while sum(httpx.get(f"{url}/api/experiments/ads").json()["results"]) < results:
        time.sleep(POLL_SECONDS)


def _draw_charts(browser: Browser, url: str) -> None:
    """Keep a page open until its charts are computed, which is done bit by bit."""
    page = browser.new_page()
    page.goto(f"{url}/experiments/ads")
    page.wait_for_timeout(1000 * TREND_SECONDS)
    page.close()


def _take(browser: Browser, url: str, name: str, path: Path) -> None:
    address, scheme, width, height = PICTURES[name]
    colours: Literal["dark", "light"] = "dark" if scheme == "dark" else "light"
    page = browser.new_page(color_scheme=colours, viewport={"width": width, "height": height})
    page.goto(url + address)
    page.wait_for_timeout(UPDATE_MILLISECONDS)
    tall = int(page.evaluate("document.body.scrollHeight"))
    page.screenshot(path=path, clip={"x": 0, "y": 0, "width": width, "height": min(tall, height)})
    page.close()
    with Image.open(path) as picture:
        picture.convert("RGB").quantize(64, dither=Image.Dither.NONE).save(path, optimize=True)


if __name__ == "__main__":
    sys.exit(main())
