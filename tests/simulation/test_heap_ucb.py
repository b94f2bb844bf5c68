"""The engine makes the plays of the plain formula: to the last play, and regret to the last bit."""

import os
import subprocess
import sys
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.scans import plain_scan, scan_arguments, tuned_scan
from mfbandit import (
    MFUCB,
    UCB,
    Bernoulli,
    Bounded,
    Fidelities,
    Gaussian,
    Problem,
    Replay,
    SubGaussian,
    paper_problem,
)
from mfbandit.simulation import plain_run
from mfbandit.simulation.engines import heap_ucb as engine
from mfbandit.simulation.engines.interface import begin_run
from mfbandit.simulation.engines.registry import engine_for
from tests.support import engines
from tests.support.effort import effort, examples
from tests.support.oracle import play_by_hand
from tests.support.problems import SubExponential
from tests.support.strategies import problems

WITHOUT_JIT = os.environ.get("NUMBA_DISABLE_JIT") == "1"


def engine_plays(problem, policy, n, seed, *, heap_arms=engine.HEAP_ARMS, stretch=10**9):
    """The first n plays of the engine, shape (n, 2), in stretches."""
    begin = partial(engine.begin, heap_arms=heap_arms)
    return engines.engine_plays(problem, policy, n, seed, stretch=stretch, begin=begin)


def scan_plays(scan, problem, policy, n, seed):
    trace = np.zeros((n, 2), dtype=np.int64)
    scan(*scan_arguments(problem, policy), n, np.random.default_rng(seed), trace)
    if type(policy) is UCB:
        trace[:, 1] += len(problem.fidelities) - 1
    return trace


def large_problem(k, rewards):
    rng = np.random.default_rng(0)
    bernoulli = isinstance(rewards, Bernoulli)
    fid = Fidelities([1, 10, 1000], [0.2, 0.1, 0], Bounded() if bernoulli else SubGaussian(0.2))
    means = np.linspace(0.1, 0.9, k) + fid.bias_column * rng.uniform(-1, 1, (3, k))
    return Problem(means.clip(0, 1) if bernoulli else means, fid, rewards)


@pytest.mark.skipif(WITHOUT_JIT, reason="too long without compiling")
class TestLongRuns:
    @pytest.mark.parametrize("number", [1, 2, 3, 4])
    @pytest.mark.parametrize("policy", [UCB(), MFUCB(), MFUCB(rho=0.05)], ids=str)
    def test_same_plays_as_the_oracle_on_the_papers_problems(self, number, policy):
        problem = paper_problem(number, seed=3)
        expected = scan_plays(plain_scan, problem, policy, 200_000, seed=4)
        assert np.array_equal(engine_plays(problem, policy, 200_000, seed=4), expected)
        if policy.rho < 1:  # these plays use the whole ladder
            assert len(np.unique(expected[:, 1])) == len(problem.fidelities)

    @pytest.mark.parametrize("number", [1, 4])
    @pytest.mark.parametrize("heap_arms", [5, 60])
    def test_sleeping_and_twins_change_no_play(self, number, heap_arms):
        problem = paper_problem(number, seed=5)
        awake = engine_plays(problem, MFUCB(), 200_000, seed=6)
        assert np.array_equal(engine_plays(problem, MFUCB(), 200_000, seed=6, heap_arms=heap_arms), awake)

    @pytest.mark.slow
    @pytest.mark.no_cover
    @pytest.mark.parametrize("rewards", [Gaussian(0.2), Bernoulli()], ids=str)
    def test_same_plays_as_a_scan_with_100_000_arms(self, rewards):
        problem = large_problem(100_000, rewards)
        expected = scan_plays(partial(tuned_scan, lanes=True), problem, MFUCB(), effort(120_000, 200_000), seed=7)
        assert np.array_equal(engine_plays(problem, MFUCB(), effort(120_000, 200_000), seed=7), expected)


