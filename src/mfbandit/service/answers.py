"""What several routes need: the experiment of a name, and answers in JSON."""

import json
from typing import Any

from fastapi import FastAPI
from fastapi.responses import Response

from mfbandit._internal.typing import JSON
from mfbandit.core import Play
from mfbandit.experiment import HalfLife, Sure, memory_from_record, stop_from_record
from mfbandit.service import schemas
from mfbandit.service.lanes import Lanes
from mfbandit.store import DurableExperiment, Store


async def opened(app: FastAPI, store: Store, name: str) -> DurableExperiment:
    """Open an experiment; other requests go on meanwhile."""
    found = store.opened().get(name)
    if found is not None:
        return found
    # The first time its log has to be read, which may take seconds: others go on meanwhile.
    lanes: Lanes = app.state.lanes
    return await lanes.run(name, lambda: store.open(name))


def answer(content: JSON, code: int = 200) -> Response:
    """Answer in JSON."""
    return Response(json.dumps(content), code, media_type="application/json")


def play_record(play: Play) -> dict[str, Any]:
    """Show a play in an answer."""
    record = {"id": play.id, "arm": play.arm, "label": play.label, "fidelity": play.fidelity, "cost": play.cost}
    return record if play.resume_from is None else record | {"resume_from": play.resume_from}


def stop_of(body: schemas.Stop | None) -> Sure | None:
    """Return the rule for stopping of a body, if there is one."""
    return None if body is None else stop_from_record(body.model_dump())


def memory_of(body: schemas.Memory | None) -> HalfLife | None:
    """Return the half-life of a body, if there is one."""
    return None if body is None else memory_from_record(body.model_dump(exclude_unset=True))


def key_in(body: schemas.Keyed | None) -> str | None:
    """Return the request key of a body, if there is one."""
    return None if body is None else body.request_key
