"""Where simulations run, by name: threads, processes or Dask."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from mfbandit._internal.imports import needed_for
from mfbandit._internal.progress import note
from mfbandit.errors import ExecutorBroken, InvalidArgument

ENGINES = ("threads", "processes", "dask")
PATIENCE = 5  # seconds for a scheduler to answer


@contextmanager
def engine(name: str, *, address: str | None = None, workers: int | None = None) -> Iterator[None]:
    """Inside, :func:`~mfbandit.simulate` uses this engine; the same as ``joblib.parallel_config`` does.

    Args:
        name: "threads", "processes" or "dask".
        address: of a Dask scheduler, such as tcp://10.0.0.5:8786; without one, a cluster on this machine is made.
        workers: how many processes, or workers of a cluster that is made; as many as cores by default.

    >>> with engine("ray"):
    ...     pass
    Traceback (most recent call last):
    mfbandit.errors.InvalidArgument: engine must be one of threads, processes, dask, got 'ray'
    """
    if name not in ENGINES:
        raise InvalidArgument(f"engine must be one of {', '.join(ENGINES)}, got {name!r}")
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
def _client(address: str | None, workers: int | None) -> Iterator[Any]:
    with needed_for("the engine dask", "dask"):
        import distributed
    dask: Any = distributed  # its classes have no types
    if address is not None:
        with _connected(dask.Client, address) as client:
            yield client
        return
    note("starting a Dask cluster on this machine")
    with (
        dask.LocalCluster(
            n_workers=workers, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0"
        ) as cluster,
        dask.Client(cluster) as client,
    ):
        yield client


def _connected(kind: Any, address: str) -> Any:  # noqa: ANN401 - Dask's Client
    try:
        return kind(address, timeout=PATIENCE)
    except (OSError, TimeoutError):
        raise ExecutorBroken(f"no Dask scheduler answers at {address}") from None
    except (ValueError, TypeError) as error:
        raise InvalidArgument(
            f"an address must be a Dask scheduler's, such as tcp://10.0.0.5:8786, got {address!r} ({error})"
        ) from None
