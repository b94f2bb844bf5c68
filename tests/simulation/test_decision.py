"""A policy that decides ends the run: in Python and compiled, with its answer."""

from dataclasses import dataclass

import numpy as np
import pytest

from mfbandit import (
    UCB,
    Bernoulli,
    Bounded,
    Fidelities,
    Gaussian,
    MFSure,
    Problem,
    SubGaussian,
    simulate,
)
from mfbandit.errors import InvalidArgument
from mfbandit.simulation import plain_run
from mfbandit.simulation.engines.registry import engine_for

EASY = Problem([[0.2, 0.5, 0.1], [0.2, 0.6, 0.1]], Fidelities([1, 10], [0.1, 0], SubGaussian(0.1)), Gaussian(0.1))


@dataclass(frozen=True)
class AfterTen:
    """UCB for ten plays; then it answers with some arm."""

    answer: int = 1

    def choose(self, stats, fidelities):
        return UCB().choose(stats, fidelities)

    def index(self, stats, fidelities):
        return UCB().index(stats, fidelities)

    def recommend(self, stats, fidelities):
        return UCB().recommend(stats, fidelities)

    def decision(self, stats, _fidelities):
        return self.answer if stats.counts.sum() == 10 else None


def test_a_run_ends_with_the_answer():
    sim = simulate(EASY, MFSure(delta=0.1), capital=1e5, runs=5, grid=[5, 1e5])
    assert sim.answers.tolist() == [1] * 5
    assert (sim.spent < 1000).all()


def test_a_run_without_an_answer_says_so():
    assert simulate(EASY, MFSure(delta=1e-9), capital=30, runs=2, grid=1).answers.tolist() == [-1, -1]
    assert simulate(EASY, UCB(), capital=300, runs=2, grid=1).answers.tolist() == [-1, -1]


def test_regret_goes_on_with_the_answer():
    """Ten plays of UCB at cost 10, then 900 on arm 0, which is 0.4 behind."""
    right, wrong = (simulate(EASY, AfterTen(arm), capital=1000, grid=[100, 1000]) for arm in (1, 0))
    assert right.steps.tolist() == wrong.steps.tolist() == [10]
    assert right.regret[0, 0] == right.regret[0, 1] == wrong.regret[0, 0]
    assert wrong.regret[0, 1] - wrong.regret[0, 0] == pytest.approx(900 * 0.4)


def test_kept_chunks_have_the_answers(tmp_path):
    sims = [simulate(EASY, MFSure(), capital=1e4, runs=3, grid=1, results=tmp_path, workers=1) for _ in range(2)]
    assert sims[0].answers.tolist() == sims[1].answers.tolist() == [1, 1, 1]


def test_an_answer_that_is_no_arm():
    with pytest.raises(InvalidArgument, match=r"decision of AfterTen.* must be an active arm or None, got 7"):
        simulate(EASY, AfterTen(7), capital=1000)


@pytest.mark.parametrize("noise", ["gaussian", "clicks"])
def test_engine_and_python_decide_at_the_same_play(noise):
    if noise == "clicks":
        problem = Problem([[0.15, 0.7], [0.1, 0.75]], Fidelities([1, 10], [0.06, 0], Bounded()), Bernoulli())
    else:
        problem = EASY
    policy = MFSure(delta=0.05, tolerance=0.01)
    assert engine_for(problem, policy) is not None
    fast = simulate(problem, policy, capital=1e5, runs=4, grid=1)
    for run in range(4):
        rng = np.random.default_rng(np.random.SeedSequence(0, spawn_key=(run,)))
        slow = plain_run(problem, policy, np.array([1e5]), "paper", rng, lambda _: None)
        assert (slow.answer, slow.spent) == (fast.answers[run], fast.spent[run])
        assert slow.answer == 1
