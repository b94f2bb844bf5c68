"""Fidelities, statistics of results, and the bounds computed from them (eqs. 1 to 4): pure functions over arrays."""

from mfbandit.core.audit import Audit, audit, needed_bias, refuting, scales
from mfbandit.core.bounds import (
    POSTERIOR,
    Bounds,
    bounds_table,
    kl_upper_bounds,
    lower_bounds,
    most_promising,
    safest,
    upper_bounds,
    width,
)
from mfbandit.core.budget import limit, spending
from mfbandit.core.concentration import Bounded, Concentration, SubGaussian, rates
from mfbandit.core.divergence import kl, kl_upper
from mfbandit.core.fidelities import Fidelities
from mfbandit.core.settled import ruled_out
from mfbandit.core.stats import Play, Stats

__all__ = [
    "POSTERIOR",
    "Audit",
    "Bounded",
    "Bounds",
    "Concentration",
    "Fidelities",
    "Play",
    "Stats",
    "SubGaussian",
    "audit",
    "bounds_table",
    "kl",
    "kl_upper",
    "kl_upper_bounds",
    "limit",
    "lower_bounds",
    "most_promising",
    "needed_bias",
    "rates",
    "refuting",
    "ruled_out",
    "safest",
    "scales",
    "spending",
    "upper_bounds",
    "width",
]
