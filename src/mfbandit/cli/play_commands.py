"""Commands that ask for plays and tell what came of them."""

from typing import Annotated, Optional

import typer

from mfbandit.cli.options import PlayId
from mfbandit.cli.store_commands import Answer, Call, on_experiment
from mfbandit.cli.times import local_time


@on_experiment
def ask(
    call: Call,
    n: Annotated[int, typer.Option("-n", help="How many plays; as many as fit into the capital are given.")] = 1,
    key: Annotated[
        Optional[str],
        typer.Option("--key", "--request-key", help="Names this request; the same key gives the same plays."),
    ] = None,
    lease: Annotated[Optional[float], typer.Option(help="Seconds until a play is taken back.")] = None,
) -> Answer:
    """Ask for the next plays."""
    from mfbandit._internal.formatting import columns, plain

    with call.experiment() as experiment:
        names = () if call.as_json else experiment.fidelities.labels
        plays = experiment.ask(n, request_key=key, lease=lease)
    fields = ("id", "arm", "label", "fidelity", "cost")
    rows = [(play.id, play.label, names[play.fidelity], plain(play.cost)) for play in plays if names]
    text = "\n".join(columns([("play", "arm", "fidelity", "cost"), *rows]))
    return Answer(text, [{field: getattr(play, field) for field in fields} for play in plays])


def _reward(word: str) -> float:
    """Read a reward. A word with dashes is a mistyped option: -0.5 is a reward, so the parser lets them pass.

    >>> _reward("-0.5")
    -0.5
    """
    try:
        return float(word)
    except ValueError:
        pass
    if word.startswith("--"):
        raise typer.BadParameter(f"there is no option {word}; clicks of impressions are --successes and --trials")
    raise typer.BadParameter(f"it must be a number, got {word!r}")


@on_experiment
def tell(  # noqa: PLR0913, PLR0917 - options of a command
    call: Call,
    play: PlayId,
    reward: Annotated[
        Optional[float],
        typer.Argument(metavar="REWARD", parser=_reward, help="What was observed; with --weight, the mean."),
    ] = None,
    cost: Annotated[Optional[float], typer.Option(help="What it really cost.")] = None,
    successes: Annotated[Optional[int], typer.Option(help="In place of REWARD: how many of --trials were 1.")] = None,
    trials: Annotated[Optional[int], typer.Option(help="How many observations of 0 and 1 there are.")] = None,
    weight: Annotated[Optional[int], typer.Option(help="How many observations REWARD is the mean of.")] = None,
    sd: Annotated[Optional[float], typer.Option(help="Their sample standard deviation, if it is known.")] = None,
    block: Annotated[
        Optional[str], typer.Option(help="The day, hour or machine; what it does to all arms alike is taken out.")
    ] = None,
) -> Answer:
    """Tell the result of a play; the same result again is fine.

    Many observations of one play are --successes and --trials, or REWARD with --weight and maybe --sd.
    """
    from mfbandit._internal.formatting import plain

    numbers = {"reward": reward, "successes": successes, "trials": trials, "weight": weight, "sd": sd}
    given: dict[str, float | str | None] = {**numbers, "block": block}
    said = {name: value for name, value in given.items() if value is not None}
    with call.experiment() as experiment:
        experiment.tell(play, reward, cost, successes=successes, trials=trials, weight=weight, sd=sd, block=block)
    texts = {name: value if isinstance(value, str) else plain(value) for name, value in said.items()}
    words = (text if name == "reward" else f"{name} {text}" for name, text in texts.items())
    return Answer(f"{play}: {', '.join(words)}", {"play": play, **said})


@on_experiment
def fail(
    call: Call,
    play: PlayId,
    cost: Annotated[float, typer.Option(help="What it cost all the same.")] = 0.0,
) -> Answer:
    """Report that a play gave no result: its capital is released."""
    with call.experiment() as experiment:
        experiment.fail(play, cost)
    return Answer(f"{play}: failed", {"play": play, "failed": True})


@on_experiment
def renew(
    call: Call,
    play: PlayId,
    lease: Annotated[Optional[float], typer.Option(help="Seconds from now; the experiment's by default.")] = None,
) -> Answer:
    """Renew the lease of a pending play."""
    with call.experiment() as experiment:
        due = experiment.renew(play, lease)
    words = "no lease" if due is None else f"leased until {local_time(due)}"
    return Answer(f"{play}: {words}", {"play": play, "due": due})
