"""What a search says of fits that failed, and of candidates that were never tried."""

import warnings
from collections import Counter
from collections.abc import Sequence

import numpy as np
from sklearn.exceptions import FitFailedWarning

from mfbandit._internal.formatting import plain
from mfbandit.errors import InvalidArgument
from mfbandit.search.fit_and_score import FitResult
from mfbandit.search.scheduler import SearchScheduler
from mfbandit.search.scoring import warn_of_missing_scores

LEVEL = 6  # of the caller of fit, as a warning sees it


class WrongDataType(InvalidArgument, TypeError):
    """All candidates raised a TypeError on these data, which is what they would raise without a search."""


def warn_of_failures(scheduler: SearchScheduler, error_score: float | str) -> None:
    """Warn of failed fits and of candidates that were never tried; raise an error if all fits failed.

    Args:
        scheduler: of the search, at its end.
        error_score: what fits that failed were scored by; NaN for nothing.
    """
    results = [trial.outcome for trial in scheduler.trials]
    failures = [one for one in results if one.error is not None]
    experiment, set_aside = scheduler.experiment, list(scheduler.experiment.set_aside)
    arms, tried = len(experiment.arms), experiment.stats.counts.any(axis=0)
    if not results:
        raise InvalidArgument("No fits were performed: the capital is too small")
    if len(failures) == len(results) or not np.delete(tried, set_aside).any():
        types = all(one.is_error("TypeError") for one in failures)
        count = f"All the {len(results)}" if len(failures) == len(results) else f"{len(failures)} of {len(results)}"
        raise (WrongDataType if types else InvalidArgument)(
            f"{count} fits failed, and all {arms} candidates with them. It is very likely that your model is "
            f"misconfigured; error_score='raise' shows the first error.\n{_details(failures)}"
        )
    if failures:
        warnings.warn(
            f"{len(failures)} fits failed out of a total of {len(results)}.\n"
            f"The score on these train-test partitions for these parameters will be set to {error_score}.\n"
            f"{_details(failures)}\n" + "\n".join(scheduler.failures()),
            FitFailedWarning,
            stacklevel=LEVEL,
        )
    _warn_of_untried(scheduler, int((~tried).sum()) - len(set_aside))
    warn_of_missing_scores([one.scores for one in results if one.error is None and one.scores])


def _details(failures: Sequence[FitResult]) -> str:
    """Each error once, with the number of fits that had it."""
    counts = Counter(one.error for one in failures)
    return "\n".join(f"{count} fits failed with the following error:\n{error}" for error, count in counts.items())


def _warn_of_untried(scheduler: SearchScheduler, untried: int) -> None:
    arms, capital = len(scheduler.experiment.arms), scheduler.experiment.capital or 0.0
    if untried > 0 and scheduler.seconds:
        needed = arms * scheduler.fidelities.costs[0]
        warnings.warn(
            f"the capital of {plain(capital, 4)} s was spent before {untried} of {arms} candidates "
            f"were tried; about {plain(needed, 3)} s would pay for one play of each at the lowest fidelity",
            UserWarning,
            stacklevel=LEVEL + 1,
        )


class SearchInterrupted(UserWarning):
    """A search was ended by Ctrl-C."""


def warn_of_interrupt(scheduler: SearchScheduler) -> None:
    """Warn that a search was ended by Ctrl-C, and say what it goes by."""
    experiment = scheduler.experiment
    spent = f"{plain(experiment.spent, 4)} of {plain(experiment.capital or 0.0, 4)}"
    warnings.warn(
        f"the search was interrupted with {spent} spent: the best candidate is that of {len(scheduler.trials)} fits",
        SearchInterrupted,
        stacklevel=LEVEL,
    )
