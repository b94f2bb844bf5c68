"""Commands that serve a store, show a demonstration and examine a store."""

import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from mfbandit.cli.exit_codes import guarded
from mfbandit.cli.options import AcceptLoss, Json, Port

if TYPE_CHECKING:
    from mfbandit.store import Store


DEMO_SPEED = 50.0  # results a second: it is decided within two minutes


class LogFormat(StrEnum):
    """Forms of the service's log."""

    text = "text"
    json = "json"


@guarded
def serve(  # noqa: PLR0913, PLR0917 - options of the command line
    store: Annotated[
        str, typer.Argument(metavar="STORE", help="A file (made if it is not there), or postgresql://...")
    ],
    host: Annotated[
        str, typer.Option(help="Where to listen; anything but loopback needs a token to exist.")
    ] = "127.0.0.1",
    port: Port = 8000,
    accept_loss: AcceptLoss = False,
    root_path: Annotated[
        str, typer.Option(help="What a proxy in front of it has before every path, such as /bandits.")
    ] = "",
    allowed_host: Annotated[
        Optional[list[str]], typer.Option(metavar="NAME", help="A name under which people reach it; may be repeated.")
    ] = None,
    trusted_proxy: Annotated[
        Optional[list[str]],
        typer.Option(
            metavar="ADDRESS",
            help="A proxy whose X-Forwarded-Proto and -Host are believed, such as 127.0.0.1; may be repeated.",
        ),
    ] = None,
    log_format: Annotated[
        Optional[LogFormat],
        typer.Option(help="Form of the log on standard error; with it, each request is logged, too."),
    ] = None,
    access_log: Annotated[
        Optional[bool],
        typer.Option(help="Whether to log each request; by default where --log-format is given."),
    ] = None,
    peer_address: Annotated[
        Optional[str],
        typer.Option(
            metavar="URL",
            help="Where other services on the same PostgreSQL reach this one; by default where it listens.",
        ),
    ] = None,
) -> None:
    """Serve the experiments of a store over HTTP.

    Until the first token is created (`mfbandit token create`), anybody on this machine may use it. Behind a proxy
    there must be a token. Ctrl-C or SIGTERM stops it once pending requests are answered.
    """
    from mfbandit.service import serve as job
    from mfbandit.store import Store

    purpose = f"mfbandit serve at http://{host}:{port}"
    with Store(store, purpose=purpose, accept_loss=accept_loss) as place:
        _tell_loss(place)
        job(
            place,
            host=host,
            port=port,
            root_path=root_path,
            allowed_hosts=allowed_host or (),
            trusted_proxies=trusted_proxy or (),
            log_format=(log_format or LogFormat.text).value,
            access_log=log_format is not None if access_log is None else access_log,
            peer_address=peer_address,
        )


def _tell_loss(store: "Store") -> None:
    if store.accepted_loss:
        typer.echo(f"Accepted: {store.accepted_loss}", err=True)


@guarded
def demo(
    speed: Annotated[float, typer.Option(min=0.1, max=1000, help="Results a second.")] = DEMO_SPEED,
    seed: Annotated[int, typer.Option(min=0, help="For the ads and their visitors.")] = 0,
    port: Port = 0,
    weekdays: Annotated[
        bool, typer.Option("--weekdays", help="Visitors click up to 30 % more or less, by the day of the week.")
    ] = False,
) -> None:
    """Watch an experiment on simulated ads in a browser.

    Forty ads, shown by a service on this machine alone, with a store that is deleted at the end. One ad is clickbait:
    it does well when shown for a minute and badly when shown for an hour, more so than the biases allow. The audit
    finds it. After a minute or two it is decided which ad is the best, up to two clicks in a hundred. With --weekdays
    results are told with their day, and what days do to all ads alike is taken out.
    """
    import tempfile

    from mfbandit.cli.demo import Crowd, create
    from mfbandit.service import serve as job
    from mfbandit.store import Store

    with tempfile.TemporaryDirectory() as folder, Store(Path(folder) / "demo.db") as place:
        crowd = Crowd(create(place, weekdays=weekdays), speed=speed, seed=seed, weekdays=weekdays)
        crowd.start()
        try:
            job(place, port=port)
        finally:
            crowd.stop()


@guarded
def doctor(
    store: Annotated[Optional[str], typer.Argument(metavar="STORE", help="A file or postgresql://...")] = None,
    as_json: Json = False,
    accept_loss: AcceptLoss = False,
) -> None:
    """Examine this machine and a store for problems.

    It looks at the database; for a file also at its file system, permissions and free space. It says whether anything
    that was acknowledged is gone, and checks every event of the log against its digest. Exits with 1 if something is
    wrong.
    """
    from mfbandit.store import Store, examine

    if store is not None and accept_loss:
        with Store(store, accept_loss=True) as place:
            _tell_loss(place)
    findings = examine(store)
    if as_json:
        typer.echo(json.dumps([{"mark": one.mark, "what": one.what, "detail": one.detail} for one in findings]))
    else:
        typer.echo("\n".join(str(one) for one in findings))
    if any(one.mark == "wrong" for one in findings):
        raise typer.Exit(1)
