"""What asking and telling costs, beside a bare NumPy evaluation of the index, and what the import costs.

Ratios of medians over interleaved rounds in one process, in its processor time, as other work on the machine is not
ours; the imports in fresh processes, interleaved too.
"""

import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable
from statistics import median

import numpy as np

import mfbandit as mfb

ROUNDS = 15
AT_MOST = {"ask_tell": 3.0, "import": 2.0}  # what must hold; 1 is returned if it does not
REPEATS = 400
# `import mfbandit` alone loads nothing; this is what an experiment needs.
NEEDED = "import mfbandit as m; m.Experiment, m.MFUCB, m.Fidelities, m.Bounded"


def seconds(call: Callable[[], object], repeats: int) -> float:
    """Mean processor time of one call."""
    start = time.process_time()
    for _ in range(repeats):
        call()
    return (time.process_time() - start) / repeats


def warm_experiment(problem: mfb.Problem, plays: int) -> mfb.Experiment:
    """An experiment in which every arm has been played."""
    rng = np.random.default_rng(0)
    experiment = mfb.Experiment(mfb.MFUCB(), arms=problem.arms, fidelities=problem.fidelities)
    for _ in range(plays):
        play = experiment.ask()
        experiment.tell(play, problem.draw(play.arm, play.fidelity, rng))
    return experiment


def ask_tell_ratio() -> dict[str, float]:
    """Ask + tell against one bare evaluation of eq. 3 with its argmax, K = 500, M = 3."""
    experiment = warm_experiment(mfb.paper_problem(1, seed=0), plays=3000)
    stats, fid = experiment.stats, experiment.fidelities
    sums, counts, biases = stats.sums, np.maximum(stats.counts, 1), fid.bias_column

    def bare() -> int:
        width = 0.2 * np.sqrt(2 * 2.0 * math.log(3001) / counts)
        return int((sums / counts + width + biases).min(axis=0).argmax())

    def ask_tell() -> None:
        experiment.tell(experiment.ask(), 0.5)

    rounds = [(seconds(ask_tell, REPEATS), seconds(bare, REPEATS)) for _ in range(ROUNDS)]
    ours, plain = (median(column) for column in zip(*rounds, strict=True))
    return {"ask_tell_us": ours * 1e6, "bare_numpy_us": plain * 1e6, "ratio": ours / plain}


def import_ratio() -> dict[str, float]:
    """Loading all that asks and tells against ``import numpy``, each in a fresh process, its start left out.

    Both from bytecode, as pip installs it and as any second import finds it.
    """
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}

    def fresh(statement: str) -> float:
        code = f"import time; s = time.perf_counter(); {statement}; print(time.perf_counter() - s)"
        command = [sys.executable, "-c", code]
        return float(subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout)

    fresh(NEEDED)
    rounds = [(fresh(NEEDED), fresh("import numpy")) for _ in range(ROUNDS)]
    ours, plain = (median(column) for column in zip(*rounds, strict=True))
    return {"import_mfbandit_ms": ours * 1e3, "import_numpy_ms": plain * 1e3, "ratio": ours / plain}


if __name__ == "__main__":
    ratios = {"ask_tell": ask_tell_ratio(), "import": import_ratio()}
    print(json.dumps(ratios, indent=2))
    sys.exit(int(any(ratios[name]["ratio"] > most for name, most in AT_MOST.items())))
