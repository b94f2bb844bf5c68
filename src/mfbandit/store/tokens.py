"""Bearer tokens: long random texts that open a service, kept as hashes."""

import hashlib
import hmac
import secrets
from dataclasses import dataclass

from mfbandit._internal.limits import MAX_TOKEN_NAME_LENGTH
from mfbandit.errors import InvalidArgument

SCOPES = ("read", "write", "admin")  # each may do what those before it may
SECRET_BYTES = 32


@dataclass(frozen=True)
class Token:
    """What is kept of a token: enough to recognize it, not enough to use it.

    Args:
        id: its public part.
        name: what people call it.
        hash: SHA-256 of the whole token; it has 256 random bits, so a slow hash would add nothing.
        scope: read, write (asks, tells and controls) or admin (deletes experiments, creates tokens).
        created: seconds since 1970.
    """

    id: str
    name: str
    hash: str
    scope: str
    created: float

    def allows(self, scope: str) -> bool:
        """Tell whether it allows what needs this scope.

        >>> Token("a", "ci", "", "read", 0.0).allows("write")
        False
        """
        return self.scope in SCOPES and SCOPES.index(self.scope) >= SCOPES.index(scope)

    def matches(self, text: str) -> bool:
        """Tell whether this is the token, in a time that does not depend on where they differ."""
        return hmac.compare_digest(self.hash, _hash(text))


def new_token(name: str, scope: str, now: float, public: str | None = None) -> tuple[str, Token]:
    """Create a token: return its text, to be shown once, and what is kept of it.

    Args:
        name: what people call it.
        scope: read, write or admin.
        now: seconds since 1970.
        public: its id; made up if none is given.

    >>> text, token = new_token("ci", "write", now=0.0)
    >>> token.matches(text), token.matches(text + "x"), token.allows("read")
    (True, False, True)
    >>> new_token("ci", "root", now=0.0)
    Traceback (most recent call last):
    mfbandit.errors.InvalidArgument: scope must be one of read, write, admin, got 'root'
    """
    if scope not in SCOPES:
        raise InvalidArgument(f"scope must be one of {', '.join(SCOPES)}, got {scope!r}")
    if not isinstance(name, str) or not 0 < len(name) <= MAX_TOKEN_NAME_LENGTH or not name.isprintable():
        raise InvalidArgument(f"a token's name must be 1 to {MAX_TOKEN_NAME_LENGTH} printable characters, got {name!r}")
    public = public or secrets.token_hex(4)
    secret = secrets.token_urlsafe(SECRET_BYTES)
    text = f"mfb_{public}_{secret}"
    return text, Token(public, name, _hash(text), scope, now)


def public_part(text: str) -> str:
    """Return the id in a token's text; empty if the text cannot be a token.

    >>> public_part("mfb_0a1b2c3d_secret"), public_part("hello")
    ('0a1b2c3d', '')
    """
    match text.split("_", 2):
        case ["mfb", public, _]:
            return public
    return ""


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()
