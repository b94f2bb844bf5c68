"""Whether estimates of "this arm is the best" are calibrated where the biases are learned, on recorded learning curves.

    python benchmarks/calibration.py [--seeds 3] [--out results/calibration.json]

A policy plays a data set (see ``selection_lcdb.py``) with twice the capital of a full look at every arm, and somebody
looks after each play. The first look at which the estimate reaches a level counts: how often was the arm not the best
one, and how often was it worse by more than 0.005? "As it is" takes the posterior of the policy for what it says;
"corrected" is what ``experiment.confidence()`` shows: deviations times 1.5, and nothing before the best arm and its
nearest rival have two results each at the highest fidelity.

The correction was fixed on the 64 data sets of the package; the 38 others were looked at afterwards.
"""

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))

import mfbandit as mfb
from benchmarks.selection_lcdb import EXACT, MORE, SplitDesk
from mfbandit._internal.formatting import columns
from mfbandit.experiment.posterior_claim import CORRECTION, Belief

LEVELS = (0.9, 0.95, 0.99)
CLOSE = 0.005  # of accuracy
CAPITAL = 2.0  # in full looks at every arm
POLICIES: dict[str, Callable[[float], Any]] = {
    "MFTopTwo": mfb.MFTopTwo,
    "MFAuto": lambda _capital: mfb.MFAuto(),
    "MFBayes": lambda _capital: mfb.MFBayes(),
}
FORMS = ("as it is", "corrected")


def looks(make: Callable[[float], Any], desk: SplitDesk, budget: float) -> Iterator[tuple[int, dict[str, float]]]:
    """After each play: the arm that the policy would recommend, and the estimates that it is the best."""
    policy = make(budget)
    while True:
        arm, fidelity = policy.choose(desk.stats, desk.fidelities)
        if not desk.affords(arm, fidelity):
            return
        desk.look(arm, fidelity)
        desk.stats = replace(desk.stats, memory=policy.remember(desk.stats, desk.fidelities))
        best = policy.recommend(desk.stats, desk.fidelities)
        belief = Belief.of(best, desk.stats, *policy.intervals(desk.stats, desk.fidelities))
        plain = replace(belief, deviations=belief.deviations / CORRECTION)
        if np.isfinite(belief.deviations).all() and may_reach(plain, LEVELS[0]):
            shown = belief.withheld(desk.stats, tuple(map(str, range(len(belief.means)))))
            yield best, {"as it is": plain.probability(), "corrected": 0.0 if shown else belief.probability()}


def may_reach(belief: Belief, level: float) -> bool:
    """Whether the probability to be ahead of the nearest rival alone reaches the level: most looks need no integral."""
    arm, rival = belief.arm, belief.nearest
    apart = float(np.hypot(belief.deviations[arm], belief.deviations[rival]))
    return NormalDist().cdf((belief.means[arm] - belief.means[rival]) / apart) >= level


def first_answers(name: str, number: int, seed: int) -> dict[str, list[float | None]]:
    """By form: how much worse than the best the arm was at the first look with each level; None if it was never so."""
    desk = SplitDesk(number, seed, paired=False, budget=np.inf)
    budget = CAPITAL * len(desk.means) * desk.fidelities.costs[-1]
    desk = SplitDesk(number, seed, paired=False, budget=budget)
    found: dict[str, list[float | None]] = {form: [None] * len(LEVELS) for form in FORMS}
    for best, estimates in looks(POLICIES[name], desk, budget):
        for form in FORMS:
            for i, level in enumerate(LEVELS):
                if found[form][i] is None and estimates[form] >= level:
                    found[form][i] = float(desk.means.max() - desk.means[best])
    return found


def _job(name: str, task: tuple[int, int]) -> dict[str, list[float | None]]:
    return first_answers(name, *task)


def row(losses: list[float | None]) -> dict[str, float]:
    """Shares of all runs: of those with an answer, wrong ones, and ones that are worse by more than 0.005."""
    known = np.array([loss for loss in losses if loss is not None])
    return {
        "runs": len(losses),
        "answered": len(known) / len(losses),
        "wrong": float((known > 0).sum() / len(losses)),
        "far": float((known > CLOSE).sum() / len(losses)),
    }


def measured(name: str, numbers: tuple[int, ...], seeds: int) -> dict[str, list[dict[str, float]]]:
    """By form, a row for each level."""
    tasks = [(number, seed) for number in numbers for seed in range(seeds)]
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        found = []
        for one in pool.map(partial(_job, name), tasks):
            found.append(one)
            print(f"\r{name}: {len(found)} of {len(tasks)} runs", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return {form: [row([one[form][i] for one in found]) for i in range(len(LEVELS))] for form in FORMS}


def table(results: dict[str, Any]) -> str:
    """Everything, as text."""
    lines = [("data sets", "policy", "estimate", "level", "answered", "wrong", f"worse by > {CLOSE}")]
    for sets, by_policy in results.items():
        for name, by_form in by_policy.items():
            for form, rows in by_form.items():
                for level, found in zip(LEVELS, rows, strict=True):
                    shares = (f"{found[key]:.1%}" for key in ("answered", "wrong", "far"))
                    lines.append((sets, name, form, f"{level:g}", *shares))
    return "\n".join(columns(lines))


def main() -> int:
    """Measure, print, and say where a corrected estimate is wrong more often than it says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3, help="runs on each data set")
    parser.add_argument("--out", type=Path, default=Path("results/calibration.json"))
    options = parser.parse_args()
    places = {"64 of the package": EXACT, "38 others": tuple(MORE.names.values())}
    results = {
        place: {name: measured(name, numbers, options.seeds) for name in POLICIES} for place, numbers in places.items()
    }
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(results, indent=1))
    print(table(results))
    wrong = [
        f"{place}, {name}, {level:g}: wrong in {found['wrong']:.1%} of all runs"
        for place, by_policy in results.items()
        for name, by_form in by_policy.items()
        for level, found in zip(LEVELS, by_form["corrected"], strict=True)
        if found["wrong"] > 1 - level + 3 * np.sqrt((1 - level) * level / found["runs"])
    ]
    print("\n".join(wrong), file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
