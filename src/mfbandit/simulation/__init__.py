"""Run policies on problems many times, compiled where that is possible."""

from mfbandit.simulation.backends import backend
from mfbandit.simulation.engines import one_run
from mfbandit.simulation.plain import plain_run
from mfbandit.simulation.results import Comparison, Simulation, Summary, compare, ratio_interval
from mfbandit.simulation.simulator import simulate
from mfbandit.simulation.studies import Study, study

__all__ = [
    "Comparison",
    "Simulation",
    "Study",
    "Summary",
    "backend",
    "compare",
    "one_run",
    "plain_run",
    "ratio_interval",
    "simulate",
    "study",
]
