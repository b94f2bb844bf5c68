"""The rows of the list of experiments: one that is damaged or busy is shown as such, and does not delay the others."""

import time
from collections.abc import Iterable
from typing import Any

from mfbandit.errors import MFBanditError, StoreHeld, StoreUnavailable, UnknownExperiment
from mfbandit.service.error_handlers import log_internal_error
from mfbandit.service.peer_rows import PeerRows
from mfbandit.service.view_models import list_row, unread_row
from mfbandit.store import Store

PAGE_SECONDS = 0.5  # after which no more logs are read for a page; the next update of the page goes on
BUSY_SECONDS = 0.1  # to wait for an experiment that somebody is at work on
DAMAGE_KNOWN_SECONDS = 30.0  # before a damaged log is read once more


class ListRows:
    """Rows by the names of experiments.

    Args:
        store: where the experiments are.
    """

    def __init__(self, store: Store) -> None:
        self._store, self._peers = store, PeerRows(store)
        self._damaged: dict[str, tuple[float, dict[str, Any]]] = {}  # when it was found, and the row

    def of(self, names: Iterable[str]) -> list[dict[str, Any]]:
        """Return the row of each experiment.

        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder, Store(f"{folder}/ads.db") as store:
        ...     [row["state"] for row in ListRows(store).of(["gone"])]
        []
        """
        wanted = list(names)
        theirs, end = self._peers.of(wanted), time.monotonic() + PAGE_SECONDS
        rows = [theirs.get(name) or self._row(name, end) for name in wanted]
        here = {} if self._store.fleet is None else {"service": self._store.fleet.address}
        return [{**here, **row} for row in rows if row is not None]

    def of_these_alone(self, names: Iterable[str]) -> list[dict[str, Any]]:
        """Return the rows for another service, which asks for what this one owns."""
        end = time.monotonic() + PAGE_SECONDS
        rows = [self._row(name, end) for name in names]
        return [row for row in rows if row is not None]

    def _row(self, name: str, end: float) -> dict[str, Any] | None:
        found, row = self._damaged.get(name, (0.0, {}))
        if row and time.monotonic() < found + DAMAGE_KNOWN_SECONDS:
            return row
        try:
            return self._read(name, end)
        except UnknownExperiment:
            return None  # it was deleted meanwhile
        except StoreUnavailable:
            raise  # it is not that experiment's fault
        except StoreHeld as error:
            return unread_row(name, "busy", str(error))
        except MFBanditError as error:
            row = unread_row(name, "damaged", str(error))
        except Exception as error:
            row = unread_row(name, "damaged", log_internal_error(error, f"the row of {name}").detail)
        self._damaged[name] = time.monotonic(), row
        return row

    def _read(self, name: str, end: float) -> dict[str, Any]:
        late = time.monotonic() > end
        opened = self._store.opened().get(name)
        if opened is None and late:
            return unread_row(name, "busy", "its log is being read")
        experiment = self._store.open(name) if opened is None else opened
        if late:
            with experiment.if_free() as free:
                return list_row(experiment) if free else unread_row(name, "busy", "its log is being read")
        if experiment.busy(BUSY_SECONDS):
            return unread_row(name, "busy", "a long request is at work on it")
        return list_row(experiment)
