"""Run the service with uvicorn until it is told to stop."""

import gc
import signal
import socket
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

from mfbandit._internal.imports import needed_for
from mfbandit.errors import InvalidArgument, NotAllowed
from mfbandit.store import Store

with needed_for("the service", "service"):
    import uvicorn

    from mfbandit.service.app import create_app
    from mfbandit.service.connections import GuardedProtocol, close_silent, limit_connections
    from mfbandit.service.logs import checked_format, logging_to
    from mfbandit.service.middleware import is_loopback
    from mfbandit.service.transport import checked_url

SHUTDOWN_GRACE_SECONDS = 10  # for pending requests
TICKS_PER_SECOND = 10  # of uvicorn
BACKLOG = 2048  # connections that wait to be accepted


def serve(  # noqa: PLR0913 - options with names and defaults
    store: Store,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    quiet: bool = False,
    root_path: str = "",
    allowed_hosts: Sequence[str] = (),
    trusted_proxies: Sequence[str] = (),
    log_format: str = "text",
    access_log: bool = False,
    peer_address: str | None = None,
) -> None:
    """Answer requests until SIGTERM or Ctrl-C; what was acknowledged is on disk by then.

    Args:
        store: where the experiments are; open for writing.
        host: where to listen; anything but loopback needs a token to exist.
        port: where to listen; 0 takes a free port.
        quiet: do not print the address.
        root_path: what a proxy in front of it has before every path, such as /bandits.
        allowed_hosts: names, beside those of this machine, under which people reach it through a proxy; needs a token
            to exist.
        trusted_proxies: addresses or networks of proxies whose X-Forwarded-Proto and X-Forwarded-Host are believed;
            needs a token to exist.
        log_format: of what is written to standard error: text or json.
        access_log: whether each request is written there, too.
        peer_address: where other services that share the database reach this one; by default where it listens.

    Raises:
        NotAllowed: other machines could reach it, and no token would keep them out.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, Store(f"{folder}/ads.db") as store:
    ...     serve(store, host="0.0.0.0")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    mfbandit.errors.NotAllowed: host must be a loopback address while ... has no token, got '0.0.0.0': make one with
        `mfbandit token create`
    """
    checked_format(log_format)
    _check_tokens(store, host, [*allowed_hosts, *trusted_proxies])
    app = create_app(
        store,
        loopback=is_loopback(host),
        root_path=root_path,
        allowed_hosts=allowed_hosts,
        trusted_proxies=trusted_proxies,
    )
    listening = _listen(host, port)
    address = f"http://{_in_url(host)}:{listening.getsockname()[1]}"
    if store.fleet is not None:
        store.fleet.serve_at(_peer_address(peer_address, host, listening))
    collect_garbage_less_often()
    config = uvicorn.Config(
        app,
        log_config=None,
        log_level="warning",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=SHUTDOWN_GRACE_SECONDS,
        lifespan="on",
        http=GuardedProtocol,
    )
    with logging_to(log_format=log_format, access_log=access_log):
        _Server(config, "" if quiet else _greeting(store, address)).run(sockets=[listening])


def _peer_address(given: str | None, host: str, listening: socket.socket) -> str:
    """Return where others reach this service; by the name of the machine if it listens everywhere."""
    if given is not None:
        return checked_url(given)
    reached = socket.gethostname() if host in ("0.0.0.0", "::") else host  # noqa: S104 - compared, not listened on
    return f"http://{_in_url(reached)}:{listening.getsockname()[1]}"


def _check_tokens(store: Store, host: str, through: Sequence[str]) -> None:
    """Refuse to serve others where no token would keep them out."""
    if store.tokens():
        return
    make = "make one with `mfbandit token create`"
    if not is_loopback(host):
        raise NotAllowed(f"host must be a loopback address while {store.name} has no token, got {host!r}: {make}")
    if through:
        rule = f"a proxy must not be named while {store.name} has no token"
        raise NotAllowed(f"{rule}, got {', '.join(through)}: {make}")


def _greeting(store: Store, address: str) -> str:
    tokens = len(store.tokens())
    who = f"{tokens} token{'s' * (tokens != 1)}" if tokens else "no tokens yet: anybody on this machine may use it"
    if not tokens and store.needs_token():
        who = "no token is left: nobody may use it; make one with `mfbandit token create` while it does not run"
    return f"mfbandit serves {store.name} at {address} ({who}); Ctrl-C or SIGTERM ends it\n"


def collect_garbage_less_often() -> None:
    """Let Python look for cyclic garbage less often: it took a sixth of a request's time, and half its p99.

    >>> before = gc.get_threshold()
    >>> collect_garbage_less_often()
    >>> gc.get_threshold()[0]
    50000
    >>> gc.set_threshold(*before)
    """
    gc.collect()
    gc.freeze()  # what was loaded until now stays
    gc.set_threshold(50_000, 50, 100)


class _Server(uvicorn.Server):
    """A uvicorn server that returns when it is told to stop, so that the store can be closed.

    Args:
        config: the settings of uvicorn.
        greeting: printed once requests are answered and signals handled.
    """

    def __init__(self, config: uvicorn.Config, greeting: str) -> None:
        super().__init__(config)
        self._greeting = greeting

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to answer, and print the greeting."""
        limit_connections()
        await super().startup(sockets=sockets)
        sys.stderr.write(self._greeting)
        sys.stderr.flush()

    async def on_tick(self, counter: int) -> bool:
        """Close connections that have been silent for too long, once a second."""
        if counter % TICKS_PER_SECOND == 0:
            close_silent(self.server_state.connections)
        return await super().on_tick(counter)

    def handle_exit(self, _sig: int, _frame: FrameType | None) -> None:
        """Stop; a second Ctrl-C changes nothing, where uvicorn would leave the store open and print a traceback."""
        self.should_exit = True

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle signals; uvicorn would raise them once more at the end, and the process would die of it."""
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
        why = error.strerror if isinstance(error, OSError) else error
        raise InvalidArgument(f"Cannot listen on {_in_url(host)}:{port}: {why}") from None
    listening.listen(BACKLOG)
    return listening


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host
