"""Commands that create, list, show and delete experiments."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from mfbandit._internal.limits import MAX_ITEMS_PER_REQUEST
from mfbandit.cli.control_commands import name_or_index
from mfbandit.cli.options import RequestKey
from mfbandit.cli.store_commands import Answer, Call, on_experiment, on_store
from mfbandit.cli.times import local_time
from mfbandit.errors import InvalidArgument

if TYPE_CHECKING:
    from mfbandit.cli.store_commands import StoredExperiment
    from mfbandit.experiment import Event, Record, Status

LEADING_ARMS_SHOWN = 10
EVENTS_SHOWN = 100
OF_THE_PLAYS = "Least share of the plays at the highest fidelity"


@on_experiment
def create(
    call: Call,
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A TOML file with [experiment] and [fidelities], or a [problem].")
    ],
    capital: Annotated[Optional[float], typer.Option(help="Instead of the file's.")] = None,
    control: Annotated[Optional[str], typer.Option(help="The arm that others are compared with.")] = None,
    control_share: Annotated[Optional[float], typer.Option(help=f"{OF_THE_PLAYS}, for the control.")] = None,
    least_share: Annotated[Optional[float], typer.Option(help=f"{OF_THE_PLAYS}, for every active arm.")] = None,
    request_key: RequestKey = None,
) -> Answer:
    """Create an experiment from a TOML file.

    [experiment] has arms: names, or how many. It may have capital, lease (seconds, 0 for none), control,
    control_share and least_share. With widen = true, biases that results refute are raised at once. [fidelities] and
    [[policies]] are as for simulate; the first policy is used, MFAuto by default. [stop] has level, tolerance and
    estimates: when it is sure enough, and hands out no more plays. [memory] has plays or time (seconds): when old
    results count half. A file for simulate will do, too. Its [problem] says how many arms there are, and what is
    known of the fidelities.
    """
    from mfbandit.cli.config import Config
    from mfbandit.cli.toml_table import at
    from mfbandit.store import check_definition, check_name

    check_name(call.name)
    described = Config(file).experiment()
    given = {"capital": capital, "control": control, "control_share": control_share, "least_share": least_share}
    described |= {option: value for option, value in given.items() if value is not None}
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
def watch(
    call: Call,
    every: Annotated[float, typer.Option(min=0.2, max=3600, help="Seconds between looks.")] = 2.0,
    top: Annotated[int, typer.Option(min=0, help="How many leading arms to show, as far as they fit.")] = (
        LEADING_ARMS_SHOWN
    ),
) -> None:
    """Watch an experiment: spending, how sure it is, and the leading arms.

    It is a live view in a terminal. Elsewhere it prints a line whenever something has changed, with --json an object.
    It ends when the experiment is decided or its capital is spent, and with Ctrl-C. If a service or a database is gone,
    it says so and goes on.
    """
    from mfbandit.cli.watch import watch as watched

    with call.experiment(writing=False) as experiment:
        watched(experiment, top=top, every=every, as_json=call.as_json)


@on_experiment
def compare(
    call: Call,
    first: Annotated[str, typer.Argument(metavar="A", help="An arm's name, or its index if no arm has that name.")],
    second: Annotated[str, typer.Argument(metavar="B", help="Another one's.")],
    level: Annotated[float, typer.Option(help="Of the interval for the difference, in (0, 1).")] = 0.95,
) -> Answer:
    """Compare two arms: which one is better, by how much, and how sure that is.

    A valid answer may be looked at after every result, for whichever arms: it allows for all pairs of arms at once.
    """
    from mfbandit.experiment import difference_record

    with call.experiment(writing=False) as experiment:
        arms = name_or_index(experiment, first), name_or_index(experiment, second)
        found = experiment.difference(*arms, level)
        table = "" if call.as_json else _two_arms(experiment, found.first, found.second)
    return Answer("\n\n".join(filter(None, (str(found), table))), difference_record(found))


def _two_arms(experiment: "StoredExperiment", first: int, second: int) -> str:
    try:
        bounds = experiment.bounds()
    except InvalidArgument:  # the noise is not known, and the policy has no intervals of its own
        return ""
    return f"The two arms ({bounds.kind}):\n{bounds.table([first, second])}"


@on_experiment
def log(
    call: Call,
    after: Annotated[
        Optional[int], typer.Option(min=0, help="Events after this number; the latest ones by default.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=MAX_ITEMS_PER_REQUEST, help="How many at most.")] = EVENTS_SHOWN,
) -> Answer:
    """List what happened: when, what, and who asked for it, a page at a time."""
    from itertools import islice

    from mfbandit.store import log_record

    with call.experiment(writing=False) as experiment:
        last = experiment.events
        start = max(0, last - limit) if after is None else after
        records = list(islice(experiment.records(after=start), limit))
    return Answer(_events(records, last), [log_record(one) for one in records])


def _events(records: "list[Record]", last: int) -> str:
    """Format events as a table, with how to see what comes after them."""
    if not records:
        return "no events"
    who = max(len("who"), *(len(one.actor or "-") for one in records))
    lines = [f"{'number':>9}  {'time':<23}  {'who':<{who}}  what"]
    for one in records:
        when, what = local_time(one.time), event_text(one.event)
        lines.append(f"{one.seq:>9}  {when:<23}  {one.actor or '-':<{who}}  {what}")
    left = last - records[-1].seq
    return "\n".join([*lines, *([f"{left:,} more: --after {records[-1].seq}"] if left > 0 else [])])


@on_experiment
def audit(call: Call) -> Answer:
    """Test whether the assumed biases hold, by all results so far."""
    from dataclasses import asdict

    with call.experiment(writing=False) as experiment:
        found = experiment.audit()
    record = {"alarm": found.alarm, "warnings": found.warnings, "fidelities": [asdict(one) for one in found.fidelities]}
    return Answer(str(found), record)


@on_experiment
def drift(call: Call) -> Answer:
    """Show which arms have changed: at which fidelity, since when, and by how much.

    It may be looked at after every result: 99 of 100 experiments never say so of an arm that stays the same.
    """
    from mfbandit.experiment import drift_record

    with call.experiment(writing=False) as experiment:
        found = experiment.drift()
    return Answer("\n".join(map(str, found)) or "no arm is known to have changed", [drift_record(one) for one in found])


def event_text(event: "Event") -> str:
    """Format an event: its kind, and what it has.

    >>> from mfbandit.experiment.events import Told
    >>> event_text(Told(play=7, reward=0.5, cost=1.0))
    'Told play=7 reward=0.5 cost=1.0'
    """
    from mfbandit.experiment import to_record

    kind, *fields = to_record(event).items()
    return " ".join([str(kind[1]), *(f"{name}={value!r}" for name, value in fields if value is not None)])


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
