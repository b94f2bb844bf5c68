"""Disturb several services on one PostgreSQL while clients work, then count what is left of what they acknowledged.

Nothing here is a stand-in: the services are processes, the server is real, and the wire between them can be cut. After
each fault every experiment is asked for a play at a service that was spared, and that must be answered in time. Time
counts from the moment before the fault. The disturbed service is, in two of three faults, one that owns an experiment.
"""

import math
import random
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import mfbandit as mfb
from mfbandit.service import RemoteExperiment
from tests.support import crash
from tests.support.clients import ARMS, FIDELITIES, LEASE, POLICIES, Diary
from tests.support.comparison import compare
from tests.support.wire import Wire

REPLACED_SECONDS = 5.0  # within which another service must answer for whatever the disturbed one had
AWAY = (0.5, 8.0)  # the shortest and longest time, in seconds, that a service is stopped or cut off
NUMBER = 3
PATIENCE = 120.0  # seconds, with a service that has to answer sooner or later: in time is another question


class Taken(NamedTuple):
    """How long it took until an experiment was answered for after a fault.

    Args:
        way: what was done.
        owned: whether the disturbed service owned the experiment.
        seconds: from before the fault to the answer of another service.
    """

    way: str
    owned: bool
    seconds: float


@dataclass
class Fleet:
    """Services, each with a wire to the database of its own."""

    services: list[crash.Service]
    wires: list[Wire]
    chance: random.Random
    taken: list[Taken] = field(default_factory=list)

    @property
    def url(self) -> str:
        """The addresses of all, as a client takes them."""
        return ",".join(service.url for service in self.services)


@contextmanager
def started(address: str, folder: Path, seed: int) -> Iterator[Fleet]:
    """Services on a database that has its tables."""
    port = urlsplit(address).port
    assert port is not None
    with ExitStack() as stack:
        services, wires = [], []
        for number in range(NUMBER):
            home = folder / str(number)
            home.mkdir()
            wire = stack.enter_context(Wire(port))
            wires.append(wire)
            services.append(stack.enter_context(crash.Service(address.replace(f":{port}/", f":{wire.port}/"), home)))
        for service in services:
            service.wait()
        yield Fleet(services, wires, random.Random(seed))
        for wire in wires:
            wire.mend()


def run(
    address: str,
    folder: Path,
    plan: crash.Plan,
    *,
    within: float = REPLACED_SECONDS,
    tick: Callable[[int, list[Diary]], bool] = lambda *_: True,
) -> tuple[crash.Record, list[Taken]]:
    """Do as planned with a new store, and compare what the clients know with what the store has.

    Args:
        address: of a database; there is nothing yet.
        folder: where messages go.
        plan: what to do, and how often; ``ways`` are names of ``WAYS``.
        within: seconds until others must have answered; what takes longer is a problem.
        tick: called after each fault with their number; if it returns False, no more are made.

    Returns:
        What came of it, and how long it took until others answered, for each fault and experiment.
    """
    began = time.monotonic()
    with mfb.Store(address) as store:
        for name, policy in POLICIES.items():
            store.create(name, policy, arms=ARMS, fidelities=FIDELITIES, lease=LEASE)
    with started(address, folder, plan.seed) as fleet:
        with crash.clients_of(fleet.url, plan) as (diaries, signs):
            load = crash.Load(fleet.services[0], diaries, signs)
            signs.up.set()
            _disturb(fleet, load, plan, within, tick)
        for service in fleet.services:
            code = service.signal(signal.SIGTERM)
            if code != 0:
                load.problems.append(f"a service must end with 0 when it is told to, and ended with {code}")
    for service in fleet.services:
        said = service.messages.read_text()
        if "Traceback" in said:
            load.problems.append(f"a service met {crash.first_traceback(said)}")
    with mfb.Store(address) as store:
        found = [compare(store.open(name), [d for d in load.diaries if d.experiment == name]) for name in POLICIES]
    return crash.record_of(load, found, time.monotonic() - began), fleet.taken


