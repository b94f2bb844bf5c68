"""What commands say of a store's files, and what they leave behind."""

import socket
import sqlite3
from contextlib import closing

import pytest
from typer.testing import CliRunner

from mfbandit import Store
from mfbandit.cli.main import app
from tests.support.stores import make, play_some

DEFINITION = "[experiment]\narms = 3\n[fidelities]\ncosts = [1, 10]\nbiases = [0.1, 0]\nrange = [0, 1]\n"


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


class TestAcceptLoss:
    @pytest.fixture
    def path(self, tmp_path):
        path = tmp_path / "ads.db"
        with Store(path) as store:
            play_some(make(store), 3)
        return path

    def test_doctor_finds_it_and_lets_it_be(self, path):
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("UPDATE mfbandit_store SET value = '1 3 2 5' WHERE key = 'commits'")
        for words in (("doctor", path), ("experiment", "status", path, "exp"), ("experiment", "ask", path, "exp")):
            done = run(*words)
            assert done.exit_code == 1
            assert "that were acknowledged: take the last backup" in done.output + done.stderr
        done = run("doctor", path, "--accept-loss")
        assert done.exit_code == 0
        assert "Accepted: " in done.stderr
        assert "events, and 3 of the" in done.stderr
        assert run("doctor", path).exit_code == 0
        assert run("experiment", "ask", path, "exp").exit_code == 0


class TestLeftovers:
    @pytest.mark.parametrize(
        ("command", "said"),
        [
            ("UPDATE mfbandit_experiments SET head = head - 2 WHERE name = 'exp'", "2 in mfbandit_log, beyond the end"),
            ("DELETE FROM mfbandit_experiments WHERE name = 'exp'", "of experiment number 1, which was deleted"),
        ],
    )
    def test_doctor_finds_them(self, tmp_path, command, said):
        path = tmp_path / "ads.db"
        with Store(path) as store:
            play_some(make(store), 3)
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute(command)
        done = run("doctor", path)
        assert done.exit_code == 1
        assert said in done.output


def test_doctor_speaks_of_the_database_at_hand(postgres_url, tmp_path):
    with Store(postgres_url) as store:
        make(store)
    done = run("doctor", postgres_url)
    assert done.exit_code == 0
    assert "SQLite" not in done.output
    assert "good   PostgreSQL: " in done.output
    assert "the server flushes what it commits" in done.output
    Store(tmp_path / "ads.db").close()
    assert "PostgreSQL" not in run("doctor", tmp_path / "ads.db").output


class TestNothingIsLeft:
    def test_of_a_failed_create(self, tmp_path):
        good, bad = tmp_path / "good.toml", tmp_path / "bad.toml"
        good.write_text(DEFINITION)
        bad.write_text("[experiment]\narms = 0\n")
        for name, file in (("../ads", good), ("ads", bad), ("ads", tmp_path / "none.toml")):
            assert run("experiment", "create", tmp_path / "ads.db", name, file).exit_code == 2
        assert sorted(file.name for file in tmp_path.iterdir()) == ["bad.toml", "good.toml"]

    def test_of_a_service_that_cannot_listen(self, tmp_path):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            done = run("serve", tmp_path / "ads.db", "--port", taken.getsockname()[1])
        assert done.exit_code == 2
        assert "Cannot listen on" in done.stderr
        assert list(tmp_path.iterdir()) == []

    def test_of_a_token_that_cannot_be(self, tmp_path):
        assert run("token", "create", tmp_path / "ads.db", "--scope", "root").exit_code == 2
        assert list(tmp_path.iterdir()) == []
