"""Installed with numpy alone, the package asks and tells, and says by name what the rest needs."""

import subprocess
import sys
import venv
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / "tests" / "support" / "numpy_alone.py"


@pytest.fixture(scope="module")
def empty_python(tmp_path_factory):
    """A Python with the package's wheel, as pip installs it, and numpy."""
    folder = tmp_path_factory.mktemp("empty")
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder / "dist", cwd=ROOT)
    (wheel,) = (folder / "dist").glob("*.whl")
    venv.create(folder / "venv", with_pip=False)
    python = folder / "venv" / "bin" / "python"
    install = ["install", "--quiet", "--no-deps", "--no-index", "--disable-pip-version-check", wheel]
    run(sys.executable, "-m", "pip", "--python", python, *install, cwd=folder)
    (packages,) = (folder / "venv" / "lib").glob("python*/site-packages")
    for place in Path(np.__file__).parents[1].glob("numpy*"):  # the same numpy, without a download
        (packages / place.name).symlink_to(place)
    return python


def run(*words, cwd):
    done = subprocess.run([str(word) for word in words], cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


@pytest.mark.slow
def test_numpy_alone_is_enough_to_ask_and_tell(empty_python, tmp_path):
    done = run(empty_python, "-I", SCRIPT, cwd=tmp_path)  # nothing from elsewhere
    assert done.stdout == "numpy alone is enough\n"
    assert done.stderr.splitlines()[-1] == "counting: 50 %"


@pytest.mark.slow
def test_the_command_says_what_it_needs(empty_python):
    command = [empty_python, "-I", empty_python.parent / "mfbandit", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    said = "Error: mfbandit on the command line needs typer: pip install 'mfbandit[cli]'\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", said)
