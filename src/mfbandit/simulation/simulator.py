"""Run a policy on a problem many times, and gather what comes out."""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import mfbandit
from mfbandit._internal.formatting import plain
from mfbandit._internal.progress import Tick, progress_bar
from mfbandit._internal.typing import FloatArray
from mfbandit._internal.validation import seed as checked_seed
from mfbandit._internal.validation import whole
from mfbandit.core import Stats
from mfbandit.errors import InvalidArgument
from mfbandit.experiment import check_is_policy, checked_capital
from mfbandit.policies import Compilable, Policy
from mfbandit.problems import Account, Problem
from mfbandit.simulation.backends import chosen_backend, spread
from mfbandit.simulation.checkpoints import Chunk, Chunks, missing
from mfbandit.simulation.engines import one_run
from mfbandit.simulation.results import Run, Simulation

CHUNK_SECONDS, PILOT_SECONDS = 0.5, 0.1  # a chunk should take so long, and finding out what fits so long


def simulate(  # noqa: PLR0913 - options with names and defaults
    problem: Problem,
    policy: Policy,
    *,
    capital: float,
    runs: int = 1,
    seed: int | np.random.SeedSequence = 0,
    grid: int | Sequence[float] = 100,
    account: Account = "paper",
    keep_plays: bool = False,
    workers: int | None = None,
    results: str | Path | None = None,
    progress: bool | Tick | None = None,
) -> Simulation:
    """Let a policy spend a capital on a problem, ``runs`` times, and record its regret on the way.

    UCB and MF-UCB run in a compiled engine where all noise is sub-Gaussian or bounded: some 10 to 30 million plays a
    second. Those of the package's other policies that have an engine make 0.1 to 2 million. A policy of your own
    runs compiled if it has ``compiled`` (:class:`~mfbandit.CompiledIndex`). Without, and with any other psi, it goes
    play by play in Python: some thousands a second at a few hundred arms. Results do not depend on
    which of these it is. Memory grows with M·K and the grid, not with the number of plays.

    Args:
        problem: the hidden truth.
        policy: a policy of the package or of your own.
        capital: Λ, what all plays of a run together may cost. A run ends at the first play that does not fit, or
            when the policy has decided which arm is the best (:class:`~mfbandit.MFSure`). Regret then goes on as if
            all other capital were spent on that arm.
        runs: how many runs.
        seed: for all chance. Run i depends on it and on i alone, whatever else is chosen here.
        grid: at how many evenly spaced capitals up to ``capital`` to record regret, or at which (increasing;
            ``capital`` itself is added where it is not the last).
        account: what a play earns, see :func:`~mfbandit.pseudo_rewards`.
        keep_plays: keep the final plays of each run, (runs, M, K), and not only their mean.
        workers: threads, which run without Python's lock; all cores by default. Where joblib has been told to use
            another backend (``joblib.parallel_config``), that many of its workers, or its own ``n_jobs``; of a Dask
            cluster, all. They get chunks of runs that take some half a second.
        results: a folder in which finished chunks are kept. The same call again, after a crash at any moment or with
            more ``runs``, takes them from there. The result is the same to the last bit. A policy of your own counts
            with the source of its class, but not of what that calls elsewhere.
        progress: show a progress bar; by default on a terminal. Or a function, called now and then with the share of
            the whole simulation done since its last call.

    Raises:
        ValueError: something makes no sense, such as a capital that pays for no play.
        ReplayExhausted: a :class:`~mfbandit.Replay` table has no more rewards.

    >>> from mfbandit import MFUCB, paper_problem
    >>> sim = simulate(paper_problem(1), MFUCB(), capital=1e6, runs=2, grid=4)
    >>> sim
    <Simulation MFUCB(rho=2.0), 2 runs, capital up to 1,000,000 at 4 points>
    >>> sim.plays.sum(axis=1).round().astype(int).tolist()  # at each fidelity
    [45164, 83284, 122]
    """
    check_is_policy(policy)
    if not isinstance(problem, Problem):
        raise InvalidArgument(f"problem must be a Problem, got {problem!r}")
    if whole("runs", runs) < 1:
        raise InvalidArgument(f"runs must be at least 1, got {runs}")
    if workers is not None and whole("workers", workers) < 1:
        raise InvalidArgument(f"workers must be at least 1, got {workers}")
    start = Stats.empty(len(problem.fidelities), problem.arms)
    capitals = _grid(grid, checked_capital(capital, policy, problem.fidelities, start))
    job = partial(one_run, problem, policy, capitals, account)
    gather = _Gather(problem, len(capitals), runs, keep_plays)
    root = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(checked_seed(seed))
    kept = None if results is None else Chunks(results, _about(problem, policy, capitals, account, root, keep_plays))
    with _ticking(type(policy).__name__, runs, progress) as tick:
        pieces = _still_to_do(job, root, runs, kept, gather, tick)
        # Closed at once also on Ctrl-C, when the exception may keep it alive: then its threads stop.
        with closing(spread(partial(_chunk, job, root, keep_plays), pieces, workers, tick)) as chunks:
            for _, chunk in chunks:
                if kept is not None:
                    kept.save(chunk)
                gather.add(chunk)
    return gather.result(policy, account, root, capitals)


def _about(
    problem: Problem,
    policy: Policy,
    capitals: FloatArray,
    account: Account,
    root: np.random.SeedSequence,
    keep_plays: bool,
) -> dict[str, Any]:
    """Everything that the numbers of a chunk depend on."""
    return {
        "mfbandit": mfbandit.__version__,
        "problem": problem,
        "policy": policy,
        "compiled": policy.compiled(problem.fidelities) if isinstance(policy, Compilable) else None,
        "capitals": capitals,
        "account": account,
        "seed": [str(root.entropy), list(root.spawn_key), root.pool_size],
        "plays of each run": keep_plays,
    }


