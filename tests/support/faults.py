"""What can be done to a service under load, and to the files of its store; each is a way to find out what it loses."""

import math
import random
import shutil
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import mfbandit as mfb
from mfbandit.service import RemoteExperiment
from mfbandit.store import DurableExperiment
from tests.support.clients import POLICIES, Diary
from tests.support.crash import Load, Plan, Record, under_load
from tests.support.objectives import play_number
from tests.support.shifted_clock import write_shift

CLOCK_JUMPS = (-7200.0, -60.0, 60.0, 7200.0)  # seconds
STOPS = (0.5, 8.0)  # the shortest and longest time, in seconds, that a service is stopped: leases are of 2 s
NOTICED_SECONDS = 20.0  # until a service must have said that its file is not there any more
NODE = 8  # workers that die together
NODE_LEASE = 0.3  # seconds


class Server(Protocol):
    """A database server that can be killed; see tests/support/postgres.py."""

    def kill(self) -> None: ...

    def start(self) -> None: ...


@dataclass
class Setting:
    """What a fault may touch.

    Args:
        load: the service and its clients.
        chance: for what is random.
        server: the database's server, if it is to be killed.
        shift: by how many seconds the service's clock is wrong.
    """

    load: Load
    chance: random.Random
    server: Server | None = None
    shift: float = 0.0

    @property
    def file(self) -> Path:
        """The store's file."""
        return Path(self.load.service.place)


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
        plan: what to do, and how often.
        server: the one that the address is of, if it is to be killed.
        tick: called after each fault with their number; if it returns False, no more are made, and what was done until
            then is compared all the same.
    """
    return under_load(
        place,
        folder,
        plan,
        lambda load: _disturb(Setting(load, random.Random(plan.seed), server), plan, tick),
    )


def _disturb(setting: Setting, plan: Plan, tick: Callable[[int, list[Diary]], bool]) -> None:
    load, chance = setting.load, setting.chance
    while True:
        load.service.wait(*POLICIES)
        load.signs.up.set()
        faults = load.done.total()
        if (faults and not tick(faults, load.diaries)) or faults >= plan.faults:
            return
        # As many in the first tenth of the time as in the last half.
        time.sleep(math.exp(chance.uniform(*map(math.log, plan.up))))
        load.signs.up.clear()
        way = plan.ways[faults % len(plan.ways)] if plan.in_turn else chance.choice(plan.ways)
        WAYS[way](setting)
        load.done[way] += 1
        while way == "kill" and load.done.total() < plan.faults and chance.random() < plan.early:
            time.sleep(chance.uniform(0, 1.5))
            kill(setting)
            load.done[way] += 1


# The process


def kill(setting: Setting) -> None:
    """Kill the service, and start it again."""
    setting.load.service.signal(signal.SIGKILL)
    setting.load.service.start()


def terminate(setting: Setting) -> None:
    """Tell the service to end, and start it again."""
    code = setting.load.service.signal(signal.SIGTERM)
    if code != 0:
        setting.load.problems.append(f"the service must end with 0 when it is told to, and ended with {code}")
    setting.load.service.start()


def stop(setting: Setting) -> None:
    """Stop the service, often for longer than leases last, and let it go on."""
    process = setting.load.service.process
    if process is None:
        raise RuntimeError("the service must be up to be stopped")
    process.send_signal(signal.SIGSTOP)
    time.sleep(math.exp(setting.chance.uniform(*map(math.log, STOPS))))
    process.send_signal(signal.SIGCONT)


def kill_server(setting: Setting) -> None:
    """Kill the database's server, and start it again."""
    if setting.server is None:
        raise ValueError("a server must be given to be killed, got None")
    setting.server.kill()
    setting.server.start()


# What is around it


def jump(setting: Setting) -> None:
    """Set the service's clock, forward or back."""
    possible = [jump for jump in CLOCK_JUMPS if abs(setting.shift + jump) <= max(CLOCK_JUMPS)]
    setting.shift += setting.chance.choice(possible)
    write_shift(setting.load.service.clock, setting.shift)


