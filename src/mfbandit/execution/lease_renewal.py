"""Renew the leases of pending plays in a thread, whatever the run is doing meanwhile."""

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from mfbandit._internal.limits import MAX_ITEMS_PER_REQUEST
from mfbandit.core import Play
from mfbandit.errors import Conflict, StoreError, UnknownPlay
from mfbandit.experiment import AnyExperiment

RENEWALS_PER_LEASE = 3

log = logging.getLogger("mfbandit")


@contextmanager
def renewed_leases(
    experiment: AnyExperiment,
    lease: float | None,
    plays: Callable[[], Sequence[Play]],
    *,
    patience: float,
) -> Iterator[None]:
    """Renew leases inside the block; do nothing for an experiment without leases.

    Args:
        experiment: in memory, in a store or at a service.
        lease: seconds of a lease; the experiment's own by default.
        plays: returns the plays whose leases are to be renewed; it is called from another thread.
        patience: seconds to wait at the end for a renewal that is being made.

    >>> from mfbandit import UCB, Bounded, Experiment, Fidelities
    >>> exp = Experiment(UCB(), arms=2, fidelities=Fidelities([1], concentration=Bounded()))
    >>> with renewed_leases(exp, None, lambda: exp.pending, patience=1.0):
    ...     exp.tell(exp.ask(), 0.5)
    """
    seconds = lease or experiment.lease
    if seconds is None:
        yield
        return
    stop = threading.Event()

    def work() -> None:
        while not stop.wait(seconds / RENEWALS_PER_LEASE):
            pending = plays()
            for first in range(0, len(pending), MAX_ITEMS_PER_REQUEST):
                _renew(experiment, pending[first : first + MAX_ITEMS_PER_REQUEST], lease)

    thread = threading.Thread(target=work, name="leases", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(patience)


def _renew(experiment: AnyExperiment, plays: Sequence[Play], lease: float | None) -> None:
    try:
        experiment.renew_many(plays, lease)
    except (Conflict, UnknownPlay):  # the lease of one has ended; a late result of it is still accepted
        if len(plays) > 1:
            for play in plays:
                _renew(experiment, [play], lease)
    except StoreError as error:
        log.warning("leases could not be renewed: %s", error)
