"""The paper's figures and tables, measured anew: pictures, numbers and a page that tells the story.

Work is done in panels. A finished panel is a JSON file of its numbers beside its pictures, written last, so that an
interrupted run leaves only whole panels and the next one with the same settings goes on after them.
"""

import json
import platform
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

import mfbandit
from mfbandit import theory
from mfbandit.arrays import FloatArray
from mfbandit.policies import MFUCB, UCB, Policy
from mfbandit.problem import Problem
from mfbandit.problems import learning_curve_names, learning_curve_problem, misleading_problem, paper_problem
from mfbandit.progress import Tick, bar, line
from mfbandit.report import report
from mfbandit.runs import simulate
from mfbandit.simulation import Simulation, compare
from mfbandit.values import whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LOOKS = 40  # capital in full looks at every arm, K·λ_M
PROVED = 5.0  # ρ above 4, for the table of bounds
CURVE_LOOKS = (2.0, 20.0)
GRID = 80
QUICK_RUNS = 10
QUICK_CURVES = 8  # every so manieth data set

Numbers: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class Settings:
    """What the numbers depend on: runs of each policy, the seed, and whether learning curves are thinned out."""

    runs: int
    seed: int
    quick: bool


@dataclass(frozen=True)
class Job:
    """One panel's way to run simulations: its settings, the workers, and where it says how far it has come."""

    settings: Settings
    workers: int | None
    tick: Tick

    def both(self, problem: Problem, capital: float, *, share: float = 1.0, **options: Any) -> dict[str, Simulation]:  # noqa: ANN401 - simulate's own
        """MF-UCB and UCB on a problem, run by run with the same chance."""
        policies: dict[str, Policy] = {"MF-UCB": MFUCB(), "UCB": UCB()}
        return {
            name: self.simulate(problem, policy, capital, share=share / len(policies), **options)
            for name, policy in policies.items()
        }

    def simulate(self, problem: Problem, policy: Policy, capital: float, *, share: float, **options: Any) -> Simulation:  # noqa: ANN401
        """One policy on a problem; ``share`` of the panel's work."""
        options = {"runs": self.settings.runs, "grid": GRID, **options}
        return simulate(
            problem,
            policy,
            capital=capital,
            seed=self.settings.seed,
            workers=self.workers,
            progress=lambda done: self.tick(done * share),
            **options,
        )


@dataclass(frozen=True)
class Made:
    """What a panel made: its numbers, ready for JSON, and its figures by file name."""

    numbers: Numbers
    figures: Mapping[str, "Figure"]


@dataclass(frozen=True)
class Panel:
    """One unit of work; ``weight`` is its rough share of the time."""

    weight: float
    make: Callable[[Job], Made]


def reproduce(
    out: str | Path,
    *,
    runs: int | None = None,
    seed: int = 0,
    only: str | None = None,
    workers: int | None = None,
    quick: bool = False,
) -> Path:
    """Measure and draw the paper's figures and tables anew, and write a page about it.

    Args:
        out: folder for pictures (PNG and SVG), ``manifest.json`` with every number, and ``report.html``.
        runs: runs of each policy on each problem; 100 by default, 10 if ``quick``.
        seed: for the problems and all chance.
        only: one panel alone, a name of ``PANELS``.
        workers: threads; all cores by default. Results do not depend on it.
        quick: fewer runs, and every eighth data set of the learning curves.

    Returns:
        The page's path.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     reproduce(folder, runs=2, only="misleading").name
    'report.html'
    """
    if only is not None and only not in PANELS:
        raise ValueError(f"only must be one of {', '.join(PANELS)}, got {only!r}")
    number = runs if runs is not None else QUICK_RUNS if quick else 100
    if whole("runs", number) < 2:  # noqa: PLR2004 - one run has no interval
        raise ValueError(f"runs must be at least 2, for intervals, got {number}")
    folder = writable(Path(out))
    settings = Settings(number, whole("seed", seed), quick)
    wanted = [name for name in PANELS if only in (None, name)]
    missing = [name for name in wanted if finished(folder, name, settings) is None]
    with bar("reproduce", sum(PANELS[name].weight for name in missing)) as tick:
        for name in missing:
            _make(folder, name, Job(settings, workers, lambda done, w=PANELS[name].weight: tick(done * w)))  # type: ignore[misc]
    return write_up(folder, settings)


