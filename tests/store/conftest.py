"""Where the stores of tests are, and what time it is there."""

import pytest

from tests.support.stores import Clock


@pytest.fixture(params=["sqlite", "postgres"])
def place(request, tmp_path):
    """Where a store may be: a file, or a database of a real server."""
    if request.param == "sqlite":
        return str(tmp_path / "store.db")
    return request.getfixturevalue("postgres_url")


@pytest.fixture
def clock():
    return Clock()
