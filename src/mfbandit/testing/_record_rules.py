"""Rules for what an experiment tells about itself: pending plays, status, history, bounds and its log."""

import json
from functools import partial

import numpy as np

from mfbandit.core import STATS_ARRAYS, Stats
from mfbandit.errors import InvalidArgument
from mfbandit.experiment import AnyExperiment, ArmNoted, Experiment, Noted
from mfbandit.policies import MFUCB
from mfbandit.testing._contract_examples import (
    ARMS,
    FIDELITIES,
    MakeExperiment,
    choice,
    make_both,
    make_usual,
    require_same_plays,
    reward_of,
)
from mfbandit.testing.contract import require, require_equal, require_error


def pending_plays_are_listed(make: MakeExperiment) -> None:
    """Pending plays are listed in the order of asking, and their costs are reserved."""
    experiment = make_usual(make)
    plays = experiment.ask(4)
    require(all(play.id.startswith(f"{experiment.id}-") for play in plays), "ids of plays must begin with its own")
    require_equal("pending", experiment.pending, tuple(plays))
    require_equal("reserved", experiment.reserved, 4.0)
    experiment.tell(plays[1], 0.5)
    experiment.fail(plays[2])
    require_equal("pending", experiment.pending, (plays[0], plays[3]))
    require_equal("reserved", experiment.reserved, 2.0)
    require_equal("pending plays in the statistics", int(experiment.stats.pending.sum()), 2)


def status_is_of_one_moment(make: MakeExperiment) -> None:
    """The status says what the properties say."""
    experiment = make_usual(make, 50.0)
    require(experiment.status()["best"] is None, "best in the status must be None before any result")
    for i, play in enumerate(experiment.ask(6)):
        if i < 4:
            experiment.tell(play, reward_of(play, i))
    experiment.retire_arm("d")
    experiment.add_arm("fails")
    for _ in range(3):
        experiment.fail(experiment.ask())
    status = experiment.status()
    best = experiment.best()
    for name, expected in (
        ("id", experiment.id),
        ("state", experiment.state),
        ("arms", len(experiment.arms)),
        ("capital", experiment.capital),
        ("spent", experiment.spent),
        ("reserved", experiment.reserved),
        ("lease", experiment.lease),
        ("events", len(experiment.log)),
        ("results", experiment.stats.counts.sum(axis=1).tolist()),
        ("pending", len(experiment.pending)),
        ("retired", list(experiment.retired)),
        ("set_aside", list(experiment.set_aside)),
        ("best", best),
        ("best_label", experiment.arms[best]),
    ):
        require_equal(f"{name} in the status", status[name], expected)  # type: ignore[literal-required]
    require_equal("the policy's name in the status", status["policy"]["name"], "MFUCB")
    require_equal("costs in the status", list(status["fidelities"]["costs"]), list(FIDELITIES.costs))
    require(bool(json.dumps(status)), "the status must be ready for JSON")


def history_is_in_the_order_of_telling(make: MakeExperiment) -> None:
    """The history has all results, with what they really cost."""
    experiment = make_usual(make)
    first, second, third = experiment.ask(3)
    experiment.tell(second, 0.5)
    experiment.fail(third)
    experiment.tell(first, 0.25, cost=2.0)
    history = experiment.history
    require_equal("arms of the history", history.arms.tolist(), [second.arm, first.arm])
    require_equal("fidelities of the history", history.fidelities.tolist(), [second.fidelity, first.fidelity])
    require_equal("rewards of the history", history.rewards.tolist(), [0.5, 0.25])
    require_equal("costs of the history", history.costs.tolist(), [second.cost, 2.0])


def statistics_are_a_copy(make: MakeExperiment) -> None:
    """Statistics do not change later, and neither does an experiment by them."""
    experiment = make_usual(make)
    before = experiment.stats
    before.counts[:] = 7
    require(not experiment.stats.counts.any(), "who writes into the statistics must not change the experiment")
    known = experiment.stats
    experiment.tell(experiment.ask(), 0.5)
    require(not known.counts.any(), "later results must not change statistics that were given out")


