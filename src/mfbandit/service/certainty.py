"""How sure an experiment is, for its page: computed rarely and beside the work, so that looking delays nobody."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

from mfbandit.errors import MFBanditError, NoResults
from mfbandit.experiment import Confidence, ConfidenceTrend, TrendPoint
from mfbandit.service.error_handlers import log_internal_error
from mfbandit.store import DurableExperiment

CPU_SHARE = 0.01  # of a core, that all pages together may take for this
CREDIT_SECONDS = 0.5  # of computing that can be saved up, and to begin with
AT_ONCE_SECONDS = 0.1  # of computing at most, or one point
PATIENCE_SECONDS = 0.05
EXPERIMENTS_KEPT = 64


@dataclass(frozen=True)
class Certainty:
    """How sure it was at the last computation.

    Args:
        found: None before any result, and until it is computed.
        trend: level and possible loss over spending; ends with what was found, once no point before it is missing.
    """

    found: Confidence | None = None
    trend: tuple[TrendPoint, ...] = ()


UNKNOWN = Certainty()


@dataclass(eq=False)
class _Watched:
    """What is known about an experiment, and what it was computed from."""

    trend: ConfidenceTrend = field(default_factory=ConfidenceTrend)
    known: Certainty = UNKNOWN
    events: int = -1  # of the log when it was computed
    complete: bool = False  # whether no point of the trend is missing
    busy: threading.Thread | None = None


class CertaintyWatch:
    """How sure experiments are, computed anew once their logs have grown and the time for it was saved up.

    One percent of a core is saved up for it. A computation that takes 60 ms is thus made every six seconds.

    Args:
        patience: how long, in seconds, a page waits for what is being computed.

    >>> import tempfile
    >>> from mfbandit import UCB, Bounded, Fidelities, Store
    >>> with tempfile.TemporaryDirectory() as folder, Store(f"{folder}/ads.db") as store:
    ...     ads = store.create("ads", UCB(), arms=["a", "b"], fidelities=Fidelities([1], None, Bounded()))
    ...     _ = ads.add_results([("a", 0, 1.0, None)] * 9 + [("b", 0, 0.0, None)] * 9)
    ...     certainty = CertaintyWatch(patience=60).of(ads)
    >>> certainty.found.label, len(certainty.trend)
    ('a', 18)
    """

    def __init__(self, patience: float = PATIENCE_SECONDS) -> None:
        self._patience = patience
        self._lock = threading.Lock()
        self._watched: OrderedDict[str, _Watched] = OrderedDict()
        self._credit, self._saved_at = CREDIT_SECONDS, time.monotonic()

    def of(self, experiment: DurableExperiment) -> Certainty:
        """Return what is known, and compute it anew if that is due; wait for it no longer than a moment."""
        with self._lock:
            watched = self._entry(experiment.id)
            if watched.busy is None and self._affordable() and _stale(watched, experiment):
                watched.busy = threading.Thread(target=self._compute, args=(watched, experiment), daemon=True)
                watched.busy.start()
            computing = watched.busy
        if computing is not None:
            computing.join(self._patience)
        return watched.known

    def _entry(self, key: str) -> _Watched:
        watched = self._watched.setdefault(key, _Watched())
        self._watched.move_to_end(key)
        if len(self._watched) > EXPERIMENTS_KEPT:
            self._watched.popitem(last=False)
        return watched

    def _affordable(self) -> bool:
        now = time.monotonic()
        self._credit = min(CREDIT_SECONDS, self._credit + CPU_SHARE * (now - self._saved_at))
        self._saved_at = now
        return self._credit > 0

    def _compute(self, watched: _Watched, experiment: DurableExperiment) -> None:
        begun, allowed = time.thread_time(), min(self._credit, AT_ONCE_SECONDS)
        try:
            _refresh(watched, experiment, lambda: time.thread_time() - begun < allowed)
        except NoResults:
            watched.known, watched.complete = UNKNOWN, True
        except MFBanditError:
            watched.complete = True  # closed, deleted or damaged, which the page itself says
        except Exception as error:
            watched.complete = True
            log_internal_error(error, f"how sure {experiment.name} is")
        finally:
            with self._lock:
                self._credit -= time.thread_time() - begun
                watched.busy = None


def _stale(watched: _Watched, experiment: DurableExperiment) -> bool:
    return not watched.complete or watched.events != experiment.events


def _refresh(watched: _Watched, experiment: DurableExperiment, time_left: Callable[[], bool]) -> None:
    """Compute how sure it is, and as many missing points of the trend as there is time for, one at least."""
    watched.events, results, spent = experiment.events, sum(experiment.results_at), experiment.spent
    found = experiment.confidence()
    now = TrendPoint(spent, found.level, found.could_lose)
    watched.complete = found.kind != "valid"
    if watched.complete:
        watched.known = Certainty(found)
        return
    trend, in_time = watched.trend, True
    while trend.lags(results) and in_time:
        trend.add(experiment.next_results(*trend.wanted), found.fidelities)
        in_time = time_left()
    watched.complete = not trend.lags(results)
    watched.known = Certainty(found, _ending(trend.points, now) if watched.complete else tuple(trend.points))


def _ending(points: list[TrendPoint], now: TrendPoint) -> tuple[TrendPoint, ...]:
    return (*(point for point in points if point.spent < now.spent), now)
