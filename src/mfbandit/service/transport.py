"""Requests to a service, sent again where no answer came."""

import os
import random
import time
import uuid
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, urlsplit, urlunsplit

from mfbandit._internal.imports import need
from mfbandit._internal.typing import JSON, JSONObject
from mfbandit._internal.validation import positive
from mfbandit.errors import InvalidArgument, MFBanditError, StoreError, StoreUnavailable
from mfbandit.service.problem_details import SERVICE_HEADER, error_of

if TYPE_CHECKING:
    import httpx

RETRIED_STATUSES = (HTTPStatus.BAD_GATEWAY, HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.GATEWAY_TIMEOUT)
FIRST_PAUSE_SECONDS, MAX_PAUSE_SECONDS = 0.05, 2.0  # between attempts
CONNECT_TIMEOUT_SECONDS, ANSWER_TIMEOUT_SECONDS = 5.0, 30.0
FIRST_ANSWER_TIMEOUT_SECONDS = 4.0  # where there is another service to turn to; it doubles with each attempt


def new_key() -> str:
    """Make up a request key, which names a request however often it is sent.

    >>> new_key() == new_key()
    False
    """
    return uuid.uuid4().hex


class Connections:
    """The connections to a service, or to several that share a database; opened when first used.

    Threads share them. Each process has its own, as connections must not be shared after a fork.

    Args:
        url: the address of the service; of several, with commas between them.
        token: a bearer token, if the service has any.

    >>> connections = Connections("http://10.0.0.5:8000, http://10.0.0.6:8000", None)
    >>> connections.turn_from("http://10.0.0.5:8000")
    >>> connections.url, connections.several
    ('http://10.0.0.6:8000', True)
    """

    def __init__(self, url: str, token: str | None) -> None:
        given = [part.strip() for part in url.split(",")] if isinstance(url, str) else [url]
        self._urls, self._token = [checked_url(one) for one in given], _checked_token(token)
        self._at = 0
        self._clients: dict[tuple[int, str], httpx.Client] = {}  # by process and address

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_clients": {}}

    @property
    def url(self) -> str:
        """The address that requests go to now."""
        return self._urls[self._at % len(self._urls)]

    @property
    def several(self) -> bool:
        """Whether there is another address to turn to."""
        return len(self._urls) > 1

    def turn_from(self, url: str) -> None:
        """Turn to the next address, unless another thread has done so."""
        if self.url == url:
            self._at = (self._at + 1) % len(self._urls)

    def client(self, url: str) -> "httpx.Client":
        """Return the client of this process for an address."""
        client = self._clients.get((os.getpid(), url))
        if client is None:
            made = _new_client(url, self._token)
            client = self._clients.setdefault((os.getpid(), url), made)  # one step, which needs no lock
            if client is not made:  # another thread was faster
                made.close()
        return client

    def close(self) -> None:
        """Close the connections of this process; later requests open new ones."""
        for url in self._urls:
            client = self._clients.pop((os.getpid(), url), None)
            if client is not None:
                client.close()


