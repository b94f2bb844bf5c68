"""Model selection as people do it: MFSearchCV beside grid, halving and random search, Optuna and SMAC.

Every search sees the same candidates, folds and score; a cost is the rows that all fits together saw, over those of the
largest training part. The loss of a search is how much worse the candidate that it chose is than the best one, by a
repeated grid: the means of GridSearchCV's scores over all seeds. It is a share of the task's spread, the distance from
the median candidate to the best. Candidates whose fits fail, or that are far below, count as lost spreads up to
:data:`MOST`. Fits are made once and kept (:mod:`benchmarks.recorded_fits`); a search that runs again reads them.
"""

import time
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.model_selection import GridSearchCV, HalvingGridSearchCV, RandomizedSearchCV

import mfbandit as mfb
from benchmarks.recorded_fits import Recorded, RecordedClassifier, RecordedRegressor, Records
from benchmarks.search_tasks import DEVELOPED_ON, REPORTED, Family, Task
from benchmarks.selection_rules import interval
from benchmarks.tuners import Look, OutOfCapital, by_optuna, by_smac
from mfbandit._internal.typing import FloatArray
from mfbandit.search.estimator import DEFAULT_CAPITAL_SHARE as DEFAULT_SHARE
from mfbandit.search.sklearn_types import Estimator
from mfbandit.search.splits import Splits

TASKS = DEVELOPED_ON | REPORTED
RANDOM = 10  # candidates of random search
MOST = 3.0  # spreads that a search may lose
SERIES = "series"  # how the names of tasks begin whose data are other ones for each seed
OURS, FULL, GRID = "MFSearchCV", "MFSearchCV, grid's capital", "GridSearchCV"
HALVED, DRAWN, OPTUNA, SMAC = "HalvingGridSearchCV", "random, 10", "Optuna, Hyperband", "SMAC, Hyperband"

Row = dict[str, Any]


class Bench:
    """A task with a seed, and the fits that were made of it."""

    def __init__(self, name: str, seed: int, kept: Path) -> None:
        self.name, self.seed = name, seed
        self.task: Task = TASKS[name](seed)
        self.records = Records(self.task, kept / f"{name}-{seed}.pickle")
        kind = RecordedClassifier if self.task.classifier else RecordedRegressor
        self.estimator: Recorded = kind(self.records)
        n = len(self.task.y)
        self.x = np.arange(n)[:, None]
        groups = self.task.groups
        self.arguments = {} if groups is None else {"groups": groups}
        self.splits = list(self.task.cv.split(np.zeros((n, 1)), self.task.y, groups))
        self.reference = max(len(train) for train, _ in self.splits)
        self.arms = list(range(len(self.records.candidates)))

    def run(self, search: Estimator) -> Row:
        """Fit a search; what it chose and what that cost."""
        self.records.rows, start = 0, time.perf_counter()
        search.fit(self.x, self.task.y, **self.arguments)
        seconds = time.perf_counter() - start
        return {"chosen": int(search.best_params_["k"]), "cost": self.records.rows / self.reference, "seconds": seconds}


def by_grid(bench: Bench) -> Row:
    """GridSearchCV, and its table."""
    search = GridSearchCV(bench.estimator, {"k": bench.arms}, cv=bench.task.cv, refit=False)
    row = bench.run(search)
    splits = [search.cv_results_[f"split{i}_test_score"].tolist() for i in range(len(bench.splits))]
    return row | {"means": search.cv_results_["mean_test_score"].tolist(), "splits": splits}


def by_halving(bench: Bench) -> Row:
    """HalvingGridSearchCV as it is."""
    return bench.run(
        HalvingGridSearchCV(bench.estimator, {"k": bench.arms}, cv=bench.task.cv, refit=False, random_state=bench.seed)
    )


def by_chance(bench: Bench) -> Row:
    """RandomizedSearchCV with ten candidates."""
    search = RandomizedSearchCV(
        bench.estimator, {"k": bench.arms}, n_iter=RANDOM, cv=bench.task.cv, refit=False, random_state=bench.seed
    )
    return bench.run(search)


