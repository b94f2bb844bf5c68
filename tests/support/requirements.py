"""What some tests need beyond Python: whether it is here, and what happens to those tests where it is not."""

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import pytest

from tests.support import postgres
from tests.support.deployment import no_engine

CAP_SYS_ADMIN = 21  # the bit of Linux's capability to mount


def all_required() -> bool:
    """Whether a test that cannot run has failed: on the machine that decides about a change."""
    return os.environ.get("MFBANDIT_REQUIRE_ALL") == "1"


def missing(reason: str) -> NoReturn:
    """Skip a test that needs a program which is not here; where everything must be here, let it fail."""
    if all_required():
        pytest.fail(f"{reason}, and MFBANDIT_REQUIRE_ALL=1 lets no test be skipped for that", pytrace=False)
    pytest.skip(reason)


@dataclass(frozen=True)
class Requirement:
    """Something that is looked for before any test runs.

    Args:
        name: what it is.
        tests: which tests need it.
        lacking: gives the reason why it cannot be used here, or nothing.
        may_be_skipped: whether it may be missing even where everything is required.
    """

    name: str
    tests: str
    lacking: Callable[[], str]
    may_be_skipped: bool = False

    def report(self) -> str:
        """One line: it is here, or what becomes of its tests and why."""
        reason = self.lacking()
        if not reason:
            return f"{self.name}: here, for {self.tests}"
        fate = "will fail (MFBANDIT_REQUIRE_ALL=1)" if all_required() and not self.may_be_skipped else "will be skipped"
        return f"{self.name}: {self.tests} {fate}: {reason}"


def _no_postgres() -> str:
    try:
        postgres.programs()
        postgres.account()
    except postgres.NoPostgres as error:
        return str(error)
    return ""


def no_chromium() -> str:
    """Why there is no Chromium, or nothing."""
    return "" if shutil.which("chromium") else "Chromium is not installed"


def no_nginx() -> str:
    """Why there is no nginx that could serve TLS, or nothing."""
    places = f"{os.environ.get('PATH', '')}:/usr/sbin"  # which only root has in its path
    lacking = [name for name in ("nginx", "openssl") if not shutil.which(name, path=places)]
    return f"{lacking[0]} is not installed" if lacking else ""


def _no_mounts() -> str:
    if os.geteuid() != 0:
        return "only root may mount a small disk; limits on the size of files are tested instead"
    status = Path("/proc/self/status")
    rights = [line.split()[1] for line in status.read_text().splitlines() if line.startswith("CapEff:")]
    return "" if rights and int(rights[0], 16) >> CAP_SYS_ADMIN & 1 else "this machine lets nobody mount a small disk"


REQUIREMENTS = (
    Requirement("PostgreSQL", "tests marked postgres", _no_postgres),
    Requirement("Chromium", "tests marked browser", no_chromium),
    Requirement("nginx", "tests marked nginx", no_nginx),
    Requirement("a container engine", "the test that builds the image", no_engine, may_be_skipped=True),
    Requirement("the right to mount", "tests of a full disk", _no_mounts, may_be_skipped=True),
)
