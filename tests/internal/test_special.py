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
        x = np.concatenate([np.linspace(0, 30, 20_001), np.logspace(1, 8, 200)])
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
        assert slope[0] >= 0

    def test_log_mills_of_single_numbers(self):
        z = np.linspace(-60, 30, 5_001)
        assert [log_mills_ratio(one) for one in z] == pytest.approx(log_mills(z)[0], abs=1e-12)

    def test_log_gamma(self):
        x = np.concatenate([np.logspace(-3, 9, 20_001), np.linspace(0.5, 3, 1_001)])
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
