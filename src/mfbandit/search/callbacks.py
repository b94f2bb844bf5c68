"""scikit-learn's callbacks in a search: told when the search, each of its fits and the last fit begin and end.

Versions of scikit-learn without callbacks have no ``set_callbacks``; nothing is told then.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

from mfbandit.search.sklearn_types import Estimator, Samples

SEARCH, EVALUATION, REFIT = "search", "candidate-split-evaluation", "refit-with-best-params"  # as GridSearchCV


def supports_callbacks(search: Estimator) -> bool:
    """Return whether scikit-learn, as it is installed, has callbacks."""
    return hasattr(search, "set_callbacks")


def managed_callbacks(search: Estimator) -> AbstractContextManager[None]:
    """Return a context that takes callbacks down at the end of a fit, however it ends."""
    if not supports_callbacks(search):
        return nullcontext()
    from sklearn.callback._callback_support import callback_management_context

    managed: AbstractContextManager[None] = callback_management_context(search)
    return managed


@dataclass(frozen=True, eq=False)
class FitTask:
    """A part of a fit that callbacks are told of; without a context there is nobody to tell.

    Args:
        search: the search.
        context: scikit-learn's context of the part; None for no callbacks.

    >>> with FitTask().running(None, [[1.0]], None):
    ...     pass
    """

    search: Estimator = None
    context: Any = None

    @staticmethod
    def of_fit(search: Estimator) -> "FitTask":
        """Return the task of a whole fit."""
        heard = hasattr(search, "_skl_callbacks") or hasattr(search, "_parent_callback_ctx")
        if not (heard and supports_callbacks(search)):
            return FitTask()
        return FitTask(search, search._init_callback_context(max_subtasks=1 + (search.refit is not False)))

    def part(self, name: str, number: int | None = None) -> "FitTask":
        """Return a part of this task; ``number`` tells it from others that may come in any order."""
        if self.context is None:
            return self
        inside = {"max_subtasks": None, "sequential_subtasks": False} if name == SEARCH else {}
        return FitTask(self.search, self.context.subcontext(task_name=name, task_id=number, **inside))

    @contextmanager
    def running(
        self, inner: Estimator = None, x: Samples = None, y: Samples = None, weights: Samples = None
    ) -> Iterator[None]:
        """Tell callbacks that the task begins and, at the end of the block, that it has ended.

        Args:
            inner: the estimator that is fitted in it, which hears of the callbacks; None for none.
            x: the samples.
            y: the targets.
            weights: of the samples, or None.
        """
        if self.context is None:
            yield
            return
        metadata = None if weights is None else {"sample_weight": weights}
        about = {"estimator": self.search, "X": x, "y": y, "metadata": metadata}
        try:
            with nullcontext() if inner is None else self.context.propagate_callback_context(inner):
                self.context.call_on_fit_task_begin(**about)
                yield
        finally:
            self.context.call_on_fit_task_end(**about)
