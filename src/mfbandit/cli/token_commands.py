"""Commands for the bearer tokens of a service."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from mfbandit.cli.options import RequestKey
from mfbandit.cli.store_commands import Answer, Call, on_store
from mfbandit.cli.times import local_time

if TYPE_CHECKING:
    from mfbandit.cli.store_commands import AnyStore

FIELDS = ("id", "name", "scope", "created")


@on_store
def create_token(
    call: Call,
    name: Annotated[str, typer.Option(help="What you call it.")] = "token",
    scope: Annotated[
        str, typer.Option(help="read, write (ask, tell, control) or admin (also delete, and create tokens).")
    ] = "write",
    request_key: RequestKey = None,
) -> Answer:
    """Create a token and print it; it cannot be shown again."""
    with call.store(writing=True, new=True) as store:
        text = store.create_token(name, scope, request_key=request_key)
    return Answer(text, {"token": text, "id": text.split("_")[1], "name": name, "scope": scope})


@on_store
def list_tokens(call: Call) -> Answer:
    """List all tokens: id, name, scope and time of creation."""
    from mfbandit._internal.formatting import columns

    with call.store(writing=False) as store:
        records = _records(store)
    rows = [(one["id"], one["name"], one["scope"], local_time(one["created"])) for one in records]
    return Answer("\n".join(columns([FIELDS, *rows])) if rows else "no tokens yet", records)


def _records(store: "AnyStore") -> list[dict[str, Any]]:
    tokens = store.tokens().values()
    return [one if isinstance(one, dict) else {field: getattr(one, field) for field in FIELDS} for one in tokens]


@on_store
def revoke_token(
    call: Call,
    token_id: Annotated[str, typer.Argument(metavar="ID", help="The token's id, as `token list` shows it.")],
) -> Answer:
    """Revoke a token."""
    with call.store(writing=True) as store:
        store.revoke_token(token_id)
        last = "://" not in call.place and not store.tokens()  # a service would not answer any more
    hint = f"; no token is left, and the service stays closed: `mfbandit token create {call.place}` makes one"
    return Answer(f"{token_id}: revoked{hint * last}", {"revoked": token_id})