def test_compiled_oracles_are_the_one_by_hand():
    for number, policy in ((1, MFUCB(rho=0.05)), (3, MFUCB(rho=0.05)), (3, UCB())):
        problem = paper_problem(number, seed=3)
        n = problem.arms + (20 if WITHOUT_JIT else 700)
        multi = isinstance(policy, MFUCB)
        by_hand = play_by_hand(problem, n, np.random.default_rng(4), rho=policy.rho, multi_fidelity=multi)
        for scan in (plain_scan, tuned_scan):
            assert scan_plays(scan, problem, policy, n, seed=4).tolist() == [list(play) for play in by_hand]


@pytest.mark.no_cover
@settings(max_examples=10 if WITHOUT_JIT else examples(150))
@given(
    problems(max_arms=60),
    st.sampled_from([MFUCB, MFUCB, UCB]),
    st.sampled_from([0.02, 0.5, 2.0]),
    st.integers(0, 2**32),
    st.sampled_from([2, 7, engine.HEAP_ARMS]),
    st.sampled_from([1, 37, 10**9]),
)
def test_same_plays_as_by_hand_on_any_problem(problem, kind, rho, seed, heap_arms, stretch):
    n = 150 if WITHOUT_JIT else 600
    policy = kind(rho=rho)
    by_hand = play_by_hand(problem, n, np.random.default_rng(seed), rho=rho, multi_fidelity=kind is MFUCB)
    plays = engine_plays(problem, policy, n, seed, heap_arms=heap_arms, stretch=stretch)
    assert plays.tolist() == [list(play) for play in by_hand]


@pytest.mark.parametrize("replace", [True, False])
@pytest.mark.parametrize("policy", [UCB(rho=0.1), MFUCB(rho=0.1)], ids=str)
@pytest.mark.parametrize("heap_arms", [3, engine.HEAP_ARMS])
def test_replayed_rewards(replace, policy, heap_arms):
    rng = np.random.default_rng(0)
    # Halves: sums of them tie, and with equal tables arms are twins for as long as they are replayed alike.
    samples = [[rng.integers(0, 3, 400) / 2 for _ in range(6)] * 2 for _ in range(2)]
    past = Replay(samples, replace=replace)
    fid = Fidelities([1, 4], [2.0, 0], Bounded())
    problem = Problem(past.means, fid, past)
    by_hand = play_by_hand(problem, 400, np.random.default_rng(1), rho=0.1, multi_fidelity=isinstance(policy, MFUCB))
    assert engine_plays(problem, policy, 400, 1, heap_arms=heap_arms).tolist() == [list(play) for play in by_hand]


@pytest.mark.skipif(WITHOUT_JIT, reason="too long without compiling")
@settings(max_examples=examples(100))
@given(problems(max_arms=60), st.sampled_from([0.001, 0.1, 2.0]), st.integers(0, 2**32), st.sampled_from([1, 2, 5]))
def test_sleeping_changes_no_play_in_longer_runs(problem, rho, seed, heap_arms):
    expected = scan_plays(plain_scan, problem, MFUCB(rho=rho), 20_000, seed)
    assert np.array_equal(engine_plays(problem, MFUCB(rho=rho), 20_000, seed, heap_arms=heap_arms), expected)


def test_a_list_that_comes_out_empty():
    """The best index falls below the threshold of a list just when the next one's time is over: here at play 182."""
    rng = np.random.default_rng(1)
    k, fid = int(rng.choice([30, 60, 120])), Fidelities([1, 2], [0.4, 0], Bounded())
    means = (rng.random(k) + fid.bias_column * rng.uniform(-1, 1, (2, k))).clip(0, 1)
    problem = Problem(means, fid, Bernoulli())
    expected = scan_plays(plain_scan, problem, MFUCB(rho=0.02), 250, seed=1)
    assert np.array_equal(engine_plays(problem, MFUCB(rho=0.02), 250, seed=1, heap_arms=1), expected)


