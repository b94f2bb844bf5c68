"""Rates: what follows the Bernoulli divergence is sharper than with half the range for the noise, and still holds."""

import json

import numpy as np
import pytest

from mfbandit import (
    MFUCB,
    UCB,
    Bernoulli,
    Bounded,
    Counts,
    Experiment,
    Fidelities,
    MFAda,
    MFSure,
    Problem,
    Rate,
    SubGaussian,
    plan,
    simulate,
)
from mfbandit.cli.config import Config
from mfbandit.core import Stats, audit, kl, lower_bounds, ruled_out, upper_bounds
from mfbandit.core.rate_intervals import rate_intervals
from mfbandit.errors import InvalidArgument
from mfbandit.experiment.serialization import fidelities_from_record, fidelities_record
from mfbandit.service.schemas import FidelitiesBody
from tests.support.effort import effort

RATES = Fidelities([1, 10], [0.01, 0], Rate())
RANGE = Fidelities([1, 10], [0.01, 0], Bounded(0, 1))
ADS = np.linspace(0.01, 0.07, 12)


def learned(seed=0, arms=ADS, per_arm=2000):
    rng = np.random.default_rng(seed)
    stats = Stats.empty(2, len(arms))
    stats.counts[:] = per_arm
    stats.sums[:] = rng.binomial(per_arm, np.stack([arms, arms]))
    stats.squares[:] = stats.sums
    return stats


class TestBounds:
    def test_they_are_where_the_divergence_says(self):
        stats = learned()
        level = 2.0 * np.log(stats.time) / 2000
        upper, lower = upper_bounds(stats, RATES, 2.0)[1], lower_bounds(stats, RATES, 2.0)[1]
        for mean, low, high in zip(stats.means[1].tolist(), lower.tolist(), upper.tolist(), strict=True):
            assert low < mean < high
            assert kl(mean, high) == pytest.approx(level, rel=1e-6)
            assert kl(mean, low) == pytest.approx(level, rel=1e-6)

    def test_they_are_much_narrower_than_those_of_a_range(self):
        stats = learned()
        widths = [upper_bounds(stats, fid, 2.0) - lower_bounds(stats, fid, 2.0) - 2 * fid.bias_column for fid in
                  (RATES, RANGE)]  # fmt: skip
        assert (widths[0] < 0.6 * widths[1]).all()

    def test_a_policy_without_kl_has_them_too(self):
        stats = learned()
        for policy, by_range in ((UCB(), UCB(kl=True)), (MFUCB(), MFUCB(kl=True)), (MFAda(), MFAda())):
            assert policy.index(stats, RATES).tolist() == by_range.index(stats, RANGE).tolist()

    def test_a_fidelity_is_left_sooner(self):
        exp = Experiment(MFUCB(), arms=2, fidelities=Fidelities([1, 10], [0.1, 0], Rate()))
        wide = Experiment(MFUCB(), arms=2, fidelities=Fidelities([1, 10], [0.1, 0], Bounded()))
        for made in (exp, wide):
            made.add_results([(arm, 0, Counts(20 + arm, 1000), None) for arm in range(2)])
        assert (exp.ask().fidelity, wide.ask().fidelity) == (1, 0)

    def test_the_table_has_them(self):
        exp = Experiment(UCB(), arms=2, fidelities=Fidelities([1], None, Rate()))
        exp.add_results([(0, 0, Counts(20, 1000), None), (1, 0, Counts(0, 1000), None)])
        bounds = exp.bounds()
        assert (bounds.lower[0] >= 0).all()
        assert bounds.lower[0, 1] == 0
        assert (bounds.widths < 0.02).all()


class TestIntervals:
    def test_they_hold_at_all_times(self):
        rng, alpha, runs = np.random.default_rng(0), 0.1, effort(200, 2000)
        for rate in (0.01, 0.05, 0.5):
            sums = rng.binomial(20, rate, (runs, 100)).cumsum(axis=1)
            wrong = np.zeros(runs, dtype=bool)
            for look in range(100):
                low, high = rate_intervals(
                    np.full(runs, 20 * (look + 1)), sums[:, look].astype(float), np.log(2 / alpha)
                )
                wrong |= (rate < low) | (rate > high)
            assert wrong.mean() <= alpha  # in fact about a third of it

    def test_zeros_and_ones_alone(self):
        low, high = rate_intervals(np.array([50, 50]), np.array([0.0, 50.0]), 5.0)
        assert low[0] == 0
        assert high[1] == 1
        assert high[0] == pytest.approx(1 - low[1])

    def test_arms_are_ruled_out_that_a_range_leaves(self):
        stats = learned(per_arm=20_000)
        assert ruled_out(stats, RATES).sum() > ruled_out(stats, RANGE).sum()
        assert not ruled_out(stats, RATES)[-1]


