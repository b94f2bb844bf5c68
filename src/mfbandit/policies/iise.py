"""IISE: remove arms fidelity by fidelity, from the cheapest up; a baseline from the literature."""

import math
from dataclasses import dataclass

import numpy as np

from mfbandit._internal.typing import BoolArray, FloatArray
from mfbandit._internal.validation import flag
from mfbandit.core import Fidelities, Stats, safest
from mfbandit.policies.identification import checked_delta, known_scales, latest_means


@dataclass(frozen=True, eq=False)
class IISEMemory:
    """What IISE remembers.

    Args:
        fidelity: the one that is played now.
        rounds: how many results each arm had there when arms were last compared.
        left: which arms were not removed; shape (K,).
        active: which arms were active then; shape (K,).
    """

    fidelity: int
    rounds: int
    left: BoolArray
    active: BoolArray


@dataclass(frozen=True)
class IISE:
    r"""Successive elimination over the fidelities: a policy that answers when one arm is left.

    At each fidelity m, from the lowest up, play every arm that is left once a round. After n rounds

    1. remove every arm k with max over j of X̄_mj − c̃ − ζ_m ≥ X̄_mk + c̃ + ζ_m,
    2. answer if one arm is left,
    3. go on to the next fidelity if 4c ≤ τ_m = max over j > m of 4(ζ_m − ζ_j)√λ_m/(√λ_j − √λ_m): arms that are still
       left are then removed more cheaply at a higher fidelity,

    with c = sqrt(2σ_m² log(4n²KM/δ)/n), and c̃ = sqrt(2σ_m² (log log t + log(KM/δ))/n) after t plays in all.

    Reference: Poiani, Metelli and Restelli, *Multi-Fidelity Best-Arm Identification*, NeurIPS 2022. The radius c̃ is
    that of the code with which its authors compared it in 2024 (riccardopoiani/adv-mf-bai); log log t is at least 0
    here. ``proved=True`` takes c in place of c̃, as in 2022.

    Known faults:

    - c̃ has no proof. With c, which has one, the cost is two to four times as high.
    - Results of one fidelity are not used at the next. All arms that are left are played equally often.
    - If no arm is more than 4ζ_1 behind, all plays at the lowest fidelity are lost.
    - It never ends if two arms are equally good.

    The error δ is for a fixed set of arms. An arm that is added takes part in the round. If an arm that is left is
    retired, those that were removed take part again.

    Args:
        delta: δ, how often the answer may be wrong, in (0, 1).
        proved: whether to remove arms by the proved radius c.

    >>> from mfbandit.core import SubGaussian
    >>> fid = Fidelities([1, 10], [0.1, 0], SubGaussian(0.1))
    >>> stats = Stats.empty(fidelities=2, arms=2)
    >>> IISE().choose(stats, fid), IISE().decision(stats, fid)
    ((0, 0), None)
    >>> stats.counts[0], stats.sums[0] = [50, 50], [45, 20]  # means of 0.9 and 0.4
    >>> IISE().decision(stats, fid)
    0
    """

    delta: float = 0.05
    proved: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "delta", checked_delta(self.delta))
        flag("proved", self.proved)

    def remember(self, stats: Stats, fidelities: Fidelities) -> IISEMemory:
        """Compare the arms if a round is complete."""
        scales, top, shape = known_scales(fidelities, "IISE"), len(fidelities) - 1, stats.counts.shape
        limits = last_radii(fidelities)
        fidelity, rounds, left = _taking_part(stats)
        while len(arms := np.flatnonzero(left & stats.active)) > 1:
            counts, sums = stats.counts[fidelity, arms], stats.sums[fidelity, arms]
            done = int(counts.min())
            if done <= rounds:
                break
            rounds, means = done, sums / counts
            careful = proved_radius(rounds, shape[1], shape[0], scales[fidelity], self.delta)
            width = careful
            if not self.proved:
                time = int(stats.results.sum())
                width = practical_radius(rounds, time, shape[1], shape[0], scales[fidelity], self.delta)
            reach = (float(means.max()) - width) - fidelities.known_biases[fidelity]
            # By rounding alone, the best could seem to be behind itself.
            out = (reach >= (means + width) + fidelities.known_biases[fidelity]) & (means < means.max())
            left[arms[out]] = False
            if fidelity < top and out.sum() < len(arms) - 1 and 4.0 * careful <= limits[fidelity]:
                fidelity, rounds = fidelity + 1, 0
        return IISEMemory(fidelity, rounds, left, stats.active.copy())

    def choose(self, stats: Stats, fidelities: Fidelities) -> tuple[int, int]:
        """Choose the arm of the round with the fewest observations, those of pending plays included."""
        now = self.remember(stats, fidelities)
        arms = np.flatnonzero(now.left & stats.active)
        return int(arms[stats.observations[now.fidelity, arms].argmin()]), now.fidelity

    def decision(self, stats: Stats, fidelities: Fidelities) -> int | None:
        """Return the arm that is left, or None while there are several."""
        arms = np.flatnonzero(self.remember(stats, fidelities).left & stats.active)
        return int(arms[0]) if len(arms) == 1 and stats.counts[:, arms[0]].any() else None

    def index(self, stats: Stats, fidelities: Fidelities) -> FloatArray:
        """Compute the upper bounds, min over m of X̄ + c + ζ_m, in units of reward; shape (K,)."""
        scales, (number, arms) = known_scales(fidelities, "IISE"), stats.counts.shape
        uppers = np.full((number, arms), np.inf)
        for m, k in zip(*np.nonzero(stats.counts), strict=True):
            n = int(stats.counts[m, k])
            width = proved_radius(n, arms, number, scales[m], self.delta)
            uppers[m, k] = (stats.sums[m, k] / n + width) + fidelities.known_biases[m]
        bounds: FloatArray = uppers.min(axis=0)
        return bounds

    def recommend(self, stats: Stats, fidelities: Fidelities) -> int:
        """Return the arm that is left with the best mean, each at the highest fidelity where it has a result."""
        means = latest_means(stats)
        left = np.where(self.remember(stats, fidelities).left, means, -np.inf)
        return safest(left if (left[stats.active] > -np.inf).any() else means, stats)


