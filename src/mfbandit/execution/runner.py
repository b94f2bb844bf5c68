"""Make expensive plays on any executor: keep every worker busy, tell results as they come, lose none."""

import os
from concurrent.futures import Executor
from dataclasses import dataclass

from mfbandit._internal.progress import keep_interrupts
from mfbandit.errors import InvalidArgument
from mfbandit.execution.attempt import Objective
from mfbandit.execution.display import progress_display
from mfbandit.execution.lease_renewal import renewed_leases
from mfbandit.execution.outcomes import Failure
from mfbandit.execution.run_loop import SHUTDOWN_PATIENCE_SECONDS, RunLoop
from mfbandit.execution.run_options import RunOptions, checked_lease
from mfbandit.execution.states import States
from mfbandit.execution.worker_pool import worker_pool
from mfbandit.experiment import AnyExperiment, Sure


@dataclass(frozen=True)
class Ran:
    """What a run did; made by :func:`run`.

    Args:
        told: results that were told.
        failures: plays that failed in their last attempt.
        retried: attempts that failed and were repeated.
        ended: why it ended.
        seconds: how long it took.
        busy: share of the workers' time that objectives took, in [0, 1].
        overhead: seconds per play that the run itself took for asking, handing out, telling and showing.
        warnings: what the experiment warns of at the end, such as arms that are set aside.
    """

    told: int
    failures: tuple[Failure, ...]
    retried: int
    ended: str
    seconds: float
    busy: float
    overhead: float
    warnings: tuple[str, ...] = ()

    def __str__(self) -> str:
        plays = f"{self.told:,} result{'s' * (self.told != 1)}, {len(self.failures):,} failed"
        return f"{plays}, {self.retried:,} retried in {self.seconds:.1f} s, workers {self.busy:.0%} busy: {self.ended}"


def run(  # noqa: PLR0913 - options with names and defaults
    experiment: AnyExperiment,
    objective: Objective,
    executor: Executor,
    *,
    workers: int | None = None,
    retries: int = 0,
    timeout: float | None = None,
    seed: int = 0,
    plays: int | None = None,
    ahead: int = 0,
    lease: float | None = None,
    until: Sure | None = None,
    stay: bool = False,
    spool: str | os.PathLike[str] | None = None,
    take_over: bool = False,
    first_failures: int | None = None,
    states: States | None = None,
    progress: bool | None = None,
) -> Ran:
    """Make the plays of an experiment on the workers of an executor until its capital is spent, or it is decided.

    Each worker has one play at a time. With one worker these are the plays of a plain loop of ask and tell. With more,
    each is asked for as soon as a worker is free, with the others pending. An attempt fails if the objective raises,
    takes too long, returns no finite number, or dies with its process. It is repeated ``retries`` times; then the play
    is failed, which is noted in the experiment's log. Three such plays of an arm in a row set the arm aside.

    On Ctrl-C the results that are there are told. Other pending plays are failed, which is not held against their arms.

    While the store is unavailable, results are kept in a file and told when it is back; no new plays are asked for
    meanwhile. If the run ends before, the next one of the same experiment tells what is in the file first.

    Args:
        experiment: in memory, in a store or at a service. Leases are renewed while plays are pending.
        objective: is called with a :class:`~mfbandit.SeededPlay` on a worker; returns the reward, or (reward, cost)
            where the play did not cost what its fidelity costs. For processes and Dask it has to be picklable.
        executor: threads, processes, Dask's ``client.get_executor()``, or any other of concurrent.futures's kind. It is
            not shut down. If a process of a standard pool dies, every worker becomes a process of its own.
        workers: how many plays to make at once. It is needed where the executor does not say how many workers it has,
            and useful where it starts them on demand, as an adaptive Dask cluster does.
        retries: how often a failed attempt is repeated.
        timeout: seconds that an attempt may take. A process is interrupted then, or ended if it does not react. A
            thread cannot be interrupted: the objective is left in a thread of its own, and the worker goes on. A play
            that Dask starts again because its worker died has all of that time again.
        seed: for the seeds of plays, see :func:`~mfbandit.seeded`.
        plays: how many plays to ask for at most; no limit by default.
        ahead: how many plays more than there are workers to hand out, for a cluster whose latency is long against a
            play; they are asked for with less known.
        lease: seconds of the plays' leases, for an experiment in a store; its own by default.
        until: how sure it has to be of the best arm for this run to end; the experiment itself can go on. A service is
            asked once a second at most.
        stay: wait, when the capital is spent, while others have pending plays that may yet fail and make room.
        spool: a folder for results that cannot be told; by default mfbandit in the user's state folder
            ($XDG_STATE_HOME, or ~/.local/state).
        take_over: make the experiment's pending plays first, as after a run that was killed; for when nobody else is
            making them.
        first_failures: so many plays that fail at first, before any has a result, end the run with an error: the
            objective must be wrong. None never does.
        states: where states are kept that objectives return in :class:`~mfbandit.Trained`, for plays that go on from
            them: ``play.state()``. For an experiment whose fidelities resume; without it an objective keeps its own,
            and ``play.resume_from`` says from which fidelity it goes on.
        progress: whether to show progress; by default live on a terminal, and elsewhere as a line now and then.

    Raises:
        NoActiveArms: every arm failed three times in a row, or is retired.
        ExperimentPaused: the experiment is in memory and paused; any other is waited for.
        InvalidArgument: the first plays failed, as many as ``first_failures``.
        ExecutorBroken: every worker is lost, or the executor is broken.

    >>> from concurrent.futures import ThreadPoolExecutor
    >>> from mfbandit import MFUCB, Experiment, Fidelities, SubGaussian
    >>> fid = Fidelities(costs=[1, 10], biases=[0.1, 0], concentration=SubGaussian(0.1))
    >>> exp = Experiment(MFUCB(), arms=["a", "b", "c"], fidelities=fid, capital=200)
    >>> def objective(play):
    ...     return play.rng().normal({"a": 0.2, "b": 0.8, "c": 0.5}[play.label], 0.1)
    >>> with ThreadPoolExecutor(4) as pool:
    ...     ran = run(exp, objective, pool)
    >>> exp.arms[exp.best()], exp.spent, len(ran.failures), ran.ended
    ('b', 200.0, 0, 'the capital is spent')
    """
    how = (retries, timeout, seed, plays, ahead, until, stay, spool, take_over, first_failures, states)
    options = RunOptions(objective, *how)
    seconds = checked_lease(experiment, lease)
    if states is not None:
        if not experiment.fidelities.resume:
            raise InvalidArgument("states must be None for an experiment whose fidelities do not resume")
        states.open(experiment.id)
    pool = worker_pool(executor, workers, objective)
    with progress_display(progress) as display, keep_interrupts() as interrupts:
        loop = RunLoop(experiment, pool, options, seconds, interrupts)
        with (
            loop.closing(),
            renewed_leases(experiment, seconds, loop.runner.within_deadlines, patience=SHUTDOWN_PATIENCE_SECONDS),
        ):
            loop.go(display)
    return _ran(loop)


def _ran(loop: RunLoop) -> Ran:
    recorder, usage = loop.recorder, loop.runner.usage
    seconds = usage.seconds
    attempts = max(recorder.told + loop.runner.retried + len(recorder.failures), 1)
    return Ran(
        told=recorder.told,
        failures=tuple(recorder.failures),
        retried=loop.runner.retried,
        ended=loop.ended,
        seconds=seconds,
        busy=usage.busy,
        overhead=max(seconds - usage.waited, 0.0) / attempts,
        warnings=loop.warnings(),
    )
