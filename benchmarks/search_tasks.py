"""Tasks of model selection, of the kinds that people have: data, a grid of candidates, splits and a score.

Data are made by scikit-learn's generators, or come with it. A task of one kind is among those that the search was
developed on (:data:`DEVELOPED_ON`), and another of the same kind among those that are reported (:data:`REPORTED`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from scipy import sparse
from sklearn import datasets
from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor, GradientBoostingClassifier
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Lasso, LogisticRegression, Ridge, RidgeClassifier
from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold, TimeSeriesSplit
from sklearn.naive_bayes import BernoulliNB, GaussianNB, MultinomialNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from sklearn.svm import SVC, SVR, LinearSVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from mfbandit._internal.typing import FloatArray, IntArray
from mfbandit.search.sklearn_types import Estimator, Samples, Splitter

FOLDS = 5


@dataclass(frozen=True)
class Family:
    """Candidates of one kind: every combination of the values of its parameters.

    Args:
        make: builds one of them from values in the order of ``grid``.
        grid: values by the name of a parameter.
    """

    make: Callable[..., Estimator]
    grid: dict[str, tuple[Any, ...]]

    def all(self) -> list[Estimator]:
        """Every candidate, the last parameter changing fastest."""
        return [self.make(*values) for values in product(*self.grid.values())]


@dataclass(frozen=True)
class Task:
    """What every search is given.

    Args:
        x: the samples.
        y: the targets.
        families: of candidates.
        cv: the splitter, by seed.
        scoring: the metric, None for the candidates' own.
        groups: of the samples.
        classifier: whether samples are stratified.
    """

    x: Samples
    y: Samples
    families: tuple[Family, ...]
    cv: Splitter
    scoring: str | None = None
    groups: IntArray | None = None
    classifier: bool = True

    @property
    def candidates(self) -> list[Estimator]:
        """All of them, family by family."""
        return [one for family in self.families for one in family.all()]


def _scaled(kind: Callable[..., Estimator], *names: str, **fixed: object) -> Callable[..., Estimator]:
    def make(*values: object) -> Estimator:
        return make_pipeline(StandardScaler(), kind(**dict(zip(names, values, strict=True)), **fixed))

    return make


def _bare(kind: Callable[..., Estimator], *names: str, **fixed: object) -> Callable[..., Estimator]:
    def make(*values: object) -> Estimator:
        return kind(**dict(zip(names, values, strict=True)), **fixed)

    return make


def _family(wrap: Callable[..., Any], kind: Callable[..., Estimator], grid: dict[str, Any], **fixed: object) -> Family:
    return Family(wrap(kind, *grid, **fixed), {name: tuple(values) for name, values in grid.items()})


def _powers(base: float, low: int, high: int) -> tuple[float, ...]:
    return tuple(float(base) ** i for i in range(low, high + 1))


def classifiers() -> tuple[Family, ...]:
    """Sixty classifiers of seven kinds."""
    near = {"n_neighbors": (1, 3, 5, 9), "weights": ("uniform", "distance")}
    forest = {"max_features": ("sqrt", 0.5), "min_samples_leaf": (1, 3, 10)}
    tree = {"max_depth": (2, 4, 8, None), "min_samples_leaf": (1, 5)}
    return (
        _family(_scaled, SVC, {"C": _powers(10, -1, 3), "gamma": _powers(10, -3, 0)}),
        _family(_scaled, LogisticRegression, {"C": _powers(10, -3, 4)}, max_iter=200),
        _family(_scaled, KNeighborsClassifier, near),
        _family(_scaled, GaussianNB, {"var_smoothing": (1e-9, 1e-3, 0.1, 1.0)}),
        _family(_scaled, RidgeClassifier, {"alpha": (0.1, 1.0, 10.0, 30.0, 100.0, 300.0)}),
        _family(_bare, ExtraTreesClassifier, forest, n_estimators=20, random_state=0),
        _family(_bare, DecisionTreeClassifier, tree, random_state=0),
    )


def regressors() -> tuple[Family, ...]:
    """Sixty regressors of six kinds."""
    near = {"n_neighbors": (1, 3, 5, 9), "weights": ("uniform", "distance")}
    forest = {"max_features": (0.3, 1.0), "min_samples_leaf": (1, 3, 10)}
    tree = {"max_depth": (2, 4, 8, None), "min_samples_leaf": (1, 5)}
    return (
        _family(_scaled, SVR, {"C": _powers(10, 0, 3), "gamma": (0.001, 0.01, 0.1, 1.0)}),
        _family(_scaled, Ridge, {"alpha": _powers(10, -3, 4)}),
        _family(_scaled, Lasso, {"alpha": _powers(10, -3, 2)}),
        _family(_scaled, KernelRidge, {"alpha": (0.01, 1.0), "gamma": (0.001, 0.01, 0.1, 1.0)}, kernel="rbf"),
        _family(_scaled, KNeighborsRegressor, near),
        _family(_bare, ExtraTreesRegressor, forest, n_estimators=20, random_state=0),
        _family(_bare, DecisionTreeRegressor, tree, random_state=0),
    )


def polynomials() -> tuple[Family, ...]:
    """Forty regressors, some of which fail badly on few samples: R² of −1000 and worse."""

    def poly(degree: int, alpha: float) -> Estimator:
        return make_pipeline(StandardScaler(), PolynomialFeatures(degree), Ridge(alpha))

    kernel = {"degree": (2, 3, 4), "alpha": (1e-6, 1e-2, 1.0, 10.0)}
    return (
        Family(poly, {"degree": (1, 2, 3), "alpha": (1e-8, 1e-4, 1e-2, 1.0, 10.0, 100.0)}),
        _family(_scaled, KernelRidge, kernel, kernel="poly"),
        _family(_scaled, SVR, {"C": (1.0, 100.0), "gamma": (0.01, 0.1, 1.0)}),
        _family(_bare, DecisionTreeRegressor, {"max_depth": (2, 4, 8, None)}, random_state=0),
    )


def for_text() -> tuple[Family, ...]:
    """Thirty-six classifiers of counts."""
    return (
        _family(_bare, MultinomialNB, {"alpha": (1e-3, 1e-2, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)}),
        _family(_bare, BernoulliNB, {"alpha": (1e-3, 1e-2, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)}),
        _family(_bare, LogisticRegression, {"C": _powers(10, -3, 2)}, max_iter=100),
        _family(_bare, LinearSVC, {"C": _powers(10, -5, 0)}),
        _family(_bare, RidgeClassifier, {"alpha": _powers(10, -2, 5)}),
    )


def kernels(c: int, gamma: int) -> tuple[Family, ...]:
    """Support vector machines on a fine grid."""
    grid = {"C": np.logspace(-2, 4, c).tolist(), "gamma": np.logspace(-4, 1, gamma).tolist()}
    return (_family(_scaled, SVC, grid),)


def boosted() -> tuple[Family, ...]:
    """Sixty-four classifiers: boosted trees and forests."""
    boosting = {"learning_rate": (0.03, 0.1, 0.3, 1.0), "max_depth": (1, 2, 3), "n_estimators": (10, 40)}
    trees = {"max_depth": (1, 2, 3, 5, 8), "min_samples_leaf": (1, 3, 10, 30), "criterion": ("gini", "entropy")}
    return (
        _family(_bare, GradientBoostingClassifier, boosting, random_state=0),
        _family(_bare, DecisionTreeClassifier, trees, random_state=0),
    )


# Data


def _stratified(seed: int) -> Splitter:
    return StratifiedKFold(FOLDS, shuffle=True, random_state=seed)


def _plain(seed: int) -> Splitter:
    return KFold(FOLDS, shuffle=True, random_state=seed)


def _bundled(load: Callable[..., Any], seed: int) -> Task:
    x, y = load(return_X_y=True)
    return Task(x, y, classifiers(), _stratified(seed))


def _classes(
    seed: int, families: Callable[[], tuple[Family, ...]] = classifiers, state: int = 0, **how: object
) -> Task:
    x, y = datasets.make_classification(random_state=state, **how)
    return Task(x, y, families(), _stratified(seed))


def _generated(make: Callable[..., Any], families: Callable[[], tuple[Family, ...]], seed: int, **how: object) -> Task:
    x, y = make(random_state=0, **how)
    return Task(x, y, families(), _stratified(seed))


def _regression(make: Callable[..., Any], families: Callable[[], tuple[Family, ...]], seed: int, **how: object) -> Task:
    x, y = make(random_state=0, **how)
    y = (y - y.mean()) / y.std()
    return Task(x, y, families(), _plain(seed), classifier=False)


def _diabetes(seed: int) -> Task:
    x, y = datasets.load_diabetes(return_X_y=True)
    return Task(x, y, regressors(), _plain(seed), classifier=False)


def _heavy_tails(make: Callable[..., Any], freedom: float, seed: int, **how: object) -> Task:
    """Targets with noise of Student's t."""
    task = _regression(make, polynomials, seed, **how)
    noise = np.random.default_rng(0).standard_t(freedom, size=len(task.y))
    return Task(task.x, task.y + 0.3 * noise, task.families, task.cv, classifier=False)


