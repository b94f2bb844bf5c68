"""Work in threads, a few at a time for each experiment: so that a busy one leaves threads for the others."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

import anyio
import anyio.to_thread

from mfbandit.store import DurableExperiment

THREADS_PER_EXPERIMENT = 2
MAX_THREADS = 64  # of the service, for all experiments together

T = TypeVar("T")


class Lanes:
    """A lane for each name, kept while somebody is in it or waits for it.

    >>> async def one():
    ...     async with lanes.of("ads"):
    ...         return len(lanes)
    >>> lanes = Lanes()
    >>> anyio.run(one), len(lanes)
    (1, 0)
    """

    def __init__(self) -> None:
        self._lanes: dict[str, tuple[anyio.Semaphore, int]] = {}  # and how many are in it or wait for it

    def __len__(self) -> int:
        return len(self._lanes)

    @asynccontextmanager
    async def of(self, name: str) -> AsyncIterator[None]:
        """Inside, only a few others are inside with the same name."""
        lane, users = self._lanes.get(name) or (anyio.Semaphore(THREADS_PER_EXPERIMENT), 0)
        self._lanes[name] = lane, users + 1
        try:
            async with lane:
                yield
        finally:
            lane, users = self._lanes.pop(name)
            if users > 1:
                self._lanes[name] = lane, users - 1

    async def run(self, name: str, work: Callable[[], T]) -> T:
        """Do work on an experiment of that name in a thread; the event loop goes on meanwhile."""
        async with self.of(name):
            return await anyio.to_thread.run_sync(work)

    async def on_disk(
        self, experiment: DurableExperiment, verb: Callable[[DurableExperiment], T], *, plays: int = 0, results: int = 0
    ) -> T:
        """Run a verb, and return its result once it is on disk; other requests go on meanwhile.

        A short verb on an experiment that nobody else is at work on is done at once: a thread would cost more.

        Args:
            experiment: in a store.
            verb: what to do with it.
            plays: how many plays a policy has to choose for that.
            results: how many results it brings.
        """
        queued, promise = experiment.queued()
        with experiment.if_free(plays, results) as free:
            if free:
                result = verb(queued)
        if not free:
            result = await self.run(experiment.name, lambda: verb(queued))
        await promise
        return result

    async def look(self, experiment: DurableExperiment, read: Callable[[DurableExperiment], T], plays: int = 1) -> T:
        """Read from an experiment; arguments as for :meth:`on_disk`."""
        with experiment.if_free(plays, reading=True) as free:
            if free:
                return read(experiment)
        return await self.run(experiment.name, lambda: read(experiment))
