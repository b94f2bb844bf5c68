"""Rules for stopping: when an experiment is decided, that it stays so, and how a person goes on."""

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import mfbandit as mfb
from mfbandit.experiment.events import Decided, StopSet
from tests.support.services import served

FID = mfb.Fidelities([1, 10], [0.1, 0], mfb.SubGaussian(0.2))
POLICY, CAREFUL = mfb.MFUCB(), mfb.MFSure(delta=1e-9)
ARMS = ["a", "b", "c"]
MEANS = {"a": 0.2, "b": 0.8, "c": 0.4}
CLEAR = [(arm, 1, mean, None) for arm, mean in MEANS.items() for _ in range(8)]  # b is the best, 95 % sure


@pytest.fixture(params=["memory", "store", "service"])
def make(request, tmp_path):
    """Makes an experiment of each kind."""
    if request.param == "memory":
        yield lambda policy=POLICY, **more: mfb.Experiment(policy, arms=ARMS, fidelities=FID, **more)
    elif request.param == "store":
        with mfb.Store(tmp_path / "a.db") as store:
            yield lambda policy=POLICY, **more: store.create("ads", policy, arms=ARMS, fidelities=FID, **more)
    else:
        with served(tmp_path / "a.db") as service, mfb.connect(service.url) as store:
            yield lambda policy=POLICY, **more: store.create("ads", policy, arms=ARMS, fidelities=FID, **more)


def in_memory(**more):
    return mfb.Experiment(mfb.MFUCB(), arms=ARMS, fidelities=FID, **more)


def of_stopping(experiment):
    return [event for event in experiment.log if isinstance(event, StopSet | Decided)]


class TestEverywhere:
    def test_asks_end_when_it_is_sure(self, make):
        experiment = make(mfb.UCB(), stop=mfb.Sure(0.95), capital=1e4)
        for play in experiment.plays():
            experiment.tell(play, MEANS[play.label])
        decided = experiment.decided
        assert decided is not None
        assert (experiment.state, decided.arm, decided.kind, decided.could_lose) == ("decided", 1, "valid", 0.0)
        assert 0.95 <= decided.level < 1
        assert experiment.log[-1] == decided
        assert experiment.spent < 1e4
        said = r"The experiment is decided: b \(arm 1\) is the best, 9\d(\.\d+)? % sure; set_stop goes on"
        with pytest.raises(mfb.ExperimentDecided, match=said):
            experiment.ask()
        status = experiment.status()
        assert (status["state"], status["decided"]["arm"], status["stop"]["level"]) == ("decided", 1, 0.95)

    def test_a_person_goes_on(self, make):
        experiment = make(stop=mfb.Sure(0.95))
        experiment.add_results(CLEAR)
        assert experiment.state == "decided"
        experiment.set_stop(mfb.Sure(0.999999, tolerance=0.0))
        assert (experiment.state, experiment.decided) == ("running", None)
        assert experiment.stop == mfb.Sure(0.999999)
        experiment.tell(experiment.ask(), 0.5)
        experiment.set_stop(None)
        assert experiment.stop is None
        experiment.ask(30)
        experiment.set_stop(mfb.Sure(0.9))  # which holds already
        first, strict, none, easy, last = of_stopping(experiment)
        assert (type(first), type(last)) == (Decided, Decided)
        assert [event.stop and event.stop["level"] for event in (strict, none, easy)] == [0.999999, None, 0.9]

    def test_the_same_rule_again_tests_anew(self, make):
        experiment = make(stop=mfb.Sure(0.95))
        experiment.set_stop(mfb.Sure(0.95))
        assert of_stopping(experiment) == []
        experiment.add_results(CLEAR)
        experiment.set_stop(experiment.stop)
        assert [type(event) for event in of_stopping(experiment)] == [Decided, StopSet, Decided]

    def test_it_is_kept_as_json(self, make):
        experiment = make(stop=mfb.Sure(0.95, tolerance=0.01))
        experiment.add_results(CLEAR)
        again = mfb.Experiment.from_json(experiment.to_json())
        assert (again.stop, again.decided, again.state) == (experiment.stop, experiment.decided, "decided")
        assert again.log == experiment.log

    def test_decided_comes_before_paused(self, make):
        experiment = make(stop=mfb.Sure(0.95))
        experiment.pause()
        experiment.add_results(CLEAR)
        assert (experiment.state, experiment.paused) == ("decided", True)
        experiment.set_stop(None)
        assert (experiment.state, experiment.paused) == ("paused", True)


