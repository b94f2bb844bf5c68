"""Compiled engines, each making the plays of the plain formula; ``registry.py`` says which runs which policy."""

from mfbandit.simulation.engines.registry import one_run

__all__ = ["one_run"]
