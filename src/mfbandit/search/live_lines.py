"""What a search shows while it runs: how much of the capital is spent, the best so far, and each fit."""

import math
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from types import TracebackType

import numpy as np

from mfbandit._internal.formatting import columns, plain
from mfbandit._internal.progress import print_line, progress_bar
from mfbandit.core import Play
from mfbandit.search.fit_and_score import FitResult
from mfbandit.search.fit_runner import FitRunner
from mfbandit.search.scheduler import SearchScheduler

ROWS = 5  # of the live table
SECONDS_BETWEEN_TABLES = 0.25
FITS, SCORES = 2, 3  # from which ``verbose`` each fit is shown, and its scores


class SearchProgress:
    """Shows a search while it runs: from ``verbose`` 1 on the capital and the best so far, from 2 on each fit.

    On a terminal there is a bar, and below it a live table of the leading candidates.

    Args:
        scheduler: of the search.
        runner: makes its fits.
        verbose: how much is shown; 0 for nothing.
    """

    def __init__(self, scheduler: SearchScheduler, runner: FitRunner, verbose: int) -> None:
        self._scheduler, self._runner, self._verbose = scheduler, runner, int(verbose)
        self._open = ExitStack()
        self._table, self._drawn_at = "", -math.inf

    def __enter__(self) -> "SearchProgress":
        capital = self._scheduler.experiment.capital or 0.0
        bar = progress_bar(
            "searching", total=capital, shown=None if self._verbose else False, below=lambda: self._table
        )
        self._tick = self._open.enter_context(bar)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.__exit__(kind, error, trace)

    def of_round(self, asked: Sequence[tuple[Play, int]], results: Iterable[FitResult]) -> Iterator[FitResult]:
        """Pass on the results of a round, and show each as it comes."""
        for (play, split), result in zip(asked, results, strict=True):
            if self._verbose >= FITS:
                print(self._line(play, split, result), flush=True)  # noqa: T201 - where GridSearchCV prints
            yield result

    def _line(self, play: Play, split: int, result: FitResult) -> str:
        fidelity = self._runner.rungs.names[play.fidelity]
        scores = f", {_scores_text(result)}" if self._verbose >= SCORES else ""
        seconds = time.strftime("%H:%M:%S")
        return f"[{seconds}] {play.label}, {fidelity}, split {split}{scores}, {result.seconds:.2f} s"

    def show(self, before: float) -> None:
        """Show that a round is over: a line for each tenth of the capital, where there is no bar.

        Args:
            before: what was spent before the round.
        """
        experiment = self._scheduler.experiment
        capital, spent = experiment.capital or 1.0, experiment.spent
        self._tick(spent - before)
        self._redraw()
        if self._verbose and (int(10 * spent / capital) > int(10 * before / capital) or before == 0):
            fits = f"searching: {len(self._scheduler.trials)} fits, {plain(spent, 4)} of {plain(capital, 4)} spent"
            print_line(fits + self._best_text(), on_terminal=False)

    def _redraw(self) -> None:
        """Make the live table anew, now and then."""
        now = time.monotonic()
        if self._verbose and sys.stderr.isatty() and now >= self._drawn_at + SECONDS_BETWEEN_TABLES:
            self._table, self._drawn_at = leaders_table(self._scheduler), now

    def _best_text(self) -> str:
        """The best candidate so far and its estimate; nothing before any score."""
        if not self._scheduler.results.counts.any():
            return ""
        best = self._scheduler.best()
        estimate = self._scheduler.estimates().estimate[best]
        return f"; best so far {estimate:.4g}, {self._scheduler.experiment.arms[best]}"


def leaders_table(scheduler: SearchScheduler) -> str:
    """Format the candidates with the largest estimates, with their mean scores at each fidelity.

    Args:
        scheduler: of the search.
    """
    results, experiment = scheduler.results, scheduler.experiment
    if not results.counts.any():
        return ""
    known = scheduler.estimates().estimate
    best_first = np.argsort(-np.nan_to_num(known, nan=-np.inf), kind="stable")[:ROWS].tolist()
    means = results.sums / np.maximum(results.counts, 1)
    rows = [("candidate", "estimate", *(f"at {name}" for name in experiment.fidelities.labels), "fits")]
    for arm in best_first:
        scores = [f"{means[m, arm]:.4g}" if results.counts[m, arm] else "" for m in range(len(means))]
        rows.append((experiment.arms[arm], f"{known[arm]:.4g}", *scores, f"{int(results.counts[:, arm].sum()):,}"))
    return "\n".join(columns(rows))


def _scores_text(result: FitResult) -> str:
    if result.scores:
        return " ".join(
            f"{name}: ({_with_train(result, name)}test={score:.3f})" for name, score in sorted(result.scores.items())
        )
    train = _with_train(result, "score")
    return f"score=({train}test={result.score:.3f})" if train else f"score={result.score:.3f}"


def _with_train(result: FitResult, name: str) -> str:
    return f"train={result.train_scores[name]:.3f}, " if name in result.train_scores else ""
