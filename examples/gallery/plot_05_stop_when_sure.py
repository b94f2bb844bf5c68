"""
Confidence grows with spending
==============================

The confidence says little for long, then rises fast. The possible loss shows how far it is. The
experiment stops by itself, once it is 95 % sure that no ad is better than its answer by more than
two points.
"""

import math

import matplotlib.pyplot as plt
import numpy as np

import mfbandit as mfb

rng = np.random.default_rng(1)
hour = rng.permutation(np.linspace(0.1, 0.8, 8))  # the truth
clicks = np.array([hour + rng.uniform(-0.1, 0.1, 8), hour + rng.uniform(-0.04, 0.04, 8), hour])
noise = mfb.SubGaussian(0.5 / math.sqrt(20))  # of a mean of 20 visitors, who click or not
fid = mfb.Fidelities([1, 10, 60], [0.1, 0.04, 0], noise)
exp = mfb.Experiment(mfb.MFSure(), arms=8, fidelities=fid, stop=mfb.Sure(0.95))

trend = []
for play in exp.plays():
    exp.tell(play, rng.binomial(20, clicks[play.fidelity, play.arm]) / 20)
    if play.arm == exp.best() or exp.decided:
        found = exp.confidence()
        trend.append((exp.spent, found.level, found.could_lose))
print(found)

# %%
# Both numbers, over what was spent.

spent, level, loss = np.array(trend).T
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
left.plot(spent, 100 * level, color="#0072B2")
left.set(title="confidence, %", ylim=(0, 100))
right.semilogy(spent, loss, color="#D55E00")
right.set(title="possible loss, share of visitors who click")
for ax in (left, right):
    ax.set_xlabel("minutes of display spent")
plt.show()
