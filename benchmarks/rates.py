"""What it costs to be sure of the best click rate: with rates, and with noise as wide as the range allows.

    python benchmarks/rates.py [--runs 10] [--out results/rates.json]

60 ads with click rates from 1 to 7 %, evenly spaced, each play 1,000 impressions told as counts. ``MFSure`` looks for
an ad that is within 10 % of the best, 95 % sure: once with evidence and bounds of σ = ½ (``SubGaussian(0.5)``), and
once with ``Rate()``, on the same seeds. Also what ``plan`` says of a capital for either.

Exits with 1 if rates take more than half of the impressions, or if an answer is wrong in more than 5 % of the runs.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

import mfbandit as mfb

ADS = np.linspace(0.01, 0.07, 60)
TRIALS = 1000  # impressions of a play
WITHIN = 0.1 * float(ADS.max())
LEVEL = 0.95
AT_MOST = 0.5  # of the impressions with σ = ½
PLANNED = 2_000_000  # impressions
KINDS: dict[str, mfb.Concentration] = {"half": mfb.SubGaussian(0.5), "rate": mfb.Rate()}


def impressions_until_sure(noise: mfb.Concentration, seed: int) -> tuple[int, bool]:
    """Play until it is decided; return the impressions that took, and whether the answer is within 10 % of the best."""
    rng = np.random.default_rng(seed)
    rates = rng.permutation(ADS)
    policy = mfb.MFSure(delta=1 - LEVEL, tolerance=WITHIN)
    exp = mfb.Experiment(policy, arms=len(rates), fidelities=mfb.Fidelities([1], [0], noise))
    for play in exp.plays():
        exp.tell(play, successes=int(rng.binomial(TRIALS, rates[play.arm])), trials=TRIALS)
    return exp.results_at[0] * TRIALS, bool(rates[exp.best()] >= ADS.max() - WITHIN)


def measure(runs: int) -> dict[str, Any]:
    """Measure both kinds on the same seeds; the ratio with its 95 % interval over runs."""
    found = {name: [impressions_until_sure(noise, seed) for seed in range(runs)] for name, noise in KINDS.items()}
    took = {name: np.array([number for number, _ in each]) for name, each in found.items()}
    ratios = took["rate"] / took["half"]
    half = 1.96 * float(ratios.std(ddof=1)) / np.sqrt(runs) if runs > 1 else float("nan")
    plans = {name: mfb.plan(mfb.Fidelities([1], [0], noise), PLANNED, means=ADS) for name, noise in KINDS.items()}
    return {
        "runs": runs,
        "impressions": {name: float(numbers.mean()) for name, numbers in took.items()},
        "ratio": float(ratios.mean()),
        "ratio_95": [float(ratios.mean()) - half, float(ratios.mean()) + half],
        "wrong": {name: sum(not right for _, right in each) for name, each in found.items()},
        "planned_resolution": {name: each.resolution for name, each in plans.items()},
    }


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    found = measure(options.runs)
    text = json.dumps(found, indent=2)
    print(text)
    if options.out is not None:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(text + "\n")
    too_many = max(found["wrong"].values()) > max(1, (1 - LEVEL) * options.runs)
    return int(found["ratio"] > AT_MOST or too_many)


if __name__ == "__main__":
    sys.exit(main())