def by_bandit(bench: Bench, *, full: bool = False) -> Row:
    """MFSearchCV with its default capital, or with what the grid costs."""
    capital = None
    if full:
        capital = len(bench.arms) * sum(len(train) for train, _ in bench.splits) / bench.reference
    search = mfb.MFSearchCV(
        bench.estimator,
        {"k": bench.arms},
        cv=bench.task.cv,
        refit=False,
        random_state=bench.seed,
        capital=capital,
    )
    row = bench.run(search)
    low, high = search.best_interval_
    fits = len(search.plays_)
    row |= {"low": low, "high": high, "early": search.stopped_early_, "spent": search.spent_, "fits": fits}
    return row | {"plays": [int(n) for n in search.experiment_.stats.counts.sum(axis=1)]}


def by_tuner(choose: Callable[[Sequence[Family], Look, int], int], bench: Bench) -> Row:
    """A tuner with the default capital of MFSearchCV."""
    task, folds = bench.task, len(bench.splits)
    capital = DEFAULT_SHARE * len(bench.arms) * bench.reference
    splits = Splits(
        task.cv, bench.x, task.y, classifier=task.classifier, seed=bench.seed, arguments={"groups": task.groups}
    )
    spent, start = 0, time.perf_counter()

    def look(k: int, fraction: float) -> float:
        nonlocal spent
        parts = [splits.sample(i, fraction) for i in range(folds)]
        rows = sum(len(train) for train, _ in parts)
        if spent + rows > capital:
            raise OutOfCapital
        spent += rows
        try:
            return float(np.mean([bench.records.score(k, train, test) for train, test in parts]))
        except ValueError:
            return np.nan

    chosen = choose(task.families, look, bench.seed)
    return {"chosen": chosen, "cost": spent / bench.reference, "seconds": time.perf_counter() - start}


SEARCHES: dict[str, Callable[[Bench], Row]] = {
    GRID: by_grid,
    HALVED: by_halving,
    DRAWN: by_chance,
    OPTUNA: partial(by_tuner, by_optuna),
    SMAC: partial(by_tuner, by_smac),
    OURS: by_bandit,
    FULL: partial(by_bandit, full=True),
}


def installed() -> list[str]:
    """The searches whose packages are installed."""
    needed = {OPTUNA: "optuna", SMAC: "smac"}
    return [name for name in SEARCHES if name not in needed or find_spec(needed[name]) is not None]


def measured(job: tuple[str, int, Path, Sequence[str]]) -> list[Row]:
    """Run some searches on a task with a seed."""
    name, seed, kept, searches = job
    bench, rows = Bench(name, seed, kept), []
    for search in searches:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of fits that failed
            rows.append({"task": name, "seed": seed, "search": search} | SEARCHES[search](bench))
        bench.records.save()
    return rows


def search(
    kept: Path, *, seeds: int, names: Sequence[str], only: str = "", workers: int | None = None
) -> dict[str, Any]:
    """Run all searches on some tasks; fits that the folder ``kept`` has are not made again."""
    searches = [name for name in installed() if only in name or name == GRID]
    jobs = [(name, seed, kept, searches) for seed in range(seeds) for name in names]
    with ProcessPoolExecutor(workers) as pool:
        rows = [row for found in pool.map(measured, jobs) for row in found]
    return judged(rows)


def judged(rows: list[Row]) -> dict[str, Any]:
    """The rows with their losses, a summary, and what does not hold."""
    truths = {name: truth(rows, name) for name in dict.fromkeys(row["task"] for row in rows)}
    for row in rows:
        means = truths[row["task"]]
        spread = float(means.max() - np.median(means))
        row["loss"] = min(MOST, float(means.max() - means[row["chosen"]]) / spread)
        if "low" in row:
            row["covers"] = bool(row["low"] <= of_own_data(rows, row) <= row["high"])
            row["width"] = (row["high"] - row["low"]) / spread
    return {"rows": rows, "broken": bars(rows)}


def truth(rows: Sequence[Row], name: str, seed: int | None = None) -> FloatArray:
    """The mean score of each candidate over the grids of all seeds, or of one; −∞ for one that failed."""
    grids = [row for row in rows if row["task"] == name and row["search"] == GRID]
    means = [row["means"] for row in grids if seed is None or row["seed"] == seed]
    return np.nan_to_num(np.array(means), nan=-np.inf).mean(axis=0)


