"""Results a second with one, two and three services on one PostgreSQL, told at the owner or passed on to it.

    python benchmarks/fleet.py [--seconds 4] [--rounds 3] [--out results/fleet.json]

Needs a PostgreSQL server's programs. Services, server and clients share the machine, so that it shows what services
cost each other rather than how far they scale.
"""

import argparse
import asyncio
import json
import subprocess
import sys
import time
import urllib.request
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import uvloop

sys.path.insert(0, str(Path(__file__).parent.parent))

from benchmarks.load import Client, cpu_seconds
from tests.support.postgres import Server, free_port

EXPERIMENTS = 6
CLIENTS_PER_EXPERIMENT = 8
PLAYS_PER_REQUEST = 1000
FIDELITIES = {"costs": [1, 10], "biases": [0.1, 0], "concentration": {"name": "Bounded", "low": 0, "high": 1}}
BALANCED_SECONDS = 60.0


@dataclass(frozen=True)
class Figure:
    """What came of one measurement.

    Args:
        services: how many there were.
        passed_on: whether clients asked a service that does not own the experiment.
        per_second: results told a second, of all experiments.
        cpu_ms: processor time of all services for a result, in milliseconds.
    """

    services: int
    passed_on: bool
    per_second: float
    cpu_ms: float


@contextmanager
def services(number: int, address: str) -> Iterator[dict[str, int]]:
    """Services on a database, by their addresses, with the numbers of their processes."""
    with ExitStack() as stack:
        found = {}
        for _ in range(number):
            port = free_port()
            words = [sys.executable, "-m", "mfbandit", "serve", address, "--port", str(port)]
            process = stack.enter_context(subprocess.Popen(words, stderr=subprocess.DEVNULL))
            stack.callback(process.terminate)
            found[f"http://127.0.0.1:{port}"] = process.pid
            _wait(partial(_get, f"http://127.0.0.1:{port}/health"))
        yield found


def _wait(question: Any) -> Any:  # noqa: ANN401 - whatever it answers
    deadline = time.monotonic() + BALANCED_SECONDS
    while True:
        try:
            answer = question()
            if answer:
                return answer
        except OSError:
            pass
        if time.monotonic() > deadline:
            raise RuntimeError("the services did not get ready")
        time.sleep(0.1)


def _get(url: str) -> Any:  # noqa: ANN401 - JSON
    with urllib.request.urlopen(url, timeout=10) as answer:  # noqa: S310 - our own address
        return json.loads(answer.read())


def _post(url: str, body: dict[str, Any]) -> Any:  # noqa: ANN401 - JSON
    """Send a request, again where the experiment is just being handed over (503)."""
    return _wait(partial(_post_once, url, {**body, "request_key": uuid.uuid4().hex}))


def _post_once(url: str, body: dict[str, Any]) -> Any:  # noqa: ANN401 - JSON
    request = urllib.request.Request(url, json.dumps(body).encode(), {"content-type": "application/json"})  # noqa: S310
    with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
        return json.loads(answer.read())


def _owners(address: str) -> dict[str, str]:
    found = _get(f"{address}/api/services")["services"]
    return {name: one["address"] for one in found for name in one["experiments"]}


def measure(number: int, seconds: float, server: Server, round_number: int) -> list[Figure]:
    """Measure with so many services: told at the owner, and passed on where there is another one."""
    address = server.database(f"fleet_{number}_{round_number}")
    with services(number, address) as processes:
        first = next(iter(processes))
        names = _made(first, list(processes))
        owners = _wait(lambda: _balanced(first, len(processes)))
        figures = []
        for passed_on in (False, True) if number > 1 else (False,):
            asked = {name: _other(owners[name], list(processes)) if passed_on else owners[name] for name in names}
            before = sum(map(cpu_seconds, processes.values()))
            told, took = uvloop.run(_tell(asked, _plays(owners, names), seconds))
            used = sum(map(cpu_seconds, processes.values())) - before
            figures.append(Figure(number, passed_on, told / took, 1000 * used / told))
    server.drop(f"fleet_{number}_{round_number}")
    return figures


def _made(first: str, addresses: list[str]) -> list[str]:
    """Experiments of which each service has its share, by the hash."""
    names: list[str] = []
    share = EXPERIMENTS // len(addresses)
    counts = dict.fromkeys(addresses, 0)
    for number in range(1000):
        name = f"ads-{number}"
        home = _home(name, addresses)
        if counts[home] < share:
            counts[home] += 1
            names.append(name)
            _post(f"{first}/api/experiments", {"name": name, "arms": 500, "fidelities": FIDELITIES})
    return names


def _home(name: str, addresses: list[str]) -> str:
    from mfbandit.store.fleet import belongs_to
    from mfbandit.store.membership import ServiceEntry

    entries = [ServiceEntry(one, one, "", "", 0.0, 0.0, None, 0.0, True) for one in addresses]
    found = belongs_to(name, entries)
    return "" if found is None else found.address


def _balanced(first: str, number: int) -> dict[str, str] | None:
    owners = _owners(first)
    return owners if len(owners) == EXPERIMENTS and len(set(owners.values())) == number else None


def _other(owner: str, addresses: list[str]) -> str:
    return addresses[(addresses.index(owner) + 1) % len(addresses)]


def _plays(owners: dict[str, str], names: list[str]) -> dict[str, list[str]]:
    plays: dict[str, list[str]] = {}
    for name in names:
        asked = [_post(f"{owners[name]}/api/experiments/{name}/ask", {"n": PLAYS_PER_REQUEST}) for _ in range(6)]
        plays[name] = [play["id"] for answer in asked for play in answer["plays"]]
    return plays


async def _tell(asked: dict[str, str], plays: dict[str, list[str]], seconds: float) -> tuple[int, float]:
    """Tell results for some seconds, or until there are no plays left; how many, and how long it took."""
    loop, told = asyncio.get_running_loop(), 0
    clients = []
    for name, address in asked.items():
        for _ in range(CLIENTS_PER_EXPERIMENT):
            _, client = await loop.create_connection(Client, "127.0.0.1", int(address.rpartition(":")[2]))
            clients.append((name, client))
    began = time.perf_counter()

    async def work(name: str, client: Client) -> None:
        nonlocal told
        while plays[name] and time.perf_counter() - began < seconds:
            body = {"results": [{"play": plays[name].pop(), "reward": 0.5}]}
            await client.post(f"/api/experiments/{name}/tell", body)
            told += 1

    await asyncio.gather(*(work(name, client) for name, client in clients))
    return told, time.perf_counter() - began


def main() -> int:
    """Measure in turns, print medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=4.0, help="for each measurement")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    with Server() as server:
        rounds = [
            [one for number in (1, 2, 3) for one in measure(number, given.seconds, server, round_number)]
            for round_number in range(given.rounds)
        ]
    medians = [sorted(same, key=lambda one: one.per_second)[len(same) // 2] for same in zip(*rounds, strict=True)]
    for one in medians:
        way = "passed on" if one.passed_on else "at the owner"
        print(f"{one.services} services, {way:12}  {one.per_second:7,.0f}/s  {one.cpu_ms:.2f} ms of a core for each")
    if given.out is not None:
        given.out.parent.mkdir(parents=True, exist_ok=True)
        given.out.write_text(json.dumps([asdict(one) for one in medians], indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
