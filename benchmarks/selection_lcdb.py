"""Selection by replay: which learner is recommended after a budget is spent on recorded learning curves.

Arms are learners, fidelities about N/64, N/16, N/4 and N training rows, a cost is the mean training time. A rule may
spend C = 0.25, 0.5, 1 or 2 times a full look at every arm; its loss is how much worse the arm that it recommends is
than the best one, by their mean accuracies at N. What a rule has to be told or has constants for is chosen on every
second data set (:data:`CHOOSING`), and the table is of the others (:data:`REPORTED`). Arms come in another order with
every seed, and the i-th look at an arm and fidelity shows every rule the same reward.

Data sets are those of the package, whose sizes are nearly exact and which have 18 to 20 arms (:data:`EXACT`), and 38
more, most of them small, with 10 arms or more and sizes that are less exact. They go by their OpenML numbers.
"""

import time
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
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
    played,
    random_search,
)
from mfbandit._internal.typing import FloatArray, IntArray
from mfbandit.problems.learning_curves import LearningCurves, bundled_curves
from mfbandit.search.split_effects import SplitAdjustedPolicy

LOOKS = (0.25, 0.5, 1.0, 2.0)
AT_MOST = {0.25: 0.7, 0.5: 0.65, 1.0: 0.8, 2.0: 1.0}  # of halving's mean loss
BARS = (0.25, 0.5, 1.0)  # by which constants are chosen, and where the difference must be below 0
MORE = LearningCurves(Path(__file__).parent / "more_learning_curves.npz")
EXACT = tuple(bundled_curves().names.values())
CHOOSING, REPORTED = (EXACT[first::2] + tuple(MORE.names.values())[first::2] for first in (0, 1))
RHOS = (0.25, 0.5, 1.0, 2.0)  # what is tried
KAPPAS, SHARES = (1.5, 2.0), (0.6, 0.75, 0.8)

Losses = dict[str, dict[str, list[float]]]  # by rule and data set, in the order of LOOKS


def _home(number: int) -> LearningCurves:
    return bundled_curves() if number in EXACT else MORE


@cache
def problem_of(number: int) -> mfb.Problem:
    """A data set as a problem."""
    return _home(number).problem(number)


@cache
def results_of(number: int) -> list[list[tuple[FloatArray, IntArray]]]:
    """A data set's recorded results."""
    return _home(number).recorded(number)


class SplitDesk(Desk):
    """One data set as a rule meets it.

    Args:
        number: the data set's.
        seed: for the order of the arms and the rewards.
        paired: the i-th look at a fidelity is at the same split for all arms, as far as it was recorded for them;
            else every look is at any split.
        budget: what all looks together may cost.
    """

    def __init__(self, number: int, seed: int, *, paired: bool, budget: float) -> None:
        truth = problem_of(number)
        self._seed, self._paired = seed, paired
        self._order = np.random.default_rng([seed, 0]).permutation(truth.arms)
        self._cells = results_of(number)
        self._rewards: dict[tuple[int, int], list[float]] = {}
        super().__init__(truth.fidelities, truth.means[:, self._order], budget)

    def reward(self, arm: int, fidelity: int, earlier: int) -> float:
        """A recorded score."""
        known = self._rewards.setdefault((fidelity, arm), [])
        while len(known) <= earlier:
            known += self._more(arm, fidelity, len(known))
        return known[earlier]

    def _more(self, arm: int, fidelity: int, known: int) -> list[float]:
        scores, splits = self._cells[fidelity][int(self._order[arm])]
        if self._paired:
            places = np.random.default_rng([self._seed, 1, fidelity]).permutation(256)
            return scores[np.argsort(places[splits])].tolist()  # and again from the start, should they run out
        rng = np.random.default_rng([self._seed, 2, fidelity, int(self._order[arm]), known])
        return scores[rng.integers(len(scores), size=64)].tolist()


