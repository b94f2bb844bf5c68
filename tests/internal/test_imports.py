"""What is said where an optional dependency is missing, and only there."""

import sys

import pytest

from mfbandit._internal.imports import installed, need, needed_for
from mfbandit.errors import MFBanditError, MissingExtra


def test_a_missing_library_is_named_with_its_extra():
    with pytest.raises(MissingExtra, match=r"^simulate needs no_such_one: pip install 'mfbandit\[sim\]'$") as caught:
        need("no_such_one.part", "simulate", "sim")
    assert caught.value.name == "no_such_one"
    assert isinstance(caught.value, MFBanditError)
    assert isinstance(caught.value, ImportError)


def test_a_library_is_called_what_pip_calls_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(MissingExtra, match="MFSearchCV needs scikit-learn: pip install"):
        need("sklearn", "MFSearchCV", "sklearn")


def test_without_an_extra_the_library_is_installed_by_its_name():
    with pytest.raises(MissingExtra, match=r"^to_frame needs no_such_one: pip install no_such_one$"):
        need("no_such_one", "to_frame")


def test_a_library_of_another_version_is_said_to_be_one():
    words = r"^a test needs another version of json \(.*\): pip install --upgrade 'mfbandit\[sim\]'$"
    with pytest.raises(MissingExtra, match=words):
        need("json.no_such_part", "a test", "sim")
    with pytest.raises(MissingExtra, match=words), needed_for("a test", "sim"):
        raise ImportError("cannot import name 'no_such_name' from 'json'", name="json")


def test_mistakes_of_our_own_are_not_told_as_missing_libraries():
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'mfbandit\.no_such_module'") as caught:
        need("mfbandit.no_such_module", "a test", "sim")
    assert not isinstance(caught.value, MissingExtra)
    with pytest.raises(ImportError, match=r"^nobody knows$"), needed_for("a test", "sim"):
        raise ImportError("nobody knows")


def test_the_innermost_guard_knows_best():
    with pytest.raises(MissingExtra, match="inner needs no_such_one"), needed_for("outer", "cli"):
        need("no_such_one", "inner", "sim")


def test_installed():
    assert installed("numpy")
    assert not installed("no_such_one")
