"""The workers behind an executor: how many there are, and how to go on when some die or hang.

An executor of threads or of Dask is used as it is. A process pool of the standard library is broken for good when one
of its processes dies, and nobody knows in which play. From then on every worker is a pool of one process, so that a
death or a hang affects only the play that caused it.
"""

import pickle
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import partial
from typing import Any, Literal, ParamSpec, Protocol, TypeVar, runtime_checkable

from mfbandit._internal.validation import whole
from mfbandit.errors import ExecutorBroken, InvalidArgument

P = ParamSpec("P")
T = TypeVar("T")

CLOSED = "handle is closed"  # what the standard library says of a pipe that it has closed

AfterGivingUp = Literal["free", "occupied", "broken"]
"""What giving up a call does: its worker is free; it is occupied until the call ends; all workers are gone."""


class WorkerPool(Protocol):
    """Workers that make calls."""

    @property
    def workers(self) -> int:
        """How many work at once, as far as is known now."""
        ...

    @property
    def breaks_as_one(self) -> bool:
        """Whether all running calls are lost when one of them breaks the executor."""
        ...

    @property
    def max_starts(self) -> int:
        """How often a call may be started: more than once where another worker takes over from one that died."""
        ...

    def worker_died(self, error: Exception, /) -> bool:
        """Return whether a call failed because its worker died, by this call or by another one on that worker."""
        ...

    def submit(self, call: Callable[..., T], *args: object) -> "Future[T]":
        """Let a worker make this call."""
        ...

    def give_up(self, future: "Future[Any]", /) -> AfterGivingUp:
        """Give up a call that takes too long, and say what that did to the workers."""
        ...

    def repaired(self) -> "WorkerPool":
        """Return workers to go on with after the executor broke."""
        ...

    def close(self) -> None:
        """End what was started here; the executor that was passed in is left open."""
        ...


def worker_pool(executor: Executor, workers: int | None, objective: object) -> WorkerPool:
    """Return the workers of an executor.

    Args:
        executor: any of concurrent.futures's kind.
        workers: how many work at once, where the executor does not say.
        objective: what they will call; checked where it has to be sent to another process.

    >>> from concurrent.futures import ThreadPoolExecutor
    >>> worker_pool(ThreadPoolExecutor(3), None, print).workers
    3
    """
    if not isinstance(executor, Executor):
        raise InvalidArgument(f"executor must be a concurrent.futures.Executor, got {executor!r}")
    if workers is not None and whole("workers", workers) < 1:
        raise InvalidArgument(f"workers must be at least 1, got {workers}")
    if isinstance(executor, ProcessPoolExecutor):
        _check_picklable(objective)
        return ProcessWorkers(executor, workers or _workers_of(executor))
    client = getattr(executor, "_client", None)
    if isinstance(client, DaskClient):
        return DaskWorkers(executor, client, workers)
    return ExecutorWorkers(executor, workers or _workers_of(executor))


def _workers_of(executor: Executor) -> int:
    number = getattr(executor, "_max_workers", None)
    if not isinstance(number, int):
        raise InvalidArgument(f"workers must be given for an executor of this kind, got {executor!r}")
    return number


def _check_picklable(objective: object) -> None:
    try:
        pickle.dumps(objective)
    except Exception as error:  # pickle and the objective's own methods raise whatever they like
        raise InvalidArgument(
            "objective must be something that can be sent to another process, such as a function at the top of a "
            f"module, got {objective!r} ({error})"
        ) from None


