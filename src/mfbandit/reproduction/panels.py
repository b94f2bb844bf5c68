"""The panels of the reproduction: each function measures and draws one figure or table."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, SupportsFloat

import numpy as np

from mfbandit import theory
from mfbandit._internal.progress import Tick
from mfbandit._internal.typing import FloatArray, JSONObject
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

CAPITAL_K_LAMBDAS = 40  # capital of a problem, in units of K·λ_M
CURVE_K_LAMBDAS = (2.0, 20.0)  # capitals of a learning curve, in units of K·λ_M
PROVED_RHO = 5.0  # above 4, as the bounds need
GRID_POINTS = 80  # of a regret curve
QUICK_CURVE_STEP = 8  # quick: use one data set in eight


def k_lambdas(problem: Problem, times: float) -> float:
    """Compute a capital in units of K·λ_M, the cost of one play of every arm at the highest fidelity.

    >>> k_lambdas(paper_problem(3), 40)
    80000.0
    """
    return times * problem.arms * problem.fidelities.costs[-1]


@dataclass(frozen=True)
class Settings:
    """What the numbers depend on: runs of each policy, the seed, and whether to use fewer learning curves."""

    runs: int
    seed: int
    quick: bool


@dataclass(frozen=True)
class PanelContext:
    """What a panel needs to run simulations: settings, number of workers, and the progress callback."""

    settings: Settings
    workers: int | None
    tick: Tick

    def simulate_both(
        self, problem: Problem, capital: float, *, share: float = 1.0, grid: int = GRID_POINTS
    ) -> dict[str, Simulation]:
        """Simulate MF-UCB and UCB on a problem, with the same seed for each run."""
        policies: dict[str, Policy] = {"MF-UCB": MFUCB(), "UCB": UCB()}
        return {
            name: self.simulate(problem, policy, capital, share=share / len(policies), grid=grid)
            for name, policy in policies.items()
        }

    def simulate(
        self,
        problem: Problem,
        policy: Policy,
        capital: float,
        *,
        share: float,
        runs: int | None = None,
        grid: int = GRID_POINTS,
    ) -> Simulation:
        """Simulate one policy on a problem, which is ``share`` of the panel's work."""
        return simulate(
            problem,
            policy,
            capital=capital,
            runs=self.settings.runs if runs is None else runs,
            seed=self.settings.seed,
            grid=grid,
            workers=self.workers,
            progress=lambda done: self.tick(done * share),
        )


@dataclass(frozen=True)
class PanelResult:
    """What a panel returns: its numbers, ready for JSON, and its figures by file name."""

    numbers: JSONObject
    figures: Mapping[str, "Figure"]


@dataclass(frozen=True)
class Panel:
    """One unit of work; ``weight`` is its approximate share of the time."""

    weight: float
    make: Callable[[PanelContext], PanelResult]


def partition_panel(context: PanelContext) -> PanelResult:
    """Make Figure 1: the classes of arms, for the paper's problem with four fidelities."""
    from mfbandit import plotting

    problem = paper_problem(2, context.settings.seed)
    parts = theory.partition(problem)
    figure, ax = _figure(5.2)
    plotting.plot_partition(problem, ax)
    context.tick(1)
    numbers = {"problem": 2, "classes": parts.sizes.tolist(), "optimal": len(parts.optimal), "arms": problem.arms}
    return PanelResult(numbers, {"figure-1-partition": figure})


def means_panel(context: PanelContext) -> PanelResult:
    """Make Figure 3: every arm's mean at every fidelity, on the four problems."""
    from mfbandit import plotting

    figures = {}
    for number in (1, 2, 3, 4):
        problem = paper_problem(number, context.settings.seed)
        figures[f"figure-3-means-{number}"], ax = _figure()
        plotting.plot_means(problem, ax).set_title(_title(number, problem), fontsize=10)
        context.tick(1 / 4)
    return PanelResult({"problems": [1, 2, 3, 4]}, figures)


