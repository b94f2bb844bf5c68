"""Estimates and bounds of the candidates' scores at the highest fidelity."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mfbandit._internal.quantiles import t_quantile
from mfbandit._internal.typing import FloatArray
from mfbandit.core import Fidelities, Stats, bounds_table
from mfbandit.policies.gaussian_chain import GaussianChain, Posterior
from mfbandit.search.learned_fidelities import noise_scales

ROUND_GAIN = 0.75  # of the variance of a mean over splits, that is gone when every sample was tested on once
ALPHA = 0.05  # share of searches that may end early with a bound that does not hold, by the policy's own model


@dataclass(frozen=True, eq=False)
class ScoreEstimates:
    """What is known of every candidate's score at the highest fidelity; arrays of shape (K,), in units of the score.

    Args:
        estimate: NaN where nothing is known.
        lower: −∞ where nothing is known.
        upper: infinite where nothing is known.
    """

    estimate: FloatArray
    lower: FloatArray
    upper: FloatArray


def least_noise(stats: Stats, test_size: int) -> FloatArray:
    r"""Compute the least s_m² of scores that are means over so many test samples; shape (M,).

    Where two candidates did the same on all T samples so far, they may still differ on one of T + 2. Such a difference
    changes a score by u/n, so that the variance of a score, without what all candidates share, is u²/(2n(T + 2)). Here
    n is the number of test samples, and T is n times the largest number of plays of a candidate. The unit u is 1
    for scores that end at 1, as an accuracy or R², else the median size of a score.

    Args:
        stats: all results.
        test_size: n.

    >>> stats = Stats.empty(fidelities=1, arms=2)
    >>> stats.counts[:], stats.sums[:] = 3, [[3.0, 2.0]]  # three plays, each on one test sample
    >>> least_noise(stats, 1).tolist()
    [0.1]
    """
    seen = stats.counts > 0
    unit = _unit(stats.sums[seen] / stats.counts[seen])
    tested = test_size * stats.counts.max(axis=1)
    return np.asarray(unit * unit / (2.0 * test_size * (tested + 2.0)))


def _unit(scores: FloatArray) -> float:
    """The size of what one test sample adds to a score: 1 where scores end at 1, else their median size."""
    ends_at_one = not len(scores) or 0 < scores.max() <= 1
    return 1.0 if ends_at_one else float(np.median(np.abs(scores)))


def estimates_by_model(model: GaussianChain, stats: Stats, rows: list[int], deviations: float) -> ScoreEstimates:
    """Estimate scores by a policy's model; bounds are so many posterior deviations away.

    Args:
        model: the fitted chain.
        stats: all results.
        rows: the fidelities that the model links.
        deviations: half the width of the bounds, in posterior deviations.

    >>> from mfbandit import MFTopTwo
    >>> stats, fidelities = Stats.empty(fidelities=1, arms=2), Fidelities([1])
    >>> stats.counts[:], stats.sums[:], stats.squares[:] = 2, [[0.4, 0.8]], [[0.1, 0.34]]
    >>> found = estimates_by_model(MFTopTwo(10).remember(stats, fidelities), stats, [0], deviations=2.0)
    >>> found.estimate.round(2).tolist(), bool((found.lower < found.upper).all())
    ([0.28, 0.32], True)
    """
    belief = Posterior(model, stats, rows)
    half = deviations * belief.deviations
    seen = stats.counts.any(axis=0)
    return ScoreEstimates(
        np.where(seen, belief.values, np.nan),
        np.where(seen, belief.values - half, -np.inf),
        np.where(seen, belief.values + half, np.inf),
    )


def estimates_by_bounds(stats: Stats, fidelities: Fidelities, rho: float) -> ScoreEstimates:
    """Estimate scores by confidence bounds, biases included.

    >>> from mfbandit import SubGaussian
    >>> stats = Stats.empty(fidelities=1, arms=1)
    >>> stats.counts[:], stats.sums[:] = 4, 2.0
    >>> estimates_by_bounds(stats, Fidelities([1], concentration=SubGaussian(0.1)), 2.0).estimate.tolist()
    [0.5]
    """
    table = bounds_table(stats, fidelities, rho, [""] * len(stats.active))
    # The mean with the highest lower bound; where no bound is known, the one at the highest fidelity.
    highest = np.where(stats.counts > 0, np.arange(len(stats.counts))[:, None], -1).argmax(axis=0)
    bounded = np.isfinite(table.lower).any(axis=0)
    rows = np.where(bounded, table.lower.argmax(axis=0), highest)
    return ScoreEstimates(
        table.means[rows, np.arange(len(rows))],
        table.lower.max(axis=0),
        table.upper.min(axis=0),
    )


def still_unknown(plays: int, round_size: int | None) -> float:
    """Return the share of the variance of a mean over splits that remains after so many of a round's.

    The splits of a round test every sample once, so that the means of whole rounds differ less than those of as many
    splits apart: by a quarter of the variance.

    >>> still_unknown(0, 5), still_unknown(5, 5), still_unknown(5, None)
    (1.0, 0.25, 1.0)
    """
    return 1.0 if round_size is None else 1.0 - ROUND_GAIN * min(1.0, plays / round_size)


def split_error(
    stats: Stats, seen: Sequence[int], round_size: int | None, test_size: int | None, paired: float = 0.0
) -> float:
    r"""Compute the 95 % error of a mean over the splits seen at the highest fidelity, as one over all splits.

    With the variance σ² of a candidate's scores between splits, of which s² is not common to all candidates, and n
    splits seen, it is t·sqrt((σ² − s²)u/n); u is :func:`still_unknown`. A mean of n' test samples that is between 0 and
    1 has σ² ≥ p(1 − p)/n'. Here p is the mean score at the highest fidelity with results.

    Args:
        stats: all results, as they were.
        seen: how many splits were seen at each fidelity; M of them.
        round_size: of a round of splits; None where there are no rounds.
        test_size: n'; None if that is not known.
        paired: s.

    >>> stats = Stats.empty(fidelities=1, arms=1)
    >>> stats.counts[0, 0], stats.sums[0, 0], stats.squares[0, 0] = 5, 2.5, 1.29  # a deviation of 0.09
    >>> round(split_error(stats, [5], None, None), 3), round(split_error(stats, [5], 5, None), 3)
    (0.111, 0.056)
    """
    variance = float(noise_scales(stats)[-1]) ** 2
    highest = int(np.flatnonzero(stats.counts.any(axis=1)).max(initial=0))  # all candidates are below: poor ones, too
    mean = float(stats.sums[highest].sum() / max(1, stats.counts[highest].sum()))
    if test_size is not None and 0 <= mean <= 1:
        tested = test_size * max(1, int(stats.counts[-1].max()))
        share = (tested * mean + 1) / (tested + 2)
        variance = max(variance, share * (1 - share) / test_size)
    freedom, n = sum(max(0, number - 1) for number in seen), max(1, seen[-1])
    common = max(0.0, variance - paired * paired) * still_unknown(n, round_size)
    return t_quantile(0.975, max(1, freedom)) * math.sqrt(common / n)


def bound_deviations(stats: Stats, fitted: float = 0.0, bounds: int | None = None) -> float:
    """Return how many deviations bounds are away from estimates.

    A model takes its noise for known. That comes from a few repeated plays and a guess that counts for one, and some
    of the plays went into the split effects: two candidates with three plays differ by many of its deviations.

    Args:
        stats: all results.
        fitted: how many of them the split effects take up.
        bounds: how many bounds are to hold together at 95 %; by default one for each candidate.

    >>> stats = Stats.empty(fidelities=1, arms=2)
    >>> for plays in (2, 5, 100):
    ...     stats.counts[:] = plays
    ...     print(round(bound_deviations(stats, fitted=0.8 * plays - 1), 2))
    18.6
    3.45
    2.56
    """
    repeated = float(np.maximum(stats.counts - 1, 0).sum())
    freedom = max(1.0, repeated - fitted)
    quantile = t_quantile(1 - ALPHA / max(2, bounds or stats.counts.shape[1]), int(freedom))
    return quantile * math.sqrt((repeated + 1) / freedom)


def min_useful_score(stats: Stats, test_size: int | None = None) -> float:
    """Return the score below which a candidate is hopeless: three widths below the median of the first results.

    R² on a handful of samples can be −1000, and one such candidate would make all others look the same. A width is the
    distance from the median to the best or to the lower quartile, or a tenth of the median, whichever is largest.
    Ordinary candidates on a bad split must stay above, also where most candidates are equally good. Of n test samples,
    a width is at least u/sqrt(n), with the unit u of :func:`least_noise`: a score of one sample may well be 0.

    >>> stats = Stats.empty(fidelities=1, arms=5)
    >>> stats.counts[:], stats.sums[:] = 1, [[-1000.0, 0.2, 0.25, 0.4, 0.5]]
    >>> min_useful_score(stats)
    -0.5
    """
    lowest = (stats.counts > 0).argmax(axis=0)
    means = stats.means[lowest, np.arange(len(lowest))]
    seen = means[np.isfinite(means)]
    if not len(seen):
        return -math.inf
    quartile, median, best = np.quantile(seen, [0.25, 0.5, 1.0], method="higher").tolist()
    width = max(best - median, median - quartile, 0.1 * abs(median))
    if test_size is not None:
        width = max(width, _unit(seen) / math.sqrt(test_size))
    return float(median - 3 * width) if width > 0 else -math.inf
