"""How sure it was as capital was spent."""

import math

import numpy as np
import pytest

from mfbandit import UCB, Bounded, Experiment, Fidelities, SubGaussian
from mfbandit.experiment import ConfidenceTrend, TrendPoint
from mfbandit.experiment import trend as trend_module

POINTS = 16  # fewer than there really are, which saves time
ONE = Fidelities([1], concentration=Bounded())
TWO = Fidelities([1, 10], [0.1, 0], SubGaussian(0.1))


@pytest.fixture(autouse=True)
def few_points(monkeypatch):
    monkeypatch.setattr(trend_module, "POINTS", POINTS)


def experiment(arms=("a", "b"), fidelities=ONE):
    return Experiment(UCB(), arms=list(arms), fidelities=fidelities)


def results(exp, *past, seed=0):
    """Add 0/1 results in turn: the arm, the fidelity, the mean, how many."""
    rng = np.random.default_rng(seed)
    rows = [(arm, m, float(rng.random() < mean), None) for arm, m, mean, times in past for _ in range(times)]
    exp.add_results([rows[i] for i in rng.permutation(len(rows))])


def caught_up(trend, exp, counted=(0,)):
    while trend.lags(len(exp.history.arms)):
        trend.add(exp.folded.next_results(*trend.wanted), counted)
    return trend


def test_every_point_is_what_was_said_then():
    exp, trend, said = experiment(), ConfidenceTrend(), []
    rng = np.random.default_rng(1)
    for number in range(POINTS):
        exp.add_results([(number % 2, 0, float(rng.random() < (0.1, 0.9)[number % 2]), None)])
        found = exp.confidence()
        said.append(TrendPoint(exp.spent, found.level, found.could_lose, found.best))
        caught_up(trend, exp)
    leads_once = [point for point, now in zip(trend.points, said, strict=True) if point == now]
    assert len(leads_once) > POINTS / 2  # the others are about another leader: UCB's best is not the centre
    assert trend.points[-1] == said[-1]


def test_there_are_never_too_many_points_and_they_are_evenly_spread():
    exp, trend = experiment(), ConfidenceTrend()
    for more in (2, 12, 1, 40, 7, 500):
        results(exp, (0, 0, 0.2, more), (1, 0, 0.7, more), seed=more)
        caught_up(trend, exp)
        assert POINTS / 2 - 1 <= len(trend.points) <= POINTS or len(exp.history.arms) < POINTS
        gaps = np.diff([0.0, *(point.spent for point in trend.points)])
        assert (gaps == gaps[0]).all()


def test_it_does_not_matter_how_often_it_was_looked_at():
    exp, often = experiment(fidelities=TWO), ConfidenceTrend()
    for seed in range(4):
        results(exp, (0, 0, 0.2, 30), (1, 0, 0.7, 3), (1, 1, 0.7, 5), seed=seed)
        caught_up(often, exp, (0, 1))
    assert caught_up(ConfidenceTrend(), exp, (0, 1)).points == often.points


def test_arms_count_from_when_they_came():
    exp = experiment()
    results(exp, (0, 0, 0.0, 12), (1, 0, 1.0, 12))
    exp.add_arm("c")
    results(exp, ("c", 0, 0.0, 40))
    points = caught_up(ConfidenceTrend(), exp).points  # after every fourth result
    assert [round(point.level, 1) for point in points[3:7]] == [1.0] * 3 + [0.0]
    assert points[-1].level > 0.9


def test_arms_that_went_do_not_count():
    exp = experiment(arms=("a", "b", "c"))
    results(exp, (0, 0, 0.0, 16), (1, 0, 1.0, 16))
    exp.retire_arm("c")
    assert caught_up(ConfidenceTrend(), exp).points[-1].level == 0.0
    results(exp, (0, 0, 0.0, 4))
    points = caught_up(ConfidenceTrend(), exp).points  # after every fourth result
    assert (points[-2].level, points[-1].level > 0.99) == (0.0, True)


def test_other_biases_begin_it_anew():
    exp = experiment(fidelities=TWO)
    results(exp, (0, 0, 0.2, 30), (1, 0, 0.7, 30))
    trend = caught_up(ConfidenceTrend(), exp, (0, 1))
    exp.set_biases([0.5, 0])
    results(exp, (0, 0, 0.2, 4))
    assert caught_up(trend, exp, (0, 1)).points == caught_up(ConfidenceTrend(), exp, (0, 1)).points
    assert trend.points[-1].level == 0.0


@pytest.mark.parametrize("counted", [(1,), ()])
def test_without_a_result_that_counts_nothing_is_known(counted):
    exp = experiment(fidelities=TWO)
    results(exp, (0, 0, 0.2, 3), (1, 0, 0.7, 3))
    points = caught_up(ConfidenceTrend(), exp, counted).points
    assert {(point.level, point.could_lose) for point in points} == {(0.0, math.inf)}
