"""All arms of an experiment: searched, sorted, and a page at a time."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple
from urllib.parse import urlencode

import numpy as np

from mfbandit._internal.formatting import readable
from mfbandit._internal.typing import BoolArray, FloatArray, IntArray
from mfbandit.core import Bounds
from mfbandit.errors import InvalidArgument
from mfbandit.experiment import Confidence, Findings, bounds_of
from mfbandit.service.reward_unit import RewardUnit
from mfbandit.store import DurableExperiment

ARMS_PER_PAGE = 50
MAX_QUERY = 200  # characters that are searched for

SORTS = {
    "rank": "Surely good first",
    "promise": "Could be good first",
    "mean": "Highest mean first",
    "looks": "Most looks first",
    "fewest": "Fewest looks first",
    "name": "By name",
    "newest": "Newest first",
}
SHOWS = {
    "all": "All arms",
    "active": "Active",
    "rivals": "May still be the best",
    "untried": "Without a result",
    "retired": "Retired",
    "aside": "Set aside after failures",
}


class ArmQuery(NamedTuple):
    """Which arms a page shows, and in which order; it is in the page's address.

    Args:
        q: part of a name; upper and lower case are the same.
        sort: one of ``SORTS``.
        show: one of ``SHOWS``.
        page: from 1.
    """

    q: str = ""
    sort: str = "rank"
    show: str = "all"
    page: int = 1

    @classmethod
    def of(cls, query: Mapping[str, str]) -> "ArmQuery":
        """Read it from an address; what makes no sense there is as if it was not there.

        >>> ArmQuery.of({"q": "blue", "sort": "upwards", "page": "-3"})
        ArmQuery(q='blue', sort='rank', show='all', page=1)
        """
        sort, show, page = query.get("sort", ""), query.get("show", ""), query.get("page", "")
        return cls(
            query.get("q", "").strip()[:MAX_QUERY],
            sort if sort in SORTS else "rank",
            show if show in SHOWS else "all",
            max(1, int(page)) if page.isdecimal() and len(page) < 8 else 1,  # noqa: PLR2004 - more pages than arms
        )

    def address(self, *, page: int) -> str:
        """Return it as the query of an address, with other values in place of some.

        >>> ArmQuery("blue").address(page=2)
        'q=blue&page=2'
        """
        fields = self._replace(page=page)._asdict()
        return urlencode({name: value for name, value in fields.items() if value != ArmQuery._field_defaults[name]})


@dataclass(frozen=True)
class ArmRow:
    """A row of the table.

    Args:
        index: of the arm.
        label: its name.
        mark: "best", or why it is not asked for; or empty.
        estimate: where its mean lies, in the rewards' unit.
        low: the lower end of that, for a drawing, from 0 to 1.
        high: the upper end.
        looks: how many results at each fidelity.
        rival: whether it may still be the best; None where that is not known.
    """

    index: int
    label: str
    mark: str
    estimate: str
    low: float
    high: float
    looks: list[str]
    rival: bool | None


class ArmTable:
    """What the rows are made from, of one moment.

    Args:
        experiment: whose arms they are.
        sure: how sure it is, computed before; None where that is not known yet.
    """

    def __init__(self, experiment: DurableExperiment, sure: Confidence | None) -> None:
        with experiment.still():
            self.findings: Findings = experiment.findings()
            self.retired, self.aside = set(experiment.retired), set(experiment.set_aside)
        self.sure = sure
        self.best = self.findings.headline().best
        self.unit = RewardUnit.of(self.findings.fidelities)
        self._orders: dict[str, IntArray] = {}

    @cached_property
    def bounds(self) -> Bounds | None:
        """The policy's bounds; None where there are none, as the noise is not known."""
        found = self.findings
        try:
            return bounds_of(found.policy, found.stats, found.fidelities, found.labels)
        except InvalidArgument:
            return None

    @cached_property
    def kind(self) -> str:
        """Whether the intervals of means are valid, estimates, or withheld; the same for all arms."""
        return self.findings.means(np.zeros(1, dtype=np.int64)).kind

    @cached_property
    def _means(self) -> FloatArray:
        """The mean at the highest fidelity that has a result; −∞ without any."""
        stats = self.findings.stats
        means = np.full(len(self.findings.labels), -np.inf)
        for counts, row in zip(stats.counts, stats.means, strict=True):
            means = np.where(counts > 0, row, means)
        return means

    @cached_property
    def _folded(self) -> list[str]:
        return [label.casefold() for label in self.findings.labels]

    @cached_property
    def rivals(self) -> frozenset[int] | None:
        """The arms that may still be the best, the best one included; None where that is not known."""
        if self.sure is None or self.sure.kind == "withheld":
            return None
        return frozenset({self.sure.best, *self.sure.rivals})

    def order(self, sort: str) -> IntArray:
        """All arms in an order; computed once.

        Args:
            sort: one of ``SORTS``.
        """
        if sort not in self._orders:
            self._orders[sort] = self._ordered(sort)
        return self._orders[sort]

    def _ordered(self, sort: str) -> IntArray:
        arms = len(self.findings.labels)
        looks = self.findings.stats.results.sum(axis=0)
        keys: dict[str, Callable[[], Any]] = {
            "mean": lambda: -self._means,
            "looks": lambda: -looks,
            "fewest": lambda: looks,
            "newest": lambda: -np.arange(arms),
            "promise": lambda: -self._promise(),
        }
        if sort == "name":
            return np.array(sorted(range(arms), key=self._folded.__getitem__), dtype=np.int64)
        if sort == "rank":
            return self._ranked()
        return np.argsort(keys[sort](), kind="stable")

    def _ranked(self) -> IntArray:
        if self.bounds is None:
            order = np.argsort(-self._means, kind="stable")
            first = [] if self.best is None else [self.best]
            return np.array([*first, *(arm for arm in order.tolist() if arm not in first)], dtype=np.int64)
        last = sorted(self.retired - {self.best})
        return np.array(self.bounds.ranked(first=self.best, last=last), dtype=np.int64)

    def _promise(self) -> FloatArray:
        return self._means if self.bounds is None else self.bounds.upper.min(axis=0)

    def matching(self, query: ArmQuery) -> IntArray:
        """The arms that a query asks for, in its order."""
        order, wanted = self.order(query.sort), self._shown(query.show)
        if wanted is not None:
            order = order[wanted[order]]
        text = query.q.casefold()
        return order if not text else np.array([k for k in order.tolist() if text in self._folded[k]], dtype=np.int64)

    def _shown(self, show: str) -> BoolArray | None:
        stats, arms = self.findings.stats, len(self.findings.labels)
        if show == "all":
            return None
        if show == "active":
            return stats.active
        if show == "untried":
            return np.asarray(stats.results.sum(axis=0) == 0)
        chosen = {"retired": self.retired, "aside": self.aside, "rivals": self.rivals or frozenset()}[show]
        wanted = np.zeros(arms, dtype=np.bool_)
        wanted[sorted(chosen)] = True
        return wanted

    def rows(self, arms: IntArray) -> list[ArmRow]:
        """The rows of some arms, with their intervals drawn over the same range."""
        found = self.findings.means(arms)
        known = np.isfinite(found.low) & np.isfinite(found.high) & (found.low <= found.high)
        least, most = (found.low[known].min(), found.high[known].max()) if known.any() else (0.0, 1.0)
        span = (most - least) or 1.0
        results = self.findings.stats.results
        rows = []
        for place, arm in enumerate(arms.tolist()):
            low, high = float(found.low[place]), float(found.high[place])
            drawn = ((low - least) / span, (high - least) / span) if known[place] else (0.0, 0.0)
            looks = [f"{int(number):,}" for number in results[:, arm]]
            rival = None if self.rivals is None else arm in self.rivals
            estimate = self.unit.estimate(low, high) if results[:, arm].any() and found.kind != "withheld" else "-"
            rows.append(ArmRow(arm, self.findings.labels[arm], self.mark(arm), estimate, *drawn, looks, rival))
        return rows

    def mark(self, arm: int) -> str:
        """What is special about an arm, in a word or two."""
        if arm in self.retired:
            return "retired"
        if arm in self.aside:
            return "set aside"
        return "best so far" if arm == self.best else ""


def arms_view(table: ArmTable, query: ArmQuery) -> dict[str, Any]:
    """Return everything on the page of all arms.

    Args:
        table: of one moment.
        query: which arms, and in which order.
    """
    arms = table.matching(query)
    pages = max(1, math.ceil(len(arms) / ARMS_PER_PAGE))
    page = min(query.page, pages)
    first = (page - 1) * ARMS_PER_PAGE
    shown = arms[first : first + ARMS_PER_PAGE]
    total = len(table.findings.labels)
    return {
        "rows": table.rows(shown),
        "fidelity_names": list(table.findings.fidelities.labels),
        "query": query,
        "page": page,
        "pages": pages,
        "first": first + 1 if len(arms) else 0,
        "last": first + len(shown),
        "found": len(arms),
        "total": total,
        "before": query.address(page=page - 1) if page > 1 else "",
        "after": query.address(page=page + 1) if page < pages else "",
        "to_first": query.address(page=1),
        "to_last": query.address(page=pages),
        "kind": table.kind,
        "results": readable(float(table.findings.stats.results.sum())),
        "any_rivals": table.rivals is not None,
    }
