"""Imports only go down the list of modules, and the light parts stay light."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import mfbandit

SOURCE = Path(__file__).parent.parent / "src" / "mfbandit"

# Each module may import those above it. A new module needs a place here.
LAYERS = [
    "arrays",
    "errors",
    "values",
    "progress",
    "tables",
    "capital",
    "quantiles",
    "concentration",
    "fidelities",
    "divergence",
    "problem",
    "problems",
    "curves",
    "theory",
    "proved",
    "planning",
    "stats",
    "confidence",
    "policies",
    "audit",
    "wire",
    "accounts",
    "events",
    "packed",
    "ledger",
    "experiment",
    "checks",
    "splits",
    "candidates",
    "ladder",
    "fits",
    "paired",
    "trials",
    "tabulate",
    "search",
    "database",
    "sqlite",
    "postgres",
    "writer",
    "logs",
    "tokens",
    "timeline",
    "durable",
    "store",
    "demo",
    "status",
    "exports",
    "service",
    "client",
    "attempts",
    "crews",
    "display",
    "leases",
    "parallel",
    "doctor",
    "engine",
    "lazy",
    "bayes",
    "simulation",
    "farm",
    "chunks",
    "runs",
    "study",
    "engines",
    "plotting",
    "panels",
    "report",
    "reproduce",
    "bench",
    "config",
    "console",
    "cli_live",
    "cli_simulate",
    "cli_work",
    "cli",
    "__main__",
]
HEAVY = {"numba", "matplotlib", "sklearn", "fastapi", "joblib", "typer", "rich", "scipy", "pandas"}


def layer(path):
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imports(path):
    """The modules of the package that a file imports, anywhere in it."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            if node.module == "mfbandit":
                yield from (alias.name for alias in node.names)
            elif node.module and node.module.startswith("mfbandit."):
                yield node.module.split(".")[1]
        elif isinstance(node, ast.Import):
            yield from (alias.name.split(".")[1] for alias in node.names if alias.name.startswith("mfbandit."))


FILES = [path for path in sorted(SOURCE.rglob("*.py")) if path != SOURCE / "__init__.py"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_only_go_down(path):
    above = LAYERS.index(layer(path))
    for name in imports(path):
        if layer(path) == name and path.parent != SOURCE:  # files of one folder
            continue
        assert LAYERS.index(name) < above, f"{path.name} may not import {name}"


def test_every_module_has_a_place_and_every_place_a_module():
    assert {layer(path) for path in FILES} == set(LAYERS)


def test_public_names_are_where_they_are_looked_for():
    """The names for type checkers, those for people and the places where they are found agree."""
    tree = ast.parse((SOURCE / "__init__.py").read_text())
    typed = {alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names}
    typed -= {"TYPE_CHECKING", "import_module"}
    assert typed | {"__version__"} == set(mfbandit.__all__) == set(dir(mfbandit))
    assert all(getattr(mfbandit, name) is not None for name in mfbandit.__all__)
    with pytest.raises(AttributeError, match="module 'mfbandit' has no attribute 'MFUBC'"):
        mfbandit.MFUBC  # noqa: B018


def test_importing_the_package_waits_for_nothing():
    code = "import sys, mfbandit; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "numpy" not in loaded


def test_asking_and_telling_imports_nothing_heavy():
    code = (
        "import sys, mfbandit as m;"
        "f = m.Fidelities([1, 10], [0.2, 0], m.SubGaussian(0.1));"
        "e = m.Experiment(m.MFUCB(), arms=3, fidelities=f);"
        "e.tell(e.ask(), 0.5); e.best();"
        "print(*sys.modules)"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not HEAVY & set(loaded)
