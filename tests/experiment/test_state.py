import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mfbandit import Fidelities
from mfbandit.experiment.codec import Record, events_of, pack, to_row, unpack
from mfbandit.experiment.events import (
    ArmAdded,
    ArmRetired,
    Asked,
    CapitalSet,
    Event,
    Expired,
    Failed,
    Noted,
    Paused,
    PolicySet,
    Renewed,
    Resumed,
    Told,
)
from mfbandit.experiment.state import Ledger


def ledger():
    made = Ledger(Fidelities([0.1, 1], [0.1, 0]), ["a", "b"])
    made.apply(Asked(0, 0, 0))
    return made


def test_rounding_does_not_build_up_in_what_was_spent():
    made = Ledger(Fidelities([0.1]), ["a"])
    for play in range(1000):
        made.apply(Asked(play, 0, 0))
        made.apply(Told(play, 0.5, 0.1))
    assert made.spent == 0.1 * 1000


@pytest.mark.parametrize(
    "event",
    [
        Asked(5, 0, 0),
        Asked(1, 2, 0),
        Asked(1, -1, 0),
        Asked(1, 0, 2),
        Asked(1, 0.0, 0),  # type: ignore[arg-type]
        Told(1, 0.5, 1.0),
        Told(0, math.nan, 1.0),
        Told(0, "x", 1.0),  # type: ignore[arg-type]
        Told(0, 0.5, -1.0),
        Failed(0, math.inf),
        Failed(3, 0.0),
        ArmAdded("a"),
        ArmAdded(""),
        ArmRetired(2),
        Expired(1),
        Renewed(1),
        Resumed(),
        CapitalSet(-1.0),
        CapitalSet(math.nan),
        PolicySet("UCB"),  # type: ignore[arg-type]
        Noted(5),  # type: ignore[arg-type]
    ],
)
def test_a_log_that_does_not_fit_together(event):
    with pytest.raises(ValueError, match="the log does not fit together"):
        ledger().check(event)


@pytest.mark.parametrize(
    "event",
    [
        Asked(1, 1, 1),
        Told(0, 0.5, 0.0),
        Failed(0, 1),
        ArmAdded("c"),
        ArmRetired(1),
        Expired(0),
        Renewed(0),
        Paused(),
        CapitalSet(None),
        Noted(""),
    ],
)
def test_a_log_that_does(event):
    ledger().check(event)


class TestLateResults:
    def test_an_expired_play_frees_its_capital_and_takes_one_late_result(self):
        made = ledger()
        made.apply(Expired(0))
        assert (made.committed, made.failures, dict(made.pending)) == (0.0, [1, 0], {})
        made.check(Told(0, 0.5, 0.1))
        made.apply(Told(0, 0.5, 0.1))
        assert (made.spent, made.failures, made.stats.counts.tolist()) == (0.1, [0, 0], [[1, 0], [0, 0]])
        with pytest.raises(ValueError, match="does not fit together"):
            made.check(Told(0, 0.5, 0.1))

    def test_failing_an_expired_play_is_not_a_second_failure(self):
        made = ledger()
        made.apply(Expired(0))
        made.apply(Failed(0, 2.0))
        assert (made.failures, made.spent) == ([1, 0], 2.0)
        with pytest.raises(ValueError, match="does not fit together"):
            made.check(Told(0, 0.5, 0.1))


@st.composite
def histories(draw) -> list[Event]:
    """Plays asked, told, failed, expired, renewed and told late, in any order that can happen."""
    events: list[Event] = []
    under_way: list[int] = []
    late: list[int] = []
    asked = 0
    for _ in range(draw(st.integers(0, 60))):
        kind = draw(st.sampled_from(["ask", "ask", "tell", "tell", "fail", "expire", "renew", "late", "late fail"]))
        places = late if kind.startswith("late") else under_way
        if kind == "ask" or not places:
            events.append(Asked(asked, draw(st.integers(0, 3)), draw(st.integers(0, 1))))
            under_way.append(asked)
            asked += 1
            continue
        play = draw(st.sampled_from(places))
        if kind != "renew":
            places.remove(play)
        if kind in ("tell", "late"):
            cost = draw(st.sampled_from([0.1, 1.0, 0.7, 1 / 3]))
            events.append(Told(play, draw(st.sampled_from([0.1, 1 / 3, 1.0, -2.5])), cost))
        elif kind in ("fail", "late fail"):
            events.append(Failed(play, draw(st.sampled_from([0.0, 0.1, 1 / 3]))))
        elif kind == "expire":
            events.append(Expired(play))
            late.append(play)
        else:
            events.append(Renewed(play))
    return events


def everything(made: Ledger):
    stats = made.stats
    arrays = (stats.counts, stats.sums, stats.squares, stats.pending, *made.plays.results())
    outcomes = [made.plays.outcome(play) for play in range(len(made.plays))]
    numbers = (made.spent, made.reserved, made.committed, stats.time, made.failures, list(made.pending))
    return [array.tolist() for array in arrays], outcomes, numbers


@given(histories(), st.integers(0, 60))
def test_many_events_at_once_give_the_same_bits_as_one_by_one(events, cut):
    rows = unpack(b"".join(pack(to_row(Record(seq, 0.0, event))) for seq, event in enumerate(events, start=1)))
    assert list(events_of(rows)) == events
    single, twice = (Ledger(Fidelities([0.1, 1], [0.1, 0]), ["a", "b", "c", "d"]) for _ in range(2))
    for event in events:
        single.check(event)
        single.apply(event)
    twice.apply_all(rows[:cut])
    twice.apply_all(rows[cut:])
    assert everything(twice) == everything(single)


def test_plays_that_are_not_numbered_on():
    rows = unpack(pack(to_row(Record(1, 0.0, Asked(5, 0, 0)))))
    with pytest.raises(ValueError, match="plays must be numbered on from 0"):
        Ledger(Fidelities([1]), ["a"]).apply_all(rows)


def test_rows_cut_off_in_the_middle():
    with pytest.raises(ValueError, match="packed rows must be a multiple of 51 bytes, got 50"):
        unpack(bytes(50))
    assert np.array_equal(unpack(b"")["play"], [])
