import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mfbandit import Fidelities, Gaussian, Problem, SubGaussian, pseudo_rewards, regret

FID = Fidelities([1, 10], [0.2, 0], SubGaussian(0.1))
PROBLEM = Problem([[0.5, 0.4], [0.4, 0.6]], FID, Gaussian(0.1))
PLAYS = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1)), max_size=30)


def by_definition(plays, capital, account):
    """Λμ* − Σ λ q over the largest number of plays that fits, one play at a time."""
    means, costs, best = PROBLEM.means, FID.costs, 0.6
    left, earned = capital, 0.0
    for k, m in plays:
        if costs[m] > left + 1e-9:
            break
        q = {
            "paper": means[1, k],
            "own": means[m, k],
            "top": means[1, k] if m == 1 else 0.0,
            "harmless": means[1, k] if m == 1 else best,
        }[account]
        left -= costs[m]
        earned += costs[m] * q
    return capital * best - earned


@given(PLAYS, st.floats(0, 400), st.sampled_from(["paper", "own", "top", "harmless"]))
def test_equals_the_definition(plays, capital, account):
    arms, fidelities = [k for k, _ in plays], [m for _, m in plays]
    assert regret(PROBLEM, arms, fidelities, capital, account=account) == pytest.approx(
        by_definition(plays, capital, account), abs=1e-9
    )


def test_by_hand():
    # Λ = 12: plays cost 1 + 10, the third (10) does not fit. Residual 1·0.6; arm 0 at cost 1 loses 0.2.
    assert regret(PROBLEM, [0, 1, 0], [0, 1, 1], 12) == pytest.approx(0.6 + 0.2)
    assert regret(PROBLEM, [0, 1, 0], [0, 1, 1], [0, 1, 21]) == pytest.approx([0, 0.2, 0.2 + 10 * 0.2])


def test_shape_follows_the_capital():
    assert regret(PROBLEM, [0], [0], np.ones((2, 3))).shape == (2, 3)
    assert regret(PROBLEM, [], [], 5.0) == pytest.approx(3.0)


def test_costs_that_miss_the_capital_by_rounding_fit():
    fid = Fidelities([0.1], concentration=SubGaussian(1))
    problem = Problem([[0.0, 1.0]], fid, Gaussian(1))
    assert 0.1 * 3 > 0.3
    assert regret(problem, [1, 1, 1], [0, 0, 0], 0.3) == pytest.approx(0, abs=1e-12)


def test_playing_a_negative_best_arm_is_no_regret():
    problem = Problem([[-2.0, -1.0]], Fidelities([1]), Gaussian(1))
    assert regret(problem, [1, 1], [0, 0], 2) == 0


def test_accounts_differ_only_below_the_top():
    tables = {name: pseudo_rewards(PROBLEM, name) for name in ("paper", "own", "top", "harmless")}
    assert all((table[-1] == PROBLEM.means[-1]).all() for table in tables.values())
    assert {name: table[0].tolist() for name, table in tables.items()} == {
        "paper": [0.4, 0.6],
        "own": [0.5, 0.4],
        "top": [0, 0],
        "harmless": [0.6, 0.6],
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0], [0, 0], 1), "arms and fidelities must be equally long, got 1 and 2"),
        (([2], [0], 1), "arms must lie in 0 to 1, got 2 to 2"),
        (([0], [-1], 1), "fidelities must lie in 0 to 1, got -1 to -1"),
        (([0.5], [0], 1), "arms must be a list of whole numbers, got [0.5]"),
        (([0], [0], -1), "capital must be finite and not negative, got -1"),
        (([0], [0], math.nan), "capital must be finite and not negative, got nan"),
    ],
)
def test_bad_input(arguments, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        regret(PROBLEM, *arguments)


def test_unknown_account():
    with pytest.raises(ValueError, match=r"account must be one of .*'harmless'.*, got 'mine'"):
        pseudo_rewards(PROBLEM, "mine")  # type: ignore[arg-type]
