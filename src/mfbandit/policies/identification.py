"""What policies that find the best arm with confidence need to know."""

import numpy as np

from mfbandit._internal.typing import FloatArray
from mfbandit._internal.validation import number
from mfbandit.core import Fidelities, Stats, scales
from mfbandit.errors import InvalidArgument


def checked_delta(value: object) -> float:
    """Return δ, how often an answer may be wrong, as a float.

    >>> checked_delta(1)
    Traceback (most recent call last):
    mfbandit.errors.InvalidArgument: delta must lie strictly between 0 and 1, got 1
    """
    delta = float(number("delta", value))
    if not 0 < delta < 1:
        raise InvalidArgument(f"delta must lie strictly between 0 and 1, got {delta:g}")
    return delta


def known_scales(fidelities: Fidelities, policy: str) -> tuple[float, ...]:
    """Return σ_1, …, σ_M; an error if they are not known.

    Args:
        fidelities: the M fidelities.
        policy: the name of the policy that needs them, for the message.

    >>> from mfbandit.core import SubGaussian
    >>> known_scales(Fidelities([1, 10], [0.1, 0], SubGaussian(0.2)), "IISE")
    (0.2, 0.2)
    """
    found = scales(fidelities)
    if found is None:
        raise InvalidArgument(
            f"concentration must be SubGaussian or Bounded for {policy}, got {fidelities.concentration!r}"
        )
    return found


def latest_means(stats: Stats) -> FloatArray:
    """Return each arm's mean at the highest fidelity where it has a result; −∞ without one; shape (K,).

    >>> stats = Stats.empty(fidelities=2, arms=3)
    >>> stats.counts[:], stats.sums[:] = [[2, 2, 0], [0, 4, 0]], [[1, 1, 0], [0, 1, 0]]
    >>> latest_means(stats).tolist()
    [0.5, 0.25, -inf]
    """
    number, arms = stats.counts.shape
    highest, each = number - 1 - (stats.counts[::-1] > 0).argmax(axis=0), np.arange(arms)
    counts = stats.counts[highest, each]
    return np.where(counts > 0, stats.sums[highest, each] / np.maximum(counts, 1), -np.inf)
