"""Tell an experiment what came of the plays of a run, and count it."""

import logging
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from mfbandit.errors import Conflict, InvalidArgument, UnknownPlay
from mfbandit.execution.attempt import SeededPlay
from mfbandit.experiment import AnyExperiment

log = logging.getLogger("mfbandit")


@dataclass(frozen=True)
class Failure:
    """A play that failed in its last attempt, and why."""

    play: SeededPlay
    error: str


class OutcomeRecorder:
    """Tells an experiment the results and failures of plays, and counts them.

    Args:
        experiment: of any kind.
    """

    def __init__(self, experiment: AnyExperiment) -> None:
        self._experiment = experiment
        self.told = 0
        self.failures: list[Failure] = []

    def hurry(self, seconds: float) -> None:
        """Wait no longer than this for a service from now on."""
        self._experiment = self._experiment.with_patience(seconds)

    def tell(self, play: SeededPlay, reward: float, cost: float | None) -> str | None:
        """Tell a result; return why the experiment refuses its value, or None.

        A result of a play that others have settled meanwhile, or that a restored backup does not have, is dropped
        with a warning.
        """
        try:
            self._experiment.tell(play, reward, cost)
        except (Conflict, UnknownPlay) as error:
            log.warning("the result of play %s (%s) was not accepted: %s", play.id, play.label, error)
            return None
        except InvalidArgument as error:
            return str(error)
        self.told += 1
        return None

    def fail(self, play: SeededPlay, error: str) -> None:
        """Fail a play after its last attempt, and note why in the experiment's log."""
        attempts = f" after {play.attempt} attempts" if play.attempt > 1 else ""
        text = f"{describe_play(play)} failed{attempts}: {error}"
        log.warning("%s", text)
        before = set(self._experiment.set_aside)
        try:
            self._experiment.fail(play)
            self._experiment.note(text)
        except (Conflict, UnknownPlay) as conflict:
            log.warning("the failure of play %s was not accepted: %s", play.id, conflict)
        self.failures.append(Failure(play, error))
        if play.arm in set(self._experiment.set_aside) - before:
            log.warning("arm %r is set aside after three failures in a row", play.label)

    def give_back(self, plays: Sequence[SeededPlay]) -> None:
        """Fail plays for a reason that is not their arms' fault: no arm is set aside for it."""
        if not plays:
            return
        before = set(self._experiment.set_aside)
        for play in plays:
            with suppress(Conflict, UnknownPlay):
                self._experiment.fail(play)
        for arm in set(self._experiment.set_aside) - before:
            self._experiment.restore_arm(arm)
        log.warning("%d pending play%s given up; another run can go on", len(plays), "s" * (len(plays) > 1))


def describe_play(play: SeededPlay) -> str:
    """Name a play in a message.

    >>> describe_play(SeededPlay("demo-0", 0, 2, 1000.0, "ad-a", seed=7))
    "play demo-0 of 'ad-a' at fidelity 2"
    """
    return f"play {play.id} of {play.label!r} at fidelity {play.fidelity}"
