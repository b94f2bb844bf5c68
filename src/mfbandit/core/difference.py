r"""By how much one arm is better than another, valid at any time and for all pairs of arms at once.

"Arm a is better than arm i by more than ε" is ruled out once its cheapest explanation costs Λ_ia(ε) ≥ log(1/(δ·w_ia)),
as :mod:`~mfbandit.core.claims` says. Λ grows with ε. So μ_i − μ_a lies between −ε_ia and ε_ai, the smallest ε that are
ruled out. For whatever pairs somebody looks at, and whenever, that is false in at most δ of all experiments, if the
weights w of all ordered pairs sum to at most 1.
"""

import math
from dataclasses import dataclass

import numpy as np

from mfbandit._internal.roots import increasing_root
from mfbandit._internal.typing import BoolArray, FloatArray
from mfbandit.core.claims import Pool, explanation
from mfbandit.core.confidence import ALMOST_1, FIRST_SHARE, Roster
from mfbandit.core.fidelities import Fidelities
from mfbandit.core.stats import Stats


@dataclass(frozen=True)
class DifferenceClaim:
    """What can be said about μ_i − μ_a, in units of reward.

    Args:
        low: it is at least this; −∞ where nothing is known.
        high: it is at most this; ∞ where nothing is known.
        level: a probability: how sure it is that the one is better that seems so.
        better: 1 if arm i seems better, −1 if arm a does, 0 if that cannot be told.
    """

    low: float
    high: float
    level: float
    better: int


def log_price(roster: Roster, first: int, second: int) -> float:
    """Compute log(1/w) of an ordered pair of arms.

    Pairs of the arms that were there at the beginning share 0.9; those with the j-th that came later 0.1/(j(j+1)).

    Args:
        roster: which arms there were.
        first: one arm.
        second: the other one.

    >>> round(math.exp(-log_price(Roster(first=2), 0, 1)), 3), round(math.exp(-log_price(Roster(first=2), 0, 2)), 4)
    (0.45, 0.0125)
    """
    later = max(first, second) - roster.first + 1  # 1, 2, … for arms that came later
    if later < 1:
        return math.log(roster.first * (roster.first - 1) / FIRST_SHARE)
    before = roster.first + later - 1
    return math.log(2 * before * later * (later + 1) / (1 - FIRST_SHARE))


def difference(
    stats: Stats, fidelities: Fidelities, arms: tuple[int, int], counted: BoolArray, *, price: float, level: float
) -> DifferenceClaim:
    """Say by how much one arm is better than another.

    Args:
        stats: results, shape (M, K).
        fidelities: the M fidelities.
        arms: i and a.
        counted: which fidelities count, shape (M,).
        price: log(1/w) of each of the two ordered pairs.
        level: of the interval.

    >>> from mfbandit import Bounded
    >>> stats = Stats.empty(fidelities=1, arms=2)
    >>> stats.counts[:], stats.sums[:] = 400, [[240.0, 80.0]]
    >>> fid, price = Fidelities([1], concentration=Bounded()), log_price(Roster(2), 0, 1)
    >>> found = difference(stats, fid, (0, 1), np.array([True]), price=price, level=0.95)
    >>> round(found.low, 3), round(found.high, 3), found.level > 0.999, found.better
    (0.251, 0.536, True, 1)
    """
    one, other = (Pool.of(stats, fidelities, np.array([arm]), counted) for arm in arms)
    if not (one.known.all() and other.known.all()):
        return DifferenceClaim(-math.inf, math.inf, 0.0, 0)
    needed = price - math.log1p(-level)
    behind, ahead = _largest(one, other, needed), _largest(other, one, needed)
    costs = [float(explanation(*pair, np.zeros(1)).cost[0]) for pair in ((one, other), (other, one))]
    better = (costs[0] > costs[1]) - (costs[0] < costs[1])
    return DifferenceClaim(-behind, ahead, min(max(0.0, -math.expm1(price - max(costs))), ALMOST_1), better)


def _largest(leader: Pool, rival: Pool, needed: float) -> float:
    """The smallest ε by which the rival cannot be better than the leader."""
    span = leader.span[1] - leader.span[0]

    def missing(ahead: FloatArray) -> FloatArray:
        return explanation(leader, rival, ahead).cost - needed

    (low, high), (least, most) = rival.reach(), leader.reach()
    ends = (low - most).clip(-span, span), (high - least).clip(-span, span)
    found = increasing_root(missing, *ends, least=-span, most=span)
    return float(found[0])
