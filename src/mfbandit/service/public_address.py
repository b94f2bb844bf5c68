"""Where people find the service: scheme, host and path as a browser sees them, also behind a proxy."""

import functools
import ipaddress
import re
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from mfbandit.errors import InvalidArgument
from mfbandit.service.asgi import Scope

Headers = dict[bytes, bytes]

ADDRESS = "mfbandit.address"  # of a request, in its scope
DEFAULT_PORTS = {"http": ":80", "https": ":443"}
# The first parts of our own routes: after a prefix like one of these, nobody could tell whether it was taken off.
OWN_PARTS = {
    "api",
    "experiments",
    "favicon.ico",
    "health",
    "live",
    "metrics",
    "openapi.json",
    "ready",
    "sign-in",
    "sign-out",
    "static",
}
_HOST_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?")
_ROOT_PATH = re.compile(r"(/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)+")


@dataclass(frozen=True)
class PublicAddress:
    """The address of the service as the sender of a request knows it.

    Args:
        scheme: http or https.
        host: name and port, as in a Host header.
        root_path: what comes before every path; empty, or such as /bandits.

    >>> PublicAddress("https", "ads.example.org:443", "/bandits").origin
    'https://ads.example.org'
    """

    scheme: str
    host: str
    root_path: str = ""

    @property
    def secure(self) -> bool:
        """Whether it is reached by TLS."""
        return self.scheme == "https"

    @property
    def origin(self) -> str:
        """What browsers call the origin of its pages."""
        return f"{self.scheme}://{self.host.lower().removesuffix(DEFAULT_PORTS.get(self.scheme, ''))}"

    @property
    def cookie(self) -> str:
        """The name of its cookie; by the name, browsers refuse one that was not set by this host and by TLS.

        >>> [PublicAddress(scheme, "a", root).cookie for scheme, root in [("http", ""), ("https", ""), ("https", "/b")]]
        ['mfbandit', '__Host-mfbandit', '__Secure-mfbandit']
        """
        if not self.secure:
            return "mfbandit"
        return "__Secure-mfbandit" if self.root_path else "__Host-mfbandit"  # the second is for the path / alone


@dataclass(frozen=True)
class ProxySettings:
    """What a service has to know of the proxies in front of it.

    Args:
        root_path: what public addresses have before every path, such as /bandits; the proxy may take it off or not.
        allowed_hosts: names, beside those of this machine, under which people reach the service.
        trusted_proxies: addresses or networks whose X-Forwarded-Proto and X-Forwarded-Host headers are believed.

    >>> settings = ProxySettings("/bandits", ["ads.example.org"], ["127.0.0.1"])
    >>> settings.route("/bandits/api"), settings.route("/api"), settings.allows("ADS.example.org")
    ('/api', '/api', True)
    >>> ProxySettings(allowed_hosts=["https://ads.example.org"])
    Traceback (most recent call last):
    mfbandit.errors.InvalidArgument: allowed_hosts must be names of hosts without scheme, port or path, got
        'https://ads.example.org'
    """

    root_path: str = ""
    allowed_hosts: Sequence[str] = ()
    trusted_proxies: Sequence[str] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "root_path", _root_path(self.root_path))
        object.__setattr__(self, "allowed_hosts", tuple(_host_name(name) for name in _texts(self.allowed_hosts)))
        object.__setattr__(self, "trusted_proxies", tuple(_network(text) for text in _texts(self.trusted_proxies)))

    @property
    def public(self) -> bool:
        """Whether others can reach the service, through a proxy."""
        return bool(self.allowed_hosts or self.trusted_proxies)

    def allows(self, host: str) -> bool:
        """Tell whether people may reach the service under this name."""
        return host.lower() in self.allowed_hosts

    def route(self, path: str) -> str:
        """Return a path without the prefix, whether or not the proxy has taken it off."""
        if path == self.root_path:
            return "/"
        return path.removeprefix(self.root_path) if path.startswith(f"{self.root_path}/") else path

    def address_of(self, scope: Scope, headers: Headers) -> PublicAddress:
        """Return the address that a request was sent to, as its sender knows it."""
        scheme, host = str(scope.get("scheme", "http")), headers.get(b"host", b"").decode("latin-1")
        if self.trusted_proxies and self._is_trusted((scope.get("client") or ("",))[0]):
            proto = _last(headers, b"x-forwarded-proto").lower()
            scheme = proto if proto in DEFAULT_PORTS else scheme
            host = _last(headers, b"x-forwarded-host") or host
        return PublicAddress(scheme, host, self.root_path)

    def _is_trusted(self, address: str) -> bool:
        return any(_is_in(address, network) for network in self.trusted_proxies)


@functools.lru_cache(maxsize=1000)
def _is_in(address: str, network: str) -> bool:
    try:
        found = ipaddress.ip_address(address)
        return (getattr(found, "ipv4_mapped", None) or found) in ipaddress.ip_network(network)
    except ValueError:  # a socket without an address
        return False


def _last(headers: Headers, name: bytes) -> str:
    """Return what the nearest proxy has said: it adds to what it got."""
    return headers.get(name, b"").decode("latin-1").rpartition(",")[2].strip()


def _texts(given: Sequence[str]) -> Sequence[str]:
    return [given] if isinstance(given, str) else given


def _root_path(text: str) -> str:
    path = text.rstrip("/")
    if path and not _ROOT_PATH.fullmatch(path):
        raise InvalidArgument(f"root_path must be a path such as /bandits, got {text!r}")
    if path.split("/")[1:2] and path.split("/")[1] in OWN_PARTS:
        raise InvalidArgument(f"root_path must not begin like a path of the service, got {text!r}")
    return path


def _host_name(text: str) -> str:
    name = text.lower().removeprefix("[").removesuffix("]")
    try:
        return str(ipaddress.ip_address(name))
    except ValueError:
        if _HOST_NAME.fullmatch(name):
            return name
    raise InvalidArgument(f"allowed_hosts must be names of hosts without scheme, port or path, got {text!r}")


def _network(text: str) -> str:
    try:
        return str(ipaddress.ip_network(text))
    except ValueError as error:
        rule = "addresses or networks, such as 127.0.0.1 or 10.0.0.0/8"
        raise InvalidArgument(f"trusted_proxies must be {rule}, got {text!r} ({error})") from None


def origin_of(text: str) -> str:
    """Return an Origin header in the form of :attr:`PublicAddress.origin`; empty where it is none.

    >>> origin_of("HTTPS://Ads.example.org:443"), origin_of("null")
    ('https://ads.example.org', '')
    """
    try:
        parts = urlsplit(text)
    except ValueError:  # such as http://[
        return ""
    return PublicAddress(parts.scheme, parts.netloc).origin if parts.scheme and parts.netloc else ""
