"""The intervals of an experiment's arms: confidence bounds, or those of the policy where bounds cannot be had."""

from collections.abc import Sequence

import numpy as np

from mfbandit._internal.validation import positive
from mfbandit.core import POSTERIOR, Bounds, Fidelities, Stats, bounds_table
from mfbandit.policies import HasIntervals, Policy

DEFAULT_RHO = 2.0  # of policies that have none


def bounds_of(
    policy: Policy, stats: Stats, fidelities: Fidelities, labels: Sequence[str], rho: float | None = None
) -> Bounds:
    """Compute the intervals of all arms.

    They are confidence bounds where noise and biases are known, or ``rho`` is given. Else they are the policy's own,
    if it has the method ``intervals``.

    Args:
        policy: the rule that picks plays.
        stats: all results.
        fidelities: the M fidelities.
        labels: the names of the K arms.
        rho: exploration parameter ρ of the widths; the policy's own by default, else 2.

    >>> from mfbandit import MFTopTwo
    >>> stats = Stats.empty(2, 1)
    >>> stats.counts[0], stats.sums[0], stats.squares[0] = 2, 1.0, 0.58  # 0.3 and 0.7
    >>> bounds_of(MFTopTwo(capital=9), stats, Fidelities(costs=[1, 3]), ["a"]).kind
    'posterior intervals, 95 %'
    """
    unknown = fidelities.concentration is None or fidelities.biases is None
    if rho is None and unknown and isinstance(policy, HasIntervals):
        return _policys_own(policy, stats, fidelities, labels)
    used = positive("rho", getattr(policy, "rho", DEFAULT_RHO) if rho is None else rho)
    return bounds_table(stats, fidelities, used, labels)


def _policys_own(policy: HasIntervals, stats: Stats, fidelities: Fidelities, labels: Sequence[str]) -> Bounds:
    shape = stats.counts.shape
    lower, upper, widths = np.full(shape, -np.inf), np.full(shape, np.inf), np.full(shape, np.inf)
    lower[-1], upper[-1] = policy.intervals(stats, fidelities)
    widths[-1] = (upper[-1] - lower[-1]) / 2
    number = None if stats.extra is None else stats.counts.copy()
    plays, means = stats.results.copy(), stats.means
    return Bounds(labels, fidelities.labels, plays, means, widths, lower, upper, POSTERIOR, number)
