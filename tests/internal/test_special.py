"""Special functions and roots, against SciPy's and by their definition."""

import math

import numpy as np
import pytest
from scipy import special

from mfbandit._internal.roots import increasing_root
from mfbandit._internal.special import erfcx, log_gamma, log_mills
from mfbandit.core.estimate import log_mills_ratio


class TestSpecial:
    def test_erfcx(self):
        x = np.concatenate([np.linspace(0, 30, 20_001), np.logspace(-300, -1, 200), np.logspace(1, 300, 500)])
        assert erfcx(x) == pytest.approx(special.erfcx(x), rel=2e-14)

    def test_log_mills(self):
        z = np.linspace(-35, 35, 20_001)
        value, slope = log_mills(z)
        assert value == pytest.approx(special.log_ndtr(z) + z * z / 2, abs=1e-12)
        ratio = np.exp(-z * z / 2 - special.log_ndtr(z)) / math.sqrt(2 * math.pi)
        assert slope == pytest.approx(z + ratio, abs=1e-11)

    def test_log_mills_far_out(self):
        value, slope = log_mills(np.array([-1e8, 1e8]))
        assert value[0] == pytest.approx(-math.log(1e8 * math.sqrt(2 * math.pi)))
        assert value[1] == pytest.approx(0.5e16)
        assert slope[1] == 1e8
        assert slope[0] == pytest.approx(1e-8)

    def test_slope_of_log_mills_is_smooth_far_out(self):
        """1/|z| for z far below 0, where z + φ/Φ by itself would be rounding alone, of either sign."""
        z = -np.logspace(1, 150, 3_000)
        slope = log_mills(z)[1]
        assert (slope > 0).all()
        assert (np.diff(slope) < 0).all()
        far = z < -100
        assert slope[far] == pytest.approx((-1 / z)[far], rel=1e-3)
        near = np.linspace(-60, -40, 10_001)  # across the place where the formula changes
        assert (np.diff(log_mills(near)[1]) > 0).all()

    def test_log_mills_beyond_what_can_be_squared(self):
        with np.errstate(all="raise", under="ignore"):
            value, slope = log_mills(np.array([-1e300, -1e160, 1e160, 1e300]))
        assert value[:2] == pytest.approx(
            [-math.log(1e300 * math.sqrt(2 * math.pi)), -math.log(1e160 * math.sqrt(2 * math.pi))]
        )
        assert value[2:].tolist() == [math.inf, math.inf]
        assert slope[2:].tolist() == [1e160, 1e300]

    def test_log_mills_of_single_numbers(self):
        z = np.linspace(-60, 30, 5_001)
        assert [log_mills_ratio(one) for one in z] == pytest.approx(log_mills(z)[0], abs=1e-12)

    def test_log_gamma(self):
        x = np.concatenate([np.logspace(-3, 9, 20_001), np.linspace(0.5, 3, 1_001), np.logspace(9, 300, 500)])
        assert log_gamma(x) == pytest.approx(special.gammaln(x), rel=1e-13, abs=1e-13)


class TestRoots:
    def test_each_root_depends_on_its_own_function_alone(self):
        rng = np.random.default_rng(0)
        powers, levels = rng.choice([1, 3, 5], 500), rng.normal(0, 100, 500)
        low, high = rng.normal(-1, 1, 500), rng.normal(2, 0.1, 500)
        together = increasing_root(lambda x: x**powers - levels, low, high)
        alone = [self.one_root(powers[i], levels[i], low[i : i + 1], high[i : i + 1]) for i in range(500)]
        assert together.tolist() == alone
        assert together**powers == pytest.approx(levels, rel=1e-6, abs=1e-6)

    def one_root(self, power, level, low, high):
        return increasing_root(lambda x: x**power - level, low, high)[0]

    def test_flat_stretch(self):
        root = increasing_root(lambda x: np.maximum(x - 2, 0) + np.minimum(x, 0), np.array([-5.0]), np.array([9.0]))
        assert 0 <= root[0] <= 2

    def test_a_root_that_does_not_exist_is_where_the_function_is_nearest_to_one(self):
        falls_to_0 = increasing_root(lambda x: -1 / (1 + np.abs(x)), np.array([0.0]), np.array([1.0]))
        assert falls_to_0[0] > 1e6
        assert increasing_root(np.exp, np.array([0.0]), np.array([1.0]))[0] < -100

    def test_functions_that_begin_and_end_somewhere(self):
        found = increasing_root(
            lambda x: x - np.array([-3.0, 0.25, 7.0]), np.full(3, 0.4), np.full(3, 0.6), least=0.0, most=np.full(3, 1.0)
        )
        assert found.tolist() == [0.0, pytest.approx(0.25), 1.0]

    def test_area_bounds_how_far_a_convex_function_is_above_its_minimum(self):
        """However steep it is: (s·x)²/2 − s·x has the minimum −½."""
        steep = np.logspace(-3, 12, 100)
        root = increasing_root(
            lambda x: steep * (steep * x - 1), np.full(100, -1e6), np.full(100, 1e6), tolerance=0.0, area=1e-8
        )
        assert (0.5 * (steep * root) ** 2 - steep * root <= -0.5 + 1e-8).all()
