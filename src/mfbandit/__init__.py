"""Multi-fidelity multi-armed bandits: MF-UCB and everything around it."""

from mfbandit import theory
from mfbandit.checks import ContractBroken, check_experiment, check_policy
from mfbandit.concentration import Bounded, Concentration, SubGaussian
from mfbandit.confidence import Bounds
from mfbandit.errors import CapitalExhausted, Conflict, NoActiveArms, NoResults, UnknownPlay
from mfbandit.experiment import Experiment, History
from mfbandit.fidelities import Fidelities
from mfbandit.planning import Plan, plan
from mfbandit.policies import MFUCB, UCB, Policy
from mfbandit.problem import Bernoulli, Gaussian, Problem, Replay
from mfbandit.problems import learning_curve_names, learning_curve_problem, misleading_problem, paper_problem
from mfbandit.regret import pseudo_rewards, regret
from mfbandit.simulate import simulate
from mfbandit.simulation import Comparison, Simulation, Summary, compare
from mfbandit.stats import Play, Stats

__version__ = "0.1.0.dev0"

__all__ = [
    "MFUCB",
    "UCB",
    "Bernoulli",
    "Bounded",
    "Bounds",
    "CapitalExhausted",
    "Comparison",
    "Concentration",
    "Conflict",
    "ContractBroken",
    "Experiment",
    "Fidelities",
    "Gaussian",
    "History",
    "NoActiveArms",
    "NoResults",
    "Plan",
    "Play",
    "Policy",
    "Problem",
    "Replay",
    "Simulation",
    "Stats",
    "SubGaussian",
    "Summary",
    "UnknownPlay",
    "__version__",
    "check_experiment",
    "check_policy",
    "compare",
    "learning_curve_names",
    "learning_curve_problem",
    "misleading_problem",
    "paper_problem",
    "plan",
    "pseudo_rewards",
    "regret",
    "simulate",
    "theory",
]
