"""What came out of a simulation: regret of every run against capital, plays, and comparisons."""

import json
import math
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from mfbandit._internal.formatting import plain
from mfbandit._internal.imports import needed_for
from mfbandit._internal.quantiles import t_quantile
from mfbandit._internal.typing import FloatArray, IntArray
from mfbandit.errors import InvalidArgument
from mfbandit.problems import Problem

if TYPE_CHECKING:
    from pandas import DataFrame  # it is not a dependency

SHOWN = 10  # lines in a printed summary
UNDECIDED = -1  # in place of an arm


@dataclass(frozen=True, eq=False)
class Run:
    """What came out of one run.

    Args:
        regret: R(Λ) at each capital of the grid; shape (G,).
        plays: final plays of each arm at each fidelity; shape (M, K).
        steps: number of plays.
        spent: what they cost.
        answer: the arm that the policy decided for; −1 if it did not.
    """

    regret: FloatArray
    plays: IntArray
    steps: int
    spent: float
    answer: int = UNDECIDED


def regret_after_decision(problem: Problem, answer: int, capitals: FloatArray, spent: float, lost: float) -> FloatArray:
    """Compute the regret at capitals beyond a decision: all that is left is spent on the answer.

    Args:
        problem: the hidden truth.
        answer: the arm that was decided for.
        capitals: Λ, at least ``spent``; shape (G,).
        spent: the capital spent before.
        lost: the sum of losses before.

    >>> from mfbandit.problems import paper_problem
    >>> regret_after_decision(paper_problem(3), 0, np.array([100.0]), spent=60.0, lost=5.0).round(3).tolist()
    [37.0]
    """
    behind = problem.best_mean - float(problem.means[-1, answer])
    regret: FloatArray = lost + (capitals - spent) * behind
    return regret


