"""Requests with keys that are about no single experiment's log: creating and deleting experiments and tokens."""

import json
from typing import Any

from mfbandit.errors import Conflict
from mfbandit.store.database import Connection
from mfbandit.store.request_keys import SEPARATOR

_PREFIX = "request:"


def find_request(connection: Connection, text: str) -> dict[str, Any] | None:
    """What was kept of the request of that key; None if there was none.

    Args:
        connection: to the store.
        text: by :func:`~mfbandit.store.request_keys.request_text`.

    Raises:
        Conflict: the key was that of another request.
    """
    key, _, digest = text.partition(SEPARATOR)
    rows = connection.query("SELECT value FROM mfbandit_store WHERE key = ?", (_PREFIX + key,))
    if not rows:
        return None
    kept: dict[str, Any] = json.loads(rows[0][0])
    if kept["digest"] != digest:
        raise Conflict(f"Request key {key!r} was already used for another request")
    return kept


def keep_request(connection: Connection, text: str | None, **made: str | float) -> None:
    """Keep a request, in the transaction that does it; nothing without a key."""
    if text is None:
        return
    key, _, digest = text.partition(SEPARATOR)
    value = json.dumps({"digest": digest, **made})
    connection.insert("mfbandit_store", ("key", "value"), [(_PREFIX + key, value)])
