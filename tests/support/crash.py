"""Kill a real service again and again while clients work, then count what is left of what it acknowledged.

Nothing here is a stand-in: the service is a process of its own, the clients speak HTTP to it, and what ends it is a
signal that it cannot catch. A promise to keep results is worth what it is worth at such a moment.
"""

import math
import os
import random
import signal
import subprocess
import sys
import threading
import time
import traceback
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Protocol, TypeVar

import mfbandit as mfb
from mfbandit.core.stats import Play
from mfbandit.experiment import AnyExperiment
from mfbandit.experiment.codec import Record as Entry
from mfbandit.experiment.events import (
    ArmRestored,
    ArmSetAside,
    Asked,
    Event,
    Expired,
    Failed,
    LeasesExtended,
    Renewed,
    Told,
)
from mfbandit.experiment.experiment import FAILURES_IN_A_ROW, Experiment
from mfbandit.experiment.log_check import check_possible
from mfbandit.service import RemoteExperiment
from mfbandit.store.durable_experiment import DurableExperiment
from tests.support.objectives import play_number
from tests.support.postgres import free_port

PATIENCE = 60.0  # seconds for a service or a client to come to an end
ARMS = 12
FIDELITIES = mfb.Fidelities(costs=[1.0, 10.0], biases=[0.1, 0.0], concentration=mfb.Bounded(0, 1))
POLICIES: dict[str, mfb.Policy] = {"first": mfb.MFUCB(), "second": mfb.UCB()}
GIVES_UP = 0.3  # of the requests that were not answered: the client never comes back to them
SHORT_LEASE = 0.2  # seconds

T = TypeVar("T")


@dataclass(frozen=True)
class Record:
    """What came of many kills.

    Args:
        kills: how often something was killed.
        asked: plays whose asks were acknowledged.
        told: results, failures included, that were acknowledged.
        lost: acknowledged asks, results and renewals that the store does not have as they were acknowledged.
        doubled: requests that made plays twice, and plays with two outcomes.
        seconds: how long it took.
        faults: whatever else is wrong, in words.
    """

    kills: int
    asked: int
    told: int
    lost: int
    doubled: int
    seconds: float
    faults: tuple[str, ...] = ()

    @property
    def good(self) -> bool:
        """Whether nothing was lost, doubled or otherwise wrong."""
        return not (self.lost or self.doubled or self.faults)


class Server(Protocol):
    """A database server that can be killed; see tests/support/postgres.py."""

    def kill(self) -> None: ...

    def start(self) -> None: ...


# The service


