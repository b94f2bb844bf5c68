"""Built-in problems: the paper's four (its Appendix C), and two on which MF-UCB does badly."""

from collections.abc import Sequence

import numpy as np

from mfbandit._internal.typing import FloatArray
from mfbandit._internal.validation import whole
from mfbandit.core import Bounded, Fidelities, SubGaussian
from mfbandit.errors import InvalidArgument
from mfbandit.problems.problem import Bernoulli, Gaussian, Problem

MIN_ARMS = 2  # of problems that compare arms


def paper_problem(number: int, seed: int | np.random.SeedSequence = 0) -> Problem:
    r"""Make one of the four problems of the paper's simulations, with low-fidelity means drawn from ``seed``.

    ======  =========  ====  ==  ========================  =====================  ======================
    number  rewards    K     M   ζ                         λ                      μ^(M)
    ======  =========  ====  ==  ========================  =====================  ======================
    1       Gaussian   500   3   0.2, 0.1, 0               1, 10, 1000            grid in (0, 1), σ = 0.2
    2       Gaussian   500   4   1, 0.5, 0.2, 0            1, 5, 20, 50           N(0, 1), σ = 1
    3       Bernoulli  200   2   0.2, 0                    1, 10                  grid in (0.1, 0.9)
    4       Bernoulli  1000  5   0.5, 0.2, 0.1, 0.05, 0    1, 3, 10, 30, 100      grid in (0.1, 0.9)
    ======  =========  ====  ==  ========================  =====================  ======================

    Low-fidelity means are uniform within ±ζ_m of μ^(M)_k. Those of Bernoulli problems are clipped to [0, 1].

    On the Gaussian problems the optimal arm's are μ* − ζ_m·U(½, 1), but below those of the best suboptimal arm at that
    fidelity. If no mean within the bias bound is, as on problem 2 where μ* can be 2ζ_m above all others, it is
    μ* − ζ_m.

    The paper's list has two slips: it writes M for K, and gives the Bernoulli problems a Gaussian deviation.

    Args:
        number: 1 to 4.
        seed: for the means that are drawn.

    >>> problem = paper_problem(1, seed=0)
    >>> problem.means.shape, problem.fidelities.costs
    ((3, 500), (1.0, 10.0, 1000.0))
    """
    if isinstance(seed, int) and seed < 0:
        raise InvalidArgument(f"seed must not be negative, got {seed}")
    rng = np.random.default_rng(seed)
    match number:
        case 1:
            grid = np.linspace(0, 1, 502)[1:-1]
            return _gaussian(grid, costs=(1, 10, 1000), biases=(0.2, 0.1, 0), sigma=0.2, rng=rng)
        case 2:
            normal = rng.standard_normal(500)
            return _gaussian(normal, costs=(1, 5, 20, 50), biases=(1, 0.5, 0.2, 0), sigma=1.0, rng=rng)
        case 3:
            return _bernoulli(np.linspace(0.1, 0.9, 200), costs=(1, 10), biases=(0.2, 0), rng=rng)
        case 4:
            grid = np.linspace(0.1, 0.9, 1000)
            return _bernoulli(grid, costs=(1, 3, 10, 30, 100), biases=(0.5, 0.2, 0.1, 0.05, 0), rng=rng)
        case _:
            raise InvalidArgument(f"number must be 1, 2, 3 or 4, got {number}")


def misleading_problem(arms: int = 20) -> Problem:
    r"""Make a problem whose low fidelities rank the arms in exactly the wrong order, within their bias bounds.

    Means at the highest fidelity are a grid from 0.4 to 0.6. At a low one, the best arm's mean is ζ_m lower, the worst
    arm's is ζ_m higher, and the others are in between. MF-UCB learns nothing from low fidelities here, and pays for
    its plays there.

    Args:
        arms: K ≥ 2.

    >>> problem = misleading_problem(arms=3)
    >>> problem.means.round(2).tolist()
    [[0.6, 0.5, 0.4], [0.52, 0.5, 0.48], [0.4, 0.5, 0.6]]
    """
    _check_arms(arms)
    fidelities = Fidelities(costs=(1, 4, 16), biases=(0.2, 0.12, 0), concentration=SubGaussian(0.2))
    truth = np.linspace(0.4, 0.6, arms)
    direction = np.linspace(1, -1, arms)
    return Problem(truth + fidelities.bias_column * direction, fidelities, Gaussian(0.2))


def gap_problem(arms: int = 10) -> Problem:
    r"""Make a problem with arms in K_2, where Theorem 4 leaves a gap.

    The low fidelity could settle these arms, but MF-UCB goes on to the high one. The two fidelities have costs 1 and
    100, ζ = 0.4, σ = 0.2. The best arm has mean 0.53 at both. The others have 0.5, and 0.1 at the low fidelity: a gap
    Δ^(1) = 0.03, above 0 but not above 2γ = 0.08.

    Args:
        arms: K ≥ 2.

    >>> problem = gap_problem(arms=3)
    >>> problem.means.tolist()
    [[0.1, 0.1, 0.53], [0.5, 0.5, 0.53]]
    """
    _check_arms(arms)
    fidelities = Fidelities(costs=(1, 100), biases=(0.4, 0), concentration=SubGaussian(0.2))
    means = np.array([[0.1] * (arms - 1) + [0.53], [0.5] * (arms - 1) + [0.53]])
    return Problem(means, fidelities, Gaussian(0.2))


def _check_arms(arms: int) -> None:
    if whole("arms", arms) < MIN_ARMS:
        raise InvalidArgument(f"arms must be at least {MIN_ARMS}, got {arms}")


def _gaussian(
    truth: FloatArray,
    *,
    costs: Sequence[float],
    biases: Sequence[float],
    sigma: float,
    rng: np.random.Generator,
) -> Problem:
    fidelities = Fidelities(costs, biases, SubGaussian(sigma))
    means = _around(truth, fidelities, rng)
    best = int(truth.argmax())
    means[:-1, best] = _lowered(means, best, fidelities, rng)
    return Problem(means, fidelities, Gaussian(sigma))


def _lowered(means: FloatArray, best: int, fidelities: Fidelities, rng: np.random.Generator) -> FloatArray:
    """Draw low-fidelity means of the optimal arm below another arm's, as far as the bias bound allows; (M − 1,)."""
    truth, bias = means[-1, best], fidelities.bias_column[:-1, 0]
    others = np.delete(means[:-1], best, axis=1).max(axis=1)
    floor = truth - bias
    low: FloatArray = rng.uniform(floor, np.clip(others, floor, truth - bias / 2))
    return low


def _bernoulli(
    truth: FloatArray, *, costs: Sequence[float], biases: Sequence[float], rng: np.random.Generator
) -> Problem:
    fidelities = Fidelities(costs, biases, Bounded(0, 1))
    return Problem(_around(truth, fidelities, rng).clip(0, 1), fidelities, Bernoulli())


def _around(truth: FloatArray, fidelities: Fidelities, rng: np.random.Generator) -> FloatArray:
    """Draw means uniform within ±ζ_m of the truth, shape (M, K); the last row is the truth itself."""
    means: FloatArray = truth + fidelities.bias_column * rng.uniform(-1, 1, (len(fidelities), len(truth)))
    return means