def _rare(seed: int, share: float, state: int, **how: object) -> Task:
    task = _classes(seed, classifiers, state, weights=[1 - share], **how)
    return Task(task.x, task.y, task.families, task.cv, scoring="roc_auc")


def _grouped(seed: int, groups: int, size: int, noise: float, *, classes: bool) -> Task:
    """Groups have an offset in every feature, which tells nothing about new groups."""
    rng = np.random.default_rng(groups)
    member = np.repeat(np.arange(groups), size)
    x = rng.normal(size=(len(member), 8)) + noise * rng.normal(size=(groups, 8))[member]
    y = (
        np.sin(x[:, 0])
        + 0.5 * x[:, 1] * x[:, 2]
        + noise * rng.normal(size=groups)[member]
        + 0.3 * rng.normal(size=len(x))
    )
    cv = GroupKFold(FOLDS, shuffle=True, random_state=seed)
    if classes:
        return Task(x, (y > 0).astype(int), classifiers(), cv, groups=member)
    return Task(x, y, regressors(), cv, groups=member, classifier=False)


def _series(seed: int, n: int, wave: float, *, classes: bool) -> Task:
    """The next value of a series from its last eight; every seed has another piece of it."""
    rng = np.random.default_rng([seed, n])
    values = np.zeros(n + 108)
    for t in range(2, len(values)):
        season = wave * np.sin(2 * np.pi * t / 25)
        values[t] = 0.6 * values[t - 1] - 0.3 * np.tanh(2 * values[t - 2]) + season + 0.5 * rng.normal()
    values = values[100:]
    x = np.stack([values[i : i + n] for i in range(8)], axis=1)
    y = values[8 : 8 + n]
    cv = TimeSeriesSplit(FOLDS)
    if classes:
        return Task(x, (y > x[:, -1]).astype(int), classifiers(), cv)
    return Task(x, y, regressors(), cv, classifier=False)


