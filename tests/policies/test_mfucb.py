import math

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from mfbandit import MFUCB, UCB, Experiment, Fidelities, Stats, SubGaussian, paper_problem
from tests.support.effort import effort, examples
from tests.support.oracle import play_by_hand
from tests.support.strategies import problems


def ask_tell(problem, policy, n, rng):
    """The first n plays by asking and telling, one at a time."""
    experiment = Experiment(policy, arms=problem.arms, fidelities=problem.fidelities)
    earlier = np.zeros(problem.means.shape, dtype=int)
    plays = []
    for _ in range(n):
        play = experiment.ask()
        at = play.fidelity, play.arm
        experiment.tell(play, problem.draw(play.arm, play.fidelity, rng, earlier=int(earlier[at])))
        earlier[at] += 1
        plays.append((play.arm, play.fidelity))
    return plays


@pytest.mark.no_cover
@pytest.mark.parametrize("number", [1, 2, 3, 4])
@pytest.mark.parametrize("policy", [UCB(), MFUCB(), MFUCB(rho=0.02)])
def test_same_plays_as_by_hand_on_the_papers_problems(number, policy):
    problem = paper_problem(number, seed=7)
    n = problem.arms + 1500
    several = isinstance(policy, MFUCB)
    by_hand = play_by_hand(problem, n, np.random.default_rng(5), rho=policy.rho, multi_fidelity=several)
    assert ask_tell(problem, policy, n, np.random.default_rng(5)) == by_hand
    if policy.rho < 1:  # with the paper's rho so few plays do not leave the lowest fidelity
        assert len({fidelity for _, fidelity in by_hand}) >= min(3, len(problem.fidelities))


@pytest.mark.no_cover
@settings(max_examples=examples(100))
@given(
    problems(any_psi=True),
    st.sampled_from([MFUCB, MFUCB, UCB]),
    st.sampled_from([0.02, 0.5, 2.0, 5.0]),
    st.integers(0, 2**32),
)
def test_same_plays_as_by_hand_on_any_problem(problem, kind, rho, seed):
    n = effort(500, 1000)
    by_hand = play_by_hand(problem, n, np.random.default_rng(seed), rho=rho, multi_fidelity=kind is MFUCB)
    assert ask_tell(problem, kind(rho=rho), n, np.random.default_rng(seed)) == by_hand
    event(f"{kind.__name__}, fidelities played: {len({fidelity for _, fidelity in by_hand})}")


@given(problems(max_fidelities=1), st.integers(0, 2**32))
@settings(max_examples=examples(20))
def test_with_one_fidelity_it_is_ucb(problem, seed):
    plays = [ask_tell(problem, policy, 200, np.random.default_rng(seed)) for policy in (MFUCB(), UCB())]
    assert plays[0] == plays[1]


def test_moves_on_once_the_width_is_below_gamma():
    fid = Fidelities([1, 10], [0.2, 0], SubGaussian(0.1))
    (gamma,) = fid.gammas
    stats = Stats.empty(2, 1)
    for plays in range(1, 200):
        stats.counts[0, 0] = plays
        now = stats.copy()
        width = 0.1 * np.sqrt(2 * 2 * np.log(now.time) / plays)
        assert MFUCB().choose(now, fid) == (0, 0 if width >= gamma else 1)
    assert width < gamma


def test_a_width_equal_to_gamma_stays():
    # T = 1 and t = 2: the width is sqrt(log 2)·2σ; with costs 1 : 4, gamma is ζ/2. Find a σ that makes them equal.
    def fid(scale):
        return Fidelities([1, 4], [1.0, 0], SubGaussian(scale))

    def width(scale):
        return math.sqrt(math.log(2)) * (scale * math.sqrt(4.0))

    start = 0.25 / math.sqrt(math.log(2))
    equal = [s for s in np.nextafter(start, [0, start, 1]).tolist() if width(s) == fid(s).gammas[0]]
    stats = Stats.empty(2, 1)
    stats.counts[0, 0] = 1
    assert equal
    assert all(MFUCB().choose(stats.copy(), fid(scale)) == (0, 0) for scale in equal)


def test_recommends_by_the_lower_bound():
    # Arm 0 has the higher mean and one play; arm 1 was played often.
    fid = Fidelities([1, 10], [0.2, 0], SubGaussian(0.5))
    stats = Stats.empty(2, 2)
    stats.counts[1] = [1, 50]
    stats.sums[1] = [0.7, 30.0]
    assert MFUCB().recommend(stats, fid) == 1
    assert MFUCB().index(stats, fid).argmax() == 0


def test_needs_biases():
    with pytest.raises(ValueError, match="biases are needed here"):
        MFUCB().choose(Stats.empty(2, 2), Fidelities([1, 2], concentration=SubGaussian(1)))


@pytest.mark.parametrize("rho", [0, -1, float("nan"), float("inf")])
def test_rho_must_be_positive(rho):
    for kind in (UCB, MFUCB):
        with pytest.raises(ValueError, match=f"rho must be positive and finite, got {rho}"):
            kind(rho=rho)
