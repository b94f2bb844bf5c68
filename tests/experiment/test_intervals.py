"""Intervals of a policy's posterior, wherever bounds are shown: in memory, in a store, at a service and on a page."""

from dataclasses import dataclass

import numpy as np
import pytest

import mfbandit as mfb
from mfbandit.core import POSTERIOR
from mfbandit.service.view_models import experiment_view
from tests.support.commands import done
from tests.support.services import served

FID = mfb.Fidelities([1, 5, 25])  # neither biases nor noise
POLICIES = [mfb.MFBayes(), mfb.MFTopTwo(capital=3000)]
MEANS = np.linspace(0.1, 0.9, 15)


def play(experiment, plays=150):
    """Arms get better by their numbers, the last one is the best."""
    rng = np.random.default_rng(0)
    for _ in range(plays):
        one = experiment.ask()
        experiment.tell(one, float(rng.normal(MEANS[one.arm] + 0.05 * one.fidelity, 0.1)))


@pytest.fixture(params=POLICIES, ids=lambda policy: type(policy).__name__)
def policy(request):
    return request.param


class TestInMemory:
    def test_bounds_are_the_posteriors(self, policy):
        experiment = mfb.Experiment(policy, arms=len(MEANS), fidelities=FID)
        play(experiment)
        found = experiment.bounds()
        assert found.kind == POSTERIOR
        best = experiment.best()
        assert found.ranked(first=best)[0] == best
        assert found.ranked()[0] == best  # by its estimate, which is what it is recommended by
        lower, upper = found.lower.max(axis=0), found.upper.min(axis=0)
        seen = experiment.stats.counts.any(axis=0)
        assert np.isfinite(lower[seen]).all()
        assert (lower[seen] < upper[seen]).all()
        assert lower[best] < MEANS[best] + 0.1 < upper[best]
        assert str(found)

    def test_before_any_result_nothing_is_known(self, policy):
        found = mfb.Experiment(policy, arms=3, fidelities=FID).bounds()
        assert found.kind == POSTERIOR
        assert np.isinf(found.upper).all()

    def test_known_noise_and_biases_give_confidence_bounds(self, policy):
        known = mfb.Fidelities([1, 5, 25], [0.2, 0.1, 0], mfb.SubGaussian(0.1))
        experiment = mfb.Experiment(policy, arms=3, fidelities=known)
        assert experiment.bounds().kind == "confidence bounds"

    def test_rho_asks_for_confidence_bounds(self, policy):
        with pytest.raises(ValueError, match="a concentration is needed here"):
            mfb.Experiment(policy, arms=3, fidelities=FID).bounds(rho=2.0)

    def test_a_policy_of_ones_own_can_have_them(self):
        @dataclass(frozen=True)
        class Own:
            def choose(self, stats, _fidelities):
                return int(stats.plays.sum(axis=0).argmin()), 0

            def index(self, stats, _fidelities):
                return np.zeros(len(stats.active))

            def recommend(self, _stats, _fidelities):
                return 1

            def intervals(self, stats, _fidelities):
                return np.zeros(len(stats.active)), np.ones(len(stats.active))

        found = mfb.Experiment(Own(), arms=2, fidelities=FID).bounds()
        assert (found.lower[-1].tolist(), found.upper[-1].tolist()) == ([0, 0], [1, 1])


class TestElsewhere:
    def test_store_page_service_and_command_line(self, tmp_path, policy):
        right = mfb.Experiment(policy, arms=len(MEANS), fidelities=FID)
        play(right)
        with mfb.Store(tmp_path / "a.db") as store:
            kept = store.create("a", policy, arms=len(MEANS), fidelities=FID)
            play(kept)
            best = kept.arms[kept.best()]
            assert kept.bounds().lower.tolist() == right.bounds().lower.tolist()
            view = experiment_view(kept)
            assert view["bounds_kind"] == "95 % posterior intervals"
            assert view["leading"][0].label == best
            assert view["leading"][0].best
            assert None not in [row.intervals[-1] for row in view["leading"][:2]]
            assert view["leading"][0].estimate != "-"
            assert view["best_interval"].endswith("by its 95 % posterior interval")
        with served(tmp_path / "a.db") as service, mfb.connect(service.url) as remote:
            far = remote.open("a").bounds()
            assert far.kind == POSTERIOR
            assert far.upper.tolist() == right.bounds().upper.tolist()
            assert str(far) == str(right.bounds())
            shown = [done("experiment", "status", service.url, "a", "--top", 3)]
        shown.append(done("experiment", "status", tmp_path / "a.db", "a", "--top", 3))
        for text in shown:
            table = text.partition("The recommended arm, then by estimate (posterior intervals, 95 %):\n")[2]
            assert table.splitlines()[1].split()[0] == best
            assert len(table.splitlines()) == 1 + 3 * len(FID)


def test_the_leading_arms_of_status_never_leave_out_the_best(tmp_path):
    """Arms with few results have the largest upper bounds, and the best one is not among them."""
    fid = mfb.Fidelities([1], concentration=mfb.SubGaussian(1.0))
    with mfb.Store(tmp_path / "a.db") as store:
        kept = store.create("a", mfb.UCB(), arms=30, fidelities=fid)
        kept.add_results([(k, 0, 0.5, None) for k in range(30)] + [(29, 0, 0.9, None)] * 300)
        kept.retire_arm(3)
    lines = done("experiment", "status", tmp_path / "a.db", "a", "--top", 25).splitlines()
    at = lines.index("The recommended arm, then by lower bound (confidence bounds):")
    assert lines[at + 2].split()[0] == "29"
    assert len(lines) == at + 2 + 25
    assert "3" not in [line.split()[0] for line in lines[at + 2 :]]  # retired ones come last
