"""Selection on LCBench: which of 300 configurations of a neural network is recommended after a budget is spent.

Arms are configurations, fidelities 2, 5, 13, 26 and 52 epochs, a cost is the mean training time. A look has no noise.
A rule may spend C = 0.02 to 0.5 times a full look at every arm. No rule resumes a training run, or all of them do. Its
loss is how much worse the configuration that it recommends is than the best one, by validation accuracy after 52
epochs. Constants of the rivals are chosen on every second data set (:data:`CHOOSING`), and the table is of the others.
Arms come in another order with every seed.

Optuna's sampler has nothing to model here, as the file has scores and not parameters: it would be Hyperband.

``lcbench.npz`` has 17 data sets as YAHPO Gym's surrogate predicts them (Zimmer, Lindauer, Hutter 2021; Pfisterer et al.
2022; Apache-2.0): ``acc_ID``, percent, and ``time_ID``, seconds, both of shape (5, 300).
"""

import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

import mfbandit as mfb
from benchmarks.selection_rules import (
    ETAS,
    Desk,
    Progress,
    Rule,
    asha,
    bracket,
    compared,
    halving,
    hyperband,
    interval,
    played,
    random_search,
)
from mfbandit._internal.typing import FloatArray

DATA = Path(__file__).parent / "lcbench.npz"
LOOKS = (0.02, 0.05, 0.1, 0.25, 0.5)
AT_MOST = {0.05: 0.85, 0.1: 0.75, 0.25: 0.7}  # of the best rival's mean loss
RESUMED_AT_MOST = {0.05: 0.9, 0.1: 0.9}  # the same where all rules resume
SLACK = 1e-3  # that it may be above elsewhere
UNDECLARED = 1.1  # of the loss where looks are declared to have no noise
MILLISECONDS = {300: 2.0, 10_000: 20.0}  # that a decision may take, by the number of arms
OURS, FOUND_OUT = "MFTopTwo, no noise declared", "MFTopTwo"


@cache
def tables(path: Path) -> dict[int, tuple[FloatArray, FloatArray]]:
    """Accuracies and costs by the number of a data set, in increasing order."""
    with np.load(path) as file:
        numbers = sorted(int(name.removeprefix("acc_")) for name in file.files if name.startswith("acc_"))
        return {n: (file[f"acc_{n}"] / 100, file[f"time_{n}"].mean(axis=1)) for n in numbers}


CHOOSING, REPORTED = (tuple(tables(DATA))[first::2] for first in (0, 1))


class TableDesk(Desk):
    """A table of means that every look shows exactly.

    Args:
        means: shape (M, K).
        costs: shape (M,).
        seed: for the order of the arms.
        budget: what all looks together may cost.
        resume: whether a look goes on from an earlier one of its arm, and costs the difference.
    """

    def __init__(self, means: FloatArray, costs: FloatArray, seed: int, budget: float, *, resume: bool = False) -> None:
        self._table = means[:, np.random.default_rng([seed, 0]).permutation(means.shape[1])]
        super().__init__(mfb.Fidelities(costs.tolist(), resume=resume), self._table, budget)

    def reward(self, arm: int, fidelity: int, earlier: int) -> float:  # noqa: ARG002 - the same every time
        """The mean."""
        return float(self._table[fidelity, arm])


def candidates() -> dict[str, dict[str, Rule]]:
    """Rivals with something to be chosen, each with its choices."""
    kinds: dict[str, Any] = {
        "one look per rung": bracket,
        "successive halving": halving,
        "ASHA": asha,
        "Hyperband": hyperband,
    }
    return {name: {f"η = {eta}": partial(rule, eta) for eta in ETAS} for name, rule in kinds.items()}


FIXED: dict[str, Rule] = {
    "random search at the top": random_search,
    OURS: partial(played, partial(mfb.MFTopTwo, deterministic=True)),
    FOUND_OUT: partial(played, mfb.MFTopTwo),
}


