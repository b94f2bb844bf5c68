"""A browser as people have it, which notes everything that should not happen."""

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Browser, ConsoleMessage, Dialog, Page, sync_playwright

from tests.support.requirements import missing, no_chromium

PATIENCE = 20_000  # milliseconds until something that should happen is taken to be missing


@contextmanager
def chromium(*options: str) -> Iterator[Browser]:
    """The Chromium of this machine, without a window."""
    if reason := no_chromium():
        missing(reason)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox", *options])
        yield browser
        browser.close()


@dataclass
class Watch:
    """What happened in a page.

    Args:
        allowed: complaints in the console that a test expects, as a regular expression.
    """

    allowed: str = "(?!)"
    complaints: list[str] = field(default_factory=list)
    addresses: set[str] = field(default_factory=set)

    def heard(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(f"{message.type}: {message.text}")

    def asked(self, dialog: Dialog) -> None:
        self.complaints.append(f"dialog: {dialog.message}")
        dialog.dismiss()


@contextmanager
def watched(browser: Browser, url: str, **options: Any) -> Iterator[tuple[Page, Watch]]:
    """A page of a new visitor. Nothing may be wrong in its console, pop up or be asked of another host."""
    context, watch = browser.new_context(base_url=url, **options), Watch()
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    page.on("console", watch.heard)
    page.on("pageerror", lambda error: watch.complaints.append(str(error)))
    page.on("dialog", watch.asked)
    page.on("request", lambda request: watch.addresses.add(request.url))
    yield page, watch
    context.close()
    complaints = [said for said in watch.complaints if not re.search(watch.allowed, said)]
    assert not complaints, complaints
    assert {urlsplit(address).netloc for address in watch.addresses} <= {urlsplit(url).netloc, ""}
