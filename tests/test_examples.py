"""Every example runs as a person would run it, and says something."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.services import served

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.py"))


def run(path, folder, *more):
    done = subprocess.run([sys.executable, path, *more], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.no_cover
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_runs(path, tmp_path):
    if path.stem == "ads":  # the one that needs a service
        with served(tmp_path / "ads.db") as service:
            said = run(path, tmp_path, service.url)
        assert "best: ad-" in said
    else:
        said = run(path, tmp_path)
    assert said.strip()
