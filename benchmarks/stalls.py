"""How long a small experiment's results wait while another experiment has long work.

Five kinds of long work: plays among a million arms, asked and told in tens; the same with MFAuto, and with MFBayes,
and 10,000 arms, where a model is fitted again and again; an ask for 1,000 plays among 100,000 arms; and a million
events that are read again after a failed write. Target: p99 under 50 ms. Each of the first three is measured in turn
with quiet, and medians over rounds count.

Where the machine is busy with other things, a result waits for those as well. So the processor time that the service
used while a result waited is counted, too, by all of its threads: on a machine that has nothing else to do, no result
waits longer than that and a flush.

Run: python benchmarks/stalls.py [--arms 100000] [--events 1000000] [--rounds 3] [--out results/stalls.json]
"""

import argparse
import asyncio
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import uvloop

sys.path.insert(0, str(Path(__file__).parent.parent))

import mfbandit as mfb
from benchmarks.load import Client
from mfbandit.service.server import serve
from mfbandit.store import writer

FIDELITIES = mfb.Fidelities([1, 10, 1000], [0.2, 0.1, 0], mfb.SubGaussian(0.2))
BY_COSTS = mfb.Fidelities([1, 10, 1000])
TARGET_MS = 50
QUIET_SECONDS = 3.0
SLOW_SECONDS = 6.0
MANY_ARMS, MODELLED_ARMS = 1_000_000, 10_000
SLOW = {"many": "a million arms", "auto": "MFAuto fits", "bayes": "MFBayes fits"}


