"""The problems of ``identification.py``: published ones, problems of the paper with fewer arms, and random ones."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

import mfbandit as mfb

MU3 = ((0.41, 0.45, 0.47, 0.48, 0.5), (0.35, 0.37, 0.38, 0.36, 0.35), (0.51, 0.56, 0.64, 0.62, 0.61))
RANDOM_BIASES, RANDOM_COSTS, RANDOM_SCALE = (0.3, 0.03, 0.0), (1.0, 10.0, 100.0), 0.2


@dataclass(frozen=True)
class Instance:
    """A problem, by name, and what its runs may cost."""

    name: str
    problem: mfb.Problem
    capital: float


def gaussian(
    means: Sequence[Sequence[float]], scale: float, biases: Sequence[float], costs: Sequence[float]
) -> mfb.Problem:
    """A problem with normal rewards whose scale and biases are known."""
    return mfb.Problem(means, mfb.Fidelities(costs, biases, mfb.SubGaussian(scale)), mfb.Gaussian(scale))


def five_by_two() -> mfb.Problem:
    """The published problem 5x2."""
    return gaussian([[0.4] * 4 + [0.5], [0.5] * 4 + [0.6]], 0.1, (0.1, 0), (0.5, 5))


def mu3() -> mfb.Problem:
    """The published problem mu3."""
    means = np.array([*MU3, (0.41, 0.39, 0.4, 0.42, 0.43)]).T
    return gaussian(means.tolist(), 0.1, (0.1, 0.08, 0.04, 0.02, 0), (0.1, 0.125, 0.25, 0.5, 1))


def cut(number: int, arms: int = 20) -> mfb.Problem:
    """A problem of the paper, with fewer arms."""
    whole = mfb.paper_problem(number)
    order = np.argsort(-whole.means[-1], kind="stable")[:: whole.arms // arms][:arms]
    return mfb.Problem(whole.means[:, order], whole.fidelities, whole.rewards)


def random_problem(seed: int, arms: int, ahead: float | None = None) -> mfb.Problem:
    """Means uniform on (0, 1); with ``ahead``, the first arm is that much better than the best other."""
    rng = np.random.default_rng([seed, arms])
    top = rng.uniform(0, 1, arms)
    if ahead is not None:
        top[0] = top[1:].max() + ahead
    means = [(top + rng.uniform(-bias, bias, arms)).tolist() for bias in RANDOM_BIASES]
    return gaussian(means, RANDOM_SCALE, RANDOM_BIASES, RANDOM_COSTS)


def gap(problem: mfb.Problem) -> float:
    """How far the second best arm is behind."""
    second, best = np.sort(problem.means[-1])[-2:]
    return float(best - second)


def highest_alone(problem: mfb.Problem) -> mfb.Problem:
    """The same problem with its highest fidelity only."""
    fidelities = mfb.Fidelities(problem.fidelities.costs[-1:], [0.0], problem.fidelities.tails[-1:])
    return mfb.Problem(problem.means[-1:], fidelities, problem.rewards)
