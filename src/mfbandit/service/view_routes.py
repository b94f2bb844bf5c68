"""The routes that show an experiment and change nothing."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Annotated, Any, Literal

from fastapi import FastAPI, Query
from fastapi.responses import Response, StreamingResponse

from mfbandit._internal.formatting import strict_json
from mfbandit._internal.limits import MAX_ARMS, MAX_EVENT_NUMBER, MAX_ITEMS_PER_REQUEST, MAX_RHO
from mfbandit._internal.typing import BoolArray, FloatArray, IntArray
from mfbandit.core import LEVEL, STATS_ARRAYS
from mfbandit.experiment import (
    confidence_record,
    difference_record,
    drift_record,
    fidelities_record,
    lift_record,
    policy_record,
)
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
    _add_answers(app, store)

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
        """Show observations, sums and sums of squares for each fidelity and arm, pending plays and active arms.

        ``extra`` are observations beyond the first of each result, and ``unseen`` those of them of unknown spread; both
        are null where every result is one observation. ``drifted`` are the means that have changed: fidelity and arm.
        ``compared`` are the observations that the test of the biases counts; null where there are no two blocks.
        Policy, fidelities and the names of arms are of the same moment.
        """
        experiment = store.open(name)
        with experiment.still():
            stats, labels = experiment.stats, experiment.arms
            policy, fidelities = experiment.policy, experiment.fidelities
            fades = experiment.memory is not None and experiment.memory.fades
            compared = experiment.compared
            drifted = [] if fades else [[one.fidelity, one.arm] for one in experiment.drift()]
        arrays = {name: _listed(getattr(stats, name)) for name in STATS_ARRAYS}
        records = {"policy": policy_record(policy), "fidelities": fidelities_record(fidelities)}
        return answer({**arrays, "arms": labels, "drifted": drifted, "compared": _listed(compared), **records})

    @app.get("/api/experiments/{name}/bounds", tags=["views"])
    def bounds(
        name: ExperimentName,
        rho: Annotated[float | None, Query(gt=0, le=MAX_RHO, description="Exploration of the widths.")] = None,
    ) -> Response:
        """Show plays, means, widths and bounds of every arm at every fidelity; null where there is no result.

        Where noise or biases are not known, they are the policy's own intervals; ``kind`` says which. ``observations``
        is null where every result is one.
        """
        table = store.open(name).bounds(rho)
        fields = ("plays", "means", "widths", "lower", "upper", "observations")
        arrays = {field: _listed(getattr(table, field)) for field in fields}
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

    @app.get("/api/experiments/{name}/difference", tags=["views"])
    def difference(
        name: ExperimentName,
        first: Annotated[int, Query(ge=0, le=MAX_ARMS, description="An arm, by its index.")],
        second: Annotated[int, Query(ge=0, le=MAX_ARMS, description="Another one.")],
        level: Annotated[float, Query(gt=0, lt=1, description="Of the interval.")] = LEVEL,
    ) -> Response:
        """Say by how much the first arm is better than the second, and how sure that is.

        It may be looked at after every result, and for whichever arms. An end of the interval is null where nothing is
        known.
        """
        return answer(difference_record(store.open(name).difference(first, second, level)))

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
        return downloaded(store.open(name), kind)


def _add_answers(app: FastAPI, store: Store) -> None:
    @app.get("/api/experiments/{name}/lift", tags=["views"])
    def lift(
        name: ExperimentName,
        level: Annotated[float, Query(gt=0, lt=1, description="Of the interval.")] = LEVEL,
    ) -> Response:
        """Say by how much the best arm so far is above the control; null without a control, or without results.

        ``relative`` is the interval as a share of the control's observed mean. It may be looked at after every result.
        """
        return answer({"lift": lift_record(store.open(name).lift(level))})

    @app.get("/api/experiments/{name}/drift", tags=["views"])
    def drift(name: ExperimentName) -> Response:
        """List the means that have changed: arm, fidelity, since when, and the means before and after."""
        return answer({"drift": [drift_record(one) for one in store.open(name).drift()]})

    @app.get("/api/experiments/{name}/blocks", tags=["views"])
    def blocks(name: ExperimentName) -> Response:
        """Show by how much results in each block are above those elsewhere; results without a block are of ""."""
        return answer({"effects": store.open(name).block_effects()})


def _listed(array: IntArray | FloatArray | BoolArray | None) -> list[Any] | None:
    return None if array is None else list(array.tolist())


def downloaded(experiment: DurableExperiment, kind: str) -> StreamingResponse:
    """Answer with all plays as CSV, or the whole log as JSON Lines, as a file."""
    lines = (line.encode("utf-8", "backslashreplace") for line in _exported(experiment, kind))
    headers = {"content-disposition": f'attachment; filename="{experiment.name}.{kind}"'}
    return StreamingResponse(lines, media_type="text/csv" if kind == "csv" else "application/jsonl", headers=headers)


def _exported(experiment: DurableExperiment, kind: str) -> Iterator[str]:
    if kind == "jsonl":
        return jsonl(experiment.records(), experiment.id)
    batches = experiment.observations_at != experiment.results_at
    known, arms = experiment.records(), experiment.arms
    return plays_csv(known, experiment.id, arms, batches=batches, blocks=bool(experiment.block_effects()))
