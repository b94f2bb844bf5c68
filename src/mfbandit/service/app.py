"""The routes. Each is one verb of an experiment; what it did is on disk before it is answered."""

import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Annotated, TypeVar

import anyio
import anyio.to_thread
from fastapi import FastAPI, Query, Request
from fastapi.responses import HTMLResponse, Response

import mfbandit
from mfbandit._internal.limits import (
    MAX_BODY_BYTES,
    MAX_CELLS,
    MAX_EVENT_NUMBER,
    MAX_ITEMS_PER_REQUEST,
)
from mfbandit.core import Play
from mfbandit.errors import InvalidArgument, MFBanditError, StoreError, StoreHeld
from mfbandit.experiment import fidelities_from_record, policy_from_record
from mfbandit.service import schemas
from mfbandit.service.answers import answer, memory_of, opened, play_record, stop_of
from mfbandit.service.api_page import api_page
from mfbandit.service.asgi import App
from mfbandit.service.control_routes import add_controls, add_token_routes
from mfbandit.service.dashboard import add_pages
from mfbandit.service.direct_route import DirectRoute
from mfbandit.service.error_handlers import add_error_handlers, log_internal_error
from mfbandit.service.lanes import MAX_THREADS, Lanes
from mfbandit.service.metrics import Metrics
from mfbandit.service.middleware import SecurityMiddleware
from mfbandit.service.observability import ObservingMiddleware, add_observability, with_route
from mfbandit.service.owner_middleware import OwnerMiddleware
from mfbandit.service.peer_rows import status_elsewhere
from mfbandit.service.peers import Peers
from mfbandit.service.public_address import ProxySettings
from mfbandit.service.schemas import ExperimentName
from mfbandit.service.strict_json import StrictRoute
from mfbandit.service.view_routes import add_views
from mfbandit.store import DurableExperiment, Fleet, Sessions, Store

TEND_INTERVAL_SECONDS = 0.5  # between looks at the other services
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
    app.state.lanes = Lanes()
    app.router.route_class = DirectRoute
    _add_plays(app, store)  # first: routes are looked through in this order
    app.router.route_class = StrictRoute
    _add_service(app, store)
    _add_experiments(app, store)
    add_views(app, store)
    add_controls(app, store)
    add_token_routes(app, store)
    add_pages(app, store, sessions)
    metrics = Metrics(store)
    add_observability(app, store, metrics)
    add_error_handlers(app)
    routed = with_route(app)
    if store.fleet is not None:
        peers = app.state.peers = Peers(store.fleet.is_here)
        routed = OwnerMiddleware(routed, store, store.fleet, peers)
    guarded = SecurityMiddleware(
        routed, store, sessions=sessions, proxy=proxy, loopback=loopback, max_body_bytes=max_body_bytes
    )
    return ObservingMiddleware(guarded, metrics)


def _lifespan(store: Store) -> Callable[[FastAPI], AbstractAsyncContextManager[None]]:
    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        anyio.to_thread.current_default_thread_limiter().total_tokens = MAX_THREADS
        await anyio.to_thread.run_sync(store.begin_looking)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(app.state.readiness.run)
            tasks.start_soon(_look_at_clock, store)
            tasks.start_soon(_expire_leases, store)
            if store.fleet is not None:
                tasks.start_soon(_tend, store.fleet)
            yield
            tasks.cancel_scope.cancel()
        if store.fleet is not None:
            await app.state.peers.close()
        with suppress(StoreError):  # the last look that was kept will do
            await anyio.to_thread.run_sync(store.end_looking)

    return lifespan


async def _look_at_clock(store: Store) -> None:
    """Let the store know every second that the service is there, whatever its threads are busy with."""
    while True:
        with suppress(MFBanditError):  # whoever asks next is told
            store.look()
        await anyio.sleep(EXPIRY_INTERVAL_SECONDS)


