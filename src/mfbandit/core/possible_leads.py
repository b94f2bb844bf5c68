r"""By how much rivals may be ahead, by Newton's method between tangent planes, for many rivals at once.

A lead ε = y − x is ruled out if Λ(ε) = min_x L(x) + R(x + ε) is enough. At the smallest such ε, the cost is what is
needed and L'(x) + R'(y) = 0. Newton's method for these two equations says where to look next. Each look gives a plane
below the cost, which is convex, and two planes that fall towards each other in x show from which ε on leads are ruled
out: what is found is never too small.

A plane is an array of four rows: x of the look, the cost there for ε = 0, and the slopes in x and in ε; NaN where there
is none. What is found for a rival depends on its own results and the leader's alone, bit for bit.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from mfbandit._internal.typing import BoolArray, FloatArray, IntArray
from mfbandit.core.evidence import LEAST
from mfbandit.core.pair_cost import SIGNS, PairCost
from mfbandit.core.tangents import MOST_LOOKS, Cheapest, beyond

LEAD_TOLERANCE = 1e-6  # of a possible lead, upwards
NEAR_END = 0.9  # of the way to an end of the range at which costs are infinite
NEWTON_LOOKS = 8  # until, at every other look, it is looked where planes meet, in case the cost has kinks
EDGE = 1e-3  # of the range, that a first look stays away from such an end


def possible_leads(cost: PairCost, needed: FloatArray, start: Cheapest, span: tuple[float, float]) -> FloatArray:
    """Compute the smallest ε for each rival at which "better by more than ε" is ruled out, or a little more.

    Args:
        cost: of pairs of means.
        needed: the Λ at which an explanation is ruled out.
        start: explanations of "better" that cost less.
        span: the smallest and the largest mean that are possible at all.

    Returns:
        Leads; NaN where it was not found.
    """
    largest = span[1] - span[0]
    lead, at = np.full(len(needed), np.nan), np.arange(len(needed))
    if math.isfinite(largest):  # where not even nearly the largest ε is ruled out, no smaller one is
        margin = np.full(len(needed), 0.5 * LEAD_TOLERANCE * largest)
        corner = cost.at(span[0] + margin, span[1] - margin)[0]
        enough = corner[0] + corner[1] >= needed
        lead[~enough], at = largest, np.flatnonzero(enough)
        cost, needed, start = cost.among(at), needed[at], start.among(at)
    if not len(at):
        return lead
    search = _begun(cost, needed, start, span)
    for looks in range(MOST_LOOKS):
        with np.errstate(all="ignore"):  # at the ends of what numbers can be; what is not found is NaN
            search, done = search.looked(trust_newton=looks < NEWTON_LOOKS or looks % 2 == 0)
        if done.any():
            chosen, left = np.flatnonzero(done), np.flatnonzero(~done)
            lead[at[chosen]] = np.maximum(search.high, search.low)[chosen]
            if not len(left):
                break
            at, search = at[left], search.among(left)
    return lead


@dataclass(frozen=True, eq=False)
class _Search:
    """Where to look next, and what is known.

    Args:
        cost: of pairs of means.
        needed: the Λ at which a lead is ruled out.
        middle: the mean of the leader for ε = 0, about; it falls by at most ε as a lead grows from 0 to ε.
        reach: the part of the way to the ends of the range that a step may go, shape (2, A).
        span: the range.
        x: the leader's mean to look at.
        y: the rival's.
        low: the largest lead that is known not to be ruled out.
        high: the smallest that is known to be.
        falling: planes that fall in x.
        rising: planes that rise in x.
    """

    cost: PairCost
    needed: FloatArray
    middle: FloatArray
    reach: FloatArray
    span: tuple[float, float]
    x: FloatArray
    y: FloatArray
    low: FloatArray
    high: FloatArray
    falling: FloatArray
    rising: FloatArray

    def among(self, chosen: IntArray) -> "_Search":
        return _Search(
            self.cost.among(chosen),
            self.needed[chosen],
            self.middle[chosen],
            self.reach[:, chosen],
            self.span,
            self.x[chosen],
            self.y[chosen],
            self.low[chosen],
            self.high[chosen],
            self.falling[:, chosen],
            self.rising[:, chosen],
        )

    def looked(self, *, trust_newton: bool) -> tuple["_Search", BoolArray]:
        """Look once, and tell which leads are found."""
        look, ahead, needed = self.cost.at(self.x, self.y), self.y - self.x, self.needed
        _, (slope1, slope2), (bend1, bend2) = look
        value, slope, curvature = look[:, 0] + look[:, 1]
        # Newton's step in x, the part of a lead by which x falls, and slope and curvature of Λ in ε.
        step, joint, rise, bend = -slope / curvature, bend2 / curvature, slope2, bend2
        stiff = joint * bend1
        ends = np.flatnonzero((self.y >= self.span[1]) & (slope < 0) | (self.x <= self.span[0]) & (slope > 0))
        if len(ends):  # where only one of the two means can move: the leader's if the rival's is the largest possible
            leaders = slope[ends] < 0
            slope[ends], step[ends], joint[ends] = 0.0, 0.0, leaders
            rise[ends] = np.where(leaders, -slope1[ends], slope2[ends])
            stiff[ends] = bend[ends] = np.where(leaders, bend1[ends], bend2[ends])
        here = np.array([self.x, value - rise * ahead, slope, rise])
        falling, rising = np.where(slope <= 0, here, self.falling), np.where(slope >= 0, here, self.rising)
        high = np.fmin(self.high, _ruled_out_from(falling, rising, needed))
        gap = needed - value
        low = np.where(gap > 0, np.maximum(self.low, ahead), self.low)
        back = np.minimum(gap, 0.0) / rise  # to what is just needed, if the curve is nearly straight there
        straight = bend * back * back <= 0.4 * LEAD_TOLERANCE * high * rise
        done = high - np.where(straight, np.maximum(low, ahead + back), low) <= LEAD_TOLERANCE * high
        done &= high < np.inf
        gain = _to_rise(gap - 0.5 * slope * step, rise + bend2 * step, stiff)
        next_x = self.x + beyond(step, curvature) - joint * gain
        next_x, next_y = self._inside(next_x, next_x + ahead + gain)
        wanted = next_y - next_x
        good = (wanted > low) & (wanted <= high)
        bad = np.flatnonzero(~(good | done))
        if len(bad):
            next_x[bad], next_y[bad] = self._halfway(bad, step[bad], joint[bad], low[bad], high[bad])
        if not trust_newton:
            met_x, met_y = _meeting(falling, rising, high)
            usable = (met_x >= self.span[0]) & (met_y <= self.span[1]) & (high < np.inf)
            next_x, next_y = np.where(usable, (met_x, met_y), (next_x, next_y))
        return replace(self, x=next_x, y=next_y, low=low, high=high, falling=falling, rising=rising), done

    def _inside(self, x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Keep means inside the range; where costs are infinite at its ends, go only most of the way to them."""
        least, most = self.span
        if math.isinf(most - least):
            return x, y
        lowest, highest = self.reach * (self.x - least, most - self.y)
        return np.maximum(x, self.x - lowest), np.minimum(y, self.y + highest)

    def _halfway(
        self, at: IntArray, step: FloatArray, joint: FloatArray, low: FloatArray, high: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Where Newton's method leads astray: halfway between leads that are ruled out and leads that are not."""
        (least, most), x, y, middle, reach = self.span, self.x[at], self.y[at], self.middle[at], self.reach[:, at]
        wanted = np.where(high < np.inf, 0.5 * (low + high), 2 * (y - x))
        lowest, highest = np.maximum(middle - wanted, least), np.minimum(middle, most - wanted)
        kept = x - np.where(np.isfinite(joint), joint, 0.5) * (wanted - (y - x))
        kept = np.clip(np.where(kept > highest, y - wanted, kept), lowest, highest)
        other = kept + np.where(np.isfinite(step), step, 0.0)
        other = np.clip(other, kept - reach[0] * (kept - lowest), kept + reach[1] * (highest - kept))
        return other, np.where(other >= most - wanted, most, other + wanted)


def _ruled_out_from(falling: FloatArray, rising: FloatArray, needed: FloatArray) -> FloatArray:
    """The smallest ε that two planes rule out; NaN where one is missing, or they do not rise."""
    (x1, cost1, slope1, rise1), (x2, cost2, slope2, rise2) = falling, rising
    width = slope2 - slope1
    share1, share2 = np.where(width > 0, np.array([slope2, -slope1]) / width, 0.5)  # so that x does not matter
    cost, rise = share1 * (cost1 + slope1 * (x2 - x1)) + share2 * cost2, share1 * rise1 + share2 * rise2
    return np.where(rise > 0, np.maximum((needed - cost) / rise, 0.0), np.nan)


def _meeting(falling: FloatArray, rising: FloatArray, ahead: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The means at which two planes meet for a lead; NaN where one is missing."""
    (x1, cost1, slope1, rise1), (x2, cost2, slope2, rise2) = falling, rising
    x = x1 + (cost1 - cost2 + (rise1 - rise2) * ahead + slope2 * (x2 - x1)) / (slope2 - slope1)
    return x, x + ahead


def _to_rise(gap: FloatArray, slope: FloatArray, curvature: FloatArray) -> FloatArray:
    """How far to go until a parabola with this slope and curvature has risen by so much."""
    distance: FloatArray = 2 * gap / (slope + np.sqrt(np.maximum(slope * slope + 2 * curvature * gap, 0.0)))
    return distance


def _begun(cost: PairCost, needed: FloatArray, start: Cheapest, span: tuple[float, float]) -> _Search:
    """Guess where leads are just ruled out: from the cheapest explanation, or for a range by score intervals."""
    number, mean = len(needed), start.means
    walls = cost.walls(span) if cost.width else np.zeros((2, number), dtype=bool)
    low, high, planes = np.zeros(number), np.full(number, span[1] - span[0]), np.full((4, number), np.nan)
    reach = np.where(walls, NEAR_END, 1.0)
    search = _Search(cost, needed, mean, reach, span, mean, mean, low, high, planes, planes)
    with np.errstate(all="ignore"):
        step, gain = _first_step(start.look, needed - start.costs)
        x, y = search._inside(mean + step, mean + step + gain)
        if cost.width:
            lower, upper = _score_ends(cost, needed)
            chosen = ~np.isfinite(gain) | (lower <= mean) & (upper >= mean)
            edge = EDGE * (span[1] - span[0]) * walls
            x = np.where(chosen, np.clip(lower, span[0] + edge[0], mean), x)
            y = np.where(chosen, np.clip(upper, mean, span[1] - edge[1]), y)
    return replace(search, x=x, y=y)


def _first_step(look: FloatArray, gap: FloatArray) -> tuple[FloatArray, FloatArray]:
    """By how much x changes, and the lead that a parabola for Λ gives."""
    _, (_, slope2), (bend1, bend2) = look
    _, slope, curvature = look[:, 0] + look[:, 1]
    step, joint = -slope / curvature, bend2 / curvature
    gain = _to_rise(gap - 0.5 * slope * step, slope2 + bend2 * step, joint * bend1)
    return step - joint * gain, gain


def _score_ends(cost: PairCost, needed: FloatArray) -> tuple[FloatArray, FloatArray]:
    """A mean of the leader and one of the rival, at the ends of score intervals that share what is needed."""
    hits, misses, *_ = cost.parts
    counts, known = np.maximum(hits + misses, LEAST), hits + misses > 0
    rate = hits / counts
    spread = rate * (1 - rate)
    variance = np.where(known, (spread + 0.1 / counts) / counts, np.inf).min(axis=1)
    share = variance / (variance[0] + variance[1])
    paid = (needed + 0.5 * np.log1p(counts) + math.log(2)) * share[:, None]
    squared = 2 * paid * (1 + 1 / counts) / counts  # z²/n, and a little more where results are few
    middle, half = rate + 0.5 * squared, np.sqrt(squared * (spread + 0.25 * squared))
    ends = cost.shift + cost.width * (middle + SIGNS * half) / (1 + squared)
    return np.where(known[0], ends[0], -np.inf).max(axis=0), np.where(known[1], ends[1], np.inf).min(axis=0)
