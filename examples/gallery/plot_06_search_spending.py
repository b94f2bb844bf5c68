"""
What a search spends on each model
==================================

Eight classifiers of handwritten digits. Poor ones are dropped after a fit on a part of the data;
the capital goes to those that could be the best. In all it spends eight full fits. Five-fold
cross-validation of all would take 40.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.linear_model import RidgeClassifier
from sklearn.naive_bayes import BernoulliNB, ComplementNB, GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

import mfbandit as mfb

candidates = [
    ("extra trees", ExtraTreesClassifier(50, random_state=0)),
    ("tree", DecisionTreeClassifier(random_state=0)),
    ("ridge", RidgeClassifier()),
    ("support vectors", SVC(C=10)),
    ("nearest neighbours", KNeighborsClassifier(3)),
    ("complement Bayes", ComplementNB()),
    ("Gaussian Bayes", GaussianNB()),
    ("Bernoulli Bayes", BernoulliNB(binarize=8)),
]
X, y = load_digits(return_X_y=True)
search = mfb.MFSearchCV(candidates=candidates, capital=8, random_state=0).fit(X, y)

# %%
# A bar is what a candidate cost, in fits on all training samples.

mfb.plotting.plot_spending(search.cv_results_)
plt.show()

# %%
# The chosen one, and what was spent.

low, high = search.best_interval_
name = search.cv_results_["candidate"][search.best_index_]
print(f"{name}: {search.best_score_:.3f} ({low:.3f} to {min(high, 1):.3f})")
print(f"{search.spent_:.2f} full fits")
