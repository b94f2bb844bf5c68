"""MFAda: less exploration of arms on which much was spent, at the fidelity with the most information per cost."""

import math
from dataclasses import dataclass

import numpy as np

from mfbandit._internal.typing import FloatArray
from mfbandit.core import Fidelities, Stats, has_range, most_promising, safest
from mfbandit.policies.divergence_bounds import divergence_above, index_cap, mean_deviations, upper_bounds_at
from mfbandit.policies.exploration import exploration_levels


@dataclass(frozen=True)
class MFAda:
    r"""An adaptive MF-UCB that needs ζ and has no proof; in simulations it usually has a fraction of MF-UCB's regret.

    1. The exploration level is f_k = log(1 + S/H_k) instead of ρ log t (:mod:`~mfbandit.policies.exploration`). The
       index U_k is the minimum over m of sup{y : T·d(X̄, y) ≤ f_k} + ζ_m. Here d is the Gaussian divergence, or the
       Bernoulli divergence for bounded rewards. Play the arm with the largest index.
    2. Each fidelity gives an interval for μ^(M)_k: X̄ ± (ζ_m + 2 standard deviations). An arm's value v_k is the middle
       of the intersection, but at most U_k. The arm with the largest value is the leader, and its value is the target.
    3. Play the leader at the first fidelity whose standard deviation is at least γ_m. Play any other arm where a play
       has the most information per cost on whether that arm could reach the target.

    >>> from mfbandit.core.concentration import SubGaussian
    >>> fid = Fidelities(costs=[1, 10], biases=[0.2, 0], concentration=SubGaussian(0.1))
    >>> MFAda().choose(Stats.empty(fidelities=2, arms=3), fid)
    (0, 0)
    """

    def choose(self, stats: Stats, fidelities: Fidelities) -> tuple[int, int]:
        """Choose the arm with the largest index, and its fidelity by step 3."""
        summaries = ArmSummaries(stats, fidelities)
        arm = most_promising(summaries.index, stats)
        if not stats.counts[:, arm].any():
            return arm, _first_open(summaries, arm, fidelities)
        leader = int(np.where(stats.active & stats.counts.any(axis=0), summaries.values, -np.inf).argmax())
        if arm == leader:
            return arm, _first_open(summaries, arm, fidelities)
        return arm, _most_informative(summaries, arm, float(summaries.values[leader]), fidelities)

    def index(self, stats: Stats, fidelities: Fidelities) -> FloatArray:
        """Compute U_k, in units of reward; shape (K,)."""
        return ArmSummaries(stats, fidelities).index

    def recommend(self, stats: Stats, fidelities: Fidelities) -> int:
        """Return the active arm with the highest lower bound, max over m of X̄ − ζ_m − 2 standard deviations."""
        return safest(ArmSummaries(stats.told, fidelities).lowest, stats)


class ArmSummaries:
    """Summaries of the results: index, value and lower bound of each arm (K,); means and standard deviations (M, K)."""

    def __init__(self, stats: Stats, fidelities: Fidelities) -> None:
        biases = fidelities.known_biases
        exploration = exploration_levels(stats.plays, fidelities)
        shape = stats.counts.shape
        uppers, self.deviations = np.full(shape, np.inf), np.full(shape, np.inf)
        self.means = np.full(shape, np.nan)
        low, high = np.full(shape, -np.inf), np.full(shape, np.inf)
        for m, tail in enumerate(fidelities.tails):
            waiting = np.flatnonzero((stats.counts[m] == 0) & (stats.pending[m] > 0))
            middle = np.full(len(waiting), 0.5 * (tail.low + tail.high) if has_range(tail) else 0.0)
            self.deviations[m, waiting] = mean_deviations(tail, middle, stats.observations[m, waiting])
            k = np.flatnonzero(stats.counts[m] > 0)
            plays = stats.observations[m, k]
            means = stats.sums[m, k] / stats.counts[m, k]
            deviations = mean_deviations(tail, means, plays)
            self.means[m, k], self.deviations[m, k] = means, deviations
            uppers[m, k] = upper_bounds_at(tail, means, exploration[k], plays) + biases[m]
            low[m, k] = (means - biases[m]) - 2 * deviations
            high[m, k] = (means + biases[m]) + 2 * deviations
        self.index: FloatArray = np.minimum(uppers.min(axis=0), index_cap(fidelities.tails))
        self.index[~(stats.counts > 0).any(axis=0)] = np.inf
        lowest, highest = low.max(axis=0), high.min(axis=0)
        with np.errstate(invalid="ignore"):  # an arm without results has infinite ends
            middle = lowest + np.maximum(0.0, highest - lowest) / 2
        # Without these minima, an arm whose results contradict its biases could keep the target above every index.
        self.values: FloatArray = np.minimum(self.index, middle)
        self.lowest: FloatArray = np.minimum(lowest, self.index)


def _first_open(summaries: ArmSummaries, arm: int, fidelities: Fidelities) -> int:
    """Return the first fidelity with a standard deviation of at least γ_m = ζ_m·sqrt(λ_m/λ_{m+1}), else the highest."""
    for m, bias in enumerate(fidelities.known_biases[:-1]):
        ratio = fidelities.costs[m] / fidelities.costs[m + 1]
        if summaries.deviations[m, arm] >= bias * math.sqrt(ratio):  # infinite without a play
            return m
    return len(fidelities) - 1


def _most_informative(summaries: ArmSummaries, arm: int, target: float, fidelities: Fidelities) -> int:
    """Return the fidelity with the most information per cost on whether the arm could reach the target.

    Among ties it is the highest.
    """
    top = len(fidelities) - 1
    best, chosen = 0.0, top
    for m in range(top, -1, -1):
        bias = fidelities.known_biases[m]
        guess = float(summaries.lowest[arm]) - bias
        if m < top and not math.isnan(summaries.means[m, arm]):
            guess = max(guess, float(summaries.means[m, arm]) - 2 * float(summaries.deviations[m, arm]))
        rate = divergence_above(fidelities.tails[m], guess, target - bias) / fidelities.costs[m]
        if rate > best:
            best, chosen = rate, m
    return chosen