def _words(seed: int, rows: int, words: int, classes: int, length: int, state: int) -> Task:
    """Documents: counts of words, of which a few are more frequent in each class."""
    rng = np.random.default_rng(state)
    usual = rng.dirichlet(np.full(words, 0.1))
    topics = 0.85 * usual + 0.15 * rng.dirichlet(np.full(words, 0.05), size=classes)
    y = rng.integers(classes, size=rows)
    counts = np.stack([rng.multinomial(rng.integers(length // 2, 2 * length), topics[c]) for c in y])
    return Task(sparse.csr_array(counts.astype(float)), y, for_text(), _stratified(seed))


def _noisy_rows(x: FloatArray, y: IntArray, families: tuple[Family, ...], seed: int) -> Task:
    return Task(x, y, families, _stratified(seed))


def _digits(seed: int) -> Task:
    x, y = datasets.load_digits(return_X_y=True)
    return _noisy_rows(x[:600], y[:600], classifiers(), seed)


def _rings(seed: int) -> Task:
    x, y = datasets.make_circles(400, noise=0.15, factor=0.6, random_state=0)
    more = np.random.default_rng(0).normal(scale=0.3, size=(400, 6))
    return _noisy_rows(np.hstack([x, more]), y, classifiers(), seed)


_SPARSE = {"n_samples": 400, "n_features": 20}

DEVELOPED_ON: dict[str, Callable[[int], Task]] = {
    "wine": partial(_bundled, datasets.load_wine),
    "breast cancer": partial(_bundled, datasets.load_breast_cancer),
    "diabetes": _diabetes,
    "heavy tails, friedman1": partial(_heavy_tails, datasets.make_friedman1, 2.0, n_samples=300, noise=0.5),
    "rare class, 8 %": partial(
        _rare, share=0.08, state=1, n_samples=800, n_features=12, n_informative=5, class_sep=0.7
    ),
    "groups, regression": partial(_grouped, groups=30, size=15, noise=0.7, classes=False),
    "series, regression": partial(_series, n=400, wave=0.3, classes=False),
    "words, 4 classes": partial(_words, rows=500, words=800, classes=4, length=40, state=1),
    "300 kernels": partial(
        _classes, families=partial(kernels, 15, 20), n_samples=400, n_features=10, n_informative=6, state=2
    ),
    "regression, friedman2": partial(_regression, datasets.make_friedman2, regressors, n_samples=400, noise=60.0),
    "5 classes": partial(_classes, n_samples=600, n_features=15, n_informative=8, n_classes=5, state=3),
    "boosted": partial(_classes, families=boosted, n_samples=400, n_features=10, n_informative=4, flip_y=0.1, state=4),
}

REPORTED: dict[str, Callable[[int], Task]] = {
    "iris": partial(_bundled, datasets.load_iris),
    "digits": _digits,
    "rings": _rings,
    "regression, friedman3": partial(_regression, datasets.make_friedman3, regressors, n_samples=350, noise=0.3),
    "regression, sparse": partial(_regression, datasets.make_sparse_uncorrelated, regressors, **_SPARSE),
    "heavy tails, friedman2": partial(_heavy_tails, datasets.make_friedman2, 1.5, n_samples=350, noise=50.0),
    "heavy tails, low rank": partial(
        _heavy_tails, datasets.make_regression, 2.5, n_samples=250, n_features=8, effective_rank=4, noise=0.5
    ),
    "rare class, 5 %": partial(
        _rare, share=0.05, state=11, n_samples=900, n_features=10, n_informative=4, class_sep=0.8
    ),
    "groups, classes": partial(_grouped, groups=24, size=20, noise=0.9, classes=True),
    "groups, few": partial(_grouped, groups=12, size=30, noise=0.5, classes=False),
    "series, classes": partial(_series, n=500, wave=0.6, classes=True),
    "series, short": partial(_series, n=220, wave=0.8, classes=False),
    "words, 8 classes": partial(_words, rows=600, words=1200, classes=8, length=30, state=12),
    "300 kernels, quantiles": partial(
        _generated, datasets.make_gaussian_quantiles, partial(kernels, 20, 15), n_samples=350, n_features=4, n_classes=3
    ),
    "boosted, hastie": partial(_generated, datasets.make_hastie_10_2, boosted, n_samples=400),
}
