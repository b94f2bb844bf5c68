"""Locks by name: threads that mean the same thing wait for each other, and nobody else does."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class LocksByName:
    """A lock for each name, kept while somebody has it or waits for it.

    >>> locks = LocksByName()
    >>> with locks.of("ads"), locks.of("pages"):
    ...     len(locks)
    2
    >>> len(locks)
    0
    """

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._locks: dict[str, tuple[threading.Lock, int]] = {}  # and how many have it or wait for it

    def __len__(self) -> int:
        return len(self._locks)

    @contextmanager
    def of(self, name: str) -> Iterator[None]:
        """Inside, no other thread is inside with the same name."""
        with self._guard:
            lock, users = self._locks.get(name, (threading.Lock(), 0))
            self._locks[name] = lock, users + 1
        try:
            with lock:
                yield
        finally:
            with self._guard:
                lock, users = self._locks.pop(name)
                if users > 1:
                    self._locks[name] = lock, users - 1
