"""The routes. Each is one verb of an experiment; what it did is on disk before it is answered."""

import json
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import asdict
from typing import Annotated, Any, Literal, TypeVar

import anyio
import anyio.to_thread
from fastapi import FastAPI, HTTPException, Path, Query, Request
from fastapi.responses import HTMLResponse, Response, StreamingResponse

import mfbandit
from mfbandit._internal.formatting import strict_json
from mfbandit._internal.limits import (
    MAX_BODY_BYTES,
    MAX_CELLS,
    MAX_EVENT_NUMBER,
    MAX_ITEMS_PER_REQUEST,
    MAX_RHO,
    MAX_TOKEN_ID_LENGTH,
)
from mfbandit._internal.typing import JSON
from mfbandit.core import Play
from mfbandit.errors import Conflict, InvalidArgument, MFBanditError, NotAllowed, StoreError
from mfbandit.experiment import fidelities_from_record, fidelities_record, policy_from_record, policy_record
from mfbandit.service import schemas
from mfbandit.service.api_page import api_page
from mfbandit.service.asgi import App
from mfbandit.service.dashboard import add_pages
from mfbandit.service.error_handlers import add_error_handlers, log_internal_error
from mfbandit.service.lanes import MAX_THREADS, Lanes
from mfbandit.service.middleware import ONLY_AGAIN, SecurityMiddleware
from mfbandit.service.public_address import ProxySettings
from mfbandit.service.schemas import ExperimentName
from mfbandit.service.strict_json import StrictRoute
from mfbandit.store import DurableExperiment, Sessions, Store, jsonl, log_record, plays_csv

EXPIRY_INTERVAL_SECONDS = 1.0  # between looks for leases that ran out
HEALTH_VALID_SECONDS = 1.0  # how long a successful write counts

T = TypeVar("T")


def create_app(
    store: Store,
    *,
    loopback: bool = True,
    max_body_bytes: int = MAX_BODY_BYTES,
    root_path: str = "",
    allowed_hosts: Sequence[str] = (),
    trusted_proxies: Sequence[str] = (),
) -> App:
    """Make the service over a store, as an ASGI application.

    Args:
        store: where the experiments are; open for writing.
        loopback: whether it will listen on loopback alone; then only requests to such a host are answered.
        max_body_bytes: the largest body of a request.
        root_path: what a proxy in front of it has before every path, such as /bandits.
        allowed_hosts: names, beside those of this machine, under which people reach it through a proxy.
        trusted_proxies: addresses or networks of proxies whose X-Forwarded-Proto and X-Forwarded-Host are believed.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, Store(f"{folder}/ads.db") as store:
    ...     callable(create_app(store))
    True
    """
    proxy, sessions = ProxySettings(root_path, allowed_hosts, trusted_proxies), Sessions(store)
    app = FastAPI(
        title="mfbandit",
        summary="Ask which option to try next, and at which fidelity; tell what came of it.",
        version=mfbandit.__version__,
        docs_url=None,
        redoc_url=None,
        lifespan=_lifespan(store),
        responses=schemas.PROBLEMS,
        redirect_slashes=False,
    )
    app.router.route_class = StrictRoute
    app.state.lanes = Lanes()
    _add_plays(app, store)  # first: routes are looked through in this order
    _add_service(app, store)
    _add_experiments(app, store)
    _add_views(app, store)
    _add_controls(app, store)
    _add_tokens(app, store)
    add_pages(app, store, sessions)
    add_error_handlers(app)
    return SecurityMiddleware(
        app, store, sessions=sessions, proxy=proxy, loopback=loopback, max_body_bytes=max_body_bytes
    )


def _lifespan(store: Store) -> Callable[[FastAPI], AbstractAsyncContextManager[None]]:
    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        anyio.to_thread.current_default_thread_limiter().total_tokens = MAX_THREADS
        await anyio.to_thread.run_sync(store.begin_looking)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_look_at_clock, store)
            tasks.start_soon(_expire_leases, store)
            yield
            tasks.cancel_scope.cancel()
        with suppress(StoreError):  # the last look that was kept will do
            await anyio.to_thread.run_sync(store.end_looking)

    return lifespan


async def _look_at_clock(store: Store) -> None:
    """Let the store know every second that the service is there, whatever its threads are busy with."""
    while True:
        with suppress(MFBanditError):  # whoever asks next is told
            store.look()
        await anyio.sleep(EXPIRY_INTERVAL_SECONDS)


