"""Means that change: how often a change is found though there is none, and how soon one is found.

    python benchmarks/drift.py [--runs 400] [--only alarms] [--out results/drift.json]

- ``alarms``: five arms that stay the same, chosen by UCB or played in turn, 2,000 results; the share of experiments in
  which any of them is ever said to have changed.
- ``delay``: one arm halves its mean after some number of observations; how many more until that is found.
- ``winner``: of six ads the best is found (95 % sure), then loses half its rate; for how long it is still recommended,
  as a share of the plays that it took to find it: with the half-life that the docs advise and ``forget`` after an
  alarm, with either of them, with a short half-life alone, and with neither.
- ``price``: what fading costs while nothing changes, over five times as many plays: the share of plays of the best ad,
  and how often it is the recommended one.

Exits with 1 if the lower end of the interval for the share of false alarms is above 1 %, or if the median winner is
recommended for more than 20 % with what the docs advise. Seeds are fixed.
"""

import argparse
import json
import math
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np

import mfbandit as mfb
from mfbandit.core.drift import ALPHA, change, is_checked, needed
from mfbandit.experiment.change_points import ChangePoints

RESULTS = 2000  # of an experiment without a change
ARMS = 5
Draw = Callable[[np.random.Generator, float], float]
KINDS: dict[str, tuple[mfb.Concentration, np.ndarray, Draw]] = {
    "gaussian": (mfb.SubGaussian(0.2), np.linspace(0.3, 0.7, ARMS), lambda rng, mean: float(rng.normal(mean, 0.2))),
    "rates of 2 to 6 %": (mfb.Rate(), np.linspace(0.02, 0.06, ARMS), lambda rng, rate: float(rng.random() < rate)),
    "0 and 1, about half": (mfb.Bounded(), np.linspace(0.4, 0.6, ARMS), lambda rng, rate: float(rng.random() < rate)),
}
CHANGES: dict[
    str, tuple[mfb.Concentration, float, int, tuple[int, ...]]
] = {  # the noise, the mean before, how much a result is (a batch), results before the change
    "gaussian 0.5 to 0.25, scale 0.2": (mfb.SubGaussian(0.2), 0.5, 1, (30, 300)),
    "rate 6 % to 3 %": (mfb.Rate(), 0.06, 100, (10, 100, 1000)),
}

GIVEN_UP = 30  # times the results before a change

ADS = np.append(np.linspace(0.01, 0.04, 5), 0.06)
IMPRESSIONS = 100  # of a play
LOOK = 10  # plays between looks
ADVISED, SHORT = 5.0, 0.1  # half-lives, in plays that finding the best takes
REPORTED = 200  # the first seed of what is reported; half-lives were chosen on smaller ones
SHARE = 0.2  # of these, for which a winner that faded may be recommended
MOST, SETTLED = 3.0, 0.5  # of these, for which one looks at it; and after which it will not come back


def wilson(hits: int, runs: int) -> list[float]:
    """The 95 % interval of a share."""
    z = NormalDist().inv_cdf(0.975)
    centre, spread = hits + z * z / 2, z * math.sqrt(hits * (runs - hits) / runs + z * z / 4)
    return [(centre - spread) / (runs + z * z), (centre + spread) / (runs + z * z)]


def is_alarmed(name: str, seed: int) -> bool:
    """Whether any arm of an experiment without a change is ever said to have changed."""
    noise, means, draw = KINDS[name]
    rng = np.random.default_rng([seed, 1])
    exp = mfb.Experiment(mfb.UCB(), arms=ARMS, fidelities=mfb.Fidelities([1], concentration=noise))
    for i in range(RESULTS):
        if seed % 2:
            play = exp.ask()
            exp.tell(play, draw(rng, means[play.arm]))
        else:
            exp.add_results([(i % ARMS, 0, draw(rng, means[i % ARMS]), None)])
    return bool(exp.drift())


def alarms(runs: int) -> dict[str, Any]:
    """The share of false alarms of each kind of noise."""
    found = {name: sum(is_alarmed(name, seed) for seed in range(runs)) for name in KINDS}
    return {name: {"alarms": hits, "runs": runs, "share_95": wilson(hits, runs)} for name, hits in found.items()}


def delay(name: str, before: int, seed: int) -> float:
    """Observations from a change until it is found, by one of ten arms; infinite if that takes too long."""
    noise, mean, size, _ = CHANGES[name]
    rng, points = np.random.default_rng([seed, 2]), ChangePoints()
    least, number, total, results = needed(0.9 / 10), 0, 0.0, 0
    while results < GIVEN_UP * before:  # what little is known of the mean before may never be enough
        now = mean if results < before else mean / 2
        total += rng.normal(now, 0.2) if isinstance(noise, mfb.SubGaussian) else rng.binomial(size, now)
        results, number = results + 1, number + size
        points.see((0, 0), number - size, number, total, results)
        if is_checked(number - size, number):
            found = change(noise, points.marks((0, 0)), number, total, least)
            if found is not None and found.evidence >= least and results > before:
                return (results - before) * size
    return math.inf


def delays(runs: int) -> dict[str, Any]:
    """Median and 90 % quantile of the delay, for changes sooner and later."""
    found = {}
    for name, (_, _, size, changes) in CHANGES.items():
        for before in changes:
            took = np.array([delay(name, before, seed) for seed in range(runs)])
            median, late = (float(value) for value in np.quantile(took, [0.5, 0.9]))
            found[f"{name}, after {before * size:,}"] = {"median": median, "90 %": late}
    return found


