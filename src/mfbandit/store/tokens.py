"""Bearer tokens: long random words that open a service, kept as hashes."""

import hashlib
import hmac
import secrets
from dataclasses import dataclass

from mfbandit.errors import InvalidArgument

SCOPES = ("read", "write", "admin")  # each may do what those before it may
LONGEST_NAME = 64


@dataclass(frozen=True)
class Token:
    """What is kept of a token: enough to know it again, not enough to use it.

    Args:
        id: its public part.
        name: what people call it.
        hash: SHA-256 of the whole token; it has 256 random bits, so a slow hash would add nothing.
        scope: read, write (asks, tells and controls) or admin (deletes experiments, makes tokens).
        created: seconds since 1970.
    """

    id: str
    name: str
    hash: str
    scope: str
    created: float

    def allows(self, scope: str) -> bool:
        """Whether it may do what needs this scope.

        >>> Token("a", "ci", "", "read", 0.0).allows("write")
        False
        """
        return self.scope in SCOPES and SCOPES.index(self.scope) >= SCOPES.index(scope)

    def matches(self, text: str) -> bool:
        """Whether this is the token, in a time that does not depend on where they differ."""
        return hmac.compare_digest(self.hash, _hash(text))


def new_token(name: str, scope: str, now: float) -> tuple[str, Token]:
    """A new token: the text, to be shown once, and what is kept of it.

    >>> text, token = new_token("ci", "write", now=0.0)
    >>> token.matches(text), token.matches(text + "x"), token.allows("read")
    (True, False, True)
    >>> new_token("ci", "root", now=0.0)
    Traceback (most recent call last):
    mfbandit.errors.InvalidArgument: scope must be one of read, write, admin, got 'root'
    """
    if scope not in SCOPES:
        raise InvalidArgument(f"scope must be one of {', '.join(SCOPES)}, got {scope!r}")
    if not isinstance(name, str) or not 0 < len(name) <= LONGEST_NAME or not name.isprintable():
        raise InvalidArgument(f"a token's name must be 1 to {LONGEST_NAME} printable characters, got {name!r}")
    public, secret = secrets.token_hex(4), secrets.token_urlsafe(32)
    text = f"mfb_{public}_{secret}"
    return text, Token(public, name, _hash(text), scope, now)


def public_part(text: str) -> str:
    """The id in a token's text, or nothing if it cannot be one.

    >>> public_part("mfb_0a1b2c3d_secret"), public_part("hello")
    ('0a1b2c3d', '')
    """
    parts = text.split("_", 2)
    return parts[1] if len(parts) == 3 and parts[0] == "mfb" else ""  # noqa: PLR2004 - its three parts


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()
