"""The part of the command line that works: one worker, of as many as a cluster's scheduler cares to start."""

import importlib
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated, Any, Optional

import typer

from mfbandit.cli.exit_codes import guarded
from mfbandit.cli.live import Bearer, Json, Name, Where, opened
from mfbandit.errors import InvalidArgument

TERMINATED = 143  # what a process that SIGTERM ended exits with


@guarded
def work(  # noqa: PLR0913, PLR0917 - options of a command
    store: Where,
    name: Name,
    objective: Annotated[
        str, typer.Argument(metavar="MODULE:OBJECTIVE", help="A function of a play, such as lab:dig.")
    ],
    plays: Annotated[Optional[int], typer.Option(min=0, help="Stop after so many plays.")] = None,
    timeout: Annotated[Optional[float], typer.Option(help="Seconds that a play may take; then it is failed.")] = None,
    retries: Annotated[int, typer.Option(min=0, help="How often a failed play is repeated.")] = 0,
    lease: Annotated[
        Optional[float],
        typer.Option(help="Seconds after which a play of a worker that is gone is taken back; the experiment's own."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="For the seeds of plays.")] = 0,
    patience: Annotated[float, typer.Option(help="Seconds to wait for a service that does not answer.")] = 600.0,
    leave: Annotated[
        bool, typer.Option("--leave", help="End when no play fits, even if others' plays may yet make room.")
    ] = False,
    token: Bearer = None,
    as_json: Json = False,
) -> None:
    """Work on an experiment: ask for a play, make it, tell the result, and again until the capital is spent.

    The objective is called with a play (label, arm, fidelity, cost, seed, rng()) and returns the reward, or the pair
    (reward, cost). Its module is looked for in the current folder first. While it works its lease is renewed; if this
    process dies, the play is asked for again when the lease ends. Ctrl-C or SIGTERM hands the play back at once.
    """
    from mfbandit.execution import (
        InlineExecutor,
        run,
    )

    function = found(objective)
    with _terminated() as ended, opened(store, token, writing=True, patience=patience) as place:
        try:
            ran = run(
                place.open(name),
                function,
                InlineExecutor(),
                retries=retries,
                timeout=timeout,
                seed=seed,
                plays=plays,
                lease=lease,
                stay=not leave,
            )
        except KeyboardInterrupt:
            if ended:
                raise typer.Exit(TERMINATED) from None
            raise
    if as_json:
        import json

        failed = [{"play": one.play.id, "arm": one.play.label, "error": one.error} for one in ran.failures]
        typer.echo(json.dumps({"told": ran.told, "failed": failed, "retried": ran.retried, "ended": ran.ended}))
    else:
        typer.echo(f"{name}: {ran}")


def found(text: str) -> Any:  # noqa: ANN401 - whatever it is; run() checks that it is a function
    """The objective that a text such as lab:dig names.

    >>> found("math:sqrt")(4.0)
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
    return thing


@contextmanager
def _terminated() -> Iterator[list[bool]]:
    """Inside, SIGTERM is like Ctrl-C, and noted in the list; and Ctrl-C counts, which shells switch off for jobs."""
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
