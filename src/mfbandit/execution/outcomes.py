"""Tell an experiment what came of the plays of a run, and count it."""

import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from mfbandit.core import Play, Reward
from mfbandit.errors import Conflict, InvalidArgument, StoreError, StoreUnavailable, UnknownPlay
from mfbandit.execution.attempt import SeededPlay
from mfbandit.execution.spool import Outcome, Spool
from mfbandit.experiment import AnyExperiment, ArmSetAside, Failed, Record

RETRY_SECONDS = 2.0  # between attempts to tell what could not be told
RETRY_PATIENCE_SECONDS = 5.0  # to wait for a service in such an attempt

log = logging.getLogger("mfbandit")


@dataclass(frozen=True)
class Failure:
    """A play that failed in its last attempt, and why."""

    play: SeededPlay
    error: str


class OutcomeRecorder:
    """Tells an experiment the results and failures of plays, and counts them; keeps what cannot be told now.

    Args:
        experiment: of any kind.
        spool: a folder for outcomes that cannot be told; None for the user's state folder.
    """

    def __init__(self, experiment: AnyExperiment, spool: Path | None = None) -> None:
        self._experiment = experiment
        self.told = 0
        self.failures: list[Failure] = []
        # In memory nothing is ever out of reach.
        self._spool = Spool(experiment.id, spool) if experiment.shared else None
        self._retry_at = 0.0
        left = self._spool.take_over() if self._spool is not None else 0
        if left:
            log.warning("untold results of an earlier run, which are told first: %d", left)

    @property
    def untold(self) -> int:
        """How many outcomes could not be told yet."""
        return 0 if self._spool is None else len(self._spool.outcomes)

    def hurry(self, seconds: float) -> None:
        """Wait no longer than this for a service from now on."""
        self._experiment = self._experiment.with_patience(seconds)

    def tell(self, play: SeededPlay, reward: Reward, cost: float | None) -> str | None:
        """Tell a result; return why the experiment refuses its value, or None.

        A result of a play that others have settled meanwhile, or that a restored backup does not have, is dropped
        with a warning. One that cannot be told now is kept, and told when the store is back.
        """
        outcome = Outcome(_plain(play), reward, cost)
        if self.untold:  # not before those that came first
            self._keep(outcome)
            return None
        try:
            return self._tell(self._experiment, outcome)
        except StoreError as error:
            self._keep(outcome, error)
            if not isinstance(error, StoreUnavailable):  # waiting will not help, and the next run may fare better
                raise
        return None

    def full_cost(self, play: Play) -> float:
        """Return what a play costs that begins anew."""
        return float(self._experiment.fidelities.costs[play.fidelity])

    def fail(self, play: SeededPlay, error: str) -> bool:
        """Fail a play after its last attempt, and note why in the log; return whether its arm is set aside for it."""
        attempts = f" after {play.attempt} attempts" if play.attempt > 1 else ""
        text = f"{describe_play(play)} failed{attempts}: {error}"
        log.warning("%s", text)
        self.failures.append(Failure(play, error))
        outcome = Outcome(_plain(play), error=text)
        if self.untold:
            self._keep(outcome)
            return False
        try:
            return self._fail(self._experiment, outcome)
        except StoreUnavailable as unavailable:
            self._keep(outcome, unavailable)
        return False

    def retry(self) -> None:
        """Tell what could not be told before, if it is time to try again."""
        if self._spool is None or not self.untold or time.monotonic() < self._retry_at:
            return
        experiment, number = self._experiment.with_patience(RETRY_PATIENCE_SECONDS), self.untold
        try:
            while self._spool.outcomes:
                self._settle(experiment, self._spool.outcomes[0])
                self._spool.outcomes.popleft()
        except StoreUnavailable:
            self._retry_at = time.monotonic() + RETRY_SECONDS
            return
        self._spool.clear()
        log.warning("the store is back, and %s told", f"{number:,} results were" if number > 1 else "the result was")

    def close(self) -> None:
        """Leave what is not told to the next run, and say where it is."""
        if self._spool is None:
            return
        if self.untold:
            kept = self._spool.place or "the files of earlier runs"
            log.warning("untold results: %d; the next run of this experiment tells what is in %s", self.untold, kept)
        self._spool.close()

    def give_back(self, plays: Sequence[SeededPlay]) -> None:
        """Fail plays for a reason that is not their arms' fault: no arm is set aside for it."""
        if not plays:
            return
        events, before = _events(self._experiment), set(self._experiment.set_aside)
        for play in plays:
            with suppress(Conflict, UnknownPlay):
                self._experiment.fail(play)
        after = set(self._experiment.set_aside)
        for arm in after - before if events is None else after & _set_aside_by(self._experiment, plays, events):
            with suppress(InvalidArgument):  # another worker that ended, too, was faster
                self._experiment.restore_arm(arm)
        log.warning("%d pending play%s given up; another run can go on", len(plays), "s" * (len(plays) > 1))

    def _keep(self, outcome: Outcome, error: StoreError | None = None) -> None:
        if self._spool is None:  # an experiment of somebody's own that is not shared
            raise error or StoreUnavailable("the experiment is unavailable")
        self._spool.add(outcome)
        if error is not None:
            place = self._spool.place or "memory"
            log.warning("results are kept in %s until the store is back: %s", place, error)
            self._retry_at = time.monotonic() + RETRY_SECONDS

    def _settle(self, experiment: AnyExperiment, outcome: Outcome) -> None:
        """Tell an outcome that was kept, whatever the experiment thinks of it now."""
        refused = self._tell(experiment, outcome) if outcome.error is None else None
        if refused is not None:
            outcome = Outcome(outcome.play, error=f"{describe_play(outcome.play)} failed: {refused}")
        if outcome.error is not None:
            self._fail(experiment, outcome)

    def _tell(self, experiment: AnyExperiment, outcome: Outcome) -> str | None:
        play, reward = outcome.play, outcome.reward
        if reward is None:
            return "it has no reward"
        try:
            experiment.tell(play, reward, outcome.cost)
        except (Conflict, UnknownPlay) as error:
            log.warning("the result of play %s (%s) was not accepted: %s", play.id, play.label, error)
            return None
        except InvalidArgument as error:
            return str(error)
        self.told += 1
        return None

    def _fail(self, experiment: AnyExperiment, outcome: Outcome) -> bool:
        play, before = outcome.play, set(experiment.set_aside)
        try:
            experiment.fail(play)
            experiment.note(str(outcome.error))
        except (Conflict, UnknownPlay) as conflict:
            log.warning("the failure of play %s was not accepted: %s", play.id, conflict)
        out = play.arm in set(experiment.set_aside) - before
        if out:
            log.warning("arm %r is set aside after three failures in a row; `restore_arm` brings it back", play.label)
        return out


