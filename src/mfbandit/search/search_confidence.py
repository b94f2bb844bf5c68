"""How sure a search is of its best candidate, in the words of :meth:`mfbandit.Experiment.confidence`."""

from dataclasses import dataclass, replace

import numpy as np

from mfbandit._internal.typing import FloatArray
from mfbandit.core import Concentration, Fidelities, Stats
from mfbandit.experiment import Confidence, Experiment
from mfbandit.policies import Policy
from mfbandit.policies.policy import HasIntervals
from mfbandit.search.split_effects import SplitAdjustedPolicy

INDEPENDENT = "Scores on different splits are independent."


@dataclass(frozen=True)
class _Chosen:
    """A policy that recommends what the search has chosen."""

    policy: Policy
    best: int

    def choose(self, stats: Stats, fidelities: Fidelities) -> tuple[int, int]:
        return self.policy.choose(stats, fidelities)

    def index(self, stats: Stats, fidelities: Fidelities) -> FloatArray:
        return self.policy.index(stats, fidelities)

    def recommend(self, stats: Stats, fidelities: Fidelities) -> int:  # noqa: ARG002 - the protocol's
        return self.best


class _ChosenByModel(_Chosen):
    """The same, with intervals that have no split effects in them."""

    def intervals(self, stats: Stats, fidelities: Fidelities) -> tuple[FloatArray, FloatArray]:
        policy = self.policy
        if isinstance(policy, SplitAdjustedPolicy):
            stats, policy = policy.adjusted(stats), policy.policy
        if isinstance(policy, HasIntervals):
            return policy.intervals(stats, fidelities)
        unknown = np.full(len(stats.active), np.inf)
        return -unknown, unknown


def confidence_of_search(
    experiment: Experiment, stats: Stats, best: int, *, noise: Concentration | None, level: float
) -> Confidence:
    """Say how sure it is that a candidate is the best of all that take part.

    With noise that is given, claims are valid for scores that are independent. Else it is an estimate, by the model of
    the policy if it has one.

    Args:
        experiment: of the search.
        stats: results of all candidates that take part, also of those that have seen all splits.
        best: the candidate that was chosen.
        noise: as it was given; None where it is learned.
        level: at which rivals and the possible loss are given.
    """
    inner = experiment.policy.policy if isinstance(experiment.policy, SplitAdjustedPolicy) else experiment.policy
    kind = _ChosenByModel if isinstance(inner, HasIntervals) else _Chosen
    known = replace(experiment.fidelities, concentration=noise)
    findings = replace(experiment.findings(), policy=kind(experiment.policy, best), stats=stats, fidelities=known)
    found = findings.confidence(level)
    return found if found.kind == "withheld" else replace(found, assumes=(*found.assumes, INDEPENDENT))
