"""The routes. Each is one verb of an experiment; what it did is on disk before it is answered."""

import json
import re
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import asdict
from typing import Annotated, Any, Literal

import anyio
import anyio.to_thread
from fastapi import FastAPI, Path, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, Response, StreamingResponse
from starlette.exceptions import HTTPException

import mfbandit
from mfbandit._internal.formatting import strict_json
from mfbandit.core import Play
from mfbandit.experiment import fidelities_from_record, policy_from_record
from mfbandit.service import schemas
from mfbandit.service.api_page import reference
from mfbandit.service.dashboard import add_pages
from mfbandit.service.middleware import LARGEST_BODY, App, Guard
from mfbandit.service.problem_details import TYPE, Problem, problem_of
from mfbandit.service.strict_json import StrictRoute
from mfbandit.store import DurableExperiment, Store, jsonl, log_record, plays_csv

Name = Annotated[str, Path(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$", description="The experiment's name.")]
EXPIRY_EVERY = 1.0  # seconds between looks for leases that ran out
PAGE = 1000  # events of the log at once
HEALTHY_FOR = 1.0  # seconds that a write that succeeded stands for

_PROBLEMS: dict[int | str, dict[str, Any]] = {
    code: {"description": words, "content": {TYPE: {"schema": schemas.ProblemOut.model_json_schema()}}}
    for code, words in (
        (400, "The body is no JSON"),
        (401, "A token is needed"),
        (403, "The token's scope is too small"),
        (404, "Not there"),
        (405, "No such method there"),
        (409, "Something is in the way"),
        (413, "The body is too large"),
        (415, "The body is no JSON"),
        (421, "Wrong host"),
        (422, "The request cannot be understood"),
        (503, "Try again"),
    )
}


def create_app(store: Store, *, loopback: bool = True, largest_body: int = LARGEST_BODY) -> App:
    """The service over a store, as an ASGI application.

    Args:
        store: where the experiments are; open for writing.
        loopback: whether it will listen on loopback alone; then only requests to such a host are answered.
        largest_body: bytes that a request's body may have.
    """
    app = FastAPI(
        title="mfbandit",
        summary="Ask which option to try next, and at which fidelity; tell what came of it.",
        version=mfbandit.__version__,
        docs_url=None,
        redoc_url=None,
        lifespan=_lifespan(store),
        responses=_PROBLEMS,
        redirect_slashes=False,
    )
    app.router.route_class = StrictRoute
    _add_plays(app, store)  # first: routes are looked through in this order
    _add_pages(app, store)
    _add_experiments(app, store)
    _add_views(app, store)
    _add_controls(app, store)
    _add_tokens(app, store)
    add_pages(app, store)
    _add_handlers(app)
    return Guard(app, store, loopback=loopback, largest=largest_body)


def _lifespan(store: Store) -> Any:  # noqa: ANN401 - what FastAPI takes
    async def expire() -> None:
        while True:
            await anyio.sleep(EXPIRY_EVERY)
            for experiment in list(store.opened().values()):
                try:
                    experiment.queued()[0].expire()
                except (mfbandit.StoreError, mfbandit.UnknownExperiment):
                    continue  # whoever asks next is told

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(expire)
            yield
            tasks.cancel_scope.cancel()

    return lifespan


async def _opened(store: Store, name: str) -> DurableExperiment:
    found = store.opened().get(name)
    if found is not None:
        return found
    # The first time its log has to be read, which may take seconds: others go on meanwhile.
    return await anyio.to_thread.run_sync(store.open, name)


def _answer(content: Any, code: int = 200) -> Response:  # noqa: ANN401 - anything JSON can say
    return Response(json.dumps(content), code, media_type="application/json")


def _play(play: Play) -> dict[str, Any]:
    return {"id": play.id, "arm": play.arm, "label": play.label, "fidelity": play.fidelity, "cost": play.cost}


def _add_pages(app: FastAPI, store: Store) -> None:
    checked = -HEALTHY_FOR

    @app.get("/api", response_class=HTMLResponse, include_in_schema=False)
    async def page() -> str:
        return reference(app.openapi())

    @app.get("/health", tags=["service"])
    async def health() -> Response:
        """Whether the service is up and can write."""
        nonlocal checked
        if time.monotonic() - checked > HEALTHY_FOR:  # anybody may ask, and each look is a write
            await anyio.to_thread.run_sync(store.check)
            checked = time.monotonic()
        return _answer({"status": "ok", "version": mfbandit.__version__})


def _add_experiments(app: FastAPI, store: Store) -> None:
    @app.get("/api/experiments", tags=["experiments"])
    def experiments() -> dict[str, list[str]]:
        """The names of all experiments, in the order in which they were made."""
        return {"experiments": list(store.list())}

    @app.post("/api/experiments", status_code=201, response_model=schemas.Status, tags=["experiments"])
    def create(body: schemas.Create) -> Response:
        """A new experiment."""
        record = body.fidelities.model_dump(exclude_unset=True)
        made = store.create(
            body.name,
            policy_from_record(body.policy.model_dump()),
            arms=body.arms,
            fidelities=fidelities_from_record(record),
            capital=body.capital,
            lease=body.lease,
            request_key=body.request_key,
        )
        return _answer(made.status(), 201)

    @app.get("/api/experiments/{name}", response_model=schemas.Status, tags=["experiments"])
    async def glance(name: Name) -> Response:
        """State, capital, results, plays under way, the best arm so far."""
        return _answer((await _opened(store, name)).status())

    @app.delete("/api/experiments/{name}", tags=["experiments"])
    def delete(name: Name, confirm: Annotated[str, Query(description="The name again.")]) -> dict[str, str]:
        """Delete an experiment and its log, for good."""
        store.delete(name, confirm=confirm)
        return {"deleted": name}


def _add_plays(app: FastAPI, store: Store) -> None:
    @app.post("/api/experiments/{name}/ask", response_model=schemas.Plays, tags=["plays"])
    async def ask(name: Name, body: schemas.Ask) -> Response:
        """The next plays to make: as many as fit into the capital. The same request key gives the same plays again."""
        experiment = await _opened(store, name)
        queued, promise = experiment.queued()
        plays = queued.ask(body.n, request_key=body.request_key, lease=body.lease)
        await promise
        return _answer({"plays": [_play(play) for play in plays]})

    @app.post("/api/experiments/{name}/tell", response_model=schemas.Done, tags=["plays"])
    async def tell(name: Name, body: schemas.Tell) -> Response:
        """Results of plays, in any order. The same result again is fine; another one for a play is a conflict."""
        experiment = await _opened(store, name)
        queued, promise = experiment.queued()
        queued.tell_many((result.play, result.reward, result.cost) for result in body.results)
        await promise
        return _answer({"done": len(body.results)})

    @app.post("/api/experiments/{name}/fail", response_model=schemas.Done, tags=["plays"])
    async def fail(name: Name, body: schemas.Fail) -> Response:
        """Plays that gave no result: their capital is released. All of them are taken, or none."""
        experiment = await _opened(store, name)
        queued, promise = experiment.queued()
        queued.fail_many(body.plays, body.cost)
        await promise
        return _answer({"done": len(body.plays)})

    @app.post("/api/experiments/{name}/renew", tags=["plays"])
    async def renew(name: Name, body: schemas.Renew) -> dict[str, dict[str, float | None]]:
        """Make the leases of plays that are under way longer, counted from now; tells when they end."""
        experiment = await _opened(store, name)
        queued, promise = experiment.queued()
        due = queued.renew_many(body.plays, body.lease)
        await promise
        return {"due": due}

    @app.post("/api/experiments/{name}/results", response_model=schemas.Plays, tags=["plays"])
    async def results(name: Name, body: schemas.Import) -> Response:
        """Results from elsewhere, as plays already made: a warm start."""
        experiment = await _opened(store, name)
        queued, promise = experiment.queued()
        past = [(result.arm, result.fidelity, result.reward, result.cost) for result in body.results]
        plays = queued.add_results(past, request_key=body.request_key)
        await promise
        return _answer({"plays": [_play(play) for play in plays]})


def _add_views(app: FastAPI, store: Store) -> None:
    @app.get("/api/experiments/{name}/best", tags=["views"])
    async def best(name: Name) -> dict[str, int | str]:
        """The arm that the policy would recommend now."""
        experiment = await _opened(store, name)
        arm = experiment.best()
        return {"arm": arm, "label": experiment.arms[arm]}

    @app.get("/api/experiments/{name}/definition", tags=["views"])
    def definition(name: Name) -> Response:
        """What it began with: policy, arms, fidelities and capital; whatever changed later is in the log."""
        return _answer(store.open(name).definition)

    @app.get("/api/experiments/{name}/arms", tags=["views"])
    def arms(name: Name) -> dict[str, list[str] | list[int]]:
        """The names of all arms, and which of them were retired or set aside."""
        experiment = store.open(name)
        retired, aside = list(experiment.retired), list(experiment.set_aside)
        return {"arms": list(experiment.arms), "retired": retired, "set_aside": aside}

    @app.get("/api/experiments/{name}/pending", tags=["views"])
    def pending(name: Name) -> dict[str, list[dict[str, Any]]]:
        """The plays under way, and when their leases end."""
        experiment = store.open(name)
        leases = experiment.leases
        return {"plays": [{**_play(play), "due": leases.get(play.id)} for play in experiment.pending]}

    @app.get("/api/experiments/{name}/stats", tags=["views"])
    def stats(name: Name) -> Response:
        """Results, sums and sums of squares for each fidelity and arm; plays under way; which arms take part."""
        stats = store.open(name).stats
        fields = ("counts", "sums", "squares", "pending", "active")
        return _answer({field: getattr(stats, field).tolist() for field in fields})

    @app.get("/api/experiments/{name}/bounds", tags=["views"])
    def bounds(
        name: Name, rho: Annotated[float | None, Query(gt=0, le=1e9, description="For the widths.")] = None
    ) -> Response:
        """Plays, means, widths and bounds of every arm at every fidelity; null where there is no result."""
        table = store.open(name).bounds(rho)
        fields = ("plays", "means", "widths", "lower", "upper")
        content = strict_json({field: getattr(table, field).tolist() for field in fields})
        return Response(content, media_type="application/json")

    @app.get("/api/experiments/{name}/audit", tags=["views"])
    def audit(name: Name) -> Response:
        """Whether the assumed biases hold, by all results so far; null where nothing is known."""
        found = store.open(name).audit()
        content = {
            "alarm": found.alarm,
            "warnings": found.warnings,
            "fidelities": [asdict(x) for x in found.fidelities],
        }
        return Response(strict_json(content), media_type="application/json")

    @app.get("/api/experiments/{name}/log", tags=["views"])
    def log(
        name: Name,
        after: Annotated[int, Query(ge=0, le=2**53, description="Events after this number.")] = 0,
        limit: Annotated[int, Query(ge=1, le=PAGE)] = PAGE,
    ) -> Response:
        """What happened, in order; some at a time."""
        return _answer({"events": [log_record(record) for record in store.open(name).page(after, limit)]})

    @app.get("/api/experiments/{name}/export", tags=["views"], response_class=StreamingResponse)
    def export(name: Name, kind: Annotated[Literal["csv", "jsonl"], Query(alias="format")] = "csv") -> Response:
        """All plays as CSV, or the whole log as JSON Lines."""
        experiment = store.open(name)
        lines = _exported(experiment, kind)
        headers = {"content-disposition": f'attachment; filename="{experiment.name}.{kind}"'}
        media = "text/csv" if kind == "csv" else "application/jsonl"
        return StreamingResponse(lines, media_type=media, headers=headers)


def _exported(experiment: DurableExperiment, kind: str) -> Iterator[str]:
    if kind == "jsonl":
        return jsonl(experiment.records())
    return plays_csv(experiment.records(), experiment.id, experiment.arms)


def _add_controls(app: FastAPI, store: Store) -> None:
    @app.post("/api/experiments/{name}/pause", response_model=schemas.Status, tags=["controls"])
    def pause(name: Name) -> Response:
        """Hand out no plays until it is resumed; results are still taken."""
        return _controlled(name, lambda experiment: experiment.pause())

    @app.post("/api/experiments/{name}/resume", response_model=schemas.Status, tags=["controls"])
    def resume(name: Name) -> Response:
        """Hand out plays again."""
        return _controlled(name, lambda experiment: experiment.resume())

    @app.post("/api/experiments/{name}/capital", response_model=schemas.Status, tags=["controls"])
    def capital(name: Name, body: schemas.Capital) -> Response:
        """Change what all plays together may cost."""
        return _controlled(name, lambda experiment: experiment.set_capital(body.capital))

    @app.post("/api/experiments/{name}/biases", response_model=schemas.Status, tags=["controls"])
    def biases(name: Name, body: schemas.Biases) -> Response:
        """Assume other biases from now on."""
        return _controlled(name, lambda experiment: experiment.set_biases(body.biases))

    @app.post("/api/experiments/{name}/policy", response_model=schemas.Status, tags=["controls"])
    def policy(name: Name, body: schemas.PolicyBody) -> Response:
        """Let another policy pick plays from now on."""
        chosen = policy_from_record(body.policy.model_dump())
        return _controlled(name, lambda experiment: experiment.set_policy(chosen))

    @app.post("/api/experiments/{name}/arms", tags=["controls"])
    def add_arm(name: Name, body: schemas.NewArm) -> dict[str, int]:
        """A new arm, which is tried before any other."""
        return {"arm": store.open(name).add_arm(body.label, request_key=body.request_key)}

    @app.post("/api/experiments/{name}/retire", response_model=schemas.Status, tags=["controls"])
    def retire(name: Name, body: schemas.OneArm) -> Response:
        """Stop asking for an arm."""
        return _controlled(name, lambda experiment: experiment.retire_arm(body.arm))

    @app.post("/api/experiments/{name}/restore", response_model=schemas.Status, tags=["controls"])
    def restore(name: Name, body: schemas.OneArm) -> Response:
        """Let an arm that was set aside take part again."""
        key = body.request_key
        return _controlled(name, lambda experiment: experiment.restore_arm(body.arm, request_key=key))

    @app.post("/api/experiments/{name}/notes", response_model=schemas.Status, tags=["controls"])
    def note(name: Name, body: schemas.Note) -> Response:
        """Write something into the log, for people."""
        key = body.request_key
        return _controlled(name, lambda experiment: experiment.note(body.text, request_key=key))

    def _controlled(name: str, control: Any) -> Response:  # noqa: ANN401 - a verb
        experiment = store.open(name)
        control(experiment)
        return _answer(experiment.status())


def _add_tokens(app: FastAPI, store: Store) -> None:
    @app.get("/api/tokens", tags=["tokens"])
    def tokens() -> dict[str, list[dict[str, Any]]]:
        """What is known of all tokens; not the tokens themselves."""
        shown = ("id", "name", "scope", "created")
        return {"tokens": [{field: getattr(token, field) for field in shown} for token in store.tokens().values()]}

    @app.post("/api/tokens", status_code=201, tags=["tokens"])
    def create_token(body: schemas.NewToken) -> dict[str, str]:
        """A new token; it is shown once. From the first one on, every request needs one."""
        return {"token": store.create_token(body.name, body.scope)}

    @app.delete("/api/tokens/{token}", tags=["tokens"])
    def revoke_token(token: Annotated[str, Path(max_length=64)]) -> dict[str, str]:
        """Make a token worthless, by its id."""
        store.revoke_token(token)
        return {"revoked": token}


def _add_handlers(app: FastAPI) -> None:
    @app.exception_handler(RequestValidationError)
    async def invalid(_: Request, error: RequestValidationError) -> Response:
        wrong = [_wrong(one) for one in error.errors()[:10]]
        detail = "; ".join(f"{one['at']}: {one['rule']}" for one in wrong)
        return _problem(Problem("invalid", 422, "The request cannot be understood", detail, {"errors": wrong}))

    @app.exception_handler(HTTPException)
    async def http(request: Request, error: HTTPException) -> Response:
        code, asked = error.status_code, f"{request.method} {request.url.path}"
        kind, title, detail = {
            400: ("invalid", "The request cannot be understood", str(error.detail)),
            404: ("not-found", "Not found", f"there must be such a route, got {asked}"),
            405: ("method", "Method not allowed", f"the route must have such a method, got {asked}"),
        }.get(code, ("http", str(error.detail), str(error.detail)))
        return _problem(Problem(kind, code, title, detail), error.headers)

    async def expected(_: Request, error: Exception) -> Response:
        problem = problem_of(error)
        if problem is None:
            raise error  # a fault of ours
        return _problem(problem)

    for kind in (ValueError, LookupError, RuntimeError):
        app.add_exception_handler(kind, expected)


def _wrong(one: dict[str, Any]) -> dict[str, str]:
    at = ".".join(str(part) for part in one["loc"])
    given = repr(one.get("input"))
    shown = given if len(given) <= 80 else f"{given[:80]}..."  # noqa: PLR2004 - enough to find it
    rule = re.sub(r"\d{30,}", lambda digits: f"{float(digits[0]):g}", one["msg"])
    return {"at": at, "rule": f"{rule}, got {shown}"}


def _problem(problem: Problem, headers: Any = None) -> Response:  # noqa: ANN401 - what Starlette has
    more = dict(headers or {}) | ({"retry-after": "1"} if problem.status == 503 else {})  # noqa: PLR2004 - of HTTP
    return Response(problem.body, problem.status, headers=more, media_type=TYPE)
