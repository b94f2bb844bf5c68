"""The command that makes plays: one worker, of as many as a cluster's scheduler starts."""

import importlib
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any, Optional, cast

import typer

from mfbandit.cli.store_commands import Answer, Call, on_experiment
from mfbandit.errors import InvalidArgument

if TYPE_CHECKING:
    from mfbandit.execution.attempt import Objective

TERMINATED = 143  # the exit code of a process that SIGTERM ended


@on_experiment
def work(  # noqa: PLR0913, PLR0917 - options of a command
    call: Call,
    objective: Annotated[
        str, typer.Argument(metavar="MODULE:OBJECTIVE", help="A function of a play, such as lab:dig.")
    ],
    plays: Annotated[Optional[int], typer.Option(min=0, help="Stop after so many plays.")] = None,
    until_sure: Annotated[
        Optional[float], typer.Option(help="Stop when it is so sure of the best arm, such as 0.95.")
    ] = None,
    tolerance: Annotated[
        float, typer.Option(help="With --until-sure: how much worse than the best the answer may be.")
    ] = 0.0,
    timeout: Annotated[Optional[float], typer.Option(help="Seconds that a play may take before it fails.")] = None,
    retries: Annotated[int, typer.Option(min=0, help="How often a failed play is tried again.")] = 0,
    lease: Annotated[
        Optional[float],
        typer.Option(help="Seconds until the play of a worker that died is taken back; the experiment's by default."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="For the seeds of plays.")] = 0,
    patience: Annotated[float, typer.Option(help="Seconds to wait for a service that does not answer.")] = 600.0,
    spool: Annotated[
        Optional[Path],
        typer.Option(help="Folder for results that cannot be told; mfbandit in your state folder by default."),
    ] = None,
    leave: Annotated[
        bool,
        typer.Option("--leave", help="End when no play fits, even if other workers' plays may make room."),
    ] = False,
) -> Answer:
    """Make plays of an experiment until the capital is spent, or it is decided.

    Ask for a play, make it, tell the result; and again.

    The objective is called with a play (label, arm, fidelity, cost, seed, rng()) and returns the reward, or the pair
    (reward, cost). Its module is looked for in the current folder first. The play's lease is renewed meanwhile; if
    this process dies, the play is asked for again when the lease ends. Ctrl-C or SIGTERM gives the play back at once.
    A result that cannot be told is kept in a file, and told when the store is back, or by the next worker.
    """
    from mfbandit.execution import InlineExecutor, run
    from mfbandit.experiment import Sure

    if until_sure is None and tolerance:
        raise InvalidArgument(f"--tolerance must be given with --until-sure, got {tolerance:g} alone")
    until = None if until_sure is None else Sure(until_sure, tolerance)
    function = imported_objective(objective)
    with _sigterm_as_interrupt() as ended, call.store(writing=True, patience=patience) as store:
        try:
            ran = run(
                store.open(call.name),
                function,
                InlineExecutor(),
                retries=retries,
                timeout=timeout,
                seed=seed,
                plays=plays,
                lease=lease,
                until=until,
                stay=not leave,
                spool=spool,
            )
        except KeyboardInterrupt:
            if ended:
                raise typer.Exit(TERMINATED) from None
            raise
    failed = [{"play": one.play.id, "arm": one.play.label, "error": one.error} for one in ran.failures]
    record = {"told": ran.told, "failed": failed, "retried": ran.retried, "ended": ran.ended}
    return Answer("\n".join([f"{call.name}: {ran}", *ran.warnings]), {**record, "warnings": list(ran.warnings)})


def imported_objective(text: str) -> "Objective":
    """Import the objective that a text such as lab:dig names; ``run`` checks that it is a function.

    >>> imported_objective("math:sqrt")(4.0)
    2.0
    """
    module, colon, path = text.partition(":")
    if not (module and colon and path):
        raise InvalidArgument(f"MODULE:OBJECTIVE must name a function of a module, such as lab:dig, got {text!r}")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        thing: Any = importlib.import_module(module)
    except (Exception, SystemExit) as error:  # whatever somebody else's module raises
        why = f"{type(error).__name__}: {error}"
        raise InvalidArgument(
            f"MODULE:OBJECTIVE must name a module that can be imported, got {text!r} ({why})"
        ) from None
    for part in path.split("."):
        if not hasattr(thing, part):
            raise InvalidArgument(f"MODULE:OBJECTIVE must name something that {module} has, got {path!r}")
        thing = getattr(thing, part)
    return cast("Objective", thing)


@contextmanager
def _sigterm_as_interrupt() -> Iterator[list[bool]]:
    """Treat SIGTERM like Ctrl-C, and note it in the list; let Ctrl-C count, which shells switch off for jobs."""
    ended: list[bool] = []

    def handler(number: int, frame: FrameType | None) -> None:
        ended.append(True)
        interrupt = signal.getsignal(signal.SIGINT)  # which is kept, even if the objective swallows it
        (interrupt if callable(interrupt) else signal.default_int_handler)(number, frame)

    before = signal.signal(signal.SIGTERM, handler), signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield ended
    finally:
        for number, usual in zip((signal.SIGTERM, signal.SIGINT), before, strict=True):
            signal.signal(number, usual)
