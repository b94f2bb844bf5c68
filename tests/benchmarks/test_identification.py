"""The benchmark of finding the best arm: its problems, its lower bound, and what it objects to."""

import copy
import math

import pytest

from benchmarks.identification import (
    Instance,
    characteristic_cost,
    cut,
    five_by_two,
    gap,
    gaussian,
    highest_alone,
    lower_bound,
    measured,
    mu3,
    on_random,
    random_problem,
    table,
    verdicts,
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
    problem = gaussian([[0.5, 0.3]], 0.1, [0.0], [3.0])
    assert characteristic_cost(problem, steps=300) == pytest.approx(8 * 0.01 * 3 / 0.04, rel=0.01)


def test_a_cheap_fidelity_lowers_it():
    both, alone = (characteristic_cost(problem, steps=200) for problem in (mu3(), highest_alone(mu3())))
    assert both < alone
    assert lower_bound(both, 1e-6) > 5 * lower_bound(both, 0.1)


@pytest.fixture(scope="module")
def results():
    instance = Instance("5x2", five_by_two(), 1e5)
    row = {rule: measured(instance, rule, 0.1, 5) for rule in ("MFSure", "highest alone")}
    easy = [seed for seed in range(20) if gap(random_problem(seed, 20)) > 0.08][:2]
    costs = {rule: on_random(lambda seed: random_problem(seed, 20), rule, easy, 1e6) for rule in row}
    return {
        "named": {"5x2": {"0.1": row}},
        "lower bounds": {"5x2": {"0.1": lower_bound(100.0, 0.1)}},
        "random": {"20 arms": costs},
        "step": {"100": 20.0},
        "least ratios": [0.4],
    }


def test_what_is_measured(results):
    row = results["named"]["5x2"]["0.1"]
    assert row["MFSure"]["ended"] == 1
    assert 100 < row["MFSure"]["cost"] < row["highest alone"]["cost"] < 1500
    assert math.isfinite(row["MFSure"]["half"])
    assert verdicts(results) == []
    assert "MFSure" in table(results)


def test_what_it_objects_to(results):
    worse = copy.deepcopy(results)
    row = worse["named"]["5x2"]["0.1"]
    row["MFGrad"] = row["MFSure"] | {"cost": 300.0, "half": 9.0}
    row["IISE"] = row["MFSure"] | {"cost": 9e3, "half": 1.0}
    row["MFSure"] = row["MFSure"] | {"cost": 200.0, "wrong": 0.9}
    worse["random"]["20 arms"]["MFSure"] |= {"ended": 0.5, "costs": [1e9, 1e9]}
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
