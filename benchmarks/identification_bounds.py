"""What no rule for finding the best arm can be below, and what a rule costs that knows the best proportions."""

import math
from typing import Any

import numpy as np

import mfbandit as mfb
from mfbandit._internal.typing import FloatArray
from mfbandit.core import Stats

GROWTH = 1.02  # of what is spent, from one look to the next, where proportions are known


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


def best_shares(problem: mfb.Problem, steps: int = 2000) -> tuple[float, FloatArray]:
    """T* = 1/max over cost shares ω of min over a of f_ia(ω/λ), by mirror ascent, from above; and these shares."""
    best = int(problem.means[-1].argmax())
    costs, biases, scales = _columns(problem)
    log_shares, average = np.zeros(problem.means.shape), np.zeros(problem.means.shape)
    largest, found = 0.0, average
    for step in range(1, steps + 1):
        shares = np.exp(log_shares - log_shares.max())
        shares /= shares.sum()
        average += (shares - average) / step
        values, meeting = evidence_rates(problem, shares)
        rival = int(values.argmin())
        if values[rival] > largest:
            largest, found = float(values[rival]), shares
        if step % 20 == 0:
            on_average = float(evidence_rates(problem, average)[0].min())
            if on_average > largest:
                largest, found = on_average, average.copy()
        slope = np.zeros(problem.means.shape)
        distance = np.maximum(problem.means[:, [best]] - biases - meeting[rival], 0)
        slope[:, [best]] = distance**2 / (2 * scales**2 * costs)
        distance = np.maximum(meeting[rival] - problem.means[:, [rival]] - biases, 0)
        slope[:, [rival]] = distance**2 / (2 * scales**2 * costs)
        log_shares += slope / max(float(slope.max()), 1e-300) / math.sqrt(step)
    return 1 / largest, found


def characteristic_cost(problem: mfb.Problem, steps: int = 2000) -> float:
    """T* alone."""
    return best_shares(problem, steps)[0]


def lower_bound(characteristic: float, delta: float) -> float:
    """T*·kl(δ, 1 − δ): no rule that is wrong in at most δ of all runs costs less on average."""
    return characteristic * (1 - 2 * delta) * math.log((1 - delta) / delta)


def known_proportions(
    problem: mfb.Problem, best: tuple[float, FloatArray], delta: float, rng: np.random.Generator
) -> float:
    """What it costs to decide, by MFSure's own stop, for a rule that knows the best shares and keeps to them.

    They are best for δ → 0. It looks each time 2 % more is spent, and begins with one play of each arm.

    Args:
        problem: whose best arm is to be found.
        best: what ``best_shares`` found.
        delta: how often it may be wrong.
        rng: for the rewards.
    """
    characteristic, shares = best
    costs, _, scales = _columns(problem)
    stats, policy, spent = Stats.empty(*problem.means.shape), mfb.MFSure(delta), 0.25 * characteristic
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
