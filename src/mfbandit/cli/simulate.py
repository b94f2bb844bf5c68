"""The command that simulates: one problem, or a study over many."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from mfbandit._internal.imports import need
from mfbandit.cli.exit_codes import guarded
from mfbandit.cli.files import check_writable, replacing
from mfbandit.cli.options import Json, ProblemFile, Workers
from mfbandit.errors import InvalidArgument

if TYPE_CHECKING:
    from mfbandit.cli.config import Config
    from mfbandit.problems import Problem
    from mfbandit.simulation import Simulation

PICTURES = (".png", ".svg", ".pdf")


@guarded
def simulate(  # noqa: PLR0913, PLR0917 - options of a command
    file: ProblemFile,
    plot: Annotated[Optional[Path], typer.Option(help="Draw regret against capital: .png, .svg or .pdf.")] = None,
    runs: Annotated[Optional[int], typer.Option(help="Runs of each policy, instead of the file's.")] = None,
    workers: Workers = None,
    engine: Annotated[str, typer.Option(help="threads, processes or dask.")] = "threads",
    address: Annotated[
        Optional[str],
        typer.Option(help="A Dask scheduler's, such as tcp://10.0.0.5:8786; else a cluster on this machine."),
    ] = None,
    results: Annotated[
        Optional[Path],
        typer.Option(metavar="DIR", help="Keep finished runs here; the same command goes on from them."),
    ] = None,
    grid: Annotated[bool, typer.Option("--grid", help="The whole study that the table [grid] describes.")] = False,
    as_json: Json = False,
) -> None:
    """Compare policies on a problem, or on many with --grid.

    Each is compared with the last one.

    The table [simulate] has capital, and optionally runs (20), seed (0), grid (100) and account ("paper").

    The table [grid] has capitals, or looks (capitals in full looks at every arm), and problems: a list such as
    [{paper = 1}, {paper = 3, seed = 2}, {learning_curve = "cmc"}]. Without problems, [problem] is used.
    """
    from mfbandit.cli.config import Config
    from mfbandit.simulation import backend as running_on

    _at_least_one("--workers", workers)
    _at_least_one("--runs", runs)
    if plot is not None:
        _check_picture(plot)
    if plot is not None and grid:
        raise InvalidArgument("--plot draws one problem, and --grid has many: leave out one of them")
    config = Config(file)
    options = _options(config, runs, grid) | {"workers": workers, "results": results}
    try:
        with running_on(engine, address=address, workers=workers):
            text = _study(config, options, as_json) if grid else _compare(config, options, plot, as_json)
    except KeyboardInterrupt:
        if results is not None:
            typer.echo(f"What is finished is kept in {results}: the same command goes on from there.", err=True)
        raise
    typer.echo(text)


def _options(config: "Config", runs: int | None, grid: bool) -> dict[str, Any]:
    """The table [simulate]; a grid has its own capitals."""
    from mfbandit.cli.toml_table import NUMBER, NUMBERS, TEXT, WHOLE, ValueKind

    table = config.table("simulate")
    points = ValueKind("a whole number or a list of numbers", lambda value: WHOLE.fits(value) or NUMBERS.fits(value))
    kinds = {"runs": WHOLE, "seed": WHOLE, "account": TEXT, "grid": points, "capital": NUMBER}
    if not grid:
        table.need("capital", NUMBER)
    options = {"runs": 20} | table.chosen(kinds)
    table.close()
    if grid:
        options.pop("capital", None), options.pop("grid", None)
    return options if runs is None else options | {"runs": runs}


def _compare(config: "Config", options: dict[str, Any], plot: Path | None, as_json: bool) -> str:
    from mfbandit._internal.formatting import strict_json
    from mfbandit.cli.toml_table import at
    from mfbandit.simulation import simulate as job

    problem, policies = config.problem(), config.policies()
    with at(config.table("simulate").where):
        sims = [job(problem, policy, **options) for policy in policies]
    if plot is not None:
        _draw(sims, plot)
    return strict_json(_simulated(sims), indent=1) if as_json else _simulated_text(problem, sims)


def _study(config: "Config", options: dict[str, Any], as_json: bool) -> str:
    from mfbandit._internal.formatting import strict_json
    from mfbandit.cli.toml_table import at
    from mfbandit.simulation import study

    described = config.grid()
    with at(config.table("grid").where):
        found = study(policies=config.policies(), **described, **options)
    return strict_json(found.rows(), indent=1) if as_json else str(found)


def _at_least_one(option: str, value: int | None) -> int | None:
    if value is not None and value < 1:
        raise InvalidArgument(f"{option} must be at least 1, got {value}")
    return value


def _check_picture(path: Path) -> None:
    need("matplotlib", "--plot", "plot")
    if path.suffix.lower() not in PICTURES:
        raise InvalidArgument(f"--plot must end in .png, .svg or .pdf, got {str(path)!r}")
    check_writable("--plot", path)


def _draw(sims: "list[Simulation]", path: Path) -> None:
    from matplotlib.figure import Figure

    from mfbandit import plotting

    figure = Figure(figsize=(5.6, 3.8), layout="constrained")
    plotting.plot_regret(sims, ax=figure.subplots())
    with replacing(path) as part:
        figure.savefig(part, dpi=150, format=path.suffix[1:].lower())


def _simulated(sims: "list[Simulation]") -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for sim in sims:
        summary = sim.summary() if len(sim.regret) > 1 else None
        rows.append(
            {
                "policy": sim.policy,
                "runs": len(sim.regret),
                "capital": sim.capital.tolist(),
                "regret": sim.regret.mean(axis=0).tolist(),
                "low": summary.low.tolist() if summary else None,
                "high": summary.high.tolist() if summary else None,
                "plays": sim.plays.sum(axis=1).tolist(),
                "steps": float(sim.steps.mean()),
            }
        )
    return rows


def _simulated_text(problem: "Problem", sims: "list[Simulation]") -> str:
    from mfbandit._internal.formatting import columns, plain, readable
    from mfbandit.simulation import compare

    runs = len(sims[0].regret)
    rows = [("policy", "regret", "95 % interval", f"ratio to {sims[-1].policy}", "plays at each fidelity")]
    for sim in sims:
        interval, ratio = "-", "-"
        if runs > 1:
            summary, against = sim.summary(), compare(sim, sims[-1])
            interval = f"{readable(summary.low[-1])} to {readable(summary.high[-1])}"
            if sim is not sims[-1] and math.isfinite(against.ratio[-1]):
                ratio = f"{against.ratio[-1]:.3f} ({against.ratio_low[-1]:.3f} to {against.ratio_high[-1]:.3f})"
        plays = " / ".join(f"{n:,.0f}" for n in sim.plays.sum(axis=1))
        rows.append((sim.policy, readable(sim.regret[:, -1].mean()), interval, ratio, plays))
    costs = ", ".join(plain(cost, thousands="") for cost in problem.fidelities.costs)
    arms = f"{problem.arms:,} arm{'s' * (problem.arms > 1)}"
    title = f"{arms}, costs {costs}; capital {plain(sims[0].capital[-1], 10)}, {runs:,} run{'s' * (runs > 1)}"
    return "\n".join([title, *columns(rows)])