async def _expire_leases(store: Store) -> None:
    """Take back plays whose leases ran out, again and again."""
    broken: set[DurableExperiment] = set()
    while True:
        await anyio.sleep(EXPIRY_INTERVAL_SECONDS)
        await anyio.to_thread.run_sync(_expire_once, store, broken)


def _expire_once(store: Store, broken: set[DurableExperiment]) -> None:
    for experiment in [one for one in list(store.opened().values()) if one not in broken]:
        queued, _ = experiment.queued()  # whether it is kept need not be known here: whoever asks next is told
        try:
            queued.expire(wait=False)
        except MFBanditError:
            continue
        except Exception as error:
            broken.add(experiment)  # one traceback in the log is enough
            log_internal_error(error, f"expiring leases of {experiment.name}")


async def _opened(app: FastAPI, store: Store, name: str) -> DurableExperiment:
    found = store.opened().get(name)
    if found is not None:
        return found
    # The first time its log has to be read, which may take seconds: others go on meanwhile.
    lanes: Lanes = app.state.lanes
    return await lanes.run(name, lambda: store.open(name))


def _answer(content: JSON, code: int = 200) -> Response:
    return Response(json.dumps(content), code, media_type="application/json")


def _play(play: Play) -> dict[str, Any]:
    return {"id": play.id, "arm": play.arm, "label": play.label, "fidelity": play.fidelity, "cost": play.cost}


def _key(body: schemas.Keyed | None) -> str | None:
    return None if body is None else body.request_key


def _meant(play: schemas.PlayRef | str) -> Play | str:
    """The play that a request means; with its arm and fidelity, where they are given."""
    if isinstance(play, str):
        return play
    if play.arm is None and play.fidelity is None:
        return play.play
    if play.arm is None or play.fidelity is None:
        raise InvalidArgument(f"arm and fidelity of a play must be given both or neither, got {play.play} with one")
    return Play(play.play, play.arm, play.fidelity, 0.0, "")


def _add_service(app: FastAPI, store: Store) -> None:
    checked = -HEALTH_VALID_SECONDS

    @app.get("/api", response_class=HTMLResponse, include_in_schema=False)
    async def page(request: Request) -> str:
        return api_page(app.openapi(), request.scope.get("root_path", ""))

    @app.get("/health", tags=["service"])
    async def health() -> Response:
        """Check that the service is up and can write."""
        nonlocal checked
        if time.monotonic() - checked > HEALTH_VALID_SECONDS:  # anybody may ask, and each check is a write
            await anyio.to_thread.run_sync(store.check)
            checked = time.monotonic()
        return _answer({"status": "ok", "version": mfbandit.__version__})


def _check_size(body: schemas.Create) -> None:
    """Refuse what a few bytes ask for, and what would take gigabytes."""
    arms, fidelities = body.arms if isinstance(body.arms, int) else len(body.arms), len(body.fidelities.costs)
    if arms * fidelities > MAX_CELLS:
        raise InvalidArgument(f"arms times fidelities must be at most {MAX_CELLS:,}, got {arms:,} times {fidelities:,}")


def _add_experiments(app: FastAPI, store: Store) -> None:
    lanes: Lanes = app.state.lanes

    @app.get("/api/experiments", tags=["experiments"])
    def experiments(
        after: Annotated[int, Query(ge=0, le=MAX_EVENT_NUMBER, description="What the page before gave as next.")] = 0,
        limit: Annotated[int, Query(ge=1, le=MAX_ITEMS_PER_REQUEST)] = MAX_ITEMS_PER_REQUEST,
    ) -> Response:
        """List the names of experiments, oldest first, a page at a time; next is null on the last page."""
        names, following = store.list_page(after=after, limit=limit)
        return _answer({"experiments": list(names), "next": following})

    @app.post("/api/experiments", status_code=201, response_model=schemas.Status, tags=["experiments"])
    def create(body: schemas.Create) -> Response:
        """Create an experiment."""
        _check_size(body)
        record = body.fidelities.model_dump(exclude_unset=True)
        made = store.create(
            body.name,
            policy_from_record(body.policy.model_dump()),
            arms=body.arms,
            fidelities=fidelities_from_record(record),
            capital=body.capital,
            widen=body.widen,
            lease=body.lease,
            request_key=body.request_key,
        )
        return _answer(made.status(), 201)

    @app.get("/api/experiments/{name}", response_model=schemas.Status, tags=["experiments"])
    async def status(name: ExperimentName) -> Response:
        """Show state, capital, results, pending plays and the best arm so far."""
        experiment = await _opened(app, store, name)
        return _answer(await lanes.look(experiment, lambda experiment: experiment.status(), plays=2))

    @app.delete("/api/experiments/{name}", tags=["experiments"])
    def delete(
        name: ExperimentName,
        confirm: Annotated[str, Query(description="The name again.")],
        request_key: schemas.QueryKey = None,
    ) -> dict[str, str]:
        """Delete an experiment and its log, for good."""
        store.delete(name, confirm=confirm, request_key=request_key)
        return {"deleted": name}


