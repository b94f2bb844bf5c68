"""What a store has against what the clients of its service know, and against what an undisturbed run would give."""

import random
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise

from mfbandit.experiment import AnyExperiment
from mfbandit.experiment.codec import Record as Entry
from mfbandit.experiment.events import (
    ArmRestored,
    ArmSetAside,
    Asked,
    Event,
    Expired,
    Failed,
    LeasesExtended,
    Opened,
    Renewed,
    Told,
)
from mfbandit.experiment.experiment import FAILURES_IN_A_ROW, Experiment
from mfbandit.experiment.log_check import check_possible
from mfbandit.store.durable_experiment import DurableExperiment
from mfbandit.store.request_keys import key_of
from tests.support.clients import ARMS, FIDELITIES, POLICIES, Diary, reward
from tests.support.objectives import play_number

ENOUGH_RESULTS = 3000  # for the best arm to be certain


@dataclass
class Found:
    """What a comparison found."""

    lost: int = 0
    doubled: int = 0
    set_aside: int = 0
    problems: list[str] = field(default_factory=list)


def compare(experiment: DurableExperiment, diaries: list[Diary]) -> Found:
    """What the store has against what the clients of an experiment know."""
    found, log = Found(), list(experiment.records())
    _compare_asks(log, diaries, found)
    _compare_outcomes(log, diaries, found)
    _compare_rest(log, diaries, found)
    _compare_answer(experiment, log, found)
    try:
        _replay(experiment, log)
    except (AssertionError, ValueError) as error:
        found.problems.append(f"{experiment.name}: {error}")
    return found


def _compare_asks(log: list[Entry], diaries: list[Diary], found: Found) -> None:
    """Every acknowledged ask is there as it was acknowledged, whole and once; and no ask that nobody sent."""
    made: dict[str, list[Asked]] = {}
    for entry in log:
        if isinstance(entry.event, Asked):
            made.setdefault(key_of(str(entry.request)), []).append(entry.event)
    for diary in diaries:
        for key, n in diary.keys.items():
            events = made.pop(key, [])
            known = [Asked(play_number(play), play.arm, play.fidelity) for play in diary.plays.get(key, [])]
            found.lost += bool(known) and events[: len(known)] != known
            found.doubled += len(events) > n
            if 0 < len(events) < n:
                found.problems.append(f"of the {n} plays of request {key} there are {len(events)}")
    found.problems += [f"nobody asked for {key}" for key in made]


def _compare_outcomes(log: list[Entry], diaries: list[Diary], found: Found) -> None:
    """Every acknowledged outcome is there as it was acknowledged, once; and none that nobody sent."""
    settled = [entry.event for entry in log if isinstance(entry.event, Told | Failed)]
    there = {event.play: event for event in settled}
    found.doubled += sum(count - 1 for count in Counter(event.play for event in settled).values())
    sent = {play: event for diary in diaries for play, event in diary.outcomes.items()}
    found.lost += sum(there.get(play) != sent[play] for diary in diaries for play in diary.kept)
    found.problems += [f"nobody sent {event}" for event in settled if sent.get(event.play) != event]


def _compare_rest(log: list[Entry], diaries: list[Diary], found: Found) -> None:
    """Renewals come from clients, restored arms too, and everything else from the rules."""
    renewed = {entry.event.play for entry in log if isinstance(entry.event, Renewed)}
    sent = {play: kept for diary in diaries for play, kept in diary.renewed.items()}
    found.lost += sum(kept and play not in renewed for play, kept in sent.items())
    found.problems += [f"nobody renewed play {play}" for play in renewed - sent.keys()]
    # A result of an arm that was set aside brings it back, too.
    steps = [(before.event, after.event) for before, after in pairwise(log)]
    restored = sum(isinstance(after, ArmRestored) and not isinstance(before, Told) for before, after in steps)
    if restored > sum(diary.restores for diary in diaries):
        found.problems.append(f"arms were restored {restored} times, more often than anybody asked for")
    known = Asked | Told | Failed | Expired | Renewed | ArmSetAside | ArmRestored | LeasesExtended | Opened
    found.problems += [f"nobody sent {entry.event}" for entry in log if not isinstance(entry.event, known)]