class TestInput:
    @pytest.mark.parametrize(
        ("fields", "said"),
        [
            ({"level": 0}, "level must lie strictly between 0 and 1, got 0"),
            ({"level": 1.0}, "level must lie strictly between 0 and 1, got 1"),
            ({"level": 95}, "level must lie strictly between 0 and 1, got 95"),
            ({"level": float("nan")}, "level must be finite, got nan"),
            ({"level": "95 %"}, "level must be a number, got '95 %'"),
            ({"tolerance": -0.01}, "tolerance must be at least 0, got -0.01"),
            ({"tolerance": None}, "tolerance must be a number, got None"),
            ({"estimates": 1}, "estimates must be True or False, got 1"),
        ],
    )
    def test_of_a_rule(self, fields, said):
        with pytest.raises(ValueError, match=f"^{said}$"):
            mfb.Sure(**fields)

    def test_of_an_experiment(self):
        with pytest.raises(ValueError, match=r"^stop must be a Sure or None, got 0\.95$"):
            in_memory(stop=0.95)
        experiment = in_memory()
        with pytest.raises(ValueError, match=r"^stop must be a Sure or None, got <class 'mfbandit"):
            experiment.set_stop(mfb.Sure)
        with pytest.raises(ValueError, match=r"^until must be a Sure or None, got 0\.95$"):
            experiment.plays(until=0.95)

    def test_an_experiment_without_a_rule_is_written_as_before(self):
        assert "stop" not in json.loads(in_memory().to_json())
        assert "stop" not in in_memory().definition


