r"""Whether a rival of the leader is ruled out, for single numbers; engines compile this same source.

It is the claim of :mod:`~mfbandit.core.claims` for one pair of arms, as an answer of yes or no. That is much less work
than Λ_ia(ε) = min_μ G↓_i(μ) + G↑_a(μ + ε) itself: one μ of a cost below what is needed says no, and two tangents of the
convex cost that meet above it say yes.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from mfbandit._internal.typing import FloatArray, IntArray
from mfbandit.core.claims import Pool, explanation
from mfbandit.core.concentration import QUADRATIC, Bounded
from mfbandit.core.estimate import log_mills_ratio
from mfbandit.core.evidence import LEAST, PRIOR
from mfbandit.core.fidelities import Fidelities
from mfbandit.core.stats import Stats

LOG_2 = math.log(2.0)
ROOT_2_PI = math.sqrt(2.0 * math.pi)
LOG_PI = math.log(math.pi)
MAX_LOOKS = 200
HALVED_EVERY = 3  # looks, in case the tangents meet near one end each time
ROUNDING = 1e-14  # of a bracket, relative to its ends
STIRLING_FROM = 10.0


Numbers: TypeAlias = Sequence[float] | FloatArray  # one for each fidelity


class ResultsByFidelity(NamedTuple):
    """The results of one arm at each fidelity."""

    counts: Numbers
    sums: Numbers  # of rewards
    constants: Numbers  # of mixture_constant


class Noise(NamedTuple):
    """What is known of each fidelity."""

    scales: Numbers  # σ_m
    lows: Numbers  # the smallest reward
    widths: Numbers  # of the range of rewards; 0 where they are sub-Gaussian
    biases: Numbers  # ζ_m


def log_gamma_of(x: float) -> float:
    """Compute log Γ(x) of x > 0 by Stirling's series, from x + 10 down for small x.

    >>> abs(log_gamma_of(0.5) - math.lgamma(0.5)) < 1e-13
    True
    """
    product = 1.0
    while x < STIRLING_FROM:
        product *= x
        x += 1.0
    inverse = 1.0 / x
    square = inverse * inverse
    series = 1 / 12 - square * (1 / 360 - square * (1 / 1260 - square * (1 / 1680 - square / 1188)))
    return (x - 0.5) * math.log(x) - x + 0.5 * math.log(2.0 * math.pi) + series * inverse - math.log(product)


def mixture_constant(count: float, total: float, low: float, width: float) -> float:
    r"""Compute the part of log E that does not depend on θ.

    Args:
        count: n > 0, the number of results.
        total: S, the sum of their rewards.
        low: the smallest reward.
        width: of the range of rewards; 0 where rewards are sub-Gaussian.

    Returns:
        log 2 + ½ log(ρ/(n + ρ)), or log B(S + ½, n − S + ½) − log B(½, ½) with S scaled to [0, n].
    """
    if width <= 0:
        return LOG_2 - 0.5 * math.log1p(count / PRIOR)
    hits = min(max((total - count * low) / width, 0.0), count)
    return log_gamma_of(hits + 0.5) + log_gamma_of(count - hits + 0.5) - log_gamma_of(count + 1.0) - LOG_PI


def gaussian_cell(
    theta: float, side: float, count: float, total: float, constant: float, scale: float
) -> tuple[float, float]:
    """Compute log E and its slope in θ; ``side`` is +1 for a mean below θ, −1 for one above.

    The formula is in :class:`~mfbandit.core.evidence.GaussianCells`.
    """
    spread = scale * math.sqrt(count + PRIOR)
    z = side * (count * theta - total) / spread
    value = log_mills_ratio(z)
    slope = z + math.exp(-value) / ROOT_2_PI  # z + φ(z)/Φ(z)
    return constant + value, slope * side * count / spread


def bounded_cell(
    theta: float, side: float, count: float, total: float, constant: float, low: float, width: float
) -> tuple[float, float]:
    """Compute log E and its slope in θ for rewards in a range; see :class:`~mfbandit.core.evidence.BoundedCells`."""
    hits = min(max((total - count * low) / width, 0.0), count)
    misses = count - hits
    given, mean = (theta - low) / width, hits / count
    beyond = side * (given - mean) > 0
    used = min(max(given, 0.0), 1.0) if beyond else mean
    win, lose = max(used, LEAST), max(1.0 - used, LEAST)
    value = constant - hits * math.log(win) - misses * math.log(lose)
    return value, (misses / lose - hits / win) / width if beyond else 0.0


def pooled(mu: float, side: float, arm: ResultsByFidelity, noise: Noise) -> tuple[float, float]:
    """Compute G↑(μ) (``side`` +1) or G↓(μ) (−1) of one arm, and its slope in μ."""
    total, slope, top = 0.0, 0.0, len(arm.counts) - 1
    for m in range(len(arm.counts)):
        count, added, constant = arm.counts[m], arm.sums[m], arm.constants[m]
        if count <= 0:
            continue
        theta = mu - side * noise.biases[m]
        if noise.widths[m] > 0:
            value, rise = bounded_cell(theta, side, count, added, constant, noise.lows[m], noise.widths[m])
        else:
            value, rise = gaussian_cell(theta, side, count, added, constant, noise.scales[m])
        if m < top:  # hedged: log((1 + eˣ)/2)
            small = math.exp(-abs(value))
            rise *= (1.0 if value > 0 else small) / (1.0 + small)
            value = max(value, 0.0) + math.log1p(small) - LOG_2
        total += value
        slope += rise
    return total, slope


def possible_means(noise: Noise) -> tuple[float, float]:
    """Find the smallest and the largest mean at the highest fidelity that ranges and biases leave possible.

    >>> possible_means(Noise(scales=[0.25, 0.5], lows=[0.0, 0.0], widths=[0.5, 1.0], biases=[0.1, 0.0]))
    (0.0, 0.6)
    """
    least, most = -math.inf, math.inf
    for m in range(len(noise.widths)):
        if noise.widths[m] > 0:
            least = max(least, noise.lows[m] - noise.biases[m])
            most = min(most, noise.lows[m] + noise.widths[m] + noise.biases[m])
    return least, most


def open_mean(
    leader: ResultsByFidelity, rival: ResultsByFidelity, noise: Noise, ahead: float, needed: float, start: float
) -> float:
    r"""Find a mean of the leader that explains "the rival is better by more than ε" for less than what is needed.

    Args:
        leader: its results; at least one.
        rival: its results.
        noise: of the fidelities.
        ahead: ε.
        needed: Λ at which a rival is ruled out.
        start: the mean to try first.

    Returns:
        Such a mean; NaN if there is none, that is, if the rival is ruled out.

    >>> constant = [mixture_constant(9.0, 0.0, 0.0, 0.0)]
    >>> leader, rival = ResultsByFidelity([9.0], [3.6], constant), ResultsByFidelity([9.0], [0.9], constant)
    >>> noise = Noise(scales=[0.1], lows=[0.0], widths=[0.0], biases=[0.0])
    >>> open_mean(leader, rival, noise, ahead=0.0, needed=3.0, start=0.2)
    nan
    >>> open_mean(leader, rival, noise, ahead=-0.2, needed=3.0, start=0.3)
    0.3
    """
    low, low_cost, low_slope, high, high_cost, high_slope = -math.inf, 0.0, 0.0, math.inf, 0.0, 0.0
    step = 0.0
    for m in range(len(noise.scales)):
        step = max(step, noise.scales[m], noise.biases[m])
    least, most = possible_means(noise)
    most -= ahead
    if least > most:  # no two means are so far apart
        return math.nan
    mean = min(max(start, least), most)
    for look in range(MAX_LOOKS):
        down, fall = pooled(mean, -1.0, leader, noise)
        up, rise = pooled(mean + ahead, 1.0, rival, noise)
        cost, slope = down + up, fall + rise
        if not cost >= needed:  # also if it is not a number
            return mean
        if slope == 0 or (slope < 0 and mean >= most) or (slope > 0 and mean <= least):
            return math.nan
        if slope < 0:
            low, low_cost, low_slope = mean, cost, slope
        else:
            high, high_cost, high_slope = mean, cost, slope
        if low == -math.inf or high == math.inf:
            mean, step = min(max(mean - math.copysign(step, slope), least), most), 2.0 * step
            continue
        width = high - low
        if width <= ROUNDING * max(abs(low), abs(high)):
            return math.nan
        crossing = (high_cost - low_cost - high_slope * width) / (low_slope - high_slope)  # of the tangents, from low
        if low_cost + low_slope * crossing >= needed:
            return math.nan
        mean = low + crossing
        if look % HALVED_EVERY == 0 or not low < mean < high:
            mean = low + 0.5 * width
    return mean  # not shown to be ruled out


def noise_of(fidelities: Fidelities) -> Noise | None:
    """Return what is known of each fidelity; None if the noise of one is of another kind, or biases are not known.

    >>> from mfbandit.core.concentration import SubGaussian
    >>> noise_of(Fidelities([1, 10], [0.1, 0], [SubGaussian(0.2), Bounded(-1, 1)])).widths
    (0.0, 2.0)
    """
    known = fidelities.concentration is not None and fidelities.biases is not None
    if not known or not all(type(tail) in QUADRATIC for tail in fidelities.tails):
        return None
    spans = [(tail.low, tail.high) if isinstance(tail, Bounded) else (0.0, 0.0) for tail in fidelities.tails]
    return Noise(
        scales=tuple(float(tail.scale) for tail in fidelities.tails),  # type: ignore[attr-defined]
        lows=tuple(low for low, _ in spans),
        widths=tuple(high - low for low, high in spans),
        biases=fidelities.known_biases,
    )


def all_ruled_out(
    stats: Stats,
    fidelities: Fidelities,
    arm: int,
    rivals: IntArray,
    ahead: float,
    needed: FloatArray,
    starts: FloatArray,
) -> bool:
    """Tell whether no rival is better than an arm by more than ε, by the results of all fidelities.

    Args:
        stats: results, shape (M, K); each of these arms has one.
        fidelities: the M fidelities, with known biases.
        arm: i.
        rivals: the arms a, the least likely to be ruled out first; shape (A,).
        ahead: ε.
        needed: Λ at which a rival is ruled out; shape (A,).
        starts: a mean of arm i for each rival, from which to begin; shape (A,).

    >>> stats = Stats.empty(fidelities=1, arms=2)
    >>> stats.counts[:], stats.sums[:] = 100, [[20.0, 60.0]]
    >>> given = np.array([0]), 0.0, np.array([3.0]), np.array([0.4])
    >>> all_ruled_out(stats, Fidelities([1], concentration=Bounded()), 1, *given)
    True
    """
    noise = noise_of(fidelities)
    if noise is None:  # an e-process of one's own knows arrays alone
        counted = np.ones(len(fidelities), dtype=bool)
        leader = Pool.of(stats, fidelities, np.full(len(rivals), arm), counted)
        costs = explanation(leader, Pool.of(stats, fidelities, rivals, counted), np.full(len(rivals), ahead)).cost
        return bool((costs >= needed).all())
    first = results_of(stats, arm, noise)
    return all(
        math.isnan(open_mean(first, results_of(stats, rival, noise), noise, ahead, enough, start))
        for rival, enough, start in zip(rivals.tolist(), needed.tolist(), starts.tolist(), strict=True)
    )


def results_of(stats: Stats, arm: int, noise: Noise) -> ResultsByFidelity:
    """Return the results of one arm.

    Args:
        stats: results, shape (M, K).
        arm: which.
        noise: of the M fidelities.
    """
    counts, sums = stats.counts[:, arm].astype(np.float64).tolist(), stats.sums[:, arm].tolist()
    cells = zip(counts, sums, noise.lows, noise.widths, strict=True)
    return ResultsByFidelity(counts, sums, [mixture_constant(*cell) if cell[0] > 0 else 0.0 for cell in cells])
