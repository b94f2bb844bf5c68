"""Wrong claims about the best arm, with a look after each play; the benchmark has more runs, and all cases."""

from dataclasses import replace

import numpy as np
import pytest

import mfbandit as mfb
from benchmarks.validity import (
    CONTROLS,
    DELTAS,
    EVEN,
    GAUSSIAN,
    RANGE,
    RARE,
    Case,
    Looks,
    cases,
    limit,
    measured,
    our_own,
    problem_of,
    verdicts,
)
from mfbandit.simulation.engines import mfsure
from mfbandit.simulation.engines.interface import begin_run
from tests.support.laplace import Laplace

RUNS = 300
OWN = replace(GAUSSIAN, name="Laplace", told=Laplace(1.0), unit=lambda rng, size: rng.laplace(size=size))
SMALL = [
    Case(GAUSSIAN, 2, 1, "uniform", plays=200),
    Case(GAUSSIAN, 2, 1, "adversary", plays=200),
    Case(GAUSSIAN, 2, 2, "MFSure", plays=150),
    Case(GAUSSIAN, 2, 5, "adversary", plays=100),
    Case(GAUSSIAN, 2, 2, "adversary", tolerance=0.2, plays=150),
    Case(GAUSSIAN, 10, 1, "uniform", plays=100),
    Case(RARE, 2, 1, "uniform", plays=200),
    Case(RARE, 2, 2, "adversary", plays=150),
    Case(EVEN, 2, 1, "adversary", plays=200),
    Case(EVEN, 2, 2, "MFSure", plays=100),
    Case(RANGE, 2, 2, "adversary", plays=150),
    Case(OWN, 2, 2, "adversary", plays=100),
    Case(GAUSSIAN, 6, 1, "adversary", plays=500, changing=True),
    Case(EVEN, 6, 2, "uniform", plays=300, changing=True),
]


@pytest.mark.slow
@pytest.mark.parametrize("case", SMALL, ids=lambda case: case.name)
def test_wrong_claims_are_rare_however_often_one_looks(case):
    result = measured(case, RUNS, seed=1)
    for delta, claims, pairs in zip(DELTAS, result["claims"], result["pairs"], strict=True):
        assert claims <= pairs <= limit(delta, RUNS)
    assert verdicts({case.name: result}) == []


def test_wrong_claims_are_seen_where_the_noise_is_larger_than_told():
    result = measured(replace(CONTROLS[0], plays=100), 200)
    assert min(result["claims"]) > 0.1
    assert verdicts({CONTROLS[0].name: result}) == []
    assert len(verdicts({"another": result})) == len(DELTAS)


def test_a_control_that_sees_nothing_is_reported():
    nothing = {"runs": 200, "claims": [0.0] * 3, "pairs": [0.0] * 3}
    assert len(verdicts({CONTROLS[0].name: nothing})) == len(DELTAS)


@pytest.mark.parametrize("noise", [GAUSSIAN, EVEN], ids=lambda noise: noise.name)
def test_plays_of_our_own_policy_get_the_rewards_that_it_saw(noise):
    case = Case(noise, 3, 2, "MFSure", plays=60)
    made, units = our_own(case, 1, seed=5)
    sums = np.zeros((3, 2))
    for (arm, m), unit in zip(made[0].tolist(), units[0], strict=True):
        sums[arm, m] += noise.reward(unit, case.means[m, arm])
    engine = begin_run(mfsure, problem_of(case), mfb.MFSure(), np.array([1e9]))
    engine.advance(np.random.default_rng(np.random.SeedSequence(5).spawn(1)[0]), 60)
    assert engine.state.sums.tolist() == sums.tolist()


def test_arms_come_and_go():
    looks = Looks(Case(GAUSSIAN, 6, 1, "uniform", changing=True), runs=2)
    assert looks.active.sum(axis=1).tolist() == [3, 3]
    assert set(zip(looks.wrong.tolist(), looks.better.tolist(), strict=True)) == {(0, 2), (1, 2)}
    looks.stats.counts[:], looks.stats.sums[:] = 1, np.arange(12)
    looks.change(80)
    assert looks.active.sum(axis=1).tolist() == [4, 4]
    looks.change(160)
    assert not looks.active[:, 3].any()
    assert len(looks.wrong) == 6
    assert looks.live.sum(axis=1).tolist() == [3, 3]


def test_every_case_that_must_hold_is_there():
    names = {case.name for case in cases()}
    assert len(names) == len(cases())
    for noise in ("normal", "0/1, 5 %", "0/1, 50 %"):
        for arms in (2, 10):
            for number in (1, 2, 5):
                for sampling in ("uniform", "adversary", "MFSure"):
                    assert f"{noise}, K = {arms}, M = {number}, {sampling}" in names