def _add_plays(app: FastAPI, store: Store) -> None:
    lanes: Lanes = app.state.lanes

    @app.post("/api/experiments/{name}/ask", response_model=schemas.Plays, tags=["plays"])
    async def ask(name: ExperimentName, body: schemas.Ask) -> Response:
        """Ask for the next plays: as many as fit into the capital. The same request key gives the same plays again."""
        plays = await lanes.on_disk(
            await _opened(app, store, name),
            lambda experiment: experiment.ask(body.n, request_key=body.request_key, lease=body.lease),
            plays=body.n,
        )
        return _answer({"plays": [_play(play) for play in plays]})

    @app.post("/api/experiments/{name}/tell", response_model=schemas.Done, tags=["plays"])
    async def tell(name: ExperimentName, body: schemas.Tell) -> Response:
        """Tell results of plays, in any order. The same result again is fine; a different one is a conflict."""
        results = [(_meant(result), result.reward, result.cost) for result in body.results]
        await lanes.on_disk(
            await _opened(app, store, name),
            lambda experiment: experiment.tell_many(results, request_key=body.request_key),
        )
        return _answer({"done": len(results)})

    @app.post("/api/experiments/{name}/fail", response_model=schemas.Done, tags=["plays"])
    async def fail(name: ExperimentName, body: schemas.Fail) -> Response:
        """Report plays that gave no result: their capital is released. All of them are recorded, or none."""
        plays = [_meant(play) for play in body.plays]
        await lanes.on_disk(
            await _opened(app, store, name),
            lambda experiment: experiment.fail_many(plays, body.cost, request_key=body.request_key),
        )
        return _answer({"done": len(body.plays)})

    @app.post("/api/experiments/{name}/renew", tags=["plays"])
    async def renew(name: ExperimentName, body: schemas.Renew) -> dict[str, dict[str, float | None]]:
        """Renew the leases of pending plays, counted from now; the answer says when they end."""
        plays = [_meant(play) for play in body.plays]
        due = await lanes.on_disk(
            await _opened(app, store, name),
            lambda experiment: experiment.renew_many(plays, body.lease, request_key=body.request_key),
        )
        return {"due": due}

    @app.post("/api/experiments/{name}/results", response_model=schemas.Plays, tags=["plays"])
    async def results(name: ExperimentName, body: schemas.Import) -> Response:
        """Add past results, as plays already made: a warm start."""
        past = [(result.arm, result.fidelity, result.reward, result.cost, result.id) for result in body.results]
        plays = await lanes.on_disk(
            await _opened(app, store, name),
            lambda experiment: experiment.add_results(past, request_key=body.request_key),
        )
        return _answer({"plays": [_play(play) for play in plays]})


def _best_arm(experiment: DurableExperiment) -> tuple[int, str]:
    with experiment.still():
        arm = experiment.best()
        return arm, experiment.arms[arm]


