"""Noise that the package does not know, with an e-process of its own: heavier tails than sub-Gaussian ones."""

import math
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Laplace:
    """Laplace noise: λ(X − μ) has the moment generating function 1/(1 − b²λ²)."""

    scale: float
    nu: float = 1.0

    def psi(self, x):
        return x * x / (4 * self.scale**2 + 2 * self.scale * x)

    def psi_inv(self, y):
        return self.scale * (y + math.sqrt(y * y + 4 * y))

    def evidence(self, counts, sums):
        return LaplaceCells(counts, sums, self.scale)


class LaplaceCells:
    """A mixture of exp(λ(nθ − S))·(1 − b²λ²)ⁿ over a grid of λ: each is an e-process, and so is their mean."""

    def __init__(self, counts, sums, scale):
        self.counts, self.sums, self.scale = counts, sums, scale

    def at(self, theta, *, below):
        rates = np.logspace(-2, -0.1, 12)[:, None] / self.scale
        side = 1.0 if below else -1.0
        each = rates * side * (self.counts * theta - self.sums) + self.counts * np.log(1 - (self.scale * rates) ** 2)
        largest = each.max(axis=0)
        parts = np.exp(each - largest)
        slope = side * self.counts * (parts * rates).sum(axis=0) / parts.sum(axis=0)
        return largest + np.log(parts.mean(axis=0)), slope

    def among(self, chosen):
        return LaplaceCells(self.counts[chosen], self.sums[chosen], self.scale)
