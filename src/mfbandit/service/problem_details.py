"""Errors as RFC 9457 problem details, and back: the client raises what the service met."""

import json
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, NamedTuple

from mfbandit import errors

MEDIA_TYPE = "application/problem+json"
SERVICE_HEADER = "x-mfbandit"  # every answer has it: clients know the service from any other by it

_HEADERS = {
    HTTPStatus.UNAUTHORIZED: {"www-authenticate": "Bearer"},
    HTTPStatus.SERVICE_UNAVAILABLE: {"retry-after": "1"},
}


@dataclass(frozen=True)
class ProblemDetail:
    """One error as it goes over the wire.

    Args:
        kind: the last part of its type, such as ``capital-exhausted``.
        status: the HTTP status code.
        title: the kind in words.
        detail: what is wrong in this request.
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

        >>> ProblemDetail("not-found", 404, "Not found", "No route GET /x").record["type"]
        'urn:mfbandit:not-found'
        """
        members = {"type": f"urn:mfbandit:{self.kind}", "title": self.title, "status": self.status}
        return {**members, "detail": self.detail, **self.more}

    @property
    def body(self) -> bytes:
        """Its members as JSON."""
        return json.dumps(self.record).encode()

    @property
    def headers(self) -> dict[str, str]:
        """The HTTP headers that its status asks for.

        >>> ProblemDetail("unavailable", 503, "Store unavailable", "the disk is full").headers
        {'retry-after': '1'}
        """
        return _HEADERS.get(HTTPStatus(self.status), {})


class ErrorKind(NamedTuple):
    """How errors of a class are told."""

    error: type[errors.MFBanditError]
    name: str
    status: int
    title: str


# The special before the general: the first that fits is used.
KINDS = (
    ErrorKind(errors.CapitalExhausted, "capital-exhausted", 409, "Capital exhausted"),
    ErrorKind(errors.ExperimentDecided, "decided", 409, "Experiment decided"),
    ErrorKind(errors.ExperimentPaused, "paused", 409, "Experiment paused"),
    ErrorKind(errors.NoActiveArms, "no-active-arms", 409, "No active arms"),
    ErrorKind(errors.NoResults, "no-results", 409, "No results yet"),
    ErrorKind(errors.Conflict, "conflict", 409, "Conflict"),
    ErrorKind(errors.UnknownPlay, "unknown-play", 404, "Unknown play"),
    ErrorKind(errors.UnknownExperiment, "unknown-experiment", 404, "Unknown experiment"),
    ErrorKind(errors.TokenNeeded, "unauthorized", 401, "Token needed"),
    ErrorKind(errors.NotAllowed, "not-allowed", 403, "Not allowed"),
    ErrorKind(errors.OutcomeUnknown, "outcome-unknown", 503, "Outcome unknown"),
    ErrorKind(errors.StoreUnavailable, "unavailable", 503, "Store unavailable"),
    ErrorKind(errors.StoreHeld, "unavailable", 503, "Store unavailable"),
    ErrorKind(errors.StoreDamaged, "damaged", 500, "Store damaged"),
    ErrorKind(errors.InternalServiceError, "internal", 500, "Internal error"),
    ErrorKind(errors.StoreError, "unavailable", 503, "Store unavailable"),
    ErrorKind(errors.InvalidArgument, "invalid", 422, "Invalid request"),
)


def problem_of(error: Exception) -> ProblemDetail | None:
    """Return the problem that tells of an error; None where the error is a bug.

    >>> problem_of(errors.NoResults("none yet")).status
    409
    >>> problem_of(ValueError("operands could not be broadcast together")) is None
    True
    """
    for kind in KINDS:
        if isinstance(error, kind.error):
            return ProblemDetail(kind.name, kind.status, kind.title, str(error))
    return None


def internal_problem(identifier: str) -> ProblemDetail:
    """Return the problem that tells of a bug, without its internals.

    >>> internal_problem("0a1b2c3d").record["detail"]
    'the service met a bug; its log has the traceback under id 0a1b2c3d'
    """
    detail = f"the service met a bug; its log has the traceback under id {identifier}"
    return ProblemDetail("internal", 500, "Internal error", detail, {"id": identifier})


def error_of(record: dict[str, Any]) -> errors.MFBanditError:
    """Return the error that a problem tells of.

    >>> error_of(problem_of(errors.NoResults("none yet")).record)
    NoResults('none yet')
    >>> error_of(internal_problem("0a1b2c3d").record)
    InternalServiceError('the service met a bug; its log has the traceback under id 0a1b2c3d')
    """
    detail = str(record.get("detail") or record.get("title") or "the service gave no reason")
    if record.get("status") == HTTPStatus.UNAUTHORIZED:
        return errors.TokenNeeded(detail)
    for kind in KINDS:
        if record.get("type") == f"urn:mfbandit:{kind.name}":
            return kind.error(detail)
    return errors.StoreError(f"{detail} (status {record.get('status')})")
