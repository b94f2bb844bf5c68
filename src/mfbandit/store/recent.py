"""What has happened lately, folded from a log: for people who look."""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from mfbandit._internal.typing import IntArray
from mfbandit.core import Play
from mfbandit.experiment import (
    Asked,
    Expired,
    Failed,
    PackedLog,
    Record,
    Renewed,
    State,
    Told,
    is_about_plays,
    is_kind,
    is_told,
)
from mfbandit.store.story import NOT_SHOWN, Story
from mfbandit.store.timeline import Timeline

RECENT = 12  # plays, events and leases that are shown


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
        arms: how many there were at the beginning.
    """

    def __init__(self, state: State, arms: int) -> None:
        self._state, self.story = state, Story(arms)
        self.timeline = Timeline(len(state.fidelities))
        self.settled: deque[tuple[float, int]] = deque(maxlen=RECENT)  # time and number of a play
        self.events: deque[Record] = deque(maxlen=RECENT)

    def apply(self, record: Record) -> None:
        """Move on by one event."""
        event = record.event
        self.story.apply(record)
        if isinstance(event, Told | Failed):
            self.timeline.add(record.time, self._state.plays.fidelities[event.play], event.cost)
        if isinstance(event, Told | Failed | Expired):
            self.settled.append((record.time, event.play))
        elif not isinstance(event, (Asked, Renewed, *NOT_SHOWN)):
            self.events.append(record._replace(request=None))

    def apply_all(self, log: PackedLog, read: Callable[[IntArray], Sequence[Record]]) -> None:
        """Move on by all events of a packed log; what one at a time gives.

        Args:
            log: packed events, which do not say who asked for them.
            read: reads the records of these numbers, which do.
        """
        rows = log.rows
        self.story.apply_all(log)
        paid = rows[is_told(rows) | is_kind(rows, Failed)]
        fidelities, _ = self._state.plays.where(paid["play"])
        self.timeline.add_all(paid["time"], fidelities, paid["cost"])
        settled = np.flatnonzero(is_told(rows) | is_kind(rows, Failed, Expired))[-RECENT:]
        self.settled.extend((float(rows["time"][i]), int(rows["play"][i])) for i in settled)
        not_shown = is_about_plays(rows) | is_kind(rows, *NOT_SHOWN)
        for record in sorted(read(np.flatnonzero(~not_shown)[-RECENT:] + 1), key=lambda record: record.seq):
            self.events.append(record._replace(request=None))
