"""Names for the types of scikit-learn, which has no annotations of its own."""

from typing import Any, TypeAlias

Estimator: TypeAlias = Any
"""Something with ``fit``, ``get_params`` and ``set_params``."""

ParamGrid: TypeAlias = Any
"""A dictionary of parameter names and lists of values, or a list of such dictionaries."""

ParamDistributions: TypeAlias = Any
"""A dictionary of parameter names and lists or distributions with ``rvs``, or a list of such dictionaries."""

Scorer: TypeAlias = Any
"""A callable (estimator, X, y) that returns a number, or the name of a metric; or several of them."""

Refit: TypeAlias = Any
"""True, False, the name of a metric, or a function of ``cv_results_`` that returns an index."""

Splitter: TypeAlias = Any
"""A number of folds, an object with ``split``, or an iterable of (train, test) pairs."""

Samples: TypeAlias = Any
"""Rows of data or targets: an array, a sparse matrix, a data frame or a list."""

RandomState: TypeAlias = Any
"""None, a whole number or a random generator of NumPy."""