async def _tend(fleet: Fleet) -> None:
    """Look twice a second which services are here, and take over from those who are gone."""
    while True:
        await anyio.sleep(TEND_INTERVAL_SECONDS)
        with suppress(MFBanditError):  # the database is out of reach, and this service cannot answer either
            await anyio.to_thread.run_sync(fleet.tend)


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
        return answer({"status": "ok", "version": mfbandit.__version__})

    @app.get("/api/services", tags=["service"])
    def services() -> Response:
        """List the services that share the database, and what each owns; none where the store is a file."""
        return answer({"services": [one._asdict() for one in store.services()]})


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
        return answer({"experiments": list(names), "next": following})

    @app.post("/api/experiments", status_code=201, response_model=schemas.Status, tags=["experiments"])
    def create(body: schemas.Create) -> Response:
        """Create an experiment."""
        _check_size(body)
        record = body.fidelities.model_dump(exclude_unset=True)
        try:
            made = store.create(
                body.name,
                policy_from_record(body.policy.model_dump()),
                arms=body.arms,
                fidelities=fidelities_from_record(record),
                capital=body.capital,
                widen=body.widen,
                stop=stop_of(body.stop),
                memory=memory_of(body.memory),
                control=body.control,
                control_share=body.control_share,
                least_share=body.least_share,
                lease=body.lease,
                request_key=body.request_key,
            )
        except StoreHeld:  # the same request has made it before, and another service has it now
            found = status_elsewhere(store, body.name)
            if found is None:
                raise
            return answer(found, 201)
        return answer(made.status(), 201)

    @app.get("/api/experiments/{name}", response_model=schemas.Status, tags=["experiments"])
    async def status(name: ExperimentName) -> Response:
        """Show state, capital, results, pending plays and the best arm so far."""
        experiment = await opened(app, store, name)
        return answer(await lanes.look(experiment, lambda experiment: experiment.status(), plays=2))

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
            await opened(app, store, name),
            lambda experiment: experiment.ask(body.n, request_key=body.request_key, lease=body.lease),
            plays=body.n,
        )
        return answer({"plays": [play_record(play) for play in plays]})

    @app.post("/api/experiments/{name}/tell", response_model=schemas.Done, tags=["plays"])
    async def tell(name: ExperimentName, body: schemas.Tell) -> Response:
        """Tell results of plays, in any order. The same result again is fine; a different one is a conflict."""
        results = [(_meant(result), result.given(), result.cost) for result in body.results]
        await lanes.on_disk(
            await opened(app, store, name),
            lambda experiment: experiment.tell_many(results, request_key=body.request_key),
            results=len(results),
        )
        return answer({"done": len(results)})

    @app.post("/api/experiments/{name}/fail", response_model=schemas.Done, tags=["plays"])
    async def fail(name: ExperimentName, body: schemas.Fail) -> Response:
        """Report plays that gave no result: their capital is released. All of them are recorded, or none."""
        plays = [_meant(play) for play in body.plays]
        await lanes.on_disk(
            await opened(app, store, name),
            lambda experiment: experiment.fail_many(plays, body.cost, request_key=body.request_key),
        )
        return answer({"done": len(body.plays)})

    @app.post("/api/experiments/{name}/renew", response_model=dict[str, dict[str, float | None]], tags=["plays"])
    async def renew(name: ExperimentName, body: schemas.Renew) -> Response:
        """Renew the leases of pending plays, counted from now; the answer says when they end."""
        plays = [_meant(play) for play in body.plays]
        due = await lanes.on_disk(
            await opened(app, store, name),
            lambda experiment: experiment.renew_many(plays, body.lease, request_key=body.request_key),
        )
        return answer({"due": due})

    @app.post("/api/experiments/{name}/results", response_model=schemas.Plays, tags=["plays"])
    async def results(name: ExperimentName, body: schemas.Import) -> Response:
        """Add past results, as plays already made: a warm start."""
        past = [(one.arm, one.fidelity, one.given(), one.cost, one.id) for one in body.results]
        plays = await lanes.on_disk(
            await opened(app, store, name),
            lambda experiment: experiment.add_results(past, request_key=body.request_key),
            results=len(past),
        )
        return answer({"plays": [play_record(play) for play in plays]})
