"""How sure it is that an arm is the best, how much could be lost by taking it, and which arms may be better."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mfbandit._internal.typing import BoolArray, FloatArray, IntArray
from mfbandit.core.claims import Explanation, Pool, explanation, meeting, pair_cost
from mfbandit.core.concentration import Bounded
from mfbandit.core.fidelities import Fidelities
from mfbandit.core.possible_leads import LEAD_TOLERANCE, possible_leads
from mfbandit.core.stats import Stats
from mfbandit.core.tangents import cheapest

LEVEL = 0.95  # at which rivals and the possible loss are given
FIXED_SHARE = 0.9  # of the error that claims may have before arms come or go; the rest is for afterwards
FIRST_SHARE = 0.9  # of the weight that the first arms have; the rest is for those that come later
NEWTON_STEPS = 100
ALMOST_1 = math.nextafter(1.0, 0.0)


@dataclass(frozen=True)
class Roster:
    """Which arms there were, for the error that each claim is allowed.

    Args:
        first: K₀, how many arms there were at the beginning.
        changed: whether arms came, were retired, were set aside or were begun anew since.
        later: arms that were begun anew, or came after one was: which of the later ones each is, from 1. An arm that
            is begun anew is another arm from then on. Other arms beyond the first K₀ came in the order of their
            indices.

    >>> again = Roster(first=3, changed=True, later=((0, 1),))
    >>> again.share(0) == Roster(first=3, changed=True).share(3), round(again.share(1), 3)
    (True, 0.3)
    """

    first: int
    changed: bool = False
    later: tuple[tuple[int, int], ...] = ()

    def log_prices(self, arm: int, rivals: IntArray) -> FloatArray:
        """Compute log(1/w) of the claim that ``arm`` is no worse than each rival.

        As long as arms neither come nor go, the best arm is the same at all times, and each other arm has 1/(K₀ − 1).
        Later the best arm may be another one, and each pair (i, a) has w_i·w_a.

        >>> Roster(first=3).log_prices(0, np.array([1, 2])).round(3).tolist()
        [0.799, 0.799]
        """
        if not self.changed:
            return np.full(len(rivals), math.log(max(1, self.first - 1) / FIXED_SHARE))
        weights = np.array([self.share(one) for one in (arm, *rivals.tolist())])
        prices: FloatArray = -np.log(1 - FIXED_SHARE) - np.log(weights[0]) - np.log(weights[1:])
        return prices

    def share(self, arm: int) -> float:
        """Return w_i: of what all arms there may ever be share, the part of one."""
        later = arm - self.first + 1  # 1, 2, … for arms that came later
        if self.later:
            later = dict(self.later).get(arm, later)
        return FIRST_SHARE / self.first if later < 1 else (1 - FIRST_SHARE) / (later * (later + 1))


@dataclass(frozen=True)
class Claim:
    """What can be said about the best arm, at any time and however often one looks.

    Args:
        arm: the arm that it is about.
        level: a probability: that no other arm is better is said at levels up to this one.
        could_lose: by how much another arm may be better, in units of reward; infinite where nothing is known.
        rivals: the arms that may be better; the one that may be ahead by most first.
        could_be_ahead: by how much each of them may be better.
        fidelities: the fidelities whose results count.
    """

    arm: int
    level: float
    could_lose: float
    rivals: tuple[int, ...]
    could_be_ahead: tuple[float, ...]
    fidelities: tuple[int, ...]


def confidence(
    stats: Stats,
    fidelities: Fidelities,
    arm: int,
    roster: Roster,
    counted: BoolArray,
    level: float = LEVEL,
) -> Claim:
    r"""Say how sure it is that an arm is the best of all active ones.

    Args:
        stats: results, shape (M, K).
        fidelities: the M fidelities.
        arm: i, the arm that it is about.
        roster: which arms there were.
        counted: which fidelities count, shape (M,).
        level: at which rivals and the possible loss are given.

    >>> from mfbandit import Bounded
    >>> stats = Stats.empty(fidelities=1, arms=2)
    >>> stats.counts[:], stats.sums[:] = 100, [[20.0, 60.0]]
    >>> found = confidence(stats, Fidelities([1], concentration=Bounded()), 1, Roster(2), np.array([True]))
    >>> round(found.level, 6), found.could_lose, found.rivals
    (0.999994, 0.0, ())
    """
    others = rivals_of(arm, stats)
    prices = roster.log_prices(arm, others)
    costs, ahead = against(stats, fidelities, arm, others, Prices(prices, level), counted)
    return claim_of(arm, others, costs - prices, ahead, counted)


def rivals_of(arm: int, stats: Stats) -> IntArray:
    """List the active arms but one.

    >>> rivals_of(1, Stats.empty(1, 3)).tolist()
    [0, 2]
    """
    others = stats.active.copy()
    others[arm] = False
    return np.flatnonzero(others)


class Prices(NamedTuple):
    """What claims cost.

    Args:
        logs: log(1/w) of the claim about each rival; below, it is said at no level.
        level: at which rivals and the possible loss are given.
    """

    logs: FloatArray
    level: float

    @property
    def needed(self) -> FloatArray:
        """The Λ at which each rival is ruled out."""
        return self.logs - math.log1p(-self.level)

    def among(self, chosen: IntArray) -> "Prices":
        """Those of some of the rivals, by their places."""
        return Prices(self.logs[chosen], self.level)


def against(
    stats: Stats, fidelities: Fidelities, arm: int, others: IntArray, prices: Prices, counted: BoolArray
) -> tuple[FloatArray, FloatArray]:
    """Compute what speaks against each rival; of each by its own results and the arm's alone, bit for bit.

    Args:
        stats: results, shape (M, K).
        fidelities: the M fidelities.
        arm: i, the arm that it is about.
        others: the rivals a.
        prices: what the claim about each costs.
        counted: which fidelities count, shape (M,).

    Returns:
        Λ_ia(0) of each rival, and the smallest ε at which Λ_ia(ε) is enough; 0 for one that is ruled out. Where Λ_ia(0)
        is below the price, it may be something above it that is below as well, unless ε is the largest possible.
    """
    leader, rivals = Pool.of(stats, fidelities, np.array([arm]), counted), Pool.of(stats, fidelities, others, counted)
    largest = largest_lead(fidelities)
    costs, ahead = quickly(leader, rivals, prices, largest)
    at = np.flatnonzero(np.isnan(costs) | np.isnan(ahead))
    if len(at):
        costs[at], ahead[at] = slowly(leader.among(0 * at), rivals.among(at), prices.needed[at], largest)
    return costs, ahead


def quickly(leader: Pool, rivals: Pool, prices: Prices, largest: float) -> tuple[FloatArray, FloatArray]:
    """Compute what speaks against each rival where curvatures are known; NaN where it was not found.

    Args:
        leader: arm i, once.
        rivals: the arms a.
        prices: what the claim about each costs.
        largest: the largest ε that is possible.
    """
    costs, ahead = np.full((2, len(prices.logs)), np.nan)
    cost, known = pair_cost(leader, rivals), np.flatnonzero(leader.known & rivals.known)
    if cost is None:
        return costs, ahead
    costs[:], ahead[:] = -np.inf, largest  # of an arm without results nothing is ruled out
    if not len(known):
        return costs, ahead
    if len(known) < len(costs):
        cost, rivals, prices = cost.among(known), rivals.among(known), prices.among(known)
    start, span = meeting(leader, rivals), leader.span
    found = cheapest(cost, *start, span, prices.logs)
    costs[known], ahead[known] = found.costs, 0.0
    at = np.flatnonzero(found.costs < prices.needed)
    ahead[known[at]] = possible_leads(cost.among(at), prices.needed[at], found.among(at), span)
    equal = np.flatnonzero((ahead[known] == largest) & (found.costs < prices.logs))  # in order of their costs
    if len(equal):
        exact = np.full(len(equal), -np.inf)
        costs[known[equal]] = cheapest(cost.among(equal), start[0][equal], start[1][equal], span, exact).costs
    return costs, ahead


def slowly(leader: Pool, rivals: Pool, needed: FloatArray, largest: float) -> tuple[FloatArray, FloatArray]:
    """Compute what speaks against each rival for any kind of results.

    Args:
        leader: arm i, once for each rival.
        rivals: the arms a.
        needed: the Λ at which each is ruled out.
        largest: the largest ε that is possible.
    """
    found, ahead = explanation(leader, rivals, np.zeros(len(needed))), np.zeros(len(needed))
    at = np.flatnonzero(~(found.cost >= needed))
    ahead[at] = leads(leader.among(at), rivals.among(at), needed[at], found.among(at), largest)
    return found.cost, ahead


def claim_of(arm: int, others: IntArray, margins: FloatArray, ahead: FloatArray, counted: BoolArray) -> Claim:
    """Put a claim together.

    Args:
        arm: i, the arm that it is about.
        others: the rivals a.
        margins: Λ_ia(0) − log(1/w) of each; where it is below 0, it may be another number below 0.
        ahead: by how much each may be better; 0 if it is ruled out.
        counted: which fidelities count, shape (M,).
    """
    rests_on = tuple(np.flatnonzero(counted).tolist())
    if not len(others):
        return Claim(arm, 1.0, 0.0, (), (), rests_on)
    at = np.flatnonzero(ahead > 0)
    order = at[np.lexsort((margins[at], -ahead[at]))]
    return Claim(
        arm,
        _level(float(margins.min())),
        float(ahead.max()),
        tuple(others[order].tolist()),
        tuple(ahead[order].tolist()),
        rests_on,
    )


def _level(margin: float) -> float:
    """1 − exp(−margin), at least 0; it never rounds to 1, as nothing is certain."""
    return min(-math.expm1(-margin), ALMOST_1) if margin > 0 else 0.0


def largest_lead(fidelities: Fidelities) -> float:
    """The largest difference of two means that is possible at all: the range of rewards, if they have one.

    >>> from mfbandit import Bounded
    >>> largest_lead(Fidelities([1], concentration=Bounded(0, 5)))
    5.0
    """
    span = fidelities.tails[-1]
    return span.high - span.low if isinstance(span, Bounded) else math.inf


def leads(leader: Pool, rivals: Pool, needed: FloatArray, start: Explanation, largest: float) -> FloatArray:
    """Compute the smallest ε for each rival at which "better by more than ε" is ruled out.

    Newton's method inside a bracket: Λ is convex and rises in ε, so that it soon comes down from above, where each ε
    on the way is ruled out as well.

    Args:
        leader: arm i, once for each rival.
        rivals: the arms a, none of them ruled out for ε = 0.
        needed: the Λ at which an explanation is ruled out.
        start: the explanations for ε = 0.
        largest: the largest ε that is possible.
    """
    lead = np.full(len(needed), largest)
    at = np.flatnonzero(np.isfinite(start.cost))  # of an arm without results nothing is ruled out
    if math.isfinite(largest):  # where not even nearly the largest ε is ruled out, no smaller one is
        most = np.full(len(at), largest * (1 - LEAD_TOLERANCE))
        nearly = explanation(leader.among(at), rivals.among(at), most, near=start.among(at))
        at = at[nearly.cost >= needed[at]]
    low, high = np.zeros(len(needed)), np.full(len(needed), largest)
    found = start.among(at)
    for _ in range(NEWTON_STEPS):
        if not len(at):
            break
        ahead = _next(found, needed[at], low[at], high[at])
        found = explanation(leader.among(at), rivals.among(at), ahead, near=found)
        above = found.cost >= needed[at]
        low[at], high[at] = np.where(above, low[at], ahead), np.where(above, ahead, high[at])
        lead[at] = high[at]
        left = high[at] - low[at] > LEAD_TOLERANCE * high[at]
        left &= ~(above & (found.cost - needed[at] < LEAD_TOLERANCE * found.slope * ahead))
        at, found = at[left], found.among(np.flatnonzero(left))
    return lead


def _next(found: Explanation, needed: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
    """The ε to try next: Newton's if it lies inside the bracket, else halfway, or twice as far."""
    with np.errstate(divide="ignore", invalid="ignore"):
        newton = found.ahead + (needed - found.cost) / found.slope
    middle = np.where(np.isfinite(high), 0.5 * (low + np.minimum(high, 1e300)), 2 * low + 1.0)
    return np.where((newton > low) & (newton < high), newton, middle)
