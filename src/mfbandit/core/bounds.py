"""Confidence bounds at every fidelity (eq. 3).

The order of operations is part of the contract: B = (X̄ + ζ_m) + u·b with u = sqrt(log t) and
b = (σ·sqrt(2ρ)) / sqrt(T). Another order differs in the last bit. Exact ties, which are common with 0/1 rewards, would
then be decided differently. It is ``math.log`` and not ``np.log``: the two differ at some integers.
"""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np

from mfbandit._internal.typing import FloatArray, IntArray
from mfbandit.core.concentration import Bounded, Concentration
from mfbandit.core.divergence import kl_upper
from mfbandit.core.fidelities import Fidelities
from mfbandit.core.stats import Stats
from mfbandit.errors import InvalidArgument, NoResults

MAX_ARMS_PRINTED = 20  # in a table of bounds
CONFIDENCE, POSTERIOR = "confidence bounds", "posterior intervals, 95 %"  # what an interval is


def widths(plays: IntArray, t: int, fidelities: Fidelities, rho: float) -> FloatArray:
    r"""Compute the width ψ_m⁻¹(ρ log t / T) for every fidelity and arm, in units of reward.

    Args:
        plays: T, the number of plays; shape (M, K).
        t: one more than the number of all plays so far.
        fidelities: the M fidelities.
        rho: exploration parameter ρ > 0.

    Returns:
        Shape (M, K); infinite where T = 0.

    >>> from mfbandit.core.concentration import SubGaussian
    >>> fid = Fidelities(costs=[1], concentration=SubGaussian(1.0))
    >>> widths(np.array([[0, 1, 4]]), t=2, fidelities=fid, rho=2.0).round(3).tolist()
    [[inf, 1.665, 0.833]]
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        return _widths(plays, np.sqrt(plays), t, fidelities, rho)


def _widths(plays: IntArray, roots: FloatArray, t: int, fidelities: Fidelities, rho: float) -> FloatArray:
    if fidelities.scales is None:
        return np.stack([_widths_by_psi(row, m, t, fidelities, rho) for m, row in enumerate(plays)])
    u = math.sqrt(math.log(t))
    if u == 0:  # at t = 1, where 0 times infinity must not become NaN
        return np.where(plays == 0, np.inf, 0.0)
    width: FloatArray = fidelities.scales * math.sqrt(2 * rho) / roots
    width *= u
    return width


def _widths_by_psi(row: IntArray, m: int, t: int, fidelities: Fidelities, rho: float) -> FloatArray:
    # Many arms have the same number of plays, and a psi in Python is slow: call it once for each distinct number.
    distinct, where = np.unique(row, return_inverse=True)
    return np.array([width(int(plays), m, t, fidelities, rho) for plays in distinct])[where]


def width(plays: int, m: int, t: int, fidelities: Fidelities, rho: float) -> float:
    """Compute the width of one arm at fidelity ``m``: the same as in :func:`widths`, to the last bit.

    >>> from mfbandit.core.concentration import Bounded
    >>> fid = Fidelities(costs=[1, 10], biases=[0.1, 0], concentration=Bounded())
    >>> width(4, 0, t=100, fidelities=fid, rho=2.0) == widths(np.array([[4], [4]]), 100, fid, 2.0)[0, 0]
    np.True_
    """
    if plays == 0:
        return math.inf
    scales = fidelities.scales
    if scales is None:
        return _width_by_psi(fidelities.tails[m], rho * math.log(t) / plays)
    return math.sqrt(math.log(t)) * (float(scales[m, 0]) * math.sqrt(2 * rho) / math.sqrt(plays))


def _width_by_psi(tail: Concentration, rate: float) -> float:
    width = tail.psi_inv(rate)
    if not width >= 0:
        raise InvalidArgument(
            f"psi_inv of {type(tail).__name__} must give a width of at least 0, got {width} for {rate}"
        )
    return width


def upper_bounds(stats: Stats, fidelities: Fidelities, rho: float) -> FloatArray:
    r"""Compute B^(m)_k(t) = X̄ + ψ_m⁻¹(ρ log t / T) + ζ_m (eq. 3), an upper bound on μ^(M)_k from each fidelity.

    T counts observations, and t counts plays. A pending play counts in both, but not in X̄.

    Returns:
        Shape (M, K), in units of reward; infinite where there is no result, never NaN.

    >>> from mfbandit.core.concentration import SubGaussian
    >>> fid = Fidelities(costs=[1, 10], biases=[0.2, 0], concentration=SubGaussian(0.1))
    >>> upper_bounds(Stats.empty(2, 3), fid, rho=2.0).tolist()
    [[inf, inf, inf], [inf, inf, inf]]
    """
    if fidelities.are_rates:
        return kl_upper_bounds(stats, fidelities, rho)
    with np.errstate(divide="ignore", invalid="ignore"):  # entered once, as it takes as long as an array operation
        bounds: FloatArray = stats.means_or_infinity + fidelities.bias_column
        bounds += _widths(stats.observations, stats.root_observations, stats.time, fidelities, rho)
    return bounds


def kl_upper_bounds(stats: Stats, fidelities: Fidelities, rho: float) -> FloatArray:
    r"""Compute max{q : T·kl(X̄, q) ≤ ρ log t} + ζ_m: KL-UCB's upper bounds, by the Bernoulli divergence.

    They are never wider than :func:`upper_bounds`, and much tighter near the ends of the rewards' range. Every
    concentration must be :class:`~mfbandit.Bounded`; means are scaled to [0, 1] and back.

    Returns:
        Shape (M, K), in units of reward; infinite where there is no result.

    >>> from mfbandit.core.concentration import Bounded
    >>> fid = Fidelities(costs=[1], concentration=Bounded())
    >>> stats = Stats.empty(1, 2)
    >>> stats.counts[:], stats.sums[:] = 10, [[0.0, 5.0]]
    >>> kl_upper_bounds(stats, fid, rho=1.0).round(4).tolist(), upper_bounds(stats, fid, rho=1.0).round(4).tolist()
    ([[0.2625, 0.8377]], [[0.3902, 0.8902]])
    """
    bounds = np.full(stats.counts.shape, np.inf)
    number, effort = stats.observations, rho * math.log(stats.time)
    for m, tail in enumerate(fidelities.tails):
        span = require_bounded(tail)
        seen = np.flatnonzero(stats.counts[m] > 0)
        means = ((stats.sums[m, seen] / stats.counts[m, seen] - span.low) / (span.high - span.low)).clip(0.0, 1.0)
        levels = effort / number[m, seen]
        tops = [kl_upper(p, level) for p, level in zip(means.tolist(), levels.tolist(), strict=True)]
        bounds[m, seen] = (span.low + (span.high - span.low) * np.array(tops)) + fidelities.known_biases[m]
    return bounds


def require_bounded(tail: Concentration) -> Bounded:
    """Return the concentration if it is a :class:`~mfbandit.Bounded`, which KL bounds need; else raise.

    >>> from mfbandit.core.concentration import SubGaussian
    >>> require_bounded(SubGaussian(1.0))
    Traceback (most recent call last):
    mfbandit.errors.InvalidArgument: kl=True needs rewards in a range, Bounded(low, high), got SubGaussian(scale=1.0)
    """
    if not isinstance(tail, Bounded):
        raise InvalidArgument(f"kl=True needs rewards in a range, Bounded(low, high), got {tail!r}")
    return tail


def lower_bounds(stats: Stats, fidelities: Fidelities, rho: float) -> FloatArray:
    r"""Compute X̄ − ψ_m⁻¹(ρ log t / T) − ζ_m, a lower bound on μ^(M)_k from each fidelity; pending plays do not count.

    Returns:
        Shape (M, K), in units of reward; −∞ where there is no result, never NaN.

    >>> from mfbandit.core.concentration import SubGaussian
    >>> fid = Fidelities(costs=[1, 10], biases=[0.2, 0], concentration=SubGaussian(0.1))
    >>> lower_bounds(Stats.empty(2, 1), fid, rho=2.0).tolist()
    [[-inf], [-inf]]
    """
    told = stats.told
    if fidelities.are_rates:
        return _kl_lower_bounds(told, fidelities, rho)
    bounds = (told.means - fidelities.bias_column) - widths(told.counts, told.time, fidelities, rho)
    np.putmask(bounds, told.counts == 0, -np.inf)
    return bounds


def _kl_lower_bounds(told: Stats, fidelities: Fidelities, rho: float) -> FloatArray:
    """Compute min{q : T·kl(X̄, q) ≤ ρ log t} − ζ_m: by symmetry, 1 minus the upper bound of 1 − X̄."""
    mirrored = replace(told, sums=told.counts - told.sums)
    mirrored.__dict__["time"] = told.time
    bounds: FloatArray = 1.0 - kl_upper_bounds(mirrored, fidelities, rho)  # 1 − (q + ζ), or −∞
    return bounds


def rate_width(stats: Stats, arm: int, m: int, fidelities: Fidelities, rho: float) -> float:
    """Compute how far the upper bound of an arm at one fidelity is above its mean, for rates; without a result, ψ's.

    >>> from mfbandit.core.concentration import Rate
    >>> stats = Stats.empty(1, 1)
    >>> stats.counts[0, 0], stats.sums[0, 0] = 1000, 40.0
    >>> fid = Fidelities([1], concentration=Rate())
    >>> round(rate_width(stats, 0, 0, fid, rho=2.0), 4), round(width(1000, 0, stats.time, fid, rho=2.0), 4)
    (0.0413, 0.0831)
    """
    number, count = int(stats.observations[m, arm]), int(stats.counts[m, arm])
    if not count:
        return width(number, m, stats.time, fidelities, rho)
    mean = min(max(float(stats.sums[m, arm]) / count, 0.0), 1.0)
    return kl_upper(mean, rho * math.log(stats.time) / number) - mean


def safest(lower: FloatArray, stats: Stats) -> int:
    """Return the active arm with the largest lower bound, the lowest index among ties.

    Args:
        lower: shape (K,); −∞ for arms without a result.
        stats: its ``active`` is used.

    >>> safest(np.array([0.1, 0.7, 0.7]), Stats.empty(fidelities=1, arms=3))
    1
    """
    ranked = np.where(stats.active, lower, -np.inf)
    arm = int(ranked.argmax())
    if ranked[arm] == -np.inf:
        raise NoResults("No arm can be recommended yet: no active arm has a result that this policy uses")
    return arm


def most_promising(index: FloatArray, stats: Stats) -> int:
    """Return the arm to play next: the one with the largest index, the lowest number among ties.

    Arms without any play come first, by number. Then come arms with a result, by index. Arms with only pending plays
    come last, those with the fewest first. So one slow first play never attracts all workers.

    Args:
        index: shape (K,); infinite for arms without a result.
        stats: results and pending plays.

    >>> stats = Stats.empty(fidelities=1, arms=2)
    >>> stats.pending[0, 0] = 1
    >>> most_promising(np.array([np.inf, np.inf]), stats)
    1
    """
    arm = int(index.argmax())
    if stats.active[arm] and index[arm] != math.inf:  # the usual case: every arm has a result
        return arm
    pending = stats.pending.sum(axis=0)
    no_result = np.isposinf(index)
    untouched = stats.active & no_result & (pending == 0)
    if untouched.any():
        return int(untouched.argmax())
    with_result = stats.active & ~no_result
    if with_result.any():
        return int(np.where(with_result, index, -np.inf).argmax())
    return int(np.where(stats.active, pending, np.iinfo(np.int64).max).argmin())


@dataclass(frozen=True, eq=False)
class Bounds:
    """Means and confidence bounds of every arm at every fidelity; arrays of shape (M, K), in units of reward.

    Args:
        labels: the labels of the K arms.
        fidelities: the names of the M fidelities.
        plays: T^(m)_k, the number of results.
        means: X̄, NaN without a result.
        widths: ψ_m⁻¹(ρ log t / T), infinite without a result.
        lower: X̄ − width − ζ_m, −∞ without a result.
        upper: X̄ + width + ζ_m, infinite without a result.
        kind: what the intervals are, "confidence bounds" or "posterior intervals, 95 %". The latter are of the policy.
            They use all fidelities and are in the row of the highest; lower rows are infinite.
        observations: how many observations the results are, which widths count; None where every result is one.

    Printed, it is a table of the arms with the largest index.
    """

    labels: Sequence[str]
    fidelities: Sequence[str]
    plays: IntArray
    means: FloatArray
    widths: FloatArray
    lower: FloatArray
    upper: FloatArray
    kind: str = CONFIDENCE
    observations: IntArray | None = None

    def __str__(self) -> str:
        # Arms without any result come last.
        tightest = np.where(self.plays.any(axis=0), self.upper.min(axis=0), -np.inf)
        order = np.argsort(-tightest, kind="stable").tolist()
        hidden = len(order) - MAX_ARMS_PRINTED
        more = [f"... and {hidden} more arms"] if hidden > 0 else []
        return "\n".join([self.table(order[:MAX_ARMS_PRINTED]), *more])

    @property
    def ranking(self) -> str:
        """What :meth:`ranked` ranks by: "estimate" for posterior intervals, else "lower bound"."""
        return "estimate" if self.kind == POSTERIOR else "lower bound"

    def ranked(self, *, first: int | None = None, last: Collection[int] = ()) -> list[int]:
        """Rank arms: one before all others, then by their highest lower bound or posterior estimate.

        Args:
            first: the arm that comes first, such as the recommended one.
            last: arms that come after all others, such as retired ones.
        """
        lower = self.lower.max(axis=0)
        with np.errstate(invalid="ignore"):  # an arm without results has infinite ends
            values = (lower + self.upper.min(axis=0)) / 2 if self.kind == POSTERIOR else lower
        values = np.where(np.isfinite(lower), values, -np.finfo(np.float64).max)
        values[list(last)] = -np.inf
        if first is not None:
            values[first] = np.inf
        order: list[int] = np.argsort(-values, kind="stable").tolist()
        return order

    def table(self, order: Sequence[int]) -> str:
        """Format these arms as a table, each at all its fidelities."""
        more = () if self.observations is None else ("observations",)
        head = ("arm", "fidelity", "plays", *more, "mean", "width", "lower", "upper")
        rows = [head, *(self._row(m, k) for k in order for m in range(len(self.plays)))]
        left = (max(map(len, column)) for column in list(zip(*rows, strict=True))[:2])
        right = (max(map(len, column)) for column in list(zip(*rows, strict=True))[2:])
        form = "  ".join([*(f"{{:<{n}}}" for n in left), *(f"{{:>{n}}}" for n in right)])
        return "\n".join(form.format(*row).rstrip() for row in rows)

    def _row(self, m: int, k: int) -> tuple[str, ...]:
        values = (self.means[m, k], self.widths[m, k], self.lower[m, k], self.upper[m, k])
        numbers = (f"{value:.4f}" if math.isfinite(value) else "-" for value in values)
        more = () if self.observations is None else (str(self.observations[m, k]),)
        return self.labels[k], self.fidelities[m], str(self.plays[m, k]), *more, *numbers


def bounds_table(stats: Stats, fidelities: Fidelities, rho: float, labels: Sequence[str]) -> Bounds:
    """Compute :class:`Bounds` from results alone; pending plays do not count.

    Where biases are not known, only the highest fidelity gives bounds.
    >>> from mfbandit.core.concentration import Bounded
    >>> fid = Fidelities(costs=[1, 10], concentration=Bounded())
    >>> bounds_table(Stats.empty(2, 1), fid, 2.0, ["a"]).upper.tolist()
    [[inf], [inf]]
    """
    told = stats.told
    lower, upper = lower_bounds(told, fidelities, rho), upper_bounds(told, fidelities, rho)
    wide = widths(told.counts, told.time, fidelities, rho)
    if fidelities.are_rates:
        wide = 0.5 * (upper - lower) - fidelities.bias_column
    return Bounds(
        labels,
        fidelities.labels,
        told.results.copy(),
        told.means,
        wide,
        lower,
        upper,
        observations=None if told.extra is None else told.counts.copy(),
    )
