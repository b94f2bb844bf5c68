"""What the reproduction measures and draws: one function for each panel of figures or tables."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, SupportsFloat, TypeAlias

import numpy as np

from mfbandit import theory
from mfbandit._internal.progress import Tick
from mfbandit._internal.typing import FloatArray
from mfbandit.policies import MFUCB, UCB, MFAda, MFBayes, Policy
from mfbandit.problems import (
    Problem,
    gap_problem,
    learning_curve_names,
    learning_curve_problem,
    misleading_problem,
    paper_problem,
)
from mfbandit.simulation import Simulation, compare, ratio_interval, simulate

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LOOKS = 40  # capital in full looks at every arm, K·λ_M
PROVED = 5.0  # ρ above 4, for the table of bounds
CURVE_LOOKS = (2.0, 20.0)
GRID = 80
QUICK_CURVES = 8  # with --quick, one data set in so many

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


def partition_panel(job: Job) -> Made:
    """Figure 1: the classes of arms, for the paper's problem with four fidelities."""
    from mfbandit import plotting

    problem = paper_problem(2, job.settings.seed)
    parts = theory.partition(problem)
    figure, ax = _figure(5.2)
    plotting.plot_partition(problem, ax)
    job.tick(1)
    numbers = {"problem": 2, "classes": parts.sizes.tolist(), "optimal": len(parts.optimal), "arms": problem.arms}
    return Made(numbers, {"figure-1-partition": figure})


def means_panel(job: Job) -> Made:
    """Figure 3: every arm's mean at every fidelity, on the four problems."""
    from mfbandit import plotting

    figures = {}
    for number in (1, 2, 3, 4):
        problem = paper_problem(number, job.settings.seed)
        figures[f"figure-3-means-{number}"], ax = _figure()
        plotting.plot_means(problem, ax).set_title(_title(number, problem), fontsize=10)
        job.tick(1 / 4)
    return Made({"problems": [1, 2, 3, 4]}, figures)


def problem_panel(number: int, job: Job) -> Made:
    """Figure 2: regret of UCB and MF-UCB against capital on one problem; on the first, their plays too."""
    from mfbandit import plotting

    problem = paper_problem(number, job.settings.seed)
    sims = job.both(problem, LOOKS * problem.arms * problem.fidelities.costs[-1])
    figure, ax = _figure()
    plotting.plot_regret(sims, ax=ax).set_title(_title(number, problem), fontsize=10)
    figures = {f"figure-2-regret-{number}": figure}
    numbers = _described(problem) | {"looks": LOOKS} | regret_numbers(sims)
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
    return Made(numbers, {})


def misleading_panel(job: Job) -> Made:
    """A problem on which low fidelities rank the arms in the wrong order, where MF-UCB loses."""
    from mfbandit import plotting

    problem = misleading_problem()
    sims = job.both(problem, 10 * LOOKS * problem.arms * problem.fidelities.costs[-1])
    means, ax = _figure()
    plotting.plot_means(problem, ax).set_title("low fidelities rank the arms in the wrong order", fontsize=10)
    regret, ax = _figure()
    plotting.plot_regret(sims, ax=ax).set_title("the misleading problem", fontsize=10)
    numbers = _described(problem) | {"looks": 10 * LOOKS} | regret_numbers(sims)
    return Made(numbers, {"misleading-means": means, "misleading-regret": regret})


def curves_panel(job: Job) -> Made:
    """Real learning curves: the ratio of MF-UCB's regret to UCB's on each data set, at two capitals."""
    from mfbandit import plotting

    names = list(learning_curve_names())[:: QUICK_CURVES if job.settings.quick else 1]
    rows = [_one_data_set(name, job, 1 / len(names)) for name in names]
    ratios = np.array([[row["at"][f"{looks:g}"]["ratio_of_plays"]["value"] for looks in CURVE_LOOKS] for row in rows])
    with_rest = np.array([[row["at"][f"{looks:g}"]["ratio"]["value"] for looks in CURVE_LOOKS] for row in rows])
    figure, ax = _figure(4.2)
    labels = [rf"{looks:g} $K\lambda_M$" for looks in CURVE_LOOKS]
    plotting.plot_ratios(dict(zip(labels, ratios.T, strict=True)), ax)
    summary = {
        f"{looks:g}": {
            "median": float(np.median(ratios[:, i])),
            "share_better": float((ratios[:, i] < 1).mean()),
            "median_with_rest": float(np.median(with_rest[:, i])),
        }
        for i, looks in enumerate(CURVE_LOOKS)
    }
    return Made({"data_sets": rows, "summary": summary}, {"learning-curves": figure})


