"""The results of an experiment as arrays, for analysis."""

from collections.abc import Sequence
from dataclasses import dataclass

from mfbandit._internal.typing import FloatArray, IntArray
from mfbandit.core import Fidelities


@dataclass(frozen=True, eq=False)
class History:
    """The results of an experiment in the order in which they were told; arrays of shape (N,).

    Args:
        arms: indices of arms.
        fidelities: indices of fidelities.
        rewards: what was observed; the mean where a result is many observations.
        costs: what the plays really cost.
        weights: how many observations each result is.
        sums: of the observations of each result.
    """

    arms: IntArray
    fidelities: IntArray
    rewards: FloatArray
    costs: FloatArray
    weights: IntArray
    sums: FloatArray


@dataclass(frozen=True, eq=False)
class ArmHistory:
    """The results of one arm in the order in which they were told; arrays of shape (n,).

    Args:
        numbers: of all results, which ones they are, from 1.
        fidelities: indices of fidelities.
        rewards: what was observed; the mean where a result is many observations.
        weights: how many observations each result is.
        costs: what the plays really cost.
    """

    numbers: IntArray
    fidelities: IntArray
    rewards: FloatArray
    weights: IntArray
    costs: FloatArray


@dataclass(frozen=True, eq=False)
class NextResults:
    """Some results in a row, and what is needed to say what could be said then.

    Args:
        history: the results.
        fidelities: the fidelities as they are now.
        first_arms: how many arms there were at the beginning.
        changes: arms that came or went at any time: how many results there were before, the arm, and whether it takes
            part from then on.
        forgotten: arms that were begun anew at any time: how many results there were before, and the arm.
    """

    history: History
    fidelities: Fidelities
    first_arms: int
    changes: Sequence[tuple[int, int, bool]]
    forgotten: Sequence[tuple[int, int]] = ()
