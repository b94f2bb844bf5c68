"""A chain of Gaussian steps fitted to all arms, number for number as ``policies/gaussian_chain.py`` fits it.

The order of operations is that of the policy's array expressions, and sums over arms are added up term after term.
"""

import math
from typing import NamedTuple

import numpy as np

from mfbandit._internal.typing import FloatArray, IntArray
from mfbandit.policies.gaussian_chain import DEVIATION_FLOOR, NOISE_WEIGHT, SPREAD_FLOOR
from mfbandit.simulation.engines.kernels import compiled, inlined


class ChainFit(NamedTuple):
    """The parameters of the chain; single numbers are arrays of one, as they change."""

    start: FloatArray
    spread: FloatArray
    shifts: FloatArray  # (R - 1,)
    steps: FloatArray  # (R - 1,)
    predicted: FloatArray  # (R - 1,)
    noise: FloatArray  # (R,)


class ChainPrior(NamedTuple):
    """What is guessed of a step before it is seen."""

    r0: float  # its deviation, as a share of the arms' spread
    nu0: float  # how many arms that guess counts for


class ArmResults(NamedTuple):
    """What was told of each arm at each fidelity; arrays of shape (K, R)."""

    counts: IntArray
    sums: FloatArray
    squares: FloatArray


class Smoother(NamedTuple):
    """Room for a filter and a smoother: one arm's (R,), and all arms' (K, R)."""

    means: FloatArray
    variances: FloatArray
    before: FloatArray  # predicted means
    wide: FloatArray  # predicted variances
    smooth: FloatArray  # (K, R)
    unsure: FloatArray  # (K, R)
    gains: FloatArray  # (K, R)


def no_fit(fidelities: int) -> ChainFit:
    """A chain before it is fitted.

    >>> no_fit(fidelities=3).shifts.tolist()
    [0.0, 0.0]
    """
    steps = fidelities - 1
    return ChainFit(np.zeros(1), np.zeros(1), np.zeros(steps), np.zeros(steps), np.zeros(steps), np.zeros(fidelities))


def smoother_room(arms: int, fidelities: int) -> Smoother:
    """Arrays to filter and smooth in.

    >>> smoother_room(arms=4, fidelities=2).gains.shape
    (4, 2)
    """
    shape = (arms, fidelities)
    return Smoother(*(np.zeros(fidelities) for _ in range(4)), *(np.zeros(shape) for _ in range(3)))


@compiled
def filter_arm(told: ArmResults, fit: ChainFit, room: Smoother, arm: int) -> None:
    """The Kalman filter of one arm, into the one-arm arrays."""
    mean, variance = fit.start[0], fit.spread[0]
    last = len(fit.noise) - 1
    for r in range(last + 1):
        room.before[r], room.wide[r] = mean, variance
        plays, noise = told.counts[arm, r], fit.noise[r]
        seen = told.sums[arm, r] / plays if plays > 0 else 0.0
        weight = variance * plays + noise
        mean = mean + variance * plays / weight * (seen - mean)
        variance = variance * (noise / weight)
        room.means[r], room.variances[r] = mean, variance
        if r < last:
            mean, variance = mean + fit.shifts[r], variance + fit.predicted[r]


@compiled
def smooth_all(told: ArmResults, fit: ChainFit, room: Smoother) -> None:
    """Filter and smoother of every arm, into the tables."""
    last = len(fit.noise) - 1
    for arm in range(len(told.counts)):
        filter_arm(told, fit, room, arm)
        room.smooth[arm, last], room.unsure[arm, last] = room.means[last], room.variances[last]
        for r in range(last - 1, -1, -1):
            gain = room.variances[r] / room.wide[r + 1]
            room.gains[arm, r] = gain
            room.unsure[arm, r] = room.variances[r] + gain * gain * (room.unsure[arm, r + 1] - room.wide[r + 1])
            room.smooth[arm, r] = room.means[r] + gain * (room.smooth[arm, r + 1] - room.before[r + 1])


@compiled
def em_step(prior: ChainPrior, told: ArmResults, fit: ChainFit, room: Smoother, floor: float) -> None:
    """One step of EM: all parameters but the noise."""
    smooth_all(told, fit, room)
    n, last = len(told.counts), len(fit.noise) - 1
    added = 0.0
    for arm in range(n):
        added += room.smooth[arm, 0]
    start = added / n
    added = 0.0
    for arm in range(n):
        away = room.smooth[arm, 0] - start
        added += away * away + room.unsure[arm, 0]
    spread = max(added / n, SPREAD_FLOOR * fit.noise[0], floor)
    for r in range(last):
        fit_step(prior, told, fit, room, r, spread, floor)
    fit.start[0], fit.spread[0] = start, spread


@compiled
def seen_above(counts: IntArray, arm: int, r: int) -> bool:
    """Whether the arm has a result above this row."""
    results = 0
    for higher in range(r + 1, counts.shape[1]):
        results += counts[arm, higher]
    return results > 0


