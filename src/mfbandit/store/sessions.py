"""Sessions of people who signed in with a token: random texts, of which a store keeps the hashes."""

import hashlib
import hmac
import json
import secrets
import threading
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mfbandit._internal.limits import MAX_SESSIONS_PER_TOKEN, SESSION_SECONDS
from mfbandit.store.tokens import SECRET_BYTES, Token

if TYPE_CHECKING:
    from mfbandit.store.database import Connection
    from mfbandit.store.store import Store

ID_BYTES = 8
KEY = "session:"  # begins the keys of sessions among the facts of a store


@dataclass(frozen=True)
class Session:
    """What is kept of a session: enough to recognize it, not enough to use it.

    Args:
        id: its public part.
        hash: SHA-256 of the whole text; it has 256 random bits, so a slow hash would add nothing.
        token: the id of the token that it was started with.
        ends: seconds since 1970.
    """

    id: str
    hash: str
    token: str
    ends: float

    def matches(self, text: str) -> bool:
        """Tell whether this is the session, in a time that does not depend on where they differ.

        >>> Session("0a", _hash("0a_secret"), "0a1b2c3d", 0.0).matches("0a_secret")
        True
        """
        return hmac.compare_digest(self.hash, _hash(text))


class Sessions:
    """The sessions of a service. They survive its restart, and end with their token.

    A session ends a fixed time after it was started, however much it is used. A token has a limited number of them: the
    one that would end first makes room for the next.

    Args:
        store: whose tokens they are started with, and where they are kept; open for writing.

    >>> import tempfile
    >>> from mfbandit.store import Store
    >>> with tempfile.TemporaryDirectory() as folder, Store(f"{folder}/ads.db") as store:
    ...     sessions, token = Sessions(store), store.token(store.create_token("me", "read"))
    ...     text = sessions.start(token)
    ...     name = sessions.token(text).name
    ...     sessions.end(text)
    ...     name, sessions.token(text)
    ('me', None)
    """

    def __init__(self, store: "Store") -> None:
        self._store = store
        self._lock = threading.Lock()
        self._sessions = _kept(store)

    def start(self, token: Token) -> str:
        """Start a session and return its text, which is shown once; only its hash is kept.

        Args:
            token: whose scope it has.
        """
        public = secrets.token_hex(ID_BYTES)
        text = f"{public}_{secrets.token_urlsafe(SECRET_BYTES)}"
        session = Session(public, _hash(text), token.id, self._store.clock() + SESSION_SECONDS)
        with self._lock:
            over = self._over(token.id)
            self._store.writer().submit(lambda connection: _exchange(connection, over, session)).wait()
            for one in over:
                self._sessions.pop(one, None)
            self._sessions[public] = session
        return text

    def token(self, text: str) -> Token | None:
        """Return the token that a session was started with, if the session has not ended."""
        session = self._sessions.get(text.partition("_")[0])
        if session is None or not session.matches(text) or session.ends <= self._store.clock():
            return None
        return self._store.tokens().get(session.token)

    def refresh(self) -> None:
        """Read the sessions again: another service may have started one."""
        with self._lock:
            self._sessions = _kept(self._store)

    def end(self, text: str) -> None:
        """End a session, if the text is of one."""
        session = self._sessions.get(text.partition("_")[0])
        if session is None or not session.matches(text):
            return
        with self._lock:
            self._sessions.pop(session.id, None)  # first: nobody gets in by it, even if the disk is full
            self._store.writer().submit(lambda connection: _remove(connection, [session.id])).wait()

    def _over(self, token: str) -> list[str]:
        """Sessions that ended by themselves, and those of this token that have to make room for one more."""
        now, tokens = self._store.clock(), self._store.tokens()
        ended = [one.id for one in self._sessions.values() if one.ends <= now or one.token not in tokens]
        of_token = sorted(
            (one for one in self._sessions.values() if one.token == token and one.id not in ended),
            key=lambda one: one.ends,
        )
        room = [one.id for one in of_token[: max(0, len(of_token) - MAX_SESSIONS_PER_TOKEN + 1)]]
        return ended + room


def _kept(store: "Store") -> dict[str, Session]:
    with closing(store.read()) as connection:
        rows = connection.query("SELECT key, value FROM mfbandit_store WHERE key LIKE ?", (f"{KEY}%",))
    sessions = (_session(key.removeprefix(KEY), value) for key, value in rows)
    return {session.id: session for session in sessions if session is not None}


def _session(public: str, text: str) -> Session | None:
    """Read a session; whoever has one that cannot be read signs in again."""
    try:
        record = json.loads(text)
        return Session(public, str(record["hash"]), str(record["token"]), float(record["ends"]))
    except (ValueError, KeyError, TypeError):
        return None


def _exchange(connection: "Connection", over: list[str], session: Session) -> None:
    _remove(connection, over)
    record = json.dumps({"hash": session.hash, "token": session.token, "ends": session.ends})
    connection.insert("mfbandit_store", ("key", "value"), [(KEY + session.id, record)])


def _remove(connection: "Connection", sessions: list[str]) -> None:
    for one in sessions:
        connection.run("DELETE FROM mfbandit_store WHERE key = ?", (KEY + one,))


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()
