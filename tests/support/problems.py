"""Problems and noise that tests of several rooms use."""

import math

import numpy as np

from mfbandit import Problem, paper_problem


class SubExponential:
    """A psi that is not a square: x²/(2 + 2x)."""

    nu = 1.0

    def psi(self, x):
        return x * x / (2 + 2 * x)

    def psi_inv(self, y):
        return y + math.sqrt(y * y + 2 * y)


def small(number, arms):
    """A paper problem with some of its arms, the first and the last among them."""
    problem = paper_problem(number, seed=5)
    keep = np.linspace(0, problem.arms - 1, arms).astype(int)
    return Problem(problem.means[:, keep], problem.fidelities, problem.rewards)
