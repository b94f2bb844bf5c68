"""When a service over a store was away: leases are extended by that time, as nobody could tell a result.

A service looks at the clock every second. If much more time has passed since its last look, or less than none, then it
was stopped or down, the machine slept, or the clock jumped. A lease keeps its real length through all of these.
"""

import json
import threading
from dataclasses import dataclass

MISSED_SECONDS = 3.0  # between two looks, from which on the service counts as having been away
MAX_OUTAGES_KEPT = 100


@dataclass(frozen=True, slots=True)
class Outage:
    """Time in which no service looked, in seconds since 1970; it ends before it starts where the clock went back.

    Args:
        start: the last look before it.
        end: the first look after it.
    """

    start: float
    end: float


class Outages:
    """The outages of a store that is being served, for all threads; without a service there are none.

    >>> outages = Outages()
    >>> outages.begin(1000.0)
    >>> outages.look(1001.0)
    >>> outages.look(8201.0)
    >>> outages.seconds(0, 1), outages.seconds_after(5000.0, 1), outages.seconds_after(9000.0, 1)
    (7200.0, 3201.0, 0)
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._outages: list[Outage] = []
        self._last: float | None = None

    def __len__(self) -> int:
        return len(self._outages)

    def begin(self, now: float, kept: str = "") -> None:
        """Start to look at the clock.

        Args:
            now: seconds since 1970.
            kept: what :meth:`to_keep` gave to the service before this one, if there was one.
        """
        with self._lock:
            last, self._outages = _read(kept)
            self._last = now if last is None else last
        self.look(now)

    def end(self) -> None:
        """Look no more: without a service, time passes as it does."""
        with self._lock:
            self._last = None

    def look(self, now: float) -> None:
        """Look at the clock, and note an outage if the last look is too long ago or yet to come."""
        with self._lock:
            if self._last is None:
                return
            if abs(now - self._last) > MISSED_SECONDS:
                self._outages.append(Outage(self._last, now))
            self._last = now

    def seconds(self, first: int, end: int) -> float:
        """By how much leases are to be extended for the outages from number ``first`` to before ``end``."""
        return sum(outage.end - outage.start for outage in self._outages[first:end])

    def seconds_after(self, time: float, end: int) -> float:
        """By how much leases are to be extended that nothing has happened to since a time, by the first ``end``."""
        # Where the clock went back, they last longer than they should: nobody is there who waits for them.
        return sum(max(outage.end - max(outage.start, time), 0) for outage in self._outages[:end])

    def to_keep(self) -> str:
        """What the next service has to know, as text."""
        with self._lock:
            newest, last = self._outages[-MAX_OUTAGES_KEPT:], self._last
        return json.dumps({"at": last, "outages": [[outage.start, outage.end] for outage in newest]})


def _read(kept: str) -> tuple[float | None, list[Outage]]:
    try:
        record = json.loads(kept)
        return float(record["at"]), [Outage(float(start), float(end)) for start, end in record["outages"]]
    except (ValueError, TypeError, LookupError):  # the first service of this store, or its row was damaged
        return None, []
