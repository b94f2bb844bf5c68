"""What people who look cost those who work: durable results a second while a page is open, beside none.

    python benchmarks/dashboard.py [--arms 1000] [--every-page] [--seconds 2] [--rounds 9] [--steady 0] [--out FILE]

The page is of an experiment with 1,000 arms and 1,000,000 results, and asks for an update every second as a browser
does. With --every-page, those of all arms, of one arm, of two arms and of events are open as well, and ask every two
seconds. Server, clients and the page share the machine; rounds are interleaved, each with the page beside one without,
and the median of their ratios counts. What an update takes of the server's processor is what rounds with the page
took more than their results alone would have. Exits with 1 if a target is missed.

With --steady, so many results a second are told, with the page and without, far fewer than the server could take. The
processor time that the page takes is then all that differs. A busy server has one core for Python, so that the share of
a core is that of the results it costs. It depends little on what else the machine does.
"""

import argparse
import json
import math
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from http.client import HTTPConnection
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from httpx import Client as HTTPClient

sys.path.insert(0, str(Path(__file__).parent.parent))

import mfbandit as mfb
from benchmarks.load import Client, Step, load
from benchmarks.service import MANY, _service_process

FEW_ARMS, RESULTS = 1000, 1_000_000
KEPT_AT_LEAST = {False: 0.98, True: 0.95}  # with one page open, and with every page
PLACE = "/experiments/watched"
EVERY_PAGE = {  # how often each asks for an update, in seconds, and what must be in it
    "/live": (1.0, b"Leading arms"),
    "/arms?q=7&sort=mean&page=2": (2.0, b"found, among"),
    "/arms/7": (2.0, b"Results by fidelity"),
    "/compare?a=3&b=7": (2.0, b"By fidelity"),
    "/events?kind=everything": (2.0, b"events in all"),
}


def main() -> int:
    """Measure, print, compare."""
    options = _options()
    return _steadily(options) if options.steady else _busily(options)


def _busily(options: argparse.Namespace) -> int:
    """As many results as the server can take."""
    alone, watched, waits = list[Round](), list[Round](), list[float]()
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "store.db"
        _fill(store, options.arms)
        with _service_process(store) as (port, process):
            pages = _pages(options)
            _round(port, process, 1.0)  # the first requests are not like the others
            for i in range(options.rounds):
                for looking in (i % 2 == 0, i % 2 == 1):  # either goes first as often
                    took = _round(port, process, options.seconds, pages if looking else {}, waits)
                    (watched if looking else alone).append(took)
    pairs = list(zip(watched, alone, strict=True))
    figures = {
        "tells/s, nobody looks": statistics.median(one.per_second for one in alone),
        "tells/s, pages are open": statistics.median(one.per_second for one in watched),
        "processor of an update, ms": 1e3 * sum(_more(*pair) for pair in pairs) / len(waits),
        "an update of the page, p50 ms": float(np.percentile(waits, 50)) * 1e3,
        "an update of the page, p95 ms": float(np.percentile(waits, 95)) * 1e3,
    }
    kept = statistics.median(some.per_second / most.per_second for some, most in pairs)
    for name, value in figures.items():
        print(f"{name:38} {value:10,.1f}")
    print(f"{'kept':38} {kept:10.1%}")
    wanted = KEPT_AT_LEAST[options.every_page]
    verdicts = {
        f"{wanted:.0%} of tells/s are kept": kept >= wanted,
        "an update in under 200 ms (p95)": figures["an update of the page, p95 ms"] < 200,
    }
    for rule, holds in verdicts.items():
        print(f"{'holds' if holds else 'MISSED':7} {rule}")
    rounds = {"alone": [asdict(one) for one in alone], "watched": [asdict(one) for one in watched]}
    _write(options.out, {"figures": figures, "rounds": rounds, "verdicts": verdicts})
    return 0 if all(verdicts.values()) else 1


def _steadily(options: argparse.Namespace) -> int:
    """Results at a rate that the server takes easily: what the page takes of a core."""
    rounds: dict[bool, list[tuple[int, float, float]]] = {True: [], False: []}
    waits = list[float]()
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "store.db"
        _fill(store, options.arms)
        with _service_process(store) as (port, process):
            _steady_round(port, process, options, _pages(options), [])  # which draws everything for the first time
            for i in range(options.rounds):
                for looking in (i % 2 == 0, i % 2 == 1):
                    pages = _pages(options) if looking else {}
                    rounds[looking].append(_steady_round(port, process, options, pages, waits))
    (told, took, lasted), (told_alone, took_alone, _) = (np.sum(rounds[looking], axis=0) for looking in (True, False))
    more = took - took_alone * told / told_alone
    share, most = more / lasted, 1 - KEPT_AT_LEAST[options.every_page]
    print(
        f"a result takes {1e3 * took_alone / told_alone:.2f} ms of a core, an update {1e3 * more / len(waits):.1f} ms"
    )
    print(f"{'holds' if share <= most else 'MISSED':7} open pages take {share:.2%} of a core, at most {most:.0%}")
    named = {name: rounds[looking] for name, looking in (("watched", True), ("alone", False))}
    _write(options.out, {"share of a core": share, "updates": len(waits), "rounds": named})
    return 0 if share <= most else 1


def _write(out: Path | None, found: dict[str, Any]) -> None:
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(json.dumps(found, indent=1))


