"""What the writer did, for people who watch it: sizes of groups, times of flushes, and outages of the database."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from mfbandit._internal.histogram import Histogram
from mfbandit.errors import StoreError, StoreUnavailable

GROUP_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
FLUSH_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


@dataclass(frozen=True, slots=True)
class DatabaseOutage:
    """Time in which nothing could be written, in seconds since 1970.

    Args:
        start: when a group was refused first.
        error: why.
        end: when a group was kept again; None as long as none was.
        refused: how many groups were refused so far.
    """

    start: float
    error: str
    end: float | None = None
    refused: int = 1


class GroupWatch:
    """Counts what becomes of groups; the writer's thread alone tells it.

    ``outage`` is the one that lasts now, or None. ``on_outage`` is called when one begins and when it has ended.

    >>> seen = []
    >>> watch = GroupWatch()
    >>> watch.on_outage = seen.append
    >>> watch.refused(StoreUnavailable("no connection"))
    >>> watch.kept([], 0.01)
    >>> [(one.error, one.end is None) for one in seen]
    [('no connection', True), ('no connection', False)]
    """

    def __init__(self) -> None:
        self.sizes, self.seconds = Histogram(GROUP_SIZES), Histogram(FLUSH_SECONDS)
        self.failures = 0
        self.outage: DatabaseOutage | None = None
        self.on_outage: Callable[[DatabaseOutage], object] = lambda _: None

    def kept(self, group: Sequence[object], seconds: float) -> None:
        """Count a group that is on disk.

        Args:
            group: what it was made of; jobs of the store itself, which can be called, are not counted.
            seconds: how long it took.
        """
        appends = sum(not callable(one) for one in group)
        if appends:
            self.sizes.add(appends)
            self.seconds.add(seconds)
        if self.outage is not None:
            ended, self.outage = self.outage, None
            self.on_outage(replace(ended, end=time.time()))

    def refused(self, error: StoreError) -> None:
        """Count a group that failed; an outage begins if the database was out of reach."""
        self.failures += 1
        if self.outage is not None:
            self.outage = replace(self.outage, refused=self.outage.refused + 1)
        elif isinstance(error, StoreUnavailable):
            self.outage = DatabaseOutage(time.time(), str(error))
            self.on_outage(self.outage)
