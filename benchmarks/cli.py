"""How long ``mfbandit --help`` takes, beside the help of an empty Typer app, fresh processes taking turns."""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

ROUNDS = 15
AT_MOST = 2.0  # what must hold; 1 is returned if it does not
EMPTY = "import typer\napp = typer.Typer()\n@app.command()\ndef hello() -> None:\n    'Say hello.'\napp()\n"


def seconds(command: list[str]) -> float:
    """How long a command takes, bytecode being allowed to it."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    start = time.perf_counter()
    subprocess.run(command, capture_output=True, check=True, env=environment)
    return time.perf_counter() - start


def main() -> int:
    """Measure and say so."""
    with tempfile.TemporaryDirectory() as folder:
        empty = Path(folder) / "empty.py"
        empty.write_text(EMPTY)
        ours, theirs = [sys.executable, "-m", "mfbandit", "--help"], [sys.executable, str(empty), "--help"]
        seconds(ours), seconds(theirs)
        rounds = [(seconds(ours), seconds(theirs)) for _ in range(ROUNDS)]
    help_, bare = (median(column) for column in zip(*rounds, strict=True))
    print(json.dumps({"help_ms": help_ * 1e3, "empty_typer_ms": bare * 1e3, "ratio": help_ / bare}, indent=2))
    return 0 if help_ <= AT_MOST * bare else 1


if __name__ == "__main__":
    sys.exit(main())
