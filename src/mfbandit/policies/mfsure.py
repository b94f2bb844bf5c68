"""MFSure: find the best arm, and stop when it is sure; for the smallest cost."""

import math
from dataclasses import dataclass

import numpy as np

from mfbandit._internal.typing import BoolArray, FloatArray, IntArray
from mfbandit._internal.validation import number
from mfbandit.core import Fidelities, Stats, safest
from mfbandit.core.confidence import Roster
from mfbandit.core.estimate import centre
from mfbandit.core.pair_claim import all_ruled_out
from mfbandit.errors import InvalidArgument
from mfbandit.policies.duel import evidence_against, most_telling
from mfbandit.policies.identification import checked_delta, known_scales

GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0  # multiples of it, modulo 1, are spread evenly however many one takes


@dataclass(frozen=True, eq=False)
class MFSureMemory:
    """What MFSure remembers: the centre of each arm, and the results that it was computed from."""

    counts: IntArray
    sums: FloatArray
    centres: FloatArray
    fidelities: Fidelities


@dataclass(frozen=True)
class MFSure:
    r"""A policy for finding the best arm with confidence at the smallest cost; needs biases and the noise's scale.

    1. Play each arm once at the lowest fidelity. The centre v_k is a balanced estimate of the mean
       (:func:`~mfbandit.core.estimate.centre`). The leader i has the largest.
    2. What speaks against "a is better than i by more than ε" is

           f_ia = min over η of Σ_m n_mi (X̄_mi − ζ_m − η)₊²/(2σ_m²) + Σ_m n_ma (η + ε − X̄_ma − ζ_m)₊²/(2σ_m²).

       The challenger a has the smallest f_ia + log(plays of a), the larger centre among ties. If f_ia = 0, η lies
       halfway between the two centres, less ε/2. Nothing speaks against an arm whose first play is pending: f_ia = 0.
    3. For each of the two, take the fidelity with the largest d²/(2σ_m²λ_m), where d is how far its mean may lie
       beyond η, with an optimism of 3 standard deviations at the highest and 2.5 below; the highest among ties.
       Against an arm without results it is the highest for the leader, and the lowest for that arm.
    4. If f_ia > 0, the leader's share s of it says how often to play the leader: with odds (s/λ):((1 − s)/λ'). Else
       play the one on which less was spent.

    The policy decides for the leader once "no arm is better by more than ε" can be claimed at a level of 1 − δ, by the
    evidence of all fidelities (:mod:`~mfbandit.core.claims`). This is false in at most δ of all runs, if biases and
    scales hold and the set of arms stays the same. The choice of plays does not depend on δ.

    Args:
        delta: δ, how often the answer may be wrong, in (0, 1).
        tolerance: ε ≥ 0, how much worse than the best an answer may be, in units of reward.
    """

    delta: float = 0.05
    tolerance: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "delta", checked_delta(self.delta))
        object.__setattr__(self, "tolerance", number("tolerance", self.tolerance))
        if self.tolerance < 0:
            raise InvalidArgument(f"tolerance must be at least 0, got {self.tolerance:g}")

    def remember(self, stats: Stats, fidelities: Fidelities) -> MFSureMemory:
        """Compute the centres of the arms that have new results."""
        known, counts, sums = stats.memory, stats.counts, stats.sums
        centres = np.full(counts.shape[1], -np.inf)
        changed: BoolArray = np.array(counts.any(axis=0))
        if isinstance(known, MFSureMemory) and known.fidelities is fidelities:
            same = len(known.centres)
            centres[:same] = known.centres
            changed[:same] = ((counts[:, :same] != known.counts) | (sums[:, :same] != known.sums)).any(axis=0)
        found, biases = _scales(fidelities), fidelities.known_biases
        for arm in np.flatnonzero(changed).tolist():
            centres[arm] = centre(counts[:, arm].tolist(), sums[:, arm].tolist(), found, biases)
        return MFSureMemory(counts.copy(), sums.copy(), centres, fidelities)

    def choose(self, stats: Stats, fidelities: Fidelities) -> tuple[int, int]:
        """Choose the leader or the challenger, at the fidelity that tells most for its cost."""
        _check_known(fidelities)
        plays = stats.plays
        untouched = stats.active & ~plays.any(axis=0)
        if untouched.any():
            return int(untouched.argmax()), 0
        known = stats.counts.any(axis=0)
        seen, awaited = np.flatnonzero(stats.active & known), np.flatnonzero(stats.active & ~known)
        if len(seen) == 0:
            return int(np.where(stats.active, stats.pending.sum(axis=0), np.iinfo(np.int64).max).argmin()), 0
        centres = self._centres(stats, fidelities)
        leader = int(seen[centres[seen].argmax()])
        if len(seen) == 1:
            return _against_awaited(stats, fidelities, leader, awaited)
        return self._duel(stats, fidelities, leader, seen[seen != leader], awaited, centres)

    def _duel(
        self,
        stats: Stats,
        fidelities: Fidelities,
        leader: int,
        rivals: IntArray,
        awaited: IntArray,
        centres: FloatArray,
    ) -> tuple[int, int]:
        found = _scales(fidelities)
        against, meeting, lead = evidence_against(stats, fidelities, found, leader, rivals, self.tolerance)
        plays = stats.plays[:, rivals].sum(axis=0).tolist()
        index = against + np.array([math.log(number) for number in plays])
        at = int(np.lexsort((rivals, -centres[rivals], index))[0])
        if len(awaited) and math.log(stats.plays[:, awaited].sum(axis=0).min()) < index[at]:
            return _against_awaited(stats, fidelities, leader, awaited)
        challenger, value, eta = int(rivals[at]), float(against[at]), float(meeting[at])
        if value <= 0:
            eta = 0.5 * float(centres[leader] + centres[challenger]) - 0.5 * self.tolerance
        first = _fidelity(stats, fidelities, found, leader, eta, +1.0)
        second = _fidelity(stats, fidelities, found, challenger, eta + self.tolerance, -1.0)
        if value <= 0:
            behind = _spent(stats, fidelities, leader) < _spent(stats, fidelities, challenger)
        else:
            share = float(lead[at]) / value
            odds, others = share / fidelities.costs[first], (1.0 - share) / fidelities.costs[second]
            behind = (stats.time * GOLDEN) % 1.0 < odds / (odds + others)
        return (leader, first) if behind else (challenger, second)

    def index(self, stats: Stats, fidelities: Fidelities) -> FloatArray:
        """Compute the centres, in units of reward; infinite for arms without a result; shape (K,)."""
        centres = self._centres(stats, fidelities)
        return np.where(stats.counts.any(axis=0), centres, np.inf)

    def recommend(self, stats: Stats, fidelities: Fidelities) -> int:
        """Return the active arm with the largest centre."""
        return safest(self._centres(stats, fidelities), stats)

    def decision(self, stats: Stats, fidelities: Fidelities) -> int | None:
        """Return the leader once no other active arm is better by more than ε, at a level of 1 − δ; else None."""
        if not stats.counts[:, stats.active].any(axis=0).all():
            return None
        centres = self._centres(stats, fidelities)
        leader = safest(centres, stats)
        others = np.flatnonzero(stats.active & (np.arange(len(centres)) != leader))
        rivals = others[np.argsort(-centres[others], kind="stable")]
        roster = Roster(len(centres), changed=not stats.active.all())
        needed = roster.log_prices(leader, rivals) - math.log(self.delta)
        starts = 0.5 * (centres[leader] + centres[rivals]) - 0.5 * self.tolerance
        sure = all_ruled_out(stats, fidelities, leader, rivals, self.tolerance, needed, starts)
        return leader if sure else None

    def _centres(self, stats: Stats, fidelities: Fidelities) -> FloatArray:
        return self.remember(stats, fidelities).centres


