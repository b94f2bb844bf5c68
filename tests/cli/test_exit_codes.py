"""How commands end: wrong input, what failed, and bugs, whose tracebacks are kept."""

import os
import re
import tempfile
from pathlib import Path

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from mfbandit import MFUCB, Bounded, Conflict, Fidelities, NoResults, NotAllowed, Store, StoreError, UnknownPlay
from mfbandit.cli.exit_codes import guarded
from mfbandit.cli.main import app
from mfbandit.errors import InvalidArgument, MissingExtra, StoreNotFound
from mfbandit.store import DurableExperiment

FIDELITIES = Fidelities(costs=[1, 10], biases=[0.1, 0], concentration=Bounded(0, 1))


def ended(error):
    """What a command that raises this prints, and its exit code."""
    one = typer.Typer()

    @one.command()
    @guarded
    def command() -> None:
        raise error

    result = CliRunner().invoke(one, [])
    assert result.stdout == ""
    return result.exit_code, result.stderr


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The temporary folder, of this test alone."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    return tmp_path / "temporary"


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "a.db") as store:
        store.create("ads", MFUCB(), arms=2, fidelities=FIDELITIES)
    return tmp_path / "a.db"


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (InvalidArgument("n must be at least 1, got 0"), 2),
        (Conflict("another result is kept"), 2),
        (UnknownPlay("the play was not asked here"), 2),
        (StoreNotFound("Store not found: a.db"), 2),
        (NoResults("no result yet"), 1),
        (NotAllowed("a token is needed"), 1),
        (StoreError("the store is closed"), 1),
        (MissingExtra("simulate needs numba: pip install 'mfbandit[sim]'"), 1),
        (MemoryError(), 1),
    ],
)
def test_errors_are_one_line(error, code, folder):
    message = str(error) or "there is not enough memory for this"
    assert ended(error) == (code, f"Error: {message}\n")
    assert not list(folder.iterdir())


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (FileNotFoundError(2, "No such file or directory", "a.csv"), "File not found: a.csv"),
        (PermissionError(13, "Permission denied", "/root/a.csv"), "Permission denied: /root/a.csv"),
        (IsADirectoryError(21, "Is a directory", "a"), "Not a file but a folder: a"),
        (OSError(28, "No space left on device"), "No space left on device"),
        (OSError(5, "Input/output error", b"a.csv"), "Input/output error: a.csv"),
        (TimeoutError("timed out"), "timed out"),
    ],
)
def test_what_the_system_refuses_is_said_with_its_path(error, said, folder):
    assert ended(error) == (1, f"Error: {said}\n")
    assert not list(folder.iterdir())


@pytest.mark.parametrize("bug", [lambda: dict[str, int]()["x"], lambda: np.zeros(2) + np.zeros(3), lambda: 1 // 0])
def test_a_bug_leaves_its_traceback_in_a_file_that_is_named(store, monkeypatch, folder, bug):
    monkeypatch.setattr(DurableExperiment, "status", lambda _: bug())
    result = CliRunner().invoke(app, ["experiment", "status", str(store), "ads"])
    assert result.exit_code == 1
    found = re.fullmatch(r"Error: mfbandit met a bug; the traceback is in (\S+), please report it\n", result.stderr)
    assert found
    assert [Path(found[1])] == list(folder.iterdir())
    kept = Path(found[1]).read_text()
    assert kept.startswith("mfbandit 0.")
    assert "Traceback (most recent call last)" in kept
    assert "monkeypatch.setattr(DurableExperiment" in kept or "bug()" in kept
    assert os.stat(found[1]).st_mode & 0o077 == 0  # for nobody else to read


def test_a_bug_where_no_file_can_be_written_prints_its_traceback(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    code, said = ended(KeyError("x"))
    assert code == 1
    assert "Traceback (most recent call last)" in said
    assert said.endswith("Error: mfbandit met a bug; the traceback is above, please report it\n")


def test_numbers_of_a_file_that_cannot_be_calculated_with_are_wrong_input(tmp_path, folder):
    file = tmp_path / "a.toml"
    file.write_text("[experiment]\narms = 2\n[fidelities]\ncosts = [1, 10]\nbiases = [0.1, 0]\nscale = 1e-320\n")
    result = CliRunner().invoke(app, ["experiment", "create", str(tmp_path / "a.db"), "ads", str(file)])
    assert result.exit_code == 2
    assert "a.toml: [fidelities] scale must be from 1e-150 to 1e+150, got 1e-320" in result.stderr
    assert not list(folder.iterdir())
    assert not (tmp_path / "a.db").exists()
