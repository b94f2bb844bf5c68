"""What shares cost: regret with a control and with least shares, over that without, on the same seeds.

    python benchmarks/shares.py [--runs 10] [--plays 10000] [--out results/shares.json]

20 ads with click rates from 2 to 6 %, a play of 1,000 impressions told as counts, UCB at ρ = ½. The control is the
median ad. Beside the regret is what the shares alone would cost if the policy never played these arms by itself: the
sum of share times gap, over all arms. Exits with 1 if regret grows by more than that, beyond the interval, or if a
stretch of plays lacks its share.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

import mfbandit as mfb

RATES = np.linspace(0.02, 0.06, 20)
CONTROL = 10
TRIALS = 1000
KINDS = {
    "none": mfb.Shares(),
    "control 5 %": mfb.Shares(CONTROL, 0.05),
    "control 10 %": mfb.Shares(CONTROL, 0.1),
    "control 20 %": mfb.Shares(CONTROL, 0.2),
    "every arm 1 %": mfb.Shares(None, 0.0, 0.01),
    "control 10 %, every arm 1 %": mfb.Shares(CONTROL, 0.1, 0.01),
}


def regret(shares: mfb.Shares, plays: int, seed: int) -> tuple[float, bool]:
    """Regret in clicks per impression times plays, and whether the control has its share of every stretch of 100."""
    rng = np.random.default_rng(seed)
    exp = mfb.Experiment(
        mfb.UCB(rho=0.5),
        arms=len(RATES),
        fidelities=mfb.Fidelities([1], None, mfb.SubGaussian(0.5)),
        control=shares.control,
        control_share=shares.control_share,
        least_share=shares.least_share,
    )
    for _ in range(plays):
        play = exp.ask()
        exp.tell(play, successes=int(rng.binomial(TRIALS, RATES[play.arm])), trials=TRIALS)
    arms = exp.history.arms
    sums = np.concatenate([[0], np.cumsum(arms == CONTROL)])
    kept = bool(((sums[100:] - sums[:-100]) >= int(100 * shares.control_share + 1e-9)).all())
    return float((RATES.max() - RATES[arms]).sum()), kept


def measure(runs: int, plays: int) -> dict[str, Any]:
    """Regret of each kind over that without shares; the mean over runs with its 95 % interval."""
    gaps, rows = RATES.max() - RATES, {}
    base = np.array([regret(KINDS["none"], plays, seed)[0] for seed in range(runs)])
    for name, shares in KINDS.items():
        found = [regret(shares, plays, seed) for seed in range(runs)]
        more = np.array([lost for lost, _ in found]) - base
        part = np.full(len(RATES), shares.least_share)
        if shares.control is not None:
            part[shares.control] = max(shares.control_share, shares.least_share)
        half = 1.96 * float(more.std(ddof=1)) / np.sqrt(runs)
        rows[name] = {
            "regret": float(base.mean() + more.mean()),
            "more": [float(more.mean()), float(more.mean()) - half, float(more.mean()) + half],
            "shares_alone": float((part * gaps).sum()) * plays,
            "kept": all(kept for _, kept in found),
        }
    return {"runs": runs, "plays": plays, "kinds": rows}


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--plays", type=int, default=10_000)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    found = measure(options.runs, options.plays)
    text = json.dumps(found, indent=2)
    print(text)
    if options.out is not None:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(text + "\n")
    return int(any(row["more"][1] > row["shares_alone"] or not row["kept"] for row in found["kinds"].values()))


if __name__ == "__main__":
    sys.exit(main())
