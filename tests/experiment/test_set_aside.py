"""Which arms are set aside, what brings them back, and what is said about it."""

import pytest

from mfbandit import MFUCB, UCB, Bounded, CapitalExhausted, Experiment, Fidelities
from mfbandit.experiment.codec import PackedLog
from mfbandit.experiment.events import (
    ArmReinstated,
    ArmRestored,
    ArmSetAside,
    Asked,
    BiasRefuted,
    Expired,
    Failed,
    Told,
)
from mfbandit.experiment.state import State

FID = Fidelities([1], concentration=Bounded())


def make(arms=("a", "b"), **options):
    return Experiment(UCB(), arms=list(arms), fidelities=FID, **options)


def folded(experiment):
    """The state of the same log, all at once."""
    state = State(experiment.policy, experiment.fidelities, experiment.definition["arms"], experiment.capital)
    state.apply_all(PackedLog.of(experiment.log))
    return state


def set_aside(experiment, arm):
    plays = experiment.ask(3 * len(experiment.arms))
    for play in [play for play in plays if play.arm == arm][:3]:
        experiment.fail(play)
    assert experiment.set_aside == (arm,)


class TestExpiredPlays:
    def test_are_not_held_against_their_arm(self):
        experiment = make()
        for play in experiment.ask(16):
            experiment.expire(int(play.id.rpartition("-")[2]))
        assert experiment.set_aside == ()
        assert experiment.folded.failures == folded(experiment).failures == [0, 0]
        assert {type(event).__name__ for event in experiment.log} == {"Asked", "Expired"}

    def test_that_a_worker_reports_as_failed_count(self):
        experiment = make(arms=["a"])
        plays = experiment.ask(3)
        for number, play in enumerate(plays):
            experiment.expire(number)
            experiment.fail(play)
        assert experiment.set_aside == (0,)
        assert folded(experiment).failures == experiment.folded.failures == [3]

    def test_between_failures_change_nothing(self):
        experiment = make(arms=["a"])
        for play in experiment.ask(6):
            number = int(play.id.rpartition("-")[2])
            if number % 2:
                experiment.fail(play)
            else:
                experiment.expire(number)
        assert experiment.set_aside == (0,)

    def test_of_a_dead_node_leave_the_best_arm_in(self):
        experiment = make(arms=["good", "bad"])
        for _ in range(40):
            play = experiment.ask()
            experiment.tell(play, 0.9 if play.label == "good" else 0.1)
        best, dead = experiment.best(), experiment.ask(8)  # one play for each of eight workers
        assert sum(play.arm == best for play in dead) >= 3
        for play in dead:
            experiment.expire(int(play.id.rpartition("-")[2]))
        assert experiment.set_aside == ()
        assert experiment.best() == best == 0


class TestAResultBringsAnArmBack:
    def test_of_a_pending_play(self):
        experiment = make(arms=["a"])
        *failed, pending = experiment.ask(4)
        experiment.fail_many(failed)
        assert experiment.state == "no active arms"
        experiment.tell(pending, 0.5)
        assert (experiment.set_aside, experiment.state) == ((), "running")
        assert experiment.log[-2:] == (Told(3, 0.5, 1.0), ArmRestored(0))
        assert Experiment.from_json(experiment.to_json()).log == experiment.log

    def test_of_a_late_play_and_among_many(self):
        experiment = make(arms=["a"])
        late, *failed, pending = experiment.ask(5)
        experiment.expire(0)
        experiment.fail_many(failed)
        experiment.tell_many([(late, 0.5, None), (pending, 0.25, None)])
        assert experiment.set_aside == ()
        assert experiment.log[-3:] == (Told(0, 0.5, 1.0), ArmRestored(0), Told(4, 0.25, 1.0))

    def test_from_elsewhere(self):
        experiment = make()
        set_aside(experiment, 0)
        (play,) = experiment.add_results([("a", 0, 0.5, None)])
        assert experiment.set_aside == ()
        assert experiment.log[-1] == ArmRestored(play.arm)
        assert Experiment.from_json(experiment.to_json()).log == experiment.log

    def test_before_what_it_refutes(self):
        fidelities = Fidelities([1, 10], [0.01, 0], Bounded())
        experiment = Experiment(MFUCB(), arms=["a"], fidelities=fidelities)
        experiment.add_results([("a", 0, 1.0, None)] * 400)
        experiment.fail_many(experiment.ask(3))
        experiment.add_results([("a", 1, 0.0, None)] * 40)
        kinds = [type(event) for event in experiment.log]
        assert kinds.count(ArmRestored) == 1
        assert kinds.index(ArmRestored) < kinds.index(BiasRefuted)

    def test_but_not_a_retired_one(self):
        experiment = make()
        plays = experiment.ask(8)
        of_a = [play for play in plays if play.arm == 0]
        experiment.fail_many(of_a[:3])
        experiment.retire_arm("a")
        experiment.tell(of_a[3], 0.5)
        assert (experiment.set_aside, experiment.retired) == ((), (0,))
        assert experiment.ask().label == "b"


