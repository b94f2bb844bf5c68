"""
The cost of being sure
======================

Three policies look for the best arm until they have an answer, which may be wrong in one of ten
runs. ``MFSure`` compares the best arm with its nearest rival, where that is cheapest. ``MFGrad``
and ``IISE`` are published rules. On this problem the first two cost about
the same; on others they do not.
"""

import matplotlib.pyplot as plt
import numpy as np

import mfbandit as mfb

fid = mfb.Fidelities([0.5, 5], [0.1, 0], mfb.SubGaussian(0.1))
problem = mfb.Problem([[0.4, 0.4, 0.5, 0.45], [0.5, 0.5, 0.6, 0.45]], fid, mfb.Gaussian(0.1))
policies = {
    "MFSure": mfb.MFSure(delta=0.1),
    "MFGrad": mfb.MFGrad(delta=0.1),
    "IISE": mfb.IISE(delta=0.1),
}


def spend(policy: mfb.Policy, seed: int) -> tuple[float, int]:
    """Make plays until the policy has decided; return what they cost, and its answer."""
    rng = np.random.default_rng(seed)
    exp = mfb.Experiment(policy, arms=problem.arms, fidelities=fid)
    for play in exp.plays():
        exp.tell(play, problem.draw(play.arm, play.fidelity, rng))
    return exp.spent, exp.best()


# %%
# Twelve runs of each.

spent = {}
for name, policy in policies.items():
    runs = [spend(policy, seed) for seed in range(12)]
    spent[name] = np.array([cost for cost, _ in runs])
    wrong = sum(answer != 2 for _, answer in runs)
    print(f"{name}: {spent[name].mean():.0f} on average, {wrong} of 12 answers wrong")

# %%
# What the runs cost; a dot is one of them.

figure, ax = plt.subplots(figsize=(7, 3), layout="constrained")
rng = np.random.default_rng(0)
for row, costs in enumerate(spent.values()):
    ax.plot(costs, row + rng.uniform(-0.2, 0.2, len(costs)), "o", ms=4, alpha=0.6)
    ax.plot(costs.mean(), row, "k|", ms=22, mew=2)
ax.set(yticks=range(len(spent)), yticklabels=spent, xscale="log", xlabel="cost until the answer")
ax.invert_yaxis()
plt.show()
