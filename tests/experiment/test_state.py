import math
from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mfbandit import UCB, Fidelities, MFBayes, SubGaussian
from mfbandit.core import STATS_ARRAYS
from mfbandit.errors import InvalidArgument
from mfbandit.experiment.codec import PackedLog, unpack
from mfbandit.experiment.events import (
    KINDS,
    ArmAdded,
    ArmForgotten,
    ArmNoted,
    ArmRetired,
    Asked,
    CapitalSet,
    Decided,
    DriftFound,
    Expired,
    Failed,
    FidelitiesSet,
    Noted,
    Paused,
    PolicySet,
    Renewed,
    Resumed,
    SharesSet,
    StopSet,
    Told,
)
from mfbandit.experiment.history import History
from mfbandit.experiment.log_check import check_possible
from mfbandit.experiment.serialization import fidelities_record
from mfbandit.experiment.state import State
from tests.support.effort import examples
from tests.support.logs import ARMS, FIDELITIES, POLICIES, begun, logs


def state():
    made = State(UCB(), Fidelities([0.1, 1], [0.1, 0], SubGaussian(0.2)), ["a", "b"])
    made.apply(Asked(0, 0, 0))
    return made


def test_rounding_does_not_build_up_in_what_was_spent():
    made = State(UCB(), Fidelities([0.1], concentration=SubGaussian(0.2)), ["a"])
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
        ArmNoted(2, "hello"),
        ArmNoted(0, 5),  # type: ignore[arg-type]
        StopSet({"level": 2}),
        StopSet({"sure": 0.9}),
        StopSet("Sure"),  # type: ignore[arg-type]
        SharesSet({"control": 2, "control_share": 0.1}),
        SharesSet({"least_share": 0.6}),
        SharesSet({"share": 0.6}),
        SharesSet("none"),  # type: ignore[arg-type]
        Decided(2, 0.95, 0.0, 0.0, "valid"),
        Decided(0, math.nan, 0.0, 0.0, "valid"),
        Decided(0, 0.95, -1.0, 0.0, "valid"),
        Decided(0, 0.95, 0.0, None, "valid"),  # type: ignore[arg-type]
        Decided(0, 0.95, 0.0, 0.0, "guess"),
        ArmForgotten(2),
        ArmForgotten("a"),  # type: ignore[arg-type]
        DriftFound(0, 0, 0, 0, 0.5, 0.25),
        DriftFound(2, 0, 0, 0, 0.5, 0.25),
    ],
)
def test_a_log_that_does_not_fit_together(event):
    with pytest.raises(ValueError, match="the log does not fit together"):
        check_possible(state(), event)


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
        ArmNoted(1, "hello"),
        StopSet(None),
        SharesSet(None),
        SharesSet({"control": 1, "control_share": 0.1, "least_share": 0.5}),
        StopSet({"level": 0.9, "tolerance": 0.1, "estimates": True}),
        Decided(1, 0.95, 0.0, 0.0, "valid"),
        Decided(1, None, None, 0.0, "policy"),
        ArmForgotten(1),
    ],
)
def test_a_log_that_does(event):
    check_possible(state(), event)


class TestLateResults:
    def test_an_expired_play_frees_its_capital_and_takes_one_late_result(self):
        made = state()
        made.apply(Expired(0))
        assert (made.committed, made.failures, dict(made.pending)) == (0.0, [0, 0], {})
        check_possible(made, Told(0, 0.5, 0.1))
        made.apply(Told(0, 0.5, 0.1))
        assert (made.spent, made.failures, made.stats.counts.tolist()) == (0.1, [0, 0], [[1, 0], [0, 0]])
        with pytest.raises(ValueError, match="does not fit together"):
            check_possible(made, Told(0, 0.5, 0.1))

    def test_failing_an_expired_play_is_a_failure(self):
        made = state()
        made.apply(Expired(0))
        made.apply(Failed(0, 2.0))
        assert (made.failures, made.spent) == ([1, 0], 2.0)
        with pytest.raises(ValueError, match="does not fit together"):
            check_possible(made, Told(0, 0.5, 0.1))


