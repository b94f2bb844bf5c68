"""Commands that create, list, show and delete experiments."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from mfbandit.cli.options import RequestKey
from mfbandit.cli.store_commands import Answer, Call, on_experiment, on_store
from mfbandit.errors import InvalidArgument

if TYPE_CHECKING:
    from mfbandit.cli.store_commands import StoredExperiment
    from mfbandit.experiment import Status

LEADING_ARMS_SHOWN = 10


@on_experiment
def create(
    call: Call,
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A TOML file with [experiment] and [fidelities], or a [problem].")
    ],
    capital: Annotated[Optional[float], typer.Option(help="Instead of the file's.")] = None,
    request_key: RequestKey = None,
) -> Answer:
    """Create an experiment from a TOML file.

    [experiment] has arms (names, or how many), and optionally capital, lease (seconds, 0 for none) and widen (true:
    biases that results refute are raised at once). [fidelities] and [[policies]] are as for simulate; the first policy
    is used, MFUCB by default. [stop] has level, tolerance and estimates: when it is sure enough, and hands out no more
    plays. A file for simulate will do, too: its [problem] says how many arms there are, and what is
    known of the fidelities.
    """
    from mfbandit.cli.config import Config
    from mfbandit.cli.toml_table import at
    from mfbandit.store import check_definition, check_name

    check_name(call.name)
    described = Config(file).experiment()
    if capital is not None:
        described["capital"] = capital
    with at(f"{file}: [experiment] and [fidelities]:"):
        check_definition(**described)
    with call.store(writing=True, new=True) as store:
        made = store.create(call.name, described.pop("policy"), **described, request_key=request_key)
        arms, policy = len(made.arms), made.policy
        text = f"{call.name}: {arms:,} arm{'s' * (arms > 1)}, {policy}, in {store.name}"
        return Answer(text, {"name": call.name, "id": made.id})


@on_store
def list_names(call: Call) -> Answer:
    """List the names of all experiments."""
    with call.store(writing=False) as store:
        names = store.list()
    return Answer("\n".join(names) or "no experiments yet", list(names))


@on_experiment
def status(
    call: Call,
    top: Annotated[int, typer.Option(min=0, help="How many leading arms to show.")] = LEADING_ARMS_SHOWN,
) -> Answer:
    """Show state, capital, results and the leading arms.

    Pending plays, warnings, the best arm so far and how sure it is are shown, too. The recommended arm leads. The
    others follow by their lower bound, or by their estimate if the policy has a posterior and noise or biases are not
    known.
    """
    from mfbandit.cli.status_text import status_text

    with call.experiment(writing=False) as experiment:
        record = experiment.status()
        table = "" if call.as_json or not top or not any(record["results"]) else _leading_arms(experiment, record, top)
        sure = "" if call.as_json or record["best"] is None else experiment.confidence().sentence
    return Answer("\n\n".join(filter(None, (status_text(record, sure), table))), record)


def _leading_arms(experiment: "StoredExperiment", record: "Status", top: int) -> str:
    from mfbandit.cli.status_text import leading_arms

    try:
        return leading_arms(experiment.bounds(), record, top)
    except InvalidArgument:  # the noise is not known, and the policy has no intervals of its own
        return ""


@on_experiment
def confidence(
    call: Call,
    level: Annotated[float, typer.Option(help="At which rivals and the possible loss are shown, in (0, 1).")] = 0.95,
) -> Answer:
    """Show how sure it is that the recommended arm is the best.

    Also which arms may still be better, by how much, and what that assumes. A valid answer may be looked at after every
    result; where noise or biases are not known it is an estimate, or withheld, and says why.
    """
    from mfbandit.experiment import confidence_record

    with call.experiment(writing=False) as experiment:
        found = experiment.confidence(level)
        labels = () if call.as_json or not found.rivals else experiment.arms
    return Answer("\n\n".join([str(found), *([found.table(labels)] if labels else [])]), confidence_record(found))


@on_experiment
def audit(call: Call) -> Answer:
    """Test whether the assumed biases hold, by all results so far."""
    from dataclasses import asdict

    with call.experiment(writing=False) as experiment:
        found = experiment.audit()
    record = {"alarm": found.alarm, "warnings": found.warnings, "fidelities": [asdict(one) for one in found.fidelities]}
    return Answer(str(found), record)


@on_experiment
def delete(
    call: Call,
    confirm: Annotated[Optional[str], typer.Option(help="The name again; asked for otherwise.")] = None,
    request_key: RequestKey = None,
) -> Answer:
    """Delete an experiment and its log, for good."""
    if confirm is None:
        confirm = typer.prompt(f"This deletes {call.name} and everything that was learned. Its name again")
    if confirm != call.name:
        raise InvalidArgument(f"To delete {call.name!r}, pass --confirm {call.name}, got {confirm!r}")
    with call.store(writing=True) as store:
        store.delete(call.name, confirm=confirm, request_key=request_key)
    return Answer(f"{call.name}: deleted", {"deleted": call.name})
