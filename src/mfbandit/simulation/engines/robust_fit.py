"""The robust chain, number for number as ``policies/robust_chain.py`` fits it; arrays have shape (K, R)."""

from typing import NamedTuple

import numpy as np

from mfbandit._internal.typing import BoolArray, FloatArray
from mfbandit.policies.gaussian_chain import SPREAD_FLOOR
from mfbandit.policies.robust_chain import EDGE, FIRST_SPREAD, OUTLIER_FREEDOM, RANGE_FLOOR, RANGE_PLAYS
from mfbandit.simulation.engines.chain_fit import (
    ArmResults,
    ChainFit,
    first_means,
    fit_noise,
    least_variance,
    seen_above,
)
from mfbandit.simulation.engines.kernels import compiled, inlined


class RobustModel(NamedTuple):
    """What is told and assumed of the chain; arrays of shape (R,) if nothing else is said."""

    noise_told: bool
    told: FloatArray  # the noise
    ranged: BoolArray  # whether rewards lie in a range
    lows: FloatArray
    spans: FloatArray
    steps_told: bool
    guesses: FloatArray  # (R - 1,): of the steps' variances
    r0: float
    nu0: float
    robust: bool


class RobustRoom(NamedTuple):
    """Room for a filter and a smoother: one arm's (R,), and all arms' (K, R) and (K,)."""

    before: FloatArray
    wide: FloatArray
    means: FloatArray
    variances: FloatArray
    noise: FloatArray
    smooth: FloatArray  # (K, R)
    unsure: FloatArray  # (K, R)
    gains: FloatArray  # (K, R)
    inflation: FloatArray  # (K,)


def robust_room(arms: int, fidelities: int) -> RobustRoom:
    """Arrays to filter and smooth in.

    >>> robust_room(arms=4, fidelities=2).gains.shape
    (4, 2)
    """
    shape = (arms, fidelities)
    tables = (np.zeros(shape) for _ in range(3))
    rows = (np.zeros(fidelities) for _ in range(5))
    return RobustRoom(*rows, *tables, np.ones(arms))  # type: ignore[call-arg]


@inlined
def noise_of(model: RobustModel, told: ArmResults, fit: ChainFit, arm: int, r: int, mean: float) -> float:
    """The variance of one reward, where this mean is predicted."""
    if not model.ranged[r]:
        return fit.noise[r]
    low, span, n = model.lows[r], model.spans[r], told.counts[arm, r]
    q = min(max((mean - low) / span, EDGE), 1.0 - EDGE)
    p = ((told.sums[arm, r] - n * low) / span + RANGE_PLAYS * q) / (n + RANGE_PLAYS)
    return max(span * span * p * (1.0 - p), RANGE_FLOOR * span * span)


@compiled
def filter_once(
    model: RobustModel, told: ArmResults, fit: ChainFit, room: RobustRoom, arm: int, inflation: float
) -> None:
    """The Kalman filter of one arm, into the one-arm arrays."""
    mean, variance = fit.start[0], fit.spread[0]
    last = len(fit.noise) - 1
    for r in range(last + 1):
        n, noise = told.counts[arm, r], noise_of(model, told, fit, arm, r, mean)
        room.before[r], room.wide[r], room.noise[r] = mean, variance, noise
        seen = told.sums[arm, r] / n if n > 0 else 0.0
        weight = variance * n + noise
        mean = mean + variance * n / weight * (seen - mean)
        variance = variance * (noise / weight)
        room.means[r], room.variances[r] = mean, variance
        if r < last:
            mean, variance = mean + fit.shifts[r], variance + fit.predicted[r] * inflation


@compiled
def filter_robust(model: RobustModel, told: ArmResults, fit: ChainFit, room: RobustRoom, arm: int) -> None:
    """The filter of one arm, and once more with wider steps if it is an outlier."""
    filter_once(model, told, fit, room, arm, 1.0)
    room.inflation[arm] = 1.0
    last = len(fit.noise) - 1
    looks = told.counts[arm, last]
    if not model.robust or last == 0 or looks == 0:
        return
    off = told.sums[arm, last] / looks - room.before[last]
    surprise = off * off / (room.wide[last] + room.noise[last] / looks)
    inflation = max(1.0, (OUTLIER_FREEDOM + surprise) / (OUTLIER_FREEDOM + 1.0))
    room.inflation[arm] = inflation
    if inflation > 1:
        filter_once(model, told, fit, room, arm, inflation)


@compiled
def smooth_robust(model: RobustModel, told: ArmResults, fit: ChainFit, room: RobustRoom) -> None:
    """Filter and smoother of every arm, into the tables."""
    last = len(fit.noise) - 1
    for arm in range(len(told.counts)):
        filter_robust(model, told, fit, room, arm)
        room.smooth[arm, last], room.unsure[arm, last] = room.means[last], room.variances[last]
        for r in range(last - 1, -1, -1):
            gain = room.variances[r] / room.wide[r + 1]
            room.gains[arm, r] = gain
            room.unsure[arm, r] = room.variances[r] + gain * gain * (room.unsure[arm, r + 1] - room.wide[r + 1])
            room.smooth[arm, r] = room.means[r] + gain * (room.smooth[arm, r + 1] - room.before[r + 1])


