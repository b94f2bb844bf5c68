"""What an experiment has found at one moment, and how sure it makes one of the best arm."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from mfbandit._internal.formatting import plain
from mfbandit._internal.typing import BoolArray
from mfbandit.core import (
    Bounded,
    Claim,
    Concentration,
    Fidelities,
    KeptClaims,
    Roster,
    Stats,
    SubGaussian,
    has_evidence,
    refuting,
)
from mfbandit.experiment.confidence_answer import ESTIMATE_CAP, Confidence
from mfbandit.experiment.learned_noise import with_learned_noise
from mfbandit.experiment.posterior_claim import Belief
from mfbandit.experiment.recommendation import recommended
from mfbandit.experiment.state import State
from mfbandit.policies import HasIntervals, Policy, uses_biases

DRIFT = "Means do not change over time."
LEARNED_BY_POLICY = "noise or biases are not known, and the policy learns them"
LEARNED_NOISE = "the scale of the noise is learned from the results"
UNKNOWN_NOISE = "the noise is not known, and results are too few or too equal to learn it"
MISSING = "No result is missing because of its value."


@dataclass(frozen=True, eq=False)
class Findings:
    """All that an answer is computed from, of one moment: it can be computed while the experiment goes on.

    Args:
        policy: the rule that picks plays.
        stats: all results.
        fidelities: the fidelities.
        labels: the names of all arms.
        roster: which arms there were.
        refuted: the fidelities whose biases results have refuted.
        kept: what was computed before, to be used again.
    """

    policy: Policy
    stats: Stats
    fidelities: Fidelities
    labels: Sequence[str]
    roster: Roster
    refuted: frozenset[int]
    kept: KeptClaims

    @classmethod
    def of(cls, state: State, kept: KeptClaims) -> "Findings":
        """Take a copy of what was learned."""
        refuted = frozenset(fidelity for fidelity, _ in state.refuted)
        return cls(state.policy, state.stats.copy(), state.fidelities, tuple(state.labels), state.roster, refuted, kept)

    def best(self) -> int:
        """The arm to use if no more plays were made."""
        refuted = sorted(self.refuted) if uses_biases(self.policy) else ()
        return recommended(self.policy, self.stats, self.fidelities, refuted)

    def confidence(self, level: float) -> Confidence:
        """Say how sure it is that the best arm is the best of all active ones.

        Args:
            level: at which rivals and the possible loss are given.
        """
        best = self.best()
        known = self.fidelities.concentration is not None and has_evidence(self.fidelities.tails[-1])
        learner = self.policy if isinstance(self.policy, HasIntervals) else None
        if self.stats.active.sum() == 1:
            return self._alone(best, level)
        if not known:
            return self._by_posterior(learner, best, level) if learner else self._by_learned_noise(best, level)
        claim = self.kept.confidence(self.stats, self.fidelities, best, self.roster, self._counted(), level)
        if learner and self.fidelities.biases is None and claim.level < level:
            estimated = self._by_posterior(learner, best, level)
            return self._valid(claim, level) if estimated.kind == "withheld" else estimated
        return self._valid(claim, level)

    def _alone(self, best: int, level: float) -> Confidence:
        """The only active arm is the best one, whatever the noise."""
        return Confidence(best, self.labels[best], 1.0, 0.0, level, (), (), "valid", "", (), (), (), 1)

    def _by_posterior(self, learner: HasIntervals, best: int, level: float) -> Confidence:
        """Estimate by the policy's own intervals."""
        belief = Belief.of(best, self.stats, *learner.intervals(self.stats, self.fidelities))
        withheld = belief.withheld(self.stats, tuple(self.labels))
        if withheld:
            return self._withheld(best, level, withheld)
        rivals, could_lose = belief.rivals(level), belief.could_lose(level)
        if could_lose > 0 and not rivals[0]:
            rivals = (belief.nearest,), (could_lose,)
        probability, used = belief.probability(), range(len(self.fidelities))
        return self._estimate(best, level, probability, could_lose, rivals, LEARNED_BY_POLICY, used)

    def _by_learned_noise(self, best: int, level: float) -> Confidence:
        """Estimate by claims for a scale of the noise that is learned."""
        learned, enough = with_learned_noise(self.stats, self.fidelities)
        if not enough[-1]:
            return self._withheld(best, level, UNKNOWN_NOISE)
        sure = replace(self, fidelities=learned)
        counted = sure._counted() & enough
        claim = self.kept.confidence(self.stats, learned, best, self.roster, counted, level)
        rivals = claim.rivals, claim.could_be_ahead
        return self._estimate(best, level, claim.level, claim.could_lose, rivals, LEARNED_NOISE, claim.fidelities)

    def _estimate(
        self,
        best: int,
        level: float,
        probability: float,
        could_lose: float,
        rivals: tuple[tuple[int, ...], tuple[float, ...]],
        why: str,
        fidelities: Sequence[int],
    ) -> Confidence:
        used = tuple(fidelities)
        return Confidence(
            best=best,
            label=self.labels[best],
            level=min(probability, ESTIMATE_CAP),
            could_lose=could_lose,
            at_level=level,
            rivals=rivals[0],
            could_be_ahead=rivals[1],
            kind="estimate",
            why=why,
            assumes=(DRIFT, MISSING),
            fidelities=used,
            results=self._results(used),
            arms=int(self.stats.active.sum()),
        )

    def _valid(self, claim: Claim, level: float) -> Confidence:
        return Confidence(
            best=claim.arm,
            label=self.labels[claim.arm],
            level=claim.level,
            could_lose=claim.could_lose,
            at_level=level,
            rivals=claim.rivals,
            could_be_ahead=claim.could_be_ahead,
            kind="valid",
            why="",
            assumes=self._assumptions(claim.fidelities),
            fidelities=claim.fidelities,
            results=self._results(claim.fidelities),
            arms=int(self.stats.active.sum()),
        )

    def _withheld(self, best: int, level: float, why: str) -> Confidence:
        others = self.stats.active.copy()
        others[best] = False
        rivals = tuple(np.flatnonzero(others).tolist())
        return Confidence(
            best=best,
            label=self.labels[best],
            level=0.0,
            could_lose=math.inf,
            at_level=level,
            rivals=rivals,
            could_be_ahead=(math.inf,) * len(rivals),
            kind="withheld",
            why=why,
            assumes=(),
            fidelities=(),
            results=(),
            arms=len(rivals) + 1,
        )

    def _counted(self) -> BoolArray:
        """Which fidelities count: those of known noise and known biases that no arm's results refute; shape (M,)."""
        top = len(self.fidelities) - 1
        now = {fidelity for fidelity, *_ in refuting(self.stats, self.fidelities)}  # also if the policy uses no biases
        trusted = [
            has_evidence(tail) and m not in self.refuted | now and (m == top or self.fidelities.biases is not None)
            for m, tail in enumerate(self.fidelities.tails)
        ]
        return np.array(trusted)

    def _results(self, fidelities: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(int(self.stats.counts[m, self.stats.active].sum()) for m in fidelities)

    def _assumptions(self, counted: tuple[int, ...]) -> tuple[str, ...]:
        names, known = self.fidelities.labels, self.fidelities.biases or ()
        below = [m for m in counted if m < len(self.fidelities) - 1]
        dropped = [m for m in range(len(self.fidelities)) if m not in counted]
        return (
            *dict.fromkeys(_noise(self.fidelities.tails[m]) for m in counted),
            *(f"Means at fidelity {names[m]} lie within {plain(known[m])} of those at the highest." for m in below),
            DRIFT,
            MISSING,
            *(f"Results at fidelity {names[m]} do not count: {self._why_not(m)}." for m in dropped),
        )

    def _why_not(self, fidelity: int) -> str:
        if self.fidelities.biases is None:
            return "its bias is not known"
        if not has_evidence(self.fidelities.tails[fidelity]):
            return "no e-process is known for its noise"
        return "they refute its bias"


def _noise(tail: Concentration) -> str:
    if type(tail) is Bounded:
        return f"Rewards lie in {plain(tail.low)} to {plain(tail.high)}."
    if type(tail) is SubGaussian:
        return f"Noise is sub-Gaussian with a scale of at most {plain(tail.scale)}."
    return f"Noise is as {type(tail).__name__} says."
