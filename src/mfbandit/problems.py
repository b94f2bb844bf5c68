"""Ready problems: the paper's four (its Appendix C), one whose low fidelities mislead, and real learning curves."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np

from mfbandit.arrays import FloatArray, IntArray
from mfbandit.concentration import Bounded, SubGaussian
from mfbandit.fidelities import Fidelities
from mfbandit.problem import Bernoulli, Gaussian, Problem, Replay
from mfbandit.values import whole


def paper_problem(number: int, seed: int | np.random.SeedSequence = 0) -> Problem:
    r"""One of the four problems of the paper's simulations, with fresh low-fidelity means.

    ======  =========  ====  ==  ========================  =====================  ======================
    number  rewards    K     M   ζ                         λ                      μ^(M)
    ======  =========  ====  ==  ========================  =====================  ======================
    1       Gaussian   500   3   0.2, 0.1, 0               1, 10, 1000            grid in (0, 1), σ = 0.2
    2       Gaussian   500   4   1, 0.5, 0.2, 0            1, 5, 20, 50           N(0, 1), σ = 1
    3       Bernoulli  200   2   0.2, 0                    1, 10                  grid in (0.1, 0.9)
    4       Bernoulli  1000  5   0.5, 0.2, 0.1, 0.05, 0    1, 3, 10, 30, 100      grid in (0.1, 0.9)
    ======  =========  ====  ==  ========================  =====================  ======================

    Low-fidelity means are uniform within ±ζ_m of the truth. On the Gaussian problems the optimal arm's are
    μ* − ζ_m·U(½, 1), kept below the best-looking suboptimal arm's (where problem 2's best arm is more than 2ζ_m
    ahead of all others no mean within its bound is, and it gets μ* − ζ_m). Bernoulli ones are clipped to [0, 1].
    (The paper's list writes M for K, and gives the Bernoulli problems a Gaussian deviation: slips.)

    Args:
        number: 1 to 4.
        seed: for the means that are drawn.

    >>> problem = paper_problem(1, seed=0)
    >>> problem.means.shape, problem.fidelities.costs
    ((3, 500), (1.0, 10.0, 1000.0))
    """
    if isinstance(seed, int) and seed < 0:
        raise ValueError(f"seed must not be negative, got {seed}")
    rng = np.random.default_rng(seed)
    if number == 1:
        grid = np.linspace(0, 1, 502)[1:-1]
        return _gaussian(grid, costs=(1, 10, 1000), biases=(0.2, 0.1, 0), sigma=0.2, rng=rng)
    if number == 2:  # noqa: PLR2004 - the paper's numbering
        normal = rng.standard_normal(500)
        return _gaussian(normal, costs=(1, 5, 20, 50), biases=(1, 0.5, 0.2, 0), sigma=1.0, rng=rng)
    if number == 3:  # noqa: PLR2004
        return _bernoulli(np.linspace(0.1, 0.9, 200), costs=(1, 10), biases=(0.2, 0), rng=rng)
    if number == 4:  # noqa: PLR2004
        grid = np.linspace(0.1, 0.9, 1000)
        return _bernoulli(grid, costs=(1, 3, 10, 30, 100), biases=(0.5, 0.2, 0.1, 0.05, 0), rng=rng)
    raise ValueError(f"number must be 1, 2, 3 or 4, got {number}")


def misleading_problem(arms: int = 20) -> Problem:
    r"""Gaussian arms that every low fidelity ranks in exactly the wrong order, within its bias bound.

    The truth is a grid from 0.4 to 0.6; the better an arm, the lower it looks: the best one's low means are
    ζ_m below the truth, the worst one's ζ_m above, and the others in between. MF-UCB gains nothing from its
    low fidelities here, and pays for having looked.

    Args:
        arms: K ≥ 2.

    >>> problem = misleading_problem(arms=3)
    >>> problem.means.round(2).tolist()
    [[0.6, 0.5, 0.4], [0.52, 0.5, 0.48], [0.4, 0.5, 0.6]]
    """
    if whole("arms", arms) < 2:  # noqa: PLR2004 - one arm cannot be ranked wrongly
        raise ValueError(f"arms must be at least 2, got {arms}")
    fidelities = Fidelities(costs=(1, 4, 16), biases=(0.2, 0.12, 0), concentration=SubGaussian(0.2))
    truth = np.linspace(0.4, 0.6, arms)
    pull = np.linspace(1, -1, arms)
    return Problem(truth + fidelities.bias_column * pull, fidelities, Gaussian(0.2))


def gap_problem(arms: int = 10) -> Problem:
    r"""Gaussian arms of K_2: a cheap look could settle them, and MF-UCB goes on to an expensive one (Theorem 4's gap).

    Two fidelities at costs 1 and 100, ζ = 0.4, σ = 0.2. The best arm has mean 0.53 at both; the others 0.5, and 0.1 as
    the low fidelity shows them. That is a gap Δ^(1) = 0.03, above 0 but not above 2γ = 0.08.

    Args:
        arms: K ≥ 2.

    >>> problem = gap_problem(arms=3)
    >>> problem.means.tolist()
    [[0.1, 0.1, 0.53], [0.5, 0.5, 0.53]]
    """
    if whole("arms", arms) < 2:  # noqa: PLR2004 - a gap is between two
        raise ValueError(f"arms must be at least 2, got {arms}")
    fidelities = Fidelities(costs=(1, 100), biases=(0.4, 0), concentration=SubGaussian(0.2))
    means = np.array([[0.1] * (arms - 1) + [0.53], [0.5] * (arms - 1) + [0.53]])
    return Problem(means, fidelities, Gaussian(0.2))


LEARNING_CURVE_MARGIN = 1.01  # biases must decrease strictly; a bound may be a little wide


def learning_curve_problem(name_or_id: str | int) -> Problem:
    r"""Which of 20 scikit-learn learners is best on a real data set? Smaller training sets are the cheap fidelities.

    Arms are learners (18 to 20: those with results on this data set, see :func:`learners`), fidelities are training-set
    sizes, about N/64, N/16, N/4 and N, a cost is the mean training time at that size in seconds, and a reward is the
    test accuracy on a random split, drawn from recorded ones.

    What the policy is told is an oracle's, taken from the same table: ζ_m is the largest distance of any arm's mean at
    m, or at a size between m and N, from its mean at N (plus 1 % of the next one's, as biases must decrease); the noise
    at m is the root mean square over arms of the standard deviation of their results.

    Args:
        name_or_id: a data set of :func:`learning_curve_names`, or its OpenML number.

    >>> problem = learning_curve_problem("cmc")
    >>> problem.arms, problem.fidelities.names
    (20, ('16 rows', '64 rows', '256 rows', '1192 rows'))
    >>> [round(cost, 3) for cost in problem.fidelities.costs]
    [0.035, 0.037, 0.058, 0.149]

    Reference:
        Mohr, Viering, Loog, van Rijn, LCDB 1.0: An Extensive Learning Curves Database for Classification Tasks, 2022.
    """
    curves, position = _learning_curves(), _position(name_or_id)
    table = Replay(_recorded(position))
    away = np.abs(table.means - table.means[-1]).max(axis=1)
    noise = [float(np.sqrt(np.mean([np.asarray(cell).var() for cell in row]))) for row in table.samples]
    costs = curves["seconds"][position].tolist()
    names = [f"{size} rows" for size in curves["sizes"][position]]
    told = Fidelities(costs, _decreasing(away), [SubGaussian(sigma) for sigma in noise], names)
    return Problem(table.means, told, table)


def learning_curve_names() -> dict[str, int]:
    """The data sets of :func:`learning_curve_problem` with their OpenML numbers.

    >>> len(learning_curve_names()), learning_curve_names()["cmc"]
    (64, 23)
    """
    curves = _learning_curves()
    return dict(zip(curves["names"].tolist(), curves["ids"].tolist(), strict=True))


def learners(name_or_id: str | int) -> tuple[str, ...]:
    """The arms of :func:`learning_curve_problem`, in order.

    >>> learners("cmc")[:3]
    ('BernoulliNB', 'DecisionTreeClassifier', 'ExtraTreeClassifier')
    """
    curves = _learning_curves()
    return tuple(curves["learners"][curves["present"][_position(name_or_id)]].tolist())


@cache
def _learning_curves() -> dict[str, IntArray]:
    with np.load(Path(__file__).parent / "data" / "learning_curves.npz") as file:
        return {name: file[name] for name in file.files}


def _position(name_or_id: str | int) -> int:
    names = learning_curve_names()
    for known in (list(names), list(names.values())):
        if name_or_id in known:
            return known.index(name_or_id)  # type: ignore[arg-type]
    raise ValueError(f"name_or_id must be one of {', '.join(names)}, or its OpenML number, got {name_or_id!r}")


def recorded_curves(name_or_id: str | int) -> list[list[tuple[FloatArray, IntArray]]]:
    """The results behind :func:`learning_curve_problem`: accuracies, and the random split that each is of.

    A list for each size, in it a pair of arrays for each learner. Splits have numbers from 0 to 124, the same for all
    learners; they increase within a pair.

    >>> scores, splits = recorded_curves("cmc")[0][0]
    >>> scores[:3].tolist(), splits[:3].tolist()
    ([0.4189, 0.4122, 0.4662], [0, 1, 2])
    """
    position = _position(name_or_id)
    return [list(zip(*pair, strict=True)) for pair in zip(_recorded(position), _cells(position, "splits"), strict=True)]


def _recorded(position: int) -> list[list[FloatArray]]:
    """The recorded accuracies at each size of each learner."""
    return [[scores / 10_000 for scores in row] for row in _cells(position, "scores")]


def _cells(position: int, what: str) -> list[list[IntArray]]:
    """An array's parts for each size and learner of a data set."""
    curves = _learning_curves()
    arms, sizes = curves["present"].sum(axis=1), curves["sizes"].shape[1]
    first = sizes * int(arms[:position].sum())
    last = first + sizes * int(arms[position])
    ends = np.cumsum(curves["counts"].astype(np.int64))
    begins = np.concatenate([[0], ends])
    cells = [curves[what][begins[i] : begins[i + 1]] for i in range(first, last)]
    return [cells[m * arms[position] : (m + 1) * arms[position]] for m in range(sizes)]


def _decreasing(away: FloatArray) -> list[float]:
    """The smallest biases that bound these distances and decrease by the margin from each fidelity to the next."""
    biases = [0.0]
    for distance in away[-2::-1].tolist():
        biases.append(max(distance, biases[-1] * LEARNING_CURVE_MARGIN))
    return biases[::-1]


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
    means[:-1, best] = _disguised(means, best, fidelities, rng)
    return Problem(means, fidelities, Gaussian(sigma))


def _disguised(means: FloatArray, best: int, fidelities: Fidelities, rng: np.random.Generator) -> FloatArray:
    """Low means for the optimal arm, below the best-looking other arm's as far as the bias bound allows; (M − 1,)."""
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
    """Means uniform within ±ζ_m of the truth, shape (M, K); the last row is the truth itself."""
    means: FloatArray = truth + fidelities.bias_column * rng.uniform(-1, 1, (len(fidelities), len(truth)))
    return means
