"""Problems made of recorded learning curves: learners are arms, training-set sizes are fidelities."""

from functools import cache
from pathlib import Path

import numpy as np

from mfbandit._internal.typing import FloatArray, IntArray
from mfbandit.core import Fidelities, SubGaussian
from mfbandit.errors import InvalidArgument
from mfbandit.problems.problem import Problem, Replay

BIAS_MARGIN = 1.01  # the least ratio of a bias to the next, as biases must decrease strictly


class LearningCurves:
    """Learning curves in a file made by ``scripts/pack_learning_curves.py``.

    Args:
        path: the file.

    >>> curves = LearningCurves(BUNDLED_FILE)
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
        """Make the problem of a data set; see :func:`learning_curve_problem`."""
        position = self._position(name_or_id)
        table = Replay(self._recorded(position))
        away = np.abs(table.means - table.means[-1]).max(axis=1)
        noise = [float(np.sqrt(np.mean([np.asarray(cell).var() for cell in row]))) for row in table.samples]
        costs = self._arrays["seconds"][position].tolist()
        names = [f"{size} rows" for size in self._arrays["sizes"][position]]
        told = Fidelities(costs, _decreasing(away), [SubGaussian(sigma) for sigma in noise], names)
        return Problem(table.means, told, table)

    def learners(self, name_or_id: str | int) -> tuple[str, ...]:
        """Return the learners of a data set, which are its arms, in order."""
        present = self._arrays["present"][self._position(name_or_id)]
        return tuple(self._arrays["learners"][present].tolist())

    def recorded(self, name_or_id: str | int) -> list[list[tuple[FloatArray, IntArray]]]:
        """Return the recorded accuracies of a problem, and the random split of each.

        There is a list for each size, with a pair of arrays for each learner. Splits have numbers from 0 to 124, the
        same for all learners; they increase within a pair.

        >>> scores, splits = LearningCurves(BUNDLED_FILE).recorded("cmc")[0][0]
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
        """Return the recorded accuracies at each size of each learner."""
        return [[scores / 10_000 for scores in row] for row in self._cells(position, "scores")]

    def _cells(self, position: int, what: str) -> list[list[IntArray]]:
        """Return an array's parts for each size and learner of a data set."""
        arms, sizes = self._arrays["present"].sum(axis=1), self._arrays["sizes"].shape[1]
        first = sizes * int(arms[:position].sum())
        last = first + sizes * int(arms[position])
        ends = np.cumsum(self._arrays["counts"].astype(np.int64))
        begins = np.concatenate([[0], ends])
        cells = [self._arrays[what][begins[i] : begins[i + 1]] for i in range(first, last)]
        return [cells[m * arms[position] : (m + 1) * arms[position]] for m in range(sizes)]


def _decreasing(away: FloatArray) -> list[float]:
    """Return the smallest biases that bound these distances and decrease by the margin at each fidelity."""
    biases = [0.0]
    for distance in away[-2::-1].tolist():
        biases.append(max(distance, biases[-1] * BIAS_MARGIN))
    return biases[::-1]


BUNDLED_FILE = Path(__file__).parent / "data" / "learning_curves.npz"


@cache
def bundled_curves() -> LearningCurves:
    """Load the learning curves that come with the package.

    >>> bundled_curves().learners("cmc")[:3]
    ('BernoulliNB', 'DecisionTreeClassifier', 'ExtraTreeClassifier')
    """
    return LearningCurves(BUNDLED_FILE)


def learning_curve_problem(name_or_id: str | int) -> Problem:
    r"""Make a problem of choosing among up to 20 scikit-learn learners on a real data set.

    Arms are the 18 to 20 learners with results on this data set (:meth:`LearningCurves.learners`). Fidelities are
    training-set sizes, about N/64, N/16, N/4 and N. A cost is the mean training time at that size, in seconds. A reward
    is the test accuracy on a random split, drawn from recorded ones.

    Biases and noise are an oracle's, computed from the same table. ζ_m is the largest distance of any arm's mean at
    m, or at a size between m and N, from its mean at N. It is at least 1 % above the next one. The noise at m is the
    root mean square over arms of the standard deviation of their results.

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
    return bundled_curves().problem(name_or_id)


def learning_curve_names() -> dict[str, int]:
    """Return the names of the data sets of :func:`learning_curve_problem` and their OpenML numbers.

    >>> len(learning_curve_names()), learning_curve_names()["cmc"]
    (64, 23)
    """
    return dict(bundled_curves().names)
