"""
When cheap looks mislead
========================

Here the simulator ranks the grips in exactly the wrong order. MF-UCB is told how far off it may
be, and finds the best grip in spite of that. But it pays for looks that help nothing: UCB, which
never asks the simulator, has less regret.
"""

import matplotlib.pyplot as plt

import mfbandit as mfb

problem = mfb.misleading_problem(20)
capital = 40 * problem.arms * problem.fidelities.costs[-1]
sims = [mfb.simulate(problem, policy, capital=capital, runs=20, seed=0) for policy in (mfb.UCB(), mfb.MFUCB())]

# %%
# True means at each fidelity, and what was lost.

figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.6), layout="constrained")
mfb.plotting.plot_means(problem, ax=left)
mfb.plotting.plot_regret(sims, ax=right)
plt.show()
