"""Plays that go on from earlier ones: what they cost, and what the log says of it."""

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mfbandit import Bounded, Experiment, Fidelities, Gaussian, HalfLife, MFTopTwo, Problem, Stats, Store, connect
from mfbandit.core import STATS_ARRAYS
from mfbandit.errors import InvalidArgument
from mfbandit.experiment.codec import PackedLog
from mfbandit.experiment.state import State
from tests.support.effort import examples
from tests.support.services import served

COSTS = [1.0, 4.0, 16.0]
FID = Fidelities(COSTS, resume=True)


class Scripted:
    """Plays what it is told next."""

    uses_biases = False

    def __init__(self, plays):
        self.script = list(plays)

    def choose(self, stats, _):
        return self.script.pop(0) if self.script else (int(np.argmax(stats.active)), 0)

    def index(self, stats, _):
        return np.zeros(len(stats.active))

    def recommend(self, stats, _):
        return int(np.argmax(stats.active))


def scripted(*plays: tuple[int, int], arms: int = 2, **options: Any) -> Any:
    policy: Any = Scripted([(0, 0)])  # it is asked once on trial
    exp = Experiment(policy, arms=arms, fidelities=FID, **options)
    policy.script.extend(plays)
    return exp


def same(one, other):
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in STATS_ARRAYS)


def test_a_play_goes_on_from_the_highest_below():
    exp = scripted((0, 0), (0, 1), (0, 2), (0, 2))
    for cost, start in ((1, None), (3, 0), (12, 1), (16, None)):
        play = exp.ask()
        assert (play.cost, play.resume_from) == (cost, start)
        assert exp.reserved == cost
        exp.tell(play, 0.5)
    assert exp.spent == 32
    assert exp.stats.states.tolist() == [[0, 0], [0, 0], [2, 0]]
    assert exp.stats.resumed.tolist() == [[1, 0], [1, 0], [0, 0]]


def test_a_play_that_fails_gives_back_what_it_went_on_from():
    exp = scripted((0, 0), (0, 1), (0, 1), (0, 2))
    exp.tell(exp.ask(), 0.5)
    exp.fail(exp.ask())
    play = exp.ask()
    assert play.resume_from == 0
    other = exp.ask()
    assert other.resume_from is None  # the first has taken it
    exp.tell(other, 0.5)
    exp.tell(play, 0.5, cost=4.0)  # its state was lost, and it began anew
    assert exp.spent == 1 + 16 + 4


def test_an_arm_that_is_out_has_no_states():
    exp = scripted((0, 0), (1, 0), (0, 2), (1, 2), (1, 2))
    for _ in range(2):
        exp.tell(exp.ask(), 0.5)
    exp.retire_arm(0)
    assert exp.stats.states.tolist() == [[0, 1], [0, 0], [0, 0]]
    exp.restore_arm(0)
    assert exp.ask().resume_from is None
    pending = exp.ask()
    assert pending.resume_from == 0
    exp.retire_arm(1)
    exp.fail(pending)
    assert not exp.stats.states.any()


def test_a_forgotten_arm_begins_anew():
    exp = scripted((0, 0), (0, 0), (0, 1), (0, 2))
    exp.tell(exp.ask(), 0.5)
    exp.tell(exp.ask(), 0.5)
    pending = exp.ask()
    exp.forget(0)
    assert exp.stats.resumed.tolist() == [[1, 0], [0, 0], [0, 0]]
    assert exp.reserved == pending.cost == 3
    assert exp.ask().resume_from is None


def test_an_expired_play_leaves_its_state_to_others():
    exp = scripted((0, 0), (0, 1), (0, 1))
    exp.tell(exp.ask(), 0.5)
    late = exp.ask()
    exp.expire(1)
    again = exp.ask()
    assert again.resume_from == late.resume_from == 0
    exp.tell(late, 0.5)
    exp.tell(again, 0.5)
    assert exp.spent == 1 + 3 + 3
    assert exp.stats.resumed[0, 0] == 2
    assert exp.stats.states.tolist() == [[0, 0], [2, 0], [0, 0]]


STEPS = st.lists(
    st.tuples(st.sampled_from("attttfxrRF"), st.integers(0, 9), st.integers(0, 2), st.integers(0, 2)), max_size=60
)


