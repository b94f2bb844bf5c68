"""The files in deploy/, read, and the engine that could build them."""

import functools
import shlex
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "deploy"


def compose() -> dict[str, Any]:
    """The Compose file, anchors resolved."""
    return dict(yaml.safe_load((FOLDER / "compose.yaml").read_text()))


def kubernetes() -> dict[tuple[str, str], dict[str, Any]]:
    """What the Kubernetes file makes, by kind and name."""
    found = yaml.safe_load_all((FOLDER / "kubernetes.yaml").read_text())
    return {(one["kind"], one["metadata"]["name"]): one for one in found}


def instructions() -> list[tuple[str, str]]:
    """The Dockerfile's instructions: keyword and the rest, lines joined and comments left out."""
    lines = [line for line in (FOLDER / "Dockerfile").read_text().splitlines() if line and not line.startswith("#")]
    whole = "\n".join(lines).replace("\\\n", " ").splitlines()
    return [(keyword, " ".join(rest.split())) for keyword, _, rest in (line.partition(" ") for line in whole)]


def unit() -> dict[str, list[str]]:
    """The settings of the systemd unit, by name; some are given more than once."""
    found: dict[str, list[str]] = {}
    for line in (FOLDER / "mfbandit.service").read_text().splitlines():
        name, given, value = line.partition("=")
        if given and not line.startswith("#"):
            found.setdefault(name, []).append(value)
    return found


def exec_start(environment: dict[str, str]) -> list[str]:
    """The words of the unit's command after the program, with its variables as systemd puts them in."""
    words: list[str] = []
    for word in shlex.split(unit()["ExecStart"][0])[1:]:
        if word.startswith("$") and not word.startswith("${"):
            words += environment.get(word[1:], "").split()  # split into words
        else:
            words.append(environment.get(word[2:-1], "") if word.startswith("${") else word)
    return words


def tool(name: str) -> str:
    """A program that pip has installed beside this Python, or else what PATH has."""
    found = shutil.which(name, path=sysconfig.get_path("scripts")) or shutil.which(name)
    assert found, f"{name} must be installed: pip install -e '.[dev]'"
    return found


def check(*words: object) -> str:
    """Run a linter; it must find nothing."""
    done = subprocess.run([str(word) for word in words], check=False, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@functools.cache
def no_engine() -> str:
    """Why no image can be built here, or nothing."""
    program = shutil.which("docker") or shutil.which("podman")
    if program is None:
        return "neither docker nor podman is installed"
    done = subprocess.run([program, "info"], check=False, capture_output=True, text=True, timeout=30)
    return "" if done.returncode == 0 else f"{Path(program).name} has no engine: {done.stderr.strip().splitlines()[-1]}"


def engine() -> str:
    """The program that builds and runs images."""
    found = shutil.which("docker") or shutil.which("podman")
    assert found is not None
    return found


def mfbandit(*words: str) -> list[str]:
    """The command line of this source, in place of the one of the image."""
    return [sys.executable, "-m", "mfbandit", *words]
