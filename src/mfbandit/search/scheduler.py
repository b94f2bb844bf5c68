"""The scheduler of a search: which candidate is fitted next, on which split, and what is known of all so far."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from mfbandit.core import Concentration, Fidelities, Play, Stats, SubGaussian
from mfbandit.errors import CapitalExhausted, ExperimentDecided, InvalidArgument, NoActiveArms
from mfbandit.experiment import Confidence, Experiment, check_is_policy, checked_capital
from mfbandit.policies import Decides, MFBayes, Policy, Remembers
from mfbandit.policies.gaussian_chain import GaussianChain
from mfbandit.search.chains import Chains
from mfbandit.search.fit_and_score import FitResult, Trial
from mfbandit.search.learned_fidelities import learned_costs, needs_noise, needs_revision, noise_scales
from mfbandit.search.score_estimates import (
    ScoreEstimates,
    bound_deviations,
    estimates_by_bounds,
    estimates_by_model,
    least_noise,
    min_useful_score,
    split_error,
    still_unknown,
)
from mfbandit.search.search_confidence import confidence_of_search
from mfbandit.search.split_effects import SplitAdjustedPolicy

DUPLICATE_PLAYS = 3  # with equal scores on the same splits, from which two candidates count as the same
DUPLICATE_ROWS = 300  # test samples of these plays: two that differ on 1 of 100 do so on one of them, at 95 %
TOP_PLAYS_TO_END = 5  # of the best candidate at the highest fidelity, before a search may end early
TIE = 1e-9  # of the spread of estimates: a difference that is rounding
EQUAL_SCORES_TIE = 0.01  # the same between candidates with equal scores: one that comes of the number of their plays


@dataclass(frozen=True)
class PlannedSplits:
    """What a scheduler knows of the splits that plays are made on.

    Args:
        number: of the split that a candidate's i-th play at a fidelity is on.
        max_splits: how many different ones there are at the highest fidelity, None for no end.
        round_size: how many of them make up a round, such as five folds; None for no rounds.
        test_size: the fewest samples that a score is the mean of; None if that is not known.
        cost: of a play at a fidelity on a split, in units of capital; None for that of the fidelity.
    """

    number: Callable[[int], int] = int
    max_splits: int | None = None
    round_size: int | None = None
    test_size: int | None = None
    cost: Callable[[int, int], float] | None = None


class SearchScheduler:
    """Asks an experiment for plays in rounds, and learns costs and noise on the way where they are not known.

    Args:
        policy: the rule that picks plays.
        labels: the candidates' names; K of them.
        fidelities: with names, and biases if they are known. Costs are relative to each other where ``seconds``.
        capital: what all plays may cost.
        noise: of the scores, or None to learn it.
        seconds: whether plays cost what the clock says.
        splits: where plays are made; None for as many splits as are wanted, all of one size.
        order: the position of each candidate in the user's list; ties go to the first. None for their order here.

    >>> from mfbandit import MFBayes
    >>> scheduler = SearchScheduler(MFBayes(), ["a", "b"], Fidelities([0.25, 1]), capital=4)
    >>> [(play.label, split) for play, split in scheduler.ask(1)]
    [('a', 0), ('b', 0)]
    """

    def __init__(
        self,
        policy: Policy,
        labels: Sequence[str],
        fidelities: Fidelities,
        *,
        capital: float,
        noise: Concentration | None = None,
        seconds: bool = False,
        splits: PlannedSplits | None = None,
        order: Sequence[int] | None = None,
    ) -> None:
        self.seconds, self._splits = seconds, splits or PlannedSplits()
        self._order = list(order or range(len(labels)))
        self._relative = np.array(fidelities.costs, dtype=np.float64)
        if seconds:  # high, so that a policy begins at the lowest fidelity; the first fit says more
            top = fidelities.costs[-1]
            fidelities = replace(fidelities, costs=[capital * cost / top for cost in fidelities.costs])
        check_is_policy(policy)
        self._learns_noise = noise is None and needs_noise(policy, fidelities, len(labels))
        known = replace(fidelities, concentration=noise or (SubGaussian(1.0) if self._learns_noise else None))
        # A policy with bounds of its own is given scores as they are.
        unbiased = fidelities.biases is None or len(fidelities) == 1
        adjusts = unbiased and isinstance(policy, Remembers) and not isinstance(policy, Decides)
        rounds, tested = self._splits.round_size, self._splits.test_size
        self._adjusted = SplitAdjustedPolicy(policy, rounds, tested) if adjusts else None
        self.experiment = Experiment(self._adjusted or policy, arms=list(labels), fidelities=known, capital=capital)
        if isinstance(policy, Decides):
            self.experiment.set_stop(None)  # retired candidates take part here: decided() knows of them
        self._noise, self._capital = noise, capital
        self._first_round_over = False
        self._duplicates: dict[int, int] = {}  # the candidate that is kept, by the one that is retired
        self._asked = np.zeros((len(fidelities), len(labels)), dtype=np.int64)
        self._chains = Chains() if fidelities.resume else None
        self._over = False
        self.trials: list[Trial] = []

    # A round

    def ask(self, batch: int) -> list[tuple[Play, int]]:
        """Return the plays of the next round with the numbers of their splits; none when the search is over.

        First plays of candidates do not wait for each other: they are in one round, however small the batch.
        """
        asked: list[tuple[Play, int]] = []
        while not self._over and (len(asked) < batch or (not self.seconds and self._wants_untried_candidate())):
            try:
                play = self.experiment.ask()
            except (CapitalExhausted, ExperimentDecided, NoActiveArms):
                break
            if self.seconds and self._would_end_too_late(play):
                self.experiment.fail(play)
                self._leave_out(play.arm)
                continue
            asked.append((play, self._split(play)))
            self._asked[play.fidelity, play.arm] += 1
            self._retire_if_all_splits_seen(play)
        return asked

    def _split(self, play: Play) -> int:
        """The number of a play's split: that of the training that it goes on from, or a new one."""
        if self._chains is not None:
            return self._chains.split(play, self._splits.number)
        return self._splits.number(int(self._asked[play.fidelity, play.arm]))

    def _would_end_too_late(self, play: Play) -> bool:
        """Whether the capital in seconds would be spent before the play ends, by the candidate's own fits so far."""
        own = [one for one in self.trials if one.arm == play.arm]
        if not own:
            return False
        costs = [0.0, *self.experiment.fidelities.costs]  # the first is that of no training
        done = sum(costs[one.fidelity + 1] - costs[_place(one.resumed_from)] for one in own)
        further = costs[play.fidelity + 1] - costs[_place(play.resume_from)]
        left = self._capital - self.experiment.spent - (self.experiment.reserved - play.cost)
        return sum(one.cost for one in own) / done * further > left

    def tell(self, asked: Sequence[tuple[Play, int]], results: Sequence[FitResult]) -> None:
        """Take in the results of a round; a fit without a score is a failed play, which costs the same."""
        for (play, split), result in zip(asked, results, strict=True):
            cost = result.seconds if self.seconds else self._cost(play, split)
            self.trials.append(Trial(play.arm, play.fidelity, split, cost, result, play.resume_from))
            if self._chains is not None:
                self._chains.told(play, split, failed=result.failed)
            if result.failed:
                self._lift(play)
                self.experiment.fail(play, cost)
            else:
                if self._adjusted is not None:
                    self._adjusted.fits.append((play.fidelity, play.arm, split, result.score))
                self.experiment.tell(play, result.score, cost)
        self._retire_duplicates({play.arm for play, _ in asked})
        self._revise()

    def _cost(self, play: Play, split: int) -> float:
        """What a play costs: the samples that it is fitted on, and not more than was reserved for it."""
        cost = self._splits.cost
        if cost is None:
            return play.cost
        start = 0.0 if play.resume_from is None else cost(play.resume_from, split)
        return min(play.cost, cost(play.fidelity, split) - start)

    def _lift(self, play: Play) -> None:
        """Try a candidate whose fit failed one fidelity higher before it is dropped."""
        if self._adjusted is not None:
            above = min(play.fidelity + 1, len(self._asked) - 1)
            self._adjusted.lowest[play.arm] = max(above, self._adjusted.lowest.get(play.arm, 0))

    def _wants_untried_candidate(self) -> bool:
        """Whether the policy's next play is the first one of a candidate."""
        stats = self.experiment.stats
        untouched = stats.active & ~stats.plays.any(axis=0)
        return bool(untouched.any() and untouched[self.experiment.policy.choose(stats, self.experiment.fidelities)[0]])

    def _retire_if_all_splits_seen(self, play: Play) -> None:
        """Retire a candidate that has seen all splits there are: another play would be the same again."""
        if self._splits.max_splits is not None and self._asked[-1, play.arm] >= self._splits.max_splits:
            self._leave_out(play.arm)

    def _leave_out(self, arm: int) -> None:
        """Ask for no more plays of a candidate; without the last one the search is over."""
        if arm in self.experiment.retired:
            return
        if len(self.experiment.retired) + 1 == len(self.experiment.arms):
            self._over = True
        else:
            self.experiment.retire_arm(arm)

    def _retire_duplicates(self, arms: set[int]) -> None:
        """Retire candidates that never differ from another: all capital would go into comparing the two."""
        scores: dict[int, dict[tuple[int, int], float]] = {}
        tried = set(np.flatnonzero(self._asked[-1] * (self._asked.sum(axis=0) >= DUPLICATE_PLAYS)).tolist())
        for trial in self.trials:
            if trial.arm in tried:
                scores.setdefault(trial.arm, {})[trial.fidelity, trial.split] = trial.outcome.score
        retired = set(self.experiment.retired)
        for arm in sorted(arms & set(scores) - retired):
            others = sorted(set(scores) - retired - {arm})
            same = next((other for other in others if self._are_duplicates(scores[arm], scores[other])), None)
            if same is not None and len(retired) + 1 < len(self.experiment.arms):
                kept, dropped = sorted((arm, same), key=self._order.__getitem__)
                self.experiment.retire_arm(dropped)
                self._duplicates[dropped] = kept
                retired.add(dropped)

    def _are_duplicates(self, one: dict[tuple[int, int], float], other: dict[tuple[int, int], float]) -> bool:
        shared = one.keys() & other.keys()
        # Small samples alone do not tell: they make trees of any depth alike. Nor do scores of few test samples.
        rows = DUPLICATE_ROWS if self._splits.test_size is None else len(shared) * self._splits.test_size
        enough = len(shared) >= DUPLICATE_PLAYS and rows >= DUPLICATE_ROWS
        at_top = any(m == len(self._asked) - 1 for m, _ in shared)
        return enough and at_top and all(one[at] == other[at] for at in shared)

    # What is learned on the way

    def _revise(self) -> None:
        """Use learned costs and noise where they have changed a lot; limit outliers once all have a first result."""
        used = self.experiment.fidelities
        learned = replace(used, costs=self._learned_costs())
        if self._learns_noise:
            learned = replace(learned, concentration=self._learned_tails())
        if not self._first_round_over and not self._wants_untried_candidate():
            self._first_round_over = True
            if self._adjusted is not None:
                self._adjusted.min_score = min_useful_score(self._stats, self._splits.test_size)
        if needs_revision(used, learned):
            self._set_fidelities(learned)

    def _set_fidelities(self, learned: Fidelities) -> None:
        """Go on with better-known fidelities, or end if the capital would not have paid for a first play."""
        try:
            checked_capital(self._capital, self.experiment.policy, learned, Stats.empty(*self._asked.shape))
        except InvalidArgument:
            self._over = True
        else:
            self.experiment.set_fidelities(learned)

    def _learned_costs(self) -> list[float]:
        learned = learned_costs(self.trials, self._relative, len(self.experiment.arms)) if self.seconds else None
        return list(self.experiment.fidelities.costs) if learned is None else learned.tolist()

    def _learned_tails(self) -> tuple[Concentration, ...]:
        return tuple(SubGaussian(scale) for scale in noise_scales(self.experiment.stats).tolist())

    @property
    def fidelities(self) -> Fidelities:
        """The fidelities with costs and noise as given, or else as learned by now."""
        return replace(
            self.experiment.fidelities,
            costs=self._learned_costs(),
            concentration=self._noise or self._learned_tails(),
        )

    # What is known of the candidates

    def best(self) -> int:
        """Return the candidate that the policy recommends, also among those that have seen all splits.

        Of candidates that are as good, it is the first one listed. So is one with the same score in all plays of the
        best, if its estimate is only a little lower.
        """
        stats, policy = self._stats, self.experiment.policy
        best = int(policy.recommend(stats, self.experiment.fidelities))
        if self._adjusted is None:
            return best
        values = policy.index(stats, self.experiment.fidelities)
        known = stats.active & np.isfinite(values)
        spread = float(np.ptp(values[known]))
        as_good = known & (values >= values[best] - TIE * spread)
        nearly = np.flatnonzero(known & (values >= values[best] - EQUAL_SCORES_TIE * spread)).tolist()
        tied = [best, *np.flatnonzero(as_good).tolist(), *self._with_scores_of(best, nearly)]
        return min(tied, key=self._order.__getitem__)

    def _with_scores_of(self, arm: int, others: list[int]) -> list[int]:
        """Return which of the others have made all plays of a candidate, with equal scores."""
        if others == [arm]:
            return []
        scores: dict[int, dict[tuple[int, int], float]] = {one: {} for one in others}
        for trial in self.trials:
            if trial.arm in scores and not trial.outcome.failed:
                scores[trial.arm][trial.fidelity, trial.split] = trial.outcome.score
        return [one for one in others if scores[arm].items() <= scores[one].items()]

    def failures(self) -> list[str]:
        """Say of each candidate with failed fits at which fidelities, why, and whether it was dropped."""
        told, names = [], self.experiment.fidelities.labels
        failures = [one for one in self.trials if one.outcome.error is not None]
        for arm in sorted({one.arm for one in failures}, key=self._order.__getitem__):
            failed = [one for one in failures if one.arm == arm]
            where = ", ".join(dict.fromkeys(names[one.fidelity] for one in failed))
            what = "was dropped: it failed" if arm in self.experiment.set_aside else "failed"
            told.append(f"candidate {self.experiment.arms[arm]!r} {what} at {where}, with {failed[-1].outcome.reason}")
        return told

    def states(self) -> list[str]:
        """Return what became of each candidate, in a word or two; empty for one that took part to the end."""
        experiment, tried = self.experiment, self._asked.sum(axis=0).tolist()
        states = ["" if plays else "not tried" for plays in tried]
        for arm in experiment.retired:
            states[arm] = "all splits seen"
        for arm, kept in self._duplicates.items():
            states[arm] = f"same as {experiment.arms[kept]}"
        for arm in experiment.set_aside:
            states[arm] = "failed"
        return states

    def estimates(self) -> ScoreEstimates:
        """Return estimates and bounds of all candidates: by the policy's model if it has one, else by biases."""
        stats = self._stats if self._adjusted is None else self._adjusted.adjusted(self._stats)
        policy = self.experiment.policy if self._adjusted is None else self._adjusted.policy
        if not isinstance(stats.memory, GaussianChain):
            return estimates_by_bounds(stats, self.fidelities, getattr(policy, "rho", 2.0))
        rows = _linked_fidelities(stats.memory, policy, self.experiment.fidelities)
        fitted = 0.0 if self._adjusted is None else self._adjusted.effective_parameters
        model = stats.memory
        if self._splits.test_size is not None:
            least = least_noise(stats, self._splits.test_size)[rows]
            model = replace(model, noise=np.maximum(model.noise, least))
        return estimates_by_model(model, stats, rows, bound_deviations(stats, fitted))

    def confidence(self, level: float) -> Confidence:
        """Return how sure it is that no other candidate is better than the best one.

        Args:
            level: at which rivals and the possible loss are given.
        """
        return confidence_of_search(self.experiment, self._stats, self.best(), noise=self._noise, level=level)

    def interval(self, arm: int) -> tuple[float, float]:
        """Return bounds on a candidate's own expected score, the differences between splits included.

        It is the expected score of a split of these data. Comparing candidates on the same splits needs other bounds:
        :meth:`estimates`.
        """
        known = self.estimates()
        low, middle, high = (float(values[arm]) for values in (known.lower, known.estimate, known.upper))
        if self._adjusted is None:
            return low, high
        stats, fitted = self._stats, self._adjusted.effective_parameters
        alone = bound_deviations(stats, fitted, bounds=2) / bound_deviations(stats, fitted)
        own = alone * math.sqrt(still_unknown(int(stats.counts[-1, arm]), self._splits.round_size))
        results = self._results(-math.inf if self._adjusted.min_score is None else self._adjusted.min_score)
        seen = [len({one.split for one in self.trials if one.fidelity == m}) for m in range(len(self._asked))]
        paired = float(noise_scales(self._adjusted.adjusted(stats))[-1])
        error = split_error(results, seen, self._splits.round_size, self._splits.test_size, paired)
        return middle - math.hypot(own * (middle - low), error), middle + math.hypot(own * (high - middle), error)

    def decided(self) -> bool:
        """Return whether the best candidate is clear: by the policy's own rule, or by bounds.

        By bounds, its lower one is above the upper ones of all others that take part. The rule of a policy that decides
        is about all candidates as well, also those that have seen all splits.
        """
        stats, policy = self._stats, self.experiment.policy
        if isinstance(policy, Decides):
            return (not self._learns_noise or self._is_tried(stats, self.best())) and (
                policy.decision(stats, self.experiment.fidelities) is not None
            )
        if not stats.counts[-1, stats.active].any():
            return False
        best, known = self.best(), self.estimates()
        others = stats.active.copy()
        others[best] = False
        clear = known.lower[best] > known.upper[others].max(initial=-np.inf)
        return bool(self._is_tried(stats, best) and clear)

    def _is_tried(self, stats: Stats, best: int) -> bool:
        """Whether the best candidate has so many plays at the highest fidelity that the search may end early."""
        return bool(stats.counts[-1, best] >= min(TOP_PLAYS_TO_END, self._splits.max_splits or TOP_PLAYS_TO_END))

    @property
    def results(self) -> Stats:
        """Counts and sums of the scores as they were."""
        return self._results(-math.inf)

    def _results(self, min_score: float) -> Stats:
        """The same with no score below ``min_score``."""
        stats = Stats.empty(*self._asked.shape)
        for trial in self.trials:
            if not trial.outcome.failed:
                at, score = (trial.fidelity, trial.arm), max(trial.outcome.score, min_score)
                stats.counts[at] += 1
                stats.sums[at] += score
                stats.squares[at] += score**2
        return stats

    @property
    def _stats(self) -> Stats:
        """What can be recommended by: retired candidates take part, duplicates and those set aside do not."""
        stats, set_aside = self.experiment.stats, self.experiment.set_aside
        active = np.ones_like(stats.active)
        # Later results of the one that is kept hold for both; the other with fewer plays is only more likely lucky.
        dropped = (arm for arm, kept in self._duplicates.items() if kept not in set_aside)
        active[[*set_aside, *dropped]] = False
        return replace(stats.told, active=active)


def _place(start: int | None) -> int:
    return 0 if start is None else start + 1


def _linked_fidelities(model: GaussianChain, policy: Policy, fidelities: Fidelities) -> list[int]:
    """The fidelities that a policy's model links."""
    if isinstance(policy, MFBayes):
        return policy.used(fidelities)
    return list(getattr(model, "rows", range(len(fidelities))))
