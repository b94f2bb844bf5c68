"""What a block does to all arms alike is estimated by least squares."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mfbandit.core import block_effects, block_spread
from mfbandit.core.blocks import NOISE_TO_BLOCK_VARIANCE
from tests.support.effort import examples


def ones(arms):
    return np.ones(len(arms))


@st.composite
def cells(draw):
    """Cells of some arms and blocks, of very different sizes; the same cell may come twice."""
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    arms, blocks = (rng.integers(0, draw(st.integers(1, 6)), draw(st.integers(25, 25))) for _ in range(2))
    number = draw(st.integers(1, 25))
    numbers = rng.integers(1, 10 ** draw(st.integers(1, 6)), number).astype(float)
    return arms[:number], blocks[:number], numbers, numbers * rng.normal(size=number)


def design(arms, blocks, numbers):
    """Rows of the least squares problem, those that shrink block effects at the end."""
    width, rows = arms.max() + 1, np.arange(len(arms))
    found = np.zeros((len(arms) + blocks.max() + 1, width + blocks.max() + 1))
    found[rows, arms] = found[rows, width + blocks] = np.sqrt(numbers)
    shrunk = np.arange(blocks.max() + 1)
    found[len(arms) + shrunk, width + shrunk] = np.sqrt(NOISE_TO_BLOCK_VARIANCE)
    return found, width


class TestEffects:
    def test_one_that_all_have_seen_is_known(self):
        arms, blocks = np.tile(np.arange(50), 2), np.repeat([0, 1], 50)
        effects = block_effects(arms, blocks, ones(arms), 0.01 * arms + np.array([0.0, 0.3])[blocks])
        assert effects[1] - effects[0] == pytest.approx(0.3, rel=0.02)

    @settings(max_examples=examples(200))
    @given(cells())
    def test_they_are_the_least_squares_solution(self, given):
        arms, blocks, numbers, sums = given
        rows, width = design(arms, blocks, numbers)
        due = np.append(sums / np.sqrt(numbers), np.zeros(blocks.max() + 1))
        expected = np.linalg.lstsq(rows, due, rcond=1e-15)[0][width:]
        assert block_effects(arms, blocks, numbers, sums) == pytest.approx(expected, abs=1e-6)

    def test_weak_links_are_followed_to_their_end(self):
        """Each block shares one result with the next: passing values on in turns would take thousands of rounds."""
        number = 60
        arms = np.concatenate([np.arange(number), np.arange(number - 1)])
        blocks = np.concatenate([np.arange(number), np.arange(1, number)])
        numbers = np.concatenate([np.full(number, 1000.0), np.ones(number - 1)])
        truth = 0.1 * np.arange(number)
        effects = block_effects(arms, blocks, numbers, numbers * truth[blocks])
        rows, width = design(arms, blocks, numbers)
        due = np.append(np.sqrt(numbers) * truth[blocks], np.zeros(number))
        assert effects == pytest.approx(np.linalg.lstsq(rows, due, rcond=1e-15)[0][width:], abs=1e-6)

    @pytest.mark.parametrize("size", [1e-200, 1e-100, 1.0, 1e100, 1e150])
    def test_of_any_size(self, size):
        arms, blocks = np.array([0, 1, 0, 1]), np.array([0, 0, 1, 1])
        effects = block_effects(arms, blocks, ones(arms), size * np.array([0.0, 1.0, 1.0, 2.0]))
        assert np.isfinite(effects).all()
        assert effects[1] - effects[0] == pytest.approx(0.8 * size, rel=1e-9, abs=1e-130)


class TestSpread:
    @settings(max_examples=examples(200))
    @given(cells(), st.integers(0, 24))
    def test_it_is_what_the_difference_has_beside_its_own_noise(self, given, which):
        arms, blocks, numbers, _ = given
        _, arms = np.unique(arms, return_inverse=True)
        rows, width = design(arms, blocks, numbers)
        arm = int(arms[which % len(arms)])
        added = block_spread(arms, blocks, numbers, np.full(width, arm))
        inverse, by_arm = np.linalg.pinv(rows.T @ rows, rcond=1e-14), np.bincount(arms, numbers)
        for other in np.unique(arms[arms != arm]):
            contrast = np.zeros(rows.shape[1])
            contrast[arm], contrast[other] = 1, -1
            variance = contrast @ inverse @ contrast
            assert added[other] == pytest.approx(variance - 1 / by_arm[arm] - 1 / by_arm[other], rel=1e-4, abs=1e-6)
        assert added[arm] == 0
        assert block_spread(arms, blocks, numbers, np.arange(width)).tolist() == [0.0] * width

    def test_arms_that_were_played_alike_lose_nothing(self):
        arms, blocks = np.tile(np.arange(5), 3), np.repeat(np.arange(3), 5)
        assert block_spread(arms, blocks, 1.0 + blocks.astype(np.float64), np.full(5, 2)) == pytest.approx(
            np.zeros(5), abs=1e-12
        )
