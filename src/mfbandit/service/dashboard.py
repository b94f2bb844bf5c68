"""The dashboard: server-rendered pages that update themselves, and controls that ask for confirmation."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Annotated, Any
from urllib.parse import parse_qs, quote, unquote

from fastapi import FastAPI, HTTPException, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.concurrency import run_in_threadpool

from mfbandit._internal.formatting import plain, readable
from mfbandit._internal.limits import MAX_EVENT_NUMBER, MAX_FORM_FIELDS, SESSION_SECONDS
from mfbandit.errors import InvalidArgument, MFBanditError
from mfbandit.service.certainty import CertaintyWatch
from mfbandit.service.error_handlers import log_internal_error, request_name
from mfbandit.service.lanes import Lanes
from mfbandit.service.list_rows import ListRows
from mfbandit.service.middleware import CLOSED, bearer_of, session_of
from mfbandit.service.problem_details import ProblemDetail, problem_of
from mfbandit.service.public_address import ADDRESS, PublicAddress
from mfbandit.service.schemas import ExperimentName
from mfbandit.service.view_models import experiment_view
from mfbandit.store import DurableExperiment, Sessions, Store
from mfbandit.store.tokens import Token

STATIC_FILES = {
    "style.css": "text/css; charset=utf-8",
    "dashboard.js": "text/javascript; charset=utf-8",
    "htmx-4.0.0.min.js": "text/javascript; charset=utf-8",
    "uplot-1.6.32.min.js": "text/javascript; charset=utf-8",
    "uplot-1.6.32.min.css": "text/css; charset=utf-8",
    "LICENSES.txt": "text/plain; charset=utf-8",
}
EXPERIMENTS_PER_PAGE = 50
After = Annotated[int, Query(ge=0, le=MAX_EVENT_NUMBER)]


@dataclass(frozen=True)
class Control:
    """A change of an experiment that a page offers, after asking for confirmation.

    Args:
        title: the question, with {name} of the experiment and the fields given.
        detail: says what will happen.
        button: the label of the button that confirms.
        act: does it, with the fields given.
        fields: the names of the form fields that it needs.
    """

    title: str
    detail: Callable[[DurableExperiment, dict[str, str]], str]
    button: str
    act: Callable[[DurableExperiment, dict[str, str]], None]
    fields: tuple[str, ...] = ()


def _capital(text: str) -> float | None:
    try:
        return None if text.strip() == "unlimited" else float(text)
    except ValueError:
        raise InvalidArgument(f"capital must be a number or unlimited, got {text!r}") from None


def _biases(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise InvalidArgument(f"biases must be numbers with commas between them, got {text!r}") from None


CONTROLS = {
    "pause": Control(
        "Pause {name}?",
        lambda experiment, _: (
            f"No plays are handed out until it is resumed. Results of pending plays, {experiment.pending_count:,} "
            f"now, are still recorded."
        ),
        "Pause",
        lambda experiment, _: experiment.pause(),
    ),
    "resume": Control(
        "Resume {name}?",
        lambda *_: "Plays are handed out again to whoever asks.",
        "Resume",
        lambda experiment, _: experiment.resume(),
    ),
    "retire": Control(
        "Retire {arm}?",
        lambda experiment, fields: (
            f"{fields['arm']} is not asked for or recommended any more in {experiment.name}, until it is restored. "
            f"Results of its pending plays are still recorded."
        ),
        "Retire",
        lambda experiment, fields: experiment.retire_arm(fields["arm"]),
        ("arm",),
    ),
    "restore": Control(
        "Restore {arm}?",
        lambda experiment, fields: (
            f"{fields['arm']}, which was retired or set aside after three failures in a row, is asked for again in "
            f"{experiment.name}."
        ),
        "Restore",
        lambda experiment, fields: experiment.restore_arm(fields["arm"]),
        ("arm",),
    ),
    "capital": Control(
        "Change the capital of {name}?",
        lambda experiment, fields: (
            f"All plays together may cost {_amount(_capital(fields['capital']))} from now on, instead of "
            f"{_amount(experiment.capital)}; {readable(experiment.spent)} of it is spent already."
        ),
        "Change the capital",
        lambda experiment, fields: experiment.set_capital(_capital(fields["capital"])),
        ("capital",),
    ),
    "biases": Control(
        "Change the biases of {name}?",
        lambda experiment, fields: (
            f"The policy assumes biases of {_listed(_biases(fields['biases']))} from now on, "
            f"instead of {_listed(experiment.fidelities.biases or ())}. Larger biases make "
            f"it look longer before it trusts a cheap fidelity. Whether they hold is tested again from the start."
        ),
        "Change the biases",
        lambda experiment, fields: experiment.set_biases(_biases(fields["biases"])),
        ("biases",),
    ),
}


def _listed(biases: Sequence[float]) -> str:
    return ", ".join(plain(bias, thousands="") for bias in biases)


def _amount(capital: float | None) -> str:
    return "any amount" if capital is None else readable(capital)


def bar(share: float, reserved: float, text: str) -> Markup:
    """Draw a horizontal bar, filled by a share and by what is reserved, with its meaning as text.

    >>> "rect" in bar(0.5, 0.1, "half of it")
    True
    """
    filled, more = round(100 * share, 2), round(100 * min(reserved, 1 - share), 2)
    return Markup(
        '<svg class="bar" viewBox="0 0 100 8" preserveAspectRatio="none" role="img" aria-label="{}">'
        '<rect class="back" width="100" height="8"/><rect class="fill" width="{}" height="8"/>'
        '<rect class="reserved" x="{}" width="{}" height="8"/></svg>'
    ).format(escape(text), filled, filled, more)


class Pages:
    """The templates, filled in for whoever asks.

    Args:
        store: where the experiments are.
        sessions: of people who signed in.
    """

    def __init__(self, store: Store, sessions: Sessions) -> None:
        self._store, self._sessions = store, sessions
        loader = PackageLoader("mfbandit.service")
        self._templates = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, auto_reload=False)
        self._templates.globals["bar"] = bar

    def show(self, request: Request, template: str, *, code: int = 200, **values: object) -> HTMLResponse:
        """Render a page."""
        text = self._templates.get_template(f"{template}.html").render(
            store=self._store.name.rpartition("/")[2],
            root=_root(request),
            signed_in=self._token(request) is not None,
            may_write=self.allows(request, "write"),
            **values,
        )
        return HTMLResponse(text.encode("utf-8", "backslashreplace"), code)  # earlier versions took any text for a name

    def allows(self, request: Request, scope: str) -> bool:
        """Tell whether the request's token allows this scope."""
        if not self._store.needs_token():
            return True
        token = self._token(request)
        return token is not None and token.allows(scope)

    def _token(self, request: Request) -> Token | None:
        session = _session(request)
        return self._sessions.token(session) if session else self._store.token(bearer_of(_headers(request)))


