"""What handing out plays costs: threads, processes, Dask and plain workers side by side, eight of each.

Plays take 50 ms and do nothing, at 500 arms and 3 fidelities; tune() has 100 candidates. Exits with 1 if threads,
processes or Dask (with plays ahead) are below 90 % busy, by run() or by tune(), or if run() itself takes 1 ms a play
or more.

    python benchmarks/parallel.py [--rounds 3] [--plays 400] [--out results/parallel.json]
"""

import argparse
import json
import multiprocessing
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import distributed

import mfbandit as mfb

WORKERS, SECONDS, ARMS = 8, 0.05, 500
BUSY_AT_LEAST, OVERHEAD_BELOW = 0.9, 1e-3
BY_TUNE = ("tune, threads", "tune, processes")  # whose own time is that of the policy's decisions, too
CHECKED = ("threads", "processes", "Dask, 8 ahead", *BY_TUNE)
FID = mfb.Fidelities(costs=[1, 10, 100], biases=[0.2, 0.1, 0], concentration=mfb.SubGaussian(0.2))


def nap(play: mfb.SeededPlay) -> float:
    """A play."""
    time.sleep(SECONDS)
    return play.seed / 2**32


def experiment() -> mfb.Experiment:
    """With results of all arms, so that choosing is work."""
    made = mfb.Experiment(mfb.MFUCB(), arms=ARMS, fidelities=FID)
    made.add_results([(arm, 0, 0.5 + 0.001 * (arm % 7), None) for arm in range(ARMS)])
    return made


def by_run(executor: Executor, plays: int, ahead: int = 0) -> dict[str, float]:
    """By run() on an executor."""
    ran = mfb.run(experiment(), nap, executor, plays=plays, progress=False, ahead=ahead)
    return figures(ran.seconds, ran.told, ran.busy, ran.overhead)


def nap_of_candidate(_config: int, _resource: int, seed: int) -> float:
    """A run of tune."""
    time.sleep(SECONDS)
    return seed / 2**32


def by_tune(executor: Executor, plays: int) -> dict[str, float]:
    """By tune(), with its default policy: about so many runs of 100 candidates."""
    found = mfb.tune(
        nap_of_candidate,
        list(range(100)),
        fidelities=[1, 5, 25],
        capital=max(plays / 4, 4.0),
        executor=executor,
        workers=WORKERS,
        progress=False,
    )
    return figures(found.ran.seconds, found.ran.told, found.ran.busy, found.ran.overhead) | {"runs": found.ran.told}


def figures(seconds: float, told: int, busy: float, overhead: float | None) -> dict[str, float]:
    """What is reported of one measurement."""
    each = WORKERS * seconds / told - SECONDS  # of a worker's time, beyond the play itself
    return {"busy": busy, "lost_ms": 1e3 * each} | ({} if overhead is None else {"overhead_ms": 1e3 * overhead})


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """A service of its own."""
    command = [sys.executable, "-m", "mfbandit", "serve", str(folder / "bench.db"), "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as service:
        if service.stderr is None:
            raise RuntimeError("the service must write to a pipe")
        try:
            yield service.stderr.readline().split(" at ")[1].split()[0]
        finally:
            service.terminate()


def by_workers(url: str, plays: int, name: str) -> dict[str, float]:
    """Eight `mfbandit work` processes against one service; the time from the first ask to the last result."""
    with mfb.connect(url) as store:
        made = store.create(name, mfb.MFUCB(), arms=ARMS, fidelities=FID)
        made.add_results([(arm, 0, 0.5 + 0.001 * (arm % 7), None) for arm in range(ARMS)])
        before = made.events
        here = Path(__file__).parent
        command = [
            sys.executable,
            "-m",
            "mfbandit",
            "work",
            url,
            name,
            "parallel:nap",
            "--plays",
            str(plays // WORKERS),
        ]
        jobs = [
            subprocess.Popen(command, cwd=here, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            for _ in range(WORKERS)
        ]
        for job in jobs:
            job.wait()
        times = sorted(record.time for record in made.records(before))
        # Not all begin at once: their middle, when all are at work, is what counts.
        start, end = times[len(times) // 4], times[3 * len(times) // 4]
        told = sum(start <= t < end for t in times) / 2  # an event for asking and one for telling
    return figures(end - start, max(round(told), 1), told * SECONDS / (WORKERS * (end - start)), None)


def ways(stack: ExitStack, folder: Path, plays: int) -> dict[str, Callable[[int], dict[str, float]]]:
    """All that are compared."""
    threads = stack.enter_context(ThreadPoolExecutor(WORKERS))
    context = multiprocessing.get_context("forkserver")
    processes = stack.enter_context(ProcessPoolExecutor(WORKERS, mp_context=context))
    make: Any = distributed
    cluster = stack.enter_context(
        make.LocalCluster(n_workers=WORKERS, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0")
    )
    dask = stack.enter_context(make.Client(cluster)).get_executor()
    url = stack.enter_context(served(folder))
    return {
        "threads": lambda _: by_run(threads, plays),
        "processes": lambda _: by_run(processes, plays),
        "Dask": lambda _: by_run(dask, plays),
        "Dask, 8 ahead": lambda _: by_run(dask, plays, ahead=8),
        "tune, threads": lambda _: by_tune(threads, plays),
        "tune, processes": lambda _: by_tune(processes, plays),
        "mfbandit work": lambda i: by_workers(url, plays, f"round-{i}"),
    }


def measure(rounds: int, plays: int) -> dict[str, dict[str, float]]:
    """Medians over rounds, in which the ways take turns."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        all_ways = ways(stack, Path(folder), plays)
        for name, way in all_ways.items():  # start processes, compile nothing
            if name != "mfbandit work":
                way(-1)
        found: dict[str, list[dict[str, float]]] = {name: [] for name in all_ways}
        for i in range(rounds):
            for name, way in all_ways.items():
                found[name].append(way(i))
                print(f"round {i + 1} of {rounds}: {name} {found[name][-1]}", file=sys.stderr)
    return {name: {key: statistics.median(one[key] for one in each) for key in each[0]} for name, each in found.items()}


def main() -> int:
    """Measure, print a table, and check."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--plays", type=int, default=400)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    found = measure(options.rounds, options.plays)
    print(
        "| | workers busy | lost per play and worker, ms | of the driver's own time per play, ms |\n|---|---|---|---|"
    )
    for name, row in found.items():
        own = f"{row['overhead_ms']:.2f}" if "overhead_ms" in row else "-"
        print(f"| {name} | {row['busy']:.0%} | {row['lost_ms']:.1f} | {own} |")
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(found, indent=1))
    wrong = [name for name in CHECKED if found[name]["busy"] < BUSY_AT_LEAST]
    slow = [name for name in CHECKED if name not in BY_TUNE and found[name]["overhead_ms"] >= 1e3 * OVERHEAD_BELOW]
    for name in wrong:
        print(f"{name}: workers must be at least 90 % busy, were {found[name]['busy']:.1%}", file=sys.stderr)
    for name in slow:
        print(f"{name}: run() must take less than 1 ms a play, took {found[name]['overhead_ms']:.2f}", file=sys.stderr)
    return 1 if wrong or slow else 0


if __name__ == "__main__":
    sys.exit(main())
