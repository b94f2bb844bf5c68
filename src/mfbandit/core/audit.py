r"""An anytime-valid test of the assumed biases ζ, from the results so far.

Consider an arm with n results at fidelity m and N at the highest one, of scales σ_m and σ_M. Whatever rule chose the
plays, the two sums give a mixture martingale. With a normal prior worth ρ plays it is

    E(μ_m, μ_M) = sqrt(ρ/(n+ρ)) · exp(n²(X̄_m − μ_m)² / (2σ_m²(n+ρ))) · the same for the highest fidelity.

At the true means E is at most 1 on average. By Ville's inequality it ever exceeds 1/α in at most α of all runs. If ζ
holds, the true means are among the pairs with |μ_M − μ_m| ≤ ζ. The smallest E over such pairs is

    log E = (|D| − ζ)² / (2 (σ_m²(n+ρ)/n² + σ_M²(N+ρ)/N²)) − ½ log((n+ρ)/ρ) − ½ log((N+ρ)/ρ),   D = X̄_M − X̄_m.

So ζ is refuted where |D| − ζ exceeds a radius that falls like sqrt(log n / n). All arms and lower fidelities share
α = 1 %. The radius is not a policy's width, which holds for one arm at one time. Rates have intervals of their own in
place of the radius, by :mod:`mfbandit.core.rate_intervals`.
"""

import math
from collections.abc import Container, Sequence
from dataclasses import dataclass, replace

import numpy as np

from mfbandit._internal.formatting import columns, plain
from mfbandit._internal.limits import MAX_ARMS_NAMED
from mfbandit._internal.quantiles import t_quantile
from mfbandit._internal.typing import FloatArray, IntArray
from mfbandit.core.concentration import Rate
from mfbandit.core.evidence import BoundedCells
from mfbandit.core.fidelities import Fidelities
from mfbandit.core.rate_intervals import rate_intervals
from mfbandit.core.stats import Stats
from mfbandit.errors import InvalidArgument

ALPHA = 0.01  # the largest share of runs in which a true ζ is refuted
PRIOR = 3.0  # ρ, in plays: small, for arms with few results; with hundreds it hardly matters
PLACES = 9  # between two rates, at which it is looked whether their intervals may be far apart
ROUNDING = 1e-9  # relative: so little less evidence may do, as numbers are rounded


@dataclass(frozen=True)
class FidelityAudit:
    """The test of one fidelity's bias.

    Args:
        fidelity: its index.
        name: its display name.
        bias: ζ_m as assumed, or None.
        arms: the number of arms with results both at this fidelity and at the highest.
        refuting: the arms whose results refute ζ_m, the strongest evidence first.
        needed: the smallest ζ_m that no arm's results refute.
        enough: a ζ_m that covers every bias compatible with the results of these arms; infinite without such arms.
        suggested: a ζ_m that is likely to hold, to be assumed instead of a refuted one; ζ_m where nothing refutes it
            and no higher fidelity needs as much; None where ζ is not known.
        offset: the mean over these arms of the highest fidelity's mean minus this one's; NaN without such arms.
        offset_low: lower end of its 95 % interval.
        offset_high: upper end of its 95 % interval.
    """

    fidelity: int
    name: str
    bias: float | None
    arms: int
    refuting: tuple[int, ...]
    needed: float
    enough: float
    suggested: float | None
    offset: float
    offset_low: float
    offset_high: float


@dataclass(frozen=True)
class Audit:
    """The test of all assumed biases. Printed, it is a table with warnings above it.

    Args:
        fidelities: one test for each fidelity below the highest.
        labels: the labels of the arms.

    >>> Audit((), ("a", "b")).alarm
    False
    """

    fidelities: tuple[FidelityAudit, ...]
    labels: tuple[str, ...]

    @property
    def alarm(self) -> bool:
        """Whether any assumed bias is refuted."""
        return any(one.refuting for one in self.fidelities)

    @property
    def suggested(self) -> tuple[float, ...] | None:
        """ζ_1, …, ζ_M to be assumed from now on, the same as before unless one is refuted; None if not known."""
        below = [one.suggested for one in self.fidelities]
        return None if None in below else (*(bias for bias in below if bias is not None), 0.0)

    @property
    def warnings(self) -> tuple[str, ...]:
        """One sentence for each refuted bias: the bias, the arms that refute it, and what to do."""
        return tuple(self._warning(one) for one in self.fidelities if one.refuting)

    def _warning(self, one: FidelityAudit) -> str:
        named = ", ".join(self.labels[arm] for arm in one.refuting[:MAX_ARMS_NAMED])
        more = f" and {len(one.refuting) - MAX_ARMS_NAMED} more" if len(one.refuting) > MAX_ARMS_NAMED else ""
        biases = ", ".join(plain(bias, thousands="") for bias in self.suggested or ())
        return (
            f"WARNING: bias {plain(one.bias or 0.0)} of fidelity {one.name} is too small: {named}{more} "
            f"differ{'s' * (len(one.refuting) == 1)} by more between it and the top. "
            f"{plain(one.suggested or 0.0)} is likely to hold: set_biases([{biases}]) changes it. Until then "
            f"the fidelity does not count for the best arm, which may be left out of plays"
        )

    def __str__(self) -> str:
        head = ("fidelity", "arms at both", "assumed", "at least", "enough", "offset (95 %)")
        return "\n".join([*self.warnings, *columns([head, *map(_row, self.fidelities)])])