class TestWhatHappensAroundADecision:
    def test_pending_plays_and_late_results(self, make):
        sure = in_memory()
        sure.add_results(CLEAR)
        rule = mfb.Sure(1 - 1.1 * (1 - sure.confidence().level))  # which is just met
        experiment = make(stop=rule)
        failed, told = experiment.ask(2)
        experiment.add_results(CLEAR)
        decided = experiment.decided
        assert decided is not None
        assert len(experiment.pending) == 2
        experiment.tell(told, 0.1)  # of the best arm
        experiment.fail(failed)
        assert not experiment.is_sure(rule)
        assert (experiment.decided, experiment.state, experiment.pending) == (decided, "decided", ())
        experiment.set_stop(rule)
        assert experiment.state == "running"

    def test_plays_that_were_asked_together_go_on(self):
        experiment = mfb.Experiment(mfb.UCB(), arms=ARMS, fidelities=FID, stop=mfb.Sure(0.95))
        plays = experiment.ask(60)
        for play in plays:
            experiment.tell(play, MEANS[play.label])
        assert experiment.decided is not None
        assert not experiment.pending

    def test_an_arm_that_is_added_later(self):
        experiment = in_memory(stop=mfb.Sure(0.95))
        experiment.add_results(CLEAR)
        decided = experiment.decided
        experiment.add_arm("d")
        assert experiment.decided == decided
        with pytest.raises(mfb.ExperimentDecided):
            experiment.ask()
        experiment.set_stop(experiment.stop)
        assert (experiment.state, experiment.confidence().level) == ("running", 0.0)
        assert experiment.ask().label == "d"
        experiment.add_results([("d", 1, 0.1, None)] * 4)
        assert experiment.state == "running"  # with four results it is sure of the first arms alone
        experiment.add_results([(arm, 1, mean, None) for arm, mean in {**MEANS, "d": 0.1}.items()] * 40)
        assert experiment.decided.arm == 1

    def test_weights_are_kept_back_for_later_arms(self):
        """A change costs evidence: what was enough for a fixed set of arms is not enough after one came and went."""
        fixed, changed = in_memory(stop=mfb.Sure(0.95)), in_memory(stop=mfb.Sure(0.95))
        changed.add_arm("d")
        changed.retire_arm("d")
        needed = [0, 0]
        for i, experiment in enumerate((fixed, changed)):
            while experiment.decided is None:
                experiment.add_results([(arm, 1, mean, None) for arm, mean in MEANS.items()])
                needed[i] += 1
        assert needed[0] < needed[1]

    def test_retiring_the_last_rival_decides(self, make):
        experiment = make(stop=mfb.Sure(0.95))
        experiment.add_results([(arm, 1, 0.5 - i / 100, None) for i, arm in enumerate(ARMS)] * 3)
        experiment.retire_arm("b")
        assert experiment.state == "running"
        experiment.retire_arm("c")
        assert (experiment.state, experiment.decided.arm) == ("decided", 0)

    def test_an_arm_that_was_set_aside_may_come_back(self):
        experiment = mfb.Experiment(mfb.UCB(), arms=["a", "b"], fidelities=FID, stop=mfb.Sure(0.95))
        experiment.add_results([("a", 1, 0.8, None)] * 9)
        for _ in range(3):
            experiment.fail(experiment.ask())
        experiment.add_results([("a", 1, 0.8, None)])
        assert (experiment.set_aside, experiment.state) == ((1,), "running")
        retired = mfb.Experiment.from_json(experiment.to_json())
        retired.retire_arm("b")
        assert retired.state == "decided"

    def test_an_arm_that_was_ruled_out_before_it_was_set_aside(self):
        experiment = in_memory()
        plays = [play for play in experiment.ask(30) if play.label == "a"][:3]
        experiment.add_results(CLEAR)
        experiment.fail_many(plays)
        assert experiment.set_aside == (0,)
        experiment.set_stop(mfb.Sure(0.5))
        assert (experiment.state, experiment.decided.arm) == ("decided", 1)

    def test_a_better_arm_that_was_set_aside(self):
        experiment = in_memory()
        plays = experiment.ask(30)
        experiment.add_results(CLEAR)
        experiment.fail_many([play for play in plays if play.label == "b"][:3])
        assert experiment.set_aside == (1,)
        experiment.set_stop(mfb.Sure(0.9))
        experiment.add_results([("c", 1, 0.4, None), ("a", 1, 0.2, None)] * 60)
        assert (experiment.best(), experiment.state) == (2, "running")

    def test_biases_raised_and_lowered(self, make):
        """Results at the cheap fidelity alone decide only if its bias is small."""
        experiment = make(stop=mfb.Sure(0.95))
        experiment.set_biases([0.4, 0])
        experiment.add_results([(arm, 0, mean, None) for arm, mean in MEANS.items() for _ in range(30)])
        assert experiment.state == "running"
        experiment.set_biases([0.05, 0])
        assert (experiment.state, experiment.decided.arm) == ("decided", 1)
        experiment.set_biases([0.4, 0])  # which says nothing about what was decided before
        assert experiment.state == "decided"
        experiment.set_stop(mfb.Sure(0.95))
        assert experiment.state == "running"

    def test_a_refuted_bias_does_not_decide(self):
        experiment = in_memory(stop=mfb.Sure(0.95))
        cheap = [(arm, 0, mean, None) for arm, mean in {"a": 0.9, "b": 0.5, "c": 0.4}.items()]
        top = [(arm, 1, mean, None) for arm, mean in {"a": 0.4, "b": 0.45, "c": 0.4}.items()]
        experiment.add_results(top * 12 + cheap)
        experiment.set_stop(None)
        experiment.add_results(cheap * 60)
        assert experiment.refuted
        experiment.set_stop(mfb.Sure(0.95))
        assert experiment.state == "running"

    def test_imports_with_ids_decide_once(self, tmp_path):
        rows = [(*row, f"row-{i}") for i, row in enumerate(CLEAR)]
        with mfb.Store(tmp_path / "a.db") as store:
            experiment = store.create("ads", POLICY, arms=ARMS, fidelities=FID, stop=mfb.Sure(0.95))
            experiment.add_results(rows, request_key="k")
            decided = experiment.decided
            assert decided is not None
            experiment.add_results(rows, request_key="k")
            experiment.add_results(rows)
        with mfb.Store(tmp_path / "a.db") as store:
            experiment = store.open("ads")
            experiment.add_results(rows, request_key="k")
            assert (experiment.decided, experiment.stop) == (decided, mfb.Sure(0.95))
            assert [event for event in experiment.log if isinstance(event, Decided)] == [decided]
            with pytest.raises(mfb.ExperimentDecided):
                experiment.ask()

    def test_a_repeated_ask_is_answered_as_before(self, tmp_path):
        with mfb.Store(tmp_path / "a.db") as store:
            experiment = store.create("ads", POLICY, arms=ARMS, fidelities=FID, stop=mfb.Sure(0.95))
            plays = experiment.ask(2, request_key="k")
            experiment.add_results(CLEAR)
            assert experiment.ask(2, request_key="k") == plays
            experiment.set_stop(None, request_key="go on")
            experiment.set_stop(mfb.Sure(0.95))
            experiment.set_stop(None, request_key="go on")
            assert experiment.state == "decided"
            with pytest.raises(mfb.Conflict):
                experiment.set_stop(mfb.Sure(0.9), request_key="go on")


