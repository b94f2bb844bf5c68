"""What came of tuning as a study of Optuna: for its plots, its dashboard, or to go on there."""

from collections.abc import Mapping, Sequence
from typing import Any

from mfbandit._internal.imports import needed_for
from mfbandit.search.space import Choice, Dimension, Range, checked_space

PLAIN = (str, int, float, bool, type(None))  # what Optuna takes as a choice without a warning


def optuna_study(
    rows: Sequence[Mapping[str, Any]],
    resources: Sequence[Any],
    direction: str,
    space: Mapping[str, object] | None,
) -> Any:  # noqa: ANN401 - Optuna is optional
    """Return a study in memory with a trial for each candidate that ran.

    A candidate with a result at the last resource is a complete trial. Others are pruned ones; those that only failed
    are failed ones. Mean scores are intermediate values, by the resource where that is a whole number.

    Args:
        rows: the table of a search.
        resources: what the objective was given at each fidelity.
        direction: "maximize" or "minimize".
        space: that candidates were drawn from; None for a list of candidates.
    """
    with needed_for("study"):
        import optuna
    ran = [row for row in rows if row["runs"] or row["set_aside"]]
    configs = [_params(row) for row in ran]
    distributions = _distributions(configs, space)
    whole = all(isinstance(one, int) for one in resources)
    study = optuna.create_study(direction="minimize" if direction == "minimize" else "maximize")
    for row, config in zip(ran, configs, strict=True):
        scores = {
            int(resource) if whole else m: row["scores"][m]
            for m, resource in enumerate(resources)
            if row["scores"][m] is not None
        }
        top, states = row["scores"][-1], optuna.trial.TrialState
        state = states.COMPLETE if top is not None else states.PRUNED if scores else states.FAIL
        trial = optuna.trial.create_trial(
            state=state,
            value=top,
            params=config,
            distributions={name: distributions[name] for name in config},
            intermediate_values=scores,
            user_attrs={"candidate": row["candidate"], "runs": row["runs"], "spent": row["spent"]},
        )
        study.add_trial(trial)
    return study


def _params(row: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a candidate as Optuna keeps them; one that is no dictionary has its name alone."""
    config = row["config"]
    if not isinstance(config, Mapping):
        return {"candidate": row["candidate"]}
    return {str(name): value if isinstance(value, PLAIN) else repr(value) for name, value in config.items()}


def _distributions(configs: Sequence[Mapping[str, Any]], space: Mapping[str, object] | None) -> dict[str, Any]:
    seen: dict[str, list[Any]] = {}
    for config in configs:
        for name, value in config.items():
            seen.setdefault(name, []).append(value)
    dimensions = {} if space is None else checked_space(space)
    return {name: _distribution(dimensions.get(name), values) for name, values in seen.items()}


def _distribution(dimension: Dimension | None, values: list[Any]) -> Any:  # noqa: ANN401 - Optuna's
    """A distribution of Optuna that has all values: the one of the space, or else one that is as wide as they are."""
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    numbers = [one for one in values if isinstance(one, int | float) and not isinstance(one, bool)]
    if isinstance(dimension, Range) and len(numbers) == len(values):
        step = dimension.step
        low, high = min(dimension.low, *numbers), max(dimension.high, *numbers)
        if dimension.integer:
            return IntDistribution(int(low), int(high), log=dimension.log, step=1 if step is None else int(step))
        return FloatDistribution(float(low), float(high), log=dimension.log, step=step)
    if not isinstance(dimension, Choice) and len(numbers) == len(values):
        low, high = min(numbers), max(numbers)
        if all(isinstance(one, int) for one in numbers):
            return IntDistribution(int(low), int(high))
        return FloatDistribution(low, high)
    choices = (
        [] if dimension is None else [one if isinstance(one, PLAIN) else repr(one) for one in dimension.values or ()]
    )
    return CategoricalDistribution(tuple(dict.fromkeys([*choices, *values])))
