"""What no rule for finding the best arm can be below, and what a rule costs that knows the best proportions."""

import math
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linprog

import mfbandit as mfb
from mfbandit._internal.typing import FloatArray
from mfbandit.core import Stats

GROWTH = 1.02  # of what is spent, from one look to the next, where proportions are known
ACCURACY = 1e-3  # of T*, up to which bounds from below and from above are brought together
MOST_ROUNDS = 200
STEPS = (0.1, 0.3, 1.0)  # parts of the way from the best shares so far to those that are best by the planes


class BestShares(NamedTuple):
    """T* = 1/max over cost shares ω of min over a of f_ia(ω/λ), and shares that nearly reach it.

    Args:
        least: a bound of T* from below.
        cost: one from above, which these shares reach.
        shares: ω, shape (M, K).
    """

    least: float
    cost: float
    shares: FloatArray


def evidence_rates(problem: mfb.Problem, shares: FloatArray) -> tuple[FloatArray, FloatArray]:
    """f_ia of the true means for each arm a, at weights ω/λ, and the meeting points; the best arm has infinity."""
    costs, biases, scales = _columns(problem)
    weights, best = shares / costs / (2 * scales**2), int(problem.means[-1].argmax())
    low, high = problem.means.min() - 1 + np.zeros(problem.arms), problem.means.max() + 1 + np.zeros(problem.arms)
    lead, rivals = problem.means[:, [best]] - biases, problem.means + biases
    for _ in range(40):
        middle = 0.5 * (low + high)
        slope = (weights * np.maximum(middle - rivals, 0)).sum(axis=0)
        slope -= (weights[:, [best]] * np.maximum(lead - middle, 0)).sum(axis=0)
        low, high = np.where(slope > 0, low, middle), np.where(slope > 0, middle, high)
    value = (weights[:, [best]] * np.maximum(lead - low, 0) ** 2).sum(axis=0)
    value += (weights * np.maximum(low - rivals, 0) ** 2).sum(axis=0)
    value[best] = np.inf
    return value, low


def best_shares(problem: mfb.Problem, accuracy: float = ACCURACY) -> BestShares:
    """Find T* and the best shares, by cutting planes.

    With its η held fixed, f_ia is linear in ω and at least what it is with the best η: a plane above the curve. Where
    the lowest of such planes is highest, by linear programming, is looked next. A mean of planes, with the weights of
    the dual solution, bounds 1/T* from above at every ω; min over a of f_ia at any one ω bounds it from below.
    """
    shape = problem.means.shape
    shares, planes = np.full(shape, 1 / problem.means.size), list[FloatArray]()
    reached, bound, tried = 0.0, math.inf, [shares]
    for _ in range(MOST_ROUNDS):
        for candidate in tried:
            values, meeting = evidence_rates(problem, candidate)
            if values.min() > reached:
                reached, shares = float(values.min()), candidate
            nearest = np.argsort(values)[:-1]
            planes += [_plane(problem, rival, meeting[rival]) for rival in (nearest[:4] if planes else nearest)]
        weights, corner = _highest(np.array(planes), reached)
        bound = min(bound, float((weights @ np.array(planes)).max()))
        if bound <= reached * (1 + accuracy):
            return BestShares(1 / bound, 1 / reached, shares)
        tried = [shares + step * (corner.reshape(shape) - shares) for step in STEPS]
    raise RuntimeError(f"the best shares were not found within {accuracy:g}: {reached:g} to {bound:g}")


def _plane(problem: mfb.Problem, rival: int, meeting: float) -> FloatArray:
    """What a unit of cost in each cell speaks against a rival, with this η; shape (M·K,)."""
    costs, biases, scales = _columns(problem)
    best, plane = int(problem.means[-1].argmax()), np.zeros(problem.means.shape)
    plane[:, [best]] = np.maximum(problem.means[:, [best]] - biases - meeting, 0)
    plane[:, [rival]] = np.maximum(meeting - problem.means[:, [rival]] - biases, 0)
    scaled: FloatArray = plane**2 / (2 * scales**2 * costs)
    return scaled.ravel()


def _highest(planes: FloatArray, about: float) -> tuple[FloatArray, FloatArray]:
    """Find the shares at which the lowest plane is highest, and weights of planes of which no share has more.

    Args:
        planes: shape (P, M·K).
        about: how high that is, roughly, so that numbers in the program are near 1.
    """
    cells, largest = planes.shape[1], planes.max(axis=1)
    rows = np.hstack([-planes / largest[:, None], (about / largest)[:, None]])
    found = linprog(
        np.append(np.zeros(cells), -1.0),
        A_ub=rows,
        b_ub=np.zeros(len(rows)),
        A_eq=[np.append(np.ones(cells), 0.0)],
        b_eq=[1.0],
        bounds=[(0, None)] * cells + [(None, None)],
        method="highs",
    )
    weights, corner = np.maximum(-found.ineqlin.marginals, 0) / largest, np.maximum(found.x[:-1], 0)
    return weights / weights.sum(), corner / corner.sum()


def lower_bound(characteristic: float, delta: float) -> float:
    """T*·kl(δ, 1 − δ): no rule that is wrong in at most δ of all runs costs less on average.

    Args:
        characteristic: T*, from below.
        delta: δ.
    """
    return characteristic * (1 - 2 * delta) * math.log((1 - delta) / delta)


def known_proportions(problem: mfb.Problem, best: BestShares, delta: float, rng: np.random.Generator) -> float:
    """What it costs to decide, by MFSure's own stop, for a rule that knows the best shares and keeps to them.

    They are best for δ → 0. It looks each time 2 % more is spent, and begins with one play of each arm.

    Args:
        problem: whose best arm is to be found.
        best: what ``best_shares`` found.
        delta: how often it may be wrong.
        rng: for the rewards.
    """
    shares = best.shares
    costs, _, scales = _columns(problem)
    stats, policy, spent = Stats.empty(*problem.means.shape), mfb.MFSure(delta), 0.25 * best.cost
    while policy.decision(stats, problem.fidelities) is None:
        plays = np.maximum(np.round(shares * spent / costs).astype(np.int64), stats.counts)
        plays[0] = np.maximum(plays[0], 1)
        more = plays - stats.counts
        stats.sums[:] += rng.normal(size=plays.shape) * scales * np.sqrt(more) + more * problem.means
        stats.counts[:] = plays
        spent *= GROWTH
    return float((stats.counts * costs).sum())


def _columns(problem: mfb.Problem) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Costs, biases and scales, shape (M, 1)."""
    tails: tuple[Any, ...] = problem.fidelities.tails
    of_each = problem.fidelities.costs, problem.fidelities.known_biases, [tail.scale for tail in tails]
    costs, biases, scales = (np.array(values, dtype=np.float64)[:, None] for values in of_each)
    return costs, biases, scales