def _row(one: FidelityAudit) -> tuple[str, ...]:
    offset, low, high = (plain(value, 3) for value in (one.offset, one.offset_low, one.offset_high))
    interval = "-" if one.arms == 0 else f"{offset} ({low} to {high})"
    enough = "-" if math.isinf(one.enough) else plain(one.enough, 3)
    bias = "-" if one.bias is None else plain(one.bias)
    return one.name, str(one.arms), bias, plain(one.needed, 3), enough, interval


def scales(fidelities: Fidelities) -> tuple[float, ...] | None:
    """Return σ_1, …, σ_M of sub-Gaussian or bounded rewards; None where the noise is unknown or of another kind.

    >>> from mfbandit.core.concentration import Bounded
    >>> scales(Fidelities([1, 10], [0.1, 0], Bounded(0, 1)))
    (0.5, 0.5)
    """
    if fidelities.concentration is None:
        return None
    found = [getattr(tail, "scale", None) for tail in fidelities.tails]
    return tuple(float(scale) for scale in found) if all(isinstance(scale, float) for scale in found) else None  # type: ignore[arg-type]


def known_scales(fidelities: Fidelities) -> tuple[float, ...]:
    """Return σ_1, …, σ_M, or an error where they are not known."""
    found = scales(fidelities)
    if found is None:
        raise InvalidArgument(
            f"concentration must be SubGaussian or Bounded for an audit, got {fidelities.concentration!r}"
        )
    return found


def radius(low: float, top: float, scale: float, scale_top: float, tests: int) -> float:
    """Bound the distance of |X̄_M − X̄_m| from |μ_M − μ_m|, at all times and for all tests, in 1 − α of runs.

    Args:
        low: the number of results at the lower fidelity, at least 1.
        top: the number of results at the highest fidelity, at least 1.
        scale: σ at the lower fidelity.
        scale_top: σ at the highest fidelity.
        tests: the number of pairs of arm and fidelity that share α.

    >>> round(radius(400, 400, 0.2, 0.2, tests=20), 4)
    0.071
    """
    spread = scale * scale * (low + PRIOR) / (low * low) + scale_top * scale_top * (top + PRIOR) / (top * top)
    price = math.log(tests / ALPHA) + 0.5 * math.log((low + PRIOR) / PRIOR * (top + PRIOR) / PRIOR)
    return math.sqrt(2 * spread * price)


def _radii(low: IntArray, top: IntArray, scale: float, scale_top: float, tests: int) -> FloatArray:
    spread = scale * scale * (low + PRIOR) / (low * low) + scale_top * scale_top * (top + PRIOR) / (top * top)
    price = math.log(tests / ALPHA) + 0.5 * np.log((low + PRIOR) / PRIOR * (top + PRIOR) / PRIOR)
    radii: FloatArray = np.sqrt(2 * spread * price)
    return radii


def needed_bias(stats: Stats, low: int, arm: int, fidelities: Fidelities) -> float:
    """Compute the smallest bias of a lower fidelity that one arm's results do not refute.

    The arm must have results at that fidelity and at the highest.

    >>> from mfbandit.core.concentration import SubGaussian
    >>> stats = Stats.empty(2, 1)
    >>> stats.counts[:], stats.sums[:] = 400, [[120], [200]]
    >>> round(needed_bias(stats, 0, 0, Fidelities([1, 10], [0.1, 0], SubGaussian(0.2))), 3)
    0.138
    """
    if fidelities.are_rates:
        return float(_rate_biases(stats, low, np.array([arm]), _tests(stats))[0][0])
    found = known_scales(fidelities)
    n, big = int(stats.counts[low, arm]), int(stats.counts[-1, arm])
    difference = abs(float(stats.sums[-1, arm]) / big - float(stats.sums[low, arm]) / n)
    return difference - radius(n, big, found[low], found[-1], _tests(stats))


