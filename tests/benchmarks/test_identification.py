"""The benchmark of finding the best arm: its problems, its lower bound, and what it objects to."""

import copy
import math

import numpy as np
import pytest

from benchmarks.identification import ALONE, UNIFORM, measured, on_random, shares_table, table, verdicts
from benchmarks.identification_bounds import best_shares, evidence_rates, known_proportions, lower_bound
from benchmarks.identification_problems import (
    Instance,
    cut,
    five_by_two,
    gap,
    gaussian,
    highest_alone,
    mu3,
    random_problem,
)


def test_problems():
    assert five_by_two().means.tolist() == [[0.4, 0.4, 0.4, 0.4, 0.5], [0.5, 0.5, 0.5, 0.5, 0.6]]
    assert mu3().means.shape == (5, 4)
    assert gap(mu3()) == pytest.approx(0.11)
    assert cut(3).arms == 20
    assert gap(random_problem(1, 50, ahead=0.1)) == pytest.approx(0.1)
    assert highest_alone(five_by_two()).means.tolist() == [[0.5, 0.5, 0.5, 0.5, 0.6]]


def test_the_lower_bound_of_two_arms():
    """Half of the cost each: T* = 8σ²λ/Δ²."""
    found, exact = best_shares(gaussian([[0.5, 0.3]], 0.1, [0.0], [3.0])), 8 * 0.01 * 3 / 0.04
    assert found.least <= exact * (1 + 1e-9)
    assert exact <= found.cost * (1 + 1e-9)
    assert found.shares.ravel() == pytest.approx([0.5, 0.5], abs=0.03)


@pytest.mark.parametrize("problem", [mu3(), random_problem(102, 20), random_problem(120, 5)])
def test_no_shares_reach_more_than_the_bound(problem):
    """Neither shares that are tried at random, nor ones near those that were found."""
    found, rng = best_shares(problem), np.random.default_rng(0)
    assert found.least <= found.cost <= 1.002 * found.least
    assert 1 / evidence_rates(problem, found.shares)[0].min() == pytest.approx(found.cost)
    for _ in range(50):
        for near in (np.ones(problem.means.shape), found.shares):
            shares = near * rng.gamma(1.0, size=near.shape)
            assert evidence_rates(problem, shares / shares.sum())[0].min() <= 1 / found.least


def test_a_cheap_fidelity_lowers_it():
    both, alone = (best_shares(problem).least for problem in (mu3(), highest_alone(mu3())))
    assert both < alone
    assert lower_bound(both, 1e-6) > 5 * lower_bound(both, 0.1)


def test_known_proportions():
    best = best_shares(mu3())
    assert best.shares.sum() == pytest.approx(1)
    costs = [known_proportions(mu3(), best, 0.1, np.random.default_rng(seed)) for seed in range(5)]
    assert lower_bound(best.least, 0.1) < np.mean(costs) < 20 * best.cost


@pytest.fixture(scope="module")
def results():
    instance = Instance("5x2", five_by_two(), 1e5)
    row = {rule: measured(instance, rule, 0.1, 5) for rule in ("MFSure", ALONE)}
    easy = [seed for seed in range(20) if gap(random_problem(seed, 20)) > 0.08][:2]
    problems = on_random(lambda seed: random_problem(seed, 20), list(row), 0.1, easy, 1e6)
    return {
        "named": {"5x2": {"0.1": row}},
        "lower bounds": {"5x2": {"0.1": lower_bound(100.0, 0.1)}},
        "random": {UNIFORM: {"0.1": problems}},
        "step": {"100": 20.0},
    }


def test_what_is_measured(results):
    row = results["named"]["5x2"]["0.1"]
    assert row["MFSure"]["ended"] == 1
    assert 100 < row["MFSure"]["cost"] < row[ALONE]["cost"] < 1500
    assert math.isfinite(row["MFSure"]["half"])
    assert verdicts(results) == []
    assert "MFSure" in table(results)
    assert "| 0.03 to 1 | 2 |" in shares_table(results["random"][UNIFORM]["0.1"])


def test_what_it_objects_to(results):
    worse = copy.deepcopy(results)
    row = worse["named"]["5x2"]["0.1"]
    row["MFGrad"] = row["MFSure"] | {"cost": 300.0, "half": 9.0}
    row["IISE"] = row["MFSure"] | {"cost": 9e3, "half": 1.0}
    row["MFSure"] = row["MFSure"] | {"cost": 200.0, "wrong": 0.9}
    for problem in worse["random"][UNIFORM]["0.1"].values():
        problem["MFSure"] |= {"ended": 0.5, "costs": [1e9]}
    worse["step"] = {"100": 31.0}
    assert [line.split(":")[0] for line in verdicts(worse)] == [
        "5x2, δ = 0.1",
        "MFGrad on 5x2",
        "IISE on 5x2",
        "5x2, δ = 0.1",
        "random, 20 arms",
        "random, 20 arms",
        "random, 20 arms",
        "a step at K = 100",
    ]