def bounds_audit_and_confidence_are_of_all_results(make: MakeExperiment) -> None:
    """Bounds, the audit and the confidence are those of the same results in memory."""
    ours, right = make_both(make)
    require_same_plays(ours, right, 40, "before bounds are compared")
    for rho in (None, 1.0):
        found, expected = ours.bounds(rho), right.bounds(rho)
        for name in ("plays", "means", "lower", "upper"):
            same = np.array_equal(getattr(found, name), getattr(expected, name), equal_nan=True)
            require(same, f"{name} in the bounds must be those of all results")
    require_equal("the audit's warnings", ours.audit().warnings, right.audit().warnings)
    for level in (0.5, 0.95):
        require_equal(f"the confidence at {level:g}", ours.confidence(level), right.confidence(level))
        for first, second in ((0, 1), (right.arms[1], right.arms[0])):
            said, due = (one.difference(first, second, level) for one in (ours, right))
            require_equal(f"the difference of {first} and {second}", said, due)
    require_error(InvalidArgument, partial(ours.difference, 0, right.arms[0]), "an arm is not compared with itself")


def notes_are_in_the_log(make: MakeExperiment) -> None:
    """A note is an event, and changes nothing else."""
    experiment = make_usual(make)
    experiment.tell(experiment.ask(), 0.5)
    experiment.note("the page changed")
    require_equal("the last event", experiment.log[-1], Noted("the page changed"))
    experiment.note("its picture changed", arm=experiment.arms[1])
    require_equal("the last event", experiment.log[-1], ArmNoted(1, "its picture changed"))
    require_error(InvalidArgument, lambda: experiment.note("of nobody", arm=99), "a note must be about an arm")
    require_error(InvalidArgument, lambda: experiment.note(" "), "a note must not be empty")
    require_equal("the number of results after a note", int(experiment.stats.counts.sum()), 1)


def the_log_tells_everything(make: MakeExperiment) -> None:
    """An experiment that is read from the log is the same, and goes on with the same plays."""
    experiment = make_usual(make, 400.0)
    _use_everything(experiment)
    again = Experiment.from_json(experiment.to_json())
    require_equal("the log that was read back", again.log, tuple(experiment.log))
    for name in ("id", "policy", "fidelities", "arms", "capital", "spent", "reserved", "pending", "retired"):
        require_equal(f"{name} by the log", getattr(again, name), getattr(experiment, name))
    require_equal("set_aside by the log", again.set_aside, experiment.set_aside)
    require_equal("state by the log", again.state, experiment.state)
    for name in ("policy", "fidelities", "arms", "capital"):
        found, expected = experiment.definition[name], again.definition[name]
        require(json.dumps(found) == json.dumps(expected), f"{name} in the definition must be what it began with")
    _require_same_stats(again.stats, experiment.stats)
    for i in range(5):
        play, expected_play = experiment.ask(), again.ask()
        seen, due = choice(play), choice(expected_play)
        require(seen == due, f"play {i} after the log must be {due}, got {seen}")
        experiment.tell(play, 0.5)
        again.tell(expected_play, 0.5)


def _use_everything(experiment: AnyExperiment) -> None:
    """Let every kind of event happen."""
    plays = experiment.ask(6)
    experiment.tell_many([(play, reward_of(play, i), None) for i, play in enumerate(plays[:4])])
    experiment.fail(plays[4], cost=0.5)
    experiment.renew(plays[5])
    experiment.add_arm("late")
    experiment.retire_arm(ARMS[3])
    for _ in range(3):
        experiment.fail(experiment.ask())
    experiment.restore_arm(experiment.set_aside[0])
    experiment.add_results([("late", 1, 0.5, None)])
    experiment.set_capital(300.0)
    experiment.set_biases([0.2, 0.1, 0.0])
    experiment.set_policy(MFUCB(rho=1.0))
    experiment.pause()
    experiment.note("half-way")
    experiment.note("the last one added", arm="late")
    experiment.resume()


def _require_same_stats(found: Stats, expected: Stats) -> None:
    for name in STATS_ARRAYS:
        same = np.array_equal(getattr(found, name), getattr(expected, name))
        require(same, f"{name} by the log must be those of the experiment")
