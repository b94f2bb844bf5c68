"""What every request has to pass before anything else: host, token, kind and size of its body."""

import functools
import ipaddress
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from mfbandit.service.problems import MARK, TYPE, Problem
from mfbandit.store import Store

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

OPEN = {"/", "/api", "/health", "/openapi.json", "/favicon.ico"}  # no data there
LARGEST_BODY = 16 * 2**20  # bytes: an experiment of 100,000 named arms fits
_HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"no-store"),
    (b"content-security-policy", b"default-src 'none'; style-src 'self' 'unsafe-inline'; frame-ancestors 'none'"),
    (b"referrer-policy", b"no-referrer"),
    (MARK.encode(), b"1"),
]


class Guard:
    """An ASGI application around another one.

    Args:
        app: what is guarded.
        store: whose tokens count.
        loopback: whether the service listens on loopback alone; then a page of another site that a browser has open
            must not reach it under a name of its own.
        largest: bytes that a body may have.
    """

    def __init__(self, app: App, store: Store, *, loopback: bool = True, largest: int = LARGEST_BODY) -> None:
        self._app, self._store, self._loopback, self._largest = app, store, loopback, largest

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer it with a problem."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers: dict[bytes, bytes] = dict(scope["headers"])
        send = _hardened(send)
        try:
            problem = self._problem(scope, headers)
        except Exception as error:
            problem = Problem("unavailable", 503, "The store cannot be used now", str(error))
        if problem is not None:
            await answer(send, problem)
            return
        if b"content-length" in headers:  # the server reads no more than that
            await self._app(scope, receive, send)
        else:
            await self._limited(scope, receive, send)

    def _problem(self, scope: Scope, headers: dict[bytes, bytes]) -> Problem | None:
        if self._loopback and not is_loopback(_host(headers)):
            return Problem("host", 421, "Wrong host", f"the Host header must name this machine, got {_host(headers)!r}")
        method, path = scope["method"], scope["path"]
        if path not in OPEN:
            problem = self._refused(headers, needed(method, path))
            if problem is not None:
                return problem
        if method in ("POST", "PUT", "PATCH"):
            kind = headers.get(b"content-type", b"").split(b";")[0].strip().lower()
            if kind != b"application/json":
                # Browsers send other kinds across sites without asking.
                return Problem("media-type", 415, "Wrong kind of body", "the body must be application/json")
        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or len(length) > 15 or int(length) > self._largest:  # noqa: PLR2004 - petabytes
            return self._too_large()
        return None

    def _refused(self, headers: dict[bytes, bytes], scope: str) -> Problem | None:
        if self._loopback and not self._store.tokens():
            return None  # on this machine alone, until the first token is made
        kind, _, text = headers.get(b"authorization", b"").partition(b" ")
        if kind.lower() != b"bearer":
            return _unauthorized("a token is needed: Authorization: Bearer mfb_...")
        token = self._store.token(text.strip().decode("latin-1"))
        if token is None:
            return _unauthorized("the token is not one of this store's")
        if not token.allows(scope):
            return Problem(
                "not-allowed", 403, "This is not allowed", f"the token must have scope {scope}, got {token.scope}"
            )
        return None

    async def _limited(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Count the body while it comes in: not everybody says its length."""
        seen, started = 0, False

        async def counted() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > self._largest:
                raise _TooLarge
            return message

        async def noted(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await self._app(scope, counted, noted)
        except _TooLarge:
            if not started:
                await answer(send, self._too_large())

    def _too_large(self) -> Problem:
        return Problem("too-large", 413, "The body is too large", f"a body must have at most {self._largest:,} bytes")


class _TooLarge(BaseException):
    """Nobody on the way may take it for an error of their own."""


def needed(method: str, path: str) -> str:
    """The scope that a request needs.

    >>> needed("GET", "/api/experiments"), needed("POST", "/api/experiments/ads/tell"), needed("GET", "/api/tokens")
    ('read', 'write', 'admin')
    """
    if path.startswith("/api/tokens") or method == "DELETE":
        return "admin"
    return "read" if method in ("GET", "HEAD") else "write"


@functools.lru_cache(maxsize=100)
def is_loopback(host: str) -> bool:
    """Whether a host is this machine and no other can reach it by that name.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("::1"), is_loopback("0.0.0.0")
    (True, True, True, False)
    """
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _host(headers: dict[bytes, bytes]) -> str:
    text = headers.get(b"host", b"").decode("latin-1")
    if text.startswith("["):
        return text[1:].partition("]")[0]
    return text.rpartition(":")[0] if text.count(":") == 1 else text


def _unauthorized(detail: str) -> Problem:
    return Problem("unauthorized", 401, "A token is needed", detail)


def _hardened(send: Send) -> Send:
    async def hardened(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message.get("headers", []), *_HEADERS]
        await send(message)

    return hardened


async def answer(send: Send, problem: Problem) -> None:
    """Send a problem as the whole answer."""
    headers = [(b"content-type", TYPE.encode()), (b"content-length", str(len(problem.body)).encode())]
    if problem.status == 401:  # noqa: PLR2004 - of HTTP
        headers.append((b"www-authenticate", b"Bearer"))
    if problem.status == 503:  # noqa: PLR2004 - of HTTP
        headers.append((b"retry-after", b"1"))
    await send({"type": "http.response.start", "status": problem.status, "headers": headers})
    await send({"type": "http.response.body", "body": problem.body})
