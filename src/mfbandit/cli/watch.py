"""Watch an experiment: a live view in a terminal, a line whenever something has changed elsewhere."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mfbandit._internal.formatting import plain, strict_json
from mfbandit._internal.imports import installed
from mfbandit.cli.status_text import leading_arms, status_text
from mfbandit.errors import InvalidArgument, StoreUnavailable
from mfbandit.experiment import Confidence, Status, confidence_record

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from mfbandit.cli.store_commands import StoredExperiment

LINES_BESIDE_ARMS = 20  # of a terminal, about
ENDED = ("decided", "exhausted")


@dataclass(frozen=True)
class Look:
    """An experiment at one moment.

    Args:
        status: its status.
        confidence: how sure it is; None before the first result.
        arms: the leading arms as a table; empty where there is none.
        at: when it was looked at, in seconds since 1970.
        trouble: why it cannot be reached now; empty if it can.
    """

    status: Status
    confidence: Confidence | None
    arms: str
    at: float
    trouble: str = ""

    @property
    def ended(self) -> bool:
        """Whether nothing more will happen by itself."""
        return self.status["state"] in ENDED and not self.status["pending"]


def look_at(experiment: "StoredExperiment", top: int) -> Look:
    """Look at an experiment.

    Args:
        experiment: in a store or at a service.
        top: how many leading arms to show.
    """
    status = experiment.status()
    known = status["best"] is not None
    return Look(status, experiment.confidence() if known else None, _arms(experiment, status, top), time.time())


def _arms(experiment: "StoredExperiment", status: Status, top: int) -> str:
    if not top or not any(status["results"]):
        return ""
    try:
        return leading_arms(experiment.bounds(), status, top)
    except InvalidArgument:  # the noise is not known, and the policy has no intervals of its own
        return ""


def line_of(look: Look) -> str:
    """Format a look in one line.

    >>> from mfbandit import UCB, Bounded, Experiment, Fidelities
    >>> exp = Experiment(UCB(), arms=["a", "b"], fidelities=Fidelities([1], concentration=Bounded()), capital=8)
    >>> _ = exp.add_results([("a", 0, 1.0, None)] * 4)
    >>> line_of(Look({"name": "ads", **exp.status()}, exp.confidence(), "", at=0.0))[9:]
    'running, spent 4 of 8 (50 %), 4 results, 0 pending, best a. Not sure yet that a is the best (valid whenever you
        look). 1 of 2 may still be better, by at most 1.'
    """
    status = look.status
    clock = time.strftime("%H:%M:%S", time.localtime(look.at))
    results = sum(status["results"])
    parts = [status["state"], f"spent {_spent(status)}", f"{results:,} result{'s' * (results != 1)}"]
    parts += [f"{status['pending']:,} pending"]
    parts += [f"best {status['best_label']}"] if status["best"] is not None else []
    sure = "" if look.confidence is None else f". {look.confidence.sentence}"
    trouble = f" ({look.trouble})" if look.trouble else ""
    return " ".join(f"{clock} {', '.join(parts)}{sure}{trouble}".split())  # a name may have line breaks


def _spent(status: Status) -> str:
    if status["capital"] is None:
        return plain(status["spent"])
    share = f"{status['spent'] / status['capital']:.0%}".replace("%", " %")
    return f"{plain(status['spent'])} of {plain(status['capital'])} ({share})"


def record_of(look: Look) -> dict[str, Any]:
    """Return a look for programs: the status, and the confidence beside it."""
    sure = None if look.confidence is None else confidence_record(look.confidence)
    return {"at": look.at, **look.status, "confidence": sure, "trouble": look.trouble or None}


def looks(experiment: "StoredExperiment", top: int, every: float, sleep: Callable[[float], object]) -> Iterator[Look]:
    """Look again and again, until nothing more will happen; while a service or database is gone, say so and go on.

    Args:
        experiment: in a store or at a service.
        top: how many leading arms to show.
        every: seconds between looks.
        sleep: waits so many seconds.
    """
    last = look_at(experiment, top)
    yield last
    while not last.ended:
        sleep(every)
        try:
            last = look_at(experiment, top) if _changed(experiment, last) else Look(**{**vars(last), "trouble": ""})
        except StoreUnavailable as error:
            last = Look(last.status, last.confidence, last.arms, last.at, str(error))
        yield last


def _changed(experiment: "StoredExperiment", last: Look) -> bool:
    """Tell whether there are new events; in a store that another process writes, what is known is read again then."""
    from mfbandit.store import DurableExperiment

    if not isinstance(experiment, DurableExperiment):
        return True  # the service is asked for its status, which costs as little
    if next(experiment.records(after=last.status["events"]), None) is None:
        return False
    experiment.refresh()
    return True


def show_live(found: Iterator[Look]) -> None:
    """Show looks in a terminal, each in place of the one before; the last one stays."""
    from rich.console import Console
    from rich.live import Live

    console = Console()
    with Live(console=console, auto_refresh=False, vertical_overflow="crop") as live:
        for look in found:
            live.update(panel(look, console), refresh=True)


def panel(look: Look, console: "Console") -> "RenderableType":
    """Draw a look.

    Args:
        look: what to draw.
        console: where; names that are too long for it are cut.
    """
    from rich.console import Group
    from rich.text import Text

    sentence = "" if look.confidence is None else look.confidence.sentence
    parts: list[RenderableType] = [Text(status_text(look.status, sentence))]
    parts += [Text(), *_bars(look, max(10, min(console.width - 15, 50)))]
    if look.arms:
        parts += [Text(), Text(look.arms, no_wrap=True, overflow="ellipsis")]
    clock = time.strftime("%H:%M:%S", time.localtime(look.at))
    trouble = f"out of reach, trying again: {look.trouble}" if look.trouble else ""
    how = "nothing more will happen by itself" if look.ended else "Ctrl-C ends the view"
    parts += [Text(), Text(trouble or f"as of {clock}; {how}", "yellow" if trouble else "dim")]
    return Group(*parts)


def _bars(look: Look, width: int) -> "Iterator[RenderableType]":
    from rich.text import Text

    capital = look.status["capital"]
    if capital:
        yield Text(f"spent        {bar(look.status['spent'] / capital, width)}")
    if look.confidence is not None and look.confidence.kind != "withheld":
        yield Text(f"sure         {bar(look.confidence.level, width)}")


def bar(share: float, width: int) -> str:
    """Draw a share as a bar that needs no colours; never fuller than it is.

    >>> bar(0.5, 8), bar(2.0, 4), bar(0.999, 4)
    ('████░░░░', '████', '███░')
    """
    filled = int(max(0.0, min(share, 1.0)) * width)
    return "█" * filled + "░" * (width - filled)


def show_lines(found: Iterator[Look], *, as_json: bool) -> None:
    """Print a line for each look that differs from the one before.

    Args:
        found: the looks.
        as_json: whether lines are JSON.
    """
    before: tuple[int, str] | None = None
    for look in found:
        now = look.status["events"], look.trouble
        if now != before:
            sys.stdout.write((strict_json(record_of(look)) if as_json else line_of(look)) + "\n")
            sys.stdout.flush()
        before = now


@contextmanager
def ended_by_ctrl_c() -> Iterator[None]:
    """Take Ctrl-C for the end that it is."""
    try:
        yield
    except KeyboardInterrupt:
        sys.stdout.write("\n")


def arms_that_fit(top: int, fidelities: int) -> int:
    """How many arms a terminal has room for.

    Args:
        top: as many as are wanted.
        fidelities: lines for each arm.

    >>> arms_that_fit(10, 1000)
    1
    """
    import shutil

    lines = shutil.get_terminal_size().lines - LINES_BESIDE_ARMS
    return min(top, max(1, lines // fidelities))


def watch(experiment: "StoredExperiment", *, top: int, every: float, as_json: bool) -> None:
    """Show an experiment until nothing more will happen, or Ctrl-C.

    Args:
        experiment: in a store or at a service.
        top: how many leading arms to show.
        every: seconds between looks.
        as_json: whether to print JSON, a line for each change.
    """
    live = not as_json and sys.stdout.isatty() and installed("rich")
    shown = arms_that_fit(top, len(experiment.fidelities)) if live and top else top
    with ended_by_ctrl_c():
        found = looks(experiment, 0 if as_json else shown, every, time.sleep)
        if live:
            show_live(found)
        else:
            show_lines(found, as_json=as_json)
