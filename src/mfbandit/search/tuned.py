"""What came of tuning: the best candidate, how sure that is, what was spent on which, and what failed."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Any

import numpy as np

from mfbandit._internal.formatting import columns, plain, readable
from mfbandit._internal.imports import needed_for
from mfbandit._internal.typing import FloatArray
from mfbandit.execution import Ran, States
from mfbandit.execution.outcomes import Failure
from mfbandit.experiment import Confidence, Experiment
from mfbandit.policies.policy import HasIntervals
from mfbandit.search.optuna_study import optuna_study

ROWS_SHOWN = 5


class Direction(Enum):
    """Whether larger or smaller scores are better."""

    MAXIMIZE = "maximize"
    MINIMIZE = "minimize"

    @property
    def sign(self) -> float:
        """What a score is multiplied with to be a reward.

        >>> Direction.MINIMIZE.sign
        -1.0
        """
        return 1.0 if self is Direction.MAXIMIZE else -1.0


@dataclass(frozen=True)
class Tuned:
    """The result of :func:`~mfbandit.tune`.

    Args:
        candidates: all of them, in the order given or drawn.
        experiment: in memory, with the log of all runs; its arms are the candidates in the order in which they are
            tried first.
        resources: what the objective was given at each fidelity.
        direction: of the scores.
        ran: how the runs went: how many, in how many seconds, and how busy workers were.
        order: the index of the candidate that each arm is.
        states: what runs that resume left behind; None where none do.
        space: that candidates were drawn from; None for a list of candidates.

    >>> from mfbandit.search import tune
    >>> found = tune(lambda config, epochs, seed: -abs(config - 3), [1, 2, 3, 4], fidelities=[1, 3])
    >>> found.best_config, found.best_index, found.best_score
    (3, 2, 0.0)
    """

    candidates: tuple[Any, ...]
    experiment: Experiment
    resources: tuple[Any, ...]
    direction: Direction
    ran: Ran
    order: tuple[int, ...]
    states: States | None = None
    space: Mapping[str, object] | None = None

    @cached_property
    def _best_arm(self) -> int:
        return self.experiment.best()

    @property
    def best_index(self) -> int:
        """The index of the best candidate."""
        return self.order[self._best_arm]

    @property
    def best_config(self) -> Any:  # noqa: ANN401 - whatever a candidate is
        """The best candidate."""
        return self.candidates[self.best_index]

    @property
    def best_score(self) -> float:
        """The mean score of the best candidate at the highest fidelity at which it ran."""
        return float(self._means[self._highest(self._best_arm), self._best_arm])

    @property
    def best_resource(self) -> Any:  # noqa: ANN401 - whatever a resource is
        """The most of the resource that the best candidate ran with."""
        return self.resources[self._highest(self._best_arm)]

    @property
    def best_state(self) -> Any:  # noqa: ANN401 - whatever an objective returned
        """The state that the best candidate's longest training left, such as its model; None where none is kept."""
        return None if self.states is None else self.states.best(self._best_arm)

    @property
    def best_interval(self) -> tuple[float, float]:
        """(lower, upper) 95 % interval of the best candidate's expected score at the last fidelity.

        It is the policy's own, and not a guarantee; (−∞, ∞) for a policy that has none.
        """
        policy = self.experiment.policy
        if not isinstance(policy, HasIntervals):
            return -np.inf, np.inf
        ends = policy.intervals(self.experiment.stats, self.experiment.fidelities)
        low, high = sorted(self.direction.sign * float(end[self._best_arm]) for end in ends)
        return low, high

    @property
    def confidence(self) -> Confidence:
        """How sure it is that no other candidate is better; see :meth:`mfbandit.Experiment.confidence`."""
        return self.experiment.confidence()

    @property
    def spent(self) -> float:
        """What all runs cost."""
        return self.experiment.spent

    @property
    def capital(self) -> float:
        """What they could cost."""
        return self.experiment.capital or np.inf

    @property
    def failures(self) -> tuple[Failure, ...]:
        """The runs that failed in this call, each with its play and its error."""
        return self.ran.failures

    @cached_property
    def table(self) -> list[dict[str, Any]]:
        """A row for each candidate: what ran, what it scored, what it cost; in the order of the candidates.

        ``score`` is the mean at ``resource``, the most that it ran with; None where it has no result. Scores with
        different resources are not comparable. ``set_aside`` is True after three failures in a row.
        """
        stats, history = self.experiment.stats, self.experiment.history
        spent = np.bincount(history.arms, history.costs, minlength=len(self.order))
        rows: list[dict[str, Any]] = [{}] * len(self.order)
        for arm, k in enumerate(self.order):
            top, ran = self._highest(arm), bool(stats.counts[:, arm].any())
            rows[k] = {
                "candidate": self.experiment.arms[arm],
                "config": self.candidates[k],
                "resource": self.resources[top] if ran else None,
                "score": float(self._means[top, arm]) if ran else None,
                "runs": int(stats.results[:, arm].sum()),
                "spent": float(spent[arm]),
                "set_aside": arm in self.experiment.set_aside,
            }
            for m, label in enumerate(self.experiment.fidelities.labels):
                rows[k][f"runs_at_{label}"] = int(stats.results[m, arm])
                rows[k][f"score_at_{label}"] = float(self._means[m, arm]) if stats.counts[m, arm] else None
        return rows

    def frame(self) -> Any:  # noqa: ANN401 - pandas is optional
        """Return the table as a DataFrame of pandas, with a column ``param_NAME`` for each setting."""
        with needed_for("frame"):
            import pandas as pd
        settings = [
            {f"param_{key}": value for key, value in row["config"].items()} if isinstance(row["config"], dict) else {}
            for row in self.table
        ]
        return pd.DataFrame([row | more for row, more in zip(self.table, settings, strict=True)])

    def study(self) -> Any:  # noqa: ANN401 - Optuna is optional
        """Return a study of Optuna with a trial for each candidate that ran; its value is the mean score.

        A candidate that has not run at the last fidelity is a pruned trial. One that only failed is a failed trial.
        """
        scores = [f"score_at_{label}" for label in self.experiment.fidelities.labels]
        rows = [row | {"scores": [row[name] for name in scores]} for row in self.table]
        return optuna_study(rows, self.resources, self.direction.value, self.space)

    def __str__(self) -> str:
        low, high = self.best_interval
        name = self.experiment.arms[self._best_arm]
        lines = [f"best: {name}", f"score {readable(self.best_score)} with {self.best_resource}"]
        if np.isfinite(high - low) and readable(low) != readable(high):
            lines[1] += f" (with {self.resources[-1]} {readable(low)} to {readable(high)} at 95 %)"
        done = f"spent {plain(self.spent, 4)} of {plain(self.capital, 4)} in {self.ran.told:,} runs"
        lines.append(f"{done}, {len(self.failures):,} failed" if self.failures else done)
        return "\n".join([*lines, "", *self._best_rows()])

    def _best_rows(self) -> list[str]:
        rows = sorted((row for row in self.table if row["score"] is not None), key=self._rank)[:ROWS_SHOWN]
        cells = [
            (row["candidate"], str(row["resource"]), readable(row["score"]), str(row["runs"]), readable(row["spent"]))
            for row in rows
        ]
        return columns([("candidate", "resource", "score", "runs", "spent"), *cells])

    def _rank(self, row: dict[str, Any]) -> tuple[int, float]:
        return -self.resources.index(row["resource"]), -self.direction.sign * row["score"]

    def _highest(self, arm: int) -> int:
        """The highest fidelity with a result of an arm."""
        return int(np.flatnonzero(self.experiment.stats.counts[:, arm]).max(initial=0))

    @cached_property
    def _means(self) -> FloatArray:
        """Mean scores, shape (M, K)."""
        means: FloatArray = self.direction.sign * self.experiment.stats.means + 0.0
        return means
