"""Compare MF-UCB and UCB on the paper's third problem: 200 arms with 0/1 rewards, two fidelities.

It runs in a few seconds: python examples/first_experiment.py
"""

import numpy as np

import mfbandit as mfb


def spend(policy: mfb.Policy, problem: mfb.Problem, capital: float, seed: int) -> mfb.Experiment:
    rng = np.random.default_rng(seed)
    experiment = mfb.Experiment(policy, arms=problem.arms, fidelities=problem.fidelities, capital=capital)
    for play in experiment.plays():
        experiment.tell(play, reward=problem.draw(play.arm, play.fidelity, rng))
    return experiment


def main() -> None:
    problem = mfb.paper_problem(3, seed=0)
    costs = problem.fidelities.costs
    capital = 20 * problem.arms * costs[-1]
    print(f"{problem.arms} arms, costs {costs}, capital {capital:,.0f}; 3 runs of each policy")
    print(f"{'policy':<8}{'regret':>10}{'plays at each fidelity':>26}   gaps of recommended arms")
    for policy in (mfb.UCB(), mfb.MFUCB()):
        runs = [spend(policy, problem, capital, seed) for seed in range(3)]
        histories = [run.history for run in runs]
        mean = np.mean([mfb.regret(problem, h.arms, h.fidelities, capital) for h in histories])
        plays = np.mean([np.bincount(h.fidelities, minlength=len(costs)) for h in histories], axis=0)
        losses = ", ".join(f"{problem.gaps[run.best()]:.3f}" for run in runs)
        counts = " / ".join(f"{n:,.0f}" for n in plays)
        print(f"{type(policy).__name__:<8}{mean:>10,.0f}{counts:>26}   {losses}")


if __name__ == "__main__":
    main()
