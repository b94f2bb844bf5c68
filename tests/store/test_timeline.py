"""Spending over time: nothing gets lost, however long it takes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mfbandit.store.timeline import STEPS, Timeline

# Whole and half costs, so that sums are exact in any order; gaps from milliseconds to years.
gaps = st.floats(0, 1e8) | st.floats(0, 2)
payments = st.lists(st.tuples(gaps, st.integers(0, 2), st.integers(0, 200).map(lambda n: n / 2)), max_size=60)


def arrays(paid):
    times = 1.7e9 + np.cumsum([gap for gap, _, _ in paid], dtype=np.float64)
    return times, np.array([m for _, m, _ in paid], dtype=np.int64), np.array([cost for *_, cost in paid], dtype=float)


def one_by_one(paid):
    timeline = Timeline(fidelities=3)
    for time, fidelity, cost in zip(*arrays(paid), strict=True):
        timeline.add(float(time), int(fidelity), float(cost))
    return timeline


@given(payments, st.integers(0, 60))
def test_all_at_once_or_in_two_parts_is_as_one_by_one(paid, cut):
    together, parts = Timeline(fidelities=3), Timeline(fidelities=3)
    times, fidelities, costs = arrays(paid)
    together.add_all(times, fidelities, costs)
    parts.add_all(times[:cut], fidelities[:cut], costs[:cut])
    parts.add_all(times[cut:], fidelities[cut:], costs[cut:])
    for other in (together, parts):
        assert (other.start, other.width) == (one_by_one(paid).start, one_by_one(paid).width)
        assert (other.spent == one_by_one(paid).spent).all()


@given(payments)
def test_totals_are_kept_and_never_go_down(paid):
    times, series = one_by_one(paid).series()
    _, fidelities, costs = arrays(paid)
    for m, row in enumerate(series):
        assert row[-1] == costs[fidelities == m].sum()
        assert row == sorted(row)
        assert len(row) == len(times) <= STEPS + 1
    assert times == sorted(times)


@given(payments.filter(lambda paid: sum(cost for *_, cost in paid) > 0))
def test_it_ends_when_the_last_was_paid(paid):
    timeline = one_by_one(paid)
    moments, _, costs = arrays(paid)
    end = timeline.series()[0][-1]
    last = moments[costs > 0].max()
    assert end - timeline.width == pytest.approx(last, abs=timeline.width)


def test_a_clock_that_is_set_back_counts_at_the_start():
    timeline = Timeline(fidelities=1)
    timeline.add(100.0, 0, 1.0)
    timeline.add(40.0, 0, 2.0)
    timeline.add_all(np.array([50.0]), np.array([0]), np.array([4.0]))
    assert timeline.spent[0, 0] == 7.0


def test_nothing_spent_is_a_single_point():
    assert Timeline(fidelities=2).series() == ([0.0], [[0.0], [0.0]])
