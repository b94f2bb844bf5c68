"""Tune anything: spend a capital on an objective's cheap and dear runs, and return the best candidate."""

import inspect
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mfbandit._internal.typing import IntArray
from mfbandit._internal.validation import cost as checked_cost
from mfbandit._internal.validation import flag, number, positive, shown, whole
from mfbandit._internal.validation import seed as checked_seed
from mfbandit.core import Fidelities
from mfbandit.errors import InvalidArgument
from mfbandit.execution import InlineExecutor, SeededPlay, States, Trained, run
from mfbandit.experiment import AnyExperiment, Experiment, Sure
from mfbandit.policies import MFTopTwo, Policy
from mfbandit.search.labels import settings_label, unique_labels
from mfbandit.search.past_results import past_results, with_past_candidates
from mfbandit.search.rungs import checked_increasing
from mfbandit.search.space import draw_candidates
from mfbandit.search.tuned import Direction, Tuned
from mfbandit.service.client import RemoteStore
from mfbandit.store import Store

DEFAULT_CAPITAL_SHARE = 0.75  # of one run of every candidate at the highest fidelity
FAILURES_AT_FIRST = 10  # without any result, after which an objective is taken to be wrong
EXECUTORS = ("threads", "processes")

TunedObjective = Callable[..., Any]
"""Takes a candidate, a resource and a seed; returns a score, or (score, cost). Where runs resume, see :func:`tune`."""


@dataclass(frozen=True)
class Trainer:
    """An objective for :func:`tune` with ``resume=True``, made of two functions.

    Args:
        train: train(candidate, state, resource, seed) → state: goes on from a state until it has had that much of the
            resource; from the beginning where the state is None.
        score: score(candidate, state) → score.

    >>> count = Trainer(lambda config, state, epochs, seed: epochs, lambda config, epochs: config * epochs)
    >>> count(0.5, 10, seed=1, state=None)
    (5.0, 10)
    """

    train: Callable[[Any, Any, Any, int], Any]
    score: Callable[[Any, Any], Any]

    def __call__(self, candidate: object, resource: object, seed: int, state: object) -> tuple[Any, Any]:
        """Train further, and score."""
        trained = self.train(candidate, state, resource, seed)
        return self.score(candidate, trained), trained


