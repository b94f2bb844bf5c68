"""Model selection on scikit-learn's bundled data: MFSearchCV beside GridSearchCV, halving and Optuna with Hyperband.

Each seed draws 30 % of the samples for the final test and splits the rest anew; every search sees the same 60
candidates and five folds. Costs are in full fits: the samples that all fits together saw, over those of one fit on all
training samples; a fit on four of five folds costs 0.8. A search has arrived when its score is at most a standard error
(that of GridSearchCV's best mean score) below GridSearchCV's: by the final test, and also by the mean that GridSearchCV
gives to the chosen candidate. Simple regret is measured by GridSearchCV's tables, averaged over seeds: how far the
chosen candidate's mean is below the best.

What was run is kept in a file of JSON lines, and not run again. Takes half an hour on one core.
"""

import json
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_wine
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.linear_model import Lasso, LogisticRegression, Ridge, RidgeClassifier
from sklearn.model_selection import (
    GridSearchCV,
    HalvingGridSearchCV,
    KFold,
    ParameterGrid,
    StratifiedKFold,
    train_test_split,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import mfbandit as mfb
from mfbandit._internal.progress import print_line
from mfbandit._internal.quantiles import t_quantile
from mfbandit._internal.typing import IntArray
from mfbandit.search.sklearn_types import Estimator
from mfbandit.search.splits import Splits

DATA = {"wine": load_wine, "breast cancer": load_breast_cancer, "digits": load_digits, "diabetes": load_diabetes}
CAPITALS = (15, 30, 45, 90)  # of MFSearchCV, in fits on four of five folds
DEFAULT = "MFSearchCV 45"  # three quarters of a full fit of each candidate, as by default
COMPARED = (DEFAULT, "HalvingGridSearchCV", "GridSearchCV")
FOLDS, SHARE = 5, 0.8
RUNGS = (1 / 16, 1 / 4, 1.0)

STYLES = (
    ("MFSearchCV", "o-", "#0072B2"),
    ("HalvingGridSearchCV", "s", "#D55E00"),
    ("Optuna", "^", "#009E73"),
    ("GridSearchCV", "D", "0.4"),
)

Row = dict[str, Any]


def _trees(forests: Sequence[Estimator], tree: Estimator) -> list[dict[str, Any]]:
    shapes = {"model__max_features": ["sqrt", 0.5], "model__min_samples_leaf": [1, 3, 10]}
    grown = {"model__max_depth": [2, 4, 8, None], "model__min_samples_leaf": [1, 5]}
    return [*({"model": [forest], **shapes} for forest in forests), {"model": [tree], **grown}]


def grid(*, classifier: bool) -> list[dict[str, Any]]:
    """Sixty candidates."""
    near = {"model__n_neighbors": [1, 3, 5, 9], "model__weights": ["uniform", "distance"]}
    if classifier:
        return [
            {"model": [SVC()], "model__C": [0.1, 1, 10, 100], "model__gamma": [0.001, 0.01, 0.1, 1]},
            {"model": [LogisticRegression(max_iter=300)], "model__C": [0.001, 0.01, 0.1, 1, 10, 100]},
            {"model": [KNeighborsClassifier()], **near},
            {"model": [GaussianNB()], "model__var_smoothing": [1e-9, 1e-3, 0.1, 1.0]},
            {"model": [LinearDiscriminantAnalysis(solver="lsqr")], "model__shrinkage": ["auto", 0.1, 0.5, 0.9]},
            {"model": [RidgeClassifier()], "model__alpha": [1.0, 100.0]},
            *_trees(
                [RandomForestClassifier(50, random_state=0), ExtraTreesClassifier(50, random_state=0)],
                DecisionTreeClassifier(random_state=0),
            ),
        ]
    boosting = GradientBoostingRegressor(n_estimators=50, random_state=0)
    return [
        {"model": [SVR()], "model__C": [1, 10, 100, 1000], "model__gamma": [0.001, 0.01, 0.1]},
        {"model": [Ridge()], "model__alpha": [0.01, 0.1, 1.0, 10.0, 30.0, 100.0, 300.0, 1000.0]},
        {"model": [Lasso()], "model__alpha": [0.03, 0.1, 0.3, 1.0, 3.0, 10.0]},
        {"model": [KNeighborsRegressor()], **near},
        {"model": [boosting], "model__learning_rate": [0.03, 0.1, 0.3], "model__max_depth": [1, 2]},
        *_trees(
            [RandomForestRegressor(50, random_state=0), ExtraTreesRegressor(50, random_state=0)],
            DecisionTreeRegressor(random_state=0),
        ),
    ]


class Task:
    """One data set and seed: what every search is given."""

    def __init__(self, name: str, seed: int) -> None:
        x, y = DATA[name](return_X_y=True)
        self.classifier, self.seed = name != "diabetes", seed
        self.x, self.x_test, self.y, self.y_test = train_test_split(
            x, y, test_size=0.3, random_state=seed, stratify=y if self.classifier else None
        )
        model = LogisticRegression() if self.classifier else Ridge()
        self.pipeline, self.grid = (
            Pipeline([("scale", StandardScaler()), ("model", model)]),
            grid(classifier=self.classifier),
        )
        self.names = [repr(one) for one in ParameterGrid(self.grid)]
        self.cv = (StratifiedKFold if self.classifier else KFold)(FOLDS, shuffle=True, random_state=seed)

    def row(self, search: Estimator, cost: float, seconds: float) -> Row:
        """What a fitted search found, and what it took."""
        chosen = self.names.index(repr({name: search.best_params_[name] for name in sorted(search.best_params_)}))
        return {"chosen": chosen, "test": search.score(self.x_test, self.y_test), "cost": cost, "seconds": seconds}


def by_grid(task: Task) -> Row:
    """GridSearchCV; its table of means and standard errors is what all are measured by."""
    search = GridSearchCV(task.pipeline, task.grid, cv=task.cv)
    start = time.perf_counter()
    search.fit(task.x, task.y)
    seconds = time.perf_counter() - start - search.refit_time_
    errors = search.cv_results_["std_test_score"] / np.sqrt(FOLDS - 1)
    more = {"means": search.cv_results_["mean_test_score"].tolist(), "errors": errors.tolist()}
    return task.row(search, SHARE * FOLDS * len(task.names), seconds) | more


def by_halving(task: Task) -> Row:
    """HalvingGridSearchCV as it is."""
    search = HalvingGridSearchCV(task.pipeline, task.grid, cv=task.cv, random_state=task.seed)
    start = time.perf_counter()
    search.fit(task.x, task.y)
    seconds = time.perf_counter() - start - search.refit_time_
    rungs = zip(search.n_candidates_, search.n_resources_, strict=True)
    cost = SHARE * FOLDS * sum(arms * samples for arms, samples in rungs) / len(task.y)
    return task.row(search, cost, seconds)


def by_bandit(task: Task, capital: float) -> Row:
    """MFSearchCV with a capital in fits on four of five folds."""
    search = mfb.MFSearchCV(task.pipeline, task.grid, cv=FOLDS, capital=capital, random_state=task.seed)
    start = time.perf_counter()
    search.fit(task.x, task.y)
    seconds = time.perf_counter() - start - search.refit_time_
    return task.row(search, SHARE * search.spent_, seconds) | {"early": search.stopped_early_}


def by_optuna(task: Task, capital: float) -> Row:
    """Optuna: TPE over the candidates, each trial five folds on growing fractions, pruned by Hyperband."""
    import optuna  # where it is installed

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    params, spent, start = list(ParameterGrid(task.grid)), [0.0], time.perf_counter()
    splits = Splits(task.cv, task.x, task.y, classifier=task.classifier, seed=task.seed)

    def objective(trial: optuna.Trial) -> float:
        model = clone(task.pipeline).set_params(**params[trial.suggest_categorical("k", range(len(params)))])
        value = 0.0
        for step, fraction in enumerate(RUNGS):
            spent[0] += SHARE * FOLDS * fraction
            value = float(np.mean([_score(clone(model), task, *splits.sample(i, fraction)) for i in range(FOLDS)]))
            trial.report(value, 4**step)
            if trial.should_prune():
                raise optuna.TrialPruned
        return value

    def enough(study: optuna.Study, _: optuna.trial.FrozenTrial) -> None:
        if spent[0] >= SHARE * capital:
            study.stop()

    pruner = optuna.pruners.HyperbandPruner(min_resource=1, max_resource=16, reduction_factor=4)
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=task.seed), pruner=pruner)
    study.optimize(objective, callbacks=[enough])
    seconds, chosen = time.perf_counter() - start, study.best_params["k"]
    model = clone(task.pipeline).set_params(**params[chosen]).fit(task.x, task.y)
    test = float(model.score(task.x_test, task.y_test))
    return {"chosen": chosen, "test": test, "cost": spent[0], "seconds": seconds}


