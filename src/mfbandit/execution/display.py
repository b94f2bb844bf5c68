"""Show the progress of a run: a live display on a terminal, a line now and then elsewhere."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mfbandit._internal.formatting import plain
from mfbandit._internal.imports import installed
from mfbandit._internal.progress import print_line

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.live import Live

LIVE_REFRESH_SECONDS, LINE_INTERVAL_SECONDS = 0.5, 10.0
FIRST_LINE_AFTER_SECONDS = 2.0  # a run that ends sooner needs no line
MAX_NAMES_SHOWN = 5


@dataclass(frozen=True)
class RunProgress:
    """What is shown of a run.

    Args:
        spent: capital spent so far.
        capital: what all plays may cost; None is unlimited.
        best: the name of the arm that would be recommended now, if any has a result.
        results: how many results there are at each fidelity.
        set_aside: names of the arms that were set aside.
        failed: plays of this run that failed.
        busy: workers that are making a play.
        workers: all workers.
        seconds: since the run began.
        seconds_left: estimated seconds until the capital is spent; None if that is not known.
        state: "paused", or that the store is unavailable; or empty.
    """

    spent: float
    capital: float | None
    best: str | None
    results: tuple[int, ...]
    set_aside: tuple[str, ...]
    failed: int
    busy: int
    workers: int
    seconds: float
    seconds_left: float | None = None
    state: str = ""


class ProgressDisplay:
    """Shows progress; ``due`` says when it is to be shown next, in the time of ``time.monotonic``."""

    def __init__(self, interval: float, first: float, live: "Live | None" = None) -> None:
        self._interval, self._live = interval, live
        self.due = time.monotonic() + first

    def put_off(self) -> None:
        """Show nothing now, and try again later."""
        self.due = time.monotonic() + self._interval

    def show(self, progress: RunProgress) -> None:
        """Show the progress now."""
        self.due = time.monotonic() + self._interval
        if self._live is not None:
            self._live.update(_panel(progress), refresh=True)
        else:
            print_line(progress_line(progress))


@contextmanager
def progress_display(wanted: bool | None) -> Iterator[ProgressDisplay | None]:
    """Yield a display, or None.

    Args:
        wanted: False for none; None and True for a live display on a terminal and lines elsewhere.

    >>> with progress_display(False) as display:
    ...     display is None
    True
    """
    if wanted is False:
        yield None
    elif sys.stderr.isatty() and installed("rich"):
        from rich.console import Console  # only on a terminal
        from rich.live import Live

        with Live(console=Console(stderr=True), auto_refresh=False, transient=False) as live:
            yield ProgressDisplay(LIVE_REFRESH_SECONDS, 0.0, live)
    else:
        yield ProgressDisplay(LINE_INTERVAL_SECONDS, FIRST_LINE_AFTER_SECONDS)


def progress_line(progress: RunProgress) -> str:
    """Format progress in one line.

    >>> progress_line(RunProgress(30.0, 100.0, "ad-b", (12, 3), (), 0, 7, 8, 61.0, 140.0))
    '1:01: spent 30 of 100 (30 %), 15 results (12 + 3), best ad-b, 7 of 8 workers busy, 2:20 left'
    """
    parts = [f"spent {spent_of_capital(progress)}", f"{sum(progress.results):,} results ({_by_fidelity(progress)})"]
    parts += [f"best {progress.best}"] if progress.best is not None else []
    parts += [f"{progress.busy} of {progress.workers} workers busy"] if progress.workers != 1 else []
    parts += [f"{progress.failed:,} failed"] if progress.failed else []
    parts += [f"set aside: {_names(progress.set_aside)}"] if progress.set_aside else []
    parts += [f"{clock(progress.seconds_left)} left"] if progress.seconds_left is not None else []
    parts += [progress.state] if progress.state else []
    return f"{clock(progress.seconds)}: {' '.join(', '.join(parts).split())}"  # a label may have line breaks


def spent_of_capital(progress: RunProgress) -> str:
    """Format the capital spent, and of what.

    >>> spent_of_capital(RunProgress(30.0, None, None, (1,), (), 0, 0, 1, 1.0))
    '30'
    """
    if progress.capital is None:
        return plain(progress.spent)
    share = f"{progress.spent / progress.capital:.0%}".replace("%", " %")
    return f"{plain(progress.spent)} of {plain(progress.capital)} ({share})"


def clock(seconds: float) -> str:
    """Format seconds as hours, minutes and seconds.

    >>> clock(61), clock(7325)
    ('1:01', '2:02:05')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _by_fidelity(progress: RunProgress) -> str:
    return " + ".join(f"{number:,}" for number in progress.results)


def _names(labels: tuple[str, ...]) -> str:
    more = f" and {len(labels) - MAX_NAMES_SHOWN} more" if len(labels) > MAX_NAMES_SHOWN else ""
    return ", ".join(labels[:MAX_NAMES_SHOWN]) + more


def _panel(progress: RunProgress) -> "RenderableType":
    from rich.table import Table

    table = Table.grid(padding=(0, 2))
    for name, text in _rows(progress):
        table.add_row(f"[dim]{name}[/]", text)
    return table


def _rows(progress: RunProgress) -> "Iterator[tuple[str, RenderableType]]":
    from rich.progress_bar import ProgressBar
    from rich.text import Text

    yield "capital", spent_of_capital(progress)
    if progress.capital is not None:
        done = min(progress.spent, progress.capital)
        yield "", ProgressBar(total=progress.capital, completed=done, width=40)
    yield "results", f"{sum(progress.results):,}: {_by_fidelity(progress)}, from the lowest fidelity to the highest"
    yield "best so far", Text(progress.best) if progress.best is not None else "no result yet"
    if progress.workers != 1:  # one is busy, or shows this
        yield "workers", f"{progress.busy} of {progress.workers} busy"
    if progress.failed:
        yield "failed", f"[yellow]{progress.failed:,} play{'s' * (progress.failed != 1)}[/]"
    if progress.set_aside:
        yield "set aside", Text(_names(progress.set_aside), "yellow")
    left = "" if progress.seconds_left is None else f", about {clock(progress.seconds_left)} left"
    yield "time", f"{clock(progress.seconds)}{left}"
    if progress.state:
        yield "now", progress.state
