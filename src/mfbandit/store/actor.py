"""Who asks: the name that is written beside each event, wherever in a thread or task it is made."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from mfbandit._internal.limits import MAX_TOKEN_NAME_LENGTH
from mfbandit.errors import InvalidArgument

ACTOR: ContextVar[str | None] = ContextVar("mfbandit_actor", default=None)


@contextmanager
def acting_as(name: str | None) -> Iterator[None]:
    """Inside, what is done to experiments of a store is written down under a name; under none if it is None.

    A service does so with the name of the token that a request came with.

    Args:
        name: 1 to 64 printable characters.

    >>> with acting_as("nightly job"):
    ...     ACTOR.get()
    'nightly job'
    """
    if name is not None and not (0 < len(name) <= MAX_TOKEN_NAME_LENGTH and name.isprintable()):
        raise InvalidArgument(f"name must be 1 to {MAX_TOKEN_NAME_LENGTH} printable characters, got {name!r}")
    before = ACTOR.set(name)
    try:
        yield
    finally:
        ACTOR.reset(before)
