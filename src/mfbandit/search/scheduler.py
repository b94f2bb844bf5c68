"""The plays of a search: which candidate is fitted next, on which split, and what is known of all so far."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from mfbandit._internal.quantiles import t_quantile
from mfbandit._internal.typing import FloatArray, IntArray
from mfbandit.core import Concentration, Fidelities, Play, Stats, SubGaussian, bounds_table
from mfbandit.errors import CapitalExhausted, InvalidArgument, NoActiveArms
from mfbandit.experiment import Experiment, check_is_policy, checked_capital
from mfbandit.policies import Policy, Remembers
from mfbandit.policies.gaussian_chain import Model, Posterior
from mfbandit.search.fit_and_score import Outcome
from mfbandit.search.split_effects import Paired

ALPHA = 0.05  # searches that may end early with a bound that does not hold, by the policy's own model
MOVED = 1.25  # estimates are put to use when they have changed by this factor
FIRST_NOISE = 0.1  # of the variance among candidates: a first guess of the noise, which counts for one result
NOISE_WEIGHT = 2.0  # results that the noise of the fidelity below counts for
LEAST_NOISE = 1e-9  # of the size of the scores
LEAST_STEP = 1.01  # costs increase by this factor at least, whatever a noisy clock says
TWIN_PLAYS = 3  # in which two candidates had the same score, and none in which they had not
TOP_PLAYS = 2  # of the leader before a search may end early


@dataclass(frozen=True)
class Trial:
    """One play that was made.

    Args:
        arm: the candidate's index.
        fidelity: its index.
        split: the number of the split; the same for the i-th play of every candidate at a fidelity.
        cost: in units of capital.
        outcome: the score and times.
    """

    arm: int
    fidelity: int
    split: int
    cost: float
    outcome: Outcome


@dataclass(frozen=True, eq=False)
class Standing:
    """What is known of every candidate's score at the highest fidelity; shape (K,), in units of the score.

    Args:
        estimate: NaN where nothing is known.
        lower: −∞ where nothing is known.
        upper: infinite where nothing is known.
    """

    estimate: FloatArray
    lower: FloatArray
    upper: FloatArray


class Trials:
    """Asks an experiment for plays in rounds, and learns costs and noise on the way where they are not known.

    Args:
        policy: the rule that picks plays.
        labels: the candidates' names; K of them.
        costs: of the fidelities, relative to each other where ``seconds``.
        names: of the fidelities.
        biases: ζ, or None.
        noise: of the scores, or None to learn it.
        capital: what all plays may cost.
        seconds: whether plays cost what the clock says.
        limit: how many different splits there are at the highest fidelity, None for no end.

    >>> from mfbandit import MFBayes
    >>> trials = Trials(MFBayes(), ["a", "b"], costs=[0.25, 1], names=["1/4", "1"], capital=4)
    >>> [(play.label, split) for play, split in trials.ask(1)]
    [('a', 0), ('b', 0)]
    """

    def __init__(  # noqa: PLR0913 - one for each thing that is known
        self,
        policy: Policy,
        labels: Sequence[str],
        *,
        costs: Sequence[float],
        names: Sequence[str],
        capital: float,
        biases: Sequence[float] | None = None,
        noise: Concentration | None = None,
        seconds: bool = False,
        limit: int | None = None,
    ) -> None:
        self.seconds, self.limit, self._relative = seconds, limit, np.array(costs, dtype=np.float64)
        if seconds:  # dear, so that a policy begins at the lowest fidelity; the first fit says more
            costs = [capital * cost / costs[-1] for cost in costs]
        check_is_policy(policy)
        bare = Fidelities(costs, biases, names=names)
        self._learns_noise = noise is None and _needs_noise(policy, bare, len(labels))
        known = replace(bare, concentration=noise or SubGaussian(1.0))
        # A rule with bounds of its own is given scores as they are.
        self._paired = Paired(policy) if biases is None and isinstance(policy, Remembers) else None
        self.experiment = Experiment(self._paired or policy, arms=list(labels), fidelities=known, capital=capital)
        self._noise, self._capital = noise, capital
        self._floored = False
        self._twins: dict[int, int] = {}
        self._asked = np.zeros((len(costs), len(labels)), dtype=np.int64)
        self._over = False
        self.made: list[Trial] = []

    # A round

    def ask(self, batch: int) -> list[tuple[Play, int]]:
        """The plays of the next round with the numbers of their splits; none when the search is over.

        First looks at candidates do not wait for each other: they are in one round, however small the batch.
        """
        asked: list[tuple[Play, int]] = []
        while not self._over and (len(asked) < batch or (not self.seconds and self._at_a_first_look())):
            try:
                play = self.experiment.ask()
            except (CapitalExhausted, NoActiveArms):
                break
            asked.append((play, int(self._asked[play.fidelity, play.arm])))
            self._asked[play.fidelity, play.arm] += 1
            self._retire_used_up(play)
        return asked

    def tell(self, asked: Sequence[tuple[Play, int]], outcomes: Sequence[Outcome]) -> None:
        """Take in what came of a round; a fit without a score is a failed play, which costs the same."""
        for (play, split), outcome in zip(asked, outcomes, strict=True):
            cost = outcome.seconds if self.seconds else play.cost
            self.made.append(Trial(play.arm, play.fidelity, split, cost, outcome))
            if outcome.failed:
                self.experiment.fail(play, cost)
            else:
                if self._paired is not None:
                    self._paired.seen.append((play.fidelity, play.arm, split, outcome.score))
                self.experiment.tell(play, outcome.score, cost)
        self._retire_twins({play.arm for play, _ in asked})
        self._revise()

    def _retire_twins(self, arms: set[int]) -> None:
        """Ask no more for a candidate that never differs from another: all capital would go into comparing the two."""
        scores: dict[int, dict[tuple[int, int], float]] = {}
        for one in self.made:
            scores.setdefault(one.arm, {})[one.fidelity, one.split] = one.outcome.score
        retired = set(self.experiment.retired)
        for arm in sorted(arms - retired):
            for other in sorted(set(scores) - retired - {arm}):
                shared = scores[arm].keys() & scores[other].keys()
                # Not by small samples alone, which make trees of any depth alike.
                enough = len(shared) >= TWIN_PLAYS and any(m == len(self._asked) - 1 for m, _ in shared)
                same = enough and all(scores[arm][at] == scores[other][at] for at in shared)
                if same and len(retired) + 1 < len(self.experiment.arms):
                    self.experiment.retire_arm(max(arm, other))
                    self._twins[max(arm, other)] = min(arm, other)
                    retired.add(max(arm, other))
                    break

    def _at_a_first_look(self) -> bool:
        """Whether the policy wants to see a candidate for the first time next."""
        stats = self.experiment.stats
        untouched = stats.active & ~stats.plays.any(axis=0)
        return bool(untouched.any() and untouched[self.experiment.policy.choose(stats, self.experiment.fidelities)[0]])

    def _retire_used_up(self, play: Play) -> None:
        """Ask no more for a candidate that has seen all splits there are: another look would be the same again."""
        if self.limit is None or self._asked[-1, play.arm] < self.limit or play.arm in self.experiment.retired:
            return
        if len(self.experiment.retired) + 1 == len(self.experiment.arms):
            self._over = True
        else:
            self.experiment.retire_arm(play.arm)

    # What is learned on the way

    def _revise(self) -> None:
        """Go on with better costs and noise, where these are learned and have changed a lot, and without outliers."""
        now = self.experiment.fidelities
        tails = self._tails() if self._learns_noise else tuple(now.tails)
        better = replace(now, costs=self._costs(), concentration=tails)
        if not self._floored and not self._at_a_first_look():
            self._floored = True
            if self._paired is not None:
                self._paired.floor = floor(self._stats)
        if _moved(now, better):
            self._start_again(better)

    def _start_again(self, better: Fidelities) -> None:
        """Go on with better-known fidelities, unless the capital would not pay for a first play of a search."""
        try:
            checked_capital(self._capital, self.experiment.policy, better, Stats.empty(*self._asked.shape))
        except InvalidArgument:
            self._over = True
        else:
            self.experiment.set_fidelities(better)

    def _costs(self) -> list[float]:
        learned = learned_costs(self.made, self._relative, len(self.experiment.arms)) if self.seconds else None
        return list(self.experiment.fidelities.costs) if learned is None else learned.tolist()

    def _tails(self) -> tuple[Concentration, ...]:
        return tuple(SubGaussian(scale) for scale in noise_scales(self.experiment.stats).tolist())

    @property
    def fidelities(self) -> Fidelities:
        """The fidelities as they are known now: with costs and noise as given, or else those of the results."""
        return replace(self.experiment.fidelities, costs=self._costs(), concentration=self._noise or self._tails())

    # How things stand

    def best(self) -> int:
        """The candidate that the policy recommends, those with no new split among them."""
        return int(self.experiment.policy.recommend(self._stats, self.experiment.fidelities))

    def standing(self) -> Standing:
        """Estimates and bounds of all candidates: by the policy's model if it has one, else by biases."""
        stats, policy = self._stats, self._policy
        if self._paired is not None:
            stats = self._paired.adjusted(stats)
        if isinstance(stats.memory, Model):
            used = getattr(stats.memory, "rows", None) or policy.used(self.experiment.fidelities)  # type: ignore[attr-defined]
            return _by_chain(stats.memory, stats, list(used), doubt(stats, self._fitted))
        return _by_bounds(stats, self.fidelities, getattr(policy, "rho", 2.0))

    def interval(self, arm: int) -> tuple[float, float]:
        """Bounds on a candidate's own expected score, splits being as different from each other as they are.

        Comparing candidates on the same splits needs less: :meth:`standing`.
        """
        standing = self.standing()
        low, middle, high = (float(one[arm]) for one in (standing.lower, standing.estimate, standing.upper))
        if self._paired is None:
            return low, high
        results = self._results(-math.inf if self._paired.floor is None else self._paired.floor)
        plays = max(1, int(results.counts[-1, arm]))
        luck = doubt(results) * float(noise_scales(results)[-1]) / math.sqrt(plays)
        return middle - math.hypot(middle - low, luck), middle + math.hypot(high - middle, luck)

    def decided(self) -> bool:
        """Whether the best candidate's lower bound is above the upper bounds of all others that take part."""
        stats = self._stats
        if not stats.counts[-1, stats.active].any():
            return False
        best, standing = self.best(), self.standing()
        others = stats.active.copy()
        others[best] = False
        enough = min(TOP_PLAYS, self.limit or TOP_PLAYS)
        clear = standing.lower[best] > standing.upper[others].max(initial=-np.inf)
        return bool(stats.counts[-1, best] >= enough and clear)

    @property
    def _policy(self) -> Policy:
        return self.experiment.policy if self._paired is None else self._paired.policy

    @property
    def _fitted(self) -> float:
        return 0.0 if self._paired is None else self._paired.fitted

    @property
    def results(self) -> Stats:
        """The scores as they were."""
        return self._results(-math.inf)

    def _results(self, least: float) -> Stats:
        """The scores, none below ``least``."""
        stats = Stats.empty(*self._asked.shape)
        for trial in self.made:
            if not trial.outcome.failed:
                at, score = (trial.fidelity, trial.arm), max(trial.outcome.score, least)
                stats.counts[at] += 1
                stats.sums[at] += score
                stats.squares[at] += score**2
        return stats

    @property
    def _stats(self) -> Stats:
        stats = self.experiment.stats
        active = np.ones_like(stats.active)
        # What a twin has seen since speaks for both, and one with fewer plays is only more likely to have been lucky.
        aside = self.experiment.set_aside
        active[[*aside, *(arm for arm, other in self._twins.items() if other not in aside)]] = False
        return replace(stats.told, active=active)


