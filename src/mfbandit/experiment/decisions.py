"""Whether an experiment is decided now: by its rule for stopping, or by the policy's own."""

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from mfbandit._internal.validation import whole
from mfbandit.core import KeptClaims, has_evidence, refuting
from mfbandit.core.pair_claim import ResultsByFidelity, noise_of, open_mean, results_of
from mfbandit.errors import InvalidArgument, NoResults
from mfbandit.experiment.confidence_answer import Confidence
from mfbandit.experiment.drift_answer import without_drifted
from mfbandit.experiment.events import Decided
from mfbandit.experiment.state import State
from mfbandit.experiment.stopping import Sure
from mfbandit.policies import uses_biases

if TYPE_CHECKING:
    from mfbandit.experiment.experiment import Experiment

ALMOST_SURE = 1 - 2**-53  # the largest level below 1
CLEARLY = 1 - 1e-6  # of what is needed: below, two ways to compute it agree that a rival is not ruled out


class Decisions:
    """Tests after results whether an experiment is decided.

    It remembers a rival that was not ruled out. As long as that one is not, nothing else has to be computed, so that
    most tests cost little. What is decided does not depend on it.

    Args:
        experiment: in memory.

    >>> from mfbandit import UCB, Bounded, Experiment, Fidelities
    >>> exp = Experiment(UCB(), arms=2, fidelities=Fidelities([1], concentration=Bounded()), stop=Sure(0.9))
    >>> Decisions(exp).now() is None
    True
    """

    def __init__(self, experiment: "Experiment") -> None:
        self._experiment = experiment
        self._rival: int | None = None

    def now(self) -> Decided | None:
        """What is decided by all results so far; None as long as the experiment goes on."""
        rule = self._experiment.stop
        return self._by_policy() if rule is None else self.by_rule(rule)

    def by_rule(self, rule: Sure) -> Decided | None:
        """What a rule decides by all results so far; None if it is not sure enough."""
        state = self._experiment.folded
        try:
            if not can_be_met(rule, state) or self._still_open(state, rule):
                return None
            found = self._confidence(state, rule.level)
        except NoResults:  # none at all, or none that the policy uses
            return None
        self._rival = found.rivals[0] if found.rivals else None
        return rule.decision(found)

    def _confidence(self, state: State, level: float) -> Confidence:
        """How sure it is that the best arm is the best, also against those that were set aside: they may come back."""
        findings, resting = self._experiment.findings(), sorted(state.aside - state.retired)
        if resting:
            best = findings.best()
            active = findings.stats.active.copy()
            active[resting] = True
            findings = replace(findings, stats=replace(findings.stats, active=active), kept=KeptClaims())
            if findings.best() != best:  # one that cannot be played is better
                return replace(findings.confidence(level), level=0.0, could_lose=math.inf)
        return findings.confidence(level)

    def _still_open(self, state: State, rule: Sure) -> bool:
        """Whether the rival that was not ruled out the last time clearly is not ruled out now."""
        noise, rival, stats = noise_of(state.fidelities), self._rival, state.stats
        if rival is None or noise is None or not stats.active[rival] or state.adjusts or _some_dropped(state):
            return False
        best = self._experiment.best()
        if best == rival:
            return False
        (price,) = state.roster.log_prices(best, np.array([rival])).tolist()
        needed = (price - math.log1p(-rule.level)) * CLEARLY
        first, second = results_of(stats, best, noise), results_of(stats, rival, noise)
        start = 0.5 * (_mean(first) + _mean(second))
        return not math.isnan(open_mean(first, second, noise, rule.tolerance, needed, start))

    def _by_policy(self) -> Decided | None:
        state = self._experiment.folded
        found = _policys_own(state)
        if found is None or found.level is None:
            return found
        if not (state.roster.changed or state.refuted or state.drifted or state.fades or state.adjusts):
            return found
        # The policy does not know that arms came and went, nor that a bias does not hold or a mean has changed; nor
        # that what blocks do is learned.
        rule = Sure(found.level, found.tolerance)
        known = self._confidence(state, rule.level)
        return found if known.best == found.arm and rule.met_by(known) else None


def can_be_met(rule: Sure, state: State) -> bool:
    """Tell whether a rule for stopping can be met as things are: the noise is known, or an estimate does.

    >>> from mfbandit import MFBayes, Experiment, Fidelities
    >>> exp = Experiment(MFBayes(), arms=2, fidelities=Fidelities([1]))
    >>> can_be_met(Sure(0.95), exp.folded), can_be_met(Sure(0.95, estimates=True), exp.folded)
    (False, True)
    """
    fidelities = state.fidelities
    known = fidelities.concentration is not None and has_evidence(fidelities.tails[-1])
    return (known and not state.fades and not state.adjusts) or rule.estimates


def _some_dropped(state: State) -> bool:
    """Whether results refute a bias, so that a fidelity does not count; a policy without biases is not told of it."""
    if state.refuted or uses_biases(state.policy):
        return bool(state.refuted)
    return bool(refuting(without_drifted(state.stats, state.stale), state.fidelities))


def _mean(arm: ResultsByFidelity) -> float:
    return sum(arm.sums) / max(sum(arm.counts), 1.0)


def _policys_own(state: State) -> Decided | None:
    if not state.policy_decides or state.decide is None:  # most policies: nothing more to be worked out
        return None
    stats = state.stats
    active = stats.active
    if not stats.counts[:, active].any():
        return None
    answer = state.decide(stats, state.fidelities)
    if answer is None:
        return None
    arm, policy = whole("a decided arm", answer), state.policy
    if not (0 <= arm < len(state.labels) and active[arm]):
        raise InvalidArgument(f"a policy must decide for an active arm, and {type(policy).__name__} did for arm {arm}")
    delta, tolerance = getattr(policy, "delta", None), float(getattr(policy, "tolerance", 0.0))
    if delta is None:
        return Decided(arm, None, None, tolerance, "policy")
    return Decided(arm, min(1 - delta, ALMOST_SURE), tolerance, tolerance, "policy")
