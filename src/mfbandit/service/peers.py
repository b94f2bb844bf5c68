"""Requests that one service passes on to another which shares its database.

A request goes with the secret of the service that it is meant for, which is known from the database. So that one knows
that it was checked already, and by whose rules. It is never passed on twice.
"""

import hmac
import json
import ssl
from collections.abc import Callable
from http import HTTPStatus
from typing import Any
from urllib.parse import quote, unquote

import anyio
import httpx

from mfbandit.service.asgi import ACTOR, Message, Receive, Scope, Send
from mfbandit.service.public_address import ADDRESS, Headers, PublicAddress
from mfbandit.store import ServiceEntry

PEER_HEADER = b"x-mfbandit-peer"  # the secret of the service that a request was passed on to
ADDRESS_HEADER = b"x-mfbandit-address"  # the address that the sender of the request knows
PASSED_ON = "mfbandit.passed_on"  # in the scope of a request that another service has passed on
ACTOR_HEADER = b"x-mfbandit-actor"  # the name of the token that the request came with
MISDIRECTED = "misdirected"  # the kind of the problem with which a service refuses what is not its own
WATCH_SECONDS = 0.2  # between looks whether the other service is still here
CONNECT_SECONDS = 2.0
KEEP_ALIVE_SECONDS = 2.0  # less than for how long the other side keeps a connection
POOLS = 16  # of connections: a pool takes time for each request that grows with the number of its connections
MAX_CONNECTIONS_PER_POOL = 32
WHOLE_BYTES = 1 << 20  # of an answer that is passed back when all of it is there
# Of a connection and not of what is sent over it, or made anew by this service.
_NOT_PASSED_ON = {b"host", b"connection", b"keep-alive", b"te", b"upgrade", b"expect", b"transfer-encoding"} | {
    b"content-length",
    PEER_HEADER,
    ADDRESS_HEADER,
    ACTOR_HEADER,
}
_NOT_PASSED_BACK = {b"connection", b"keep-alive", b"transfer-encoding", b"date", b"server", b"x-request-id"}


class NotDelivered(Exception):
    """The other service did not get the request, or refused it before anything was done: it may be sent again."""


class NotAnswered(Exception):
    """The other service may have got the request, and does not answer."""


class Peers:
    """Connections to the other services.

    Args:
        is_here: tells by an id whether a service is still here.
    """

    def __init__(self, is_here: Callable[[str], bool]) -> None:
        self._is_here = is_here
        self._pools: list[httpx.AsyncClient] = []
        self._turn = 0

    async def pass_on(self, peer: ServiceEntry, scope: Scope, body: bytes, send: Send) -> None:
        """Let another service answer a request.

        If the answer breaks off after a part of it was passed back, nothing more is sent, and the server cuts the
        connection: it can neither be begun again nor be ended.

        Args:
            peer: the other one.
            scope: of the request, checked already.
            body: all of its body.
            send: where the answer goes.

        Raises:
            NotDelivered: it may be sent elsewhere.
            NotAnswered: nobody knows what became of it.
        """
        if not self._is_here(peer.id):
            raise NotDelivered(f"the service at {peer.address} has gone")
        watched = _WatchedSend(send)
        with anyio.CancelScope() as limits:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._watch, peer, limits)
                answered = await self._exchange(peer, scope, body, watched)
                tasks.cancel_scope.cancel()
        if watched.begun:
            return
        if limits.cancelled_caught:
            raise NotAnswered(f"the service at {peer.address} has gone")
        if answered is not None:
            raise answered

    async def close(self) -> None:
        """Close the connections."""
        for pool in self._pools:
            await pool.aclose()

    async def _watch(self, peer: ServiceEntry, limits: anyio.CancelScope) -> None:
        while self._is_here(peer.id):
            await anyio.sleep(WATCH_SECONDS)
        limits.cancel()

    async def _exchange(self, peer: ServiceEntry, scope: Scope, body: bytes, send: Send) -> Exception | None:
        """Send and pass back; return what went wrong, as an error raised here would come in a group."""
        try:
            pool = self._next_pool()
            answer = await pool.send(_request(pool, peer, scope, body), stream=True)
            try:
                if answer.status_code == HTTPStatus.MISDIRECTED_REQUEST:
                    return NotDelivered(f"the service at {peer.address} is another one, or does not have it any more")
                await _pass_back(answer, send)
            finally:
                await answer.aclose()
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout) as error:
            return NotDelivered(
                f"the service at {peer.address} cannot be reached: {str(error) or type(error).__name__}"
            )
        except httpx.HTTPError as error:
            return NotAnswered(f"{peer.address} does not answer: {str(error) or type(error).__name__}")
        return None

    def _next_pool(self) -> httpx.AsyncClient:
        """Return one pool after the other; they are made when the first request is passed on."""
        if not self._pools:
            limits = httpx.Limits(
                max_connections=MAX_CONNECTIONS_PER_POOL,
                max_keepalive_connections=MAX_CONNECTIONS_PER_POOL,
                keepalive_expiry=KEEP_ALIVE_SECONDS,
            )
            timeout = httpx.Timeout(None, connect=CONNECT_SECONDS, pool=CONNECT_SECONDS)
            tls = ssl.create_default_context()  # once: each would take its time
            transports = [httpx.AsyncHTTPTransport(verify=tls, limits=limits) for _ in range(POOLS)]
            self._pools = [httpx.AsyncClient(transport=one, timeout=timeout, trust_env=False) for one in transports]
        self._turn = (self._turn + 1) % POOLS
        return self._pools[self._turn]


