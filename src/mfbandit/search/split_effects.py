"""Compare candidates on equal terms: show a policy their scores without split effects."""

from collections import Counter
from dataclasses import dataclass, field, replace

import numpy as np

from mfbandit._internal.typing import FloatArray
from mfbandit.core import Fidelities, Stats, block_effects
from mfbandit.core.blocks import NOISE_TO_BLOCK_VARIANCE
from mfbandit.policies import MFTopTwo, Policy, Remembers
from mfbandit.search.score_estimates import least_noise

PROBES = 4  # candidates whose second scores tell how much splits differ

ScoredFit = tuple[int, int, int, float]
"""A fidelity, an arm, a split and the score."""


@dataclass(eq=False)
class SplitAdjustedPolicy:
    """A policy that is shown scores without split effects, and no score below a minimum.

    Counts and costs are those of the experiment. The experiment's log keeps the scores as they were.

    All candidates have a round of plays at the highest fidelity before one of them has more: two that hardly differ do
    not take the capital. A candidate whose fit failed is played at a higher fidelity only.

    Args:
        policy: the rule.
        round_size: plays of a round, one for each split.
        test_size: samples that a score is the mean of; None if that is not known. The noise is at least that of their
            number (:func:`~mfbandit.search.score_estimates.least_noise`).
        min_score: scores below it are shown as this score; None while it is not known.
        fits: all scores in the order of telling.
        lowest: the fidelity that a candidate needs, where a lower one failed.
    """

    policy: Policy
    round_size: int | None = None
    test_size: int | None = None
    min_score: float | None = None
    fits: list[ScoredFit] = field(default_factory=list, repr=False)
    lowest: dict[int, int] = field(default_factory=dict, repr=False)
    _latest: tuple[tuple[int, float | None], FloatArray, FloatArray] | None = field(
        default=None, init=False, repr=False
    )
    _seen_with: float | None = field(default=None, init=False, repr=False)

    def choose(self, stats: Stats, fidelities: Fidelities) -> tuple[int, int]:
        """Return the rule's choice among candidates whose round is not complete."""
        known = self._in_this_round(self.adjusted(stats))
        again = self._second_look(known, fidelities)
        arm, fidelity = self.policy.choose(known, fidelities) if again is None else again
        return arm, max(fidelity, self.lowest.get(arm, 0))

    def index(self, stats: Stats, fidelities: Fidelities) -> FloatArray:
        """Return the rule's index."""
        return self.policy.index(self.adjusted(stats), fidelities)

    def recommend(self, stats: Stats, fidelities: Fidelities) -> int:
        """Return the rule's recommendation."""
        return self.policy.recommend(self.adjusted(stats), fidelities)

    def remember(self, stats: Stats, fidelities: Fidelities) -> object:
        """Return what the rule remembers; nothing from when scores were shown with another minimum."""
        if self._seen_with != self.min_score:
            self._seen_with, stats = self.min_score, replace(stats, memory=None)
        return self.policy.remember(self.adjusted(stats), fidelities) if isinstance(self.policy, Remembers) else None

    def _second_look(self, stats: Stats, fidelities: Fidelities) -> tuple[int, int] | None:
        """Return a play of the sweep on a second split, for the best few and, if splits differ much, the better half.

        Splits differ much if the scores of the best few change more, on average, from the first split to the second
        than the better half of the candidates differ on one split.
        """
        if not isinstance(self.policy, MFTopTwo):
            return None
        (m, arms), *later = self.policy.stages(fidelities, len(stats.active))
        ready = stats.active & (stats.counts[m] > 0)
        if not later or self.round_size == 1 or int(ready.sum()) < max(arms - len(self.lowest), 2 * PROBES):
            return None
        twice, half = int((stats.plays[m] > 1).sum()), int(ready.sum()) // 2
        means = np.where(ready, stats.sums[m] / np.maximum(stats.counts[m], 1), -np.inf)
        once = ready & (stats.plays[m] == 1) & ~stats.plays[m + 1 :].any(axis=0)
        wanted = twice < PROBES or (twice < half and self._splits_differ(m, np.sort(means[ready])[-half:]))
        return (int(np.where(once, means, -np.inf).argmax()), m) if wanted and once.any() else None

    def _splits_differ(self, m: int, better: FloatArray) -> bool:
        first, second = (
            {arm: s for at, arm, i, s in self.fits if at == m and i == split} for split in self._first_two(m)
        )
        changes = [abs(second[arm] - first[arm]) for arm in first.keys() & second.keys()]
        return bool(changes) and float(np.mean(changes)) > float(better.std())

    def _first_two(self, m: int) -> list[int]:
        """The splits with the most scores at a fidelity."""
        seen = Counter(split for at, _, split, _ in self.fits if at == m)
        return [split for split, _ in (seen.most_common(2) * 2)[:2]]

    def _in_this_round(self, stats: Stats) -> Stats:
        """Return the statistics with candidates inactive that have had more rounds than others."""
        if self.round_size is None or not stats.active.any():
            return stats
        rounds = stats.plays[-1] // self.round_size
        return replace(stats, active=stats.active & (rounds == rounds[stats.active].min()))

    @property
    def effective_parameters(self) -> float:
        """How many of the results the split effects take up: n/(n + ½) for a split that n candidates have seen.

        One split of each fidelity does not count: if all splits are easier, all candidates are better.
        """
        seen = Counter((m, split) for m, _, split, _ in self.fits)
        return sum(n / (n + NOISE_TO_BLOCK_VARIANCE) for n in seen.values()) - len({m for m, _ in seen})

    def adjusted(self, stats: Stats) -> Stats:
        """Return the same counts with sums of adjusted scores."""
        known = (int(stats.counts.sum()), self.min_score)  # a log may be read again from its start
        if self._latest is None or self._latest[0] != known:
            self._latest = (known, *self._sums(stats, known[0]))
        return replace(stats, sums=self._latest[1], squares=self._latest[2])

    def _sums(self, stats: Stats, results: int) -> tuple[FloatArray, FloatArray]:
        """Sums and sums of squares of the first so many scores, adjusted; both of shape (M, K)."""
        sums, squares = np.zeros(stats.sums.shape), np.zeros(stats.sums.shape)
        fits = self.fits[:results]
        if fits:
            fidelities, arms, splits, scores = (np.array(column) for column in zip(*fits, strict=True))
            scores = scores if self.min_score is None else np.maximum(scores, self.min_score)
            for m in np.unique(fidelities):
                at = fidelities == m
                one_each = np.ones(int(at.sum()))
                fair = scores[at] - block_effects(arms[at], splits[at], one_each, scores[at])[splits[at]]
                np.add.at(sums[m], arms[at], fair)
                np.add.at(squares[m], arms[at], fair * fair)
        if self.test_size is not None:
            squares += stats.freedom * least_noise(stats.told, self.test_size)[:, None]
        return sums, squares
