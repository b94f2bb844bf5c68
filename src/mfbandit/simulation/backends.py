"""Who does the pieces of a long job: threads of this process, joblib's workers, or a Dask cluster."""

import os
import sys
import threading
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Any, TypeVar

from mfbandit._internal.progress import Tick

T = TypeVar("T")
Piece = tuple[int, int]  # from, and up to but not including
Work = Callable[[int, int, Tick], T]

ROUNDS = 4  # pieces of each worker in one go, where a backend hands over results all at once


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
    """The backend that the user told joblib to use; None if there was none, or threads, which we have ourselves.

    >>> chosen_backend() is None
    True
    """
    if "joblib" not in sys.modules:
        return None
    from joblib.parallel import ThreadingBackend, get_active_backend

    backend, _ = get_active_backend(prefer="threads")
    return None if isinstance(backend, ThreadingBackend) else backend


def cores() -> int:
    """How many cores this process may use.

    >>> cores() >= 1
    True
    """
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _nothing() -> Generator[Any, None, None]:
    yield from ()


def _by_threads(
    work: Work[T], pieces: Sequence[Piece], threads: int, tick: Tick
) -> Generator[tuple[Piece, T], None, None]:
    stop = threading.Event()

    def tick_or_stop(share: float) -> None:
        if stop.is_set():
            raise InterruptedError("stopped because another run failed or was interrupted")
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
    wave = ROUNDS * (workers or cores()) if at_once else len(pieces)
    for start in range(0, len(pieces), wave):
        for (first, last), done in parallel(delayed(_silently)(work, piece) for piece in pieces[start : start + wave]):
            tick(last - first)
            yield (first, last), done


def _silently(work: Work[T], piece: Piece) -> tuple[Piece, T]:
    return piece, work(*piece, lambda _: None)


def _by_dask(
    client: Any,  # noqa: ANN401 - Dask's
    work: Work[T],
    pieces: Sequence[Piece],
    tick: Tick,
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
        client.cancel([*futures, shared])


def _same(work: Work[T]) -> Work[T]:
    return work
