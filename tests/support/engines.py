"""Plays of the registered engines, for tests."""

from dataclasses import replace

import numpy as np

from mfbandit.simulation.engines.interface import DECIDED, begin_run
from mfbandit.simulation.engines.registry import engine_for


def engine_plays(problem, policy, n, seed, *, stretch=10**9, begin=None):
    """The first n plays of the engine that the registry has for this policy, shape (n, 2), in stretches.

    They are fewer where the policy decides.
    ``begin`` is another way to begin than the engine's own.
    """
    engine, capital = engine_for(problem, policy), (n + 1) * problem.fidelities.costs[-1]
    assert engine is not None
    started = begin_run(engine, problem, policy, np.array([capital]), traced=n)
    if begin is not None:
        started = replace(started, state=begin(started.truth, started.run))
    rng = np.random.default_rng(seed)
    while started.run.t[0] <= n:
        started.advance(rng, min(stretch, n + 1 - int(started.run.t[0])))
        if not started.running:
            assert started.run.status[0] == DECIDED
            break
    return started.plays()


def listed(plays):
    """Plays as a list of (arm, fidelity)."""
    return [tuple(play) for play in plays.tolist()]
