"""Two arms against each other: what speaks against the challenger, and at which fidelity to look again.

The functions of single numbers are compiled by the engine as they stand.
"""

import math
from collections.abc import Sequence

import numpy as np

from mfbandit._internal.typing import BoolArray, FloatArray, IntArray
from mfbandit.core import Fidelities, Stats

# Standard deviations by which a fidelity may turn out more informative than it looks. The highest has more of them: to
# overlook it by bad luck can cost a multiple, and to overlook a lower one only what it would have saved.
OPTIMISM_AT_TOP = 3.0
OPTIMISM_BELOW = 2.5


def evidence_against(
    stats: Stats, fidelities: Fidelities, scales: Sequence[float], leader: int, rivals: IntArray, tolerance: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    r"""Compute f_ia for each rival a, the η where its minimum lies, and the leader's part of f_ia.

        f_ia = min over η of Σ_m n_mi (X̄_mi − ζ_m − η)₊²/(2σ_m²) + Σ_m n_ma (η + ε − X̄_ma − ζ_m)₊²/(2σ_m²)

    The derivative in η is linear between the points where a term begins or ends: the root lies between the two such
    points where its sign changes. Pending plays count in n, not in X̄.

    Args:
        stats: results and pending plays, shape (M, K).
        fidelities: the M fidelities.
        scales: σ_m.
        leader: i.
        rivals: the arms a; shape (A,).
        tolerance: ε.
    """
    plays, known = stats.observations, stats.counts > 0
    lows, _ = _ends(stats, fidelities, np.array([leader]), -1.0)
    tops, light = _ends(stats, fidelities, rivals, +1.0)
    tops -= tolerance
    squares = [scale * scale for scale in scales]
    lead = [(float(lows[m, 0]), float(plays[m, leader]) / squares[m]) for m in range(len(plays)) if known[m, leader]]
    weights = np.where(light, plays[:, rivals], 0) / np.array(squares)[:, None]
    points = np.concatenate([np.full((1, len(rivals)), low) for low, _ in lead] + [tops])
    slopes = np.stack([_slope(point, lead, tops, weights) for point in points])
    below, above = slopes <= 0, slopes >= 0
    start, end = np.where(below, points, -np.inf).max(axis=0), np.where(above, points, np.inf).min(axis=0)
    fall, rise = np.where(below, slopes, -np.inf).max(axis=0), np.where(above, slopes, np.inf).min(axis=0)
    with np.errstate(invalid="ignore"):
        meeting = np.where(fall == 0, start, start - fall * (end - start) / (rise - fall))
    first, second = np.zeros(len(rivals)), np.zeros(len(rivals))
    for low, weight in lead:
        gap = np.maximum(low - meeting, 0.0)
        first += 0.5 * weight * gap * gap
    for top, weight in zip(tops, weights, strict=True):
        gap = np.maximum(meeting - top, 0.0)
        second += 0.5 * weight * gap * gap
    return first + second, meeting, first


def _ends(stats: Stats, fidelities: Fidelities, arms: IntArray, sign: float) -> tuple[FloatArray, BoolArray]:
    """X̄ ± ζ of some arms, infinite without a result, and where there is one."""
    counts = stats.counts[:, arms]
    with np.errstate(divide="ignore", invalid="ignore"):
        ends = stats.sums[:, arms] / counts + sign * fidelities.bias_column
    return np.where(counts > 0, ends, np.inf), counts > 0


def _slope(point: FloatArray, lead: list[tuple[float, float]], tops: FloatArray, weights: FloatArray) -> FloatArray:
    total = np.zeros(len(point))
    for low, weight in lead:
        total -= weight * np.maximum(low - point, 0.0)
    for top, share in zip(tops, weights, strict=True):
        with np.errstate(invalid="ignore"):
            total += np.where(share > 0, share * np.maximum(point - top, 0.0), 0.0)
    return np.where(np.isfinite(point), total, np.inf)


def most_telling(
    plays: Sequence[float],
    counts: Sequence[float],
    sums: Sequence[float],
    scales: Sequence[float],
    biases: Sequence[float],
    costs: Sequence[float],
    beyond: float,
    side: float,
) -> int:
    r"""Find the fidelity that may tell most for its cost: the largest d²/(2σ_m²λ_m), the highest m among ties.

    d is how far the mean at m may lie beyond η ± ζ_m, optimistic by 2.5 standard deviations σ_m/√n of this and of every
    other fidelity, and 3 at the highest. If no fidelity may lie beyond, it is the highest.

    Args:
        plays: results and pending plays of the arm at each fidelity.
        counts: results.
        sums: the sums of their rewards.
        scales: σ_m.
        biases: ζ_m.
        costs: λ_m.
        beyond: η.
        side: +1 where the mean is hoped to lie above η (the leader), −1 below (the challenger).

    >>> most_telling([1, 0], [1, 0], [0.7, 0.0], [0.1, 0.1], [0.1, 0.0], [1.0, 10.0], 0.5, 1.0)
    0
    """
    top = len(counts) - 1
    reach = math.inf  # of the mean at the highest fidelity, by all fidelities, on the hoped-for side
    for m in range(top + 1):
        if counts[m] > 0:
            optimism = OPTIMISM_AT_TOP if m == top else OPTIMISM_BELOW
            reach = min(reach, side * sums[m] / counts[m] + optimism * scales[m] / math.sqrt(plays[m]) + biases[m])
    best, chosen = 0.0, top
    for m in range(top + 1):
        hope = reach + biases[m]
        if counts[m] > 0:
            optimism = OPTIMISM_AT_TOP if m == top else OPTIMISM_BELOW
            hope = min(hope, side * sums[m] / counts[m] + optimism * scales[m] / math.sqrt(plays[m]))
        distance = hope - biases[m] - side * beyond
        if distance > 0:
            value = distance * distance / (2.0 * scales[m] * scales[m] * costs[m])
            if value >= best:
                best, chosen = value, m
    return chosen
