"""The API reference: a page for each room, with the public names that it brings."""

from collections.abc import Iterator
from importlib import import_module
from inspect import isclass
from pathlib import Path
from typing import Any

import mfbandit
from _site.pages import heading, save

ROOMS = {
    "core": ("Fidelities, results and bounds", "What is known beforehand, what was learned, and what follows from it."),
    "experiment": ("Experiments: ask and tell", "Ask for plays, tell their results; how sure it is; when it stops."),
    "policies": ("Policies", "Which arm to play next, and at which fidelity."),
    "search": ("Model selection", "The estimator for scikit-learn."),
    "execution": ("Plays on workers", "Make plays on threads, processes or a cluster."),
    "store": ("Stores", "Experiments that survive crashes, in a file or in PostgreSQL."),
    "service": ("The client", "The same experiments over HTTP. The routes are in :doc:`../http`."),
    "problems": ("Problems and regret", "What simulations are made on."),
    "simulation": ("Simulations", "Many runs of policies on problems."),
    "theory": ("Theory", "The paper's results as functions."),
    "plotting": ("Plots", "Draw problems, plays and regret."),
    "testing": ("Contracts", "What a policy or an experiment of your own must keep."),
    "errors": ("Errors", "Everything that is raised on purpose."),
}
MORE = {"service": {"mfbandit.service": ("create_app", "RemoteStore", "RemoteExperiment")}, "store": {}}
FIRST = {  # of each page; the others follow by name
    "core": ("Fidelities", "Play", "Counts", "Batch"),
    "experiment": ("Experiment", "Confidence", "Sure"),
    "policies": ("MFAuto", "MFUCB", "UCB", "MFSure", "MFTopTwo"),
    "search": ("MFSearchCV", "tune", "Tuned"),
    "execution": ("run", "Ran"),
    "problems": ("Problem", "Gaussian", "Bernoulli"),
    "simulation": ("simulate", "compare", "study"),
}
PARTS = (
    "core.evidence",
    "core.claims",
    "core.confidence",
    "core.audit",
    "policies.exploration",
    "policies.gaussian_chain",
    "policies.ladder",
    "policies.outliers",
    "policies.repetition",
)
WHOLE = ("theory", "plotting", "errors")  # modules that are public as a whole


def write(app: Any) -> None:
    """Write the pages."""
    folder = Path(app.srcdir) / "reference" / "api"
    names = "\n".join(f"   {room}" for room in (*ROOMS, "parts"))
    about = "Names are those under ``mfbandit``, unless a module is named. Each example runs as a test."
    save(folder, "index", [heading("API"), about, "", f".. toctree::\n   :maxdepth: 2\n\n{names}\n"])
    for room, (title, line) in ROOMS.items():
        save(folder, room, [f".. _api-{room}:\n", heading(title), line, "", *_entries(room)])
    about = "Modules that the docstrings of public names refer to. They may change in any version."
    save(folder, "parts", [heading("Parts"), about, "", *map(_part, PARTS)])


def _entries(room: str) -> Iterator[str]:
    if room == "theory":
        yield ".. automodule:: mfbandit.theory\n   :no-members:\n"
    first = FIRST.get(room, ())
    for name in sorted(_public(room), key=lambda name: first.index(name) if name in first else len(first)):
        yield from _entry("mfbandit", name)
    for module, names in MORE.get(room, {}).items():
        for name in names:
            yield from _entry(module, name)
    if room in WHOLE:
        whole = import_module(f"mfbandit.{room}")
        taken = set(mfbandit.__all__)
        for name in _defined(whole):
            if name not in taken:
                yield from _entry(whole.__name__, name)


def _part(name: str) -> str:
    return f"{heading(name, '-')}\n.. automodule:: mfbandit.{name}\n   :members:\n"


def _public(room: str) -> list[str]:
    """The public names of a room, as the package says them."""
    found = [(part, name) for part, names in mfbandit._MODULES.items() for name in names]
    return [name for part, name in found if part.split(".")[0] == room]


def _defined(module: Any) -> list[str]:
    names = getattr(module, "__all__", None) or [
        name
        for name, thing in vars(module).items()
        if getattr(thing, "__module__", "") == module.__name__ and not name.startswith("_")
    ]
    return [name for name in names if callable(getattr(module, name))]


def _entry(module: str, name: str) -> Iterator[str]:
    kind = "autoclass" if isclass(getattr(import_module(module), name)) else "autofunction"
    members = "   :members:\n" * (kind == "autoclass")
    yield f"{heading(name, '-')}\n.. {kind}:: {module}.{name}\n{members}"
