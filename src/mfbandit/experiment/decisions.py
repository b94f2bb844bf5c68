"""Whether an experiment is decided now: by its rule for stopping, or by the policy's own."""

from typing import TYPE_CHECKING

from mfbandit._internal.validation import whole
from mfbandit.errors import InvalidArgument
from mfbandit.experiment.events import Decided
from mfbandit.experiment.state import State
from mfbandit.experiment.stopping import Sure

if TYPE_CHECKING:
    from mfbandit.experiment.experiment import Experiment

ALMOST_SURE = 1 - 2**-53  # the largest level below 1


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
    rule = Sure(min(found.level, ALMOST_SURE), found.tolerance)
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
    return Decided(arm, None if delta is None else 1 - delta, None if delta is None else tolerance, tolerance, "policy")
