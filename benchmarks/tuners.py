"""Optuna and SMAC on a task's grid: each look is a mean over all folds, on a fraction of the training samples."""

import math
import tempfile
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from benchmarks.search_tasks import Family

FRACTIONS = (1 / 16, 1 / 4, 1.0)  # a trial's looks
ETA = 4  # between them
Look = Callable[[int, float], float]
"""The mean score of a candidate over the folds on a fraction of the samples; NaN if a fit fails."""


class OutOfCapital(Exception):
    """The next look does not fit."""


def _place(families: Sequence[Family], family: int, indices: Sequence[int]) -> int:
    """The number of a candidate among all."""
    sizes = [tuple(len(values) for values in one.grid.values()) for one in families]
    before = sum(int(np.prod(size)) for size in sizes[:family])
    return before + int(np.ravel_multi_index(tuple(indices), sizes[family]))


def by_optuna(families: Sequence[Family], look: Look, seed: int) -> int:
    """TPE over the family and the places of its parameters' values, pruned by Hyperband; until looks do not fit."""
    import optuna  # where it is installed

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    best = (-1, -np.inf, 0)

    def objective(trial: optuna.Trial) -> float:
        nonlocal best
        family = trial.suggest_categorical("family", list(range(len(families))))
        sizes = [(name, len(values)) for name, values in families[family].grid.items()]
        k = _place(families, family, [trial.suggest_int(f"{family}.{name}", 0, n - 1) for name, n in sizes])
        value = np.nan
        for step, fraction in enumerate(FRACTIONS):
            value = look(k, fraction)
            if np.isnan(value):
                raise optuna.TrialPruned
            best = max(best, (step, value, k))
            trial.report(value, ETA**step)
            if trial.should_prune():
                raise optuna.TrialPruned
        return value

    pruner = optuna.pruners.HyperbandPruner(min_resource=1, max_resource=16, reduction_factor=ETA)
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=seed), pruner=pruner)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            study.optimize(objective)
        except OutOfCapital:
            return best[2]
    raise RuntimeError("Optuna ended by itself")


def by_smac(families: Sequence[Family], look: Look, seed: int) -> int:
    """SMAC's multi-fidelity facade, Hyperband with a random forest, asked and told until looks do not fit."""
    from ConfigSpace import Categorical, ConfigurationSpace, EqualsCondition, Integer
    from smac import MultiFidelityFacade, Scenario
    from smac.runhistory.dataclasses import TrialValue

    space = ConfigurationSpace(seed=seed)
    family = Categorical("family", list(range(len(families))))
    space.add(family)
    for f, one in enumerate(families):
        for name, values in one.grid.items():
            if len(values) > 1:
                place = Integer(f"{f}.{name}", (0, len(values) - 1))
                space.add(place)
                space.add(EqualsCondition(place, family, f)) if len(families) > 1 else None
    best = (-1, -np.inf, 0)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scenario = Scenario(
            space,
            deterministic=True,
            n_trials=10**6,
            min_budget=1,
            max_budget=16,
            seed=seed,
            output_directory=Path(folder),
        )
        facade = MultiFidelityFacade(
            scenario,
            lambda _config, seed=0, budget=0: 0.0,  # noqa: ARG005 - asked and told, it is never called
            intensifier=MultiFidelityFacade.get_intensifier(scenario, eta=ETA),
            overwrite=True,
            logging_level=False,
        )
        try:
            while True:
                trial = facade.ask()
                f = int(trial.config["family"])
                places = [int(trial.config.get(f"{f}.{name}", 0)) for name in families[f].grid]
                k, step = _place(families, f, places), round(math.log(trial.budget or 1.0, ETA))
                value = look(k, FRACTIONS[step])
                best = best if np.isnan(value) else max(best, (step, value, k))
                facade.tell(trial, TrialValue(cost=1e3 if np.isnan(value) else -value))
        except OutOfCapital:
            return best[2]