def doubt(stats: Stats, fitted: float = 0.0) -> float:
    """How many deviations bounds are away from estimates.

    A model takes its noise for known. That comes from a few second looks and a guess that counts for one, and some of
    the looks went into the effects of splits: two candidates with three plays differ by many of its deviations.

    Args:
        stats: all results.
        fitted: how many of them the effects of splits take up.

    >>> stats = Stats.empty(fidelities=1, arms=2)
    >>> for plays in (2, 5, 100):
    ...     stats.counts[:] = plays
    ...     print(round(doubt(stats, fitted=0.8 * plays - 1), 2))
    18.6
    3.45
    2.56
    """
    looks = float(np.maximum(stats.counts - 1, 0).sum())
    freedom = max(1.0, looks - fitted)
    quantile = t_quantile(1 - ALPHA / max(2, stats.counts.shape[1]), int(freedom))
    return quantile * math.sqrt((looks + 1) / freedom)


def _by_chain(chain: Model, stats: Stats, rows: list[int], doubt: float) -> Standing:
    belief = Posterior(chain, stats, rows)
    half = doubt * belief.deviations
    seen = stats.counts.any(axis=0)
    return Standing(
        np.where(seen, belief.values, np.nan),
        np.where(seen, belief.values - half, -np.inf),
        np.where(seen, belief.values + half, np.inf),
    )


