"""The types of ASGI, and an answer that needs no framework."""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from mfbandit.service.problem_details import MEDIA_TYPE, ProblemDetail

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
ACTOR = "mfbandit.actor"  # in a request's scope: the name of the token that it came with
App = Callable[[Scope, Receive, Send], Awaitable[None]]


async def send_problem(send: Send, problem: ProblemDetail) -> None:
    """Send a problem as the whole answer.

    >>> import asyncio
    >>> sent = []
    >>> async def send(message):
    ...     sent.append(message)
    >>> asyncio.run(send_problem(send, ProblemDetail("not-found", 404, "Not found", "No route GET /x")))
    >>> sent[0]["status"]
    404
    """
    headers = {"content-type": MEDIA_TYPE, "content-length": str(len(problem.body)), **problem.headers}
    fields = [(name.encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": problem.status, "headers": fields})
    await send({"type": "http.response.body", "body": problem.body})
