"""What every request has to pass before anything else: host, token, kind and size of its body."""

import functools
import ipaddress
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import quote, urlsplit

from mfbandit.service.problem_details import MARK, TYPE, Problem
from mfbandit.store import Store

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

OPEN = {"/api", "/health", "/openapi.json", "/favicon.ico", "/sign-in", "/sign-out"}  # no data there
COOKIE = "mfbandit"
LARGEST_BODY = 16 * 2**20  # bytes: an experiment of 100,000 named arms fits
_HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
        b"form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    ),
    (b"referrer-policy", b"same-origin"),  # with no-referrer, browsers would not say where our own forms come from
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
        if problem is not None and problem.status == 401 and _is_page(scope, headers):  # noqa: PLR2004 - of HTTP
            await _send_to_sign_in(send, scope["path"])
            return
        if problem is not None:
            await answer(send, problem)
            return
        if b"content-length" in headers and b"transfer-encoding" not in headers:  # the server reads no more than that
            await self._app(scope, receive, send)
        else:
            await self._limited(scope, receive, send)

    def _problem(self, scope: Scope, headers: dict[bytes, bytes]) -> Problem | None:
        if self._loopback and not is_loopback(_host(headers)):
            return Problem("host", 421, "Wrong host", f"the Host header must name this machine, got {_host(headers)!r}")
        method, path = scope["method"], scope["path"]
        if path not in OPEN and not path.startswith("/static/"):
            problem = self._refused(headers, path, needed(method, path))
            if problem is not None:
                return problem
        if method in ("POST", "PUT", "PATCH"):
            problem = _json_alone(headers) if is_api(path) else _own_form(headers)
            if problem is not None:
                return problem
        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or len(length) > 15 or int(length) > self._largest:  # noqa: PLR2004 - petabytes
            return self._too_large()
        return None

    def _refused(self, headers: dict[bytes, bytes], path: str, scope: str) -> Problem | None:
        if self._loopback and not self._store.tokens():
            return None  # on this machine alone, until the first token is made
        # A browser sends cookies by itself, so only pages take them; programs say who they are.
        text = _bearer(headers) if is_api(path) else token_of(headers)
        if not text:
            return _unauthorized("a token is needed: Authorization: Bearer mfb_...")
        token = self._store.token(text)
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


def is_api(path: str) -> bool:
    """Whether a path is for programs; the others are pages.

    >>> is_api("/api/experiments"), is_api("/experiments/ads")
    (True, False)
    """
    return path == "/api" or path.startswith("/api/")


def _is_page(scope: Scope, headers: dict[bytes, bytes]) -> bool:
    """Whether somebody opens a page; an update of one that is open already (by htmx) would show the answer inside."""
    return scope["method"] == "GET" and not is_api(scope["path"]) and b"hx-request" not in headers


def _bearer(headers: dict[bytes, bytes]) -> str:
    kind, _, text = headers.get(b"authorization", b"").partition(b" ")
    return text.strip().decode("latin-1") if kind.lower() == b"bearer" else ""


def token_of(headers: dict[bytes, bytes]) -> str:
    """The token in a page's cookie or in the header; empty if there is none.

    >>> token_of({b"cookie": b"a=b; mfbandit=mfb_x"})
    'mfb_x'
    """
    for part in headers.get(b"cookie", b"").split(b";"):
        name, _, value = part.strip().partition(b"=")
        if name == COOKIE.encode():
            return value.decode("latin-1")
    return _bearer(headers)


def _json_alone(headers: dict[bytes, bytes]) -> Problem | None:
    # Browsers send other kinds across sites without asking.
    if headers.get(b"content-type", b"").split(b";")[0].strip().lower() != b"application/json":
        return Problem("media-type", 415, "Wrong kind of body", "the body must be application/json")
    return None


def _own_form(headers: dict[bytes, bytes]) -> Problem | None:
    """Forms must come from this service's own pages; the cookie is not sent across sites either."""
    kind = headers.get(b"content-type", b"").split(b";")[0].strip().lower()
    if kind not in (b"application/x-www-form-urlencoded", b""):
        return Problem("media-type", 415, "Wrong kind of body", "a form must be application/x-www-form-urlencoded")
    origin = headers.get(b"origin", b"").decode("latin-1")
    if urlsplit(origin).netloc != headers.get(b"host", b"").decode("latin-1"):
        return Problem(
            "origin", 403, "Wrong origin", f"a form must be sent from a page of this service, got {origin!r}"
        )
    return None


async def _send_to_sign_in(send: Send, path: str) -> None:
    place = f"/sign-in?next={quote(path)}".encode()
    await send(
        {"type": "http.response.start", "status": 303, "headers": [(b"location", place), (b"content-length", b"0")]}
    )
    await send({"type": "http.response.body", "body": b""})


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
            headers = list(message.get("headers", []))
            lasting = any(name == b"cache-control" for name, _ in headers)
            message["headers"] = headers + (_HEADERS if lasting else [*_HEADERS, (b"cache-control", b"no-store")])
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
