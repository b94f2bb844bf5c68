r"""What a capital will buy, before any of it is spent, for people who have guesses instead of a Problem.

MF-UCB plays the arm with the largest upper bound until it falls below the others', so after a while all bounds are at
about one level, μ* + ε. Arm k's bound at fidelity m is about μ^(m)_k + ζ_m + ψ_m⁻¹(ρ log n / T^(m)_k), so a resolution
ε says how often each arm has been played where, and a capital says ε. This is an estimate, not a bound: on the paper's
problems it comes within some percent of what simulations measure.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from mfbandit._internal.formatting import columns, readable
from mfbandit._internal.typing import FloatArray, IntArray
from mfbandit._internal.validation import positive, whole
from mfbandit.core import Bounded, Fidelities, rates
from mfbandit.errors import InvalidArgument
from mfbandit.problems import TOLERANCE, Gaussian, Problem
from mfbandit.theory import gaps

CLOSE = 1e-4  # what is estimated is solved to within this share
ROUNDS = 60  # log n settles in a handful of them, and so does a resolution
REACH = 1000  # doublings between the smallest number and the largest
MOST_ARMS = 200_000  # drawn in all
EARNS, HINDERS = 1.05, 0.95  # regret without a fidelity, over regret with it, from which on it is called so


@dataclass(frozen=True, eq=False)
class Plan:
    """What MF-UCB is expected to do with a capital. Printed, it is a table and a sentence for each fidelity.

    Args:
        fidelities: what is known.
        capital: Λ.
        arms: K.
        rho: exploration parameter.
        plays: expected plays at each fidelity; shape (M,).
        spending: expected capital spent at each fidelity; shape (M,).
        settles: share of the arms that this fidelity, and none below it, can tell from the best one for good, whatever
            the capital; at the highest, the best one is among them; shape (M,).
        resolution: arms closer than this to the best one are not told from it yet, in units of reward; infinite where
            the capital does not pay for a look at every arm.
        regret: expected regret (eq. 1), in units of capital times reward.
        without: expected regret of the same capital on a ladder without this fidelity; NaN for the highest, without
            which there is no truth; shape (M,).
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
        """One sentence for each fidelity: whether it earns its place.

        >>> from mfbandit import SubGaussian
        >>> slow = Fidelities(costs=[1, 9, 10], biases=[0.2, 0.19, 0], concentration=SubGaussian(0.2))
        >>> print(plan(slow, capital=100_000, means=np.linspace(0, 1, 100)).verdicts[1])
        Fidelity 1 does not earn its place: without it regret would be 0.81 times as high.
        """
        return tuple(self._verdict(m) for m in range(len(self.fidelities)))

    def _verdict(self, m: int) -> str:
        name, share = f"Fidelity {self.fidelities.labels[m]}", f"{_percent(self.settles[m])} of the arms"
        if m == len(self.fidelities) - 1:
            return f"{name} is the truth; only it can settle {share}."
        ratio = self.without[m] / self.regret if self.regret > 0 else 1.0
        change = f"without it regret would be {ratio:.2f} times as high"
        if ratio >= EARNS:
            return f"{name} earns its place: it can settle {share}; {change}."
        if ratio <= HINDERS:
            return f"{name} does not earn its place: {change}."
        return f"{name} makes hardly a difference: it can settle {share}; {change}."

    def __str__(self) -> str:
        rows = zip(
            self.fidelities.labels,
            (f"{cost:,.6g}" for cost in self.fidelities.costs),
            (readable(plays) for plays in self.plays),
            (readable(spent) for spent in self.spending),
            (_percent(share) for share in self.settles),
            (readable(lost) for lost in self.without),
            strict=True,
        )
        arms = f"{self.arms:,} arm{'s' * (self.arms > 1)}"
        title = f"{arms}, a capital of {self.capital:,.12g}, MF-UCB with rho = {self.rho:g}: an estimate"
        last = f"Expected regret: {readable(self.regret)}. {self._reach()}"
        header = ("fidelity", "cost", "plays", "spending", "can settle", "regret without")
        return "\n".join([title, *columns([header, *rows]), *self.verdicts, last])

    def _reach(self) -> str:
        if math.isinf(self.resolution):
            return f"The capital does not pay for one look at each of the {self.arms:,} arms."
        return f"Arms closer than {self.resolution:.2g} to the best one will not be told from it yet."


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
    r"""What MF-UCB will do with a capital, and whether each fidelity earns its place, from guesses of the means.

    Give either ``means``, a guess for each arm, or ``prior``, results of arms like these, from which arms are drawn.
    Where only the highest fidelity's means are given, (n,), the lower ones are drawn uniformly within ±ζ_m of them, as
    in the paper's simulations (where the best Gaussian arm is an exception); a table (M, n) gives all. The plan is the
    average over ``draws`` of what was drawn. Averages of few noisy results are more spread out than the means behind
    them, and make the best arm look too good: give averages of many.

    Args:
        fidelities: costs, biases and concentration, all of them known.
        capital: Λ.
        means: guessed means, shape (K,) or (M, K), in units of reward.
        prior: averages of past arms, shape (n,) or (M, n), in units of reward.
        arms: K, with ``prior``; by default as many as there are past arms.
        rho: exploration parameter ρ of MF-UCB.
        draws: how often to draw what is not given; 16 times by default, less often from 12,500 arms on.
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
    Fidelity a minute earns its place: it can settle 72 % of the arms; without it regret would be 2.23 times as high.
    Fidelity ten minutes earns its place: it can settle 14 % of the arms; without it regret would be 1.19 times as high.
    Fidelity an hour is the truth; only it can settle 14 % of the arms.
    Expected regret: 2,606. Arms closer than 0.17 to the best one will not be told from it yet.
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
    """The problems to plan for: the guess itself, or draws around it."""

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
            raise InvalidArgument(f"arms goes with prior; with means there are as many arms as means, got arms={arms}")
        self._fidelities, self._sampled = fidelities, prior is not None
        self._table = _table("means" if prior is None else "prior", means if prior is None else prior, fidelities)
        self.arms = self._table.shape[-1] if arms is None else whole("arms", arms)
        if self.arms < 1:
            raise InvalidArgument(f"arms must be at least 1, got {arms}")
        if draws is not None and whole("draws", draws) < 1:
            raise InvalidArgument(f"draws must be at least 1, got {draws}")
        if whole("seed", seed) < 0:
            raise InvalidArgument(f"seed must not be negative, got {seed}")
        certain = not self._sampled and (self._table.ndim == 2 or len(fidelities) == 1)  # noqa: PLR2004 - a table has two axes
        self._draws = 1 if certain else draws or max(1, min(16, MOST_ARMS // self.arms))
        self._rng = np.random.default_rng(seed)

    def __iter__(self) -> Iterator[Problem]:
        return (self._draw() for _ in range(self._draws))

    def _draw(self) -> Problem:
        table = self._table
        if self._sampled:
            table = table[..., self._rng.integers(table.shape[-1], size=self.arms)]
        if table.ndim == 1:
            table = self._around(table)
        # The whole table was checked; draws around it may miss their biases by rounding.
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
    if table.ndim not in (1, 2) or table.size == 0 or (table.ndim == 2 and len(table) != rows):  # noqa: PLR2004
        raise InvalidArgument(f"{what} must have shape (n,) or ({rows}, n), got {table.shape}")
    if not np.isfinite(table).all():
        raise InvalidArgument(f"{what} must be finite, got {table[~np.isfinite(table)][0]}")
    if table.ndim == 2:  # noqa: PLR2004
        _check_biases(what, table, fidelities)
    return table


def _check_biases(what: str, table: FloatArray, fidelities: Fidelities) -> None:
    off = np.abs(table[-1] - table) - np.array(fidelities.known_biases)[:, None]
    m, k = (int(i) for i in np.unravel_index(off.argmax(), off.shape))
    if off[m, k] > TOLERANCE:
        raise InvalidArgument(
            f"{what} must lie within their biases of the highest fidelity's: column {k} has {table[m, k]:.6g} at "
            f"fidelity {m} and {table[-1, k]:.6g} at the highest, and the bias is {fidelities.known_biases[m]:.6g}"
        )


def _outcome(problem: Problem, capital: float, rho: float) -> tuple[FloatArray, FloatArray, float, float, FloatArray]:
    """Plays (M,), share settled (M,), resolution, regret, and regret without each fidelity (M,), for one truth."""
    rung = afford(problem, capital, rho)
    for_good = climb(problem, gaps(problem), 0.0, 0.0).settled_by
    shares = np.bincount(for_good, minlength=len(problem.fidelities)) / problem.arms
    top = len(problem.fidelities) - 1
    kept = [[m for m in range(top + 1) if m != out] for out in range(top)]
    ladders = [
        Problem(problem.means[rows], problem.fidelities.only(rows), problem.rewards, misspecified=True) for rows in kept
    ]
    without = [_lost(ladder, afford(ladder, capital, rho)) for ladder in ladders]
    return rung.plays.sum(axis=1), shares, rung.resolution, _lost(problem, rung), np.array([*without, np.nan])


@dataclass(frozen=True, eq=False)
class Rung:
    """Where MF-UCB stands: ε, the plays (M, K), the fidelity that settles each arm (K,), and what it all cost."""

    resolution: float
    plays: FloatArray
    settled_by: IntArray
    spent: float


def climb(problem: Problem, shortfall: FloatArray, resolution: float, effort: float) -> Rung:
    r"""The plays at which every arm's upper bound has come down to μ* + ε.

    Going up from the lowest fidelity, arm k is played at m until its width is Δ^(m)_k + ε, if that is at least γ_m:
    then m settles it. Else it is played until the width is γ_m, and goes on at m + 1. A width w takes ρ log n / ψ_m(w)
    plays.

    Args:
        problem: the truth, or a guess of it.
        shortfall: its gaps Δ^(m)_k, which do not change from one ε to the next; shape (M, K).
        resolution: ε, in units of reward.
        effort: ρ log n.

    >>> from mfbandit.problems.builtin import paper_problem
    >>> problem = paper_problem(3)
    >>> rung = climb(problem, gaps(problem), resolution=0.1, effort=2 * math.log(100_000))
    >>> rung.plays.sum(axis=1).round().tolist(), np.bincount(rung.settled_by).tolist()
    ([163702.0, 15225.0], [158, 42])
    """
    fidelities = problem.fidelities
    plays, settled_by = np.zeros(shortfall.shape), np.zeros(problem.arms, dtype=np.int64)
    climbing: IntArray | slice = slice(None)  # all of them; numbers would be slower
    for m, gamma in enumerate((*fidelities.gammas, 0.0)):
        widths = shortfall[m, climbing] + resolution
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            plays[m, climbing] = effort / rates(fidelities.tails[m], np.maximum(widths, gamma)) if effort else 0.0
        settled_by[climbing] = m
        unsettled = np.flatnonzero(widths < gamma)
        climbing = unsettled if isinstance(climbing, slice) else climbing[unsettled]
    np.maximum(plays[0], 1.0, out=plays[0])  # every arm is looked at once
    return Rung(resolution, plays, settled_by, float(np.array(fidelities.costs) @ plays.sum(axis=1)))


def afford(problem: Problem, capital: float, rho: float) -> Rung:
    """The rung that a capital pays for.

    >>> from mfbandit.problems.builtin import paper_problem
    >>> round(afford(paper_problem(3), capital=80_000, rho=2).resolution, 3)
    0.289
    """
    looks = capital / problem.fidelities.costs[0]
    if looks <= problem.arms:  # not even one look at each: any arm is as likely to be looked at
        plays = np.zeros(problem.means.shape)
        plays[0] = looks / problem.arms
        return Rung(math.inf, plays, np.zeros(problem.arms, dtype=np.int64), capital)
    shortfall = gaps(problem)
    effort, n, resolution = 0.0, capital / problem.fidelities.costs[-1] + problem.arms, 1.0
    for _ in range(ROUNDS):
        effort, before = rho * math.log(n + 1), effort  # the next play is at t = n + 1
        rung = _spend(problem, shortfall, capital, effort, resolution)
        if abs(effort - before) <= CLOSE * effort:
            break
        n, resolution = float(rung.plays.sum()), rung.resolution
    return rung


def _spend(problem: Problem, shortfall: FloatArray, capital: float, effort: float, guess: float) -> Rung:
    """The rung whose spending is the capital, for a given effort. Spending falls as ε grows, so it can be bracketed.

    Where an arm comes to be settled one fidelity earlier, spending jumps: there the plays of both sides are mixed.
    """
    fine = coarse = climb(problem, shortfall, guess, effort)
    for _ in range(REACH):
        if fine.spent < capital:
            coarse, fine = fine, climb(problem, shortfall, fine.resolution / 2, effort)
        elif coarse.spent > capital:
            fine, coarse = coarse, climb(problem, shortfall, coarse.resolution * 2, effort)
        else:
            break
    if not coarse.spent <= capital <= fine.spent < math.inf:
        raise InvalidArgument(
            f"capital must be of a size with the costs, {list(problem.fidelities.costs)}, and the noise, "
            f"got {capital:g}"
        )
    for _ in range(ROUNDS):
        if coarse.resolution <= fine.resolution * (1 + CLOSE):
            break
        middle = climb(problem, shortfall, _between(fine, coarse, capital), effort)
        if abs(middle.spent - capital) <= CLOSE * capital:
            return middle
        fine, coarse = (middle, coarse) if middle.spent > capital else (fine, middle)
    return _mixed(fine, coarse, capital)


def _between(fine: Rung, coarse: Rung, capital: float) -> float:
    """The ε at which a line through both rungs, on logarithmic scales, spends the capital; not too near to either."""
    over, under = math.log(fine.spent) - math.log(capital), math.log(coarse.spent) - math.log(capital)
    share = min(max(over / (over - under), 0.05), 0.95)
    return fine.resolution * math.pow(coarse.resolution / fine.resolution, share)


def _mixed(fine: Rung, coarse: Rung, capital: float) -> Rung:
    share = (capital - coarse.spent) / (fine.spent - coarse.spent) if fine.spent > coarse.spent else 1.0
    plays = share * fine.plays + (1 - share) * coarse.plays
    return Rung(fine.resolution, plays, fine.settled_by, capital)


def _lost(problem: Problem, rung: Rung) -> float:
    return float((np.array(problem.fidelities.costs) @ rung.plays) @ problem.gaps)


def _percent(share: float) -> str:
    return "under 1 %" if 0 < share < 0.005 else f"{100 * share:.0f} %"  # noqa: PLR2004 - rounds to 0
