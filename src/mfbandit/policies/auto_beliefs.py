r"""What :class:`~mfbandit.MFAuto` believes of each arm after all results, and which arm has the largest index."""

import math
from functools import cached_property

import numpy as np

from mfbandit._internal.typing import FloatArray
from mfbandit.core import Concentration, Fidelities, Stats, SubGaussian, has_range, kl_upper
from mfbandit.policies.divergence_bounds import divergence_above, index_cap, mean_deviations
from mfbandit.policies.exploration import RESOLUTION, total_spent
from mfbandit.policies.gaussian_chain import GaussianChain
from mfbandit.policies.kept_arms import KeptArms, filter_arms, tails_of
from mfbandit.policies.mfbayes import MAX_EXPONENT, quantile
from mfbandit.policies.robust_chain import ChainModel

FREEDOM = 8.0  # ν of an arm that was never played at the highest fidelity, where biases are told
BOUNDS_ROUTE = 0.3  # proof by bounds is taken if it costs at most this share of what the posterior needs
CEILING_MARGIN = 1e-9  # by which a fast index is too high: it is rounded in another way
NEWTON_STEPS = 4  # of a fast bound; it stays above the exact one


class Beliefs:
    """Posterior means and deviations at the highest fidelity, shape (K,); levels; and bounds where biases are told."""

    def __init__(
        self, chain: GaussianChain, kept: KeptArms, model: ChainModel, stats: Stats, fidelities: Fidelities
    ) -> None:
        self._chain, self._model, self._stats, self._rows = chain, model, stats, model.rows
        self._costs = [fidelities.costs[m] for m in model.rows]
        self.biases = None if model.guesses is None else [fidelities.known_biases[m] for m in model.rows]
        self.tails = tails_of(chain, model)
        self._cap = index_cap(self.tails)
        self._table = kept.table(chain, model, stats, self.biases)
        self.values, self.lows, self.highs = self._table.values, self._table.lows, self._table.highs
        self.deviations: FloatArray = np.sqrt(self._table.variances)
        waiting = stats.pending.any()
        self._looks = stats.observations if waiting else stats.counts  # T, with pending plays
        plays = stats.plays if waiting else stats.results
        self._roots, self._overlaps = kept.levels(plays, fidelities)
        self._spent = total_spent(plays, fidelities) / fidelities.costs[0]
        self.seen = stats.active & (stats.counts.sum(axis=0) > 0)

    @cached_property
    def leader(self) -> int:
        """The arm with the largest posterior mean, the lowest number among ties."""
        return int(np.where(self.seen, self.values, -np.inf).argmax())

    def index(self, arm: int) -> float:
        """Compute U_k: the posterior's quantile, and not more than the bounds by the biases."""
        if not self._roots[arm]:
            return math.inf
        ratio = self._ratio(arm)
        upper = float(self.values[arm]) + float(self.deviations[arm]) * self._quantile(arm, ratio)
        if self.biases is None:
            return upper
        return min(upper, self._bound(arm, math.log(ratio), self.biases), self._cap)

    def most_promising(self) -> tuple[int, float]:
        """Find the arm with the largest index, the lowest number among ties, and that index.

        The index is costly, so it is computed only where a fast one from above allows a win.
        """
        ceilings = np.where(self.seen, self._ceilings(), -np.inf)
        arm = int(ceilings.argmax())
        best = self.index(arm)
        candidates = np.flatnonzero(ceilings >= best)
        for k in candidates[np.argsort(-ceilings[candidates], kind="stable")].tolist():
            if ceilings[k] < best or (best >= self._cap and k > arm):  # as equal ceilings go on by number
                break
            value = self.index(k)
            if value > best or (value == best and k < arm):
                arm, best = k, value
        return arm, best

    def most_informative(self, arm: int) -> int:
        """Return the row where a play reduces Var μ^(M) most per cost, the lowest among ties."""
        noise, variances, wide = self._one(arm)
        last = len(self._costs) - 1
        variance = link = variances[last]
        best, chosen = link * (link / ((variance + noise[last]) * self._costs[last])), last
        for r in range(last - 1, -1, -1):
            gain = variances[r] / wide[r + 1]
            variance = variances[r] + gain * gain * (variance - wide[r + 1])
            link = link * gain
            worth = link * (link / ((variance + noise[r]) * self._costs[r]))
            if worth >= best:
                best, chosen = worth, r
        return chosen

    def by_bounds(self, arm: int, upper: float) -> int | None:
        """Return the row at which bounds settle the arm at a small cost; None if the posterior does it for less.

        Args:
            arm: not the leader.
            upper: its index.
        """
        if self.biases is None:
            return None
        target = min(float(self.values[self.leader]), upper)
        ratio = self._ratio(arm)
        level, best, chosen = math.log(ratio), math.inf, None
        for r, (m, bias) in enumerate(zip(self._rows, self.biases, strict=True)):
            rate = divergence_above(self.tails[r], self._cautious_mean(r, arm), target - bias)
            if rate > 0:
                needed = max(level / rate - int(self._looks[m, arm]), 1.0) * self._costs[r]
                if needed < best:
                    best, chosen = needed, r
        return chosen if best < BOUNDS_ROUTE * self._posterior_cost(arm, target, ratio) else None

    def top_deviations(self) -> FloatArray:
        """Compute the deviations of X̄ at the highest fidelity; infinite without a result; shape (K,)."""
        counts = self._stats.counts[-1]
        k, result = np.flatnonzero(counts > 0), np.full(len(counts), np.inf)
        means = self._stats.sums[-1, k] / counts[k]
        result[k] = mean_deviations(self.tails[-1], means, self._looks[-1, k])
        return result

    def _bound(self, arm: int, level: float, biases: list[float]) -> float:
        """Compute the minimum over m of sup{y : T·d(X̄, y) ≤ level} + ζ_m for one arm."""
        best = math.inf
        for tail, m, bias in zip(self.tails, self._rows, biases, strict=True):
            count = int(self._stats.counts[m, arm])
            if count:
                mean, plays = float(self._stats.sums[m, arm]) / count, int(self._looks[m, arm])
                best = min(best, _upper(tail, mean, level, plays) + bias)
        return best

    def _posterior_cost(self, arm: int, target: float, ratio: float) -> float:
        """Compute the cost of plays at the highest fidelity until the index is below the target, if E μ^(M) stays."""
        gap = target - float(self.values[arm])
        if not gap > 0:
            return math.inf
        allowed, deviation = gap / self._quantile(arm, ratio), float(self.deviations[arm])
        precision = 1.0 / (allowed * allowed) - 1.0 / (deviation * deviation)
        return max(self._one(arm)[0][-1] * precision, 1.0) * self._costs[-1]

    def _cautious_mean(self, r: int, arm: int) -> float:
        """Compute X̄ less one deviation; the posterior mean without a result."""
        m = self._rows[r]
        count = self._stats.counts[m, arm : arm + 1]
        if not count[0]:
            return float(self.values[arm])
        mean = self._stats.sums[m, arm : arm + 1] / count
        width = mean_deviations(self.tails[r], mean, self._looks[m, arm : arm + 1].astype(np.float64))
        return float(mean[0] - width[0])

    def _one(self, arm: int) -> tuple[list[float], list[float], list[float]]:
        """Filter one arm: the noise of a reward, filtered and predicted variances at each used fidelity."""
        cells = self._rows, slice(arm, arm + 1)
        counts, sums, looks = self._stats.counts[cells], self._stats.sums[cells], self._looks[cells]
        filtered, variances, wide = filter_arms(self._chain, self._model, counts, sums, looks)
        return filtered.noise[:, 0].tolist(), variances[:, 0].tolist(), wide[:, 0].tolist()

    def _ratio(self, arm: int) -> float:
        return 1.0 + self._spent / ((int(self._roots[arm]) * RESOLUTION) * (int(self._overlaps[arm]) * RESOLUTION))

    def _quantile(self, arm: int, ratio: float) -> float:
        """Compute the factor of the deviation: Student's where the prior is a guess from biases, else the Gaussian."""
        if self.biases is None:
            return math.sqrt(2.0 * math.log(ratio))
        return quantile(ratio, FREEDOM * (1.0 + int(self._looks[-1, arm])))

    def _ceilings(self) -> FloatArray:
        """Compute an index from above for all arms at once; shape (K,)."""
        with np.errstate(all="ignore"):
            ratios = 1.0 + self._spent / ((self._roots * RESOLUTION) * (self._overlaps * RESOLUTION))
            levels = np.log(ratios)
            if self.biases is None:
                upper = self.values + self.deviations * np.sqrt(2.0 * levels)
            else:
                nu = FREEDOM * (1.0 + self._looks[-1])
                far = np.sqrt(nu * np.expm1(np.minimum(2.0 * levels / nu, MAX_EXPONENT)))
                upper = np.minimum(self.values + self.deviations * far, self._cap)
                for r, bias in enumerate(self.biases):
                    upper = self._below_bound(upper, r, levels, bias)
        result: FloatArray = upper + CEILING_MARGIN * (1.0 + np.abs(upper))
        return result

    def _below_bound(self, upper: FloatArray, r: int, levels: FloatArray, bias: float) -> FloatArray:
        """Lower the ceilings to the bounds of one fidelity, where they are not above the others anyway."""
        m, tail = self._rows[r], self.tails[r]
        if type(tail) is not SubGaussian and not has_range(tail):
            return upper
        k = np.flatnonzero(self._stats.counts[m] > 0)
        means, efforts = self._stats.sums[m, k] / self._stats.counts[m, k], levels[k] / self._looks[m, k]
        if type(tail) is SubGaussian:
            bounds = means + tail.scale * np.sqrt(2 * efforts)
        elif has_range(tail):
            span = tail.high - tail.low
            bounds = tail.low + span * rough_kl_upper(((means - tail.low) / span).clip(0.0, 1.0), efforts)
        upper = upper.copy()
        upper[k] = np.minimum(upper[k], bounds + bias)
        return upper


