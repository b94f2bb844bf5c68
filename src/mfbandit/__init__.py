"""Multi-fidelity multi-armed bandits: MF-UCB and everything around it."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mfbandit import plotting, theory
    from mfbandit.accounts import pseudo_rewards, regret
    from mfbandit.attempts import SeededPlay, seeded
    from mfbandit.checks import ContractBroken, check_experiment, check_policy
    from mfbandit.client import connect
    from mfbandit.concentration import Bounded, Concentration, SubGaussian
    from mfbandit.confidence import Bounds
    from mfbandit.curves import learning_curve_names, learning_curve_problem
    from mfbandit.errors import (
        CapitalExhausted,
        Conflict,
        ExperimentPaused,
        NoActiveArms,
        NoResults,
        NotAllowed,
        StoreDamaged,
        StoreError,
        StoreHeld,
        StoreUnavailable,
        UnknownExperiment,
        UnknownPlay,
    )
    from mfbandit.experiment import Experiment, History
    from mfbandit.fidelities import Fidelities
    from mfbandit.parallel import Ran, run
    from mfbandit.planning import Plan, plan
    from mfbandit.policies import MFUCB, UCB, MFAda, MFBayes, MFTopTwo, Policy
    from mfbandit.problem import Bernoulli, Gaussian, Problem, Replay
    from mfbandit.problems import gap_problem, misleading_problem, paper_problem
    from mfbandit.runs import simulate
    from mfbandit.search import MFSearchCV
    from mfbandit.simulation import Comparison, Simulation, Summary, compare
    from mfbandit.stats import Play, Stats
    from mfbandit.store import Store
    from mfbandit.study import Study, study

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
    "ExperimentPaused",
    "Fidelities",
    "Gaussian",
    "History",
    "MFAda",
    "MFBayes",
    "MFSearchCV",
    "MFTopTwo",
    "NoActiveArms",
    "NoResults",
    "NotAllowed",
    "Plan",
    "Play",
    "Policy",
    "Problem",
    "Ran",
    "Replay",
    "SeededPlay",
    "Simulation",
    "Stats",
    "Store",
    "StoreDamaged",
    "StoreError",
    "StoreHeld",
    "StoreUnavailable",
    "Study",
    "SubGaussian",
    "Summary",
    "UnknownExperiment",
    "UnknownPlay",
    "__version__",
    "check_experiment",
    "check_policy",
    "compare",
    "connect",
    "gap_problem",
    "learning_curve_names",
    "learning_curve_problem",
    "misleading_problem",
    "paper_problem",
    "plan",
    "plotting",
    "pseudo_rewards",
    "regret",
    "run",
    "seeded",
    "simulate",
    "study",
    "theory",
]

# Loaded when first asked for: `mfbandit --help` should not wait for numpy, nor asking and telling for matplotlib.
_MODULES = {
    "accounts": ("pseudo_rewards", "regret"),
    "attempts": ("SeededPlay", "seeded"),
    "checks": ("ContractBroken", "check_experiment", "check_policy"),
    "client": ("connect",),
    "concentration": ("Bounded", "Concentration", "SubGaussian"),
    "confidence": ("Bounds",),
    "curves": ("learning_curve_names", "learning_curve_problem"),
    "errors": (
        "CapitalExhausted",
        "Conflict",
        "ExperimentPaused",
        "NoActiveArms",
        "NoResults",
        "NotAllowed",
        "StoreDamaged",
        "StoreError",
        "StoreHeld",
        "StoreUnavailable",
        "UnknownExperiment",
        "UnknownPlay",
    ),
    "experiment": ("Experiment", "History"),
    "fidelities": ("Fidelities",),
    "parallel": ("Ran", "run"),
    "planning": ("Plan", "plan"),
    "policies": ("MFUCB", "UCB", "MFAda", "MFBayes", "MFTopTwo", "Policy"),
    "problem": ("Bernoulli", "Gaussian", "Problem", "Replay"),
    "problems": ("gap_problem", "misleading_problem", "paper_problem"),
    "runs": ("simulate",),
    "search": ("MFSearchCV",),
    "simulation": ("Comparison", "Simulation", "Summary", "compare"),
    "stats": ("Play", "Stats"),
    "store": ("Store",),
    "study": ("Study", "study"),
}
_PLACES = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> object:
    if name in ("plotting", "theory"):
        return import_module(f"mfbandit.{name}")
    if name not in _PLACES:
        raise AttributeError(f"module 'mfbandit' has no attribute {name!r}")
    globals()[name] = value = getattr(import_module(f"mfbandit.{_PLACES[name]}"), name)
    return value


def __dir__() -> list[str]:
    return __all__