def lose_node(setting: Setting) -> None:
    """Let workers ask for plays and die."""
    number = setting.load.done["node"]
    diary = Diary(setting.chance.choice(list(POLICIES)))
    setting.load.diaries.append(diary)
    key = f"node-{number}"
    diary.keys[key] = NODE
    try:
        with mfb.connect(setting.load.service.url, patience=1.0) as store:
            experiment = RemoteExperiment(store._transport, diary.experiment)
            diary.plays[key] = experiment.ask(NODE, request_key=key, lease=NODE_LEASE)
    except mfb.StoreUnavailable:
        pass  # they died before they heard


# The files


def damage_wal(setting: Setting) -> None:
    """Kill the service, damage the log that SQLite writes ahead, see what is said, and bring it back as it was."""
    setting.load.service.signal(signal.SIGKILL)
    wal = setting.file.with_name(f"{setting.file.name}-wal")
    kept = {file: file.read_bytes() for file in setting.file.parent.glob(f"{setting.file.name}*")}
    if kept.get(wal):
        harm = setting.chance.choice((flip_byte, cut_in_half, remove))
        harm(wal, setting.chance)
        _see_what_is_said(setting, f"{harm.__name__} of {wal.name}")
        _restore(setting.file, kept)
    setting.load.service.start()


def _see_what_is_said(setting: Setting, harm: str) -> None:
    """Open the store as the service does: either it says that it is damaged, or all is there that clients know of."""
    try:
        with mfb.Store(setting.file) as store:
            for name in POLICIES:
                missing = _missing(store.open(name), [one for one in setting.load.diaries if one.experiment == name])
                if missing:
                    setting.load.silent.append(f"after {harm} {missing} outcomes of {name} were gone without a word")
    except mfb.StoreDamaged:
        pass


def _missing(experiment: DurableExperiment, diaries: list[Diary]) -> int:
    """How many outcomes and plays that were acknowledged are not there."""
    plays = experiment._logged._folded.core.folded.plays
    outcomes = [(at, diary.outcomes[at]) for diary in diaries for at in list(diary.kept)]
    asked = [play_number(play) for diary in diaries for made in list(diary.plays.values()) for play in made]
    lost = sum(at >= len(plays) or plays.outcome(at) != outcome for at, outcome in outcomes)
    return lost + sum(at >= len(plays) for at in asked)


def flip_byte(file: Path, chance: random.Random) -> None:
    """Change one byte."""
    data = bytearray(file.read_bytes())
    data[chance.randrange(len(data))] ^= 0xFF
    file.write_bytes(data)


def cut_in_half(file: Path, _: random.Random) -> None:
    """Keep the first half."""
    data = file.read_bytes()
    file.write_bytes(data[: len(data) // 2])


def remove(file: Path, _: random.Random) -> None:
    """Remove it."""
    file.unlink()


def _restore(place: Path, kept: dict[Path, bytes]) -> None:
    for file in place.parent.glob(f"{place.name}*"):
        if file not in kept:
            file.unlink()
    for file, data in kept.items():
        if not file.exists() or file.read_bytes() != data:
            file.write_bytes(data)


def move_file(setting: Setting) -> None:
    """Move the store's file away under the running service, or another over it: it must say so; then bring it back."""
    service, file = setting.load.service, setting.file
    backup, aside = file.with_name("backup"), file.with_name("aside")
    shutil.copyfile(file, backup)
    file.rename(aside)
    if setting.chance.random() < 0.5:
        backup.rename(file)
    deadline = time.monotonic() + NOTICED_SECONDS
    while service.answers():
        if time.monotonic() > deadline:
            setting.load.silent.append(f"the file was moved away, and /health was good for {NOTICED_SECONDS} s")
            break
        time.sleep(0.05)
    service.signal(signal.SIGKILL)
    aside.replace(file)
    backup.unlink(missing_ok=True)
    service.start()


WAYS: dict[str, Callable[[Setting], None]] = {
    "kill": kill,
    "terminate": terminate,
    "server": kill_server,
    "stop": stop,
    "clock": jump,
    "node": lose_node,
    "wal": damage_wal,
    "move": move_file,
}
