"""The hidden truth of simulations: problems, ready ones, and what plays cost against the best arm."""

from mfbandit.problems.accounting import Account, pseudo_rewards, regret
from mfbandit.problems.builtin import gap_problem, misleading_problem, paper_problem
from mfbandit.problems.learning_curves import learning_curve_names, learning_curve_problem
from mfbandit.problems.problem import NEAR, Bernoulli, Gaussian, Problem, Replay, Rewards, ran_dry

__all__ = [
    "NEAR",
    "Account",
    "Bernoulli",
    "Gaussian",
    "Problem",
    "Replay",
    "Rewards",
    "gap_problem",
    "learning_curve_names",
    "learning_curve_problem",
    "misleading_problem",
    "paper_problem",
    "pseudo_rewards",
    "ran_dry",
    "regret",
]