@compiled
def prior_step(model: RobustModel, r: int, spread: float) -> float:
    """The prior guess of a step's variance."""
    return model.guesses[r] if model.steps_told else model.r0 * model.r0 * spread


@compiled
def robust_em(model: RobustModel, told: ArmResults, fit: ChainFit, room: RobustRoom, floor: float) -> None:
    """One step of EM: all parameters but the noise."""
    smooth_robust(model, told, fit, room)
    n = len(told.counts)
    added = 0.0
    for arm in range(n):
        added += room.smooth[arm, 0]
    start = added / n
    added = 0.0
    for arm in range(n):
        away = room.smooth[arm, 0] - start
        added += away * away + room.unsure[arm, 0]
    spread = max(added / n, SPREAD_FLOOR * fit.noise[0], floor)
    for r in range(len(fit.steps)):
        robust_step(model, told, fit, room, r, prior_step(model, r, spread), floor)
    fit.start[0], fit.spread[0] = start, spread


@compiled
def robust_step(
    model: RobustModel, told: ArmResults, fit: ChainFit, room: RobustRoom, r: int, prior: float, floor: float
) -> None:
    """Shift and variance of the step from row r to the next."""
    moved, weights, above = 0.0, 0.0, 0
    for arm in range(len(told.counts)):
        if seen_above(told.counts, arm, r):
            moved += (room.smooth[arm, r + 1] - room.smooth[arm, r]) / room.inflation[arm]
            weights += 1.0 / room.inflation[arm]
            above += 1
    shift = moved / (weights + fit.steps[r] / fit.spread[0])
    squares = 0.0
    for arm in range(len(told.counts)):
        if seen_above(told.counts, arm, r):
            off = room.smooth[arm, r + 1] - room.smooth[arm, r] - shift
            rest = room.unsure[arm, r + 1] * (1.0 - 2.0 * room.gains[arm, r]) + room.unsure[arm, r]
            squares += (off * off + max(rest, 0.0)) / room.inflation[arm]
    fit.shifts[r] = shift
    fit.steps[r] = max((model.nu0 * prior + squares) / (model.nu0 + above), floor)
    fit.predicted[r] = fit.steps[r] * (1.0 + 1.0 / (above + 1.0))


@compiled
def learn_noise(model: RobustModel, told: ArmResults, fit: ChainFit, floor: float) -> None:
    """The noise of each row: told, or pooled within arms."""
    if not model.noise_told:
        fit_noise(told, fit, floor, 0.0, 0.0, 1.0)
        return
    for r in range(len(fit.noise)):
        fit.noise[r] = max(model.told[r], floor)


@compiled
def first_robust_fit(model: RobustModel, told: ArmResults, fit: ChainFit, room: RobustRoom, steps: int) -> None:
    """Starting values from the means at the lowest fidelity, and so many steps of EM."""
    floor = least_variance(told)
    start, variance = first_means(told, 0)
    learn_noise(model, told, fit, floor)
    first = fit.noise[0]
    if model.ranged[0]:
        p = min(max((start - model.lows[0]) / model.spans[0], EDGE), 1.0 - EDGE)
        first = model.spans[0] * model.spans[0] * p * (1.0 - p)
    spread = max(variance - first, FIRST_SPREAD * variance, SPREAD_FLOOR * first, floor)
    fit.start[0], fit.spread[0] = start, spread
    fit.shifts[:] = 0.0
    for r in range(len(fit.steps)):
        fit.steps[r] = prior_step(model, r, spread)
        fit.predicted[r] = prior_step(model, r, spread)
    for _ in range(steps):
        robust_em(model, told, fit, room, floor)


@compiled
def robust_refit(model: RobustModel, told: ArmResults, fit: ChainFit, room: RobustRoom) -> None:
    """The noise, and one step of EM for the rest."""
    floor = least_variance(told)
    learn_noise(model, told, fit, floor)
    robust_em(model, told, fit, room, floor)


@compiled
def robust_worth(costs: FloatArray, room: RobustRoom) -> int:
    """The row where a look at the arm that was filtered last tells most for its cost, the lowest among ties."""
    last = len(costs) - 1
    variance = link = room.variances[last]
    best, chosen = link * (link / ((variance + room.noise[last]) * costs[last])), last
    for r in range(last - 1, -1, -1):
        gain = room.variances[r] / room.wide[r + 1]
        variance = room.variances[r] + gain * gain * (variance - room.wide[r + 1])
        link = link * gain
        worth = link * (link / ((variance + room.noise[r]) * costs[r]))
        if worth >= best:
            best, chosen = worth, r
    return chosen
