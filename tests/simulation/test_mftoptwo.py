"""MFTopTwo compiled: the plays of its plain form where results repeat themselves, and where some are hopeless."""

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mfbandit as mfb
from mfbandit.policies import outliers
from mfbandit.simulation.engines.outliers import least_hopeful, ranked
from mfbandit.simulation.engines.registry import engine_for
from tests.support.effort import examples
from tests.support.engines import engine_plays, listed
from tests.support.oracle_policies import policy_plays


@st.composite
def recorded(draw):
    """Problems whose plays repeat themselves, or nearly; some arms are hopeless, and some are equal."""
    arms, fidelities = draw(st.integers(1, 12) | st.integers(30, 45)), draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    means = rng.random(arms) + rng.normal(0, 0.05, (fidelities, arms))
    if draw(st.booleans()):
        means[:, rng.integers(arms)] -= 1000
    if draw(st.booleans()):
        means = means.round(1)
    values = [[[float(mean)] * 3 for mean in row] for row in means]
    if draw(st.booleans()):
        values[0][rng.integers(arms)][1] += draw(st.sampled_from([0.1, 1e-9]))
    rewards = mfb.Replay(values)
    costs = np.cumprod(draw(st.lists(st.sampled_from([1.25, 3.0, 10.0]), min_size=fidelities, max_size=fidelities)))
    return mfb.Problem(rewards.means, mfb.Fidelities(costs.tolist()), rewards)


@st.composite
def policies(draw, problem):
    """Policies with little and much capital for a problem."""
    whole = problem.arms * problem.fidelities.costs[-1]
    return mfb.MFTopTwo(
        capital=draw(st.sampled_from([0.01, 0.1, 0.5, 3.0, 30.0])) * whole,
        share=draw(st.sampled_from([0.75, 0.3])),
        kappa=draw(st.sampled_from([1.0, 1.5, 3.0])),
        deterministic=draw(st.sampled_from([None, None, True, False])),
    )


@given(problem=recorded(), seed=st.integers(0, 2**32), data=st.data())
@settings(max_examples=examples(60), deadline=None)
def test_plays_are_those_of_the_plain_path(problem, seed, data):
    policy = data.draw(policies(problem))
    n = 2 * problem.arms + 40
    plays = listed(engine_plays(problem, policy, n, seed, stretch=data.draw(st.sampled_from([1, 29, 10**9]))))
    assert plays == policy_plays(problem, policy, n, seed)


@given(values=st.lists(st.floats(-1e6, 1e6) | st.sampled_from([0.0, 1.0]), min_size=1, max_size=40), data=st.data())
def test_a_rank_is_that_of_the_sorted_values(values, data):
    rank = data.draw(st.integers(0, len(values) - 1))
    assert ranked(np.array(values), len(values), rank) == sorted(values)[rank]


@given(means=st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=30))
def test_what_is_hopeless_is_what_the_policy_calls_so(means):
    k = len(means)
    stats = mfb.Stats.empty(fidelities=1, arms=k)
    stats.counts[:], stats.sums[0] = 1, means
    counts, room = np.ones((k, 1), dtype=np.int64), np.zeros(k)
    least = least_hopeful(counts, np.array(means)[:, None], 0, k, room)
    assert np.array_equal(np.maximum(means, least), outliers.raised(stats).sums[0])


def test_fewer_fidelities_than_the_problems_are_reported_where_they_are():
    problem = mfb.paper_problem(2, seed=0)
    sim = mfb.simulate(problem, mfb.MFTopTwo(capital=3e4), capital=3e4)
    engine = engine_for(problem, mfb.MFTopTwo(capital=3e4))
    assert engine is not None
    assert engine.used(problem, mfb.MFTopTwo(capital=3e4)) == [2, 3]
    assert (sim.plays[:2] == 0).all()
    assert sim.plays[2:].sum() == sim.steps[0]


@pytest.mark.only_cover
def test_the_same_without_compiling():
    """The kernels as plain Python; this is also how their lines are counted as covered."""
    command = [sys.executable, "-m", "pytest", "-q", "--no-cov", "-p", "no:cacheprovider"]
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1", "MFBANDIT_THOROUGH": "0"}
    tests = [
        f"{__file__}::test_plays_are_those_of_the_plain_path",
        f"{__file__}::test_a_rank_is_that_of_the_sorted_values",
    ]
    done = subprocess.run([*command, *tests], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
