"""What every request has to pass before anything else: host, token, kind and size of its body."""

import functools
import ipaddress
import threading
import time
from contextlib import suppress
from http import HTTPStatus
from urllib.parse import quote

import anyio.to_thread

from mfbandit._internal.limits import MAX_BODY_BYTES, MAX_BODY_LENGTH_DIGITS
from mfbandit.errors import StoreError
from mfbandit.service.asgi import ACTOR, App, Message, Receive, Scope, Send, send_problem
from mfbandit.service.error_handlers import log_internal_error, request_name
from mfbandit.service.peers import (
    MISDIRECTED,
    PASSED_ON,
    PEER_HEADER,
    actor_from_peer,
    address_from_peer,
    is_from_peer,
)
from mfbandit.service.problem_details import SERVICE_HEADER, ProblemDetail, problem_of
from mfbandit.service.public_address import ADDRESS, Headers, ProxySettings, PublicAddress, origin_of
from mfbandit.store import Sessions, Store, acting_as
from mfbandit.store.tokens import Token

PATHS_WITHOUT_TOKEN = {  # no data there
    *("/api", "/health", "/ready", "/openapi.json", "/favicon.ico", "/sign-in", "/sign-out")
}
LOOK_AGAIN_SECONDS = 0.25  # between two looks for tokens that other services have made
ONLY_AGAIN = "mfbandit.only_again"  # in the scope of a request without a token that must have come before
CLOSED = (
    "no token is left: stop the service, make one on its machine with `mfbandit token create STORE --scope admin`, "
    "and start it again"
)
_SECURITY_HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
        b"form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    ),
    (b"referrer-policy", b"same-origin"),  # with no-referrer, browsers would not say where our own forms come from
    (SERVICE_HEADER.encode(), b"1"),
]


