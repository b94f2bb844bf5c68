"""Progress of long jobs: a bar on a terminal, plain lines without Rich; and handling of Ctrl-C."""

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from mfbandit._internal.imports import installed

Tick = Callable[[float], None]
"""Called with an amount of work each time that amount is done."""

PLAIN_LINES = 10  # in all, where there is no bar


@contextmanager
def progress_bar(
    description: str, total: float, *, shown: bool | None = None, below: Callable[[], str] = str
) -> Iterator[Tick]:
    """Show a progress bar on standard error; yield the function that advances it.

    Without Rich there is a plain line for each tenth of the work.

    Args:
        description: what is being done.
        total: the amount of all work.
        shown: whether to show the bar; by default on a terminal.
        below: says what stands below the bar; it is called ten times a second, from a thread.

    >>> with progress_bar("counting", total=3, shown=False) as tick:
    ...     tick(1)
    """
    if not (sys.stderr.isatty() if shown is None else shown):
        yield lambda _: None
        return
    if not installed("rich"):
        yield _plain_lines(description, total)
        return
    from rich.console import Console, RenderableType  # rich is loaded only where a bar is shown
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
    from rich.text import Text

    class WithText(Progress):
        """A bar, and what stands below it."""

        def get_renderables(self) -> Iterator[RenderableType]:
            yield from super().get_renderables()
            yield Text(below())

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with WithText(*columns, console=Console(stderr=True)) as live:
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
            print_line(f"{description}: {100 * reached // PLAIN_LINES} %")

    return tick


def print_line(text: str, *, on_terminal: bool = True) -> None:
    """Write a line to standard error.

    Args:
        text: the line.
        on_terminal: False leaves the line out on a terminal, where a progress bar shows the same.

    >>> print_line("three of nine")
    """
    if on_terminal or not sys.stderr.isatty():
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()


class Interrupts:
    """A count of received Ctrl-C; calling it raises KeyboardInterrupt if there was one."""

    def __init__(self) -> None:
        self._received, self._held = 0, False

    @property
    def received(self) -> bool:
        """Whether there was a Ctrl-C."""
        return self._received > 0

    def __call__(self) -> None:
        """Raise KeyboardInterrupt if a Ctrl-C was received."""
        if self._received:
            raise KeyboardInterrupt

    def handle(self, number: int, frame: FrameType | None) -> None:
        """Handle SIGINT: raise KeyboardInterrupt, but delay the first one while interrupts are held."""
        self._received += 1
        if not self._held or self._received > 1:
            signal.default_int_handler(number, frame)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Delay an interrupt until the end of the block, which must be short.

        >>> with Interrupts().held():
        ...     pass
        """
        before, self._held = self._received, True
        try:
            yield
        finally:
            self._held = False
        if self._received > before:
            raise KeyboardInterrupt


@contextmanager
def keep_interrupts() -> Iterator[Interrupts]:
    """Count each Ctrl-C inside the block, so that none is lost; call what is yielded to raise it.

    Python raises KeyboardInterrupt in whatever code happens to run. In a callback of the garbage collector it is
    printed and lost.

    >>> with keep_interrupts() as check:
    ...     check()
    """
    interrupts = Interrupts()

    def hook(unraisable: "sys.UnraisableHookArgs") -> None:
        if not issubclass(unraisable.exc_type, KeyboardInterrupt):  # that one was counted
            previous_hook(unraisable)

    in_main_thread = threading.current_thread() is threading.main_thread()
    installed = in_main_thread and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    previous_hook = sys.unraisablehook
    if installed:
        sys.unraisablehook = hook
        signal.signal(signal.SIGINT, interrupts.handle)
    try:
        yield interrupts
    finally:
        if installed:
            sys.unraisablehook = previous_hook
            signal.signal(signal.SIGINT, signal.default_int_handler)
