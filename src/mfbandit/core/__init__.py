"""Fidelities, statistics of results, and the bounds computed from them (eqs. 1 to 4): pure functions over arrays."""

from mfbandit.core.audit import Audit, FidelityAudit, audit, needed_bias, refuting, scales
from mfbandit.core.blocks import block_effects, block_spread
from mfbandit.core.bounds import (
    POSTERIOR,
    Bounds,
    bounds_table,
    kl_upper_bounds,
    lower_bounds,
    most_promising,
    rate_width,
    safest,
    upper_bounds,
    width,
)
from mfbandit.core.budget import limit, spending
from mfbandit.core.concentration import (
    QUADRATIC,
    Bounded,
    Concentration,
    Rate,
    SubGaussian,
    divergences,
    has_range,
    rates,
)
from mfbandit.core.confidence import LEVEL, Claim, Roster, confidence, rivals_of
from mfbandit.core.difference import DifferenceClaim, difference, log_price
from mfbandit.core.divergence import kl, kl_upper
from mfbandit.core.drift import Change, ChangeMark, change, is_checked, is_tested
from mfbandit.core.evidence import HasEvidence, has_evidence
from mfbandit.core.fidelities import Fidelities
from mfbandit.core.kept_claims import KeptClaims
from mfbandit.core.mean_intervals import mean_intervals
from mfbandit.core.observations import Batch, Counts, Observed, Reward, observed, summed
from mfbandit.core.quota import LEAST as LEAST_SHARE
from mfbandit.core.quota import Quota
from mfbandit.core.settled import ruled_out
from mfbandit.core.stats import STATS_ARRAYS, Play, Stats

__all__ = [
    "LEAST_SHARE",
    "LEVEL",
    "POSTERIOR",
    "QUADRATIC",
    "STATS_ARRAYS",
    "Audit",
    "Batch",
    "Bounded",
    "Bounds",
    "Change",
    "ChangeMark",
    "Claim",
    "Concentration",
    "Counts",
    "DifferenceClaim",
    "Fidelities",
    "FidelityAudit",
    "HasEvidence",
    "KeptClaims",
    "Observed",
    "Play",
    "Quota",
    "Rate",
    "Reward",
    "Roster",
    "Stats",
    "SubGaussian",
    "audit",
    "block_effects",
    "block_spread",
    "bounds_table",
    "change",
    "confidence",
    "difference",
    "divergences",
    "has_evidence",
    "has_range",
    "is_checked",
    "is_tested",
    "kl",
    "kl_upper",
    "kl_upper_bounds",
    "limit",
    "log_price",
    "lower_bounds",
    "mean_intervals",
    "most_promising",
    "needed_bias",
    "observed",
    "rate_width",
    "rates",
    "refuting",
    "rivals_of",
    "ruled_out",
    "safest",
    "scales",
    "spending",
    "summed",
    "upper_bounds",
    "width",
]
