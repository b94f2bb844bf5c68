"""The contract of a kind of experiment: every rule, checked with experiments made for it."""

from mfbandit.testing import ask_tell_rules, control_rules, record_rules
from mfbandit.testing.contract_examples import MakeExperiment

RULES = (
    ask_tell_rules.plays_are_the_policys,
    ask_tell_rules.plays_ahead_are_the_policys,
    ask_tell_rules.results_come_in_any_order,
    ask_tell_rules.results_count_once,
    ask_tell_rules.bad_results_are_refused,
    ask_tell_rules.capital_is_kept_to,
    ask_tell_rules.failed_plays_leave_no_trace,
    control_rules.failing_arms_are_set_aside,
    control_rules.arms_come_and_go,
    ask_tell_rules.best_needs_a_result,
    record_rules.statistics_are_a_copy,
    ask_tell_rules.many_results_are_told_or_none,
    ask_tell_rules.many_plays_are_failed_or_none,
    ask_tell_rules.renewal_is_for_pending_plays,
    ask_tell_rules.keys_and_leases_are_for_shared_ones,
    ask_tell_rules.a_hurried_one_is_the_same,
    control_rules.state_is_what_ask_does,
    control_rules.a_paused_one_hands_out_nothing,
    control_rules.capital_can_change,
    control_rules.policy_can_change,
    control_rules.biases_can_change,
    control_rules.results_come_from_elsewhere,
    record_rules.pending_plays_are_listed,
    record_rules.status_is_of_one_moment,
    record_rules.history_is_in_the_order_of_telling,
    record_rules.bounds_and_audit_are_of_all_results,
    record_rules.notes_are_in_the_log,
    record_rules.the_log_tells_everything,
)


def check_experiment(make: MakeExperiment) -> None:
    """Check that a kind of experiment keeps to :class:`~mfbandit.experiment.AnyExperiment`.

    Raises:
        ContractBroken: a rule is broken; the message says which.

    Args:
        make: makes a new experiment from a policy, names of arms, fidelities and capital.

    >>> from mfbandit import Experiment
    >>> check_experiment(lambda policy, arms, fidelities, capital: Experiment(
    ...     policy, arms=arms, fidelities=fidelities, capital=capital))
    """
    for rule in RULES:
        rule(make)