@dataclass(frozen=True, eq=False)
class Simulation:
    """The runs of one policy on one problem; made by :func:`~mfbandit.simulate`.

    Args:
        policy: the policy with its parameters, as text.
        problem: the problem's digest, by which two simulations are known to be of the same one.
        account: how plays were paid, see :func:`~mfbandit.pseudo_rewards`.
        seed: the seed, or the entropy of a SeedSequence.
        spawn_key: the spawn key of a SeedSequence.
        means: μ^(M)_k, the arms' means at the highest fidelity; shape (K,).
        capital: Λ at which regret was recorded, increasing; shape (G,).
        regret: R(Λ) of each run, eq. 1, in units of capital times reward; shape (runs, G).
        plays: mean final plays of each arm at each fidelity; shape (M, K).
        steps: plays of each run; shape (runs,).
        spent: capital that each run spent, the rest not being enough for its next play; less where the policy decided
            earlier; shape (runs,).
        answers: the arm that each run's policy decided for, if it has a rule for that, else −1; shape (runs,).
        run_plays: the final plays of each run where asked for; shape (runs, M, K), else None.

    >>> from mfbandit import UCB, paper_problem, simulate
    >>> sim = simulate(paper_problem(3), UCB(), capital=4000, runs=4, grid=2)
    >>> sim.capital.tolist(), sim.regret.shape, int(sim.plays.sum())
    ([2000.0, 4000.0], (4, 2), 400)
    """

    policy: str
    problem: str
    account: str
    seed: tuple[int, ...]
    spawn_key: tuple[int, ...]
    means: FloatArray
    capital: FloatArray
    regret: FloatArray
    plays: FloatArray
    steps: IntArray
    spent: FloatArray
    answers: IntArray
    run_plays: IntArray | None = None

    def __repr__(self) -> str:
        runs, grid = self.regret.shape
        points = f"{grid} point{'s' * (grid > 1)}"
        return f"<Simulation {self.policy}, {_runs(runs)}, capital up to {plain(self.capital[-1])} at {points}>"

    def summary(self, confidence: float = 0.95) -> "Summary":
        """Average regret at every capital, with an interval of Student's t over runs.

        Args:
            confidence: how often the interval should cover the expected regret, in (0, 1).

        >>> from mfbandit import UCB, paper_problem, simulate
        >>> print(simulate(paper_problem(3), UCB(), capital=4000, runs=4, grid=2).summary())
        regret of UCB(rho=2.0) over 4 runs, with 95 % intervals
         capital      mean       low      high
            2000       800       800       800
            4000      1507    1482.8    1531.2
        """
        mean, low, high = _interval(self.regret, confidence)
        return Summary(self.policy, len(self.regret), confidence, self.capital, mean, low, high)

    def to_frame(self) -> "DataFrame":
        """List regret as a pandas DataFrame, one row for each run and capital: policy, run, capital, regret.

        >>> from mfbandit import UCB, paper_problem, simulate
        >>> frame = simulate(paper_problem(3), UCB(), capital=4000, runs=4, grid=2).to_frame()
        >>> frame.columns.tolist(), len(frame)
        (['policy', 'run', 'capital', 'regret'], 8)
        """
        with needed_for("to_frame()"):
            import pandas as pd  # only here, and only where it is installed
        runs, grid = self.regret.shape
        return pd.DataFrame(
            {
                "policy": self.policy,
                "run": np.repeat(np.arange(runs), grid),
                "capital": np.tile(self.capital, runs),
                "regret": self.regret.ravel(),
            }
        )

    def save(self, path: str | Path) -> None:
        """Write everything to one compressed NumPy file; an existing one is replaced whole or not at all.

        >>> import tempfile
        >>> from mfbandit import UCB, paper_problem, simulate
        >>> sim = simulate(paper_problem(3), UCB(), capital=4000, runs=4, grid=2)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     sim.save(f"{folder}/ucb.npz")
        ...     again = Simulation.load(f"{folder}/ucb.npz")
        >>> bool((again.regret == sim.regret).all()), again.policy
        (True, 'UCB(rho=2.0)')
        """
        target = Path(path)
        about = json.dumps({name: getattr(self, name) for name in _WORDS})
        arrays = {name: getattr(self, name) for name in _ARRAYS if getattr(self, name) is not None}
        part = target.with_name(target.name + ".part")
        try:
            with part.open("wb") as file:
                np.savez_compressed(file, about=np.array(about), **arrays)
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)

    @classmethod
    def load(cls, path: str | Path) -> "Simulation":
        """Read the simulation that :meth:`save` wrote."""
        try:
            with Path(path).open("rb") as stream, np.load(stream) as file:
                words = {name: json.loads(str(file["about"]))[name] for name in _WORDS}
                arrays = {name: file[name] for name in _ARRAYS if name in file}
            words |= {"seed": tuple(words["seed"]), "spawn_key": tuple(words["spawn_key"])}
            arrays.setdefault("answers", np.full(len(arrays["spent"]), -1))  # earlier versions wrote none
            return cls(**words, **arrays)
        except (KeyError, ValueError, EOFError, TypeError, AttributeError, zipfile.BadZipFile, zlib.error):
            raise InvalidArgument(f"File is damaged, or Simulation.save did not write it: {path}") from None


_WORDS = ("policy", "problem", "account", "seed", "spawn_key")
_ARRAYS = ("means", "capital", "regret", "plays", "steps", "spent", "answers", "run_plays")


@dataclass(frozen=True, eq=False)
class Summary:
    """Mean regret at every capital, with an interval; arrays of shape (G,). Printed, it is a table."""

    policy: str
    runs: int
    confidence: float
    capital: FloatArray
    mean: FloatArray
    low: FloatArray
    high: FloatArray

    def __str__(self) -> str:
        title = f"regret of {self.policy} over {_runs(self.runs)}, with {100 * self.confidence:g} % intervals"
        columns = {"capital": self.capital, "mean": self.mean, "low": self.low, "high": self.high}
        return "\n".join([title, *_table(columns)])


@dataclass(frozen=True, eq=False)
class Comparison:
    """Run by run, a's regret against b's; arrays of shape (G,). Printed, it is a table.

    Args:
        a: the first policy.
        b: the second policy.
        runs: number of pairs.
        confidence: of the intervals.
        capital: Λ.
        difference: mean of a − b, with ``difference_low`` and ``difference_high``.
        ratio: mean of a over mean of b, with ``ratio_low`` and ``ratio_high``.
    """

    a: str
    b: str
    runs: int
    confidence: float
    capital: FloatArray
    difference: FloatArray
    difference_low: FloatArray
    difference_high: FloatArray
    ratio: FloatArray
    ratio_low: FloatArray
    ratio_high: FloatArray

    def __str__(self) -> str:
        title = f"{self.a} against {self.b} over {self.runs} pairs of runs, with {100 * self.confidence:g} % intervals"
        columns = {
            "capital": self.capital,
            "difference": self.difference,
            "low": self.difference_low,
            "high": self.difference_high,
            "ratio": self.ratio,
            "low ": self.ratio_low,
            "high ": self.ratio_high,
        }
        return "\n".join([title, *_table(columns)])


