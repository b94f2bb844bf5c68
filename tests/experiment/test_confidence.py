"""How sure an experiment is of its best arm."""

import math

import numpy as np
import pytest

import mfbandit as mfb
from mfbandit.errors import InvalidArgument
from mfbandit.experiment import Experiment

FIDELITIES = mfb.Fidelities([1, 10], [0.1, 0], mfb.SubGaussian(0.2))


def experiment(arms: int = 3, fidelities: mfb.Fidelities = FIDELITIES) -> Experiment:
    return Experiment(mfb.MFUCB(), arms=arms, fidelities=fidelities)


def with_results(results: int = 30) -> Experiment:
    """Three arms with means 0.2, 0.5 and 0.8, so many results of each at each fidelity."""
    exp, rng = experiment(), np.random.default_rng(1)
    for arm, mean in enumerate((0.2, 0.5, 0.8)):
        for fidelity in (0, 1):
            exp.add_results([(arm, fidelity, float(rng.normal(mean, 0.2)), None) for _ in range(results)])
    return exp


class TestValid:
    def test_clear_winner(self) -> None:
        found = with_results().confidence()
        assert (found.best, found.label, found.kind, found.why) == (2, "2", "valid", "")
        assert found.level > 0.999
        assert (found.could_lose, found.rivals, found.could_be_ahead) == (0.0, (), ())
        assert (found.fidelities, found.results, found.arms, found.at_level) == ((0, 1), (90, 90), 3, 0.95)

    def test_rivals_are_those_that_could_be_ahead_by_most_first(self) -> None:
        found = with_results(2).confidence(0.99)
        assert set(found.rivals) == {0, 1}
        assert list(found.could_be_ahead) == sorted(found.could_be_ahead, reverse=True)
        assert found.could_lose == found.could_be_ahead[0] > 0
        assert found.at_level == 0.99

    def test_says_what_it_assumes(self) -> None:
        assert with_results().confidence().assumes == (
            "Noise is sub-Gaussian with a scale of at most 0.2.",
            "Means at fidelity 0 lie within 0.1 of those at the highest.",
            "Means do not change over time.",
            "No result is missing because of its value.",
        )

    def test_refuted_fidelity_does_not_count(self) -> None:
        exp = with_results(0)
        exp.add_results([(0, 0, 0.9, None)] * 200 + [(0, 1, 0.2, None)] * 200 + [(1, 1, 0.8, None)] * 200)
        found = exp.confidence()
        assert found.fidelities == (1,)
        assert found.assumes[-1] == "Results at fidelity 0 do not count: they refute its bias."
        exp.set_biases([0.8, 0])
        assert exp.confidence().fidelities == (0, 1)


class TestBadInput:
    @pytest.mark.parametrize("level", [0, 1, -0.1, 95, math.nan, "0.95"])
    def test_level(self, level: float) -> None:
        with pytest.raises(InvalidArgument, match="level must"):
            with_results(1).confidence(level)

    def test_no_results(self) -> None:
        with pytest.raises(mfb.NoResults):
            experiment().confidence()

    def test_one_arm_is_the_best(self) -> None:
        exp = experiment(arms=1)
        exp.tell(exp.ask(), 0.5)
        found = exp.confidence()
        assert (found.level, found.could_lose, found.rivals, found.arms) == (1.0, 0.0, (), 1)


class TestInWords:
    def test_sure(self) -> None:
        assert with_results().confidence().sentence == (
            "over 99.9 % sure that 2 is the best (valid whenever you look). No other may be better."
        )

    def test_not_sure_yet(self) -> None:
        exp = experiment()
        exp.add_results([(2, 0, 0.5, None), (1, 0, 0.4, None)])
        found = exp.confidence()
        assert found.sentence.startswith("Not sure yet that 2 is the best (valid whenever you look). 2 of 3 may still")

    def test_one_arm(self) -> None:
        exp = experiment(arms=1)
        exp.tell(exp.ask(), 0.5)
        assert exp.confidence().sentence.endswith("There is no other.")

    def test_long_tables_are_cut(self) -> None:
        exp = experiment(arms=50)
        exp.tell(exp.ask(), 0.5)
        lines = exp.confidence().table(exp.arms).splitlines()
        assert (len(lines), lines[-1]) == (22, "and 29 more")
        assert "any amount" in lines[1]


class TestTheSameEverywhere:
    def test_findings_are_of_one_moment(self) -> None:
        exp = with_results(5)
        findings, before = exp.findings(), exp.confidence()
        exp.add_results([(2, 1, 0.1, None)] * 20)
        assert findings.confidence(0.95) == before != exp.confidence()

    def test_best_is_the_one_that_the_experiment_names(self) -> None:
        exp = with_results(0)
        exp.add_results([(0, 0, 0.9, None)] * 200 + [(0, 1, 0.2, None)] * 200 + [(1, 1, 0.3, None)] * 200)
        assert exp.confidence().best == exp.best() == 1
        exp.set_policy(mfb.UCB())
        assert exp.confidence().best == exp.best()
