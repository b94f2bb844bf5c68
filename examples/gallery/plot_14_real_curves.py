"""
Real models, recorded
=====================

Twenty learners on a real data set, with recorded accuracies at four sizes of the training set.
Nobody knows how far off a small one is. ``MFBayes`` is not told, and learns it from all learners
together.
"""

import matplotlib.pyplot as plt

import mfbandit as mfb

problem = mfb.learning_curve_problem("wind")
capital = 10 * problem.arms * problem.fidelities.costs[-1]
sims = {
    "UCB, all of the data": mfb.simulate(problem, mfb.UCB(rho=1), capital=capital, runs=5, seed=0),
    "MFBayes": mfb.simulate(problem, mfb.MFBayes(), capital=capital, runs=5, seed=0),
}

# %%
# Accuracy by size of the training set, and what was lost.

figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.6), layout="constrained")
left.plot(range(1, 5), problem.means, color="0.6", lw=1)
left.plot(
    range(1, 5), problem.means[:, problem.means[-1].argmax()], color="#0072B2", lw=2.5, label="the best in the end"
)
left.set(xticks=range(1, 5), xlabel="fidelity", ylabel="accuracy")
left.legend(frameon=False, loc="lower right")
mfb.plotting.plot_regret(sims, ax=right)
plt.show()
