"""Arguments and options that several commands share."""

from pathlib import Path
from typing import Annotated, Optional

import typer

Store = Annotated[
    str,
    typer.Argument(metavar="STORE", help="A store's file, a postgresql:// address, or a service's http:// address."),
]
Name = Annotated[str, typer.Argument(metavar="NAME", help="The experiment's name.")]
PlayId = Annotated[str, typer.Argument(metavar="PLAY", help="The play's id, as `ask` printed it.")]
Arm = Annotated[str, typer.Argument(metavar="ARM", help="The arm's name, or its index if no arm has that name.")]
Token = Annotated[
    Optional[str],
    typer.Option("--token", envvar="MFBANDIT_TOKEN", help="For a service with tokens; better set $MFBANDIT_TOKEN."),
]
RequestKey = Annotated[
    Optional[str], typer.Option("--request-key", help="Names this request; with the same key it is done once.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
AcceptLoss = Annotated[
    bool,
    typer.Option("--accept-loss", help="Go on where results that were acknowledged are gone, as after a backup."),
]
Port = Annotated[int, typer.Option(min=0, max=65535, help="Where to listen; 0 takes a free port.")]

ProblemFile = Annotated[
    Path, typer.Argument(metavar="FILE", help="A TOML file; `mfbandit problem 1` prints one to start from.")
]
Workers = Annotated[
    Optional[int], typer.Option(help="How many workers; all cores by default. Results do not depend on it.")
]
