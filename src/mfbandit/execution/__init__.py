"""Make expensive plays on the workers of an executor."""

from mfbandit.execution.attempt import SeededPlay, Trained, seeded
from mfbandit.execution.runner import Ran, run
from mfbandit.execution.states import States
from mfbandit.execution.worker_pool import InlineExecutor

__all__ = [
    "InlineExecutor",
    "Ran",
    "SeededPlay",
    "States",
    "Trained",
    "run",
    "seeded",
]
