"""Train and test parts without end, and nested, stratified samples of the training part."""

import warnings
from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.model_selection import KFold, StratifiedKFold, TimeSeriesSplit, check_cv
from sklearn.utils.multiclass import type_of_target

from mfbandit._internal.typing import IntArray
from mfbandit.errors import InvalidArgument
from mfbandit.search.sklearn_types import Samples, Splitter

SINGLE_LABEL_TARGETS = ("binary", "multiclass")
ROUNDING = 1e-9  # of a number of rows
EQUAL_SIZES = 1.25  # ratio of the largest training part to the smallest up to which splits keep their order


def nested_order(labels: ArrayLike, rng: np.random.Generator) -> IntArray:
    r"""Order n samples so that every beginning of the order is a stratified sample.

    Of class c, with n_c of the n samples, the first s hold s·n_c/n samples, give or take 1 + C·n_c/n, where C is the
    number of classes; and from s = C on at least one. A beginning is part of every longer one: samples are nested.

    Args:
        labels: the class of each sample; shape (n,). All equal where nothing is to be stratified.
        rng: shuffles samples within classes.

    Returns:
        Positions 0 to n − 1, shape (n,).

    >>> labels = np.array(["rare"] + ["usual"] * 7)
    >>> order = nested_order(labels, np.random.default_rng(0))
    >>> sorted(labels[order[:2]].tolist())
    ['rare', 'usual']
    """
    shuffled = np.random.Generator.permutation(rng, len(np.asarray(labels)))
    _, codes, sizes = np.unique(np.asarray(labels)[shuffled], return_inverse=True, return_counts=True)
    ranks = np.empty(len(codes), dtype=np.int64)
    ranks[np.argsort(codes, kind="stable")] = np.concatenate([np.arange(size) for size in sizes])
    place = (ranks + 0.5) / sizes[codes]  # each class is spread evenly over the order,
    return np.asarray(shuffled[np.lexsort((place, ranks > 0))])  # after one sample of each


