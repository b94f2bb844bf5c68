"""Requests about an experiment go to the service that owns it, where several share a database."""

import re
import time

import anyio
import anyio.to_thread

from mfbandit.errors import OutcomeUnknown, StoreError, StoreUnavailable
from mfbandit.service.asgi import App, Receive, Scope, Send, send_problem
from mfbandit.service.peers import MISDIRECTED, PASSED_ON, NotAnswered, NotDelivered, Peers, again, whole_body
from mfbandit.service.problem_details import ProblemDetail, problem_of
from mfbandit.store import Fleet, ServiceEntry, Store

SEARCH_SECONDS = 8.0  # for an owner that can be reached: longer than it takes to replace one that is gone
PAUSE_SECONDS = 0.1
MAX_KNOWN = 10_000  # experiments whose owner is remembered
SAFE_METHODS = ("GET", "HEAD")
_NAME = re.compile(r"(?:/api)?/experiments/([^/]+)")


def experiment_in(path: str) -> str | None:
    """Return the name of the experiment that a path is about, if it is about one.

    >>> experiment_in("/api/experiments/ads/tell"), experiment_in("/experiments/ads"), experiment_in("/api/experiments")
    ('ads', 'ads', None)
    """
    found = _NAME.match(path)
    return None if found is None else found[1]


class OwnerMiddleware:
    """Answer requests about experiments that this service owns, and pass others on.

    Args:
        app: answers them here.
        store: whose experiments they are about.
        fleet: the services that share it.
        peers: the connections to them.
    """

    def __init__(self, app: App, store: Store, fleet: Fleet, peers: Peers) -> None:
        self._app, self._store, self._fleet, self._peers = app, store, fleet, peers
        self._known: dict[str, ServiceEntry] = {}  # who answers for which experiment, as far as it was needed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or let the owner answer it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        name = experiment_in(scope["path"].removeprefix(scope.get("root_path", "")))
        if name is None or self._store.owns(name):  # the fast way, for nearly all
            await self._app(scope, receive, send)
            return
        try:
            await self._route(name, scope, receive, send)
        except StoreError as error:
            problem = problem_of(error)
            if problem is None:
                raise
            await send_problem(send, problem)

    async def _route(self, name: str, scope: Scope, receive: Receive, send: Send) -> None:
        passed_on = bool(scope.get(PASSED_ON))
        peer = None if passed_on else self._known.get(name)
        if peer is None:
            peer = await self._find(name, to_take=passed_on)
        if peer is None:
            await self._app(scope, receive, send)
        elif passed_on:
            detail = f"experiment {name!r} is owned by the service at {peer.address}"
            await send_problem(send, ProblemDetail(MISDIRECTED, 421, "Owned by another service", detail))
        else:
            await self._pass_on(name, peer, scope, receive, send)

    async def _pass_on(self, name: str, peer: ServiceEntry, scope: Scope, receive: Receive, send: Send) -> None:
        body, deadline = await whole_body(receive), time.monotonic() + SEARCH_SECONDS
        while body is not None:
            try:
                await self._peers.pass_on(peer, scope, body, send)
                return
            except NotAnswered as error:
                self._known.pop(name, None)
                if scope["method"] not in SAFE_METHODS:
                    raise OutcomeUnknown(
                        f"{error}; whether this was kept is unknown: repeat the request with the same key"
                    ) from None
                reason = str(error)
            except NotDelivered as error:
                self._known.pop(name, None)
                reason = str(error)
            found = await self._find(name)
            if found is None:
                await self._app(scope, again(body, receive), send)
                return
            if time.monotonic() > deadline:
                raise StoreUnavailable(f"experiment {name!r} cannot be used now: {reason}")
            if found.id == peer.id:
                await anyio.sleep(PAUSE_SECONDS)
            peer = found

    async def _find(self, name: str, *, to_take: bool = False) -> ServiceEntry | None:
        """Return the other service that is to answer for an experiment; None if this one is.

        Args:
            name: of the experiment.
            to_take: whether this one is to take it if nobody owns it, wherever it belongs: another one wants it so.
        """
        place = await anyio.to_thread.run_sync(self._fleet.find, name)
        if place is None:
            return None  # the route says that there is none
        free = None if to_take else self._fleet.home_of(name)
        peer = free if place.owner is None else place.owner
        if peer is None or peer.id == self._fleet.id or not peer.address:
            return None  # a script that has it cannot be asked; opening it here waits, and says who has it
        if len(self._known) >= MAX_KNOWN:
            self._known.clear()
        self._known[name] = peer  # if that changes, the peer says so
        return peer
