"""Commands that change a live experiment."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from mfbandit._internal.limits import MAX_PLAY_NUMBER_DIGITS
from mfbandit.cli.options import Arm, RequestKey
from mfbandit.cli.store_commands import Answer, Call, on_experiment
from mfbandit.errors import InvalidArgument

if TYPE_CHECKING:
    from mfbandit.experiment import AnyExperiment, Status
    from mfbandit.policies import Policy


@on_experiment
def pause(call: Call, request_key: RequestKey = None) -> Answer:
    """Hand out no plays until resumed; results are still recorded."""
    with call.experiment() as experiment:
        experiment.pause(request_key=request_key)
    return Answer(f"{call.name}: paused", {"name": call.name, "done": "pause"})


@on_experiment
def resume(call: Call, request_key: RequestKey = None) -> Answer:
    """Hand out plays again."""
    with call.experiment() as experiment:
        experiment.resume(request_key=request_key)
    return Answer(f"{call.name}: running", {"name": call.name, "done": "resume"})


@on_experiment
def add(
    call: Call,
    label: Annotated[str, typer.Argument(metavar="LABEL", help="The new arm's name.")],
    request_key: RequestKey = None,
) -> Answer:
    """Add an arm, which is tried before any other."""
    with call.experiment() as experiment:
        index = experiment.add_arm(label, request_key=request_key)
    return Answer(f"{call.name}: {label} is arm {index}", {"arm": index, "label": label})


@on_experiment
def retire(call: Call, arm: Arm, request_key: RequestKey = None) -> Answer:
    """Stop asking for an arm, until it is restored.

    Late results are still recorded.
    """
    with call.experiment() as experiment:
        which = name_or_index(experiment, arm)
        experiment.retire_arm(which, request_key=request_key)
        label = which if isinstance(which, str) else experiment.arms[which]
    return Answer(f"{call.name}: {label} is retired", {"arm": label, "retired": True})


@on_experiment
def restore(call: Call, arm: Arm, request_key: RequestKey = None) -> Answer:
    """Let an arm that was retired, or set aside after failures, take part again."""
    with call.experiment() as experiment:
        experiment.restore_arm(name_or_index(experiment, arm), request_key=request_key)
    return Answer(f"{call.name}: {arm} takes part again", {"arm": arm, "restored": True})


@on_experiment
def forget(call: Call, arm: Arm, request_key: RequestKey = None) -> Answer:
    """Begin an arm anew, such as one that has changed.

    Its results until now do not count any more. What they cost stays paid, and the log keeps them.
    """
    with call.experiment() as experiment:
        experiment.forget(name_or_index(experiment, arm), request_key=request_key)
    return Answer(f"{call.name}: {arm} begins anew", {"arm": arm, "forgotten": True})


def name_or_index(experiment: "AnyExperiment", text: str) -> int | str:
    """Return the index that a text is, if no arm has that name; else the name."""
    is_number = text.isdecimal() and len(text) <= MAX_PLAY_NUMBER_DIGITS
    return int(text) if is_number and text not in experiment.arms else text


@on_experiment
def capital(
    call: Call,
    amount: Annotated[
        str,
        typer.Argument(metavar="AMOUNT", help="What all plays together may cost, past ones included; or unlimited."),
    ],
    request_key: RequestKey = None,
) -> Answer:
    """Change what all plays together may cost.

    A policy with a capital of its own, such as MFTopTwo, gets the new one, too, if the two were equal.
    """
    from mfbandit._internal.formatting import plain

    total = None if amount == "unlimited" else _number("capital", amount)
    with call.experiment() as experiment:
        experiment.set_capital(total, request_key=request_key)
        rule = experiment.policy
    words = "unlimited" if total is None else plain(total, 10)
    own: float | None = getattr(rule, "capital", None)
    if own is None:
        return Answer(f"{call.name}: capital {words}", {"capital": total})
    name = type(rule).__name__
    also = (
        f"of {name}, too" if own == total else f"{name} keeps its own, {plain(own, 10)}: `experiment policy` changes it"
    )
    return Answer(f"{call.name}: capital {words}; {also}", {"capital": total, "policy_capital": own})


@on_experiment
def policy(
    call: Call,
    kind: Annotated[
        Optional[str], typer.Argument(metavar="POLICY", help="Its name, such as MFUCB; without one it is shown.")
    ] = None,
    fields: Annotated[
        Optional[list[str]],
        typer.Argument(metavar="[--FIELD VALUE]...", help="Its parameters, as in [[policies]] of a TOML file."),
    ] = None,
    request_key: RequestKey = None,
) -> Answer:
    """Show the policy, or let another one pick plays from now on.

    What was learned is kept.
    """
    from mfbandit.experiment import policy_record

    if kind is None:
        with call.experiment(writing=False) as experiment:
            chosen = experiment.policy
    else:
        chosen = _policy(kind, fields or [])
        with call.experiment() as experiment:
            experiment.set_policy(chosen, request_key=request_key)
    return Answer(f"{call.name}: {chosen}", policy_record(chosen))


def _policy(kind: str, words: list[str]) -> "Policy":
    from mfbandit.cli.config import policy_from_table
    from mfbandit.cli.toml_table import Table

    return policy_from_table(Table("policy", {"name": kind, **_fields(words)}))


def _fields(words: list[str]) -> dict[str, bool | int | float | str]:
    """Return the values of --field value, --field=value, or --field for true.

    >>> _fields(["--rho", "1", "--kl"]), _fields(["--r0=0.25"])
    ({'rho': 1, 'kl': True}, {'r0': 0.25})
    """
    found: dict[str, bool | int | float | str] = {}
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if not word.startswith("--"):
            raise InvalidArgument(f"a policy's parameters must be given as --field value, got {word!r}")
        name, given, value = word[2:].partition("=")
        if not given:
            value = rest.pop(0) if rest and not rest[0].startswith("--") else "true"
        found[name.replace("-", "_")] = _value(value)
    return found


def _value(text: str) -> bool | int | float | str:
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


@on_experiment
def stop(
    call: Call,
    level: Annotated[
        Optional[str],
        typer.Argument(metavar="LEVEL", help="How sure it has to be, such as 0.95; or never. Without one it is shown."),
    ] = None,
    tolerance: Annotated[
        float, typer.Option(help="How much worse than the best the answer may be, in units of reward.")
    ] = 0.0,
    estimates: Annotated[
        bool, typer.Option("--estimates", help="Let an estimate do, where noise or biases are not known.")
    ] = False,
    request_key: RequestKey = None,
) -> Answer:
    """Set when the experiment is sure enough, and hands out no more plays.

    An experiment that is decided goes on, unless it is sure enough by the new rule. After `never` it goes on even if
    its policy has a rule of its own, as MFSure does.
    """
    from mfbandit.experiment import Sure

    chosen = None if level in (None, "never") else Sure(_number("level", str(level)), tolerance, estimates)
    with call.experiment(writing=level is not None) as experiment:
        if level is not None:
            experiment.set_stop(chosen, request_key=request_key)
        status = experiment.status()
    return Answer(f"{call.name}: {_stopping(status)}", {"stop": status["stop"], "decided": status["decided"]})


def _stopping(status: "Status") -> str:
    from mfbandit.cli.status_text import decided_words, stop_words

    return "; ".join(filter(None, (stop_words(status) or "no rule for stopping", decided_words(status))))


@on_experiment
def shares(
    call: Call,
    control: Annotated[
        Optional[str], typer.Option(help="The arm that others are compared with: name or index.")
    ] = None,
    control_share: Annotated[
        Optional[float], typer.Option(help="Least share of the plays at the highest fidelity, for the control.")
    ] = None,
    least_share: Annotated[Optional[float], typer.Option(help="Least share of these, for every active arm.")] = None,
    none: Annotated[bool, typer.Option("--none", help="No control and no shares from now on.")] = False,
    request_key: RequestKey = None,
) -> Answer:
    """Show the control and the shares of arms, or set all of them.

    They are shares of the plays at the highest fidelity, kept whatever the policy chooses. What is left out is none.
    """
    writing = none or any(option is not None for option in (control, control_share, least_share))
    with call.experiment(writing=writing) as experiment:
        if writing:
            experiment.set_shares(
                control=None if control is None else name_or_index(experiment, control),
                control_share=control_share or 0.0,
                least_share=least_share or 0.0,
                request_key=request_key,
            )
        known, labels = experiment.shares, experiment.arms
    return Answer(f"{call.name}: {known.words(labels) or 'no control and no shares'}", asdict(known))


@on_experiment
def biases(
    call: Call,
    values: Annotated[
        str, typer.Argument(metavar="BIASES", help="One for each fidelity, separated by commas; the last is 0.")
    ],
    request_key: RequestKey = None,
) -> Answer:
    """Assume other biases from now on."""
    from mfbandit._internal.formatting import plain

    chosen = [_number("a bias", part) for part in values.split(",")]
    with call.experiment() as experiment:
        experiment.set_biases(chosen, request_key=request_key)
    return Answer(f"{call.name}: biases {', '.join(plain(bias, thousands='') for bias in chosen)}", {"biases": chosen})


def _number(what: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InvalidArgument(f"{what} must be a number, got {text!r}") from None


@on_experiment
def note(
    call: Call,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What to remember.")],
    arm: Annotated[
        Optional[str], typer.Option(help="The arm that it is about: its name, or its index if no arm has that name.")
    ] = None,
    request_key: RequestKey = None,
) -> Answer:
    """Write a note into the log."""
    with call.experiment() as experiment:
        about = None if arm is None else name_or_index(experiment, arm)
        experiment.note(text, arm=about, request_key=request_key)
    return Answer(f"{call.name}: noted", {"note": text} if arm is None else {"note": text, "arm": arm})
