"""The benchmark of days: swings that are told do not change the winner, and those that are not look like changes."""

import pytest

from benchmarks.days import KINDS, followed


@pytest.mark.parametrize("name", KINDS)
def test_the_winner_of_three_weeks(name):
    swings, told = KINDS[name]
    of_looks, right, of_plays, changed = followed(3, 400, swings=swings, told=told)
    assert 0 < of_plays < 1
    assert changed == (name == "told without")
    assert (right and of_looks == 1) or name == "told without"
