"""How a job of expensive plays is going: a live display on a terminal, a plain line now and then elsewhere."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from mfbandit._internal.imports import installed
from mfbandit._internal.progress import print_line

LIVE_EVERY, LINE_EVERY = 0.5, 10.0  # seconds between two looks
FIRST_LINE = 2.0  # what is over sooner needs no line


@dataclass(frozen=True)
class Look:
    """What is shown.

    Args:
        spent: capital spent so far.
        capital: all there is; None is unlimited.
        best: the name of the arm that would be recommended now, if any has a result.
        results: how many results there are at each fidelity.
        aside: names of the arms that were set aside.
        failed: plays of this job that failed for good.
        busy: workers at work.
        workers: all workers.
        seconds: since the job began.
        left: estimated seconds until the capital is spent, where that can be said.
        state: what it is doing, if that is not plain work.
    """

    spent: float
    capital: float | None
    best: str | None
    results: tuple[int, ...]
    aside: tuple[str, ...]
    failed: int
    busy: int
    workers: int
    seconds: float
    left: float | None = None
    state: str = ""


class Shown:
    """Shows looks; ``due`` says when the next one is wanted, in the time of ``time.monotonic``."""

    def __init__(self, every: float, first: float, live: Any = None) -> None:  # noqa: ANN401 - Rich's Live
        self._every, self._live = every, live
        self.due = time.monotonic() + first

    def show(self, look: Look) -> None:
        """Show how things are now."""
        self.due = time.monotonic() + self._every
        if self._live is not None:
            self._live.update(_panel(look), refresh=True)
        else:
            print_line(line(look))


@contextmanager
def shown(wanted: bool | None) -> Iterator[Shown | None]:
    """Something to show looks on, or None.

    Args:
        wanted: False for nothing, None and True for a live display on a terminal and lines elsewhere.

    >>> with shown(False) as screen:
    ...     screen is None
    True
    """
    if wanted is False:
        yield None
    elif sys.stderr.isatty() and installed("rich"):
        from rich.console import Console  # only on a terminal
        from rich.live import Live

        with Live(console=Console(stderr=True), auto_refresh=False, transient=False) as live:
            yield Shown(LIVE_EVERY, 0.0, live)
    else:
        yield Shown(LINE_EVERY, FIRST_LINE)


def line(look: Look) -> str:
    """A look in one line.

    >>> line(Look(30.0, 100.0, "ad-b", (12, 3), (), 0, 7, 8, 61.0, 140.0))
    '1:01: spent 30 of 100 (30 %), 15 results (12 + 3), best ad-b, 7 of 8 workers busy, 2:20 left'
    """
    parts = [f"spent {capital(look)}", f"{sum(look.results):,} results ({_plus(look)})"]
    parts += [f"best {look.best}"] if look.best is not None else []
    parts += [f"{look.busy} of {look.workers} workers busy"] if look.workers != 1 else []  # one is busy or showing this
    parts += [f"{look.failed:,} failed"] if look.failed else []
    parts += [f"set aside: {_names(look.aside)}"] if look.aside else []
    parts += [f"{clock(look.left)} left"] if look.left is not None else []
    parts += [look.state] if look.state else []
    return f"{clock(look.seconds)}: {' '.join(', '.join(parts).split())}"  # a label may have line breaks


def capital(look: Look) -> str:
    """What was spent, of what.

    >>> capital(Look(30.0, None, None, (1,), (), 0, 0, 1, 1.0))
    '30'
    """
    if look.capital is None:
        return f"{look.spent:,.6g}"
    return f"{look.spent:,.6g} of {look.capital:,.6g} ({look.spent / look.capital:.0%})".replace("%", " %")


def clock(seconds: float) -> str:
    """Seconds as hours, minutes and seconds.

    >>> clock(61), clock(7325)
    ('1:01', '2:02:05')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _plus(look: Look) -> str:
    return " + ".join(f"{number:,}" for number in look.results)


def _names(labels: tuple[str, ...]) -> str:
    few = 5
    more = f" and {len(labels) - few} more" if len(labels) > few else ""
    return ", ".join(labels[:few]) + more


def _panel(look: Look) -> Any:  # noqa: ANN401 - something Rich can show
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    rows: list[tuple[str, Any]] = [("capital", capital(look))]
    if look.capital is not None:
        rows += [("", ProgressBar(total=look.capital, completed=min(look.spent, look.capital), width=40))]
    rows += [("results", f"{sum(look.results):,}: {_plus(look)}, from the lowest fidelity to the highest")]
    rows += [("best so far", Text(look.best) if look.best is not None else "no result yet")]
    rows += [("workers", f"{look.busy} of {look.workers} busy")] if look.workers != 1 else []
    rows += [("failed", f"[yellow]{look.failed:,} play{'s' * (look.failed != 1)}[/]")] if look.failed else []
    rows += [("set aside", Text(_names(look.aside), "yellow"))] if look.aside else []
    left = "" if look.left is None else f", about {clock(look.left)} left"
    rows += [("time", f"{clock(look.seconds)}{left}")]
    rows += [("now", look.state)] if look.state else []
    table = Table.grid(padding=(0, 2))
    for name, text in rows:
        table.add_row(f"[dim]{name}[/]", text)
    return table