class Splits:
    """Numbered splits of some data, without end: all candidates are compared on the same ones.

    A splitter's own splits come first. Where it shuffles, and for a number of folds, each further round is shuffled
    anew. A splitter that does not shuffle has no more than its own, which come again (``max_splits``). Where its
    training parts differ in size, as those of a time series do, the largest come first (:meth:`number`).

    Args:
        cv: a splitter, an iterable of splits, a number of folds or None for five.
        x: the samples.
        y: the targets, or None.
        classifier: whether samples are stratified by ``y``.
        seed: of all shuffles.
        arguments: further arguments of the splitter, such as groups.

    >>> splits = Splits(2, np.zeros((8, 1)), np.array([0, 1] * 4), classifier=True, seed=0)
    >>> splits.n_splits, splits.max_splits, splits.min_samples
    (2, None, 2)
    >>> train, test = splits.sample(5, 0.5)
    >>> len(train), len(test)
    (2, 4)
    """

    def __init__(
        self,
        cv: Splitter,
        x: Samples,
        y: Samples,
        *,
        classifier: bool,
        seed: int,
        arguments: Mapping[str, Any] | None = None,
    ) -> None:
        self._x, self._y, self._seed, self._arguments = x, y, seed, arguments or {}
        self._given = check_cv(cv, y, classifier=classifier)
        self._folds = cv is None or isinstance(cv, int | np.integer)
        self.n_splits = int(self._given.get_n_splits(x, y, **self._arguments))
        if self.n_splits < 1:
            raise InvalidArgument(
                f"No fits were performed. Was the CV iterator empty? Were there no candidates? "
                f"cv must give at least one split, got {cv!r}"
            )
        self._rounds: dict[int, list[tuple[IntArray, IntArray]]] = {}
        sizes = [len(train) for train, _ in self._round(0)]
        self.training_size, self.test_size = max(sizes), min(len(test) for _, test in self._round(0))
        differ = not self._shuffles and max(sizes) > EQUAL_SIZES * min(sizes)
        self._sequence = sorted(range(self.n_splits), key=lambda j: -sizes[j] if differ else j)
        self._orders: dict[int, IntArray] = {}
        stratified = classifier and y is not None and type_of_target(y) in SINGLE_LABEL_TARGETS
        self._labels = np.asarray(y).ravel() if stratified else None
        self.min_samples = max(2, len(np.unique(self._labels))) if self._labels is not None else 2

    @property
    def max_splits(self) -> int | None:
        """How many different splits there are; None where there is no end."""
        return None if self._shuffles else self.n_splits

    def number(self, i: int) -> int:
        """Return the number of the split that the i-th play of a candidate is on.

        >>> rows = np.zeros((12, 1))
        >>> splits = Splits(TimeSeriesSplit(3), rows, None, classifier=False, seed=0)
        >>> [splits.number(i) for i in range(3)]
        [2, 1, 0]
        """
        round_, j = divmod(i, self.n_splits)
        return round_ * self.n_splits + self._sequence[j]

    @property
    def total(self) -> float:
        """The training samples of all first splits together, in units of the largest training part."""
        return sum(len(train) for train, _ in self._round(0)) / self.training_size

    def share(self, i: int, fraction: float) -> float:
        """Return how many samples a fit on a fraction of split i sees, in units of the largest training part.

        >>> splits = Splits(TimeSeriesSplit(2), np.zeros((9, 1)), None, classifier=False, seed=0)
        >>> splits.share(0, 1.0), splits.share(1, 1.0), splits.share(1, 0.5)
        (0.5, 1.0, 0.5)
        """
        round_, j = divmod(i, self.n_splits)
        train, _ = self._round(round_)[j]
        return self._size(len(train), fraction) / self.training_size

    def sample(self, i: int, fraction: float) -> tuple[IntArray, IntArray]:
        """Return a fraction of the training part of split i, and the whole test part.

        The sample for a smaller fraction is part of the one for a larger. Further rounds of the same splits have other
        samples of them. Of a time series it is the most recent part.

        >>> splits = Splits(3, np.zeros((9, 1)), None, classifier=False, seed=0)
        >>> small, large = splits.sample(0, 0.34)[0], splits.sample(0, 0.7)[0]
        >>> len(small), len(large), set(small.tolist()) <= set(large.tolist())
        (2, 4, True)
        """
        round_, j = divmod(i, self.n_splits)
        train, test = self._round(round_)[j]
        if fraction == 1:
            return train, test
        size = self._size(len(train), fraction)
        return np.sort(train[self._order(i, train)[:size]]), test

    def _size(self, rows: int, fraction: float) -> int:
        return max(min(self.min_samples, rows), int(fraction * rows * (1 + ROUNDING)))

    @property
    def _shuffles(self) -> bool:
        return self._folds or (hasattr(self._given, "random_state") and getattr(self._given, "shuffle", True))

    def _round(self, number: int) -> list[tuple[IntArray, IntArray]]:
        if not self._shuffles:
            number = 0  # a splitter with hidden randomness is asked once, so that all candidates see the same
        if number not in self._rounds:
            found = list(self._splitter(number).split(self._x, self._y, **self._arguments))
            if len(found) != self.n_splits:
                raise InvalidArgument(
                    f"cv.split and cv.get_n_splits return inconsistent results. Expected {self.n_splits} splits, "
                    f"got {len(found)}"
                )
            self._rounds[number] = [(_indices(train), _indices(test)) for train, test in found]
        return self._rounds[number]

    def _splitter(self, number: int) -> Splitter:
        if not self._shuffles:
            return self._given
        seed = int(np.random.SeedSequence([self._seed, number]).generate_state(1)[0])
        if self._folds:
            kind = StratifiedKFold if isinstance(self._given, StratifiedKFold) else KFold
            return kind(self.n_splits, shuffle=True, random_state=seed)
        splitter = copy(self._given)
        if number or not isinstance(splitter.random_state, int | np.integer):
            splitter.random_state = seed
        return splitter

    def _order(self, i: int, train: IntArray) -> IntArray:
        if i not in self._orders:
            self._orders[i] = self._new_order(i, train)
        return self._orders[i]

    def _new_order(self, i: int, train: IntArray) -> IntArray:
        if isinstance(self._given, TimeSeriesSplit):
            return np.arange(len(train))[::-1]
        labels = np.zeros(len(train)) if self._labels is None else self._labels[train]
        return nested_order(labels, np.random.default_rng([self._seed, i]))


def _indices(given: ArrayLike) -> IntArray:
    found = np.asarray(given)
    return np.flatnonzero(found) if found.dtype == np.bool_ else found.astype(np.int64)


def raise_small_fractions(fractions: Sequence[float], training_size: int, min_samples: int) -> tuple[float, ...]:
    """Raise fractions that would leave fewer than ``min_samples`` training samples, with a warning.

    >>> raise_small_fractions((0.25, 1.0), training_size=100, min_samples=3)
    (0.25, 1.0)
    """
    smallest = min(1.0, min_samples / training_size)
    raised = tuple(sorted({max(fraction, smallest) for fraction in fractions}))
    if min(fractions) < smallest:
        warnings.warn(
            f"a fraction of {min(fractions):g} of {training_size} training samples is fewer than {min_samples}, one "
            f"for each class and two at least; fractions below {smallest:.4g} were raised to it: "
            f"{[round(f, 4) for f in raised]}",
            UserWarning,
            stacklevel=3,
        )
    return raised
