"""MFSearchCV: scikit-learn's model selection, paid for in capital instead of trials."""

import math
import os
import time
from collections.abc import Sequence
from contextlib import ExitStack
from copy import copy, deepcopy
from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.metrics._scorer import _MultimetricScorer
from sklearn.model_selection._search import BaseSearchCV
from sklearn.utils import check_random_state, indexable
from sklearn.utils._metadata_requests import _routing_enabled
from sklearn.utils.metadata_routing import MethodMapping
from sklearn.utils.validation import _check_method_params, check_is_fitted

from mfbandit._internal.formatting import plain
from mfbandit._internal.typing import IntArray
from mfbandit._internal.validation import flag, number, positive, whole
from mfbandit.core import Concentration, Fidelities, SubGaussian, bounds_table
from mfbandit.errors import InvalidArgument
from mfbandit.policies import MFTopTwo, Policy
from mfbandit.search.callbacks import REFIT, SEARCH, FitTask, managed_callbacks
from mfbandit.search.candidates import (
    Candidate,
    check_resource,
    list_candidates,
    representative_estimator,
    sampled_settings,
    trains_by_passes,
)
from mfbandit.search.cv_results import cv_results, in_given_order, metric_names
from mfbandit.search.estimator_training import Resuming
from mfbandit.search.failures import warn_of_failures
from mfbandit.search.fit_and_score import SearchData
from mfbandit.search.fit_runner import FitRunner
from mfbandit.search.kept_fits import Checkpoint
from mfbandit.search.mlflow_runs import logged_to_mlflow
from mfbandit.search.results_table import report, spending_picture
from mfbandit.search.rounds import spend_capital
from mfbandit.search.rungs import SAMPLES, Rungs, checked_rungs
from mfbandit.search.scheduler import PlannedSplits, SearchScheduler
from mfbandit.search.scoring import ONE_METRIC, deciding_metric, scorer_of
from mfbandit.search.sklearn_types import (
    Estimator,
    ParamDistributions,
    ParamGrid,
    RandomState,
    Refit,
    Samples,
    Scorer,
    Splitter,
)
from mfbandit.search.splits import Splits, raise_small_fractions

DEFAULT_FRACTIONS = (1 / 16, 1 / 4, 1.0)
DEFAULT_CAPITAL_SHARE = 0.75  # of one full fit of every candidate
DEFAULT_CAPITAL_ROUNDS = 2  # of a candidate's splits that the default capital pays for at least
GRID = "grid"  # as capital: what GridSearchCV would take
COSTS = ("samples", "seconds")
LEVEL = 0.95  # of what is said about the best candidate


