"""Until when pending plays are leased, folded from a log."""

import heapq
import math
from itertools import islice

import numpy as np

from mfbandit.experiment import (
    Asked,
    Expired,
    Failed,
    LeasesExtended,
    Packed,
    PackedLog,
    Record,
    Renewed,
    Told,
    is_kind,
    is_told,
)

SMALL_QUEUE = 64  # entries, which are not worth being sorted out


class Leases:
    """When the leases of pending plays end; a play without a lease may take for ever.

    >>> from mfbandit.experiment.events import Asked
    >>> leases = Leases()
    >>> leases.apply(Record(seq=1, time=0.0, event=Asked(play=0, arm=0, fidelity=0), due=60.0))
    >>> leases.due
    {0: 60.0}
    >>> leases.take_expired(now=30.0), leases.take_expired(now=60.0)
    ([], [0])
    """

    def __init__(self) -> None:
        self.due: dict[int, float] = {}  # seconds since 1970, by the play's number; the last lease last
        self._queue: list[tuple[float, int]] = []  # a heap; entries that ``due`` does not have any more are void
        self._in_order = True  # whether they are known to end in the order of ``due``, as equally long ones do
        self._latest = -math.inf  # when the last of them ends, or later

    def apply(self, record: Record) -> None:
        """Move on by one event."""
        event = record.event
        if isinstance(event, Asked | Renewed):
            self.due.pop(event.play, None)
            if record.due is not None:
                self.due[event.play] = record.due
                self._in_order, self._latest = self._in_order and record.due >= self._latest, record.due
                heapq.heappush(self._queue, (record.due, event.play))
                if len(self._queue) > 2 * len(self.due) + SMALL_QUEUE:
                    self._queue_all()
        elif isinstance(event, Told | Failed | Expired):
            self.due.pop(event.play, None)
        elif isinstance(event, LeasesExtended):
            self._extend(event.seconds)

    def apply_all(self, log: PackedLog) -> None:
        """Move on by all events of a packed log; what one at a time gives.

        >>> leases = Leases()
        >>> leases.apply_all(PackedLog.of_records([Record(1, 0.0, Asked(play=0, arm=0, fidelity=0), due=60.0)]))
        >>> leases.due
        {0: 60.0}
        """
        start = 0
        for place in np.flatnonzero(is_kind(log.rows, LeasesExtended)).tolist():
            self._apply_stretch(log.rows[start:place])
            self.apply(log.texts[place])
            start = place + 1
        self._apply_stretch(log.rows[start:])

    def _apply_stretch(self, rows: Packed) -> None:
        plays, due = rows["play"], rows["due"]
        settled = plays[is_told(rows) | is_kind(rows, Failed, Expired)]
        leased = np.flatnonzero(is_kind(rows, Asked, Renewed))
        pending = leased[~np.isin(plays[leased], settled)]
        _, from_the_end = np.unique(plays[pending][::-1], return_index=True)
        last = np.sort(pending[::-1][from_the_end])  # the last lease of each pending play, in order
        before = np.fromiter(self.due, np.int64, len(self.due))
        for play in before[np.isin(before, settled) | np.isin(before, plays[last])].tolist():
            del self.due[play]
        kept = last[~np.isnan(due[last])]
        self.due.update(zip(plays[kept].tolist(), due[kept].tolist(), strict=True))
        self._in_order = False
        self._queue_all()

    def _extend(self, seconds: float) -> None:
        self.due = {play: end + seconds for play, end in self.due.items()}
        self._in_order = False
        self._queue_all()

    def _queue_all(self) -> None:
        """Queue the leases that are there, and leave void entries out."""
        self._queue = [(end, play) for play, end in self.due.items()]
        heapq.heapify(self._queue)

    def any_expired(self, now: float) -> bool:
        """Whether a lease has run out.

        >>> Leases().any_expired(now=0.0)
        False
        """
        while self._queue and self._queue[0][0] <= now:
            due, play = self._queue[0]
            if self.due.get(play) == due:
                return True
            heapq.heappop(self._queue)  # it is settled, or was renewed since
        return False

    def take_expired(self, now: float) -> list[int]:
        """Take out the plays whose leases have run out, the first to end first.

        >>> Leases().take_expired(now=0.0)
        []
        """
        expired = []
        while self.any_expired(now):
            _, play = heapq.heappop(self._queue)
            del self.due[play]
            expired.append(play)
        return expired

    def next_to_end(self, number: int) -> list[tuple[int, float]]:
        """The plays whose leases end first, and when; at most ``number``.

        >>> Leases().next_to_end(3)
        []
        """
        if self._in_order:
            return list(islice(self.due.items(), number))
        # There may be many leases, and whoever tells a result waits meanwhile: no loop over them in Python.
        due, plays = np.fromiter(self.due.values(), np.float64, len(self.due)), list(self.due)
        self._in_order, self._latest = bool((due[1:] >= due[:-1]).all()), float(due.max(initial=-math.inf))
        return [(plays[i], float(due[i])) for i in np.argsort(due, kind="stable")[:number].tolist()]
