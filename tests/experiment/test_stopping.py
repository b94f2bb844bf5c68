"""Rules for stopping: when an experiment is decided, that it stays so, and how a person goes on."""

import json

import pytest

import mfbandit as mfb
from mfbandit.experiment.events import Decided, StopSet
from tests.support.services import served

FID = mfb.Fidelities([1, 10], [0.1, 0], mfb.SubGaussian(0.2))
POLICY = mfb.MFUCB()
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
        experiment = make(stop=mfb.Sure(0.95), capital=1e4)
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
            ({"level": 1.0}, "level must lie strictly between 0 and 1, got 1.0"),
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


def test_a_policy_is_never_said_to_be_certain():
    fid = mfb.Fidelities([1], concentration=mfb.SubGaussian(1e-6))
    exp = mfb.Experiment(mfb.MFSure(delta=1e-300), arms=2, fidelities=fid)
    exp.add_results([(0, 0, 1.0, None)] * 9 + [(1, 0, 0.0, None)] * 9)
    assert exp.decided is not None
    assert exp.decided.level < 1
    with pytest.raises(mfb.errors.ExperimentDecided, match=r"99\.99 % sure"):
        exp.ask()
