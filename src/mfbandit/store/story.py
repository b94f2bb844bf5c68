"""Where a log has the events that are not about plays: for people who read what happened, maybe to an arm."""

from array import array
from collections.abc import Collection

import numpy as np

from mfbandit._internal.typing import BoolArray, IntArray
from mfbandit.experiment import (
    CODES,
    PLAY_KINDS,
    ArmAdded,
    Event,
    Opened,
    PackedLog,
    Record,
    TimePassed,
    Unchanged,
    is_about_plays,
    is_kind,
)

NOT_SHOWN = (Opened, TimePassed, Unchanged)  # which say nothing to people


class Story:
    """Numbers, kinds and arms of these events, some ten bytes each.

    Args:
        arms: how many there were at the beginning.

    >>> from mfbandit.experiment import ArmRetired
    >>> from mfbandit.experiment.events import Paused
    >>> story = Story(arms=2)
    >>> for seq, event in enumerate([Paused(), ArmAdded("c"), ArmRetired(0)], start=1):
    ...     story.apply(Record(seq, 0.0, event))
    >>> story.numbers().tolist(), story.numbers(arm=2).tolist(), story.numbers([ArmRetired]).tolist()
    ([1, 2, 3], [2], [3])
    """

    def __init__(self, arms: int) -> None:
        self._arms = arms
        self._numbers, self._kinds, self._about = array("q"), bytearray(), array("i")

    def apply(self, record: Record) -> None:
        """Move on by one event."""
        event = record.event
        if isinstance(event, (*PLAY_KINDS, *NOT_SHOWN)):
            return
        self._numbers.append(record.seq)
        self._kinds.append(CODES[type(event)])
        self._about.append(self._arms if isinstance(event, ArmAdded) else getattr(event, "arm", -1))
        self._arms += isinstance(event, ArmAdded)

    def apply_all(self, log: PackedLog) -> None:
        """Move on by all events of a packed log from its beginning; what one at a time gives."""
        rows = log.rows
        places = np.flatnonzero(~(is_about_plays(rows) | is_kind(rows, *NOT_SHOWN)))
        told, about = rows[places], rows["arm"][places].astype(np.intc)
        added = is_kind(told, ArmAdded)
        about[added] = self._arms + np.arange(int(added.sum()))
        self._arms += int(added.sum())
        self._numbers.frombytes((places + 1).astype(np.int64).tobytes())
        self._kinds.extend(told["kind"].tobytes())
        self._about.frombytes(about.tobytes())

    def numbers(self, kinds: Collection[type[Event]] | None = None, arm: int | None = None) -> IntArray:
        """Return the numbers of these events in the log, increasing.

        Args:
            kinds: of these kinds alone.
            arm: about this arm alone.
        """
        wanted: BoolArray = np.ones(len(self._numbers), dtype=np.bool_)
        if kinds is not None:
            wanted &= np.isin(np.frombuffer(bytes(self._kinds), np.uint8), [CODES[kind] for kind in kinds])
        if arm is not None:
            wanted &= np.array(self._about, dtype=np.intc) == arm
        return np.array(self._numbers, dtype=np.int64)[wanted]
