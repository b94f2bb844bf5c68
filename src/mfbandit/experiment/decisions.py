"""Whether an experiment is decided now: by its rule for stopping, or by the policy's own."""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

import numpy as np

from mfbandit._internal.validation import whole
from mfbandit.core import has_evidence, refuting
from mfbandit.core.pair_claim import ResultsByFidelity, noise_of, open_mean, results_of
from mfbandit.errors import InvalidArgument, NoResults
from mfbandit.experiment.confidence_answer import Confidence
from mfbandit.experiment.events import Decided
from mfbandit.experiment.state import State
from mfbandit.experiment.stopping import Sure, checked_stop
from mfbandit.policies import uses_biases

if TYPE_CHECKING:
    from mfbandit.experiment.experiment import Experiment

ALMOST_SURE = 1 - 2**-53  # the largest level below 1
CLEARLY = 1 - 1e-6  # of what is needed: below, two ways to compute it agree that a rival is not ruled out


class HasConfidence(Protocol):
    """Anything that says how sure it is."""

    def confidence(self, level: float) -> Confidence:
        """How sure it is that the best arm so far is the best."""
        ...


def until_sure(experiment: HasConfidence, until: Sure | None) -> Callable[[], bool]:
    """A function that tells whether it is sure enough by now.

    Args:
        experiment: of any kind.
        until: how sure it has to be; None is never.

    >>> from mfbandit import UCB, Bounded, Experiment, Fidelities
    >>> exp = Experiment(UCB(), arms=2, fidelities=Fidelities([1], concentration=Bounded()))
    >>> until_sure(exp, Sure(0.95))()
    False
    """
    rule = checked_stop(until, "until")
    if rule is None:
        return lambda: False

    def sure_enough() -> bool:
        try:
            return rule.met_by(experiment.confidence(rule.level))
        except NoResults:
            return False

    return sure_enough


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
        state = self._experiment.folded
        if not state.stats.counts[:, state.stats.active].any():
            return None
        return self._by_policy(state) if state.stop is None else self._by_rule(state, state.stop)

    def _by_rule(self, state: State, rule: Sure) -> Decided | None:
        if not can_decide(state) or self._still_open(state, rule):
            return None
        found = self._experiment.confidence(rule.level)
        self._rival = found.rivals[0] if found.rivals else None
        return rule.decision(found)

    def _still_open(self, state: State, rule: Sure) -> bool:
        """Whether the rival that was not ruled out the last time clearly is not ruled out now."""
        noise, rival, stats = noise_of(state.fidelities), self._rival, state.stats
        if rival is None or noise is None or not stats.active[rival] or _some_dropped(state):
            return False
        best = self._experiment.best()
        if best == rival:
            return False
        (price,) = state.roster.log_prices(best, np.array([rival])).tolist()
        needed = (price - math.log1p(-rule.level)) * CLEARLY
        first, second = results_of(stats, best, noise), results_of(stats, rival, noise)
        start = 0.5 * (_mean(first) + _mean(second))
        return not math.isnan(open_mean(first, second, noise, rule.tolerance, needed, start))

    def _by_policy(self, state: State) -> Decided | None:
        found = _policys_own(state)
        if found is None or not (state.roster.changed or state.refuted) or found.level is None:
            return found
        # The policy does not know that arms came and went, nor that a bias does not hold: more has to be shown then.
        rule = Sure(min(found.level, ALMOST_SURE), found.tolerance)
        known = self._experiment.confidence(rule.level)
        return found if known.best == found.arm and rule.met_by(known) else None


def can_decide(state: State) -> bool:
    """Tell whether the rule for stopping can be met as things are: what is known of the noise, or an estimate does.

    >>> from mfbandit import MFBayes, Experiment, Fidelities
    >>> exp = Experiment(MFBayes(), arms=2, fidelities=Fidelities([1]), stop=Sure(0.95))
    >>> can_decide(exp.folded)
    False
    """
    fidelities, rule = state.fidelities, state.stop
    known = fidelities.concentration is not None and has_evidence(fidelities.tails[-1])
    return rule is not None and (known or rule.estimates)


def _some_dropped(state: State) -> bool:
    """Whether results refute a bias, so that a fidelity does not count; a policy without biases is not told of it."""
    if state.refuted or uses_biases(state.policy):
        return bool(state.refuted)
    return bool(refuting(state.stats, state.fidelities))


def _mean(arm: ResultsByFidelity) -> float:
    return sum(arm.sums) / max(sum(arm.counts), 1.0)


def _policys_own(state: State) -> Decided | None:
    if not state.policy_decides or state.decide is None:
        return None
    answer = state.decide(state.stats, state.fidelities)
    if answer is None:
        return None
    arm, policy = whole("a decided arm", answer), state.policy
    if not (0 <= arm < len(state.labels) and state.stats.active[arm]):
        raise InvalidArgument(f"a policy must decide for an active arm, and {type(policy).__name__} did for arm {arm}")
    delta, tolerance = getattr(policy, "delta", None), float(getattr(policy, "tolerance", 0.0))
    return Decided(arm, None if delta is None else 1 - delta, None if delta is None else tolerance, tolerance, "policy")