def _headers(request: Request) -> dict[bytes, bytes]:
    return dict(request.scope["headers"])


def _address(request: Request) -> PublicAddress:
    address: PublicAddress = request.scope[ADDRESS]
    return address


def _root(request: Request) -> str:
    """Return what comes before every path of the service."""
    return _address(request).root_path


def _session(request: Request) -> str:
    return session_of(_headers(request), _address(request))


def add_pages(app: FastAPI, store: Store, sessions: Sessions) -> None:
    """Add the routes of the dashboard.

    >>> import tempfile
    >>> app = FastAPI()
    >>> with tempfile.TemporaryDirectory() as folder, Store(f"{folder}/ads.db") as store:
    ...     add_pages(app, store, Sessions(store))
    >>> "/sign-in" in {route.path for route in app.routes}
    True
    """
    pages = Pages(store, sessions)
    _add_static(app)
    _add_sign_in(app, store, sessions, pages)
    _add_views(app, store, pages)
    _add_controls(app, store, pages)


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
        fields = await _form(request)
        goal = _local(fields.get("next", "/"))
        token = store.token(fields.get("token", "").strip())
        if token is None:
            wrong = "The token is not one of this store's."
            return pages.show(request, "sign-in", code=401, closed="", wrong=wrong, next=goal)

        def signed_in() -> Response:
            sessions.end(_session(request))  # whoever had this browser before
            answer = RedirectResponse(_root(request) + goal, 303)
            answer.set_cookie(value=sessions.start(token), max_age=int(SESSION_SECONDS), **_cookie(request))
            return answer

        return await run_in_threadpool(_or_message, pages, request, "/sign-in", signed_in)

    @app.post("/sign-out", include_in_schema=False)
    async def sign_out(request: Request) -> Response:
        def signed_out() -> Response:
            sessions.end(_session(request))
            answer = RedirectResponse(f"{_root(request)}/sign-in", 303)
            answer.delete_cookie(**_cookie(request))
            return answer

        return await run_in_threadpool(_or_message, pages, request, "/sign-in", signed_out)


def _cookie(request: Request) -> dict[str, Any]:
    """Return what setting the cookie and deleting it have in common."""
    address = _address(request)
    where = {"key": address.cookie, "path": address.root_path or "/", "secure": address.secure}
    return {**where, "httponly": True, "samesite": "strict"}


