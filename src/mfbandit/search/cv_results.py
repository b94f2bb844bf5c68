"""The results of a search, in scikit-learn's ``cv_results_`` format."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mfbandit._internal.typing import FloatArray, IntArray
from mfbandit.core import Bounds
from mfbandit.search.fit_and_score import Trial
from mfbandit.search.score_estimates import ScoreEstimates
from mfbandit.search.scoring import ONE_METRIC


def cv_results(
    trials: Sequence[Trial],
    params: Sequence[Mapping[str, Any]],
    *,
    bounds: Bounds,
    estimates: ScoreEstimates,
    best: int,
    metric: str = ONE_METRIC,
) -> dict[str, Any]:
    """Make the columns that scikit-learn's searches have, and those of fidelities.

    Scores, their deviation and times are those of the highest fidelity at which a candidate was tried
    (``fidelity``, by name). ``rank_test_score`` is 1 for the candidate that was chosen, and for those that have the
    same estimate and score at the same fidelity. Then come those with a score at
    the highest fidelity, those without, and last those that failed. Within each group the largest ``estimate`` comes
    first, and among equal ones the largest score. Where there are several metrics, each has such columns. Ranks of
    those that do not decide go by their mean scores.

    Args:
        trials: all plays.
        params: the candidates' settings; K of them.
        bounds: of every candidate at every fidelity; (M, K).
        estimates: of the candidates' scores at the highest fidelity; (K,).
        best: the candidate that was chosen.
        metric: the one that decides.

    >>> from mfbandit.core import Fidelities, Stats, SubGaussian, bounds_table
    >>> from mfbandit.search.fit_and_score import FitResult
    >>> stats, fidelities = Stats.empty(1, 2), Fidelities([1], concentration=SubGaussian(0.1), names=["all"])
    >>> stats.counts[:], stats.sums[:] = 1, [[0.5, 0.75]]
    >>> trials = [Trial(arm, 0, 0, 1.0, FitResult(score, 0.1)) for arm, score in enumerate([0.5, 0.75])]
    >>> estimates = ScoreEstimates(stats.sums[0], stats.sums[0] - 0.1, stats.sums[0] + 0.1)
    >>> table = bounds_table(stats, fidelities, 2.0, ["a", "b"])
    >>> results = cv_results(trials, [{"C": 1}, {"C": 10}], bounds=table, estimates=estimates, best=1)
    >>> results["rank_test_score"].tolist(), results["split0_test_score"].tolist(), results["fidelity"].tolist()
    ([2, 1], [0.5, 0.75], ['all', 'all'])
    """
    highest = _highest_fidelities(bounds.plays)
    shown = [_scored(trials, arm, int(fidelity)) for arm, fidelity in enumerate(highest)]
    table = _time_columns(shown) | _param_columns(params)
    table["params"] = [dict(one) for one in params]
    top = len(bounds.plays) - 1
    for name in metric_names(trials, metric):
        table |= _score_columns(shown, name)
        mean = table[f"mean_test_{name}"]
        chosen, first = (best, estimates.estimate) if name == metric else (None, mean)
        table[f"rank_test_{name}"] = _ranks(np.array([first, mean]), highest, top=top, best=chosen)
    table["candidate"] = np.array(bounds.labels, dtype=object)
    names = np.array([*bounds.fidelities, "none"], dtype=object)
    table["fidelity"] = names[highest]
    table["estimate"], table["lower_bound"] = estimates.estimate, estimates.lower
    table["upper_bound"] = estimates.upper
    return table | _spending(trials, len(params)) | _by_fidelity(trials, bounds)


def in_given_order(results: Mapping[str, Any], order: IntArray) -> dict[str, Any]:
    """Return the same columns with row k moved to row ``order[k]``.

    >>> in_given_order({"params": ["b", "a"], "cost": np.array([2.0, 1.0])}, np.array([1, 0]))
    {'params': ['a', 'b'], 'cost': array([1., 2.])}
    """
    rows = np.argsort(order)
    return {
        name: [column[k] for k in rows] if isinstance(column, list) else column[rows]
        for name, column in results.items()
    }


def _highest_fidelities(plays: IntArray) -> IntArray:
    """The highest fidelity with a result of each candidate; −1 for none."""
    highest = np.where(plays > 0, np.arange(len(plays))[:, None], -1).max(axis=0)
    return np.asarray(highest)


def _scored(trials: Sequence[Trial], arm: int, fidelity: int) -> list[Trial]:
    return [one for one in trials if one.arm == arm and one.fidelity == fidelity and not one.outcome.failed]


def _each(statistic: Callable[[FloatArray], Any], values: Sequence[FloatArray]) -> FloatArray:
    return np.array([statistic(one) if len(one) else np.nan for one in values])


def _time_columns(shown: Sequence[Sequence[Trial]]) -> dict[str, Any]:
    columns: dict[str, Any] = {}
    for name in ("fit_time", "score_time"):
        values = [np.array([getattr(trial.outcome, name) for trial in each]) for each in shown]
        columns[f"mean_{name}"], columns[f"std_{name}"] = _each(np.mean, values), _each(np.std, values)
    return columns


def metric_names(trials: Sequence[Trial], metric: str = ONE_METRIC) -> list[str]:
    """Return the names of all metrics: those of the scores, or the one where there is one.

    >>> metric_names([])
    ['score']
    """
    return list(dict.fromkeys(name for one in trials for name in one.outcome.scores)) or [metric]


def _score_columns(shown: Sequence[Sequence[Trial]], metric: str) -> dict[str, Any]:
    """Scores on each split, their mean and deviation; also on training samples where these are known."""
    columns = _columns_of([{one.split: _test_score(one, metric) for one in each} for each in shown], f"test_{metric}")
    if any(one.outcome.train_scores for each in shown for one in each):
        on_train = [{one.split: one.outcome.train_scores.get(metric, np.nan) for one in each} for each in shown]
        columns |= _columns_of(on_train, f"train_{metric}")
    return columns


def _test_score(one: Trial, metric: str) -> float:
    """A fit that failed has the same score, given for errors, in all metrics."""
    return one.outcome.scores.get(metric, one.outcome.score)


def _columns_of(by_split: Sequence[Mapping[int, float]], name: str) -> dict[str, Any]:
    columns: dict[str, Any] = {}
    for i in range(1 + max(max(each, default=-1) for each in by_split)):
        columns[f"split{i}_{name}"] = np.array([each.get(i, np.nan) for each in by_split])
    scores = [np.array(list(each.values())) for each in by_split]
    columns[f"mean_{name}"], columns[f"std_{name}"] = _each(np.mean, scores), _each(np.std, scores)
    return columns


def _param_columns(params: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    columns: dict[str, Any] = {}
    for name in dict.fromkeys(name for one in params for name in one):
        values = [one[name] for one in params if name in one]
        numbers = all(isinstance(value, int | float | np.number | np.bool_) for value in values)
        kind = np.array(values).dtype if numbers else np.dtype(object)  # object too where a number is too large
        column = np.ma.MaskedArray(np.zeros(len(params), dtype=kind), mask=True)
        for k, one in enumerate(params):
            if name in one:
                column[k] = one[name]
        columns[f"param_{name}"] = column
    return columns


def _ranks(values: FloatArray, highest: IntArray, *, top: int, best: int | None) -> NDArray[np.int32]:
    """Ranks by group, then by estimate, then by mean score; ``values`` has these two as rows."""
    group = np.where(highest == top, 1, np.where(highest >= 0, 2, 3))
    if best is not None:  # and those that nothing tells from it
        group[(highest == highest[best]) & (values == values[:, [best]]).all(axis=0)] = 0
        group[best] = 0
    estimate, score = np.nan_to_num(values, nan=-np.inf)
    keys = list(zip(group.tolist(), (-estimate).tolist(), (-score).tolist(), strict=True))
    ordered = sorted(keys)
    return np.array([1 + ordered.index(key) for key in keys], dtype=np.int32)


def _spending(trials: Sequence[Trial], arms: int) -> dict[str, Any]:
    cost, failed = np.zeros(arms), np.zeros(arms, dtype=np.int64)
    for trial in trials:
        cost[trial.arm] += trial.cost
        failed[trial.arm] += trial.outcome.failed
    return {"cost": cost, "failed_plays": failed}


def _by_fidelity(trials: Sequence[Trial], bounds: Bounds) -> dict[str, Any]:
    cost = np.zeros(bounds.plays.shape)
    for trial in trials:
        cost[trial.fidelity, trial.arm] += trial.cost
    columns: dict[str, Any] = {}
    for m, name in enumerate(bounds.fidelities):
        columns[f"plays_at_{name}"] = bounds.plays[m]
        columns[f"cost_at_{name}"] = cost[m]
        columns[f"mean_score_at_{name}"] = bounds.means[m]
        columns[f"lower_bound_at_{name}"] = bounds.lower[m]
        columns[f"upper_bound_at_{name}"] = bounds.upper[m]
    return columns