def everything(made: State):
    stats = made.stats
    history = [getattr(made.plays.results(), field.name) for field in fields(History)]
    arrays = [*(getattr(stats, name) for name in STATS_ARRAYS if getattr(stats, name) is not None), *history]
    outcomes = [made.plays.outcome(play) for play in range(len(made.plays))]
    numbers = (made.spent, made.reserved, made.committed, stats.time, made.failures, made.late, list(made.pending))
    settings = (made.capital, made.policy, made.fidelities, made.labels, made.index, made.paused)
    stopping = (made.stop, made.policy_decides, made.decided)
    sets = (
        made.retired,
        made.aside,
        made.refuted,
        repr(stats.memory),
        made.shares,
        None if made.quota is None else vars(made.quota),
    )
    cells = [(m, arm) for m in range(2) for arm in range(len(made.labels))]
    marks, forgotten = [made.changes.marks(cell) for cell in cells], (made.forgotten.arms, made.roster)
    told = (made.results_at.tolist(), made.observations_at.tolist(), marks, made.drifted, forgotten)
    return [array.tolist() for array in arrays], outcomes, numbers, settings, stopping, sets, told


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: type(policy).__name__)
@given(data=st.data())
def test_many_events_at_once_give_the_same_bits_as_one_by_one(policy, data):
    records = data.draw(logs(policy))
    cut = data.draw(st.integers(0, len(records)))
    assert list(PackedLog.of_records(records).events()) == [record.event for record in records]
    single, twice = begun(policy), begun(policy)
    for record in records:
        check_possible(single, record.event)
        single.apply(record.event)
    twice.apply_all(PackedLog.of_records(records[:cut]))
    twice.apply_all(PackedLog.of_records(records[cut:]))
    assert everything(twice) == everything(single)


@settings(max_examples=examples(60))
@given(logs())
def test_what_is_kept_up_for_bounds_is_what_would_be_computed_anew(records):
    made = State(UCB(), FIDELITIES, ARMS, 1e6)
    for record in records:
        made.apply(record.event)
        shown, anew = made.stats, made.stats.copy()
        for name in ("means_or_infinity", "root_observations", "observations"):
            assert np.array_equal(getattr(shown, name), getattr(anew, name)), name
        assert shown.time == anew.time + sum(made.forgotten.results)  # plays of an arm that was begun anew count in t
        assert not shown.means_or_infinity.flags.writeable or made.blocks is not None


@pytest.mark.no_cover
def test_the_logs_have_every_kind_of_event():
    seen: set[type] = set()

    @settings(max_examples=examples(300), database=None)
    @given(logs())
    def look(records):
        seen.update(type(record.event) for record in records)

    look()
    assert seen == set(KINDS)


class TestOtherFidelities:
    def test_what_was_paid_stays_paid_and_pending_plays_cost_what_they_cost_now(self):
        made = begun()
        for event in (Asked(0, 0, 1), Told(0, 0.5, 1.0), Asked(1, 0, 1)):
            made.apply(event)
        made.apply(FidelitiesSet(fidelities_record(Fidelities([0.2, 3], [0.1, 0], SubGaussian(0.2)))))
        assert (made.spent, made.reserved, made.fidelities.costs) == (1.0, 3.0, (0.2, 3.0))

    def test_a_policy_remembers_what_it_would_have_with_them_from_the_start(self):
        better = Fidelities([0.2, 1.5], [0.1, 0], SubGaussian(0.3))
        changed, from_the_start = begun(MFBayes()), State(MFBayes(), better, ARMS, 1e6)
        rng = np.random.default_rng(0)
        for play in range(60):
            arm, fidelity, reward = int(rng.integers(4)), int(rng.integers(2)), float(rng.normal())
            for made in (changed, from_the_start):
                made.apply(Asked(play, arm, fidelity))
                made.apply(Told(play, reward, 0.7))
        assert repr(changed.stats.memory) != repr(from_the_start.stats.memory)
        changed.apply(FidelitiesSet(fidelities_record(better)))
        assert repr(changed.stats.memory) == repr(from_the_start.stats.memory) != "None"


def test_plays_that_are_not_numbered_on():
    with pytest.raises(InvalidArgument, match="plays must be numbered on from 0"):
        begun().apply_all(PackedLog.of([Asked(5, 0, 0)]))


def test_rows_cut_off_in_the_middle():
    with pytest.raises(ValueError, match="packed rows must be a multiple of 51 bytes, got 50"):
        unpack(bytes(50))
    assert np.array_equal(unpack(b"")["play"], [])
