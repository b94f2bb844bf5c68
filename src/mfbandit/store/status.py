"""An experiment at a glance, as a dictionary for JSON: for the command line and the service."""

from typing import Any

from mfbandit.core import Bounds
from mfbandit.errors import NoResults
from mfbandit.experiment import fidelities_record, policy_record
from mfbandit.store.durable_experiment import DurableExperiment


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
        "warnings": list(experiment.audit().warnings) if experiment.refuted else [],
    }


def readable_status(record: dict[str, Any]) -> str:
    """The same in lines for people."""
    costs = record["fidelities"]["costs"]
    results = ", ".join(f"{n:,} at cost {cost:g}" for n, cost in zip(record["results"], costs, strict=True))
    capital = "unlimited" if record["capital"] is None else f"{record['capital']:,.10g}"
    share = "" if record["capital"] is None else f" ({record['spent'] / record['capital']:.1%})"
    policy = dict(record["policy"])
    name = policy.pop("name")
    fields = ", ".join(f"{field}={value}" for field, value in policy.items())
    lines = [
        ("experiment", f"{record['name']} ({record['state']})"),
        ("policy", f"{name}({fields})"),
        ("capital", f"{record['spent']:,.10g} spent{share}, {record['reserved']:,.10g} reserved, of {capital}"),
        ("results", results),
        ("under way", f"{record['pending']:,} play{'s' * (record['pending'] != 1)}"),
        ("arms", _arms(record)),
        (
            "best so far",
            "no result yet" if record["best"] is None else f"{record['best_label']} (arm {record['best']})",
        ),
    ]
    return "\n".join([*record["warnings"], *(f"{name:12} {text}" for name, text in lines)])


def _arms(record: dict[str, Any]) -> str:
    parts = [f"{record['arms']:,}"]
    parts += [f"{len(record['retired']):,} retired"] if record["retired"] else []
    parts += [f"{len(record['set_aside']):,} set aside after failures"] if record["set_aside"] else []
    return ", ".join(parts)


def leading(bounds: Bounds, top: int) -> str:
    """The leading arms of a table of bounds, each at all its fidelities."""
    lines = str(bounds).splitlines()
    return "\n".join(lines[: 1 + top * len(bounds.plays)])
