"""Renewing the leases of plays that are under way, in a thread, whatever the job is doing meanwhile."""

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from mfbandit.core import Play
from mfbandit.errors import Conflict, StoreError

RENEWALS = 3  # of a lease, before it would run out
MOST_RENEWED = 1000  # plays in one request

log = logging.getLogger("mfbandit")


@contextmanager
def renewing(
    experiment: Any,  # noqa: ANN401 - any kind of experiment
    lease: float | None,
    plays: Callable[[], Sequence[Play]],
    *,
    patience: float,
) -> Iterator[None]:
    """Inside, leases are renewed; nothing is to be done for an experiment without leases.

    Args:
        experiment: in memory, in a store or at a service.
        lease: seconds of a lease; the experiment's own by default.
        plays: tells which plays are under way, from another thread.
        patience: seconds to wait in the end for a renewal that is on its way.

    >>> with renewing(None, None, lambda: [], patience=1.0):
    ...     pass
    """
    seconds = lease or getattr(experiment, "lease", None)
    if seconds is None:
        yield
        return
    stop = threading.Event()

    def work() -> None:
        while not stop.wait(seconds / RENEWALS):
            under_way = plays()
            for first in range(0, len(under_way), MOST_RENEWED):
                _renew(experiment, under_way[first : first + MOST_RENEWED], lease)

    thread = threading.Thread(target=work, name="leases", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(patience)


def _renew(experiment: Any, plays: Sequence[Play], lease: float | None) -> None:  # noqa: ANN401
    try:
        experiment.renew_many(plays, lease)
    except Conflict:  # one of them was taken back; a late result of it is still welcome
        if len(plays) > 1:
            for play in plays:
                _renew(experiment, [play], lease)
    except StoreError as error:
        log.warning("leases could not be renewed: %s", error)
