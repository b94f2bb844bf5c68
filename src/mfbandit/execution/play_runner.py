"""Make plays on a worker pool until each is settled: told, or failed after its last attempt."""

import logging
import math
import queue
import time
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import BrokenExecutor, CancelledError, Future
from contextlib import AbstractContextManager, suppress
from dataclasses import replace

from mfbandit.errors import ExecutorBroken
from mfbandit.execution.attempt import AttemptResult, SeededPlay, describe_error, make_attempt, timeout_error
from mfbandit.execution.outcomes import OutcomeRecorder, describe_play
from mfbandit.execution.run_options import RunOptions
from mfbandit.execution.worker_pool import WorkerPool
from mfbandit.execution.worker_usage import WorkerUsage

OVERDUE_GRACE_SECONDS = 10.0  # for a worker to start a play, or to interrupt one that takes too long

log = logging.getLogger("mfbandit")


class PlayRunner:
    """Hands plays to workers and settles what comes back, also if workers die or hang.

    Args:
        pool: the workers; closed at the end.
        options: of the run.
        recorder: tells the experiment.
        hold_interrupts: a context in which Ctrl-C waits, so that what is told and what is listed here agree.
    """

    def __init__(
        self,
        pool: WorkerPool,
        options: RunOptions,
        recorder: OutcomeRecorder,
        hold_interrupts: Callable[[], AbstractContextManager[None]],
    ) -> None:
        self._pool, self._options, self._recorder, self._states = pool, options, recorder, options.states
        self._hold_interrupts = hold_interrupts
        self.running: dict[Future[AttemptResult], SeededPlay] = {}
        self.queued: deque[SeededPlay] = deque()
        self.abandoned: set[Future[AttemptResult]] = set()  # calls that were given up and still occupy a worker
        self.retried = 0
        self.usage = WorkerUsage(pool.workers)
        self._finished: queue.SimpleQueue[Future[AttemptResult]] = queue.SimpleQueue()
        self._deadlines: dict[str, float] = {}  # by play ids, in the time of ``time.monotonic``
        self._run_alone: set[str] = set()  # plays under which workers died, perhaps by another play
        self._deadly_arms: set[int] = set()  # whose plays killed workers even alone, with no result since

    # Handing out

    def count_workers(self) -> None:
        """Look how many workers there are now."""
        self.usage.count(self._pool.workers)

    def free_places(self) -> int:
        """Return how many more plays can be handed out; 0 or less for none."""
        # At least one: a cluster may start its first worker for a first play.
        places = max(self.usage.workers, 1) + self._options.ahead
        return places - len(self.running) - len(self.abandoned)

    def must_wait(self) -> bool:
        """Return whether nothing can be handed out now, because a play is made alone or is to be made alone next."""
        if not self._run_alone or not self.running:
            return False
        first = [self.queued[0]] if self.queued else []
        return any(play.id in self._run_alone for play in [*self.running.values(), *first])

    def add(self, plays: Iterable[SeededPlay]) -> None:
        """Queue plays for workers."""
        self.queued.extend(plays)

    def start_next(self) -> None:
        """Hand the first queued play to a worker."""
        play = self.queued[0]
        self._deadlines[play.id] = self._deadline()
        sent = play if self._states is None else self._states.attach(play)
        try:
            future = self._pool.submit(make_attempt, self._options.of_play(sent), sent, self._options.timeout)
        except BrokenExecutor:
            self._recover()
            return
        self.running[future] = replace(play, seed=sent.seed)  # without the state, which may be large
        self.queued.remove(play)
        future.add_done_callback(self._finished.put)

    def _deadline(self) -> float:
        """Until when a play that is handed out now may take."""
        if self._options.timeout is None:
            return math.inf
        # A play that was handed out ahead waits for the one before it.
        rounds = 1 + math.ceil(self._options.ahead / max(self.usage.workers, 1))
        return time.monotonic() + rounds * self._pool.max_starts * self._options.timeout + OVERDUE_GRACE_SECONDS

    # Settling

    def next_deadline(self) -> float:
        """Return when the first running play will be overdue."""
        return min((self._deadlines[play.id] for play in self.running.values()), default=math.inf)

    def settle_finished(self, until: float) -> bool:
        """Wait for a finished call until then, and settle all that are there; return whether a play was settled."""
        began = time.monotonic()
        try:
            first = self._finished.get(timeout=max(until - began, 0.0) + 1e-3)
        except queue.Empty:
            first = None
        self.usage.waited += time.monotonic() - began
        settled = first is not None and self._settle(first)
        with suppress(queue.Empty):
            while True:
                settled |= self._settle(self._finished.get_nowait())
        return settled

    def _settle(self, future: "Future[AttemptResult]") -> bool:
        """Settle the play of a call. It stays listed as running until that is done: an interrupt loses no result."""
        self.abandoned.discard(future)
        play = self.running.get(future)
        if play is None:
            return False
        result = self._result(future, play)
        if result is None:
            return True
        self.usage.worked += result.seconds
        with self._hold_interrupts():
            error = self._tell(play, result)
            if error is None:
                self._deadly_arms.discard(play.arm)  # not all of its plays are
            else:
                self._retry_or_fail(play, error)
            self.running.pop(future, None)
        self._run_alone.discard(play.id)
        self._deadlines.pop(play.id, None)
        return True

    def _tell(self, play: SeededPlay, result: AttemptResult) -> str | None:
        """Tell a result and keep its state; return why there is none, or why it is refused."""
        if result.reward is None:
            return result.error
        cost, states = result.cost, self._states
        if states is not None and cost is None and states.began_anew(play):
            cost = self._recorder.full_cost(play)
        if states is not None and result.state is not None:
            states.keep(play, result.state)
        refused = self._recorder.tell(play, result.reward, cost)
        if states is not None and refused is None:
            states.settle(play)
        return refused

    def _result(self, future: "Future[AttemptResult]", play: SeededPlay) -> AttemptResult | None:
        """The result of a finished call, or None if its play is made again or has been settled."""
        try:
            return future.result()
        except BrokenExecutor:
            self._recover(future)
        except CancelledError:
            raise ExecutorBroken("the executor was shut down, or its cluster is gone, with plays running") from None
        except Exception as error:  # whatever an executor raises for a call that it could not make
            if not self._pool.worker_died(error) or self._is_to_blame(play):
                return AttemptResult(None, None, describe_error(error), 0.0)
            self._make_alone(future)
        return None

    def _retry_or_fail(self, play: SeededPlay, error: str) -> None:
        if play.attempt > self._options.retries:
            if self._recorder.fail(play, error) and self._states is not None:
                self._states.drop(play.arm)
            elif self._states is not None:
                self._states.give_back(play)
            return
        log.info("%s failed in attempt %d and is tried again: %s", describe_play(play), play.attempt, error)
        self.retried += 1
        self._deadlines.pop(play.id, None)  # it has not begun again
        self.queued.append(replace(play, attempt=play.attempt + 1))

    # Workers that die or hang

    def _is_to_blame(self, play: SeededPlay) -> bool:
        """Whether a worker died under a play that was made alone, or of whose arm that is known."""
        if play.id not in self._run_alone and play.arm not in self._deadly_arms:
            return False
        self._deadly_arms.add(play.arm)
        return True

    def _make_alone(self, future: "Future[AttemptResult]") -> None:
        """Make a play again while no other is running, so that no other can be the cause if a worker dies."""
        play = self.running[future]
        self._run_alone.add(play.id)
        with self._hold_interrupts():
            self.queued.appendleft(play)
            del self.running[future]
        self._deadlines.pop(play.id, None)
        log.warning("workers died under play %s (%s), which is made again with no other running", play.id, play.label)

    def _recover(self, future: "Future[AttemptResult] | None" = None) -> None:
        """Go on after the executor broke; if it is not known by which play, make all again, each in its own process."""
        broken, self._pool = self._pool, self._pool.repaired()  # first: if it cannot go on, all plays are still listed
        hit = [f for f in self.running if _has_no_result(f)] if broken.breaks_as_one else [f for f in (future,) if f]
        plays = [self.running.pop(f) for f in hit]
        if len(plays) == 1 and future is not None:
            self._retry_or_fail(plays[0], "its process died")
        elif plays:
            log.warning("the pool broke; plays that are made again, each in a process of its own: %d", len(plays))
            self.queued.extend(plays)

    def give_up_overdue(self) -> bool:
        """Give up calls that take longer than they may; return whether there was one."""
        now, any_overdue = time.monotonic(), False
        if not self.usage.workers:  # of a cluster at the moment: no play that was handed out has begun
            self._deadlines.update((play.id, self._deadline()) for play in self.running.values())
        for future, play in list(self.running.items()):
            if now > self._deadlines[play.id] and future in self.running and not future.done():
                self._give_up(future, play)
                any_overdue = True
        return any_overdue

    def _give_up(self, future: "Future[AttemptResult]", play: SeededPlay) -> None:
        effect = self._pool.give_up(future)
        if effect == "occupied":
            self.abandoned.add(future)
        self._retry_or_fail(play, timeout_error(self._options.timeout))
        del self.running[future]
        if effect == "broken":
            self._recover()

    # The end

    def unsettled(self) -> list[SeededPlay]:
        """Return the plays that are running or queued."""
        return [*list(self.running.values()), *list(self.queued)]

    def within_deadlines(self) -> list[SeededPlay]:
        """Return the unsettled plays that are not overdue: those whose leases are to be renewed."""
        now = time.monotonic()
        return [play for play in self.unsettled() if self._deadlines.get(play.id, now) >= now]

    def stop(self) -> None:
        """Tell the results that are there, and give up all other plays."""
        # A call whose worker was interrupted or ended, too, is not settled: that is not its arm's fault.
        for future in [f for f in self.running if f.done() and not f.cancelled() and f.exception() is None]:
            self._settle(future)
        for future in self.running:
            future.cancel()
        self._recorder.give_back(self.unsettled())

    def close(self) -> None:
        """End the workers that were started here."""
        self._pool.close()


def _has_no_result(future: "Future[AttemptResult]") -> bool:
    """Whether a call has not ended, or ended because its executor broke."""
    return not future.done() or future.cancelled() or isinstance(future.exception(), BrokenExecutor)
