"""A Gaussian chain: a model of how an arm's mean changes from fidelity to fidelity, fitted to all arms together."""

import math
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from mfbandit._internal.typing import BoolArray, FloatArray, IntArray
from mfbandit.core import Stats

NOISE_WEIGHT = 5.0  # of the noise at the fidelity below, in results
SPREAD_FLOOR = 0.01  # of τ_0², as a share of the noise: equal first results do not mean equal arms
INTERVAL_DEVIATIONS = 1.96  # of a 95 % interval
DEVIATION_FLOOR = 1e-9  # of every standard deviation, as a share of the size of rewards


@dataclass(frozen=True, eq=False)
class GaussianChain:
    r"""Fitted parameters: μ^(1)_k ~ N(a, τ_0²), μ^(m+1)_k = μ^(m)_k + b_m + N(0, τ_m²), rewards N(μ^(m)_k, s_m²).

    R fidelities are used.

    Args:
        start: a, in units of reward.
        spread: τ_0².
        shifts: b_m; shape (R − 1,).
        steps: τ_m²; shape (R − 1,).
        predicted: the predictive variance of a step, τ_m²(1 + 1/(n_m + 1)), where n_m arms have results above m;
            shape (R − 1,).
        noise: s_m²; shape (R,).
    """

    start: float
    spread: float
    shifts: FloatArray
    steps: FloatArray
    predicted: FloatArray
    noise: FloatArray

    def __post_init__(self) -> None:
        for array in (self.shifts, self.steps, self.predicted, self.noise):
            array.flags.writeable = False


Fitted = TypeVar("Fitted", bound=GaussianChain)


class Posterior:
    """Means and variances of every arm at the used fidelities, given all results: a Kalman filter and smoother.

    Pending plays reduce variances and change no mean. Arrays have shape (R, K); ``values`` and ``deviations``, which
    are of the highest fidelity, have shape (K,).
    """

    def __init__(self, chain: GaussianChain, stats: Stats, rows: list[int]) -> None:
        counts = stats.counts[rows]
        means = np.where(counts > 0, stats.sums[rows] / np.maximum(counts, 1), 0.0)
        self.noise = chain.noise
        self.means, self.filtered, variances, predicted = _filter(chain, counts, means)
        if stats.pending.any():
            _, _, variances, predicted = _filter(chain, stats.observations[rows], means)
        self.gains, self.variances, self.links = smooth_back(variances, predicted)
        self.values = self.filtered[-1]
        self.deviations: FloatArray = np.sqrt(variances[-1])

    def intervals(self, seen: BoolArray) -> tuple[FloatArray, FloatArray]:
        """Compute the ends of 95 % intervals for μ^(M)_k; −∞ and ∞ for arms that are not ``seen``; shape (K,) each."""
        half = np.where(seen, INTERVAL_DEVIATIONS * self.deviations, np.inf)
        return self.values - half, self.values + half

    def smoothed(self) -> FloatArray:
        """Compute E μ^(m)_k given all results; shape (R, K)."""
        smooth = self.filtered.copy()
        for r in range(len(smooth) - 2, -1, -1):
            smooth[r] = self.filtered[r] + self.gains[r] * (smooth[r + 1] - self.means[r + 1])
        return smooth

    def information_per_cost(self, row: int, arm: int, cost: float) -> float:
        """Compute Cov(μ^(M), μ^(m))²/((Var μ^(m) + s_m²)·λ_m): how much a play reduces Var μ^(M), per cost."""
        link = float(self.links[row, arm])
        variance = (float(self.variances[row, arm]) + float(self.noise[row])) * cost
        return link * (link / variance) if variance else 0.0  # rewards so close that their variance is 0

    def most_informative(self, arm: int, costs: list[float]) -> int:
        """Return the row with the most information per cost, the lowest among ties."""
        best, chosen = -1.0, 0
        for r, cost in enumerate(costs):
            gain = self.information_per_cost(r, arm, cost)
            if gain > best:
                best, chosen = gain, r
        return chosen


