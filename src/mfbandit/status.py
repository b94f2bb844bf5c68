"""An experiment at a glance, as a dictionary for JSON: for the command line and the service."""

from typing import Any

from mfbandit.durable import DurableExperiment
from mfbandit.errors import NoResults
from mfbandit.wire import fidelities_record, policy_record


def status(experiment: DurableExperiment) -> dict[str, Any]:
    """What one wants to know first: state, capital, results at each fidelity, plays under way, the best arm so far."""
    try:
        best: int | None = experiment.best()
    except NoResults:
        best = None
    labels = experiment.arms
    return {
        "name": experiment.name,
        "id": experiment.id,
        "state": experiment.state,
        "created": experiment.created,
        "policy": policy_record(experiment.policy),
        "arms": len(labels),
        "fidelities": fidelities_record(experiment.fidelities),
        "capital": experiment.capital,
        "spent": experiment.spent,
        "reserved": experiment.reserved,
        "lease": experiment.lease,
        "events": experiment.events,
        "results": experiment.results_at,
        "pending": experiment.pending_count,
        "retired": list(experiment.retired),
        "set_aside": list(experiment.set_aside),
        "best": best,
        "best_label": None if best is None else labels[best],
    }
