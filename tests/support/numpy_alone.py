"""Run by a Python that has mfbandit and numpy and nothing else: what must work there does, and the rest says why not.

Use ``python -I tests/support/numpy_alone.py``, so that nothing is found by way of PYTHONPATH or this folder.
"""

import subprocess
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

import mfbandit as mfb
from mfbandit._internal.progress import progress_bar
from mfbandit.errors import MissingExtra
from mfbandit.experiment import AnyExperiment

OPTIONAL = ("numba", "joblib", "matplotlib", "typer", "rich", "httpx", "sklearn", "fastapi", "psycopg", "distributed")
FIDELITIES = mfb.Fidelities(costs=[1, 10], biases=[0.2, 0], concentration=mfb.SubGaussian(0.1))
COMMAND_LINE = "Error: mfbandit on the command line needs typer: pip install 'mfbandit[cli]'\n"


def simulated() -> object:
    return mfb.simulate(mfb.paper_problem(3), mfb.UCB(), capital=1000)


def served() -> object:
    from mfbandit.service import serve

    return serve


def on_processes() -> object:
    from mfbandit.simulation import backend

    return backend("processes").__enter__()


def reproduced() -> object:
    from mfbandit.reproduction import reproduce

    return reproduce(".")


REFUSED: dict[str, Callable[[], object]] = {
    "simulate needs numba: pip install 'mfbandit[sim]'": simulated,
    "the engine processes needs joblib: pip install 'mfbandit[sim]'": on_processes,
    "plotting needs matplotlib: pip install 'mfbandit[plot]'": lambda: mfb.plotting,
    "reproduce needs matplotlib: pip install 'mfbandit[plot]'": reproduced,
    "connect needs httpx: pip install 'mfbandit[service]'": lambda: mfb.connect("http://127.0.0.1:8000"),
    "the service needs uvicorn: pip install 'mfbandit[service]'": served,
    "a store in PostgreSQL needs psycopg: pip install 'mfbandit[postgres]'": lambda: mfb.Store("postgresql://host/db"),
    "MFSearchCV needs scikit-learn: pip install 'mfbandit[sklearn]'": lambda: mfb.MFSearchCV,
}


def ask_and_tell(experiment: AnyExperiment) -> None:
    for _ in range(20):
        play = experiment.ask()
        experiment.tell(play, reward=0.1 * play.arm)
    assert experiment.best() == 2
    assert experiment.bounds().upper.shape == (2, 3)


def what_works() -> None:
    """Asking and telling, with every policy; a store in a file; theory and plans; a job, and how far it is."""
    policies = mfb.UCB(), mfb.MFUCB(), mfb.MFAda(), mfb.MFBayes(), mfb.MFTopTwo(capital=100)
    for policy in (*policies, mfb.IISE(1e-9), mfb.LUCB(0.2, 0.1, 1e-9), mfb.MFGrad(1e-9), mfb.MFSure(1e-9)):
        ask_and_tell(mfb.Experiment(policy, arms=3, fidelities=FIDELITIES))
    with tempfile.TemporaryDirectory() as folder:
        with mfb.Store(Path(folder) / "a.db") as store:
            ask_and_tell(store.create("exp", mfb.MFUCB(), arms=3, fidelities=FIDELITIES))
        with mfb.Store(Path(folder) / "a.db", read_only=True) as store:
            assert store.open("exp").stats.counts.sum() == 20
    assert mfb.theory.partition(mfb.paper_problem(1)) is not None
    assert mfb.plan(FIDELITIES, 1000, means=[0.1, 0.2, 0.3]) is not None
    experiment = mfb.Experiment(mfb.MFUCB(), arms=3, fidelities=FIDELITIES, capital=50)
    with ThreadPoolExecutor(2) as executor:
        mfb.run(experiment, lambda play: 0.1 * play.arm, executor)
    with progress_bar("counting", total=2, shown=True) as tick:  # to standard error, in plain lines
        tick(1)


def said(use: Callable[[], object]) -> str:
    """What is said about a missing extra; nothing if none is missing."""
    try:
        use()
    except MissingExtra as error:
        return str(error)
    return ""


def what_is_refused() -> None:
    assert [said(use) for use in REFUSED.values()] == list(REFUSED)
    done = subprocess.run([sys.executable, "-Im", "mfbandit"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", COMMAND_LINE), done


def what_is_packed() -> None:
    """The files that are no code are part of the package, too."""
    assert len(mfb.learning_curve_names()) > 60
    package = files("mfbandit")
    for name in ("py.typed", "service/templates/base.html", "service/static/style.css"):
        assert package.joinpath(name).is_file(), f"{name} must be in the package"


if __name__ == "__main__":
    there = [name for name in OPTIONAL if find_spec(name) is not None]
    assert there == [], f"{there} must not be installed here"
    what_works()
    what_is_refused()
    what_is_packed()
    sys.stdout.write("numpy alone is enough\n")
