"""Whether days on which all visitors click more or less change the winner: with and without telling days.

    python benchmarks/days.py [--runs 20] [--plays 560] [--out results/days.json]

Ten ads with click rates from 3 to 5 % and one of 6 %, a play of 200 impressions told as counts, UCB by divergence at
ρ = ½, 20 plays a day. From Monday to Sunday all rates are multiplied by 1, 0.9, 0.7, 0.8, 1.1, 1.3, 1.2, as in the
demonstration. On the same seeds: without such swings; with them and told with the day; with them and told without. For
each how often the best ad is the one that is recommended, looked at after each day from the second week on; in how many
runs it is at the end; which share of the plays it has; and in how many runs means are said to have changed.

Exits with 1 if days that are told change the winner at the end in any run.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))

import mfbandit as mfb
from benchmarks.drift import wilson, with_interval
from mfbandit.cli.demo import SWINGS

ADS = np.append(np.linspace(0.03, 0.05, 9), 0.06)
IMPRESSIONS = 200  # of a play
PLAYS_OF_A_DAY = 20
KINDS = {"no swings": (False, False), "told with days": (True, True), "told without": (True, False)}


def followed(seed: int, plays: int, *, swings: bool, told: bool) -> tuple[float, bool, float, bool]:
    """Shares of looks and of plays that are of the best ad, whether it is the winner, and whether means changed."""
    rng = np.random.default_rng([seed, 6])
    rates = rng.permutation(ADS)
    one = mfb.Fidelities([1], concentration=mfb.Rate())
    exp = mfb.Experiment(mfb.UCB(rho=0.5, kl=True), arms=len(rates), fidelities=one)
    looks = []
    for number in range(plays):
        play, day = exp.ask(), number // PLAYS_OF_A_DAY
        rate = rates[play.arm] * (SWINGS[day % 7] if swings else 1.0)
        block = f"day {day + 1}" if told else None
        exp.tell(play, successes=int(rng.binomial(IMPRESSIONS, rate)), trials=IMPRESSIONS, block=block)
        if day >= 7 and number % PLAYS_OF_A_DAY == PLAYS_OF_A_DAY - 1:
            looks.append(exp.best() == rates.argmax())
    of_best = float((exp.history.arms == rates.argmax()).mean())
    return float(np.mean(looks)), bool(exp.best() == rates.argmax()), of_best, bool(exp.drift())


def measure(runs: int, plays: int) -> dict[str, Any]:
    """Follow each kind on the same seeds."""
    found: dict[str, Any] = {"runs": runs, "plays": plays}
    for name, (swings, told) in KINDS.items():
        each = [followed(seed, plays, swings=swings, told=told) for seed in range(runs)]
        looks, right, of_best, changed = zip(*each, strict=True)
        found[name] = {
            "recommended": with_interval(list(looks)),
            "winner": [sum(right), *wilson(sum(right), runs)],
            "plays of the best": with_interval(list(of_best)),
            "means said to have changed": sum(changed),
        }
    return found


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--plays", type=int, default=560)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    found = measure(options.runs, options.plays)
    text = json.dumps(found, indent=2)
    print(text)
    if options.out is not None:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(text + "\n")
    return int(found["told with days"]["winner"][0] < found["no swings"]["winner"][0])


if __name__ == "__main__":
    sys.exit(main())
