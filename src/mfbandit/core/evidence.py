r"""Evidence about means that holds at any time: e-processes of the results of one arm at one fidelity.

Let n rewards have an expectation of at least θ. An e-process E of them is at most 1 on average at every stopping time,
whatever rule chose the plays and however often one looks. By Ville's inequality it ever reaches 1/δ in at most δ of
all runs: where it is large, the mean is below θ. All values here are logarithms of E.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

import numpy as np

from mfbandit._internal.special import log_gamma, log_mills
from mfbandit._internal.typing import BoolArray, FloatArray, IntArray
from mfbandit.core.concentration import QUADRATIC, Bounded, Concentration, SubGaussian, has_range

PRIOR = 3.0  # ρ, in plays: small, for arms with few results
LEAST = 1e-200  # of a rate whose logarithm is taken


class Cells(Protocol):
    """The results of some arms at one fidelity, as evidence about their means there."""

    def at(self, theta: FloatArray, *, below: bool) -> tuple[FloatArray, FloatArray]:
        """Return log E and its slope in θ, where E is evidence that the mean is below θ (else: above θ).

        log E is convex in θ and rises (falls) with it; it is 0 where there is no result.
        """
        ...

    def among(self, chosen: IntArray) -> "Cells":
        """Return the results of some of the arms, by their places."""
        ...


@runtime_checkable
class HasEvidence(Protocol):
    """A concentration that brings an e-process of its own, for noise that is neither sub-Gaussian nor bounded.

    What must hold, for rewards whose mean given all that came before is μ: E for θ = μ is at most 1 on average at every
    stopping time, on either side. log E is convex in θ, and rises (for a mean above θ: falls) with it. Then so do all
    claims hold that are made with it. ``docs/guide.md`` has an example.
    """

    def evidence(self, counts: IntArray, sums: FloatArray, /) -> Cells:
        """Return the evidence of so many results with these sums, one for each arm."""
        ...


def has_evidence(tail: Concentration) -> bool:
    """Tell whether an e-process is known for this noise.

    >>> has_evidence(SubGaussian(0.2))
    True
    """
    return isinstance(tail, HasEvidence) or type(tail) in QUADRATIC


def cells(tail: Concentration, counts: IntArray, sums: FloatArray) -> Cells | None:
    """Return the evidence of results at one fidelity; None if no e-process is known for its noise.

    Args:
        tail: the noise of the fidelity.
        counts: n, the number of results of each arm.
        sums: the sums of their rewards.

    >>> found = cells(SubGaussian(1.0), np.array([9, 9]), np.zeros(2))
    >>> found.at(np.array([0.0, 1.0]), below=True)[0].round(3).tolist()
    [-0.693, 3.37]
    """
    if isinstance(tail, HasEvidence):
        return tail.evidence(counts, sums)
    if type(tail) is SubGaussian:  # not isinstance: a subclass may define another psi
        return GaussianCells(counts, sums, tail.scale)
    if has_range(tail):
        return BoundedCells(counts, sums, tail)
    return None


def stacked(rows: "Sequence[Sequence[Cells]]") -> "GaussianCells | BoundedCells | None":
    """Join results of the same arms at several fidelities, of several pools, to be looked at all at once.

    Args:
        rows: for each pool, the cells of its fidelities.

    Returns:
        Cells of shape (pools, fidelities, arms), with the same values to the last bit; None if kinds differ.

    >>> one = GaussianCells(np.array([9]), np.zeros(1), 1.0)
    >>> stacked([[one, one], [one, one]]).counts.shape
    (2, 2, 1)
    """
    every = [cell for row in rows for cell in row]
    first = every[0] if every else None
    if isinstance(first, GaussianCells) and all(
        type(cell) is GaussianCells and cell.prior == first.prior for cell in every
    ):
        scales = np.array([[cell.scale for cell in row] for row in rows])[:, :, None]  # type: ignore[attr-defined]
        return GaussianCells(*_joined(rows), scales, first.prior)
    if isinstance(first, BoundedCells) and all(
        type(cell) is BoundedCells and cell.span == first.span for cell in every
    ):
        return BoundedCells(*_joined(rows), first.span)
    return None


def _joined(rows: "Sequence[Sequence[Any]]") -> tuple[IntArray, FloatArray]:
    counts = np.array([[cell.counts for cell in row] for row in rows])
    return counts, np.array([[cell.sums for cell in row] for row in rows])


@dataclass(frozen=True, eq=False)
class GaussianCells:
    r"""The half-normal mixture for sub-Gaussian rewards of scale σ, with a prior worth ρ plays.

        log E = log 2 + ½ log(ρ/(n + ρ)) + log(exp(z²/2)·Φ(z)),   z = ±(nθ − S)/(σ·sqrt(n + ρ)).

    >>> value, slope = GaussianCells(np.array([100]), np.array([20.0]), scale=0.5).at(np.array([0.4]), below=True)
    >>> value.round(2).tolist(), slope.round(1).tolist()
    ([6.69], [77.7])
    """

    counts: IntArray
    sums: FloatArray
    scale: float | FloatArray
    prior: float = PRIOR

    def among(self, chosen: IntArray) -> "GaussianCells":
        """Return the results of some of the arms."""
        return replace(self, counts=self.counts[chosen], sums=self.sums[chosen])

    @property
    def weight(self) -> float | FloatArray:
        """What one result tells: 1/σ²."""
        return 1 / (self.scale * self.scale)

    @cached_property
    def rate(self) -> FloatArray:
        """n/(σ·sqrt(n + ρ)), by which z grows with θ."""
        rate: FloatArray = self.counts / self._spread
        return rate

    @cached_property
    def offset(self) -> FloatArray:
        """S/(σ·sqrt(n + ρ))."""
        offset: FloatArray = self.sums / self._spread
        return offset

    @cached_property
    def constant(self) -> FloatArray:
        """The part of log E that does not depend on θ."""
        constant: FloatArray = math.log(2) - 0.5 * np.log1p(self.counts / self.prior)
        return constant

    @cached_property
    def _spread(self) -> FloatArray:
        spread: FloatArray = self.scale * np.sqrt(self.counts + self.prior)
        return spread

    def at(self, theta: FloatArray, *, below: bool | BoolArray) -> tuple[FloatArray, FloatArray]:
        """Return log E and its slope in θ."""
        sign = np.where(below, 1.0, -1.0)
        value, slope = log_mills(sign * (self.counts * theta - self.sums) / self._spread)
        empty = self.counts == 0
        return np.where(empty, 0.0, value + self.constant), slope * (sign * self.counts / self._spread)


@dataclass(frozen=True, eq=False)
class BoundedCells:
    r"""The Beta mixture for rewards in a range, scaled to [0, 1]: the sharper, the nearer means are to its ends.

        log E = log B(S + ½, n − S + ½) − log B(½, ½) − S log θ − (n − S) log(1 − θ)   for θ beyond X̄,

    and its value at X̄ on the other side. It holds for any rewards in the range, since
    (p/θ)ˣ((1 − p)/(1 − θ))^(1−x) is convex in x. No mean lies outside the range: there, log E is what it is at its end.

    >>> found = BoundedCells(np.array([20]), np.array([2.0]), Bounded()).at(np.array([0.5]), below=True)
    >>> found[0].round(2).tolist()
    [5.61]
    """

    counts: IntArray
    sums: FloatArray
    span: Bounded

    def among(self, chosen: IntArray) -> "BoundedCells":
        """Return the results of some of the arms."""
        return replace(self, counts=self.counts[chosen], sums=self.sums[chosen])

    @property
    def weight(self) -> float:
        """What one result tells: 1/σ², with σ half the range."""
        return 4 / (self.span.high - self.span.low) ** 2

    @cached_property
    def hits(self) -> FloatArray:
        """S, scaled to [0, n]."""
        width = self.span.high - self.span.low
        hits: FloatArray = (self.sums - self.counts * self.span.low) / width
        return np.minimum(np.maximum(hits, 0.0), self.counts.astype(np.float64))

    @cached_property
    def mixture(self) -> FloatArray:
        """The part of log E that does not depend on θ."""
        counts = self.counts.astype(np.float64)
        hits, misses = self.hits, counts - self.hits
        won, lost, both = log_gamma(np.array([hits + 0.5, misses + 0.5, counts + 1.0]))
        mixture: FloatArray = won + lost - both - math.log(math.pi)
        return mixture

    def at(self, theta: FloatArray, *, below: bool | BoolArray) -> tuple[FloatArray, FloatArray]:
        """Return log E and its slope in θ."""
        hits, misses = self.hits, self.counts - self.hits
        width, mean = self.span.high - self.span.low, hits / np.maximum(self.counts, 1)
        given = (theta - self.span.low) / width
        beyond = np.where(below, given > mean, given < mean) & (self.counts > 0)
        used = np.clip(np.where(beyond, given, mean), 0.0, 1.0)
        win, lose = np.maximum(used, LEAST), np.maximum(1 - used, LEAST)
        value = self.mixture - hits * np.log(win) - misses * np.log(lose)
        slope = np.where(beyond & (used == given), misses / lose - hits / win, 0.0)
        return np.where(self.counts > 0, value, 0.0), slope / width
