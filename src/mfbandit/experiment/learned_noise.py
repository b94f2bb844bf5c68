"""Noise that nobody told: its scale, learned from the results, for an estimate."""

import math
from dataclasses import replace

import numpy as np

from mfbandit._internal.typing import BoolArray
from mfbandit._internal.validation import SMALLEST_NUMBER
from mfbandit.core import Fidelities, Stats, SubGaussian

LEAST_FREEDOM = 10  # degrees of freedom from which a scale can be learned


def with_learned_noise(stats: Stats, fidelities: Fidelities) -> tuple[Fidelities, BoolArray]:
    """Take the standard deviation of results within arms for the scale of the noise.

    Args:
        stats: all results.
        fidelities: of unknown noise.

    Returns:
        The fidelities with learned scales, and at which of them there are results enough, shape (M,).

    >>> stats = Stats.empty(1, 1)
    >>> stats.counts[:], stats.sums[:], stats.squares[:] = 20, 10.0, 10.0  # ten times 0, ten times 1
    >>> learned, enough = with_learned_noise(stats, Fidelities([1]))
    >>> round(learned.tails[0].scale, 3), enough.tolist()
    (0.513, [True])
    """
    counts = np.maximum(stats.counts, 1)
    within = np.maximum(stats.squares - stats.sums * stats.sums / counts, 0.0).sum(axis=1)
    freedom = stats.freedom.sum(axis=1)
    scales = [math.sqrt(w / max(1, int(f))) for w, f in zip(within.tolist(), freedom.tolist(), strict=True)]
    enough = (freedom >= LEAST_FREEDOM) & (np.array(scales) > SMALLEST_NUMBER)
    tails = [SubGaussian(scale if scale > SMALLEST_NUMBER else 1.0) for scale in scales]
    return replace(fidelities, concentration=tails), np.asarray(enough)
