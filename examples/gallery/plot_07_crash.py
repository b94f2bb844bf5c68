"""
A crash in the middle
=====================

An experiment in a file. Its process is killed four times without warning, as ``kill -9`` does.
Nothing that was acknowledged is lost, and each new process goes on where the last one was.
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import matplotlib.pyplot as plt

import mfbandit as mfb

WORKER = """
import sys, numpy as np, mfbandit as mfb
rng = np.random.default_rng()
with mfb.Store(sys.argv[1]) as store:
    exp = store.open("ads")
    for play in exp.plays():
        exp.tell(play, float(rng.random() < [0.3, 0.5, 0.9][play.arm]))
        print(play.id, flush=True)  # told: it is on disk
"""

# %%
# A process tells results and is killed in the middle. Each line that it wrote is a result that was acknowledged.

folder = tempfile.TemporaryDirectory()
path = Path(folder.name) / "ads.db"
fid = mfb.Fidelities([1, 10, 60], [0.2, 0.1, 0], mfb.Bounded(0, 1))
with mfb.Store(path) as store:
    store.create("ads", mfb.MFUCB(), arms=3, fidelities=fid, capital=1e6)

acknowledged: set[int] = set()  # the numbers of plays, which their ids end with
kills = []
for _ in range(4):
    worker = subprocess.Popen([sys.executable, "-c", WORKER, str(path)], stdout=subprocess.PIPE, text=True)
    lines = []
    for line in worker.stdout or ():
        lines.append(line)
        if len(lines) == 100:
            worker.kill()  # what it had written by then is still read
            kills.append(time.time())
    acknowledged |= {int(line.rpartition("-")[2]) for line in lines if line.endswith("\n")}
    worker.wait()

# %%
# What the file has afterwards.

with mfb.Store(path, read_only=True) as store:
    exp = store.open("ads")
    told = [record for record in exp.records() if type(record.event).__name__ == "Told"]
found = [record.event.play for record in told]
lost, twice = len(acknowledged - set(found)), len(found) - len(set(found))
print(f"acknowledged: {len(acknowledged)}, lost: {lost}, twice: {twice}")
folder.cleanup()

# %%
# Results in the file over time. A new process needs a moment to start.

figure, ax = plt.subplots(figsize=(7, 3.2), layout="constrained")
times = [record.time - kills[0] for record in told]
ax.step(times, range(1, len(told) + 1), where="post", color="#0072B2", lw=2, label="results on disk")
for i, kill in enumerate(kills):
    ax.axvline(kill - kills[0], color="#D55E00", ls="--", lw=1.2, label=None if i else "killed")
ax.set(xlabel="seconds from the first kill", ylabel="results", ylim=(0, None))
ax.legend(frameon=False, loc="upper left")
plt.show()
