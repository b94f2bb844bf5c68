"""What a search learns about its fidelities on the way: the noise of their scores, and what they cost in seconds."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from mfbandit._internal.typing import FloatArray, IntArray
from mfbandit.core import Fidelities, Stats, SubGaussian
from mfbandit.errors import InvalidArgument
from mfbandit.policies import Policy
from mfbandit.search.fit_and_score import Trial

REVISION_FACTOR = 1.25  # estimates are put to use when one has changed by more than this factor
FIRST_NOISE_SHARE = 0.1  # of the variance among candidates: a first guess of the noise, which counts for one result
NOISE_WEIGHT = 2.0  # results that the noise of the fidelity below counts for
MIN_NOISE_SHARE = 1e-9  # of the size of the scores
MIN_COST_RATIO = 1.01  # costs increase by this factor at least, whatever a noisy clock says
MIN_SECONDS = 1e-9  # of a fit


def needs_noise(policy: Policy, fidelities: Fidelities, arms: int) -> bool:
    """Return whether a policy cannot choose without knowing the noise.

    >>> from mfbandit import UCB, MFBayes
    >>> needs_noise(UCB(), Fidelities([1]), 2), needs_noise(MFBayes(), Fidelities([1]), 2)
    (True, False)
    """
    nothing = Stats.empty(len(fidelities), arms)
    if fidelities.biases is None and len(fidelities) > 1:
        policy.choose(nothing, replace(fidelities, concentration=SubGaussian(1.0)))  # or it says what else it needs
    try:
        policy.choose(nothing, fidelities)
    except InvalidArgument:
        return True
    return False


def needs_revision(used: Fidelities, learned: Fidelities) -> bool:
    """Return whether costs or noise have changed so much that a policy should know.

    >>> needs_revision(Fidelities([1, 10], concentration=SubGaussian(1)), Fidelities([1, 13], None, SubGaussian(1)))
    True
    """
    old, new = ([*one.costs, *_scales(one)] for one in (used, learned))
    return any(max(a / b, b / a) > REVISION_FACTOR for a, b in zip(old, new, strict=True))


def _scales(fidelities: Fidelities) -> list[float]:
    """Of the noise; none where it is not known."""
    known = () if fidelities.concentration is None else fidelities.tails
    return [getattr(tail, "scale", 1.0) for tail in known]


def noise_scales(stats: Stats) -> FloatArray:
    """Estimate σ_m of the scores from how they differ between splits; shape (M,).

    It is pooled over candidates. Until a candidate has a second result, the spread among candidates gives a guess.
    Each fidelity begins at the noise of the one below, which counts for two results.

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
    variance, weight = FIRST_NOISE_SHARE * float((sums[counts > 0] / counts[counts > 0]).var()), 1.0
    scales = np.empty(len(stats.counts))
    for m in range(first, len(scales)):
        within, freedom = _within(stats, m)
        variance = (weight * variance + within) / (weight + freedom)
        scales[m], weight = max(math.sqrt(variance), MIN_NOISE_SHARE * size), NOISE_WEIGHT
    scales[:first] = scales[first]
    return scales


def _within(stats: Stats, m: int) -> tuple[float, float]:
    """The sum of squares around the means of candidates at a fidelity, and its degrees of freedom."""
    seen = stats.counts[m] > 0
    counts, sums = stats.counts[m, seen], stats.sums[m, seen]
    return float(np.maximum(stats.squares[m, seen] - sums * sums / counts, 0.0).sum()), float((counts - 1).sum())


def learned_costs(trials: Sequence[Trial], relative: FloatArray, arms: int) -> FloatArray | None:
    """Estimate the seconds of an average play at each fidelity, shape (M,); None before the first result.

    A fidelity costs what it took the candidates that were tried both there and where most were tried. One where none
    was tried costs in proportion to its samples. Where plays go on from others, all cost in proportion.

    >>> from mfbandit.search.fit_and_score import FitResult
    >>> def trial(arm: int, fidelity: int, seconds: float) -> Trial:
    ...     return Trial(arm, fidelity, 0, seconds, FitResult(0.5, seconds))
    >>> trials = [trial(0, 0, 1.0), trial(1, 0, 3.0), trial(1, 1, 6.0)]
    >>> learned_costs(trials, np.array([0.1, 0.5, 1.0]), arms=2).tolist()
    [2.0, 4.0, 20.0]
    """
    times, counts = _times(trials, len(relative), arms)
    if not counts.any():
        return None
    if any(one.resumed_from is not None for one in trials):
        return _costs_in_proportion(trials, relative)
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
        costs[m] = max(costs[m], MIN_COST_RATIO * costs[m - 1])
    return costs


def _costs_in_proportion(trials: Sequence[Trial], relative: FloatArray) -> FloatArray:
    """Seconds of an average play that begins anew, by what all plays took for what they were trained further."""
    done = [one for one in trials if not one.outcome.failed]
    work = sum(
        relative[one.fidelity] - (0.0 if one.resumed_from is None else relative[one.resumed_from]) for one in done
    )
    costs: FloatArray = relative * (sum(max(one.outcome.seconds, MIN_SECONDS) for one in done) / work)
    return costs


def _times(trials: Sequence[Trial], fidelities: int, arms: int) -> tuple[FloatArray, IntArray]:
    """The seconds and numbers of all plays that gave a score; both of shape (M, K)."""
    times, counts = np.zeros((fidelities, arms)), np.zeros((fidelities, arms), dtype=np.int64)
    for trial in trials:
        if not trial.outcome.failed:
            times[trial.fidelity, trial.arm] += max(trial.outcome.seconds, MIN_SECONDS)
            counts[trial.fidelity, trial.arm] += 1
    return times, counts
