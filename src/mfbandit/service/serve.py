"""Listening: uvicorn with the service, until it is told to stop."""

import gc
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from mfbandit._internal.imports import needed_for
from mfbandit.errors import InvalidArgument, NotAllowed
from mfbandit.service.middleware import is_loopback
from mfbandit.store import Store

with needed_for("a service", "service"):
    import uvicorn

    from mfbandit.service.app import create_app

GRACE = 10  # seconds for requests that are under way when it is told to stop


def serve(store: Store, *, host: str = "127.0.0.1", port: int = 8000, quiet: bool = False) -> None:
    """Answer requests until SIGTERM or Ctrl-C; whatever was acknowledged is on disk by then.

    Args:
        store: where the experiments are; open for writing.
        host: where to listen; anything but loopback needs a token to exist.
        port: where to listen; 0 takes a free one.
        quiet: print no address.

    Raises:
        NotAllowed: others could reach it, and it has no token that would keep them out.
    """
    if not is_loopback(host) and not store.tokens():
        raise NotAllowed(
            f"host must be a loopback address while {store.name} has no token, got {host!r}: "
            f"make one with `mfbandit token create`"
        )
    listening = _listen(host, port)
    address = f"http://{_shown(host)}:{listening.getsockname()[1]}"
    calm_collector()
    app = create_app(store, loopback=is_loopback(host))
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=GRACE,
        lifespan="on",
    )
    _Server(config, "" if quiet else _greeting(store, address)).run(sockets=[listening])


def _greeting(store: Store, address: str) -> str:
    tokens = len(store.tokens())
    who = f"{tokens} token{'s' * (tokens != 1)}" if tokens else "no tokens yet: whoever is on this machine may use it"
    return f"mfbandit serves {store.name} at {address} ({who}); Ctrl-C or SIGTERM ends it\n"


def calm_collector() -> None:
    """Let Python look for garbage in cycles less often: it made a sixth of the time of a request, and half its p99."""
    gc.collect()
    gc.freeze()  # what was loaded until now stays
    gc.set_threshold(50_000, 50, 100)


class _Server(uvicorn.Server):
    """A server that ends in peace when it is told to, so that its store can be closed.

    Args:
        config: uvicorn's.
        greeting: what to print once requests are answered and signals heard.
    """

    def __init__(self, config: uvicorn.Config, greeting: str) -> None:
        super().__init__(config)
        self._greeting = greeting

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to answer, and say so."""
        await super().startup(sockets=sockets)
        sys.stderr.write(self._greeting)
        sys.stderr.flush()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002 - as uvicorn calls it
        """End; a second Ctrl-C changes nothing, where uvicorn would leave the store open and print a traceback."""
        self.should_exit = True

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Uvicorn would raise the signal once more at the end, and the process would die of it."""
        before = {kind: signal.signal(kind, self.handle_exit) for kind in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for kind, handler in before.items():
                signal.signal(kind, handler)


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
    except (OSError, OverflowError) as error:
        listening.close()
        raise InvalidArgument(f"host and port must be free to listen on, got {host}:{port} ({error})") from None
    listening.listen(2048)
    return listening


def _shown(host: str) -> str:
    return f"[{host}]" if ":" in host else host