def without_splits(desk: Desk, budget: float) -> int:
    """MFTopTwo as a search has it by default: what a split does to all arms is taken out first."""
    policy = SplitAdjustedPolicy(mfb.MFTopTwo(budget))
    while True:
        arm, fidelity = policy.choose(desk.stats, desk.fidelities)
        if not desk.affords(arm, fidelity):
            return policy.recommend(desk.stats, desk.fidelities)
        split = int(desk.stats.counts[fidelity, arm])
        before = float(desk.stats.sums[fidelity, arm])
        desk.look(arm, fidelity)
        policy.fits.append((fidelity, arm, split, float(desk.stats.sums[fidelity, arm]) - before))
        desk.stats = replace(desk.stats, memory=policy.remember(desk.stats, desk.fidelities))


def losses(
    rule: Rule, numbers: Iterable[int], seeds: int, *, paired: bool = False, looks: Iterable[float] = LOOKS
) -> np.ndarray:
    """The mean loss of what a rule recommends, shape (data sets, budgets)."""
    one = partial(_losses_on, rule, seeds, paired, tuple(looks))
    with ProcessPoolExecutor() as pool:
        return np.array(list(pool.map(one, numbers)))


def _losses_on(rule: Rule, seeds: int, paired: bool, looks: tuple[float, ...], number: int) -> list[float]:
    problem, each = problem_of(number), []
    for look in looks:
        budget = look * problem.arms * problem.fidelities.costs[-1]
        lost = 0.0
        for seed in range(seeds):
            desk = SplitDesk(number, seed, paired=paired, budget=budget)
            lost += desk.loss(rule(desk, budget))
        each.append(lost / seeds)
    return each


def _whatever(policy: mfb.Policy, _budget: float) -> mfb.Policy:
    return policy


def _same(policy: mfb.Policy) -> Callable[[float], mfb.Policy]:
    return partial(_whatever, policy)


OURS = "MFTopTwo"


def candidates() -> dict[str, dict[str, Rule]]:
    """Rules with something to be chosen, each with its choices."""
    return {
        "successive halving": {f"η = {eta}": partial(halving, eta) for eta in ETAS},
        "one play per rung": {f"η = {eta}": partial(bracket, eta) for eta in ETAS},
        "ASHA": {f"η = {eta}": partial(asha, eta) for eta in ETAS},
        "Hyperband": {f"η = {eta}": partial(hyperband, eta) for eta in ETAS},
        "UCB at the top": {f"ρ = {rho:g}": partial(played, _same(mfb.UCB(rho))) for rho in RHOS},
        "MF-UCB, oracle's ζ": {f"ρ = {rho:g}": partial(played, _same(mfb.MFUCB(rho))) for rho in RHOS},
        OURS: {
            f"κ = {kappa:g}, share {share:g}": partial(played, partial(mfb.MFTopTwo, kappa=kappa, share=share))
            for kappa in KAPPAS
            for share in SHARES
        },
    }


HALVING = ("successive halving", "one play per rung")  # what it is compared with; bars are by the first
SEARCH = "MFTopTwo, split effects removed"
FIXED: dict[str, Rule] = {
    "random search at the top": random_search,
    "one play per rung, η = 3 as scikit-learn": partial(bracket, 3),
    "MFBayes": partial(played, _same(mfb.MFBayes())),
    OURS: partial(played, mfb.MFTopTwo),  # as it is by default
}


def chosen(seeds: int, numbers: tuple[int, ...], say: Progress) -> tuple[dict[str, Rule], dict[str, Any]]:
    """Of each rule's choices the one with the smallest mean loss over :data:`BARS` on the choosing half."""
    rules: dict[str, Rule] = {}
    record: dict[str, Any] = {}
    for rule, choices in candidates().items():
        means = {}
        for choice, run in choices.items():
            means[choice] = losses(run, numbers, seeds).mean(axis=0)
            say(f"choosing: {rule}, {choice}", means[choice])
        best = min(means, key=lambda choice: float(means[choice][: len(BARS)].mean()))
        if rule != OURS:  # whose default is measured, whether or not it came out best here
            rules[f"{rule}, {best}"] = choices[best]
        record[rule] = {"chosen": best, "mean loss": {choice: mean.tolist() for choice, mean in means.items()}}
    return rules | FIXED, record


