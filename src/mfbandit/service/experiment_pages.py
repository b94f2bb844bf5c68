"""The pages of an experiment beside its first one: arms, one arm, two arms, events, changes, and downloads."""

from collections.abc import Callable
from typing import Annotated, Any, Literal

from fastapi import FastAPI, Path, Request
from fastapi.responses import Response

from mfbandit._internal.formatting import plain
from mfbandit._internal.limits import MAX_ARMS
from mfbandit.errors import InvalidArgument
from mfbandit.service.answers import opened
from mfbandit.service.arm_table import SHOWS, SORTS, ArmQuery, ArmTable, arms_view
from mfbandit.service.arm_view import arm_view
from mfbandit.service.compare_view import compare_view
from mfbandit.service.controls import listed
from mfbandit.service.events_view import EventQuery, events_view
from mfbandit.service.lanes import Lanes
from mfbandit.service.pages import Pages, html, or_message, refused
from mfbandit.service.schemas import ExperimentName
from mfbandit.service.shared_parts import SharedParts
from mfbandit.service.view_routes import downloaded
from mfbandit.store import DurableExperiment, Store

View = Callable[[DurableExperiment, bool], dict[str, Any]]
ArmIndex = Annotated[int, Path(ge=0, le=MAX_ARMS)]


def add_experiment_pages(app: FastAPI, store: Store, pages: Pages) -> None:
    """Add them. Each answers a browser with a page, and htmx with the part of it that changes."""
    tables: SharedParts[ArmTable] = SharedParts()
    parts: SharedParts[dict[str, Any]] = SharedParts()  # by all that a page depends on, as its address says it
    lanes: Lanes = app.state.lanes

    def table(experiment: DurableExperiment, fresh: bool) -> ArmTable:
        known = pages.updates.certainty(experiment).found
        return tables.get(experiment.id, lambda: ArmTable(experiment, known), fresh=fresh)

    async def shown(request: Request, name: str, template: str, view: View, **values: object) -> Response:
        experiment, update = await opened(app, store, name), b"hx-request" in dict(request.scope["headers"])
        here = request.url.path + (f"?{request.url.query}" if request.url.query else "")

        def drawn() -> Response:
            found = view(experiment, not update)
            live = pages.draw(request, f"{template}-live", name=name, view=found, **values)
            if update:
                return html(live)
            more: dict[str, Any] = {**values, "live": live, "here": here, "tab": template}
            return pages.show(request, template, name=name, view=found, **more)

        if update:
            return await lanes.run(name, drawn)
        return await lanes.run(name, lambda: or_message(pages, request, f"/experiments/{name}", drawn))

    @app.get("/experiments/{name}/arms", include_in_schema=False)
    async def arms(request: Request, name: ExperimentName) -> Response:
        query = ArmQuery.of(request.query_params)

        def view(experiment: DurableExperiment, fresh: bool) -> dict[str, Any]:
            key = f"{experiment.id} {query}"
            return parts.get(key, lambda: arms_view(table(experiment, fresh), query), fresh=fresh)

        return await shown(request, name, "arms", view, sorts=SORTS, shows=SHOWS)

    @app.get("/experiments/{name}/arms/{arm}", include_in_schema=False)
    async def arm(request: Request, name: ExperimentName, arm: ArmIndex) -> Response:
        def view(experiment: DurableExperiment, fresh: bool) -> dict[str, Any]:
            if arm >= len(experiment.arms):
                raise InvalidArgument(f"arm must lie in 0 to {len(experiment.arms) - 1}, got {arm}")
            key = f"{experiment.id} arm {arm}"
            return parts.get(key, lambda: arm_view(experiment, table(experiment, fresh), arm), fresh=fresh)

        return await shown(request, name, "arm", view)

    @app.get("/experiments/{name}/compare", include_in_schema=False)
    async def compare(request: Request, name: ExperimentName) -> Response:
        pair = {one: request.query_params.get(one, "") for one in "ab"}

        def view(experiment: DurableExperiment, fresh: bool) -> dict[str, Any]:
            key = f"{experiment.id} pair {pair}"
            return parts.get(key, lambda: compare_view(table(experiment, fresh), pair), fresh=fresh)

        return await shown(request, name, "compare", view)

    @app.get("/experiments/{name}/events", include_in_schema=False)
    async def events(request: Request, name: ExperimentName) -> Response:
        query = EventQuery.of(request.query_params)
        return await shown(request, name, "events", lambda experiment, _: events_view(experiment, query))

    @app.get("/experiments/{name}/change", include_in_schema=False)
    async def change(request: Request, name: ExperimentName) -> Response:
        if not pages.allows(request, "write"):
            return refused(pages, request, f"/experiments/{name}")
        return await shown(request, name, "change", lambda experiment, _: _settings(experiment))

    @app.get("/experiments/{name}/download", include_in_schema=False)
    def download(name: ExperimentName, kind: Literal["csv", "jsonl"] = "csv") -> Response:
        return downloaded(store.open(name), kind)


def _settings(experiment: DurableExperiment) -> dict[str, Any]:
    with experiment.still():
        capital, policy, stop = experiment.capital, experiment.policy, experiment.stop
        fidelities, state, paused = experiment.fidelities, experiment.state, experiment.paused
    written = repr(policy).replace("(", " ", 1).removesuffix(")").replace(", ", " ").strip()
    return {
        "state": state,
        "paused": paused,
        "capital": "unlimited" if capital is None else plain(capital),
        "policy": written,
        "biases": listed(fidelities.biases or ()),
        "level": "never" if stop is None else f"{100 * stop.level:g}",
        "tolerance": "0" if stop is None else f"{stop.tolerance:g}",
        "estimates": stop is not None and stop.estimates,
        "stop": "" if stop is None else stop.sentence,
    }
