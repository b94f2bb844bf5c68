"""The command line. Nothing heavy is loaded before a command needs it."""

import json
import sys
from typing import Annotated, Any, Optional

import typer

from mfbandit.cli import live as cli_live
from mfbandit.cli.exit_codes import guarded
from mfbandit.cli.simulate import File, Json, Workers, simulate
from mfbandit.cli.worker import work

app = typer.Typer(
    name="mfbandit",
    help="Multi-fidelity bandits: choose among options when a cheap, biased look costs less than the real thing.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

PANEL_NAMES = "partition, means, problem-1 to problem-4, table-1, misleading, learning-curves or beyond"


@app.command(epilog="Example: mfbandit reproduce --out results --quick")
@guarded
def reproduce(
    out: Annotated[str, typer.Option(help="Folder for figures, manifest.json and report.html.")] = "results",
    runs: Annotated[Optional[int], typer.Option(help="Runs of each policy; 100 by default, 10 with --quick.")] = None,
    seed: Annotated[int, typer.Option(help="For the problems and all chance.")] = 0,
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
    """Redraw the paper and write a page about it.

    Its figures and tables are measured anew; report.html tells the story, manifest.json has every number.

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
def theory(file: File, as_json: Json = False) -> None:
    """What the paper proves about a problem.

    Classes of arms, bounds on plays, and bounds on regret from above and below.

    The table [theory] has capital, and rho (5 by default; the regret bound needs more than 4).
    """
    from mfbandit._internal.formatting import strict_json
    from mfbandit.cli.config import NUMBER, Config, at
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
def plan(file: File, as_json: Json = False) -> None:
    """What a capital will buy.

    An estimate from guessed means of plays, spending and regret, and whether each fidelity earns its place.

    The table [plan] has capital, and means or prior (past results) with arms; rho, draws and seed if you like.
    """
    from mfbandit._internal.formatting import strict_json
    from mfbandit.cli.config import NUMBER, NUMBERS_OR_ROWS, WHOLE, Config, at
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
    with at(table.where):
        result = job(fidelities, capital, **options)
    typer.echo(strict_json(_plan_numbers(result), indent=1) if as_json else str(result))


def _plan_numbers(result: Any) -> dict[str, Any]:  # noqa: ANN401 - a Plan
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
        str, typer.Argument(help="1, 2, 3 or 4 (the paper's), misleading, or a data set of learning curves.")
    ],
    seed: Annotated[int, typer.Option(min=0, help="For means that are drawn.")] = 0,
    as_json: Json = False,
) -> None:
    """Print a ready problem as a TOML file.

    With all its means, and tables for simulate, theory and plan: a file to start from.
    """
    from mfbandit.cli.config import described

    text = described(name, seed)
    if as_json:
        import tomllib

        text = json.dumps(tomllib.loads(text))
    typer.echo(text)


@app.command(epilog="Example: mfbandit bench")
@guarded
def bench(as_json: Json = False) -> None:
    """How fast this machine simulates.

    The compiled engine beside the plain NumPy path, on the paper's four problems.
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
    """Versions of mfbandit and its libraries."""
    from importlib.metadata import version as installed

    from mfbandit._internal.imports import installed as is_installed

    names = ("mfbandit", "numpy", "numba", "joblib", "matplotlib")
    versions = {name: installed(name) for name in names if is_installed(name)} | {"python": sys.version.split()[0]}
    typer.echo(json.dumps(versions) if as_json else "\n".join(f"{name} {number}" for name, number in versions.items()))


app.command(epilog="Example: mfbandit simulate problem.toml --plot regret.png")(simulate)
app.add_typer(cli_live.experiments, name="experiment")
app.add_typer(cli_live.tokens, name="token")
app.command(epilog="Example: mfbandit serve ads.db --port 8000")(cli_live.serve)
app.command(epilog="Example: mfbandit work http://127.0.0.1:8000 ads lab:dig")(work)
app.command(epilog="Example: mfbandit demo --speed 100")(cli_live.demo)
app.command(epilog="Example: mfbandit doctor ads.db")(cli_live.doctor)
