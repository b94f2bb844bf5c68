"""The templates of pages, filled in for whoever asks, and what the routes of pages have in common."""

from collections.abc import Callable
from urllib.parse import parse_qs

from fastapi import HTTPException, Request
from fastapi.responses import HTMLResponse, Response
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from mfbandit._internal.limits import MAX_FORM_FIELDS
from mfbandit.errors import MFBanditError
from mfbandit.service.error_handlers import log_internal_error, request_name
from mfbandit.service.live_updates import LiveUpdates
from mfbandit.service.middleware import bearer_of, session_of
from mfbandit.service.problem_details import ProblemDetail, problem_of
from mfbandit.service.public_address import ADDRESS, PublicAddress
from mfbandit.store import Sessions, Store
from mfbandit.store.tokens import Token


def bar(share: float, reserved: float, text: str) -> Markup:
    """Draw a horizontal bar, filled by a share and by what is reserved, with its meaning as text.

    >>> "rect" in bar(0.5, 0.1, "half of it")
    True
    """
    filled, more = round(100 * share, 2), round(100 * min(reserved, 1 - share), 2)
    return Markup(  # noqa: S704 - the text is escaped, and the rest are numbers
        f'<svg class="bar" viewBox="0 0 100 8" preserveAspectRatio="none" role="img" aria-label="{escape(text)}">'
        f'<rect class="back" width="100" height="8"/><rect class="fill" width="{filled}" height="8"/>'
        f'<rect class="reserved" x="{filled}" width="{more}" height="8"/></svg>'
    )


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
        self.updates = LiveUpdates(self._templates)

    def show(self, request: Request, template: str, *, code: int = 200, **values: object) -> HTMLResponse:
        """Render a page."""
        return html(self.draw(request, template, **values), code)

    def draw(self, request: Request, template: str, **values: object) -> Markup:
        """Render a page, or a part of one."""
        text = self._templates.get_template(f"{template}.html").render(
            store=self._store.name.rpartition("/")[2],
            root=root_of(request),
            signed_in=self._token(request) is not None,
            may_write=self.allows(request, "write"),
            **values,
        )
        return Markup(text)  # noqa: S704 - templates escape

    def allows(self, request: Request, scope: str) -> bool:
        """Tell whether the request's token allows this scope."""
        if not self._store.needs_token():
            return True
        token = self._token(request)
        return token is not None and token.allows(scope)

    def _token(self, request: Request) -> Token | None:
        session = session_id(request)
        return self._sessions.token(session) if session else self._store.token(bearer_of(_headers(request)))


def html(text: str, code: int = 200) -> HTMLResponse:
    """Answer with a page."""
    return HTMLResponse(text.encode("utf-8", "backslashreplace"), code)  # earlier versions took any text for a name


def _headers(request: Request) -> dict[bytes, bytes]:
    return dict(request.scope["headers"])


def address_of(request: Request) -> PublicAddress:
    """Return where the sender finds the service."""
    address: PublicAddress = request.scope[ADDRESS]
    return address


def root_of(request: Request) -> str:
    """Return what comes before every path of the service."""
    return address_of(request).root_path


def session_id(request: Request) -> str:
    """Return the session in a browser's cookie; empty if there is none."""
    return session_of(_headers(request), address_of(request))


def refused(pages: Pages, request: Request, back: str) -> Response:
    """Say that the token that somebody signed in with does not allow it."""
    detail = "The token that you signed in with has scope read; this needs scope write."
    return pages.show(request, "message", code=403, title="Not allowed", detail=detail, back=back)


def or_message(pages: Pages, request: Request, back: str, page: Callable[[], Response]) -> Response:
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


async def form_of(request: Request) -> dict[str, str]:
    """Read the fields of a form; its kind, size and origin were checked before."""
    text = (await request.body()).decode("utf-8", errors="replace")
    try:
        fields = parse_qs(text, keep_blank_values=True, max_num_fields=MAX_FORM_FIELDS)
    except ValueError:
        raise HTTPException(400, f"a form must have at most {MAX_FORM_FIELDS} fields") from None
    return {name: values[-1] for name, values in fields.items()}