def _request(pool: httpx.AsyncClient, peer: ServiceEntry, scope: Scope, body: bytes) -> httpx.Request:
    address: PublicAddress = scope[ADDRESS]
    headers = [(name, value) for name, value in scope["headers"] if name not in _NOT_PASSED_ON]
    headers += peer_headers(peer, address).items()
    if scope.get(ACTOR):
        headers.append((ACTOR_HEADER, quote(scope[ACTOR]).encode()))
    path = quote(scope["path"].removeprefix(address.root_path))
    query = scope.get("query_string", b"").decode("latin-1")
    url = f"{peer.address}{path}{'?' * bool(query)}{query}"
    return pool.build_request(scope["method"], url, headers=headers, content=body)


class _WatchedSend:
    """Sends, and knows whether anything was sent."""

    def __init__(self, send: Send) -> None:
        self._send, self.begun = send, False

    async def __call__(self, message: Message) -> None:
        self.begun = True
        await self._send(message)


async def _pass_back(answer: httpx.Response, send: Send) -> None:
    """Pass an answer back: all of it at once, or piece by piece where it is long or nobody knows how long."""
    whole = int(answer.headers.get("content-length", WHOLE_BYTES + 1)) <= WHOLE_BYTES
    content = b"".join([chunk async for chunk in answer.aiter_raw()]) if whole else b""
    headers = [(name.lower(), value) for name, value in answer.headers.raw if name.lower() not in _NOT_PASSED_BACK]
    await send({"type": "http.response.start", "status": answer.status_code, "headers": headers})
    if not whole:
        async for chunk in answer.aiter_raw():
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
    await send({"type": "http.response.body", "body": content})


async def whole_body(receive: Receive) -> bytes | None:
    """Read the body of a request, whose size was checked before; None if its sender has gone.

    >>> async def receive():
    ...     return {"type": "http.request", "body": b"{}"}
    >>> anyio.run(whole_body, receive)
    b'{}'
    """
    parts = []
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        parts.append(message.get("body", b""))
        if not message.get("more_body"):
            return b"".join(parts)


def again(body: bytes, receive: Receive) -> Receive:
    """Return what gives a body once more that was read already."""
    given = False

    async def first_the_body() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return first_the_body


def is_from_peer(headers: Headers, secret: str) -> bool:
    """Tell whether another service has passed on a request, which knows the secret of this one.

    >>> is_from_peer({b"x-mfbandit-peer": b"s"}, "s"), is_from_peer({}, "s")
    (True, False)
    """
    return hmac.compare_digest(headers.get(PEER_HEADER, b""), secret.encode())


def peer_headers(peer: ServiceEntry, address: PublicAddress) -> Headers:
    """Return the headers of a request to another service.

    Args:
        peer: the other one.
        address: of this one, as the sender of the request knows it.
    """
    text = json.dumps([address.scheme, address.host, address.root_path])
    return {PEER_HEADER: peer.secret.encode(), ADDRESS_HEADER: text.encode()}


def actor_from_peer(headers: Headers) -> str | None:
    """Return the name of the token that a request came with which another service has passed on.

    >>> actor_from_peer({b"x-mfbandit-actor": b"crew%207"}), actor_from_peer({})
    ('crew 7', None)
    """
    return unquote(headers.get(ACTOR_HEADER, b"").decode("latin-1")) or None


def address_from_peer(headers: Headers) -> PublicAddress:
    """Return the address of a request that another service has passed on, as its sender knows it.

    >>> address_from_peer({b"x-mfbandit-address": b'["https", "ads.example.org", "/bandits"]'}).origin
    'https://ads.example.org'
    """
    parts: list[Any] = json.loads(headers.get(ADDRESS_HEADER, b"[]"))
    return PublicAddress(*map(str, parts))
