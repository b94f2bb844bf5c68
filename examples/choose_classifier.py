"""Choose among twelve classifiers of handwritten digits, with small training sets as cheap fidelities.

It runs in a few seconds and writes choose_classifier.png: python examples/choose_classifier.py
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import BernoulliNB, ComplementNB, GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

import mfbandit as mfb

CLASSIFIERS = [
    ("extra trees", ExtraTreesClassifier(100)),
    ("random forest", RandomForestClassifier(100)),
    ("tree", DecisionTreeClassifier()),
    ("logistic regression", LogisticRegression(max_iter=200)),
    ("ridge", RidgeClassifier()),
    ("support vectors, linear", SVC(kernel="linear")),
    ("support vectors, RBF", SVC(C=10)),
    ("nearest neighbours", KNeighborsClassifier(3)),
    ("complement Bayes", ComplementNB()),
    ("Gaussian Bayes", GaussianNB()),
    ("Bernoulli Bayes", BernoulliNB(binarize=0.5)),
    ("linear discriminant", LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")),
]


def main() -> None:
    x, y = load_digits(return_X_y=True)
    x_train, x_test, y_train, y_test = train_test_split(x, y, test_size=0.3, stratify=y, random_state=0)
    candidates = [(name, make_pipeline(MinMaxScaler(), model)) for name, model in CLASSIFIERS]
    search = mfb.MFSearchCV(candidates=candidates, capital=12, random_state=0).fit(x_train, y_train)
    results = search.cv_results_
    print(f"{'rank':<6}{'classifier':<26}{'score':>7}  {'of data':<10}{'full fits':>9}")
    for k in results["rank_test_score"].argsort(kind="stable"):
        print(
            f"{results['rank_test_score'][k]:<6}{results['candidate'][k]:<26}{results['mean_test_score'][k]:>7.3f}  "
            f"{results['fidelity'][k]:<10}{results['cost'][k]:>9.2f}"
        )
    low, high = search.best_interval_
    print(f"spent {search.spent_:.2f} of {search.capital_:g} full fits; 5-fold cross-validation of all would take 60")
    print(f"score of the best: {search.best_score_:.3f} ({low:.3f} to {min(high, 1):.3f}); ", end="")
    print(f"on held-out data: {search.score(x_test, y_test):.3f}")
    mfb.plotting.plot_spending(results)
    plt.savefig("choose_classifier.png", dpi=150)


if __name__ == "__main__":
    main()