def _one_data_set(name: str, job: Job, share: float) -> Numbers:
    problem = learning_curve_problem(name)
    full = problem.arms * problem.fidelities.costs[-1]
    at_capitals = {}
    for looks in CURVE_LOOKS:
        sims = job.both(problem, looks * full, share=share / len(CURVE_LOOKS), grid=1)
        at_capitals[f"{looks:g}"] = _of_plays(problem, sims, looks * full)
    return {"name": name} | _described(problem) | {"at": at_capitals}


def _of_plays(problem: Problem, sims: Mapping[str, Simulation], capital: float) -> Numbers:
    """Regret of both policies and its ratio, as in eq. 1 and without the capital that was left over.

    This capital is a whole number of plays for UCB, which so has nothing left; others lose up to a play's worth.
    """
    of_plays = {name: sim.regret[:, -1] - (capital - sim.spent) * problem.best_mean for name, sim in sims.items()}
    against = compare(sims["MF-UCB"], sims["UCB"])
    return {
        "regret": {name: float(sim.regret[:, -1].mean()) for name, sim in sims.items()},
        "ratio": _interval(against.ratio[-1], against.ratio_low[-1], against.ratio_high[-1]),
        "regret_of_plays": {name: float(lost.mean()) for name, lost in of_plays.items()},
        "ratio_of_plays": _interval(*ratio_interval(of_plays["MF-UCB"], of_plays["UCB"])),
    }


BEYOND: dict[str, Policy] = {
    "UCB, ρ = 2": UCB(2.0),
    "MF-UCB, ρ = 2": MFUCB(2.0),
    "MF-UCB, ρ = 1": MFUCB(1.0),
    "MF-UCB, ρ = ½": MFUCB(0.5),
    "MF-UCB, ρ = ¼": MFUCB(0.25),
    "MFAda": MFAda(),
    "MFBayes": MFBayes(),
    "MFBayes, guarded": MFBayes(safeguard=0.05),
}
PAPERS_OWN = "MF-UCB, ρ = 2"


