"""Tune LightGBM: training goes on from a checkpoint, so that 100 trees after 25 cost 75. It needs LightGBM.

It runs in some ten seconds: python examples/tune_lightgbm.py
"""

from typing import Any

import lightgbm
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split

import mfbandit as mfb

SPACE = {
    "learning_rate": (0.01, 0.3, "log"),
    "num_leaves": (3, 31),
    "min_data_in_leaf": (5, 40),
    "lambda_l2": (1e-3, 10.0, "log"),
}
TREES = [6, 25, 100]
X_TRAIN, X_TEST, Y_TRAIN, Y_TEST = train_test_split(*load_diabetes(return_X_y=True), test_size=0.3, random_state=0)
X_FIT, X_VALID, Y_FIT, Y_VALID = train_test_split(X_TRAIN, Y_TRAIN, test_size=0.3, random_state=0)


def train(config: dict[str, Any], model: str | None, trees: int, seed: int) -> str:
    """Go on from a model until it has so many trees; from nothing if there is none."""
    before = None if model is None else lightgbm.Booster(model_str=model)
    more = trees - (0 if before is None else before.num_trees())
    parameters = {"objective": "regression", "verbosity": -1, "num_threads": 1, "seed": seed} | config
    data = lightgbm.Dataset(X_FIT, Y_FIT, free_raw_data=False)
    trained: str = lightgbm.train(parameters, data, num_boost_round=more, init_model=before).model_to_string()
    return trained


def error(_config: dict[str, Any], model: str) -> float:
    """The root mean square error on validation data."""
    predicted = np.asarray(lightgbm.Booster(model_str=model).predict(X_VALID))
    return float(np.sqrt(np.mean((predicted - Y_VALID) ** 2)))


def main() -> None:
    found = mfb.tune(
        mfb.Trainer(train, error),
        SPACE,
        n=40,
        fidelities=TREES,
        capital=15,
        direction="minimize",
        resume=True,
        progress=False,
    )
    print(found)
    resumed = sum(found.experiment.play(number).resume_from is not None for number in range(found.ran.told))
    print(f"\n{resumed} of {found.ran.told} runs went on from an earlier one")
    predicted = np.asarray(lightgbm.Booster(model_str=found.best_state).predict(X_TEST))
    print(f"held out: {np.sqrt(np.mean((predicted - Y_TEST) ** 2)):.1f}")


if __name__ == "__main__":
    main()