def writable(folder: Path) -> Path:
    """The folder, made if need be and tried before any work is done.

    >>> writable(Path("/proc/nowhere"))
    Traceback (most recent call last):
    ValueError: out must be a folder that can be written, got /proc/nowhere (No such file or directory)
    """
    try:
        (folder / "panels").mkdir(parents=True, exist_ok=True)
        probe = folder / "panels" / ".probe"
        probe.write_text("")
        probe.unlink()
    except OSError as error:
        raise ValueError(f"out must be a folder that can be written, got {folder} ({error.strerror})") from None
    return folder


def finished(folder: Path, name: str, settings: Settings) -> Numbers | None:
    """A panel's record, if it was made with these settings and is whole; else None.

    >>> finished(Path("nowhere"), "means", Settings(runs=2, seed=0, quick=False))
    """
    try:
        record: Numbers = json.loads(_record(folder, name).read_text())
    except (OSError, ValueError):
        return None
    made_so = record.get("settings") == asdict(settings) and record.get("version") == mfbandit.__version__
    return record if made_so and all((folder / file).exists() for file in record["files"]) else None


def write_up(folder: Path, settings: Settings) -> Path:
    """Write manifest and page from the panels that are finished.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as out:
    ...     write_up(Path(out), Settings(runs=2, seed=0, quick=False)).exists()
    True
    """
    records = {name: finished(folder, name, settings) for name in PANELS}
    made = {name: record for name, record in records.items() if record is not None}
    manifest = {
        "settings": asdict(settings),
        "versions": {name: version(name) for name in ("mfbandit", "numpy", "numba", "matplotlib")}
        | {"python": platform.python_version()},
        "seconds": round(sum(record["seconds"] for record in made.values()), 3),
        "panels": {
            name: {key: record[key] for key in ("numbers", "files", "seconds")} for name, record in made.items()
        },
    }
    _write(folder / "manifest.json", json.dumps(manifest, indent=1))
    pictures = {file: (folder / file).read_bytes() for record in made.values() for file in record["files"]}
    _write(folder / "report.html", report(manifest, pictures))
    return folder / "report.html"


def _make(folder: Path, name: str, job: Job) -> None:
    began = time.perf_counter()
    made = PANELS[name].make(job)
    files = [file for stem, figure in made.figures.items() for file in _save(figure, folder, stem)]
    seconds = round(time.perf_counter() - began, 3)
    record = {
        "settings": asdict(job.settings),
        "version": mfbandit.__version__,
        "seconds": seconds,
        "files": files,
        "numbers": made.numbers,
    }
    _write(_record(folder, name), json.dumps(record))
    line(f"{name}: {seconds:.1f} s")


def _record(folder: Path, name: str) -> Path:
    return folder / "panels" / f"{name}.json"


def _write(path: Path, text: str) -> None:
    part = path.with_name(path.name + ".part")
    part.write_text(text, encoding="utf-8")
    part.replace(path)


def _save(figure: "Figure", folder: Path, stem: str) -> list[str]:
    import matplotlib as mpl  # noqa: PLC0415 - takes its time to load

    # The same picture gives the same file: no date, and no random names inside.
    with mpl.rc_context({"svg.hashsalt": stem}):
        figure.savefig(folder / f"{stem}.svg", metadata={"Date": None}, dpi=200)
        figure.savefig(folder / f"{stem}.png", dpi=150)
    figure.clear()
    return [f"{stem}.png", f"{stem}.svg"]


# The panels


def partition_panel(job: Job) -> Made:
    """Figure 1: the classes of arms, for the paper's problem with four fidelities."""
    from mfbandit import plotting  # noqa: PLC0415

    problem = paper_problem(2, job.settings.seed)
    parts = theory.partition(problem)
    figure, ax = _figure(5.2)
    plotting.plot_partition(problem, ax)
    job.tick(1)
    numbers = {"problem": 2, "classes": parts.sizes.tolist(), "optimal": len(parts.optimal), "arms": problem.arms}
    return Made(numbers, {"figure-1-partition": figure})


def means_panel(job: Job) -> Made:
    """Figure 3: every arm's mean at every fidelity, on the four problems."""
    from mfbandit import plotting  # noqa: PLC0415

    figures = {}
    for number in (1, 2, 3, 4):
        problem = paper_problem(number, job.settings.seed)
        figures[f"figure-3-means-{number}"], ax = _figure()
        plotting.plot_means(problem, ax).set_title(_title(number, problem), fontsize=10)
        job.tick(1 / 4)
    return Made({"problems": [1, 2, 3, 4]}, figures)