def _disturb(
    fleet: Fleet, load: crash.Load, plan: crash.Plan, within: float, tick: Callable[[int, list[Diary]], bool]
) -> None:
    while load.done.total() < plan.faults:
        time.sleep(math.exp(fleet.chance.uniform(*map(math.log, plan.up))))
        number = load.done.total()
        way = plan.ways[number % len(plan.ways)] if plan.in_turn else fleet.chance.choice(plan.ways)
        owners = _owners(fleet)
        victim = fleet.chance.choice([fleet.chance.randrange(NUMBER), *owners.values()])
        began = time.monotonic()
        mend = WAYS[way](fleet, victim)
        for name in POLICIES:
            seconds = _ask_other(fleet, load, victim, (way, number, name), began)
            fleet.taken.append(Taken(way, owners.get(name) == victim, seconds))
            if seconds > within:
                load.problems.append(
                    f"after {way} number {number} it took {seconds:.1f} s until {name} was answered for"
                )
        mend(began)
        load.done[way] += 1
        fleet.services[victim].wait()
        if not tick(load.done.total(), load.diaries):
            return


def _owners(fleet: Fleet) -> dict[str, int]:
    """Which service owns which experiment, as far as they are settled."""
    numbers = {service.url: number for number, service in enumerate(fleet.services)}
    with mfb.connect(fleet.url, patience=PATIENCE) as store:
        entries = store.services()
    return {name: numbers[one.address] for one in entries for name in one.experiments if one.address in numbers}


def _ask_other(fleet: Fleet, load: crash.Load, victim: int, fault: tuple[str, int, str], began: float) -> float:
    """Ask an experiment for a play, at a service that was spared; return when it answered."""
    way, number, name = fault
    diary, key = Diary(name), f"fault-{number}"
    load.diaries.append(diary)
    diary.keys[key] = 1
    try:
        with mfb.connect(fleet.services[(victim + 1) % NUMBER].url, patience=PATIENCE) as store:
            diary.plays[key] = RemoteExperiment(store._transport, name).ask(1, request_key=key, lease=0.2)
    except mfb.StoreUnavailable as error:
        load.problems.append(f"after {way} nobody answered for {name}: {error}")
    return time.monotonic() - began


# What can be done to a service; each returns what ends it, if it lasts


def kill(fleet: Fleet, victim: int) -> Callable[[float], None]:
    """Kill a service; it is started again when others have answered."""
    fleet.services[victim].signal(signal.SIGKILL)
    return lambda _: fleet.services[victim].start()


def terminate(fleet: Fleet, victim: int) -> Callable[[float], None]:
    """Tell a service to end; it is started again when others have answered."""
    fleet.services[victim].signal(signal.SIGTERM)
    return lambda _: fleet.services[victim].start()


def stop(fleet: Fleet, victim: int) -> Callable[[float], None]:
    """Stop a service for some seconds; it comes back and believes that nothing has happened."""
    process = fleet.services[victim].process
    assert process is not None
    process.send_signal(signal.SIGSTOP)
    away = _some_time(fleet)
    return lambda began: _afterwards(began + away, lambda: process.send_signal(signal.SIGCONT))


def partition(fleet: Fleet, victim: int) -> Callable[[float], None]:
    """Cut a service off from the database for some seconds; it goes on answering."""
    fleet.wires[victim].cut()
    away = _some_time(fleet)
    return lambda began: _afterwards(began + away, fleet.wires[victim].mend)


def drop(fleet: Fleet, victim: int) -> Callable[[float], None]:
    """Drop all connections of a service to the database."""
    fleet.wires[victim].drop()
    return lambda _: None


def _some_time(fleet: Fleet) -> float:
    return math.exp(fleet.chance.uniform(*map(math.log, AWAY)))


def _afterwards(moment: float, act: Callable[[], None]) -> None:
    time.sleep(max(0.0, moment - time.monotonic()))
    act()


WAYS: dict[str, Callable[[Fleet, int], Callable[[float], None]]] = {
    "kill": kill,
    "terminate": terminate,
    "stop": stop,
    "partition": partition,
    "drop": drop,
}
