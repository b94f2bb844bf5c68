"""Expensive plays on any executor: keep every worker busy, tell results as they come, lose none."""

import logging
import math
import queue
import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from mfbandit._internal.progress import Interrupts, interrupts_kept
from mfbandit._internal.validation import positive, whole
from mfbandit._internal.validation import seed as checked_seed
from mfbandit.errors import (
    CapitalExhausted,
    Conflict,
    ExecutorBroken,
    ExperimentPaused,
    InvalidArgument,
    NoActiveArms,
    NoResults,
    StoreError,
)
from mfbandit.execution.attempt import Objective, Outcome, SeededPlay, attempt, described, seeded, too_long
from mfbandit.execution.display import Look, Shown, shown
from mfbandit.execution.lease_renewal import renewing
from mfbandit.execution.worker_pool import Crew, crew
from mfbandit.experiment import Experiment

if TYPE_CHECKING:
    from mfbandit.service import RemoteExperiment

AnyExperiment: TypeAlias = "Experiment | RemoteExperiment"
SLACK = 10.0  # seconds that a worker may need to begin, or to interrupt a play that takes too long; then it is dropped
PAUSE = 1.0  # seconds between two questions whether there is something to do again
ALONE = 30.0  # seconds without any worker after which that is said
HASTE = 3.0  # seconds to wait for a service in the end

log = logging.getLogger("mfbandit")


@dataclass(frozen=True)
class Failure:
    """A play that failed in its last attempt, and why."""

    play: SeededPlay
    error: str


@dataclass(frozen=True)
class Ran:
    """What a job did; made by :func:`run`.

    Args:
        told: results that were told.
        failures: plays that failed for good.
        retried: attempts that failed and were repeated.
        ended: why it ended.
        seconds: how long it took.
        busy: share of the workers' time that objectives took, in [0, 1].
        overhead: seconds per play that the job itself took for asking, handing out, telling and showing.
    """

    told: int
    failures: tuple[Failure, ...]
    retried: int
    ended: str
    seconds: float
    busy: float
    overhead: float

    def __str__(self) -> str:
        plays = f"{self.told:,} result{'s' * (self.told != 1)}, {len(self.failures):,} failed"
        return f"{plays}, {self.retried:,} retried in {self.seconds:.1f} s, workers {self.busy:.0%} busy: {self.ended}"


