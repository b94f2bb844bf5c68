"""The minimum of a convex piecewise quadratic function: its slope is linear between the ends of its pieces."""

from typing import NamedTuple

import numpy as np

from mfbandit.simulation.engines.kernels import compiled


class Bracket(NamedTuple):
    """Where the slope is 0: between these two points, with these slopes there."""

    start: float
    end: float
    fall: float  # the slope at the start, at most 0
    rise: float  # the slope at the end, at least 0


ANYWHERE = Bracket(-np.inf, np.inf, -np.inf, np.inf)


@compiled
def narrowed(bracket: Bracket, point: float, steep: float) -> Bracket:
    """The bracket after a look at the end of one more piece, and at the slope there."""
    start, end, fall, rise = bracket
    if steep <= 0:
        start, fall = max(start, point), max(fall, steep)
    if steep >= 0:
        end, rise = min(end, point), min(rise, steep)
    return Bracket(start, end, fall, rise)


@compiled
def minimum(bracket: Bracket) -> float:
    """Where the slope is 0, once the ends of all pieces were looked at."""
    start, end, fall, rise = bracket
    return start if fall == 0 else start - fall * (end - start) / (rise - fall)
