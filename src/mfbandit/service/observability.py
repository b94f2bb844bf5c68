"""Eyes on the service: an id, a time and an entry in the log for each request, /metrics and /ready."""

import itertools
import logging
import re
import secrets
import time
from typing import Any

import anyio
import anyio.to_thread
from fastapi import FastAPI
from fastapi.responses import PlainTextResponse, Response
from prometheus_client import CONTENT_TYPE_LATEST

import mfbandit
from mfbandit.errors import MFBanditError, StoreUnavailable
from mfbandit.service.answers import answer
from mfbandit.service.asgi import ACTOR, App, Message, Receive, Scope, Send
from mfbandit.service.logs import REQUEST_ID, access, log_outage
from mfbandit.service.metrics import Metrics
from mfbandit.store import Store
from mfbandit.store.writer import Ticket

PROBE_INTERVAL_SECONDS = 1.0
SILENT_SECONDS = 3.0  # from which on a store that does not answer counts as gone
CLIENT_GONE = 499  # what logs call a request whose sender left before the answer
REQUEST_ID_HEADER = b"x-request-id"

_ROUTE = "mfbandit.route"  # in a request's scope: what the router knows about it
_GIVEN_ID = re.compile(rb"[0-9A-Za-z._-]{1,64}")  # what a proxy may call a request


class ObservingMiddleware:
    """Give each request an id, count it, and write it into the log if that is wanted.

    Args:
        app: the ASGI application that answers.
        metrics: where requests are counted.
    """

    def __init__(self, app: App, metrics: Metrics) -> None:
        self._app, self._requests = app, metrics.requests
        self._prefix, self._numbers = secrets.token_hex(4), itertools.count(1)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()
        identifier = self._identifier(scope)
        routed: list[Scope] = []
        scope[_ROUTE] = routed
        REQUEST_ID.set(identifier)
        status = 0

        async def observed(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), (REQUEST_ID_HEADER, identifier.encode())]
                self._count(scope, routed, status, time.perf_counter() - began)
            await send(message)

        try:
            await self._app(scope, receive, observed)
        finally:
            if not status:
                self._count(scope, routed, CLIENT_GONE, time.perf_counter() - began)

    def _identifier(self, scope: Scope) -> str:
        """Return the id that a proxy gave to the request, or a new one."""
        for name, value in scope["headers"]:
            if name == REQUEST_ID_HEADER and _GIVEN_ID.fullmatch(value):
                return str(value.decode())
        made = f"{self._prefix}-{next(self._numbers)}"
        scope["headers"] = [*scope["headers"], (REQUEST_ID_HEADER, made.encode())]  # for a service it is passed on to
        return made

    def _count(self, scope: Scope, routed: list[Scope], status: int, seconds: float) -> None:
        route = route_of(routed[0]) if routed else "none"
        self._requests.add(scope["method"], route, status, seconds)
        if access.isEnabledFor(logging.INFO):
            access.info("request", extra={"fields": _entry(scope, route, status, seconds)})


def _entry(scope: Scope, route: str, status: int, seconds: float) -> dict[str, Any]:
    """Return what the log says of a request: neither its query, nor its headers, nor its body."""
    client = scope.get("client")
    entry = {"method": scope["method"], "path": scope["path"], "route": route, "status": status}
    entry |= {"seconds": round(seconds, 6), "client": client[0] if client else None, "token": scope.get(ACTOR)}
    return {name: value for name, value in entry.items() if value is not None}


def route_of(scope: Scope) -> str:
    """Return the pattern of the route that answers a request; "none" if there is no such route.

    >>> route_of({"path": "/wp-admin"})
    'none'
    """
    return str(getattr(scope.get("route"), "path", "none"))


def with_route(app: App) -> App:
    """Let whoever observes a request see which route the router picks for it.

    Args:
        app: the application with the router.
    """

    async def noted(scope: Scope, receive: Receive, send: Send) -> None:
        if _ROUTE in scope:
            scope[_ROUTE].append(scope)  # the router writes into this one, which may be a copy
        await app(scope, receive, send)

    return noted


class Readiness:
    """Whether the service can do its work now, found out without a write and without waiting.

    Once a second the writer is asked whether the store is as it left it; how that went is known here.

    Args:
        store: which is served.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._probe: Ticket | None = None
        self._asked_at = 0.0

    async def run(self) -> None:
        """Ask again and again."""
        while True:
            self.ask()
            await anyio.sleep(PROBE_INTERVAL_SECONDS)

    def ask(self) -> None:
        """Ask once, unless the last question is still open."""
        if self._probe is not None and self._probe.failed() is None:
            return  # one that hangs is enough
        try:
            self._probe = self._store.writer().confirm()
            self._asked_at = time.monotonic()
        except MFBanditError:  # it is being closed
            self._probe = None

    def problem(self) -> str:
        """Return why the service is not ready; empty if it is."""
        if self._probe is None:  # nobody has asked yet
            self.ask()
        outage = self._store.writer().watch.outage
        if outage is not None:
            return f"the store cannot be written: {outage.error}"
        silent = self._probe is None or self._probe.failed() is None
        if silent and time.monotonic() - self._asked_at > SILENT_SECONDS:
            return f"the store did not answer for {SILENT_SECONDS:g} seconds"
        return ""


def add_observability(app: FastAPI, store: Store, metrics: Metrics) -> None:
    """Add the routes that are for monitoring, and log outages of the database.

    Args:
        app: to which they are added; its state has the ``readiness``, which has to run.
        store: which is served.
        metrics: of the service.
    """
    readiness = app.state.readiness = Readiness(store)
    if not store.read_only:
        store.writer().watch.on_outage = log_outage

    @app.get("/ready", tags=["service"])
    async def ready() -> Response:
        """Check that the service can write, by what it found within the last seconds; 503 if it cannot."""
        problem = readiness.problem()
        if problem:
            raise StoreUnavailable(problem)
        return answer({"status": "ready", "version": mfbandit.__version__})

    @app.get("/metrics", tags=["service"], response_class=PlainTextResponse)
    async def scrape() -> Response:
        """Show the service's numbers in Prometheus's text form."""
        return Response(await anyio.to_thread.run_sync(metrics.text), media_type=CONTENT_TYPE_LATEST)
