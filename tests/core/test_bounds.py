import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mfbandit import Bounded, Fidelities, NoResults, Stats, SubGaussian
from mfbandit.core.bounds import bounds_table, lower_bounds, most_promising, safest, upper_bounds, width, widths
from tests.support.problems import SubExponential

FID = Fidelities([1, 10], [0.2, 0], SubGaussian(0.3))


def stats(counts, sums, pending=None, active=None):
    counts, sums = np.array(counts), np.array(sums, dtype=float)
    pending = np.zeros_like(counts) if pending is None else np.array(pending)
    active = np.ones(counts.shape[1], dtype=bool) if active is None else np.array(active)
    return Stats(counts, sums, sums**2, pending, active)


@given(st.integers(1, 10**6), st.integers(2, 10**9), st.floats(0.1, 10), st.booleans())
def test_width_is_psi_inv_and_the_same_alone_as_in_an_array(plays, t, rho, square):
    fid = FID if square else Fidelities([1, 10], [0.2, 0], SubExponential())
    table = widths(np.array([[plays, 1], [0, plays]]), t, fid, rho)
    assert table[0, 0] == table[1, 1] == width(plays, 0, t, fid, rho)
    assert table[0, 0] == pytest.approx(fid.tails[0].psi_inv(rho * math.log(t) / plays), rel=1e-12)
    assert table[1, 0] == math.inf


def test_bounds_by_hand():
    # t = 1 + 5, u = sqrt(log 6); fidelity 0: 1.2/4 + 0.2 + u·0.3·2/2, fidelity 1: 0.9 + 0 + u·0.3·2.
    u = math.sqrt(math.log(6))
    seen = stats([[4, 0], [1, 0]], [[1.2, 0], [0.9, 0]])
    upper = upper_bounds(seen, FID, rho=2)
    assert upper[:, 0] == pytest.approx([0.5 + 0.3 * u, 0.9 + 0.6 * u])
    assert upper[:, 1].tolist() == [math.inf, math.inf]
    assert lower_bounds(seen, FID, rho=2)[:, 0] == pytest.approx([0.1 - 0.3 * u, 0.9 - 0.6 * u])


def test_the_order_of_operations_is_part_of_the_contract():
    # (X̄ + ζ) + u·((σ·sqrt(2ρ))/sqrt(T)), to the last bit, for hundreds of sums and counts; other orders differ.
    counts, sums = (grid.ravel() for grid in np.meshgrid(np.arange(1, 40), np.arange(0, 40), indexing="ij"))
    top = np.ones_like(counts)
    seen = stats([counts, top], [sums, top])
    u = math.sqrt(math.log(seen.time))
    slopes = [0.3 * math.sqrt(2 * 2.0) / math.sqrt(n) for n in counts.tolist()]
    by_hand = [(s / n + 0.2) + u * b for s, n, b in zip(sums.tolist(), counts.tolist(), slopes, strict=True)]
    other_order = [(s / n + u * b) + 0.2 for s, n, b in zip(sums.tolist(), counts.tolist(), slopes, strict=True)]
    assert upper_bounds(seen, FID, rho=2.0)[0].tolist() == by_hand
    assert by_hand != other_order


@pytest.mark.parametrize("t", [9170, 19143, 94869])
def test_logarithms_are_those_of_the_math_module(t):
    # At such t np.log may differ from math.log in the last bit.
    assert widths(np.array([[1], [1]]), t, FID, 2.0)[0, 0] == math.sqrt(math.log(t)) * (0.3 * math.sqrt(4.0) / 1.0)


def test_pending_plays_narrow_the_upper_bound_and_leave_the_lower_one():
    seen = stats([[4], [1]], [[1.2], [0.9]], pending=[[5], [0]])
    u = math.sqrt(math.log(11))
    assert upper_bounds(seen, FID, rho=2)[0, 0] == pytest.approx(0.5 + 0.2 * u)
    assert lower_bounds(seen, FID, rho=2).tolist() == lower_bounds(seen.told, FID, rho=2).tolist()


def test_nothing_is_nan_before_the_first_play():
    empty = Stats.empty(2, 3)
    assert np.isposinf(upper_bounds(empty, FID, 2)).all()
    assert np.isneginf(lower_bounds(empty, FID, 2)).all()
    assert np.isposinf(widths(empty.counts, 1, Fidelities([1, 2], [1, 0], SubExponential()), 2)).all()
    assert widths(np.array([[3], [0]]), 1, FID, 2).tolist() == [[0.0], [math.inf]]


class TestMostPromising:
    def test_lowest_number_among_ties(self):
        assert most_promising(np.array([1.0, 2.0, 2.0]), stats([[1, 1, 1]], [[1, 2, 2]])) == 1

    def test_untouched_first(self):
        seen = stats([[1, 0, 0]], [[9, 0, 0]], pending=[[0, 1, 0]])
        assert most_promising(np.array([9.0, math.inf, math.inf]), seen) == 2

    def test_then_results_before_waiting_ones(self):
        seen = stats([[1, 1, 0]], [[1, 2, 0]], pending=[[0, 0, 1]])
        assert most_promising(np.array([1.0, 2.0, math.inf]), seen) == 1

    def test_then_fewest_pending(self):
        seen = stats([[0, 0, 0]], [[0, 0, 0]], pending=[[2, 1, 1]])
        assert most_promising(np.full(3, math.inf), seen) == 1

    def test_pending_plays_of_all_fidelities_count(self):
        seen = stats([[0, 0], [0, 0]], [[0, 0], [0, 0]], pending=[[1, 0], [0, 2]])
        assert most_promising(np.full(2, math.inf), seen) == 0

    def test_never_an_inactive_one(self):
        for active, arm in ([False, True, True], 1), ([False, False, True], 2):
            seen = stats([[0, 0, 0]], [[0, 0, 0]], pending=[[0, 3, 4]], active=active)
            assert most_promising(np.full(3, math.inf), seen) == arm


def test_safest_needs_an_active_arm_with_a_result():
    with pytest.raises(NoResults, match="no active arm has a result"):
        safest(np.array([0.5, -math.inf]), stats([[1, 0]], [[1, 0]], active=[False, True]))


def test_table_without_biases_bounds_by_the_top_fidelity_alone():
    table = bounds_table(stats([[4], [4]], [[2], [2]]), Fidelities([1, 2], concentration=Bounded()), 2.0, ["a"])
    assert table.upper[0, 0] == math.inf
    assert math.isfinite(table.upper[1, 0])


def test_printed_columns_never_run_together():
    seen = stats([[1, 1]], [[-123456.0, 98765.0]])
    text = str(bounds_table(seen, Fidelities([1], concentration=Bounded(), names=["true"]), 2.0, ["a", "b"]))
    assert [line.split()[:4] for line in text.splitlines()[1:]] == [
        ["b", "true", "1", "98765.0000"],
        ["a", "true", "1", "-123456.0000"],
    ]


def test_printed_table_shows_the_leading_arms():
    n = 30
    seen = stats([[1] * (n - 1) + [0]], [[*range(n - 1), 0]])
    text = str(bounds_table(seen, Fidelities([1], concentration=Bounded()), 2.0, [f"arm-{k}" for k in range(n)]))
    lines = text.splitlines()
    assert lines[0].split() == ["arm", "fidelity", "plays", "mean", "width", "lower", "upper"]
    assert lines[1].startswith("arm-28")
    assert lines[-1] == "... and 10 more arms"
    assert len({len(line) for line in lines[:-1]}) == 1
