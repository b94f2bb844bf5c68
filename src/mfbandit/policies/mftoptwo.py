"""MFTopTwo: best-arm identification with a known capital; needs neither biases nor a noise scale."""

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import ClassVar

import numpy as np

from mfbandit._internal.typing import BoolArray, FloatArray
from mfbandit._internal.validation import flag, number, positive
from mfbandit.core import Fidelities, Stats, limit, safest
from mfbandit.errors import InvalidArgument
from mfbandit.policies.exploration import total_spent
from mfbandit.policies.gaussian_chain import (
    SPREAD_FLOOR,
    GaussianChain,
    Posterior,
    em_step,
    least_variance,
    pooled_noise,
    total,
)
from mfbandit.policies.ladder import MANY_ARMS, REPEATS, Stage, ladder, resumed_ladder
from mfbandit.policies.outliers import raised
from mfbandit.policies.repetition import repeats_itself

FIRST_EM_STEPS = 5  # for a first fit; a later fit makes one
NOISE_GUESS_RESULTS = 1.0  # the weight of the prior guess of the noise, in results
SMALLEST_VARIANCE = 1e-200  # the product of two does not underflow


@dataclass(frozen=True, eq=False)
class MFTopTwoMemory(GaussianChain):
    """What MFTopTwo remembers: the fitted chain and its R fidelities."""

    rows: tuple[int, ...]