def _grid(grid: int | Sequence[float], capital: float) -> FloatArray:
    if isinstance(grid, int | np.integer):
        if grid < 1:
            raise InvalidArgument(f"grid must have at least 1 point, got {grid}")
        return np.linspace(0, capital, int(grid) + 1)[1:]
    points = np.array(list(grid), dtype=np.float64) if not isinstance(grid, str) else np.zeros(0)
    if points.ndim != 1 or not points.size or not (points > 0).all() or not (np.diff(points) > 0).all():
        raise InvalidArgument(f"grid must be increasing capitals above 0, got {grid!r}")
    if points[-1] > capital:
        raise InvalidArgument(f"grid must not go beyond the capital {plain(capital)}, got {plain(points[-1])}")
    return points if points[-1] == capital else np.append(points, capital)


# Many runs


def _still_to_do(
    job: Callable[..., Run],
    root: np.random.SeedSequence,
    runs: int,
    kept: Chunks | None,
    gather: "_Gather",
    tick: Tick,
) -> list[tuple[int, int]]:
    """Gather the chunks that were kept, and cut the other runs into pieces."""
    done = []
    for chunk in kept.load(runs) if kept is not None else ():
        gather.add(chunk)
        tick(chunk.last - chunk.first)
        done.append((chunk.first, chunk.last))
    if sum(last - first for first, last in done) == runs:
        return []
    alone = kept is None and chosen_backend() is None  # threads of our own need no larger pieces than a run
    return missing(done, runs, 1 if alone else _runs_in_a_chunk(job, root, runs))


def _chunk(
    job: Callable[..., Run], root: np.random.SeedSequence, keep_plays: bool, first: int, last: int, tick: Tick
) -> Chunk:
    """Runs ``first`` up to but not including ``last``."""
    runs = [job(_child(root, i), tick) for i in range(first, last)]
    plays = np.stack([run.plays for run in runs])
    return Chunk(
        first,
        np.stack([run.regret for run in runs]),
        np.array([run.steps for run in runs], dtype=np.int64),
        np.array([run.spent for run in runs]),
        np.array([run.answer for run in runs], dtype=np.int64),
        plays if keep_plays else plays.sum(axis=0),
    )


def _child(root: np.random.SeedSequence, i: int) -> np.random.SeedSequence:
    # As root.spawn would make it, without changing root: the same call again gives the same runs.
    return np.random.SeedSequence(root.entropy, spawn_key=(*root.spawn_key, i), pool_size=root.pool_size)


def _runs_in_a_chunk(job: Callable[..., Run], root: np.random.SeedSequence, runs: int) -> int:
    """So many that a chunk takes about CHUNK_SECONDS, found by trying for a moment."""

    def stop(_: float) -> None:
        if time.perf_counter() >= end:
            raise _Enough

    end, done = 0.0, 0
    with suppress(_Enough):
        job(_child(root, 0), stop)  # compiles, if it must, which is not to be measured
    began = time.perf_counter()
    end = began + PILOT_SECONDS
    with suppress(_Enough):
        while done < runs:
            job(_child(root, done), stop)
            done += 1
    return max(1, math.ceil(CHUNK_SECONDS * done / (time.perf_counter() - began)))


class _Enough(Exception):
    """The trial has shown enough."""


class _Gather:
    """Puts runs together as they come, in any order."""

    def __init__(self, problem: Problem, grid: int, runs: int, keep_plays: bool) -> None:
        self._problem = problem
        self._regret = np.zeros((runs, grid))
        self._steps, self._spent = np.zeros(runs, dtype=np.int64), np.zeros(runs)
        self._answers = np.zeros(runs, dtype=np.int64)
        self._plays = np.zeros(problem.means.shape, dtype=np.int64)
        self._run_plays = np.zeros((runs, *problem.means.shape), dtype=np.int64) if keep_plays else None

    def add(self, chunk: Chunk) -> None:
        at = slice(chunk.first, chunk.last)
        self._regret[at], self._steps[at], self._spent[at] = chunk.regret, chunk.steps, chunk.spent
        self._answers[at] = chunk.answers
        if self._run_plays is None:
            self._plays += chunk.plays
        else:
            self._run_plays[at] = chunk.plays
            self._plays += chunk.plays.sum(axis=0)

    def result(
        self, policy: Policy, account: Account, root: np.random.SeedSequence, capitals: FloatArray
    ) -> Simulation:
        entropy = np.atleast_1d(np.array(root.entropy, dtype=object)).tolist()
        return Simulation(
            policy=str(policy),
            problem=self._problem.digest,
            account=account,
            seed=tuple(int(part) for part in entropy),
            spawn_key=tuple(int(part) for part in root.spawn_key),
            means=self._problem.means[-1],
            capital=capitals,
            regret=self._regret,
            plays=self._plays / len(self._regret),
            steps=self._steps,
            spent=self._spent,
            answers=self._answers,
            run_plays=self._run_plays,
        )


@contextmanager
def _ticking(name: str, runs: int, wanted: bool | Tick | None) -> Iterator[Tick]:
    """A function that takes shares of runs as they are done, and shows them if that is wanted."""
    if callable(wanted):
        yield lambda share: wanted(share / runs)
        return
    with progress_bar(f"{name}, {runs} run{'s' * (runs > 1)}", runs, shown=wanted) as tick:
        yield tick