class TestAudit:
    def test_a_bias_is_refuted_that_a_range_leaves(self):
        stats = learned()
        stats.sums[0, 3] += 100  # 5 % more
        assert audit(stats, RATES, "abcdefghijkl").fidelities[0].refuting == (3,)
        assert not audit(stats, RANGE, "abcdefghijkl").alarm

    def test_one_that_holds_is_not(self):
        for seed in range(effort(40, 200)):
            found = audit(learned(seed, per_arm=50 + 40 * seed), RATES, "abcdefghijkl").fidelities[0]
            assert not found.refuting
            assert 0 <= found.needed <= found.enough

    def test_an_experiment_says_so(self):
        exp = Experiment(MFUCB(), arms=2, fidelities=RATES)
        exp.add_results([(0, 1, Counts(40, 2000), None), (0, 0, Counts(200, 2000), None)])
        ((at, needed),) = exp.refuted.items()
        assert at == (0, 0)
        assert 0.01 < needed < 0.08


class TestConfidence:
    def test_it_is_that_of_a_range_which_is_sharp_already(self):
        past = [(arm, 1, Counts(60 + 120 * arm, 3000), None) for arm in range(3)]
        sure = []
        for noise in (Rate(), Bounded(), SubGaussian(0.5)):
            exp = Experiment(MFSure(), arms=3, fidelities=Fidelities([1, 10], [0.01, 0], noise))
            exp.add_results(past)
            sure.append(exp.confidence().level)
        assert sure[0] == sure[1] > 0.5
        assert sure[2] == 0

    def test_the_engine_decides_the_same(self):
        answers = []
        for noise in (Rate(), Bounded()):
            problem = Problem([[0.1, 0.3], [0.1, 0.3]], Fidelities([1, 10], [0.01, 0], noise), Bernoulli())
            found = simulate(problem, MFSure(), capital=3000, runs=2, seed=0)
            answers.append((found.answers.tolist(), found.regret.tolist()))
        assert answers[0] == answers[1]


class TestPlan:
    def test_arms_are_told_apart_that_a_range_would_not(self):
        plans = [plan(Fidelities([1], None, noise), 200_000, means=ADS) for noise in (Rate(), Bounded())]
        assert plans[0].resolution < 0.5 * plans[1].resolution
        assert plans[0].regret < plans[1].regret

    def test_it_is_near_what_a_simulation_spends_on_poor_arms(self):
        fid = Fidelities([1], None, Rate())
        found = simulate(Problem([ADS[::4]], fid, Bernoulli()), UCB(), capital=3000, runs=2, seed=0)
        expected = plan(fid, 3000, means=ADS[::4])
        assert expected.regret == pytest.approx(float(found.regret[:, -1].mean()), rel=0.35)


class TestWriting:
    def test_it_is_kept_and_read(self):
        record = json.loads(json.dumps(fidelities_record(RATES)))
        assert record["concentration"] == [{"name": "Rate"}] * 2
        assert fidelities_from_record(record) == RATES
        assert RATES != RANGE
        FidelitiesBody.model_validate({"costs": [1.0], "concentration": {"name": "Rate"}})
        exp = Experiment(MFUCB(), arms=2, fidelities=RATES)
        assert Experiment.from_json(exp.to_json()).fidelities == RATES

    def test_as_toml(self, tmp_path):
        file = tmp_path / "a.toml"
        file.write_text('[fidelities]\ncosts = [1, 10]\nbiases = [0.01, 0]\nrewards = "rate"\n')
        assert Config(file).fidelities() == RATES
        for wrong, said in (
            ('rewards = "clicks"', "rewards must be 'rate'"),
            ('rewards = "rate"\nscale = 1', "left out"),
        ):
            file.write_text(f"[fidelities]\ncosts = [1]\n{wrong}\n")
            with pytest.raises(InvalidArgument, match=said):
                Config(file).fidelities()

    def test_rewards_outside_are_refused(self):
        exp = Experiment(UCB(), arms=1, fidelities=Fidelities([1], None, Rate()))
        with pytest.raises(InvalidArgument, match="reward must lie in 0 to 1"):
            exp.tell(exp.ask(), 43.0)