def tune(  # noqa: PLR0913 - options with names and defaults
    objective: TunedObjective,
    candidates: Mapping[str, object] | Sequence[Any],
    *,
    fidelities: Sequence[float] | Mapping[Any, float] | Fidelities,
    n: int | None = None,
    capital: float | None = None,
    direction: str = "maximize",
    policy: Policy | None = None,
    executor: Executor | str | None = None,
    workers: int | None = None,
    retries: int = 0,
    timeout: float | None = None,
    seed: int = 0,
    until: Sure | None = None,
    ahead: int = 0,
    store: str | os.PathLike[str] | Store | RemoteStore | None = None,
    name: str = "tune",
    resume: bool = False,
    states: str | os.PathLike[str] | None = None,
    past: object = None,
    progress: bool | None = None,
) -> Tuned:
    """Find the best of many candidates by cheap and dear runs of an objective, within a capital.

    A candidate is an arm, and a run of the objective is a play. The policy decides which candidate runs next and with
    how much of the resource: epochs, trees, samples or seconds. Each worker gets the next run as soon as it is free:
    there are no rounds. A run that raises, or whose score is no finite number, has failed; three in a row set its
    candidate aside. With one worker the result is the same each time that scores are.

    Args:
        objective: objective(candidate, resource, seed) → score, or (score, cost) where the run did not cost what its
            fidelity does. For processes and Dask it has to be picklable.
        candidates: a list of candidates, of whatever the objective takes; or a space to draw them from, a dictionary
            as for :func:`~mfbandit.search.space.draw_candidates`.
        fidelities: the amounts of the resource, increasing, the last one being what counts: each costs its share of
            the last, which costs 1. Or {resource: cost} in the order of cost. Or :class:`~mfbandit.Fidelities`: the
            objective gets the index of one then.
        n: how many candidates to draw from the space; needed unless it has lists and ranges of whole numbers alone.
        capital: what all runs may cost. By default three quarters of a run of every candidate at the last fidelity.
        direction: "maximize" or "minimize" the score.
        policy: the rule that picks runs; :class:`~mfbandit.MFTopTwo` with this capital by default.
        executor: "threads", "processes", or an executor of concurrent.futures's kind such as Dask's
            ``client.get_executor()``. By default one run at a time in this thread, or threads if there are workers.
        workers: how many runs at the same time.
        retries: how often a failed run is repeated.
        timeout: seconds that a run may take.
        seed: of the candidates that are drawn, of their order, and of the runs.
        until: how sure it has to be of the best candidate to end before the capital is spent.
        ahead: how many runs more than there are workers to hand out; see :func:`~mfbandit.run`.
        store: where the results are kept, so that a search that was killed goes on when it is called again with the
            same arguments: a path of a SQLite file or a postgresql:// address, an open :class:`~mfbandit.Store`, or a
            service (:func:`~mfbandit.connect`). More capital goes on with a search that has ended.
        name: of the experiment in the store.
        resume: whether a run goes on from an earlier one of its candidate, and costs the difference. The objective is
            called with a fourth argument, a copy of the state that it goes on from (None at first), with the seed of
            that training; it returns (score, state) or (score, state, cost). Or it is a :class:`~mfbandit.Trainer`.
        states: a folder for the states; see :class:`~mfbandit.States`. By default they are in memory, or beside a
            SQLite file that is the store.
        past: results to begin with: a study of Optuna, or a list of (candidate, resource, score). Their candidates take
            part, and their costs are added to the capital. Of a study count the values of complete trials, as at the
            last fidelity, and intermediate values whose step is one of the fidelities.
        progress: whether to show progress; see :func:`~mfbandit.run`.

    Raises:
        NoActiveArms: every candidate failed.
        InvalidArgument: an argument is wrong, or the first ten runs failed and none has a result.

    >>> def objective(config, epochs, seed):
    ...     return (config["rate"] - 0.3) ** 2 + 1 / epochs
    >>> found = tune(objective, {"rate": (0.0, 1.0)}, n=40, fidelities=[1, 5, 25], direction="minimize")
    >>> round(found.best_config["rate"], 3), round(found.best_score, 4), round(found.spent, 1), found.capital
    (0.315, 0.0402, 29.6, 30.0)
    """
    wanted = _direction(direction)
    checked_seed(seed)
    drawn = _drawn(candidates, n, seed)
    known, resources = checked_resources(fidelities)
    known = replace(known, resume=flag("resume", resume) or known.resume)
    _check_takes(objective, resume=known.resume)
    kept_states = _states(states, store, resume=known.resume)
    if past is not None and known.resume:
        raise InvalidArgument(f"past must be None where runs resume, as it has no states, got {shown(past)}")
    before = past_results(past, resources, wanted.value)
    amount = _checked_capital(capital, policy, known, len(drawn))
    drawn, places = with_past_candidates(drawn, before)
    amount += sum(known.costs[one.fidelity] for one in before)
    rule = MFTopTwo(amount) if policy is None else policy
    order = _order(rule, known, len(drawn), seed)
    labels = unique_labels([_label(drawn[k]) for k in order])
    task = Task(objective, tuple(drawn[k] for k in order), resources, wanted, known.resume)
    with ExitStack() as stack:
        pool = stack.enter_context(_executor(executor, workers))
        arm_of = {int(k): arm for arm, k in enumerate(order)}
        rewards = [
            (arm_of[k], one.fidelity, wanted.sign * one.score, None) for k, one in zip(places, before, strict=True)
        ]
        arms = _Arms(labels, known, amount, None if capital is None else amount, rule, rewards)
        experiment, alone = stack.enter_context(_experiment(arms, store, name))
        ran = run(
            experiment,
            task,
            pool,
            workers=workers if isinstance(executor, Executor) else None,
            retries=retries,
            timeout=timeout,
            seed=seed,
            ahead=ahead,
            until=until,
            stay=experiment.shared and not alone,
            take_over=alone,
            first_failures=FAILURES_AT_FIRST,
            states=kept_states,
            progress=progress,
        )
        kept = experiment if isinstance(experiment, Experiment) else Experiment.from_json(experiment.to_json())
    space = candidates if isinstance(candidates, Mapping) else None
    return Tuned(tuple(drawn), kept, resources, wanted, ran, tuple(order.tolist()), kept_states, space)


@dataclass(frozen=True)
class Task:
    """What a run calls for a play: the objective with the play's candidate and resource.

    Args:
        objective: what :func:`tune` was given.
        configs: candidates in the order of arms.
        resources: by fidelity.
        direction: of the score.
        resume: whether runs go on from states.
    """

    objective: TunedObjective
    configs: tuple[Any, ...]
    resources: tuple[Any, ...]
    direction: Direction
    resume: bool = False

    def of_play(self, play: SeededPlay) -> "OneRun":
        """Return what is sent to a worker: one candidate, and not all."""
        config, resource = self.configs[play.arm], self.resources[play.fidelity]
        return OneRun(self.objective, config, resource, self.direction, self.resume)

    def __call__(self, play: SeededPlay) -> float | tuple[float, float] | Trained:
        """Make the play."""
        return self.of_play(play)(play)