def beyond_panel(job: Job) -> Made:
    """Policies beyond the paper, with MF-UCB at smaller ρ beside them, on all problems; a tenth of the runs."""
    problems = {f"problem {n}": (paper_problem(n, job.settings.seed), LOOKS) for n in (1, 2, 3, 4)}
    problems["misleading"] = misleading_problem(), 10 * LOOKS
    problems["gap"] = gap_problem(), 25 * LOOKS
    runs, tables, figures = max(2, job.settings.runs // 10), {}, {}
    for name, (problem, looks) in problems.items():
        sims = _beyond_on(job, problem, looks, runs, share=0.9 / len(problems))
        figures[f"beyond-{name.replace(' ', '-')}"] = _all_regrets(name, sims)
        against = {label: compare(sim, sims[PAPERS_OWN]) for label, sim in sims.items()}
        ratios = {label: _interval(c.ratio[-1], c.ratio_low[-1], c.ratio_high[-1]) for label, c in against.items()}
        tables[name] = _described(problem) | {"looks": looks, "runs": runs, "ratio": ratios}
    return Made({"problems": tables, "curves": _beyond_on_curves(job, runs)}, figures)


def _beyond_on(job: Job, problem: Problem, looks: float, runs: int, share: float) -> dict[str, Simulation]:
    capital = looks * problem.arms * problem.fidelities.costs[-1]
    each = share / len(BEYOND)
    return {name: job.simulate(problem, rule, capital, share=each, runs=runs) for name, rule in BEYOND.items()}


def _all_regrets(title: str, sims: Mapping[str, Simulation]) -> "Figure":
    from mfbandit import plotting

    figure, ax = _figure(5.0)
    plotting.plot_regret(sims, log=True, ax=ax).set_title(title, fontsize=10)
    return figure


def _beyond_on_curves(job: Job, runs: int) -> Numbers:
    """For each policy the median over data sets of its plays' regret over UCB's, at ρ = 1, and the worst."""
    names = list(learning_curve_names())[:: QUICK_CURVES if job.settings.quick else 1]
    policies = {"UCB, ρ = 1": UCB(1.0), **{name: rule for name, rule in BEYOND.items() if name != "UCB, ρ = 2"}}
    share = 0.1 / len(names) / len(policies) / len(CURVE_LOOKS)
    result: Numbers = {}
    for looks in CURVE_LOOKS:
        lost = np.array([[_lost(job, data, rule, looks, runs, share) for rule in policies.values()] for data in names])
        ratios = lost / lost[:, :1]
        result[f"{looks:g}"] = {
            name: median_interval(column) | {"worst": float(column.max())}
            for name, column in zip(policies, ratios.T, strict=True)
        }
    return {"data_sets": len(names), "runs": runs, "at": result}


def median_interval(values: FloatArray, draws: int = 2000) -> Numbers:
    """The median with a 95 % interval, by the bootstrap.

    >>> median_interval(np.array([0.2, 0.3, 0.4, 0.5, 0.9]))
    {'median': 0.4, 'low': 0.2, 'high': 0.9}
    """
    medians = np.median(np.random.default_rng(0).choice(values, (draws, len(values))), axis=1)
    low, high = np.quantile(medians, [0.025, 0.975]).tolist()
    return {"median": float(np.median(values)), "low": low, "high": high}


def _lost(job: Job, name: str, policy: Policy, looks: float, runs: int, share: float) -> float:
    """Mean regret of the plays, without capital that was left over."""
    problem = learning_curve_problem(name)
    capital = looks * problem.arms * problem.fidelities.costs[-1]
    sim = job.simulate(problem, policy, capital, share=share, runs=runs, grid=1)
    return float((sim.regret[:, -1] - (capital - sim.spent) * problem.best_mean).mean())


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
    "beyond": Panel(30, beyond_panel),
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
        "capital": float(ours.capital[-1]),
        "policies": {name: _curve(sim) for name, sim in sims.items()},
        "ratio": _interval(against.ratio[-1], against.ratio_low[-1], against.ratio_high[-1]),
        "growth_ratio": _interval(*ratio_interval(_growths(ours), _growths(ucb))),
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
        "half_width": float(summary.high[-1] - summary.low[-1]) / 2,
        "growth": float(_growths(sim).mean()),
        "plays": sim.plays.sum(axis=1).tolist(),
    }


def _growths(sim: Simulation) -> FloatArray:
    """Regret that each run added over the last half of the capital; shape (runs,)."""
    half = int(np.searchsorted(sim.capital, sim.capital[-1] / 2))
    growths: FloatArray = sim.regret[:, -1] - sim.regret[:, half]
    return growths


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


def _interval(value: SupportsFloat, low: SupportsFloat, high: SupportsFloat) -> Numbers:
    return {"value": float(value), "low": float(low), "high": float(high)}


def _by_class(plays: FloatArray, classes: list[Any]) -> list[list[float]]:
    columns = [plays[:, arms].mean(axis=1) if len(arms) else np.full(len(plays), np.nan) for arms in classes]
    table: list[list[float]] = np.column_stack(columns).tolist()
    return table


def _title(number: int, problem: Problem) -> str:
    costs = ", ".join(f"{cost:g}" for cost in problem.fidelities.costs)
    kind = type(problem.rewards).__name__
    return rf"problem {number}: {kind}, $K = {problem.arms}$, $M = {len(problem.fidelities)}$, costs {costs}"


def _figure(height: float = 3.6) -> tuple["Figure", "Axes"]:
    """A figure that no window knows of, and its axes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.2, height), layout="constrained")
    return figure, figure.subplots()
