"""Whether an experiment is decided now: by its rule for stopping, or by the policy's own."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from mfbandit._internal.validation import whole
from mfbandit.errors import InvalidArgument, NoResults
from mfbandit.experiment.events import Decided
from mfbandit.experiment.state import State
from mfbandit.experiment.stopping import Sure, checked_stop

if TYPE_CHECKING:
    from mfbandit.experiment.confidence_answer import Confidence
    from mfbandit.experiment.experiment import Experiment

ALMOST_SURE = 1 - 2**-53  # the largest level below 1


class HasConfidence(Protocol):
    """Anything that says how sure it is."""

    def confidence(self, level: float) -> "Confidence":
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


def decision_of(experiment: "Experiment") -> Decided | None:
    """What is decided by all results so far; None as long as the experiment goes on.

    >>> from mfbandit import UCB, Bounded, Experiment, Fidelities
    >>> exp = Experiment(UCB(), arms=2, fidelities=Fidelities([1], concentration=Bounded()), stop=Sure(0.9))
    >>> decision_of(exp) is None
    True
    """
    state = experiment.folded
    if not state.stats.counts[:, state.stats.active].any():
        return None
    if state.stop is not None:
        return state.stop.decision(experiment.confidence(state.stop.level))
    found = _policys_own(state)
    if found is None or not (state.roster.changed or state.refuted) or found.level is None:
        return found
    # The policy does not know that arms came and went, nor that a bias does not hold: more has to be shown then.
    rule = Sure(found.level, found.tolerance)
    known = experiment.confidence(rule.level)
    return found if known.best == found.arm and rule.met_by(known) else None


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
    if delta is None:
        return Decided(arm, None, None, tolerance, "policy")
    return Decided(arm, min(1 - delta, ALMOST_SURE), tolerance, tolerance, "policy")
