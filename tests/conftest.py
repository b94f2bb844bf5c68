"""What tests share. Hypothesis draws the same examples everywhere, so that a failure can be seen again."""

import os
import secrets
import signal
from collections.abc import Iterator
from typing import NoReturn

import pytest
from hypothesis import HealthCheck, settings

from tests.support.postgres import NoPostgres, Server

settings.register_profile(
    "repeatable", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile("repeatable")

# A shell lets jobs in the background ignore Ctrl-C, and their children with them; tests send it.
signal.signal(signal.SIGINT, signal.default_int_handler)


def missing(reason: str) -> NoReturn:
    """Skip a test that needs a program which is not here; where everything must be here, let it fail."""
    if os.environ.get("MFBANDIT_REQUIRE_ALL") == "1":
        pytest.fail(f"{reason}, and MFBANDIT_REQUIRE_ALL=1 lets no test be skipped for that", pytrace=False)
    pytest.skip(reason)


def server() -> Server:
    try:
        return Server()
    except NoPostgres as error:
        missing(str(error))


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Server]:
    """The server that tests share, started when the first asks for it. A test that kills has one of its own."""
    with server() as running:
        yield running


@pytest.fixture
def own_postgres() -> Iterator[Server]:
    """A server for one test alone, which may stop and kill it."""
    with server() as running:
        yield running


@pytest.fixture
def postgres_url(postgres_server: Server) -> Iterator[str]:
    """An empty database of the shared server."""
    name = f"test_{secrets.token_hex(8)}"
    yield postgres_server.database(name)
    postgres_server.drop(name)