def _taking_part(stats: Stats) -> tuple[int, int, BoolArray]:
    """The fidelity, the rounds and the arms that were not removed, by the memory and the arms that are active now."""
    known, left = stats.memory, np.ones(len(stats.active), dtype=np.bool_)
    if not isinstance(known, IISEMemory):
        return 0, 0, left
    before = len(known.left)
    if (known.left & known.active & ~stats.active[:before]).any():  # it may have removed others, and can no longer win
        return known.fidelity, 0, left
    left[:before] = known.left
    return known.fidelity, known.rounds, left


def last_radii(fidelities: Fidelities) -> tuple[float, ...]:
    """Compute τ_m for each fidelity below the highest; it is left once four times the radius is no larger.

    >>> [round(value, 4) for value in last_radii(Fidelities([1, 4], [0.1, 0]))]  # 4 · 0.1 · 1/(2 − 1)
    [0.4]
    """
    roots, biases = [math.sqrt(cost) for cost in fidelities.costs], fidelities.known_biases
    return tuple(
        max(4.0 * (biases[m] - biases[j]) * roots[m] / (roots[j] - roots[m]) for j in range(m + 1, len(roots)))
        for m in range(len(roots) - 1)
    )


def proved_radius(n: float, arms: int, fidelities: int, scale: float, delta: float) -> float:
    """Compute c = sqrt(2σ² log(4n²KM/δ)/n).

    >>> round(proved_radius(100, 5, 2, 0.1, 0.1), 4)
    0.0551
    """
    return math.sqrt(2.0 * scale * scale * (math.log(4.0 * arms * fidelities / delta) + 2.0 * math.log(n)) / n)


def practical_radius(n: float, time: float, arms: int, fidelities: int, scale: float, delta: float) -> float:
    """Compute c̃ = sqrt(2σ² (log log t + log(KM/δ))/n), with log log t at least 0.

    >>> round(practical_radius(100, 1000, 5, 2, 0.1, 0.1), 4)
    0.0362
    """
    repeated = math.log(max(math.log(time), 1.0))
    return math.sqrt(2.0 * scale * scale * (repeated + math.log(arms * fidelities / delta)) / n)
