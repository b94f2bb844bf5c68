"""The first plays of policies that fit a chain: each arm once at the lowest fidelity, a few a second time."""

import numpy as np

from mfbandit.core import Stats

TWICE = 2  # plays of an arm from which noise can be estimated


def ready_to_fit(told: Stats, lowest: int, looks: int) -> bool:
    """Tell whether the opening is over: every active arm has a result, and ``looks`` arms two at the lowest fidelity.

    Args:
        told: results, without pending plays.
        lowest: the lowest fidelity that is used.
        looks: how many arms are to be played twice, at most all; 0 if the noise is told.

    >>> ready_to_fit(Stats.empty(fidelities=1, arms=2), 0, looks=5)
    False
    """
    seen = (told.counts > 0).any(axis=0)
    enough = min(looks, max(1, int(told.active.sum())))
    repeated = (told.freedom[lowest] > 0).sum() >= enough if looks else told.counts[lowest].any()
    return bool((seen | ~told.active).all() and repeated)


def opening_arm(stats: Stats, lowest: int, looks: int, *, fitted: bool) -> int | None:
    """Return the arm for a first or second play; None if no such play is due.

    Arms that were never played come first, by number. The arms for a second play are the best-looking ones.

    >>> opening_arm(Stats.empty(fidelities=1, arms=2), 0, 5, fitted=False)
    0
    """
    untouched = stats.active & ~(stats.plays > 0).any(axis=0)
    if untouched.any():
        return int(untouched.argmax())
    if fitted or not looks:
        return None
    plays, results, spread = stats.plays[lowest], stats.results[lowest], stats.freedom[lowest] > 0
    again = stats.active & (plays == 1) & (results == 1) & ~spread
    if ((plays >= TWICE) | spread).sum() >= min(looks, int(stats.active.sum())) or not again.any():
        return None
    return int(np.where(again, stats.sums[lowest], -np.inf).argmax())


def fewest_plays(stats: Stats, lowest: int) -> int:
    """Return the active arm with the fewest plays there, for asks while first results are pending.

    >>> fewest_plays(Stats.empty(fidelities=1, arms=2), 0)
    0
    """
    return int(np.where(stats.active, stats.plays[lowest], np.iinfo(np.int64).max).argmin())
