import math
import re

import pytest

from mfbandit import Bounded, Fidelities, SubGaussian
from tests.support.problems import SubExponential

NOISE = "concentration must be Bounded(low, high), SubGaussian(scale) or an object with nu, psi and psi_inv, got"


def test_gammas_by_hand():
    # ψ(x) = x²/(2σ²): γ_m = ζ_m·sqrt(λ_m/λ_{m+1}), whatever σ is.
    fid = Fidelities([1, 4, 64], [0.4, 0.2, 0], SubGaussian(3.0))
    assert fid.gammas == pytest.approx([0.4 * 0.5, 0.2 * 0.25], rel=1e-12)
    assert Fidelities([7], concentration=Bounded()).gammas == ()


def test_gammas_with_a_psi_of_ones_own():
    fid = Fidelities([1, 10], [0.3, 0], SubExponential())
    tail = SubExponential()
    assert tail.psi(fid.gammas[0]) == pytest.approx(0.1 * tail.psi(0.3), rel=1e-12)


def test_gammas_use_the_psi_of_their_own_fidelity():
    # For psi that are not squares gamma depends on which one it is.
    low, high = SubExponential(), SubGaussian(1.0)
    (gamma,) = Fidelities([1, 10], [0.3, 0], [low, high]).gammas
    assert low.psi(gamma) == pytest.approx(0.1 * low.psi(0.3), rel=1e-12)
    assert high.psi(gamma) != pytest.approx(0.1 * high.psi(0.3), rel=1e-3)


def test_a_subclass_may_have_a_psi_of_its_own():
    class Wider(SubGaussian):
        def psi_inv(self, y, /):
            return 100 * super().psi_inv(y)

    assert Fidelities([1], concentration=Wider(1.0)).scales is None


def test_one_concentration_for_all_or_one_each():
    each = Fidelities([1, 2], [0.1, 0], [SubGaussian(1), SubGaussian(2)])
    assert each.scales is not None
    assert each.scales.tolist() == [[1], [2]]
    assert each.top.tails == (SubGaussian(2),)
    assert Fidelities([1, 2], [0.1, 0], [SubGaussian(1), SubExponential()]).scales is None


def test_values_are_kept_as_plain_tuples_and_compare_equal():
    one, two = (Fidelities(costs, [0.1, 0], Bounded()) for costs in ([1, 2], (1.0, 2.0)))
    assert one == two
    assert hash(one) == hash(two)
    assert one.names == ("0", "1")


def test_one_fidelity_is_the_truth():
    assert Fidelities([5]).biases == (0.0,)
    assert Fidelities([5, 6]).biases is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([10, 1],), "costs must be strictly increasing, got [10.0, 1.0]"),
        (([1, 1],), "costs must be strictly increasing, got [1.0, 1.0]"),
        (([0, 1],), "costs must be positive and finite, got [0.0, 1.0]"),
        (([1, math.inf],), "costs must be positive and finite, got [1.0, inf]"),
        (([],), "costs must have at least one value, got []"),
        ((5,), "costs must be a sequence of numbers, got 5"),
        ((["x"],), "costs must be a sequence of numbers, got ['x']"),
        (([1, 2], [0.1]), "biases must have one value for each of the 2 costs, got 1: [0.1]"),
        (([1, 2], [0.1, 0.05]), "biases must end in 0, the bias of the highest fidelity, got [0.1, 0.05]"),
        (([1, 2, 3], [0.1, 0.2, 0]), "biases must be strictly decreasing, got [0.1, 0.2, 0.0]"),
        (([1, 2], [0, 0]), "biases must be strictly decreasing, got [0.0, 0.0]"),
        (([1, 2], [math.nan, 0]), "biases must be finite, got [nan, 0.0]"),
        (([1], None, 0.2), f"{NOISE} 0.2"),
        (([1, 2], None, [Bounded(), 3]), f"{NOISE} 3"),
        (([1], None, Bounded), f"{NOISE} the class Bounded itself"),
        (([1, 2], None, "bounded"), f"{NOISE} 'bounded'"),
        (([1, 2], None, ["bounded", "bounded"]), f"{NOISE} 'bounded'"),
        (([1, 2], None, b"bounded"), f"{NOISE} b'bounded'"),
        (([1, 2], None, {"name": "Bounded"}), f"{NOISE} {{'name': 'Bounded'}}"),
        (("12",), "costs must be a sequence of numbers, got '12'"),
        (([1, 2], None, [Bounded()]), "concentration must be one for all or one for each of the 2 costs, got 1"),
        (([1, 2], None, None, ["x"]), "names must have one value for each of the 2 costs, got 1: ['x']"),
    ],
)
def test_bad_input(arguments, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        Fidelities(*arguments)


def test_what_is_not_known_is_asked_for_by_name():
    unknown = Fidelities([1, 2])
    with pytest.raises(ValueError, match="biases are needed here"):
        _ = unknown.known_biases
    with pytest.raises(ValueError, match="biases are needed here"):
        _ = Fidelities([1, 2], concentration=Bounded()).gammas
    with pytest.raises(ValueError, match="a concentration is needed here"):
        _ = unknown.tails


class TestAdvice:
    def test_nothing_to_say(self):
        assert Fidelities([1, 10, 1000], [0.2, 0.1, 0], SubGaussian(0.2)).advice() == ()
        assert Fidelities([1, 10]).advice() == ()

    def test_a_bias_too_small_to_square(self):
        assert Fidelities([1, 10], [1e-200, 0], SubGaussian(1)).advice() == ()

    def test_little_cheaper(self):
        (advice,) = Fidelities([1, 8, 10], [0.4, 0.1, 0], SubGaussian(1)).advice()
        assert advice == "Fidelity 1 costs 0.8 times as much as fidelity 2: it saves little. Consider leaving it out."

    def test_little_better(self):
        (advice,) = Fidelities([1, 10, 100], [0.2, 0.19, 0], SubGaussian(1)).advice()
        start = "Fidelity 1 has 0.95 times the bias of fidelity 0: little better, for 10 times the cost"
        assert advice.startswith(start)

    def test_wider_than_the_rewards(self):
        (advice,) = Fidelities([1, 10], [1.5, 0], Bounded(0, 1)).advice()
        assert (
            advice == "The bias of fidelity 0, 1.5, is as wide as the range of the rewards, 1: "
            "its results say nothing about the highest fidelity."
        )

    def test_decay_condition_with_both_sides(self):
        # ψ(x) = x²/2: 1/ψ(0.4) + 1/ψ(0.3) = 12.5 + 22.22 = 34.72 > 1/ψ(0.25) = 32.
        (advice,) = Fidelities([1, 10, 100, 1000], [0.4, 0.3, 0.25, 0], SubGaussian(1)).advice()[-1:]
        assert "Assumption 1" in advice
        assert "over fidelities 0 to 1 is 34.72, more than 1/psi(bias) = 32 of fidelity 2" in advice

    def test_decay_condition_of_the_paper_holds_with_equality(self):
        biases = [2**-0.5, 0.5, 2**-1.5]
        sides = [1 / SubGaussian(1).psi(bias) for bias in biases]
        assert sum(sides[:2]) <= sides[2]
        assert not any(
            "Assumption 1" in line for line in Fidelities([1, 9, 99, 999], [*biases, 0], SubGaussian(1)).advice()
        )
