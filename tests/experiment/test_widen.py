"""Biases that are raised when results refute them: suggestions, events, and the same everywhere."""

import json
import math

import numpy as np
import pytest

import mfbandit as mfb
from mfbandit.core import audit
from mfbandit.experiment.events import BiasesWidened, BiasRefuted
from tests.support.services import served

FID = mfb.Fidelities([1, 10, 60], [0.2, 0.1, 0], mfb.SubGaussian(0.1))
ARMS = ["clickbait", "honest"]
CHEAP, TOP = [("clickbait", 0, 0.9, None)] * 30, [("clickbait", 2, 0.3, None)] * 4


@pytest.fixture(params=["memory", "store", "service"])
def make(request, tmp_path):
    """Makes an experiment of each kind."""
    if request.param == "memory":
        yield lambda **more: mfb.Experiment(mfb.MFUCB(), arms=ARMS, fidelities=FID, **more)
    elif request.param == "store":
        with mfb.Store(tmp_path / "a.db") as store:
            yield lambda **more: store.create("ads", mfb.MFUCB(), arms=ARMS, fidelities=FID, **more)
    else:
        with served(tmp_path / "a.db") as service, mfb.connect(service.url) as store:
            yield lambda **more: store.create("ads", mfb.MFUCB(), arms=ARMS, fidelities=FID, **more)


def of_biases(experiment):
    return [event for event in experiment.log if isinstance(event, BiasRefuted | BiasesWidened)]


def kinds(experiment):
    return [type(event) for event in of_biases(experiment)]


class TestEverywhere:
    def test_off_by_default(self, make):
        experiment = make()
        experiment.add_results(CHEAP + TOP)
        assert kinds(experiment) == [BiasRefuted]
        assert experiment.fidelities.biases == (0.2, 0.1, 0.0)
        assert experiment.widen is False
        assert "widen" not in experiment.definition

    def test_biases_rise_right_after_they_are_refuted(self, make):
        experiment = make(widen=True)
        experiment.add_results(CHEAP + TOP)
        assert kinds(experiment) == [BiasRefuted, BiasesWidened]
        places = [i for i, event in enumerate(experiment.log) if isinstance(event, BiasRefuted)]
        assert isinstance(experiment.log[places[0] + 1], BiasesWidened)
        low, middle, top = experiment.fidelities.biases
        assert (low > 0.6, middle, top) == (True, 0.1, 0.0)  # 0.6 is how much the clickbait is off
        assert experiment.status()["warnings"] == []
        assert experiment.status()["widen"] is True
        assert (experiment.widen, experiment.definition["widen"]) == (True, True)
        again = mfb.Experiment.from_json(experiment.to_json())
        assert (again.widen, again.fidelities, again.log) == (True, experiment.fidelities, experiment.log)

    def test_with_tell_and_tell_many(self, make):
        one, many = mfb.Experiment(mfb.MFUCB(), arms=ARMS, fidelities=FID, widen=True), make(widen=True)
        for i in range(12):
            told = [(play, 0.9 if play.fidelity < 2 else 0.3) for play in one.ask(8)]
            for play, reward in told:
                one.tell(play, reward)
            many.tell_many([(play, reward, None) for play, (_, reward) in zip(many.ask(8), told, strict=True)])
            assert of_biases(many) == of_biases(one), i
        assert many.fidelities == one.fidelities

    def test_what_a_person_sets_is_widened_too_if_results_refute_it(self, make):
        experiment = make(widen=True)
        experiment.add_results(CHEAP + TOP)
        experiment.set_biases([0.3, 0.1, 0])
        assert kinds(experiment)[-2:] == [BiasRefuted, BiasesWidened]
        assert experiment.fidelities.biases[0] > 0.6