def run(  # noqa: PLR0913 - options with names and defaults
    experiment: AnyExperiment,
    objective: Objective,
    executor: Executor,
    *,
    workers: int | None = None,
    retries: int = 0,
    timeout: float | None = None,
    seed: int = 0,
    plays: int | None = None,
    ahead: int = 0,
    lease: float | None = None,
    stay: bool = False,
    progress: bool | None = None,
) -> Ran:
    """Make the plays of an experiment on the workers of an executor until its capital is spent.

    Each worker has one play at a time. With one worker these are the plays of a plain loop of ask and tell; with more,
    each is asked for as soon as a worker is free, with the others pending. An attempt fails if the objective raises,
    takes too long, returns no finite number, or dies with its process; it is repeated ``retries`` times, then the play
    is failed, which is noted in the experiment's log; three such plays of an arm in a row set the arm aside.

    On Ctrl-C results that are there are told, and plays under way are failed, which is not held against their arms.

    Args:
        experiment: in memory, in a store or at a service. Leases are renewed while plays are under way.
        objective: is called with a :class:`~mfbandit.SeededPlay` on a worker; returns the reward, or (reward, cost)
            where the play did not cost what its fidelity costs. For processes and Dask it has to be picklable.
        executor: threads, processes, Dask's ``client.get_executor()``, or any other of concurrent.futures's kind. It is
            not shut down. If a process of a standard pool dies, every worker becomes a process of its own.
        workers: how many plays to have under way, where the executor does not say how many workers it has, or where
            it starts them by how much there is to do, as an adaptive Dask cluster does.
        retries: how often a failed attempt is repeated.
        timeout: seconds that an attempt may take. A process is interrupted then, or ended if it does not heed that; a
            thread cannot be: the objective is left to itself in a thread of its own, and the worker goes on. A play
            that Dask begins anew because its worker died has all of that time again.
        seed: for the seeds of plays, see :func:`~mfbandit.seeded`.
        plays: how many plays to ask for at most; no limit by default.
        ahead: how many plays more than there are workers to hand out, for a cluster whose way there and back is long
            against a play; they are asked for with less known.
        lease: seconds of the plays' leases, for an experiment in a store; its own by default.
        stay: wait, when the capital is spent, while others have plays under way that may yet fail and make room.
        progress: whether to show how it is going; by default on a terminal live, and elsewhere as a line now and then.

    Raises:
        NoActiveArms: every arm failed three times in a row, or is retired.
        RuntimeError: every worker is lost, or the executor is broken.

    >>> from concurrent.futures import ThreadPoolExecutor
    >>> from mfbandit import MFUCB, Experiment, Fidelities, SubGaussian
    >>> fid = Fidelities(costs=[1, 10], biases=[0.1, 0], concentration=SubGaussian(0.1))
    >>> exp = Experiment(MFUCB(), arms=["a", "b", "c"], fidelities=fid, capital=200)
    >>> def objective(play):
    ...     return play.rng().normal({"a": 0.2, "b": 0.8, "c": 0.5}[play.label], 0.1)
    >>> with ThreadPoolExecutor(4) as pool:
    ...     ran = run(exp, objective, pool)
    >>> exp.arms[exp.best()], exp.spent, len(ran.failures), ran.ended
    ('b', 200.0, 0, 'the capital is spent')
    """
    options = Options(
        retries=_not_negative("retries", retries),
        timeout=None if timeout is None else positive("timeout", timeout),
        seed=checked_seed(seed),
        plays=None if plays is None else _not_negative("plays", plays),
        ahead=_not_negative("ahead", ahead),
        lease=_checked_lease(experiment, lease),
        stay=stay,
    )
    if not callable(objective):
        raise InvalidArgument(f"objective must be a function of a play, got {objective!r}")
    all_workers = crew(executor, workers, objective)
    with shown(progress) as screen, interrupts_kept() as interrupts:
        job = _Job(experiment, objective, all_workers, options, interrupts)
        with job.closed(), renewing(experiment, lease, job.held, patience=HASTE):
            job.go(screen)
    return job.ran()


def _not_negative(what: str, value: int) -> int:
    if whole(what, value) < 0:
        raise InvalidArgument(f"{what} must not be negative, got {value}")
    return value


def _checked_lease(experiment: AnyExperiment, lease: float | None) -> float | None:
    if lease is not None and not hasattr(experiment, "renew"):
        raise InvalidArgument(f"lease must be None for an experiment in memory, got {lease}")
    return None if lease is None else positive("lease", lease)


@dataclass(frozen=True)
class Options:
    """What was chosen for a job."""

    retries: int
    timeout: float | None
    seed: int
    plays: int | None
    ahead: int
    lease: float | None
    stay: bool


