"""Rules for results of many observations."""

from functools import partial
from typing import Any

import numpy as np

from mfbandit.core import STATS_ARRAYS, Batch, Counts
from mfbandit.errors import Conflict, InvalidArgument
from mfbandit.experiment import AnyExperiment, PastResult, Told
from mfbandit.testing._contract_examples import MakeExperiment, make_both, make_usual, require_same_plays
from mfbandit.testing.contract import require, require_equal, require_error

REFUSED: tuple[dict[str, Any], ...] = (
    {"successes": 2, "trials": 1},
    {"successes": -1, "trials": 1},
    {"successes": 0, "trials": 0},
    {"successes": 1},
    {"trials": 1},
    {"reward": 0.5, "successes": 1, "trials": 2},
    {"successes": 1, "trials": 2, "weight": 2},
    {"reward": 0.5, "weight": 0},
    {"reward": 0.5, "weight": 2, "sd": -1.0},
    {"reward": 0.5, "weight": 2, "sd": float("nan")},
    {"reward": 0.5, "sd": 0.1},
    {},
    {"reward": 0.5, "block": ""},
    {"reward": 0.5, "block": "x" * 101},
    {"successes": 1, "trials": 2, "block": "two\nlines"},
    {"block": "monday"},
)


def many_observations_are_one_result(make: MakeExperiment) -> None:
    """Counts and means count as many observations, and cost one play."""
    ours, right = make_both(make)
    for experiment in (ours, right):
        first, second, third, fourth = experiment.ask(4)
        experiment.tell(first, successes=37, trials=1000)
        experiment.tell(second, reward=0.5, weight=20, sd=0.125)
        experiment.tell_many([(third, Counts(1, 3), None), (fourth, Batch(0.25, 4), 0.5)])
        past: list[PastResult] = [("a", 1, Counts(5, 8), None), ("b", 2, Batch(0.5, 2, 0.1), 3.0)]
        experiment.add_results(past)
    for name in STATS_ARRAYS:
        found, due = getattr(ours.stats, name), getattr(right.stats, name)
        require(np.array_equal(found, due), f"{name} of many observations must be {due}, got {found}")
    require_equal("observations", int(ours.stats.counts.sum()), 1037)
    require_equal("spent on many observations", ours.spent, right.spent)
    require_equal("results in the status", ours.status()["results"], [4, 1, 1])
    require_equal("weights of the history", ours.history.weights.tolist(), [1000, 20, 3, 4, 8, 2])
    require_equal("sums of the history", ours.history.sums.tolist(), right.history.sums.tolist())
    told, expected = ([event for event in log if isinstance(event, Told)] for log in (ours.log, right.log))
    require_equal("the results in the log", told, expected)
    require_same_plays(ours, right, 10, "after results of many observations")


def blocks_are_taken_out(make: MakeExperiment) -> None:
    """What a block does to all arms alike is taken out, and a confidence is an estimate then."""
    ours, right = make_both(make)
    for experiment in (ours, right):
        require_equal("effects before any block", experiment.block_effects(), {})
        for day, shift in (("monday", 0.0), ("sunday", 0.5)):
            for i, play in enumerate(experiment.ask(4)):
                experiment.tell(play, 0.25 * i + shift, block=day)
            more = experiment.ask(2)
            experiment.tell_many([(more[0], Counts(i, 4, day), None), (more[1], Batch(shift, 3, 0.1, day), 0.5)])
        past: list[PastResult] = [("a", 2, Batch(0.5, 20, 0.1, "sunday"), None), ("b", 2, 0.75, None)]
        experiment.add_results(past)
    for name in STATS_ARRAYS:
        found, due = getattr(ours.stats, name), getattr(right.stats, name)
        require(np.array_equal(found, due), f"{name} without the effects of blocks must be {due}, got {found}")
    require_equal("effects of blocks", ours.block_effects(), right.block_effects())
    require_equal("names of blocks", sorted(ours.block_effects()), ["", "monday", "sunday"])
    told, expected = ([event for event in log if isinstance(event, Told)] for log in (ours.log, right.log))
    require_equal("the results in the log", told, expected)
    require_equal("the confidence", ours.confidence(), right.confidence())
    require_equal("its kind", ours.confidence().kind, "estimate")
    require_equal("the audit", ours.audit(), right.audit())
    require_same_plays(ours, right, 10, "after results of blocks")


def bad_observations_are_refused(make: MakeExperiment) -> None:
    """What cannot be counts or a mean is refused, and changes nothing; the same counts again are fine."""
    experiment = make_usual(make)
    play = experiment.ask()
    for bad in REFUSED:
        require_error(InvalidArgument, partial(experiment.tell, play, **bad), f"tell must refuse {bad}")
    require(experiment.spent == 0 and not experiment.stats.counts.any(), "refused observations must change nothing")
    _tell_twice(experiment)


def _tell_twice(experiment: AnyExperiment) -> None:
    (play,) = experiment.pending
    for _ in range(2):
        experiment.tell(play, successes=3, trials=4)
    rule = "another result than the counts that were told must be a Conflict"
    for other in ({"successes": 2, "trials": 4}, {"reward": 0.75}, {"reward": 0.75, "weight": 4}):
        require_error(Conflict, partial(experiment.tell, play, **other), rule)
    require_equal("observations told twice", int(experiment.stats.counts.sum()), 4)