class TestKeys:
    def test_a_repeated_import_is_answered_the_same_before_and_after_a_restart(self, tmp_path):
        with mfb.Store(tmp_path / "a.db") as store:
            kept = store.create("ads", mfb.MFUCB(), arms=ARMS, fidelities=FID, widen=True)
            plays = kept.add_results(CHEAP + TOP + CHEAP, request_key="k")
            events = kept.events
            assert BiasesWidened in kinds(kept)
            assert kept.add_results(CHEAP + TOP + CHEAP, request_key="k") == plays
        with mfb.Store(tmp_path / "a.db") as store:
            kept = store.open("ads")
            assert kept.widen
            assert kept.add_results(CHEAP + TOP + CHEAP, request_key="k") == plays
            assert kept.events == events


class TestInput:
    def test_only_true_or_false(self):
        with pytest.raises(ValueError, match="widen must be True or False, got 'yes'"):
            mfb.Experiment(mfb.MFUCB(), arms=ARMS, fidelities=FID, widen="yes")  # type: ignore[arg-type]

    def test_a_definition_without_the_key_is_off(self):
        experiment = mfb.Experiment(mfb.MFUCB(), arms=ARMS, fidelities=FID)
        assert "widen" not in json.loads(experiment.to_json())
        assert not mfb.Experiment.from_json(experiment.to_json()).widen


class TestSuggestions:
    def test_lower_fidelities_rise_with_higher_ones(self):
        experiment = mfb.Experiment(mfb.MFUCB(), arms=ARMS, fidelities=FID)
        experiment.add_results([("clickbait", 1, 0.9, None)] * 30 + TOP)
        low, middle, _ = experiment.audit().suggested or ()
        assert experiment.audit().fidelities[0].refuting == ()
        assert 0.6 < middle < low <= 1.05 * middle

    def test_nothing_refuted_nothing_changed(self):
        experiment = mfb.Experiment(mfb.MFUCB(), arms=ARMS, fidelities=FID)
        assert experiment.audit().suggested == FID.biases
        unknown = mfb.Experiment(mfb.MFBayes(), arms=2, fidelities=mfb.Fidelities([1, 2], None, mfb.Bounded()))
        assert unknown.audit().suggested is None

    def test_the_warning_names_what_to_call(self):
        experiment = mfb.Experiment(mfb.MFUCB(), arms=ARMS, fidelities=FID)
        experiment.add_results(CHEAP + TOP)
        (warning,) = experiment.status()["warnings"]
        shown = ", ".join(f"{bias:g}" for bias in experiment.audit().suggested or ())
        assert f"set_biases([{shown}])" in warning

    @pytest.mark.parametrize("scale", [1e-100, 1e-9, 1.0, 1e9, 1e100])
    def test_any_size_of_rewards(self, scale):
        fid = mfb.Fidelities([1, 10, 60], [0.2 * scale, 0.1 * scale, 0], mfb.SubGaussian(0.1 * scale))
        experiment = mfb.Experiment(mfb.MFUCB(), arms=1, fidelities=fid, widen=True)
        experiment.add_results([(0, 1, 0.9 * scale, None)] * 30 + [(0, 2, 0.3 * scale, None)] * 9)
        assert BiasesWidened in kinds(experiment)
        assert math.isclose(experiment.fidelities.known_biases[1] / scale, 1.0, rel_tol=0.25)

    def test_they_hold_nearly_always(self):
        """Gaussian arms, one of which is off by more than is assumed: how often the suggested bias holds for it."""
        rng, held, fid = np.random.default_rng(1), 0, mfb.Fidelities([1, 60], [0.1, 0], mfb.SubGaussian(0.1))
        for _ in range(100):
            off = rng.uniform(0.2, 0.6)
            stats = mfb.core.Stats.empty(2, 20)
            while True:
                stats.counts[:, 0] += 1
                stats.sums[:, 0] += rng.normal([0.5 + off, 0.5], 0.1)
                (found,) = audit(stats, fid, [str(k) for k in range(20)]).fidelities
                if found.refuting:
                    break
            held += (found.suggested or 0.0) >= off
        assert held >= 99
