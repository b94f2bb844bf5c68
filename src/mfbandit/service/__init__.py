"""The same experiments over HTTP: a FastAPI application over a store, and its client."""

from importlib import import_module
from typing import TYPE_CHECKING

from mfbandit.service.client import RemoteStore, connect
from mfbandit.service.remote_experiment import RemoteExperiment

if TYPE_CHECKING:
    from mfbandit.service.app import create_app
    from mfbandit.service.server import collect_garbage_less_often, serve

__all__ = [
    "RemoteExperiment",
    "RemoteStore",
    "collect_garbage_less_often",
    "connect",
    "create_app",
    "serve",
]

# Loaded when first asked for: a client needs neither FastAPI nor uvicorn.
_PLACES = {"collect_garbage_less_often": "server", "create_app": "app", "serve": "server"}


def __getattr__(name: str) -> object:
    if name not in _PLACES:
        raise AttributeError(f"module 'mfbandit.service' has no attribute {name!r}")
    return getattr(import_module(f"mfbandit.service.{_PLACES[name]}"), name)
