"""The contract of a kind of experiment: every rule, checked with experiments made for it."""

from mfbandit.testing import (
    _ask_tell_rules,
    _control_rules,
    _drift_rules,
    _observation_rules,
    _record_rules,
    _share_rules,
)
from mfbandit.testing._contract_examples import MakeExperiment

RULES = (
    _ask_tell_rules.plays_are_the_policys,
    _ask_tell_rules.plays_ahead_are_the_policys,
    _ask_tell_rules.results_come_in_any_order,
    _ask_tell_rules.results_count_once,
    _ask_tell_rules.bad_results_are_refused,
    _ask_tell_rules.capital_is_kept_to,
    _ask_tell_rules.failed_plays_leave_no_trace,
    _control_rules.failing_arms_are_set_aside,
    _control_rules.a_result_brings_an_arm_back,
    _control_rules.arms_come_and_go,
    _ask_tell_rules.best_needs_a_result,
    _record_rules.statistics_are_a_copy,
    _ask_tell_rules.many_results_are_told_or_none,
    _ask_tell_rules.many_plays_are_failed_or_none,
    _ask_tell_rules.renewal_is_for_pending_plays,
    _ask_tell_rules.keys_and_leases_are_for_shared_ones,
    _ask_tell_rules.a_hurried_one_is_the_same,
    _control_rules.state_is_what_ask_does,
    _control_rules.a_paused_one_hands_out_nothing,
    _control_rules.capital_can_change,
    _control_rules.policy_can_change,
    _control_rules.biases_can_change,
    _share_rules.shares_are_kept,
    _share_rules.a_lost_play_is_owed_again,
    _share_rules.the_control_is_compared_with,
    _control_rules.refuted_biases_put_the_best_arm_in_doubt,
    _control_rules.results_come_from_elsewhere,
    _control_rules.a_decided_one_goes_on_only_if_told_to,
    _record_rules.pending_plays_are_listed,
    _record_rules.status_is_of_one_moment,
    _record_rules.history_is_in_the_order_of_telling,
    _record_rules.bounds_audit_and_confidence_are_of_all_results,
    _record_rules.notes_are_in_the_log,
    _record_rules.the_log_tells_everything,
    _observation_rules.many_observations_are_one_result,
    _observation_rules.bad_observations_are_refused,
    _observation_rules.blocks_are_taken_out,
    _drift_rules.changes_are_found,
    _drift_rules.an_arm_begins_anew,
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
