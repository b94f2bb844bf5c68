"""scikit-learn's model selection, with small training samples as cheap looks."""

from mfbandit.search.estimator import MFSearchCV

__all__ = [
    "MFSearchCV",
]
