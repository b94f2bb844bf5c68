"""Real learning curves as problems: learners are arms, and smaller training sets are cheap looks at them."""

from functools import cache
from pathlib import Path

import numpy as np

from mfbandit._internal.typing import FloatArray, IntArray
from mfbandit.core import Fidelities, SubGaussian
from mfbandit.errors import InvalidArgument
from mfbandit.problems.problem import Problem, Replay

MARGIN = 1.01  # biases must decrease strictly; a bound may be a little wide


class Curves:
    """Learning curves in a file that ``scripts/pack_learning_curves.py`` has made.

    Args:
        path: the file.

    >>> curves = Curves(SHIPPED)
    >>> len(curves.names), curves.names["cmc"], curves.learners("cmc")[:2]
    (64, 23, ('BernoulliNB', 'DecisionTreeClassifier'))
    """

    def __init__(self, path: Path) -> None:
        with np.load(path) as file:
            self._arrays: dict[str, IntArray] = {name: file[name] for name in file.files}
        self.names: dict[str, int] = dict(
            zip(self._arrays["names"].tolist(), self._arrays["ids"].tolist(), strict=True)
        )

    def problem(self, name_or_id: str | int) -> Problem:
        """See :func:`learning_curve_problem`."""
        position = self._position(name_or_id)
        table = Replay(self._recorded(position))
        away = np.abs(table.means - table.means[-1]).max(axis=1)
        noise = [float(np.sqrt(np.mean([np.asarray(cell).var() for cell in row]))) for row in table.samples]
        costs = self._arrays["seconds"][position].tolist()
        names = [f"{size} rows" for size in self._arrays["sizes"][position]]
        told = Fidelities(costs, _decreasing(away), [SubGaussian(sigma) for sigma in noise], names)
        return Problem(table.means, told, table)

    def learners(self, name_or_id: str | int) -> tuple[str, ...]:
        """The arms of a data set, in order."""
        present = self._arrays["present"][self._position(name_or_id)]
        return tuple(self._arrays["learners"][present].tolist())

    def recorded(self, name_or_id: str | int) -> list[list[tuple[FloatArray, IntArray]]]:
        """The results behind a problem: accuracies, and the random split that each is of.

        A list for each size, in it a pair of arrays for each learner. Splits have numbers from 0 to 124, the same for
        all learners; they increase within a pair.

        >>> scores, splits = Curves(SHIPPED).recorded("cmc")[0][0]
        >>> scores[:3].tolist(), splits[:3].tolist()
        ([0.4189, 0.4122, 0.4662], [0, 1, 2])
        """
        position = self._position(name_or_id)
        both = zip(self._recorded(position), self._cells(position, "splits"), strict=True)
        return [list(zip(*pair, strict=True)) for pair in both]

    def _position(self, name_or_id: str | int) -> int:
        for known in (list(self.names), list(self.names.values())):
            if name_or_id in known:
                return known.index(name_or_id)  # type: ignore[arg-type]
        raise InvalidArgument(
            f"name_or_id must be one of {', '.join(self.names)}, or its OpenML number, got {name_or_id!r}"
        )

    def _recorded(self, position: int) -> list[list[FloatArray]]:
        """The recorded accuracies at each size of each learner."""
        return [[scores / 10_000 for scores in row] for row in self._cells(position, "scores")]

    def _cells(self, position: int, what: str) -> list[list[IntArray]]:
        """An array's parts for each size and learner of a data set."""
        arms, sizes = self._arrays["present"].sum(axis=1), self._arrays["sizes"].shape[1]
        first = sizes * int(arms[:position].sum())
        last = first + sizes * int(arms[position])
        ends = np.cumsum(self._arrays["counts"].astype(np.int64))
        begins = np.concatenate([[0], ends])
        cells = [self._arrays[what][begins[i] : begins[i + 1]] for i in range(first, last)]
        return [cells[m * arms[position] : (m + 1) * arms[position]] for m in range(sizes)]


def _decreasing(away: FloatArray) -> list[float]:
    """The smallest biases that bound these distances and decrease by the margin from each fidelity to the next."""
    biases = [0.0]
    for distance in away[-2::-1].tolist():
        biases.append(max(distance, biases[-1] * MARGIN))
    return biases[::-1]


SHIPPED = Path(__file__).parent / "data" / "learning_curves.npz"


@cache
def shipped() -> Curves:
    """The learning curves that come with the package.

    >>> shipped().learners("cmc")[:3]
    ('BernoulliNB', 'DecisionTreeClassifier', 'ExtraTreeClassifier')
    """
    return Curves(SHIPPED)


def learning_curve_problem(name_or_id: str | int) -> Problem:
    r"""Which of 20 scikit-learn learners is best on a real data set? Smaller training sets are the cheap fidelities.

    Arms are learners (18 to 20: those with results on this data set, see :meth:`Curves.learners`), fidelities are
    training-set sizes, about N/64, N/16, N/4 and N, a cost is the mean training time at that size in seconds, and a
    reward is the test accuracy on a random split, drawn from recorded ones.

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
    return shipped().problem(name_or_id)


def learning_curve_names() -> dict[str, int]:
    """The data sets of :func:`learning_curve_problem` with their OpenML numbers.

    >>> len(learning_curve_names()), learning_curve_names()["cmc"]
    (64, 23)
    """
    return dict(shipped().names)
