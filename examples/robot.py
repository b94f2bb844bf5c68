"""Find the best of a robot's 200 grips, with a cheap and biased simulator as the low fidelity.

A try in the simulator takes a second, one on the robot five minutes. Only the robot moves boxes, so that plays in the
simulator earn nothing: regret has account="top". The simulator helps because there are many grips; with 40 of them,
the robot alone would have less regret.

    python examples/robot.py
"""

from concurrent.futures import ProcessPoolExecutor
from functools import partial

import numpy as np

import mfbandit as mfb

GRIPS = 200
SECONDS = (1.0, 300.0)
BIAS = 0.2  # of the simulator


def workshop() -> mfb.Problem:
    """Make the problem: how often each grip holds, in the simulator and on the robot."""
    rng = np.random.default_rng(3)
    robot = np.append(0.75 * rng.beta(2, 4, GRIPS - 1), 0.85)
    simulator = np.clip(robot + rng.uniform(-BIAS, BIAS, GRIPS), 0, 1)
    known = mfb.Fidelities(SECONDS, [BIAS, 0], mfb.Bounded(0, 1), names=["simulator", "robot"])
    return mfb.Problem([simulator, robot], known, mfb.Bernoulli())


def grip(problem: mfb.Problem, play: mfb.SeededPlay) -> float:
    """Try a grip once; return 1 if the box was held."""
    return problem.draw(play.arm, play.fidelity, play.rng())


def main() -> None:
    problem, capital = workshop(), 36 * 3600.0
    tries = capital / SECONDS[-1]
    print(f"{GRIPS} grips, 36 hours: {tries:.0f} real tries, {problem.best_mean * tries:.0f} boxes with the best grip")
    for policy in (mfb.MFUCB(rho=0.25), mfb.UCB(rho=0.25)):
        labels = [f"grip {k}" for k in range(GRIPS)]
        trial = mfb.Experiment(policy, arms=labels, fidelities=problem.fidelities, capital=capital)
        with ProcessPoolExecutor(2) as pool:
            mfb.run(trial, partial(grip, problem), pool, seed=1)
        h = trial.history
        lost = float(mfb.regret(problem, h.arms, h.fidelities, capital, account="top")) / SECONDS[-1]
        simulated, real = np.bincount(h.fidelities, minlength=2)
        name, best = type(policy).__name__, labels[trial.best()]
        print(f"{name:<6}{simulated:>7,} simulated, {real:>3} real, {lost:>3.0f} boxes lost; best: {best}")


if __name__ == "__main__":
    main()
