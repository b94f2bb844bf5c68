"""A long run of faults, for a release: `make soak`, or `python tests/support/soak.py --faults 400 --postgres`.

With `--services`, three services share one PostgreSQL, and one of them at a time is disturbed.

Needs no pytest. Ctrl-C ends it; what was done until then is compared and reported all the same.
"""

import argparse
import json
import math
import platform
import signal
import sqlite3
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))  # run as a script, this folder alone would be searched

import mfbandit
from tests.support import crash, faults, fleet, postgres
from tests.support.clients import Diary

EVERY = 5.0  # seconds between lines of progress
ON_SQLITE = ("kill",) * 4 + ("terminate", "stop", "clock", "clock", "node", "node", "wal", "wal", "move")
ON_SERVICES = ("kill", "kill", "stop", "stop", "partition", "drop", "drop", "terminate")
ON_POSTGRES = ("kill", "kill", "terminate", "server", "server", "stop", "clock", "node")


class Progress:
    """A line every few seconds: how far it is, and when it may end. Ctrl-C ends it after the next fault.

    Args:
        total: faults in all.
    """

    def __init__(self, total: int) -> None:
        self._total, self._began, self._shown = total, time.monotonic(), 0.0
        self._going_on = True
        signal.signal(signal.SIGINT, self._stop)

    def _stop(self, *_: object) -> None:
        self._going_on = False
        signal.signal(signal.SIGINT, signal.default_int_handler)
        say("stopping, and comparing what there is; Ctrl-C again leaves at once")

    def __call__(self, faults: int, diaries: list[Diary]) -> bool:
        """Show it, if it is time; whether to go on."""
        now = time.monotonic()
        if now - self._shown >= EVERY:
            self._show(faults, diaries, now)
        return self._going_on

    def _show(self, faults: int, diaries: list[Diary], now: float) -> None:
        self._shown, passed = now, now - self._began
        kept, left = sum(len(diary.kept) for diary in diaries), passed / faults * (self._total - faults)
        say(f"{faults:,} of {self._total:,} faults, {kept:,} results acknowledged, {passed:.0f} s, {left:.0f} s to go")


def say(text: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def soak(number: int, *, on_postgres: bool, seed: int) -> crash.Record:
    """Make as many faults, on a store that is deleted afterwards."""
    plan = crash.Plan(faults=number, ways=ON_POSTGRES if on_postgres else ON_SQLITE, seed=seed)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="mfbandit-soak-")))
        tick = Progress(number)
        if not on_postgres:
            return faults.run(str(folder / "soak.db"), folder, plan, tick=tick)
        server = stack.enter_context(postgres.Server())
        return faults.run(server.database("soak"), folder, plan, server=server, tick=tick)


def soak_services(number: int, *, seed: int) -> tuple[crash.Record, list[fleet.Taken]]:
    """Make as many faults, one service after the other, of three on one server."""
    plan = crash.Plan(faults=number, ways=ON_SERVICES, seed=seed, up=(0.2, 2.0))
    with tempfile.TemporaryDirectory(prefix="mfbandit-soak-") as folder, postgres.Server() as server:
        return fleet.run(server.database("soak"), Path(folder), plan, tick=Progress(number))


def report(record: crash.Record, taken: list[fleet.Taken], *, on_postgres: bool) -> dict[str, Any]:
    """The result with what it was made on."""
    replaced = {"taken over, s": quantiles(taken), "times": taken} if taken else {}
    return {
        **asdict(record),
        **replaced,
        "store": "PostgreSQL" if on_postgres else "SQLite",
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "mfbandit": mfbandit.__version__,
        "python": platform.python_version(),
        "database": postgres_version() if on_postgres else sqlite3.sqlite_version,
        "system": platform.platform(),
    }


def quantiles(taken: list[fleet.Taken]) -> dict[str, dict[str, float]]:
    """How long it took until another service answered for what the disturbed one owned; and for the rest, passed on.

    >>> quantiles([fleet.Taken("kill", True, 1.5), fleet.Taken("kill", True, 2.5)])
    {'kill': {'number': 2, 'median': 1.5, '95 %': 2.5, 'longest': 2.5, 'over 5 s': 0}}
    """
    groups: dict[str, list[float]] = {}
    for way, owned, seconds in sorted(taken, key=lambda one: (not one.owned, one.way, one.seconds)):
        groups.setdefault(way if owned else "owned by another one", []).append(seconds)
    return {way: _quantiles(sorted(seconds)) for way, seconds in groups.items()}


def _quantiles(ordered: list[float]) -> dict[str, float]:
    def at(share: float) -> float:
        return round(ordered[math.ceil(share * len(ordered)) - 1], 2)

    over = sum(one > fleet.REPLACED_SECONDS for one in ordered)
    return {"number": len(ordered), "median": at(0.5), "95 %": at(0.95), "longest": at(1.0), "over 5 s": over}


def postgres_version() -> str:
    """Of the server that was killed."""
    return (postgres.cluster() / "PG_VERSION").read_text().strip()


def table(found: dict[str, Any]) -> str:
    """The report, one thing a line."""
    names = {
        "asked": "plays acknowledged",
        "told": "results acknowledged",
        "silent": "losses without a word",
        "set_aside": "arms out that had a later result",
    }
    shown = {names.get(name, name): value for name, value in found.items() if name not in ("problems", "times")}
    shown["faults"] = ", ".join(f"{count} {way}" for way, count in found["faults"].items())
    width = max(map(len, shown))
    return "\n".join(f"{name:{width}}  {_text(value)}" for name, value in shown.items())


def _text(value: object) -> str:
    return f"{value:,.1f}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)


def main() -> int:
    """Soak, print, write down; 1 if anything was lost, doubled or otherwise wrong."""
    words = argparse.ArgumentParser(description="Disturb a service under load, again and again.")
    words.add_argument("--faults", type=int, default=2000, help="how many")
    words.add_argument("--postgres", action="store_true", help="on PostgreSQL, whose server is killed, too")
    words.add_argument("--services", action="store_true", help="three services on one PostgreSQL")
    words.add_argument("--seed", type=int, default=1)
    words.add_argument("--out", type=Path, help="a JSON file for the result")
    given = words.parse_args()
    taken: list[fleet.Taken] = []
    try:
        if given.services:
            record, taken = soak_services(given.faults, seed=given.seed)
        else:
            record = soak(given.faults, on_postgres=given.postgres, seed=given.seed)
    except postgres.NoPostgres as error:
        words.error(str(error))
    found = report(record, taken, on_postgres=given.postgres or given.services)
    say(table(found))
    for problem in record.problems:
        say(f"\n{problem}")
    if given.out is not None:
        given.out.parent.mkdir(parents=True, exist_ok=True)
        given.out.write_text(json.dumps(found, indent=2) + "\n")
    return 0 if record.good else 1


if __name__ == "__main__":
    sys.exit(main())
