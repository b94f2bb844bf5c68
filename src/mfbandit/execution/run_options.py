"""The options of a run, checked."""

import os
from dataclasses import dataclass
from pathlib import Path

from mfbandit._internal.validation import flag, positive, whole
from mfbandit._internal.validation import seed as checked_seed
from mfbandit.errors import InvalidArgument
from mfbandit.execution.attempt import HasParts, Objective, SeededPlay
from mfbandit.execution.states import States
from mfbandit.experiment import AnyExperiment, Sure, checked_stop


@dataclass(frozen=True)
class RunOptions:
    """What :func:`~mfbandit.run` was asked to do; see there.

    >>> RunOptions(print, retries=-1)
    Traceback (most recent call last):
    mfbandit.errors.InvalidArgument: retries must not be negative, got -1
    """

    objective: Objective
    retries: int = 0
    timeout: float | None = None
    seed: int = 0
    plays: int | None = None
    ahead: int = 0
    until: Sure | None = None
    stay: bool = False
    spool: str | os.PathLike[str] | None = None
    take_over: bool = False
    first_failures: int | None = None
    states: States | None = None

    def __post_init__(self) -> None:
        _check_not_negative("retries", self.retries)
        if self.timeout is not None:
            object.__setattr__(self, "timeout", positive("timeout", self.timeout))
        object.__setattr__(self, "seed", checked_seed(self.seed))
        if self.plays is not None:
            _check_not_negative("plays", self.plays)
        _check_not_negative("ahead", self.ahead)
        checked_stop(self.until, "until")
        if self.spool is not None:
            object.__setattr__(self, "spool", _checked_folder(self.spool))
        if self.states is not None and not isinstance(self.states, States):
            raise InvalidArgument(f"states must be a States, got {self.states!r}")
        flag("take_over", self.take_over)
        if self.first_failures is not None and whole("first_failures", self.first_failures) < 1:
            raise InvalidArgument(f"first_failures must be at least 1, got {self.first_failures}")
        if not callable(self.objective):
            raise InvalidArgument(f"objective must be a function of a play, got {self.objective!r}")

    def of_play(self, play: SeededPlay) -> Objective:
        """Return what a worker calls for a play: the objective, or the part of it that the play needs."""
        return self.objective.of_play(play) if isinstance(self.objective, HasParts) else self.objective


def checked_lease(experiment: AnyExperiment, lease: float | None) -> float | None:
    """Return the seconds of a lease; refuse one for an experiment whose plays have no leases.

    >>> from mfbandit import UCB, Bounded, Experiment, Fidelities
    >>> exp = Experiment(UCB(), arms=2, fidelities=Fidelities([1], concentration=Bounded()))
    >>> checked_lease(exp, 60.0)
    Traceback (most recent call last):
    mfbandit.errors.InvalidArgument: lease must be None for an experiment in memory, got 60.0
    """
    if lease is None:
        return None
    if not experiment.shared:
        raise InvalidArgument(f"lease must be None for an experiment in memory, got {lease}")
    return positive("lease", lease)


def _checked_folder(spool: str | os.PathLike[str]) -> Path:
    if not isinstance(spool, str | os.PathLike) or not os.fspath(spool):
        raise InvalidArgument(f"spool must be a folder, got {spool!r}")
    folder = Path(spool)
    if folder.exists() and not folder.is_dir():
        raise InvalidArgument(f"spool must be a folder, got {str(spool)!r}, which is a file")
    return folder


def _check_not_negative(what: str, value: int) -> None:
    if whole(what, value) < 0:
        raise InvalidArgument(f"{what} must not be negative, got {value}")