class SecurityMiddleware:
    """Refuse requests that may not pass, and add security headers to every answer.

    Args:
        app: the ASGI application that gets the requests that pass.
        store: whose tokens count.
        sessions: of people who signed in.
        proxy: the proxies in front of the service.
        loopback: whether the service listens on loopback alone. Then a page of another site that a browser has open
            must not reach it under a name of its own.
        max_body_bytes: the largest body.
    """

    def __init__(
        self,
        app: App,
        store: Store,
        *,
        sessions: Sessions,
        proxy: ProxySettings,
        loopback: bool = True,
        max_body_bytes: int = MAX_BODY_BYTES,
    ) -> None:
        self._app, self._store, self._sessions, self._proxy = app, store, sessions, proxy
        self._loopback, self._max_body_bytes = loopback, max_body_bytes
        self._looking, self._looked_at = threading.Lock(), -1e9

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer it with a problem."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers: Headers = dict(scope["headers"])
        path = self._proxy.route(scope["path"])
        if PEER_HEADER in headers:
            await self._pass_on_from_peer(scope, headers, path, receive, send)
            return
        address = scope[ADDRESS] = self._proxy.address_of(scope, headers)
        send = _with_security_headers(send)
        problem = self._problem(scope, headers, path)
        if problem is not None and problem.status == HTTPStatus.UNAUTHORIZED and self._store.fleet is not None:
            await anyio.to_thread.run_sync(self._look_again)  # another service may have made the token
            problem = self._problem(scope, headers, path)
        if problem is not None and problem.status == HTTPStatus.UNAUTHORIZED and _is_page(scope, headers, path):
            await _redirect_to_sign_in(send, address.root_path, path)
        elif problem is not None:
            await send_problem(send, problem)
        else:
            # The server reads no more than the length that a request gives.
            counted = b"content-length" not in headers or b"transfer-encoding" in headers
            with acting_as(scope.get(ACTOR)):
                await (self._pass_on_counted if counted else self._app)(_as_published(scope, path), receive, send)

    async def _pass_on_from_peer(self, scope: Scope, headers: Headers, path: str, receive: Receive, send: Send) -> None:
        """Answer what another service has checked and passed on; refuse what was meant for somebody else."""
        fleet = self._store.fleet
        if fleet is None or not is_from_peer(headers, fleet.secret):
            detail = "the request was passed on to another service than this one"
            await send_problem(send, ProblemDetail(MISDIRECTED, 421, "Another service", detail))
            return
        address = scope[ADDRESS] = address_from_peer(headers)
        scope[PASSED_ON], scope[ACTOR] = True, actor_from_peer(headers)
        session = "" if is_api(path) else session_of(headers, address)
        if session and self._sessions.token(session) is None:
            await anyio.to_thread.run_sync(self._look_again)  # it was started at the other service
        with acting_as(scope[ACTOR]):
            await self._app(_as_published(scope, path), receive, send)

    def _look_again(self) -> None:
        """Read the tokens and sessions again that other services have made; not at each wrong request, though."""
        with self._looking:
            if time.monotonic() - self._looked_at > LOOK_AGAIN_SECONDS:
                with suppress(StoreError):
                    self._store.refresh_tokens()
                    self._sessions.refresh()
                self._looked_at = time.monotonic()

    def _problem(self, scope: Scope, headers: Headers, path: str) -> ProblemDetail | None:
        try:
            return (
                self._host_problem(scope[ADDRESS])
                or self._token_problem(scope, headers, path)
                or _body_kind_problem(scope, headers, path)
                or self._length_problem(headers)
            )
        except StoreError as error:  # the tokens cannot be read
            return problem_of(error)
        except Exception as error:
            return log_internal_error(error, request_name(scope))

    def _host_problem(self, address: PublicAddress) -> ProblemDetail | None:
        host = _host(address.host)
        anywhere = not self._loopback and not self._proxy.allowed_hosts
        if anywhere or is_loopback(host) or self._proxy.allows(host):
            return None
        detail = f"the Host header must name this machine or a host that --allowed-host named, got {host!r}"
        return ProblemDetail("host", 421, "Wrong host", detail)

    def _token_problem(self, scope: Scope, headers: Headers, path: str) -> ProblemDetail | None:
        if path in PATHS_WITHOUT_TOKEN or path.startswith("/static/"):
            return None
        if self._loopback and not self._proxy.public and not self._store.needs_token():
            return None  # on this machine alone, until the first token is made
        if not self._store.tokens():
            return _unauthorized(CLOSED)
        if self._repeats_first_token(scope, headers, path):
            scope[ONLY_AGAIN] = True  # the route takes nothing else
            return None
        return self._visitor_problem(scope, headers, path)

    def _visitor_problem(self, scope: Scope, headers: Headers, path: str) -> ProblemDetail | None:
        token, wrong = self._visitor(headers, path, scope[ADDRESS])
        if token is None:
            return _unauthorized(wrong)
        scope[ACTOR] = token.name
        scope_needed = needed_scope(scope["method"], path)
        if not token.allows(scope_needed):
            detail = f"the token must have scope {scope_needed}, got {token.scope}"
            return ProblemDetail("not-allowed", 403, "Not allowed", detail)
        return None

    def _repeats_first_token(self, scope: Scope, headers: Headers, path: str) -> bool:
        """Tell whether somebody may be without a token because the answer with the first one was lost."""
        if (scope["method"], path) != ("POST", "/api/tokens") or bearer_of(headers):
            return False
        return self._loopback and not self._proxy.public and self._store.first_token_may_be_lost()

    def _visitor(self, headers: Headers, path: str, address: PublicAddress) -> tuple[Token | None, str]:
        """Return the token of whoever asks; without one, what is wrong."""
        # A browser sends cookies by itself, so only pages take them; programs say who they are.
        session = "" if is_api(path) else session_of(headers, address)
        if session:
            return self._sessions.token(session), "the session has ended: sign in again"
        text = bearer_of(headers)
        wrong = "the token is not one of this store's" if text else "a token is needed: Authorization: Bearer mfb_..."
        return self._store.token(text), wrong

    def _length_problem(self, headers: Headers) -> ProblemDetail | None:
        length = headers.get(b"content-length", b"0")
        if length.isdigit() and len(length) <= MAX_BODY_LENGTH_DIGITS and int(length) <= self._max_body_bytes:
            return None
        return self._too_large()

    def _too_large(self) -> ProblemDetail:
        detail = f"a body must have at most {self._max_body_bytes:,} bytes"
        return ProblemDetail("too-large", 413, "Body too large", detail)

    async def _pass_on_counted(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Count the body while it comes in: not every request says its length."""
        seen, started = 0, False

        async def counted() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > self._max_body_bytes:
                raise _TooLarge
            return message

        async def watched(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await self._app(scope, counted, watched)
        except _TooLarge:
            if not started:
                await send_problem(send, self._too_large())


class _TooLarge(BaseException):
    """The body is too large. Not an Exception, so that nobody on the way takes it for an error of their own."""


def is_api(path: str) -> bool:
    """Tell whether a path is for programs; the others are pages.

    >>> is_api("/api/experiments"), is_api("/metrics"), is_api("/experiments/ads")
    (True, True, False)
    """
    return path in ("/api", "/metrics") or path.startswith("/api/")


def _as_published(scope: Scope, path: str) -> Scope:
    """Let routes see the address that the sender knows: links and cookies are made from it."""
    address: PublicAddress = scope[ADDRESS]
    if not address.root_path and address.scheme == scope.get("scheme"):
        return scope
    root = address.root_path
    raw = f"{root}{quote(path)}".encode()
    return {**scope, "scheme": address.scheme, "root_path": root, "path": f"{root}{path}", "raw_path": raw}


def _is_page(scope: Scope, headers: Headers, path: str) -> bool:
    """Tell whether somebody opens a page; an update of one that is open (by htmx) would show the answer inside."""
    return scope["method"] == "GET" and not is_api(path) and b"hx-request" not in headers


def bearer_of(headers: Headers) -> str:
    """Return the token in the Authorization header; empty if there is none.

    >>> bearer_of({b"authorization": b"Bearer mfb_x"})
    'mfb_x'
    """
    kind, _, text = headers.get(b"authorization", b"").partition(b" ")
    return text.strip().decode("latin-1") if kind.lower() == b"bearer" else ""


def session_of(headers: Headers, address: PublicAddress) -> str:
    """Return the session in a page's cookie; empty if there is none.

    >>> session_of({b"cookie": b"a=b; mfbandit=0a1b_x"}, PublicAddress("http", "localhost"))
    '0a1b_x'
    """
    for part in headers.get(b"cookie", b"").split(b";"):
        name, _, value = part.strip().partition(b"=")
        if name == address.cookie.encode():
            return value.decode("latin-1")
    return ""


def _body_kind_problem(scope: Scope, headers: Headers, path: str) -> ProblemDetail | None:
    if scope["method"] not in ("POST", "PUT", "PATCH"):
        return None
    return _json_problem(headers) if is_api(path) else _form_problem(headers, scope[ADDRESS])


def _json_problem(headers: Headers) -> ProblemDetail | None:
    # Browsers send other kinds across sites without asking.
    if _content_type(headers) == b"application/json":
        return None
    return ProblemDetail("media-type", 415, "Wrong kind of body", "the body must be application/json")


def _form_problem(headers: Headers, address: PublicAddress) -> ProblemDetail | None:
    """Refuse forms that do not come from this service's own pages; the cookie is not sent across sites either."""
    if _content_type(headers) not in (b"application/x-www-form-urlencoded", b""):
        detail = "a form must be application/x-www-form-urlencoded"
        return ProblemDetail("media-type", 415, "Wrong kind of body", detail)
    origin = headers.get(b"origin", b"").decode("latin-1")
    if origin_of(origin) == address.origin:
        return None
    detail = f"a form must be sent from a page of this service, {address.origin}, got {origin!r}"
    if origin_of(origin).partition("://")[2] == address.origin.partition("://")[2]:
        detail += "; --trusted-proxy must name the proxy that serves TLS"
    return ProblemDetail("origin", 403, "Wrong origin", detail)


def _content_type(headers: Headers) -> bytes:
    return headers.get(b"content-type", b"").split(b";")[0].strip().lower()


async def _redirect_to_sign_in(send: Send, root: str, path: str) -> None:
    place = f"{root}/sign-in?next={quote(path)}".encode()
    headers = [(b"location", place), (b"content-length", b"0")]
    await send({"type": "http.response.start", "status": 303, "headers": headers})
    await send({"type": "http.response.body", "body": b""})


def needed_scope(method: str, path: str) -> str:
    """Return the scope that a request needs.

    >>> [needed_scope("GET", "/api/experiments"), needed_scope("POST", "/api/experiments/ads/tell")]
    ['read', 'write']
    >>> needed_scope("GET", "/api/tokens")
    'admin'
    """
    if path.startswith("/api/tokens") or method == "DELETE":
        return "admin"
    return "read" if method in ("GET", "HEAD") else "write"


@functools.lru_cache(maxsize=100)
def is_loopback(host: str) -> bool:
    """Tell whether a host is this machine, and no other can reach it by that name.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("::1"), is_loopback("0.0.0.0")
    (True, True, True, False)
    """
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:  # a name
        return False


def _host(text: str) -> str:
    if text.startswith("["):
        return text[1:].partition("]")[0]
    return text.rpartition(":")[0] if text.count(":") == 1 else text


def _unauthorized(detail: str) -> ProblemDetail:
    return ProblemDetail("unauthorized", 401, "Token needed", detail)


def _with_security_headers(send: Send) -> Send:
    async def secured(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = [*message.get("headers", []), *_SECURITY_HEADERS]
            cached = any(name == b"cache-control" for name, _ in headers)
            message["headers"] = headers if cached else [*headers, (b"cache-control", b"no-store")]
        await send(message)

    return secured
