"""Multi-fidelity multi-armed bandits: MF-UCB and everything around it."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mfbandit import plotting, theory
    from mfbandit.core import Batch, Bounded, Bounds, Concentration, Counts, Fidelities, Play, Rate, Stats, SubGaussian
    from mfbandit.errors import (
        CapitalExhausted,
        Conflict,
        ExperimentDecided,
        ExperimentPaused,
        NoActiveArms,
        NoResults,
        NotAllowed,
        OutcomeUnknown,
        StoreDamaged,
        StoreError,
        StoreHeld,
        StoreUnavailable,
        UnknownExperiment,
        UnknownPlay,
    )
    from mfbandit.execution import Ran, SeededPlay, States, Trained, run, seeded
    from mfbandit.experiment import Confidence, Experiment, HalfLife, History, Lift, Shares, Sure
    from mfbandit.policies import (
        IISE,
        LUCB,
        MFUCB,
        UCB,
        CompiledChoice,
        CompiledIndex,
        IndexPolicy,
        MFAda,
        MFAuto,
        MFBayes,
        MFGrad,
        MFSure,
        MFTopTwo,
        Policy,
        Thompson,
    )
    from mfbandit.problems import (
        Bernoulli,
        Gaussian,
        Problem,
        Replay,
        gap_problem,
        learning_curve_names,
        learning_curve_problem,
        misleading_problem,
        paper_problem,
        pseudo_rewards,
        regret,
    )
    from mfbandit.search import MFSearchCV, Trainer, Tuned, tune
    from mfbandit.service.client import connect
    from mfbandit.simulation import Comparison, Simulation, Study, Summary, compare, simulate, study
    from mfbandit.store import Store, acting_as
    from mfbandit.testing import ContractBroken, check_experiment, check_policy
    from mfbandit.theory import Plan, plan

__version__ = "0.1.0"

__all__ = [
    "IISE",
    "LUCB",
    "MFUCB",
    "UCB",
    "Batch",
    "Bernoulli",
    "Bounded",
    "Bounds",
    "CapitalExhausted",
    "Comparison",
    "CompiledChoice",
    "CompiledIndex",
    "Concentration",
    "Confidence",
    "Conflict",
    "ContractBroken",
    "Counts",
    "Experiment",
    "ExperimentDecided",
    "ExperimentPaused",
    "Fidelities",
    "Gaussian",
    "HalfLife",
    "History",
    "IndexPolicy",
    "Lift",
    "MFAda",
    "MFAuto",
    "MFBayes",
    "MFGrad",
    "MFSearchCV",
    "MFSure",
    "MFTopTwo",
    "NoActiveArms",
    "NoResults",
    "NotAllowed",
    "OutcomeUnknown",
    "Plan",
    "Play",
    "Policy",
    "Problem",
    "Ran",
    "Rate",
    "Replay",
    "SeededPlay",
    "Shares",
    "Simulation",
    "States",
    "Stats",
    "Store",
    "StoreDamaged",
    "StoreError",
    "StoreHeld",
    "StoreUnavailable",
    "Study",
    "SubGaussian",
    "Summary",
    "Sure",
    "Thompson",
    "Trained",
    "Trainer",
    "Tuned",
    "UnknownExperiment",
    "UnknownPlay",
    "__version__",
    "acting_as",
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
    "tune",
]

# Loaded when first asked for: `mfbandit --help` should not wait for numpy, nor asking and telling for matplotlib.
_MODULES = {
    "errors": (
        "CapitalExhausted",
        "Conflict",
        "ExperimentDecided",
        "ExperimentPaused",
        "NoActiveArms",
        "NoResults",
        "NotAllowed",
        "OutcomeUnknown",
        "StoreDamaged",
        "StoreError",
        "StoreHeld",
        "StoreUnavailable",
        "UnknownExperiment",
        "UnknownPlay",
    ),
    "core": (
        "Batch",
        "Bounded",
        "Bounds",
        "Concentration",
        "Counts",
        "Fidelities",
        "Play",
        "Rate",
        "Stats",
        "SubGaussian",
    ),
    "policies": (
        "CompiledChoice",
        "CompiledIndex",
        "IISE",
        "IndexPolicy",
        "LUCB",
        "MFAda",
        "MFAuto",
        "MFBayes",
        "MFGrad",
        "MFSure",
        "MFTopTwo",
        "MFUCB",
        "Policy",
        "Thompson",
        "UCB",
    ),
    "problems": (
        "Bernoulli",
        "Gaussian",
        "Problem",
        "Replay",
        "gap_problem",
        "learning_curve_names",
        "learning_curve_problem",
        "misleading_problem",
        "paper_problem",
        "pseudo_rewards",
        "regret",
    ),
    "theory": (
        "Plan",
        "plan",
    ),
    "experiment": (
        "Confidence",
        "Experiment",
        "HalfLife",
        "History",
        "Lift",
        "Shares",
        "Sure",
    ),
    "simulation": (
        "Comparison",
        "Simulation",
        "Study",
        "Summary",
        "compare",
        "simulate",
        "study",
    ),
    "store": ("Store", "acting_as"),
    "service.client": ("connect",),
    "execution": (
        "Ran",
        "SeededPlay",
        "States",
        "Trained",
        "run",
        "seeded",
    ),
    "search": (
        "MFSearchCV",
        "Trainer",
        "Tuned",
        "tune",
    ),
    "testing": (
        "ContractBroken",
        "check_experiment",
        "check_policy",
    ),
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
