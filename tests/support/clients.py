"""Clients of a service that ask and tell without pause, and keep a diary of what was acknowledged."""

import random
import threading
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeVar

import mfbandit as mfb
from mfbandit.core.stats import Play
from mfbandit.errors import InvalidArgument
from mfbandit.experiment.events import Failed, Told
from mfbandit.service import RemoteExperiment
from tests.support.objectives import play_number

PATIENCE = 60.0  # seconds for a service or a client to come to an end
ARMS = 12
MEANS = (0.45, 0.2, 0.5, 0.3, 0.1, 0.35, 0.8, 0.4, 0.25, 0.55, 0.15, 0.5)  # at the highest fidelity
OFFSETS = (0.05, -0.05)  # of the lowest fidelity, for even and for odd arms: within the bias
FIDELITIES = mfb.Fidelities(costs=[1.0, 10.0], biases=[0.1, 0.0], concentration=mfb.Bounded(0, 1))
POLICIES: dict[str, mfb.Policy] = {"first": mfb.MFUCB(), "second": mfb.UCB()}
GIVES_UP = 0.3  # of the requests that were not answered: the client never comes back to them
LEASE = 2.0  # seconds, of most plays
SHORT_LEASE = 0.2  # of some

T = TypeVar("T")


def reward(play: Play, chance: random.Random) -> float:
    """0 or 1, with the rate of the play's arm at its fidelity."""
    rate = MEANS[play.arm] + (0.0 if play.fidelity else OFFSETS[play.arm % 2])
    return float(chance.random() < rate)


@dataclass
class Diary:
    """What one client sent, noted before it was sent, and what of that was acknowledged, noted afterwards."""

    experiment: str
    keys: dict[str, int] = field(default_factory=dict)  # of asks, and how many plays they were for
    plays: dict[str, list[Play]] = field(default_factory=dict)  # acknowledged, by key
    outcomes: dict[int, Told | Failed] = field(default_factory=dict)  # sent, by play
    kept: set[int] = field(default_factory=set)  # plays whose outcome was acknowledged
    renewed: dict[int, bool] = field(default_factory=dict)  # whether a renewal was acknowledged
    restores: int = 0
    problems: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Signs:
    """What the clients are told by whoever kills the service."""

    up: threading.Event = field(default_factory=threading.Event)
    stop: threading.Event = field(default_factory=threading.Event)


class GaveUp(Exception):
    """The client does not know what became of its request, and never will."""


class Client(threading.Thread):
    """Asks and tells without pause. Two of three are impatient: they give requests up, or repeat them themselves.

    Args:
        number: which one it is.
        url: of the service.
        signs: when to go on, and when to stop.
        seed: for what it does.
    """

    def __init__(self, number: int, url: str, signs: Signs, seed: int) -> None:
        super().__init__(name=f"client {number}", daemon=True)
        self.diary = Diary(list(POLICIES)[number // 2 % len(POLICIES)])
        self._number, self._signs, self._random = number, signs, random.Random(f"{seed} {number}")
        self._url, self._patience = url, 0.1 if number % 3 else PATIENCE
        self._restores = number % 2 == 0 and number < 2 * len(POLICIES)  # one for each experiment
        self._turns = 0

    def run(self) -> None:
        """Work until it is told to stop."""
        try:
            with mfb.connect(self._url, patience=self._patience) as store:
                experiment = RemoteExperiment(store._transport, self.diary.experiment)
                while not self._signs.stop.is_set():
                    self._turn(experiment)
        except Exception:
            self.diary.problems.append(f"{self.name} met {traceback.format_exc()}")

    def _turn(self, experiment: RemoteExperiment) -> None:
        self._turns += 1
        try:
            if self._restores and self._turns % 50 == 0:
                self._restore(experiment)
            plays = self._ask(experiment)
            if self._random.random() < 0.2:
                self._renew(experiment, plays[-1])
            self._settle(experiment, plays)
        except GaveUp:
            pass

    def _insist(self, action: Callable[[], T]) -> T:
        while True:
            try:
                return action()
            except mfb.StoreUnavailable:
                self._signs.up.wait(PATIENCE)
                if self._signs.stop.is_set() or self._random.random() < GIVES_UP:
                    raise GaveUp from None

    def _ask(self, experiment: RemoteExperiment) -> list[Play]:
        key, n = f"{self._number}-{self._turns}", self._random.choice((1, 1, 1, 2, 5))
        lease = SHORT_LEASE if self._random.random() < 0.05 else None
        self.diary.keys[key] = n
        plays = self._insist(lambda: experiment.ask(n, request_key=key, lease=lease))
        self.diary.plays[key] = plays
        return plays

    def _renew(self, experiment: RemoteExperiment, play: Play) -> None:
        self.diary.renewed.setdefault(play_number(play), False)
        try:
            self._insist(lambda: experiment.renew(play))
        except mfb.Conflict:  # its short lease ran out
            return
        self.diary.renewed[play_number(play)] = True

    def _settle(self, experiment: RemoteExperiment, plays: list[Play]) -> None:
        told = [play for play in plays if self._random.random() < 0.9]
        if len(told) > 1 and self._random.random() < 0.5:
            self._tell(experiment, told)
        else:
            for play in told:
                self._tell(experiment, [play])
        for play in plays:  # some of the others are left alone
            if play not in told and self._random.random() < 0.5:
                self._fail(experiment, play)

    def _tell(self, experiment: RemoteExperiment, plays: list[Play]) -> None:
        paid = [self._random.choice((play.cost, self._random.uniform(0, 2))) for play in plays]
        news = [
            Told(play_number(play), reward(play, self._random), cost) for play, cost in zip(plays, paid, strict=True)
        ]
        self.diary.outcomes.update((told.play, told) for told in news)
        results = [(play, told.reward, told.cost) for play, told in zip(plays, news, strict=True)]
        for _ in range(self._random.choice((1, 1, 1, 2))):
            self._insist(lambda: experiment.tell_many(results))
            self.diary.kept.update(told.play for told in news)

    def _fail(self, experiment: RemoteExperiment, play: Play) -> None:
        failed = Failed(play_number(play), self._random.choice((0.0, self._random.random())))
        self.diary.outcomes[failed.play] = failed
        self._insist(lambda: experiment.fail(play, failed.cost))
        self.diary.kept.add(failed.play)

    def _restore(self, experiment: RemoteExperiment) -> None:
        """Bring arms back that failed too often, so that there is always something to ask for."""
        for arm in self._insist(lambda: experiment.set_aside):
            key = f"{self._number}-{self._turns}-{arm}"
            self.diary.restores += 1
            with suppress(InvalidArgument):  # a late result brought it back meanwhile
                self._insist(lambda arm=arm, key=key: experiment.restore_arm(arm, request_key=key))  # type: ignore[misc]
