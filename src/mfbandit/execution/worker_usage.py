"""How many workers a run has, and how well their time and its own is used."""

import logging
import math
import time

NO_WORKER_WARNING_SECONDS = 30.0

log = logging.getLogger("mfbandit")


class WorkerUsage:
    """Counts workers and seconds of a run.

    Args:
        workers: how many there are at the start.

    >>> usage = WorkerUsage(workers=2)
    >>> usage.count(workers=3)
    >>> usage.workers, usage.busy
    (3, 0.0)
    """

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self.worked = 0.0  # seconds of all workers in objectives
        self.waited = 0.0  # seconds of the run itself, in which it had nothing to do
        self._began = self._counted_at = time.monotonic()
        self._available = 0.0  # seconds times workers
        self._warn_at = self._began + NO_WORKER_WARNING_SECONDS

    @property
    def seconds(self) -> float:
        """How long the run has taken."""
        return time.monotonic() - self._began

    @property
    def busy(self) -> float:
        """The share of the workers' time that objectives took, in [0, 1]."""
        return min(self.worked / max(self._available, 1e-9), 1.0)

    def count(self, workers: int) -> None:
        """Take in how many workers there are now; warn if there has been none for long."""
        now = time.monotonic()
        self._available += (now - self._counted_at) * self.workers
        self._counted_at, self.workers = now, workers
        if workers:
            self._warn_at = now + NO_WORKER_WARNING_SECONDS
        elif now > self._warn_at:
            log.warning("the cluster has had no worker for %g s; plays wait for one", NO_WORKER_WARNING_SECONDS)
            self._warn_at = math.inf