def _rate_biases(stats: Stats, m: int, arms: IntArray, tests: int) -> tuple[FloatArray, FloatArray]:
    """Compute the smallest and the largest bias that is compatible with the results, for rates; shape (A,) each.

    The intervals of both rates hold at all times. Each has two ends: four chances to be wrong for each of the tests.
    """
    level = math.log(4 * tests / ALPHA)
    low, high = rate_intervals(stats.counts[m, arms], stats.sums[m, arms], level)
    low_top, high_top = rate_intervals(stats.counts[-1, arms], stats.sums[-1, arms], level)
    least: FloatArray = np.maximum(low_top - high, low - high_top)
    return least, np.maximum(high_top - low, high - low_top)


def _tests(stats: Stats) -> int:
    fidelities, arms = stats.counts.shape
    return max(1, int(arms) * (int(fidelities) - 1))


def audit(stats: Stats, fidelities: Fidelities, labels: Sequence[str]) -> Audit:
    """Test the bias of every fidelity below the highest.

    Args:
        stats: counts and sums, shape (M, K).
        fidelities: the M fidelities; their noise must be sub-Gaussian or bounded.
        labels: the labels of the K arms.

    >>> from mfbandit.core.concentration import SubGaussian
    >>> fid = Fidelities([1, 10], [0.1, 0], SubGaussian(0.2))
    >>> stats = Stats.empty(2, 2)
    >>> stats.counts[:] = 400
    >>> stats.sums[:] = [[200, 120], [200, 200]]  # the second arm: 0.3 and 0.5
    >>> print(audit(stats, fid, ["a", "b"]))
    WARNING: bias 0.1 of fidelity 0 is too small: b differs by more between it and the top. 0.27 is likely to hold: \
set_biases([0.27, 0]) changes it. Until then the fidelity does not count for the best arm, which may be left \
out of plays
    fidelity  arms at both  assumed  at least  enough        offset (95 %)
    0                    2      0.1     0.136   0.264  0.1 (-1.17 to 1.37)
    """
    found = known_scales(fidelities)
    rows = [_audited(m, stats, fidelities, found, _tests(stats)) for m in range(len(fidelities) - 1)]
    return Audit(tuple(_decreasing(rows)), tuple(labels))


def _decreasing(rows: Sequence[FidelityAudit]) -> list[FidelityAudit]:
    """Raise the suggestions of lower fidelities where they are not above those of the higher ones."""
    above, ordered = 0.0, list[FidelityAudit]()
    for one in reversed(rows):
        bias = one.suggested
        if bias is not None:
            bias = above = bias if bias > above else _round_up(math.nextafter(above, math.inf))
        ordered.insert(0, replace(one, suggested=bias))
    return ordered


def _round_up(value: float) -> float:
    """Return the next number with two significant digits, the number itself if it has no more.

    >>> _round_up(0.431), _round_up(0.43), _round_up(0.995)
    (0.44, 0.43, 1.0)
    """
    rounded = float(f"{value:.1e}")
    if rounded < value:
        rounded = float(f"{rounded + 10.0 ** (math.floor(math.log10(value)) - 1):.1e}")
    return max(rounded, value)


def _audited(m: int, stats: Stats, fidelities: Fidelities, found: tuple[float, ...], tests: int) -> FidelityAudit:
    both = np.flatnonzero((stats.counts[m] > 0) & (stats.counts[-1] > 0))
    low, top = stats.counts[m, both], stats.counts[-1, both]
    differences = stats.sums[-1, both] / stats.counts[-1, both] - stats.sums[m, both] / stats.counts[m, both]
    if fidelities.are_rates:
        least, possible = _rate_biases(stats, m, both, tests)
    else:
        radii = _radii(low, top, found[m], found[-1], tests)
        least, possible = np.abs(differences) - radii, np.abs(differences) + radii
    bias = None if fidelities.biases is None else fidelities.biases[m]
    wrong = np.flatnonzero(least > bias) if bias is not None else np.array([], dtype=np.int64)
    clearest = wrong[np.argsort(-least[wrong], kind="stable")]
    offset, offset_low, offset_high = _offset(differences, _noise(low, top, found[m], found[-1]))
    return FidelityAudit(
        fidelity=m,
        name=fidelities.labels[m],
        bias=bias,
        arms=len(both),
        refuting=tuple(both[clearest].tolist()),
        needed=max(0.0, float(least.max(initial=0.0))),
        enough=float(possible.max()) if len(both) else math.inf,
        suggested=_round_up(float(possible[wrong].max())) if len(wrong) else bias,
        offset=offset,
        offset_low=offset_low,
        offset_high=offset_high,
    )


