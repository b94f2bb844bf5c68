"""What has happened lately, folded from a log: for people who look."""

from collections import deque
from dataclasses import dataclass

import numpy as np

from mfbandit.core import Play
from mfbandit.experiment import (
    CODES,
    Asked,
    Expired,
    Failed,
    Opened,
    PackedLog,
    Record,
    Renewed,
    State,
    Told,
    Unchanged,
)
from mfbandit.experiment.codec import ABOUT_PLAYS
from mfbandit.store.timeline import Timeline

RECENT = 12  # plays, events and leases that are shown
NOT_SHOWN = (Opened, Unchanged)  # which say nothing to people


@dataclass(frozen=True)
class RecentActivity:
    """What has happened lately, the newest first.

    Args:
        times: seconds since 1970, of the steps of ``spent``.
        spent: what had been spent by then, a list for each fidelity.
        plays: when they were settled, the plays, and what came of them.
        events: those that are not about plays.
        leases: pending plays and when their leases end, the next to end first.
    """

    times: list[float]
    spent: list[list[float]]
    plays: list[tuple[float, Play, Told | Failed | Expired | None]]
    events: list[Record]
    leases: list[tuple[Play, float]]


class RecentEvents:
    """Spending over time, and the latest plays and events.

    Args:
        state: of the same log, each event applied to it first.
    """

    def __init__(self, state: State) -> None:
        self._state = state
        self.timeline = Timeline(len(state.fidelities))
        self.settled: deque[tuple[float, int]] = deque(maxlen=RECENT)  # time and number of a play
        self.events: deque[Record] = deque(maxlen=RECENT)

    def apply(self, record: Record) -> None:
        """Move on by one event."""
        event = record.event
        if isinstance(event, Told | Failed):
            self.timeline.add(record.time, self._state.plays.fidelities[event.play], event.cost)
        if isinstance(event, Told | Failed | Expired):
            self.settled.append((record.time, event.play))
        elif not isinstance(event, (Asked, Renewed, *NOT_SHOWN)):
            self.events.append(record._replace(request=None))

    def apply_all(self, log: PackedLog) -> None:
        """Move on by all events of a packed log; what one at a time gives."""
        rows, kinds = log.rows, log.rows["kind"]
        paid = rows[(kinds == CODES[Told]) | (kinds == CODES[Failed])]
        fidelities, _ = self._state.plays.where(paid["play"])
        self.timeline.add_all(paid["time"], fidelities, paid["cost"])
        settled = np.flatnonzero(np.isin(kinds, [CODES[kind] for kind in (Told, Failed, Expired)]))[-RECENT:]
        self.settled.extend((float(rows["time"][i]), int(rows["play"][i])) for i in settled)
        shown = (kinds >= ABOUT_PLAYS) & ~np.isin(kinds, [CODES[kind] for kind in NOT_SHOWN])
        for place in np.flatnonzero(shown)[-RECENT:].tolist():
            self.events.append(Record(place + 1, float(rows["time"][place]), log.event(place)))
