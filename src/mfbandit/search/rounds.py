"""Spend the capital of a search, in rounds of plays."""

from dataclasses import dataclass

from sklearn.utils.parallel import Parallel

from mfbandit._internal.progress import keep_interrupts
from mfbandit.search.callbacks import FitTask
from mfbandit.search.failures import warn_of_interrupt
from mfbandit.search.fit_and_score import FitResult
from mfbandit.search.fit_runner import FitRunner
from mfbandit.search.live_lines import SearchProgress
from mfbandit.search.scheduler import SearchScheduler


@dataclass(frozen=True)
class Ending:
    """Why a search ended before the capital was spent.

    Args:
        decided: the best candidate was clear.
        interrupted: there was a Ctrl-C.
    """

    decided: bool = False
    interrupted: bool = False


def spend_capital(
    scheduler: SearchScheduler, runner: FitRunner, task: FitTask, *, n_jobs: int | None, batch: int | None, verbose: int
) -> Ending:
    """Make rounds of plays until nothing fits into the capital or the best candidate is clear.

    After Ctrl-C the scores that are there count, and the search is over. Without any it is raised.

    Args:
        scheduler: asks for plays.
        runner: makes their fits.
        task: that callbacks are told of.
        n_jobs: fits at the same time.
        batch: plays in a round; None for as many as there are workers.
        verbose: how much is shown.
    """
    from joblib import effective_n_jobs  # here, so that whoever has neither hears of scikit-learn

    size = effective_n_jobs(n_jobs) if batch is None else batch
    with keep_interrupts() as interrupts:
        try:
            with (
                task.running(),
                Parallel(n_jobs=n_jobs, return_as="generator") as parallel,
                SearchProgress(scheduler, runner, verbose) as progress,
            ):
                while asked := scheduler.ask(size):
                    before, results = scheduler.experiment.spent, list[FitResult]()
                    try:
                        results.extend(progress.of_round(asked, runner.run(asked, parallel, task)))
                    finally:
                        with interrupts.held():  # half a round is told as well
                            scheduler.tell(asked[: len(results)], results)
                    runner.drop((*scheduler.experiment.set_aside, *scheduler.experiment.retired))
                    progress.show(before)
                    if scheduler.decided():
                        return Ending(decided=True)
        except KeyboardInterrupt:
            if not scheduler.results.counts.any():
                raise
    if interrupts.received:
        warn_of_interrupt(scheduler)
    return Ending(interrupted=interrupts.received)