def refuting(stats: Stats, fidelities: Fidelities, known: Container[int] = ()) -> list[tuple[int, int, float]]:
    """List what refutes the assumed biases: fidelity, arm, and the smallest bias that the arm's results do not refute.

    It is empty where biases are not known, or cannot be tested as the noise is not known.

    Args:
        stats: counts and sums, shape (M, K).
        fidelities: the M fidelities.
        known: fidelities whose biases need not be tested.

    >>> from mfbandit.core.concentration import SubGaussian
    >>> stats = Stats.empty(2, 1)
    >>> stats.counts[:], stats.sums[:] = 400, [[120], [200]]
    >>> ((m, arm, needed),) = refuting(stats, Fidelities([1, 9], [0.1, 0], SubGaussian(0.2)))
    >>> m, arm, round(needed, 3)
    (0, 0, 0.138)
    """
    found = scales(fidelities)
    if found is None or fidelities.biases is None:
        return []
    tested = [m for m in range(len(fidelities) - 1) if m not in known and _any_far_off(stats, m, fidelities.biases[m])]
    if fidelities.are_rates:
        tested = [m for m in tested if _any_may_refute(stats, m, fidelities.biases[m])]
    rows = (_audited(m, stats, fidelities, found, _tests(stats)) for m in tested)
    return [
        (one.fidelity, arm, needed_bias(stats, one.fidelity, arm, fidelities)) for one in rows for arm in one.refuting
    ]


def _any_may_refute(stats: Stats, m: int, bias: float) -> bool:
    """Whether the intervals of two rates may be further apart than a bias; looked at in few places, as ends cost more.

    They are so if some x between both means, moved by the bias for the highest fidelity, is ruled out as either rate.
    The evidence for that rises with x for one of them and falls for the other. So it is not above that at the next
    place for the first, and at the last place for the second.
    """
    low, top = stats.counts[m], stats.counts[-1]
    both = np.flatnonzero((low > 0) & (top > 0))
    cells = [BoundedCells(stats.counts[row, both], stats.sums[row, both], Rate()) for row in (m, -1)]
    means, means_top = (np.clip(one.sums / one.counts, 0.0, 1.0) for one in cells)
    up = means_top > means
    moved = np.where(up, bias, -bias)
    places = means + np.linspace(0.0, 1.0, PLACES)[:, None] * (means_top - moved - means)
    least = math.log(4 * _tests(stats) / ALPHA) * (1 - ROUNDING)
    first, second = cells[0].at(places, below=up)[0], cells[1].at(places + moved, below=~up)[0]
    far = np.abs(means_top - means) > bias
    return bool(((first[1:] >= least) & (second[:-1] >= least) & far).any())


def _any_far_off(stats: Stats, m: int, bias: float) -> bool:
    """Whether an observed difference is above a bias: where none is, nothing is refuted, and the test costs more."""
    low, top = stats.counts[m], stats.counts[-1]
    both = (low > 0) & (top > 0)
    off = np.abs(stats.sums[-1, both] / top[both] - stats.sums[m, both] / low[both])
    return bool((off > bias).any())


def _noise(low: IntArray, top: IntArray, scale: float, scale_top: float) -> float:
    """Return the variance of the mean difference that noise alone causes."""
    return float((scale * scale / low + scale_top * scale_top / top).sum()) / max(1, len(low)) ** 2


def _offset(differences: FloatArray, noise: float) -> tuple[float, float, float]:
    """Return the mean of the differences and its 95 % interval, valid for these arms and for a population of them."""
    number = len(differences)
    if number == 0:
        return math.nan, math.nan, math.nan
    mean = float(differences.mean())
    if number == 1:
        half = 1.96 * math.sqrt(noise)
    else:
        spread = float(differences.var(ddof=1)) / number
        half = t_quantile(0.975, number - 1) * math.sqrt(max(spread, noise))
    return mean, mean - half, mean + half