def _filter(
    chain: GaussianChain, plays: IntArray, means: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Compute predicted and filtered means, filtered and predicted variances; each of shape (R, K)."""
    predicted, filtered = np.empty(plays.shape), np.empty(plays.shape)
    variances, before = np.empty(plays.shape), np.empty(plays.shape)
    mean, variance = np.full(plays.shape[1], chain.start), np.full(plays.shape[1], chain.spread)
    for r in range(len(plays)):
        predicted[r], before[r] = mean, variance
        noise = chain.noise[r]
        weight = variance * plays[r] + noise
        mean = mean + variance * plays[r] / weight * (means[r] - mean)
        variance = variance * (noise / weight)
        filtered[r], variances[r] = mean, variance
        if r < len(plays) - 1:
            mean, variance = mean + chain.shifts[r], variance + chain.predicted[r]
    return predicted, filtered, variances, before


def smooth_back(variances: FloatArray, predicted: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Compute the smoother's gains, variances, and covariances with the highest fidelity; each of shape (R, K)."""
    gains, smooth, links = np.zeros(variances.shape), variances.copy(), variances.copy()
    for r in range(len(variances) - 2, -1, -1):
        gains[r] = variances[r] / predicted[r + 1]
        smooth[r] = variances[r] + gains[r] * gains[r] * (smooth[r + 1] - predicted[r + 1])
        links[r] = links[r + 1] * gains[r]
    return gains, smooth, links


def em_step(chain: Fitted, told: Stats, rows: list[int], floor: float, *, r0: float, nu0: float) -> Fitted:
    """Make one step of EM for every parameter but the noise.

    Args:
        chain: the parameters so far.
        told: all results.
        rows: the R fidelities that are used.
        floor: the smallest variance.
        r0: prior guess of a step's standard deviation, as a share of the arms' spread.
        nu0: the weight of that guess, in arms.
    """
    used = 1 + int(np.flatnonzero(told.counts[rows].any(axis=1)).max(initial=0))  # above, nothing was observed
    belief = Posterior(_lowest(chain, used), told, rows[:used])
    smooth, variances, gains = belief.smoothed(), belief.variances, belief.gains
    seen = told.counts.any(axis=0)
    arms = int(seen.sum())
    start = total(smooth[0][seen]) / arms
    away = smooth[0][seen] - start
    spread = max(total(away * away + variances[0][seen]) / arms, SPREAD_FLOOR * float(chain.noise[0]), floor)
    prior = max(nu0 * r0 * r0 * spread / nu0, floor)
    shifts, steps, predicted = np.zeros(len(rows) - 1), np.full(len(rows) - 1, prior), np.full(len(rows) - 1, 2 * prior)
    for r in range(used - 1):
        above = (told.counts[rows[r + 1 :]] > 0).any(axis=0)
        number_above = int(above.sum())
        moved = smooth[r + 1][above] - smooth[r][above]
        shifts[r] = total(moved) / (number_above + chain.steps[r] / chain.spread)
        off = moved - shifts[r]
        unsure = variances[r + 1][above] * (1.0 - 2.0 * gains[r][above]) + variances[r][above]
        squares = total(off * off + np.maximum(unsure, 0.0))
        steps[r] = max((nu0 * r0 * r0 * spread + squares) / (nu0 + number_above), floor)
        predicted[r] = steps[r] * (1.0 + 1.0 / (number_above + 1.0))
    return replace(chain, start=start, spread=spread, shifts=shifts, steps=steps, predicted=predicted)


def _lowest(chain: Fitted, used: int) -> Fitted:
    """Return the chain of the lowest fidelities alone."""
    if used == len(chain.noise):
        return chain
    shifts, steps, predicted = (part[: used - 1] for part in (chain.shifts, chain.steps, chain.predicted))
    return replace(chain, shifts=shifts, steps=steps, predicted=predicted, noise=chain.noise[:used])


def pooled_noise(
    told: Stats, rows: list[int], floor: float, *, first: float = 0.0, weight: float = 0.0, fade: float = 1.0
) -> FloatArray:
    """Estimate s_m², pooled within arms; shape (R,).

    The prior guess of s_m² is ``fade`` times that of the fidelity below, with the weight of five results.

    Args:
        told: all results.
        rows: the R fidelities that are used.
        floor: the smallest variance.
        first: prior guess of s_1².
        weight: the weight of ``first``, in results.
        fade: expected ratio of s_m² to that of the fidelity below.

    >>> twice = Stats.empty(fidelities=1, arms=1)
    >>> twice.counts[0, 0], twice.sums[0, 0], twice.squares[0, 0] = 2, 0.4, 0.1  # 0.1 and 0.3
    >>> pooled_noise(twice, [0], floor=1e-9).round(6).tolist()
    [0.02]
    """
    noise, free = np.zeros(len(rows)), told.freedom
    for r, m in enumerate(rows):
        seen = np.flatnonzero(told.counts[m] > 0)
        counts, sums = told.counts[m, seen], told.sums[m, seen]
        within = total(np.maximum(told.squares[m, seen] - sums * sums / counts, 0.0))
        freedom = total(free[m, seen].astype(np.float64))
        before = NOISE_WEIGHT if r else weight
        below = fade * float(noise[r - 1]) if r else first
        noise[r] = max((before * below + within) / max(before + freedom, 1.0), floor)
    return noise


def least_variance(told: Stats) -> float:
    """Compute the smallest variance of the model: the square of a billionth of the rewards' root mean square.

    >>> once = Stats.empty(fidelities=1, arms=1)
    >>> once.counts[0, 0], once.squares[0, 0] = 1, 4.0  # a reward of 2
    >>> round(least_variance(once) * 1e18, 9)
    4.0
    """
    size = math.sqrt(total(told.squares.ravel()) / max(1, int(told.counts.sum())))
    return DEVIATION_FLOOR * DEVIATION_FLOOR * (size * size if size > 0 else 1.0)


def total(values: FloatArray) -> float:
    """Add values one after another in their order, as the compiled engine does.

    >>> total(np.array([0.1, 0.2, 0.3])) == 0.1 + 0.2 + 0.3
    True
    """
    return float(np.add.accumulate(values)[-1]) if len(values) else 0.0
