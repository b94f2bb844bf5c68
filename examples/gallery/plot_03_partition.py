"""
Which fidelity settles which arm
================================

The paper's Figure 1. Each row has the arms that no cheaper fidelity settles. Of 500 arms, the
cheapest fidelity settles 427, and ten need the last but one.
"""

import matplotlib.pyplot as plt

import mfbandit as mfb

problem = mfb.paper_problem(2, seed=0)
mfb.plotting.plot_partition(problem)
plt.show()

# %%
# The classes in numbers.

print(mfb.theory.partition(problem))