def _score(model: Estimator, task: Task, train: IntArray, test: IntArray) -> float:
    try:
        return float(model.fit(task.x[train], task.y[train]).score(task.x[test], task.y[test]))
    except ValueError:  # as with more neighbours than samples
        return -1.0


def methods() -> dict[str, Callable[[Task], Row]]:
    """All searches by name."""
    ours = {f"MFSearchCV {capital:g}": (lambda task, c=capital: by_bandit(task, c)) for capital in CAPITALS}
    return {
        "GridSearchCV": by_grid,
        "HalvingGridSearchCV": by_halving,
        **ours,
        "Optuna, Hyperband": lambda task: by_optuna(task, 60),
    }


def measured(path: Path, names: Sequence[str], seeds: int, only: str) -> list[Row]:
    """All rows, run now where the file has none."""
    rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    done = {(row["data"], row["seed"], row["method"]) for row in rows}
    with path.open("a") as file:
        for data, seed, method, run in _wanted(names, seeds, only):
            if (data, seed, method) not in done:
                row = {"data": data, "seed": seed, "method": method} | run(Task(data, seed))
                print_line(f"{data}, seed {seed}, {method}: {row['cost']:.1f} full fits, {row['seconds']:.1f} s")
                file.write(json.dumps(row) + "\n")
                file.flush()
                rows.append(row)
    return rows