class MFSearchCV(BaseSearchCV):  # type: ignore[misc]
    r"""A search that fits candidates on small samples first, and on large ones only where small ones cannot tell.

    A candidate is an arm. A play is one fit-and-score on one train/test split, with a fraction of the training samples
    (a fidelity); the score is the reward. It costs its fraction of a full fit: a capital of 40 pays for 40 fits on all
    training samples, or for 640 on a sixteenth of them. A policy of the package decides where the capital goes.

    The i-th play of every candidate at a fidelity is on the same split, so that candidates are compared on equal
    terms; of a time series the largest window comes first, and a play costs the rows that it fits. Each further play is
    on a new split. All candidates have a round of splits with all samples before one of them begins another. Samples
    are stratified for classifiers, and nested: the one at a smaller fraction is part of the one at a larger. The test
    part is always whole. With a number of folds as ``cv``, and with a splitter that shuffles, splits never end: after
    its own, new shuffles follow. A splitter that does not shuffle has no more than its own: a candidate that has seen
    them all with all training samples has the score that GridSearchCV would give it, and is retired. Groups decide what
    is trained and what is tested on, as the splitter says; samples for small fractions are drawn from rows, not from
    whole groups.

    A policy that models scores, as the default does, is shown them without split effects: what a split did to all
    candidates. Scores far below the median are shown as a minimum score. Of two candidates whose scores are equal in
    three plays, and on 300 test samples, the second is retired. If scores differ more between the first two splits than
    between the better candidates, the better half has two plays in the sweep.

    A fit that fails or scores NaN is a failed play, at the same cost. With a policy that models scores, the candidate
    is played one fidelity higher then. Three failures in a row set it aside, and it is never the best.

    **Reproducible**: with a ``random_state`` and ``n_jobs=1`` the result is always the same, and every
    ``random_state=None`` of a candidate is given a seed. Plays are asked for in rounds of ``batch``, each of which
    waits for all its fits. With ``batch`` fixed the result is the same for any ``n_jobs`` and backend. By default it is
    the number of workers, and the result depends on that number. With ``cost="seconds"`` the result depends on the
    clock.

    Args:
        estimator: the estimator whose parameters ``param_grid`` sets; None where candidates are estimators themselves.
        param_grid: names of parameters and the values to try, as for GridSearchCV.
        param_distributions: instead of a grid, values or distributions (with ``rvs``) to draw settings from, as for
            RandomizedSearchCV.
        n_iter: how many settings are drawn from them.
        candidates: instead of both, a list of settings (dictionaries), of estimators, or of (name, estimator) pairs; or
            a ``ParameterGrid`` or ``ParameterSampler`` of scikit-learn.
        fractions: of the training samples, increasing and ending at 1; the fidelities. One that is too small to hold
            a sample of each class is raised, with a warning. By default those of 1/16, 1/4 and 1 that the policy
            will use with this capital.
        resource: "n_samples", or a parameter that makes a fit cheap when it is small, such as "n_estimators"; or
            "epochs": how often ``partial_fit`` sees the training samples.
        values: of that parameter, increasing; they are the fidelities then, each at its share of the last one's cost.
        resume: whether a candidate that was trained to 10 trees or epochs goes on to 40, and pays for 30. It needs
            ``warm_start``, or the resource "epochs". Each training is on one split.
        policy: the rule that picks plays; by default :class:`~mfbandit.MFTopTwo` with this capital, which needs no
            biases. With little capital it may try some of the candidates only, drawn at random.
        biases: ζ of each fidelity: how far a candidate's expected score may lie from that with all samples; the last
            is 0. For policies that need them.
        capital: what all plays may cost: in full fits, or in seconds; or "grid" for a full fit of each candidate on
            each of the splitter's splits, and no more, as GridSearchCV makes. By default three quarters of a full fit
            of each candidate, at least two rounds of splits of one candidate, at most what GridSearchCV would take.
        cost: "samples", or "seconds": a play costs what fitting and scoring took, and what a fidelity costs is
            estimated from the fits so far.
        scoring: one metric, by name or as a function (estimator, X, y); by default the estimator's own score. Or
            several: a list of names, a dictionary of metrics, or a function that returns a dictionary of scores.
        cv: a number of folds (5 by default), a splitter or an iterable of splits.
        refit: whether to fit the best candidate on all samples, and so be able to predict. With several metrics the
            name of the one that decides; or a function of ``cv_results_`` that returns the index of the best. Then, and
            with False, the first metric decides where the capital goes.
        n_jobs: fits at the same time; joblib's backends and settings apply.
        batch: plays in a round; by default as many as there are workers.
        noise: σ of the scores, or a concentration; by default learned from how scores differ between splits.
        random_state: of splits, samples, candidates and settings that are drawn.
        error_score: NaN to take a fit that raises for a failed play, a number to score it so, "raise" to raise.
        return_train_score: whether to score each fit on its training samples as well.
        checkpoint: a file that keeps each fit at once. The same search with the same file goes on where it was
            killed, with the same result for one worker. A search with more capital or candidates takes from it what
            was fitted before. Without a ``random_state`` the file keeps the seed.
        verbose: 1 shows how much of the capital is spent, and the best so far; 2 also each fit when it ends, and 3 its
            score.

    Attributes:
        cv_results_: a dictionary of columns as in scikit-learn, besides those for each fidelity; see
            :func:`~mfbandit.search.cv_results.cv_results` on scores and ranks.
        best_index_, best_params_, best_score_, best_estimator_: of the best candidate. Where ``refit`` is a function,
            there is no ``best_score_``.
        metric_: the name of the metric that decided; "score" where there is one.
        best_interval_: (lower, upper) bound on its expected score with all training samples; bounds of candidates in
            ``cv_results_`` are for comparing them on the same splits, and narrower.
        confidence_: how sure it is that no other candidate is better; a :class:`~mfbandit.Confidence`, an estimate
            unless ``noise`` is given. Candidates are numbered as in ``cv_results_``.
        stopped_early_: whether the best candidate's lower bound passed all others' upper bounds before the end, or a
            policy such as :class:`~mfbandit.MFSure` decided.
        interrupted_: whether Ctrl-C ended the search. What was scored until then is kept, and the best is fitted.
        spent_: of the capital.
        capital_: what there was to spend.
        plays_: every :class:`~mfbandit.search.fit_and_score.Trial`, in order.
        experiment_: the :class:`~mfbandit.Experiment`, with its log; its arms are the candidates in the order in which
            they are tried first: a random one where the capital may not reach all of them.
        audit_: the :class:`~mfbandit.core.audit.Audit` of the biases, None where there are none.
        fidelities_: the :class:`~mfbandit.Fidelities`, with learned costs and noise.
        n_splits_, refit_time_, scorer_, multimetric_, classes_, n_features_in_, feature_names_in_: as in scikit-learn.

    >>> from sklearn.datasets import load_iris
    >>> from sklearn.svm import SVC
    >>> X, y = load_iris(return_X_y=True)
    >>> search = MFSearchCV(SVC(), {"C": [1e-3, 1.0], "gamma": [0.01, 0.1]}, fractions=(0.25, 1), random_state=0)
    >>> search.fit(X, y).best_params_
    {'C': 1.0, 'gamma': 0.1}
    >>> search.spent_ <= search.capital_
    True
    """

    def __init__(  # noqa: PLR0913 - scikit-learn's estimators take all their parameters here
        self,
        estimator: Estimator = None,
        param_grid: ParamGrid = None,
        *,
        param_distributions: ParamDistributions = None,
        n_iter: int = 10,
        candidates: Sequence[Any] | None = None,
        fractions: Sequence[float] | None = None,
        resource: str | None = None,
        values: Sequence[Any] | None = None,
        policy: Policy | None = None,
        biases: Sequence[float] | None = None,
        capital: float | str | None = None,
        cost: str = "samples",
        scoring: Scorer = None,
        cv: Splitter = None,
        refit: Refit = True,
        n_jobs: int | None = None,
        batch: int | None = None,
        noise: float | Concentration | None = None,
        random_state: RandomState = None,
        error_score: float | str = math.nan,
        return_train_score: bool = False,
        resume: bool = False,
        checkpoint: str | os.PathLike[str] | None = None,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.param_grid = param_grid
        self.param_distributions = param_distributions
        self.n_iter = n_iter
        self.candidates = candidates
        self.fractions = fractions
        self.resource = resource
        self.values = values
        self.policy = policy
        self.biases = biases
        self.capital = capital
        self.cost = cost
        self.scoring = scoring
        self.cv = cv
        self.refit = refit
        self.n_jobs = n_jobs
        self.batch = batch
        self.noise = noise
        self.random_state = random_state
        self.error_score = error_score
        self.return_train_score = return_train_score
        self.resume = resume
        self.checkpoint = checkpoint
        self.verbose = verbose

    def fit(self, X: Samples, y: Samples = None, **params: object) -> "MFSearchCV":  # noqa: N803 - scikit-learn's name
        """Spend the capital on plays, choose the best candidate and fit it on all samples.

        Args:
            X: samples; shape (n, features), or whatever the candidates take.
            y: targets; shape (n,) or (n, outputs), or None.
            params: further arguments of the candidates' ``fit`` and the splitter, such as ``sample_weight`` and
                ``groups``.
        """
        rungs = self._checked_arguments()
        with ExitStack() as stack:
            stack.enter_context(logged_to_mlflow(self))
            stack.enter_context(managed_callbacks(self))
            kept = None if self.checkpoint is None else stack.enter_context(Checkpoint(self.checkpoint))
            return self._fit(X, y, params, rungs, kept)

    def _fit(
        self, x: Samples, y: Samples, params: dict[str, Any], rungs: Rungs, kept: Checkpoint | None
    ) -> "MFSearchCV":
        given = self.random_state if self.random_state is not None or kept is None else kept.seed
        state = check_random_state(given)
        seed = int(state.randint(2**31 - 1))
        listed = self._with_drawn_settings(given if given is not None else state)
        candidates = list_candidates(listed.estimator, listed.param_grid, listed.candidates)
        rungs = self._trained(rungs, candidates)
        names = _routing_names(candidates) if _routing_enabled() else ()
        scorer, _ = self._get_scorers()
        x, y = indexable(x, y)
        routed = listed._get_routed_params_for_fit(_check_method_params(x, params=params))
        whole_fit = FitTask.of_fit(self)
        with whole_fit.running(None, x, y, params.get("sample_weight")):
            classifier = is_classifier(self._representative)
            splits = Splits(self.cv, x, y, classifier=classifier, seed=seed, arguments=routed.splitter.split)
            if rungs.resource == SAMPLES:
                rungs = Rungs(SAMPLES, raise_small_fractions(rungs.values, splits.training_size, splits.min_samples))
            capital = self._checked_capital(len(candidates), rungs, splits)
            rungs = self._used_rungs(rungs, len(candidates), capital)
            order = self._order(rungs, len(candidates), capital, seed)
            candidates = [candidates[k] for k in order]
            fit_params = [routed[names[k]].fit if names else routed.estimator.fit for k in order]
            data = SearchData(
                x, y, scorer, {}, routed.scorer.score, self.error_score, self.refit, self.return_train_score
            )
            if kept is not None:
                scored = (self.scoring, routed.scorer.score, self.error_score, self.refit, self.return_train_score)
                kept.begin(x, y, *scored)
            runner = FitRunner(
                candidates,
                rungs,
                splits,
                data,
                None if given is None else seed,
                fit_params,
                resume=self.resume,
                kept=kept,
            )
            scheduler = self._scheduler(candidates, rungs, splits, capital, order)
            ending = spend_capital(
                scheduler,
                runner,
                whole_fit.part(SEARCH),
                n_jobs=self.n_jobs,
                batch=self.batch,
                verbose=self.verbose,
            )
            self._set_results(scheduler, runner, order)
            self.stopped_early_, self.interrupted_ = ending.decided, ending.interrupted
            self.scorer_ = scorer._scorers if isinstance(scorer, _MultimetricScorer) else scorer
            self.n_splits_ = splits.n_splits
            if self.refit is not False:
                self._refit(runner, int(np.flatnonzero(order == self.best_index_)[0]), whole_fit.part(REFIT))
        return self

    def score(self, X: Samples, y: Samples = None, **params: object) -> float:  # noqa: N803 - scikit-learn's name
        """Return the score of the best estimator on some samples, by the metric that decided.

        Args:
            X: samples.
            y: targets, or None.
            params: of the scorer, where metadata routing is enabled.
        """
        scored = copy(self)
        if callable(self.refit) and getattr(self, "multimetric_", False):
            scored.refit = self.metric_
        return float(BaseSearchCV.score(scored, X, y, **params))

    # What is shown

    @property
    def report_(self) -> Any:  # noqa: ANN401 - pandas is optional
        """A DataFrame with a row a candidate, the best first; see :func:`~mfbandit.search.results_table.report`."""
        check_is_fitted(self, "cv_results_")
        states = list(self._states)
        states[self.best_index_] = "best"
        return report(self.cv_results_, self.metric_, states)

    def _repr_html_inner(self) -> str:
        return str(super()._repr_html_inner()) + self._picture()

    def _repr_mimebundle_(self, **kwargs: object) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)
        return bundle | ({"text/html": bundle["text/html"] + self._picture()} if "text/html" in bundle else {})

    def _picture(self) -> str:
        """What the candidates cost, below the diagram in a notebook; nothing before the search."""
        if not hasattr(self, "cv_results_"):
            return ""
        return spending_picture(self.cv_results_, self.metric_, self.unit)

    @property
    def unit(self) -> str:
        """The unit of the capital: "full fits", or "seconds"."""
        return "full fits" if self.cost == "samples" else "seconds"

    # What scikit-learn asks

    @property
    def _representative(self) -> Estimator:
        """The estimator that says whether this is a classifier or a regressor."""
        return representative_estimator(self.estimator, self.candidates)

    def _with_estimator(self) -> "MFSearchCV":
        """The same search with an estimator, which scikit-learn looks at; there may be candidates only."""
        other = copy(self)
        other.estimator = self._representative
        return other

    def __sklearn_tags__(self) -> object:
        search = self._with_estimator()
        # Without any estimator there is nothing to ask yet, as when it is shown in a notebook.
        return (
            super(BaseSearchCV, self).__sklearn_tags__()
            if search.estimator is None
            else BaseSearchCV.__sklearn_tags__(search)
        )

    def get_metadata_routing(self) -> object:
        """Return who wants which metadata; see scikit-learn's guide on metadata routing."""
        router = BaseSearchCV.get_metadata_routing(self._with_estimator())
        try:
            listed = self._with_drawn_settings(deepcopy(self.random_state))
            candidates = list_candidates(listed.estimator, listed.param_grid, listed.candidates)
        except InvalidArgument:  # fit will say what is wrong
            return router
        to_fit = MethodMapping().add(caller="fit", callee="fit")
        for name, one in zip(_routing_names(candidates), candidates, strict=True):
            router.add(method_mapping=to_fit, **{name: one.build()})
        return router

    def _get_scorers(self) -> tuple[Scorer, str]:
        raises = self.error_score == "raise"
        return scorer_of(self._representative, self.scoring, self.refit, raises=raises), ONE_METRIC

    # The arguments

    def _with_drawn_settings(self, random_state: RandomState) -> "MFSearchCV":
        """The same search with a list of settings in the place of distributions."""
        if self.param_distributions is None:
            return self
        if self.param_grid is not None or self.candidates is not None:
            raise InvalidArgument("one of param_grid, param_distributions and candidates must be given, got several")
        drawn = copy(self)
        drawn.candidates = sampled_settings(self.param_distributions, self.n_iter, random_state)
        drawn.param_distributions = None
        return drawn

    def _checked_arguments(self) -> Rungs:
        rungs = checked_rungs(
            DEFAULT_FRACTIONS if self.fractions is None else self.fractions, self.resource, self.values
        )
        Fidelities(rungs.costs, self.biases)  # or says what is wrong with them
        if not callable(self.refit) and not isinstance(self.refit, str):
            flag("refit", self.refit)
        flag("return_train_score", self.return_train_score)
        flag("resume", self.resume)
        if self.cost not in COSTS:
            raise InvalidArgument(f"cost must be 'samples' or 'seconds', got {self.cost!r}")
        if self.batch is not None and whole("batch", self.batch) < 1:
            raise InvalidArgument(f"batch must be at least 1, got {self.batch}")
        if self.n_jobs is not None:
            whole("n_jobs", self.n_jobs)
        if self.error_score != "raise" and not isinstance(self.error_score, Real):
            raise InvalidArgument(f"error_score must be a number or 'raise', got {self.error_score!r}")
        return rungs

    def _trained(self, rungs: Rungs, candidates: list[Candidate]) -> Rungs:
        """The rungs, with how candidates are trained to them, if these can be."""
        if rungs.resource != SAMPLES:
            rungs = replace(rungs, by_passes=trains_by_passes(candidates, rungs.resource))
            if rungs.by_passes:
                for value in rungs.values:
                    whole("values", value)
            else:
                check_resource(candidates, rungs.resource)
        if self.resume:
            Resuming(rungs).check(candidates)
        return rungs

    def _scheduler(
        self, candidates: list[Candidate], rungs: Rungs, splits: Splits, capital: float, order: IntArray
    ) -> SearchScheduler:
        # Fractions that were raised to the same one have the smallest of their biases.
        biases = None if self.biases is None else self.biases[-len(rungs.costs) :]
        samples = rungs.resource == SAMPLES
        planned = PlannedSplits(
            number=splits.number,
            max_splits=splits.n_splits if self._as_grid else splits.max_splits,
            round_size=splits.n_splits,
            test_size=splits.test_size,
            cost=lambda m, i: splits.share(i, rungs.fraction(m)) * (1.0 if samples else rungs.costs[m]),
        )
        return SearchScheduler(
            MFTopTwo(capital) if self.policy is None else self.policy,
            [one.label for one in candidates],
            Fidelities(rungs.costs, biases, names=rungs.names, resume=self.resume),
            noise=self._checked_noise(),
            capital=capital,
            seconds=self.cost == "seconds",
            splits=planned,
            order=order.tolist(),
        )

    def _used_rungs(self, rungs: Rungs, arms: int, capital: float) -> Rungs:
        """Leave out the default fractions below the first one that the default policy will use."""
        given = self.fractions is not None or self.policy is not None or self.biases is not None
        if given or rungs.resource != SAMPLES or self.cost == "seconds":
            return rungs
        first = MFTopTwo(capital).stages(Fidelities(rungs.costs), arms)[0].fidelity
        return Rungs(SAMPLES, rungs.values[first:])

    def _order(self, rungs: Rungs, arms: int, capital: float, seed: int) -> IntArray:
        """The order to try candidates in: theirs, or a random one where a policy may try the first ones only."""
        known = Fidelities(rungs.costs, resume=self.resume)
        if self.policy is None and MFTopTwo(capital).stages(known, arms)[0].arms == arms:
            return np.arange(arms)
        return np.random.default_rng([seed, arms]).permutation(arms)

    @property
    def _as_grid(self) -> bool:
        return isinstance(self.capital, str) and self.capital == GRID

    def _checked_capital(self, arms: int, rungs: Rungs, splits: Splits) -> float:
        of_policy = self.policy.capital if isinstance(self.policy, MFTopTwo) else None
        if self.capital is None and of_policy is not None:
            return of_policy
        capital = self._capital(arms, rungs, splits)
        if of_policy is not None and of_policy != capital:
            raise InvalidArgument(f"policy must have the capital of the search, {plain(capital)}, got {self.policy}")
        return capital

    def _capital(self, arms: int, rungs: Rungs, splits: Splits) -> float:
        if self._as_grid and self.cost == "samples":
            return float(arms * splits.n_splits)
        if self.capital is None or self._as_grid:
            if self.cost == "seconds":
                raise InvalidArgument(f"capital must be given in seconds with cost='seconds', got {self.capital!r}")
            wanted = max(DEFAULT_CAPITAL_SHARE * arms, DEFAULT_CAPITAL_ROUNDS * splits.total)
            return max(arms * rungs.costs[0], min(wanted, arms * splits.total))
        capital = positive("capital", self.capital)
        needed = arms * rungs.costs[0] if self.cost == "samples" else 0.0
        if number("capital", capital) < needed * (1 - 1e-9):
            raise InvalidArgument(
                f"capital must pay for one play of each of the {arms} candidates at the lowest fidelity, "
                f"{plain(needed, 4)}, got {self.capital}"
            )
        return capital

    def _checked_noise(self) -> Concentration | None:
        if self.noise is None or isinstance(self.noise, Concentration):
            return self.noise
        return SubGaussian(positive("noise", self.noise))

    # The search

    def _set_results(self, scheduler: SearchScheduler, runner: FitRunner, order: IntArray) -> None:
        warn_of_failures(scheduler, self.error_score)
        experiment, fidelities, best = scheduler.experiment, scheduler.fidelities, scheduler.best()
        rho = getattr(experiment.policy, "rho", 2.0)
        bounds = bounds_table(scheduler.results, fidelities, rho, experiment.arms)
        params = [{**one.params, **runner.rungs.settings(-1)} for one in runner.candidates]
        metrics = metric_names(scheduler.trials)
        metric = metrics[0] if metrics == [ONE_METRIC] else deciding_metric(metrics, self.refit)
        table = cv_results(
            scheduler.trials, params, bounds=bounds, estimates=scheduler.estimates(), best=best, metric=metric
        )
        results = in_given_order(table, order)
        index = BaseSearchCV._select_best_index(self.refit, metric, results) if callable(self.refit) else order[best]
        self.cv_results_, self.best_index_, self.metric_ = results, int(index), metric
        states = scheduler.states()
        self._states = tuple(states[k] for k in np.argsort(order))
        self.multimetric_ = any(one.outcome.scores for one in scheduler.trials)
        self.best_params_ = self.cv_results_["params"][self.best_index_]
        if callable(self.refit):
            self.__dict__.pop("best_score_", None)  # of an earlier fit: scikit-learn's searches have none then
        else:
            self.best_score_ = float(self.cv_results_[f"mean_test_{metric}"][self.best_index_])
        self.best_interval_ = scheduler.interval(int(np.flatnonzero(order == self.best_index_)[0]))
        self.spent_, self.capital_ = experiment.spent, experiment.capital
        self.plays_ = tuple(replace(one, arm=int(order[one.arm])) for one in scheduler.trials)
        self.experiment_, self.fidelities_ = experiment, fidelities
        sure = scheduler.confidence(LEVEL)
        self.confidence_ = replace(
            sure, best=int(order[sure.best]), rivals=tuple(int(order[arm]) for arm in sure.rivals)
        )
        self.audit_ = None if self.biases is None else experiment.audit()

    def _refit(self, runner: FitRunner, best: int, task: FitTask) -> None:
        self.best_estimator_ = runner.build_estimator(best, -1, 0)
        x, y, params = runner.data.x, runner.data.y, runner.fit_params[best]
        with task.running(self.best_estimator_, x, y, params.get("sample_weight")):
            start = time.perf_counter()
            runner.train_whole(self.best_estimator_, x, y, params)
            self.refit_time_ = time.perf_counter() - start
        if hasattr(self.best_estimator_, "feature_names_in_"):
            self.feature_names_in_ = self.best_estimator_.feature_names_in_


def _routing_names(candidates: Sequence[Candidate]) -> list[str]:
    """The names by which candidates are asked which metadata they want."""
    return [f"candidate_{k}" for k in range(len(candidates))]