def ads_experiment(memory: mfb.HalfLife | None) -> mfb.Experiment:
    """Six ads, each play 100 impressions."""
    one = mfb.Fidelities([1], concentration=mfb.Rate())
    return mfb.Experiment(mfb.UCB(rho=0.5, kl=True), arms=len(ADS), fidelities=one, memory=memory)


def play_on(exp: mfb.Experiment, rates: np.ndarray, rng: np.random.Generator) -> int:
    """Make one play; return its arm."""
    play = exp.ask()
    exp.tell(play, successes=int(rng.binomial(IMPRESSIONS, rates[play.arm])), trials=IMPRESSIONS)
    return play.arm


def plays_to_find(seed: int) -> int:
    """Plays until MFSure is 95 % sure which ad is the best, with nothing fading."""
    rng, one = np.random.default_rng([seed, 3]), mfb.Fidelities([1], [0], mfb.Rate())
    exp = mfb.Experiment(mfb.MFSure(delta=0.05), arms=len(ADS), fidelities=one)
    for play in exp.plays():
        exp.tell(play, successes=int(rng.binomial(IMPRESSIONS, ADS[play.arm])), trials=IMPRESSIONS)
    return exp.results_at[0]


def plays_until_left(seed: int, found: int, memory: mfb.HalfLife | None, *, forgetting: bool) -> int:
    """Plays for which the winner is still recommended after it lost half its rate; ``MOST`` times ``found`` at most."""
    exp, rng = ads_experiment(memory), np.random.default_rng([seed, 4])
    for _ in range(found):
        play_on(exp, ADS, rng)
    rates, last = np.append(ADS[:-1], ADS[-1] / 2), 0
    for plays in range(1, int(MOST * found)):
        play_on(exp, rates, rng)
        if forgetting:
            for one in exp.drift():
                exp.forget(one.arm)
        if exp.best() == len(ADS) - 1:
            last = plays
        elif plays - last > SETTLED * found:  # it was left, and did not come back
            return last
    return last


def winner(runs: int) -> dict[str, Any]:
    """For how long a winner that faded is recommended, in shares of the plays that it took to find it."""
    took = int(np.median([plays_to_find(seed) for seed in range(runs)]))
    half_life, short = mfb.HalfLife(plays=took * ADVISED), mfb.HalfLife(plays=took * SHORT)
    ways: dict[str, tuple[mfb.HalfLife | None, bool]] = {
        "advised": (half_life, True),
        "forget": (None, True),
        "half-life": (half_life, False),
        "short half-life": (short, False),
        "neither": (None, False),
    }
    seeds = range(REPORTED, REPORTED + runs)
    found: dict[str, Any] = {"plays to find": took, "half-lives": [half_life.plays, short.plays], "runs": runs}
    for name, (memory, forgetting) in ways.items():
        left = [plays_until_left(seed, took, memory, forgetting=forgetting) / took for seed in seeds]
        median, late = (float(value) for value in np.quantile(left, [0.5, 0.9]))
        within = sum(one <= SHARE for one in left)
        found[f"{name}: share"] = {"median": median, "90 %": late, "within 20 %": [within, *wilson(within, runs)]}
    return found


def with_interval(values: list[float]) -> list[float]:
    """The mean, and its 95 % interval over runs."""
    half = 1.96 * float(np.std(values, ddof=1)) / math.sqrt(len(values)) if len(values) > 1 else math.nan
    return [float(np.mean(values)), float(np.mean(values)) - half, float(np.mean(values)) + half]


def price(runs: int) -> dict[str, Any]:
    """What fading costs while nothing changes."""
    took = int(np.median([plays_to_find(seed) for seed in range(runs)]))
    found: dict[str, Any] = {}
    for name, memory in (
        ("half-life", mfb.HalfLife(plays=took * ADVISED)),
        ("short half-life", mfb.HalfLife(plays=took * SHORT)),
        ("none", None),
    ):
        best, recommended, lost = [], [], []
        for seed in range(runs):
            exp, rng = ads_experiment(memory), np.random.default_rng([seed, 5])
            arms = []
            for plays in range(5 * took):
                arms.append(play_on(exp, ADS, rng))
                if plays >= took and plays % LOOK == 0:
                    recommended.append(exp.best() == len(ADS) - 1)
            best.append(np.mean(np.array(arms) == len(ADS) - 1))
            lost.append(float((ADS[-1] - ADS[arms]).sum() / ADS[-1] / len(arms)))
        found[name] = {
            "plays of the best": float(np.mean(best)),
            "recommended": float(np.mean(recommended)),
            "clicks lost": with_interval(lost),
        }
    return found


Part = Callable[[int], dict[str, Any]]
PARTS: dict[str, Part] = {"alarms": alarms, "delay": delays, "winner": winner, "price": price}


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=400)
    parser.add_argument("--only", choices=PARTS)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    found = {name: part(options.runs) for name, part in PARTS.items() if options.only in (None, name)}
    text = json.dumps(found, indent=2)
    print(text)
    if options.out is not None:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(text + "\n")
    late = found.get("winner", {}).get("advised: share", {"median": 0.0})["median"] > SHARE
    return int(late or any(one["share_95"][0] > ALPHA for one in found.get("alarms", {}).values()))


if __name__ == "__main__":
    sys.exit(main())
