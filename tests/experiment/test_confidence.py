"""How sure an experiment is of its best arm."""

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest

import mfbandit as mfb
from mfbandit._internal.typing import FloatArray
from mfbandit.errors import InvalidArgument
from mfbandit.experiment import Experiment
from mfbandit.experiment.posterior_claim import Belief

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

    def test_says_that_noise_was_told_anew_after_results(self) -> None:
        said = "The noise at fidelity {}, told anew after results came in, was not chosen by looking at them."
        halved = mfb.Fidelities([1, 10], [0.1, 0], [mfb.SubGaussian(0.1), mfb.SubGaussian(0.2)])
        early = experiment()
        early.set_fidelities(halved)
        early.add_results([(arm, 0, 0.5, None) for arm in range(3)])
        assert not any("told anew" in line for line in early.confidence().assumes)
        late = with_results()
        late.set_fidelities(replace(FIDELITIES, costs=(1, 20)))
        assert not any("told anew" in line for line in late.confidence().assumes)
        late.set_fidelities(replace(halved, costs=(1, 20)))
        assert said.format(0) in late.confidence().assumes
        assert said.format(1) not in late.confidence().assumes
        late.set_fidelities(FIDELITIES)
        assert said.format(0) in late.difference(0, 2).assumes
        again = Experiment.from_json(late.to_json())
        assert again.confidence() == late.confidence()

    def test_says_that_noise_was_not_known_when_results_came(self) -> None:
        exp = Experiment(mfb.MFBayes(), arms=2, fidelities=mfb.Fidelities([1]))
        exp.add_results([(0, 0, 0.5, None), (1, 0, 0.1, None)])
        exp.set_fidelities(mfb.Fidelities([1], concentration=mfb.SubGaussian(0.1)))
        assert "told anew" in exp.confidence().assumes[1]

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
            "Over 99.9 % sure that 2 is the best (valid whenever you look). No other may be better."
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


def learning(policy: mfb.Policy, results: int, noise: float = 0.05) -> Experiment:
    """Three arms of a policy that learns biases, so many results of each at each fidelity."""
    exp, rng = Experiment(policy, arms=3, fidelities=mfb.Fidelities([1, 10])), np.random.default_rng(3)
    for _ in range(results):
        for arm, mean in enumerate((0.2, 0.5, 0.8)):
            exp.add_results([(arm, m, float(rng.normal(mean, noise)), None) for m in (0, 1)])
    return exp


class TestEstimates:
    @pytest.mark.parametrize("policy", [mfb.MFTopTwo(capital=1000), mfb.MFBayes()])
    def test_a_policy_that_learns_the_biases(self, policy: mfb.Policy) -> None:
        found = learning(policy, 6).confidence()
        assert (found.best, found.kind, found.level) == (2, "estimate", 0.95)
        assert "estimated over 95 %: noise or biases are not known" in found.sentence

    def test_withheld_without_two_results_at_the_highest_fidelity(self) -> None:
        found = learning(mfb.MFTopTwo(capital=1000), 1).confidence()
        assert (found.kind, found.level, found.could_lose) == ("withheld", 0.0, math.inf)
        assert found.why == "2 has fewer than two results at the highest fidelity"
        assert found.sentence.startswith("How sure it is that 2 is the best cannot be said:")

    def test_arms_that_are_near_are_rivals(self) -> None:
        found = learning(mfb.MFTopTwo(capital=1000), 3, noise=0.4).confidence()
        assert found.kind == "estimate"
        assert found.rivals
        assert found.level < 0.95
        assert found.could_lose >= found.could_be_ahead[0] > 0

    def test_a_valid_answer_is_better_than_an_estimate(self) -> None:
        exp = learning(mfb.MFTopTwo(capital=1000), 6)
        exp.set_fidelities(mfb.Fidelities([1, 10], concentration=mfb.SubGaussian(0.05)))
        found = exp.confidence()
        assert (found.kind, found.fidelities) == ("valid", (1,))
        assert found.assumes[-1] == "Results at fidelity 0 do not count: its bias is not known."

    def test_probability_is_that_of_draws(self) -> None:
        rng, means, deviations = np.random.default_rng(0), np.array([0.5, 0.45, 0.3]), np.array([0.1, 0.05, 0.2])
        belief = Belief(0, np.array([1, 2]), means, deviations)
        draws = rng.normal(means, deviations, (200_000, 3))
        for ahead in (0.0, 0.1):
            share = float((draws[:, 1:].max(axis=1) <= draws[:, 0] + ahead).mean())
            assert belief.probability(ahead) == pytest.approx(share, abs=0.004)
        assert belief.probability(belief.could_lose(0.9)) == pytest.approx(0.9, abs=1e-6)

    def test_a_learned_scale_is_an_estimate(self) -> None:
        exp = learning(TopMean(), 12)
        found = exp.confidence()
        assert (found.best, found.kind, found.level, found.fidelities) == (2, "estimate", 0.95, (1,))
        assert found.why == "the scale of the noise is learned from the results"
        few = learning(TopMean(), 2).confidence()
        assert (few.kind, few.level) == ("withheld", 0.0)
        assert few.why == "the noise is not known, and results are too few or too equal to learn it"

    def test_one_arm_of_unknown_noise(self) -> None:
        exp = Experiment(mfb.MFBayes(), arms=1, fidelities=mfb.Fidelities([1, 10]))
        exp.tell(exp.ask(), 0.5)
        assert (exp.confidence().kind, exp.confidence().level) == ("valid", 1.0)


@dataclass(frozen=True)
class TopMean:
    """A policy of one's own, without intervals."""

    def choose(self, stats: mfb.Stats, _: mfb.Fidelities) -> tuple[int, int]:
        return int(stats.plays.sum(axis=0).argmin()), len(stats.counts) - 1

    def index(self, stats: mfb.Stats, _: mfb.Fidelities) -> FloatArray:
        return np.where(stats.counts[-1] > 0, stats.sums[-1] / np.maximum(stats.counts[-1], 1), np.inf)

    def recommend(self, stats: mfb.Stats, fidelities: mfb.Fidelities) -> int:
        return int(np.where(stats.counts[-1] > 0, self.index(stats, fidelities), -np.inf).argmax())