class TestTheTest:
    @pytest.mark.parametrize(
        ("policy", "noise", "tolerance"),
        [
            (mfb.MFUCB(), mfb.SubGaussian(0.2), 0.0),
            (mfb.UCB(), mfb.Bounded(), 0.05),
            (mfb.UCB(), mfb.SubGaussian(0.2), 0.05),
        ],
    )
    def test_it_is_decided_when_the_confidence_says_so(self, policy, noise, tolerance):
        """Most tests look at one rival alone; the answer must be that of all of them."""
        rule, rng, results = mfb.Sure(0.9, tolerance=tolerance), np.random.default_rng(2), 0
        experiment = mfb.Experiment(
            policy, arms=5, fidelities=mfb.Fidelities([1, 10], [0.1, 0], noise), stop=mfb.Sure(0.9, tolerance=tolerance)
        )
        decided: Any = None
        while decided is None:
            arm, fidelity = int(rng.integers(5)), int(rng.integers(2))
            reward = float(np.clip(rng.normal(0.1 + 0.2 * arm, 0.2), 0, 1))
            experiment.add_results([(arm, fidelity, reward, None)])
            results, decided = results + 1, experiment.decided
            if results % 25 == 0 or decided is not None:
                assert rule.met_by(experiment.confidence(rule.level)) == (decided is not None)
        assert (decided.level >= 0.9, decided.could_lose <= tolerance) == (True, True)

    def test_a_tolerance_ends_it_where_two_arms_are_equal(self):
        means = {"a": 0.5, "b": 0.5, "c": 0.1}
        experiment = in_memory(stop=mfb.Sure(0.95, tolerance=0.2))
        while experiment.decided is None:
            experiment.add_results([(arm, 1, mean, None) for arm, mean in means.items()])
        decided = experiment.decided
        assert (decided.level, decided.tolerance) == (0.95, 0.2)
        assert 0 < decided.could_lose <= 0.2
        with pytest.raises(
            mfb.ExperimentDecided, match=r"no other is better than a \(arm 0\) by more than 0.2, 95 % sure"
        ):
            experiment.ask()

    def test_one_arm_is_decided_with_its_first_result(self):
        experiment = mfb.Experiment(POLICY, arms=1, fidelities=FID, stop=mfb.Sure(0.95))
        assert experiment.state == "running"
        experiment.tell(experiment.ask(), 0.5)
        assert experiment.state == "decided"

    @pytest.mark.parametrize("estimates", [False, True])
    def test_an_estimate_ends_it_only_if_the_rule_says_so(self, estimates):
        rule, rng = mfb.Sure(0.9, estimates=estimates), np.random.default_rng(0)
        experiment = mfb.Experiment(mfb.MFTopTwo(capital=60), arms=3, fidelities=mfb.Fidelities([1, 5]), stop=rule)
        while experiment.decided is None and experiment.spent < 50:
            play = experiment.ask()
            experiment.tell(play, rng.normal(MEANS[ARMS[play.arm]], 0.05))
        decided = experiment.decided
        assert (decided and (decided.arm, decided.kind)) == ((1, "estimate") if estimates else None)

    def test_noise_that_is_not_known(self):
        experiment = mfb.Experiment(mfb.MFTopTwo(capital=50), arms=2, fidelities=mfb.Fidelities([1]), stop=mfb.Sure())
        (said,) = experiment.status()["warnings"]
        assert said.startswith("WARNING: the rule for stopping cannot be met, as nothing is known of the noise")
        for play in experiment.plays():
            experiment.tell(play, play.arm + 0.1 * (int(play.id.rpartition("-")[2]) % 2))
            if experiment.spent > 20:
                break
        assert experiment.state == "running"
        experiment.set_fidelities(mfb.Fidelities([1], concentration=mfb.SubGaussian(0.1)))
        assert (experiment.state, experiment.status()["warnings"]) == ("decided", [])


@dataclass(frozen=True)
class Hasty(mfb.UCB):
    """Decides as soon as every arm has a result."""

    answer: int = 2

    def decision(self, stats, _fidelities):
        return self.answer if stats.counts.any(axis=0).all() else None


