"""
What a capital will buy
=======================

Before any play: an estimate from last year's click rates. A plan says what each fidelity will
cost and settle, and how close two ads may be and still be told apart.
"""

import matplotlib.pyplot as plt
import numpy as np

import mfbandit as mfb

names = ["a minute", "ten minutes", "an hour"]
ads = mfb.Fidelities([1, 10, 60], [0.2, 0.1, 0], mfb.Bounded(0, 1), names=names)
last_year = np.random.default_rng(0).beta(2, 5, size=1000)
capitals = np.geomspace(2e4, 2e6, 9)
plans = [mfb.plan(ads, capital, prior=last_year, arms=100) for capital in capitals]
print(plans[4])

# %%
# Where the capital will go, and what can be told apart.

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
shares = np.array([100 * plan.spending / plan.spending.sum() for plan in plans]).T
left.stackplot(capitals, shares, labels=names, colors=["#56B4E9", "#E69F00", "#009E73"])
left.set(
    xscale="log", xlabel="capital, minutes", ylabel="of it spent, %", ylim=(0, 100), xlim=(capitals[0], capitals[-1])
)
left.legend(loc="lower left", fontsize=8)
right.loglog(capitals, [plan.resolution for plan in plans], "o-", color="#0072B2")
right.set(xlabel="capital, minutes", title="click rates closer than this\nto the best are not told apart")
plt.show()
