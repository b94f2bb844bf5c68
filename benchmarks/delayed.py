"""What delayed results cost: the regret of MF-UCB with many workers over that of one worker, at equal capital.

A worker asks for a play, works on it for a while, tells its result and asks again; with W workers an ask lacks the
results of W − 1 plays. Only ``Experiment.ask`` and ``tell`` are used, and the clock is simulated. Asking ends at the
first play that does not fit into the capital, as in eq. 1; then the plays under way are told.

Runs are paired. Each has a fresh instance of its problem (seeds from 80,000 on), and the n-th play asked of an arm at a
fidelity has the same reward whatever the number of workers. A smaller capital is the beginning of the same run, in the
order of asking: what was asked until then does not depend on the capital. Takes three to four minutes on one core.
"""

import argparse
import heapq
import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

import mfbandit as mfb
from mfbandit._internal.progress import Tick, print_line, progress_bar
from mfbandit._internal.typing import FloatArray, IntArray
from mfbandit.simulation.results import ratio_interval

FIRST_SEED = 80_000
REWARDS, TIMES = 0, 1  # children of a run's seed
RULE = mfb.MFUCB()

Duration: TypeAlias = Callable[[mfb.Play, np.random.Generator], float]


def equally_long(_: mfb.Play, __: np.random.Generator) -> float:
    """One unit of time whatever the play: results come in the order of asking, each W − 1 plays late."""
    return 1.0


def as_it_costs(play: mfb.Play, rng: np.random.Generator) -> float:
    """The play's cost times an exponential factor of mean 1: results overtake each other, costly ones come last."""
    return play.cost * float(rng.exponential())


DURATIONS: dict[str, Duration] = {"equally long": equally_long, "as they cost": as_it_costs}


@dataclass(frozen=True)
class Blind:
    """MF-UCB that leaves pending plays out of account: what shows that the measurement can see a delay."""

    def choose(self, stats: mfb.Stats, fidelities: mfb.Fidelities) -> tuple[int, int]:
        """MF-UCB's choice by results alone."""
        return RULE.choose(stats.told, fidelities)

    def index(self, stats: mfb.Stats, fidelities: mfb.Fidelities) -> FloatArray:
        """MF-UCB's index by results alone."""
        return RULE.index(stats.told, fidelities)

    def recommend(self, stats: mfb.Stats, fidelities: mfb.Fidelities) -> int:
        """MF-UCB's recommendation."""
        return RULE.recommend(stats, fidelities)


@dataclass(frozen=True)
class Team:
    """How many workers there are, and the policy that they ask."""

    name: str
    workers: int
    policy: mfb.MFUCB | Blind = RULE


ALONE = Team("1 worker", 1)
TEAMS = (
    Team("4 workers", 4),
    Team("16 workers", 16),
    Team("64 workers", 64),
    Team("64, pending plays not counted", 64, Blind()),
)


@dataclass(frozen=True)
class Case:
    """A problem to measure on.

    Args:
        name: for the table.
        make: the instance with a seed.
        looks: capitals in units of K λ_M, the smallest first.
        share: runs as a share of those asked for, as big problems take long.
    """

    name: str
    make: Callable[[int], mfb.Problem]
    looks: tuple[float, ...]
    share: float

    def capitals(self, problem: mfb.Problem) -> FloatArray:
        """The capitals in units of cost."""
        return np.array(self.looks) * problem.arms * problem.fidelities.costs[-1]


def small_problem(seed: int) -> mfb.Problem:
    """Twenty arms with 0/1 rewards, made as the paper's problems 3 and 4 are: few arms, so that delay is felt."""
    rng = np.random.default_rng(seed)
    fid = mfb.Fidelities(costs=(1, 4, 16), biases=(0.2, 0.1, 0), concentration=mfb.Bounded(0, 1))
    truth = np.linspace(0.1, 0.9, 20)
    drawn = truth + fid.bias_column * rng.uniform(-1, 1, (3, 20))
    return mfb.Problem(drawn.clip(0, 1), fid, mfb.Bernoulli())


# With one worker it does not matter how long a play takes.
SETTINGS = [(equally_long, ALONE), *product(DURATIONS.values(), TEAMS)]
CASES = (
    Case("20 arms, 0/1 rewards, M = 3", small_problem, (0.25, 2, 20), 1),
    Case("paper problem 3 (200 arms, 0/1 rewards, M = 2)", partial(mfb.paper_problem, 3), (2, 20), 1 / 4),
    Case("paper problem 1 (500 arms, Gaussian, M = 3)", partial(mfb.paper_problem, 1), (0.2, 1), 1 / 5),
)


def rewards(problem: mfb.Problem, seed: int) -> Callable[[mfb.Play], float]:
    """Draws the reward of a play from a stream of its arm and fidelity alone, so that runs can be compared."""
    streams: dict[tuple[int, int], np.random.Generator] = {}

    def draw(play: mfb.Play) -> float:
        at = (play.fidelity, play.arm)
        if at not in streams:
            streams[at] = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(REWARDS, *at)))
        return problem.draw(play.arm, play.fidelity, streams[at])

    return draw


