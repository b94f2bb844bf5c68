"""What tests share. Hypothesis draws the same examples everywhere, so that a failure can be seen again."""

import secrets
import signal
from collections.abc import Generator, Iterator

import pytest
from hypothesis import HealthCheck, settings

from tests.support.postgres import NoPostgres, Server
from tests.support.requirements import REQUIREMENTS, missing

settings.register_profile(
    "repeatable", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile("repeatable")

# A shell lets jobs in the background ignore Ctrl-C, and their children with them; tests send it.
signal.signal(signal.SIGINT, signal.default_int_handler)

# A test has the marker if it uses one of these fixtures, or is the case of that name.
MARKED = {"postgres": {"postgres", "postgres_server", "own_postgres"}, "browser": {"browser"}}


def pytest_report_header() -> list[str]:
    """Say what will be skipped, and why, before anything runs."""
    return [requirement.report() for requirement in REQUIREMENTS]


@pytest.hookimpl(tryfirst=True)  # before -m chooses by markers
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests by what they use; files with slow ones come first, so that no worker ends with one."""
    for item in items:
        cases = getattr(getattr(item, "callspec", None), "params", {}).values()
        used = {*getattr(item, "fixturenames", ()), *(case for case in cases if isinstance(case, str))}
        for marker, names in MARKED.items():
            if names & used:
                item.add_marker(marker)
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    """Count no lines of processes that a test starts whose own lines are not counted."""
    with pytest.MonkeyPatch.context() as patch:
        if item.get_closest_marker("no_cover"):
            patch.delenv("COVERAGE_PROCESS_CONFIG", raising=False)
        yield


def server() -> Server:
    """A PostgreSQL server, not started yet; or the test that asks is skipped."""
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