def _add_views(app: FastAPI, store: Store, pages: Pages) -> None:
    rows, watch = ListRows(store), CertaintyWatch()

    def listing(request: Request, template: str, after: int) -> Response:
        names, following = store.list_page(after=after, limit=EXPERIMENTS_PER_PAGE)
        return pages.show(request, template, experiments=rows.of(names), after=after, next_page=following)

    def view(request: Request, template: str, name: str) -> Response:
        experiment = store.open(name)
        return pages.show(request, template, view=experiment_view(experiment, watch.of(experiment)))

    @app.get("/", include_in_schema=False)
    def start(request: Request, after: After = 0) -> Response:
        return _or_message(pages, request, "/", lambda: listing(request, "list", after))

    @app.get("/live", include_in_schema=False)
    def live_list(request: Request, after: After = 0) -> Response:
        return listing(request, "list-live", after)

    @app.get("/experiments/{name}", include_in_schema=False)
    def experiment(request: Request, name: ExperimentName) -> Response:
        return _or_message(pages, request, "/", lambda: view(request, "experiment", name))

    @app.get("/experiments/{name}/live", include_in_schema=False)
    def live(request: Request, name: ExperimentName) -> Response:
        return view(request, "experiment-live", name)


def _add_controls(app: FastAPI, store: Store, pages: Pages) -> None:
    @app.get("/experiments/{name}/confirm", include_in_schema=False)
    def confirm(request: Request, name: ExperimentName, verb: str = "") -> Response:
        back = f"/experiments/{name}"

        def asked() -> Response:
            control, fields = _control(verb), dict(request.query_params)
            given = {field: fields.get(field, "") for field in control.fields}
            experiment = store.open(name)
            return pages.show(
                request,
                "confirm",
                title=control.title.format(name=name, **given),
                detail=control.detail(experiment, given),
                button=control.button,
                action=f"{back}/do/{verb}",
                fields=given,
                back=back,
            )

        if not pages.allows(request, "write"):
            return _refused(pages, request, back)
        return _or_message(pages, request, back, asked)

    @app.post("/experiments/{name}/do/{verb}", include_in_schema=False)
    async def do(request: Request, name: ExperimentName, verb: str) -> Response:
        back, fields = f"/experiments/{name}", await _form(request)

        def acted() -> Response:
            control = _control(verb)
            control.act(store.open(name), {field: fields.get(field, "") for field in control.fields})
            return RedirectResponse(_root(request) + back, 303)

        if not pages.allows(request, "write"):
            return _refused(pages, request, back)
        lanes: Lanes = app.state.lanes
        return await lanes.run(name, lambda: _or_message(pages, request, back, acted))


def _control(verb: str) -> Control:
    if verb not in CONTROLS:
        raise InvalidArgument(f"verb must be one of {', '.join(CONTROLS)}, got {verb!r}")
    return CONTROLS[verb]


def _refused(pages: Pages, request: Request, back: str) -> Response:
    detail = "The token that you signed in with has scope read; this needs scope write."
    return pages.show(request, "message", code=403, title="Not allowed", detail=detail, back=back)


def _or_message(pages: Pages, request: Request, back: str, page: Callable[[], Response]) -> Response:
    """Return the page, or one that says what is wrong; for a bug, the id under which the log has the traceback."""
    try:
        return page()
    except MFBanditError as error:
        problem = problem_of(error) or _logged(error, request)
    except Exception as error:
        problem = _logged(error, request)
    values = {"title": problem.title, "detail": problem.detail, "back": back}
    return pages.show(request, "message", code=problem.status, **values)


def _logged(error: Exception, request: Request) -> ProblemDetail:
    return log_internal_error(error, request_name(request.scope))


async def _form(request: Request) -> dict[str, str]:
    """Read the fields of a form; its kind, size and origin were checked before."""
    text = (await request.body()).decode("utf-8", errors="replace")
    try:
        fields = parse_qs(text, keep_blank_values=True, max_num_fields=MAX_FORM_FIELDS)
    except ValueError:
        raise HTTPException(400, f"a form must have at most {MAX_FORM_FIELDS} fields") from None
    return {name: values[-1] for name, values in fields.items()}


def _local(address: str) -> str:
    r"""Return an address on this service, without its prefix, whatever was asked for.

    >>> _local("//evil.example"), _local("/experiments/ads"), _local("/\\evil"), _local("/%2e./other")
    ('/', '/experiments/ads', '/', '/')
    """
    safe = address.startswith("/") and not address.startswith(("//", "/\\")) and address.isprintable()
    # Nor to a neighbour of the service, under another prefix of its host.
    safe = safe and not {".", ".."} & set(re.split(r"[/\\?#]", unquote(address)))
    return quote(address, safe="/?=&-._~%") if safe else "/"
