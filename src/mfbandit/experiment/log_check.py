"""Whether an event can have happened now: for logs that come from outside."""

from typing import Any

from mfbandit._internal.validation import LARGEST_NUMBER
from mfbandit.core import Batch, Counts
from mfbandit.errors import InvalidArgument
from mfbandit.experiment.events import (
    ArmAdded,
    ArmForgotten,
    ArmNoted,
    ArmReinstated,
    ArmRestored,
    ArmRetired,
    ArmSetAside,
    Asked,
    BiasesSet,
    BiasesWidened,
    BiasRefuted,
    CapitalSet,
    Decided,
    DriftFound,
    Event,
    Expired,
    Failed,
    FidelitiesSet,
    LeasesExtended,
    Noted,
    Opened,
    Paused,
    PolicySet,
    Renewed,
    Resumed,
    SharesSet,
    StopSet,
    TimePassed,
    Told,
    ToldBatch,
    ToldInBlock,
    Unchanged,
    told,
)
from mfbandit.experiment.incarnations import PATTERN
from mfbandit.experiment.shares import shares_from_record
from mfbandit.experiment.state import State
from mfbandit.experiment.stopping import stop_from_record


def check_possible(state: State, event: Event) -> None:
    """Refuse an event that cannot have happened in this state.

    >>> from mfbandit import UCB, Bounded, Fidelities
    >>> check_possible(State(UCB(), Fidelities([1], concentration=Bounded()), ["a"]), Told(7, 0.5, 1.0))
    Traceback (most recent call last):
    mfbandit.errors.InvalidArgument: the log does not fit together:
    Told(play=7, reward=0.5, cost=1.0) after 0 plays of 1 arms
    """
    about = (
        _about_plays,
        _about_arms,
        _about_settings,
        _about_the_store,
        _about_fidelities,
        _about_stopping,
        _about_shares,
    )
    if not any(possible(state, event) for possible in (*about, _about_shares)):
        raise InvalidArgument(
            f"the log does not fit together: {event} after {len(state.plays)} plays of {len(state.labels)} arms"
        )


def _about_plays(state: State, event: Event) -> bool:
    match event:
        case Asked(play, arm, fidelity):
            known = _below(arm, len(state.labels)) and _below(fidelity, len(state.fidelities))
            # A past result of an arm that was set aside brings it back, right after its play.
            return _is_int(play) and play == len(state.plays) and known and arm not in state.retired
        case Told(play, reward, cost):
            return _open(state, play) and _finite(reward) and _finite(cost) and cost >= 0 and _is_result(event)
        case Failed(play, cost):
            return _open(state, play) and _finite(cost) and cost >= 0
        case Expired(play) | Renewed(play):
            return _is_int(play) and play in state.pending
    return False


def _about_arms(state: State, event: Event) -> bool:
    arms = len(state.labels)
    match event:
        case ArmAdded(label):
            return isinstance(label, str) and bool(label) and label not in state.index
        case ArmRetired(arm):
            return _below(arm, arms) and len(state.retired | {arm}) < arms
        case ArmSetAside(arm) | ArmForgotten(arm):
            return _below(arm, arms)
        case ArmRestored(arm):
            return _is_int(arm) and arm in state.aside
        case ArmReinstated(arm):
            return _is_int(arm) and arm in state.retired
    return False


def _about_settings(state: State, event: Event) -> bool:
    match event:
        case Paused() | Resumed():
            return state.paused is isinstance(event, Resumed)
        case CapitalSet(capital):
            return capital is None or (_finite(capital) and capital > 0)
        case PolicySet(policy):
            return isinstance(policy, dict)
        case Noted(text):
            return isinstance(text, str)
        case ArmNoted(arm, text):
            return _below(arm, len(state.labels)) and isinstance(text, str)
    return False


def _are_shares(record: dict[str, Any] | None, state: State) -> bool:
    try:
        shares = shares_from_record(record)
        shares.check(len(state.labels) - len(state.retired))
    except InvalidArgument:
        return False
    return shares.control is None or _below(shares.control, len(state.labels))


def _about_shares(state: State, event: Event) -> bool:
    return isinstance(event, SharesSet) and _are_shares(event.shares, state)


def _about_the_store(_: State, event: Event) -> bool:
    match event:
        case Unchanged():
            return True
        case TimePassed(at):
            return _finite(at)
        case LeasesExtended(seconds):
            return _finite(seconds)
        case Opened(incarnation):
            return isinstance(incarnation, str) and PATTERN.fullmatch(incarnation) is not None
    return False


def _about_fidelities(state: State, event: Event) -> bool:
    number = len(state.fidelities)
    match event:
        case BiasRefuted(fidelity, arm, needed):
            return _below(fidelity, number - 1) and _below(arm, len(state.labels)) and _finite(needed)
        case DriftFound(fidelity, arm, since, results, before, after):
            known = _below(fidelity, number) and _below(arm, len(state.labels))
            seen = known and _below(since, state.observations_of(fidelity, arm))
            return seen and _below(results, len(state.plays.told)) and _finite(before) and _finite(after)
        case BiasesSet(biases) | BiasesWidened(biases):
            return isinstance(biases, list | tuple) and len(biases) == number
        case FidelitiesSet(fidelities):
            told = fidelities if isinstance(fidelities, dict) else {}
            costs, resumes = told.get("costs"), told.get("resume", False)
            return isinstance(costs, list | tuple) and len(costs) == number and resumes == state.fidelities.resume
    return False


def _about_stopping(state: State, event: Event) -> bool:
    match event:
        case StopSet(stop):
            return _is_rule(stop)
        case Decided(arm, level, could_lose, tolerance, kind):
            numbers = all(value is None or (_finite(value) and value >= 0) for value in (level, could_lose))
            known = kind in ("valid", "estimate", "policy") and _finite(tolerance) and tolerance >= 0
            return state.decided is None and _below(arm, len(state.labels)) and numbers and known
    return False


def _is_rule(stop: dict[str, Any] | None) -> bool:
    try:
        stop_from_record(stop)
    except InvalidArgument:
        return False
    return True


def _open(state: State, play: int) -> bool:
    return _is_int(play) and 0 <= play < len(state.plays) and state.plays.takes_outcome(play)


def _is_result(event: Told) -> bool:
    """Whether the observations of a result, if they are many, say what its reward is."""
    if not isinstance(event, ToldBatch):
        return True
    weight, sd, successes = event.weight, event.sd, event.successes
    block = event.block if isinstance(event, ToldInBlock) else None
    try:
        given = Batch(event.reward, weight, sd, block) if successes is None else Counts(successes, weight, block)
    except InvalidArgument:
        return False
    return told(event.play, given, event.cost) == event


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _below(index: int, limit: int) -> bool:
    return _is_int(index) and 0 <= index < limit


def _finite(number: float) -> bool:
    return isinstance(number, int | float) and abs(number) <= LARGEST_NUMBER
