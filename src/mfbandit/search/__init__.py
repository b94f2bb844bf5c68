"""Search among candidates: scikit-learn's model selection, and any objective; small runs are low fidelities."""

from importlib import import_module
from typing import TYPE_CHECKING

from mfbandit._internal.imports import needed_for

if TYPE_CHECKING:
    from mfbandit.search.estimator import MFSearchCV
    from mfbandit.search.tuned import Tuned
    from mfbandit.search.tuner import Trainer, tune

__all__ = [
    "MFSearchCV",
    "Trainer",
    "Tuned",
    "tune",
]

_MODULES = {"Trainer": "tuner", "Tuned": "tuned", "tune": "tuner"}


def __getattr__(name: str) -> object:
    """Load a part when it is asked for: tuning needs numpy alone."""
    if name == "MFSearchCV":
        with needed_for("MFSearchCV", "sklearn"):
            return import_module("mfbandit.search.estimator").MFSearchCV
    if name not in _MODULES:
        raise AttributeError(f"module 'mfbandit.search' has no attribute {name!r}")
    return getattr(import_module(f"mfbandit.search.{_MODULES[name]}"), name)
