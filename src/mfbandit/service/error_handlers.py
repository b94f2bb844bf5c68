"""What goes wrong in a route, as an answer: a problem for an expected error, an id in the log for a bug."""

import logging
import re
import secrets
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from mfbandit._internal.limits import MAX_VALUE_SHOWN
from mfbandit.errors import MFBanditError
from mfbandit.service.asgi import App, Message, Receive, Scope, Send, send_problem
from mfbandit.service.problem_details import MEDIA_TYPE, ProblemDetail, internal_problem, problem_of

log = logging.getLogger("mfbandit.service")
ERRORS_SHOWN = 10  # of a body in which much is wrong


def log_internal_error(error: Exception, doing: str) -> ProblemDetail:
    """Log a bug with its traceback under a new id; return the problem that names the id and nothing else.

    Args:
        error: what was raised.
        doing: what the service was doing.

    >>> log.disabled = True
    >>> sorted(log_internal_error(KeyError("x"), "GET '/x'").more)
    ['id']
    >>> log.disabled = False
    """
    identifier = secrets.token_hex(4)
    log.error("internal error %s in %s", identifier, doing, exc_info=error)
    return internal_problem(identifier)


class InternalErrorMiddleware:
    """Answer with status 500 and an id where a route met a bug, and log the traceback under that id.

    Args:
        app: the application whose bugs are caught.
    """

    def __init__(self, app: App) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        started = False

        async def watched(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await self._app(scope, receive, watched)
        except ClientDisconnect:
            return  # nobody is there to be answered
        except Exception as error:
            if scope["type"] != "http":
                raise
            problem = log_internal_error(error, request_name(scope))
            if not started:  # else the answer ends in the middle, and the server cuts the connection
                await send_problem(send, problem)


def request_name(scope: Scope) -> str:
    r"""Name a request in a log, control characters escaped.

    >>> request_name({"method": "GET", "path": "/a\nb"})
    "GET '/a\\nb'"
    """
    return f"{scope['method']} {scope['path']!r}"


def add_error_handlers(app: FastAPI) -> None:
    """Let an application answer with problem details.

    >>> app = FastAPI()
    >>> add_error_handlers(app)
    >>> MFBanditError in app.exception_handlers
    True
    """
    app.add_middleware(InternalErrorMiddleware)

    @app.exception_handler(RequestValidationError)
    async def invalid(_: Request, error: RequestValidationError) -> Response:
        wrong = [_wrong(one) for one in error.errors()[:ERRORS_SHOWN]]
        detail = "; ".join(f"{one['at']}: {one['rule']}" for one in wrong)
        return _response(ProblemDetail("invalid", 422, "Invalid request", detail, {"errors": wrong}))

    @app.exception_handler(HTTPException)
    async def http(request: Request, error: HTTPException) -> Response:
        return _response(_http_problem(request, error), error.headers)

    @app.exception_handler(MFBanditError)
    async def expected(_: Request, error: MFBanditError) -> Response:
        problem = problem_of(error)
        if problem is None:
            raise error
        return _response(problem)


def _http_problem(request: Request, error: HTTPException) -> ProblemDetail:
    code, route, said = error.status_code, f"{request.method} {request.url.path}", str(error.detail)
    match code:
        case HTTPStatus.BAD_REQUEST:
            return ProblemDetail("invalid", code, "Invalid request", said)
        case HTTPStatus.UNAUTHORIZED:
            return ProblemDetail("unauthorized", code, "Token needed", said)
        case HTTPStatus.NOT_FOUND:
            return ProblemDetail("not-found", code, "Not found", f"No route {route}")
        case HTTPStatus.METHOD_NOT_ALLOWED:
            methods = (error.headers or {}).get("Allow", "other methods")
            return ProblemDetail("method", code, "Method not allowed", f"No route {route}; there is {methods}")
    return ProblemDetail("http", code, said, said)


def _wrong(one: dict[str, Any]) -> dict[str, str]:
    given = repr(one.get("input"))
    shown = given if len(given) <= MAX_VALUE_SHOWN else f"{given[:MAX_VALUE_SHOWN]}..."
    rule = re.sub(r"\d{30,}", lambda digits: f"{float(digits[0]):g}", one["msg"])
    return {"at": ".".join(str(part) for part in one["loc"]), "rule": f"{rule}, got {shown}"}


def _response(problem: ProblemDetail, headers: Mapping[str, str] | None = None) -> Response:
    return Response(problem.body, problem.status, {**(headers or {}), **problem.headers}, MEDIA_TYPE)
