"""The loop of a run: ask for plays, hand them to workers, wait, and know when to end."""

import logging
import time
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path

from mfbandit._internal.progress import Interrupts
from mfbandit.core import Play
from mfbandit.errors import (
    CapitalExhausted,
    ExecutorBroken,
    ExperimentDecided,
    ExperimentPaused,
    InvalidArgument,
    MFBanditError,
    NoActiveArms,
    StoreError,
    StoreUnavailable,
)
from mfbandit.execution.attempt import seeded
from mfbandit.execution.display import FIRST_LINE_AFTER_SECONDS, ProgressDisplay, RunProgress
from mfbandit.execution.outcomes import OutcomeRecorder
from mfbandit.execution.play_runner import PlayRunner
from mfbandit.execution.run_options import RunOptions
from mfbandit.execution.worker_pool import WorkerPool
from mfbandit.experiment import AnyExperiment

POLL_SECONDS = 1.0  # between two checks whether there is something to do again
SHUTDOWN_PATIENCE_SECONDS = 3.0  # to wait for a service at the end

log = logging.getLogger("mfbandit")


class RunLoop:
    """Keeps the workers of a pool busy with the plays of an experiment.

    Args:
        experiment: of any kind.
        pool: the workers.
        options: of the run.
        lease: seconds of the plays' leases; None for the experiment's own.
        interrupts: the Ctrl-C that have come in.
    """

    def __init__(
        self,
        experiment: AnyExperiment,
        pool: WorkerPool,
        options: RunOptions,
        lease: float | None,
        interrupts: Interrupts,
    ) -> None:
        self._experiment, self._options, self._lease, self._interrupts = experiment, options, lease, interrupts
        # Ctrl-C in the middle of an ask would leave plays that nobody knows. Those of a service have leases, and
        # a service that does not answer must not hold up Ctrl-C.
        self._hold_interrupts = nullcontext if experiment.remote else interrupts.held
        self.recorder = OutcomeRecorder(experiment, None if options.spool is None else Path(options.spool))
        self.runner = PlayRunner(pool, options, self.recorder, self._hold_interrupts)
        self.ended = ""
        self._waiting = ""  # for what, as it was said
        self._asked = 0
        self._no_play: Exception | None = None  # why no play could be asked for
        self._unanswered: tuple[int, str] | None = None  # how many plays were asked for, and the key of that request
        self._is_sure, self._look_at = False, 0.0  # when to look again
        self._first_progress: RunProgress | None = None
        self._last_progress: RunProgress | None = None

    def go(self, display: ProgressDisplay | None) -> None:
        """Ask, hand out, wait and settle until there is nothing more to do."""
        if self._options.take_over:
            self._queue(self._experiment.pending)
        while True:
            self._interrupts()
            self.runner.count_workers()
            with self._hold_interrupts():
                self.recorder.retry()
            self._hand_out()
            if not self.runner.running and self._over():
                break
            self._wait(display)
            self._check_some_result()
            if display is not None and time.monotonic() >= display.due:
                self._show(display)
        if display is not None and self.runner.usage.seconds >= FIRST_LINE_AFTER_SECONDS:
            self._show(display)

    def warnings(self) -> tuple[str, ...]:
        """Return what the experiment warns of now; nothing if it cannot be asked."""
        try:
            return tuple(self._experiment.status()["warnings"])
        except MFBanditError:
            return ()

    @contextmanager
    def closing(self) -> Iterator[None]:
        """At the end of the block close the pool; after an error tell the results that are there and stop."""
        try:
            yield
        except BaseException:
            self.recorder.hurry(SHUTDOWN_PATIENCE_SECONDS)
            try:
                self._take_up_unanswered()
                self.runner.stop()
            except StoreError as error:
                log.warning("pending plays are left to their leases: %s", error)
            raise
        finally:
            self.recorder.close()
            self.runner.close()

    def _hand_out(self) -> None:
        """Give every free worker a play."""
        while (free := self.runner.free_places()) > 0 and not self.runner.must_wait():
            if not self.runner.queued:
                self._ask(free)
            if not self.runner.queued:
                return
            self.runner.start_next()

    def _ask(self, free: int) -> None:
        if self._options.plays is not None:
            free = min(free, self._options.plays - self._asked)
        if self._no_play is not None or free <= 0 or self.recorder.untold:
            return
        with self._hold_interrupts():
            try:
                self._check_not_sure()
                plays = self._ask_for(free)
            except (CapitalExhausted, ExperimentDecided, NoActiveArms, ExperimentPaused, StoreUnavailable) as reason:
                self._no_play = reason
                self._say_why(reason)
                return
            self._say_why(None)
            self._asked += len(plays)
            self._queue(plays)
            self._unanswered = None

    def _check_not_sure(self) -> None:
        """Raise an error if it is sure enough for this run to end; once it was, it is."""
        rule, now = self._options.until, time.monotonic()
        if rule is not None and not self._is_sure and (not self._experiment.remote or now >= self._look_at):
            self._look_at = now + POLL_SECONDS
            self._is_sure = self._experiment.is_sure(rule)
        if self._is_sure:
            raise ExperimentDecided("it is sure enough of the best arm")

    def _ask_for(self, number: int) -> list[Play]:
        if not self._experiment.shared:
            return self._experiment.ask(number)
        # A request whose answer was lost is repeated as it was: plays that nobody knows would wait for their leases.
        self._unanswered = self._unanswered or (number, uuid.uuid4().hex)
        number, key = self._unanswered
        try:
            return self._experiment.ask(number, request_key=key, lease=self._lease)
        except StoreUnavailable:
            raise
        except Exception:
            self._unanswered = None
            raise

    def _queue(self, plays: Iterable[Play]) -> None:
        self.runner.add(seeded(play, self._options.seed) for play in plays)

    def _take_up_unanswered(self) -> None:
        """Queue the plays of a request that was interrupted before its answer came, to be given back with the rest."""
        if self._unanswered is None:
            return
        number, key = self._unanswered
        known = {play.id for play in self.runner.unsettled()}
        experiment = self._experiment.with_patience(SHUTDOWN_PATIENCE_SECONDS)
        try:
            plays = experiment.ask(number, request_key=key, lease=self._lease)
        except StoreUnavailable as error:
            log.warning(
                "plays of a request that was not answered, if there are any, are left to their leases: %s", error
            )
            return
        except MFBanditError:  # there is no play
            return
        self._queue(play for play in plays if play.id not in known)

    def _say_why(self, reason: Exception | None) -> None:
        """Say that plays are waited for, and why; once, and when it goes on."""
        waiting = ""
        if isinstance(reason, ExperimentPaused) and self._experiment.shared:
            waiting = "the experiment is paused: waiting until it is resumed"
        elif isinstance(reason, StoreUnavailable):
            waiting = f"the store is unavailable, and is asked again until it is back: {reason}"
        if bool(waiting) != bool(self._waiting):
            log.warning("%s", waiting or "waiting is over: the run goes on")
        self._waiting = waiting

    def _wait(self, display: ProgressDisplay | None) -> None:
        """Wait for a result, but not longer than until something else is due; settle what is there or overdue."""
        idle = not self.runner.running
        until = min(time.monotonic() + POLL_SECONDS, self.runner.next_deadline())
        settled = self.runner.settle_finished(until if display is None else min(until, display.due))
        overdue = self.runner.give_up_overdue()
        if idle or settled or overdue:  # there may be room for a play again
            self._no_play = None

    def _check_some_result(self) -> None:
        """Raise an error if so many plays have failed, and none has a result, that the objective must be wrong."""
        most, failures = self._options.first_failures, self.recorder.failures
        if most is not None and len(failures) >= most and not self.recorder.told:
            last = failures[-1].error
            raise InvalidArgument(f"objective must have results, got {len(failures)} failures at first: {last}")

    def _over(self) -> bool:
        """Whether to end, now that nothing is running."""
        if self.runner.queued:
            return self._check_workers_left()
        if self.recorder.untold:
            return False
        match self._no_play:
            case None if self._options.plays is None or self._asked < self._options.plays:
                return self._check_workers_left()
            case None:
                self.ended = "all plays that were wanted are made"
                return True
            case NoActiveArms() as reason:
                failures = self.recorder.failures
                last = f"; the last failure was: {failures[-1].error}" if failures else ""
                raise NoActiveArms(f"{reason}{last}") from None
            case ExperimentPaused() as reason if not self._experiment.shared:  # nobody else could resume it
                raise reason
            case StoreUnavailable() as reason if self._experiment.remote:  # its patience has ended
                raise reason
            case ExperimentPaused() | StoreUnavailable():
                return False
        return self._ends_by_itself()

    def _ends_by_itself(self) -> bool:
        """Whether it is decided, or the capital is spent for good."""
        if isinstance(self._no_play, ExperimentDecided):
            self.ended = "it is sure enough of the best arm" if self._is_sure else "the experiment is decided"
            return True
        self.ended = "the capital is spent"
        return not (self._options.stay and self._experiment.reserved > 0)  # others' plays may fail and make room

    def _check_workers_left(self) -> bool:
        """Raise an error if there are plays to make and every worker is lost; else return False."""
        lost = len(self.runner.abandoned)
        if lost and self._options.timeout is not None:
            raise ExecutorBroken(
                f"every worker is lost: {lost} of {self.runner.usage.workers} are in plays that took longer than "
                f"{self._options.timeout:g} s and cannot be stopped"
            )
        return False

    def _show(self, display: ProgressDisplay) -> None:
        """Show the progress; the last one that is known while the store is unavailable."""
        try:
            self._last_progress = self._progress()
        except StoreUnavailable:
            display.put_off()
        if self._last_progress is not None:
            untold = self.recorder.untold
            state = f"the store is unavailable, {untold:,} untold" if untold else self._last_progress.state
            display.show(replace(self._last_progress, seconds=self.runner.usage.seconds, state=state))

    def _progress(self) -> RunProgress:
        status, usage = self._experiment.status(), self.runner.usage
        labels = self._experiment.arms if status["set_aside"] else ()
        progress = RunProgress(
            spent=status["spent"],
            capital=status["capital"],
            best=status["best_label"],
            results=tuple(status["results"]),
            set_aside=tuple(labels[arm] for arm in status["set_aside"]),
            failed=len(self.recorder.failures),
            busy=min(len(self.runner.running), usage.workers),
            workers=usage.workers,
            seconds=usage.seconds,
            state="paused" if isinstance(self._no_play, ExperimentPaused) else "",
        )
        self._first_progress = first = self._first_progress or progress
        return replace(progress, seconds_left=_seconds_left(first, progress))


def _seconds_left(first: RunProgress, now: RunProgress) -> float | None:
    """Seconds until the capital is spent, at the pace since the progress was first shown."""
    spent = now.spent - first.spent
    if now.capital is None or spent <= 0:
        return None
    return max(now.capital - now.spent, 0.0) * (now.seconds - first.seconds) / spent
