"""The service's log: one line an entry, as text for people or as JSON for programs, without secrets."""

import json
import logging
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any, TextIO

from mfbandit.errors import InvalidArgument
from mfbandit.store import DatabaseOutage

FORMATS = ("text", "json")
REQUEST_ID: ContextVar[str] = ContextVar("mfbandit_request_id", default="")  # of the request that is being answered

access = logging.getLogger("mfbandit.access")
store_log = logging.getLogger("mfbandit.store")

_SECRETS = re.compile(r"""\bmfb_[0-9A-Za-z]+_[0-9A-Za-z_-]+|(?<=://)[^\s:/@"']*:[^\s@"']+(?=@)""")


def without_secrets(text: str) -> str:
    """Return a text with tokens, and passwords in addresses, replaced.

    >>> without_secrets("Bearer mfb_0a1b2c3d_AbC-_9 at postgresql://me:hush@db/ads")
    'Bearer *** at postgresql://***@db/ads'
    """
    return _SECRETS.sub("***", text)


def checked_format(log_format: str) -> str:
    """Return the form of a log if there is one of that name.

    >>> checked_format("xml")
    Traceback (most recent call last):
    mfbandit.errors.InvalidArgument: log_format must be one of text, json, got 'xml'
    """
    if log_format not in FORMATS:
        raise InvalidArgument(f"log_format must be one of {', '.join(FORMATS)}, got {log_format!r}")
    return log_format


class _Lines(logging.Formatter):
    """What both forms have in common: the time, and the fields that an entry brings in ``record.fields``."""

    def format(self, record: logging.LogRecord) -> str:
        fields: dict[str, Any] = getattr(record, "fields", {})
        identifier = REQUEST_ID.get()
        if identifier:
            fields = {"request_id": identifier, **fields}
        trace = self.formatException(record.exc_info) if record.exc_info else ""
        return without_secrets(self.line(record, _moment(record.created), fields, trace))

    def line(self, record: logging.LogRecord, moment: str, fields: dict[str, Any], trace: str) -> str:
        raise NotImplementedError


class JsonLines(_Lines):
    r"""One JSON object a line.

    >>> record = logging.LogRecord("mfbandit.service", logging.ERROR, "", 0, "two\nlines", (), None)
    >>> sorted(json.loads(JsonLines().format(record)))
    ['level', 'logger', 'message', 'time']
    """

    def line(self, record: logging.LogRecord, moment: str, fields: dict[str, Any], trace: str) -> str:
        """Return the entry as JSON."""
        entry = {"time": moment, "level": record.levelname.lower(), "logger": record.name}
        entry |= {"message": record.getMessage(), **fields}
        return json.dumps(entry | {"traceback": trace} if trace else entry, default=str)


class TextLines(_Lines):
    """Time, level, logger, message, and the fields as name=value; a traceback follows on lines of its own.

    >>> record = logging.LogRecord("mfbandit.service", logging.ERROR, "", 0, "hello", (), None)
    >>> TextLines().format(record).split(maxsplit=1)[1]
    'ERROR mfbandit.service: hello'
    """

    def line(self, record: logging.LogRecord, moment: str, fields: dict[str, Any], trace: str) -> str:
        """Return the entry as text."""
        said = "".join(f" {name}={_plain(value)}" for name, value in fields.items())
        text = f"{moment} {record.levelname} {record.name}: {record.getMessage()}{said}"
        return f"{text}\n{trace}" if trace else text


def _plain(value: object) -> str:
    """Return a value as one word; what is none is quoted, so that nobody can forge a line or a field."""
    text = str(value)
    return text if text.isprintable() and not set(text) & set(' ="') else json.dumps(text)


@contextmanager
def logging_to(stream: TextIO | None = None, *, log_format: str = "text", access_log: bool = False) -> Iterator[None]:
    """Inside, what the service and its server log is written to a stream.

    Args:
        stream: standard error by default.
        log_format: text or json.
        access_log: whether each request is written, too.

    >>> import io
    >>> with logging_to(written := io.StringIO(), log_format="json"):
    ...     store_log.warning("hello")
    >>> json.loads(written.getvalue())["message"]
    'hello'
    """
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines() if checked_format(log_format) == "json" else TextLines())
    loggers = [logging.getLogger("mfbandit"), logging.getLogger("uvicorn")]
    before = access.level
    access.setLevel(logging.INFO if access_log else logging.WARNING)
    for logger in loggers:
        logger.addHandler(handler)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeHandler(handler)
        access.setLevel(before)


def log_outage(outage: DatabaseOutage) -> None:
    """Log that an outage of the database has begun, or that it has ended.

    >>> store_log.disabled = True
    >>> log_outage(DatabaseOutage(start=0.0, error="no connection", end=3.0))
    >>> store_log.disabled = False
    """
    fields: dict[str, Any] = {"event": "outage-began", "since": _moment(outage.start), "error": outage.error}
    if outage.end is None:
        store_log.error("outage began: the store cannot be written", extra={"fields": fields})
        return
    fields |= {"event": "outage-ended", "seconds": round(outage.end - outage.start, 3), "refused": outage.refused}
    store_log.warning("outage ended: the store can be written", extra={"fields": fields})


def _moment(seconds: float) -> str:
    """Return a time since 1970 as ISO 8601 has it, in UTC."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