@dataclass(frozen=True)
class Trial:
    """What rules are tried at.

    Args:
        looks: the budgets, in full looks at every arm.
        seeds: orders of the arms.
        resume: whether looks resume.
    """

    looks: tuple[float, ...]
    seeds: int
    resume: bool = False

    @property
    def at_most(self) -> dict[float, float]:
        """The bars."""
        return RESUMED_AT_MOST if self.resume else AT_MOST


def losses(rule: Rule, path: Path, numbers: Sequence[int], trial: Trial) -> np.ndarray:
    """The mean loss of what a rule recommends, shape (data sets, budgets)."""
    with ProcessPoolExecutor() as pool:
        return np.array(list(pool.map(partial(_losses_on, rule, path, trial), numbers)))


def _losses_on(rule: Rule, path: Path, trial: Trial, number: int) -> list[float]:
    means, costs = tables(path)[number]
    budgets = [look * means.shape[1] * float(costs[-1]) for look in trial.looks]
    each = []
    for budget in budgets:
        desks = [TableDesk(means, costs, seed, budget, resume=trial.resume) for seed in range(trial.seeds)]
        each.append(float(np.mean([desk.loss(rule(desk, budget)) for desk in desks])))
    return each


def measure(*, seeds: int, quick: bool = False, data: Path | None = None, resume: bool = False) -> dict[str, Any]:
    """Choose, measure, and judge; ``quick`` is a smoke run, too small to judge by.

    Where looks resume, only the budgets that have bars are measured.
    """
    say = Progress(time.perf_counter())
    choosing, reported = CHOOSING, REPORTED if data is None else tuple(tables(data))
    if quick:
        choosing, reported, seeds = choosing[:1], reported[:1], 1
    trial = Trial(tuple(RESUMED_AT_MOST) if resume else LOOKS, seeds, resume)
    rules, record = chosen(choosing, trial, say)
    table = {}
    for rule, run in (rules | FIXED).items():
        lost = losses(run, data or DATA, reported, trial)
        say(f"reported: {rule}", lost.mean(axis=0))
        table[rule] = dict(zip(map(str, reported), lost.tolist(), strict=True))
    speed = {arms: decision_milliseconds(arms, plays=50 if quick else 500) for arms in MILLISECONDS}
    result = {
        "looks": list(trial.looks),
        "resume": resume,
        "seeds": seeds,
        "choosing": list(choosing),
        "reported": list(reported),
    }
    result |= {"chosen": record, "table": table, "milliseconds": speed}
    return result | {"broken": [] if quick else verdicts(table, speed, trial)}


def chosen(numbers: Sequence[int], trial: Trial, say: Progress) -> tuple[dict[str, Rule], dict[str, Any]]:
    """Of each rival's choices the one with the smallest mean loss where there are bars, on the choosing half."""
    rules: dict[str, Rule] = {}
    record: dict[str, Any] = {}
    at = [trial.looks.index(look) for look in trial.at_most]
    for rule, choices in candidates().items():
        means = {}
        for choice, run in choices.items():
            means[choice] = losses(run, DATA, numbers, trial).mean(axis=0)
            say(f"choosing: {rule}, {choice}", means[choice])
        best = min(means, key=lambda choice: float(means[choice][at].mean()))
        rules[f"{rule}, {best}"] = choices[best]
        record[rule] = {"chosen": best, "mean loss": {choice: mean.tolist() for choice, mean in means.items()}}
    return rules, record


@dataclass(frozen=True)
class Best:
    """The rival with the smallest mean loss at one budget."""

    rule: str
    loss: float


def best_rivals(table: dict[str, dict[str, list[float]]]) -> list[Best]:
    """The best rival at each budget."""
    means = {
        rule: np.mean(list(each.values()), axis=0) for rule, each in table.items() if rule not in (OURS, FOUND_OUT)
    }
    return [
        min((Best(rule, float(mean[i])) for rule, mean in means.items()), key=lambda b: b.loss)
        for i in range(len(next(iter(means.values()))))
    ]


