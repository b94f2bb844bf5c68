r"""What the highest fidelity has settled by itself: which arms cannot be the best, whatever the biases are.

An arm with n results of mean X̄ at the highest fidelity has the mean μ within X̄ ± r. For sub-Gaussian noise of scale σ
the mixture martingale of :mod:`mfbandit.core.audit` gives

    r = σ · sqrt(2 (n+ρ)/n² · (log(K/α) + ½ log((n+ρ)/ρ))).

For another concentration r = ψ⁻¹(log(2νK·n(n+1)/α)/n), a union over n. Rates have the intervals of
:mod:`mfbandit.core.rate_intervals`. Whatever rule chose the plays and however often one looks, all K intervals hold at
all times in 1 − α of experiments.
"""

import math

import numpy as np

from mfbandit._internal.typing import BoolArray, FloatArray
from mfbandit.core.audit import ALPHA, PRIOR, scales
from mfbandit.core.fidelities import Fidelities
from mfbandit.core.rate_intervals import rate_intervals
from mfbandit.core.stats import Stats


def ruled_out(stats: Stats, fidelities: Fidelities) -> BoolArray:
    """Tell which arms the highest fidelity has ruled out: another active arm is better there, at any time.

    Nothing is ruled out where the noise is not known. Retired arms rule out none.

    Args:
        stats: results at the M fidelities of K arms.
        fidelities: the M fidelities.

    Returns:
        Shape (K,).

    >>> from mfbandit.core.concentration import SubGaussian
    >>> fid = Fidelities([1, 10], [0.1, 0], SubGaussian(0.1))
    >>> stats = Stats.empty(2, 3)
    >>> stats.counts[1], stats.sums[1] = [20, 20, 1], [4.0, 16.0, 0.2]  # means 0.2, 0.8 and 0.2
    >>> ruled_out(stats, fid).tolist()  # one result settles nothing
    [True, False, False]
    """
    counts = stats.counts[-1]
    if fidelities.concentration is None or not counts.any():
        return np.zeros(len(counts), dtype=np.bool_)
    seen = counts > 0
    low, high = (_rates if fidelities.top.are_rates else _around_means)(stats, fidelities)
    lowest: float = low.max(initial=-math.inf, where=seen & stats.active)
    out: BoolArray = seen & (high < lowest)
    return out


def _rates(stats: Stats, _: Fidelities) -> tuple[FloatArray, FloatArray]:
    """Compute the ends of each arm's interval, for rates: two chances to be wrong for each of K arms."""
    counts, arms = stats.counts[-1], len(stats.active)
    low, high = np.zeros(arms), np.ones(arms)
    seen = np.flatnonzero(counts)
    low[seen], high[seen] = rate_intervals(counts[seen], stats.sums[-1, seen], math.log(2 * arms / ALPHA))
    return low, high


def _around_means(stats: Stats, fidelities: Fidelities) -> tuple[FloatArray, FloatArray]:
    """Compute X̄ ± r of each arm."""
    counts, radii = stats.counts[-1], _radii(stats, fidelities)
    means = np.divide(stats.sums[-1], counts, out=np.zeros(len(counts)), where=counts > 0)
    return means - radii, means + radii


def _radii(stats: Stats, fidelities: Fidelities) -> FloatArray:
    """Compute r for each arm; 0 without a result."""
    counts, arms = stats.counts[-1], len(stats.active)
    radii = np.zeros(arms)
    seen = np.flatnonzero(counts)
    n = counts[seen].astype(np.float64)
    top = scales(fidelities.top)
    if top is not None:
        price = math.log(arms / ALPHA) + 0.5 * np.log((n + PRIOR) / PRIOR)
        radii[seen] = top[0] * np.sqrt(2 * (n + PRIOR) * price) / n
        return radii
    tail = fidelities.tails[-1]
    distinct, where = np.unique(counts[seen], return_inverse=True)  # a psi in Python is slow
    price_of = [math.log(2 * tail.nu * arms * s * (s + 1) / ALPHA) / s for s in distinct.tolist()]
    radii[seen] = np.array([tail.psi_inv(price) for price in price_of])[where]
    return radii
