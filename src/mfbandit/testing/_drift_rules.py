"""Rules for means that change, and for arms that begin anew."""

from functools import partial

import numpy as np

from mfbandit.core import STATS_ARRAYS
from mfbandit.errors import InvalidArgument
from mfbandit.experiment import AnyExperiment, ArmForgotten, DriftFound, PastResult
from mfbandit.testing._contract_examples import MakeExperiment, make_both, make_usual, require_same_plays
from mfbandit.testing.contract import require, require_equal, require_error

FADED: list[PastResult] = [*[("a", 2, 0.9, None)] * 40, *[("a", 2, 0.1, None)] * 20, ("b", 2, 0.4, None)]


def changes_are_found(make: MakeExperiment) -> None:
    """A mean that has changed is an event, a warning, and a doubt; no bias is blamed for it, and no claim is made."""
    ours, right = make_both(make)
    require_equal("drift before any result", ours.drift(), ())
    require(ours.memory is None, "results must not fade unless that is asked for")
    for experiment in (ours, right):
        experiment.add_results([("a", 0, 0.9, None)] * 20)
        experiment.add_results(FADED)
    require(len(right.drift()) == 1 and not right.refuted, "the experiment in memory must find that one mean changed")
    require_equal("drift", ours.drift(), right.drift())
    found = [event for event in ours.log if isinstance(event, DriftFound)]
    require_equal("the changes in the log", found, [event for event in right.log if isinstance(event, DriftFound)])
    status, due = ours.status(), right.status()
    for name in ("drift", "doubt", "warnings"):
        require_equal(f"{name} in the status", status.get(name), due.get(name))
    require_equal("the confidence after a change", ours.confidence(), right.confidence())
    require_equal("the difference after a change", ours.difference("a", "b"), right.difference("a", "b"))
    require(ours.confidence().kind == "withheld", "nothing must be claimed about an arm that has changed")
    require_equal("the audit after a change", ours.audit().warnings, right.audit().warnings)


def an_arm_begins_anew(make: MakeExperiment) -> None:
    """A forgotten arm has no results from then on; what was paid stays paid."""
    ours, right = make_both(make)
    for experiment in (ours, right):
        experiment.add_results(FADED)
        experiment.forget("a")
        experiment.forget(0)
    _require_forgotten(ours, right)
    for bad in ("nobody", 9, -1):
        require_error(InvalidArgument, partial(ours.forget, bad), "an arm that is not there must not be forgotten")
    require_same_plays(ours, right, 20, "after an arm was forgotten")
    require_equal("the confidence after an arm was forgotten", ours.confidence(), right.confidence())
    unplayed = make_usual(make)
    unplayed.forget("a")
    forgotten = [event for event in unplayed.log if isinstance(event, ArmForgotten)]
    require_equal("events of forgetting an arm without results", forgotten, [])


def _require_forgotten(ours: AnyExperiment, right: AnyExperiment) -> None:
    require(not ours.stats.counts[:, 0].any(), "a forgotten arm must have no results")
    for name in STATS_ARRAYS:
        same = np.array_equal(getattr(ours.stats, name), getattr(right.stats, name))
        require(same, f"{name} after an arm was forgotten must be those of the experiment in memory")
    require_equal("drift of a forgotten arm", ours.drift(), ())
    require_equal("spent after an arm was forgotten", ours.spent, right.spent)
    require_equal("results in the status after an arm was forgotten", ours.status()["results"], [0, 0, 61])
