"""Errors as RFC 9457 problem details, and back: the client raises what the service met."""

import json
from dataclasses import dataclass, field
from typing import Any

from mfbandit import errors

TYPE = "application/problem+json"
MARK = "x-mfbandit"  # a header by which clients know the service from any other


@dataclass(frozen=True)
class Problem:
    """One error as it goes over the wire.

    Args:
        kind: the last part of its type, such as ``capital-exhausted``.
        status: of HTTP.
        title: the kind in words.
        detail: what is wrong here: the thing, the rule and the value.
        more: further members.
    """

    kind: str
    status: int
    title: str
    detail: str
    more: dict[str, Any] = field(default_factory=dict)

    @property
    def record(self) -> dict[str, Any]:
        """Its members.

        >>> Problem("not-found", 404, "Not found", "no such page").record["type"]
        'urn:mfbandit:not-found'
        """
        members = {"type": f"urn:mfbandit:{self.kind}", "title": self.title, "status": self.status}
        return {**members, "detail": self.detail, **self.more}

    @property
    def body(self) -> bytes:
        """Its JSON."""
        return json.dumps(self.record).encode()


# From the special to the general: the first that fits is used.
KINDS: tuple[tuple[type[Exception], str, int, str], ...] = (
    (errors.CapitalExhausted, "capital-exhausted", 409, "The capital is spent or reserved"),
    (errors.ExperimentPaused, "paused", 409, "The experiment is paused"),
    (errors.NoActiveArms, "no-active-arms", 409, "No arm takes part"),
    (errors.NoResults, "no-results", 409, "There is no result yet"),
    (errors.Conflict, "conflict", 409, "Something else is already kept"),
    (errors.UnknownPlay, "unknown-play", 404, "The play is not known"),
    (errors.UnknownExperiment, "unknown-experiment", 404, "There is no such experiment"),
    (errors.NotAllowed, "not-allowed", 403, "This is not allowed"),
    (errors.StoreUnavailable, "unavailable", 503, "The store cannot be used now"),
    (errors.StoreHeld, "unavailable", 503, "The store cannot be used now"),
    (errors.StoreDamaged, "damaged", 500, "The store is damaged"),
    (errors.StoreError, "unavailable", 503, "The store cannot be used now"),
    (ValueError, "invalid", 422, "The request cannot be understood"),
)


def problem_of(error: Exception) -> Problem | None:
    """The problem that tells of an error, or None if it is a fault of ours.

    >>> problem_of(errors.NoResults("none yet")).status
    409
    """
    for kind, name, status, title in KINDS:
        if isinstance(error, kind):
            return Problem(name, status, title, str(error))
    return None


def error_of(record: dict[str, Any]) -> Exception:
    """The error that a problem tells of.

    >>> error_of(problem_of(errors.NoResults("none yet")).record)
    NoResults('none yet')
    """
    detail = str(record.get("detail") or record.get("title") or "the service gave no reason")
    if record.get("status") == 401:  # noqa: PLR2004 - of HTTP
        return errors.NotAllowed(detail)
    for kind, name, _, _ in KINDS:
        if record.get("type") == f"urn:mfbandit:{name}":
            return kind(detail)
    return errors.StoreError(f"{detail} (status {record.get('status')})")