class _Job:
    """The state of a run: plays under way, by their futures, and what has been counted."""

    def __init__(
        self,
        experiment: AnyExperiment,
        objective: Objective,
        workers: Crew,
        options: Options,
        interrupts: Interrupts,
    ) -> None:
        self._experiment: Any = experiment  # verbs differ a little between kinds of experiments
        self._objective, self._crew, self._options = objective, workers, options
        self._interrupts = interrupts
        self._flying: dict[Future[Outcome], SeededPlay] = {}
        self._lost: set[Future[Outcome]] = set()  # calls that were given up and still occupy a worker
        self._landed: queue.SimpleQueue[Future[Outcome]] = queue.SimpleQueue()
        self._waiting: deque[SeededPlay] = deque()  # for a worker
        self._suspected: set[str] = set()  # plays under which workers died, perhaps by another play: now made alone
        self._deadly: set[int] = set()  # arms under which workers died even so, and that had no result since
        self._failures: list[Failure] = []
        self._asked = self._told = self._retried = 0
        self._nothing: Exception | None = None  # why no play could be asked for
        self._began, self._waited, self._worked = time.monotonic(), 0.0, 0.0
        self._dues: dict[str, float] = {}  # until when plays may take, in the time of ``time.monotonic``
        self._capacity = 0.0  # seconds times workers
        self._workers, self._counted = self._crew.workers, self._began
        self._warn_at = self._began + ALONE
        self._first_look: Look | None = None
        self._ended = ""

    # The loop

    def go(self, screen: Shown | None) -> None:
        """Ask, hand out, wait, tell, until there is nothing more to do."""
        while True:
            self._interrupts()
            self._count_workers()
            self._fill()
            if not self._flying and self._over():
                break
            self._wait(screen)
            self._drop_overdue()
            if screen is not None and time.monotonic() >= screen.due:
                screen.show(self._look())
        if screen is not None and time.monotonic() >= self._began + 2:
            screen.show(self._look())

    def _fill(self) -> None:
        """Give every free worker a play."""
        places = max(self._workers, 1) + self._options.ahead  # a cluster may start its first worker for a first play
        while (free := places - len(self._flying) - len(self._lost)) > 0:
            if self._on_trial():
                return
            if not self._waiting:
                self._ask(free)
            if not self._waiting:
                return
            self._launch(self._waiting[0])

    def _on_trial(self) -> bool:
        """Whether a suspected play is made alone now, or waits until it is."""
        if not self._suspected or not self._flying:
            return False
        next_one = [self._waiting[0]] if self._waiting else []
        return any(play.id in self._suspected for play in [*self._flying.values(), *next_one])

    def _ask(self, free: int) -> None:
        if self._options.plays is not None:
            free = min(free, self._options.plays - self._asked)
        if self._nothing is not None or free <= 0:
            return
        more = {} if self._options.lease is None else {"lease": self._options.lease}
        with self._uninterrupted():
            try:
                news = self._experiment.ask(free, **more)
            except (CapitalExhausted, NoActiveArms, ExperimentPaused) as reason:
                self._nothing = reason
                return
            self._asked += len(news)
            self._waiting.extend(seeded(play, self._options.seed) for play in news)

    def _uninterrupted(self) -> AbstractContextManager[None]:
        """Ctrl-C in the middle of an ask would leave plays that nobody knows; those of a service have leases."""
        return self._interrupts.held() if isinstance(self._experiment, Experiment) else nullcontext()

    def _launch(self, play: SeededPlay) -> None:
        self._dues[play.id] = self._due()
        try:
            future = self._crew.submit(attempt, self._objective, play, self._options.timeout)
        except BrokenExecutor:
            self._repair()
            return
        self._flying[future] = play
        self._waiting.remove(play)
        future.add_done_callback(self._landed.put)

    def _due(self) -> float:
        """Until when a play that is handed out now may take."""
        if self._options.timeout is None:
            return math.inf
        # A play that was handed out ahead waits for the one before it.
        rounds = 1 + math.ceil(self._options.ahead / max(self._workers, 1))
        return time.monotonic() + rounds * self._crew.begins * self._options.timeout + SLACK

    def _over(self) -> bool:
        """Whether to end, now that nothing is under way; a reason not to is waited out."""
        reason = self._nothing
        if self._waiting:
            return self._stuck()
        if reason is None:
            if self._options.plays is None or self._asked < self._options.plays:
                return self._stuck()
            self._ended = "all plays that were wanted are made"
            return True
        if isinstance(reason, NoActiveArms):
            last = f"; the last failure was: {self._failures[-1].error}" if self._failures else ""
            raise NoActiveArms(f"{reason}{last}") from None
        if isinstance(reason, ExperimentPaused) and not hasattr(self._experiment, "renew"):
            raise reason
        waits = isinstance(reason, ExperimentPaused) or (self._options.stay and self._others_work())
        self._ended = "the capital is spent"
        return not waits

    def _stuck(self) -> bool:
        """There are plays to make, but no worker is free and none at work."""
        if self._lost and self._options.timeout is not None:
            raise ExecutorBroken(
                f"every worker is lost: {len(self._lost)} of {self._workers} are in plays that took longer than "
                f"{self._options.timeout:g} s and cannot be stopped"
            )
        return False

    def _others_work(self) -> bool:
        return bool(self._experiment.reserved > 0)

    def _wait(self, screen: Shown | None) -> None:
        """Wait for a result, but not longer than until something else is due, and settle all that are there."""
        began = time.monotonic()
        idle = not self._flying
        until = [began + PAUSE, *(self._dues[play.id] for play in self._flying.values())]
        until += [screen.due] if screen is not None else []
        try:
            first = self._landed.get(timeout=max(min(until) - began, 0.0) + 1e-3)
        except queue.Empty:
            first = None
        self._waited += time.monotonic() - began
        if idle:
            self._nothing = None
        if first is not None:
            self._settle(first)
        with suppress(queue.Empty):
            while True:
                self._settle(self._landed.get_nowait())

    # What comes back

    def _settle(self, future: "Future[Outcome]") -> None:
        """Tell what came of an attempt. It stays under way until that is done: an interrupt loses no result."""
        self._lost.discard(future)
        play = self._flying.get(future)
        if play is None:
            return
        try:
            outcome = future.result()
        except BrokenExecutor:
            self._repair(future)
            return
        except CancelledError:
            raise ExecutorBroken("the executor was shut down, or its cluster is gone, with plays under way") from None
        except Exception as error:
            if self._crew.died(error):
                if play.id not in self._suspected and play.arm not in self._deadly:
                    self._try_alone(future)
                    return
                self._deadly.add(play.arm)
            outcome = Outcome(None, None, described(error), 0.0)
        self._worked += outcome.seconds
        self._nothing = None
        with self._uninterrupted():
            wrong = outcome.error if outcome.reward is None else self._tell(play, outcome)
            if wrong is not None:
                self._failed(play, wrong)
            else:
                self._deadly.discard(play.arm)  # not all of its plays are
            self._flying.pop(future, None)
        self._suspected.discard(play.id)
        self._dues.pop(play.id, None)

    def _try_alone(self, future: "Future[Outcome]") -> None:
        """Make a play again when no other is under way, so that nobody else can be the cause if a worker dies."""
        play = self._flying[future]
        self._suspected.add(play.id)
        with self._uninterrupted():
            self._waiting.appendleft(play)
            del self._flying[future]
        self._dues.pop(play.id, None)
        log.warning("workers died under play %s (%s), which is made again with no other under way", play.id, play.label)

    def _tell(self, play: SeededPlay, outcome: Outcome) -> str | None:
        """Tell a result; what the experiment had against it, if anything."""
        try:
            self._experiment.tell(play, outcome.reward, outcome.cost)
        except Conflict as error:
            log.warning("the result of play %s (%s) was not taken: %s", play.id, play.label, error)
            return None
        except ValueError as error:
            return str(error)
        self._told += 1
        return None

    def _failed(self, play: SeededPlay, error: str) -> None:
        which = f"play {play.id} of {play.label!r} at fidelity {play.fidelity}"
        if play.attempt <= self._options.retries:
            log.info("%s failed in attempt %d and is tried again: %s", which, play.attempt, error)
            self._retried += 1
            self._dues.pop(play.id, None)  # it has not begun again
            self._waiting.append(replace(play, attempt=play.attempt + 1))
            return
        attempts = f" after {play.attempt} attempts" if play.attempt > 1 else ""
        log.warning("%s failed%s: %s", which, attempts, error)
        before = set(self._experiment.set_aside)
        with self._not_conflicting(play):
            self._experiment.fail(play)
            self._experiment.note(f"{which} failed{attempts}: {error}")
        self._failures.append(Failure(play, error))
        if play.arm in set(self._experiment.set_aside) - before:
            log.warning("arm %r is set aside after three failures in a row", play.label)

    @contextmanager
    def _not_conflicting(self, play: SeededPlay) -> Iterator[None]:
        try:
            yield
        except Conflict as error:
            log.warning("the failure of play %s was not taken: %s", play.id, error)

    def _repair(self, future: "Future[Outcome] | None" = None) -> None:
        """The executor broke. Where nobody knows by which play, all are made again, each in a process of its own."""
        broken, self._crew = self._crew, self._crew.repaired()  # first: if it cannot go on, all plays are still known
        hit = [f for f in self._flying if _without_outcome(f)] if broken.shared else [f for f in (future,) if f]
        plays = [self._flying.pop(f) for f in hit]
        self._nothing = None
        if len(plays) == 1 and future is not None:
            self._failed(plays[0], "its process died")
        elif plays:
            log.warning("the pool broke; plays are made again, each in a process of its own: %d", len(plays))
            self._waiting.extend(plays)

    def _drop_overdue(self) -> None:
        now = time.monotonic()
        if not self._workers:  # of a cluster at the moment: no play that was handed out has begun
            self._dues.update((play.id, self._due()) for play in self._flying.values())
        for future, play in list(self._flying.items()):
            if now > self._dues[play.id] and future in self._flying and not future.done():
                dropped = self._crew.drop(future)
                if dropped == "lost":
                    self._lost.add(future)
                self._nothing = None
                self._failed(play, too_long(self._options.timeout))
                del self._flying[future]
                if dropped == "broken":
                    self._repair()

    def held(self) -> list[SeededPlay]:
        """The plays under way whose leases are to be renewed: not those that take longer than they may."""
        now = time.monotonic()
        return [play for play in self._under_way() if self._dues.get(play.id, now) >= now]

    def _under_way(self) -> list[SeededPlay]:
        return [*list(self._flying.values()), *list(self._waiting)]

    # The end

    @contextmanager
    def closed(self) -> Iterator[None]:
        """Whatever happens inside, results that are there are told, and plays under way are given up."""
        try:
            yield
        except BaseException:
            self._experiment = self._experiment.with_patience(HASTE)
            self._give_up()
            raise
        finally:
            self._crew.close()

    def _give_up(self) -> None:
        try:
            # Not those whose workers were interrupted or ended, too: that is not their arms' fault.
            for future in [f for f in self._flying if f.done() and not f.cancelled() and f.exception() is None]:
                self._settle(future)
            for future in self._flying:
                future.cancel()
            self._hand_back(self._under_way())
        except StoreError as error:
            log.warning("plays under way are left to their leases: %s", error)

    def _hand_back(self, plays: list[SeededPlay]) -> None:
        """Fail plays for a reason that is not their arms': those must not be set aside for it."""
        if not plays:
            return
        before = set(self._experiment.set_aside)
        for play in plays:
            with suppress(Conflict):
                self._experiment.fail(play)
        for arm in set(self._experiment.set_aside) - before:
            self._experiment.restore_arm(arm)
        log.warning("%d play%s under way given up; another run goes on", len(plays), "s" * (len(plays) > 1))

    def _count_workers(self) -> None:
        now = time.monotonic()
        self._capacity += (now - self._counted) * self._workers
        self._counted = now
        self._workers = self._crew.workers
        if self._workers:
            self._warn_at = now + ALONE
        elif now > self._warn_at:
            log.warning("the cluster has had no worker for %g s; plays wait for one", ALONE)
            self._warn_at = math.inf

    def ran(self) -> Ran:
        """What was done."""
        seconds = time.monotonic() - self._began
        made = max(self._told + self._retried + len(self._failures), 1)
        return Ran(
            told=self._told,
            failures=tuple(self._failures),
            retried=self._retried,
            ended=self._ended,
            seconds=seconds,
            busy=min(self._worked / max(self._capacity, 1e-9), 1.0),
            overhead=max(seconds - self._waited, 0.0) / made,
        )

    def _look(self) -> Look:
        look = Look(
            **_known(self._experiment),
            failed=len(self._failures),
            busy=min(len(self._flying), self._workers),
            workers=self._workers,
            seconds=time.monotonic() - self._began,
            state="paused" if isinstance(self._nothing, ExperimentPaused) else "",
        )
        self._first_look = first = self._first_look or look
        return replace(look, left=_left(look, look.spent - first.spent, look.seconds - first.seconds))


