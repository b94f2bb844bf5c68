"""Train and test parts without end, and nested, stratified samples of the training part."""

import warnings
from collections.abc import Sequence
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.model_selection import KFold, StratifiedKFold, TimeSeriesSplit, check_cv
from sklearn.utils.multiclass import type_of_target

from mfbandit._internal.typing import IntArray
from mfbandit.errors import InvalidArgument

ONE_LABEL_EACH = ("binary", "multiclass")


def nested_order(labels: ArrayLike, rng: np.random.Generator) -> IntArray:
    r"""An order of n samples of which every beginning is a stratified sample.

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
    return np.asarray(shuffled[np.lexsort((place, ranks > 0))])  # behind one sample of each


class Splits:
    """Split number i of some data, for any i: all candidates are compared on the same ones.

    A splitter's own splits come first. Where it shuffles, and for a number of folds, each further round is shuffled
    anew; a splitter that does not shuffle has no more than its own, which come again (``limit``).

    Args:
        cv: a splitter, an iterable of splits, a number of folds or None for five.
        x: the samples.
        y: what is to be predicted, or None.
        classifier: whether samples are stratified by ``y``.
        seed: of all shuffles.
        arguments: what the splitter wants besides, such as groups.

    >>> splits = Splits(2, np.zeros((8, 1)), np.array([0, 1] * 4), classifier=True, seed=0)
    >>> splits.number, splits.limit, splits.least
    (2, None, 2)
    >>> train, test = splits.sample(5, 0.5)
    >>> len(train), len(test)
    (2, 4)
    """

    def __init__(
        self,
        cv: Any,  # noqa: ANN401 - scikit-learn has no types
        x: Any,  # noqa: ANN401
        y: Any,  # noqa: ANN401
        *,
        classifier: bool,
        seed: int,
        arguments: dict[str, Any] | None = None,
    ) -> None:
        self._x, self._y, self._seed, self._arguments = x, y, seed, arguments or {}
        self._given = check_cv(cv, y, classifier=classifier)
        self._folds = cv is None or isinstance(cv, int | np.integer)
        self.number = int(self._given.get_n_splits(x, y, **self._arguments))
        if self.number < 1:
            raise InvalidArgument(f"cv must give at least one split, got {cv!r}")
        self._rounds: dict[int, list[tuple[IntArray, IntArray]]] = {}
        self._orders: dict[int, IntArray] = {}
        stratified = classifier and y is not None and type_of_target(y) in ONE_LABEL_EACH
        self._labels = np.asarray(y).ravel() if stratified else None
        self.least = max(2, len(np.unique(self._labels))) if self._labels is not None else 2

    @property
    def limit(self) -> int | None:
        """How many different splits there are; None where there is no end."""
        return None if self._shuffles else self.number

    @property
    def training(self) -> int:
        """The smallest number of training samples of the first splits."""
        return min(len(train) for train, _ in self._round(0))

    def sample(self, i: int, fraction: float) -> tuple[IntArray, IntArray]:
        """A fraction of the training part of split i, and the whole test part.

        The sample for a smaller fraction is part of the one for a larger. Further rounds of the same splits have other
        samples of them. Of a time series it is the most recent part.

        >>> splits = Splits(3, np.zeros((9, 1)), None, classifier=False, seed=0)
        >>> small, large = splits.sample(0, 0.34)[0], splits.sample(0, 0.7)[0]
        >>> len(small), len(large), set(small.tolist()) <= set(large.tolist())
        (2, 4, True)
        """
        round_, j = divmod(i, self.number)
        train, test = self._round(round_)[j]
        if fraction == 1:
            return train, test
        size = max(min(self.least, len(train)), round(fraction * len(train)))
        return np.sort(train[self._order(i, train)[:size]]), test

    @property
    def _shuffles(self) -> bool:
        return self._folds or (hasattr(self._given, "random_state") and getattr(self._given, "shuffle", True))

    def _round(self, number: int) -> list[tuple[IntArray, IntArray]]:
        if not self._shuffles:
            number = 0  # a splitter with hidden randomness is asked once, so that all candidates see the same
        if number not in self._rounds:
            found = list(self._splitter(number).split(self._x, self._y, **self._arguments))
            self._rounds[number] = [(_indices(train), _indices(test)) for train, test in found]
        return self._rounds[number]

    def _splitter(self, number: int) -> Any:  # noqa: ANN401
        if not self._shuffles:
            return self._given
        seed = int(np.random.SeedSequence([self._seed, number]).generate_state(1)[0])
        if self._folds:
            kind = StratifiedKFold if isinstance(self._given, StratifiedKFold) else KFold
            return kind(self.number, shuffle=True, random_state=seed)
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


def raised(fractions: Sequence[float], training: int, least: int) -> tuple[float, ...]:
    """Fractions that leave at least ``least`` of the ``training`` samples, with a warning where one had to grow.

    >>> raised((0.25, 1.0), training=100, least=3)
    (0.25, 1.0)
    """
    floor = min(1.0, least / training)
    kept = tuple(sorted({max(fraction, floor) for fraction in fractions}))
    if min(fractions) < floor:
        warnings.warn(
            f"a fraction of {min(fractions):g} of {training} training samples is fewer than {least}, one for each "
            f"class and two at least; fractions below {floor:.4g} were raised to it: {[round(f, 4) for f in kept]}",
            UserWarning,
            stacklevel=3,
        )
    return kept
