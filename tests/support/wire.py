"""A wire between a service and its database that can be cut: connections are dropped, or nothing comes through."""

import contextlib
import selectors
import socket
import threading
from typing import Self

from tests.support.postgres import free_port

CHUNK = 2**16


class Wire:
    """Passes bytes on between a port of loopback and another, from `with Wire(port) as wire` to the end of the block.

    Args:
        target: the port of the server.
    """

    def __init__(self, target: int) -> None:
        self.port, self._target = free_port(), target
        self._listening = socket.create_server(("127.0.0.1", self.port))
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listening, selectors.EVENT_READ)
        self._pairs: dict[socket.socket, socket.socket] = {}
        self._whole, self._ending = threading.Event(), threading.Event()
        self._whole.set()
        self._drop = threading.Event()
        self._held_back = b""  # which request is not to be answered
        self._silent: socket.socket | None = None  # who would answer it
        self._thread = threading.Thread(target=self._run, name=f"wire {self.port}", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        self._whole.set()
        self._thread.join()
        self._drop_all()
        self._listening.close()

    def cut(self) -> None:
        """Let nothing through; connections stay open on both sides, as they do when a cable is pulled."""
        self._whole.clear()

    def hold_answer_to(self, words: bytes) -> None:
        """Be cut once a request with these words is answered: it was heard, and its answer does not come through."""
        self._held_back = words

    @property
    def is_cut(self) -> bool:
        """Whether nothing comes through."""
        return not self._whole.is_set()

    def mend(self) -> None:
        """Let everything through again, and what was sent meanwhile."""
        self._whole.set()

    def drop(self) -> None:
        """Close all connections; new ones can be made at once."""
        self._drop.set()

    def _run(self) -> None:
        while not self._ending.is_set():
            self._whole.wait()
            if self._drop.is_set():
                self._drop.clear()
                self._drop_all()
            for key, _ in self._selector.select(timeout=0.02):
                if not self._whole.is_set():
                    break
                if key.fileobj is self._listening:
                    self._accept()
                elif isinstance(key.fileobj, socket.socket) and key.fileobj in self._pairs:
                    self._pass_on(key.fileobj)

    def _accept(self) -> None:
        near, _ = self._listening.accept()
        try:
            far = socket.create_connection(("127.0.0.1", self._target), timeout=5)
        except OSError:
            near.close()
            return
        for one, other in ((near, far), (far, near)):
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._pairs[one] = other
            self._selector.register(one, selectors.EVENT_READ)

    def _pass_on(self, one: socket.socket) -> None:
        if one is self._silent:
            self._silent = None
            self.cut()
            return
        try:
            data = one.recv(CHUNK)
            if data:
                if self._held_back and self._held_back in data:
                    self._held_back, self._silent = b"", self._pairs[one]
                self._pairs[one].sendall(data)
                return
        except OSError:
            pass
        self._close(one)

    def _close(self, one: socket.socket) -> None:
        other = self._pairs.pop(one, None)
        if other is None:
            return
        self._pairs.pop(other, None)
        for each in (one, other):
            with contextlib.suppress(KeyError, ValueError):
                self._selector.unregister(each)
            each.close()

    def _drop_all(self) -> None:
        for one in list(self._pairs):
            self._close(one)
