"""The headline of an experiment: its best arm so far, and whether that is in doubt."""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from mfbandit._internal.formatting import plain
from mfbandit.core import Fidelities, Stats, scales
from mfbandit.errors import NoResults
from mfbandit.experiment.recommendation import recommended
from mfbandit.policies import Policy, uses_biases

UNTESTED = "it has no result at the highest fidelity yet"
TENSION_DEVIATIONS = 3.0  # by which two means differ beyond the bias; short of a refutation, which holds at any time


@dataclass(frozen=True)
class Headline:
    """The best arm so far, why that is in doubt, and which arm comes next.

    Args:
        best: the recommended arm; None before any result.
        doubt: the reason for doubt, to follow a colon; None if there is none.
        runner_up: the arm that is recommended if the best one is left out; None if nothing is in doubt, or no other arm
            has a result.
    """

    best: int | None
    doubt: str | None = None
    runner_up: int | None = None


def headline(
    policy: Policy,
    stats: Stats,
    fidelities: Fidelities,
    refuted: Sequence[int] = (),
    drifted: Collection[tuple[int, int]] = (),
) -> Headline:
    """Say which arm is the best so far, and whether that is in doubt.

    It is in doubt if a bias is refuted, if the best arm's mean has changed, or if it has no result at the highest
    fidelity. So it is if its results at two fidelities differ by more than the bias and three standard deviations. The
    last two are not a refutation, but a reason not to trust a narrow interval.

    Args:
        policy: the rule that picks plays.
        stats: all results.
        fidelities: the fidelities.
        refuted: the fidelities whose biases are refuted.
        drifted: the means that have changed, by fidelity and arm.

    >>> from mfbandit import MFUCB, SubGaussian
    >>> fid = Fidelities([1, 10], [0.1, 0], SubGaussian(0.1))
    >>> stats = Stats.empty(2, 2)
    >>> stats.counts[0], stats.sums[0] = [5, 5], [3.0, 4.0]
    >>> headline(MFUCB(), stats, fid)
    Headline(best=1, doubt='it has no result at the highest fidelity yet', runner_up=0)
    """
    try:
        best = recommended(policy, stats, fidelities, refuted)
    except NoResults:
        return Headline(None)
    doubt = _refuted(fidelities, refuted) or _changed(fidelities, drifted, best) or _untested(stats, best)
    doubt = doubt or _contradiction(policy, stats, fidelities, best)
    return Headline(best, doubt, None if doubt is None else _runner_up(policy, stats, fidelities, refuted, best))


def _refuted(fidelities: Fidelities, refuted: Sequence[int]) -> str | None:
    if not refuted:
        return None
    names = ", ".join(fidelities.labels[m] for m in refuted)
    return f"results refute the assumed bias of fidelity {names}"


def _changed(fidelities: Fidelities, drifted: Collection[tuple[int, int]], best: int) -> str | None:
    names = [fidelities.labels[m] for m, arm in sorted(drifted) if arm == best]
    return f"its mean at fidelity {', '.join(names)} has changed, and old results count" if names else None


def _untested(stats: Stats, best: int) -> str | None:
    return None if stats.counts[-1, best] else UNTESTED


def doubt_left(doubt: str | None, *, decided: bool) -> str | None:
    """Return the doubt that is worth saying: a decision for this arm does not need results at the highest fidelity.

    Args:
        doubt: why the best arm is in doubt, if it is.
        decided: whether this very arm was decided on.

    >>> doubt_left(UNTESTED, decided=True), doubt_left("its bias is refuted", decided=True)
    (None, 'its bias is refuted')
    """
    return None if decided and doubt == UNTESTED else doubt


def _contradiction(policy: Policy, stats: Stats, fidelities: Fidelities, best: int) -> str | None:
    cells = conflicting(policy, stats, fidelities, best)
    if not cells:
        return None
    means, names, low = stats.means[:, best], fidelities.labels, cells[0]
    return (
        f"its mean is {means[low]:.3g} at fidelity {names[low]} and {means[-1]:.3g} at {names[-1]}, "
        f"which a bias of {plain(fidelities.known_biases[low])} hardly explains"
    )


def conflicting(policy: Policy, stats: Stats, fidelities: Fidelities, arm: int) -> list[int]:
    """List the lower fidelities at which an arm's mean is hardly compatible with that at the highest.

    The means differ by more than the assumed bias and three standard deviations. Policies that use no biases have none.

    >>> from mfbandit import MFUCB, SubGaussian
    >>> fid = Fidelities([1, 10], [0.1, 0], SubGaussian(0.1))
    >>> stats = Stats.empty(2, 1)
    >>> stats.counts[:], stats.sums[:] = 4, [[3.6], [2.0]]
    >>> conflicting(MFUCB(), stats, fid, arm=0)
    [0]
    """
    found = scales(fidelities)
    top = int(stats.counts[-1, arm])
    if found is None or fidelities.biases is None or not top or not uses_biases(policy):
        return []
    cells, mean = [], float(stats.sums[-1, arm]) / top
    for m, bias in enumerate(fidelities.biases[:-1]):
        n = int(stats.counts[m, arm])
        if n:
            deviation = math.sqrt(found[m] ** 2 / n + found[-1] ** 2 / top)
            if abs(float(stats.sums[m, arm]) / n - mean) > bias + TENSION_DEVIATIONS * deviation:
                cells.append(m)
    return cells


def _runner_up(policy: Policy, stats: Stats, fidelities: Fidelities, refuted: Sequence[int], best: int) -> int | None:
    others = stats.active.copy()
    others[best] = False
    try:
        return recommended(policy, replace(stats, active=others), fidelities, refuted)
    except NoResults:
        return None