@dataclass(frozen=True)
class MFTopTwo:
    r"""A policy for recommending one arm after spending a known capital; it has no proof.

    Only the recommended arm counts, not the rewards of the plays. As in :class:`~mfbandit.MFBayes`, all arms share a
    Gaussian chain (:mod:`~mfbandit.policies.gaussian_chain`), here refitted after each result.

    1. From the highest fidelity down, keep each one that is at least κ times cheaper than the one kept before it.
    2. Stages (:func:`~mfbandit.policies.ladder.ladder`): one look at all arms at a low fidelity, or at as many as the
       capital pays for. Then one look at the best of these at a higher fidelity, and at the best of those at one more.
       The best have the largest E μ^(M)_k. Where capital is ample or all fidelities cost much, there is one stage.
    3. Finals: among arms with a result, the leader is ℓ = argmax E μ^(M)_k. The challenger is
       c = argmin_k (E_ℓ − E_k)/sqrt(V_ℓ + V_k).
    4. Of these two arms and the kept fidelities from the first stage's upwards, play the pair with the largest
       Cov(μ^(M), μ^(m))²/((Var μ^(m) + s_m²)·λ_m). Only fidelities at which the remaining capital pays for both arms
       are considered.

    Plays that resume (``Fidelities(resume=True)``) cost the difference. Stages are at all kept fidelities then
    (:func:`~mfbandit.policies.ladder.resumed_ladder`).

    Results may have no noise, as validation scores of a training run that is made once. Then no arm is played twice at
    a fidelity, nor below one where it was played, and the challenger is an arm without a play at the highest. Unless
    that is declared, it is found out: after a first stage of 30 arms or more, its best arm is played again, and two
    more if the result is the same (:func:`~mfbandit.policies.repetition.repeats_itself`).

    Hopeless results count as bad ones (:func:`~mfbandit.policies.outliers.raised`).

    When no play fits into C any more, ``choose`` goes on as if all did. An :class:`~mfbandit.Experiment` with the
    capital C ends there; one with more capital goes on. Costs are those of the fidelities, as a policy does not see the
    costs that were told.

    Args:
        capital: C, the capital that plays may cost, in the units of the fidelities' costs.
        share: the share of C that a single stage may cost if it does not reach all arms, in (0, 1].
        kappa: κ ≥ 1; how much cheaper a fidelity must be than the next one kept.
        r0: prior guess of a step's standard deviation, as a share of the arms' spread.
        nu0: the weight of that guess, in arms.
        fade: prior guess of the ratio of the noise variance to that of the fidelity below.
        noise: prior guess of the noise variance at the lowest fidelity, as a share of the variance between arms.
        deterministic: whether results have no noise; None to find out.

    >>> policy = MFTopTwo(capital=100)
    >>> policy.stages(Fidelities(costs=[1, 4, 16]), arms=10)  # all ten at a cost of 4
    (Stage(fidelity=1, arms=10),)
    >>> policy.choose(Stats.empty(fidelities=3, arms=10), Fidelities(costs=[1, 4, 16]))
    (0, 1)
    """

    uses_biases: ClassVar[bool] = False

    capital: float
    share: float = 0.75
    kappa: float = 1.5
    r0: float = 0.5
    nu0: float = 5.0
    fade: float = 0.7
    noise: float = 0.05
    deterministic: bool | None = None

    def __post_init__(self) -> None:
        for name in ("share", "r0", "nu0", "fade", "noise"):
            object.__setattr__(self, name, positive(name, getattr(self, name)))
        object.__setattr__(self, "capital", positive("capital", number("capital", self.capital)))
        object.__setattr__(self, "kappa", number("kappa", self.kappa))
        if self.kappa < 1:
            raise InvalidArgument(f"kappa must be at least 1, got {self.kappa:g}")
        if self.share > 1:
            raise InvalidArgument(f"share must be at most 1, got {self.share:g}")
        if self.deterministic is not None:
            flag("deterministic", self.deterministic)

    def kept(self, fidelities: Fidelities) -> list[int]:
        """Return the highest fidelity, and each below it that is κ times cheaper than the next one kept.

        >>> MFTopTwo(capital=100).kept(Fidelities(costs=[1, 4, 8, 10]))
        [0, 1, 3]
        """
        rows = [len(fidelities) - 1]
        for m in range(rows[0] - 1, -1, -1):
            if self.kappa * fidelities.costs[m] <= fidelities.costs[rows[0]]:
                rows.insert(0, m)
        return rows

    def stages(self, fidelities: Fidelities, arms: int, deterministic: bool | None = None) -> tuple[Stage, ...]:
        """Return the stages of step 2.

        Args:
            fidelities: the fidelities.
            arms: K.
            deterministic: what was found out about the noise; None if nothing was, or it was declared.

        >>> MFTopTwo(capital=6).stages(Fidelities(costs=[1, 2.5]), arms=20)  # four at a cost of 1
        (Stage(fidelity=0, arms=4),)
        """
        exact = deterministic if self.deterministic is None else self.deterministic
        options, repeats = (fidelities.costs, self.kept(fidelities), arms, self.capital), self.deterministic is None
        if fidelities.resume:
            return resumed_ladder(*options, deterministic=exact, repeats=repeats)
        return ladder(*options, share=self.share, deterministic=exact, repeats=repeats)

    def remember(self, stats: Stats, fidelities: Fidelities) -> MFTopTwoMemory:
        """Refit the chain after a result; start a new one if the fidelities in use have changed."""
        told, rows, known = raised(_of_seen(stats)), self._rows(stats, fidelities), stats.memory
        floor = max(least_variance(told), SMALLEST_VARIANCE)
        start, variance = _first_means(told, rows)
        guess = self.noise * variance
        noise = pooled_noise(told, list(rows), floor, first=guess, weight=NOISE_GUESS_RESULTS, fade=self.fade)
        if self._repeats_itself(stats):
            noise = np.full(len(rows), floor)
        # Before any second play the spread of the arms is unknown, and EM is slow to leave one that is far too small.
        again = int(told.results.sum()) > told.counts.shape[1]
        if isinstance(known, MFTopTwoMemory) and known.rows == rows and again:
            chain, steps = replace(known, noise=noise), 1
        else:
            chain, steps = self._begin(start, variance, noise, rows, floor), FIRST_EM_STEPS
        for _ in range(steps):
            chain = em_step(chain, told, list(rows), floor, r0=self.r0, nu0=self.nu0)
        return chain

    def choose(self, stats: Stats, fidelities: Fidelities) -> tuple[int, int]:
        """Choose a play of the first stage that is not complete; after the stages, the leader or the challenger."""
        exact = self._repeats_itself(stats)
        stages = self.stages(fidelities, len(stats.active), exact)
        played = stats.plays.any(axis=0)
        untouched, seen = stats.active & ~played, stats.active & stats.counts.any(axis=0)
        left = limit(self.capital) - _spent(stats, fidelities)
        lowest = stages[0].fidelity
        first_fits = fidelities.costs[lowest] <= left or not seen.any()
        if untouched.any() and int(played.sum()) < stages[0].arms and first_fits:
            return int(untouched.argmax()), lowest
        if not seen.any():
            return _fewest(stats), lowest
        chain = self._memory(stats, fidelities)
        belief = Posterior(chain, raised(stats), list(chain.rows))
        if exact is None and first_fits and _wants_repeat(stats, stages):
            once = seen & (stats.plays[lowest] == 1) & (stats.results[lowest] == 1)
            if once.any():
                return _best(belief, once), lowest
        promoted = _promoted(belief, stats, stages, fidelities, left)
        if promoted is not None:
            return promoted
        pair = finalists(belief, seen, seen & (stats.plays[-1] == 0) if exact else seen)
        options = [m for m in self.kept(fidelities) if m >= lowest]
        plays = _payable(pair, options, stats, fidelities, left, exact=bool(exact))
        if not plays:  # without noise, and nothing more to learn that the capital pays for
            return pair[0], options[-1]
        return _most_informative(belief, chain, plays, stats, fidelities)

    def index(self, stats: Stats, fidelities: Fidelities) -> FloatArray:
        """Compute E μ^(M)_k, in units of reward; infinite for arms without a result; shape (K,)."""
        seen = stats.counts.any(axis=0)
        if not seen.any():
            return np.full(len(stats.active), np.inf)
        chain = self._memory(stats, fidelities)
        return np.where(seen, Posterior(chain, raised(stats.told), list(chain.rows)).values, np.inf)

    def recommend(self, stats: Stats, fidelities: Fidelities) -> int:
        """Return the active arm with the highest E μ^(M)_k."""
        seen = stats.counts.any(axis=0)
        return safest(np.where(seen, self.index(stats, fidelities), -np.inf), stats)

    def intervals(self, stats: Stats, fidelities: Fidelities) -> tuple[FloatArray, FloatArray]:
        """Compute the ends of 95 % posterior intervals for μ^(M)_k; −∞ and ∞ for arms without a result.

        >>> stats = Stats.empty(fidelities=1, arms=2)
        >>> MFTopTwo(capital=9).intervals(stats, Fidelities(costs=[1]))[1].tolist()
        [inf, inf]
        """
        seen: BoolArray = stats.counts.sum(axis=0) > 0
        if not seen.any():
            return np.full(len(seen), -np.inf), np.full(len(seen), np.inf)
        chain = self._memory(stats, fidelities)
        return Posterior(chain, raised(stats.told), list(chain.rows)).intervals(seen)

    def _memory(self, stats: Stats, fidelities: Fidelities) -> MFTopTwoMemory:
        # Without a memory, or after costs have changed, it is computed from the results.
        known = stats.memory
        if isinstance(known, MFTopTwoMemory) and known.rows == self._rows(stats, fidelities):
            return known
        return self.remember(replace(stats, memory=None), fidelities)

    def _rows(self, stats: Stats, fidelities: Fidelities) -> tuple[int, ...]:
        """Return the kept fidelities from the first stage's upwards, and all others with a result."""
        lowest = self.stages(fidelities, len(stats.active))[0].fidelity
        used = {m for m in self.kept(fidelities) if m >= lowest}
        return tuple(sorted(used.union(np.flatnonzero(stats.counts.any(axis=1)).tolist())))

    def _repeats_itself(self, stats: Stats) -> bool | None:
        """Whether results have no noise, as declared or found out; None while that is not known."""
        return repeats_itself(stats) if self.deterministic is None else self.deterministic

    def _begin(
        self, start: float, variance: float, noise: FloatArray, rows: tuple[int, ...], floor: float
    ) -> MFTopTwoMemory:
        first = float(noise[0])
        spread = max(variance - first, 0.1 * variance, SPREAD_FLOOR * first, floor)
        steps = np.full(len(rows) - 1, self.r0 * self.r0 * spread)
        return MFTopTwoMemory(start, spread, np.zeros(len(rows) - 1), steps, steps, noise, rows)


