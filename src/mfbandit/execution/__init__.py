"""Make expensive plays on the workers of an executor."""

from mfbandit.execution.attempt import SeededPlay, seeded
from mfbandit.execution.runner import Ran, run
from mfbandit.execution.worker_pool import InlineExecutor

__all__ = [
    "InlineExecutor",
    "Ran",
    "SeededPlay",
    "run",
    "seeded",
]
