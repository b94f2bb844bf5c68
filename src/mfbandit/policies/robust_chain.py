r"""The Gaussian chain of :mod:`~mfbandit.policies.gaussian_chain`, told more, and robust against single arms.

- The noise may be told. Rewards in a range have that of 0/1 rewards: p(1 − p), where p is shrunk towards what lower
  fidelities predict.
- The steps may have a prior guess of their own, from the biases.
- An arm whose results at the highest fidelity are far from what lower ones predict is an outlier. Its own step
  variances are inflated by i = max(1, (4 + z²)/5), and it counts 1/i in the fit: a Student's t of four degrees.
"""

from dataclasses import dataclass, replace

import numpy as np

from mfbandit._internal.typing import FloatArray, IntArray
from mfbandit.core import Concentration, Stats, SubGaussian, has_range
from mfbandit.policies.gaussian_chain import (
    SPREAD_FLOOR,
    Fitted,
    GaussianChain,
    least_variance,
    pooled_noise,
    smooth_back,
    total,
)

RANGE_PLAYS = 2.0  # the weight of the predicted mean in p
EDGE = 0.02  # the prediction stays so far within the range
RANGE_FLOOR = 1e-4  # of the noise, as a share of the squared range
OUTLIER_FREEDOM = 4.0  # degrees of freedom of the steps
FIRST_SPREAD = 0.1  # the least τ_0² at first, as a share of the variance of the arms' means


@dataclass(frozen=True)
class ChainModel:
    """What is told and assumed of the chain; R fidelities are used.

    Args:
        rows: which fidelities these are.
        tails: what is told of the noise, one each; None where it is learned.
        guesses: prior guesses of τ_m², from biases, shape (R − 1,); None where they follow the arms' spread.
        r0: without these, the guess of a step's deviation, as a share of that spread.
        nu0: the weight of a guess, in arms.
        robust: whether outliers are allowed for.
    """

    rows: list[int]
    tails: tuple[Concentration, ...] | None
    guesses: FloatArray | None
    r0: float
    nu0: float
    robust: bool

    def prior_steps(self, spread: float) -> FloatArray:
        """Compute the prior guesses of τ_m² when the arms' spread is τ_0²; shape (R − 1,).

        >>> ChainModel([0, 1], None, None, r0=0.5, nu0=2, robust=True).prior_steps(0.04).tolist()
        [0.01]
        """
        return np.full(len(self.rows) - 1, self.r0 * self.r0 * spread) if self.guesses is None else self.guesses

    def noise(self, told: Stats, floor: float) -> FloatArray:
        """Compute s_m²; shape (R,). Where rewards lie in a range, it is the largest there can be.

        >>> model = ChainModel([0], (SubGaussian(0.5),), None, 0.5, 2, robust=False)
        >>> model.noise(Stats.empty(1, 2), floor=0.0).tolist()
        [0.25]
        """
        if self.tails is None:
            return pooled_noise(told, self.rows, floor)
        return np.array([max(self.tail_noise(tail), floor) for tail in self.tails])

    @staticmethod
    def tail_noise(tail: Concentration) -> float:
        """Return the variance of a reward, as far as it is told."""
        if type(tail) is SubGaussian:
            return tail.scale * tail.scale
        if has_range(tail):
            return 0.25 * ((tail.high - tail.low) * (tail.high - tail.low))
        deviation = tail.psi_inv(0.5)
        return deviation * deviation


@dataclass(frozen=True, eq=False)
class Filtered:
    """A Kalman filter's results, shape (R, K): predicted and filtered means and variances, and the noise of a reward.

    ``inflation`` is i_k, shape (K,).
    """

    before: FloatArray
    wide: FloatArray
    means: FloatArray
    variances: FloatArray
    noise: FloatArray
    inflation: FloatArray


def filter_chain(chain: GaussianChain, model: ChainModel, counts: IntArray, sums: FloatArray) -> Filtered:
    """Filter the results of arms, twice where there are outliers.

    Args:
        chain: the fitted parameters.
        model: what is told and assumed.
        counts: results at the used fidelities, shape (R, K).
        sums: of these, shape (R, K).
    """
    once = _filter(chain, model, counts, sums, np.ones(counts.shape[1]))
    if not model.robust or len(counts) == 1:
        return once
    looks = counts[-1]
    each = np.maximum(looks, 1)
    off = sums[-1] / each - once.before[-1]
    surprise = off * off / (once.wide[-1] + once.noise[-1] / each)
    inflation = np.where(looks > 0, np.maximum(1.0, (OUTLIER_FREEDOM + surprise) / (OUTLIER_FREEDOM + 1.0)), 1.0)
    return _filter(chain, model, counts, sums, inflation) if (inflation > 1).any() else once


