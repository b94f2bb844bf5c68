"""Routes of one name and one body, for the verbs that are called thousands of times a second.

FastAPI describes them and picks them. What it does between the two (dependencies, stacks of contexts) is more work
than the verb itself, and a route with nothing but a name and a body needs none of it.
"""

import inspect
from collections.abc import Awaitable, Callable
from typing import Any

from fastapi import Response
from fastapi.exceptions import RequestValidationError
from pydantic import TypeAdapter, ValidationError

from mfbandit._internal.typing import JSON
from mfbandit.service.asgi import App, Receive, Scope, Send
from mfbandit.service.strict_json import StrictRequest, StrictRoute

_MISSING = {"type": "missing", "loc": ("body",), "msg": "Field required", "input": None}


class DirectRoute(StrictRoute):
    """A route whose endpoint is ``async def verb(name, body) -> Response``, and is called with just these.

    Args:
        path: with ``{name}`` in it.
        endpoint: the verb, annotated.
        options: as for every route of FastAPI.
    """

    def __init__(self, path: str, endpoint: Callable[..., Awaitable[Response]], **options: Any) -> None:  # noqa: ANN401
        super().__init__(path, endpoint, **options)
        self.app = _direct(endpoint)


def _direct(endpoint: Callable[..., Awaitable[Response]]) -> App:
    kinds = [one.annotation for one in inspect.signature(endpoint, eval_str=True).parameters.values()]
    names, bodies = (TypeAdapter[Any](kind) for kind in kinds)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        request, wrong = StrictRequest(scope, receive), list[dict[str, Any]]()
        name = _valid(names, scope["path_params"]["name"], ("path", "name"), wrong)
        if await request.body():
            body = _valid(bodies, await request.json(), ("body",), wrong)
        else:
            wrong.append(_MISSING)
        if wrong:
            raise RequestValidationError(wrong)
        response = await endpoint(name=name, body=body)
        await response(scope, receive, send)

    return app


def _valid(adapter: TypeAdapter[Any], given: JSON, place: tuple[str, ...], wrong: list[dict[str, Any]]) -> Any:  # noqa: ANN401 - what the adapter makes
    """Validate what was given; what is wrong with it is added, with its place in the request."""
    try:
        return adapter.validate_python(given, from_attributes=True)  # as FastAPI does: messages are the same
    except ValidationError as error:
        wrong += [{**one, "loc": (*place, *one["loc"])} for one in error.errors(include_url=False)]
        return None
