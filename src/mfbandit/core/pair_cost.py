r"""The cost L(x) + R(y) of "the leader has the mean x and a rival the mean y", for many rivals, with its derivatives.

L = G↓_i is the leader's part and R = G↑_a that of rival a, as in :mod:`~mfbandit.core.claims`. What does not depend on
x and y is computed once, as costs are looked at many times. A look is an array of shape (3, 2, A): the values, slopes
and curvatures of L and R for each rival.
"""

import math
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from mfbandit._internal.special import log_mills
from mfbandit._internal.typing import BoolArray, FloatArray, IntArray
from mfbandit.core.evidence import LEAST, BoundedCells, GaussianCells

LOG_2 = math.log(2)
SIGNS = np.array([-1.0, 1.0])[:, None, None]  # of the leader, whose evidence rises downwards, and of its rivals


Stack: TypeAlias = GaussianCells | BoundedCells


@dataclass(frozen=True, eq=False)
class PairCost:
    """The cost of a pair of means, for each rival.

    Args:
        hedged: how many of the fidelities that count are hedged; these come first.
        fixed: what does not depend on means, shape (2, A).
        parts: what the kind of noise needs, arrays of shape (2, R, A).
        shift: by which θ of a fidelity lies below a mean, shape (2, R, 1): ζ, for the leader −ζ, and the smallest
            reward.
        width: of the range of rewards; 0 if they have none.
    """

    hedged: int
    fixed: FloatArray
    parts: tuple[FloatArray, ...]
    shift: FloatArray
    width: float = 0.0

    @classmethod
    def of(cls, leader: Stack, rivals: Stack, biases: FloatArray, hedged: int, fixed: FloatArray) -> "PairCost":
        """Prepare to look at costs.

        Args:
            leader: its cells, shape (1, R, 1).
            rivals: their cells, shape (1, R, A).
            biases: ζ of the fidelities that count, shape (R, 1).
            hedged: how many of them are hedged; these come first.
            fixed: what the other fidelities add, shape (2, A).
        """
        both = zip(_parts(leader, -1, biases), _parts(rivals, 1, biases), strict=True)
        parts = tuple(np.concatenate([np.broadcast_to(one, many.shape), many]) for one, many in both)
        fixed = fixed - hedged * LOG_2
        if isinstance(leader, GaussianCells):
            return cls(hedged, fixed, parts, SIGNS * biases)
        return cls(hedged, fixed, parts, SIGNS * biases + leader.span.low, leader.span.high - leader.span.low)

    def among(self, chosen: IntArray) -> "PairCost":
        """The same for some of the rivals, by their places."""
        parts = tuple(part.take(chosen, axis=-1) for part in self.parts)
        return replace(self, fixed=self.fixed[:, chosen], parts=parts)

    def walls(self, span: tuple[float, float]) -> BoolArray:
        """Whether the leader's cost is infinite at the smallest mean, and a rival's at the largest; shape (2, A)."""
        hits, misses, *_ = self.parts
        low, high = (span[0] - self.shift[0]) / self.width <= 0, (span[1] - self.shift[1]) / self.width >= 1
        return np.array([((hits[0] > 0) & low).any(axis=0), ((misses[1] > 0) & high).any(axis=0)])

    def at(self, x: FloatArray, y: FloatArray) -> FloatArray:
        """Look at a mean of the leader and at one of the rival, for each rival; shape (3, 2, A)."""
        means = np.array([x, y])[:, None]
        found = np.array(self._bounded(means) if self.width else self._gaussian(means))
        if self.hedged:  # h(v) = log((1 + eᵛ)/2), h'(v) = p = 1/(1 + e⁻ᵛ), h''(v) = p(1 − p)
            v, rise, bend = found[:, :, : self.hedged]
            small = np.exp(np.copysign(v, -1.0))
            both = 1 + small
            p = np.where(v > 0, 1.0, small) / both
            np.maximum(v, 0.0, out=v)
            v += np.log(both)  # less log 2, which is fixed
            bend += (1 - p) * rise * rise
            bend *= p
            rise *= p
        look: FloatArray = found[:, :, 0]
        for row in range(1, found.shape[2]):  # in this order, however many rivals there are
            look = look + found[:, :, row]
        look[0] += self.fixed
        return look

    def _gaussian(self, means: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """As in :class:`~mfbandit.core.evidence.GaussianCells`; without results, z is 0 and so is log E."""
        rate, offset, constant, square = self.parts
        z = rate * means - offset
        value, slope = log_mills(z)
        curvature = 1 - (slope - z) * slope  # φ/Φ falls by φ/Φ·(z + φ/Φ)
        return value + constant, slope * rate, curvature * square

    def _bounded(self, means: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """As in :class:`~mfbandit.core.evidence.BoundedCells`."""
        hits, misses, mean, low, high, constant = self.parts
        given = (means - self.shift) / self.width
        used = np.minimum(np.maximum(given, low), high)
        win, lose = np.maximum(used, LEAST), np.maximum(1 - used, LEAST)
        value = constant - hits * np.log(win) - misses * np.log(lose)
        up, down = misses / lose, hits / win
        inside = ((used == given) & (given != mean)) / self.width
        with np.errstate(over="ignore", invalid="ignore"):
            bend = np.where(inside > 0, (up / lose + down / win) * (inside * inside), 0.0)
        return value, (up - down) * inside, bend


def _parts(cells: Stack, sign: int, biases: FloatArray) -> tuple[FloatArray, ...]:
    """What depends on the results alone; ``sign`` is −1 for the leader and 1 for rivals."""
    if isinstance(cells, GaussianCells):
        offset = sign * cells.offset + cells.rate * biases
        return sign * cells.rate, offset, cells.constant, cells.rate * cells.rate
    mean = cells.hits / np.maximum(cells.counts, 1)
    ends = (np.zeros_like(mean), mean) if sign < 0 else (mean, np.ones_like(mean))
    return cells.hits, cells.counts - cells.hits, mean, *ends, cells.mixture * (cells.counts > 0)
