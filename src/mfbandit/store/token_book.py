"""The tokens of a store: made, used and revoked, and read again now and then."""

import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress
from typing import Any, Protocol

from mfbandit.errors import Conflict, InvalidArgument, NotAllowed, StoreError
from mfbandit.store.database import Connection
from mfbandit.store.request_keys import request_text
from mfbandit.store.store_requests import keep_request
from mfbandit.store.tokens import Token, new_token, public_part
from mfbandit.store.writer import Job

TOKENS_CACHED_SECONDS = 2.0
LOST_TOKEN_SECONDS = 600.0  # within which a request for a token may be repeated
LONG_KEY_LENGTH = 32  # of a key that nobody guesses
HAD_TOKENS = "had tokens"  # among the facts of a store: it stays closed to those without a token

_USED = "used:"
_COLUMNS = ("id", "name", "hash", "scope", "created")
_ALL = f"SELECT {', '.join(_COLUMNS)} FROM mfbandit_tokens ORDER BY created"  # noqa: S608 - our own names
_MARK = "INSERT INTO mfbandit_store (key, value) VALUES (?, ?) ON CONFLICT (key) DO NOTHING"


class TokenHome(Protocol):
    """What tokens need of the store that they are in."""

    @property
    def clock(self) -> Callable[[], float]:
        """Seconds since 1970."""
        ...

    @property
    def read_only(self) -> bool:
        """Whether others write, if anybody does."""
        ...

    def check_usable(self) -> None:
        """Raise an error if the store is closed, or belongs to another process."""
        ...

    def read(self) -> Connection:
        """A connection that reads."""
        ...

    def write(self, job: Job) -> None:
        """Let the writer do a job, and wait until it is on disk."""
        ...

    def queue(self, job: Job) -> None:
        """Let the writer do a job, and do not wait."""
        ...

    def done(self, text: str | None) -> dict[str, Any] | None:
        """What was kept of a request that was done before."""
        ...


class TokenBook:
    """The tokens of a store.

    Args:
        home: the store.
    """

    def __init__(self, home: TokenHome) -> None:
        self._home = home
        self._known: dict[str, Token] = {}
        self._used: set[str] = set()
        self._had_any = False
        self._read_at = -1e9
        self._reading = threading.Lock()

    def close(self) -> None:
        """Wait a moment for a thread that reads: nobody opens a file after this."""
        if self._reading.acquire(timeout=TOKENS_CACHED_SECONDS):
            self._reading.release()

    def create(self, name: str, scope: str, *, request_key: str | None = None, only_again: bool = False) -> str:
        """Create a token, as :meth:`Store.create_token` says.

        Args:
            name: what people call it.
            scope: read, write or admin.
            request_key: names this request.
            only_again: refuse a request that did not come before, with a long key.
        """
        request = None if request_key is None else request_text(request_key, "create_token", name, scope)
        kept = self._home.done(request)
        if only_again and (kept is None or len(str(request_key)) < LONG_KEY_LENGTH):
            raise NotAllowed("a token is needed: Authorization: Bearer mfb_...")
        if kept is not None:
            return self._another_secret(str(request_key), str(kept["token"]))
        text, token = new_token(name, scope, self._home.clock())
        row = (token.id, token.name, token.hash, token.scope, token.created)

        def job(connection: Connection) -> None:
            connection.insert("mfbandit_tokens", _COLUMNS, [row])
            keep_request(connection, request, token=token.id)
            connection.run(_MARK, (HAD_TOKENS, "yes"))

        self._home.write(job)
        self._read_at = -1e9
        self._read_if_possible()
        return text

    def _another_secret(self, key: str, public: str) -> str:
        """Replace the secret of a token that nobody received."""
        token = self.all().get(public)
        if token is None or not self._may_be_lost(token):
            raise Conflict(
                f"Request key {key!r} made token {public}, which is in use, revoked or older than ten minutes: "
                f"create another one with another key"
            )
        text, again = new_token(token.name, token.scope, token.created, public)
        values = (again.hash, public)
        self._home.write(lambda connection: connection.run("UPDATE mfbandit_tokens SET hash = ? WHERE id = ?", values))
        self._read_at = -1e9
        return text

    def _may_be_lost(self, token: Token) -> bool:
        """Whether a token is new and was never used, so that perhaps nobody received it."""
        if token.id in self._used or not 0 <= self._home.clock() - token.created <= LOST_TOKEN_SECONDS:
            return False
        with closing(self._home.read()) as connection:
            return not connection.query("SELECT 1 FROM mfbandit_store WHERE key = ?", (_USED + token.id,))

    def first_may_be_lost(self) -> bool:
        """Whether there is one token, which perhaps nobody received: then nobody could ask for another."""
        tokens = list(self.all().values())
        return len(tokens) == 1 and self._may_be_lost(tokens[0])

    def _use(self, token: Token) -> None:
        """Remember that a new token was used; on disk, too, as a restart forgets the rest."""
        if token.id in self._used or self._home.read_only:
            return
        self._used.add(token.id)
        if self._home.clock() - token.created > LOST_TOKEN_SECONDS:
            return

        self._home.queue(lambda connection: connection.run(_MARK, (_USED + token.id, "yes")))

    def revoke(self, token: str, *, request_key: str | None = None) -> None:
        """Revoke a token, by its id; with the same request key again, nothing more is done."""
        text = None if request_key is None else request_text(request_key, "revoke_token", token)
        if self._home.done(text) is not None:
            return
        if token not in self.all():
            raise InvalidArgument(f"Token not found: {token!r}; the store has {', '.join(self.all()) or 'none'}")

        def job(connection: Connection) -> None:
            connection.run("DELETE FROM mfbandit_tokens WHERE id = ?", (token,))
            keep_request(connection, text)
            connection.run(_MARK, (HAD_TOKENS, "yes"))  # it may be of a store from before the mark

        self._home.write(job)
        self._read_at = -1e9
        self._read_if_possible()

    def needed(self) -> bool:
        """Tell whether a service needs a token: from the first one on, also after the last one is revoked."""
        return bool(self.all()) or self._had_any

    def all(self) -> dict[str, Token]:
        """All tokens, by their ids.

        They are read again every few seconds, by a thread: whoever asks must not wait for a database that hangs.
        """
        if self._read_at < 0:
            self.refresh()
        elif time.monotonic() - self._read_at > TOKENS_CACHED_SECONDS:
            self._read_at = time.monotonic()
            threading.Thread(target=self._read_if_possible, name="mfbandit tokens", daemon=True).start()
        return self._known

    def _read_if_possible(self) -> None:
        with suppress(StoreError):
            self.refresh()

    def refresh(self) -> None:
        """Read the tokens again."""
        with self._reading:  # what was read first must not replace what was read later
            self._home.check_usable()
            with closing(self._home.read()) as connection:
                rows = connection.query(_ALL)
                marks = connection.query("SELECT 1 FROM mfbandit_store WHERE key = ?", (HAD_TOKENS,))
            self._had_any = self._had_any or bool(marks)
            self._known = {row[0]: Token(*row) for row in rows}
            self._read_at = time.monotonic()

    def find(self, text: str) -> Token | None:
        """The token of this text, if it is one of this store's."""
        found = self.all().get(public_part(text))
        if found is None or not found.matches(text):
            return None
        self._use(found)
        return found
