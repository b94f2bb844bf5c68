"""Bodies as JSON has them: no NaN, no key twice, nothing endless."""

import asyncio
import json
from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import HTTPException, Request, Response
from fastapi.routing import APIRoute

from mfbandit._internal.limits import MAX_JSON_MEMBERS
from mfbandit._internal.typing import JSON
from mfbandit.errors import InvalidArgument


def parsed(body: bytes) -> JSON:
    """Parse a body; refuse what JSON does not have.

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
        return json.loads(body.decode(), object_pairs_hook=_members, parse_constant=_refuse_constant)
    except InvalidArgument:
        raise
    except json.JSONDecodeError as error:
        raise InvalidArgument(f"the body must be JSON: {error.msg} at character {error.pos}") from None
    except UnicodeDecodeError as error:
        raise InvalidArgument(f"the body must be UTF-8: {error.reason} at byte {error.start}") from None
    except ValueError:  # Python's limit for whole numbers
        raise InvalidArgument("the body must not have numbers of thousands of digits") from None
    except RecursionError:
        raise InvalidArgument("the body must not be nested that deeply") from None


def _members(pairs: list[tuple[str, JSON]]) -> dict[str, JSON]:
    if len(pairs) > MAX_JSON_MEMBERS:
        raise InvalidArgument(f"an object must have at most {MAX_JSON_MEMBERS} members, got {len(pairs):,}")
    members = dict(pairs)
    if len(members) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise InvalidArgument(f"the body must name a member once, got {twice!r} twice")
    return members


def _refuse_constant(text: str) -> None:
    raise InvalidArgument(f"the body must be JSON, which has no {text}")


class StrictRequest(Request):
    """A request whose body must be strict JSON."""

    async def json(self) -> JSON:
        """Parse the body; answer with status 400 where it cannot be parsed."""
        try:
            return parsed(await self.body())
        except InvalidArgument as error:
            raise HTTPException(400, str(error)) from None


class StrictRoute(APIRoute):
    """A route whose requests are strict ones. Those that run in threads take the lane of their experiment."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler, which is given strict requests."""
        handle = super().get_route_handler()

        async def strict(request: Request) -> Response:
            return await handle(StrictRequest(request.scope, request.receive))

        async def in_lane(request: Request) -> Response:
            given, lanes = StrictRequest(request.scope, request.receive), request.app.state.lanes
            await given.body()  # a slow one must not keep others out
            async with lanes.of(request.path_params["name"]):
                return await handle(given)

        threaded = "name" in self.param_convertors and not asyncio.iscoroutinefunction(self.endpoint)
        return in_lane if threaded else strict
