"""The results of an experiment as arrays, for analysis."""

from dataclasses import dataclass

from mfbandit._internal.typing import FloatArray, IntArray


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
