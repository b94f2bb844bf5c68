"""What MLflow is told of a search: a run, and child runs for its best candidates, as of GridSearchCV."""

import math
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from mfbandit.search.estimator import MFSearchCV

FLAVOR = "sklearn"
MAX_TUNING_RUNS = 5  # child runs, where ``autolog`` does not say
MAX_LETTERS = 500  # of a parameter
CHILD_METRICS = ("estimate", "lower_bound", "upper_bound", "cost")


@contextmanager
def logged_to_mlflow(search: "MFSearchCV") -> Iterator[None]:
    """Log a search that is fitted in the block, if ``mlflow.sklearn.autolog()`` is on; none of the fits inside it.

    A run that is active is used, else one is begun. What cannot be logged is a warning, and not an error.

    >>> from mfbandit import MFSearchCV
    >>> with logged_to_mlflow(MFSearchCV()):
    ...     pass
    """
    autologging = sys.modules.get("mlflow.utils.autologging_utils")
    if autologging is None or autologging.autologging_is_disabled(FLAVOR):
        yield
        return
    with autologging.disable_autologging():
        yield
    try:
        with autologging.disable_autologging():
            _log(search, partial(autologging.get_autologging_config, FLAVOR))
    except Exception as error:
        warnings.warn(f"MLflow was not told of the search: {error}", UserWarning, stacklevel=4)


def _log(search: "MFSearchCV", configured: Callable[[str, Any], Any]) -> None:
    """Log a run and its children.

    Args:
        search: that was fitted.
        configured: returns what ``autolog`` was given for an argument, or else a default.
    """
    import mlflow

    with ExitStack() as stack:
        if mlflow.active_run() is None:
            stack.enter_context(mlflow.start_run())
        mlflow.set_tags(_tags(search))
        mlflow.log_params(_params(search.get_params(deep=False)))
        mlflow.log_params(_params({f"best_{name}": value for name, value in search.best_params_.items()}))
        mlflow.log_metrics(_metrics(search))
        mlflow.log_text(search.report_.to_csv(index_label="index"), "cv_results.csv")
        if configured("log_models", True) and hasattr(search, "best_estimator_"):
            form = configured("serialization_format", "cloudpickle")
            mlflow.sklearn.log_model(search.best_estimator_, name="best_estimator", serialization_format=form)
        best_first = np.argsort(search.cv_results_[f"rank_test_{search.metric_}"], kind="stable")
        for k in best_first[: configured("max_tuning_runs", MAX_TUNING_RUNS)].tolist():
            with mlflow.start_run(run_name=str(search.cv_results_["candidate"][k])[:MAX_LETTERS], nested=True):
                mlflow.set_tags({"mlflow.autologging": FLAVOR})
                mlflow.log_params(_params(search.cv_results_["params"][k]))
                mlflow.log_metrics(_child_metrics(search, k))


def _tags(search: "MFSearchCV") -> dict[str, str]:
    kind = type(search)
    return {
        "estimator_name": kind.__name__,
        "estimator_class": f"{kind.__module__}.{kind.__name__}",
        "mlflow.autologging": FLAVOR,
    }


def _params(given: dict[str, Any]) -> dict[str, str]:
    return {name: str(value)[:MAX_LETTERS] for name, value in given.items()}


def _metrics(search: "MFSearchCV") -> dict[str, float]:
    best = float(search.cv_results_[f"mean_test_{search.metric_}"][search.best_index_])
    return _finite(
        {
            "best_cv_score": best,
            "best_lower_bound": search.best_interval_[0],
            "best_upper_bound": search.best_interval_[1],
            "confidence": search.confidence_.level,
            "spent": search.spent_,
            "capital": float(search.capital_ or math.inf),
        }
    )


def _child_metrics(search: "MFSearchCV", k: int) -> dict[str, float]:
    row = search.report_.loc[k]
    names = [name for name in row.index if name.startswith(("mean_test_", "score_at_", "plays_at_"))]
    return _finite({name: float(row[name]) for name in (*names, *CHILD_METRICS, "rank")})


def _finite(values: dict[str, float]) -> dict[str, float]:
    return {name: value for name, value in values.items() if np.isfinite(value)}