@pytest.mark.no_cover
@pytest.mark.parametrize("rewards", ["deterministic", "close together"])
def test_ties_and_near_ties_among_many_arms(rewards):
    """Equal arms are found to be twins, and sums that differ by little are told apart without a long search."""
    k = 60 if WITHOUT_JIT else effort(1000, 3000)
    fid, rng = Fidelities([1], concentration=Bounded()), np.random.default_rng(0)
    if rewards == "deterministic":
        problem = Problem(np.full((1, k), 0.5), fid, Gaussian(0.0))
    else:
        past = Replay([[0.9 + 0.001 * rng.random(5) for _ in range(k)]])
        problem = Problem(past.means, fid, past)
    n = k + 200
    by_hand = play_by_hand(problem, n, np.random.default_rng(1), multi_fidelity=False)
    plays = engine_plays(problem, UCB(), n, 1, heap_arms=20 if WITHOUT_JIT else engine.HEAP_ARMS)
    assert plays.tolist() == [list(play) for play in by_hand]


@pytest.mark.skipif(WITHOUT_JIT, reason="nothing is compiled")
def test_nothing_is_compiled_twice():
    past = Replay([[[0.1, 0.2]]])
    one = Fidelities([1], concentration=Bounded())
    cases = (
        (paper_problem(1), MFUCB()),
        (paper_problem(1), UCB()),
        (paper_problem(3), UCB()),
        (Problem([[0.5]], one, Bernoulli()), MFUCB()),
        (Problem(past.means, one, past), MFUCB()),
    )
    for problem, policy in cases:
        engine_plays(problem, policy, 10, 0)
    assert len(engine.run_on.signatures) == 1


@pytest.mark.no_cover
@settings(max_examples=10 if WITHOUT_JIT else examples(60))
@given(
    problems(max_arms=12, max_fidelities=4),
    st.sampled_from([MFUCB(rho=0.1), UCB(rho=0.1)]),
    st.sampled_from(["paper", "own", "top", "harmless"]),
    st.lists(st.floats(0.01, 1.0), min_size=1, max_size=6, unique=True),
    st.integers(0, 2**32),
    st.sampled_from([1, 50]),
)
def test_regret_at_every_capital_to_the_last_bit(problem, policy, account, shares, seed, stretch):
    capital = problem.fidelities.costs[-1] * (20 if WITHOUT_JIT else 120)
    capitals = np.array(sorted(shares)) * capital
    if capitals[-1] < problem.fidelities.costs[-1]:
        return
    plain = plain_run(problem, policy, capitals, account, np.random.default_rng(seed), lambda _: None)
    assert engine_for(problem, policy) is engine
    started, rng = begin_run(engine, problem, policy, capitals, account), np.random.default_rng(seed)
    while started.running:
        started.advance(rng, stretch)
    made = started.result(problem)
    assert made.regret.tolist() == plain.regret.tolist()
    assert np.array_equal(made.plays, plain.plays)
    assert (made.steps, made.spent) == (plain.steps, plain.spent)


def test_what_it_can_run():
    problem = paper_problem(3)
    assert engine_for(problem, UCB()) is engine
    assert engine_for(problem, type("Mine", (UCB,), {})()) is None
    mixed = Fidelities([1, 10], [0.3, 0], [SubExponential(), SubGaussian(1.0)])
    problem = Problem([[0.1], [0.2]], mixed, Gaussian(1.0))
    assert engine_for(problem, UCB()) is engine
    assert engine_for(problem, MFUCB()) is None
    assert engine_for(Problem([[0.1]], Fidelities([1]), Gaussian(1.0)), UCB()) is None


@pytest.mark.only_cover
@pytest.mark.skipif(WITHOUT_JIT, reason="this is what it starts")
def test_the_same_without_compiling():
    """The kernels as plain Python pass the same tests; this is also how their lines are counted as covered."""
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "--no-cov", "-p", "no:cacheprovider", __file__]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