@compiled
def fit_step(
    prior: ChainPrior, told: ArmResults, fit: ChainFit, room: Smoother, r: int, spread: float, floor: float
) -> None:
    """Shift and variance of the step from row r to the next."""
    added, above = 0.0, 0
    for arm in range(len(told.counts)):
        if seen_above(told.counts, arm, r):
            added += room.smooth[arm, r + 1] - room.smooth[arm, r]
            above += 1
    shift = added / (above + fit.steps[r] / fit.spread[0])
    added = 0.0
    for arm in range(len(told.counts)):
        if seen_above(told.counts, arm, r):
            off = room.smooth[arm, r + 1] - room.smooth[arm, r] - shift
            unsure = room.unsure[arm, r + 1] * (1.0 - 2.0 * room.gains[arm, r]) + room.unsure[arm, r]
            added += off * off + max(unsure, 0.0)
    fit.shifts[r] = shift
    fit.steps[r] = max((prior.nu0 * prior.r0 * prior.r0 * spread + added) / (prior.nu0 + above), floor)
    fit.predicted[r] = fit.steps[r] * (1.0 + 1.0 / (above + 1.0))


@compiled
def least_variance(told: ArmResults) -> float:
    """The smallest variance that is taken for real."""
    added, plays = 0.0, 0
    for r in range(told.counts.shape[1]):
        for arm in range(len(told.counts)):
            added += told.squares[arm, r]
            plays += told.counts[arm, r]
    size = math.sqrt(added / max(1, plays))
    return DEVIATION_FLOOR * DEVIATION_FLOOR * (size * size if size > 0 else 1.0)


@compiled
def fit_noise(told: ArmResults, fit: ChainFit, floor: float, first: float, weight: float, fade: float) -> None:
    """The noise of each row, pooled within arms; ``fade`` times that of the row below counts for five results.

    ``first`` is a guess for the lowest row, with a weight in results.
    """
    for r in range(len(fit.noise)):
        within, freedom = 0.0, 0.0
        for arm in range(len(told.counts)):
            plays, total = told.counts[arm, r], told.sums[arm, r]
            if plays > 0:
                within += max(told.squares[arm, r] - total * total / plays, 0.0)
                freedom += float(plays - 1)
        before = NOISE_WEIGHT if r > 0 else weight
        below = fade * fit.noise[r - 1] if r > 0 else first
        fit.noise[r] = max((before * below + within) / max(before + freedom, 1.0), floor)


@compiled
def first_means(told: ArmResults, row: int) -> tuple[float, float]:
    """Mean and variance of the arms' means in a row."""
    added, n = 0.0, 0
    for arm in range(len(told.counts)):
        if told.counts[arm, row] > 0:
            added += told.sums[arm, row] / told.counts[arm, row]
            n += 1
    start = added / n
    added = 0.0
    for arm in range(len(told.counts)):
        if told.counts[arm, row] > 0:
            away = told.sums[arm, row] / told.counts[arm, row] - start
            added += away * away
    return start, added / n


@compiled
def begin_fit(prior: ChainPrior, fit: ChainFit, start: float, variance: float, floor: float) -> None:
    """Starting values from mean and variance of first means; the noise is there already."""
    spread = max(variance - fit.noise[0], 0.1 * variance, SPREAD_FLOOR * fit.noise[0], floor)
    fit.start[0], fit.spread[0] = start, spread
    fit.shifts[:] = 0.0
    fit.steps[:] = prior.r0 * prior.r0 * spread
    fit.predicted[:] = prior.r0 * prior.r0 * spread


@compiled
def first_fit(prior: ChainPrior, told: ArmResults, fit: ChainFit, room: Smoother, steps: int) -> None:
    """Starting values from the means at the lowest fidelity, and so many steps of EM."""
    floor = least_variance(told)
    start, variance = first_means(told, 0)
    fit_noise(told, fit, floor, 0.0, 0.0, 1.0)
    begin_fit(prior, fit, start, variance, floor)
    for _ in range(steps):
        em_step(prior, told, fit, room, floor)


@compiled
def refit(prior: ChainPrior, told: ArmResults, fit: ChainFit, room: Smoother) -> None:
    """Noise from the spread within arms, and one step of EM for the rest."""
    floor = least_variance(told)
    fit_noise(told, fit, floor, 0.0, 0.0, 1.0)
    em_step(prior, told, fit, room, floor)


@compiled
def link_arm(told: ArmResults, fit: ChainFit, room: Smoother, arm: int) -> None:
    """Filter and smoother of an arm's variances; in place of means, covariances with the highest fidelity."""
    filter_arm(told, fit, room, arm)
    last = len(fit.noise) - 1
    room.smooth[arm, last], room.unsure[arm, last] = room.variances[last], room.variances[last]
    for r in range(last - 1, -1, -1):
        gain = room.variances[r] / room.wide[r + 1]
        room.unsure[arm, r] = room.variances[r] + gain * gain * (room.unsure[arm, r + 1] - room.wide[r + 1])
        room.smooth[arm, r] = room.smooth[arm, r + 1] * gain


@inlined
def information(fit: ChainFit, room: Smoother, costs: FloatArray, arm: int, r: int) -> float:
    """How much a look narrows the value of the arm that was linked, for its cost."""
    link, variance = room.smooth[arm, r], (room.unsure[arm, r] + fit.noise[r]) * costs[r]
    return link * (link / variance) if variance > 0 else 0.0


@compiled
def most_telling(told: ArmResults, fit: ChainFit, room: Smoother, costs: FloatArray, arm: int) -> int:
    """The row where a look narrows the arm's value most for its cost, the lowest among ties."""
    link_arm(told, fit, room, arm)
    best, chosen = -1.0, 0
    for r in range(len(costs)):
        worth = information(fit, room, costs, arm, r)
        if worth > best:
            best, chosen = worth, r
    return chosen
