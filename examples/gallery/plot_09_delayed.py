"""
Results that come late
======================

With 32 workers, an ask lacks the results of 31 plays. Pending plays count in the widths of their
arms, so workers spread. A rule that does not count them sends all workers to one arm, and loses
more.
"""

from collections import deque
from dataclasses import dataclass, replace

import matplotlib.pyplot as plt
import numpy as np

import mfbandit as mfb


@dataclass(frozen=True)
class Forgetful(mfb.MFUCB):
    """MF-UCB that does not count pending plays."""

    def choose(self, stats: mfb.Stats, fidelities: mfb.Fidelities) -> tuple[int, int]:
        """Choose as if nothing were pending."""
        return super().choose(replace(stats, pending=np.zeros_like(stats.pending)), fidelities)


means = np.linspace(0.3, 0.9, 12)
fid = mfb.Fidelities([1, 10], [0.1, 0], mfb.Bounded(0, 1))
problem = mfb.Problem([means, means], fid, mfb.Bernoulli())
CAPITAL, RUNS = 2000.0, 4


def lost(policy: mfb.Policy, workers: int, seed: int) -> float:
    """Keep so many plays pending, and tell the oldest when a worker is free."""
    rng = np.random.default_rng(seed)
    exp = mfb.Experiment(policy, arms=12, fidelities=fid, capital=CAPITAL)
    waiting: deque[mfb.Play] = deque()
    try:
        while True:
            while len(waiting) < workers:
                waiting.append(exp.ask())
            play = waiting.popleft()
            exp.tell(play, problem.draw(play.arm, play.fidelity, rng))
    except mfb.CapitalExhausted:
        for play in waiting:
            exp.tell(play, problem.draw(play.arm, play.fidelity, rng))
    return float(mfb.regret(problem, exp.history.arms, exp.history.fidelities, CAPITAL))


# %%
# Mean regret of four runs.

numbers = [1, 8, 32]
figure, ax = plt.subplots(figsize=(6.5, 3.4), layout="constrained")
for policy, style, name in ((Forgetful(), "o--", "pending plays not counted"), (mfb.MFUCB(), "o-", "MF-UCB")):
    ax.plot(numbers, [np.mean([lost(policy, n, seed) for seed in range(RUNS)]) for n in numbers], style, label=name)
ax.set(xlabel="workers", ylabel="regret", ylim=(0, None), xticks=numbers)
ax.legend(frameon=False)
plt.show()