@dataclass(frozen=True)
class OneRun:
    """One candidate and resource, for a worker.

    >>> OneRun(lambda config, resource, seed: config * resource, 2.0, 10, Direction.MINIMIZE)(
    ...     SeededPlay("demo-0", 0, 0, 1.0, "a", seed=7))
    -20.0
    """

    objective: TunedObjective
    config: Any
    resource: Any
    direction: Direction
    resume: bool = False

    def __call__(self, play: SeededPlay) -> float | tuple[float, float] | Trained:
        """Run the objective; larger rewards are better."""
        if self.resume:
            return self.trained(self.objective(self.config, self.resource, play.seed, play.state()))
        return self.reward(self.objective(self.config, self.resource, play.seed))

    def reward(self, result: object) -> float | tuple[float, float]:
        """Return what is told of a result."""
        match result:
            case tuple((score, cost)):
                return self.direction.sign * number("score", _plain(score)), checked_cost(cost)
            case None:
                raise InvalidArgument("objective must return a score, got None: does it end without a return?")
        return self.direction.sign * number("score", _plain(result))

    def trained(self, result: object) -> Trained:
        """Return what is told and kept of a result."""
        match result:
            case tuple((score, state)):
                return Trained(self.direction.sign * number("score", _plain(score)), state)
            case tuple((score, state, cost)):
                return Trained(self.direction.sign * number("score", _plain(score)), state, checked_cost(cost))
        raise InvalidArgument(f"objective must return (score, state) where runs resume, got {shown(result)}")


def _plain(score: object) -> object:
    """Return a number that a library wraps in an array or a tensor of one element."""
    if getattr(score, "shape", ()) in ((), (1,)) and hasattr(score, "item"):
        return score.item()
    return score


def checked_resources(
    fidelities: Sequence[float] | Mapping[Any, float] | Fidelities,
) -> tuple[Fidelities, tuple[Any, ...]]:
    """Return fidelities, and what an objective is given for each.

    >>> checked_resources([1, 4, 16])[0].costs, checked_resources({"draft": 0.25, "final": 2})[1]
    ((0.0625, 0.25, 1.0), ('draft', 'final'))
    >>> checked_resources([4, 1])
    Traceback (most recent call last):
    mfbandit.errors.InvalidArgument: fidelities must be strictly increasing, got [4, 1]
    """
    if isinstance(fidelities, Fidelities):
        return fidelities, tuple(range(len(fidelities)))
    if isinstance(fidelities, Mapping):
        resources = tuple(fidelities)
        given = checked_increasing("costs of fidelities", list(fidelities.values()))
        return Fidelities(list(map(float, given)), names=[str(one) for one in resources]), resources
    values = checked_increasing("fidelities", fidelities)
    costs = [float(value) / float(values[-1]) for value in values]
    names = [f"{value:g}" if isinstance(value, float) else str(value) for value in values]
    return Fidelities(costs, names=names), values


@dataclass(frozen=True)
class _Arms:
    """What an experiment is made of."""

    labels: list[str]
    fidelities: Fidelities
    capital: float
    given_capital: float | None
    policy: Policy
    past: list[tuple[int, int, float, None]]


def _direction(given: str) -> Direction:
    try:
        return Direction(given)
    except ValueError:
        raise InvalidArgument(f"direction must be 'maximize' or 'minimize', got {given!r}") from None


def _states(given: object, store: object, *, resume: bool) -> States | None:
    if not resume:
        if given is not None:
            raise InvalidArgument(f"states must be None where runs do not resume, got {given!r}")
        return None
    beside = isinstance(store, str | os.PathLike) and not str(store).startswith("postgres")
    return States(f"{os.fspath(store)}.states" if given is None and beside else given)  # type: ignore[call-overload,arg-type]


def _check_takes(objective: TunedObjective, *, resume: bool) -> None:
    if not callable(objective):
        raise InvalidArgument(f"objective must be a function, got {objective!r}")
    arguments = ("candidate", "resource", "seed", "state") if resume else ("candidate", "resource", "seed")
    try:
        inspect.signature(objective).bind(*arguments)
    except ValueError:  # something built in, which does not say what it takes
        return
    except TypeError:
        taken = f"{getattr(objective, '__name__', repr(objective))}{inspect.signature(objective)}"
        raise InvalidArgument(f"objective must take ({', '.join(arguments)}), got {taken}") from None


