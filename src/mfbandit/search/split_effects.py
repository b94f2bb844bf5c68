"""Comparing candidates on equal terms: what a split does to all of them is taken out before a policy looks."""

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mfbandit._internal.typing import FloatArray, IntArray
from mfbandit.core import Fidelities, Stats
from mfbandit.policies import Policy, Remembers

SHRINKING = 0.5  # the noise of one fit over that of a split, as variances
SWEEPS = 30  # of the fit; far fewer do


def split_effects(arms: IntArray, splits: IntArray, scores: FloatArray) -> FloatArray:
    r"""b_i, by how much split i is easier than others: score = a_k + b_i + noise, with b shrunk towards 0.

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
    numbers, each = np.bincount(splits), np.bincount(arms)
    effects = np.zeros(len(numbers))
    for _ in range(SWEEPS):
        values = np.bincount(arms, scores - effects[splits]) / np.maximum(each, 1)
        effects = np.bincount(splits, scores - values[arms]) / (numbers + SHRINKING)
    return effects


@dataclass(eq=False)
class Paired:
    """A policy that sees scores without what their splits did to them, and hopeless ones at a floor.

    Counts and costs are those of the experiment; its log keeps the scores as they were.

    Args:
        policy: the rule.
        floor: a score below which all are the same; None while it is not known.
    """

    policy: Policy
    floor: float | None = None
    seen: list[tuple[int, int, int, float]] = field(default_factory=list, repr=False)  # fidelity, arm, split, score

    def choose(self, stats: Stats, fidelities: Fidelities) -> tuple[int, int]:
        """The rule's choice."""
        return self.policy.choose(self.adjusted(stats), fidelities)

    def index(self, stats: Stats, fidelities: Fidelities) -> FloatArray:
        """The rule's index."""
        return self.policy.index(self.adjusted(stats), fidelities)

    def recommend(self, stats: Stats, fidelities: Fidelities) -> int:
        """The rule's recommendation."""
        return self.policy.recommend(self.adjusted(stats), fidelities)

    def remember(self, stats: Stats, fidelities: Fidelities) -> Any:  # noqa: ANN401 - whatever the rule remembers
        """What the rule makes of the results."""
        return self.policy.remember(self.adjusted(stats), fidelities) if isinstance(self.policy, Remembers) else None

    @property
    def fitted(self) -> float:
        """How many of the results the effects of splits take up: n/(n + ½) for a split that n candidates have seen.

        One of each fidelity does not count: all splits being easier is all candidates being better.
        """
        seen = Counter((m, split) for m, _, split, _ in self.seen)
        return sum(n / (n + SHRINKING) for n in seen.values()) - len({m for m, _ in seen})

    def adjusted(self, stats: Stats) -> Stats:
        """The same counts with sums of adjusted scores."""
        sums, squares = np.zeros(stats.sums.shape), np.zeros(stats.sums.shape)
        seen = self.seen[: int(stats.counts.sum())]  # in the order of telling: a log may be read again from its start
        if seen:
            fidelities, arms, splits, scores = (np.array(column) for column in zip(*seen, strict=True))
            scores = scores if self.floor is None else np.maximum(scores, self.floor)
            for m in np.unique(fidelities):
                at = fidelities == m
                fair = scores[at] - split_effects(arms[at], splits[at], scores[at])[splits[at]]
                np.add.at(sums[m], arms[at], fair)
                np.add.at(squares[m], arms[at], fair * fair)
        return replace(stats, sums=sums, squares=squares)