def compare(a: Simulation, b: Simulation, confidence: float = 0.95) -> Comparison:
    r"""Compare the regret of two simulations: run i of one against run i of the other.

    The interval of the difference is Student's t over pairs. That of the ratio r = ā / b̄ is r ± t·s / (b̄ sqrt(n)), by
    the delta method: s is the standard deviation of a_i − r·b_i.

    Args:
        a: one simulation.
        b: the other, of the same problem, with the same seed, capitals, number of runs and account.
        confidence: how often the intervals should cover the truth, in (0, 1).

    >>> from mfbandit import MFUCB, UCB, paper_problem, simulate
    >>> problem = paper_problem(3)
    >>> sims = [simulate(problem, policy, capital=40_000, runs=10, grid=1) for policy in (MFUCB(), UCB())]
    >>> bool(compare(*sims).ratio_high[0] < 1)
    True
    """
    for name in ("problem", "account", "seed", "spawn_key"):
        if getattr(a, name) != getattr(b, name):
            raise InvalidArgument(
                f"simulations must have the same {name} to be compared run by run, "
                f"got {getattr(a, name)!r} and {getattr(b, name)!r}"
            )
    if a.regret.shape != b.regret.shape or not np.array_equal(a.capital, b.capital):
        raise InvalidArgument(
            "simulations must have the same capitals and number of runs, got regret of shape "
            f"{a.regret.shape} up to {plain(a.capital[-1])} and {b.regret.shape} up to {plain(b.capital[-1])}"
        )
    difference, low, high = _interval(a.regret - b.regret, confidence)
    ratios = ratio_interval(a.regret, b.regret, confidence)
    return Comparison(
        a.policy,
        b.policy,
        len(a.regret),
        confidence,
        a.capital,
        difference,
        low,
        high,
        *ratios,
    )


def ratio_interval(a: FloatArray, b: FloatArray, confidence: float = 0.95) -> tuple[FloatArray, FloatArray, FloatArray]:
    r"""The ratio r of two paired means with its interval, r ± t·s / (b̄ sqrt(n)), s the deviation of a_i − r·b_i.

    Args:
        a: a value for each run, shape (n, ...).
        b: the same of the other.
        confidence: how often the interval should cover the truth, in (0, 1).

    >>> [round(float(value), 3) for value in ratio_interval(np.array([1.0, 2.0, 3.0]), np.array([2.0, 4.0, 7.0]))]
    [0.462, 0.345, 0.578]
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        below = b.mean(axis=0)
        ratio = a.mean(axis=0) / below
        _, lower, upper = _interval(a - ratio * b, confidence)
        half = (upper - lower) / 2 / np.abs(below)
    return ratio, ratio - half, ratio + half


def _interval(values: FloatArray, confidence: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Mean over the first axis, and the ends of its interval; NaN ends where there is one value alone."""
    if not 0 < confidence < 1:
        raise InvalidArgument(f"confidence must lie between 0 and 1, got {confidence}")
    n, mean = len(values), values.mean(axis=0)
    if n == 1:
        unknown = np.full_like(mean, np.nan)
        return mean, unknown, unknown
    half = t_quantile((1 + confidence) / 2, n - 1) * values.std(axis=0, ddof=1) / math.sqrt(n)
    return mean, mean - half, mean + half


def _table(columns: dict[str, FloatArray]) -> list[str]:
    """Lines of numbers, spread over the grid where it is long."""
    length = len(next(iter(columns.values())))
    rows = np.unique(np.linspace(0, length - 1, min(length, SHOWN)).round().astype(int)).tolist()
    cells = [[name, *(_text(values[i]) for i in rows)] for name, values in columns.items()]
    widths = [max(map(len, cell)) for cell in cells]
    return [
        "  ".join(f"{cell[i]:>{max(width, 8)}}" for cell, width in zip(cells, widths, strict=True))
        for i in range(len(rows) + 1)
    ]


def _runs(number: int) -> str:
    return f"{number} run{'s' * (number > 1)}"


def _text(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:.5g}"  # noqa: PLR2004 - five digits either way
