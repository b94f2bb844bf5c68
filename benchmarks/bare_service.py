"""The least that a durable route can be: FastAPI over the same group commit, without an experiment behind it.

python benchmarks/bare_service.py STORE PORT
"""

import itertools
import sys
import time

import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel

from mfbandit.experiment.codec import Record
from mfbandit.experiment.events import Told
from mfbandit.service import collect_garbage_less_often
from mfbandit.store.database import database_at
from mfbandit.store.writer import LogEnd, Writer


class Result(BaseModel):
    """The result of one play."""

    play: str
    reward: float
    cost: float | None = None


class Results(BaseModel):
    """What the service takes, too."""

    results: list[Result]


def bare(place: str) -> FastAPI:
    """One route that writes a row and answers once it is on disk."""
    app, writer, chain = FastAPI(), Writer(database_at(place), "a benchmark"), LogEnd(1, 0, 0)
    numbers = itertools.count(1)

    @app.post("/api/experiments/{name}/tell")
    async def tell(name: str, body: Results) -> dict[str, int]:  # noqa: ARG001 - the same address
        told = Told(0, body.results[0].reward, 1.0)
        await writer.submit((chain, [Record(next(numbers), time.time(), told)]))
        return {"done": 1}

    return app


if __name__ == "__main__":
    collect_garbage_less_often()
    uvicorn.run(bare(sys.argv[1]), host="127.0.0.1", port=int(sys.argv[2]), log_level="warning", access_log=False)
