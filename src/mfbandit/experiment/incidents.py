"""Warnings about what goes wrong: arms that changed or were set aside, capital overspent, a rule not to be met."""

from mfbandit._internal.formatting import readable
from mfbandit._internal.limits import MAX_ARMS_NAMED
from mfbandit.core import limit
from mfbandit.experiment.decisions import can_be_met
from mfbandit.experiment.drift_answer import drift_warnings
from mfbandit.experiment.state import State


def incidents_of(state: State, failures: int) -> list[str]:
    """Warn of arms that have changed or are set aside, by name, of spending beyond the capital, and of a rule not met.

    Args:
        state: of the experiment.
        failures: how many in a row set an arm aside.

    >>> from mfbandit import UCB, Bounded, Experiment, Fidelities
    >>> exp = Experiment(UCB(), arms=["ad-1", "ad-2"], fidelities=Fidelities([1], concentration=Bounded()))
    >>> for _ in range(3):
    ...     exp.fail(exp.ask())
    >>> incidents_of(exp.folded, failures=3)
    ['WARNING: ad-1 was set aside after 3 failures in a row; `restore_arm` brings it back']
    """
    found = (*drift_warnings(state), *_set_aside(state, failures), *_overspent(state), *_cannot_stop(state))
    return [f"WARNING: {text}" for text in found]


def _set_aside(state: State, failures: int) -> list[str]:
    arms = sorted(state.aside - state.retired)  # a retired arm is out of the way for another reason
    named, more = arms[:MAX_ARMS_NAMED], len(arms) - MAX_ARMS_NAMED
    after = f"set aside after {failures} failures in a row; `restore_arm` brings"
    texts = [f"{state.labels[arm]} was {after} it back" for arm in named]
    return [*texts, f"{more:,} more arm{'s were' if more > 1 else ' was'} {after} them back"] if more > 0 else texts


def _overspent(state: State) -> list[str]:
    capital, spent = state.capital, state.spent
    if capital is None or spent <= limit(capital):
        return []
    why = "results came after their plays had expired" if state.late else "results cost more than was left"
    return [f"spent {readable(spent)} of {readable(capital)}: {why}"]


def _cannot_stop(state: State) -> list[str]:
    if state.stop is None or can_be_met(state.stop, state):
        return []
    why = "nothing is known of the noise"
    if state.fades or state.adjusts:
        why = "old results fade" if state.fades else "what blocks do to all arms is learned from the results"
    rule = f"the rule for stopping cannot be met, as {why}"
    return [f"{rule}; `set_stop` with estimates=True lets an estimate do"]
