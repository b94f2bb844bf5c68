"""Estimates and bounds of the candidates' scores at the highest fidelity."""

import math
from dataclasses import dataclass

import numpy as np

from mfbandit._internal.quantiles import t_quantile
from mfbandit._internal.typing import FloatArray
from mfbandit.core import Fidelities, Stats, bounds_table
from mfbandit.policies.gaussian_chain import GaussianChain, Posterior

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


def bound_deviations(stats: Stats, fitted: float = 0.0) -> float:
    """Return how many deviations bounds are away from estimates.

    A model takes its noise for known. That comes from a few repeated plays and a guess that counts for one, and some
    of the plays went into the split effects: two candidates with three plays differ by many of its deviations.

    Args:
        stats: all results.
        fitted: how many of them the split effects take up.

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
    quantile = t_quantile(1 - ALPHA / max(2, stats.counts.shape[1]), int(freedom))
    return quantile * math.sqrt((repeated + 1) / freedom)


def min_useful_score(stats: Stats) -> float:
    """Return the score below which a candidate is hopeless: three widths below the median of the first results.

    R² on a handful of samples can be −1000, and one such candidate would make all others look the same. A width is the
    distance from the median to the best or to the lower quartile, or a tenth of the median, whichever is largest.
    Ordinary candidates on a bad split must stay above, also where most candidates are equally good.

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
    return float(median - 3 * width) if width > 0 else -math.inf
