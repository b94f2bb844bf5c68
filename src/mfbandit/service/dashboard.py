"""The dashboard: server-rendered pages that update themselves, and controls that ask for confirmation."""

import re
from importlib.resources import files
from typing import Annotated, Any
from urllib.parse import quote, unquote

from fastapi import FastAPI, HTTPException, Query, Request
from fastapi.responses import RedirectResponse, Response
from starlette.concurrency import run_in_threadpool

from mfbandit._internal.limits import MAX_EVENT_NUMBER, SESSION_SECONDS
from mfbandit.service.answers import opened
from mfbandit.service.control_pages import add_control_pages
from mfbandit.service.experiment_pages import add_experiment_pages
from mfbandit.service.list_rows import ListRows
from mfbandit.service.middleware import CLOSED
from mfbandit.service.pages import Pages, address_of, form_of, html, or_message, root_of, session_id
from mfbandit.service.peer_rows import add_peer_rows
from mfbandit.service.schemas import ExperimentName
from mfbandit.store import Sessions, Store

STATIC_FILES = {
    "style.css": "text/css; charset=utf-8",
    "dashboard.js": "text/javascript; charset=utf-8",
    "htmx-4.0.0.min.js": "text/javascript; charset=utf-8",
    "uplot-1.6.32.min.js": "text/javascript; charset=utf-8",
    "uplot-1.6.32.min.css": "text/css; charset=utf-8",
    "LICENSES.txt": "text/plain; charset=utf-8",
}
EXPERIMENTS_PER_PAGE = 50
LOOKS_OF_AN_UPDATE = 20  # at each arm; it takes as long as some plays of a policy
After = Annotated[int, Query(ge=0, le=MAX_EVENT_NUMBER)]


def add_pages(app: FastAPI, store: Store, sessions: Sessions) -> None:
    """Add the routes of the dashboard.

    >>> import tempfile
    >>> from mfbandit.service.lanes import Lanes
    >>> app = FastAPI()
    >>> app.state.lanes = Lanes()
    >>> with tempfile.TemporaryDirectory() as folder, Store(f"{folder}/ads.db") as store:
    ...     add_pages(app, store, Sessions(store))
    >>> "/sign-in" in {route.path for route in app.routes}
    True
    """
    pages = Pages(store, sessions)
    _add_static(app)
    _add_sign_in(app, store, sessions, pages)
    _add_views(app, store, pages)
    add_experiment_pages(app, store, pages)
    add_control_pages(app, store, pages)


def _add_static(app: FastAPI) -> None:
    folder = files("mfbandit.service") / "static"
    contents = {name: (folder / name).read_bytes() for name in STATIC_FILES}

    @app.get("/static/{name}", include_in_schema=False)
    async def static(name: str) -> Response:
        if name not in contents:
            raise HTTPException(404)
        # Files of other projects have a version in their names and never change; ours may.
        caching = "max-age=31536000, immutable" if "min." in name else "no-cache"
        return Response(contents[name], media_type=STATIC_FILES[name], headers={"cache-control": caching})


def _add_sign_in(app: FastAPI, store: Store, sessions: Sessions, pages: Pages) -> None:
    @app.get("/sign-in", include_in_schema=False)
    async def form(request: Request, goal: Annotated[str, Query(alias="next")] = "/") -> Response:
        closed = CLOSED if store.needs_token() and not store.tokens() else ""
        return pages.show(request, "sign-in", closed=closed, wrong="", next=_local(goal))

    @app.post("/sign-in", include_in_schema=False)
    async def sign_in(request: Request) -> Response:
        fields = await form_of(request)
        goal = _local(fields.get("next", "/"))
        token = store.token(fields.get("token", "").strip())
        if token is None:
            wrong = "The token is not one of this store's."
            return pages.show(request, "sign-in", code=401, closed="", wrong=wrong, next=goal)

        def signed_in() -> Response:
            sessions.end(session_id(request))  # whoever had this browser before
            answer = RedirectResponse(root_of(request) + goal, 303)
            answer.set_cookie(value=sessions.start(token), max_age=int(SESSION_SECONDS), **_cookie(request))
            return answer

        return await run_in_threadpool(or_message, pages, request, "/sign-in", signed_in)

    @app.post("/sign-out", include_in_schema=False)
    async def sign_out(request: Request) -> Response:
        def signed_out() -> Response:
            sessions.end(session_id(request))
            answer = RedirectResponse(f"{root_of(request)}/sign-in", 303)
            answer.delete_cookie(**_cookie(request))
            return answer

        return await run_in_threadpool(or_message, pages, request, "/sign-in", signed_out)


def _cookie(request: Request) -> dict[str, Any]:
    """Return what setting the cookie and deleting it have in common."""
    address = address_of(request)
    where = {"key": address.cookie, "path": address.root_path or "/", "secure": address.secure}
    return {**where, "httponly": True, "samesite": "strict"}


def _add_views(app: FastAPI, store: Store, pages: Pages) -> None:
    rows, updates, lanes = ListRows(store), pages.updates, app.state.lanes

    def listing(request: Request, template: str, after: int) -> Response:
        names, following = store.list_page(after=after, limit=EXPERIMENTS_PER_PAGE)
        # Which of several services has what is worth a column; with a file there is one alone.
        services = () if store.fleet is None else store.services()
        shown: dict[str, Any] = {"experiments": rows.of(names), "services": services}
        return pages.show(request, template, after=after, next_page=following, **shown)

    def view(request: Request, name: str) -> Response:
        experiment = store.open(name)
        live = updates.fresh(experiment, root_of(request))
        return pages.show(request, "experiment", name=name, tab="overview", paused=experiment.paused, live=live)

    add_peer_rows(app, rows.of_these_alone)

    @app.get("/", include_in_schema=False)
    def start(request: Request, after: After = 0) -> Response:
        return or_message(pages, request, "/", lambda: listing(request, "list", after))

    @app.get("/live", include_in_schema=False)
    def live_list(request: Request, after: After = 0) -> Response:
        return listing(request, "list-live", after)

    @app.get("/experiments/{name}", include_in_schema=False)
    def experiment(request: Request, name: ExperimentName) -> Response:
        return or_message(pages, request, "/", lambda: view(request, name))

    @app.get("/experiments/{name}/live", include_in_schema=False)
    async def live(request: Request, name: ExperimentName) -> Response:
        experiment, root = await opened(app, store, name), root_of(request)
        look = lanes.look(experiment, lambda watched: updates.of(watched, root), plays=LOOKS_OF_AN_UPDATE)
        return html(await look)


def _local(address: str) -> str:
    r"""Return an address on this service, without its prefix, whatever was asked for.

    >>> _local("//evil.example"), _local("/experiments/ads"), _local("/\\evil"), _local("/%2e./other")
    ('/', '/experiments/ads', '/', '/')
    """
    safe = address.startswith("/") and not address.startswith(("//", "/\\")) and address.isprintable()
    # Nor to a neighbour of the service, under another prefix of its host.
    safe = safe and not {".", ".."} & set(re.split(r"[/\\?#]", unquote(address)))
    return quote(address, safe="/?=&-._~%") if safe else "/"
