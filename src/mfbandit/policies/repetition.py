"""Whether results have no noise: played again, an arm at a fidelity gives the same reward."""

import math

import numpy as np

from mfbandit.core import Stats
from mfbandit.policies.gaussian_chain import total

CHANCE = 1e-3  # of so many equal results if there were noise, below which there is none
FEWEST_REPEATS = 3  # pairs of an arm and a fidelity that were played again
ROUNDING = 1e-12  # of a sum of squares, that a sum of equal rewards may be off by


def repeats_itself(told: Stats) -> bool | None:
    r"""Tell whether equal plays give equal rewards: True if so, False if not, None if that cannot be told yet.

    One pair of rewards that differ is enough for False. Equal ones may be chance, if rewards have few values, as 0 and
    1. So the chance of one more equal reward is taken to be (1 + arms with the same mean)/(1 + other arms) at this
    fidelity. True needs a product of these of at most 0.001, and three repeated pairs of an arm and a fidelity.

    >>> stats = Stats.empty(fidelities=1, arms=40)
    >>> stats.counts[:], stats.sums[0], stats.squares[0] = 1, np.arange(40), np.arange(40) ** 2
    >>> repeats_itself(stats) is None
    True
    >>> for k in (37, 38, 39):
    ...     stats.counts[0, k], stats.sums[0, k], stats.squares[0, k] = 2, 2 * k, 2 * k**2
    >>> repeats_itself(stats)
    True
    >>> stats.squares[0, 39] += 0.5
    >>> repeats_itself(stats)
    False
    """
    repeated = told.results > 1
    if not repeated.any():
        return None
    counts, sums, squares = told.counts[repeated], told.sums[repeated], told.squares[repeated]
    if (squares - sums * (sums / counts) > ROUNDING * squares).any():
        return False
    enough = len(counts) >= FEWEST_REPEATS
    return True if enough and _log_chance(told) <= math.log(CHANCE) else None


def _log_chance(told: Stats) -> float:
    """Compute the logarithm of the chance of all equal results."""
    chance = 0.0
    for counts, sums, results in zip(told.counts, told.sums, told.results, strict=True):
        seen = counts > 0
        again = results > 1
        if not again.any():
            continue
        means = np.sort(sums[seen] / counts[seen])
        own = sums[again] / counts[again]
        slack = ROUNDING * np.abs(own)
        same = np.searchsorted(means, own + slack, side="right") - np.searchsorted(means, own - slack, side="left")
        # Itself is among the same and not among the others, which makes one more of each.
        logs = np.array([math.log(share) for share in (same / len(means)).tolist()])  # np.log may round otherwise
        chance += total(logs * (results[again] - 1))
    return chance
