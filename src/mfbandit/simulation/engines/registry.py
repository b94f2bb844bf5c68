"""Which engine runs which policy: one line each. What no engine can run goes play by play in Python."""

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any, TypeAlias, cast

import numpy as np

from mfbandit import policies
from mfbandit._internal.progress import Tick
from mfbandit._internal.typing import FloatArray
from mfbandit.errors import InvalidArgument
from mfbandit.policies import Compilable, CompiledChoice, CompiledIndex, Policy
from mfbandit.problems import Account, Problem
from mfbandit.simulation.engines.interface import Engine, compiled_run
from mfbandit.simulation.plain import plain_run
from mfbandit.simulation.results import Run

Runner: TypeAlias = Callable[[Problem, Policy, FloatArray, Account, np.random.Generator, Tick], Run]

# A module of kernels, and the policies that it runs; these exactly, as a subclass may choose otherwise. It is imported
# when one of them is simulated, since numba takes its time to load. The first that supports the problem is taken.
ENGINES: dict[str, tuple[type[Policy], ...]] = {
    "mfbandit.simulation.engines.heap_ucb": (policies.UCB, policies.MFUCB),
    "mfbandit.simulation.engines.iise": (policies.IISE,),
    "mfbandit.simulation.engines.kl_ucb": (policies.UCB, policies.MFUCB),
    "mfbandit.simulation.engines.lucb": (policies.LUCB,),
    "mfbandit.simulation.engines.mfada": (policies.MFAda,),
    "mfbandit.simulation.engines.mfauto": (policies.MFAuto,),
    "mfbandit.simulation.engines.mfbayes": (policies.MFBayes,),
    "mfbandit.simulation.engines.mfgrad": (policies.MFGrad,),
    "mfbandit.simulation.engines.mfsure": (policies.MFSure,),
    "mfbandit.simulation.engines.mftoptwo": (policies.MFTopTwo,),
}
FALL_BACK: Runner = plain_run


def engine_for(problem: Problem, policy: Policy) -> Engine[Any, Any, Any] | None:
    """Find the engine that runs this policy on this problem; None if there is none.

    >>> from mfbandit import UCB, paper_problem
    >>> engine_for(paper_problem(3), UCB(kl=True)).__name__
    'mfbandit.simulation.engines.kl_ucb'
    """
    for module, compiled in ENGINES.items():
        if type(policy) in compiled:
            engine = _load(module)
            if engine.supports(problem, policy):
                return engine
    return _own_engine(policy.compiled(problem.fidelities)) if isinstance(policy, Compilable) else None


def _own_engine(rule: CompiledIndex | CompiledChoice) -> Engine[Any, Any, Any]:
    """The engine for functions that a policy brings; numba is loaded only now."""
    if isinstance(rule, CompiledIndex):
        from mfbandit.simulation.engines.own_index import OwnIndexEngine

        return OwnIndexEngine(rule)
    if isinstance(rule, CompiledChoice):
        from mfbandit.simulation.engines.own_choice import OwnChoiceEngine

        return OwnChoiceEngine(rule)
    raise InvalidArgument(f"compiled(fidelities) must return a CompiledIndex or a CompiledChoice, got {rule!r}")


def runner_for(problem: Problem, policy: Policy) -> Runner:
    """Find what makes the runs of this policy on this problem: an engine, or the plain path.

    >>> from mfbandit import MFTopTwo, paper_problem
    >>> class Mine(MFTopTwo): ...  # it may choose otherwise
    >>> runner_for(paper_problem(3), Mine(capital=100)).__name__
    'plain_run'
    """
    engine = engine_for(problem, policy)
    return FALL_BACK if engine is None else partial(compiled_run, engine)


def one_run(
    problem: Problem,
    policy: Policy,
    capitals: FloatArray,
    account: Account,
    seed: np.random.SeedSequence,
    tick: Tick = lambda _: None,
) -> Run:
    """Make one run, by an engine where one can.

    Args:
        problem: the hidden truth.
        policy: the policy.
        capitals: where regret is recorded, increasing; the run ends at the last; shape (G,).
        account: what a play earns.
        seed: for the chance of this run.
        tick: called now and then with the share of the capital spent since the last call; may raise to stop.

    >>> from mfbandit import MFUCB, paper_problem
    >>> run = one_run(paper_problem(3), MFUCB(), np.array([1e4]), "paper", np.random.SeedSequence(0))
    >>> run.plays.shape, run.spent
    ((2, 200), 10000.0)
    """
    runner = runner_for(problem, policy)
    return runner(problem, policy, capitals, account, np.random.default_rng(seed), tick)


def _load(module: str) -> Engine[Any, Any, Any]:
    return cast("Engine[Any, Any, Any]", import_module(module))