@runtime_checkable
class HasRecords(Protocol):
    """An experiment whose log others write as well, and that can be read from some event on."""

    def records(self, after: int = 0) -> Iterator[Record]:
        """Events with their numbers; those after number ``after``."""
        ...


def _events(experiment: AnyExperiment) -> int | None:
    """Return how long the log is; None where nobody else writes to it."""
    return experiment.status()["events"] if isinstance(experiment, HasRecords) else None


def _set_aside_by(experiment: AnyExperiment, plays: Sequence[Play], after: int) -> set[int]:
    """Return the arms that were set aside for the failures of these plays, and by those of no other worker."""
    ours, arms, last = {int(play.id.rpartition("-")[2]) for play in plays}, set[int](), None
    for record in experiment.records(after) if isinstance(experiment, HasRecords) else ():
        event = record.event
        if isinstance(event, ArmSetAside):
            by_us = isinstance(last, Failed) and last.play in ours
            arms = arms | {event.arm} if by_us else arms - {event.arm}
        last = event
    return arms


def describe_play(play: Play) -> str:
    """Name a play in a message.

    >>> describe_play(SeededPlay("demo-0", 0, 2, 1000.0, "ad-a", seed=7))
    "play demo-0 of 'ad-a' at fidelity 2"
    """
    return f"play {play.id} of {play.label!r} at fidelity {play.fidelity}"


def _plain(play: Play) -> Play:
    return Play(play.id, play.arm, play.fidelity, play.cost, play.label, resume_from=play.resume_from)