def finalists(belief: Posterior, seen: BoolArray, rivals: BoolArray) -> tuple[int, ...]:
    """Return the leader of the ``seen`` and the challenger of its ``rivals``, or it alone; lowest index among ties."""
    values = np.where(seen, belief.values, -np.inf)
    leader = int(values.argmax())
    variances = belief.deviations * belief.deviations
    behind = np.where(rivals, (values[leader] - values) / np.sqrt(variances[leader] + variances), np.inf)
    behind[leader] = np.inf
    challenger = int(behind.argmin())
    return (leader, challenger) if behind[challenger] < np.inf else (leader,)


def _wants_repeat(stats: Stats, stages: tuple[Stage, ...]) -> bool:
    """Whether the first stage is to be played again, to find out whether results have noise."""
    again = int((stats.plays > 1).sum())
    return stages[0].arms >= MANY_ARMS and again < REPEATS


def _best(belief: Posterior, among: BoolArray) -> int:
    """Return the arm with the highest E μ^(M)_k, the lowest index among ties."""
    return int(np.where(among, belief.values, -np.inf).argmax())


def _promoted(
    belief: Posterior, stats: Stats, stages: tuple[Stage, ...], fidelities: Fidelities, left: float
) -> tuple[int, int] | None:
    """Return the play of the first later stage that is not complete; None if all are, or it does not fit."""
    for below, stage in pairwise(stages):
        reached = stats.plays[stage.fidelity :].any(axis=0)
        if int(reached.sum()) >= stage.arms:
            continue
        ready = stats.active & ~reached & stats.counts[below.fidelity :].any(axis=0)
        if not ready.any():
            return None
        best = _best(belief, ready)
        return (best, stage.fidelity) if _price(stats, fidelities, best, stage.fidelity) <= left else None
    return None