class TestRetiredArms:
    def test_can_be_brought_back(self):
        experiment = make()
        experiment.retire_arm("a")
        experiment.restore_arm("a")
        assert experiment.retired == ()
        assert experiment.log[-1] == ArmReinstated(0)
        assert experiment.ask().label == "a"
        assert folded(experiment).stats.active.tolist() == [True, True]

    def test_that_were_set_aside_too(self):
        experiment = make()
        set_aside(experiment, 0)
        experiment.retire_arm("a")
        assert experiment.status()["warnings"] == []
        experiment.restore_arm("a")
        assert experiment.log[-2:] == (ArmReinstated(0), ArmRestored(0))
        assert Experiment.from_json(experiment.to_json()).stats.active.tolist() == [True, True]

    def test_in_a_log_that_does_not_fit(self):
        text = make().to_json().replace('"log": []', '"log": [{"event": "ArmReinstated", "arm": 0}]')
        with pytest.raises(ValueError, match="does not fit together"):
            Experiment.from_json(text)

    def test_restored_in_an_earlier_log_stay_retired(self):
        experiment = make()
        set_aside(experiment, 0)
        experiment.retire_arm("a")
        state = folded(experiment)
        state.apply(ArmRestored(0))
        assert (state.retired, state.stats.active.tolist()) == ({0}, [False, True])


def test_an_earlier_log_sets_aside_what_it_says():
    state = State(UCB(), FID, ["a", "b"])
    for play in range(3):
        state.apply(Asked(play, arm=0, fidelity=0))
        state.apply(Expired(play))
    state.apply(ArmSetAside(0))
    state.apply(Failed(0, 0.0))
    assert state.aside == {0}


class TestWarnings:
    def test_name_every_arm_that_is_set_aside(self):
        experiment = make(arms=["ad-1", "ad-2", "ad-3"])
        set_aside(experiment, 2)
        said = "WARNING: ad-3 was set aside after 3 failures in a row; `restore_arm` brings it back"
        assert experiment.status()["warnings"] == [said]
        experiment.restore_arm("ad-3")
        assert experiment.status()["warnings"] == []

    def test_of_many_arms_are_few(self):
        experiment = make(arms=[f"ad-{k}" for k in range(8)])
        for play in experiment.ask(24):
            experiment.fail(play)
        *named, rest = experiment.status()["warnings"]
        assert [text.split()[1] for text in named] == ["ad-0", "ad-1", "ad-2", "ad-3", "ad-4"]
        assert rest == "WARNING: 3 more arms were set aside after 3 failures in a row; `restore_arm` brings them back"


class TestSpendingBeyondTheCapital:
    def test_by_late_results_is_said_and_leaves_nothing_to_ask_for(self):
        experiment = make(arms=["a"], capital=20)
        late = [play for _ in range(3) for play in _expired(experiment)]
        assert len(late) == 60
        experiment.tell_many([(play, 0.5, None) for play in late])
        assert (experiment.spent, experiment.stats.counts.sum()) == (60.0, 60)
        said = "WARNING: spent 60 of 20: results came after their plays had expired"
        assert experiment.status()["warnings"] == [said]
        assert (experiment.state, folded(experiment).late) == ("exhausted", 60)
        with pytest.raises(CapitalExhausted, match="only 0 of the capital 20 is left"):
            experiment.ask()
        experiment.set_capital(100)
        assert experiment.status()["warnings"] == []

    def test_by_costs_is_said_otherwise(self):
        experiment = make(arms=["a"], capital=20)
        experiment.tell(experiment.ask(), 0.5, cost=30)
        assert experiment.status()["warnings"] == ["WARNING: spent 30 of 20: results cost more than was left"]


def _expired(experiment):
    plays = experiment.ask(20)
    for play in plays:
        experiment.expire(int(play.id.rpartition("-")[2]))
    return plays