def problem_panel(number: int, context: PanelContext) -> PanelResult:
    """Make Figure 2: regret of UCB and MF-UCB against capital on one problem; on the first, their plays too."""
    from mfbandit import plotting

    problem = paper_problem(number, context.settings.seed)
    sims = context.simulate_both(problem, k_lambdas(problem, CAPITAL_K_LAMBDAS))
    figure, ax = _figure()
    plotting.plot_regret(sims, ax=ax).set_title(_title(number, problem), fontsize=10)
    figures = {f"figure-2-regret-{number}": figure}
    numbers = _described(problem) | {"looks": CAPITAL_K_LAMBDAS} | regret_numbers(sims)
    if number == 1:
        numbers["plays"] = play_numbers(sims)
        for name, sim in sims.items():
            figures[f"figure-2-plays-{name.lower()}"], ax = _figure()
            plotting.plot_plays(sim, ax).set_title(f"{name}, problem 1", fontsize=10)
    return PanelResult(numbers, figures)


def table_panel(context: PanelContext) -> PanelResult:
    """Make Table 1: measured plays of an arm of each class at each fidelity, and Lemma 8's bounds."""
    problem = paper_problem(1, context.settings.seed)
    capital = k_lambdas(problem, 2.5 * CAPITAL_K_LAMBDAS)
    runs = max(2, context.settings.runs // 10)
    sim = context.simulate(problem, MFUCB(PROVED_RHO), capital, share=1.0, runs=runs, grid=1)
    bounds = theory.expected_plays(problem, int(sim.steps.max()), PROVED_RHO)
    members = [bounds.partition.members(c) for c in range(len(problem.fidelities))]
    numbers = {
        "rho": PROVED_RHO,
        "runs": runs,
        "capital": capital,
        "plays": bounds.n,
        "arms": [*bounds.partition.sizes.tolist(), len(bounds.partition.optimal)],
        "measured": _by_class(sim.plays, [*members, bounds.partition.optimal]),
        "bounds": bounds.table.tolist(),
        "regret": float(sim.regret[:, -1].mean()),
        "regret_bound": float(theory.upper_bound(problem, capital, PROVED_RHO).total),
    }
    return PanelResult(numbers, {})


def misleading_panel(context: PanelContext) -> PanelResult:
    """Compare MF-UCB and UCB on a problem whose low fidelities rank the arms in the wrong order."""
    from mfbandit import plotting

    problem = misleading_problem()
    sims = context.simulate_both(problem, k_lambdas(problem, 10 * CAPITAL_K_LAMBDAS))
    means, ax = _figure()
    plotting.plot_means(problem, ax).set_title("low fidelities rank the arms in the wrong order", fontsize=10)
    regret, ax = _figure()
    plotting.plot_regret(sims, ax=ax).set_title("the misleading problem", fontsize=10)
    numbers = _described(problem) | {"looks": 10 * CAPITAL_K_LAMBDAS} | regret_numbers(sims)
    return PanelResult(numbers, {"misleading-means": means, "misleading-regret": regret})


def curves_panel(context: PanelContext) -> PanelResult:
    """Compute the ratio of MF-UCB's regret to UCB's on each data set of learning curves, at two capitals."""
    from mfbandit import plotting

    names = list(learning_curve_names())[:: QUICK_CURVE_STEP if context.settings.quick else 1]
    rows = [_one_data_set(name, context, 1 / len(names)) for name in names]
    ratios = np.array(
        [[row["at"][f"{times:g}"]["ratio_of_plays"]["value"] for times in CURVE_K_LAMBDAS] for row in rows]
    )
    with_rest = np.array([[row["at"][f"{times:g}"]["ratio"]["value"] for times in CURVE_K_LAMBDAS] for row in rows])
    figure, ax = _figure(4.2)
    labels = [rf"{times:g} $K\lambda_M$" for times in CURVE_K_LAMBDAS]
    plotting.plot_ratios(dict(zip(labels, ratios.T, strict=True)), ax)
    summary = {
        f"{times:g}": {
            "median": float(np.median(ratios[:, i])),
            "share_better": float((ratios[:, i] < 1).mean()),
            "median_with_rest": float(np.median(with_rest[:, i])),
        }
        for i, times in enumerate(CURVE_K_LAMBDAS)
    }
    return PanelResult({"data_sets": rows, "summary": summary}, {"learning-curves": figure})


def _one_data_set(name: str, context: PanelContext, share: float) -> JSONObject:
    problem = learning_curve_problem(name)
    full = problem.arms * problem.fidelities.costs[-1]
    at_capitals = {}
    for times in CURVE_K_LAMBDAS:
        sims = context.simulate_both(problem, times * full, share=share / len(CURVE_K_LAMBDAS), grid=1)
        at_capitals[f"{times:g}"] = _of_plays(problem, sims, times * full)
    return {"name": name} | _described(problem) | {"at": at_capitals}


def _of_plays(problem: Problem, sims: Mapping[str, Simulation], capital: float) -> JSONObject:
    """Compute the regret of both policies and its ratio, as in eq. 1 and without the capital that was left over.

    UCB has no capital left, as this capital is a whole number of its plays. Other policies have up to a play's cost.
    """
    of_plays = {name: sim.regret[:, -1] - (capital - sim.spent) * problem.best_mean for name, sim in sims.items()}
    against = compare(sims["MF-UCB"], sims["UCB"])
    return {
        "regret": {name: float(sim.regret[:, -1].mean()) for name, sim in sims.items()},
        "ratio": _interval(against.ratio[-1], against.ratio_low[-1], against.ratio_high[-1]),
        "regret_of_plays": {name: float(lost.mean()) for name, lost in of_plays.items()},
        "ratio_of_plays": _interval(*ratio_interval(of_plays["MF-UCB"], of_plays["UCB"])),
    }


# Benchmarks compare the same policies.
COMPARED_POLICIES: dict[str, Policy] = {
    "UCB, ρ = 2": UCB(2.0),
    "MF-UCB, ρ = 2": MFUCB(2.0),
    "MF-UCB, ρ = 1": MFUCB(1.0),
    "MF-UCB, ρ = ½": MFUCB(0.5),
    "MF-UCB, ρ = ¼": MFUCB(0.25),
    "MFAda": MFAda(),
    "MFBayes": MFBayes(),
    "MFBayes, guarded": MFBayes(safeguard=0.05),
}
BASELINE = "MF-UCB, ρ = 2"


def beyond_panel(context: PanelContext) -> PanelResult:
    """Compare policies beyond the paper, and MF-UCB at smaller ρ, on all problems; with a tenth of the runs."""
    problems = {f"problem {n}": (paper_problem(n, context.settings.seed), CAPITAL_K_LAMBDAS) for n in (1, 2, 3, 4)}
    problems["misleading"] = misleading_problem(), 10 * CAPITAL_K_LAMBDAS
    problems["gap"] = gap_problem(), 25 * CAPITAL_K_LAMBDAS
    runs, tables, figures = max(2, context.settings.runs // 10), {}, {}
    for name, (problem, times) in problems.items():
        sims = _compare_on(context, problem, times, runs, share=0.9 / len(problems))
        figures[f"beyond-{name.replace(' ', '-')}"] = _all_regrets(name, sims)
        against = {label: compare(sim, sims[BASELINE]) for label, sim in sims.items()}
        ratios = {label: _interval(c.ratio[-1], c.ratio_low[-1], c.ratio_high[-1]) for label, c in against.items()}
        tables[name] = _described(problem) | {"looks": times, "runs": runs, "ratio": ratios}
    return PanelResult({"problems": tables, "curves": _compare_on_curves(context, runs)}, figures)


def _compare_on(
    context: PanelContext, problem: Problem, times: float, runs: int, share: float
) -> dict[str, Simulation]:
    capital = k_lambdas(problem, times)
    each = share / len(COMPARED_POLICIES)
    return {
        name: context.simulate(problem, rule, capital, share=each, runs=runs)
        for name, rule in COMPARED_POLICIES.items()
    }


def _all_regrets(title: str, sims: Mapping[str, Simulation]) -> "Figure":
    from mfbandit import plotting

    figure, ax = _figure(5.0)
    plotting.plot_regret(sims, log=True, ax=ax).set_title(title, fontsize=10)
    return figure


def _compare_on_curves(context: PanelContext, runs: int) -> JSONObject:
    """Compute the ratio of each policy's regret of plays to that of UCB at ρ = 1: median and worst over data sets."""
    names = list(learning_curve_names())[:: QUICK_CURVE_STEP if context.settings.quick else 1]
    policies = {
        "UCB, ρ = 1": UCB(1.0),
        **{name: rule for name, rule in COMPARED_POLICIES.items() if name != "UCB, ρ = 2"},
    }
    share = 0.1 / len(names) / len(policies) / len(CURVE_K_LAMBDAS)
    result: JSONObject = {}
    for times in CURVE_K_LAMBDAS:
        lost = np.array(
            [[_lost(context, data, rule, times, runs, share) for rule in policies.values()] for data in names]
        )
        ratios = lost / lost[:, :1]
        result[f"{times:g}"] = {
            name: median_interval(column) | {"worst": float(column.max())}
            for name, column in zip(policies, ratios.T, strict=True)
        }
    return {"data_sets": len(names), "runs": runs, "at": result}


def median_interval(values: FloatArray, draws: int = 2000) -> JSONObject:
    """Compute the median with a bootstrap 95 % interval.

    >>> median_interval(np.array([0.2, 0.3, 0.4, 0.5, 0.9]))
    {'median': 0.4, 'low': 0.2, 'high': 0.9}
    """
    medians = np.median(np.random.default_rng(0).choice(values, (draws, len(values))), axis=1)
    low, high = np.quantile(medians, [0.025, 0.975]).tolist()
    return {"median": float(np.median(values)), "low": low, "high": high}


def _lost(context: PanelContext, name: str, policy: Policy, times: float, runs: int, share: float) -> float:
    """Compute the mean regret of the plays, without the capital that was left over."""
    problem = learning_curve_problem(name)
    capital = k_lambdas(problem, times)
    sim = context.simulate(problem, policy, capital, share=share, runs=runs, grid=1)
    return float((sim.regret[:, -1] - (capital - sim.spent) * problem.best_mean).mean())


PANELS: dict[str, Panel] = {
    "partition": Panel(1, partition_panel),
    "means": Panel(2, means_panel),
    "problem-1": Panel(10, lambda context: problem_panel(1, context)),
    "problem-2": Panel(2, lambda context: problem_panel(2, context)),
    "problem-3": Panel(2, lambda context: problem_panel(3, context)),
    "problem-4": Panel(10, lambda context: problem_panel(4, context)),
    "table-1": Panel(3, table_panel),
    "misleading": Panel(2, misleading_panel),
    "learning-curves": Panel(12, curves_panel),
    "beyond": Panel(30, beyond_panel),
}


# Numbers of the panels


def regret_numbers(sims: Mapping[str, Simulation]) -> JSONObject:
    """Compute final regret, its growth over the last half of the capital, and the capitals at which MF-UCB loses.

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


def _curve(sim: Simulation) -> JSONObject:
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
    """Compute the regret that each run added over the last half of the capital; shape (runs,)."""
    half = int(np.searchsorted(sim.capital, sim.capital[-1] / 2))
    growths: FloatArray = sim.regret[:, -1] - sim.regret[:, half]
    return growths


def play_numbers(sims: Mapping[str, Simulation]) -> JSONObject:
    """Count plays at the highest fidelity of the worse half of the arms and of the best twentieth, by policy.

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


def _described(problem: Problem) -> JSONObject:
    fidelities = problem.fidelities
    return {
        "arms": problem.arms,
        "costs": list(fidelities.costs),
        "biases": list(fidelities.known_biases),
        "rewards": type(problem.rewards).__name__,
    }


def _interval(value: SupportsFloat, low: SupportsFloat, high: SupportsFloat) -> JSONObject:
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
    """Make a figure without a window, and its axes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.2, height), layout="constrained")
    return figure, figure.subplots()