def main() -> int:
    """Measure, print, and return 0 if all stay under the target."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--arms", type=int, default=100_000)
    parser.add_argument("--plays", type=int, default=1000)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--serve", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    if options.serve:
        _serve_with_faults(*options.serve)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "store.db"
        _prepare(place, options.arms, options.events)
        with _service(place) as (process, port):
            figures = uvloop.run(_measure(process, port, options.plays, options.rounds))
    for what, figure in figures.items():
        print(f"{what:50} {figure:10,.1f}")
    good = all(figure < TARGET_MS for what, figure in figures.items() if "p99" in what and "alone" not in what)
    print(f"{'yes' if good else 'NO':4} p99 under {TARGET_MS} ms")
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps({"figures": figures, "good": good}, indent=1))
    return 0 if good else 1


def _prepare(place: Path, arms: int, events: int) -> None:
    """A small experiment, one of many arms that all have results, and one of many events."""
    with mfb.Store(place) as store:
        store.create("small", mfb.MFUCB(), arms=500, fidelities=FIDELITIES)
        wide = store.create("wide", mfb.MFUCB(), arms=arms, fidelities=FIDELITIES)
        for start in range(0, 3 * arms, 10_000):
            wide.add_results([(i % arms, i // arms, 0.5, None) for i in range(start, start + 10_000)])
        many = store.create("many", mfb.MFUCB(), arms=MANY_ARMS, fidelities=FIDELITIES)
        many.add_results([(i, 0, (i % 7) / 7, None) for i in range(10_000)])
        for name, policy in (("auto", mfb.MFAuto()), ("bayes", mfb.MFBayes())):
            fitted = store.create(name, policy, arms=MODELLED_ARMS, fidelities=BY_COSTS)
            for turn in range(2):
                fitted.add_results([(i, 0, (i * (turn + 3) % 7) / 7, None) for i in range(MODELLED_ARMS)])
        long = store.create("long", mfb.MFUCB(), arms=500, fidelities=FIDELITIES)
        for start in range(0, events // 2, 10_000):  # each result is two events
            long.add_results([(i % 500, i % 3, (i % 7) / 7, None) for i in range(start, start + 10_000)])


def _serve_with_faults(place: str, port: str) -> None:
    """Serve; after a signal, the next group of events is not written."""
    inner, faults = writer._append_all, list[int]()

    def faulty(*args: Any) -> None:  # noqa: ANN401 - whatever the writer passes on
        if faults:
            faults.pop()
            raise mfb.StoreUnavailable("a fault")
        inner(*args)

    writer._append_all = faulty  # type: ignore[assignment]
    signal.signal(signal.SIGUSR1, lambda *_: faults.append(1))
    with mfb.Store(place) as store:
        serve(store, port=int(port), quiet=True)


@contextmanager
def _service(place: Path) -> "Iterator[tuple[subprocess.Popen[bytes], int]]":
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    process = subprocess.Popen([sys.executable, __file__, "--serve", str(place), str(port)])
    try:
        for _ in range(600):
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except OSError:
                time.sleep(0.05)
        yield process, port
    finally:
        process.terminate()
        process.wait()


async def _measure(process: "subprocess.Popen[bytes]", port: int, plays: int, rounds: int) -> dict[str, float]:
    loop = asyncio.get_running_loop()
    _, busy = await loop.create_connection(Client, "127.0.0.1", port)
    for name in ("wide", "long", *SLOW):
        await busy.post(f"/api/experiments/{name}/ask", {})
    _, small = await loop.create_connection(Client, "127.0.0.1", port)  # now: a service closes silent connections
    used = partial(time.clock_gettime, ~process.pid << 3 | 2)  # Linux's clock of another process's processor time
    in_turn = [await _beside_quiet(small, busy, used) for _ in range(rounds)]
    figures = {what: statistics.median(one[what] for one in in_turn) for what in in_turn[0]}
    async with _telling(small) as taken:
        start = time.perf_counter()
        await busy.post("/api/experiments/wide/ask", {"n": plays})
        figures["the long ask, ms"] = 1e3 * (time.perf_counter() - start)
    figures["tells meanwhile, p99 ms"] = _p99(taken)
    figures["tells meanwhile, longest ms"] = 1e3 * max(taken)
    os.kill(process.pid, signal.SIGUSR1)
    await asyncio.sleep(0.1)
    with suppress(RuntimeError):  # this one is refused, and the next waits until the log was read again
        await busy.post("/api/experiments/long/ask", {})
    async with _telling(small) as taken:
        start = time.perf_counter()
        await busy.post("/api/experiments/long/ask", {})
        figures["the ask after a failed write, ms"] = 1e3 * (time.perf_counter() - start)
    figures["tells while it is read again, p99 ms"] = _p99(taken)
    figures["tells while it is read again, longest ms"] = 1e3 * max(taken)
    return figures


async def _beside_quiet(small: Client, busy: Client, used: Callable[[], float]) -> dict[str, float]:
    """Tell results to the small experiment while nothing else happens, and while another is used; and so on."""
    figures: dict[str, float] = {}
    for name, what in SLOW.items():
        async with _telling(small) as taken:
            await asyncio.sleep(QUIET_SECONDS)
        figures[f"tells alone before {what}, p99 ms"] = _p99(taken)
        processor: list[float] = []
        async with _telling(small, used, processor) as taken:
            figures[f"results a second, {what}"] = await _use(busy, name)
        figures[f"tells meanwhile, {what}, p50 ms"] = 1e3 * statistics.median(taken)
        figures[f"tells meanwhile, {what}, p99 ms"] = _p99(taken)
        figures[f"tells meanwhile, {what}, longest ms"] = 1e3 * max(taken)
        figures[f"processor time meanwhile, {what}, p99 ms"] = _p99(processor)
    return figures


async def _use(client: Client, name: str) -> float:
    """Ask for ten plays and tell them, again and again; how many results a second that makes."""
    path, told, began = f"/api/experiments/{name}", 0, time.perf_counter()
    while time.perf_counter() - began < SLOW_SECONDS:
        plays = (await client.post(f"{path}/ask", {"n": 10}))["plays"]
        await client.post(f"{path}/tell", {"results": [{"play": play["id"], "reward": 0.5} for play in plays]})
        told += len(plays)
    return told / (time.perf_counter() - began)


def _p99(taken: list[float]) -> float:
    return float(np.percentile(taken, 99)) * 1e3


@asynccontextmanager
async def _telling(
    client: Client, used: Callable[[], float] = lambda: 0.0, processor: list[float] | None = None
) -> AsyncIterator[list[float]]:
    """Tell results to the small experiment, one after the other; how long each took, in seconds.

    Args:
        client: of the service.
        used: the service's processor time so far.
        processor: takes how much of that was used while each waited.
    """
    taken, ending = list[float](), False

    async def tell() -> None:
        path = "/api/experiments/small"
        while not ending:
            answer = await client.post(f"{path}/ask", {"n": 50})
            for play in answer["plays"]:
                start, before = time.perf_counter(), used()
                await client.post(f"{path}/tell", {"results": [{"play": play["id"], "reward": 0.5}]})
                taken.append(time.perf_counter() - start)
                if processor is not None:
                    processor.append(used() - before)

    task = asyncio.create_task(tell())
    try:
        await asyncio.sleep(0)
        yield taken
    finally:
        ending = True
        await task


if __name__ == "__main__":
    sys.exit(main())
