"""Connections that send nothing: closed after a while, and first when there are too many."""

import asyncio
import resource
import time
from collections.abc import Iterable
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from mfbandit._internal.limits import MAX_CONNECTIONS, MAX_SILENT_SECONDS

FILES_KEPT_FREE = 128  # of those that the process may open: for the store, and for what is being accepted


class GuardedProtocol(HttpToolsProtocol):
    """The protocol of uvicorn, which knows for how long a connection has sent nothing that is whole.

    A new connection beyond the limit takes the place of the one that has been silent for longest.
    """

    most = MAX_CONNECTIONS

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin; close another one, or this one, if there are too many."""
        self.heard = self.waiting_since = time.monotonic()
        super().connection_made(transport)
        if len(self.connections) > self.most:
            others = [one for one in self.connections if isinstance(one, GuardedProtocol) and one is not self]
            silent = [one for one in others if one.is_waiting()]
            min(silent, key=lambda one: one.waiting_since, default=self).transport.abort()

    def data_received(self, data: bytes) -> None:
        """Take in a part of a request."""
        self.heard = time.monotonic()
        super().data_received(data)

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        self.waiting_since = time.monotonic()
        super().on_response_complete()

    def is_waiting(self) -> bool:
        """Tell whether it waits for a request, or for the rest of its header."""
        return self.cycle is None or self.cycle.response_complete

    def is_silent(self, now: float) -> bool:
        """Tell whether the request that it waits for takes too long, or the rest of a body."""
        if self.is_waiting():
            return now - self.waiting_since > MAX_SILENT_SECONDS
        return self.cycle.more_body and now - self.heard > MAX_SILENT_SECONDS


def close_silent(connections: Iterable[Any]) -> None:
    """Close the connections that have been silent for too long.

    >>> close_silent([])
    """
    now = time.monotonic()
    for one in [one for one in connections if isinstance(one, GuardedProtocol) and one.is_silent(now)]:
        one.transport.abort()


def limit_connections() -> int:
    """Allow as many connections as the process may open files for; return how many."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MAX_CONNECTIONS + FILES_KEPT_FREE
    if soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    GuardedProtocol.most = max(1, min(MAX_CONNECTIONS, soft - FILES_KEPT_FREE))
    return GuardedProtocol.most