def rough_kl_upper(p: FloatArray, levels: FloatArray) -> FloatArray:
    """Compute bounds that are never below :func:`~mfbandit.core.kl_upper`, and close to it, by a few Newton steps.

    >>> p, levels = np.array([0.0, 0.3, 1.0]), np.array([0.1, 0.2, 0.1])
    >>> exact = [kl_upper(*pair) for pair in zip(p.tolist(), levels.tolist())]
    >>> bool((rough_kl_upper(p, levels) - exact).max() < 1e-6)
    True
    """
    with np.errstate(all="ignore"):
        inner = p.clip(1e-12, 1 - 1e-12)
        q = np.minimum(inner + np.minimum(np.sqrt(levels / 2), np.sqrt(2 * (1 - inner) * levels)), 1.0)
        entropy = -inner * np.log(inner) - (1 - inner) * np.log1p(-inner)
        q = np.minimum(q, -np.expm1(-(levels + entropy) / (1 - inner)))
        for _ in range(NEWTON_STEPS):
            step = q - inner
            excess = -inner * np.log1p(step / inner) - (1 - inner) * np.log1p(-step / (1 - inner)) - levels
            lower = q - excess * q * (1 - q) / step
            q = np.where((lower > inner) & (lower < q), lower, q)
    result: FloatArray = np.where((p <= 0) | (levels <= 0), p - np.expm1(-levels), q + 1e-11)
    return result.clip(p, 1.0)


def _upper(tail: Concentration, mean: float, level: float, plays: int) -> float:
    """Compute sup{y : T·d(X̄, y) ≤ level} for one arm."""
    if type(tail) is SubGaussian:
        return mean + tail.scale * math.sqrt(2 * level / plays)
    if has_range(tail):
        span = tail.high - tail.low
        return tail.low + span * kl_upper(min(max((mean - tail.low) / span, 0.0), 1.0), level / plays)
    return mean + tail.psi_inv(level / plays)