def verdicts(
    table: dict[str, dict[str, list[float]]], speed: dict[int, list[float]], trial: Trial | None = None
) -> list[str]:
    """Which bars do not hold; by default those of rules that do not resume."""
    trial = trial or Trial(LOOKS, 0)
    ours, found = (np.mean(list(table[rule].values()), axis=0) for rule in (OURS, FOUND_OUT))
    wrong = []
    for look, mine, alone, best in zip(trial.looks, ours.tolist(), found.tolist(), best_rivals(table), strict=True):
        most = trial.at_most[look] * best.loss if look in trial.at_most else best.loss + SLACK
        if mine > most:
            wrong.append(f"{look:g} Kλ_M: {1e4 * mine:.0f}e-4, above {1e4 * most:.0f}e-4 ({best.rule})")
        if alone > max(UNDECLARED * mine, mine + SLACK):
            wrong.append(f"{look:g} Kλ_M: {1e4 * alone:.0f}e-4 undeclared, {1e4 * mine:.0f}e-4 declared")
    slow = [arms for arms, most in MILLISECONDS.items() if speed[arms][0] > most]
    return wrong + [f"a decision among {arms} arms takes {speed[arms][0]:.1f} ms" for arms in slow]


def decision_milliseconds(arms: int, plays: int) -> list[float]:
    """Median and 99 % quantile of the time from a result to the next play, with a tenth of the looks at each stage."""
    rng = np.random.default_rng(0)
    means, costs = rng.normal(size=(5, arms)).cumsum(axis=0), np.array([0.05, 0.12, 0.27, 0.5, 1.0])
    budget = 0.1 * arms
    desk, policy = TableDesk(means, costs, 0, budget), mfb.MFTopTwo(budget, deterministic=True)
    first = policy.stages(desk.fidelities, arms)[0]
    known = max(0, first.arms - plays // 2)  # half of the decisions timed are of the first stage
    for arm in range(known):
        desk.look(arm, first.fidelity)
    took = []
    for _ in range(plays):
        start = time.perf_counter()
        arm, fidelity = policy.choose(desk.stats, desk.fidelities)
        chose = time.perf_counter() - start
        if not desk.affords(arm, fidelity):
            break
        desk.look(arm, fidelity)
        start = time.perf_counter()
        memory = policy.remember(desk.stats, desk.fidelities)
        took.append(1e3 * (chose + time.perf_counter() - start))
        desk.stats = replace(desk.stats, memory=memory)
    return [float(value) for value in np.quantile(took, [0.5, 0.99])]


def markdown(result: dict[str, Any]) -> str:
    """The table, in units of 1e-4, our shares of the best rival's losses, and the time of a decision."""
    table, head = result["table"], " | ".join(f"{look:g} Kλ_M" for look in result["looks"])
    lines = [f"| rule | {head} |", "|---" * (len(result["looks"]) + 1) + "|"]
    for rule, each in table.items():
        cells = [interval(column) for column in np.array(list(each.values())).T]
        shown = " | ".join(f"{1e4 * mean:.0f} ({1e4 * low:.0f} to {1e4 * high:.0f})" for mean, low, high in cells)
        lines.append(f"| {rule} | {shown} |")
    lines += ["", f"| {OURS} | {head} |", "|---" * (len(result["looks"]) + 1) + "|"]
    for rule in (name for name in table if name not in (OURS, FOUND_OUT)):
        shares = [
            f"{share:.2f}, {1e4 * mean:+.0f} ({1e4 * low:+.0f} to {1e4 * high:+.0f})"
            for share, mean, low, high in compared(table[OURS], table[rule])
        ]
        lines.append(f"| {rule} | " + " | ".join(shares) + " |")
    times = (
        f"{arms:,} arms: {half:.2f} ms, at most {most:.2f} in 99 of 100"
        for arms, (half, most) in result["milliseconds"].items()
    )
    return "\n".join([*lines, "", "A decision takes, in the median, with " + "; ".join(times) + "."])