def pending_variances(
    chain: GaussianChain, filtered: Filtered, observations: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Compute filtered and predicted variances as they will be after the pending plays; shape (R, K) each.

    Args:
        chain: the fitted parameters.
        filtered: the filter without pending plays.
        observations: T with pending plays at the used fidelities, shape (R, K).
    """
    variances, wide = np.empty(observations.shape), np.empty(observations.shape)
    variance = np.full(observations.shape[1], chain.spread)
    for r, looks in enumerate(observations):
        wide[r] = variance
        noise = filtered.noise[r]
        variance = variance * (noise / (variance * looks + noise))
        variances[r] = variance
        if r < len(observations) - 1:
            variance = variance + chain.predicted[r] * filtered.inflation
    return variances, wide


def first_chain(chain: Fitted, model: ChainModel, told: Stats, steps: int) -> Fitted:
    """Fit for the first time: starting values from the means at the lowest fidelity, then so many steps of EM."""
    lowest = model.rows[0]
    seen = np.flatnonzero(told.counts[lowest] > 0)
    means = told.sums[lowest, seen] / told.counts[lowest, seen]
    start, floor = total(means) / len(means), least_variance(told)
    variance = total((means - start) * (means - start)) / len(means)
    noise = model.noise(told, floor)
    first = float(noise[0])
    if model.tails is not None and has_range(tail := model.tails[0]):
        span = tail.high - tail.low
        p = min(max((start - tail.low) / span, EDGE), 1.0 - EDGE)
        first = span * span * p * (1.0 - p)
    spread = max(variance - first, FIRST_SPREAD * variance, SPREAD_FLOOR * first, floor)
    guesses = model.prior_steps(spread)
    chain = replace(
        chain,
        start=start,
        spread=spread,
        shifts=np.zeros(len(guesses)),
        steps=guesses.copy(),
        predicted=guesses.copy(),
        noise=noise,
    )
    for _ in range(steps):
        chain = _em_step(chain, model, told, floor)
    return chain


def refit_chain(chain: Fitted, model: ChainModel, told: Stats) -> Fitted:
    """Estimate the noise where it is not told, and make one step of EM."""
    floor = least_variance(told)
    return _em_step(replace(chain, noise=model.noise(told, floor)), model, told, floor)


def _noise_of(
    model: ChainModel, r: int, chain: GaussianChain, mean: FloatArray, sums: FloatArray, n: IntArray
) -> FloatArray:
    """Compute the variance of one reward of each arm at row r, where ``mean`` is predicted; shape (K,)."""
    tail = None if model.tails is None else model.tails[r]
    if not has_range(tail):
        return np.full(len(mean), chain.noise[r])
    span = tail.high - tail.low
    q = np.minimum(np.maximum((mean - tail.low) / span, EDGE), 1.0 - EDGE)
    p = ((sums - n * tail.low) / span + RANGE_PLAYS * q) / (n + RANGE_PLAYS)
    noise: FloatArray = np.maximum(span * span * p * (1.0 - p), RANGE_FLOOR * span * span)
    return noise


def _filter(
    chain: GaussianChain, model: ChainModel, counts: IntArray, sums: FloatArray, inflation: FloatArray
) -> Filtered:
    shape = counts.shape
    before, wide, means, variances, noises = (np.empty(shape) for _ in range(5))
    mean, variance = np.full(shape[1], chain.start), np.full(shape[1], chain.spread)
    for r in range(shape[0]):
        n = counts[r]
        noise = _noise_of(model, r, chain, mean, sums[r], n)
        before[r], wide[r], noises[r] = mean, variance, noise
        seen = np.where(n > 0, sums[r] / np.maximum(n, 1), 0.0)
        weight = variance * n + noise
        mean = mean + variance * n / weight * (seen - mean)
        variance = variance * (noise / weight)
        means[r], variances[r] = mean, variance
        if r < shape[0] - 1:
            mean, variance = mean + chain.shifts[r], variance + chain.predicted[r] * inflation
    return Filtered(before, wide, means, variances, noises, inflation)


def _em_step(chain: Fitted, model: ChainModel, told: Stats, floor: float) -> Fitted:
    """Make one step of EM for every parameter but the noise."""
    belief = filter_chain(chain, model, told.counts[model.rows], told.sums[model.rows])
    gains, unsure, _ = smooth_back(belief.variances, belief.wide)
    smooth = belief.means.copy()
    for r in range(len(smooth) - 2, -1, -1):
        smooth[r] = belief.means[r] + gains[r] * (smooth[r + 1] - belief.before[r + 1])
    seen = told.counts.any(axis=0)
    arms = int(seen.sum())
    start = total(smooth[0][seen]) / arms
    away = smooth[0][seen] - start
    spread = max(total(away * away + unsure[0][seen]) / arms, SPREAD_FLOOR * float(chain.noise[0]), floor)
    prior = model.prior_steps(spread)
    shifts, steps, predicted = (np.zeros(len(prior)) for _ in range(3))
    for r in range(len(prior)):
        above = (told.counts[model.rows[r + 1 :]] > 0).any(axis=0)
        number, inflation = int(above.sum()), belief.inflation[above]
        moved = smooth[r + 1][above] - smooth[r][above]
        shifts[r] = total(moved / inflation) / (total(1.0 / inflation) + chain.steps[r] / chain.spread)
        off = moved - shifts[r]
        rest = unsure[r + 1][above] * (1.0 - 2.0 * gains[r][above]) + unsure[r][above]
        squares = total((off * off + np.maximum(rest, 0.0)) / inflation)
        steps[r] = max((model.nu0 * float(prior[r]) + squares) / (model.nu0 + number), floor)
        predicted[r] = steps[r] * (1.0 + 1.0 / (number + 1.0))
    return replace(chain, start=start, spread=spread, shifts=shifts, steps=steps, predicted=predicted)
