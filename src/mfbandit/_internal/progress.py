"""How far a long job has come: a bar with the time left on a terminal, plain lines without Rich, or nothing."""

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from mfbandit._internal.imports import installed

Tick = Callable[[float], None]

PLAIN_LINES = 10  # in all, where there is no bar


@contextmanager
def bar(description: str, total: float, *, shown: bool | None = None) -> Iterator[Tick]:
    """A function that takes amounts of work as they are done, and a bar on standard error meanwhile.

    Without Rich there is a plain line for each tenth of the work.

    Args:
        description: what is being done.
        total: the amount of all work.
        shown: whether to show the bar; by default on a terminal.

    >>> with bar("counting", total=3, shown=False) as tick:
    ...     tick(1)
    """
    if not (sys.stderr.isatty() if shown is None else shown):
        yield lambda _: None
        return
    if not installed("rich"):
        yield _plain_lines(description, total)
        return
    from rich.console import Console  # only where a bar is shown
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as live:
        task = live.add_task(description, total=total)
        yield lambda amount: live.update(task, advance=amount)
        live.update(task, completed=total)


def _plain_lines(description: str, total: float) -> Tick:
    """A function that writes a line whenever another tenth of the work is done."""
    done, lines = 0.0, 0

    def tick(amount: float) -> None:
        nonlocal done, lines
        done += amount
        reached = int(PLAIN_LINES * done / total * (1 + 1e-9)) if total > 0 else 0  # amounts are rounded
        if lines < reached <= PLAIN_LINES:
            lines = reached
            note(f"{description}: {100 * reached // PLAIN_LINES} %")

    return tick


def note(text: str, *, on_terminal: bool = True) -> None:
    """A line on standard error.

    Args:
        text: the line.
        on_terminal: False for what a bar shows anyway, and only logs and pipes need.

    >>> note("three of nine")  # to standard error
    """
    if on_terminal or not sys.stderr.isatty():
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()


class Interrupts:
    """The Ctrl-C that have come in; called, it raises KeyboardInterrupt if there was one."""

    def __init__(self) -> None:
        self._came, self._held = 0, False

    def __call__(self) -> None:
        """Raise if one has come in."""
        if self._came:
            raise KeyboardInterrupt

    def take(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal; the first one waits where interrupts are held, and a second one does not."""
        self._came += 1
        if not self._held or self._came > 1:
            signal.default_int_handler(number, frame)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Inside, which must be short, nothing is interrupted; at the end it is.

        >>> with Interrupts().held():
        ...     pass
        """
        before, self._held = self._came, True
        try:
            yield
        finally:
            self._held = False
        if self._came > before:
            raise KeyboardInterrupt


@contextmanager
def interrupts_kept() -> Iterator[Interrupts]:
    """Something that raises KeyboardInterrupt when called if one has come in meanwhile, even if it was swallowed.

    Python raises it wherever it happens to be; in a callback of the garbage collector it is printed and forgotten.

    >>> with interrupts_kept() as check:
    ...     check()
    """
    interrupts = Interrupts()

    def forgotten(thing: "sys.UnraisableHookArgs") -> None:
        if not issubclass(thing.exc_type, KeyboardInterrupt):  # that one is not forgotten
            told(thing)

    ours = threading.current_thread() is threading.main_thread()
    usual = ours and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    told = sys.unraisablehook
    if usual:
        sys.unraisablehook = forgotten
        signal.signal(signal.SIGINT, interrupts.take)
    try:
        yield interrupts
    finally:
        if usual:
            sys.unraisablehook = told
            signal.signal(signal.SIGINT, signal.default_int_handler)