def problem_panel(number: int, job: Job) -> Made:
    """Figure 2: regret of UCB and MF-UCB against capital on one problem; on the first, their plays too."""
    from mfbandit import plotting  # noqa: PLC0415

    problem = paper_problem(number, job.settings.seed)
    sims = job.both(problem, LOOKS * problem.arms * problem.fidelities.costs[-1])
    figure, ax = _figure()
    plotting.plot_regret(sims, ax=ax).set_title(_title(number, problem), fontsize=10)
    figures = {f"figure-2-regret-{number}": figure}
    numbers = _described(problem) | regret_numbers(sims)
    if number == 1:
        numbers["plays"] = play_numbers(sims)
        for name, sim in sims.items():
            figures[f"figure-2-plays-{name.lower()}"], ax = _figure()
            plotting.plot_plays(sim, ax).set_title(f"{name}, problem 1", fontsize=10)
    return Made(numbers, figures)


def table_panel(job: Job) -> Made:
    """Table 1: measured plays of an arm of each class at each fidelity, beside Lemma 8's bounds."""
    problem = paper_problem(1, job.settings.seed)
    capital = 2.5 * LOOKS * problem.arms * problem.fidelities.costs[-1]
    runs = max(2, job.settings.runs // 10)
    sim = job.simulate(problem, MFUCB(PROVED), capital, share=1.0, runs=runs, grid=1)
    bounds = theory.expected_plays(problem, int(sim.steps.max()), PROVED)
    members = [bounds.partition.members(c) for c in range(len(problem.fidelities))]
    numbers = {
        "rho": PROVED,
        "runs": runs,
        "capital": capital,
        "plays": bounds.n,
        "arms": [*bounds.partition.sizes.tolist(), len(bounds.partition.optimal)],
        "measured": _by_class(sim.plays, [*members, bounds.partition.optimal]),
        "bounds": bounds.table.tolist(),
        "regret": float(sim.regret[:, -1].mean()),
        "regret_bound": float(theory.upper_bound(problem, capital, PROVED).total),
    }
    return Made(_without_nan(numbers), {})


def misleading_panel(job: Job) -> Made:
    """A problem on which low fidelities rank the arms in the wrong order, where MF-UCB loses."""
    from mfbandit import plotting  # noqa: PLC0415

    problem = misleading_problem()
    sims = job.both(problem, 10 * LOOKS * problem.arms * problem.fidelities.costs[-1])
    means, ax = _figure()
    plotting.plot_means(problem, ax).set_title("low fidelities rank the arms in the wrong order", fontsize=10)
    regret, ax = _figure()
    plotting.plot_regret(sims, ax=ax).set_title("the misleading problem", fontsize=10)
    return Made(_described(problem) | regret_numbers(sims), {"misleading-means": means, "misleading-regret": regret})


def curves_panel(job: Job) -> Made:
    """Real learning curves: the ratio of MF-UCB's regret to UCB's on each data set, at two capitals."""
    from mfbandit import plotting  # noqa: PLC0415

    names = list(learning_curve_names())[:: QUICK_CURVES if job.settings.quick else 1]
    rows = [_one_data_set(name, job, 1 / len(names)) for name in names]
    ratios = np.array([[row["ratio"][str(looks)]["value"] for looks in CURVE_LOOKS] for row in rows])
    figure, ax = _figure(4.2)
    labels = [rf"{looks:g} $K\lambda_M$" for looks in CURVE_LOOKS]
    plotting.plot_ratios(dict(zip(labels, ratios.T, strict=True)), ax)
    summary = {
        str(looks): {"median": float(np.median(column)), "share_better": float((column < 1).mean())}
        for looks, column in zip(CURVE_LOOKS, ratios.T, strict=True)
    }
    return Made({"data_sets": rows, "summary": summary}, {"learning-curves": figure})


def _one_data_set(name: str, job: Job, share: float) -> Numbers:
    problem = learning_curve_problem(name)
    full = problem.arms * problem.fidelities.costs[-1]
    sims = job.both(problem, CURVE_LOOKS[-1] * full, share=share, grid=[looks * full for looks in CURVE_LOOKS])
    against = compare(sims["MF-UCB"], sims["UCB"])
    ratios = {
        str(looks): _interval(against.ratio[i], against.ratio_low[i], against.ratio_high[i])
        for i, looks in enumerate(CURVE_LOOKS)
    }
    return {"name": name} | _described(problem) | {"ratio": ratios}


PANELS: dict[str, Panel] = {
    "partition": Panel(1, partition_panel),
    "means": Panel(2, means_panel),
    "problem-1": Panel(10, lambda job: problem_panel(1, job)),
    "problem-2": Panel(2, lambda job: problem_panel(2, job)),
    "problem-3": Panel(2, lambda job: problem_panel(3, job)),
    "problem-4": Panel(10, lambda job: problem_panel(4, job)),
    "table-1": Panel(3, table_panel),
    "misleading": Panel(2, misleading_panel),
    "learning-curves": Panel(12, curves_panel),
}


# Their numbers


def regret_numbers(sims: Mapping[str, Simulation]) -> Numbers:
    """Final regret, its growth over the last half of the capital, and the ratio at every capital.

    >>> from mfbandit import MFUCB, UCB, paper_problem, simulate
    >>> sims = {"MF-UCB": simulate(paper_problem(3), MFUCB(), capital=8000, runs=4, grid=4)}
    >>> sims["UCB"] = simulate(paper_problem(3), UCB(), capital=8000, runs=4, grid=4)
    >>> numbers = regret_numbers(sims)
    >>> numbers["ratio"]["high"] < 1, numbers["loses_at"]
    (True, [])
    """
    ours, ucb = sims["MF-UCB"], sims["UCB"]
    against = compare(ours, ucb)
    loses = against.capital[against.ratio >= 1]
    return {
        "runs": len(ours.regret),
        "policies": {name: _curve(sim) for name, sim in sims.items()},
        "ratio": _interval(against.ratio[-1], against.ratio_low[-1], against.ratio_high[-1]),
        "growth_ratio": float(_growth(ours) / _growth(ucb)),
        "loses_at": loses.tolist(),
    }


def _curve(sim: Simulation) -> Numbers:
    summary = sim.summary()
    return {
        "policy": sim.policy,
        "capital": sim.capital.tolist(),
        "mean": summary.mean.tolist(),
        "low": summary.low.tolist(),
        "high": summary.high.tolist(),
        "growth": float(_growth(sim)),
        "plays": sim.plays.sum(axis=1).tolist(),
    }


def _growth(sim: Simulation) -> float:
    """Mean regret added over the last half of the capital, per unit of capital."""
    mean = sim.regret.mean(axis=0)
    half = int(np.searchsorted(sim.capital, sim.capital[-1] / 2))
    return float((mean[-1] - mean[half]) / (sim.capital[-1] - sim.capital[half]))


def play_numbers(sims: Mapping[str, Simulation]) -> Numbers:
    """Plays at the highest fidelity of the worse half of the arms and of the best twentieth, by policy.

    >>> from mfbandit import UCB, paper_problem, simulate
    >>> sorted(play_numbers({"UCB": simulate(paper_problem(3), UCB(), capital=8000)})["UCB"])
    ['best_twentieth', 'worse_half']
    """
    result = {}
    for name, sim in sims.items():
        top = sim.plays[-1][sim.means.argsort(kind="stable")]
        half, last = len(top) // 2, max(1, len(top) // 20)
        result[name] = {"worse_half": float(top[:half].sum()), "best_twentieth": float(top[-last:].sum())}
    return result


def _described(problem: Problem) -> Numbers:
    fidelities = problem.fidelities
    return {
        "arms": problem.arms,
        "costs": list(fidelities.costs),
        "biases": list(fidelities.known_biases),
        "rewards": type(problem.rewards).__name__,
    }


def _interval(value: float, low: float, high: float) -> Numbers:
    return {"value": float(value), "low": float(low), "high": float(high)}


def _by_class(plays: FloatArray, classes: list[Any]) -> list[list[float]]:
    columns = [plays[:, arms].mean(axis=1) if len(arms) else np.full(len(plays), np.nan) for arms in classes]
    table: list[list[float]] = np.column_stack(columns).tolist()
    return table


def _without_nan(value: Any) -> Any:  # noqa: ANN401 - any JSON
    """JSON has no NaN: empty classes become null."""
    if isinstance(value, dict):
        return {key: _without_nan(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_nan(item) for item in value]
    return None if isinstance(value, float) and np.isnan(value) else value


def _title(number: int, problem: Problem) -> str:
    costs = ", ".join(f"{cost:g}" for cost in problem.fidelities.costs)
    kind = type(problem.rewards).__name__
    return rf"problem {number}: {kind}, $K = {problem.arms}$, $M = {len(problem.fidelities)}$, costs {costs}"


def _figure(height: float = 3.6) -> tuple["Figure", "Axes"]:
    """A figure that no window knows of, and its axes."""
    from matplotlib.figure import Figure  # noqa: PLC0415

    figure = Figure(figsize=(5.2, height), layout="constrained")
    return figure, figure.subplots()
