"""Imports go only to rooms above, and the light parts stay light."""

import ast
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import mfbandit

SOURCE = Path(__file__).parent.parent / "src" / "mfbandit"

# Each room may import those on its own line and above.
ROOMS = """
    errors _internal
    core
    policies
    problems
    theory
    experiment
    simulation
    store
    service
    execution
    search
    plotting testing
    reproduction
    cli
    __main__
"""
LINE = {room: number for number, line in enumerate(ROOMS.split("\n")) for room in line.split()}
HEAVY = {"numba", "matplotlib", "sklearn", "fastapi", "joblib", "typer", "rich", "scipy", "pandas"}


def room(path):
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imports(path):
    """The modules of the package that a file imports, anywhere in it, as tuples of names."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            if node.module == "mfbandit":
                yield from ((alias.name,) for alias in node.names)
            elif node.module and node.module.startswith("mfbandit."):
                yield tuple(node.module.split(".")[1:])
        elif isinstance(node, ast.Import):
            yield from (tuple(alias.name.split(".")[1:]) for alias in node.names if alias.name.startswith("mfbandit."))


FILES = [path for path in sorted(SOURCE.rglob("*.py")) if path != SOURCE / "__init__.py"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_go_only_to_rooms_on_the_same_line_or_above(path):
    for there, *modules in imports(path):
        assert LINE[there] <= LINE[room(path)], f"{room(path)} may not import {there}"
        private = there != room(path) and any(name.startswith("_") for name in modules)
        assert not private, f"{there}.{'.'.join(modules)} is private to its room"


def test_every_room_is_listed():
    assert {room(path) for path in FILES} == set(LINE)


def repeated(names):
    return {name for name, count in Counter(names).items() if count > 1}


def test_no_module_name_has_two_meanings():
    # An engine is called like the policy that it compiles.
    policies = {path.stem for path in FILES if room(path) == "policies"}
    others = [path.stem for path in FILES if "engines" not in path.parts or path.stem not in policies]
    assert repeated(name for name in others if name != "__init__") == set()


def test_no_class_name_has_two_meanings():
    trees = [ast.parse(path.read_text()) for path in FILES]
    names = [node.name for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    # Status is what an experiment says of itself, and the same on the wire.
    assert repeated(names) <= {"Status"}


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
