"""Compare the paper's bounds with simulations of its problems, and draw the figures of docs/theory.md.

It prints classes of arms, and bounds on plays and regret, at rho = 5 (the theorems need more than 4).
It runs in some ten seconds: python examples/theory.py [folder for the figures [problems]]
"""

import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np

import mfbandit as mfb
from mfbandit import plotting, theory

RHO = 5.0
CAPITAL = {1: 100, 2: 100, 3: 2000, 4: 400}  # times K·λ_M, so that every fidelity is used


def measured(problem: mfb.Problem, number: int) -> mfb.Simulation:
    capital = CAPITAL[number] * problem.arms * problem.fidelities.costs[-1]
    return mfb.simulate(problem, mfb.MFUCB(RHO), capital=capital, runs=8, seed=0, keep_plays=True)


def plays_against_bounds(problem: mfb.Problem, sim: mfb.Simulation) -> None:
    """Print Table 1 with numbers: mean plays of an arm of each class, and Lemma 8's bound on them."""
    bounds = theory.expected_plays(problem, int(sim.steps.max()), RHO)
    print(f"{'':<12}" + "".join(f"{name:>24}" for name in [f"class {m}" for m in range(len(sim.plays))]))
    for m in range(len(sim.plays)):
        cells = []
        for c in range(len(sim.plays)):
            arms = bounds.partition.members(c)
            mean = f"{sim.plays[m, arms].mean():,.1f}" if len(arms) else "-"
            bound = f"{bounds.plays[m, arms].mean():,.1f}" if len(arms) else "-"
            cells.append(f"{f'{mean} of {bound}':>24}")
        print(f"{f'fidelity {m}':<12}" + "".join(cells))


def one_problem(number: int, folder: Path) -> None:
    problem = mfb.paper_problem(number, seed=0)
    sim = measured(problem, number)
    bound = theory.upper_bound(problem, sim.capital, RHO)
    ucb = theory.ucb_upper_bound(problem, sim.capital, RHO)
    large = theory.upper_bound(problem, sim.capital, RHO, form="large")
    lower = theory.lower_bound(problem, form="divergence")
    limit = lower.at(sim.capital)
    print(f"\nProblem {number}: {problem.arms} arms, costs {problem.fidelities.costs}")
    print(theory.partition(problem))
    print(f"Measured mean plays of an arm, and their bound (Lemma 8), after {int(sim.steps.max()):,} plays:")
    plays_against_bounds(problem, sim)
    print(f"regret at capital {sim.capital[-1]:,.0f}: {sim.regret[:, -1].mean():,.0f}, at most {bound.total[-1]:,.0f}")
    print(f"beyond some capital at most {large.total[-1]:,.0f}, UCB's at most {ucb.total[-1]:,.0f}")
    print(f"no strategy can stay below {lower.proven:,.0f} log n in the limit, {limit[-1]:,.0f} here")
    curves = {"Lemma 10, every capital": bound.total, "lower bound, in the limit": limit}
    figures = {
        "partition": plotting.plot_partition(problem),
        "means": plotting.plot_means(problem),
        "plays": plotting.plot_plays(sim),
        "bounds": plotting.plot_regret({f"MF-UCB, ρ = {RHO:g}": sim}, bounds=curves, log=True),
    }
    for name, ax in figures.items():
        figure = ax.get_figure(root=True)
        if figure is not None:
            figure.savefig(folder / f"problem-{number}-{name}.png", dpi=120)
    if not np.all(sim.regret.mean(axis=0) <= bound.total):
        sys.exit("Error: measured regret is above the bound of Lemma 10")


def main() -> None:
    mpl.use("agg")
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "results/theory")
    numbers = [int(number) for number in sys.argv[2:]] or [1, 2, 3, 4]
    folder.mkdir(parents=True, exist_ok=True)
    for number in numbers:
        one_problem(number, folder)
    print(f"\nFigures: {folder}")


if __name__ == "__main__":
    main()
