"""What an experiment needs of the store that it is in."""

from collections.abc import Callable
from typing import Protocol

from mfbandit.store.database import Connection
from mfbandit.store.outages import Outages
from mfbandit.store.owners import Holding
from mfbandit.store.writer import Writer


class Home(Protocol):
    """What an experiment needs of the store that it is in."""

    @property
    def name(self) -> str:
        """How to call it in messages."""
        ...

    @property
    def clock(self) -> Callable[[], float]:
        """Seconds since 1970."""
        ...

    @property
    def outages(self) -> Outages:
        """When a service over it was away."""
        ...

    @property
    def read_only(self) -> bool:
        """Whether others write, if anybody does."""
        ...

    def writer(self) -> Writer:
        """The one that writes, or an error if this process may not."""
        ...

    def generation(self) -> int:
        """Changes when a write failed, and memory is ahead of the disk."""
        ...

    def read(self) -> Connection:
        """A connection that reads."""
        ...

    def claim(self, name: str) -> Holding | None:
        """Become the owner of an experiment, or stay it; None where there are no owners."""
        ...
