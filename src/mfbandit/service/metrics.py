"""Numbers for Prometheus: requests as they are counted, everything else as it is when somebody looks."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

import mfbandit
from mfbandit._internal.histogram import Histogram
from mfbandit.errors import MFBanditError
from mfbandit.store import DurableExperiment, Figures, Store

MAX_EXPERIMENTS_NAMED = 100  # in labels; the others are summed up
OTHER = "other"
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
REQUEST_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)

_GAUGES = {
    "pending": "Plays that were asked for and are neither told nor failed.",
    "leases": "Pending plays that have a lease.",
    "arms": "Arms, retired ones included.",
    "set_aside": "Arms that were set aside after failures.",
    "capital": "What all plays together may cost; missing where it is unlimited.",
    "spent": "What plays have cost.",
    "reserved": "What pending plays will cost.",
    "refuted": "Assumed biases that results have refuted: an alarm.",
    "warnings": "Warnings that a person should see, refuted biases not included: an alarm.",
}
_COUNTERS = {"expiries": "Leases that ran out since this service opened the experiment.", "results": "Results told."}


class RequestCounts:
    """How long requests took, by method, route and status; for the thread of the event loop alone.

    >>> counts = RequestCounts()
    >>> counts.add("GET", "/health", 200, 0.002)
    >>> counts.add("BREW", "/health", 200, 0.002)
    >>> sorted(counts.seconds)
    [('GET', '/health', 200), ('other', '/health', 200)]
    """

    def __init__(self) -> None:
        self.seconds: dict[tuple[str, str, int], Histogram] = {}

    def add(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request.

        Args:
            method: of HTTP; one that is none counts as "other".
            route: the route's pattern, of which there are as many as there are routes.
            status: of the answer.
            seconds: until the answer began.
        """
        key = (method if method in METHODS else OTHER, route, status)
        found = self.seconds.get(key)
        if found is None:
            found = self.seconds[key] = Histogram(REQUEST_SECONDS)
        found.add(seconds)


class Metrics:
    """The metrics of a service, each service with its own.

    Args:
        store: which it serves.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, Store(f"{folder}/ads.db") as store:
    ...     b"mfbandit_store_up 1.0" in Metrics(store).text()
    True
    """

    def __init__(self, store: Store) -> None:
        self.requests = RequestCounts()
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(_ServiceCollector(store, self.requests))
        ProcessCollector(registry=self._registry)  # CPU time, memory and open files of the process

    def text(self) -> bytes:
        """Return everything in Prometheus's text form."""
        return generate_latest(self._registry)


class _ServiceCollector(Collector):
    """Reads all numbers at the moment of a scrape.

    Args:
        store: which is served.
        requests: counted so far.
    """

    def __init__(self, store: Store, requests: RequestCounts) -> None:
        self._store, self._requests = store, requests
        self._known: dict[str, Figures] = {}  # as of the last look: shown again where one would have to wait

    def collect(self) -> Iterator[Metric]:
        """Yield all metrics."""
        yield InfoMetricFamily("mfbandit", "The version of the service.", {"version": mfbandit.__version__})
        yield self._request_seconds()
        yield from self._writing()
        yield from _of_experiments(self._figures())

    def _request_seconds(self) -> Metric:
        family = HistogramMetricFamily(
            "mfbandit_request_seconds", "Until the answer began.", labels=["method", "route", "status"]
        )
        for (method, route, status), one in list(self._requests.seconds.items()):
            family.add_metric([method, route, str(status)], _buckets(one), one.total)
        return family

    def _writing(self) -> Iterator[Metric]:
        writer = self._store.writer()
        watch = writer.watch
        for name, what, one in (
            ("group_requests", "Requests whose events were written as one group.", watch.sizes),
            ("flush_seconds", "Until a group was on disk.", watch.seconds),
        ):
            family = HistogramMetricFamily(f"mfbandit_{name}", what)
            family.add_metric([], _buckets(one), one.total)
            yield family
        yield GaugeMetricFamily("mfbandit_queue", "Pieces of work that wait for the next group.", writer.waiting())
        yield CounterMetricFamily("mfbandit_group_failures", "Groups that could not be written.", watch.failures)
        up = "Whether the store could be written last time: 0 during an outage."
        yield GaugeMetricFamily("mfbandit_store_up", up, float(watch.outage is None))

    def _figures(self) -> dict[str, Figures]:
        opened = dict(self._store.opened())
        found = {name: self._figures_of(name, one) for name, one in opened.items()}
        self._known = {name: one for name, one in found.items() if one is not None}
        return self._known

    def _figures_of(self, name: str, experiment: DurableExperiment) -> Figures | None:
        """Return an experiment's numbers; those of before where a long request is at work on it, or the disk fails."""
        try:
            return self._known.get(name) if experiment.busy() else experiment.figures()
        except MFBanditError:
            return self._known.get(name)


def _buckets(one: Histogram) -> Sequence[tuple[str, float]]:
    ends = [*(str(float(end)) for end in one.ends), "+Inf"]
    return list(zip(ends, one.cumulative(), strict=True))


def labelled(figures: dict[str, Figures], most: int = MAX_EXPERIMENTS_NAMED) -> dict[str, list[Figures]]:
    """Return experiments by their labels: the first so many by name, all others together as "other".

    An experiment that has this very name is among the others, so that no label means two things.

    Args:
        figures: by name, those opened first first: so no name loses its label to another one later.
        most: how many have a label of their own.

    >>> {name: len(those) for name, those in labelled(dict.fromkeys(["a", "other", "b", "c"]), most=2).items()}
    {'a': 1, 'b': 1, 'other': 2}
    """
    named = [name for name in figures if name != OTHER][:most]
    found = {name: [figures[name]] for name in named}
    rest = [one for name, one in figures.items() if name not in found]
    return {**found, OTHER: rest} if rest else found


def _of_experiments(figures: dict[str, Figures]) -> Iterable[Metric]:
    groups = labelled(figures)
    yield GaugeMetricFamily("mfbandit_experiments_open", "Experiments that this service has opened.", len(figures))
    states = GaugeMetricFamily("mfbandit_experiments", "Experiments by state.", labels=["state"])
    for state in sorted({one.state for one in figures.values()}):
        states.add_metric([state], sum(one.state == state for one in figures.values()))
    yield states
    for name in (one.name for one in fields(Figures) if one.name in _GAUGES or one.name in _COUNTERS):
        kind = GaugeMetricFamily if name in _GAUGES else CounterMetricFamily
        family = kind(f"mfbandit_experiment_{name}", {**_GAUGES, **_COUNTERS}[name], labels=["experiment"])
        for label, those in groups.items():
            values = [value for one in those if (value := getattr(one, name)) is not None]
            if values:
                family.add_metric([label], sum(values))
        yield family
