"""What happened, the latest first: filtered by kind, by who did it and by text, a page at a time."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import urlencode

import numpy as np

from mfbandit._internal.typing import IntArray
from mfbandit.experiment import PLAY_KINDS, Record
from mfbandit.service.event_words import GROUPS, event_words, play_words
from mfbandit.service.view_models import full_time
from mfbandit.store import DurableExperiment

EVENTS_PER_PAGE = 50
EVENTS_PER_READ = 500
MOST_READ = 10_000  # events for a page; further ones are on the next
MAX_TEXT = 200

STORY, EVERYTHING = "story", "everything"
KINDS = {
    STORY: "All but plays",
    **{name: group.title for name, group in GROUPS.items()},
    EVERYTHING: "Plays and results, too",
}


class EventQuery(NamedTuple):
    """Which events a page shows; it is in the page's address.

    Args:
        kind: one of ``KINDS``.
        who: who asked for them; empty for all.
        q: part of what is said about them.
        before: events before this number; 0 for the latest.
    """

    kind: str = STORY
    who: str = ""
    q: str = ""
    before: int = 0

    @classmethod
    def of(cls, query: Mapping[str, str]) -> "EventQuery":
        """Read it from an address; what makes no sense there is as if it was not there.

        >>> EventQuery.of({"kind": "notes", "before": "x"})
        EventQuery(kind='notes', who='', q='', before=0)
        """
        kind, before = query.get("kind", ""), query.get("before", "")
        return cls(
            kind if kind in KINDS else STORY,
            query.get("who", "").strip()[:MAX_TEXT],
            query.get("q", "").strip()[:MAX_TEXT],
            int(before) if before.isdecimal() and len(before) < 16 else 0,  # noqa: PLR2004 - more than there can be
        )

    def address(self, *, before: int) -> str:
        """Return it as the query of an address, with other values in place of some.

        >>> EventQuery("notes").address(before=7)
        'kind=notes&before=7'
        """
        fields = self._replace(before=before)._asdict()
        return urlencode({name: value for name, value in fields.items() if value != EventQuery._field_defaults[name]})


def events_view(experiment: DurableExperiment, query: EventQuery) -> dict[str, Any]:
    """Return everything on the page of events.

    Args:
        experiment: the experiment.
        query: which events.
    """
    numbers = _numbers(experiment, query)
    rows, last = _rows(experiment, numbers, query)
    more = len(numbers) > 0 and last > int(numbers[-1])
    return {
        "rows": rows,
        "query": query,
        "kinds": KINDS,
        "older": query.address(before=last) if more else "",
        "latest": query.address(before=0) if query.before else "",
        "total": f"{experiment.events:,}",
    }


def _rows(experiment: DurableExperiment, numbers: IntArray, query: EventQuery) -> tuple[list[dict[str, str]], int]:
    """The rows of a page, and the number of the last event that was looked at for it."""
    rows: list[dict[str, str]] = []
    labels, names, last = experiment.arms, experiment.fidelities.labels, 0
    step = EVENTS_PER_READ if query.who or query.q else EVENTS_PER_PAGE
    for start in range(0, min(len(numbers), MOST_READ), step):
        part = numbers[start : start + step]
        for record in experiment.told(part):
            said, last = _said(experiment, record, labels, names), record.seq
            if _fits(record, said, query):
                rows.append(_row(record, said))
            if len(rows) == EVENTS_PER_PAGE:
                return rows, last
        last = int(part[-1])
    return rows, last


def _numbers(experiment: DurableExperiment, query: EventQuery) -> IntArray:
    """The numbers of events that may be shown, the latest first."""
    if query.kind == EVERYTHING:
        last = experiment.events if not query.before else min(query.before - 1, experiment.events)
        return np.arange(last, max(0, last - MOST_READ - 1), -1)
    group = GROUPS.get(query.kind)
    numbers = experiment.story(None if group is None else group.kinds)
    return numbers[numbers < query.before][::-1] if query.before else numbers[::-1]


def _said(experiment: DurableExperiment, record: Record, labels: Sequence[str], names: Sequence[str]) -> str:
    if isinstance(record.event, PLAY_KINDS):
        return play_words(record.event, labels, names, experiment.where(record.event.play))
    return event_words(record.event, labels, names)


def _fits(record: Record, said: str, query: EventQuery) -> bool:
    who = query.who.casefold()
    return (not who or who == (record.actor or "-").casefold()) and query.q.casefold() in said.casefold()


def _row(record: Record, said: str) -> dict[str, str]:
    who = record.actor or "-"
    return {"number": f"{record.seq:,}", "when": full_time(record.time), "who": who, "text": said}
