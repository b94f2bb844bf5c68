"""How sure it is that the best arm so far is the best: what an experiment's ``confidence`` answers, and why."""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from mfbandit._internal.formatting import plain
from mfbandit._internal.typing import BoolArray
from mfbandit._internal.validation import number
from mfbandit.core import Bounded, Claim, Concentration, Stats, SubGaussian, confidence, has_evidence
from mfbandit.core import refuting as refuting_now
from mfbandit.errors import InvalidArgument
from mfbandit.experiment.state import State

Kind = Literal["valid", "estimate", "withheld"]


@dataclass(frozen=True)
class Confidence:
    """How sure it is that the best arm so far is the best of all active ones.

    Args:
        best: the arm that :meth:`~mfbandit.Experiment.best` names.
        label: its name.
        level: a probability: how sure it is, however often one looks; 0 where nothing can be said.
        could_lose: by how much another arm may be better at ``at_level``, in units of reward; infinite where nothing
            is known.
        at_level: the level at which rivals and the possible loss are given.
        rivals: the arms that may be better at ``at_level``; the one that could be ahead by most first.
        could_be_ahead: for each rival, by how much.
        kind: "valid" at any time and whatever rule chose the plays; an "estimate"; or "withheld".
        why: why it is an estimate, or withheld; empty if it is valid.
        assumes: what must hold, in sentences.
        fidelities: the fidelities whose results count.
        results: how many results of active arms there are at each of them.
        arms: how many active arms there are, the best one included.

    >>> from mfbandit import UCB, Bounded, Experiment, Fidelities
    >>> exp = Experiment(UCB(), arms=["a", "b"], fidelities=Fidelities([1], concentration=Bounded()))
    >>> _ = exp.add_results([("a", 0, 1.0, None)] * 4 + [("b", 0, 0.0, None)] * 4)
    >>> found = exp.confidence()
    >>> found.label, round(found.level, 3), found.rivals, found.kind
    ('a', 0.942, (1,), 'valid')
    """

    best: int
    label: str
    level: float
    could_lose: float
    at_level: float
    rivals: tuple[int, ...]
    could_be_ahead: tuple[float, ...]
    kind: Kind
    why: str
    assumes: tuple[str, ...]
    fidelities: tuple[int, ...]
    results: tuple[int, ...]
    arms: int


def checked_level(level: object) -> float:
    """Return a level of confidence; refuse all that is not strictly between 0 and 1.

    >>> checked_level(95)
    Traceback (most recent call last):
    mfbandit.errors.InvalidArgument: level must lie strictly between 0 and 1, got 95
    """
    value = number("level", level)
    if not 0 < value < 1:
        raise InvalidArgument(f"level must lie strictly between 0 and 1, got {plain(value)}")
    return value


def confidence_of(state: State, best: int, level: float) -> Confidence:
    """Say how sure it is that an arm is the best of all active ones.

    Args:
        state: what was learned.
        best: the arm that it is about.
        level: at which rivals and the possible loss are given.
    """
    stats, fidelities = state.stats, state.fidelities
    if fidelities.concentration is None or not has_evidence(fidelities.tails[-1]):
        return _withheld(state, best, level, "nothing is known of the noise")
    counted = _counted(state)
    return _valid(state, confidence(stats, fidelities, best, state.roster, counted, level), level)


def _valid(state: State, claim: Claim, level: float) -> Confidence:
    return Confidence(
        claim.arm,
        state.labels[claim.arm],
        claim.level,
        claim.could_lose,
        level,
        claim.rivals,
        claim.could_be_ahead,
        "valid",
        "",
        _assumptions(state, claim.fidelities),
        claim.fidelities,
        _results(state.stats, claim.fidelities),
        int(state.stats.active.sum()),
    )


def _withheld(state: State, best: int, level: float, why: str) -> Confidence:
    others = state.stats.active.copy()
    others[best] = False
    rivals = tuple(np.flatnonzero(others).tolist())
    return Confidence(
        best,
        state.labels[best],
        0.0,
        math.inf,
        level,
        rivals,
        (math.inf,) * len(rivals),
        "withheld",
        why,
        (),
        (),
        (),
        len(rivals) + 1,
    )


def _counted(state: State) -> BoolArray:
    """Which fidelities count: those of known noise and known biases that no arm's results refute; shape (M,)."""
    fidelities = state.fidelities
    refuted = _refuted(state)
    known = [
        has_evidence(tail) and m not in refuted and (fidelities.biases is not None or m == len(fidelities) - 1)
        for m, tail in enumerate(fidelities.tails)
    ]
    return np.array(known)


def _refuted(state: State) -> set[int]:
    """The fidelities whose biases results refute, or once refuted, whether or not the policy uses biases."""
    now = refuting_now(state.stats, state.fidelities)
    return {fidelity for fidelity, *_ in now} | {fidelity for fidelity, _ in state.refuted}


def _results(stats: Stats, fidelities: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(int(stats.counts[m, stats.active].sum()) for m in fidelities)


def _assumptions(state: State, counted: tuple[int, ...]) -> tuple[str, ...]:
    fidelities, names = state.fidelities, state.fidelities.labels
    said = list(dict.fromkeys(_noise(fidelities.tails[m]) for m in counted))
    below = [m for m in counted if m < len(fidelities) - 1]
    said += [
        f"An arm's mean at fidelity {names[m]} lies within {plain(fidelities.known_biases[m])} of that at the highest."
        for m in below
    ]
    said += ["Means do not change over time.", "No result is missing because of its value."]
    dropped = [m for m in range(len(fidelities)) if m not in counted]
    said += [f"Results at fidelity {names[m]} do not count: {_why_not(state, m)}." for m in dropped]
    return tuple(said)


def _noise(tail: Concentration) -> str:
    if type(tail) is Bounded:
        return f"Rewards lie in {plain(tail.low)} to {plain(tail.high)}."
    if type(tail) is SubGaussian:
        return f"Noise is sub-Gaussian with a scale of at most {plain(tail.scale)}."
    return f"Noise is as {type(tail).__name__} says."


def _why_not(state: State, fidelity: int) -> str:
    if state.fidelities.biases is None:
        return "its bias is not known"
    if not has_evidence(state.fidelities.tails[fidelity]):
        return "no e-process is known for its noise"
    return "they refute its bias"
