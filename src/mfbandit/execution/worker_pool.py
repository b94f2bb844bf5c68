"""The workers behind an executor: how many there are, and how to go on when some die or hang.

An executor of threads or of Dask is used as it is. A process pool of the standard library is broken for good when one
of its processes dies, and nobody knows in which play; from then on every worker is a pool of one process, so that a
death or a hang hits the one play that caused it.
"""

import pickle
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any, Literal, Protocol

from mfbandit._internal.validation import whole
from mfbandit.errors import ExecutorBroken, InvalidArgument

# What giving up a call does: its worker is free; it is lost until the call ends; all workers are gone.
Dropped = Literal["free", "lost", "broken"]


class Crew(Protocol):
    """Workers that take plays."""

    @property
    def workers(self) -> int:
        """How many work at once, as far as is known now."""
        ...

    @property
    def shared(self) -> bool:
        """Whether all plays under way are lost when one of them breaks the executor."""
        ...

    @property
    def begins(self) -> int:
        """How often a call may be begun: more than once where another worker takes over from one that died."""
        ...

    def died(self, error: Exception) -> bool:
        """Whether a call failed because its worker died, by this call or by another one on the same worker."""
        ...

    def submit(self, call: Callable[..., Any], *args: object) -> "Future[Any]":
        """Let a worker make this call."""
        ...

    def drop(self, future: "Future[Any]") -> Dropped:
        """Give up a call that takes too long, and say what that did to the workers."""
        ...

    def repaired(self) -> "Crew":
        """Workers to go on with after the executor broke."""
        ...

    def close(self) -> None:
        """End what was started here, which the executor that was given is not."""
        ...


def crew(executor: Executor, workers: int | None, objective: object) -> Crew:
    """The workers of an executor.

    Args:
        executor: any of concurrent.futures's kind.
        workers: how many work at once, where that cannot be seen.
        objective: what they will call; checked where it has to be sent to another process.

    >>> from concurrent.futures import ThreadPoolExecutor
    >>> crew(ThreadPoolExecutor(3), None, print).workers
    3
    """
    if not isinstance(executor, Executor):
        raise InvalidArgument(f"executor must be a concurrent.futures.Executor, got {executor!r}")
    if workers is not None and whole("workers", workers) < 1:
        raise InvalidArgument(f"workers must be at least 1, got {workers}")
    if isinstance(executor, ProcessPoolExecutor):
        _check_can_be_sent(objective)
        return Processes(executor, workers or _seen(executor))
    client = getattr(executor, "_client", None)  # Dask's
    if client is not None and hasattr(client, "nthreads"):
        return Cluster(executor, client, workers)
    return Plain(executor, workers or _seen(executor))


def _seen(executor: Executor) -> int:
    seen = getattr(executor, "_max_workers", None)
    if not isinstance(seen, int):
        raise InvalidArgument(f"workers must be given for an executor of this kind, got {executor!r}")
    return seen


def _check_can_be_sent(objective: object) -> None:
    try:
        pickle.dumps(objective)
    except Exception as error:
        raise InvalidArgument(
            "objective must be something that can be sent to another process, such as a function at the top of a "
            f"module, got {objective!r} ({error})"
        ) from None


class Plain:
    """An executor that is used as it is."""

    shared = True
    begins = 1

    def __init__(self, executor: Executor, workers: int) -> None:
        self._executor, self._workers = executor, workers

    def died(self, error: Exception) -> bool:  # noqa: ARG002 - a protocol's argument
        """No: its whole executor would be broken."""
        return False

    @property
    def workers(self) -> int:
        """As many as the executor has."""
        return self._workers

    def submit(self, call: Callable[..., Any], *args: object) -> "Future[Any]":
        """Hand it to the executor."""
        return self._executor.submit(call, *args)

    def drop(self, future: "Future[Any]") -> Dropped:  # noqa: ARG002 - a protocol's argument
        """Nobody can stop it from outside: its worker is lost until the call ends by itself."""
        return "lost"

    def repaired(self) -> Crew:
        """It cannot be repaired from here."""
        raise ExecutorBroken(f"the executor is broken and cannot go on: {self._executor!r}")

    def close(self) -> None:
        """Nothing was started here."""