def _add_views(app: FastAPI, store: Store) -> None:
    lanes: Lanes = app.state.lanes

    @app.get("/api/experiments/{name}/best", tags=["views"])
    async def best(name: ExperimentName) -> Response:
        """Show the arm that the policy recommends now."""
        arm, label = await lanes.look(await _opened(app, store, name), _best_arm)
        return _answer({"arm": arm, "label": label})

    @app.get("/api/experiments/{name}/definition", tags=["views"])
    def definition(name: ExperimentName) -> Response:
        """Show what it began with: policy, arms, fidelities and capital; later changes are in the log."""
        return _answer(store.open(name).definition)

    @app.get("/api/experiments/{name}/arms", tags=["views"])
    def arms(name: ExperimentName) -> Response:
        """List the names of all arms, and which of them are retired or set aside."""
        experiment = store.open(name)
        with experiment.still():
            labels, retired, set_aside = experiment.arms, experiment.retired, experiment.set_aside
        return _answer({"arms": list(labels), "retired": list(retired), "set_aside": list(set_aside)})

    @app.get("/api/experiments/{name}/pending", tags=["views"])
    def pending(name: ExperimentName) -> Response:
        """List the pending plays, and when their leases end."""
        experiment = store.open(name)
        with experiment.still():
            plays, leases = experiment.pending, experiment.leases
        return _answer({"plays": [{**_play(play), "due": leases.get(play.id)} for play in plays]})

    @app.get("/api/experiments/{name}/stats", tags=["views"])
    def stats(name: ExperimentName) -> Response:
        """Show results, sums and sums of squares for each fidelity and arm, pending plays and active arms.

        Policy, fidelities and the names of arms are of the same moment.
        """
        experiment = store.open(name)
        with experiment.still():
            stats, labels = experiment.stats, experiment.arms
            policy, fidelities = experiment.policy, experiment.fidelities
        fields = ("counts", "sums", "squares", "pending", "active")
        arrays = {field: getattr(stats, field).tolist() for field in fields}
        records = {"policy": policy_record(policy), "fidelities": fidelities_record(fidelities)}
        return _answer({**arrays, "arms": labels, **records})

    @app.get("/api/experiments/{name}/bounds", tags=["views"])
    def bounds(
        name: ExperimentName,
        rho: Annotated[float | None, Query(gt=0, le=MAX_RHO, description="Exploration of the widths.")] = None,
    ) -> Response:
        """Show plays, means, widths and bounds of every arm at every fidelity; null where there is no result.

        Where noise or biases are not known, they are the policy's own intervals; ``kind`` says which.
        """
        table = store.open(name).bounds(rho)
        fields = ("plays", "means", "widths", "lower", "upper")
        arrays = {field: getattr(table, field).tolist() for field in fields}
        content = strict_json(
            {"kind": table.kind, "arms": list(table.labels), "fidelities": list(table.fidelities), **arrays}
        )
        return Response(content, media_type="application/json")

    @app.get("/api/experiments/{name}/audit", tags=["views"])
    def audit(name: ExperimentName) -> Response:
        """Test whether the assumed biases hold, by all results so far; null where nothing is known."""
        found = store.open(name).audit()
        content = {
            "alarm": found.alarm,
            "warnings": found.warnings,
            "fidelities": [asdict(one) for one in found.fidelities],
        }
        return Response(strict_json(content), media_type="application/json")

    @app.get("/api/experiments/{name}/log", tags=["views"])
    def log(
        name: ExperimentName,
        after: Annotated[int, Query(ge=0, le=MAX_EVENT_NUMBER, description="Events after this number.")] = 0,
        limit: Annotated[int, Query(ge=1, le=MAX_ITEMS_PER_REQUEST)] = MAX_ITEMS_PER_REQUEST,
    ) -> Response:
        """List what happened, in order, a page at a time."""
        return _answer({"events": [log_record(record) for record in store.open(name).page(after, limit)]})

    @app.get("/api/experiments/{name}/export", tags=["views"], response_class=StreamingResponse)
    def export(
        name: ExperimentName, kind: Annotated[Literal["csv", "jsonl"], Query(alias="format")] = "csv"
    ) -> Response:
        """Export all plays as CSV, or the whole log as JSON Lines."""
        experiment = store.open(name)
        lines = (line.encode("utf-8", "backslashreplace") for line in _exported(experiment, kind))
        headers = {"content-disposition": f'attachment; filename="{experiment.name}.{kind}"'}
        media = "text/csv" if kind == "csv" else "application/jsonl"
        return StreamingResponse(lines, media_type=media, headers=headers)


def _exported(experiment: DurableExperiment, kind: str) -> Iterator[str]:
    if kind == "jsonl":
        return jsonl(experiment.records(), experiment.id)
    return plays_csv(experiment.records(), experiment.id, experiment.arms)


