"""scikit-learn's model selection, with small training samples as low fidelities."""

from mfbandit._internal.imports import needed_for

with needed_for("MFSearchCV", "sklearn"):
    from mfbandit.search.estimator import MFSearchCV

__all__ = [
    "MFSearchCV",
]
