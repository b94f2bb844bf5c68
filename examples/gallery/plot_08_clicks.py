"""
Clicks as counts
================

An ad that is shown for an hour gives 37 clicks of 1,000 impressions: one play, a thousand
observations. With ``Rate()`` bounds follow from how little zeros and ones spread at low rates.
``Bounded(0, 1)`` allows for the most.
"""

import matplotlib.pyplot as plt
import numpy as np

import mfbandit as mfb

CLICKS = [18, 25, 37, 52]  # of 1,000 impressions each


def bounds(noise: mfb.Concentration) -> mfb.Bounds:
    exp = mfb.Experiment(mfb.UCB(rho=1), arms=len(CLICKS), fidelities=mfb.Fidelities([1], concentration=noise))
    exp.add_results([(k, 0, mfb.Counts(clicks, 1000)) for k, clicks in enumerate(CLICKS)])
    return exp.bounds()


# %%
# The same clicks, by both.

figure, ax = plt.subplots(figsize=(7, 3.2), layout="constrained")
for shift, noise, colour in ((0.12, mfb.Bounded(0, 1), "#E69F00"), (-0.12, mfb.Rate(), "#0072B2")):
    found, rows = bounds(noise), np.arange(len(CLICKS)) + shift
    ax.hlines(rows, 100 * found.lower[0], 100 * found.upper[0], color=colour, lw=5, label=repr(noise))
    ax.plot(100 * found.means[0], rows, "k.", zorder=3)
ax.axvline(0, color="0.6", lw=1)
ax.set(yticks=range(len(CLICKS)), yticklabels=[f"{c} clicks" for c in CLICKS], xlabel="click rate (CTR), %")
ax.legend(frameon=False)
plt.show()