class Transport:
    """Requests over connections, each sent again until it is answered or patience ends.

    Args:
        connections: to the service.
        patience: seconds for which a request that is not answered is sent again.

    >>> Transport(Connections("http://127.0.0.1:8000/", None), patience=60).url
    'http://127.0.0.1:8000'
    """

    def __init__(self, connections: Connections, *, patience: float) -> None:
        self._connections, self._patience = connections, positive("patience", patience)

    @property
    def url(self) -> str:
        """The address of the service."""
        return self._connections.url

    def get(self, path: str, **query: str | int | float) -> JSON:
        """Return the answer to a GET request."""
        return self._send("GET", path, query=query)

    def post(self, path: str, body: JSONObject | None = None) -> JSON:
        """Return the answer to a POST request."""
        return self._send("POST", path, body=body or {})

    def delete(self, path: str, *, gone: type[MFBanditError], **query: str) -> None:
        """Ask for something to be deleted.

        Args:
            path: what to delete.
            gone: the error that says that it is not there. From the second attempt on that is fine: the first one
                deleted it, and its answer was lost.
            query: parameters of the request.
        """
        self._send("DELETE", path, query=query, gone=gone)

    def with_patience(self, seconds: float) -> "Transport":
        """Return a transport over the same connections that gives requests up after so many seconds."""
        return Transport(self._connections, patience=min(positive("seconds", seconds), self._patience))

    def close(self) -> None:
        """Close the connections."""
        self._connections.close()

    def _send(
        self,
        method: str,
        path: str,
        *,
        body: JSONObject | None = None,
        query: dict[str, Any] | None = None,
        gone: type[MFBanditError] | None = None,
    ) -> JSON:
        end, pause, attempts = time.monotonic() + self._patience, FIRST_PAUSE_SECONDS, 0
        while True:
            attempts += 1
            url = self._connections.url
            try:
                return self._send_once(url, method, path, body, query, self._timeout(attempts))
            except StoreUnavailable as error:
                self._connections.turn_from(url)
                if time.monotonic() + pause > end:
                    raise type(error)(f"{error}; tried {attempts} times in {self._patience:g} s") from None
            except MFBanditError as error:
                if gone is None or not isinstance(error, gone) or attempts == 1:
                    raise
                return None
            time.sleep(pause * random.uniform(0.5, 1.0))  # noqa: S311 - so that clients do not all come at once
            pause = min(2 * pause, MAX_PAUSE_SECONDS)

    def _timeout(self, attempts: int) -> float:
        """How long to wait for an answer, in seconds: not so long where another service can be asked as well."""
        if not self._connections.several:
            return ANSWER_TIMEOUT_SECONDS
        return min(ANSWER_TIMEOUT_SECONDS, FIRST_ANSWER_TIMEOUT_SECONDS * 2.0 ** (attempts - 1))

    def _send_once(
        self, url: str, method: str, path: str, body: JSONObject | None, query: dict[str, Any] | None, seconds: float
    ) -> JSON:
        client = self._connections.client(url)
        import httpx  # an extra, which the client was made with

        timeout = httpx.Timeout(seconds, connect=CONNECT_TIMEOUT_SECONDS)
        try:
            answer = client.request(method, path, json=body, params=query, timeout=timeout)
        except httpx.RequestError as error:
            raise StoreUnavailable(f"{url} cannot be reached: {str(error) or type(error).__name__}") from None
        except RuntimeError:
            if not client.is_closed:
                raise
            raise StoreUnavailable(f"the connection to {url} was closed meanwhile") from None
        return _content(answer, url)


def _new_client(url: str, token: str | None) -> "httpx.Client":
    need("httpx", "connect", "service")
    import httpx

    headers = {} if token is None else {"authorization": f"Bearer {token}"}
    return httpx.Client(base_url=url, headers=headers)


def _content(answer: "httpx.Response", url: str) -> JSON:
    code = answer.status_code
    try:
        content = answer.json()
    except ValueError:
        if code in RETRIED_STATUSES:
            raise StoreUnavailable(f"{url} answered with status {code}") from None
        raise StoreError(f"{url} is not an mfbandit service: its answer (status {code}) is not JSON") from None
    if answer.is_success:
        if SERVICE_HEADER not in answer.headers:
            raise StoreError(f"{url} is not an mfbandit service: its answer has no header {SERVICE_HEADER}")
        return content
    error = error_of(content) if isinstance(content, dict) else StoreError(str(content))
    if code in RETRIED_STATUSES and not isinstance(error, StoreUnavailable):
        raise StoreUnavailable(str(error))
    raise error


def checked_url(url: str) -> str:
    """Return the address of a service as requests begin with it, or refuse it.

    >>> checked_url("http://127.0.0.1:8000/")
    'http://127.0.0.1:8000'
    """
    try:
        parts = urlsplit(url) if isinstance(url, str) else None
        if parts is not None and parts.scheme in ("http", "https") and parts.hostname and parts.port != 0:
            return _plain_address(parts)
    except InvalidArgument:
        raise
    except ValueError:  # such as a port beyond 65535
        pass
    raise InvalidArgument(f"url must begin with http:// or https:// and name a host, got {url!r}")


def _plain_address(parts: SplitResult) -> str:
    """Return scheme, host and the prefix of a proxy; refuse what would be lost or shown in messages."""
    if "@" in parts.netloc:
        raise InvalidArgument("url must have no user and password, not shown here: a token goes into token=")
    if parts.query or parts.fragment:
        rule = "end with the path of the service, without ? and #"
        raise InvalidArgument(f"url must {rule}, got {urlunsplit(parts)!r}")
    return urlunsplit(parts).rstrip("/")


def _checked_token(token: str | None) -> str | None:
    """Return a token as it can be sent: one read from a file may end in a new line. Errors do not show it."""
    text = None if token is None else token.strip()
    if text is not None and not (text and text.isascii() and text.isprintable()):
        raise InvalidArgument("token must be printable ASCII characters, at least one; got others, not shown here")
    return text