def simulated(problem: mfb.Problem, team: Team, duration: Duration, *, seed: int, capital: float) -> list[mfb.Play]:
    """The plays of a run in the order of asking; all workers are busy until the next play does not fit."""
    experiment = mfb.Experiment(team.policy, arms=problem.arms, fidelities=problem.fidelities, capital=capital)
    draw = rewards(problem, seed)
    times = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(TIMES,)))
    plays: list[mfb.Play] = []
    busy: list[tuple[float, int, float]] = []  # when a play ends, its number, its reward; ties in the order of asking

    def next_result() -> float:
        ends, number, reward = heapq.heappop(busy)
        experiment.tell(plays[number], reward)
        return ends

    clock = 0.0
    for play in experiment.plays():
        heapq.heappush(busy, (clock + duration(play, times), len(plays), draw(play)))
        plays.append(play)
        if len(busy) == team.workers:
            clock = next_result()
    while busy:
        next_result()
    return plays


def asked_again(plays: list[mfb.Play], arms: int) -> int:
    """How often an arm was asked for again while others of the ``arms`` had not been asked for once."""
    touched: set[int] = set()
    again = 0
    for play in plays:
        if len(touched) == arms:
            break
        again += play.arm in touched
        touched.add(play.arm)
    return again


def paired(case: Case, seed: int, tick: Tick) -> tuple[FloatArray, IntArray]:
    """One run of every team, alone first: regret, shape (1 + durations · teams, capitals), and asks of an arm again."""
    problem = case.make(seed)
    capitals = case.capitals(problem)
    regrets, again = [], []
    for duration, team in SETTINGS:
        plays = simulated(problem, team, duration, seed=seed, capital=capitals[-1])
        arms, fidelities = [play.arm for play in plays], [play.fidelity for play in plays]
        regrets.append(mfb.regret(problem, arms, fidelities, capitals))
        again.append(asked_again(plays, problem.arms))
        tick(1)
    return np.array(regrets), np.array(again)


def measured(case: Case, runs: int) -> dict[str, Any]:
    """Regret with one worker and with many, in paired runs; ratios with intervals; asks of an arm again in all runs."""
    with progress_bar(case.name, total=runs * len(SETTINGS)) as tick:
        outcomes = [paired(case, seed, tick) for seed in range(FIRST_SEED, FIRST_SEED + runs)]
    regret = np.array([regret for regret, _ in outcomes])  # (runs, settings, capitals)
    again = np.sum([again for _, again in outcomes], axis=0).tolist()
    ratio = np.stack(ratio_interval(regret, regret[:, :1]), axis=-1)  # (settings, capitals, 3)
    return {
        "looks": list(case.looks),
        "runs": runs,
        "one worker": regret[:, 0].mean(axis=0).tolist(),
        "regret": _by_team(regret.mean(axis=0).tolist()),
        "ratio": _by_team(ratio.tolist()),
        "asked again": _by_team(again),
    }


def _by_team(values: list[Any]) -> dict[str, dict[str, Any]]:
    many = iter(values[1:])
    return {name: {team.name: next(many) for team in TEAMS} for name in DURATIONS}


def markdown(results: dict[str, Any]) -> str:
    """The table of the docs."""
    heads = ["problem", "capital", "regret, 1 worker", "plays take", *(team.name for team in TEAMS)]
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    for name, result in results.items():
        for c, looks in enumerate(result["looks"]):
            for duration, ratios in result["ratio"].items():
                cells = ["{:.2f} ({:.2f} to {:.2f})".format(*row[c]) for row in ratios.values()]
                alone = f"{result['one worker'][c]:,.0f}"
                head = [f"{name}, {result['runs']} runs", f"{looks:g} Kλ_M", alone, duration]
                lines.append("| " + " | ".join(head + cells) + " |")
    return "\n".join(lines)


def again_in_all(results: dict[str, Any]) -> dict[str, int]:
    """For each team, how often an arm was asked for again while others were untouched."""
    counts = [by_team for result in results.values() for by_team in result["asked again"].values()]
    return {team.name: sum(by_team[team.name] for by_team in counts) for team in TEAMS}


def verdicts(results: dict[str, Any]) -> list[str]:
    """What does not hold."""
    again = again_in_all(results)
    wrong = [
        f"{team.name}: an arm was asked for again {again[team.name]} times while others were untouched"
        for team in TEAMS
        if isinstance(team.policy, mfb.MFUCB) and again[team.name]
    ]
    for name, result in results.items():
        if not np.isfinite([list(by_team.values()) for by_team in result["regret"].values()]).all():
            wrong.append(f"{name}: a regret that is not finite")
    return wrong


def main() -> int:
    """Measure, write, and say what does not hold."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20, help="of the smallest problem; the others get fewer")
    parser.add_argument("--out", type=Path, default=Path("results/delayed.json"))
    options = parser.parse_args()
    results: dict[str, Any] = {}
    for case in CASES:
        start = time.perf_counter()
        results[case.name] = measured(case, max(2, round(case.share * options.runs)))
        print_line(f"{case.name}: {time.perf_counter() - start:.0f} s", on_terminal=False)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(results, indent=1))
    print("Regret over that of one worker at equal capital, paired runs, 95 % intervals.\n")
    print(markdown(results))
    print("\nAn arm was asked for again while others were untouched:")
    print(", ".join(f"{name}: {count} times" for name, count in again_in_all(results).items()))
    wrong = verdicts(results)
    for line in wrong:
        print_line(line)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
