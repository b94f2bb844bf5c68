"""What people who look cost those who work: durable results a second while a page is open, beside none.

    python benchmarks/dashboard.py [--seconds 2] [--rounds 9] [--out results/dashboard.json]

The page is of an experiment with 1,000 arms and 1,000,000 results, and asks for an update every second as a browser
does. Server, clients and the page share the machine; rounds are interleaved, each with the page beside one without,
and the median of their ratios counts. Exits with 1 if a target is missed.
"""

import argparse
import json
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, nullcontext
from http.client import HTTPConnection
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))

import mfbandit as mfb
from benchmarks.load import Client, Step, load
from benchmarks.service import MANY, _service

ARMS, RESULTS = 1000, 1_000_000
PLACE = "/experiments/watched"


def main() -> int:
    """Measure, print, compare."""
    options = _options()
    alone, watched, waits = list[float](), list[float](), list[float]()
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "store.db"
        _fill(store)
        with _service(store) as port:
            load(port, MANY, 1.0, _telling(1.0, threading.Event()))  # the first requests are not like the others
            for i in range(options.rounds):
                for looking in (i % 2 == 0, i % 2 == 1):  # either goes first as often
                    begun = threading.Event()
                    with _looking(port, begun, waits) if looking else nullcontext():
                        figure = load(port, MANY, options.seconds, _telling(options.seconds, begun)).per_second
                    (watched if looking else alone).append(figure)
    figures = {
        "tells/s, nobody looks": statistics.median(alone),
        "tells/s, a page is open": statistics.median(watched),
        "an update of the page, p50 ms": float(np.percentile(waits, 50)) * 1e3,
        "an update of the page, p95 ms": float(np.percentile(waits, 95)) * 1e3,
    }
    kept = statistics.median(some / most for some, most in zip(watched, alone, strict=True))
    for name, value in figures.items():
        print(f"{name:38} {value:10,.1f}")
    print(f"{'kept':38} {kept:10.1%}")
    verdicts = {
        "a page costs at most 2 % of tells/s": kept >= 0.98,
        "an update in under 200 ms (p95)": figures["an update of the page, p95 ms"] < 200,
    }
    for rule, holds in verdicts.items():
        print(f"{'holds' if holds else 'MISSED':7} {rule}")
    if options.out is not None:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        rounds = {"alone": alone, "watched": watched}
        options.out.write_text(json.dumps({"figures": figures, "rounds": rounds, "verdicts": verdicts}, indent=1))
    return 0 if all(verdicts.values()) else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=2.0, help="for each measurement")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--out", type=Path)
    return parser.parse_args()


def _fill(path: Path) -> None:
    fidelities = mfb.Fidelities([1, 10, 1000], [0.2, 0.1, 0], mfb.SubGaussian(0.2))
    rng = np.random.default_rng(0)
    with mfb.Store(path) as store:
        experiment = store.create("watched", mfb.MFUCB(), arms=ARMS, fidelities=fidelities, lease=3600)
        for start in range(0, RESULTS, 10_000):
            rewards = rng.normal(0.5, 0.2, 10_000).tolist()
            past = [(i % ARMS, i // ARMS % 3, reward, None) for i, reward in enumerate(rewards, start)]
            experiment.add_results(past)


def _telling(seconds: float, begun: threading.Event) -> Callable[[Client], Awaitable[Step]]:
    """One result a request; the plays are asked for before, and not counted."""

    async def prepare(client: Client) -> Step:
        plays = list[str]()
        while len(plays) < 10_000 * seconds:
            answer = await client.post(f"/api{PLACE}/ask", {"n": 1000})
            plays += [play["id"] for play in answer["plays"]]

        async def step(client: Client) -> bool:
            await client.post(f"/api{PLACE}/tell", {"results": [{"play": plays.pop(), "reward": 0.5}]})
            return bool(plays)

        begun.set()
        return step

    return prepare


@contextmanager
def _looking(port: int, begun: threading.Event, waits: list[float]) -> Iterator[None]:
    """A page that is open, in a thread of its own: an update every second."""
    closed = threading.Event()

    def look() -> None:
        browser = HTTPConnection("127.0.0.1", port)
        begun.wait()
        while not closed.is_set():
            start = time.perf_counter()
            browser.request("GET", f"{PLACE}/live", headers={"hx-request": "true"})
            answer = browser.getresponse()
            text = answer.read()
            waits.append(time.perf_counter() - start)
            if answer.status != 200 or b"Leading arms" not in text:
                raise RuntimeError(f"the page answered {answer.status}")
            closed.wait(1.0 - (time.perf_counter() - start))
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
