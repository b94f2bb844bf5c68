"""
Peeking finds wrong winners
===========================

Two versions of a page sell equally well. Somebody looks every day, and stops when the number says
that one has won. A t-test promises an error in 5 of 100 experiments, for one look. ``confidence``
promises it for all looks together.
"""

import math

import matplotlib.pyplot as plt
import numpy as np

import mfbandit as mfb

RATE, VISITORS, DAYS, EXPERIMENTS = 0.05, 1000, 40, 1000
rng = np.random.default_rng(1)
sold = rng.binomial(VISITORS, RATE, size=(EXPERIMENTS, DAYS, 2)).cumsum(axis=1)

# %%
# The t-test, every day.

shown = VISITORS * np.arange(1, DAYS + 1)
pooled = sold.sum(axis=2) / (2 * shown)
t = np.abs(sold[..., 0] - sold[..., 1]) / np.sqrt(2 * shown * pooled * (1 - pooled))
tested = np.maximum.accumulate(t > 1.96, axis=1).mean(axis=0)

# %%
# The confidence of the first 25 of these experiments, every day.


def claims(days: np.ndarray) -> list[bool]:
    exp = mfb.Experiment(mfb.UCB(), arms=["old", "new"], fidelities=mfb.Fidelities([1], concentration=mfb.Rate()))
    found = []
    for old, new in np.diff(days, axis=0, prepend=0).tolist():
        exp.add_results([(0, 0, mfb.Counts(old, VISITORS)), (1, 0, mfb.Counts(new, VISITORS))])
        found.append(exp.confidence().level >= 0.95)
    return found


claimed = np.maximum.accumulate([claims(days) for days in sold[:25]], axis=1).mean(axis=0)

# %%
# Share of experiments that had declared a winner, although there is none.

figure, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
days = np.arange(1, DAYS + 1)
ax.plot(days, 100 * tested, color="#D55E00", label="t-test, p < 0.05 (1,000 experiments)")
ax.plot(days, 100 * claimed, color="#0072B2", label="confidence ≥ 95 % (25 of them)")
ax.axhline(5, color="0.5", ls="--", lw=1)
ax.annotate("promised", (DAYS, 5), (0, 4), textcoords="offset points", ha="right", color="0.35")
ax.set(xlabel="days, with a look on each", ylabel="wrong winners, %", ylim=(-1, math.ceil(100 * tested[-1]) + 5))
ax.legend(frameon=False)
plt.show()
