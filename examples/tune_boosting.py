"""Tune gradient boosting with the number of trees as the fidelity.

It runs in some ten seconds and writes tune_boosting.png: python examples/tune_boosting.py
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_diabetes
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.model_selection import train_test_split

import mfbandit as mfb

GRID = {"learning_rate": [0.01, 0.03, 0.1, 0.3], "max_depth": [1, 2, 3, 5], "subsample": [0.5, 1.0]}


def main() -> None:
    x, y = load_diabetes(return_X_y=True)
    x_train, x_test, y_train, y_test = train_test_split(x, y, test_size=0.3, random_state=0)
    search = mfb.MFSearchCV(
        GradientBoostingRegressor(),
        GRID,
        resource="n_estimators",
        values=(10, 40, 160),
        capital=24,
        random_state=0,
    ).fit(x_train, y_train)
    plays = {name: int(search.cv_results_[f"plays_at_{name}"].sum()) for name in search.fidelities_.labels}
    print(f"{len(search.cv_results_['params'])} settings, {search.spent_:.1f} of {search.capital_:g} full fits spent")
    print("fits with each number of trees:", ", ".join(f"{count} with {name}" for name, count in plays.items()))
    low, high = search.best_interval_
    print(f"best: {search.best_params_}")
    print(f"R² {search.best_score_:.3f} ({low:.3f} to {high:.3f}); held out: {search.score(x_test, y_test):.3f}")
    mfb.plotting.plot_spending(search.cv_results_)
    plt.savefig("tune_boosting.png", dpi=150)


if __name__ == "__main__":
    main()
