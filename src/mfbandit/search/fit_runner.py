"""Makes the fits of plays, or finds those that were made before."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils.parallel import delayed

from mfbandit.core import Play
from mfbandit.search.callbacks import EVALUATION, FitTask
from mfbandit.search.candidates import Candidate
from mfbandit.search.estimator_training import Resuming, train
from mfbandit.search.fit_and_score import FitResult, SearchData, fit_and_score
from mfbandit.search.kept_fits import FitsInMemory, KeptFits
from mfbandit.search.rungs import Rungs
from mfbandit.search.sklearn_types import Estimator, Samples
from mfbandit.search.splits import Splits

RunParallel = Callable[[Iterable[object]], Iterable[FitResult]]
"""What joblib's ``Parallel`` is: makes delayed calls and gives their results in order."""


@dataclass(frozen=True)
class Fit:
    """A fit that is to be made.

    Args:
        play: what asked for it.
        split: the number of its split.
        name: under which it is kept.
        before: the name of the one that it goes on from; None for none.
    """

    play: Play
    split: int
    name: str
    before: str | None


class FitRunner:
    """Makes the fits of plays: each with its candidate, on the samples of its split.

    Args:
        candidates: the arms.
        rungs: the fidelities.
        splits: of the data.
        data: what every fit shares.
        seed: of candidates without one of their own; None leaves them unseeded.
        fit_params: further arguments of ``fit`` for each candidate.
        resume: whether training goes on from an earlier play.
        kept: where fits are kept; by default in memory, as far as training goes on from them.
    """

    def __init__(
        self,
        candidates: list[Candidate],
        rungs: Rungs,
        splits: Splits,
        data: SearchData,
        seed: int | None,
        fit_params: Sequence[dict[str, Any]],
        *,
        resume: bool = False,
        kept: KeptFits | None = None,
    ) -> None:
        self.candidates, self.rungs, self.data, self.fit_params = candidates, rungs, data, fit_params
        self._splits, self._seed, self._begun = splits, seed, 0
        self._resuming = Resuming(rungs) if resume else None
        self._kept: KeptFits = FitsInMemory() if kept is None else kept
        self._names: dict[tuple[int, int, int], str] = {}  # of arm, fidelity and split

    def build_estimator(self, arm: int, fidelity: int, split: int) -> Estimator:
        """Return an unfitted candidate; all candidates have the same seed for a split."""
        seed = None
        if self._seed is not None:
            mixed = np.random.SeedSequence([self._seed, 1, split]).generate_state(1)
            seed = int(mixed[0]) >> 1  # 31 bits: some libraries keep a signed number of 32
        return self.candidates[arm].build(seed, **self.rungs.settings(fidelity))

    def train_whole(self, estimator: Estimator, x: Samples, y: Samples, params: dict[str, Any]) -> None:
        """Train an estimator on all samples with all of the resource."""
        train(estimator, x, y, params, passes=self.rungs.passes(-1), targets=y)

    def run(self, asked: Sequence[tuple[Play, int]], parallel: RunParallel, search: FitTask) -> Iterator[FitResult]:
        """Fit and score the plays of a round, given with the numbers of their splits; results in the same order."""
        fits = [self._fit(play, split) for play, split in asked]
        found = [self._kept.result(one.name) for one in fits]
        tasks = [search.part(EVALUATION, self._begun + number) for number in range(len(asked))]
        self._begun += len(asked)
        missing = [pair for pair, result in zip(zip(fits, tasks, strict=True), found, strict=True) if result is None]
        made = iter(parallel(self._delayed(one, task) for one, task in missing) if missing else ())
        for one, known in zip(fits, found, strict=True):
            if known is not None:
                yield known
                continue
            result = next(made)
            self._kept.keep(one.name, replace(result, fitted=None), result.fitted, one.before)
            yield replace(result, fitted=None)
        next(made, None)  # joblib takes no more work before it has said that there is no more result

    def drop(self, arms: Iterable[int]) -> None:
        """Drop what was trained of candidates that are out."""
        out = set(arms)
        for place in [place for place in self._names if place[0] in out]:
            self._kept.drop(self._names.pop(place))

    def _fit(self, play: Play, split: int) -> Fit:
        before = None if play.resume_from is None else self._names[play.arm, play.resume_from, split]
        place = (play.arm, play.fidelity, split)
        self._names[place] = self._kept.name(
            place,
            lambda: (
                self.build_estimator(*place),
                self._splits.sample(split, self.rungs.fraction(play.fidelity)),
                self.fit_params[play.arm],
                self.rungs.passes(play.fidelity),
                before,
            ),
        )
        return Fit(play, split, self._names[place], before)

    def _delayed(self, one: Fit, task: FitTask) -> object:
        arm, m = one.play.arm, one.play.fidelity
        estimator, start = self._begun_or_built(one)
        goes_on = self._resuming is not None and m + 1 < len(self.rungs.values)
        return delayed(fit_and_score)(
            estimator,
            replace(self.data, fit_params=self.fit_params[arm], keeps=goes_on),
            *self._splits.sample(one.split, self.rungs.fraction(m)),
            task,
            self.rungs.passes(m, start),
        )

    def _begun_or_built(self, one: Fit) -> tuple[Estimator, int | None]:
        """The estimator that a play trains, and the fidelity to which it is trained already."""
        play, resuming = one.play, self._resuming
        if resuming is None:
            return self.build_estimator(play.arm, play.fidelity, one.split), None
        trained = None if one.before is None else self._kept.estimator(one.before)
        if trained is not None and play.resume_from is not None:
            resuming.go_on(trained, play.resume_from, play.fidelity)
            return trained, play.resume_from
        fresh = self.build_estimator(play.arm, play.fidelity, one.split)
        if resuming.begins_with:
            fresh.set_params(**resuming.begins_with)
        return fresh, None
