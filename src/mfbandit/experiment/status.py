"""An experiment at a glance, as a dictionary for JSON."""

from dataclasses import asdict
from typing import TYPE_CHECKING

from mfbandit.experiment.drift_answer import drift_record
from mfbandit.experiment.lift import lift_record
from mfbandit.experiment.memory import memory_record
from mfbandit.experiment.protocol import Status
from mfbandit.experiment.serialization import fidelities_record, policy_record
from mfbandit.experiment.shares import shares_record
from mfbandit.experiment.stopping import stop_record

if TYPE_CHECKING:
    from mfbandit.experiment.experiment import Experiment


def status_of(experiment: "Experiment", *, events: int, lease: float | None = None) -> Status:
    """What one wants to know first: state, capital, results at each fidelity, pending plays, the best arm so far.

    Args:
        experiment: in memory.
        events: how many its log has.
        lease: seconds that a play may take.

    >>> from mfbandit import UCB, Bounded, Experiment, Fidelities
    >>> exp = Experiment(UCB(), arms=["a"], fidelities=Fidelities([1], concentration=Bounded()), capital=5)
    >>> exp.tell(exp.ask(), 0.5)
    >>> found = status_of(exp, events=2)
    >>> found["state"], found["spent"], found["results"], found["best_label"]
    ('running', 1.0, [1], 'a')
    """
    labels, headline, decided = experiment.arms, experiment.headline(), experiment.decided
    best, other = headline.best, headline.runner_up
    return {
        "id": experiment.id,
        "state": experiment.state,
        "policy": policy_record(experiment.policy),
        "arms": len(labels),
        "fidelities": fidelities_record(experiment.fidelities),
        "capital": experiment.capital,
        "spent": experiment.spent,
        "reserved": experiment.reserved,
        "lease": lease,
        "events": events,
        "results": experiment.results_at,
        "observations": experiment.observations_at,
        "pending": experiment.pending_count,
        "retired": list(experiment.retired),
        "set_aside": list(experiment.set_aside),
        "best": best,
        "best_label": None if best is None else labels[best],
        "doubt": headline.doubt,
        "runner_up": other,
        "runner_up_label": None if other is None else labels[other],
        "widen": experiment.widen,
        "paused": experiment.paused,
        "stop": stop_record(experiment.stop),
        "decided": None if decided is None else asdict(decided),
        "decided_label": None if decided is None else labels[decided.arm],
        "shares": shares_record(experiment.shares),
        "control_label": None if experiment.shares.control is None else labels[experiment.shares.control],
        "lift": lift_record(experiment.lift()),
        "memory": memory_record(experiment.memory),
        "drift": [drift_record(one) for one in experiment.drift()],
        "warnings": [*(experiment.audit().warnings if experiment.refuted else ()), *experiment.incidents],
    }