class TestThePolicysOwnRule:
    def test_it_ends_the_experiment(self):
        experiment = mfb.Experiment(Hasty(), arms=ARMS, fidelities=FID)
        for play in experiment.plays():
            experiment.tell(play, 0.5)
        assert experiment.spent == 30
        assert experiment.decided == Decided(2, None, None, 0.0, "policy")
        said = r"^The experiment is decided: c \(arm 2\) is the best, by the policy's own rule; set_stop goes on$"
        with pytest.raises(mfb.ExperimentDecided, match=said):
            experiment.ask()

    def test_a_rule_of_the_experiment_comes_first(self):
        experiment = mfb.Experiment(Hasty(), arms=ARMS, fidelities=FID, stop=mfb.Sure(0.999))
        experiment.tell_many([(play, 0.5, None) for play in experiment.ask(9)])
        assert experiment.state == "running"

    def test_going_on_without_any_rule(self):
        experiment = mfb.Experiment(Hasty(), arms=ARMS, fidelities=FID)
        experiment.tell_many([(play, 0.5, None) for play in experiment.ask(3)])
        experiment.set_stop(None)
        experiment.tell_many([(play, 0.5, None) for play in experiment.ask(3)])
        assert (experiment.state, experiment.decided) == ("running", None)

    def test_an_arm_that_there_is_not(self):
        experiment = mfb.Experiment(Hasty(answer=7), arms=ARMS, fidelities=FID)
        with pytest.raises(ValueError, match="a policy must decide for an active arm, and Hasty did for arm 7"):
            experiment.tell_many([(play, 0.5, None) for play in experiment.ask(3)])

    def test_mfsure_decides_by_its_delta(self):
        experiment = mfb.Experiment(mfb.MFSure(delta=0.1, tolerance=0.05), arms=ARMS, fidelities=FID)
        for play in experiment.plays():
            experiment.tell(play, MEANS[play.label])
        assert experiment.decided == Decided(1, 0.9, 0.05, 0.05, "policy")
        again = mfb.Experiment.from_json(experiment.to_json())
        assert (again.decided, again.state) == (experiment.decided, "decided")

    def test_more_is_needed_after_arms_came_and_went(self):
        fixed, changed = (mfb.Experiment(mfb.MFSure(delta=0.1), arms=ARMS, fidelities=FID) for _ in range(2))
        changed.add_arm("d")
        changed.retire_arm("d")
        for experiment in (fixed, changed):
            for play in experiment.plays():
                experiment.tell(play, MEANS[play.label])
        assert fixed.spent < changed.spent
        assert changed.confidence().level >= 0.9


class TestOneLoop:
    def test_plays_until(self, make):
        experiment = make(CAREFUL)
        for play in experiment.plays(until=mfb.Sure(0.95)):
            experiment.tell(play, MEANS[play.label])
        assert experiment.is_sure(mfb.Sure(0.95))
        assert (experiment.state, experiment.stop, of_stopping(experiment)) == ("running", None, [])
        assert list(experiment.plays(until=mfb.Sure(0.9))) == []

    def test_run_until(self):
        experiment, plain = (mfb.Experiment(CAREFUL, arms=ARMS, fidelities=FID) for _ in range(2))
        for play in plain.plays(until=mfb.Sure(0.95)):
            plain.tell(play, MEANS[play.label])
        with ThreadPoolExecutor(1) as pool:
            ran = mfb.run(experiment, lambda play: MEANS[play.label], pool, until=mfb.Sure(0.95))
            again = mfb.run(experiment, lambda play: MEANS[play.label], pool, until=mfb.Sure(0.95))
        assert (ran.ended, ran.told) == ("it is sure enough of the best arm", len(plain.history.rewards))
        assert (again.ended, again.told) == ("it is sure enough of the best arm", 0)
        assert experiment.state == "running"

    def test_run_ends_when_it_is_decided(self):
        experiment = mfb.Experiment(mfb.UCB(), arms=ARMS, fidelities=FID, stop=mfb.Sure(0.95))
        with ThreadPoolExecutor(2) as pool:
            ran = mfb.run(experiment, lambda play: MEANS[play.label], pool)
        assert (ran.ended, experiment.state, experiment.pending) == ("the experiment is decided", "decided", ())

    def test_bad_input(self):
        with ThreadPoolExecutor(1) as pool, pytest.raises(ValueError, match=r"until must be a Sure or None, got 0\.95"):
            mfb.run(in_memory(), print, pool, until=0.95)  # type: ignore[arg-type]


def test_a_policy_is_never_said_to_be_certain():
    fid = mfb.Fidelities([1], concentration=mfb.SubGaussian(1e-6))
    exp = mfb.Experiment(mfb.MFSure(delta=1e-300), arms=2, fidelities=fid)
    exp.add_results([(0, 0, 1.0, None)] * 9 + [(1, 0, 0.0, None)] * 9)
    assert exp.decided is not None
    assert exp.decided.level is not None
    assert exp.decided.level < 1
