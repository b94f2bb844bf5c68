"""What is worked out once for all who look at an experiment, and for longer where that took long."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

from mfbandit.service.live_updates import shared_seconds

KEPT = 64

T = TypeVar("T")


class SharedParts(Generic[T]):
    """Parts by their keys; one that is too old is made anew.

    >>> parts = SharedParts[int]()
    >>> parts.get("ads", lambda: 1), parts.get("ads", lambda: 2)
    (1, 1)
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._parts: OrderedDict[str, tuple[float, T]] = OrderedDict()

    def get(self, key: str, make: Callable[[], T], *, fresh: bool = False) -> T:
        """Return a part, which may have been made for somebody else a moment ago.

        Args:
            key: of the part.
            make: makes it.
            fresh: whether it must be of now, for somebody who opens a page, perhaps after a change.
        """
        known = self._parts.get(key)
        if not fresh and known is not None and time.monotonic() < known[0]:
            return known[1]
        begun = time.thread_time()
        made = make()
        until = time.monotonic() + shared_seconds(time.thread_time() - begun)
        with self._lock:
            self._parts[key] = until, made
            self._parts.move_to_end(key)
            if len(self._parts) > KEPT:
                self._parts.popitem(last=False)
        return made
