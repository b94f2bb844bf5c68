"""The routes that show an experiment and change nothing."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Annotated, Literal

from fastapi import FastAPI, Query
from fastapi.responses import Response, StreamingResponse

from mfbandit._internal.formatting import strict_json
from mfbandit._internal.limits import MAX_EVENT_NUMBER, MAX_ITEMS_PER_REQUEST, MAX_RHO
from mfbandit.core import LEVEL
from mfbandit.experiment import confidence_record, fidelities_record, policy_record
from mfbandit.service.answers import answer, opened, play_record
from mfbandit.service.lanes import Lanes
from mfbandit.service.schemas import ExperimentName
from mfbandit.store import DurableExperiment, Store, jsonl, log_record, plays_csv


def _best_arm(experiment: DurableExperiment) -> tuple[int, str]:
    with experiment.still():
        arm = experiment.best()
        return arm, experiment.arms[arm]


def add_views(app: FastAPI, store: Store) -> None:
    """Add them."""
    lanes: Lanes = app.state.lanes

    @app.get("/api/experiments/{name}/best", tags=["views"])
    async def best(name: ExperimentName) -> Response:
        """Show the arm that the policy recommends now."""
        arm, label = await lanes.look(await opened(app, store, name), _best_arm)
        return answer({"arm": arm, "label": label})

    @app.get("/api/experiments/{name}/definition", tags=["views"])
    def definition(name: ExperimentName) -> Response:
        """Show what it began with: policy, arms, fidelities and capital; later changes are in the log."""
        return answer(store.open(name).definition)

    @app.get("/api/experiments/{name}/arms", tags=["views"])
    def arms(name: ExperimentName) -> Response:
        """List the names of all arms, and which of them are retired or set aside."""
        experiment = store.open(name)
        with experiment.still():
            labels, retired, set_aside = experiment.arms, experiment.retired, experiment.set_aside
        return answer({"arms": list(labels), "retired": list(retired), "set_aside": list(set_aside)})

    @app.get("/api/experiments/{name}/pending", tags=["views"])
    def pending(name: ExperimentName) -> Response:
        """List the pending plays, and when their leases end."""
        experiment = store.open(name)
        with experiment.still():
            plays, leases = experiment.pending, experiment.leases
        return answer({"plays": [{**play_record(play), "due": leases.get(play.id)} for play in plays]})

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
        return answer({**arrays, "arms": labels, **records})

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

    @app.get("/api/experiments/{name}/confidence", tags=["views"])
    def confidence(
        name: ExperimentName,
        level: Annotated[float, Query(gt=0, lt=1, description="Of rivals and the possible loss.")] = LEVEL,
    ) -> Response:
        """Say how sure it is that the recommended arm is the best, what could be lost, and which arms may be better.

        ``kind`` is valid, estimate or withheld, and ``why`` says why. It may be looked at after every result. An amount
        is null where nothing is known.
        """
        return answer(confidence_record(store.open(name).confidence(level)))

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
        return answer({"events": [log_record(record) for record in store.open(name).page(after, limit)]})

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
