"""Which requests had keys and what they made, folded from a log: so that a repeated request is answered the same."""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from mfbandit._internal import limits
from mfbandit._internal.typing import IntArray
from mfbandit.core import Fidelities, Play
from mfbandit.errors import Conflict, InvalidArgument
from mfbandit.experiment import (
    CODES,
    WITH_TEXT,
    ArmAdded,
    Asked,
    BiasesWidened,
    BiasRefuted,
    Decided,
    Event,
    PackedLog,
    Record,
    Renewed,
    State,
    fidelities_record,
    is_told,
)

DIGEST_BYTES = 8
SEPARATOR = "\t"  # between a key and the digest of what was asked for; no key has it


@dataclass(frozen=True, slots=True)
class KeyedRequest:
    """A request that had a key.

    Args:
        kind: of its first event.
        made: the numbers of the plays or arms that it made, or of the plays that it renewed.
        digest: of what was asked for; empty in logs of versions that did not keep it.
    """

    kind: type[Event]
    made: list[int]
    digest: str = ""


def checked_key(key: object) -> str:
    """A request key: short, and safe to be sent and printed.

    >>> checked_key("")
    Traceback (most recent call last):
    mfbandit.errors.InvalidArgument: request_key must be 1 to 200 printable ASCII characters, got ''
    """
    length = limits.MAX_REQUEST_KEY_LENGTH
    if not isinstance(key, str) or not 0 < len(key) <= length or not key.isascii() or not key.isprintable():
        raise InvalidArgument(f"request_key must be 1 to {length} printable ASCII characters, got {key!r}")
    return key


def request_text(key: object, verb: str, *content: object) -> str:
    """What the log keeps of a request: its key, and a digest of the verb and all that it was given.

    >>> request_text("k", "ask", 1, None) == request_text("k", "ask", 2, None)
    False
    """
    text = json.dumps([verb, *content], default=_plain, sort_keys=True)
    digest = hashlib.blake2b(text.encode("utf-8", "backslashreplace"), digest_size=DIGEST_BYTES).hexdigest()
    return f"{checked_key(key)}{SEPARATOR}{digest}"


def key_of(text: str) -> str:
    """The key in what the log keeps of a request.

    >>> key_of(request_text("k", "pause")), key_of("of an earlier version")
    ('k', 'of an earlier version')
    """
    return text.partition(SEPARATOR)[0]


def _plain(value: object) -> object:
    """What JSON does not have, as something that it has."""
    match value:
        case Play():
            return value.id
        case Fidelities():
            return fidelities_record(value)
        case np.generic():
            return value.item()
    return repr(value)


class RequestKeys:
    """The latest requests that had keys, and those whose plays are pending.

    Args:
        state: of the same log, each event applied to it first.
    """

    def __init__(self, state: State) -> None:
        self._state = state
        self.known: dict[str, KeyedRequest] = {}

    def find(self, text: str, *kinds: type[Event]) -> list[int] | None:
        """What the request of that key made, or None if there was none.

        Args:
            text: by :func:`request_text`.
            kinds: of first events that such a request has, for logs that kept no digests.

        Raises:
            Conflict: the key was that of another request.
        """
        key, _, digest = text.partition(SEPARATOR)
        request = self.known.get(key)
        if request is None:
            return None
        if request.digest != digest if request.digest else request.kind not in kinds:
            raise Conflict(f"Request key {key!r} was already used for another request")
        return request.made

    def apply(self, record: Record) -> None:
        """Move on by one event."""
        event, text = record.event, record.request
        if text is None or text.startswith(SEPARATOR) or isinstance(event, BiasRefuted | BiasesWidened | Decided):
            # The id of a row has no key; a refuted bias or a decision was caused by a result of the request.
            return
        key, _, digest = text.partition(SEPARATOR)
        request = self.known.get(key)
        if request is None:
            request = self.known[key] = KeyedRequest(type(event), [], digest)
        if isinstance(event, Asked | Renewed):
            request.made.append(event.play)
        elif isinstance(event, ArmAdded):
            request.made.append(self._state.index[event.label])
        if len(self.known) > 2 * limits.REQUEST_KEYS_KEPT:
            self.forget_old()

    def apply_all(self, log: PackedLog, read: Callable[[IntArray], Sequence[Record]]) -> None:
        """Move on by all events of a whole log; what one at a time gives, with old requests forgotten.

        Args:
            log: packed events, which have no keys.
            read: reads the records of these numbers, which have them.
        """
        numbers, plays = self._keyed_stretches(log)
        first_events = read(numbers)
        made = dict(zip(numbers.tolist(), plays, strict=True))
        texts = [record for record in log.texts.values() if record.seq not in made]
        for record in sorted([*first_events, *texts], key=lambda record: record.seq):
            if record.seq in made:
                key, _, digest = str(record.request).partition(SEPARATOR)
                begun = self.known.get(key)  # by an event with a text of its own, which came first
                kind = type(record.event) if begun is None or begun.digest != digest else begun.kind
                self.known[key] = KeyedRequest(kind, made[record.seq], digest)
            else:
                self.apply(record)

    def _keyed_stretches(self, log: PackedLog) -> tuple[IntArray, list[list[int]]]:
        """The latest requests with keys, and those of pending plays: numbers of first events, and plays they made."""
        rows = log.rows
        # The events of a request follow each other. Those with a text of their own are read beside these rows; of the
        # others, a text is that of the request.
        with_id = is_told(rows) & ~np.isnan(rows["due"])  # whose text is that of the row
        places = np.flatnonzero(~np.isin(rows["kind"], WITH_TEXT) & ~with_id)
        kinds, keys = rows["kind"][places], rows["text"][places]
        first = (keys != 0) & (keys != np.append(0, keys[:-1]))
        asked = np.isin(kinds, [CODES[Asked], CODES[Renewed]]) & (keys != 0)
        plays, stretch_of = rows["play"][places[asked]], np.cumsum(first)[asked] - 1
        starts = places[first] + 1
        latest = np.arange(max(0, len(starts) - limits.REQUEST_KEYS_KEPT), len(starts))
        wanted = np.union1d(latest, stretch_of[np.isin(plays, list(self._state.pending))]).astype(np.int64)
        ends = zip(np.searchsorted(stretch_of, wanted), np.searchsorted(stretch_of, wanted, side="right"), strict=True)
        return starts[wanted], [plays[start:end].tolist() for start, end in ends]

    def forget_old(self) -> None:
        """Keep the latest keys, and those of pending plays: an answer that was lost was never told."""
        pending = self._state.pending
        for key in list(self.known)[: -limits.REQUEST_KEYS_KEPT]:
            request = self.known[key]
            if request.kind not in (Asked, Renewed) or not any(play in pending for play in request.made):
                del self.known[key]
