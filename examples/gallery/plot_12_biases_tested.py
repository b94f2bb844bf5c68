"""
A bias that does not hold
=========================

Somebody said that a minute is at most ten points off. It is forty for one ad. The experiment
tests biases after every result. When results refute one, it does not count for the answer any
more, and ``widen=True`` raises it.
"""

import matplotlib.pyplot as plt
import numpy as np

import mfbandit as mfb

hour = np.array([0.40, 0.55, 0.60])
minute = np.array([0.80, 0.53, 0.57])  # the first ad is clickbait
fid = mfb.Fidelities([1, 5], [0.1, 0], mfb.SubGaussian(0.1), names=["a minute", "an hour"])
rng = np.random.default_rng(0)
exp = mfb.Experiment(mfb.MFUCB(), arms=["clickbait", "plain", "good"], fidelities=fid, capital=5000, widen=True)
assumed = []
for play in exp.plays():
    exp.tell(play, rng.normal((minute, hour)[play.fidelity][play.arm], 0.1))
    assumed.append((exp.spent, exp.fidelities.known_biases[0]))
print(exp.arms[exp.best()])

# %%
# The events that say so.

for record in exp.log:
    if type(record).__name__ in ("BiasRefuted", "BiasesWidened"):
        print(record)

# %%
# The bias that is assumed for a minute, over what was spent.

figure, ax = plt.subplots(figsize=(7, 3), layout="constrained")
ax.step(*np.array(assumed).T, where="post", color="#0072B2", label="assumed")
ax.axhline(0.4, color="#D55E00", ls="--", lw=1, label="the truth for the clickbait")
ax.set(xlabel="capital spent", ylabel="bias of a minute", ylim=(0, None))
ax.legend(frameon=False)
plt.show()
