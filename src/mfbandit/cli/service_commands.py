"""Commands about the services that share a database."""

from typing import Annotated

import typer

from mfbandit.cli.store_commands import Answer, Call, on_store
from mfbandit.cli.times import local_time

NAMES_SHOWN = 5


@on_store
def services(
    call: Call,
    experiments: Annotated[bool, typer.Option("--experiments", help="Name all experiments of each.")] = False,
) -> Answer:
    """List the services on one PostgreSQL, and which experiments each owns."""
    from mfbandit._internal.formatting import columns

    with call.store(writing=False) as store:
        found = store.services()
    records = [{**one._asdict(), "experiments": list(one.experiments)} for one in found]
    rows = [
        (
            one.address or one.purpose,
            local_time(one.since),
            f"{one.silent:.1f} s ago",
            f"{one.owned:,}",
            _named(one.experiments, one.owned, one.owned if experiments else NAMES_SHOWN),
        )
        for one in found
    ]
    heads = ("service", "since", "seen", "owns", "experiments")
    nobody = "no service writes to it now" if call.place.startswith("postgres") else "a file has one service at most"
    return Answer("\n".join(columns([heads, *rows])) if rows else nobody, records)


def _named(names: tuple[str, ...], owned: int, shown: int) -> str:
    more = owned - min(shown, len(names))
    return ", ".join(names[:shown]) + (f", and {more:,} more" if more else "")
