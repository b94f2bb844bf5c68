"""Bodies as JSON has them: no NaN, no key twice, nothing endless."""

import json
from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import HTTPException, Request, Response
from fastapi.routing import APIRoute

from mfbandit.errors import InvalidArgument

MOST_MEMBERS = 100  # of an object; the largest that is understood has ten


def parsed(body: bytes) -> Any:  # noqa: ANN401 - anything JSON can say
    """What a body says.

    >>> parsed(b'{"n": 2}')
    {'n': 2}
    >>> parsed(b'{"n": 1, "n": 2}')
    Traceback (most recent call last):
    mfbandit.errors.InvalidArgument: the body must name a member once, got 'n' twice
    >>> parsed(b'{"n": NaN}')
    Traceback (most recent call last):
    mfbandit.errors.InvalidArgument: the body must be JSON, which has no NaN
    """
    try:
        return json.loads(body.decode(), object_pairs_hook=_members, parse_constant=_no_number)
    except json.JSONDecodeError as error:
        raise InvalidArgument(f"the body must be JSON: {error.msg} at character {error.pos}") from None
    except UnicodeDecodeError as error:
        raise InvalidArgument(f"the body must be UTF-8: {error.reason} at byte {error.start}") from None
    except RecursionError:
        raise InvalidArgument("the body must not be nested that deeply") from None


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(pairs) > MOST_MEMBERS:
        raise InvalidArgument(f"an object must have at most {MOST_MEMBERS} members, got {len(pairs):,}")
    members = dict(pairs)
    if len(members) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise InvalidArgument(f"the body must name a member once, got {twice!r} twice")
    return members


def _no_number(text: str) -> None:
    raise InvalidArgument(f"the body must be JSON, which has no {text}")


class StrictRequest(Request):
    """A request whose body is read that way."""

    async def json(self) -> Any:  # noqa: ANN401 - anything JSON can say
        """What the body says, or an answer with status 400."""
        try:
            return parsed(await self.body())
        except ValueError as error:
            raise HTTPException(400, str(error)) from None


class StrictRoute(APIRoute):
    """A route that takes such requests."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The handler, given a request of the stricter kind."""
        handle = super().get_route_handler()

        async def strict(request: Request) -> Response:
            return await handle(StrictRequest(request.scope, request.receive))

        return strict