def _without_outcome(future: "Future[Outcome]") -> bool:
    """Whether nothing came of a call, or nothing yet, because its executor broke."""
    return not future.done() or future.cancelled() or isinstance(future.exception(), BrokenExecutor)


def _left(look: Look, spent: float, seconds: float) -> float | None:
    """Seconds until the capital is spent, if it goes on like this."""
    if look.capital is None or spent <= 0:
        return None
    return max(look.capital - look.spent, 0.0) * seconds / spent


def _known(experiment: Any) -> dict[str, Any]:  # noqa: ANN401 - any kind of experiment
    """What an experiment of any kind knows of itself, of what is shown."""
    if hasattr(experiment, "status"):  # at a service: one request, not five
        record = experiment.status()
        best, results, aside = record["best_label"], record["results"], record["set_aside"]
        spent, capital, labels = record["spent"], record["capital"], experiment.arms if aside else ()
    else:
        labels, aside, spent, capital = experiment.arms, experiment.set_aside, experiment.spent, experiment.capital
        results = experiment.stats.counts.sum(axis=1).tolist()
        try:
            best = labels[experiment.best()]
        except NoResults:
            best = None
    names = tuple(labels[arm] for arm in aside)
    return {"spent": spent, "capital": capital, "best": best, "results": tuple(results), "aside": names}
