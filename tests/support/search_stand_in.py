"""A plugin of pytest that puts MFSearchCV in the place of GridSearchCV and RandomizedSearchCV.

Run with ``-p tests.support.search_stand_in``: tests that import the two from scikit-learn get these instead. They make
the grid's fits, so that what tests count can be equal; other defaults are those of MFSearchCV. With
``MFBANDIT_DEFAULT_CAPITAL=1`` the capital is, too.
"""

import os

import sklearn.model_selection

from mfbandit import MFSearchCV

CAPITAL = None if os.environ.get("MFBANDIT_DEFAULT_CAPITAL") == "1" else "grid"


class GridStandIn(MFSearchCV):
    """MFSearchCV with the signature of GridSearchCV."""

    def __init__(  # noqa: PLR0913 - scikit-learn's
        self,
        estimator,
        param_grid,
        *,
        scoring=None,
        n_jobs=None,
        refit=True,
        cv=None,
        verbose=0,
        error_score=float("nan"),
        return_train_score=False,
    ):
        super().__init__(
            estimator,
            param_grid,
            capital=CAPITAL,
            scoring=scoring,
            n_jobs=n_jobs,
            refit=refit,
            cv=cv,
            verbose=verbose,
            random_state=0,
            error_score=error_score,
            return_train_score=return_train_score,
        )


class RandomizedStandIn(MFSearchCV):
    """MFSearchCV with the signature of RandomizedSearchCV, whose second argument are distributions."""

    def __init__(  # noqa: PLR0913 - scikit-learn's
        self,
        estimator,
        param_distributions,
        *,
        n_iter=10,
        scoring=None,
        n_jobs=None,
        refit=True,
        cv=None,
        verbose=0,
        random_state=0,
        error_score=float("nan"),
        return_train_score=False,
    ):
        super().__init__(
            estimator,
            param_distributions=param_distributions,
            n_iter=n_iter,
            capital=CAPITAL,
            scoring=scoring,
            n_jobs=n_jobs,
            refit=refit,
            cv=cv,
            verbose=verbose,
            random_state=random_state,
            error_score=error_score,
            return_train_score=return_train_score,
        )


sklearn.model_selection.GridSearchCV = GridStandIn
sklearn.model_selection.RandomizedSearchCV = RandomizedStandIn