def _add_controls(app: FastAPI, store: Store) -> None:
    def changed(name: str, control: Callable[[DurableExperiment], None]) -> Response:
        experiment = store.open(name)
        control(experiment)
        return _answer(experiment.status())

    @app.post("/api/experiments/{name}/pause", response_model=schemas.Status, tags=["controls"])
    def pause(name: ExperimentName, body: schemas.Keyed | None = None) -> Response:
        """Hand out no plays until it is resumed; results are still recorded."""
        return changed(name, lambda experiment: experiment.pause(request_key=_key(body)))

    @app.post("/api/experiments/{name}/resume", response_model=schemas.Status, tags=["controls"])
    def resume(name: ExperimentName, body: schemas.Keyed | None = None) -> Response:
        """Hand out plays again."""
        return changed(name, lambda experiment: experiment.resume(request_key=_key(body)))

    @app.post("/api/experiments/{name}/capital", response_model=schemas.Status, tags=["controls"])
    def capital(name: ExperimentName, body: schemas.Capital) -> Response:
        """Change what all plays together may cost."""
        return changed(name, lambda experiment: experiment.set_capital(body.capital, request_key=body.request_key))

    @app.post("/api/experiments/{name}/biases", response_model=schemas.Status, tags=["controls"])
    def biases(name: ExperimentName, body: schemas.Biases) -> Response:
        """Assume other biases from now on."""
        return changed(name, lambda experiment: experiment.set_biases(body.biases, request_key=body.request_key))

    @app.post("/api/experiments/{name}/policy", response_model=schemas.Status, tags=["controls"])
    def policy(name: ExperimentName, body: schemas.PolicyBody) -> Response:
        """Let another policy pick plays from now on."""
        chosen = policy_from_record(body.policy.model_dump())
        return changed(name, lambda experiment: experiment.set_policy(chosen, request_key=body.request_key))

    @app.post("/api/experiments/{name}/arms", tags=["controls"])
    def add_arm(name: ExperimentName, body: schemas.NewArm) -> dict[str, int]:
        """Add an arm, which is tried before any other."""
        return {"arm": store.open(name).add_arm(body.label, request_key=body.request_key)}

    @app.post("/api/experiments/{name}/retire", response_model=schemas.Status, tags=["controls"])
    def retire(name: ExperimentName, body: schemas.OneArm) -> Response:
        """Stop asking for an arm."""
        return changed(name, lambda experiment: experiment.retire_arm(body.arm, request_key=body.request_key))

    @app.post("/api/experiments/{name}/restore", response_model=schemas.Status, tags=["controls"])
    def restore(name: ExperimentName, body: schemas.OneArm) -> Response:
        """Let an arm that was retired or set aside take part again."""
        return changed(name, lambda experiment: experiment.restore_arm(body.arm, request_key=body.request_key))

    @app.post("/api/experiments/{name}/notes", response_model=schemas.Status, tags=["controls"])
    def note(name: ExperimentName, body: schemas.Note) -> Response:
        """Write a note into the log."""
        return changed(name, lambda experiment: experiment.note(body.text, request_key=body.request_key))


def _add_tokens(app: FastAPI, store: Store) -> None:
    @app.get("/api/tokens", tags=["tokens"])
    def tokens() -> dict[str, list[dict[str, Any]]]:
        """List the tokens: id, name, scope and when they were created; not the tokens themselves."""
        shown = ("id", "name", "scope", "created")
        return {"tokens": [{field: getattr(token, field) for field in shown} for token in store.tokens().values()]}

    @app.post("/api/tokens", status_code=201, tags=["tokens"])
    def create_token(body: schemas.NewToken, request: Request) -> dict[str, str]:
        """Create a token; it is shown once. From the first one on, every request needs one."""
        only_again = bool(request.scope.get(ONLY_AGAIN))
        try:
            made = store.create_token(body.name, body.scope, request_key=body.request_key, only_again=only_again)
        except (NotAllowed, Conflict) as error:
            if only_again:
                raise HTTPException(401, "a token is needed: Authorization: Bearer mfb_...") from error
            raise
        return {"token": made}

    @app.delete("/api/tokens/{token}", tags=["tokens"])
    def revoke_token(
        token: Annotated[str, Path(max_length=MAX_TOKEN_ID_LENGTH)], request_key: schemas.QueryKey = None
    ) -> dict[str, str]:
        """Revoke a token, by its id."""
        store.revoke_token(token, request_key=request_key)
        return {"revoked": token}
