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
from mfbandit.core.confidence import LEVEL, Claim, Roster, confidence, rivals_of
from mfbandit.core.divergence import kl, kl_upper
from mfbandit.core.evidence import HasEvidence, has_evidence
from mfbandit.core.fidelities import Fidelities
from mfbandit.core.kept_claims import KeptClaims
from mfbandit.core.settled import ruled_out
from mfbandit.core.stats import Play, Stats

__all__ = [
    "LEVEL",
    "POSTERIOR",
    "Audit",
    "Bounded",
    "Bounds",
    "Claim",
    "Concentration",
    "Fidelities",
    "HasEvidence",
    "KeptClaims",
    "Play",
    "Roster",
    "Stats",
    "SubGaussian",
    "audit",
    "bounds_table",
    "confidence",
    "has_evidence",
    "kl",
    "kl_upper",
    "kl_upper_bounds",
    "limit",
    "lower_bounds",
    "most_promising",
    "needed_bias",
    "rates",
    "refuting",
    "rivals_of",
    "ruled_out",
    "safest",
    "scales",
    "spending",
    "upper_bounds",
    "width",
]
