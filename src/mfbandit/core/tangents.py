r"""The costs of the cheapest explanations, by Newton's method between tangents, for many rivals at once.

The cost F(x, y) = L(x) + R(y) of "the leader has the mean x and the rival the mean y" is convex. Each look at it gives
a tangent below it. Two tangents that fall towards each other bound min_x F(x, x) from below, so that it is known how
far a look is from the minimum. Newton's method says where to look next.

What is found for a rival depends on its own results and the leader's alone, bit for bit.
"""

from typing import NamedTuple

import numpy as np

from mfbandit._internal.typing import FloatArray, IntArray
from mfbandit.core.pair_cost import PairCost

ACCURACY = 1e-8  # of the cost of an explanation, which is never taken for larger than it is by more
MOST_LOOKS = 30
TOO_FAR = 0.01  # of a step, by which it goes further, so that the minimum lies between two tangents
NO_MATTER = 0.005  # of the accuracy: how little a step costs that goes further than the minimum
CONVERGES = 0.5  # of a slope before: up to here, Newton's method is trusted
HALVED_EVERY = 5  # looks, in case tangents cross near one end each time
FIRST_PART = 0.7  # of the way to an end of the range, that a first step may go
FIRST_DEVIATIONS = 8.0  # that a first step may go


class Cheapest(NamedTuple):
    """The cheapest explanations of "the rival is better than the leader", or ones that are cheap enough.

    Args:
        costs: of each rival; NaN where none was found.
        means: the mean of both in it.
        look: what a look there found, shape (3, 2, A).
    """

    costs: FloatArray
    means: FloatArray
    look: FloatArray

    def among(self, chosen: IntArray) -> "Cheapest":
        """The same for some of the rivals, by their places."""
        return Cheapest(self.costs[chosen], self.means[chosen], self.look[:, :, chosen])


def cheapest(
    cost: PairCost, start: FloatArray, deviation: FloatArray, span: tuple[float, float], cheap: FloatArray
) -> Cheapest:
    """Compute Λ(0) of each rival, or show that it is below a threshold.

    Args:
        cost: of pairs of means.
        start: a mean to look at first.
        deviation: how far from it the minimum lies, about.
        span: the smallest and the largest mean that are possible at all.
        cheap: for each rival, the cost below which any explanation does.
    """
    number, (least, most) = len(start), span
    found = Cheapest(np.full(number, np.nan), np.full(number, np.nan), np.zeros((3, 2, number)))
    at, x, farthest = np.arange(number), np.clip(start, least, most), FIRST_DEVIATIONS * deviation
    falling, rising = np.full((3, number), np.nan), np.full((3, number), np.nan)  # x, cost and slope of tangents
    falling[0], rising[0], steep = least, most, np.full(number, np.inf)
    for looks in range(MOST_LOOKS):
        look = cost.at(x, x)
        with np.errstate(all="ignore"):  # at the ends of what numbers can be; what is not found is NaN
            value, slope, curvature = look[:, 0] + look[:, 1]
            at_end = (x <= least) & (slope > 0) | (x >= most) & (slope < 0)
            here = np.array([x, value, np.where(at_end, 0.0, slope)])
            falling, rising = np.where(here[2] <= 0, here, falling), np.where(here[2] >= 0, here, rising)
            bound, crossing = _crossing(falling, rising)
            done = (value - bound <= ACCURACY) | (here[2] == 0) | (value < cheap)
            step = beyond(-slope / curvature, curvature)
            if not looks and most < np.inf:  # near its ends, costs may be infinite
                step = np.clip(step, FIRST_PART * (least - x), FIRST_PART * (most - x))
            following = x + step
            good = (following > falling[0]) & (following < rising[0]) & (np.abs(step) <= farthest)
            good &= np.abs(slope) <= CONVERGES * steep
            bad = np.flatnonzero(~(good | done))
            if len(bad):
                low, high, far = falling[0, bad], rising[0, bad], farthest[bad]
                limited = np.where(np.abs(step[bad]) <= far, step[bad], np.where(slope[bad] > 0, -far, far))
                between = (crossing[bad] > low) & (crossing[bad] < high) & (looks % HALVED_EVERY < HALVED_EVERY - 1)
                other = np.where(between, crossing[bad], 0.5 * (low + high))
                following[bad] = np.where(np.isnan(bound[bad]), np.clip(x[bad] + limited, least, most), other)
        if done.any():
            chosen, left = np.flatnonzero(done), np.flatnonzero(~done)
            found.costs[at[chosen]], found.means[at[chosen]] = value[chosen], x[chosen]
            found.look[:, :, at[chosen]] = look[:, :, chosen]
            if not len(left):
                break
            at, cost, falling, rising = at[left], cost.among(left), falling[:, left], rising[:, left]
            following, slope, farthest, cheap = following[left], slope[left], farthest[left], cheap[left]
        x, steep, farthest = following, np.abs(slope), 4 * farthest
    return found


def _crossing(falling: FloatArray, rising: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The cost where two tangents cross, and x there; NaN where one is missing."""
    (x1, cost1, slope1), (x2, cost2, slope2) = falling, rising
    distance = (cost1 - cost2 + slope2 * (x2 - x1)) / (slope2 - slope1)
    return cost1 + slope1 * distance, x1 + distance


def beyond(step: FloatArray, curvature: FloatArray) -> FloatArray:
    """Newton's step and a little more: at least so much as does not matter for the cost.

    >>> beyond(np.array([-1.0, 0.0]), np.ones(2)).round(4).tolist()
    [-1.01, 0.0]
    """
    more: FloatArray = (1 + TOO_FAR) * step + np.sign(step) * np.sqrt(NO_MATTER * ACCURACY / curvature)
    return more