def walk(steps):  # noqa: PLR0912 - a branch for each thing that can happen
    """An experiment after random steps, and what was asked, told and failed, by a plain account of states."""
    exp = scripted(arms=3)
    states: Any = Counter()
    starts: dict[str, int | None] = {}
    spent = 0.0
    for kind, number, arm, fidelity in steps:
        pending = exp.pending
        if kind == "a" or not pending:
            active = [k for k in range(3) if exp.stats.active[k]]
            exp.policy.script.insert(0, (arm if arm in active else active[0], fidelity))
            play = exp.ask()
            below = [m for m in range(fidelity) if states[play.arm, m]]
            starts[play.id] = max(below, default=None)
            assert play.resume_from == starts[play.id]
            assert play.cost == COSTS[fidelity] - (COSTS[max(below)] if below else 0)
            states[play.arm, play.resume_from] -= 1
        elif kind in "tfx":
            play = pending[number % len(pending)]
            active = exp.stats.active[play.arm]
            if kind == "t":
                exp.tell(play, 0.25)
                spent += play.cost
                states[play.arm, play.fidelity] += active
            else:
                exp.fail(play) if kind == "f" else exp.expire(exp.number(play))
                states[play.arm, starts[play.id]] += active
            if not exp.stats.active[play.arm]:
                states = Counter({at: n for at, n in states.items() if at[0] != play.arm})
        elif kind == "r" and len(exp.retired) < 2 and arm not in exp.retired:
            exp.retire_arm(arm)
        elif kind == "R" and (arm in exp.retired or arm in exp.set_aside):
            exp.restore_arm(arm)
        elif kind == "F":
            exp.forget(arm)
            if not exp.stats.counts[:, arm].any() and any(states[arm, m] for m in range(3)):
                states = Counter({at: n for at, n in states.items() if at[0] != arm})
        if not exp.stats.active.any():
            exp.restore_arm(0)
        for k in range(3):
            if not exp.stats.active[k]:
                states = Counter({at: n for at, n in states.items() if at[0] != k})
        known = [[max(states[k, m], 0) for k in range(3)] for m in range(3)]
        assert exp.stats.states.tolist() == known
        assert exp.spent == spent
        assert exp.reserved == sum(play.cost for play in exp.pending)
    return exp


@given(steps=STEPS)
@settings(max_examples=examples(150), deadline=None)
def test_any_history(steps):
    exp = walk(steps)
    again: Any = Experiment.from_json(exp.to_json(), policy=exp.policy)
    assert same(again.stats, exp.stats)
    assert (again.spent, again.reserved) == (exp.spent, exp.reserved)
    packed: Any = State(exp.policy, FID, exp.arms)
    packed.apply_all(PackedLog.of(exp.log))
    assert same(packed.stats, exp.stats)
    assert packed.training.starts == again._state.training.starts
    assert (exp.stats.states >= 0).all()
    assert (exp.stats.resumed >= 0).all()


def test_next_costs_are_what_plays_cost():
    exp = scripted(*[(0, 0), (1, 1), (0, 1)])
    for _ in range(2):
        exp.tell(exp.ask(), 0.5)
    costs = exp.stats.next_costs(COSTS)
    for arm in range(2):
        for m in range(3):
            copy = Experiment.from_json(exp.to_json(), policy=exp.policy)
            exp.policy.script.insert(0, (arm, m))
            assert copy.ask().cost == costs[m, arm]


def test_the_capital_pays_for_what_a_play_adds():
    exp = scripted((0, 0), (0, 2), capital=16.0)
    exp.tell(exp.ask(), 0.5)
    assert exp.ask().cost == 15
    assert exp.state == "exhausted"


def test_old_records_have_no_such_thing():
    exp = Experiment(MFTopTwo(9), arms=2, fidelities=Fidelities(COSTS), capital=40)
    assert "resume" not in exp.definition["fidelities"]
    assert exp.stats.states is None
    assert exp.stats.resumed is None
    assert exp.stats.next_costs(COSTS).tolist() == [[cost] * 2 for cost in COSTS]


def test_more_arms_have_states():
    exp = scripted((2, 0), (2, 1), arms=2)
    exp.add_arm("new")
    exp.tell(exp.ask(), 0.5)
    assert exp.ask().cost == 3
    assert exp.stats.top.states.shape == exp.stats.top.resumed.shape == (1, 3)


def test_stores_and_services_carry_it(tmp_path):
    place = tmp_path / "exp.db"
    options: dict[str, Any] = {"arms": 2, "fidelities": FID, "capital": 60}
    with Store(place) as store:
        exp = store.create("one", MFTopTwo(60), **options)
        for play in exp.plays():
            exp.tell(play, 0.1 * play.arm)
        seen, plays = exp.stats, exp.spent
    with Store(place) as store:
        exp = store.open("one")
        assert exp.fidelities == FID
        assert same(exp.stats, seen)
        assert exp.spent == plays
        assert same(Experiment.from_json(exp.to_json()).stats, seen)
    with served(place) as service, connect(service.url) as remote:
        assert same(remote.open("one").stats, seen)
        there = remote.create("two", MFTopTwo(60), **options)
        here = Experiment(MFTopTwo(60), **options)
        while here.state == "running":
            play, other = here.ask(), there.ask()
            assert (play.cost, play.resume_from) == (other.cost, other.resume_from)
            here.tell(play, 0.1 * play.arm)
            there.tell(other, 0.1 * other.arm)
        assert there.fidelities == FID
        assert same(there.stats, here.stats)
        assert there.spent == here.spent


def test_what_is_refused():
    with pytest.raises(InvalidArgument, match="resume must be True or False, got 1"):
        Fidelities([1, 2], resume=1)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="memory must be None where plays resume, got HalfLife"):
        scripted(memory=HalfLife(plays=5))
    exp = scripted()
    with pytest.raises(InvalidArgument, match="fidelities must resume as before or not, got resume=False"):
        exp.set_fidelities(Fidelities(COSTS))
    with pytest.raises(InvalidArgument, match="fidelities of a problem must not resume"):
        Problem([[0.5], [0.5]], Fidelities([1, 2], [0.1, 0], Bounded(), resume=True), Gaussian(0.1))


def test_statistics_without_states():
    stats: Any = Stats.empty(2, 1)
    assert stats.start(0, 1) is None
    assert stats.with_states().with_states().states.tolist() == [[0], [0]]
    assert stats.with_states().copy().resumed.tolist() == [[0], [0]]
