"""Where the pieces of a long job are done: threads of this process, joblib's workers, or a Dask cluster."""

import os
import sys
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from mfbandit._internal.imports import needed_for
from mfbandit._internal.progress import Tick, print_line
from mfbandit.errors import ExecutorBroken, InvalidArgument, MFBanditError

if TYPE_CHECKING:
    from distributed import Client

T = TypeVar("T")
Piece = tuple[int, int]  # from, and up to but not including
Work = Callable[[int, int, Tick], T]

BACKENDS = ("threads", "processes", "dask")
PIECES_PER_WORKER = 4  # in one go, where a backend hands over results all at once
SCHEDULER_TIMEOUT_SECONDS = 5


@contextmanager
def backend(name: str, *, address: str | None = None, workers: int | None = None) -> Iterator[None]:
    """Let :func:`~mfbandit.simulate` use this backend inside, as ``joblib.parallel_config`` does.

    The command line's option ``--engine`` names one.

    Args:
        name: "threads", "processes" or "dask".
        address: of a Dask scheduler, such as tcp://10.0.0.5:8786; without one, a cluster on this machine is made.
        workers: how many processes, or workers of a cluster that is made; as many as cores by default.

    >>> with backend("ray"):
    ...     pass
    Traceback (most recent call last):
    mfbandit.errors.InvalidArgument: engine must be one of threads, processes, dask, got 'ray'
    """
    if name not in BACKENDS:
        raise InvalidArgument(f"engine must be one of {', '.join(BACKENDS)}, got {name!r}")
    if address is not None and name != "dask":
        raise InvalidArgument(f"an address must be a Dask scheduler's, and the engine is {name}; got {address!r}")
    if name == "threads":
        yield
        return
    with needed_for(f"the engine {name}", "sim"):
        from joblib import parallel_config  # only where it is used

    if name == "processes":
        with parallel_config("loky", n_jobs=workers or -1):
            yield
        return
    with _client(address, workers) as client, parallel_config("dask", client=client):
        yield


@contextmanager
def _client(address: str | None, workers: int | None) -> Iterator["Client"]:
    with needed_for("the engine dask", "dask"):
        import distributed
    if address is not None:
        with _connected(address) as client:
            yield client
        return
    print_line("starting a Dask cluster on this machine")
    dask: Any = distributed  # its classes have no types
    with (
        dask.LocalCluster(
            n_workers=workers, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0"
        ) as cluster,
        dask.Client(cluster) as client,
    ):
        yield client


def _connected(address: str) -> "Client":
    from distributed import Client

    try:
        return Client(address, timeout=SCHEDULER_TIMEOUT_SECONDS)  # type: ignore[no-untyped-call]
    except (ValueError, TypeError) as error:  # Dask's, for an address that it cannot read
        raise InvalidArgument(
            f"an address must be a Dask scheduler's, such as tcp://10.0.0.5:8786, got {address!r} ({error})"
        ) from None
    except Exception as error:  # OSError as a rule; on a busy machine its loop may break off otherwise
        raise ExecutorBroken(f"no Dask scheduler answers at {address} ({type(error).__name__})") from error


def spread(
    work: Work[T], pieces: Sequence[Piece], workers: int | None, tick: Tick
) -> Generator[tuple[Piece, T], None, None]:
    """Do all pieces, in any order, and hand over what comes of each as soon as it is there.

    Args:
        work: what is done for a piece; may be sent to another process, where its ticks are not seen.
        pieces: what is to be done.
        workers: how many do it; all cores by default. A Dask cluster always uses all of its workers.
        tick: takes the amount of work done, in units of one.

    >>> sorted(spread(lambda first, last, tick: last - first, [(0, 2), (2, 3)], 2, lambda _: None))
    [((0, 2), 2), ((2, 3), 1)]
    """
    if not pieces:
        return _nothing()
    backend = chosen_backend()
    client = getattr(backend, "client", None)
    if client is not None:
        return _by_dask(client, work, pieces, tick)
    if backend is not None:
        return _by_joblib(backend, work, pieces, workers, tick)
    threads = min(workers or cores(), len(pieces))
    if threads == 1:
        return (((first, last), work(first, last, tick)) for first, last in pieces)
    return _by_threads(work, pieces, threads, tick)


def chosen_backend() -> object | None:
    """Find the backend that the user told joblib to use; None for threads, which we have ourselves.

    >>> chosen_backend() is None
    True
    """
    if "joblib" not in sys.modules:
        return None
    from joblib.parallel import ThreadingBackend, get_active_backend

    backend, _ = get_active_backend(prefer="threads")
    return None if isinstance(backend, ThreadingBackend) else backend


def cores() -> int:
    """Count the cores that this process may use.

    >>> cores() >= 1
    True
    """
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _nothing() -> Generator[Any, None, None]:
    yield from ()


class _Stopped(MFBanditError):
    """Another piece failed or was interrupted; whoever waits is told of that one."""


def _by_threads(
    work: Work[T], pieces: Sequence[Piece], threads: int, tick: Tick
) -> Generator[tuple[Piece, T], None, None]:
    stop = threading.Event()

    def tick_or_stop(share: float) -> None:
        if stop.is_set():
            raise _Stopped
        tick(share)

    with ThreadPoolExecutor(threads) as pool:
        futures = {pool.submit(work, *piece, tick_or_stop): piece for piece in pieces}
        try:
            for future in as_completed(futures):
                yield futures.pop(future), future.result()
        finally:  # also on Ctrl-C and when a run fails: the others end at their next tick
            stop.set()
            pool.shutdown(wait=False, cancel_futures=True)


def _by_joblib(
    backend: object, work: Work[T], pieces: Sequence[Piece], workers: int | None, tick: Tick
) -> Generator[tuple[Piece, T], None, None]:
    from joblib import Parallel, delayed

    at_once = not getattr(backend, "supports_return_generator", False)
    parallel = Parallel(n_jobs=workers, return_as="list" if at_once else "generator_unordered", batch_size=1)
    wave = PIECES_PER_WORKER * (workers or cores()) if at_once else len(pieces)
    for start in range(0, len(pieces), wave):
        for (first, last), done in parallel(delayed(_silently)(work, piece) for piece in pieces[start : start + wave]):
            tick(last - first)
            yield (first, last), done


def _silently(work: Work[T], piece: Piece) -> tuple[Piece, T]:
    return piece, work(*piece, lambda _: None)


def _by_dask(
    client: "Client", work: Work[T], pieces: Sequence[Piece], tick: Tick
) -> Generator[tuple[Piece, T], None, None]:
    """Not by joblib's own way, which hands over results all at once in the end."""
    from distributed import as_completed as landed  # it is there, somebody has made a client

    shared = client.submit(_same, work, pure=False)  # sent once; a task, so that no death of a worker loses it
    futures = [client.submit(_silently, shared, piece, pure=False) for piece in pieces]
    try:
        for future in landed(futures):  # type: ignore[no-untyped-call]
            (first, last), done = future.result()
            tick(last - first)
            yield (first, last), done
            future.release()
    finally:
        client.cancel([*futures, shared])  # type: ignore[no-untyped-call]


def _same(work: Work[T]) -> Work[T]:
    return work