def _drawn(candidates: Mapping[str, object] | Sequence[Any], number: int | None, seed: int) -> list[Any]:
    if isinstance(candidates, Mapping):
        return list(draw_candidates(candidates, number, seed))
    if isinstance(candidates, str) or not isinstance(candidates, Sequence):
        raise InvalidArgument(f"candidates must be a list, or a space as a dictionary, got {candidates!r}")
    if number is not None:
        raise InvalidArgument(f"n must be None for a list of candidates, got {number}")
    if not candidates:
        raise InvalidArgument("candidates must be at least one, got []")
    return list(candidates)


def _label(candidate: object) -> str:
    if isinstance(candidate, Mapping):
        return settings_label({str(key): value for key, value in candidate.items()}) or "{}"
    return settings_label({"": candidate})[1:] or "''"


def _checked_capital(capital: float | None, policy: Policy | None, fidelities: Fidelities, arms: int) -> float:
    own = getattr(policy, "capital", None)
    if capital is None:
        return float(own) if own is not None else DEFAULT_CAPITAL_SHARE * arms * fidelities.costs[-1]
    amount = positive("capital", number("capital", capital))
    if own is not None and own != amount:
        raise InvalidArgument(f"policy must have the capital of the search, {amount:g}, got {policy}")
    return amount


def _order(rule: Policy, fidelities: Fidelities, arms: int, seed: int) -> IntArray:
    """The order to try candidates in: theirs, or a random one where the policy may try the first ones only."""
    reached = isinstance(rule, MFTopTwo) and rule.stages(fidelities, arms)[0].arms == arms
    if reached:
        return np.arange(arms)
    return np.random.default_rng([seed, arms]).permutation(arms)


@contextmanager
def _executor(given: Executor | str | None, workers: int | None) -> Iterator[Executor]:
    if workers is not None and whole("workers", workers) < 1:
        raise InvalidArgument(f"workers must be at least 1, got {workers}")
    if isinstance(given, Executor):
        yield given
    elif given is None and workers in (None, 1):
        yield InlineExecutor()
    elif given is None or given == "threads":
        with ThreadPoolExecutor(workers) as threads:
            yield threads
    elif given == "processes":
        with ProcessPoolExecutor(workers) as processes:
            yield processes
    else:
        raise InvalidArgument(f"executor must be one of {EXECUTORS} or an Executor, got {given!r}")


@contextmanager
def _experiment(arms: _Arms, store: object, name: str) -> Iterator[tuple[AnyExperiment, bool]]:
    """Yield the experiment, and whether nobody else can be making its pending plays."""
    match store:
        case None:
            made = Experiment(arms.policy, arms=arms.labels, fidelities=arms.fidelities, capital=arms.capital)
            yield _with_past(made, arms), False
            return
        case str() | os.PathLike():
            opened: Any = Store(store)
        case Store() | RemoteStore():
            opened = nullcontext(store)
        case _:
            raise InvalidArgument(f"store must be a path, a Store or a service, got {store!r}")
    with opened as where:
        shared = not isinstance(store, str | os.PathLike) or str(store).startswith("postgres")
        yield _kept(arms, where, name), not shared


def _kept(arms: _Arms, store: Store | RemoteStore, name: str) -> AnyExperiment:
    """Return the experiment of a store: a new one, or the one of this search that goes on."""
    if name not in store.list():
        made = store.create(name, arms.policy, arms=arms.labels, fidelities=arms.fidelities, capital=arms.capital)
        return _with_past(made, arms)
    found = store.open(name)
    named = f"of the search {name!r} that the store has, or its name another one"
    for what, there, here in (
        ("candidates", list(found.arms), arms.labels),
        ("fidelities", found.fidelities.costs, arms.fidelities.costs),
    ):
        if there != here:
            raise InvalidArgument(f"{what} must be those {named}, got others")
    if found.fidelities.resume != arms.fidelities.resume:
        raise InvalidArgument(f"resume must be that {named}, got {arms.fidelities.resume}")
    if arms.given_capital is not None and arms.given_capital != found.capital:
        found.set_capital(arms.given_capital)
    return _with_past(found, arms)


def _with_past(experiment: AnyExperiment, arms: _Arms) -> AnyExperiment:
    """Return an experiment that has the past results; one that has any result has had them from the beginning."""
    if arms.past and not experiment.stats.plays.any():
        experiment.add_results(arms.past)
    return experiment
