"""Members of requests and of answers, for the client of a service."""

import numpy as np

from mfbandit._internal.typing import FloatArray, IntArray, JSONObject
from mfbandit._internal.validation import cost as checked_cost
from mfbandit._internal.validation import number, whole
from mfbandit.core import Batch, Counts, Play, Reward, Stats


def stats_from(known: JSONObject) -> Stats:
    """Return what was learned, from an answer."""
    counts, pending = (np.array(known[name], dtype=np.int64) for name in ("counts", "pending"))
    sums, squares = (np.array(known[name], dtype=np.float64) for name in ("sums", "squares"))
    active = np.array(known["active"], dtype=np.bool_)
    more = {name: integers(known.get(name)) for name in ("extra", "unseen", "states", "resumed")}
    return Stats(counts, sums, squares, pending, active, **more)


def integers(rows: list[list[int]] | None) -> IntArray | None:
    """Return whole numbers as an array; None for null."""
    return None if rows is None else np.array(rows, dtype=np.int64)


def numbers(rows: list[list[float | None]], missing: float) -> FloatArray:
    """Return numbers as an array; JSON has null for those that are not finite."""
    return np.array([[missing if value is None else value for value in row] for row in rows], dtype=np.float64)


def meant(play: Play | str) -> dict[str, str | int]:
    """Return a play by its id; with its arm and fidelity, which the service compares, where they are known."""
    if isinstance(play, Play):
        return {"play": play.id, "arm": play.arm, "fidelity": play.fidelity}
    return {"play": str(play)}


def key_member(key: str | None) -> dict[str, str]:
    """Return the key of a request, if it has one."""
    return {} if key is None else {"request_key": key}


def arm_member(arm: int | str) -> int | str:
    """Return an arm, by its name or index."""
    return arm if isinstance(arm, str) else whole("arm", arm)


def _said(**members: float | str | None) -> dict[str, float | str]:
    return {name: value for name, value in members.items() if value is not None}


def reward_members(reward: Reward) -> dict[str, float | str]:
    """Return what was observed.

    >>> reward_members(Counts(37, 1000)), reward_members(0.5)
    ({'successes': 37, 'trials': 1000}, {'reward': 0.5})
    """
    match reward:
        case Counts(successes, trials, block):
            return {"successes": successes, "trials": trials, **_said(block=block)}
        case Batch(mean, weight, sd, block):
            return {"reward": mean, "weight": weight, **_said(sd=sd, block=block)}
    return {"reward": number("reward", reward)}


def cost_member(cost: float | None) -> dict[str, float]:
    """Return what a play really cost, if that was said."""
    return {} if cost is None else {"cost": checked_cost(cost)}


def play_from(record: JSONObject) -> Play:
    """Return a play, from an answer."""
    known = (record["id"], record["arm"], record["fidelity"], record["cost"], record["label"])
    return Play(*known, resume_from=record.get("resume_from"))
