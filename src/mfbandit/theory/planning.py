r"""A plan: what MF-UCB is expected to do with a capital, estimated from guessed means.

MF-UCB plays the arm with the largest upper bound until its bound falls below the others'. So after a while all bounds
are at about one level, μ* + ε. Arm k's bound at fidelity m is about μ^(m)_k + ζ_m + ψ_m⁻¹(ρ log n / T^(m)_k). The
resolution ε therefore determines the plays of each arm at each fidelity, and the capital determines ε.

This is an estimate, not a bound. On the paper's problems it is within some percent of what simulations measure.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from mfbandit._internal.formatting import columns, plain, readable
from mfbandit._internal.typing import FloatArray, IntArray
from mfbandit._internal.validation import positive, whole
from mfbandit.core import Bounded, Fidelities, Rate, divergences, rates
from mfbandit.errors import InvalidArgument
from mfbandit.problems import TOLERANCE, Gaussian, Problem
from mfbandit.theory.partition import gaps

RELATIVE_TOLERANCE = 1e-4  # of what is solved for
MAX_ITERATIONS = 60  # log n and ε converge in a handful
MAX_DOUBLINGS = 1000  # between the smallest float and the largest
DEFAULT_DRAWS, MAX_ARMS_DRAWN = 16, 200_000  # the latter over all draws
HELPS_FROM_RATIO, HURTS_UP_TO_RATIO = 1.05, 0.95  # of regret without a fidelity to regret with it
ROUNDS_TO_ZERO = 0.005  # shares below it are not 0 %


@dataclass(frozen=True, eq=False)
class Plan:
    """What MF-UCB is expected to do with a capital. Printed, it is a table and a sentence for each fidelity.

    Args:
        fidelities: the fidelities.
        capital: Λ.
        arms: K.
        rho: exploration parameter.
        plays: expected plays at each fidelity; shape (M,).
        spending: expected capital spent at each fidelity; shape (M,).
        settles: share of the arms that this fidelity, and none below it, settles with enough capital; the highest
            includes the best arm; shape (M,).
        resolution: ε, in units of reward. Arms closer to the best one will not be distinguished from it. It is
            infinite if the capital does not pay for one play of every arm.
        regret: expected regret (eq. 1), in units of capital times reward.
        without: expected regret of the same capital without this fidelity; NaN for the highest; shape (M,).
    """

    fidelities: Fidelities
    capital: float
    arms: int
    rho: float
    plays: FloatArray
    spending: FloatArray
    settles: FloatArray
    resolution: float
    regret: float
    without: FloatArray

    @property
    def verdicts(self) -> tuple[str, ...]:
        """One sentence for each fidelity: whether it helps.

        >>> from mfbandit import SubGaussian
        >>> slow = Fidelities(costs=[1, 9, 10], biases=[0.2, 0.19, 0], concentration=SubGaussian(0.2))
        >>> print(plan(slow, capital=100_000, means=np.linspace(0, 1, 100)).verdicts[1])
        Fidelity 1 hurts: without it regret would be 0.81 times as high.
        """
        return tuple(self._verdict(m) for m in range(len(self.fidelities)))

    def _verdict(self, m: int) -> str:
        name, share = f"Fidelity {self.fidelities.labels[m]}", f"{_percent(self.settles[m])} of the arms"
        if m == len(self.fidelities) - 1:
            return f"{name} is the highest; only it can settle {share}."
        ratio = self.without[m] / self.regret if self.regret > 0 else 1.0
        change = f"without it regret would be {ratio:.2f} times as high"
        if ratio >= HELPS_FROM_RATIO:
            return f"{name} helps: it can settle {share}; {change}."
        if ratio <= HURTS_UP_TO_RATIO:
            return f"{name} hurts: {change}."
        return f"{name} makes little difference: it can settle {share}; {change}."

    def __str__(self) -> str:
        rows = zip(
            self.fidelities.labels,
            (plain(cost) for cost in self.fidelities.costs),
            (readable(plays) for plays in self.plays),
            (readable(spent) for spent in self.spending),
            (_percent(share) for share in self.settles),
            (readable(lost) for lost in self.without),
            strict=True,
        )
        arms = f"{self.arms:,} arm{'s' * (self.arms > 1)}"
        rule = "MF-UCB" if len(self.fidelities) > 1 else "UCB"
        title = f"{arms}, a capital of {plain(self.capital, 12)}, {rule} with rho = {self.rho:g}: an estimate"
        last = f"Expected regret: {readable(self.regret)}. {self._resolved()}"
        header = ("fidelity", "cost", "plays", "spending", "can settle", "regret without")
        return "\n".join([title, *columns([header, *rows]), *self.verdicts, last])

    def _resolved(self) -> str:
        if math.isinf(self.resolution):
            return f"The capital does not pay for one play of each of the {self.arms:,} arms."
        return f"Arms closer than {plain(self.resolution, 2)} to the best one will not be distinguished from it."


def plan(
    fidelities: Fidelities,
    capital: float,
    *,
    means: ArrayLike | None = None,
    prior: ArrayLike | None = None,
    arms: int | None = None,
    rho: float = 2.0,
    draws: int | None = None,
    seed: int = 0,
) -> Plan:
    r"""Estimate what MF-UCB will do with a capital, and whether each fidelity helps, from guessed means.

    Pass either ``means``, a guess for each arm, or ``prior``, average results of similar arms, from which arms are
    drawn. A table of shape (M, n) gives the means at all fidelities. Where only those at the highest are given, (n,),
    the lower ones are drawn uniformly within ±ζ_m of them. The paper's simulations do the same, except for the best
    Gaussian arm. The plan is the average over ``draws``.

    Averages of few noisy results vary more than the true means, and make the best arm seem better than it is. So pass
    averages of many.

    Args:
        fidelities: costs, biases and concentration; all must be known.
        capital: Λ.
        means: guessed means, shape (K,) or (M, K), in units of reward.
        prior: average results of similar arms, shape (n,) or (M, n), in units of reward.
        arms: K, with ``prior``; by default the number of similar arms.
        rho: exploration parameter ρ of MF-UCB.
        draws: how often to draw what is not given; by default 16 times, and less often above 12,500 arms.
        seed: for the draws.

    >>> from mfbandit.core.concentration import Bounded
    >>> ads = Fidelities(costs=[1, 10, 60], biases=[0.2, 0.1, 0], concentration=Bounded(),
    ...                  names=["a minute", "ten minutes", "an hour"])
    >>> print(plan(ads, capital=100_000, prior=[0.05, 0.1, 0.1, 0.2, 0.3, 0.3, 0.6], arms=40))
    40 arms, a capital of 100,000, MF-UCB with rho = 2: an estimate
    fidelity     cost   plays  spending  can settle  regret without
    a minute        1  18,328    18,328        72 %           5,815
    ten minutes    10   7,496    74,960        14 %           3,092
    an hour        60   111.9     6,712        14 %               -
    Fidelity a minute helps: it can settle 72 % of the arms; without it regret would be 2.23 times as high.
    Fidelity ten minutes helps: it can settle 14 % of the arms; without it regret would be 1.19 times as high.
    Fidelity an hour is the highest; only it can settle 14 % of the arms.
    Expected regret: 2,606. Arms closer than 0.17 to the best one will not be distinguished from it.
    """
    if not isinstance(fidelities, Fidelities):
        raise InvalidArgument(f"fidelities must be a Fidelities, got {fidelities!r}")
    budget, exploration = positive("capital", capital), positive("rho", rho)
    truths = _Truths(fidelities, means, prior, arms, draws, seed)
    each = [_outcome(problem, budget, exploration) for problem in truths]
    plays, settles, resolution, lost, without = (np.mean(column, axis=0) for column in zip(*each, strict=True))
    spending = plays * np.array(fidelities.costs)
    expected = plays, spending, settles, float(resolution), float(lost), without
    return Plan(fidelities, budget, truths.arms, exploration, *expected)


class _Truths:
    """The problems to plan for: the guessed means, or draws from the guess."""

    def __init__(
        self,
        fidelities: Fidelities,
        means: ArrayLike | None,
        prior: ArrayLike | None,
        arms: int | None,
        draws: int | None,
        seed: int,
    ) -> None:
        if (means is None) == (prior is None):
            raise InvalidArgument("plan needs either means, a guess for each arm, or prior, results of similar arms")
        if means is not None and arms is not None:
            raise InvalidArgument(f"arms must not be given with means, which say how many arms there are, got {arms}")
        self._fidelities, self._sampled = fidelities, prior is not None
        self._table = _table("means" if prior is None else "prior", means if prior is None else prior, fidelities)
        self.arms = self._table.shape[-1] if arms is None else whole("arms", arms)
        if self.arms < 1:
            raise InvalidArgument(f"arms must be at least 1, got {arms}")
        if draws is not None and whole("draws", draws) < 1:
            raise InvalidArgument(f"draws must be at least 1, got {draws}")
        if whole("seed", seed) < 0:
            raise InvalidArgument(f"seed must not be negative, got {seed}")
        certain = not self._sampled and (self._table.ndim > 1 or len(fidelities) == 1)
        self._draws = 1 if certain else draws or max(1, min(DEFAULT_DRAWS, MAX_ARMS_DRAWN // self.arms))
        self._rng = np.random.default_rng(seed)

    def __iter__(self) -> Iterator[Problem]:
        return (self._draw() for _ in range(self._draws))

    def _draw(self) -> Problem:
        table = self._table
        if self._sampled:
            table = table[..., self._rng.integers(table.shape[-1], size=self.arms)]
        if table.ndim == 1:
            table = self._around(table)
        # The table was checked; draws around it may miss their biases by rounding.
        return Problem(table, self._fidelities, Gaussian(1.0), misspecified=True)

    def _around(self, truth: FloatArray) -> FloatArray:
        shape = (len(self._fidelities), len(truth))
        biases = np.array(self._fidelities.known_biases)[:, None]
        around: FloatArray = truth + biases * self._rng.uniform(-1, 1, shape)
        for tail, row in zip(self._fidelities.tails, around, strict=True):
            if isinstance(tail, Bounded):
                np.clip(row, min(tail.low, truth.min()), max(tail.high, truth.max()), out=row)
        return around


def _table(what: str, given: ArrayLike | None, fidelities: Fidelities) -> FloatArray:
    try:
        table: FloatArray = np.array(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidArgument(f"{what} must be numbers, got {given!r}") from None
    rows = len(fidelities)
    if table.size == 0 or table.shape[:-1] not in ((), (rows,)) or table.ndim == 0:
        raise InvalidArgument(f"{what} must have shape (n,) or ({rows}, n), got {table.shape}")
    if not np.isfinite(table).all():
        raise InvalidArgument(f"{what} must be finite, got {table[~np.isfinite(table)][0]}")
    if table.ndim > 1:
        _check_biases(what, table, fidelities)
    return table


def _check_biases(what: str, table: FloatArray, fidelities: Fidelities) -> None:
    off = np.abs(table[-1] - table) - np.array(fidelities.known_biases)[:, None]
    m, k = (int(i) for i in np.unravel_index(off.argmax(), off.shape))
    if off[m, k] > TOLERANCE:
        raise InvalidArgument(
            f"{what} must lie within their biases of those at the highest fidelity, got {plain(table[m, k])} in column "
            f"{k} at fidelity {m}, {plain(table[-1, k])} at the highest, and a bias of "
            f"{plain(fidelities.known_biases[m])}"
        )


def _outcome(problem: Problem, capital: float, rho: float) -> tuple[FloatArray, FloatArray, float, float, FloatArray]:
    """Compute plays (M,), shares settled (M,), resolution, regret, and regret without each fidelity (M,)."""
    allocation = allocation_for(problem, capital, rho)
    in_the_limit = allocation_at(problem, gaps(problem), 0.0, 0.0).settled_by
    shares = np.bincount(in_the_limit, minlength=len(problem.fidelities)) / problem.arms
    top = len(problem.fidelities) - 1
    kept = [[m for m in range(top + 1) if m != out] for out in range(top)]
    reduced = [
        Problem(problem.means[rows], problem.fidelities.only(rows), problem.rewards, misspecified=True) for rows in kept
    ]
    without = np.array([*(_regret(each, allocation_for(each, capital, rho)) for each in reduced), np.nan])
    return allocation.plays.sum(axis=1), shares, allocation.resolution, _regret(problem, allocation), without


@dataclass(frozen=True, eq=False)
class Allocation:
    """The plays (M, K) at a resolution ε, the fidelity that settles each arm (K,), and the cost of the plays."""

    resolution: float
    plays: FloatArray
    settled_by: IntArray
    spent: float


def allocation_at(problem: Problem, shortfall: FloatArray, resolution: float, rho_log_n: float) -> Allocation:
    r"""Compute the plays after which every arm's upper bound is μ* + ε.

    From the lowest fidelity upwards, arm k is played at m until its width is Δ^(m)_k + ε, if that is at least γ_m. Then
    m settles the arm. Else it is played until the width is γ_m, and then at m + 1. A width w takes ρ log n / ψ_m(w)
    plays.

    Args:
        problem: the problem, or a guess of it.
        shortfall: its gaps Δ^(m)_k, computed once for all ε; shape (M, K).
        resolution: ε, in units of reward.
        rho_log_n: ρ log n.

    >>> from mfbandit.problems.builtin import paper_problem
    >>> problem = paper_problem(3)
    >>> allocation = allocation_at(problem, gaps(problem), resolution=0.1, rho_log_n=2 * math.log(100_000))
    >>> allocation.plays.sum(axis=1).round().tolist(), np.bincount(allocation.settled_by).tolist()
    ([163702.0, 15225.0], [158, 42])
    """
    fidelities = problem.fidelities
    plays, settled_by = np.zeros(shortfall.shape), np.zeros(problem.arms, dtype=np.int64)
    left: IntArray | slice = slice(None)  # all arms; indices would be slower
    for m, gamma in enumerate((*fidelities.gammas, 0.0)):
        widths = shortfall[m, left] + resolution
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            rate = _rates(problem, m, left, np.maximum(widths, gamma))
            plays[m, left] = rho_log_n / rate if rho_log_n else 0.0
        settled_by[left] = m
        unsettled = np.flatnonzero(widths < gamma)
        left = unsettled if isinstance(left, slice) else left[unsettled]
    np.maximum(plays[0], 1.0, out=plays[0])  # every arm is played once
    return Allocation(resolution, plays, settled_by, float(np.array(fidelities.costs) @ plays.sum(axis=1)))


def _rates(problem: Problem, m: int, arms: IntArray | slice, widths: FloatArray) -> FloatArray:
    """Compute ψ_m(w), or for rates kl(μ, μ + w), per observation; shape (A,)."""
    if type(problem.fidelities.tails[m]) is Rate:
        return divergences(np.clip(problem.means[m, arms], 0.0, 1.0), widths)
    return rates(problem.fidelities.tails[m], widths)


def allocation_for(problem: Problem, capital: float, rho: float) -> Allocation:
    """Compute the allocation that a capital pays for.

    >>> from mfbandit.problems.builtin import paper_problem
    >>> round(allocation_for(paper_problem(3), capital=80_000, rho=2).resolution, 3)
    0.289
    """
    affordable = capital / problem.fidelities.costs[0]
    if affordable <= problem.arms:  # not even one play of each: all arms are equally likely to be played
        plays = np.zeros(problem.means.shape)
        plays[0] = affordable / problem.arms
        return Allocation(math.inf, plays, np.zeros(problem.arms, dtype=np.int64), capital)
    shortfall = gaps(problem)
    rho_log_n, n, resolution = 0.0, capital / problem.fidelities.costs[-1] + problem.arms, 1.0
    for _ in range(MAX_ITERATIONS):
        rho_log_n, before = rho * math.log(n + 1), rho_log_n  # the next play is at t = n + 1
        allocation = _spend(problem, shortfall, capital, rho_log_n, resolution)
        if abs(rho_log_n - before) <= RELATIVE_TOLERANCE * rho_log_n:
            break
        n, resolution = float(allocation.plays.sum()), allocation.resolution
    return allocation


def _spend(problem: Problem, shortfall: FloatArray, capital: float, rho_log_n: float, guess: float) -> Allocation:
    """Find the allocation that costs the capital, for a given ρ log n.

    The cost falls as ε grows, so that ε can be bracketed. The cost jumps where an arm is settled one fidelity earlier;
    there the plays of both sides are mixed.
    """
    fine = coarse = allocation_at(problem, shortfall, guess, rho_log_n)
    for _ in range(MAX_DOUBLINGS):
        if fine.spent < capital:
            coarse, fine = fine, allocation_at(problem, shortfall, fine.resolution / 2, rho_log_n)
        elif coarse.spent > capital:
            fine, coarse = coarse, allocation_at(problem, shortfall, coarse.resolution * 2, rho_log_n)
        else:
            break
    if not coarse.spent <= capital <= fine.spent < math.inf:
        raise InvalidArgument(
            f"capital must be of a size that fits the costs, {list(problem.fidelities.costs)}, and the noise, "
            f"got {plain(capital)}"
        )
    for _ in range(MAX_ITERATIONS):
        if coarse.resolution <= fine.resolution * (1 + RELATIVE_TOLERANCE):
            break
        middle = allocation_at(problem, shortfall, _between(fine, coarse, capital), rho_log_n)
        if abs(middle.spent - capital) <= RELATIVE_TOLERANCE * capital:
            return middle
        fine, coarse = (middle, coarse) if middle.spent > capital else (fine, middle)
    return _mixed(fine, coarse, capital)


def _between(fine: Allocation, coarse: Allocation, capital: float) -> float:
    """Interpolate ε between two allocations on logarithmic scales, not too near to either."""
    over, under = math.log(fine.spent) - math.log(capital), math.log(coarse.spent) - math.log(capital)
    share = min(max(over / (over - under), 0.05), 0.95)
    return fine.resolution * math.pow(coarse.resolution / fine.resolution, share)


def _mixed(fine: Allocation, coarse: Allocation, capital: float) -> Allocation:
    share = (capital - coarse.spent) / (fine.spent - coarse.spent) if fine.spent > coarse.spent else 1.0
    plays = share * fine.plays + (1 - share) * coarse.plays
    return Allocation(fine.resolution, plays, fine.settled_by, capital)


def _regret(problem: Problem, allocation: Allocation) -> float:
    return float((np.array(problem.fidelities.costs) @ allocation.plays) @ problem.gaps)


def _percent(share: float) -> str:
    return "under 1 %" if 0 < share < ROUNDS_TO_ZERO else f"{100 * share:.0f} %"
