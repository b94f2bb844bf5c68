"""What commands on a store or an experiment share: the same arguments, and answers as text or JSON.

A command is a function that takes a :class:`Call` and its own options, and returns an :class:`Answer`. The decorators
:func:`on_store` and :func:`on_experiment` add the arguments STORE and NAME and the options --token and --json.
"""

import functools
import inspect
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from mfbandit.cli import options
from mfbandit.cli.exit_codes import guarded
from mfbandit.errors import StoreNotFound, TokenNeeded

if TYPE_CHECKING:
    from mfbandit._internal.typing import JSON
    from mfbandit.service import RemoteExperiment, RemoteStore
    from mfbandit.store import DurableExperiment, Store

    AnyStore = Store | RemoteStore
    StoredExperiment = DurableExperiment | RemoteExperiment

PATIENCE_SECONDS = 10.0  # for a service that does not answer


@dataclass(frozen=True)
class Answer:
    """What a command did.

    Args:
        text: for people.
        record: the same for programs.
    """

    text: str
    record: "JSON"


@dataclass(frozen=True)
class Call:
    """A command as it was called.

    Args:
        place: STORE, a path or an address.
        name: NAME, of an experiment; empty where the command has none.
        token: for a service.
        as_json: whether JSON is printed.
    """

    place: str
    name: str
    token: str | None
    as_json: bool

    @contextmanager
    def store(self, *, writing: bool, new: bool = False, patience: float = PATIENCE_SECONDS) -> "Iterator[AnyStore]":
        """Open the store; it is closed at the end.

        Args:
            writing: whether anything is to be changed.
            new: whether the file may be made.
            patience: seconds to wait for a service that does not answer.
        """
        from mfbandit.service import connect
        from mfbandit.store import Store, without_password

        if self.place.startswith(("http://", "https://")):
            with connect(self.place, self.token, patience=patience) as remote, _naming_the_variable():
                yield remote
            return
        if not new and "://" not in self.place and not Path(self.place).exists():
            raise StoreNotFound(
                f"Store not found: {without_password(self.place)} (`mfbandit experiment create` makes one)"
            )
        with Store(self.place, read_only=not writing) as store:
            yield store

    @contextmanager
    def experiment(self, *, writing: bool = True) -> "Iterator[StoredExperiment]":
        """Open the experiment; its store is closed at the end.

        Args:
            writing: whether anything is to be changed.
        """
        with self.store(writing=writing) as store:
            yield store.open(self.name)


@contextmanager
def _naming_the_variable() -> "Iterator[None]":
    """Say where commands take their token from, where a service refused it."""
    try:
        yield
    except TokenNeeded as error:
        raise TokenNeeded(f"{error}; set $MFBANDIT_TOKEN to a token of the service, or pass --token") from None


Command = Callable[..., "Answer | None"]


def on_store(function: Command) -> Callable[..., None]:
    """Make a command of a function that is called with a Call and its own options: STORE ... --token --json.

    >>> list(inspect.signature(on_store(lambda call, n: Answer("", {}))).parameters)
    ['store', 'n', 'token', 'as_json']
    """
    return _command(function, {"store": options.Store}, {"token": options.Token, "as_json": options.Json})


def on_experiment(function: Command) -> Callable[..., None]:
    """Make a command of a function that is called with a Call and its own options: STORE NAME ... --token --json.

    >>> list(inspect.signature(on_experiment(lambda call, n: Answer("", {}))).parameters)
    ['store', 'name', 'n', 'token', 'as_json']
    """
    first = {"store": options.Store, "name": options.Name}
    return _command(function, first, {"token": options.Token, "as_json": options.Json})


def on_experiment_without_json(function: Command) -> Callable[..., None]:
    """Make a command of a function that prints by itself: STORE NAME ... --token.

    >>> list(inspect.signature(on_experiment_without_json(lambda call, n: None)).parameters)
    ['store', 'name', 'n', 'token']
    """
    return _command(function, {"store": options.Store, "name": options.Name}, {"token": options.Token})


def _json(record: "JSON") -> str:
    from mfbandit._internal.formatting import strict_json

    return strict_json(record)


def show(text: str) -> None:
    """Print a text; in a terminal that it is too long for, a page at a time.

    >>> show("hello")
    hello
    """
    if sys.stdout.isatty() and text.count("\n") >= shutil.get_terminal_size().lines:
        import click

        click.echo_via_pager(text + "\n")
    else:
        typer.echo(text)


_DEFAULTS = {"token": None, "as_json": False}


def _command(function: Command, first: dict[str, Any], last: dict[str, Any]) -> Callable[..., None]:
    _, *own = inspect.signature(function).parameters.values()

    @functools.wraps(function)
    def run(**given: object) -> None:
        shared: dict[str, Any] = {name: given.pop(name) for name in (*first, *last)}
        call = Call(shared["store"], shared.get("name", ""), shared["token"], shared.get("as_json", False))
        answer = function(call, **given)
        if answer is not None:
            show(_json(answer.record) if call.as_json else answer.text)

    parameters = [
        *(_parameter(name, kind) for name, kind in first.items()),
        *own,
        *(_parameter(name, kind, _DEFAULTS[name]) for name, kind in last.items()),
    ]
    # Typer reads what a command takes from these two.
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return guarded(run)


def _parameter(name: str, kind: object, default: object = inspect.Parameter.empty) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default, annotation=kind)