def _by_bounds(stats: Stats, fidelities: Fidelities, rho: float) -> Standing:
    table = bounds_table(stats, fidelities, rho, [""] * len(stats.active))
    # The mean that the safest bound comes from; where no bound is known, the one nearest to the top.
    height = np.where(stats.counts > 0, np.arange(len(stats.counts))[:, None], -1).argmax(axis=0)
    bounded = np.isfinite(table.lower).any(axis=0)
    rows = np.where(bounded, table.lower.argmax(axis=0), height)
    return Standing(
        table.means[rows, np.arange(len(rows))],
        table.lower.max(axis=0),
        table.upper.min(axis=0),
    )


def _needs_noise(policy: Policy, bare: Fidelities, arms: int) -> bool:
    if bare.biases is None and len(bare) > 1:
        policy.choose(Stats.empty(len(bare), arms), replace(bare, concentration=SubGaussian(1.0)))  # or says what lacks
    try:
        policy.choose(Stats.empty(len(bare), arms), bare)
    except ValueError:
        return True
    return False


def _moved(now: Fidelities, better: Fidelities) -> bool:
    old = (*now.costs, *(getattr(tail, "scale", 1.0) for tail in now.tails))
    new = (*better.costs, *(getattr(tail, "scale", 1.0) for tail in better.tails))
    return any(max(a / b, b / a) > MOVED for a, b in zip(old, new, strict=True))