class InlineExecutor(Executor):
    """An executor that makes each call at once, in the thread that submits it; in the main thread it can be stopped.

    >>> InlineExecutor().submit(max, 2, 3).result()
    3
    """

    _max_workers = 1

    def submit(self, call: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> "Future[T]":
        """Make the call."""
        future: Future[T] = Future()
        future.set_result(call(*args, **kwargs))
        return future


class ExecutorWorkers:
    """The workers of an executor that is used as it is."""

    breaks_as_one = True
    max_starts = 1

    def __init__(self, executor: Executor, workers: int) -> None:
        self._executor, self._workers = executor, workers

    @property
    def workers(self) -> int:
        """As many as the executor has."""
        return self._workers

    def worker_died(self, _error: Exception, /) -> bool:
        """Return False: the whole executor would be broken."""
        return False

    def submit(self, call: Callable[..., T], *args: object) -> "Future[T]":
        """Submit the call to the executor."""
        return self._executor.submit(call, *args)

    def give_up(self, _future: "Future[Any]", /) -> AfterGivingUp:
        """Leave the call to itself: its worker is occupied until it ends."""
        return "occupied"

    def repaired(self) -> WorkerPool:
        """Raise an error: it cannot be repaired from here."""
        raise ExecutorBroken(f"the executor is broken and cannot go on: {self._executor!r}")

    def close(self) -> None:
        """Do nothing: nothing was started here."""


@runtime_checkable
class DaskClient(Protocol):
    """What is used of Dask's client."""

    def nthreads(self) -> dict[str, int]:
        """Return the number of threads of each worker."""
        ...


class DaskWorkers(ExecutorWorkers):
    """The workers of a Dask cluster, which may grow and shrink."""

    COUNT_INTERVAL_SECONDS = 1.0
    max_starts = 4  # by default Dask gives up on a call when the fourth worker has died under it

    def __init__(self, executor: Executor, client: DaskClient, workers: int | None) -> None:
        super().__init__(executor, 1)
        self._client, self._given, self._counted_at = client, workers, float("-inf")

    @property
    def workers(self) -> int:
        """The threads of all workers of the cluster, counted at most once a second."""
        if self._given is not None:
            return self._given
        if time.monotonic() > self._counted_at + self.COUNT_INTERVAL_SECONDS:
            with _cluster_errors():
                self._workers, self._counted_at = sum(self._client.nthreads().values()), time.monotonic()
        return self._workers

    def worker_died(self, error: Exception, /) -> bool:
        """Return whether Dask says so; it does of every call that a worker had been given, started or not."""
        return type(error).__name__ == "KilledWorker"

    def submit(self, call: Callable[..., T], *args: object) -> "Future[T]":
        """Submit the call as a task of its own, also if others had the same arguments."""
        with _cluster_errors():
            return self._executor.submit(call, *args, pure=False)


@contextmanager
def _cluster_errors() -> Iterator[None]:
    try:
        yield
    except Exception as error:  # a client whose cluster is gone raises errors of many kinds
        raise ExecutorBroken(f"the cluster is gone, or cannot be reached ({type(error).__name__}: {error})") from None


class ProcessWorkers(ExecutorWorkers):
    """A process pool of the standard library, as long as none of its processes dies."""

    _executor: ProcessPoolExecutor

    def submit(self, call: Callable[..., T], *args: object) -> "Future[T]":
        """Submit the call to the pool. If it breaks just now, it may have closed what a new process would be given."""
        try:
            return super().submit(call, *args)
        except OSError as error:
            if str(error) != CLOSED:
                raise
            raise BrokenProcessPool("a process died while another one was started") from error

    def give_up(self, _future: "Future[Any]", /) -> AfterGivingUp:
        """End all processes, since it is not known which one makes the call; other plays are made again."""
        _kill_processes(self._executor)
        return "broken"

    def repaired(self) -> WorkerPool:
        """Return as many pools of one process each."""
        pool = self._executor
        make_pool = partial(
            ProcessPoolExecutor,
            1,
            mp_context=pool._mp_context,
            initializer=pool._initializer,
            initargs=pool._initargs,
        )
        return SingleProcessWorkers(make_pool, self._workers)


class SingleProcessWorkers:
    """Pools of one process each: whatever happens to one, the others go on."""

    breaks_as_one = False
    max_starts = 1

    def __init__(self, make_pool: Callable[[], ProcessPoolExecutor], workers: int) -> None:
        self._make_pool, self._workers = make_pool, workers
        self._idle: list[ProcessPoolExecutor] = []
        self._busy: dict[Future[Any], ProcessPoolExecutor] = {}

    @property
    def workers(self) -> int:
        """As many as the original pool had."""
        return self._workers

    def worker_died(self, _error: Exception, /) -> bool:
        """Return False: its pool would be broken, and the call was alone there."""
        return False

    def submit(self, call: Callable[..., T], *args: object) -> "Future[T]":
        """Submit the call to an idle process, or to a new one."""
        pool = self._idle.pop() if self._idle else self._make_pool()
        future = pool.submit(call, *args)
        self._busy[future] = pool
        future.add_done_callback(self._release)
        return future

    def _release(self, future: "Future[Any]") -> None:
        pool = self._busy.pop(future, None)
        if pool is not None and not future.cancelled() and future.exception() is None:
            self._idle.append(pool)  # else its process is gone, and the pool with it

    def give_up(self, future: "Future[Any]", /) -> AfterGivingUp:
        """End the process of the call."""
        pool = self._busy.get(future)
        if pool is not None:
            _kill_processes(pool)
        return "free"

    def repaired(self) -> WorkerPool:
        """Return itself: one pool broke, and a new one takes its place."""
        return self

    def close(self) -> None:
        """End all processes."""
        for pool in list(self._busy.values()):
            _kill_processes(pool)
        for pool in self._idle:
            pool.shutdown()


def _kill_processes(pool: ProcessPoolExecutor) -> None:
    for process in list((pool._processes or {}).values()):
        process.kill()