def measured(rules: dict[str, Rule], numbers: tuple[int, ...], seeds: int, say: Progress, *, paired: bool) -> Losses:
    """Mean losses of all rules on each data set, in the order of :data:`LOOKS`."""
    table = {}
    for rule, run in rules.items():
        lost = losses(run, numbers, seeds, paired=paired)
        say(f"{'same splits' if paired else 'any splits'}: {rule}", lost.mean(axis=0))
        table[rule] = dict(zip(map(str, numbers), lost.tolist(), strict=True))
    return table


def replay(*, seeds: int = 20, quick: bool = False) -> dict[str, Any]:
    """Choose, measure, and judge; ``quick`` is a smoke run on a few data sets, too few to judge by."""
    say = Progress(time.perf_counter())
    choosing, reported = (CHOOSING[::16], REPORTED[::16]) if quick else (CHOOSING, REPORTED)
    seeds = 2 if quick else seeds
    rules, record = chosen(seeds, choosing, say)
    tables = {
        "any splits": measured(rules, reported, seeds, say, paired=False),
        "same splits": measured(rules | {SEARCH: without_splits}, reported, seeds, say, paired=True),
    }
    result = {"looks": list(LOOKS), "seeds": seeds, "choosing": list(choosing), "reported": list(reported)}
    return result | {"chosen": record, "tables": tables, "broken": [] if quick else verdicts(tables["any splits"])}


def verdicts(table: dict[str, dict[str, list[float]]]) -> list[str]:
    """Which bars do not hold."""
    halved, wrong = next(iter(table.values())), []
    for look, (share, _, _, high) in zip(LOOKS, compared(table[OURS], halved), strict=True):
        where = f"{OURS} at {look:g} Kλ_M"
        if not share <= AT_MOST[look]:
            wrong.append(f"{where}: {share:.2f} of successive halving's mean loss, above {AT_MOST[look]}")
        if look in BARS and not high < 0:
            wrong.append(f"{where}: difference to successive halving up to {1e4 * high:.1f}e-4, not below 0")
    return wrong


def markdown(result: dict[str, Any]) -> str:
    """The tables, in units of 1e-4."""
    lines = []
    exact = {str(number) for number in EXACT}
    for title, table in result["tables"].items():
        few = {rule: {name: lost for name, lost in each.items() if name in exact} for rule, each in table.items()}
        ours = SEARCH if SEARCH in table else OURS
        lines += [f"### {title[0].upper()}{title[1:]}", "", *_means(table), "", *_against_halving(table, ours), ""]
        lines += [f"The {len(few[ours])} of these with nearly exact sizes:", "", *_means(few), ""]
        lines += [*_against_halving(few, ours), ""]
    return "\n".join(lines)


def _head(first: str) -> list[str]:
    return [f"| {first} | " + " | ".join(f"{look:g} Kλ_M" for look in LOOKS) + " |", "|---" * (len(LOOKS) + 1) + "|"]


def _means(table: dict[str, dict[str, list[float]]]) -> list[str]:
    lines = _head("rule")
    for rule, each in table.items():
        means = np.array(list(each.values())).mean(axis=0)
        lines.append(f"| {rule} | " + " | ".join(f"{1e4 * value:.0f}" for value in means) + " |")
    return lines


def _against_halving(table: dict[str, dict[str, list[float]]], ours: str) -> list[str]:
    """Shares of the mean losses of each kind of halving, and differences with their intervals."""
    lines = _head(f"{ours}: ratio, difference")
    for rule in (name for name in table if name.startswith(HALVING)):
        cells = [
            f"{share:.2f}, {1e4 * mean:+.0f} ({1e4 * low:+.0f} to {1e4 * high:+.0f})"
            for share, mean, low, high in compared(table[ours], table[rule])
        ]
        lines.append(f"| {rule} | " + " | ".join(cells) + " |")
    return lines
