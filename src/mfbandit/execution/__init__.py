"""Make expensive plays on the workers of an executor."""

from mfbandit.execution.attempt import SeededPlay, seeded
from mfbandit.execution.runner import Ran, run
from mfbandit.execution.worker_pool import Inline

__all__ = [
    "Inline",
    "Ran",
    "SeededPlay",
    "run",
    "seeded",
]
