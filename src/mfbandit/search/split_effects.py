"""Compare candidates on equal terms: show a policy their scores without split effects."""

from collections import Counter
from dataclasses import dataclass, field, replace

import numpy as np

from mfbandit._internal.typing import FloatArray, IntArray
from mfbandit.core import Fidelities, Stats
from mfbandit.policies import Policy, Remembers

NOISE_TO_SPLIT_VARIANCE = 0.5  # the variance of one fit's noise over that of split effects; it shrinks the effects
FIT_ITERATIONS = 30  # far fewer would do

ScoredFit = tuple[int, int, int, float]
"""A fidelity, an arm, a split and the score."""


def split_effects(arms: IntArray, splits: IntArray, scores: FloatArray) -> FloatArray:
    r"""Estimate b_i, by how much split i is easier than others: score = a_k + b_i + noise, with b shrunk towards 0.

    It minimises Σ (score − a_k − b_i)² + ½ Σ b_i². A split that one candidate alone has seen says little about its
    difficulty; one that many have seen says nearly all.

    Args:
        arms: the candidate of each score; shape (N,).
        splits: the split of each score; shape (N,).
        scores: shape (N,).

    Returns:
        Shape (largest split + 1,).

    >>> arms, splits = np.array([0, 1, 2, 3] * 2), np.repeat([0, 1], 4)
    >>> split_effects(arms, splits, np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8])).round(2).tolist()
    [-0.18, 0.18]
    """
    by_split, by_arm = np.bincount(splits), np.bincount(arms)
    effects = np.zeros(len(by_split))
    for _ in range(FIT_ITERATIONS):
        values = np.bincount(arms, scores - effects[splits]) / np.maximum(by_arm, 1)
        effects = np.bincount(splits, scores - values[arms]) / (by_split + NOISE_TO_SPLIT_VARIANCE)
    return effects


@dataclass(eq=False)
class SplitAdjustedPolicy:
    """A policy that is shown scores without split effects, and no score below a minimum.

    Counts and costs are those of the experiment. The experiment's log keeps the scores as they were.

    Args:
        policy: the rule.
        min_score: scores below it are shown as this score; None while it is not known.
        fits: all scores in the order of telling.
    """

    policy: Policy
    min_score: float | None = None
    fits: list[ScoredFit] = field(default_factory=list, repr=False)

    def choose(self, stats: Stats, fidelities: Fidelities) -> tuple[int, int]:
        """Return the rule's choice."""
        return self.policy.choose(self.adjusted(stats), fidelities)

    def index(self, stats: Stats, fidelities: Fidelities) -> FloatArray:
        """Return the rule's index."""
        return self.policy.index(self.adjusted(stats), fidelities)

    def recommend(self, stats: Stats, fidelities: Fidelities) -> int:
        """Return the rule's recommendation."""
        return self.policy.recommend(self.adjusted(stats), fidelities)

    def remember(self, stats: Stats, fidelities: Fidelities) -> object:
        """Return what the rule remembers."""
        return self.policy.remember(self.adjusted(stats), fidelities) if isinstance(self.policy, Remembers) else None

    @property
    def effective_parameters(self) -> float:
        """How many of the results the split effects take up: n/(n + ½) for a split that n candidates have seen.

        One split of each fidelity does not count: if all splits are easier, all candidates are better.
        """
        seen = Counter((m, split) for m, _, split, _ in self.fits)
        return sum(n / (n + NOISE_TO_SPLIT_VARIANCE) for n in seen.values()) - len({m for m, _ in seen})

    def adjusted(self, stats: Stats) -> Stats:
        """Return the same counts with sums of adjusted scores."""
        sums, squares = np.zeros(stats.sums.shape), np.zeros(stats.sums.shape)
        fits = self.fits[: int(stats.counts.sum())]  # a log may be read again from its start
        if fits:
            fidelities, arms, splits, scores = (np.array(column) for column in zip(*fits, strict=True))
            scores = scores if self.min_score is None else np.maximum(scores, self.min_score)
            for m in np.unique(fidelities):
                at = fidelities == m
                fair = scores[at] - split_effects(arms[at], splits[at], scores[at])[splits[at]]
                np.add.at(sums[m], arms[at], fair)
                np.add.at(squares[m], arms[at], fair * fair)
        return replace(stats, sums=sums, squares=squares)