def floor(stats: Stats) -> float:
    """The score below which a candidate is hopeless: three widths below the median of the first looks.

    R² on a handful of samples can be −1000, and one such candidate would make all others look the same. A width is the
    distance from the median to the best or to the lower quartile, or a tenth of the median, whichever is largest:
    scores of ordinary candidates on a bad split must stay above the floor, also where most candidates are equally good.

    >>> stats = Stats.empty(fidelities=1, arms=5)
    >>> stats.counts[:], stats.sums[:] = 1, [[-1000.0, 0.2, 0.25, 0.4, 0.5]]
    >>> floor(stats)
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


def noise_scales(stats: Stats) -> FloatArray:
    """σ_m of the scores, from how they differ between splits; shape (M,).

    It is pooled over candidates. Until there are second looks, the spread among candidates gives a guess; and each
    fidelity begins at the noise of the one below, which counts for two results.

    >>> stats = Stats.empty(fidelities=1, arms=1)
    >>> stats.counts[0, 0], stats.sums[0, 0], stats.squares[0, 0] = 2, 0.4, 0.1  # 0.1 and 0.3
    >>> noise_scales(stats).round(4).tolist()
    [0.1]
    """
    size = math.sqrt(float(stats.squares.sum()) / max(1, int(stats.counts.sum()))) or 1.0
    played = np.flatnonzero(stats.counts.any(axis=1))
    if not len(played):
        return np.ones(len(stats.counts))
    first = int(played[0])
    counts, sums = stats.counts[first], stats.sums[first]
    before, weight = FIRST_NOISE * float((sums[counts > 0] / counts[counts > 0]).var()), 1.0
    scales = np.empty(len(stats.counts))
    for m in range(first, len(scales)):
        within, freedom = _within(stats, m)
        before = (weight * before + within) / (weight + freedom)
        scales[m], weight = max(math.sqrt(before), LEAST_NOISE * size), NOISE_WEIGHT
    scales[:first] = scales[first]
    return scales


def _within(stats: Stats, m: int) -> tuple[float, float]:
    """The sum of squares around the means of candidates at a fidelity, and its degrees of freedom."""
    seen = stats.counts[m] > 0
    counts, sums = stats.counts[m, seen], stats.sums[m, seen]
    return float(np.maximum(stats.squares[m, seen] - sums * sums / counts, 0.0).sum()), float((counts - 1).sum())


def learned_costs(made: Sequence[Trial], relative: FloatArray, arms: int) -> FloatArray | None:
    """Seconds of an average play at each fidelity, shape (M,); None before the first result.

    A fidelity costs what it took those candidates that were tried there and where most were tried; one where none was
    costs in proportion to its samples.

    >>> def trial(arm: int, fidelity: int, seconds: float) -> Trial:
    ...     return Trial(arm, fidelity, 0, seconds, Outcome(0.5, seconds))
    >>> made = [trial(0, 0, 1.0), trial(1, 0, 3.0), trial(1, 1, 6.0)]
    >>> learned_costs(made, np.array([0.1, 0.5, 1.0]), arms=2).tolist()
    [2.0, 4.0, 20.0]
    """
    times, counts = _clocked(made, len(relative), arms)
    if not counts.any():
        return None
    base = int((counts > 0).sum(axis=1).argmax())
    work = relative / relative[base]
    for m in range(len(relative)):
        both = (counts[m] > 0) & (counts[base] > 0)
        if both.any():
            low, high = (times[i, both] / counts[i, both] for i in (base, m))
            work[m] = high.sum() / low.sum()
    seen = counts.any(axis=0)
    each = times[:, seen].sum(axis=0) / (counts[:, seen] * work[:, None]).sum(axis=0)
    costs: FloatArray = float(each.mean()) * work
    for m in range(1, len(costs)):
        costs[m] = max(costs[m], LEAST_STEP * costs[m - 1])
    return costs


def _clocked(made: Sequence[Trial], fidelities: int, arms: int) -> tuple[FloatArray, IntArray]:
    times, counts = np.zeros((fidelities, arms)), np.zeros((fidelities, arms), dtype=np.int64)
    for trial in made:
        if not trial.outcome.failed:
            times[trial.fidelity, trial.arm] += max(trial.outcome.seconds, 1e-9)
            counts[trial.fidelity, trial.arm] += 1
    return times, counts