class Service:
    """`mfbandit serve` as a process of its own, on a port that stays the same.

    Args:
        place: the store.
        folder: where its messages go.
    """

    def __init__(self, place: str, folder: Path) -> None:
        self.place, self.port = place, free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.messages = folder / "service.log"
        self.process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> "Service":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.signal(signal.SIGKILL)

    def start(self) -> None:
        """Start it, and do not wait."""
        words = [sys.executable, "-m", "mfbandit", "serve", self.place, "--port", str(self.port)]
        # Measuring which lines run doubles the time to start, and what is killed cannot report anyway.
        environment = {name: value for name, value in os.environ.items() if not name.startswith("COV")}
        with self.messages.open("ab") as messages:
            # In a group of its own: Ctrl-C is for whoever kills, not for what is killed.
            self.process = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stderr=messages, env=environment, process_group=0
            )

    def wait(self, *names: str) -> None:
        """Return when it answers, and has read the logs of these experiments."""
        for path in ("/health", *(f"/api/experiments/{name}" for name in names)):
            self._wait(path)

    def _wait(self, path: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while not self._answers(path):
            ended = self.process is None or self.process.poll() is not None
            if ended or time.monotonic() > deadline:
                raise RuntimeError(f"the service does not answer: {self.messages.read_text()[-2000:]}")
            time.sleep(0.01)

    def _answers(self, path: str) -> bool:
        try:
            with urllib.request.urlopen(self.url + path, timeout=PATIENCE) as answer:  # noqa: S310 - our own address
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False

    def signal(self, number: int) -> int | None:
        """Send it a signal that ends it, and give its exit code."""
        if self.process is None:
            return None
        self.process.send_signal(number)
        code = self.process.wait(PATIENCE)
        self.process = None
        return code


# The clients


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
    faults: list[str] = field(default_factory=list)


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
            self.diary.faults.append(f"{self.name} met {traceback.format_exc()}")

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
        news = [Told(play_number(play), self._random.random(), cost) for play, cost in zip(plays, paid, strict=True)]
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
            self._insist(lambda arm=arm, key=key: experiment.restore_arm(arm, request_key=key))  # type: ignore[misc]


# Killing


@dataclass(frozen=True)
class Plan:
    """How to kill.

    Args:
        kills: how often.
        ways: what to do each time, drawn at random: kill or terminate the service, or kill the database's server.
        clients: how many work at once.
        up: the shortest and longest time, in seconds, between an answer of the service and its end.
        early: the part of kills that do not wait for an answer: the service dies while it starts.
        seed: for everything that is random.
    """

    kills: int
    ways: tuple[str, ...] = ("kill",)
    clients: int = 6
    up: tuple[float, float] = (0.05, 1.0)
    early: float = 0.1
    seed: int = 1


def run(
    place: str,
    folder: Path,
    plan: Plan,
    *,
    server: Server | None = None,
    tick: Callable[[int, list[Diary]], bool] = lambda *_: True,
) -> Record:
    """Do as planned with a new store, and compare what the clients know with what the store has.

    Args:
        place: the store's file or address; there is nothing yet.
        folder: where messages go.
        plan: how to kill.
        server: the one that the address is of, if it is to be killed.
        tick: called after each kill with their number; if it returns False, the killing ends, and what was done until
            then is compared all the same.
    """
    return under_load(
        place,
        folder,
        plan,
        lambda load: _kill_all(load, plan, server, lambda kills: tick(kills, load.diaries)),
    )


@dataclass(frozen=True)
class Load:
    """A service with clients at work.

    Args:
        service: the service.
        diaries: what the clients sent, and what was acknowledged.
        signs: what they are told.
        faults: whatever goes wrong, in words.
    """

    service: Service
    diaries: list[Diary]
    signs: Signs
    faults: list[str] = field(default_factory=list)

    @property
    def kept(self) -> int:
        """How many results were acknowledged so far."""
        return sum(len(diary.kept) for diary in self.diaries)


def under_load(place: str, folder: Path, plan: Plan, act: Callable[[Load], int]) -> Record:
    """Do something to a service on a new store while clients work, and compare what they know with what the store has.

    Args:
        place: the store's file or address; there is nothing yet.
        folder: where messages go.
        plan: how many clients, and their seed.
        act: what is done to it; returns how often.
    """
    began = time.monotonic()
    with mfb.Store(place) as store:
        for name, policy in POLICIES.items():
            store.create(name, policy, arms=ARMS, fidelities=FIDELITIES)
    with Service(place, folder) as service:
        with _clients(service, plan) as load:
            acts = act(load)
        code = service.signal(signal.SIGTERM)
    if code != 0:
        load.faults.append(f"the service must end with 0 when it is told to, and ended with {code}")
    if "Traceback" in service.messages.read_text():
        load.faults.append(f"the service met {service.messages.read_text()[-4000:]}")
    with mfb.Store(place) as store:
        found = [compare(store.open(name), [d for d in load.diaries if d.experiment == name]) for name in POLICIES]
    return _record(acts, load, found, time.monotonic() - began)


@contextmanager
def _clients(service: Service, plan: Plan) -> Iterator[Load]:
    """Clients at work; at the end all have stopped, and what they did not hear of stays unknown."""
    signs = Signs()
    clients = [Client(number, service.url, signs, plan.seed) for number in range(plan.clients)]
    for client in clients:
        client.start()
    try:
        yield Load(service, [client.diary for client in clients], signs)
    finally:
        signs.stop.set()
        signs.up.set()
        for client in clients:
            client.join(2 * PATIENCE)
            if client.is_alive():
                client.diary.faults.append(f"{client.name} does not end")


def _kill_all(load: Load, plan: Plan, server: Server | None, tick: Callable[[int], bool]) -> int:
    chance, kills = random.Random(plan.seed), 0
    service, signs = load.service, load.signs
    while True:
        service.wait(*POLICIES)
        signs.up.set()
        if (kills and not tick(kills)) or kills >= plan.kills:
            return kills
        # As many in the first tenth of the time as in the last half.
        time.sleep(math.exp(chance.uniform(*map(math.log, plan.up))))
        signs.up.clear()
        way = chance.choice(plan.ways)
        _end(way, load, server)
        kills += 1
        while kills < plan.kills and way == "kill" and chance.random() < plan.early:
            time.sleep(chance.uniform(0, 1.5))
            _end(way, load, server)
            kills += 1


def _end(way: str, load: Load, server: Server | None) -> None:
    """End something, and start it again."""
    if way == "server":
        if server is None:
            raise ValueError("a server must be given to be killed, got None")
        server.kill()
        server.start()
        return
    code = load.service.signal(signal.SIGKILL if way == "kill" else signal.SIGTERM)
    if way == "terminate" and code != 0:
        load.faults.append(f"the service must end with 0 when it is told to, and ended with {code}")
    load.service.start()


# Comparing


@dataclass
class Found:
    """What a comparison found."""

    lost: int = 0
    doubled: int = 0
    faults: list[str] = field(default_factory=list)


def _record(kills: int, load: Load, found: list[Found], seconds: float) -> Record:
    asked = sum(len(plays) for diary in load.diaries for plays in diary.plays.values())
    lost, doubled = sum(one.lost for one in found), sum(one.doubled for one in found)
    words = [
        *load.faults,
        *(w for diary in load.diaries for w in diary.faults),
        *(w for one in found for w in one.faults),
    ]
    return Record(kills, asked, load.kept, lost, doubled, seconds, tuple(words))


def compare(experiment: DurableExperiment, diaries: list[Diary]) -> Found:
    """What the store has against what the clients of an experiment know."""
    found, log = Found(), list(experiment.records())
    _compare_asks(log, diaries, found)
    _compare_outcomes(log, diaries, found)
    _compare_rest(log, diaries, found)
    try:
        _replay(experiment, log)
    except (AssertionError, ValueError) as error:
        found.faults.append(f"{experiment.name}: {error}")
    return found


def _compare_asks(log: list[Entry], diaries: list[Diary], found: Found) -> None:
    """Every acknowledged ask is there as it was acknowledged, whole and once; and no ask that nobody sent."""
    made: dict[str, list[Asked]] = {}
    for entry in log:
        if isinstance(entry.event, Asked):
            made.setdefault(str(entry.request), []).append(entry.event)
    for diary in diaries:
        for key, n in diary.keys.items():
            events = made.pop(key, [])
            known = [Asked(play_number(play), play.arm, play.fidelity) for play in diary.plays.get(key, [])]
            found.lost += bool(known) and events[: len(known)] != known
            found.doubled += len(events) > n
            if 0 < len(events) < n:
                found.faults.append(f"of the {n} plays of request {key} there are {len(events)}")
    found.faults += [f"nobody asked for {key}" for key in made]


def _compare_outcomes(log: list[Entry], diaries: list[Diary], found: Found) -> None:
    """Every acknowledged outcome is there as it was acknowledged, once; and none that nobody sent."""
    settled = [entry.event for entry in log if isinstance(entry.event, Told | Failed)]
    there = {event.play: event for event in settled}
    found.doubled += sum(count - 1 for count in Counter(event.play for event in settled).values())
    sent = {play: event for diary in diaries for play, event in diary.outcomes.items()}
    found.lost += sum(there.get(play) != sent[play] for diary in diaries for play in diary.kept)
    found.faults += [f"nobody sent {event}" for event in settled if sent.get(event.play) != event]


def _compare_rest(log: list[Entry], diaries: list[Diary], found: Found) -> None:
    """Renewals come from clients, restored arms too, and everything else from the rules."""
    renewed = {entry.event.play for entry in log if isinstance(entry.event, Renewed)}
    sent = {play: kept for diary in diaries for play, kept in diary.renewed.items()}
    found.lost += sum(kept and play not in renewed for play, kept in sent.items())
    found.faults += [f"nobody renewed play {play}" for play in renewed - sent.keys()]
    # A result of an arm that was set aside brings it back, too.
    steps = [(before.event, after.event) for before, after in pairwise(log)]
    restored = sum(isinstance(after, ArmRestored) and not isinstance(before, Told) for before, after in steps)
    if restored > sum(diary.restores for diary in diaries):
        found.faults.append(f"arms were restored {restored} times, more often than anybody asked for")
    known = Asked | Told | Failed | Expired | Renewed | ArmSetAside | ArmRestored | LeasesExtended
    found.faults += [f"nobody sent {entry.event}" for entry in log if not isinstance(entry.event, known)]


def _replay(experiment: DurableExperiment, log: Iterable[Entry]) -> None:
    """Make the same experiment in memory, event by event: the policy chooses the same plays, the state is the same."""
    plain = Experiment(POLICIES[experiment.name], arms=ARMS, fidelities=FIDELITIES)
    dues: dict[int, float | None] = {}
    for entry in log:
        _check_rule(plain, entry, dues)
        check_possible(plain.folded, entry.event)
        plain._add(entry.event)
        if isinstance(entry.event, Asked | Renewed):
            dues[entry.event.play] = entry.due
        if isinstance(entry.event, LeasesExtended):
            dues = {play: None if due is None else due + entry.event.seconds for play, due in dues.items()}
    stored, again = state(experiment), state(plain)
    for name, value in again.items():
        if stored[name] != value:
            raise AssertionError(f"{name} must be {value} by the log, and is {stored[name]}")


def _check_rule(plain: Experiment, entry: Entry, dues: dict[int, float | None]) -> None:
    """What no client decides follows from what was there before."""
    event: Event = entry.event
    match event:
        case Asked(_, arm, fidelity):
            if plain._choose() != (arm, fidelity):
                raise AssertionError(f"the policy would have chosen {plain._choose()}, and the log has {event}")
        case ArmSetAside(arm):
            if plain.folded.failures[arm] < FAILURES_IN_A_ROW:
                raise AssertionError(f"{event} came after {plain.folded.failures[arm]} failures")
        case Expired(play):
            due = dues[play]
            if due is None or due > entry.time:
                raise AssertionError(f"{event} came at {entry.time}, and was due at {due}")


def state(experiment: AnyExperiment) -> dict[str, object]:
    """Everything that the log makes, to the last bit."""
    stats = experiment.stats
    arrays = {name: getattr(stats, name) for name in ("counts", "sums", "squares", "pending", "active")}
    pending = [(play_number(play), play.arm, play.fidelity) for play in experiment.pending]
    return {
        **{name: (array.shape, array.tobytes()) for name, array in arrays.items()},
        "pending plays": pending,
        "spent": experiment.spent,
        "reserved": experiment.reserved,
        "arms set aside": experiment.set_aside,
    }
