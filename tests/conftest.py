"""What tests share. Hypothesis draws the same examples everywhere, so that a failure can be seen again."""

import os
import secrets
import signal
from collections.abc import Generator, Iterator

import pytest
from hypothesis import HealthCheck, settings

from tests.support.effort import examples
from tests.support.postgres import NoPostgres, Server
from tests.support.requirements import REQUIREMENTS, missing

settings.register_profile(
    "repeatable",
    max_examples=examples(100),
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    print_blob=True,
)
settings.load_profile("repeatable")

# A shell lets jobs in the background ignore Ctrl-C, and their children with them; tests send it.
signal.signal(signal.SIGINT, signal.default_int_handler)

MEASURED = "COVERAGE_PROCESS_CONFIG"  # in the environment of a process whose lines are counted

# A test has the marker if it uses one of these fixtures, or is the case of that name.
MARKED = {"postgres": {"postgres", "postgres_server", "own_postgres"}, "browser": {"browser"}, "nginx": {"proxied"}}


def pytest_report_header() -> list[str]:
    """Say what will be skipped, and why, before anything runs."""
    return [requirement.report() for requirement in REQUIREMENTS]


@pytest.hookimpl(tryfirst=True)  # before -m chooses by markers
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark tests by what they use; files with slow ones come first, so that no worker ends with one."""
    if not config.getoption("cov_source", None):
        _leave_out_what_counts_lines(config, items)
    for item in items:
        cases = getattr(getattr(item, "callspec", None), "params", {}).values()
        used = {*getattr(item, "fixturenames", ()), *(case for case in cases if isinstance(case, str))}
        for marker, names in MARKED.items():
            if names & used:
                item.add_marker(marker)
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)


def _leave_out_what_counts_lines(config: pytest.Config, items: list[pytest.Item]) -> None:
    left_out = [item for item in items if item.get_closest_marker("only_cover")]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]


# A test worker is a subprocess in which lines are counted three times over, each from where the one before it was
# stopped: by coverage itself, as in any subprocess, and twice by pytest-cov. Only the last may be left, or pausing it
# for a test would let the one before it go on.


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes() -> None:
    """Start test workers in which coverage does not start by itself."""
    os.environ.pop(MEASURED, None)


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Stop what pytest-cov started in a test worker before it knew that it was one."""
    counting = getattr(session.config.pluginmanager.getplugin("_cov"), "cov_controller", None)
    if counting is not None and hasattr(session.config, "workerinput"):
        counting.pause()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    """Count no lines of processes that a test starts whose own lines are not counted."""
    with pytest.MonkeyPatch.context() as patch:
        if item.get_closest_marker("no_cover"):
            patch.delenv(MEASURED, raising=False)
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
