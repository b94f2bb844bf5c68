"""The command line: every command, by name. Nothing heavy is loaded before a command needs it."""

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from mfbandit.cli import (
    control_commands,
    exchange_commands,
    experiment_commands,
    play_commands,
    service_commands,
    serving,
    token_commands,
)
from mfbandit.cli.exit_codes import guarded
from mfbandit.cli.options import Json, ProblemFile, Workers
from mfbandit.cli.simulate import simulate
from mfbandit.cli.worker import work
from mfbandit.errors import InvalidArgument

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from mfbandit.core import Fidelities
    from mfbandit.policies import Policy
    from mfbandit.theory import Plan

app = typer.Typer(
    name="mfbandit",
    help="Multi-fidelity bandits: choose among options when a cheap, biased look costs less than the real thing.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

PANEL_NAMES = "partition, means, problem-1 to problem-4, table-1, misleading, learning-curves or beyond"


@app.command(epilog="Example: mfbandit reproduce --out results --quick")
@guarded
def reproduce(
    out: Annotated[str, typer.Option(help="Folder for figures, manifest.json and report.html.")] = "results",
    runs: Annotated[Optional[int], typer.Option(help="Runs of each policy; 100 by default, 10 with --quick.")] = None,
    seed: Annotated[int, typer.Option(help="Of the problems and all random numbers.")] = 0,
    only: Annotated[
        str | None,
        typer.Option(metavar="PANEL", help=f"One panel alone: {PANEL_NAMES}."),
    ] = None,
    workers: Workers = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Ten runs, every eighth data set, and nothing beyond the paper.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Reproduce the paper's figures and tables.

    Everything is measured again; report.html shows it, manifest.json has every number.

    An interrupted run goes on where it stopped if the seed, the runs and --quick are the same.
    """
    from mfbandit.reproduction import reproduce as job

    page = job(out, runs=runs, seed=seed, only=only, workers=workers, quick=quick)
    if as_json:
        typer.echo((page.parent / "manifest.json").read_text())
    else:
        typer.echo(f"Open {page}")


@app.command(epilog="Example: mfbandit theory problem.toml")
@guarded
def theory(file: ProblemFile, as_json: Json = False) -> None:
    """Show what the paper proves about a problem.

    Classes of arms, bounds on plays, and bounds on regret from above and below.

    The table [theory] has capital, and rho (5 by default; the regret bound needs more than 4).
    """
    from mfbandit._internal.formatting import strict_json
    from mfbandit.cli.config import Config
    from mfbandit.cli.toml_table import NUMBER, at
    from mfbandit.theory import summarize

    config = Config(file)
    table = config.table("theory")
    capital, rho = table.need("capital", NUMBER), table.get("rho", NUMBER, default=5.0)
    table.close()
    problem = config.problem()
    with at(table.where):
        result = summarize(problem, capital, rho)
    typer.echo(strict_json(result.numbers, indent=1) if as_json else str(result))


@app.command(epilog="Example: mfbandit plan campaign.toml")
@guarded
def plan(file: ProblemFile, as_json: Json = False) -> None:
    """Estimate what a capital will buy.

    Plays, spending and regret are estimated from guessed means, and whether each fidelity is worth its cost.

    The table [plan] has capital, and means or prior (past results) with arms; optionally rho, draws and seed.

    It is for the first MFUCB or UCB of [[policies]], with its rho unless [plan] has one. Without policies it is for
    MFUCB. Bounds by kl are not taken into account.
    """
    from mfbandit._internal.formatting import strict_json
    from mfbandit.cli.config import Config
    from mfbandit.cli.toml_table import NUMBER, NUMBERS_OR_ROWS, WHOLE, at
    from mfbandit.theory import plan as job

    config = Config(file)
    table = config.table("plan")
    capital = table.need("capital", NUMBER)
    guesses = {"means": NUMBERS_OR_ROWS, "prior": NUMBERS_OR_ROWS}
    options = table.chosen({**guesses, "arms": WHOLE, "rho": NUMBER, "draws": WHOLE, "seed": WHOLE})
    table.close()
    if config.has("problem"):
        problem = config.problem()
        fidelities = problem.fidelities
        options = options if set(guesses) & set(options) else {"means": problem.means, **options}
    else:
        fidelities = config.fidelities()
    if config.has("policies"):
        fidelities, options = _planned(config.policies(), fidelities, options, file)
    with at(table.where):
        result = job(fidelities, capital, **options)
    typer.echo(strict_json(_plan_numbers(result), indent=1) if as_json else str(result))


def _planned(
    policies: "list[Policy]", fidelities: "Fidelities", options: dict[str, Any], file: Path
) -> "tuple[Fidelities, dict[str, Any]]":
    """Return what to plan with for the first policy that a plan can be made for; UCB has the highest fidelity alone."""
    from mfbandit.policies import MFUCB, UCB

    names = ", ".join(type(one).__name__ for one in policies)
    chosen = next((one for one in policies if isinstance(one, MFUCB | UCB)), None)
    if chosen is None:
        raise InvalidArgument(f"{file}: [[policies]] must have MFUCB or UCB for a plan, got {names}")
    options = {"rho": chosen.rho, **options}
    if isinstance(chosen, UCB):
        tops = {key: _highest(options[key]) for key in ("means", "prior") if key in options}
        return fidelities.top, options | tops
    return fidelities, options


def _highest(guesses: "ArrayLike") -> "ArrayLike":
    """Return guesses at the highest fidelity alone, where there is a row for each."""
    import numpy as np

    table = np.asarray(guesses)
    return table if table.ndim == 1 else table[-1:]


def _plan_numbers(result: "Plan") -> dict[str, Any]:
    return {
        "capital": result.capital,
        "arms": result.arms,
        "rho": result.rho,
        "fidelities": list(result.fidelities.labels),
        "plays": result.plays.tolist(),
        "spending": result.spending.tolist(),
        "settles": result.settles.tolist(),
        "regret": result.regret,
        "regret_without": result.without.tolist(),
        "resolution": result.resolution,
        "verdicts": list(result.verdicts),
    }


@app.command(epilog="Example: mfbandit problem 1 > problem.toml")
@guarded
def problem(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help="1, 2, 3 or 4 (the paper's), misleading, or a data set of learning curves."
        ),
    ],
    seed: Annotated[int, typer.Option(min=0, help="For means that are drawn at random.")] = 0,
    as_json: Json = False,
) -> None:
    """Print a ready problem as a TOML file.

    With all its means, and tables for simulate, theory and plan: a file to start from.
    """
    from mfbandit.cli.problem_files import described

    text = described(name, seed)
    if as_json:
        import tomllib

        text = json.dumps(tomllib.loads(text))
    typer.echo(text)


@app.command(epilog="Example: mfbandit bench")
@guarded
def bench(as_json: Json = False) -> None:
    """Measure how fast this machine simulates.

    The compiled engine is timed beside plain NumPy, on the paper's four problems.
    """
    from mfbandit._internal.formatting import columns
    from mfbandit._internal.progress import progress_bar
    from mfbandit.cli.bench import speed

    numbers = (1, 2, 3, 4)
    with progress_bar("bench", len(numbers)) as tick:
        speeds = [speed(number, tick) for number in numbers]
    if as_json:
        rows = [{"problem": s.problem, "arms": s.arms, "engine": s.engine, "plain": s.plain} for s in speeds]
        typer.echo(json.dumps(rows, indent=1))
        return
    head = ("problem", "arms", "engine, plays/s", "plain NumPy, plays/s", "ratio")
    lines = [(str(s.problem), f"{s.arms:,}", f"{s.engine:,.0f}", f"{s.plain:,.0f}", f"{s.ratio:,.0f}") for s in speeds]
    typer.echo("\n".join(columns([head, *lines])))


@app.command(epilog="Example: mfbandit version")
@guarded
def version(as_json: Json = False) -> None:
    """Print the versions of mfbandit and its libraries."""
    from importlib.metadata import version as version_of

    from mfbandit._internal.imports import installed

    names = ("mfbandit", "numpy", "numba", "joblib", "matplotlib")
    versions = {name: version_of(name) for name in names if installed(name)} | {"python": sys.version.split()[0]}
    typer.echo(json.dumps(versions) if as_json else "\n".join(f"{name} {number}" for name, number in versions.items()))


@dataclass(frozen=True)
class Command:
    """A command of the command line.

    Args:
        run: the function that Typer calls.
        example: its arguments, for the help.
        settings: further settings of the command.
    """

    run: Callable[..., None]
    example: str
    settings: dict[str, Any] = field(default_factory=dict)


NEGATIVE_NUMBERS = {"ignore_unknown_options": True}  # -0.5 is a reward, not an option; --rho is a policy's

EXPERIMENT_COMMANDS = {
    "create": Command(experiment_commands.create, "ads.db ads campaign.toml"),
    "list": Command(experiment_commands.list_names, "ads.db"),
    "ask": Command(play_commands.ask, "ads.db ads -n 8 --json"),
    "tell": Command(play_commands.tell, "ads.db ads 0a1b2c3d4e5f-6a7b8c-0 0.43", NEGATIVE_NUMBERS),
    "fail": Command(play_commands.fail, "ads.db ads 0a1b2c3d4e5f-6a7b8c-0"),
    "renew": Command(play_commands.renew, "ads.db ads 0a1b2c3d4e5f-6a7b8c-0 --lease 7200"),
    "status": Command(experiment_commands.status, "ads.db ads"),
    "watch": Command(experiment_commands.watch, "ads.db ads"),
    "compare": Command(experiment_commands.compare, "ads.db ads ad-a ad-b"),
    "log": Command(experiment_commands.log, "ads.db ads --limit 20"),
    "pause": Command(control_commands.pause, "ads.db ads"),
    "resume": Command(control_commands.resume, "ads.db ads"),
    "add": Command(control_commands.add, "ads.db ads ad-z"),
    "retire": Command(control_commands.retire, "ads.db ads ad-c"),
    "restore": Command(control_commands.restore, "ads.db ads ad-c"),
    "forget": Command(control_commands.forget, "ads.db ads ad-c"),
    "capital": Command(control_commands.capital, "ads.db ads 200000"),
    "policy": Command(control_commands.policy, "ads.db ads MFUCB --rho 1", NEGATIVE_NUMBERS),
    "confidence": Command(experiment_commands.confidence, "ads.db ads --level 0.9"),
    "audit": Command(experiment_commands.audit, "ads.db ads"),
    "drift": Command(experiment_commands.drift, "ads.db ads"),
    "stop": Command(control_commands.stop, "ads.db ads 0.95 --tolerance 0.01"),
    "shares": Command(control_commands.shares, "ads.db ads --control ad-a --control-share 0.1"),
    "biases": Command(control_commands.biases, "ads.db ads 0.3,0.15,0"),
    "note": Command(control_commands.note, 'ads.db ads "the landing page changed"'),
    "export": Command(exchange_commands.export, "ads.db ads --out plays.csv"),
    "import": Command(exchange_commands.import_results, "ads.db ads last-year.csv --cost 0"),
    "delete": Command(experiment_commands.delete, "ads.db ads --confirm ads"),
}
TOKEN_COMMANDS = {
    "create": Command(token_commands.create_token, "ads.db --name ci --scope write"),
    "list": Command(token_commands.list_tokens, "ads.db"),
    "revoke": Command(token_commands.revoke_token, "ads.db 0a1b2c3d"),
}


def _group(name: str, about: str, entries: dict[str, Command]) -> None:
    group = typer.Typer(help=about, no_args_is_help=True, rich_markup_mode=None)
    for verb, entry in entries.items():
        example = f"Example: mfbandit {name} {verb} {entry.example}"
        group.command(verb, epilog=example, context_settings=entry.settings)(entry.run)
    app.add_typer(group, name=name)


app.command(epilog="Example: mfbandit simulate problem.toml --plot regret.png")(simulate)
_group(
    "experiment",
    "Live experiments: create, ask, tell, look, change. In a store file, in PostgreSQL or at a service.",
    EXPERIMENT_COMMANDS,
)
_group("token", "Bearer tokens of a service: create, list, revoke.", TOKEN_COMMANDS)
app.command(epilog="Example: mfbandit serve ads.db --port 8000")(serving.serve)
app.command(epilog="Example: mfbandit services postgresql://host/ads")(service_commands.services)
app.command(epilog="Example: mfbandit work http://127.0.0.1:8000 ads lab:dig")(work)
app.command(epilog="Example: mfbandit demo --speed 100")(serving.demo)
app.command(epilog="Example: mfbandit doctor ads.db")(serving.doctor)
