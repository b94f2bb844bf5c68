"""The reference of the command line, from the commands themselves."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from _site.pages import code, heading, plain, save, terms
from mfbandit.cli.main import app as program


def write(app: Any) -> None:
    """Write the page."""
    command = typer.main.get_command(program)
    about = "``mfbandit COMMAND --help`` shows the same in a terminal. It comes with ``pip install 'mfbandit[cli]'``."
    parts = [heading("Command line"), about, "", *_commands(command, "mfbandit", None)]
    save(Path(app.srcdir) / "reference", "command-line", parts)


def _commands(group: Any, path: str, parent: Any) -> Iterator[str]:
    context = group.context_class(group, info_name=path.rpartition(" ")[2], parent=parent)
    for name, command in group.commands.items():
        if command.hidden:
            continue
        full = f"{path} {name}"
        yield heading(full, "-" if path == "mfbandit" else "~")
        if hasattr(command, "commands"):
            yield plain(command.help or "") + "\n"
            yield from _commands(command, full, context)
        else:
            yield from _command(command, full, context)


def _command(command: Any, full: str, parent: Any) -> Iterator[str]:
    context = command.context_class(command, info_name=full.rpartition(" ")[2], parent=parent)
    yield code(f"$ {full} " + " ".join(command.collect_usage_pieces(context)), "console")
    for paragraph in (command.help or "").split("\n\n"):
        yield plain(paragraph) + "\n"
    records = [parameter.get_help_record(context) for parameter in command.get_params(context)]
    yield terms((f"``{record[0].strip()}``", record[1]) for record in records if record and "--help" not in record[0])
    if command.epilog:
        yield code("$ " + command.epilog.removeprefix("Example: "), "console")
