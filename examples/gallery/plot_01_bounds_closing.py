"""
Bounds close, arm by arm
========================

MF-UCB at work. Each row is an arm; a bar is where its mean may be, from results at one fidelity.
Cheap results settle the poor arms. Only those that could still be the best move on to the next
fidelity.
"""

import matplotlib.pyplot as plt
import numpy as np

import mfbandit as mfb

names, colours = ["a minute", "ten minutes", "an hour"], ["#56B4E9", "#E69F00", "#009E73"]
fid = mfb.Fidelities([1, 10, 60], [0.2, 0.1, 0], mfb.SubGaussian(0.2), names=names)
hour = np.array([0.2, 0.35, 0.5, 0.6, 0.7, 0.8])  # the truth, which the policy does not see
rng = np.random.default_rng(2)
truth = np.array([hour + rng.uniform(-bias, bias, 6) for bias in fid.biases])

# %%
# The experiment is stopped at six amounts of capital, and its bounds are drawn.

exp = mfb.Experiment(mfb.MFUCB(rho=0.5), arms=[f"ad {k}" for k in range(6)], fidelities=fid)
figure, panels = plt.subplots(2, 3, figsize=(9, 5.4), sharex=True, sharey=True, layout="constrained")
for panel, spent in zip(panels.flat, [6, 60, 300, 1000, 4000, 16000], strict=True):
    while exp.spent < spent:
        play = exp.ask()
        exp.tell(play, rng.normal(truth[play.fidelity, play.arm], 0.2))
    bounds = exp.bounds()
    for m, colour in enumerate(colours):
        low, high, rows = bounds.lower[m].clip(-1), bounds.upper[m].clip(max=2), np.arange(6) + 0.25 * (m - 1)
        panel.barh(rows, np.where(bounds.plays[m] > 0, high - low, 0), 0.18, low, color=colour, label=names[m])
    panel.plot(hour, np.arange(6), "kd", ms=4, label="true mean")
    panel.axvline(hour.max(), color="0.6", lw=1, ls=":")
    panel.set(title=f"after {exp.spent:,.0f} minutes", xlim=(-0.3, 1.4), yticks=range(6), yticklabels=exp.arms)
    panel.invert_yaxis() if panel is panels[0, 0] else None
panels[0, 0].legend(fontsize=8, loc="upper right")
figure.supxlabel("share of visitors who click")
plt.show()

# %%
# Most time went to the two best ads, and most looks at poor ones took a minute.

print(exp.stats.counts)
