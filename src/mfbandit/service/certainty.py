"""How sure an experiment is, for its page: computed rarely and beside the work, so that looking delays nobody."""

import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

from mfbandit.core import LEVEL
from mfbandit.errors import MFBanditError, NoResults
from mfbandit.experiment import Confidence, ConfidenceTrend, TrendPoint
from mfbandit.service.error_handlers import log_internal_error
from mfbandit.store import DurableExperiment

CPU_SHARE = 0.004  # of a core, that all pages together may take for this while somebody looks
IDLE_SHARE = 0.05  # of a core, beside that, where the service has nothing to do and the machine neither
CREDIT_SECONDS = 0.1  # of computing that can be saved up, and to begin with
LOOK_SECONDS = 2.0  # that a look lasts, as an open page looks every second; at other times nothing is saved up
PATIENCE_SECONDS = 0.05
EXPERIMENTS_KEPT = 64


@dataclass(frozen=True)
class Certainty:
    """How sure it was at the last computation.

    Args:
        found: None before any result, and until it is computed.
        trend: level and possible loss over spending; ends with what was found, once no point before it is missing.
            While points are computed, it is as it was before.
        whole: whether no point of the trend is missing.
        events: how many the log had then.
        at: when that was, in seconds since 1970.
    """

    found: Confidence | None = None
    trend: tuple[TrendPoint, ...] = ()
    whole: bool = True
    events: int = field(default=-1, compare=False)
    at: float = field(default=0.0, compare=False)


UNKNOWN = Certainty()


@dataclass(eq=False)
class _Watched:
    """What is known about an experiment, and what it was computed from."""

    trend: ConfidenceTrend = field(default_factory=ConfidenceTrend)
    known: Certainty = UNKNOWN
    events: int = -1  # of the log when it was computed last, or could not be
    complete: bool = False  # whether no point of the trend is missing
    busy: threading.Thread | None = None


class CertaintyWatch:
    """How sure experiments are, computed anew once their logs have grown and the time for it was saved up.

    While somebody looks, 0.4 % of a core is saved up for it, and 5 % more where service and machine have nothing to do.
    So where they are busy, a computation that takes 20 ms is made every five seconds.

    Args:
        patience: how long, in seconds, :meth:`of` waits for what is being computed.

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
        self._credit, self._saved_at, self._busy_at = CREDIT_SECONDS, time.monotonic(), time.process_time()

    def of(self, experiment: DurableExperiment) -> Certainty:
        """Return what is known, and compute it anew if that is due; wait for it no longer than a moment."""
        watched = self._look(experiment)
        computing = watched.busy
        if computing is not None:
            computing.join(self._patience)
        return watched.known

    def at_once(self, experiment: DurableExperiment) -> Certainty:
        """Return what is known, and have it computed anew if that is due, for the next look."""
        return self._look(experiment).known

    def _look(self, experiment: DurableExperiment) -> _Watched:
        key, events = experiment.id, experiment.events  # before, as whoever has the experiment may wait for the lock
        with self._lock:
            watched = self._entry(key)
            stale = not watched.complete or watched.events != events
            if watched.busy is None and self._affordable() and stale:
                watched.busy = threading.Thread(target=self._compute, args=(watched, experiment), daemon=True)
                watched.busy.start()
        return watched

    def _entry(self, key: str) -> _Watched:
        watched = self._watched.setdefault(key, _Watched())
        self._watched.move_to_end(key)
        if len(self._watched) > EXPERIMENTS_KEPT:
            self._watched.popitem(last=False)
        return watched

    def _affordable(self) -> bool:
        now, busy = time.monotonic(), time.process_time()
        passed = max(now - self._saved_at, 1e-9)
        idle = max(0.0, 1.0 - (busy - self._busy_at) / passed)  # of one core, as Python runs on one at a time
        saved = (CPU_SHARE + IDLE_SHARE * min(idle, machine_idle())) * min(passed, LOOK_SECONDS)
        self._credit = min(CREDIT_SECONDS, self._credit + saved)
        self._saved_at, self._busy_at = now, busy
        return self._credit > 0

    def _compute(self, watched: _Watched, experiment: DurableExperiment) -> None:
        begun, allowed = time.thread_time(), self._credit
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


def machine_idle() -> float:
    """Return the share of the machine's cores that nobody wants, lately; 0 where that is not known.

    >>> 0.0 <= machine_idle() <= 1.0
    True
    """
    try:
        return max(0.0, 1.0 - os.getloadavg()[0] / (os.cpu_count() or 1))
    except OSError:
        return 0.0


def _refresh(watched: _Watched, experiment: DurableExperiment, time_left: Callable[[], bool]) -> None:
    """Compute how sure it is, and as many missing points of the trend as there is time for, one at least."""
    with experiment.still():
        findings, results, spent = experiment.findings(), sum(experiment.results_at), experiment.spent
        watched.events, at = experiment.events, experiment.now()
    found, trend, in_time = findings.confidence(LEVEL), watched.trend, True
    if found.kind != "valid":
        watched.known, watched.complete = Certainty(found, events=watched.events, at=at), True
        return
    if trend.lags(results):  # the answer does not wait for charts
        watched.known = Certainty(found, watched.known.trend, whole=False, events=watched.events, at=at)
    while in_time and trend.lags(results):
        trend.add(experiment.next_results(*trend.wanted), found.fidelities)
        in_time = time_left()
    watched.complete = not trend.lags(results)
    now = TrendPoint(spent, found.level, found.could_lose, found.best)
    points = _ending(trend.points, now) if watched.complete else trend.points
    watched.known = Certainty(found, tuple(points), watched.complete, watched.events, at)


def _ending(points: list[TrendPoint], now: TrendPoint) -> list[TrendPoint]:
    return [*(point for point in points if point.spent < now.spent), now]