def _against_awaited(stats: Stats, fidelities: Fidelities, leader: int, awaited: IntArray) -> tuple[int, int]:
    """Choose the leader or an arm whose plays are all pending: results may be late, and without one nothing is sure."""
    top = len(fidelities) - 1
    if len(awaited) == 0:
        return leader, top
    challenger = int(awaited[stats.plays[:, awaited].sum(axis=0).argmin()])
    behind = _spent(stats, fidelities, leader) < _spent(stats, fidelities, challenger)
    return (leader, top) if behind else (challenger, 0)


def _fidelity(
    stats: Stats, fidelities: Fidelities, found: tuple[float, ...], arm: int, beyond: float, side: float
) -> int:
    plays, counts, sums = (array[:, arm].tolist() for array in (stats.observations, stats.counts, stats.sums))
    return most_telling(plays, counts, sums, found, fidelities.known_biases, fidelities.costs, beyond, side)


def _spent(stats: Stats, fidelities: Fidelities, arm: int) -> float:
    total = 0.0  # added up in this order, as the engine does
    for cost, plays in zip(fidelities.costs, stats.plays[:, arm].tolist(), strict=True):
        total += cost * plays
    return total


def _check_known(fidelities: Fidelities) -> None:
    """Raise at the first choice already if biases or scales are missing."""
    _scales(fidelities)
    _ = fidelities.known_biases


def _scales(fidelities: Fidelities) -> tuple[float, ...]:
    return known_scales(fidelities, "MFSure")
