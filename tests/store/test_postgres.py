"""The server that other tests rely on: that it forgets what it should, and nothing else."""

import contextlib
import os
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from tests import conftest
from tests.support import postgres

LISTENING = "0A"
LOOPBACK = "0100007F"  # 127.0.0.1 as the kernel writes it on little-endian machines


def execute(url, command, *values):
    with psycopg.connect(url) as connection:
        cursor = connection.execute(command, values)
        return cursor.fetchall() if cursor.description else None


def listeners(port):
    """Addresses on which anything listens at a port, of both versions of IP."""
    lines = [line.split() for name in ("tcp", "tcp6") for line in Path("/proc/net", name).read_text().splitlines()[1:]]
    local = [line[1].split(":") for line in lines if line[3] == LISTENING]
    return [address for address, at in local if int(at, 16) == port]


class TestKill:
    def test_spares_what_was_committed_and_nothing_else(self, own_postgres):
        url = own_postgres.database("durable")
        execute(url, "CREATE TABLE kept (value int)")
        execute(url, "INSERT INTO kept VALUES (1)")
        with psycopg.connect(url) as open_one:
            open_one.execute("INSERT INTO kept VALUES (2)")
            own_postgres.kill()
            with pytest.raises(psycopg.OperationalError):
                open_one.commit()
        own_postgres.start()
        assert execute(url, "SELECT value FROM kept") == [(1,)]

    def test_again_and_again_at_the_same_address(self, own_postgres):
        url = own_postgres.url
        execute(url, "CREATE TABLE counted (value int)")
        for value in range(3):
            execute(url, "INSERT INTO counted VALUES (%s)", value)
            own_postgres.kill()
            assert own_postgres.processes() == []
            own_postgres.start()
        assert own_postgres.url == url
        assert execute(url, "SELECT value FROM counted ORDER BY value") == [(0,), (1,), (2,)]

    def test_ends_one_that_is_busy(self, own_postgres):
        with contextlib.closing(psycopg.connect(own_postgres.url)) as connection:
            connection.pgconn.send_query(b"SELECT count(*) FROM generate_series(1, 1000000000000)")
            own_postgres.kill()
            assert own_postgres.processes() == []

    def test_needs_a_server_that_runs(self, own_postgres):
        own_postgres.stop()
        with pytest.raises(RuntimeError, match="must run to be killed"):
            own_postgres.kill()


class TestStop:
    def test_leaves_no_process_and_no_file(self):
        with conftest.server() as server:
            assert len(server.processes()) > 1
            home = server.home
        assert server.processes() == []
        assert not home.exists()

    def test_keeps_the_data_and_can_be_repeated(self, own_postgres):
        execute(own_postgres.url, "CREATE TABLE kept (value int)")
        own_postgres.stop()
        own_postgres.stop()
        own_postgres.start()
        assert execute(own_postgres.url, "SELECT count(*) FROM kept") == [(0,)]

    def test_does_not_wait_for_clients(self, own_postgres):
        with psycopg.connect(own_postgres.url):
            own_postgres.stop()
            assert own_postgres.processes() == []


class TestStart:
    def test_only_once(self, own_postgres):
        with pytest.raises(RuntimeError, match="must be stopped before it is started"):
            own_postgres.start()

    def test_that_fails_says_why_and_leaves_nothing(self):
        server = conftest.server()
        (server.home / "data" / "PG_VERSION").unlink()
        with pytest.raises(RuntimeError, match="not a valid data directory"), server:
            pass
        assert not server.home.exists()


class TestShared:
    def test_databases_are_separate(self, postgres_server, postgres_url):
        other = postgres_server.database("other")
        execute(postgres_url, "CREATE TABLE here (value int)")
        with pytest.raises(psycopg.errors.UndefinedTable):
            execute(other, "SELECT * FROM here")
        postgres_server.drop("other")

    def test_it_writes_to_the_disk(self, postgres_url):
        assert execute(postgres_url, "SHOW fsync") == [("on",)]
        assert execute(postgres_url, "SHOW synchronous_commit") == [("on",)]

    def test_it_listens_on_loopback_alone(self, postgres_server):
        assert listeners(postgres_server.port) == [LOOPBACK]

    def test_it_does_not_run_as_root(self, postgres_server):
        assert all(os.stat(f"/proc/{pid}").st_uid != 0 for pid in postgres_server.processes())


class TestMissing:
    """Where PostgreSQL is not installed: a skipped test for those at work, a failed one where all must be there."""

    @pytest.fixture(autouse=True)
    def nowhere(self, monkeypatch):
        def refuse():
            raise postgres.NoPostgres("no PostgreSQL")

        monkeypatch.setattr(postgres, "cluster", refuse)

    def test_skips(self, monkeypatch):
        monkeypatch.delenv("MFBANDIT_REQUIRE_ALL", raising=False)
        with pytest.raises(pytest.skip.Exception, match="no PostgreSQL"):
            conftest.server()

    def test_fails_where_all_is_required(self, monkeypatch):
        monkeypatch.setenv("MFBANDIT_REQUIRE_ALL", "1")
        with pytest.raises(pytest.fail.Exception, match="no PostgreSQL"):
            conftest.server()


def test_a_program_that_fails_is_quoted():
    with pytest.raises(RuntimeError, match="sh failed: what went wrong"):
        postgres.run("sh", "-c", "echo what went wrong; exit 3", cwd=Path("/"))


def test_title_of_a_process_that_has_ended():
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    assert postgres.title(ended.pid) == ""
