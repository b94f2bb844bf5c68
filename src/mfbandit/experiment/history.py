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
        rewards: what was observed.
        costs: what the plays really cost.
    """

    arms: IntArray
    fidelities: IntArray
    rewards: FloatArray
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
    """

    history: History
    fidelities: Fidelities
    first_arms: int
    changes: Sequence[tuple[int, int, bool]]
