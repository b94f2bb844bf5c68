"""Install each artefact of a folder into an empty environment and try it there, for `make dist`.

Use ``python scripts/try_dist.py dist``. pip fetches numpy, and what the extra `cli` brings, from where it always does.
"""

import subprocess
import sys
import tempfile
import venv
from pathlib import Path

PROBE = Path(__file__).parents[1] / "tests" / "support" / "numpy_alone.py"
COMMANDS = ("reproduce", "simulate", "theory", "plan", "experiment", "serve", "work", "doctor")


def run(*words: object) -> str:
    """Run a program; what it printed, or the end of this script if it fails."""
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, words))} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def tried(artefact: Path, folder: Path) -> None:
    """Install with numpy alone and try that; then add the command line and try it, too."""
    venv.create(folder, with_pip=True, clear=True)
    python = folder / "bin" / "python"
    pip = (python, "-Im", "pip", "install", "--quiet", "--disable-pip-version-check")
    run(*pip, artefact)
    said = run(python, "-I", PROBE)
    run(*pip, f"{artefact}[cli]")
    shown = run(python, "-I", folder / "bin" / "mfbandit", "--help")
    missing = [command for command in COMMANDS if command not in shown]
    if missing:
        sys.exit(f"mfbandit --help of {artefact.name} must show {missing}, and shows\n{shown}")
    version = run(python, "-I", folder / "bin" / "mfbandit", "version").splitlines()[0]
    print(f"{artefact.name}: {said.strip()}; {version}; mfbandit --help shows its commands", flush=True)


def main(folder: Path) -> None:
    """Try a wheel and a source archive; there must be one of each."""
    for pattern in ("*.whl", "*.tar.gz"):
        (artefact,) = folder.resolve().glob(pattern)
        with tempfile.TemporaryDirectory(prefix="mfbandit-dist-") as place:
            tried(artefact, Path(place) / "venv")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