def _payable(
    pair: tuple[int, ...], options: list[int], stats: Stats, fidelities: Fidelities, left: float, *, exact: bool
) -> list[tuple[int, int]]:
    """Return the plays of the finalists at fidelities where ``left`` pays for both that have no play there.

    If there are none, those at the cheapest one. Without noise, plays at or below an earlier one are left out.
    """
    worth = [(k, m) for k in pair for m in options if not exact or not stats.plays[m:, k].any()]
    new = {m: [k for k, at in worth if at == m and stats.plays[m, k] == 0] for m in options}
    both = [(k, m) for k, m in worth if sum(_price(stats, fidelities, other, m) for other in new[m] or [k]) <= left]
    if both or fidelities.costs[options[0]] > left:  # where nothing fits, it goes on as if all did
        return both or worth
    return [(k, m) for k, m in worth if m == options[0]]


def _most_informative(
    belief: Posterior, chain: MFTopTwoMemory, plays: list[tuple[int, int]], stats: Stats, fidelities: Fidelities
) -> tuple[int, int]:
    """Return the play with the most information per cost; among ties the first."""
    best, chosen = -1.0, plays[0]
    for arm, m in plays:
        gain = belief.information_per_cost(chain.rows.index(m), arm, _price(stats, fidelities, arm, m))
        if gain > best:
            best, chosen = gain, (arm, m)
    return chosen


def _price(stats: Stats, fidelities: Fidelities, arm: int, m: int) -> float:
    """Return what the next play of an arm at a fidelity costs."""
    start = stats.start(arm, m)
    return fidelities.costs[m] if start is None else fidelities.costs[m] - fidelities.costs[start]


def _spent(stats: Stats, fidelities: Fidelities) -> float:
    """Return the cost of all plays, without what they went on from."""
    spent = total_spent(stats.plays, fidelities)
    return spent if stats.resumed is None else spent - total_spent(stats.resumed, fidelities)


def _of_seen(stats: Stats) -> Stats:
    """Return the statistics of arms with a result, with no pending plays: others tell nothing about the chain."""
    seen = stats.counts.any(axis=0)
    extra, unseen = (None if array is None else array[:, seen] for array in (stats.extra, stats.unseen))
    counts, nothing = stats.counts[:, seen], np.zeros_like(stats.pending[:, seen])
    sums, squares = stats.sums[:, seen], stats.squares[:, seen]
    return Stats(counts, sums, squares, nothing, stats.active[seen], None, extra, unseen)


def _first_means(told: Stats, rows: tuple[int, ...]) -> tuple[float, float]:
    """Return mean and variance of the arms' means at the fidelity with results of most arms, lowest among ties."""
    m = max(rows, key=lambda m: int((told.counts[m] > 0).sum()))
    seen = np.flatnonzero(told.counts[m] > 0)
    means = told.sums[m, seen] / told.counts[m, seen]
    start = total(means) / len(means)
    return start, total((means - start) * (means - start)) / len(means)


def _fewest(stats: Stats) -> int:
    """Return the active arm with the fewest plays, for asks while first results are pending."""
    return int(np.where(stats.active, stats.plays.sum(axis=0), np.iinfo(np.int64).max).argmin())