def _compare_answer(experiment: DurableExperiment, log: list[Entry], found: Found) -> None:
    """No arm is out that had a later result, and the best arm is the one that an undisturbed run finds."""
    arm_of = {entry.event.play: entry.event.arm for entry in log if isinstance(entry.event, Asked)}
    last_result = {arm_of[entry.event.play]: entry.seq for entry in log if isinstance(entry.event, Told)}
    last_set_aside = {entry.event.arm: entry.seq for entry in log if isinstance(entry.event, ArmSetAside)}
    out = experiment.set_aside
    found.set_aside += sum(last_result.get(arm, 0) > last_set_aside[arm] for arm in out)
    results = sum(isinstance(entry.event, Told) for entry in log)
    if results >= ENOUGH_RESULTS:
        best, expected = experiment.best(), undisturbed_best(experiment.name, results)
        if best != expected:
            found.problems.append(f"{experiment.name}: best() is {best}, and {expected} where nothing was disturbed")


def undisturbed_best(name: str, results: int) -> int:
    """The best arm after as many results of the same kind, told one by one to an experiment in memory."""
    experiment, chance = Experiment(POLICIES[name], arms=ARMS, fidelities=FIDELITIES), random.Random(name)
    for _ in range(results):
        play = experiment.ask()
        experiment.tell(play, reward(play, chance))
    return experiment.best()


def _replay(experiment: DurableExperiment, log: Iterable[Entry]) -> None:
    """Make the same experiment in memory, event by event: the policy chooses the same plays, the state is the same."""
    plain = Experiment(POLICIES[experiment.name], arms=ARMS, fidelities=FIDELITIES)
    dues: dict[int, float | None] = {}
    for entry in log:
        _check_rule(plain, entry, dues)
        check_possible(plain.folded, entry.event)
        plain._add(entry.event)
        if isinstance(entry.event, Asked | Renewed):
            dues[entry.event.play] = entry.due
        if isinstance(entry.event, LeasesExtended):
            dues = {play: None if due is None else due + entry.event.seconds for play, due in dues.items()}
    stored, again = state(experiment), state(plain)
    for name, value in again.items():
        if stored[name] != value:
            raise AssertionError(f"{name} must be {value} by the log, and is {stored[name]}")


def _check_rule(plain: Experiment, entry: Entry, dues: dict[int, float | None]) -> None:
    """What no client decides follows from what was there before."""
    event: Event = entry.event
    match event:
        case Asked(_, arm, fidelity):
            if plain._choose() != (arm, fidelity):
                raise AssertionError(f"the policy would have chosen {plain._choose()}, and the log has {event}")
        case ArmSetAside(arm):
            if plain.folded.failures[arm] < FAILURES_IN_A_ROW:
                raise AssertionError(f"{event} came after {plain.folded.failures[arm]} failures")
        case Expired(play):
            due = dues[play]
            if due is None or due > entry.time:
                raise AssertionError(f"{event} came at {entry.time}, and was due at {due}")


def state(experiment: AnyExperiment) -> dict[str, object]:
    """Everything that the log makes, to the last bit."""
    stats = experiment.stats
    arrays = {name: getattr(stats, name) for name in ("counts", "sums", "squares", "pending", "active")}
    pending = [(play_number(play), play.arm, play.fidelity) for play in experiment.pending]
    return {
        **{name: (array.shape, array.tobytes()) for name, array in arrays.items()},
        "pending plays": pending,
        "spent": experiment.spent,
        "reserved": experiment.reserved,
        "arms set aside": experiment.set_aside,
    }
