"""Disturb a real service again and again while clients work, then count what is left of what it acknowledged.

Nothing here is a stand-in: the service is a process of its own, the clients speak HTTP to it, and what ends it is a
signal that it cannot catch. A promise to keep results is worth what it is worth at such a moment. What can be done to
a service is in ``faults``.
"""

import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import mfbandit as mfb
from tests.support.clients import ARMS, FIDELITIES, LEASE, PATIENCE, POLICIES, Client, Diary, Signs
from tests.support.comparison import Found, compare
from tests.support.postgres import free_port
from tests.support.services import not_measured
from tests.support.shifted_clock import write_shift

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Record:
    """What came of many faults.

    Args:
        faults: how often each thing was done.
        asked: plays whose asks were acknowledged.
        told: results, failures included, that were acknowledged.
        lost: acknowledged asks, results and renewals that the store does not have as they were acknowledged.
        doubled: requests that made plays twice, and plays with two outcomes.
        silent: damage to files that cost acknowledged events, and was not said.
        set_aside: arms that stayed set aside although a result came later.
        seconds: how long it took.
        problems: whatever else is wrong, in words.
    """

    faults: dict[str, int]
    asked: int
    told: int
    lost: int
    doubled: int
    silent: int
    set_aside: int
    seconds: float
    problems: tuple[str, ...] = ()

    @property
    def good(self) -> bool:
        """Whether nothing was lost, doubled or otherwise wrong."""
        return not (self.lost or self.doubled or self.silent or self.set_aside or self.problems)


# The service


class Service:
    """`mfbandit serve` as a process of its own, on a port that stays the same.

    Args:
        place: the store.
        folder: where its messages go, and the file that shifts its clock.
    """

    def __init__(self, place: str, folder: Path) -> None:
        self.place, self.port = place, free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.messages, self.clock = folder / "service.log", folder / "clock"
        write_shift(self.clock, 0.0)
        self.process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> "Service":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.signal(signal.SIGKILL)

    def start(self) -> None:
        """Start it, and do not wait."""
        clock = [sys.executable, "-m", "tests.support.shifted_clock", str(self.clock)]
        words = [*clock, "serve", self.place, "--port", str(self.port)]
        with self.messages.open("ab") as messages:
            # In a group of its own: Ctrl-C is for whoever kills, not for what is killed.
            self.process = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stderr=messages, env=not_measured(), process_group=0, cwd=ROOT
            )

    def wait(self, *names: str) -> None:
        """Return when it answers, and has read the logs of these experiments."""
        for path in ("/health", *(f"/api/experiments/{name}" for name in names)):
            self._wait(path)

    def _wait(self, path: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while not self.answers(path):
            ended = self.process is None or self.process.poll() is not None
            if ended or time.monotonic() > deadline:
                raise RuntimeError(f"the service does not answer: {self.messages.read_text()[-2000:]}")
            time.sleep(0.01)

    def answers(self, path: str = "/health") -> bool:
        """Whether it says that all is well."""
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


# Under load


@dataclass(frozen=True)
class Plan:
    """How to disturb.

    Args:
        faults: how often.
        ways: what to do: names of ``faults.WAYS``, some of them perhaps more than once.
        in_turn: whether one way comes after the other; else each is drawn at random.
        clients: how many work at once.
        up: the shortest and longest time, in seconds, between an answer of the service and the next fault.
        early: the part of kills that do not wait for an answer: the service dies while it starts.
        seed: for everything that is random.
    """

    faults: int
    ways: tuple[str, ...] = ("kill",)
    in_turn: bool = False
    clients: int = 6
    up: tuple[float, float] = (0.05, 1.0)
    early: float = 0.1
    seed: int = 1


@dataclass(frozen=True)
class Load:
    """A service with clients at work.

    Args:
        service: the service.
        diaries: what the clients sent, and what was acknowledged.
        signs: what they are told.
        done: how often each fault was made.
        silent: damage that cost acknowledged events, and was not said.
        problems: whatever goes wrong, in words.
    """

    service: Service
    diaries: list[Diary]
    signs: Signs
    done: Counter[str] = field(default_factory=Counter)
    silent: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @property
    def kept(self) -> int:
        """How many results were acknowledged so far."""
        return sum(len(diary.kept) for diary in self.diaries)


def under_load(place: str, folder: Path, plan: Plan, act: Callable[[Load], None]) -> Record:
    """Do something to a service on a new store while clients work, and compare what they know with what the store has.

    Args:
        place: the store's file or address; there is nothing yet.
        folder: where messages go.
        plan: how many clients, and their seed.
        act: what is done to it; it counts in ``load.done`` how often.
    """
    began = time.monotonic()
    with mfb.Store(place) as store:
        for name, policy in POLICIES.items():
            store.create(name, policy, arms=ARMS, fidelities=FIDELITIES, lease=LEASE)
    with Service(place, folder) as service:
        with clients_of(service.url, plan) as (diaries, signs):
            load = Load(service, diaries, signs)
            act(load)
        code = service.signal(signal.SIGTERM)
    if code != 0:
        load.problems.append(f"the service must end with 0 when it is told to, and ended with {code}")
    said = service.messages.read_text()
    if "Traceback" in said:
        load.problems.append(f"the service met {first_traceback(said)}")
    with mfb.Store(place) as store:
        found = [compare(store.open(name), [d for d in load.diaries if d.experiment == name]) for name in POLICIES]
    return record_of(load, found, time.monotonic() - began)


def first_traceback(said: str) -> str:
    """The first traceback in a log, with what was said just before it."""
    at = said.index("Traceback")
    return said[max(0, at - 1000) : at + 6000]


@contextmanager
def clients_of(url: str, plan: Plan) -> Iterator[tuple[list[Diary], Signs]]:
    """Clients at work; at the end all have stopped, and what they did not hear of stays unknown."""
    signs = Signs()
    clients = [Client(number, url, signs, plan.seed) for number in range(plan.clients)]
    for client in clients:
        client.start()
    try:
        yield [client.diary for client in clients], signs
    finally:
        signs.stop.set()
        signs.up.set()
        for client in clients:
            client.join(2 * PATIENCE)
            if client.is_alive():
                client.diary.problems.append(f"{client.name} does not end")


def record_of(load: Load, found: list[Found], seconds: float) -> Record:
    """What came of it, counted."""
    words = [
        *load.silent,
        *load.problems,
        *(w for diary in load.diaries for w in diary.problems),
        *(w for one in found for w in one.problems),
    ]
    return Record(
        faults=dict(load.done),
        asked=sum(len(plays) for diary in load.diaries for plays in diary.plays.values()),
        told=load.kept,
        lost=sum(one.lost for one in found),
        doubled=sum(one.doubled for one in found),
        silent=len(load.silent),
        set_aside=sum(one.set_aside for one in found),
        seconds=seconds,
        problems=tuple(words),
    )
