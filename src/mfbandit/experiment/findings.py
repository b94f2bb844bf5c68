"""What an experiment has found at one moment, and how sure it makes one of the best arm."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from mfbandit._internal.formatting import plain
from mfbandit._internal.limits import MAX_ARMS_NAMED
from mfbandit._internal.typing import BoolArray, FloatArray, IntArray
from mfbandit.core import (
    LEVEL,
    Claim,
    Concentration,
    Fidelities,
    KeptClaims,
    Roster,
    Stats,
    SubGaussian,
    difference,
    has_evidence,
    has_range,
    log_price,
    mean_intervals,
    refuting,
)
from mfbandit.experiment.block_sums import BlockCells
from mfbandit.experiment.confidence_answer import ESTIMATE_CAP, Confidence, Kind
from mfbandit.experiment.difference_answer import Difference
from mfbandit.experiment.drift_answer import without_drifted
from mfbandit.experiment.headline import Headline, conflicting, headline
from mfbandit.experiment.learned_noise import with_learned_noise
from mfbandit.experiment.memory import HalfLife
from mfbandit.experiment.posterior_claim import Belief
from mfbandit.experiment.recommendation import recommended
from mfbandit.experiment.state import State
from mfbandit.policies import HasIntervals, Policy, uses_biases

DRIFT = "Means do not change over time."
LEARNED_BY_POLICY = "noise or biases are not known, and the policy learns them"
LEARNED_NOISE = "the scale of the noise is learned from the results"
UNKNOWN_NOISE = "the noise is not known, and results are too few or too equal to learn it"
CHOSEN_NOISE = "The noise at fidelity {}, told anew after results came in, was not chosen by looking at them."
FADING = "old results fade, as means may change"
BLOCKED = "what blocks do to all arms is learned from the results"
ALIKE = "A block does the same to all arms."
MOST_LOOKED_AT = 200  # arms, one by one
MISSING = "No result is missing because of its value."


@dataclass(frozen=True, eq=False)
class ArmMeans:
    """Where the means of some arms lie at the highest fidelity; arrays of shape (A,).

    Args:
        low: the lower ends; −∞ where nothing is known.
        high: the upper ends; below the lower one where fidelities contradict each other.
        kind: "valid" at any time, each by itself; an "estimate" by the policy or learned noise; or "withheld".
    """

    low: FloatArray
    high: FloatArray
    kind: Kind


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
        noise_reset: the fidelities whose noise was told anew when there were results.
        drifted: the means that have changed, by fidelity and arm.
        kept: what was computed before, to be used again.
        memory: how long results count, where they fade; else None.
        blocks: results by block, where what blocks do to all arms is taken out; else None.
    """

    policy: Policy
    stats: Stats
    fidelities: Fidelities
    labels: Sequence[str]
    roster: Roster
    refuted: frozenset[int]
    noise_reset: frozenset[int]
    drifted: frozenset[tuple[int, int]]
    kept: KeptClaims
    memory: HalfLife | None = None
    blocks: BlockCells | None = None

    @classmethod
    def of(cls, state: State, kept: KeptClaims) -> "Findings":
        """Take a copy of what was learned."""
        refuted = frozenset(fidelity for fidelity, _ in state.refuted)
        return cls(
            policy=state.policy,
            stats=state.stats.copy(),
            fidelities=state.fidelities,
            labels=tuple(state.labels),
            roster=state.roster,
            refuted=refuted,
            noise_reset=frozenset(state.noise_reset),
            drifted=frozenset(state.stale),
            memory=state.fading.memory if state.fading is not None and state.fades else None,
            blocks=state.block_cells(),
            kept=kept,
        )

    def best(self) -> int:
        """The arm to use if no more plays were made."""
        return recommended(self.policy, self.stats, self.fidelities, self._refuted_that_count())

    def headline(self) -> Headline:
        """The best arm, whether that is in doubt, and which arm comes next."""
        return headline(self.policy, self.stats, self.fidelities, self._refuted_that_count(), self.drifted)

    def _refuted_that_count(self) -> Sequence[int]:
        return sorted(self.refuted) if uses_biases(self.policy) else ()

    def confidence(self, level: float) -> Confidence:
        """Say how sure it is that the best arm is the best of all active ones.

        Args:
            level: at which rivals and the possible loss are given.
        """
        best = self.best()
        if self.blocks is not None and self.blocks.too_many and self.stats.active.sum() > 1:
            return self._withheld(best, level, self.blocks.too_many)
        found = self._compared_with(best)._confidence(best, level)
        if self._proved or found.kind == "withheld" or found.arms == 1:
            return found
        known = found.assumes if found.kind == "valid" else (DRIFT, MISSING)
        surest, why = min(found.level, ESTIMATE_CAP), self._no_proof(found.why)
        used = self._results(found.fidelities)
        return replace(found, kind="estimate", why=why, level=surest, assumes=self._less_assumed(known), results=used)

    @property
    def bias_stats(self) -> Stats:
        """What the test of the biases looks at."""
        return self.stats if self.blocks is None else self.blocks.fidelities_compared(self.stats)

    @property
    def _proved(self) -> bool:
        """Whether what is said can be proved, as far as blocks and memory go."""
        return self.memory is None and self.blocks is None

    def _no_proof(self, why: str) -> str:
        memory, blocks = FADING * (self.memory is not None), BLOCKED * (self.blocks is not None)
        return "; ".join(filter(None, (why, memory, blocks)))

    def _less_assumed(self, known: Sequence[str]) -> tuple[str, ...]:
        blocks = () if self.blocks is None else (ALIKE,)
        return (*(self._fading if one == DRIFT and self.memory is not None else one for one in known), *blocks)

    @property
    def _fading(self) -> str:
        return f"Means change little within the half-life of {'' if self.memory is None else self.memory.words}."

    def _compared_with(self, arm: int) -> "Findings":
        """Count fewer observations of arms that were seen in other blocks than the one they are compared with."""
        if self.blocks is None:
            return self
        known = self.fidelities.concentration is not None
        unfit = frozenset(np.flatnonzero(~self._counted()).tolist()) if known else frozenset()
        compared = self.blocks.compared_with(self.stats, arm)
        return replace(self, stats=compared, refuted=self.refuted | unfit, blocks=None)

    def _confidence(self, best: int, level: float) -> Confidence:
        known = self.fidelities.concentration is not None and has_evidence(self.fidelities.tails[-1])
        learner = self.policy if isinstance(self.policy, HasIntervals) else None
        if self.stats.active.sum() == 1:
            return self._alone(best, level)
        if changed := self._changed(np.flatnonzero(self.stats.active).tolist()):
            return self._withheld(best, level, changed)
        if not known:
            return self._by_posterior(learner, best, level) if learner else self._by_learned_noise(best, level)
        claim = self.kept.confidence(self.stats, self.fidelities, best, self.roster, self._counted(), level)
        if learner and self.fidelities.biases is None and claim.level < level:
            estimated = self._by_posterior(learner, best, level)
            return self._valid(claim, level) if estimated.kind == "withheld" else estimated
        return self._valid(claim, level)

    def difference(self, first: int, second: int, level: float) -> Difference:
        """Say by how much one arm is better than another.

        Args:
            first: an arm.
            second: another one.
            level: of the interval.
        """
        many = "" if self.blocks is None else self.blocks.too_many
        if many:
            return self._not_said(first, second, level, many)
        found = self._compared_with(first)._by_how_much(first, second, level)
        if self._proved or found.kind == "withheld":
            return found
        surest, why = min(found.level, ESTIMATE_CAP), self._no_proof(found.why)
        return replace(found, kind="estimate", why=why, level=surest, assumes=self._less_assumed(found.assumes))

    def _by_how_much(self, first: int, second: int, level: float) -> Difference:
        known = self.fidelities.concentration is not None and has_evidence(self.fidelities.tails[-1])
        if changed := self._changed((first, second)):
            return self._not_said(first, second, level, changed)
        if known:
            return self._difference(first, second, level, self._counted())
        learned, enough = with_learned_noise(self.stats, self.fidelities)
        sure = replace(self, fidelities=learned)
        if enough[-1]:
            found = sure._difference(first, second, level, sure._counted() & enough)
            surest = min(found.level, ESTIMATE_CAP)
            return replace(found, kind="estimate", why=LEARNED_NOISE, level=surest, assumes=(DRIFT, MISSING))
        return sure._not_said(first, second, level, UNKNOWN_NOISE)

    def _not_said(self, first: int, second: int, level: float, why: str) -> Difference:
        nothing = np.zeros(len(self.fidelities), dtype=np.bool_)
        return replace(self._difference(first, second, level, nothing), kind="withheld", why=why, assumes=())

    def _changed(self, arms: Iterable[int]) -> str:
        """Say which of some arms have changed, so that nothing can be said of them; empty if none has."""
        found = sorted({arm for _, arm in self.drifted} & set(arms))
        named = ", ".join(self.labels[arm] for arm in found[:MAX_ARMS_NAMED])
        more = f" and {len(found) - MAX_ARMS_NAMED} more" if len(found) > MAX_ARMS_NAMED else ""
        return f"the mean of {named}{more} has changed; `forget` begins it anew" if found else ""

    def means(self, arms: IntArray, level: float = LEVEL) -> ArmMeans:
        """Say where the means of some arms lie at the highest fidelity; nothing of arms that have changed.

        Args:
            arms: which ones, shape (A,).
            level: of each interval by itself, at any time.
        """
        if self.fidelities.concentration is not None and has_evidence(self.fidelities.tails[-1]):
            ends = self._ends(arms, self._counted(), level)
            return ArmMeans(*ends, "valid" if self._proved else "estimate")
        if isinstance(self.policy, HasIntervals):
            low, high = self.policy.intervals(self.stats, self.fidelities)
            return ArmMeans(low[arms], high[arms], "estimate")
        learned, enough = with_learned_noise(self.stats, self.fidelities)
        sure = replace(self, fidelities=learned)
        ends = sure._ends(arms, sure._counted() & enough, level)
        return ArmMeans(*ends, "estimate" if enough[-1] else "withheld")

    def _ends(self, arms: IntArray, counted: BoolArray, level: float) -> tuple[FloatArray, FloatArray]:
        """The ends of intervals; by the highest fidelity alone where the lower ones contradict it: a bias is wrong."""
        low, high = mean_intervals(self.stats, self.fidelities, arms, counted, level=level)
        changed = np.isin(arms, [arm for _, arm in self.drifted])
        low[changed], high[changed] = -np.inf, np.inf
        torn = np.flatnonzero(((low > high) | self._suspicious(arms)) & ~changed)
        top = counted & (np.arange(len(counted)) == len(counted) - 1)
        if len(torn) and top.any():
            low[torn], high[torn] = mean_intervals(self.stats, self.fidelities, arms[torn], top, level=level)
        return low, high

    def _suspicious(self, arms: IntArray) -> BoolArray:
        """Which arms have means at two fidelities that a bias hardly explains; looked for where there are few arms."""
        if len(arms) > MOST_LOOKED_AT:
            return np.zeros(len(arms), dtype=np.bool_)
        found = [bool(conflicting(self.policy, self.stats, self.fidelities, arm)) for arm in arms.tolist()]
        return np.array(found, dtype=np.bool_)

    def _difference(self, first: int, second: int, level: float, counted: BoolArray) -> Difference:
        price = log_price(self.roster, first, second)
        claim = difference(self.stats, self.fidelities, (first, second), counted, price=price, level=level)
        return Difference(
            first=first,
            second=second,
            first_label=self.labels[first],
            second_label=self.labels[second],
            low=claim.low,
            high=claim.high,
            at_level=level,
            better={1: first, -1: second, 0: None}[claim.better],
            level=claim.level,
            kind="valid",
            why="",
            assumes=self._assumptions(tuple(np.flatnonzero(counted).tolist())),
        )

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
        same = without_drifted(self.bias_stats, self.drifted)
        # also if the policy uses no biases
        now = {fidelity for fidelity, *_ in refuting(same, self.fidelities, self.refuted)}
        trusted = [
            has_evidence(tail) and m not in self.refuted | now and (m == top or self.fidelities.biases is not None)
            for m, tail in enumerate(self.fidelities.tails)
        ]
        return np.array(trusted)

    def _results(self, fidelities: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(int(self.stats.results[m, self.stats.active].sum()) for m in fidelities)

    def _assumptions(self, counted: tuple[int, ...]) -> tuple[str, ...]:
        names, known = self.fidelities.labels, self.fidelities.biases or ()
        below = [m for m in counted if m < len(self.fidelities) - 1]
        dropped = [m for m in range(len(self.fidelities)) if m not in counted]
        return (
            *dict.fromkeys(_noise(self.fidelities.tails[m]) for m in counted),
            *(CHOSEN_NOISE.format(names[m]) for m in counted if m in self.noise_reset),
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
    if has_range(tail):
        return f"Rewards lie in {plain(tail.low)} to {plain(tail.high)}."
    if type(tail) is SubGaussian:
        return f"Noise is sub-Gaussian with a scale of at most {plain(tail.scale)}."
    return f"Noise is as {type(tail).__name__} says."
