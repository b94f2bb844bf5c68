"""The routes by which pages change an experiment: each asks for confirmation first."""

import re

from fastapi import FastAPI, Request
from fastapi.responses import RedirectResponse, Response

from mfbandit.service.controls import control
from mfbandit.service.lanes import Lanes
from mfbandit.service.pages import Pages, form_of, or_message, refused, root_of
from mfbandit.service.schemas import ExperimentName
from mfbandit.store import Store


def add_control_pages(app: FastAPI, store: Store, pages: Pages) -> None:
    """Add them."""

    @app.get("/experiments/{name}/confirm", include_in_schema=False)
    def confirm(request: Request, name: ExperimentName, verb: str = "") -> Response:
        back = _back(name, request.query_params.get("from", ""))

        def asked() -> Response:
            chosen, fields = control(verb), dict(request.query_params)
            given = {field: fields.get(field, "") for field in chosen.fields}
            experiment = store.open(name)
            return pages.show(
                request,
                "confirm",
                title=chosen.title.format(name=name, **given),
                detail=chosen.detail(experiment, given),
                button=chosen.button,
                action=f"/experiments/{name}/do/{verb}",
                fields={**given, "from": back},
                back=back,
            )

        if not pages.allows(request, "write"):
            return refused(pages, request, back)
        return or_message(pages, request, back, asked)

    @app.post("/experiments/{name}/do/{verb}", include_in_schema=False)
    async def do(request: Request, name: ExperimentName, verb: str) -> Response:
        fields = await form_of(request)
        back = _back(name, fields.get("from", ""))

        def acted() -> Response:
            chosen = control(verb)
            chosen.act(store.open(name), {field: fields.get(field, "") for field in chosen.fields})
            return RedirectResponse(root_of(request) + back, 303)

        if not pages.allows(request, "write"):
            return refused(pages, request, back)
        lanes: Lanes = app.state.lanes
        return await lanes.run(name, lambda: or_message(pages, request, back, acted))


def _back(name: str, place: str) -> str:
    """Return the page of the experiment that somebody came from, without the service's prefix.

    >>> [_back("ads", place) for place in ("/experiments/ads/arms/3", "https://evil.example", "/experiments/other")]
    ['/experiments/ads/arms/3', '/experiments/ads', '/experiments/ads']
    """
    start = f"/experiments/{name}"
    return place if re.fullmatch(rf"{re.escape(start)}/(arms/\d{{1,9}}|change|events)", place) else start
