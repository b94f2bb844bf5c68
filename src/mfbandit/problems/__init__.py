"""Problems to simulate on, built-in ones, and the regret of plays."""

from mfbandit.problems.accounting import Account, pseudo_rewards, regret
from mfbandit.problems.builtin import gap_problem, misleading_problem, paper_problem
from mfbandit.problems.learning_curves import learning_curve_names, learning_curve_problem
from mfbandit.problems.problem import TOLERANCE, Bernoulli, Gaussian, Problem, Replay, Rewards, replay_exhausted

__all__ = [
    "TOLERANCE",
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
    "regret",
    "replay_exhausted",
]