def _pages(options: argparse.Namespace) -> dict[str, tuple[float, bytes]]:
    """What is open."""
    return EVERY_PAGE if options.every_page else dict(list(EVERY_PAGE.items())[:1])


@dataclass(frozen=True)
class Round:
    """Results a second, and seconds that the server's process ran meanwhile."""

    per_second: float
    cpu_seconds: float


def _more(watched: Round, alone: Round) -> float:
    """What a round with the page took more than its results would have taken alone, in seconds."""
    return watched.cpu_seconds - alone.cpu_seconds * watched.per_second / alone.per_second


def _round(
    port: int,
    process: int,
    seconds: float,
    pages: Mapping[str, tuple[float, bytes]] = MappingProxyType({}),
    waits: list[float] | None = None,
) -> Round:
    """Tell results for some seconds, while these pages are open."""
    begun, before = threading.Event(), list[float]()

    def begin() -> None:
        before.append(_cpu_seconds(process))
        begun.set()

    with ExitStack() as stack:
        for address, (every, due) in pages.items():
            stack.enter_context(_looking(port, begun, waits if waits is not None else [], address, every, due))
        found = load(port, MANY, seconds, _telling(seconds, begin))
        return Round(found.per_second, _cpu_seconds(process) - before[0])


def _steady_round(
    port: int, process: int, options: argparse.Namespace, pages: Mapping[str, tuple[float, bytes]], waits: list[float]
) -> tuple[int, float, float]:
    """Tell so many results a second, while these pages are open: how many, the processor time, and how long it took."""
    with HTTPClient(base_url=f"http://127.0.0.1:{port}/api{PLACE}", timeout=60) as client, ExitStack() as stack:
        number, plays = int(options.steady * options.seconds), list[dict[str, Any]]()
        while len(plays) < number:
            plays += client.post("/ask", json={"n": min(1000, number - len(plays))}).raise_for_status().json()["plays"]
        begun, before, start = threading.Event(), _cpu_seconds(process), time.perf_counter()
        begun.set()
        for address, (every, due) in pages.items():
            stack.enter_context(_looking(port, begun, waits, address, every, due))
        for i, play in enumerate(plays):
            time.sleep(max(0.0, start + i / options.steady - time.perf_counter()))
            told = {"results": [{"play": play["id"], "reward": 0.5}]}
            client.post("/tell", json=told).raise_for_status()
        time.sleep(max(0.0, start + options.seconds - time.perf_counter()))
        return number, _cpu_seconds(process) - before, time.perf_counter() - start


def _cpu_seconds(process: int) -> float:
    """How long a process ran so far, by Linux; NaN elsewhere."""
    stat = Path(f"/proc/{process}/stat")
    if not stat.exists():
        return math.nan
    user, system = stat.read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=2.0, help="for each measurement")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--arms", type=int, default=FEW_ARMS)
    parser.add_argument("--every-page", action="store_true")
    parser.add_argument("--steady", type=float, default=0.0, help="results a second; 0 for as many as there can be")
    parser.add_argument("--out", type=Path)
    return parser.parse_args()


def _fill(path: Path, arms: int) -> None:
    fidelities = mfb.Fidelities([1, 10, 1000], [0.2, 0.1, 0], mfb.SubGaussian(0.2))
    rng = np.random.default_rng(0)
    with mfb.Store(path) as store:
        experiment = store.create("watched", mfb.MFUCB(), arms=arms, fidelities=fidelities, lease=3600)
        for start in range(0, RESULTS, 10_000):
            rewards = rng.normal(0.5, 0.2, 10_000).tolist()
            past = [(i % arms, i // arms % 3, reward, None) for i, reward in enumerate(rewards, start)]
            experiment.add_results(past)


def _telling(seconds: float, begin: Callable[[], None]) -> Callable[[Client], Awaitable[Step]]:
    """One result a request; the plays are asked for before, and not counted."""

    async def prepare(client: Client) -> Step:
        plays = list[str]()
        while len(plays) < 6_000 * seconds:
            answer = await client.post(f"/api{PLACE}/ask", {"n": 1000})
            plays += [play["id"] for play in answer["plays"]]

        async def step(client: Client) -> bool:
            await client.post(f"/api{PLACE}/tell", {"results": [{"play": plays.pop(), "reward": 0.5}]})
            return bool(plays)

        begin()
        return step

    return prepare


@contextmanager
def _looking(
    port: int, begun: threading.Event, waits: list[float], address: str, every: float, due: bytes
) -> Iterator[None]:
    """A page that is open, in a thread of its own, and asks for an update again and again."""
    closed = threading.Event()

    def look() -> None:
        browser = HTTPConnection("127.0.0.1", port)
        begun.wait()
        while not closed.is_set():
            start = time.perf_counter()
            browser.request("GET", PLACE + address, headers={"hx-request": "true"})
            answer = browser.getresponse()
            text = answer.read()
            waits.append(time.perf_counter() - start)
            if answer.status != 200 or due not in text:
                raise RuntimeError(f"the page answered {answer.status}")
            closed.wait(every - (time.perf_counter() - start))
        browser.close()

    page = threading.Thread(target=look)
    page.start()
    try:
        yield
    finally:
        closed.set()
        page.join()


if __name__ == "__main__":
    sys.exit(main())