def _wanted(names: Sequence[str], seeds: int, only: str) -> Iterator[tuple[str, int, str, Callable[[Task], Row]]]:
    for seed in range(seeds):
        for data in names:
            for method, run in methods().items():
                if only in method:
                    yield data, seed, method, run


def interval(values: Sequence[float]) -> tuple[float, float, float]:
    """Mean and 95 % interval by Student's t."""
    found = np.array(values)
    mean = float(found.mean())
    if len(found) == 1:
        return mean, -np.inf, np.inf
    half = t_quantile(0.975, len(found) - 1) * float(found.std(ddof=1)) / np.sqrt(len(found))
    return mean, mean - half, mean + half


def table(rows: Sequence[Row]) -> str:
    """Markdown: for each data set and search what it cost, its test score against the grid's, and its regret."""
    lines = [
        "| data | search | full fits | seconds | test score | minus the grid's (95 %) | regret (95 %) "
        "| arrived by the test | by the grid |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for data in dict.fromkeys(row["data"] for row in rows):
        grids = full_grids(rows, data)
        for method in methods():
            found = [row for row in rows if (row["data"], row["method"]) == (data, method) and row["seed"] in grids]
            if found:
                lines.append(_line(data, method, found, grids))
    return "\n".join(lines)


def full_grids(rows: Sequence[Row], data: str) -> dict[int, Row]:
    """GridSearchCV's rows by seed."""
    return {row["seed"]: row for row in rows if row["data"] == data and row["method"] == "GridSearchCV"}


def _line(data: str, method: str, found: Sequence[Row], grids: dict[int, Row]) -> str:
    mean, low, high = interval([row["test"] - grids[row["seed"]]["test"] for row in found])
    truth = np.nanmean([full["means"] for full in grids.values()], axis=0)
    regret, least, most = interval([np.nanmax(truth) - truth[row["chosen"]] for row in found])
    arrived = [sum(rule(row, grids[row["seed"]]) for row in found) for rule in ARRIVED.values()]
    cost, seconds = (np.median([row[name] for row in found]) for name in ("cost", "seconds"))
    test = np.mean([row["test"] for row in found])
    return (
        f"| {data} | {method} | {cost:.1f} | {seconds:.1f} | {test:.4f} | {mean:+.4f} ({low:+.4f} to {high:+.4f}) "
        f"| {regret:.4f} ({max(least, 0):.4f} to {most:.4f}) "
        f"| {arrived[0]} of {len(found)} | {arrived[1]} of {len(found)} |"
    )


def by_test(row: Row, full: Row) -> bool:
    """Whether the test score is at most one standard error below the grid's."""
    best = int(np.nanargmax(full["means"]))
    return bool(row["test"] >= full["test"] - full["errors"][best])


def by_means(row: Row, full: Row) -> bool:
    """Whether the grid's mean score of the chosen candidate is at most one standard error below its best."""
    best = int(np.nanargmax(full["means"]))
    return bool(full["means"][row["chosen"]] >= full["means"][best] - full["errors"][best])


ARRIVED = {"the final test": by_test, "the grid's means": by_means}


def arrivals(rows: Sequence[Row]) -> str:
    """Markdown: the median cost to arrive; a search that does not arrive costs what the grid does."""
    lines = ["| data | by | " + " | ".join(COMPARED) + " |", "|---|---|" + "---:|" * len(COMPARED)]
    for data in dict.fromkeys(row["data"] for row in rows):
        for rule in ARRIVED:
            costs = [f"{arrival_cost(rows, data, method, rule):.1f}" for method in COMPARED]
            lines += [f"| {data} | {rule} | {' | '.join(costs)} |"]
    return "\n".join(lines)


def arrival_cost(rows: Sequence[Row], data: str, method: str, rule: str) -> float:
    """The median cost at which a search arrives by a rule."""
    grids = full_grids(rows, data)
    found = [row for row in rows if (row["data"], row["method"]) == (data, method) and row["seed"] in grids]
    each = [(row, grids[row["seed"]]) for row in found]
    costs = [row["cost"] if ARRIVED[rule](row, full) else full["cost"] for row, full in each]
    return float(np.median(costs)) if costs else np.nan


def bars(rows: Sequence[Row]) -> list[str]:
    """A sentence for each bar that does not hold: cost to arrive against halving's, and the final test."""
    broken = []
    for data in dict.fromkeys(row["data"] for row in rows):
        for rule in ARRIVED:
            ours, halved = (arrival_cost(rows, data, method, rule) for method in COMPARED[:2])
            if ours > halved:
                broken.append(f"{data}: by {rule}, {DEFAULT} arrives at {ours:.1f} full fits, halving at {halved:.1f}")
        grids = full_grids(rows, data)
        found = [row for row in rows if (row["data"], row["method"]) == (data, DEFAULT) and row["seed"] in grids]
        if found and (high := interval([row["test"] - grids[row["seed"]]["test"] for row in found])[2]) < 0:
            broken.append(f"{data}: {DEFAULT}'s test score is below GridSearchCV's by {-high:.4f} at least")
    return broken


def search(out: Path, *, seeds: int, data: Sequence[str] = tuple(DATA), only: str = "") -> dict[str, Any]:
    """Measure what the file does not have yet; rows and broken bars."""
    out.parent.mkdir(parents=True, exist_ok=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fits on few samples warn a lot
        rows = measured(out, data, seeds, only)
    return {"rows": rows, "broken": bars(rows)}


def draw(rows: Sequence[Row], path: Path) -> None:
    """Test score minus the grid's against cost, one panel for each data set, with 95 % intervals."""
    names = list(dict.fromkeys(row["data"] for row in rows))
    figure, axes = plt.subplots(1, len(names), figsize=(3.1 * len(names), 3.2), layout="constrained", squeeze=False)
    for ax, data in zip(axes[0], names, strict=True):
        grids = full_grids(rows, data)
        for kind, style, colour in STYLES:
            points = []
            for method in (name for name in methods() if name.startswith(kind)):
                found = [row for row in rows if (row["data"], row["method"]) == (data, method) and row["seed"] in grids]
                if found:
                    middle = interval([row["test"] - grids[row["seed"]]["test"] for row in found])
                    points.append((float(np.median([row["cost"] for row in found])), *middle))
            if points:
                cost, mean, low, high = np.array(points).T
                ax.errorbar(cost, mean, (mean - low, high - mean), fmt=style, color=colour, label=kind, ms=5, lw=1.2)
        ax.axhline(0, color="0.4", lw=0.8)
        ax.set_xscale("log")
        ax.set_xticks([6, 12, 24, 48, 120, 240], ["6", "12", "24", "48", "120", "240"])
        ax.minorticks_off()
        ax.set_title(data, fontsize=10)
        ax.set_xlabel("cost  (full fits)")
        ax.spines[["top", "right"]].set_visible(False)
    axes[0][0].set_ylabel("test score minus GridSearchCV's")
    figure.legend(*axes[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def markdown(result: dict[str, Any]) -> str:
    """The tables for the docs."""
    return "\n\n".join([table(result["rows"]), arrivals(result["rows"])])
