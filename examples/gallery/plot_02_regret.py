"""
Regret of five policies
=======================

What each policy lost, against always playing the best arm. UCB knows no cheap plays. MF-UCB uses
them. The other three are not in the paper: the policies page says where each of them loses.
"""

import matplotlib.pyplot as plt

import mfbandit as mfb

problem = mfb.paper_problem(3, seed=0)  # 200 arms with rewards of 0 and 1, costs 1 and 10
capital = 10 * problem.arms * problem.fidelities.costs[-1]
policies = {
    "UCB": mfb.UCB(),
    "MF-UCB": mfb.MFUCB(),
    "MF-UCB, ρ = ¼": mfb.MFUCB(rho=0.25),
    "MFAda": mfb.MFAda(),
    "MFBayes, not told the biases": mfb.MFBayes(),
}
sims = {name: mfb.simulate(problem, policy, capital=capital, runs=4, seed=1) for name, policy in policies.items()}

# %%
# The mean of four runs, with intervals of 95 %.

mfb.plotting.plot_regret(sims)
plt.show()

# %%
# The same as numbers.

for name, sim in sims.items():
    print(f"{name:<30}{sim.regret[:, -1].mean():>8,.0f}")