class Inline(Executor):
    """An executor that makes each call at once, in the thread that submits it: in the main thread it can be stopped.

    >>> Inline().submit(max, 2, 3).result()
    3
    """

    _max_workers = 1

    def submit(self, call: Callable[..., Any], /, *args: Any, **more: Any) -> "Future[Any]":  # noqa: ANN401
        """Make the call."""
        future: Future[Any] = Future()
        future.set_result(call(*args, **more))
        return future


class Cluster(Plain):
    """A Dask cluster, which may grow and shrink."""

    LOOK_EVERY = 1.0  # seconds
    begins = 4  # by default Dask gives up on a call when the fourth worker has died under it

    def __init__(self, executor: Executor, client: Any, workers: int | None) -> None:  # noqa: ANN401 - Dask's Client
        super().__init__(executor, 1)
        self._client, self._given, self._looked = client, workers, float("-inf")

    @property
    def workers(self) -> int:
        """The threads of all workers of the cluster, as of a moment ago."""
        if self._given is not None:
            return self._given
        if time.monotonic() > self._looked + self.LOOK_EVERY:
            with _gone():
                self._workers, self._looked = sum(self._client.nthreads().values()), time.monotonic()
        return self._workers

    def died(self, error: Exception) -> bool:
        """Dask says so of every call that a worker had been given, begun or not, when it died."""
        return type(error).__name__ == "KilledWorker"

    def submit(self, call: Callable[..., Any], *args: object) -> "Future[Any]":
        """Each call is a task of its own, whatever others had the same arguments."""
        with _gone():
            return self._executor.submit(call, *args, pure=False)


@contextmanager
def _gone() -> Iterator[None]:
    try:
        yield
    except Exception as error:  # a client whose cluster is gone raises whatever it stumbles over
        raise ExecutorBroken(f"the cluster is gone, or cannot be reached ({type(error).__name__}: {error})") from None


class Processes(Plain):
    """A process pool of the standard library, as long as none of its processes dies."""

    _executor: ProcessPoolExecutor

    def drop(self, future: "Future[Any]") -> Dropped:  # noqa: ARG002 - nobody knows which process it is in
        """End all processes: the pool breaks, and its other plays are made again in single processes."""
        _end(self._executor)
        return "broken"

    def repaired(self) -> Crew:
        """As many pools of one process each."""
        pool = self._executor
        make = partial(
            ProcessPoolExecutor,
            1,
            mp_context=pool._mp_context,
            initializer=pool._initializer,
            initargs=pool._initargs,
        )
        return Cells(make, self._workers)


class Cells:
    """Pools of one process each: whatever happens to one, the others go on."""

    shared = False
    begins = 1

    def __init__(self, make: Callable[[], ProcessPoolExecutor], workers: int) -> None:
        self._make, self._workers = make, workers
        self._idle: list[ProcessPoolExecutor] = []
        self._busy: dict[Future[Any], ProcessPoolExecutor] = {}

    @property
    def workers(self) -> int:
        """As many as the pool had."""
        return self._workers

    def died(self, error: Exception) -> bool:  # noqa: ARG002 - a protocol's argument
        """No: its pool is broken, and it was alone there."""
        return False

    def submit(self, call: Callable[..., Any], *args: object) -> "Future[Any]":
        """Hand it to a process that is idle, or to a new one."""
        cell = self._idle.pop() if self._idle else self._make()
        future = cell.submit(call, *args)
        self._busy[future] = cell
        future.add_done_callback(self._free)
        return future

    def _free(self, future: "Future[Any]") -> None:
        cell = self._busy.pop(future, None)
        if cell is not None and not future.cancelled() and future.exception() is None:
            self._idle.append(cell)  # else its process is gone, and the pool with it

    def drop(self, future: "Future[Any]") -> Dropped:
        """End its process."""
        cell = self._busy.get(future)
        if cell is not None:
            _end(cell)
        return "free"

    def repaired(self) -> Crew:
        """It broke in one place only, where a new process will be made."""
        return self

    def close(self) -> None:
        """End all processes."""
        for cell in list(self._busy.values()):
            _end(cell)
        for cell in self._idle:
            cell.shutdown()


def _end(pool: ProcessPoolExecutor) -> None:
    for process in list((pool._processes or {}).values()):
        process.kill()
