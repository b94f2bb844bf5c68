"""The arm to recommend: what the policy says, by results that count, unless the highest fidelity has ruled it out."""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from mfbandit.core import Fidelities, Stats, ruled_out
from mfbandit.errors import NoResults
from mfbandit.policies import Policy


def recommended(policy: Policy, stats: Stats, fidelities: Fidelities, refuted: Iterable[int] = ()) -> int:
    """Return the arm to use if no more plays were made.

    1. Results at a fidelity whose bias is refuted do not count, for no arm: if one arm breaks it, others may.
    2. An arm that the highest fidelity has ruled out (:func:`~mfbandit.core.ruled_out`) is not recommended.
    3. Among the others the policy decides. If it names a ruled-out arm, the best mean at the highest fidelity decides.

    Args:
        policy: the rule that picks plays.
        stats: all results.
        fidelities: the fidelities.
        refuted: the fidelities whose biases are refuted.

    >>> from mfbandit import MFUCB, SubGaussian
    >>> fid = Fidelities([1, 10], [0.1, 0], SubGaussian(0.1))
    >>> stats = Stats.empty(2, 2)
    >>> stats.counts[:], stats.sums[:] = [[50, 50], [3, 50]], [[45, 30], [1, 30]]  # 0.9 and then 0.33; 0.6 and 0.6
    >>> MFUCB().recommend(stats, fid), recommended(MFUCB(), stats, fid, refuted=[0])
    (0, 1)
    """
    if not _any_result(stats):
        raise NoResults("There is no result of an active arm yet")
    trusted = without_fidelities(stats, refuted)
    if not _any_result(trusted):  # those who refuted it were retired: better than nothing
        trusted = stats
    out = ruled_out(trusted, fidelities)
    if not out.any():
        return int(policy.recommend(trusted, fidelities))
    left = replace(trusted, active=trusted.active & ~out)
    arm = int(policy.recommend(left, fidelities))
    return arm if left.active[arm] else _best_at_top(left)


def without_fidelities(stats: Stats, dropped: Iterable[int]) -> Stats:
    """Return statistics without the results at some fidelities; the same ones if there are none to drop.

    >>> stats = Stats.empty(2, 1)
    >>> stats.counts[:] = 5
    >>> without_fidelities(stats, [0]).counts.tolist()
    [[0], [5]]
    """
    rows = list(dropped)
    if not rows:
        return stats
    copy = stats.copy()
    for array in (copy.counts, copy.sums, copy.squares, copy.extra, copy.unseen):
        if array is not None:
            array[rows] = 0
    return copy


def _any_result(stats: Stats) -> bool:
    return bool((stats.counts.any(axis=0) & stats.active).any())


def _best_at_top(stats: Stats) -> int:
    """Return the active arm with the best mean at the highest fidelity, the lowest index among ties."""
    seen = stats.active & (stats.counts[-1] > 0)
    return int(np.where(seen, stats.sums[-1] / np.maximum(stats.counts[-1], 1), -np.inf).argmax())