def of_own_data(rows: Sequence[Row], row: Row) -> float:
    """The true score of a search's choice on its own data: for a series these are the seed's."""
    seed = row["seed"] if row["task"].startswith(SERIES) else None
    return float(truth(rows, row["task"], seed)[row["chosen"]])


def by_task(rows: Sequence[Row], search: str, what: str = "loss") -> dict[str, float]:
    """The mean over seeds of a column, by task."""
    found: dict[str, list[float]] = {}
    for row in rows:
        if row["search"] == search:
            found.setdefault(row["task"], []).append(float(row[what]))
    return {task: float(np.mean(values)) for task, values in found.items()}


def mean_loss(rows: Sequence[Row], search: str) -> float:
    """The mean over tasks of the mean loss."""
    return float(np.mean(list(by_task(rows, search).values())))


def bars(rows: Sequence[Row]) -> list[str]:
    """A sentence for each bar that does not hold."""
    wrong, has = [], {row["search"] for row in rows}
    ours = mean_loss(rows, OURS) if OURS in has else np.nan
    for rival, share in ((HALVED, 0.6), (DRAWN, 0.75)):
        if rival in has and not ours <= share * mean_loss(rows, rival):
            wrong.append(f"mean loss {ours:.3f}, above {share:g} of {rival}'s {mean_loss(rows, rival):.3f}")
    wrong += [f"{task}: loses {loss:.2f} of the spread" for task, loss in by_task(rows, OURS).items() if loss > 0.4]
    if FULL in has and mean_loss(rows, FULL) > mean_loss(rows, GRID) + 0.02:
        wrong.append(
            f"with the grid's capital it loses {mean_loss(rows, FULL):.3f}, the grid {mean_loss(rows, GRID):.3f}"
        )
    for search in (OURS, FULL):
        found = [row for row in rows if row["search"] == search]
        if found and np.mean([row["covers"] for row in found]) < 0.95:
            wrong.append(f"{search}: best_interval_ covers {sum(row['covers'] for row in found)} of {len(found)}")
        wide = {task: width for task, width in by_task(found, search, "width").items() if width > 1}
        wrong += [f"{search}, {task}: best_interval_ is {width:.1f} spreads wide" for task, width in wide.items()]
        stopped = [row for row in found if row["early"] and row["loss"] > 0]
        if len(stopped) > 0.01 * len(found):
            wrong.append(f"{search}: {len(stopped)} of {len(found)} runs stopped early and were wrong")
    series = {task: loss for task, loss in by_task(rows, FULL).items() if task.startswith(SERIES)}
    return wrong + [f"{task}: loses {loss:.2f} with the grid's capital" for task, loss in series.items() if loss > 0.05]


def markdown(result: dict[str, Any]) -> str:
    """Losses in per cent of the spread, costs in shares of the grid's, and what a decision takes."""
    rows = result["rows"]
    names = list(dict.fromkeys(row["search"] for row in rows))
    lines = ["| task | " + " | ".join(names) + " |", "|---" + "|---:" * len(names) + "|"]
    losses = {name: by_task(rows, name) for name in names}
    lines += [
        f"| {task} | " + " | ".join(f"{100 * losses[name][task]:.0f}" for name in names) + " |" for task in losses[GRID]
    ]
    means = [interval(100 * np.array(list(losses[name].values()))) for name in names]
    lines.append("| mean | " + " | ".join(f"{mean:.0f} ({low:.0f} to {high:.0f})" for mean, low, high in means) + " |")
    costs = {name: by_task(rows, name, "cost") for name in names}
    shares = [np.mean([costs[name][task] / costs[GRID][task] for task in costs[GRID]]) for name in names]
    lines += ["| cost over the grid's | " + " | ".join(f"{share:.2f}" for share in shares) + " |", ""]
    for name in (OURS, FULL):
        found = [row for row in rows if row["search"] == name]
        if found:
            width = np.median(list(by_task(rows, name, "width").values()))
            stopped = [row for row in found if row["early"]]
            wrong = sum(row["loss"] > 0 for row in stopped)
            lines.append(
                f"{name}: best_interval_ covers {sum(row['covers'] for row in found)} of {len(found)}, "
                f"{width:.1f} spreads wide in the median task; {len(stopped)} stopped early, {wrong} of them wrong."
            )
    return "\n".join(lines)
