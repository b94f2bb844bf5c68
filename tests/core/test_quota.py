"""Shares of plays: every stretch, any shares that sum to at most 1, whatever is chosen."""

import itertools
import math
from fractions import Fraction

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from mfbandit.core import Quota
from mfbandit.core.quota import LEAST, units
from tests.support.effort import examples


@st.composite
def shares(draw):
    """K, a control or none, its share and that of the others, often tight; as exact fractions."""
    arms, control = draw(st.integers(1, 8)), draw(st.booleans())
    others = arms - control
    first = draw(st.sampled_from([Fraction(0), *(Fraction(1, n) for n in (2, 3, 4, 7, 10)), Fraction(2, 3)]))
    if not control:
        first = Fraction(0)
    most = (1 - first) / others if others else Fraction(0)
    part = draw(st.sampled_from([Fraction(0), Fraction(1, 2), Fraction(9, 10), Fraction(1)]))
    least = min(part * most, Fraction(1, arms))
    return arms, draw(st.integers(0, arms - 1)) if control else -1, max(first, least) if control else first, least


def fewest(given: list[int], arm: int, share: Fraction) -> Fraction:
    """The least of (plays of the arm) − share·n over all stretches: above −1 if every stretch has ⌊share·n⌋."""
    worst = highest = total = Fraction(0)
    for one in given:
        total += (one == arm) - share
        worst, highest = min(worst, total - highest), max(highest, total)
    return worst


@given(shares(), st.lists(st.integers(0, 7), max_size=300), st.sampled_from(["any", "one", "two"]))
@settings(max_examples=examples(150))
def test_every_stretch_has_its_share_whatever_is_chosen(split, chosen, kind):
    arms, control, first, least = split
    active = np.ones(arms, dtype=np.bool_)
    quota = Quota(arms, control=control, control_share=float(first), least_share=float(least))
    given_out: list[int] = []
    for number, one in enumerate(chosen):
        wanted = {"any": one, "one": 0, "two": one % 2}[kind] % arms
        given_out.append(quota.arm(wanted, active))
        quota.asked(number, given_out[-1])
    for arm in range(arms):
        assert fewest(given_out, arm, first if arm == control else least) > -1


@given(shares(), st.data())
@settings(max_examples=examples(60))
def test_arms_that_come_and_go_do_not_cost_others_their_share(split, data):
    arms, control, first, least = split
    active = np.ones(arms, dtype=np.bool_)
    quota = Quota(arms, control=control, control_share=float(first), least_share=float(least))
    since, given_out = [0] * arms, []
    for number in range(data.draw(st.integers(0, 120))):
        if data.draw(st.integers(0, 9)) == 0:
            arm = data.draw(st.integers(0, arms - 1))
            if arm != control and (not active[arm] or active.sum() > 1):
                active[arm] = not active[arm]
                since[arm] = number
                if active[arm]:
                    quota.comes(arm)
        wanted = data.draw(st.sampled_from(np.flatnonzero(active).tolist()))
        given_out.append(quota.arm(wanted, active))
        assert active[given_out[-1]]
        quota.asked(number, given_out[-1])
    for arm in np.flatnonzero(active).tolist():
        assert fewest(given_out[since[arm] :], arm, first if arm == control else least) > -1


def test_the_choice_is_taken_as_long_as_all_can_be_served():
    active = np.ones(3, dtype=np.bool_)
    quota = Quota(3, control=2, control_share=0.1)
    given_out = []
    for number in range(40):
        given_out.append(quota.arm(0, active))
        quota.asked(number, given_out[-1])
    assert [number for number, arm in enumerate(given_out) if arm == 2] == [9, 19, 29, 39]


def test_plays_by_choice_count():
    active = np.ones(2, dtype=np.bool_)
    quota = Quota(2, control=1, control_share=0.5)
    given_out = []
    for number, wanted in enumerate(itertools.islice(itertools.cycle([0, 1]), 20)):
        given_out.append(quota.arm(wanted, active))
        quota.asked(number, given_out[-1])
    assert given_out == [0, 1] * 10


def test_a_lost_play_is_owed_again_but_once():
    active = np.ones(2, dtype=np.bool_)
    quota = Quota(2, control=1, control_share=0.1)
    quota.asked(0, 1)
    quota.lost(0, 1, expired=True)
    assert quota.arm(0, active) == 1
    quota.asked(1, 1)
    quota.lost(1, 1, expired=True)
    quota.lost(1, 1)  # a late failure of what had expired is owed once
    quota.asked(2, quota.arm(0, active))
    assert quota.arm(0, active) == 0


def test_units_are_whole_for_decimals_and_sum_to_at_most_one():
    assert units(LEAST) == 10**6
    assert all(units(n / 100) == n * 10**10 for n in range(101))
    assert all(n * units(1 / n) <= 10**12 + n for n in range(1, 3000))
    assert math.isclose(units(1 / 3), 10**12 / 3, rel_tol=1e-11)
